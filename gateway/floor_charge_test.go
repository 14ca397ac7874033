package gateway

import (
	"fmt"
	"math/big"
	"os"
	"strings"
	"testing"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/budget/accounting"
	"noisegate.example/budget/budgettest"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

// covers: W.6
//
// A price at the floor is taken however many outputs it is split over, and counts as the floor in ε and in ρ: no
// account admits more questions than the floor lets it.
func TestFloorIsChargedInEachCurrency(t *testing.T) {
	r, ana := newRig(t), principal(t, "ana", "analysts")
	floor := floorAt(defaultFloor)
	for _, c := range []struct {
		sql     string
		epsilon string
	}{
		{"SELECT count(*) FROM people", "0.001"},
		{"SELECT count(*), sum(age), count(DISTINCT id), sum(age) FILTER (WHERE age > 3), count(*) FILTER (WHERE age > 4), count(*) " +
			"FILTER (WHERE age > 5) FROM people", "0.001"},
	} {
		q, err := r.prepare(t.Context(), ana, Request{QueryRequest: api.QueryRequest{Dataset: "d", SQL: c.sql, Epsilon: api.Decimal(c.epsilon)}})
		if err != nil || q.Refusal != nil {
			t.Fatalf("%s: %v, %v", c.sql, err, q)
		}
		if l := q.Charge.Loss; l.Rho < floor.rho || l.Epsilon < floor.epsilon || l.Epsilon > floor.epsilon+floor.epsilon/1000 {
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
	o, err := r.Order(t.Context(), ana, "d", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := pricePlan(o, api.PlanRequest{Dataset: "d", Delta: "1e-9",
		Mechanisms: []api.PlanMechanism{{Mechanism: "laplace", Epsilon: "0.00000001"}}}); err != nil {
		t.Fatal(err)
	}
	o.Charge.ID = "old"
	if _, err := r.ledger.Reserve(t.Context(), o.Charge); err != nil {
		t.Fatal(err)
	}
	if err := r.ledger.Settle(t.Context(), "old", o.Charge.Loss, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	drawing := Request{QueryRequest: api.QueryRequest{Dataset: "d", SQL: "SELECT count(*) FROM people", Plan: "old"}}
	if _, err := r.Query(t.Context(), ana, drawing); fault.CodeOf(err) != fault.CodeBudgetUnderFloor || r.data.runs != 0 {
		t.Errorf("%v; %d statements ran", err, r.data.runs)
	}
}

// TestGaussianReleasesAtTheFloor computes what docs/accounting.md and docs/guarantees.md say Gaussian releases at the
// floor take from users of Laplace noise: how many of them use up the ε clause of (20, 10⁻⁶), half or whole, and how
// many answers at ε 1 are left then of 20.
func TestGaussianReleasesAtTheFloor(t *testing.T) {
	for _, c := range []struct {
		floor       mechanisms.PicoEpsilon
		half, whole string
		takes       string // of the Σε clause, by one account of (3, 10⁻⁷)
	}{
		{mechanisms.EpsilonUnit / 1000, "1,261", "2,522", "2,386.5"},
		{mechanisms.EpsilonUnit / 100, "122", "244", "247.2"},
		{mechanisms.EpsilonUnit / 10, "12", "24", "25.6"},
	} {
		each, ok := accounting.EpsilonFor(floorAt(c.floor).rho, 1)
		uses := func(clause mechanisms.PicoEpsilon) string {
			text := fmt.Sprint(int64((clause + each - 1) / each))
			if n := len(text); n > 3 {
				text = text[:n-3] + "," + text[n-3:]
			}
			return text
		}
		if half, whole := uses(10*mechanisms.EpsilonUnit), uses(20*mechanisms.EpsilonUnit); !ok || half != c.half || whole != c.whole {
			t.Errorf("at the floor %s: %s use up half, %s all of it, want %s and %s", c.floor, half, whole, c.half, c.whole)
		}
		takes := strings.TrimSuffix(fmt.Sprintf("%.1f", float64(accounting.RhoFor(3*mechanisms.EpsilonUnit,
			mechanisms.DeltaUnit/20_000_000)/floorAt(c.floor).rho)*float64(each)/float64(mechanisms.EpsilonUnit)), ".0")
		if strings.ReplaceAll(c.takes, ",", "") != takes {
			t.Errorf("at the floor %s one account takes %s, want %s", c.floor, takes, c.takes)
		}
		says(t, "accounting.md", fmt.Sprintf("| %s | %s | %s | %s |", c.floor, c.half, c.whole, c.takes))
	}
	says(t, "guarantees.md", "2,522 of them use up the Σε clause of (20, 10⁻⁶)")

	// The ledger agrees: before, 20 answers at ε 1; after 2,522 releases, 10.
	for _, gaussian := range []int{0, 2522} {
		l := budgettest.NewMemory(testTime)
		limit, err := budget.NewLimit(budget.LimitSpec{Form: budget.Approx, Epsilon: big.NewRat(20, 1), Delta: big.NewRat(1, 1_000_000)})
		if err != nil {
			t.Fatal(err)
		}
		admitted := func(n int, loss mechanisms.Loss) bool {
			_, err := l.Reserve(t.Context(), budget.Charge{ID: budget.ReservationID(fmt.Sprint(n)), Dataset: "d", Analyst: "ana", Loss: loss,
				Fingerprint: [32]byte{byte(n), byte(n >> 8)}, Accounts: []budget.Account{{ID: budget.AccountID{Dataset: "d",
					Scope: budget.DatasetScope}, Limit: limit}}})
			return err == nil
		}
		for n := range gaussian {
			if !admitted(n, mechanisms.Loss{Rho: floorAt(defaultFloor).rho, Unbounded: true}) {
				t.Fatalf("release %d is refused", n)
			}
		}
		answers := 0
		for admitted(gaussian+answers, mechanisms.Loss{Epsilon: mechanisms.EpsilonUnit, Rho: 462_117_157_261}) { // ε·tanh(ε/2)
			answers++
		}
		if want := map[int]int{0: 20, 2522: 10}[gaussian]; answers != want {
			t.Errorf("after %d releases %d answers at epsilon 1, want %d", gaussian, answers, want)
		}
	}
}

// says fails the test where a page of the documentation lacks a text.
func says(t *testing.T, page, text string) {
	t.Helper()
	all, err := os.ReadFile("../docs/" + page)
	if err != nil || !strings.Contains(strings.Join(strings.Fields(string(all)), " "), text) { // however its lines are broken
		t.Errorf("docs/%s does not say %q (%v)", page, text, err)
	}
}
