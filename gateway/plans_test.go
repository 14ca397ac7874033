package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/catalog"
	"noisegate.example/gateway/auth"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite"
)

func laplaceLine(epsilon api.Decimal, count int64) api.PlanMechanism {
	return api.PlanMechanism{Mechanism: "laplace", Epsilon: epsilon, Count: &count}
}

func planOf(lines ...api.PlanMechanism) PlanRequest {
	return PlanRequest{PlanRequest: api.PlanRequest{Dataset: "d", Delta: "1e-8", Mechanisms: lines}}
}

func (r *rig) register(t *testing.T, who auth.Principal, lines ...api.PlanMechanism) string {
	t.Helper()
	plan, err := r.RegisterPlan(t.Context(), who, planOf(lines...))
	if err != nil {
		t.Fatal(err, errors.Unwrap(err))
	}
	return plan.PlanID
}

// under is a question that a plan pays for; each limit makes another question.
func under(plan string, limit int) Request {
	return Request{QueryRequest: api.QueryRequest{Dataset: "d", Plan: plan,
		SQL: fmt.Sprintf("SELECT count(*) AS n FROM people WHERE age < %d", limit)}}
}

func (r *rig) drawn(t *testing.T, who auth.Principal, plan string) int {
	t.Helper()
	p, err := r.Plan(t.Context(), who, plan)
	if err != nil {
		t.Fatal(err)
	}
	return p.Drawn
}

