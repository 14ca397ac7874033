package verify

import (
	"math"
	"math/big"
	"strconv"

	"noisegate.example/sqlrewrite/internal/steps"
	"noisegate.example/sqlrewrite/verify/internal/calendar"
	"noisegate.example/sqlrewrite/verify/internal/ranges"
)

// Operators and casts: the error-free forms of docs/sql/error-free.md (Lemma 5a). An operator is taken for the types and ranges for which
// PostgreSQL raises no error, whatever a row holds, and the result lies in the range that is derived:
//
//  1. *Integers.* + - * raise an error where the exact result leaves the type, / and % where the divisor is 0, / also where the quotient
//     leaves the type. *Example.* Of an integer x, x + 1 is refused; of x clamped to [0, 120] it lies in [1, 121].
//  2. *numeric* is exact but for quotients, which have at least 16 significant digits: their range is widened by 10^-15, but for ends
//     that are whole. It overflows beyond 10^131072; ranges beyond 10^1000 are refused. NaN and infinities raise no error in + - *, but
//     their ranges are unknown, and what is unknown is refused. *Example.* x / 3 of x in [0, 1] lies in [0, 1/3 + 10^-15/3], with at most
//     25 digits.
//  3. *Floats* raise an error where a finite operation gives infinity, or gives 0 of operands that are not 0. Rounding to the next float
//     is monotone: results lie between the rounded ends. Nothing underflows that is a multiple of 2^-1000, or 0: the value's grain. Sums
//     of multiples of 2^-g are multiples of 2^-g, products of multiples of 2^-g and 2^-h of 2^-(g+h), and rounding to 53 bits keeps a
//     multiple one. A quotient that is not 0 is at least 2^-g / max|y|, whose last bit is 53 further. *Example.* x * x of whole numbers
//     has grain 0; of any floats in [0, 1] it is refused, as the square of 10^-200 is 0.
//  4. *Casts to a narrower type* raise an error where the rounded value leaves it; numeric to float where the float would be infinite or
//     0 for what is not 0. *Example.* x::integer of a numeric in [-1.5, 12] lies in [-2, 12], as halves are rounded away from 0.
//  5. *Comparisons* raise none, but for numeric with float, which casts the numeric. *Example.* Of a numeric without bounds, x >
//     0.5::float8 is refused: it may be 10^400.
//  6. *Identity.* Equal results are identical (same) where the type has one form of each value, all have as many digits, or none is 0
//     beside -0. *Example.* x + 0 of a float is 0 where x is -0.

// common is the type in which values of two types meet.
func common(a, b kind) kind {
	switch {
	case a == b || b == noKind:
		return a
	case a == noKind:
		return b
	case a.isNumber() && b.isNumber():
		if k := max(a, b); k == float4 && min(a, b) != float4 {
			return float8
		} else {
			return k
		}
	case a.isTime() && b.isTime():
		return max(a, b)
	case a.isText() && b.isText():
		return text
	}
	refuse("values of types %d and %d together", a, b)
	return noKind
}

// conversions say what a value is in a wider type.
var conversions = map[[2]kind]func(c, v *value){
	{int2, int4}: (*value).asWhole, {int2, int8}: (*value).asWhole, {int4, int8}: (*value).asWhole,
	{int2, numeric}: (*value).asNumeric, {int4, numeric}: (*value).asNumeric, {int8, numeric}: (*value).asNumeric,
	{int2, float4}: (*value).asFloat, {int4, float4}: (*value).asFloat, {int8, float4}: (*value).asFloat,
	{int2, float8}: (*value).asFloat, {int4, float8}: (*value).asFloat, {int8, float8}: (*value).asFloat,
	{numeric, float8}: (*value).rounded, {float4, float8}: (*value).asItIs, // real holds fewer numerics
	{date, timestamp}: (*value).atMidnight, {date, timestamptz}: (*value).atMidnight,
	{timestamp, timestamptz}: (*value).inUTC, {bpchar, text}: (*value).asItIs,
}

func (*value) asItIs(*value) {}

func (c *value) asWhole(*value) { c.digits, c.grain = 0, -1 }

