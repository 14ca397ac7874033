package sqlrewrite

import (
	"math"
	"math/big"

	"noisegate/catalog"
)

// extent is what is proven of every value of a computed expression that is not NULL. docs/sql.md proves the rules.
type extent struct {
	// lo and hi are in the unit of the type: numbers as they are, dates in days and times in microseconds since 1970-01-01 (UTC),
	// intervals in microseconds.
	lo, hi *big.Rat
	// An end is open where it rests on what a type can hold, not on the policy or the query: good enough to exclude an overflow, but
	// too far away to bound what one row adds to a sum.
	openLo, openHi bool
	scale          int    // numeric: no value has more digits after the point
	grain          int    // floats: every value is a multiple of 2^-grain, so that none but zero is smaller
	parts          *parts // intervals: the ranges of their parts
}

// The limits of proofs. Within them no operation of PostgreSQL overflows or underflows, and none takes long.
const (
	maxBits  = 996  // before the point: 300 decimal digits, below float8's 308
	maxScale = 300  // decimal digits after the point
	maxGrain = 1000 // below float8's 1074
)

func number(v int64) *big.Rat { return new(big.Rat).SetInt64(v) }

func between(lo, hi int64) *extent { return &extent{lo: number(lo), hi: number(hi)} }

func exactly(v *big.Rat) *extent { return &extent{lo: v, hi: v} }

// bounded reports whether both ends bound what a row can add to a sum.
func (s *extent) bounded() bool { return !s.openLo && !s.openHi }

// holds reports whether v may be a value.
func (s *extent) holds(v *big.Rat) bool { return s.lo.Cmp(v) <= 0 && v.Cmp(s.hi) <= 0 }

// reach is the largest magnitude of a value.
func (s *extent) reach() *big.Rat {
	lo, hi := new(big.Rat).Abs(s.lo), new(big.Rat).Abs(s.hi)
	if lo.Cmp(hi) > 0 {
		return lo
	}
	return hi
}

// fits reports whether every whole value is one of the integer type t.
func (s *extent) fits(t catalog.Type) bool {
	lowest, highest := integerRange(t)
	return lowest == nil || lowest.Cmp(s.lo) <= 0 && s.hi.Cmp(highest) <= 0
}

// carrier is the type in which PostgreSQL computes a value whose type is t: for integers the smallest, from t on, that holds all of them.
func (s *extent) carrier(t catalog.Type) catalog.Type {
	switch {
	case t == catalog.Float4:
		return catalog.Float8
	case !t.IsInteger() || s.fits(t):
		return t
	case s.fits(catalog.Int4) && t == catalog.Int2:
		return catalog.Int4
	case s.fits(catalog.Int8):
		return catalog.Int8
	default:
		return catalog.Numeric
	}
}

// hull holds all values of both.
func (s *extent) hull(o *extent) *extent {
	h := &extent{lo: s.lo, hi: s.hi, openLo: s.openLo || o.openLo, openHi: s.openHi || o.openHi,
		scale: max(s.scale, o.scale), grain: max(s.grain, o.grain), parts: s.parts.with(o.parts, (*extent).hull)}
	if o.lo.Cmp(h.lo) < 0 {
		h.lo = o.lo
	}
	if o.hi.Cmp(h.hi) > 0 {
		h.hi = o.hi
	}
	return h
}

// meet cuts a extent to [lo, hi]: values outside are clamped. An end that was open stays so.
func (s *extent) meet(lo, hi *big.Rat) *extent {
	m := *s
	clampTo := func(v *big.Rat) *big.Rat {
		switch {
		case v.Cmp(lo) < 0:
			return lo
		case v.Cmp(hi) > 0:
			return hi
		default:
			return v
		}
	}
	m.lo, m.hi = clampTo(s.lo), clampTo(s.hi)
	return &m
}

func (s *extent) negated() *extent {
	n := &extent{lo: new(big.Rat).Neg(s.hi), hi: new(big.Rat).Neg(s.lo), openLo: s.openHi, openHi: s.openLo, scale: s.scale, grain: s.grain}
	if s.parts != nil {
		n.parts = s.parts.each((*extent).negated)
	}
	return n
}

func (s *extent) plus(o *extent) *extent {
	return &extent{lo: new(big.Rat).Add(s.lo, o.lo), hi: new(big.Rat).Add(s.hi, o.hi), openLo: s.openLo || o.openLo, openHi: s.openHi || o.openHi,
		scale: max(s.scale, o.scale), grain: max(s.grain, o.grain), parts: s.parts.with(o.parts, (*extent).plus)}
}

