package value

import (
	"math/big"
	"slices"

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

// NullIf is NULLIF(l, r).
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

// computation is an operator on numbers.
type computation struct {
	within  func(a, b *Value) ranges.Span
	places  func(a, b int) int // digits after the point of an exact result; nil: it is rounded
	divides bool
}

var computations = map[string]computation{
	"+": {within: func(a, b *Value) ranges.Span { return a.Within.Plus(b.Within) }, places: func(a, b int) int { return max(a, b) }},
	"-": {within: func(a, b *Value) ranges.Span { return a.Within.Minus(b.Within) }, places: func(a, b int) int { return max(a, b) }},
	"*": {within: multiplied, places: func(a, b int) int { return a + b }},
	"/": {within: quotient, divides: true},
	"%": {within: remainder, places: func(a, b int) int { return max(a, b) }, divides: true},
}

// combine is an operator on tallies.
func (d *Terms) combine(op string, l, r *Value) *Value {
	a, b := l.Sum, r.Sum
	if l.Moved() || r.Moved() {
		refuse("a computation with an aggregate over many units")
	}
	switch {
	case a != nil && b != nil && (op == "+" || op == "-") && a.Of == b.Of && slices.Equal(a.Where, b.Where) && a.Share == nil &&
		b.Share == nil:
		t := &Tally{Of: a.Of, Where: a.Where, Each: a.Each.Plus(b.Each), Digits: unknownOr(a.Digits, b.Digits)}
		if op == "-" {
			t.Each = a.Each.Minus(b.Each)
		}
		return d.tallied(op, l, r, t)
	case op == "*" && (a == nil) != (b == nil):
		t, c := a, r
		if a == nil {
			t, c = b, l
		}
		factor := c.Number()
		if factor == nil || c.Kind.IsFloat() || t.Share != nil {
			break
		}
		digits := -1
		if t.Digits >= 0 {
			digits = t.Digits + max(c.Digits, 0)
			for digits > 0 && new(big.Rat).Mul(ranges.Ten(digits-1-t.Digits), factor).IsInt() { // 0.01 · 100 is a whole number
				digits--
			}
		}
		return d.tallied(op, l, r, &Tally{Of: t.Of, Where: t.Where, Each: t.Each.Times(ranges.Point(factor)), Digits: digits})
	}
	return d.arithmetic(op, d.Plain(l), d.Plain(r))
}

func (d *Terms) tallied(op string, l, r *Value, t *Tally) *Value {
	k := Common(l.Kind, r.Kind)
	v := d.Apply(k, op, l, r)
	v.Whole, v.Sum = true, t
	if a, b := l.places(), r.places(); a >= 0 && b >= 0 {
		if v.Scale = max(a, b); op == "*" {
			v.Scale = a + b
		}
	}
	v.Nulls = []int{v.ID}
	d.totals(v)
	if v.Within.Finite() && k == Int8 && !t.Each.Times(ranges.Of(0, t.Of.rows())).Inside(ranges.Int8) {
		refuse("a computation with sums that may leave bigint")
	}
	return v
}

// linear is trunc of a tally that is a whole number; other functions take tallies as numbers.
func (d *Terms) linear(name string, args []*Value) *Value {
	for i, a := range args {
		if a.Sum == nil {
			continue
		}
		if name == "trunc" && len(args) == 1 && a.Sum.Digits == 0 && a.Kind == Numeric && !a.Moved() {
			c := *a
			c.ID, c.Scale = d.Intern(name, a.ID), 0
			return &c
		}
		args[i] = d.Plain(a)
	}
	return nil
}