func (c *value) asNumeric(*value) { c.digits, c.grain, c.scale, c.same = 0, -1, 0, true }

func (c *value) asFloat(v *value) {
	c.digits, c.grain, c.same = 0, 0, true
	c.within = v.within.Mapped(floated)
}

// rounded is a numeric as a float: 0 becomes 0, not -0.
func (c *value) rounded(v *value) {
	c.same = true
	if v.wide && !v.within.Finite() { // a float holds its size
		c.grain = grainOf(ranges.Ten(-v.digits))
		return
	}
	if v.digits < 0 || v.digits > 300 || !v.within.Inside(large) {
		refuse("a numeric that no float may be able to hold")
	}
	if c.grain = 0; v.digits > 0 {
		c.grain = grainOf(ranges.Ten(-v.digits))
	}
	c.within = v.within.Mapped(floated)
}

func (c *value) atMidnight(v *value) {
	c.inUTC(v)
	c.within = v.within.Times(ranges.Point(big.NewRat(calendar.Day, 1)))
	calendar.Check(c.within)
}

func (*value) inUTC(v *value) {
	if !v.within.Finite() {
		refuse("a date that may be no timestamp")
	}
}

// convert brings a value to a wider type, as PostgreSQL does. A value that names a unit still names it afterwards if the wider type keeps
// all values apart; two units' numbers may become the same float.
func (d *Terms) convert(v *value, k kind) *value {
	defer steps.Visit(d.steps).Leave()
	if v.kind == k {
		return v
	}
	if v.null {
		return d.nullOf(k)
	}
	if v.terms != nil {
		return v.terms.cast(d, v, k)
	}
	to := conversions[[2]kind{v.kind, k}]
	if to == nil {
		refuse("a conversion from type %d to %d", v.kind, k)
	}
	c := *v
	c.kind, c.same = k, alwaysSame(k)
	c.id = d.intern("to:"+kindName(k), v.id)
	to(&c, v)
	if k.isFloat() && !apart(v.kind, k) {
		c.anchors, c.strict = nil, false // it names several units
	}
	if k.isFloat() {
		c.split, c.above = nil, nil // rounded
	}
	if len(v.nulls) == 1 && v.nulls[0] == v.id {
		c.nulls = v.nulls
	}
	return &c
}

// apart reports whether floats of a type keep all values of another type apart: they have 24 and 53 bits.
func apart(of, k kind) bool {
	return of == int2 || of == float4 || of == int4 && k == float8
}

// grainOf is the grain of floats that are 0 or at least as large as a positive number.
func grainOf(least *big.Rat) int {
	return max(0, ranges.Bits(new(big.Rat).Inv(least))) + 54
}

func (d *Terms) nullIf(op string, l, r *value) *value {
	if op != "=" || l.terms != nil || r.terms != nil {
		refuse("NULLIF with another operator")
	}
	l, r = d.pair(l, r)
	k := common(l.kind, r.kind)
	d.comparable(l, k)
	d.comparable(r, k)
	if (l.kind.isInteger() != r.kind.isInteger()) && k.isNumber() || l.kind == numeric || k.isText() {
		l = d.convert(l, k) // there is no operator for both types
	}
	v := d.made(l.kind, "nullif", false, l, r)
	d.like0(v, l)
	if x := r.number(); x != nil && x.Sign() == 0 && l.kind.isNumber() {
		v.nonzero = true
	}
	return v
}

// comparable refuses a value whose conversion for a comparison could raise an error. Times of different types are compared without one.
func (d *Terms) comparable(v *value, k kind) {
	if v.kind.isTime() && k.isTime() {
		return
	}
	d.convert(d.plain(v), k)
}

// meet is the type in which two values are compared.
func (d *Terms) meet(l, r *value) kind {
	k := common(l.kind, r.kind)
	identities(l, r)
	d.comparable(l, k)
	d.comparable(r, k)
	return k
}

func (d *Terms) compare(op string, args ...*value) *value {
	l, r := d.pair(clear(args[0]), clear(args[1]))
	switch d.meet(l, r) {
	case noKind, texts:
		refuse("a comparison of arrays")
	case enum:
		refuse("a comparison of enums") // their order is data of the catalog
	default: // of the others the order is the type's
	}
	return d.apply(boolean, op, l, r)
}

