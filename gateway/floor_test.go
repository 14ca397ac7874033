package gateway

import (
	"math/big"
	"testing"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

// TestQuestionsCostTheFloor: whatever reads protected rows costs at least the floor, however its price is given; below
// it nothing is charged, and what was bought before is given again.
//
// covers: W.6
func TestQuestionsCostTheFloor(t *testing.T) {
	r, ana := newRig(t), principal(t, "ana")
	priced := func(edit func(*api.QueryRequest)) Request {
		q := count("")
		edit(&q.QueryRequest)
		return q
	}
	for name, q := range map[string]Request{
		"epsilon":    count("0.000999999999"),
		"tiny":       count("1e-12"),
		"rho":        priced(func(q *api.QueryRequest) { q.Rho, q.Mechanism = "0.000000499999", "gaussian" }),
		"converted":  priced(func(q *api.QueryRequest) { q.Epsilon, q.Delta, q.Mechanism = "0.001", "1e-9", "gaussian" }),
		"rho, auto":  priced(func(q *api.QueryRequest) { q.Rho = "0.0000004" }),
		"many parts": priced(func(q *api.QueryRequest) { q.SQL, q.Epsilon = "SELECT count(*), avg(age) FROM people", "0.0009" }),
	} {
		if _, err := r.Query(t.Context(), ana, q); fault.CodeOf(err) != fault.CodeBudgetUnderFloor {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := r.Estimate(t.Context(), ana, q.QueryRequest); fault.CodeOf(err) != fault.CodeBudgetUnderFloor {
			t.Errorf("%s, estimated: %v", name, err)
		}
	}
	if r.data.runs != 0 {
		t.Errorf("%d questions ran", r.data.runs)
	}
	for name, q := range map[string]Request{
		"epsilon": count("0.001"),
		"rho":     priced(func(q *api.QueryRequest) { q.Rho, q.Mechanism = "0.0000005", "gaussian" }),
	} {
		if _, err := r.Query(t.Context(), ana, q); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A price that is found for an error is not below the floor.
	found, err := r.Query(t.Context(), ana, priced(func(q *api.QueryRequest) { q.MaxError = map[string]api.Decimal{"count": "1000000000"} }))
	if err != nil {
		t.Fatal(err)
	}
	if spent, err := mechanisms.ParseEpsilon(string(found.Spent.Epsilon)); err != nil || spent < defaultFloor || spent > defaultFloor*101/100 {
		t.Errorf("an error that every price keeps costs %s", found.Spent.Epsilon)
	}
}

// TestPoliciesMoveTheFloor: the highest of the lines that concern the caller counts; without one the floor is 10⁻³.
//
// covers: W.6
func TestPoliciesMoveTheFloor(t *testing.T) {
	line := func(text string) *catalog.Budget {
		amount, _ := new(big.Rat).SetString(text)
		return &catalog.Budget{MinEpsilon: amount}
	}
	for name, c := range map[string]struct {
		lines []*catalog.Budget
		want  floor
	}{
		"none":    {[]*catalog.Budget{nil, {}}, floor{1_000_000_000, 500_000}},
		"lowered": {[]*catalog.Budget{nil, line(catalog.MinFloor)}, floor{100_000_000, 5_000}},
		"highest": {[]*catalog.Budget{line("0.05"), line("0.01")}, floor{50_000_000_000, 1_250_000_000}},
	} {
		got, err := floorOf(c.lines)
		if err != nil || got != c.want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// TestPlansHaveNoSlotBelowTheFloor: a question may draw a single slot.
//
// covers: W.6
func TestPlansHaveNoSlotBelowTheFloor(t *testing.T) {
	r, ana := newRig(t), principal(t, "ana")
	register := func(slots ...api.PlanMechanism) error {
		_, err := r.RegisterPlan(t.Context(), ana, PlanRequest{PlanRequest: api.PlanRequest{Dataset: "d", Delta: "1e-9", Mechanisms: slots}})
		return err
	}
	fair := api.PlanMechanism{Mechanism: "laplace", Epsilon: "0.1"}
	for _, low := range []api.PlanMechanism{{Mechanism: "laplace", Epsilon: "0.0009"}, {Mechanism: "gaussian", Rho: "0.0000001"}} {
		if err := register(fair, low); fault.CodeOf(err) != fault.CodeBudgetUnderFloor {
			t.Errorf("%+v: %v", low, err)
		}
	}
	if err := register(fair); err != nil {
		t.Error(err)
	}
}

// TestQuestionsThatAFloorAdmits holds the figures of docs/guarantees.md.
//
// covers: W.6
func TestQuestionsThatAFloorAdmits(t *testing.T) {
	const milli, centi = mechanisms.EpsilonUnit / 1000, mechanisms.EpsilonUnit / 100
	limit := func(spec budget.LimitSpec) budget.Limit {
		l, err := budget.NewLimit(spec)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	number := func(text string) *big.Rat {
		n, _ := new(big.Rat).SetString(text)
		return n
	}
	approx := limit(budget.LimitSpec{Form: budget.Approx, Epsilon: number("3"), Delta: number("1e-7")})
	pure := limit(budget.LimitSpec{Form: budget.Pure, Epsilon: number("3")})
	zcdp := limit(budget.LimitSpec{Form: budget.ZCDP, Rho: number("0.1")})
	for _, c := range []struct {
		limit    budget.Limit
		floor    mechanisms.PicoEpsilon
		gaussian bool
		want     int64
	}{
		{pure, milli, false, 3_000}, {pure, centi, false, 300},
		{approx, milli, true, 300_841}, {approx, centi, true, 3_008},
		{zcdp, milli, true, 200_000}, {zcdp, centi, true, 2_000},
	} {
		if got := questions(t, c.limit, c.floor, c.gaussian); got != c.want {
			t.Errorf("%s at %s: %d questions; docs/guarantees.md says %d", c.limit.Form, c.floor, got, c.want)
		}
	}
}

// questions is how many releases at the floor a budget admits, one after another.
func questions(t *testing.T, limit budget.Limit, epsilon mechanisms.PicoEpsilon, gaussian bool) int64 {
	t.Helper()
	loss := mechanisms.Loss{Rho: floorAt(epsilon).rho, Unbounded: true}
	if !gaussian {
		var err error
		if loss, err = mechanisms.PureLoss(epsilon, 0); err != nil {
			t.Fatal(err)
		}
	}
	return budget.Times(limit, mechanisms.Loss{}, loss)
}
