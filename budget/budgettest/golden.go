package budgettest

import (
	_ "embed"
	"encoding/json"
	"strconv"

	"noisegate.example/budget"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

//go:embed ledger_scenario.json
var scenarios []byte

// The family ledger_scenario of golden/accounting.json: ρ charges of analysts under a cap each and one cap for all.
func testGoldenScenarios(f *fixture) {
	var all []struct {
		ID     string
		Inputs struct {
			PerAnalyst string `json:"per_analyst_rho"`
			Dataset    string `json:"dataset_rho"`
		}
		Outputs struct {
			Decisions []struct {
				Analyst, Mechanism string
				Units              string `json:"charge_units"`
				Allowed            bool
			}
			Spent        map[string]string `json:"spent_units"`
			DatasetSpent string            `json:"dataset_spent_units"`
		}
	}
	if err := json.Unmarshal(scenarios, &all); err != nil {
		f.Fatal(err)
	}
	for _, s := range all {
		// Scenarios are apart: each has a dataset, and no fixture accounts.
		in := func(a budget.Account) budget.Account { a.ID.Dataset = s.ID; return a }
		whole := in(datasetAccount(f.limit(budget.ZCDP, s.Inputs.Dataset, "")))
		for i, d := range s.Outputs.Decisions {
			c := f.charge(mechanisms.Loss{Rho: mechanisms.PicoRho(f.integer(d.Units)), Unbounded: d.Mechanism == "gaussian"},
				whole, in(analystAccount(d.Analyst, f.limit(budget.ZCDP, s.Inputs.PerAnalyst, ""))))
			c.Dataset, c.Analyst = s.ID, d.Analyst
			_, err := f.ledger.Reserve(f.Context(), c)
			if (err == nil) != d.Allowed || err != nil && fault.CodeOf(err) != fault.CodeBudgetExhausted {
				f.Errorf("%s: charge %d: %v, want allowed = %v", s.ID, i, err, d.Allowed)
			}
			if err == nil {
				f.took(c)
				f.settle(c.ID, c.Loss)
			}
		}
		if got := f.balance(whole.ID).Spent.Rho; int64(got) != f.integer(s.Outputs.DatasetSpent) {
			f.Errorf("%s: the dataset spent %d, want %s", s.ID, got, s.Outputs.DatasetSpent)
		}
		for analyst, units := range s.Outputs.Spent {
			id := budget.AccountID{Dataset: s.ID, Scope: budget.AnalystScope, Name: analyst}
			if got := f.balance(id).Spent.Rho; int64(got) != f.integer(units) {
				f.Errorf("%s: %s spent %d, want %s", s.ID, analyst, got, units)
			}
		}
	}
}

func (f *fixture) integer(text string) int64 {
	f.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		f.Fatal(err)
	}
	return n
}
