package value

import (
	"math"
	"math/big"

	"noisegate.example/sqlrewrite/verify/internal/ranges"
)

// Functions that cannot raise an error (Lemma 5a), by name, argument types and argument ranges. All are immutable, or stable under the
// settings that a session pins (time zone UTC, extra_float_digits 1), strict, and never NULL on arguments that are not, unless a line
// says so. A function that is not here is refused, and so is an overload.
//
//  1. T_smaller(x, c) and T_larger(x, c), behind min and max: NaN and infinity count as larger than all numbers, so that x is in (-∞, c]
//     and [c, ∞]. They give c where both are equal: a clamp of identical values by constants has identical values, and a clamp of a float
//     by 0 never gives -0. *Example.* float8larger(float8smaller(x, 1), 0) lies in [0, 1], and is 1 where x is NaN.
//  2. round, trunc, floor, ceil are total on numerics and floats; div(x, y) needs a divisor that is not 0; abs must fit its type.
//     *Example.* round(x, 1) of [-1.25, 2] lies in [-1.3, 2], with one digit.
//  3. sqrt needs x >= 0; ln and log x > 0; exp overflows above 709 and underflows below -708; power is taken for whole exponents from 0
//     to 10. Results of floats must not overflow or underflow (grain). They are computed by the C library, with an error below 10^-12 of
//     the result, by which ranges are widened. *Example.* sqrt(x) of [0, 4] lies in [0, 2 + 2·10^-12].
//  4. width_bucket(x, a, b, n) raises an error for NaN, infinite or equal limits and n < 1, and its result is wrong where b - a or
//     n·(x - a) overflow (B1): a, b and n are constants, and 2·(b - a), n·(b - a), 2·(x - a) and n·(x - a) are far from that. *Example.*
//     width_bucket(x, 0, 10, 5) of x in [-100, 100] lies in [0, 6].
//  5. Hashes are total, and equal values have equal ones, but for texts, which are hashed byte by byte.

// clamping derives T_smaller or T_larger.
func clamping(k Kind, larger bool) function {
	return taking("..", func(d *Terms, name string, args ...*Value) *Value { return d.clamp(name, k, larger, args) }).
		priced(lengths(100, 1))
}

func (d *Terms) clamp(name string, k Kind, larger bool, args []*Value) *Value {
	if k.IsTime() && (args[0].Kind != k || args[1].Kind != k) {
		refuse("%s of another type", name)
	}
	if k == Float8 && args[0].Kind == Numeric {
		refuse("%s of a numeric", name)
	}
	a, b := d.Convert(args[0], k), d.Convert(args[1], k)
	v := d.Apply(k, name, args...)
	if larger {
		v.Within = ranges.Between(ranges.Highest(a.Within.Lo, b.Within.Lo), ranges.Greater(a.Within.Hi, b.Within.Hi))
	} else {
		v.Within = ranges.Between(ranges.Lesser(a.Within.Lo, b.Within.Lo), ranges.Lowest(a.Within.Hi, b.Within.Hi))
	}
	v.Split, v.above = clampedBy(larger, a, b) // Lemma 2b
	if k == Interval {                         // one of the two: which, their lengths say
		for i := range v.parts {
			v.parts[i] = a.parts[i].Hull(b.parts[i])
		}
		return v
	}
	v.Digits, v.Grain = unknownOr(a.Digits, b.Digits), unknownOr(a.Grain, b.Grain)
	if a.Grain < 0 && k.IsFloat() && v.Within.Finite() {
		v.Grain = grainBeyond(v.Within)
	}
	if a.Scale == b.Scale {
		v.Scale = a.Scale
	}
	v.Nonzero = !v.Within.Has(ranges.Zero) || a.Nonzero && b.Nonzero
	if !AlwaysSame(k) {
		c := b.Number()
		v.Same = c != nil && b.Same && (a.Same || k.IsFloat() && (c.Sign() == 0 || !v.Within.Has(ranges.Zero)))
	}
	return v
}

// grainBeyond gives the grain of floats in a range that does not hold 0; -1 for others.
func grainBeyond(s ranges.Span) int {
	if s.Has(ranges.Zero) {
		return -1
	}
	least := new(big.Rat).Abs(s.Lo)
	if s.Lo.Sign() < 0 {
		least.Abs(s.Hi)
	}
	return GrainOf(least)
}

// position derives array_position, which is NULL where the text is not found.
func (d *Terms) position(name string, args ...*Value) *Value {
	v := d.Made(Int4, name, false, args...)
	v.Within = ranges.Of(1, int64(max(args[0].size, 1)))
	return v
}

