// Package ranges computes with closed ranges of exact numbers. It does not know SQL.
package ranges

import (
	"math"
	"math/big"
)

// Span is a closed range that holds every value but NULL. An end that is nil is not known: above, that includes NaN and infinity, which
// PostgreSQL sorts above every number; below, -infinity.
type Span struct{ Lo, Hi *big.Rat }

// The ranges of PostgreSQL's integers.
var (
	Int2 = Of(math.MinInt16, math.MaxInt16)
	Int4 = Of(math.MinInt32, math.MaxInt32)
	Int8 = Of(math.MinInt64, math.MaxInt64)
)

// Zero and One are not to be changed.
var Zero, One = new(big.Rat), big.NewRat(1, 1)

// Of, Between and Point are the ranges with given ends.
func Of(lo, hi int64) Span         { return Span{big.NewRat(lo, 1), big.NewRat(hi, 1)} }
func Between(lo, hi *big.Rat) Span { return Span{lo, hi} }
func Point(r *big.Rat) Span        { return Span{r, r} }

func (s Span) Finite() bool { return s.Lo != nil && s.Hi != nil }

// Inside reports whether all of s lies in t, which is finite.
func (s Span) Inside(t Span) bool {
	return s.Finite() && s.Lo.Cmp(t.Lo) >= 0 && s.Hi.Cmp(t.Hi) <= 0
}

func (s Span) Has(r *big.Rat) bool {
	return (s.Lo == nil || s.Lo.Cmp(r) <= 0) && (s.Hi == nil || s.Hi.Cmp(r) >= 0)
}

// Hull is the smallest range that holds both.
func (s Span) Hull(t Span) Span { return Span{Lesser(s.Lo, t.Lo), Greater(s.Hi, t.Hi)} }

// Meet is what lies in both.
func (s Span) Meet(t Span) Span { return Span{Highest(s.Lo, t.Lo), Lowest(s.Hi, t.Hi)} }

// Lesser and Greater take an unknown end for the farthest, Lowest and Highest for the nearest.
func Lesser(a, b *big.Rat) *big.Rat {
	if a == nil || b != nil && a.Cmp(b) < 0 {
		return a
	}
	return b
}

func Greater(a, b *big.Rat) *big.Rat {
	if a == nil || b != nil && a.Cmp(b) > 0 {
		return a
	}
	return b
}

func Lowest(a, b *big.Rat) *big.Rat {
	if a == nil || b != nil && b.Cmp(a) < 0 {
		return b
	}
	return a
}

func Highest(a, b *big.Rat) *big.Rat {
	if a == nil || b != nil && b.Cmp(a) > 0 {
		return b
	}
	return a
}

func (s Span) Plus(t Span) Span {
	var r Span
	if s.Lo != nil && t.Lo != nil {
		r.Lo = new(big.Rat).Add(s.Lo, t.Lo)
	}
	if s.Hi != nil && t.Hi != nil {
		r.Hi = new(big.Rat).Add(s.Hi, t.Hi)
	}
	return r
}

func (s Span) Negated() Span {
	var r Span
	if s.Hi != nil {
		r.Lo = new(big.Rat).Neg(s.Hi)
	}
	if s.Lo != nil {
		r.Hi = new(big.Rat).Neg(s.Lo)
	}
	return r
}

func (s Span) Minus(t Span) Span { return s.Plus(t.Negated()) }

// Times is unknown unless both are finite.
func (s Span) Times(t Span) Span {
	if !s.Finite() || !t.Finite() {
		return Span{}
	}
	var r Span
	for _, a := range []*big.Rat{s.Lo, s.Hi} {
		for _, b := range []*big.Rat{t.Lo, t.Hi} {
			p := new(big.Rat).Mul(a, b)
			if r.Lo == nil || p.Cmp(r.Lo) < 0 {
				r.Lo = p
			}
			if r.Hi == nil || p.Cmp(r.Hi) > 0 {
				r.Hi = p
			}
		}
	}
	return r
}

// Over is s / t, without the divisor 0: others are at least least away from it, where that is not nil.
func (s Span) Over(t Span, least *big.Rat) Span {
	if !s.Finite() {
		return Span{}
	}
	if t.Finite() && t.Lo.Sign()*t.Hi.Sign() > 0 {
		return s.Times(Span{new(big.Rat).Inv(t.Hi), new(big.Rat).Inv(t.Lo)})
	}
	if least == nil {
		return Span{}
	}
	if t.Finite() && t.Lo.Sign() >= 0 {
		if t.Hi.Cmp(least) < 0 {
			return Point(new(big.Rat)) // there is no divisor
		}
		return s.Times(Span{new(big.Rat).Inv(t.Hi), new(big.Rat).Inv(least)})
	}
	most := new(big.Rat).Quo(s.Most(), least)
	return Span{new(big.Rat).Neg(most), most}
}

