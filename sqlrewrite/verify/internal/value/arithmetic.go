package value

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
func Common(a, b kind) kind {
	switch {
	case a == b || b == NoKind:
		return a
	case a == NoKind:
		return b
	case a.IsNumber() && b.IsNumber():
		if k := max(a, b); k == Float4 && min(a, b) != Float4 {
			return Float8
		} else {
			return k
		}
	case a.IsTime() && b.IsTime():
		return max(a, b)
	case a.IsText() && b.IsText():
		return Text
	}
	refuse("values of types %d and %d together", a, b)
	return NoKind
}

// conversions say what a value is in a wider type.
var conversions = map[[2]kind]func(c, v *Value){
	{Int2, Int4}: (*Value).asWhole, {Int2, Int8}: (*Value).asWhole, {Int4, Int8}: (*Value).asWhole,
	{Int2, Numeric}: (*Value).asNumeric, {Int4, Numeric}: (*Value).asNumeric, {Int8, Numeric}: (*Value).asNumeric,
	{Int2, Float4}: (*Value).asFloat, {Int4, Float4}: (*Value).asFloat, {Int8, Float4}: (*Value).asFloat,
	{Int2, Float8}: (*Value).asFloat, {Int4, Float8}: (*Value).asFloat, {Int8, Float8}: (*Value).asFloat,
	{Numeric, Float8}: (*Value).rounded, {Float4, Float8}: (*Value).asItIs, // real holds fewer numerics
	{Date, Timestamp}: (*Value).atMidnight, {Date, Timestamptz}: (*Value).atMidnight,
	{Timestamp, Timestamptz}: (*Value).inUTC, {Char, Text}: (*Value).asItIs,
}

func (*Value) asItIs(*Value) {}

func (c *Value) asWhole(*Value) { c.Digits, c.Grain = 0, -1 }

func (c *Value) asNumeric(*Value) { c.Digits, c.Grain, c.Scale, c.Same = 0, -1, 0, true }

func (c *Value) asFloat(v *Value) {
	c.Digits, c.Grain, c.Same = 0, 0, true
	c.Within = v.Within.Mapped(Floated)
}

// rounded is a numeric as a float: 0 becomes 0, not -0.
func (c *Value) rounded(v *Value) {
	c.Same = true
	if v.wide && !v.Within.Finite() { // a float holds its size
		c.Grain = GrainOf(ranges.Ten(-v.Digits))
		return
	}
	if v.Digits < 0 || v.Digits > 300 || !v.Within.Inside(large) {
		refuse("a numeric that no float may be able to hold")
	}
	if c.Grain = 0; v.Digits > 0 {
		c.Grain = GrainOf(ranges.Ten(-v.Digits))
	}
	c.Within = v.Within.Mapped(Floated)
}

func (c *Value) atMidnight(v *Value) {
	c.inUTC(v)
	c.Within = v.Within.Times(ranges.Point(big.NewRat(calendar.Day, 1)))
	calendar.Check(c.Within)
}

func (*Value) inUTC(v *Value) {
	if !v.Within.Finite() {
		refuse("a date that may be no timestamp")
	}
}

// convert brings a value to a wider type, as PostgreSQL does. A value that names a unit still names it afterwards if the wider type keeps
// all values apart; two units' numbers may become the same float.
func (d *Terms) Convert(v *Value, k kind) *Value {
	defer steps.Visit(d.Steps).Leave()
	if v.Kind == k {
		return v
	}
	if v.Null {
		return d.NullOf(k)
	}
	if v.Sum != nil {
		return v.Sum.cast(d, v, k)
	}
	to := conversions[[2]kind{v.Kind, k}]
	if to == nil {
		refuse("a conversion from type %d to %d", v.Kind, k)
	}
	c := *v
	c.Kind, c.Same = k, AlwaysSame(k)
	c.ID = d.Intern("to:"+KindName(k), v.ID)
	to(&c, v)
	if k.IsFloat() && !apart(v.Kind, k) {
		c.Anchors, c.Strict = nil, false // it names several units
	}
	if k.IsFloat() {
		c.Split, c.above = nil, nil // rounded
	}
	if len(v.Nulls) == 1 && v.Nulls[0] == v.ID {
		c.Nulls = v.Nulls
	}
	return &c
}

// apart reports whether floats of a type keep all values of another type apart: they have 24 and 53 bits.
func apart(of, k kind) bool {
	return of == Int2 || of == Float4 || of == Int4 && k == Float8
}

// grainOf is the grain of floats that are 0 or at least as large as a positive number.
func GrainOf(least *big.Rat) int {
	return max(0, ranges.Bits(new(big.Rat).Inv(least))) + 54
}