func (d *Terms) div(name string, args ...*Value) *Value {
	a, b := d.Convert(args[0], Numeric), d.Convert(args[1], Numeric)
	if !b.Nonzero && b.Within.Has(ranges.Zero) {
		refuse("div by what may be 0")
	}
	v := d.Apply(Numeric, name, args...)
	v.Within = quotient(a, b).Mapped(ranges.Whole)
	if !a.Within.Inside(huge) || !b.Within.Finite() {
		refuse("div of numerics without bounds")
	}
	v.Digits, v.Scale, v.Same = 0, 0, true
	return v
}

// scatter is an odd number without a pattern: the fraction of the root of 2.
const scatter = 0x6a09e667f3bcc909

// scattered derives int8xor of a whole number and scatter.
func (d *Terms) scattered(name string, args ...*Value) *Value {
	if n := args[1].Number(); n == nil || !n.IsInt() || n.Num().Int64() != scatter {
		refuse("int8xor with another number")
	}
	return d.Apply(Int8, name, args...)
}

// hash derives a hash function of a type: equal values have equal hashes, except that texts are hashed byte by byte.
func (d *Terms) hash(name string, args ...*Value) *Value {
	x := args[0]
	if x.Kind == Numeric || x.Kind == Float8 {
		x = Clear(x)
	}
	return d.Apply(Int8, name, x, args[1])
}

func (d *Terms) buckets(name string, args ...*Value) *Value {
	a, b, n := args[1].Number(), args[2].Number(), args[3].Number()
	limit := large
	if args[0].Kind == Numeric {
		limit = ranges.Between(new(big.Rat).Neg(ranges.Ten(2000)), ranges.Ten(2000))
	}
	if a == nil || b == nil || n == nil || n.Cmp(ranges.One) < 0 || n.Cmp(big.NewRat(1<<30, 1)) > 0 || a.Cmp(b) == 0 ||
		!args[0].Within.Hull(ranges.Point(b)).Minus(ranges.Point(a)).Times(ranges.Of(2, 2).Hull(ranges.Point(n))).Inside(limit) {
		refuse("width_bucket with limits or a value for which it fails")
	}
	v := d.Apply(Int4, name, args...)
	v.Within = ranges.Between(ranges.Zero, new(big.Rat).Add(n, ranges.One))
	return v
}

func (d *Terms) abs(name string, args ...*Value) *Value {
	x := args[0]
	v := d.Apply(x.Kind, name, x)
	d.Bounded(v, x)
	if most := x.Within.Most(); most == nil {
		v.Within = ranges.Span{Lo: ranges.Zero}
	} else if v.Within = (ranges.Between(ranges.Zero, most)); !x.Within.Has(ranges.Zero) {
		v.Within.Lo = ranges.Lesser(new(big.Rat).Abs(x.Within.Lo), new(big.Rat).Abs(x.Within.Hi))
	}
	if x.Kind.IsInteger() && !v.Within.Inside(fits(x.Kind)) {
		refuse("abs may leave its integer type")
	}
	v.Same = AlwaysSame(x.Kind) || x.Kind == Numeric && x.Scale >= 0 || x.Kind.IsFloat()
	return v
}

func (d *Terms) sign(name string, args ...*Value) *Value {
	v := d.Apply(args[0].Kind, name, args...)
	d.Bounded(v, args[0])
	v.Within, v.Nonzero = ranges.Of(-1, 1), false
	v.Digits, v.Grain, v.Scale, v.Same = 0, 0, 0, v.Kind == Numeric
	return v
}

// trimScale drops zeros at the end: NaN and infinities have one form as well.
func (d *Terms) trimScale(name string, args ...*Value) *Value {
	v := d.Apply(Numeric, name, args...)
	d.Bounded(v, args[0])
	v.Scale, v.Same, v.Anchors, v.Strict = -1, true, args[0].Anchors, args[0].Strict
	return v
}

// rounding derives a function that rounds to whole numbers, or numerics to some digits after the point.
func rounding(whole func(*big.Rat) *big.Rat) rule {
	return func(d *Terms, name string, args ...*Value) *Value {
		x, places := args[0], 0
		if len(args) == 2 {
			if places = int(args[1].Number().Num().Int64()); max(places, -places) > 900 {
				return nil
			}
		}
		v := d.Apply(x.Kind, name, args...)
		d.Bounded(v, x)
		v.Within = x.Within.Mapped(func(r *big.Rat) *big.Rat {
			rounded := whole(new(big.Rat).Mul(r, ranges.Ten(places)))
			return rounded.Quo(rounded, ranges.Ten(places))
		})
		v.Nonzero = !v.Within.Has(ranges.Zero)
		if x.Kind == Numeric {
			v.Digits, v.Scale, v.Same = max(places, 0), max(places, 0), v.Within.Finite()
			return v
		}
		v.Grain, v.Scale = 0, -1
		v.Same = v.Nonzero || v.Within.Finite() && v.Within.Lo.Sign() >= 0 && x.Within.Lo.Sign() >= 0 && x.Same // -0.3 rounds to -0
		return v
	}
}

