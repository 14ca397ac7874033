package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/gateway/auth"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/randomtest"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite"
)

const testQuantum = 50 * time.Millisecond

// scheduled is a service whose answers leave at boundaries.
func scheduled(t *testing.T, timeout time.Duration) *rig {
	t.Helper()
	r := newRig(t)
	r.datasets["d"] = Dataset{Data: r.data, Quantum: testQuantum, Timeout: timeout}
	return r
}

// works lets the data take so long, or until the context ends.
func (r *rig) works(d time.Duration, err error) {
	r.data.takes = func(ctx context.Context) ([]sqlrewrite.ExactRow, error) {
		r.clock.Sleep(ctx, d)
		if ctx.Err() != nil {
			return nil, fault.DataUnavailable(ctx.Err())
		}
		return []sqlrewrite.ExactRow{{Values: make([]mechanisms.Exact, 1)}}, err
	}
}

// atBoundary reports whether something that takes so long left at a boundary of these numbers. A boundary lies in (0.9, 1] of quantum·2ᵏ.
func atBoundary(took time.Duration, numbers ...int) bool {
	for _, k := range numbers {
		if nominal := testQuantum << k; took > nominal-nominal/moves && took <= nominal {
			return true
		}
	}
	return false
}

// TestAnswersLeaveAtBoundaries: answers, failures and panics leave at quantum·2ᵏ, less a tenth at most, and never at
// the beginning. Refusals and replays, which run nothing where others' questions run, leave at once. No draw of the boundaries fails the
// test.
//
// covers: A35 W.3
func TestAnswersLeaveAtBoundaries(t *testing.T) {
	refused := func(sql string) Request {
		return Request{QueryRequest: api.QueryRequest{Dataset: "d", SQL: sql, Epsilon: "1"}}
	}
	for name, c := range map[string]struct {
		request Request
		work    time.Duration
		fail    error
		panics  bool
		leaves  []int // none: at once
	}{
		"answer at once":  {request: count("0.5"), leaves: []int{0}},
		"answer":          {request: count("0.5"), work: 20 * time.Millisecond, leaves: []int{0}},
		"slower answer":   {request: count("0.5"), work: 45 * time.Millisecond, leaves: []int{0}},
		"in the jitter":   {request: count("0.5"), work: 48 * time.Millisecond, leaves: []int{0, 1}},
		"at the boundary": {request: count("0.5"), work: 50 * time.Millisecond, leaves: []int{1}},
		"slow answer":     {request: count("0.5"), work: 120 * time.Millisecond, leaves: []int{2}},
		"slower":          {request: count("0.5"), work: 210 * time.Millisecond, leaves: []int{3}},
		"much slower":     {request: count("0.5"), work: 20 * time.Minute, leaves: []int{15}},
		"failure":         {request: count("0.5"), work: 30 * time.Millisecond, fail: fault.DataUnavailable(nil), leaves: []int{0}},
		"slow failure":    {request: count("0.5"), work: 60 * time.Millisecond, fail: fault.DataUnavailable(nil), leaves: []int{1}},
		"untouched": {request: count("0.5"), work: 30 * time.Millisecond, fail: fault.Untouched(fault.DataUnavailable(nil)),
			leaves: []int{0}},
		"panic":            {request: count("0.5"), work: 30 * time.Millisecond, panics: true, leaves: []int{0}},
		"free":             {request: refused("SELECT 1"), leaves: []int{0}},
		"refused text":     {request: refused("SELEC")},
		"exhausted":        {request: count("100")},
		"refused epsilon":  {request: count("-1")},
		"no such dataset":  {request: Request{QueryRequest: api.QueryRequest{Dataset: "e"}}},
		"no data at all":   {request: refused("SELECT DISTINCT sex FROM people"), leaves: []int{0}},
		"policy too loose": {request: refused("SELECT age FROM people")},
	} {
		t.Run(name, func(t *testing.T) {
			for range 20 {
				r := scheduled(t, 0)
				r.works(c.work, c.fail)
				if c.panics {
					r.data.takes = func(context.Context) ([]sqlrewrite.ExactRow, error) {
						r.clock.Sleep(context.Background(), c.work)
						panic("x")
					}
				}
				began := r.clock.Now()
				_, err := r.Query(t.Context(), principal(t, "ana"), c.request)
				if took := r.clock.Now().Sub(began); c.leaves == nil && took != 0 || c.leaves != nil && !atBoundary(took, c.leaves...) {
					t.Fatalf("left after %v: %v", took, err)
				}
				if err != nil {
					continue
				}
				began = r.clock.Now()
				again, err := r.Query(t.Context(), principal(t, "ana"), c.request)
				if took := r.clock.Now().Sub(began); name != "free" && (err != nil || !again.Replayed || took != 0) {
					t.Fatalf("a replay left after %v: %+v, %v", took, again, err)
				}
			}
		})
	}
}