// Modulo is the remainder of s by t, without the divisor 0: it has the dividend's sign, and is smaller than the divisor, of whole numbers
// by 1.
func (s Span) Modulo(t Span, whole bool) Span {
	if !s.Finite() || !t.Finite() {
		return Span{}
	}
	most := t.Most()
	if whole {
		most = new(big.Rat).Sub(most, big.NewRat(1, 1))
	}
	if m := s.Most(); m.Cmp(most) < 0 {
		most = m
	}
	r := Span{new(big.Rat).Neg(most), most}
	if s.Lo.Sign() >= 0 {
		r.Lo = new(big.Rat)
	}
	if s.Hi.Sign() <= 0 {
		r.Hi = new(big.Rat)
	}
	return r
}

// Most is the largest absolute value; nil where it is not known.
func (s Span) Most() *big.Rat {
	if !s.Finite() {
		return nil
	}
	a, b := new(big.Rat).Abs(s.Lo), new(big.Rat).Abs(s.Hi)
	if a.Cmp(b) > 0 {
		return a
	}
	return b
}

// WithZero holds 0 as well.
func (s Span) WithZero() Span { return s.Hull(Point(new(big.Rat))) }

// Widened moves each end outwards by a part of its size: what is computed with that relative error at most lies in it.
func (s Span) Widened(part *big.Rat) Span {
	if !s.Finite() {
		return Span{}
	}
	by := func(end *big.Rat) *big.Rat { return new(big.Rat).Mul(new(big.Rat).Abs(end), part) }
	return Span{new(big.Rat).Sub(s.Lo, by(s.Lo)), new(big.Rat).Add(s.Hi, by(s.Hi))}
}

// Mapped is the range of a function that never falls.
func (s Span) Mapped(rising func(*big.Rat) *big.Rat) Span {
	var r Span
	if s.Lo != nil {
		r.Lo = rising(s.Lo)
	}
	if s.Hi != nil {
		r.Hi = rising(s.Hi)
	}
	return r
}

// Nearest rounds to a multiple of 10^-digits, halves away from 0 as numeric does; floats round halves to even, which lies within.
func Nearest(digits int) func(*big.Rat) *big.Rat {
	return func(r *big.Rat) *big.Rat {
		scale := Ten(digits)
		x := new(big.Rat).Mul(r, scale)
		half := big.NewRat(1, 2)
		if x.Sign() < 0 {
			half.Neg(half)
		}
		return x.Quo(new(big.Rat).SetInt(Truncated(x.Add(x, half))), scale)
	}
}

// Truncated drops what is after the Point.
func Truncated(r *big.Rat) *big.Int { return new(big.Int).Quo(r.Num(), r.Denom()) }

// Whole, Floored and Ceiled are the next whole number towards 0, downwards and upwards.
func Whole(r *big.Rat) *big.Rat { return new(big.Rat).SetInt(Truncated(r)) }

func Floored(r *big.Rat) *big.Rat {
	return new(big.Rat).SetInt(new(big.Int).Div(r.Num(), r.Denom())) // Div rounds down, as the denominator is positive
}

func Ceiled(r *big.Rat) *big.Rat {
	x := Floored(new(big.Rat).Neg(r))
	return x.Neg(x)
}

// Ten is 10^digits.
func Ten(digits int) *big.Rat {
	p := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(digits, -digits))), nil)
	if digits < 0 {
		return new(big.Rat).SetFrac(big.NewInt(1), p)
	}
	return new(big.Rat).SetInt(p)
}

// Two is 2^Bits.
func Two(Bits uint) *big.Rat { return new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), Bits)) }

// Bits is the number of binary digits of a positive number's whole part: at least log2, at most 1 above.
func Bits(r *big.Rat) int { return r.Num().BitLen() - r.Denom().BitLen() + 1 }

// Norm is L1 and L2² of moves of at most each in one group, and total in all.
func Norm(each, total *big.Int) (l1, l2 *big.Int) {
	if each.Sign() == 0 {
		return new(big.Int), new(big.Int)
	}
	full, rest := new(big.Int).QuoRem(total, each, new(big.Int))
	l2 = full.Mul(full, each).Mul(full, each)
	return new(big.Int).Set(total), l2.Add(l2, rest.Mul(rest, rest))
}
