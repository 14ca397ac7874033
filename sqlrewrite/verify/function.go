package verify

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

// clamping is T_smaller or T_larger.
func clamping(k kind, larger bool) function {
	return taking("..", func(d *Terms, name string, args ...*value) *value { return d.clamp(name, k, larger, args) }).
		priced(lengths(100, 1))
}

func (d *Terms) clamp(name string, k kind, larger bool, args []*value) *value {
	if k.isTime() && (args[0].kind != k || args[1].kind != k) {
		refuse("%s of another type", name)
	}
	if k == float8 && args[0].kind == numeric {
		refuse("%s of a numeric", name)
	}
	a, b := d.convert(args[0], k), d.convert(args[1], k)
	v := d.apply(k, name, args...)
	if larger {
		v.within = ranges.Between(ranges.Highest(a.within.Lo, b.within.Lo), ranges.Greater(a.within.Hi, b.within.Hi))
	} else {
		v.within = ranges.Between(ranges.Lesser(a.within.Lo, b.within.Lo), ranges.Lowest(a.within.Hi, b.within.Hi))
	}
	v.split, v.above = clampedBy(larger, a, b) // Lemma 2b
	if k == interval {                         // one of the two: which, their lengths say
		for i := range v.parts {
			v.parts[i] = a.parts[i].Hull(b.parts[i])
		}
		return v
	}
	v.digits, v.grain = unknownOr(a.digits, b.digits), unknownOr(a.grain, b.grain)
	if a.grain < 0 && k.isFloat() && v.within.Finite() {
		v.grain = grainBeyond(v.within)
	}
	if a.scale == b.scale {
		v.scale = a.scale
	}
	v.nonzero = !v.within.Has(ranges.Zero) || a.nonzero && b.nonzero
	if !alwaysSame(k) {
		c := b.number()
		v.same = c != nil && b.same && (a.same || k.isFloat() && (c.Sign() == 0 || !v.within.Has(ranges.Zero)))
	}
	return v
}

// grainBeyond is the grain of floats in a range that does not hold 0; -1 for others.
func grainBeyond(s ranges.Span) int {
	if s.Has(ranges.Zero) {
		return -1
	}
	least := new(big.Rat).Abs(s.Lo)
	if s.Lo.Sign() < 0 {
		least.Abs(s.Hi)
	}
	return grainOf(least)
}

// position is array_position, which is NULL where the text is not found.
func (d *Terms) position(name string, args ...*value) *value {
	v := d.made(int4, name, false, args...)
	v.within = ranges.Of(1, int64(max(args[0].size, 1)))
	return v
}

func (d *Terms) div(name string, args ...*value) *value {
	a, b := d.convert(args[0], numeric), d.convert(args[1], numeric)
	if !b.nonzero && b.within.Has(ranges.Zero) {
		refuse("div by what may be 0")
	}
	v := d.apply(numeric, name, args...)
	v.within = quotient(a, b).Mapped(ranges.Whole)
	if !a.within.Inside(huge) || !b.within.Finite() {
		refuse("div of numerics without bounds")
	}
	v.digits, v.scale, v.same = 0, 0, true
	return v
}

// hash is one of the hash functions of types: equal values have equal hashes, except that texts are hashed byte by byte.
func (d *Terms) hash(name string, args ...*value) *value {
	x := args[0]
	if x.kind == numeric || x.kind == float8 {
		x = clear(x)
	}
	return d.apply(int8, name, x, args[1])
}

func (d *Terms) buckets(name string, args ...*value) *value {
	a, b, n := args[1].number(), args[2].number(), args[3].number()
	limit := large
	if args[0].kind == numeric {
		limit = ranges.Between(new(big.Rat).Neg(ranges.Ten(2000)), ranges.Ten(2000))
	}
	if a == nil || b == nil || n == nil || n.Cmp(ranges.One) < 0 || n.Cmp(big.NewRat(1<<30, 1)) > 0 || a.Cmp(b) == 0 ||
		!args[0].within.Hull(ranges.Point(b)).Minus(ranges.Point(a)).Times(ranges.Of(2, 2).Hull(ranges.Point(n))).Inside(limit) {
		refuse("width_bucket with limits or a value for which it fails")
	}
	v := d.apply(int4, name, args...)
	v.within = ranges.Between(ranges.Zero, new(big.Rat).Add(n, ranges.One))
	return v
}

func (d *Terms) abs(name string, args ...*value) *value {
	x := args[0]
	v := d.apply(x.kind, name, x)
	d.like0(v, x)
	if most := x.within.Most(); most == nil {
		v.within = ranges.Span{Lo: ranges.Zero}
	} else if v.within = (ranges.Between(ranges.Zero, most)); !x.within.Has(ranges.Zero) {
		v.within.Lo = ranges.Lesser(new(big.Rat).Abs(x.within.Lo), new(big.Rat).Abs(x.within.Hi))
	}
	if x.kind.isInteger() && !v.within.Inside(fits(x.kind)) {
		refuse("abs may leave its integer type")
	}
	v.same = alwaysSame(x.kind) || x.kind == numeric && x.scale >= 0 || x.kind.isFloat()
	return v
}

func (d *Terms) sign(name string, args ...*value) *value {
	v := d.apply(args[0].kind, name, args...)
	d.like0(v, args[0])
	v.within, v.nonzero = ranges.Of(-1, 1), false
	v.digits, v.grain, v.scale, v.same = 0, 0, 0, v.kind == numeric
	return v
}

