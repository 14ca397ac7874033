package scalar

import (
	"math"
	"math/big"

	"noisegate.example/catalog"
)

// Range is what is proven of every value of a computed expression that is not NULL. docs/sql/error-free.md proves the rules.
type Range struct {
	// Lo and hi are in the unit of the type: numbers as they are, dates in days and times in microseconds since 1970-01-01 (UTC),
	// intervals in microseconds.
	Lo, Hi *big.Rat
	// An end is open where it rests on what a type can hold, not on the policy or the query: good enough to exclude an overflow, but
	// too far away to bound what one row adds to a sum.
	OpenLo, OpenHi bool
	Scale          int    // numeric: no value has more digits after the point
	Grain          int    // floats: every value is a multiple of 2^-grain, so that none but zero is smaller
	Parts          *Parts // intervals: the ranges of their parts
}

// The limits of proofs. Within them no operation of PostgreSQL overflows or underflows, and none takes long.
const (
	maxBits  = 996  // before the point: 300 decimal digits, below float8's 308
	maxScale = 300  // decimal digits after the point
	maxGrain = 1000 // below float8's 1074
)

func Number(v int64) *big.Rat { return new(big.Rat).SetInt64(v) }

func Between(lo, hi int64) *Range { return &Range{Lo: Number(lo), Hi: Number(hi)} }

func Exactly(v *big.Rat) *Range { return &Range{Lo: v, Hi: v} }

// Bounded reports whether both ends bound what a row can add to a sum.
func (s *Range) Bounded() bool { return !s.OpenLo && !s.OpenHi }

// Holds reports whether v may be a value.
func (s *Range) Holds(v *big.Rat) bool { return s.Lo.Cmp(v) <= 0 && v.Cmp(s.Hi) <= 0 }

// Reach is the largest magnitude of a value.
func (s *Range) Reach() *big.Rat {
	lo, hi := new(big.Rat).Abs(s.Lo), new(big.Rat).Abs(s.Hi)
	if lo.Cmp(hi) > 0 {
		return lo
	}
	return hi
}

// Fits reports whether every whole value is one of the integer type t.
func (s *Range) Fits(t catalog.Type) bool {
	lowest, highest := IntegerRange(t)
	return lowest == nil || lowest.Cmp(s.Lo) <= 0 && s.Hi.Cmp(highest) <= 0
}

// Carrier is the type in which PostgreSQL computes a value whose type is t: for integers the smallest, from t on, that holds all of them.
func (s *Range) Carrier(t catalog.Type) catalog.Type {
	switch {
	case t == catalog.Float4:
		return catalog.Float8
	case !t.IsInteger() || s.Fits(t):
		return t
	case s.Fits(catalog.Int4) && t == catalog.Int2:
		return catalog.Int4
	case s.Fits(catalog.Int8):
		return catalog.Int8
	default:
		return catalog.Numeric
	}
}

// Hull holds all values of both.
func (s *Range) Hull(o *Range) *Range {
	h := &Range{Lo: s.Lo, Hi: s.Hi, OpenLo: s.OpenLo || o.OpenLo, OpenHi: s.OpenHi || o.OpenHi,
		Scale: max(s.Scale, o.Scale), Grain: max(s.Grain, o.Grain), Parts: s.Parts.With(o.Parts, (*Range).Hull)}
	if o.Lo.Cmp(h.Lo) < 0 {
		h.Lo = o.Lo
	}
	if o.Hi.Cmp(h.Hi) > 0 {
		h.Hi = o.Hi
	}
	return h
}

// Meet cuts a value range to [lo, hi]: values outside are clamped. An end that was open stays so.
func (s *Range) Meet(lo, hi *big.Rat) *Range {
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
	m.Lo, m.Hi = clampTo(s.Lo), clampTo(s.Hi)
	return &m
}

