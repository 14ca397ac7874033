package budget_test

import (
	"math/big"
	"testing"

	"noisegate.example/budget"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

// A ceiling is compared to the digit, however it is written, and what it does not name is 0 for δ and not looked at for ε and ρ.
func TestOverCeiling(t *testing.T) {
	laplace := mechanisms.Loss{Epsilon: mechanisms.EpsilonUnit / 100, Rho: mechanisms.RhoUnit / 20_000}
	private := mechanisms.Loss{Epsilon: mechanisms.EpsilonUnit / 100, Delta: mechanisms.DeltaUnit / 1_000_000_000}
	gaussian := mechanisms.Loss{Unbounded: true, Rho: mechanisms.RhoUnit / 100}
	inLedger := budget.InLedger(gaussian)
	for _, c := range []struct {
		loss                mechanisms.Loss
		epsilon, rho, delta string
		over                bool
	}{
		{laplace, "0.01", "", "", false},
		{laplace, "1e-2", "", "", false},
		{laplace, "0.010000000000000000000000000000001", "", "", false},
		{laplace, "0.009999999999", "", "", true},
		{laplace, "0.00999999999999999999999999999999999", "", "", true},
		{laplace, "0.01", "0.00005", "", false},
		{laplace, "0.01", "0.000049999999", "", true},
		{laplace, "", "5e-5", "", false},
		{private, "0.01", "", "1e-9", false},
		{private, "0.01", "", "", true},
		{private, "0.01", "", "9.99e-10", true},
		{private, "", "1", "1e-9", false},
		{gaussian, "1000", "", "", true}, // there is no finite ε
		{inLedger, "1000", "", "", true},
		{gaussian, "", "0.01", "", false},
		{inLedger, "", "0.01", "", false},
		{gaussian, "", "0.009999999999999", "", true},
		{mechanisms.Loss{}, "0", "", "", false}, // free, or refused
		{mechanisms.Loss{Epsilon: 1}, "0", "", "", true},
	} {
		charge := budget.Charge{Loss: c.loss, Ceiling: &budget.Ceiling{}}
		most := charge.Ceiling
		for text, to := range map[string]**big.Rat{c.epsilon: &most.Epsilon, c.rho: &most.Rho, c.delta: &most.Delta} {
			if text == "" {
				continue
			}
			var err error
			if *to, err = mechanisms.ParseDecimal(text); err != nil {
				t.Fatal(err)
			}
		}
		if err := charge.OverCeiling(); (fault.CodeOf(err) == fault.CodeBudgetOverAtMost) != c.over || err != nil != c.over {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if err := (budget.Charge{Loss: gaussian}).OverCeiling(); err != nil {
		t.Errorf("without a ceiling: %v", err)
	}
}