func (d *Terms) NullIf(op string, l, r *Value) *Value {
	if op != "=" || l.Sum != nil || r.Sum != nil {
		refuse("NULLIF with another operator")
	}
	l, r = d.Pair(l, r)
	k := Common(l.Kind, r.Kind)
	d.Comparable(l, k)
	d.Comparable(r, k)
	if (l.Kind.IsInteger() != r.Kind.IsInteger()) && k.IsNumber() || l.Kind == Numeric || k.IsText() {
		l = d.Convert(l, k) // there is no operator for both types
	}
	v := d.Made(l.Kind, "nullif", false, l, r)
	d.Bounded(v, l)
	if x := r.Number(); x != nil && x.Sign() == 0 && l.Kind.IsNumber() {
		v.Nonzero = true
	}
	return v
}

// comparable refuses a value whose conversion for a comparison could raise an error. Times of different types are compared without one.
func (d *Terms) Comparable(v *Value, k kind) {
	if v.Kind.IsTime() && k.IsTime() {
		return
	}
	d.Convert(d.Plain(v), k)
}

// meet is the type in which two values are compared.
func (d *Terms) Meet(l, r *Value) kind {
	k := Common(l.Kind, r.Kind)
	Identities(l, r)
	d.Comparable(l, k)
	d.Comparable(r, k)
	return k
}

func (d *Terms) compare(op string, args ...*Value) *Value {
	l, r := d.Pair(Clear(args[0]), Clear(args[1]))
	switch d.Meet(l, r) {
	case NoKind, Texts:
		refuse("a comparison of arrays")
	case Enum:
		refuse("a comparison of enums") // their order is data of the catalog
	default: // of the others the order is the type's
	}
	return d.Apply(Boolean, op, l, r)
}

