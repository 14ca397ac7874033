package budget

import (
	"math/big"

	"noisegate.example/internal/fault"
)

// Ceiling is the most that a charge may cost, to the digit. A nil ε or ρ is not looked at; a nil δ is 0.
type Ceiling struct{ Epsilon, Rho, Delta *big.Rat }

// OverCeiling refuses a charge that costs more than it may: budget/over-at-most; nil for others. What has no pure ε is above every ε.
func (c Charge) OverCeiling() error {
	most, l := c.Ceiling, c.Loss
	if most == nil {
		return nil
	}
	delta := most.Delta
	if delta == nil {
		delta = new(big.Rat)
	}
	if (most.Epsilon == nil || l.Pure() && l.Epsilon.Rat().Cmp(most.Epsilon) <= 0) &&
		(most.Rho == nil || l.Rho.Rat().Cmp(most.Rho) <= 0) &&
		l.Delta.Rat().Cmp(delta) <= 0 {
		return nil
	}
	price := fault.Price{Rho: l.Rho.String(), Delta: l.Delta.String()}
	if l.Pure() {
		price.Epsilon = l.Epsilon.String()
	}
	return fault.BudgetOverAtMost(price)
}