// fits are the ranges of the integer types.
func fits(k kind) ranges.Span {
	switch k {
	case int2:
		return ranges.Int2
	case int4:
		return ranges.Int4
	default:
		return ranges.Int8
	}
}

// huge bounds numerics, and floats before they overflow.
var (
	huge  = ranges.Between(new(big.Rat).Neg(ranges.Ten(1000)), ranges.Ten(1000))
	large = ranges.Between(new(big.Rat).Neg(ranges.Two(1023)), ranges.Two(1023))
)

const (
	maxGrain  = 1000
	maxDigits = 900
)

// calculation is + - * / % on numbers.
func (d *Terms) calculation(op string, args ...*value) *value {
	l, r := args[0], args[1]
	if l.terms != nil || r.terms != nil {
		return d.combine(op, l, r)
	}
	v := d.arithmetic(op, l, r)
	v.split = multiple(op, l, r) // Lemma 2b
	if op == "*" {
		v.factors = &[2]factor{{l.id, l.within}, {r.id, r.within}} // Lemma 2c
	}
	return v
}

// bits is &.
func (d *Terms) bits(op string, args ...*value) *value {
	l, r := d.plain(args[0]), d.plain(args[1])
	k := common(l.kind, r.kind)
	b := d.convert(r, k)
	d.convert(l, k)
	v := d.apply(k, op, l, r)
	switch {
	case l.null || r.null:
		return v.never()
	case b.within.Lo.Sign() >= 0:
		v.within = ranges.Between(ranges.Zero, b.within.Hi)
	default:
		v.within = fits(k)
	}
	return v
}

func (d *Terms) arithmetic(op string, l, r *value) *value {
	k := common(l.kind, r.kind)
	if zero := r.number(); op == "+" && l.kind == r.kind && k.isFloat() && zero != nil && zero.Sign() == 0 && r.same {
		v := d.apply(k, op, l, r) // whatever l is, and -0 becomes 0
		d.like0(v, l)
		v.same, v.anchors, v.strict = true, l.anchors, l.strict
		return v
	}
	if k == float4 {
		refuse("arithmetic in single precision")
	}
	a, b := d.convert(l, k), d.convert(r, k)
	v := d.apply(k, op, l, r)
	if l.null || r.null {
		return v.never()
	}
	c := computations[op]
	if c.divides && !b.nonzero && b.within.Has(ranges.Zero) {
		refuse("a divisor that may be 0")
	}
	v.within = c.within(a, b)
	switch {
	case k.isInteger():
		if c.places == nil {
			v.within = v.within.Mapped(ranges.Whole)
		}
		if !v.within.Inside(fits(k)) {
			refuse("operator %s may leave its integer type", op)
		}
	case k == numeric:
		numericResult(op, v, a, b)
	default:
		floatResult(op, v, a, b)
	}
	v.nonzero = !v.within.Has(ranges.Zero)
	return v
}

// never is a value that is always NULL.
func (v *value) never() *value {
	v.within, v.digits, v.scale, v.grain = ranges.Point(ranges.Zero), 0, 0, 0
	return v
}

// multiplied is the range of a·b, and of a square.
func multiplied(a, b *value) ranges.Span {
	within := a.within.Times(b.within)
	if a.id == b.id && within.Finite() {
		return ranges.Between(ranges.Zero, new(big.Rat).Mul(a.within.Most(), a.within.Most()))
	}
	return within
}

// quotient is the range of a/b, b not being 0.
func quotient(a, b *value) ranges.Span {
	var least *big.Rat // what is not 0 is at least as far from it
	switch {
	case b.kind.isInteger():
		least = ranges.One
	case b.kind == numeric && b.digits >= 0:
		least = ranges.Ten(-b.digits)
	case b.kind.isFloat() && b.grain >= 0:
		least = new(big.Rat).SetFrac(big.NewInt(1), new(big.Int).Lsh(big.NewInt(1), uint(b.grain)))
	default: // unknown
	}
	return a.within.Over(b.within, least)
}

