package httpapi

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"noisegate.example/api"
	"noisegate.example/gateway"
	"noisegate.example/gateway/gatewaytest"
)

// skippingClock lets no time pass where somebody sleeps, but says that it did.
type skippingClock struct {
	gateway.SystemClock
	mu    *sync.Mutex
	ahead *time.Duration
}

func (c skippingClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.SystemClock.Now().Add(*c.ahead)
}

func (c skippingClock) Sleep(_ context.Context, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*c.ahead += d
}

// slept returns how long somebody slept since the last call.
func (c skippingClock) slept() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := *c.ahead
	*c.ahead = 0
	return d
}

// sealedVotes has an ensemble of 20 queries whose account can pay for time.
func sealedVotes(t *testing.T, f *front) {
	t.Helper()
	sam := f.client("sam:steward")
	if _, err := sam.DefineEnsemble(t.Context(), "votes", api.EnsembleDefinition{Dataset: gatewaytest.Dataset, Teachers: 100,
		Classes: digits(),
		Budget:  &api.BudgetLimit{Form: "zcdp", Rho: "10", Delta: "1e-6"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := sam.LoadVotes(t.Context(), "votes", "text/csv", "", strings.NewReader(votes(20))); err != nil {
		t.Fatal(err)
	}
	if _, err := sam.SealEnsemble(t.Context(), "votes"); err != nil {
		t.Fatal(err)
	}
}

// Labels are delayed and charged for it where the guarantee covers time, and so are estimates' prices; labels that were
// bought before are neither. What is waited for is at most the longest delay, and the boundary after it, which is at
// most twice the delay and the work.
//
// needs: postgres
// covers: W.4
func TestTimingOfLabels(t *testing.T) {
	var longest time.Duration
	clock := skippingClock{mu: new(sync.Mutex), ahead: new(time.Duration)}
	f := newFront(t, gatewaytest.Options{Change: func(c *gateway.Config) {
		c.Clock = clock
		c.Policies, longest = gatewaytest.Timed(t, c.Policies)
	}}, 4)
	sealedVotes(t, f)
	mel := f.client("mel:ml")
	estimate := func(queries ...string) *api.LabelEstimate {
		e, err := mel.EstimateLabels(t.Context(), "votes", api.LabelEstimateRequest{Queries: queries, Mechanism: "gnmax", Sigma: "30"})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	buy := func(queries ...string) (*api.LabelResponse, time.Duration) {
		clock.slept()
		got, err := mel.Labels(t.Context(), "votes", api.LabelRequest{Queries: queries, Mechanism: "gnmax", Sigma: "30"}, "")
		if err != nil {
			t.Fatal(err)
		}
		return got, clock.slept()
	}
	says := func(e *api.LabelEstimate) bool {
		return slices.ContainsFunc(e.Notes, func(n api.Note) bool { return n.Code == "timing" })
	}
	if e := estimate("q0", "q1"); e.WorstCase.Delta != "1e-9" || !says(e) {
		t.Errorf("an estimate: %+v, %v", e.WorstCase, e.Notes)
	}
	bought, slept := buy("q0", "q1")
	if bought.Spent.Delta != "1e-9" || slept <= 0 || slept > longest {
		t.Errorf("bought after a sleep of %v, at most %v: %+v", slept, longest, bought.Spent)
	}
	if again, slept := buy("q0", "q1"); again.Spent.Delta != "0" || slept != 0 ||
		!slices.EqualFunc(again.Labels, bought.Labels, func(a, b api.Label) bool { return *a.Label == *b.Label }) {
		t.Errorf("the same again, after a sleep of %v: %+v", slept, again.Spent)
	}
	if e := estimate("q0", "q1"); e.WorstCase.Delta != "0" || says(e) {
		t.Errorf("an estimate of what is bought: %+v, %v", e.WorstCase, e.Notes)
	}
	if more, slept := buy("q0", "q2"); more.Spent.Delta != "1e-9" || slept <= 0 {
		t.Errorf("one more, after a sleep of %v: %+v", slept, more.Spent)
	}
}

// sleepsClock is a skippingClock that remembers each sleep.
type sleepsClock struct {
	skippingClock
	each *[]time.Duration
}

func (c sleepsClock) Sleep(ctx context.Context, d time.Duration) {
	c.skippingClock.Sleep(ctx, d)
	c.mu.Lock()
	defer c.mu.Unlock()
	*c.each = append(*c.each, d)
}

// What is stored after the boundary takes longer where nobody else had bought it; that shows at a boundary too, and the first comes a tenth
// of the quantum later.
//
// covers: L5
func TestStoringShowsAtABoundary(t *testing.T) {
	clock := sleepsClock{skippingClock{mu: new(sync.Mutex), ahead: new(time.Duration)}, new([]time.Duration)}
	const quantum, work = 20 * time.Minute, time.Minute // what the test takes at most
	f := newFront(t, gatewaytest.Options{Quantum: quantum, StatementTimeout: 2 * time.Hour,
		Change: func(c *gateway.Config) { c.Clock = clock }}, 4)
	sealedVotes(t, f)
	for _, buyer := range []string{"mel:ml", "max:ml"} { // who buys what is new, and the same
		*clock.each = nil
		if _, err := f.client(buyer).Labels(t.Context(), "votes", api.LabelRequest{Queries: []string{"q0", "q1"}, Mechanism: "gnmax",
			Sigma: "30"}, ""); err != nil {
			t.Fatal(err)
		}
		// Boundaries are moved to an earlier time by up to a tenth of them.
		if s := *clock.each; len(s) != 2 || s[0] < quantum*9/10-work || s[0] > quantum || s[1] < quantum/10*9/10-work || s[1] > quantum/10 {
			t.Errorf("%s: sleeps of %v", buyer, s)
		}
	}
}

// Labels that are cancelled when their work has ended and they wait for the boundary are not given, their charge
// stands, and asking again is a new one.
//
// needs: postgres
// covers: W.7
func TestCancelledLabels(t *testing.T) {
	clock := stagedClock{boundary: newStage()}
	f := newFront(t, gatewaytest.Options{Quantum: 50 * time.Millisecond, Change: func(c *gateway.Config) { c.Clock = clock }}, 4)
	sealedVotes(t, f)
	mel := f.client("mel:ml")
	question := api.LabelRequest{Queries: []string{"q0", "q1"}, Mechanism: "gnmax", Sigma: "30"}
	left := make(chan error, 1)
	go func() {
		_, err := mel.Labels(t.Context(), "votes", question, "key")
		left <- err
	}()
	spent := func() api.Decimal {
		b, err := mel.Budget(t.Context(), gatewaytest.Dataset)
		if err != nil {
			t.Fatal(err)
		}
		return b.Budgets[0].Spent.Rho
	}
	clock.boundary.look(t, "waits for its boundary", func() {
		if cancelled, err := mel.CancelQuery(t.Context(), "key"); err != nil || cancelled.Status != "stopping" {
			t.Errorf("%+v, %v", cancelled, err)
		}
	})
	select {
	case err := <-left:
		if codeOfError(err) != "budget/cancelled" {
			t.Errorf("%v", err)
		}
	case <-time.After(patience):
		t.Fatal("the labels do not leave")
	}
	first := spent()
	got, err := mel.Labels(t.Context(), "votes", question, "")
	if err != nil {
		t.Fatal(err)
	}
	if second := spent(); first == "0" || got.Spent.Rho == "0" || second == first {
		t.Errorf("spent %s, then %s", first, second)
	}
}

// What a run costs by each method is computed from votes, and is shown at a boundary too, also to stewards.
//
// covers: A33
func TestAnalysisShowsAtTheBoundary(t *testing.T) {
	clock := skippingClock{mu: new(sync.Mutex), ahead: new(time.Duration)}
	const quantum = 10 * time.Minute // far beyond what the analysis takes
	f := newFront(t, gatewaytest.Options{Quantum: quantum, StatementTimeout: time.Hour,
		Change: func(c *gateway.Config) { c.Clock = clock }}, 4)
	sealedVotes(t, f)
	clock.slept()
	began := time.Now()
	if _, err := f.client("sam:steward").AnalyseVotes(t.Context(), "votes",
		api.AnalysisRequest{All: true, Mechanism: "gnmax", Sigma: "30"}); err != nil {
		t.Fatal(err)
	}
	// A boundary is moved to an earlier time by up to a tenth of it.
	if took := clock.slept() + time.Since(began); took < quantum*9/10 || took > 2*quantum {
		t.Errorf("shown after %v", took)
	}
}