func (s *Range) Negated() *Range {
	n := &Range{Lo: new(big.Rat).Neg(s.Hi), Hi: new(big.Rat).Neg(s.Lo), OpenLo: s.OpenHi, OpenHi: s.OpenLo, Scale: s.Scale, Grain: s.Grain}
	if s.Parts != nil {
		n.Parts = s.Parts.Each((*Range).Negated)
	}
	return n
}

func (s *Range) Plus(o *Range) *Range {
	return &Range{Lo: new(big.Rat).Add(s.Lo, o.Lo), Hi: new(big.Rat).Add(s.Hi, o.Hi), OpenLo: s.OpenLo || o.OpenLo, OpenHi: s.OpenHi ||
		o.OpenHi,
		Scale: max(s.Scale, o.Scale), Grain: max(s.Grain, o.Grain), Parts: s.Parts.With(o.Parts, (*Range).Plus)}
}

// OfCorners is the hull of f over the four pairs of ends: the range of a function that is monotone in each argument.
func OfCorners(a, b *Range, f func(x, y *big.Rat) *big.Rat) *Range {
	var out *Range
	for _, x := range []*big.Rat{a.Lo, a.Hi} {
		for _, y := range []*big.Rat{b.Lo, b.Hi} {
			if p := Exactly(f(x, y)); out == nil {
				out = p
			} else {
				out = out.Hull(p)
			}
		}
	}
	return out
}

func (s *Range) Times(o *Range) *Range {
	p := OfCorners(s, o, func(x, y *big.Rat) *big.Rat { return new(big.Rat).Mul(x, y) })
	open := !s.Bounded() || !o.Bounded()
	p.OpenLo, p.OpenHi = open, open
	p.Scale, p.Grain = s.Scale+o.Scale, s.Grain+o.Grain
	return p
}

// Over is the quotient for divisors of at least least, a positive number, in magnitude; zero divisors give NULL. open says that least is
// only what a type can hold.
func (s *Range) Over(o *Range, least *big.Rat, open bool) *Range {
	nearest := new(big.Rat).Inv(least)
	inverse := &Range{Lo: new(big.Rat).Neg(nearest), Hi: nearest, OpenLo: open, OpenHi: open}
	switch { // with divisors of one sign; those without an upper limit give quotients down to zero
	case o.Lo.Sign() >= 0:
		inverse.Lo, inverse.OpenLo = new(big.Rat), false
	case o.Hi.Sign() <= 0:
		inverse.Hi, inverse.OpenHi = new(big.Rat), false
	}
	if o.Lo.Sign() > 0 && !o.OpenHi {
		inverse.Lo = new(big.Rat).Inv(o.Hi)
	}
	if o.Hi.Sign() < 0 && !o.OpenLo {
		inverse.Hi = new(big.Rat).Inv(o.Lo)
	}
	return s.Times(inverse)
}

// Least is the smallest magnitude of a value that is not zero, given the smallest that the type allows; open if that is all there is.
func (s *Range) Least(smallest *big.Rat) (v *big.Rat, open bool) {
	switch {
	case s.Lo.Sign() > 0 && !s.OpenLo:
		return s.Lo, false
	case s.Hi.Sign() < 0 && !s.OpenHi:
		return new(big.Rat).Neg(s.Hi), false
	default:
		return smallest, true
	}
}

// Rounded maps both ends by a monotone function to whole numbers.
func (s *Range) Rounded(lo, hi func(*big.Rat) *big.Int) *Range {
	r := *s
	r.Lo, r.Hi = new(big.Rat).SetInt(lo(s.Lo)), new(big.Rat).SetInt(hi(s.Hi))
	r.Scale, r.Grain = 0, 0
	return &r
}

// Widened moves both ends outward by a part of 10^-digits of themselves, for functions that are not rounded correctly.
func (s *Range) Widened(digits int) *Range {
	w := *s
	slack := new(big.Rat).SetFrac(big.NewInt(1), Power10(digits))
	w.Lo = new(big.Rat).Sub(s.Lo, new(big.Rat).Mul(slack, new(big.Rat).Abs(s.Lo)))
	w.Hi = new(big.Rat).Add(s.Hi, new(big.Rat).Mul(slack, new(big.Rat).Abs(s.Hi)))
	return &w
}