// approx gives a range that was computed by floats.
func approx(lo, hi float64) ranges.Span {
	if math.IsNaN(lo) || math.IsNaN(hi) || math.IsInf(lo, 0) || math.IsInf(hi, 0) {
		refuse("a function of floats may leave them")
	}
	return ranges.Between(new(big.Rat).SetFloat64(lo), new(big.Rat).SetFloat64(hi)).Widened(ranges.Ten(-12))
}

// ends gives the ends of a float's range.
func ends(name string, x *Value) (lo, hi float64) {
	if !x.Within.Finite() {
		refuse("%s of a float without bounds", name)
	}
	lo, _ = x.Within.Lo.Float64()
	hi, _ = x.Within.Hi.Float64()
	return lo, hi
}

func (d *Terms) sqrt(name string, args ...*Value) *Value {
	x := args[0]
	lo, hi := ends(name, x)
	if lo < 0 || x.Grain < 0 {
		refuse("sqrt of what may be negative")
	}
	v := d.Apply(Float8, name, x)
	v.Within, v.Grain = approx(math.Sqrt(lo), math.Sqrt(hi)), x.Grain/2+55
	v.Within.Lo = ranges.Greater(v.Within.Lo, ranges.Zero)
	v.Nonzero = !v.Within.Has(ranges.Zero)
	v.Same = v.Nonzero || x.Same
	return v
}

func (d *Terms) exp(name string, args ...*Value) *Value {
	lo, hi := ends(name, args[0])
	if lo < -700 || hi > 690 {
		refuse("exp may overflow or underflow")
	}
	v := d.Apply(Float8, name, args...)
	v.Within = approx(math.Exp(lo), math.Exp(hi))
	v.Grain = grainBeyond(v.Within)
	v.Nonzero = !v.Within.Has(ranges.Zero)
	v.Same = v.Nonzero
	return v
}

// logarithm derives ln or log.
func (d *Terms) logarithm(name string, args ...*Value) *Value {
	x := args[0]
	lo, hi := ends(name, x)
	if lo < 0 || lo == 0 && !x.Nonzero || x.Grain < 0 {
		refuse("%s of what may not be positive", name)
	}
	least := -float64(x.Grain) * math.Ln2
	if lo > 0 {
		least = math.Log(lo)
	}
	most := max(least, math.Log(hi)) // hi may be 0, and x NULL
	v := d.Apply(Float8, name, x)
	v.Within, v.Grain = approx(least, most), 120 // |ln x| >= 2^-54 where x is not 1
	if name == "log" {
		v.Within = approx(least/math.Ln10, most/math.Ln10)
	}
	v.Nonzero = !v.Within.Has(ranges.Zero)
	v.Same = v.Nonzero
	return v
}

func (d *Terms) power(name string, args ...*Value) *Value {
	x, n := args[0], args[1].Number()
	if n == nil || !n.IsInt() || n.Sign() < 0 || n.Cmp(big.NewRat(10, 1)) > 0 || !x.Within.Finite() || x.Grain < 0 {
		refuse("power of a float without bounds, or to an exponent that is no whole number from 0 to 10")
	}
	v := d.Apply(Float8, name, args...)
	// What is not 0 is at least 2^-grain, and its power that power.
	v.Within, v.Grain = ranges.Point(ranges.One), int(n.Num().Int64())*x.Grain+55
	for range n.Num().Int64() {
		v.Within = v.Within.Times(x.Within)
	}
	if n.Num().Bit(0) == 0 {
		v.Within.Lo = ranges.Greater(v.Within.Lo, ranges.Zero)
	}
	v.Within = v.Within.Widened(ranges.Ten(-12))
	if beyond := grainBeyond(v.Within); beyond >= 0 {
		v.Grain = beyond
	}
	if !v.Within.Inside(large) || v.Grain > maxGrain {
		refuse("power may overflow or underflow")
	}
	v.Nonzero = !v.Within.Has(ranges.Zero)
	v.Same = v.Nonzero
	return v
}
