package gateway

import (
	"testing"

	"noisegate/api"
	"noisegate/internal/fault"
	"noisegate/mechanisms"
)

// covers: W.6
//
// A price at the floor is taken however many outputs it is split over, and counts as the floor in ε and in ρ: no account admits more questions than the floor lets it.
func TestFloorIsChargedInEachCurrency(t *testing.T) {
	r, ana := newRig(t), principal(t, "ana", "analysts")
	floor := floorAt(defaultFloor)
	for _, c := range []struct {
		sql     string
		epsilon string
	}{
		{"SELECT count(*) FROM people", "0.001"},
		{"SELECT count(*), sum(age), count(DISTINCT id), sum(age) FILTER (WHERE age > 3), count(*) FILTER (WHERE age > 4), count(*) FILTER (WHERE age > 5) FROM people", "0.001"},
	} {
		q, err := r.prepare(t.Context(), ana, Request{QueryRequest: api.QueryRequest{Dataset: "d", SQL: c.sql, Epsilon: api.Decimal(c.epsilon)}})
		if err != nil || q.refusal != nil {
			t.Fatalf("%s: %v, %v", c.sql, err, q)
		}
		if l := q.charge.Loss; l.Rho < floor.rho || l.Epsilon < floor.epsilon || l.Epsilon > floor.epsilon+floor.epsilon/1000 {
			t.Errorf("%s costs %+v at a floor of %+v", c.sql, l, floor)
		}
	}
	if l := floor.charged(mechanisms.Loss{}); !l.IsZero() {
		t.Errorf("nothing costs %+v", l)
	}
}

// covers: W.6
//
// A plan that was registered before there was a floor pays for nothing below it.
func TestFloorOfOldPlans(t *testing.T) {
	r, ana := newRig(t), principal(t, "ana", "analysts")
	charge, err := planCharge(api.PlanRequest{Dataset: "d", Delta: "1e-9", Mechanisms: []api.PlanMechanism{{Mechanism: "laplace", Epsilon: "0.00000001"}}})
	if err != nil {
		t.Fatal(err)
	}
	q, err := r.prepare(t.Context(), ana, count("0.1"))
	if err != nil {
		t.Fatal(err)
	}
	charge.ID, charge.Dataset, charge.Analyst, charge.Accounts = "old", "d", "ana", q.purse.accounts()
	if _, err := r.ledger.Reserve(t.Context(), charge); err != nil {
		t.Fatal(err)
	}
	if err := r.ledger.Settle(t.Context(), "old", charge.Loss, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	drawing := Request{QueryRequest: api.QueryRequest{Dataset: "d", SQL: "SELECT count(*) FROM people", Plan: "old"}}
	if _, err := r.Query(t.Context(), ana, drawing); fault.CodeOf(err) != fault.CodeBudgetUnderFloor || r.data.runs != 0 {
		t.Errorf("%v; %d statements ran", err, r.data.runs)
	}
}