// remainder has the dividend's sign, and is smaller than the divisor.
func remainder(a, b *value) ranges.Span {
	if a.kind.isFloat() {
		return ranges.Span{}
	}
	return a.within.Modulo(b.within, a.kind.isInteger())
}

func numericResult(op string, v, a, b *value) {
	exact := computations[op].places
	if exact == nil {
		// What is a whole number is exact, and rounding keeps to its side of it.
		if wide := v.within.Widened(ranges.Ten(-15)); v.within.Finite() {
			if !v.within.Lo.IsInt() {
				v.within.Lo = wide.Lo
			}
			if !v.within.Hi.IsInt() {
				v.within.Hi = wide.Hi
			}
		}
	}
	if !v.within.Inside(huge) {
		refuse("operator %s on numerics without bounds", op)
	}
	if exact == nil && !v.within.Has(ranges.Zero) &&
		ranges.Lesser(new(big.Rat).Abs(v.within.Lo), new(big.Rat).Abs(v.within.Hi)).Cmp(ranges.Ten(-maxDigits)) < 0 {
		v.within = v.within.WithZero() // there are 1,000 digits after the point at most
	}
	v.digits, v.scale = -1, -1
	switch known := a.digits >= 0 && b.digits >= 0; {
	case known && exact != nil:
		v.digits = exact(a.digits, b.digits)
	case known && b.within.Finite(): // 16 significant digits of the smallest quotient, in groups of four, or those of the operands
		v.digits = max(a.digits+24+len(ranges.Truncated(b.within.Most()).String()), b.digits)
	}
	if exact == nil && v.digits > maxDigits {
		v.digits = -1
	}
	if exact != nil && a.scale >= 0 && b.scale >= 0 {
		v.scale = exact(a.scale, b.scale)
	}
	v.same = v.scale >= 0
	if v.digits > maxDigits {
		refuse("a numeric of too many digits")
	}
}

// least is a positive number that a float is at least away from 0, unless it is 0; nil: none is known.
func least(v *value) *big.Rat {
	switch {
	case v.within.Finite() && !v.within.Has(ranges.Zero):
		return ranges.Lesser(new(big.Rat).Abs(v.within.Lo), new(big.Rat).Abs(v.within.Hi))
	case v.grain >= 0:
		return new(big.Rat).Inv(ranges.Two(uint(v.grain)))
	}
	return nil
}

func floatResult(op string, v, a, b *value) {
	if !v.within.Inside(large) {
		refuse("operator %s on floats that may overflow", op)
	}
	switch op {
	case "+", "-":
		v.grain = unknownOr(a.grain, b.grain)
	case "*", "/":
		// Nothing underflows that is multiplied by at least 1, or divided by at most 1.
		x, y := least(a), least(b)
		away := y != nil && y.Cmp(ranges.One) >= 0
		v.grain = -1
		if op == "*" && a.grain >= 0 && b.grain >= 0 {
			v.grain = a.grain + b.grain
		}
		if op == "/" {
			most := b.within.Most()
			y, away = nil, most != nil && most.Cmp(ranges.One) <= 0
			if most != nil && most.Sign() > 0 { // else it is always NULL
				y = new(big.Rat).Inv(most)
			}
		}
		if x != nil && y != nil {
			if g := grainOf(x.Mul(x, y)); v.grain < 0 || g < v.grain {
				v.grain = g
			}
		}
		if v.grain > maxGrain {
			v.grain = -1
		}
		if v.grain < 0 && !away {
			refuse("operator %s on floats that may underflow", op)
		}
	default:
		refuse("operator %s on floats", op)
	}
	v.within = v.within.Mapped(floated)
	v.same = !v.within.Has(ranges.Zero) || op == "+" && (a.same || b.same) // 0 + -0 is 0
}