// fits are the ranges of the integer types.
func fits(k kind) ranges.Span {
	switch k {
	case Int2:
		return ranges.Int2
	case Int4:
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
func (d *Terms) calculation(op string, args ...*Value) *Value {
	l, r := args[0], args[1]
	if l.Sum != nil || r.Sum != nil {
		return d.combine(op, l, r)
	}
	v := d.arithmetic(op, l, r)
	v.Split = multiple(op, l, r) // Lemma 2b
	if op == "*" {
		v.Factors = &[2]Factor{{l.ID, l.Within}, {r.ID, r.Within}} // Lemma 2c
	}
	return v
}

// bits is &.
func (d *Terms) bits(op string, args ...*Value) *Value {
	l, r := d.Plain(args[0]), d.Plain(args[1])
	k := Common(l.Kind, r.Kind)
	b := d.Convert(r, k)
	d.Convert(l, k)
	v := d.Apply(k, op, l, r)
	switch {
	case l.Null || r.Null:
		return v.never()
	case b.Within.Lo.Sign() >= 0:
		v.Within = ranges.Between(ranges.Zero, b.Within.Hi)
	default:
		v.Within = fits(k)
	}
	return v
}

func (d *Terms) arithmetic(op string, l, r *Value) *Value {
	k := Common(l.Kind, r.Kind)
	if zero := r.Number(); op == "+" && l.Kind == r.Kind && k.IsFloat() && zero != nil && zero.Sign() == 0 && r.Same {
		v := d.Apply(k, op, l, r) // whatever l is, and -0 becomes 0
		d.Bounded(v, l)
		v.Same, v.Anchors, v.Strict = true, l.Anchors, l.Strict
		return v
	}
	if k == Float4 {
		refuse("arithmetic in single precision")
	}
	a, b := d.Convert(l, k), d.Convert(r, k)
	v := d.Apply(k, op, l, r)
	if l.Null || r.Null {
		return v.never()
	}
	c := computations[op]
	if c.divides && !b.Nonzero && b.Within.Has(ranges.Zero) {
		refuse("a divisor that may be 0")
	}
	v.Within = c.within(a, b)
	switch {
	case k.IsInteger():
		if c.places == nil {
			v.Within = v.Within.Mapped(ranges.Whole)
		}
		if !v.Within.Inside(fits(k)) {
			refuse("operator %s may leave its integer type", op)
		}
	case k == Numeric:
		numericResult(op, v, a, b)
	default:
		floatResult(op, v, a, b)
	}
	v.Nonzero = !v.Within.Has(ranges.Zero)
	return v
}

// never is a value that is always NULL.
func (v *Value) never() *Value {
	v.Within, v.Digits, v.Scale, v.Grain = ranges.Point(ranges.Zero), 0, 0, 0
	return v
}

// multiplied is the range of a·b, and of a square.
func multiplied(a, b *Value) ranges.Span {
	within := a.Within.Times(b.Within)
	if a.ID == b.ID && within.Finite() {
		return ranges.Between(ranges.Zero, new(big.Rat).Mul(a.Within.Most(), a.Within.Most()))
	}
	return within
}

// quotient is the range of a/b, b not being 0.
func quotient(a, b *Value) ranges.Span {
	var least *big.Rat // what is not 0 is at least as far from it
	switch {
	case b.Kind.IsInteger():
		least = ranges.One
	case b.Kind == Numeric && b.Digits >= 0:
		least = ranges.Ten(-b.Digits)
	case b.Kind.IsFloat() && b.Grain >= 0:
		least = new(big.Rat).SetFrac(big.NewInt(1), new(big.Int).Lsh(big.NewInt(1), uint(b.Grain)))
	default: // unknown
	}
	return a.Within.Over(b.Within, least)
}

// remainder has the dividend's sign, and is smaller than the divisor.
func remainder(a, b *Value) ranges.Span {
	if a.Kind.IsFloat() {
		return ranges.Span{}
	}
	return a.Within.Modulo(b.Within, a.Kind.IsInteger())
}

func numericResult(op string, v, a, b *Value) {
	exact := computations[op].places
	if exact == nil {
		// What is a whole number is exact, and rounding keeps to its side of it.
		if wide := v.Within.Widened(ranges.Ten(-15)); v.Within.Finite() {
			if !v.Within.Lo.IsInt() {
				v.Within.Lo = wide.Lo
			}
			if !v.Within.Hi.IsInt() {
				v.Within.Hi = wide.Hi
			}
		}
	}
	if !v.Within.Inside(huge) {
		refuse("operator %s on numerics without bounds", op)
	}
	if exact == nil && !v.Within.Has(ranges.Zero) &&
		ranges.Lesser(new(big.Rat).Abs(v.Within.Lo), new(big.Rat).Abs(v.Within.Hi)).Cmp(ranges.Ten(-maxDigits)) < 0 {
		v.Within = v.Within.WithZero() // there are 1,000 digits after the point at most
	}
	v.Digits, v.Scale = -1, -1
	switch known := a.Digits >= 0 && b.Digits >= 0; {
	case known && exact != nil:
		v.Digits = exact(a.Digits, b.Digits)
	case known && b.Within.Finite(): // 16 significant digits of the smallest quotient, in groups of four, or those of the operands
		v.Digits = max(a.Digits+24+len(ranges.Truncated(b.Within.Most()).String()), b.Digits)
	}
	if exact == nil && v.Digits > maxDigits {
		v.Digits = -1
	}
	if exact != nil && a.Scale >= 0 && b.Scale >= 0 {
		v.Scale = exact(a.Scale, b.Scale)
	}
	v.Same = v.Scale >= 0
	if v.Digits > maxDigits {
		refuse("a numeric of too many digits")
	}
}

// least is a positive number that a float is at least away from 0, unless it is 0; nil: none is known.
func least(v *Value) *big.Rat {
	switch {
	case v.Within.Finite() && !v.Within.Has(ranges.Zero):
		return ranges.Lesser(new(big.Rat).Abs(v.Within.Lo), new(big.Rat).Abs(v.Within.Hi))
	case v.Grain >= 0:
		return new(big.Rat).Inv(ranges.Two(uint(v.Grain)))
	}
	return nil
}

func floatResult(op string, v, a, b *Value) {
	if !v.Within.Inside(large) {
		refuse("operator %s on floats that may overflow", op)
	}
	switch op {
	case "+", "-":
		v.Grain = unknownOr(a.Grain, b.Grain)
	case "*", "/":
		// Nothing underflows that is multiplied by at least 1, or divided by at most 1.
		x, y := least(a), least(b)
		away := y != nil && y.Cmp(ranges.One) >= 0
		v.Grain = -1
		if op == "*" && a.Grain >= 0 && b.Grain >= 0 {
			v.Grain = a.Grain + b.Grain
		}
		if op == "/" {
			most := b.Within.Most()
			y, away = nil, most != nil && most.Cmp(ranges.One) <= 0
			if most != nil && most.Sign() > 0 { // else it is always NULL
				y = new(big.Rat).Inv(most)
			}
		}
		if x != nil && y != nil {
			if g := GrainOf(x.Mul(x, y)); v.Grain < 0 || g < v.Grain {
				v.Grain = g
			}
		}
		if v.Grain > maxGrain {
			v.Grain = -1
		}
		if v.Grain < 0 && !away {
			refuse("operator %s on floats that may underflow", op)
		}
	default:
		refuse("operator %s on floats", op)
	}
	v.Within = v.Within.Mapped(Floated)
	v.Same = !v.Within.Has(ranges.Zero) || op == "+" && (a.Same || b.Same) // 0 + -0 is 0
}

// cast is an explicit cast.
func (d *Terms) Cast(v *Value, k kind) *Value {
	defer steps.Visit(d.Steps).Leave()
	if v.Sum != nil && k != Text {
		return v.Sum.cast(d, v, k)
	}
	switch {
	case v.Kind == k:
		return v
	case k == Text:
		return d.Text(v)
	case v.Kind.IsNumber() && (k.IsInteger() && k < v.Kind || k.IsInteger() && v.Kind >= Numeric):
		c := d.Apply(k, "to:"+strconv.Itoa(int(k)), v)
		c.Within = v.Within.Mapped(ranges.Nearest(0))
		if !c.Within.Inside(fits(k)) {
			refuse("a cast to a narrower type that may not hold the value")
		}
		c.Nonzero = !c.Within.Has(ranges.Zero)
		return c
	case v.Kind == Boolean && k == Int4:
		c := d.Apply(k, "to:"+strconv.Itoa(int(k)), v)
		c.Within = ranges.Between(ranges.Zero, ranges.One)
		return c
	case v.Kind.IsFloat() && k == Numeric:
		if !v.Within.Finite() {
			refuse("a float without bounds as numeric")
		}
		c := d.Apply(k, "to:"+strconv.Itoa(int(k)), v) // 15 significant digits
		c.Within = v.Within.Widened(ranges.Ten(-14))
		if v.Grain >= 0 { // the first digit that is not 0 is one of 2^-grain's at the latest
			c.Digits = len(new(big.Int).Lsh(big.NewInt(1), uint(v.Grain)).String()) + 15
		}
		if v.Grain == 0 && v.Within.Most().Cmp(ranges.Ten(14)) < 0 {
			c.Within, c.Digits, c.Scale, c.Same = v.Within, 0, 0, true
		}
		return c
	case v.Kind == Timestamp && k == Date, v.Kind == Timestamptz && k == Date:
		c := d.Apply(k, "to:"+strconv.Itoa(int(k)), v)
		c.Within = v.Within.Mapped(func(x *big.Rat) *big.Rat { return ranges.Floored(new(big.Rat).Quo(x, big.NewRat(86400_000000, 1))) })
		return c
	case v.Kind == Timestamptz && k == Timestamp:
		c := d.Apply(k, "to:"+strconv.Itoa(int(k)), v)
		c.Within = v.Within // the session's time zone is UTC
		return c
	default:
		return d.Convert(v, k)
	}
}

// toDigits is a cast to numeric(precision, scale).
func (d *Terms) Digits(v *Value, precision, scale int) *Value {
	if !v.Kind.IsNumber() || scale < 0 || scale > precision {
		refuse("a cast to numeric with other digits")
	}
	v = d.Cast(v, Numeric)
	c := d.Apply(Numeric, "digits:"+strconv.Itoa(precision)+":"+strconv.Itoa(scale), v)
	c.Within = v.Within.Mapped(ranges.Nearest(scale))
	limit := new(big.Rat).Sub(ranges.Ten(precision-scale), ranges.Ten(-scale))
	if !c.Within.Inside(ranges.Between(new(big.Rat).Neg(limit), limit)) {
		refuse("a cast to numeric with digits that may not hold the value")
	}
	c.Digits, c.Scale, c.Same = scale, scale, true
	return c
}

// toText is a value as text: one text for each representation of a value.
func (d *Terms) Text(v *Value) *Value {
	if v.Sum != nil {
		if v.places() != 0 && v.Sum.Moves == nil {
			refuse("a sum as text that may be written with digits after the point")
		}
		c := *v
		c.Kind = Text
		return &c
	}
	if v.Running != nil {
		refuse("a window as text")
	}
	switch v.Kind {
	case Text, Boolean, Int2, Int4, Int8, Numeric, Float4, Float8, Date, Timestamp, Timestamptz, UUID, Enum, Char:
	default:
		refuse("type %d as text", v.Kind)
	}
	c := d.Apply(Text, "text", v)
	c.Ident = v.Ident
	switch {
	case v.Kind == Numeric && v.Scale >= 0 && v.Within.Finite(): // the sign, the point, and "-0.00"
		c.Chars = len(ranges.Truncated(v.Within.Most()).String()) + v.Scale + 3
	case v.Kind != Char && v.Kind != Numeric:
		c.Chars = 40
	}
	if v.Kind == Enum {
		c.Chars = 63
	}
	if v.Kind.IsText() { // character: what is equal, blanks apart, is equal as text
		c.Chars, c.Anchors, c.Strict = v.Chars, v.Anchors, v.Strict
	}
	return c
}

// floated is the float next to a number, within the range of finite floats.
func Floated(r *big.Rat) *big.Rat {
	f, _ := r.Float64()
	if math.IsInf(f, 0) {
		refuse("a float beyond all finite ones")
	}
	return new(big.Rat).SetFloat64(f)
}
