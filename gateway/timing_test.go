package gateway

import (
	"math"
	"strings"
	"testing"
	"time"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

// timedRig is a service whose guarantee covers time: unit_ms 5 at ε 0.5 and δ 1e-9.
func timedRig(t *testing.T, r *rig) *rig {
	t.Helper()
	timing := &catalog.Timing{Unit: 5 * time.Millisecond, Epsilon: mechanisms.EpsilonUnit / 2, Delta: mechanisms.DeltaUnit / 1_000_000_000}
	delay, err := timing.Delay()
	if err != nil {
		t.Fatal(err)
	}
	r.policies.snapshot.Delay = delay
	return r
}

// TestTimingIsCharged: what reads protected rows is delayed and charged for it; replays are neither, nor is what was voided.
//
// covers: W.4
func TestTimingIsCharged(t *testing.T) {
	r, ana := timedRig(t, newRig(t)), principal(t, "ana", "analysts")
	longest := (&Delay{r.policies.snapshot.Delay}).longest()
	estimate, err := r.Estimate(t.Context(), ana, count("0.25").QueryRequest)
	if err != nil || estimate.Price.Epsilon != "0.75" || estimate.Price.Delta != "1e-9" ||
		estimate.Notes[len(estimate.Notes)-1].Code != "timing" {
		t.Errorf("%+v, %v", estimate, err)
	}
	began := r.clock.Now()
	answer := r.ask(t, ana, count("0.25"))
	took := r.clock.Now().Sub(began)
	if answer.Spent.Epsilon != "0.75" || answer.Spent.Delta != "1e-9" || took <= 0 || took > longest ||
		!strings.Contains(string(answer.Result), "196ms") {
		t.Errorf("after %v: %+v %s", took, answer.Spent, answer.Result)
	}
	began = r.clock.Now()
	if again := r.ask(t, ana, count("0.25")); !again.Replayed || again.Spent.Epsilon != "0" || r.clock.Now() != began ||
		string(again.Result) != string(answer.Result) {
		t.Errorf("a replay: %+v", again)
	}
	if _, err := r.Query(t.Context(), ana, count("0.6")); fault.CodeOf(err) != fault.CodeBudgetOverQueryCap {
		t.Errorf("0.6 and 0.5 of at most 1: %v", err)
	}
	if answer := r.ask(t, ana, count("0.5")); answer.Spent.Epsilon != "1" { // the most that one query may cost
		t.Errorf("at the cap: %+v", answer.Spent)
	}
	r.works(0, fault.Untouched(fault.DataUnavailable(nil)))
	if _, err := r.Query(t.Context(), ana, count("0.1")); err == nil || r.spentEpsilon(t) != "1.75" {
		t.Errorf("%v, spent %s", err, r.spentEpsilon(t))
	}
	entries, err := r.ledger.Entries(t.Context(), budget.Page{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if n := len(e.Mechanisms); e.Kind == budget.EntryReserve {
			delay, loss := e.Mechanisms[n-1], (&Delay{r.policies.snapshot.Delay}).Loss()
			if delay.Mechanism != mechanisms.RandomDelay || delay.Epsilon != loss.Epsilon.String() || delay.Delta != loss.Delta.String() {
				t.Errorf("%+v", e.Mechanisms)
			}
		}
	}
}

// TestTimingDelays: the time is the work's and a delay of s on average. With 2,000 questions the average of the delays,
// whose standard deviation is √2·10 ms, is off by 2.1 ms, 6.6 standard errors, with a probability below 1e-10.
//
// covers: W.4
func TestTimingDelays(t *testing.T) {
	const questions = 2000
	s := timedRig(t, newRig(t))
	delay := &Delay{s.policies.snapshot.Delay}
	var sum time.Duration
	for range questions {
		h := s.Schedule("d")
		delay.put(h)
		if *h.delay < 0 || *h.delay > delay.longest() {
			t.Fatal(*h.delay)
		}
		sum += *h.delay
	}
	if off := (sum/questions - delay.average()).Abs(); off > 2100*time.Microsecond {
		t.Errorf("%v on average, off by %v", sum/questions, off)
	}
	h := &Schedule{delay: new(7 * time.Microsecond)}
	for took, want := range map[time.Duration]time.Duration{0: 7000, 1: 8000, 999: 8000, 1000: 8000, 1001: 9000} {
		if got := h.delayed(took); got != want {
			t.Errorf("%d ns counts as %d", took, got)
		}
	}
}

// TestTimingDecidesTheTimeout: whether an answer is a failure, and the boundary at which it leaves, are functions of
// work and delay together. The delay here is always s, 195.974 ms, and no boundary is moved.
//
// covers: W.4
func TestTimingDecidesTheTimeout(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		quantum, work, leaves time.Duration
		code                  fault.Code
	}{
		{testQuantum, ms, 200 * ms, ""}, {testQuantum, 5 * ms, 400 * ms, ""}, {testQuantum, 600 * ms, 800 * ms, ""},
		{testQuantum, 1399 * ms, 1600 * ms, ""}, {testQuantum, 1400 * ms, 1600 * ms, fault.CodeDataUnavailable},
		{testQuantum, time.Hour, 1600 * ms, fault.CodeDataUnavailable},
		{0, ms, 196974 * time.Microsecond, ""}, {0, 1804 * ms, 1999974 * time.Microsecond, ""},
		{0, 1805 * ms, 2 * time.Second, fault.CodeDataUnavailable},
		{0, time.Hour, 2 * time.Second, fault.CodeDataUnavailable},
	} {
		r := timedRig(t, newRig(t))
		r.sampler = func() *mechanisms.Sampler { return mechanisms.NewSamplerFrom(latest{}) }
		r.datasets["d"] = Dataset{Data: r.data, Quantum: c.quantum, Timeout: 2 * time.Second}
		r.works(c.work, nil)
		began := r.clock.Now()
		_, err := r.Query(t.Context(), principal(t, "ana"), count("0.25"))
		if took := r.clock.Now().Sub(began); fault.CodeOf(err) != c.code || took != c.leaves || r.spentEpsilon(t) != "0.75" {
			t.Errorf("quantum %v, work of %v left after %v: %v", c.quantum, c.work, took, err)
		}
	}
}

// TestTimingRefuses accounts that have no δ to pay with, and timeouts that most answers would not meet. Answers that
// exist are given all the same.
//
// covers: W.4
func TestTimingRefuses(t *testing.T) {
	r, ana := newRig(t, line("dataset", "", 10), perAnalyst("analysts", 5)), principal(t, "ana", "analysts")
	r.ask(t, ana, count("1"))
	timedRig(t, r)
	if again := r.ask(t, ana, count("1")); !again.Replayed {
		t.Errorf("%+v", again)
	}
	if _, err := r.Query(t.Context(), ana, count("2")); fault.CodeOf(err) != fault.CodeBudgetTiming {
		t.Errorf("a pure account: %v", err)
	}
	if _, err := r.Estimate(t.Context(), ana, count("2").QueryRequest); fault.CodeOf(err) != fault.CodeBudgetTiming {
		t.Errorf("an estimate for a pure account: %v", err)
	}
	r = timedRig(t, newRig(t))
	for timeout, want := range map[time.Duration]fault.Code{783 * time.Millisecond: fault.CodeBudgetTiming, 784 * time.Millisecond: "",
		0: ""} {
		r.datasets["d"] = Dataset{Data: r.data, Timeout: timeout}
		if _, err := r.Query(t.Context(), ana, count("0.3")); fault.CodeOf(err) != want {
			t.Errorf("timeout %v: %v", timeout, err)
		}
		r.policies.snapshot.Version++ // so that it is no replay
		r.policies.snapshot.DataVersion += "1"
	}
}

// TestTimingOfSharedAndPlanned: a weaker answer that is made of an earlier release costs nothing, a stronger one the
// difference and its delay, and slots of a plan are paid for, but not the delay.
//
// covers: W.4
func TestTimingOfSharedAndPlanned(t *testing.T) {
	r := timedRig(t, sharingRig(t))
	ana := principal(t, "ana", "analysts")
	for i := range r.policies.snapshot.Budgets {
		r.policies.snapshot.Budgets[i].Delta = mechanisms.AttoDelta(mechanisms.DeltaUnit / 1000).Rat()
	}
	delay := r.policies.snapshot.Delay.Loss().Rho
	for i, c := range []struct {
		rho  string
		want mechanisms.PicoRho
	}{{"0.01", mechanisms.RhoUnit/100 + delay}, {"0.004", 0}, {"0.02", mechanisms.RhoUnit/100 + delay}} {
		before := r.clock.Now()
		got := r.ask(t, ana, gaussianCount(c.rho))
		if string(got.Spent.Rho) != c.want.String() || r.clock.Now().Equal(before) != (c.want == 0) {
			t.Errorf("question %d: %+v after %v, want ρ %s", i, got.Spent, r.clock.Now().Sub(before), c.want)
		}
	}
	plan, err := r.RegisterPlan(t.Context(), ana, PlanRequest{PlanRequest: api.PlanRequest{Dataset: "d", Delta: "1e-9",
		Mechanisms: []api.PlanMechanism{{Mechanism: "gaussian", Rho: "0.03", Count: new(int64(2))}}}})
	if err != nil {
		t.Fatal(err)
	}
	got := r.ask(t, ana, Request{QueryRequest: api.QueryRequest{Dataset: "d", SQL: "SELECT count(*) FROM people", Plan: plan.PlanID,
		Mechanism: "gaussian"}})
	if string(got.Spent.Rho) != delay.String() {
		t.Errorf("drawn from a plan: %+v", got.Spent)
	}
}

// TestTimingOfTheCheapest: the price that max_error finds leaves room for the delay.
//
// covers: W.4
func TestTimingOfTheCheapest(t *testing.T) {
	r, ana := timedRig(t, newRig(t)), principal(t, "ana", "analysts")
	request := count("")
	request.MaxError = map[string]api.Decimal{"count": "8"}
	got := r.ask(t, ana, request)
	spent, err := mechanisms.ParseEpsilon(string(got.Spent.Epsilon))
	if price := float64(spent)/float64(mechanisms.EpsilonUnit) - 0.5; err != nil || math.Abs(price-0.36) > 0.03 {
		t.Errorf("%+v", got.Spent)
	}
	request.MaxError["count"] = "4" // ε 0.7, and 0.5 for the delay, of at most 1
	if _, err := r.Query(t.Context(), ana, request); fault.CodeOf(err) != fault.CodeRequestMaxError {
		t.Errorf("%v", err)
	}
}
