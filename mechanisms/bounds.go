package mechanisms

import (
	"math/big"

	"noisegate.example/internal/exact"
)

// This file encloses exponentials of rationals between two fixed-point numbers, to any precision. Charges are rounded up
// and coins are decided with these enclosures, so that no floating-point error can ever favour spending.
//
// A bound at precision n is an integer B that stands for B/2ⁿ. Every function returns lo <= 2ⁿ·value <= hi.

// law is a probability as a function of one non-negative rational.
type law int

const (
	lawExp      law = iota // e^-x
	lawLogistic            // 1/(1+e^x)
	lawTanhHalf            // tanh(x/2) = (1-e^-x)/(1+e^-x)
)

// at is the enclosure of the probability at x.
func (l law) at(x *big.Rat) enclosure {
	return func(n uint) (lo, hi *big.Int) { return l.bounds(x, n) }
}

// bounds encloses the probability of the law at x.
func (l law) bounds(x *big.Rat, n uint) (lo, hi *big.Int) {
	switch l {
	case lawExp:
		return exact.ExpNeg(x, n)
	case lawLogistic:
		lo, hi = exact.ExpNeg(x, n)
		return logisticOf(lo, n, exact.FloorQuo), logisticOf(hi, n, exact.CeilQuo)
	case lawTanhHalf:
		lo, hi = exact.ExpNeg(x, n)
		return tanhHalfOf(hi, n, exact.FloorQuo), tanhHalfOf(lo, n, exact.CeilQuo)
	default:
		panic("mechanisms: unknown law")
	}
}

// logisticOf is q/(1+q), which rises with q.
func logisticOf(q *big.Int, n uint, quo rounding) *big.Int {
	return quo(new(big.Int).Lsh(q, n), new(big.Int).Add(one(n), q))
}

// tanhHalfOf is (1-q)/(1+q), which falls with q.
func tanhHalfOf(q *big.Int, n uint, quo rounding) *big.Int {
	numerator := new(big.Int).Sub(one(n), q)
	return quo(numerator.Lsh(numerator, n), new(big.Int).Add(one(n), q))
}

// rounding divides integers in one direction; the divisor is positive.
type rounding func(a, b *big.Int) *big.Int

// fixed is 2ⁿ·x, rounded.
func fixed(x *big.Rat, n uint, quo rounding) *big.Int {
	return quo(new(big.Int).Lsh(x.Num(), n), x.Denom())
}

func one(n uint) *big.Int { return new(big.Int).Lsh(big.NewInt(1), n) }

// bigOne is never written to.
var bigOne = big.NewInt(1)

func minInt(a, b *big.Int) *big.Int {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}