// cast is an explicit cast.
func (d *Terms) cast(v *value, k kind) *value {
	defer steps.Visit(d.steps).Leave()
	if v.terms != nil && k != text {
		return v.terms.cast(d, v, k)
	}
	switch {
	case v.kind == k:
		return v
	case k == text:
		return d.toText(v)
	case v.kind.isNumber() && (k.isInteger() && k < v.kind || k.isInteger() && v.kind >= numeric):
		c := d.apply(k, "to:"+strconv.Itoa(int(k)), v)
		c.within = v.within.Mapped(ranges.Nearest(0))
		if !c.within.Inside(fits(k)) {
			refuse("a cast to a narrower type that may not hold the value")
		}
		c.nonzero = !c.within.Has(ranges.Zero)
		return c
	case v.kind == boolean && k == int4:
		c := d.apply(k, "to:"+strconv.Itoa(int(k)), v)
		c.within = ranges.Between(ranges.Zero, ranges.One)
		return c
	case v.kind.isFloat() && k == numeric:
		if !v.within.Finite() {
			refuse("a float without bounds as numeric")
		}
		c := d.apply(k, "to:"+strconv.Itoa(int(k)), v) // 15 significant digits
		c.within = v.within.Widened(ranges.Ten(-14))
		if v.grain >= 0 { // the first digit that is not 0 is one of 2^-grain's at the latest
			c.digits = len(new(big.Int).Lsh(big.NewInt(1), uint(v.grain)).String()) + 15
		}
		if v.grain == 0 && v.within.Most().Cmp(ranges.Ten(14)) < 0 {
			c.within, c.digits, c.scale, c.same = v.within, 0, 0, true
		}
		return c
	case v.kind == timestamp && k == date, v.kind == timestamptz && k == date:
		c := d.apply(k, "to:"+strconv.Itoa(int(k)), v)
		c.within = v.within.Mapped(func(x *big.Rat) *big.Rat { return ranges.Floored(new(big.Rat).Quo(x, big.NewRat(86400_000000, 1))) })
		return c
	case v.kind == timestamptz && k == timestamp:
		c := d.apply(k, "to:"+strconv.Itoa(int(k)), v)
		c.within = v.within // the session's time zone is UTC
		return c
	default:
		return d.convert(v, k)
	}
}

// toDigits is a cast to numeric(precision, scale).
func (d *Terms) toDigits(v *value, precision, scale int) *value {
	if !v.kind.isNumber() || scale < 0 || scale > precision {
		refuse("a cast to numeric with other digits")
	}
	v = d.cast(v, numeric)
	c := d.apply(numeric, "digits:"+strconv.Itoa(precision)+":"+strconv.Itoa(scale), v)
	c.within = v.within.Mapped(ranges.Nearest(scale))
	limit := new(big.Rat).Sub(ranges.Ten(precision-scale), ranges.Ten(-scale))
	if !c.within.Inside(ranges.Between(new(big.Rat).Neg(limit), limit)) {
		refuse("a cast to numeric with digits that may not hold the value")
	}
	c.digits, c.scale, c.same = scale, scale, true
	return c
}

// toText is a value as text: one text for each representation of a value.
func (d *Terms) toText(v *value) *value {
	if v.terms != nil {
		if v.places() != 0 && v.terms.moves == nil {
			refuse("a sum as text that may be written with digits after the point")
		}
		c := *v
		c.kind = text
		return &c
	}
	if v.partial != nil {
		refuse("a window as text")
	}
	switch v.kind {
	case text, boolean, int2, int4, int8, numeric, float4, float8, date, timestamp, timestamptz, uuid, enum, bpchar:
	default:
		refuse("type %d as text", v.kind)
	}
	c := d.apply(text, "text", v)
	c.ident = v.ident
	switch {
	case v.kind == numeric && v.scale >= 0 && v.within.Finite(): // the sign, the point, and "-0.00"
		c.chars = len(ranges.Truncated(v.within.Most()).String()) + v.scale + 3
	case v.kind != bpchar && v.kind != numeric:
		c.chars = 40
	}
	if v.kind == enum {
		c.chars = 63
	}
	if v.kind.isText() { // character: what is equal, blanks apart, is equal as text
		c.chars, c.anchors, c.strict = v.chars, v.anchors, v.strict
	}
	return c
}

// floated is the float next to a number, within the range of finite floats.
func floated(r *big.Rat) *big.Rat {
	f, _ := r.Float64()
	if math.IsInf(f, 0) {
		refuse("a float beyond all finite ones")
	}
	return new(big.Rat).SetFloat64(f)
}