// InFloats moves both ends to the float8 that they round to: rounding is monotone, so that rounded results lie between rounded ends.
func (s *Range) InFloats() *Range {
	f := *s
	f.Lo, f.Hi = AsFloat(s.Lo), AsFloat(s.Hi)
	return &f
}

func AsFloat(v *big.Rat) *big.Rat {
	f, _ := v.Float64()
	if math.IsInf(f, 0) {
		return v // beyond every limit; the caller refuses it
	}
	return new(big.Rat).SetFloat64(f)
}

// Tame reports whether values are small and round enough for PostgreSQL's arithmetic in type t.
func (s *Range) Tame(t catalog.Type) bool {
	if s.Parts != nil {
		return s.Parts.Tame()
	}
	top := s.Reach()
	return top.Num().BitLen()-top.Denom().BitLen() < maxBits && (t != catalog.Numeric || s.Scale <= maxScale) &&
		(!IsFloat(t) || s.Grain <= maxGrain)
}

// TowardZero drops the digits after the point.
func TowardZero(v *big.Rat) *big.Int { return new(big.Int).Quo(v.Num(), v.Denom()) }

// GrainOf is a grain for floats of at least least, a positive number, in magnitude: their last bit is 52 below their first.
func GrainOf(least *big.Rat) int {
	bits := least.Denom().BitLen() - least.Num().BitLen() + 1 // least >= 2^-bits
	return max(0, bits+52)
}

// Parts are the ranges of an interval's parts.
type Parts struct{ Months, Days, Micros Range }

// The limits of an interval's parts: far inside those of PostgreSQL, and far beyond those of its times.
func PartLimits() *Parts {
	return &Parts{Months: *Between(-1<<22, 1<<22), Days: *Between(-1<<28, 1<<28), Micros: *Between(-1<<62, 1<<62)}
}

func (p *Parts) Each(f func(s *Range) *Range) *Parts {
	return &Parts{Months: *f(&p.Months), Days: *f(&p.Days), Micros: *f(&p.Micros)}
}

func (p *Parts) With(o *Parts, f func(s, o *Range) *Range) *Parts {
	if p == nil || o == nil {
		return nil
	}
	return &Parts{Months: *f(&p.Months, &o.Months), Days: *f(&p.Days, &o.Days), Micros: *f(&p.Micros, &o.Micros)}
}

// Tame reports whether every part is within its limits.
func (p *Parts) Tame() bool {
	ok := true
	p.With(PartLimits(), func(s, limit *Range) *Range {
		ok = ok && limit.Holds(s.Lo) && limit.Holds(s.Hi)
		return s
	})
	return ok
}

// Each maps both ends.
func (s *Range) Each(f func(*big.Rat) *big.Int) *Range {
	return &Range{Lo: new(big.Rat).SetInt(f(s.Lo)), Hi: new(big.Rat).SetInt(f(s.Hi))}
}

// ToGrid is the value range after rounding to digits after the point.
func (s *Range) ToGrid(digits int) *Range {
	factor := new(big.Rat).SetInt(Power10(max(digits, 0)))
	if digits < 0 {
		factor = new(big.Rat).SetFrac(big.NewInt(1), Power10(-digits))
	}
	r := *s
	r.Lo = new(big.Rat).SetInt(Floor(new(big.Rat).Mul(s.Lo, factor)))
	r.Hi = new(big.Rat).SetInt(Ceil(new(big.Rat).Mul(s.Hi, factor)))
	r.Lo.Quo(r.Lo, factor)
	r.Hi.Quo(r.Hi, factor)
	r.Scale, r.Grain = max(digits, 0), 0
	return &r
}