// trimScale drops zeros at the end: NaN and infinities have one form as well.
func (d *Terms) trimScale(name string, args ...*value) *value {
	v := d.apply(numeric, name, args...)
	d.like0(v, args[0])
	v.scale, v.same, v.anchors, v.strict = -1, true, args[0].anchors, args[0].strict
	return v
}

// rounding is a function that makes whole numbers, or of numerics such with some digits after the point.
func rounding(whole func(*big.Rat) *big.Rat) rule {
	return func(d *Terms, name string, args ...*value) *value {
		x, places := args[0], 0
		if len(args) == 2 {
			if places = int(args[1].number().Num().Int64()); max(places, -places) > 900 {
				return nil
			}
		}
		v := d.apply(x.kind, name, args...)
		d.like0(v, x)
		v.within = x.within.Mapped(func(r *big.Rat) *big.Rat {
			rounded := whole(new(big.Rat).Mul(r, ranges.Ten(places)))
			return rounded.Quo(rounded, ranges.Ten(places))
		})
		v.nonzero = !v.within.Has(ranges.Zero)
		if x.kind == numeric {
			v.digits, v.scale, v.same = max(places, 0), max(places, 0), v.within.Finite()
			return v
		}
		v.grain, v.scale = 0, -1
		v.same = v.nonzero || v.within.Finite() && v.within.Lo.Sign() >= 0 && x.within.Lo.Sign() >= 0 && x.same // -0.3 rounds to -0
		return v
	}
}

// approx is a range that was computed by floats.
func approx(lo, hi float64) ranges.Span {
	if math.IsNaN(lo) || math.IsNaN(hi) || math.IsInf(lo, 0) || math.IsInf(hi, 0) {
		refuse("a function of floats may leave them")
	}
	return ranges.Between(new(big.Rat).SetFloat64(lo), new(big.Rat).SetFloat64(hi)).Widened(ranges.Ten(-12))
}

// ends are those of a float's range.
func ends(name string, x *value) (lo, hi float64) {
	if !x.within.Finite() {
		refuse("%s of a float without bounds", name)
	}
	lo, _ = x.within.Lo.Float64()
	hi, _ = x.within.Hi.Float64()
	return lo, hi
}

func (d *Terms) sqrt(name string, args ...*value) *value {
	x := args[0]
	lo, hi := ends(name, x)
	if lo < 0 || x.grain < 0 {
		refuse("sqrt of what may be negative")
	}
	v := d.apply(float8, name, x)
	v.within, v.grain = approx(math.Sqrt(lo), math.Sqrt(hi)), x.grain/2+55
	v.within.Lo = ranges.Greater(v.within.Lo, ranges.Zero)
	v.nonzero = !v.within.Has(ranges.Zero)
	v.same = v.nonzero || x.same
	return v
}

func (d *Terms) exp(name string, args ...*value) *value {
	lo, hi := ends(name, args[0])
	if lo < -700 || hi > 690 {
		refuse("exp may overflow or underflow")
	}
	v := d.apply(float8, name, args...)
	v.within = approx(math.Exp(lo), math.Exp(hi))
	v.grain = grainBeyond(v.within)
	v.nonzero = !v.within.Has(ranges.Zero)
	v.same = v.nonzero
	return v
}

// logarithm is ln or log.
func (d *Terms) logarithm(name string, args ...*value) *value {
	x := args[0]
	lo, hi := ends(name, x)
	if lo < 0 || lo == 0 && !x.nonzero || x.grain < 0 {
		refuse("%s of what may not be positive", name)
	}
	least := -float64(x.grain) * math.Ln2
	if lo > 0 {
		least = math.Log(lo)
	}
	most := max(least, math.Log(hi)) // hi may be 0, and x NULL
	v := d.apply(float8, name, x)
	v.within, v.grain = approx(least, most), 120 // |ln x| >= 2^-54 where x is not 1
	if name == "log" {
		v.within = approx(least/math.Ln10, most/math.Ln10)
	}
	v.nonzero = !v.within.Has(ranges.Zero)
	v.same = v.nonzero
	return v
}

func (d *Terms) power(name string, args ...*value) *value {
	x, n := args[0], args[1].number()
	if n == nil || !n.IsInt() || n.Sign() < 0 || n.Cmp(big.NewRat(10, 1)) > 0 || !x.within.Finite() || x.grain < 0 {
		refuse("power of a float without bounds, or to an exponent that is no whole number from 0 to 10")
	}
	v := d.apply(float8, name, args...)
	v.within, v.grain = ranges.Point(ranges.One), int(n.Num().Int64())*x.grain+55 // what is not 0 is at least 2^-grain, and its power that power
	for range n.Num().Int64() {
		v.within = v.within.Times(x.within)
	}
	if n.Num().Bit(0) == 0 {
		v.within.Lo = ranges.Greater(v.within.Lo, ranges.Zero)
	}
	v.within = v.within.Widened(ranges.Ten(-12))
	if beyond := grainBeyond(v.within); beyond >= 0 {
		v.grain = beyond
	}
	if !v.within.Inside(large) || v.grain > maxGrain {
		refuse("power may overflow or underflow")
	}
	v.nonzero = !v.within.Has(ranges.Zero)
	v.same = v.nonzero
	return v
}
