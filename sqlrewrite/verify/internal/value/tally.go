package value

import (
	"math/big"
	"slices"

	"noisegate.example/sqlrewrite/internal/steps"
	"noisegate.example/sqlrewrite/verify/internal/ranges"
)

// tally lies in each, times the rows of a group that meet where.
type Tally struct {
	Of     Group
	Where  []int        // sorted: conditions that every row which adds meets
	Each   ranges.Span  // what one row adds
	Digits int          // after the point; -1: unknown
	Count  bool         // each row adds 1
	Once   bool         // rows of one unit in one group add what one of them does
	Moves  *ranges.Span // of aggregates over pieces: what one unit adds to a group in all
	Share  *Share
	Row    *Value // what each row adds; nil: not known
}

// mostRows is more than one group of rows has.
const MostRows = 1 << 40

// group is the groups of one query.
type Group struct {
	Number  int
	Release bool // of rows of many units
}

// rows is how many a group has at most: those of one unit, or all.
func (g Group) rows() int64 {
	if g.Release {
		return MostRows
	}
	return 1 << 31
}

// moved reports whether a value is an aggregate over many units already.
func (v *Value) Moved() bool { return v.Sum != nil && v.Sum.Moves != nil }

// counted is count(...).
func (d *Terms) Counted(g Group, where []int) *Value {
	v := d.Make(Int8, d.Intern("count", append([]int{g.Number}, where...)...))
	v.Whole, v.Within = true, ranges.Of(0, MostRows)
	v.Sum = &Tally{Of: g, Where: where, Each: ranges.Point(ranges.One), Count: true}
	return v
}

// different is count(DISTINCT x); once: x follows from the unit.
func (d *Terms) Different(g Group, where []int, id int, once bool) *Value {
	v := d.Make(Int8, id)
	v.Whole, v.Within = true, ranges.Of(0, MostRows)
	v.Sum = &Tally{Of: g, Where: where, Each: ranges.Between(ranges.Zero, ranges.One), Once: once}
	return v
}

// summedOnce is sum(DISTINCT x): of as many terms as rows at most.
func (d *Terms) SummedOnce(g Group, where []int, x *Value, id int) *Value {
	v := d.Summed(g, where, x)
	v.ID, v.Nulls = id, []int{id}
	v.Sum = &Tally{Of: g, Each: x.Within.WithZero(), Where: where, Digits: x.Digits}
	return v
}

// summed is sum(x).
func (d *Terms) Summed(g Group, where []int, x *Value) *Value {
	k := Int8
	switch x.Kind {
	case Int2, Int4:
		if g.Release && !x.Within.Inside(ranges.Of(-1<<23, 1<<23)) {
			refuse("a sum of whole numbers that may leave bigint")
		}
	case Int8:
		k = Numeric
	case Numeric:
		k = Numeric
		if !x.Within.Inside(huge) && x.Scale < 0 {
			refuse("a sum of numerics without bounds")
		}
	default:
		refuse("a sum of a type that depends on the order of rows")
	}
	v := d.Make(k, d.Intern("sum", append([]int{g.Number, x.ID}, where...)...))
	v.Whole = true
	v.Nulls = []int{v.ID}
	v.Sum = &Tally{Of: g, Where: where, Each: x.Within, Digits: x.Digits, Share: x.Split, Row: x}
	d.totals(v)
	if k == Numeric && x.Kind == Numeric {
		v.Digits, v.Scale, v.Same = x.Digits, x.Scale, x.Scale >= 0
	} else if k == Numeric {
		v.Digits, v.Scale, v.Same = 0, 0, true
	}
	return v
}

// totals bounds a tally as a number.
func (d *Terms) totals(v *Value) {
	t := v.Sum
	if t.Each.Finite() {
		v.Within = t.Each.Times(ranges.Of(0, MostRows)).WithZero()
	} else {
		v.Within = ranges.Span{}
	}
	if v.Kind.IsInteger() {
		v.Within = v.Within.Meet(fits(v.Kind)) // it is of that type, or the sum left it: see grouping.go
	}
	v.Digits = t.Digits
	v.Nonzero = false
}

// plain is a tally as an ordinary value of a group, that remembers what it is.
func (d *Terms) Plain(v *Value) *Value {
	if v.Sum == nil {
		return v
	}
	if v.Moved() {
		refuse("a computation with an aggregate over many units")
	}
	c := *v
	c.Sum, c.Summed = nil, v.Sum
	if v.Sum.Share != nil {
		c.Summed = nil
	}
	return &c
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

// places are the digits after the point that all of a number's values are written with; -1: not known.
func (v *Value) places() int {
	if v.Kind.IsInteger() {
		return 0
	}
	return v.Scale
}

// cast converts a tally: a whole number stays one.
func (t *Tally) cast(d *Terms, v *Value, k kind) *Value {
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

func ClearTally(v *Value) *Value {
	c := *v
	c.Summed = nil
	return &c
}
