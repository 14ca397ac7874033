package gateway

import (
	"testing"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/gateway/internal/amounts"
	"noisegate.example/mechanisms"
)

// A cap that is lowered below what is spent takes nothing back: what an account loses in its lifetime is at least what it lost.
func TestLifetimeIsAtLeastWhatIsSpent(t *testing.T) {
	r, ana := newRig(t, line("dataset", "", 20), perAnalyst("analysts", 10)), principal(t, "ana", "analysts")
	for _, epsilon := range []string{"1", "2", "3"} {
		r.ask(t, ana, count(epsilon))
	}
	for cap, want := range map[string]api.Promise{
		"8": {Epsilon: "8", Delta: "0"}, "6": {Epsilon: "6", Delta: "0"}, "5": {Epsilon: "6", Delta: "0"}, "0.5": {Epsilon: "6", Delta: "0"},
	} {
		limit := api.BudgetLimit{Form: "pure", Epsilon: api.Decimal(cap)}
		account, err := r.SetAccount(t.Context(), principal(t, "sam"), "d", "analyst:ana", api.LimitChange{BudgetLimit: limit})
		if err != nil {
			t.Fatal(err)
		}
		if account.Lifetime != want || account.WorstCase != want || account.Spent.Epsilon != "6" {
			t.Errorf("cap %s: lifetime %v, within a year %v, spent %s", cap, account.Lifetime, account.WorstCase, account.Spent.Epsilon)
		}
	}
	// Gaussian noise has a lifetime by its ρ.
	limit, err := amounts.ParseLimit(api.BudgetLimit{Form: "zcdp", Rho: "0.01"})
	if err != nil {
		t.Fatal(err)
	}
	spent := budget.Balance{Account: budget.Account{Limit: limit}, Spent: mechanisms.Loss{Rho: mechanisms.RhoUnit / 2, Unbounded: true}}
	if p := spent.Lifetime(); !p.Bounded || p.Epsilon < 6*mechanisms.EpsilonUnit || p.Epsilon > 7*mechanisms.EpsilonUnit {
		t.Errorf("rho 0.5 of 0.01: %+v", p)
	}
}
