package domain

import (
	"math/big"

	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/scalar"
)

// DerivedStep is a step from the bounds alone: the digits of a numeric(p,s) column, else the largest power of ten that cuts
// the bounds into algebra.FineSteps parts.
func DerivedStep(x algebra.Expr, within *algebra.Bounds) *big.Rat {
	span := new(big.Rat).Sub(within.Hi, within.Lo)
	if span.Sign() <= 0 {
		span.Abs(within.Hi)
	}
	if span.Sign() == 0 {
		return scalar.One()
	}
	parts := new(big.Rat).SetInt64(algebra.FineSteps)
	if s, ok := algebra.Scale(x); ok {
		step := new(big.Rat).SetFrac(big.NewInt(1), scalar.Power10(s))
		if new(big.Rat).Quo(span, step).Cmp(new(big.Rat).SetInt64(algebra.FloatSteps)) < 0 {
			return step
		}
	}
	step, ten := scalar.One(), big.NewRat(10, 1)
	for new(big.Rat).Quo(span, step).Cmp(parts) < 0 {
		step.Quo(step, ten)
	}
	for new(big.Rat).Quo(span, new(big.Rat).Mul(step, ten)).Cmp(parts) >= 0 {
		step.Mul(step, ten)
	}
	return step
}

// OnGrid reports whether every value of a numeric(p,s) column is a multiple of step.
func OnGrid(x algebra.Expr, step *big.Rat) bool {
	s, ok := algebra.Scale(x)
	if !ok || step.Num().Cmp(big.NewInt(1)) != 0 {
		return false
	}
	return new(big.Int).Mod(step.Denom(), scalar.Power10(s)).Sign() == 0
}