// TestJitterIsASlope: how likely it is that an answer misses a boundary rises evenly over the tenth in which the
// boundary lies, so that one unit that makes work longer by d changes it by d/tenth and no more; and boundaries are
// independent. With 20,000 draws a share is off by 0.0254 with a probability below 2·exp(-2·20000·0.0254²) = 1.3e-11
// (Hoeffding); there are 10 of them.
//
// covers: A34 W.3
func TestJitterIsASlope(t *testing.T) {
	const draws, off = 20_000, 0.0254
	sampler := mechanisms.NewSamplerFrom(randomtest.Source(t.Name()))
	missed := map[time.Duration]int{}
	var both int
	for range draws {
		h := &Schedule{quantum: testQuantum, sampler: sampler}
		for at := 45 * time.Millisecond; at <= 50*time.Millisecond; at += time.Millisecond {
			if due := h.after(at); due > testQuantum {
				missed[at]++
			}
		}
		for at := 180 * time.Millisecond; at <= 200*time.Millisecond; at += 10 * time.Millisecond {
			if due := h.after(at); due > 4*testQuantum {
				missed[at]++
			}
		}
		if h.boundary(0) < 47500*time.Microsecond && h.boundary(2) < 190*time.Millisecond {
			both++
		}
	}
	for at, want := range map[time.Duration]float64{45: 0, 46: 0.2, 47: 0.4, 48: 0.6, 49: 0.8, 50: 1, 180: 0, 190: 0.5, 200: 1} {
		if got := float64(missed[at*time.Millisecond]) / draws; math.Abs(got-want) > off {
			t.Errorf("work of %d ms misses the boundary in %.3f of cases, want %.3f", at, got, want)
		}
	}
	if got := float64(both) / draws; math.Abs(got-0.25) > off {
		t.Errorf("two boundaries are early together in %.3f of cases", got)
	}
}

// TestEffectiveTimeout: the largest boundary at or below what is configured.
func TestEffectiveTimeout(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct{ quantum, timeout, want time.Duration }{
		{50 * ms, 30 * time.Second, 25600 * ms}, {50 * ms, 25600 * ms, 25600 * ms}, {50 * ms, 25599 * ms, 12800 * ms},
		{50 * ms, 50 * ms, 50 * ms},
		{50 * ms, 99 * ms, 50 * ms}, {50 * ms, 100 * ms, 100 * ms}, {50 * ms, 49 * ms, 0}, {0, 30 * time.Second, 30 * time.Second},
		{ms, time.Hour, 2097152 * ms}, {10 * time.Second, time.Hour, 2560 * time.Second}, {1, math.MaxInt64, 1 << 62},
	} {
		if got := EffectiveTimeout(c.quantum, c.timeout); got != c.want {
			t.Errorf("%v of %v: %v, want %v", c.timeout, c.quantum, got, c.want)
		}
	}
}