// TestPlan: a plan is charged once, for less than its parts; its questions cost nothing more, have the noise of its slots in
// order, and are replayed without another slot.
func TestPlan(t *testing.T) {
	r, ana := newRig(t), principal(t, "ana")
	rho := api.PlanMechanism{Mechanism: "gaussian", Rho: "0.001"}
	plan, err := r.RegisterPlan(t.Context(), ana, planOf(laplaceLine("0.04", 20), laplaceLine("0.04", 1), rho))
	if err != nil {
		t.Fatal(err)
	}
	if plan.Cost.Epsilon >= "1" || plan.Cost.Epsilon < "0.8" || plan.Cost.Delta != "1e-8" || plan.Slots != 22 || plan.Drawn != 0 ||
		len(plan.Left) != 2 || *plan.Left[0].Count != 21 || plan.Left[1].Rho != "0.001" || plan.Dataset != "d" || plan.RegisteredAt.IsZero() {
		t.Errorf("%+v", plan)
	}
	left := func() api.Decimal {
		b, err := r.Budget(t.Context(), ana, "d")
		if err != nil {
			t.Fatal(err)
		}
		return b.Budgets[0].Remaining.Epsilon
	}
	before := left()
	first, err := r.Query(t.Context(), ana, under(plan.PlanID, 1))
	if err != nil || first.Spent.Epsilon != "0" || first.Spent.Delta != "0" || first.Replayed {
		t.Fatalf("%+v, %v", first, err)
	}
	again, err := r.Query(t.Context(), ana, under(plan.PlanID, 1))
	if err != nil || !again.Replayed || string(again.Result) != string(first.Result) || r.drawn(t, ana, plan.PlanID) != 1 {
		t.Errorf("%+v, %v", again, err)
	}
	for i := range 20 {
		e, err := r.Estimate(t.Context(), ana, under(plan.PlanID, 10+i).QueryRequest)
		if err != nil || e.Price.Epsilon != "0" || e.Outputs[0].Price.Epsilon != "0.04" || e.Outputs[0].Scale != "25" || !e.Affordable {
			t.Fatalf("%+v, %v", e, err)
		}
		if _, err := r.Query(t.Context(), ana, under(plan.PlanID, 10+i)); err != nil {
			t.Fatal(err)
		}
	}
	e, err := r.Estimate(t.Context(), ana, under(plan.PlanID, 2).QueryRequest)
	if err != nil || e.Outputs[0].Mechanism != "discrete_gaussian" || e.Outputs[0].Variance != "500" {
		t.Errorf("%+v, %v", e, err)
	}
	if _, err := r.Query(t.Context(), ana, under(plan.PlanID, 2)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Query(t.Context(), ana, under(plan.PlanID, 3)); fault.CodeOf(err) != fault.CodePlanExhausted {
		t.Errorf("%v", err)
	}
	if _, err := r.Estimate(t.Context(), ana, under(plan.PlanID, 3).QueryRequest); fault.CodeOf(err) != fault.CodePlanExhausted {
		t.Errorf("%v", err)
	}
	if again, err := r.Query(t.Context(), ana, under(plan.PlanID, 1)); err != nil || !again.Replayed ||
		string(again.Result) != string(first.Result) {
		t.Errorf("when the plan is used up: %+v, %v", again, err)
	}
	if got := left(); got != before {
		t.Errorf("questions cost: %s was left, now %s", before, got)
	}
	if history, err := r.Releases(t.Context(), ana, ""); err != nil || len(history.Releases) != 22 ||
		history.Releases[0].Request.Plan != plan.PlanID {
		t.Errorf("%+v, %v", history, err)
	}
}

// TestPlanNoise: a release has the noise of its slot, whatever the text, and several take several.
func TestPlanNoise(t *testing.T) {
	r, ana := newRig(t), principal(t, "ana")
	plan := r.register(t, ana, laplaceLine("0.1", 1), laplaceLine("0.2", 1), laplaceLine("0.4", 1))
	q := under(plan, 0).QueryRequest
	q.SQL = "SELECT sex, count(*) AS n, sum(age) AS s FROM people GROUP BY sex"
	e, err := r.Estimate(t.Context(), ana, q)
	if err != nil {
		t.Fatal(err)
	}
	if e.Outputs[0].Price.Epsilon != "0.1" || e.Outputs[0].Scale != "10" || e.Outputs[1].Price.Epsilon != "0.2" ||
		e.Outputs[1].Scale != "500" {
		t.Errorf("%+v", e.Outputs)
	}
	q.SQL = "SELECT avg(age) AS a, sum(age) AS s, count(born) AS b FROM people"
	if _, err := r.Query(t.Context(), ana, Request{QueryRequest: q}); fault.CodeOf(err) != fault.CodePlanExhausted {
		t.Errorf("four releases and three slots: %v", err)
	}
	q.SQL = "SELECT DISTINCT sex FROM people"
	if _, err := r.Query(t.Context(), ana, Request{QueryRequest: q}); err != nil || r.drawn(t, ana, plan) != 0 {
		t.Errorf("no release: %v", err)
	}
}

// TestPlanRefusals: what a plan cannot pay for changes nothing.
func TestPlanRefusals(t *testing.T) {
	r, ana := newRig(t), principal(t, "ana")
	plan := r.register(t, ana, laplaceLine("0.1", 2))
	for name, c := range map[string]struct {
		change func(*api.QueryRequest)
		code   fault.Code
	}{
		"another mechanism": {func(q *api.QueryRequest) { q.Mechanism = "gaussian" }, fault.CodeSlotMismatch},
		"private keys":      {func(q *api.QueryRequest) { q.SQL = "SELECT city, count(*) FROM people GROUP BY city" }, fault.CodeSlotMismatch},
		"too many releases": {func(q *api.QueryRequest) { q.SQL = "SELECT avg(age), sum(age), count(born) FROM people" },
			fault.CodePlanExhausted},
		"epsilon":      {func(q *api.QueryRequest) { q.Epsilon = "1" }, fault.CodeRequestPlan},
		"rho":          {func(q *api.QueryRequest) { q.Rho = "1" }, fault.CodeRequestPlan},
		"delta":        {func(q *api.QueryRequest) { q.Delta = "1e-9" }, fault.CodeRequestPlan},
		"max_error":    {func(q *api.QueryRequest) { q.MaxError = map[string]api.Decimal{"n": "1"} }, fault.CodeRequestPlan},
		"weights":      {func(q *api.QueryRequest) { q.Weights = map[string]api.Decimal{"n": "1"} }, fault.CodeRequestPlan},
		"no such plan": {func(q *api.QueryRequest) { q.Plan = "01J" }, fault.CodePlanUnknown},
		"not SQL":      {func(q *api.QueryRequest) { q.SQL = "SELEC" }, fault.CodeSyntax},
	} {
		request := under(plan, 5)
		c.change(&request.QueryRequest)
		if _, err := r.Query(t.Context(), ana, request); fault.CodeOf(err) != c.code {
			t.Errorf("%s: %v", name, err)
		}
	}
	if r.drawn(t, ana, plan) != 0 || r.data.runs != 0 {
		t.Errorf("%d slots, %d runs", r.drawn(t, ana, plan), r.data.runs)
	}
	request := under(plan, 5)
	request.Mechanism = "laplace"
	if _, err := r.Query(t.Context(), ana, request); err != nil {
		t.Errorf("the slot's mechanism: %v", err)
	}
}

// TestPlansOfOthers: a foreign plan and one that does not exist look the same, to read and to draw from.
func TestPlansOfOthers(t *testing.T) {
	r, ana, bob := newRig(t), principal(t, "ana"), principal(t, "bob")
	plan := r.register(t, ana, laplaceLine("0.1", 2))
	_, foreign := r.Plan(t.Context(), bob, plan)
	_, unknown := r.Plan(t.Context(), bob, "01J")
	if fault.CodeOf(foreign) != fault.CodePlanUnknown || foreign.Error() != unknown.Error() {
		t.Errorf("%v, %v", foreign, unknown)
	}
	_, foreign = r.Query(t.Context(), bob, under(plan, 1))
	_, unknown = r.Query(t.Context(), bob, under("01J", 1))
	if fault.CodeOf(foreign) != fault.CodePlanUnknown || foreign.Error() != unknown.Error() || r.drawn(t, ana, plan) != 0 {
		t.Errorf("%v, %v", foreign, unknown)
	}
}

// TestPlanAfterFailure: a slot is gone when its query fails after data was read; the question draws the next one.
func TestPlanAfterFailure(t *testing.T) {
	r, ana := newRig(t), principal(t, "ana")
	plan := r.register(t, ana, laplaceLine("0.1", 3))
	for i, do := range []func() ([]sqlrewrite.ExactRow, error){
		func() ([]sqlrewrite.ExactRow, error) { return nil, fault.DataUnavailable(errors.New("broken")) },
		func() ([]sqlrewrite.ExactRow, error) { panic("broken") },
	} {
		r.data.do = do
		if _, err := r.Query(t.Context(), ana, under(plan, 1)); err == nil || r.drawn(t, ana, plan) != i+1 {
			t.Errorf("%v, drawn %d", err, r.drawn(t, ana, plan))
		}
	}
	r.data.do = nil
	if _, err := r.Query(t.Context(), ana, under(plan, 1)); err != nil || r.drawn(t, ana, plan) != 3 {
		t.Errorf("%v, drawn %d", err, r.drawn(t, ana, plan))
	}
}

// TestPlanRace: 64 questions for 10 slots of different noise: ten are answered, each with its own slot.
func TestPlanRace(t *testing.T) {
	r, ana := newRig(t), principal(t, "ana")
	var lines []api.PlanMechanism
	for i := range 10 {
		lines = append(lines, laplaceLine(api.Decimal(fmt.Sprintf("0.0%d1", i)), 1))
	}
	plan := r.register(t, ana, lines...)
	var mu sync.Mutex
	codes := map[fault.Code]int{}
	var wait sync.WaitGroup
	for i := range 64 {
		wait.Go(func() {
			_, err := r.Query(t.Context(), ana, under(plan, i))
			mu.Lock()
			defer mu.Unlock()
			codes[fault.CodeOf(err)]++
		})
	}
	wait.Wait()
	if codes[""] != 10 || codes[fault.CodePlanExhausted] != 54 {
		t.Errorf("%v", codes)
	}
	entries, err := r.ledger.Entries(t.Context(), budget.Page{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	var registered, used []mechanisms.Parameters
	for _, e := range entries {
		switch {
		case e.Kind == budget.EntryReserve && len(e.Mechanisms) == 10:
			registered = e.Mechanisms
		case e.Kind == budget.EntryReserve:
			used = append(used, e.Mechanisms...)
		}
	}
	for _, list := range [][]mechanisms.Parameters{registered, used} {
		slices.SortFunc(list, func(a, b mechanisms.Parameters) int { return cmp.Compare(a.Scale, b.Scale) })
	}
	if !slices.Equal(registered, used) {
		t.Errorf("registered %v\nused %v", registered, used)
	}
}

// TestRegistration: keys replay, prices are held against the budget, and what cannot be meant is refused.
func TestRegistration(t *testing.T) {
	r, ana := newRig(t), principal(t, "ana")
	request := planOf(laplaceLine("0.1", 3))
	request.IdempotencyKey = "k"
	one, err := r.RegisterPlan(t.Context(), ana, request)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := r.RegisterPlan(t.Context(), ana, request); err != nil || again.PlanID != one.PlanID {
		t.Errorf("%+v, %v", again, err)
	}
	request.IdempotencyKey = ""
	if other, err := r.RegisterPlan(t.Context(), ana, request); err != nil || other.PlanID == one.PlanID {
		t.Errorf("%+v, %v", other, err)
	}
	for name, c := range map[string]struct {
		request PlanRequest
		code    fault.Code
	}{
		"over the cap of one query": {planOf(laplaceLine("0.2", 20)), fault.CodeBudgetOverQueryCap},
		"too much delta": {PlanRequest{PlanRequest: api.PlanRequest{Dataset: "d", Delta: "1e-7",
			Mechanisms: []api.PlanMechanism{laplaceLine("0.1", 1)}}},
			fault.CodeBudgetExhausted},
		"no delta": {PlanRequest{PlanRequest: api.PlanRequest{Dataset: "d", Mechanisms: []api.PlanMechanism{laplaceLine("0.1", 1)}}},
			fault.CodeRequestDelta},
		"delta 0": {PlanRequest{PlanRequest: api.PlanRequest{Dataset: "d", Delta: "0",
			Mechanisms: []api.PlanMechanism{laplaceLine("0.1", 1)}}}, fault.CodeRequestDelta},
		"nothing":      {planOf(), fault.CodeRequestMissingField},
		"no dataset":   {PlanRequest{PlanRequest: api.PlanRequest{Delta: "1e-9"}}, fault.CodeRequestMissingField},
		"epsilon 0":    {planOf(laplaceLine("0", 1)), fault.CodeRequestEpsilon},
		"count 0":      {planOf(laplaceLine("0.1", 0)), fault.CodeRequestPlan},
		"count -1":     {planOf(laplaceLine("0.1", -1)), fault.CodeRequestPlan},
		"count 1001":   {planOf(laplaceLine("0.001", 1000), laplaceLine("0.001", 1)), fault.CodeRequestPlan},
		"huge count":   {planOf(laplaceLine("0.001", 1), laplaceLine("0.001", 1<<62)), fault.CodeRequestPlan},
		"101 lines":    {planOf(slices.Repeat([]api.PlanMechanism{laplaceLine("0.001", 1)}, 101)...), fault.CodeRequestPlan},
		"laplace, rho": {planOf(api.PlanMechanism{Mechanism: "laplace", Rho: "0.1"}), fault.CodeRequestPlan},
		"both prices":  {planOf(api.PlanMechanism{Mechanism: "gaussian", Rho: "0.1", Epsilon: "1"}), fault.CodeRequestPlan},
		"gaussian":     {planOf(api.PlanMechanism{Mechanism: "gaussian"}), fault.CodeRequestRho},
		"unknown":      {planOf(api.PlanMechanism{Mechanism: "exponential", Epsilon: "1"}), fault.CodeRequestPlan},
	} {
		if _, err := r.RegisterPlan(t.Context(), ana, c.request); fault.CodeOf(err) != c.code {
			t.Errorf("%s: %v", name, err)
		}
	}
	if b, err := r.Budget(t.Context(), ana, "d"); err != nil || b.Budgets[0].Reserved.Epsilon != "0" {
		t.Errorf("%+v, %v", b, err)
	}
	// A pure budget takes a plan if it has the δ, Gaussian slots among them; without δ it takes none.
	pure := line(catalog.DatasetScope, "", 10)
	r = newRig(t, pure, perAnalyst("analysts", 5))
	if _, err := r.RegisterPlan(t.Context(), ana, planOf(laplaceLine("0.1", 10))); fault.CodeOf(err) != fault.CodeBudgetExhausted {
		t.Errorf("without δ: %v", err)
	}
}

// An answer that draws from a plan is held back while its receipt cannot be made, since after a failover nothing else may say what the plan
// cost. It is given, with the same bytes and for the same slot, to who asks again.
func TestDrawsLeaveWithReceipts(t *testing.T) {
	r, ana := newRig(t), principal(t, "ana")
	plan := r.register(t, ana, laplaceLine("0.01", 2))
	gone := true
	r.meter.ledger = leaky{Ledger: r.ledger, settlement: func(l budget.Ledger, ctx context.Context, id budget.ReservationID) (
		budget.Settlement, error) {
		if gone {
			return budget.Settlement{}, fault.DataUnavailable(errors.New("another server took over"))
		}
		return l.Settlement(ctx, id)
	}}
	if a, err := r.Query(t.Context(), ana, under(plan, 1)); fault.CodeOf(err) != fault.CodeDataUnavailable || a != nil {
		t.Fatalf("%+v, %v", a, err)
	}
	gone = false
	a, err := r.Query(t.Context(), ana, under(plan, 1))
	if err != nil || !a.Replayed || r.drawn(t, ana, plan) != 1 || r.data.runs != 1 {
		t.Errorf("%+v, %v; %d drawn, %d runs", a, err, r.drawn(t, ana, plan), r.data.runs)
	}
}
