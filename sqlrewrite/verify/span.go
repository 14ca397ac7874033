package verify

import (
	"math"
	"math/big"
)

// span is a closed range that holds every value but NULL. An end that is nil is not known: above, that includes NaN and infinity, which
// PostgreSQL sorts above every number; below, -infinity.
type span struct{ lo, hi *big.Rat }

var (
	zero    = new(big.Rat)
	one     = big.NewRat(1, 1)
	whole16 = spanOf(math.MinInt16, math.MaxInt16)
	whole32 = spanOf(math.MinInt32, math.MaxInt32)
	whole64 = spanOf(math.MinInt64, math.MaxInt64)
)

func spanOf(lo, hi int64) span { return span{big.NewRat(lo, 1), big.NewRat(hi, 1)} }
func point(r *big.Rat) span    { return span{r, r} }

func (s span) finite() bool { return s.lo != nil && s.hi != nil }

// inside reports whether all of s lies in t, which is finite.
func (s span) inside(t span) bool {
	return s.finite() && s.lo.Cmp(t.lo) >= 0 && s.hi.Cmp(t.hi) <= 0
}

func (s span) has(r *big.Rat) bool {
	return (s.lo == nil || s.lo.Cmp(r) <= 0) && (s.hi == nil || s.hi.Cmp(r) >= 0)
}

// hull is the smallest range that holds both.
func (s span) hull(t span) span { return span{lesser(s.lo, t.lo), greater(s.hi, t.hi)} }

// meet is what lies in both.
func (s span) meet(t span) span { return span{highest(s.lo, t.lo), lowest(s.hi, t.hi)} }

// lesser and greater take an unknown end for the farthest, lowest and highest for the nearest.
func lesser(a, b *big.Rat) *big.Rat {
	if a == nil || b != nil && a.Cmp(b) < 0 {
		return a
	}
	return b
}

func greater(a, b *big.Rat) *big.Rat {
	if a == nil || b != nil && a.Cmp(b) > 0 {
		return a
	}
	return b
}

func lowest(a, b *big.Rat) *big.Rat {
	if a == nil || b != nil && b.Cmp(a) < 0 {
		return b
	}
	return a
}

func highest(a, b *big.Rat) *big.Rat {
	if a == nil || b != nil && b.Cmp(a) > 0 {
		return b
	}
	return a
}

func (s span) plus(t span) span {
	var r span
	if s.lo != nil && t.lo != nil {
		r.lo = new(big.Rat).Add(s.lo, t.lo)
	}
	if s.hi != nil && t.hi != nil {
		r.hi = new(big.Rat).Add(s.hi, t.hi)
	}
	return r
}

func (s span) negated() span {
	var r span
	if s.hi != nil {
		r.lo = new(big.Rat).Neg(s.hi)
	}
	if s.lo != nil {
		r.hi = new(big.Rat).Neg(s.lo)
	}
	return r
}

func (s span) minus(t span) span { return s.plus(t.negated()) }

// times is unknown unless both are finite.
func (s span) times(t span) span {
	if !s.finite() || !t.finite() {
		return span{}
	}
	var r span
	for _, a := range []*big.Rat{s.lo, s.hi} {
		for _, b := range []*big.Rat{t.lo, t.hi} {
			p := new(big.Rat).Mul(a, b)
			if r.lo == nil || p.Cmp(r.lo) < 0 {
				r.lo = p
			}
			if r.hi == nil || p.Cmp(r.hi) > 0 {
				r.hi = p
			}
		}
	}
	return r
}

// most is the largest absolute value; nil where it is not known.
func (s span) most() *big.Rat {
	if !s.finite() {
		return nil
	}
	a, b := new(big.Rat).Abs(s.lo), new(big.Rat).Abs(s.hi)
	if a.Cmp(b) > 0 {
		return a
	}
	return b
}

// withZero holds 0 as well.
func (s span) withZero() span { return s.hull(point(zero)) }

// widened moves each end outwards by a part of its size: what is computed with that relative error at most lies in it.
func (s span) widened(part *big.Rat) span {
	if !s.finite() {
		return span{}
	}
	by := func(end *big.Rat) *big.Rat { return new(big.Rat).Mul(new(big.Rat).Abs(end), part) }
	return span{new(big.Rat).Sub(s.lo, by(s.lo)), new(big.Rat).Add(s.hi, by(s.hi))}
}

// mapped is the range of a function that never falls.
func (s span) mapped(rising func(*big.Rat) *big.Rat) span {
	var r span
	if s.lo != nil {
		r.lo = rising(s.lo)
	}
	if s.hi != nil {
		r.hi = rising(s.hi)
	}
	return r
}

// nearest rounds to a multiple of 10^-digits, halves away from 0 as numeric does; floats round halves to even, which lies within.
func nearest(digits int) func(*big.Rat) *big.Rat {
	return func(r *big.Rat) *big.Rat {
		scale := ten(digits)
		x := new(big.Rat).Mul(r, scale)
		half := big.NewRat(1, 2)
		if x.Sign() < 0 {
			half.Neg(half)
		}
		return x.Quo(new(big.Rat).SetInt(truncated(x.Add(x, half))), scale)
	}
}

// truncated drops what is after the point.
func truncated(r *big.Rat) *big.Int { return new(big.Int).Quo(r.Num(), r.Denom()) }

func floored(r *big.Rat) *big.Rat {
	return new(big.Rat).SetInt(new(big.Int).Div(r.Num(), r.Denom())) // Div rounds down, as the denominator is positive
}

func ceiled(r *big.Rat) *big.Rat {
	x := floored(new(big.Rat).Neg(r))
	return x.Neg(x)
}

// ten is 10^digits.
func ten(digits int) *big.Rat {
	p := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(digits, -digits))), nil)
	if digits < 0 {
		return new(big.Rat).SetFrac(big.NewInt(1), p)
	}
	return new(big.Rat).SetInt(p)
}

// two is 2^bits.
func two(bits uint) *big.Rat { return new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), bits)) }

// floated is the float next to a number, within the range of finite floats.
func floated(r *big.Rat) *big.Rat {
	f, _ := r.Float64()
	if math.IsInf(f, 0) {
		refuse("a float beyond all finite ones")
	}
	return new(big.Rat).SetFloat64(f)
}

// bits is the number of binary digits of a positive number's whole part: at least log2, at most 1 above.
func bits(r *big.Rat) int { return r.Num().BitLen() - r.Denom().BitLen() + 1 }