// ofCorners is the hull of f over the four pairs of ends: the range of a function that is monotone in each argument.
func ofCorners(a, b *extent, f func(x, y *big.Rat) *big.Rat) *extent {
	var out *extent
	for _, x := range []*big.Rat{a.lo, a.hi} {
		for _, y := range []*big.Rat{b.lo, b.hi} {
			if p := exactly(f(x, y)); out == nil {
				out = p
			} else {
				out = out.hull(p)
			}
		}
	}
	return out
}

func (s *extent) times(o *extent) *extent {
	p := ofCorners(s, o, func(x, y *big.Rat) *big.Rat { return new(big.Rat).Mul(x, y) })
	open := !s.bounded() || !o.bounded()
	p.openLo, p.openHi = open, open
	p.scale, p.grain = s.scale+o.scale, s.grain+o.grain
	return p
}

// over is the quotient for divisors of at least least, a positive number, in magnitude; zero divisors give NULL. open says that least is
// only what a type can hold.
func (s *extent) over(o *extent, least *big.Rat, open bool) *extent {
	nearest := new(big.Rat).Inv(least)
	inverse := &extent{lo: new(big.Rat).Neg(nearest), hi: nearest, openLo: open, openHi: open}
	switch { // with divisors of one sign; those without an upper limit give quotients down to zero
	case o.lo.Sign() >= 0:
		inverse.lo, inverse.openLo = new(big.Rat), false
	case o.hi.Sign() <= 0:
		inverse.hi, inverse.openHi = new(big.Rat), false
	}
	if o.lo.Sign() > 0 && !o.openHi {
		inverse.lo = new(big.Rat).Inv(o.hi)
	}
	if o.hi.Sign() < 0 && !o.openLo {
		inverse.hi = new(big.Rat).Inv(o.lo)
	}
	return s.times(inverse)
}

// least is the smallest magnitude of a value that is not zero, given the smallest that the type allows; open if that is all there is.
func (s *extent) least(smallest *big.Rat) (v *big.Rat, open bool) {
	switch {
	case s.lo.Sign() > 0 && !s.openLo:
		return s.lo, false
	case s.hi.Sign() < 0 && !s.openHi:
		return new(big.Rat).Neg(s.hi), false
	default:
		return smallest, true
	}
}

// rounded maps both ends by a monotone function to whole numbers.
func (s *extent) rounded(lo, hi func(*big.Rat) *big.Int) *extent {
	r := *s
	r.lo, r.hi = new(big.Rat).SetInt(lo(s.lo)), new(big.Rat).SetInt(hi(s.hi))
	r.scale, r.grain = 0, 0
	return &r
}

// widened moves both ends outward by a part of 10^-digits of themselves, for functions that are not rounded correctly.
func (s *extent) widened(digits int) *extent {
	w := *s
	slack := new(big.Rat).SetFrac(big.NewInt(1), power10(digits))
	w.lo = new(big.Rat).Sub(s.lo, new(big.Rat).Mul(slack, new(big.Rat).Abs(s.lo)))
	w.hi = new(big.Rat).Add(s.hi, new(big.Rat).Mul(slack, new(big.Rat).Abs(s.hi)))
	return &w
}

// inFloats moves both ends to the float8 that they round to: rounding is monotone, so that rounded results lie between rounded ends.
func (s *extent) inFloats() *extent {
	f := *s
	f.lo, f.hi = asFloat(s.lo), asFloat(s.hi)
	return &f
}

func asFloat(v *big.Rat) *big.Rat {
	f, _ := v.Float64()
	if math.IsInf(f, 0) {
		return v // beyond every limit; the caller refuses it
	}
	return new(big.Rat).SetFloat64(f)
}

// tame reports whether values are small and round enough for PostgreSQL's arithmetic in type t.
func (s *extent) tame(t catalog.Type) bool {
	if s.parts != nil {
		return s.parts.tame()
	}
	top := s.reach()
	return top.Num().BitLen()-top.Denom().BitLen() < maxBits && (t != catalog.Numeric || s.scale <= maxScale) && (!isFloat(t) || s.grain <= maxGrain)
}

// towardZero drops the digits after the point.
func towardZero(v *big.Rat) *big.Int { return new(big.Int).Quo(v.Num(), v.Denom()) }

// grainOf is a grain for floats of at least least, a positive number, in magnitude: their last bit is 52 below their first.
func grainOf(least *big.Rat) int {
	bits := least.Denom().BitLen() - least.Num().BitLen() + 1 // least >= 2^-bits
	return max(0, bits+52)
}
