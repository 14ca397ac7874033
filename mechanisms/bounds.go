package mechanisms

import (
	"math/big"

	"noisegate/internal/exact"
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
		return expNegBounds(x, n)
	case lawLogistic:
		lo, hi = expNegBounds(x, n)
		return logisticOf(lo, n, exact.FloorQuo), logisticOf(hi, n, exact.CeilQuo)
	case lawTanhHalf:
		lo, hi = expNegBounds(x, n)
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

// guard is how many bits expNegBounds works with beyond those asked for.
const guard = 48

// expNegBounds encloses e^-x for x >= 0; hi-lo is at most 2.
//
// It works at precision p = n+48 and reduces to r = x/2ᵏ < 2⁻¹⁶. The Taylor sum S of e^r, every step rounded down, misses
// less than 3 units a term (one for the term's own rounding, at most one for that of r, and less than one inherited
// from the term before, shrunk by r) and a tail of less than 8; so e^r lies in [S, S+4·terms+8]. Its reciprocal is then
// squared k times, rounded outwards. Each squaring doubles the relative width. There are at most p/16+2 terms, so that it begins
// below n/4+32 units, and k <= 18+log2(n), because larger x are answered at once: 48 guard bits leave the result at most 2 units
// wide for n up to 2¹⁴. (Beyond, it would be a wider enclosure, still an enclosure.)
func expNegBounds(x *big.Rat, n uint) (lo, hi *big.Int) {
	if x.Sign() == 0 {
		return one(n), one(n)
	}
	if x.Cmp(new(big.Rat).SetInt64(int64(n))) >= 0 { // e^-x < 2⁻ⁿ
		return new(big.Int), big.NewInt(1)
	}
	p := n + guard
	k := uint(max(0, x.Num().BitLen()-x.Denom().BitLen()+17))
	r := new(big.Int).Div(new(big.Int).Lsh(x.Num(), p), new(big.Int).Lsh(x.Denom(), k))

	sum, term, count := one(p), one(p), new(big.Int)
	for term.Sign() > 0 {
		count.Add(count, bigOne)
		term.Rsh(term.Mul(term, r), p)
		term.Quo(term, count)
		sum.Add(sum, term)
	}
	hi = exact.CeilQuo(one(2*p), sum)
	slack := count.Add(count.Lsh(count, 2), big.NewInt(8))
	lo = exact.FloorQuo(one(2*p), sum.Add(sum, slack))
	for range k {
		lo.Rsh(lo.Mul(lo, lo), p)
		hi.Add(hi.Rsh(hi.Mul(hi, hi), p), bigOne)
	}
	lo.Rsh(lo, guard)
	hi.Add(hi.Rsh(hi, guard), bigOne)
	return lo, minInt(hi, one(n))
}

// bigOne is never written to.
var bigOne = big.NewInt(1)

func minInt(a, b *big.Int) *big.Int {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}