// TestTimeoutIsABoundary: work that is not done by the last boundary is stopped, fails and leaves at that boundary, whatever it would have
// given; its charge stands. What is done in time is answered. Work that does not stop when it is told to leaves at a
// later boundary, and fails too.
//
// covers: A36 W.3
func TestTimeoutIsABoundary(t *testing.T) {
	const timeout = time.Second // 800 ms: number 4
	for name, c := range map[string]struct {
		work     time.Duration
		stubborn bool
		leaves   int
		code     fault.Code
	}{
		"in time":                    {work: 714 * time.Millisecond, leaves: 4},
		"a little late":              {work: 800 * time.Millisecond, leaves: 4, code: fault.CodeDataUnavailable},
		"late":                       {work: 10 * time.Second, leaves: 4, code: fault.CodeDataUnavailable},
		"for ever":                   {work: 1000 * time.Hour, leaves: 4, code: fault.CodeDataUnavailable},
		"does not stop":              {work: 2 * time.Second, stubborn: true, leaves: 6, code: fault.CodeDataUnavailable},
		"ends as if nothing were so": {work: 800 * time.Millisecond, stubborn: true, leaves: 5, code: fault.CodeDataUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			for range 20 {
				r := scheduled(t, timeout)
				r.works(c.work, nil)
				if c.stubborn {
					inner := r.data.takes
					r.data.takes = func(context.Context) ([]sqlrewrite.ExactRow, error) { return inner(context.Background()) }
				}
				began := r.clock.Now()
				_, err := r.Query(t.Context(), principal(t, "ana"), count("0.5"))
				if took := r.clock.Now().Sub(began); !atBoundary(took, c.leaves) || fault.CodeOf(err) != c.code {
					t.Fatalf("left after %v: %v", took, err)
				}
				if got := r.spentEpsilon(t); got != "0.5" {
					t.Fatalf("spent %s", got)
				}
			}
		})
	}
}

// spentEpsilon is what ana's account shows as spent.
func (r *rig) spentEpsilon(t *testing.T) string {
	t.Helper()
	all, err := r.Budget(t.Context(), principal(t, "ana"), "d")
	if err != nil {
		t.Fatal(err)
	}
	return string(all.Budgets[0].Spent.Epsilon)
}

// TestObserversSeeBoundaries: each thing that another session of the same analyst, another analyst or a steward can
// look at shows the same while work runs (10 ms) and when it has ended (30 ms), and something else once the boundary is
// over.
//
// covers: A33 W.3
func TestObserversSeeBoundaries(t *testing.T) {
	question := count("0.5")
	question.IdempotencyKey = "key"
	for name, look := range map[string]func(*rig, auth.Principal) (any, error){
		"balance":  func(r *rig, ana auth.Principal) (any, error) { return r.Budget(context.Background(), ana, "d") },
		"balances": func(r *rig, ana auth.Principal) (any, error) { return r.Accounts(context.Background(), ana, "d") },
		"history":  func(r *rig, ana auth.Principal) (any, error) { return r.Releases(context.Background(), ana, "") },
		"journal": func(r *rig, ana auth.Principal) (any, error) {
			return r.Audit(context.Background(), ana, JournalPage{Dataset: "d"})
		},
		"in flight":        func(r *rig, ana auth.Principal) (any, error) { return r.replayedID(ana, count("0.5")) },
		"in flight by key": func(r *rig, ana auth.Principal) (any, error) { return r.replayedID(ana, question) },
		"running":          func(r *rig, ana auth.Principal) (any, error) { return r.running.asked[asked{"ana", "key"}] != nil, nil },
		"place": func(r *rig, _ auth.Principal) (any, error) {
			r.questions.mu.Lock()
			defer r.questions.mu.Unlock()
			return r.questions.free, nil
		},
		"shared releases": func(r *rig, ana auth.Principal) (any, error) {
			e, err := r.ledger.Find(context.Background(), r.earlier)
			return e.Best != nil, err
		},
		"released values": func(r *rig, ana auth.Principal) (any, error) {
			e, err := r.ledger.Find(context.Background(), r.earlier)
			return e.Exact[0] != nil, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, ana := scheduled(t, 0), principal(t, "ana")
			request := question
			if name == "shared releases" {
				r, ana = sharingRig(t), principal(t, "ana", "analysts")
				r.datasets["d"] = Dataset{Data: r.data, Quantum: testQuantum}
				request = gaussianCount("0.01")
			}
			q, err := r.prepare(t.Context(), ana, request)
			if err != nil {
				t.Fatal(err)
			}
			r.earlier = budget.Lookup{Dataset: "d", Analyst: "ana", Identities: [][][32]byte{q.released[0].Names},
				Shared: q.Charge.Shared, Questions: q.atAnyPrice()}
			r.works(20*time.Millisecond, nil)
			seen := map[string]string{}
			observe := func(when string) {
				value, err := look(r, ana)
				text, encoding := json.Marshal(value)
				if encoding != nil {
					t.Error(encoding)
				}
				seen[when] = fmt.Sprintf("%s %s", text, fault.CodeOf(err))
			}
			r.clock.AfterFunc(10*time.Millisecond, func() { observe("working") })
			r.clock.AfterFunc(30*time.Millisecond, func() { observe("ended") })
			began := r.clock.Now()
			if _, err := r.Query(t.Context(), ana, request); err != nil || !atBoundary(r.clock.Now().Sub(began), 0) {
				t.Fatal(err, errors.Unwrap(err))
			}
			observe("left")
			if seen["working"] == "" || seen["working"] != seen["ended"] {
				t.Errorf("while it works: %s\nwhen it has ended: %s", seen["working"], seen["ended"])
			}
			if seen["ended"] == seen["left"] {
				t.Errorf("the test sees nothing: %s", seen["left"])
			}
		})
	}
}

