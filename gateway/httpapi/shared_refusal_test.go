package httpapi

import (
	"fmt"
	"math"
	"testing"

	"noisegate.example/api"
	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/internal/fault"
)

// Where one shared account or rule refuses whatever is asked, refusals do not compare the amount with what another one has
// left: they are equal for all amounts, and cost nothing. They once named the account and the rule that refused first, so
// that 25 free requests read the balance of a dataset to seven digits.
//
// covers: L1 L4
func TestRefusalsOfSharedAccountsAreEqual(t *testing.T) {
	query := func(f *front, i int, rho float64) error {
		ask := counted(i, api.QueryRequest{Mechanism: "gaussian", Rho: api.Decimal(fmt.Sprintf("%.9f", rho))})
		_, err := f.client("ana:analyst").Query(t.Context(), ask, "")
		return err
	}
	each := "{group: analysts, per: analyst, form: zcdp, rho: 100}"
	for _, c := range []struct {
		name, dataset, spent string
		from                 float64
		begin                func(f *front)
		ask                  func(f *front, i int, rho float64) error
	}{
		{name: "behind an ensemble", dataset: "{dataset: true, form: zcdp, rho: 3}", spent: "1.2345678", from: 0.01,
			begin: func(f *front) {
				sealedEnsemble(t, f, "digits", 20)
				limit := api.BudgetLimit{Form: "zcdp", Rho: "0.001"}
				if _, err := f.client("sam:steward").SetAccount(t.Context(), gatewaytest.Dataset, "ensemble:digits", limit); err != nil {
					t.Fatal(err)
				}
			},
			ask: func(f *front, _ int, rho float64) error {
				_, err := f.client("mel:ml").Labels(t.Context(), "digits", api.LabelRequest{Queries: []string{"q0"}, Mechanism: "gnmax",
					Sigma: api.Decimal(fmt.Sprintf("%.9f", math.Sqrt(1/rho)))}, "")
				return err
			}},
		{name: "behind a tranche", dataset: "{dataset: true, form: zcdp, rho: 3, tranche: {every: 24h, rho: 0.5}}", spent: "0.2345678",
			from: 0.5, ask: query},
		{name: "behind a rate", dataset: "{dataset: true, form: zcdp, rho: 0.7, rate: {epsilon: 7, per: 24h}}", spent: "0.2345678",
			from: 0.4, ask: query},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFront(t, gatewaytest.Options{}, 4)
			if c.begin != nil {
				c.begin(f)
			}
			f.budgets(t, c.dataset, each, "{group: ml, per: analyst, form: zcdp, rho: 100}")
			other := counted(1, api.QueryRequest{Mechanism: "gaussian", Rho: api.Decimal(c.spent)})
			if _, err := f.client("bob:analyst").Query(t.Context(), other, ""); err != nil {
				t.Fatal(err)
			}
			entries, seen := f.Entries(t), map[string]int{}
			for i := range 12 {
				if err := c.ask(f, i+2, c.from*math.Pow(3/c.from, float64(i+1)/13)); codeOfError(err) != fault.CodeBudgetOverQueryCap {
					seen[fmt.Sprint(err)]++ // the cap on one query is the policy's, whatever is left
				}
			}
			if len(seen) != 1 || seen["<nil>"] > 0 || f.Entries(t) != entries {
				t.Errorf("refusals differ, or cost: %v", seen)
			}
		})
	}
}

// A large purchase at the floor leaves the ε clause of a shared account with a small δ open: it has at most 65 tails.
//
// covers: L3
func TestLargePurchasesLeaveTheEpsilonClauseOpen(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	f := newFront(t, gatewaytest.Options{}, 4)
	sealedEnsemble(t, f, "digits", 40_000)
	f.budgets(t, "{dataset: true, form: approx, epsilon: 20, delta: 1e-12}",
		"{group: analysts, per: analyst, form: approx, epsilon: 100, delta: 1e-6}",
		"{group: ml, per: analyst, form: approx, epsilon: 20, delta: 1e-6}")
	cheap := api.LabelRequest{Queries: queries(0, 40_000), Mechanism: "confident", Sigma1: "1000000", Sigma2: "100000", Threshold: "100"}
	if _, err := f.client("mel:ml").Labels(t.Context(), "digits", cheap, ""); err != nil {
		t.Fatal(err)
	}
	answers := 0
	for ; ; answers++ {
		_, err := f.client("ana:analyst").Query(t.Context(), counted(answers, api.QueryRequest{Epsilon: "1"}), "")
		if codeOfError(err) == fault.CodeBudgetExhausted {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if answers < 19 {
		t.Errorf("%d answers of ε 1 after a purchase at the floor, want at least 19", answers)
	}
}
