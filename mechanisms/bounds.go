package mechanisms

import "math/big"

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
	lawConstant            // x itself, at most 1
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
		return logisticOf(lo, n, floorQuo), logisticOf(hi, n, ceilQuo)
	case lawTanhHalf:
		lo, hi = expNegBounds(x, n)
		return tanhHalfOf(hi, n, floorQuo), tanhHalfOf(lo, n, ceilQuo)
	case lawConstant:
		return fixed(x, n, floorQuo), fixed(x, n, ceilQuo)
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

func floorQuo(a, b *big.Int) *big.Int { return new(big.Int).Div(a, b) }

func ceilQuo(a, b *big.Int) *big.Int {
	q, r := new(big.Int).DivMod(a, b, new(big.Int))
	if r.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	return q
}

// fixed is 2ⁿ·x, rounded.
func fixed(x *big.Rat, n uint, quo rounding) *big.Int {
	return quo(new(big.Int).Lsh(x.Num(), n), x.Denom())
}

func one(n uint) *big.Int { return new(big.Int).Lsh(big.NewInt(1), n) }

// expNegBounds encloses e^-x for x >= 0; hi-lo is at most 2.
//
// It works at precision p = n+40 and reduces to r = x/2ᵏ < 2⁻⁸. The Taylor sum S of e^r, every step rounded down, misses
// less than 3 units a term (one for the term's own rounding, at most one for that of r, and less than one inherited
// from the term before, shrunk by r) and a tail of less than 8; so e^r lies in [S, S+4·terms+8]. Its reciprocal is then
// squared k times, rounded outwards. Each squaring doubles the relative width: 2⁸ units grow by 2ᵏ, and k <= 10+log2(n)
// because larger x are answered at once. 40 guard bits leave the result at most 2 units wide for n up to 2²⁰.
func expNegBounds(x *big.Rat, n uint) (lo, hi *big.Int) {
	if x.Sign() == 0 {
		return one(n), one(n)
	}
	if x.Cmp(new(big.Rat).SetInt64(int64(n))) >= 0 { // e^-x < 2⁻ⁿ
		return new(big.Int), big.NewInt(1)
	}
	p := n + 40
	k := uint(0)
	if excess := x.Num().BitLen() - x.Denom().BitLen() + 9; excess > 0 {
		k = uint(excess)
	}
	r := new(big.Int).Div(new(big.Int).Lsh(x.Num(), p), new(big.Int).Lsh(x.Denom(), k))

	sum, term := one(p), one(p)
	terms := int64(0)
	for i := int64(1); term.Sign() > 0; i++ {
		term.Mul(term, r)
		term.Rsh(term, p)
		term.Quo(term, big.NewInt(i))
		sum.Add(sum, term)
		terms = i
	}
	square := one(2 * p)
	hi = ceilQuo(square, sum)
	lo = floorQuo(square, sum.Add(sum, big.NewInt(4*terms+8)))
	for range k {
		lo.Rsh(lo.Mul(lo, lo), p)
		hi.Add(hi.Rsh(hi.Mul(hi, hi), p), big.NewInt(1))
	}
	lo.Rsh(lo, 40)
	hi.Add(hi.Rsh(hi, 40), big.NewInt(1))
	if top := one(n); hi.Cmp(top) > 0 {
		hi = top
	}
	return lo, hi
}