// replayedID asks what must not begin: a question in flight.
func (r *rig) replayedID(who auth.Principal, request Request) (any, error) {
	answer, err := r.Query(context.Background(), who, request)
	if err != nil {
		return nil, err
	}
	return answer.Replayed, nil
}

// TestSettledAtTheBoundary: the time that history and journal give is the boundary's, also when the client hangs up:
// then the answer is stored, and free.
//
// covers: A33 W.3 W.7
func TestSettledAtTheBoundary(t *testing.T) {
	r, ana := scheduled(t, 0), principal(t, "ana")
	ctx, hangUp := context.WithCancel(t.Context())
	r.data.do = func() ([]sqlrewrite.ExactRow, error) {
		hangUp()
		r.clock.Sleep(context.Background(), 70*time.Millisecond)
		return []sqlrewrite.ExactRow{{Values: make([]mechanisms.Exact, 1)}}, nil
	}
	began := r.clock.Now()
	answer, err := r.Query(ctx, ana, count("0.5"))
	if err != nil {
		t.Fatal(err)
	}
	release, err := r.Release(t.Context(), ana, string(answer.ID))
	if err != nil {
		t.Fatal(err)
	}
	if at := release.At.Sub(began); !atBoundary(at, 1) {
		t.Errorf("settled after %v", at)
	}
	if again := r.ask(t, ana, count("0.5")); !again.Replayed || again.Spent.Epsilon != "0" || r.data.runs != 1 {
		t.Errorf("asked again: %+v", again)
	}
}

// TestDiesBeforeTheBoundary: a gateway that dies between the work's end and the boundary has stored no answer; its charge is open, then
// expired, which is spent, and the question can be asked, and charged, again.
//
// covers: F02 W.3
func TestDiesBeforeTheBoundary(t *testing.T) {
	r, ana := scheduled(t, 0), principal(t, "ana")
	r.works(20*time.Millisecond, nil)
	died := errors.New("killed")
	r.clock.AfterFunc(30*time.Millisecond, func() { panic(died) })
	func() {
		defer func() {
			if p := recover(); p != any(died) {
				t.Fatal(p)
			}
		}()
		_, _ = r.Query(t.Context(), ana, count("0.5"))
	}()
	all, err := r.Budget(t.Context(), ana, "d")
	if err != nil || all.Budgets[0].Reserved.Epsilon != "0.5" || all.Budgets[0].Spent.Epsilon != "0" {
		t.Errorf("%+v, %v", all, err)
	}
	r.clock.Sleep(t.Context(), 2*time.Minute)
	if n, err := r.ExpireAbandoned(t.Context()); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if got := r.spentEpsilon(t); got != "0.5" {
		t.Errorf("spent %s", got)
	}
	if again := r.ask(t, ana, count("0.5")); again.Replayed || again.Spent.Epsilon != "0.5" {
		t.Errorf("%+v", again)
	}
	if entries, err := r.ledger.Entries(t.Context(), budget.Page{Limit: 20}); err != nil || entries[0].Kind != budget.EntrySettle {
		t.Errorf("%+v, %v", entries, err)
	}
}
