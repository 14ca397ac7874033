package value

import (
	"math"
	"math/big"
	"strconv"

	"noisegate.example/sqlrewrite/internal/steps"
	"noisegate.example/sqlrewrite/verify/internal/calendar"
	"noisegate.example/sqlrewrite/verify/internal/ranges"
)

// Common is the type in which values of two types meet.
func Common(a, b Kind) Kind {
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

// conversions derive a value in a wider type.
var conversions = map[[2]Kind]func(c, v *Value){
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

// Convert brings a value to a wider type, as PostgreSQL does. A value that names a unit still names it afterwards if the wider type keeps
// all values apart; two units' numbers may become the same float.
func (d *Terms) Convert(v *Value, k Kind) *Value {
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
	to := conversions[[2]Kind{v.Kind, k}]
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

// cast converts a tally: a whole number stays one.
func (t *Tally) cast(d *Terms, v *Value, k Kind) *Value {
	defer steps.Visit(d.Steps).Leave()
	if t.Moves == nil && (v.Kind == Numeric || v.Kind.IsInteger()) && (k == Numeric || k == Int8) && t.Digits == 0 {
		if k == Int8 && v.Kind == Numeric && !t.Each.Times(ranges.Of(0, t.Of.rows())).Inside(ranges.Int8) {
			refuse("a sum that may leave bigint")
		}
		if k == v.Kind {
			return v
		}
		c := *v
		c.ID, c.Kind = d.Intern("to:"+KindName(k), v.ID), k
		d.totals(&c)
		return &c
	}
	p := d.Plain(v)
	p.Sum = nil
	if k.IsNumber() && k > p.Kind {
		return d.Convert(p, k)
	}
	return d.Cast(p, k)
}

// orZero is COALESCE(tally, 0): NULL only where no row adds.
func (t *Tally) orZero(d *Terms, v *Value) *Value {
	c := *v
	c.ID, c.Nulls = d.Intern("orZero", v.ID), nil
	return &c
}

// apart reports whether floats of a type keep all values of another type apart: they have 24 and 53 bits.
func apart(of, k Kind) bool {
	return of == Int2 || of == Float4 || of == Int4 && k == Float8
}

// GrainOf is the grain of floats that are 0 or at least as large as a positive number.
func GrainOf(least *big.Rat) int {
	return max(0, ranges.Bits(new(big.Rat).Inv(least))) + 54
}

// Floated is the float next to a number, within the range of finite floats.
func Floated(r *big.Rat) *big.Rat {
	f, _ := r.Float64()
	if math.IsInf(f, 0) {
		refuse("a float beyond all finite ones")
	}
	return new(big.Rat).SetFloat64(f)
}

// Identities refuses to compare an id of a unit with anything but an id of the same kind: else an analyst could pick one person by a known
// id (D1). Numbers that change from one run to the next, the ends of ranges of units, identify nobody.
func Identities(l, r *Value) {
	nobodys := func(v *Value) bool { return v.Constant && (v.Opaque && !v.asked || v.Null) }
	if l.Ident != r.Ident && !nobodys(l) && !nobodys(r) {
		refuse("a unit's id compared with what is no id of the same kind of units")
	}
}

// Comparable refuses a value whose conversion for a comparison could raise an error. Times of different types are compared without one.
func (d *Terms) Comparable(v *Value, k Kind) {
	if v.Kind.IsTime() && k.IsTime() {
		return
	}
	d.Convert(d.Plain(v), k)
}

// Meet is the type in which two values are compared.
func (d *Terms) Meet(l, r *Value) Kind {
	k := Common(l.Kind, r.Kind)
	Identities(l, r)
	d.Comparable(l, k)
	d.Comparable(r, k)
	return k
}

// Cast derives an explicit cast.
func (d *Terms) Cast(v *Value, k Kind) *Value {
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

// Digits derives a cast to numeric(precision, scale).
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

// Text derives a value as text: one text for each representation of a value.
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
