package verify

import (
	"math/big"
	"slices"

	"noisegate.example/sqlrewrite/internal/steps"
	"noisegate.example/sqlrewrite/verify/internal/ranges"
)

// tally lies in each, times the rows of a group that meet where.
type tally struct {
	of     group
	where  []int        // sorted: conditions that every row which adds meets
	each   ranges.Span  // what one row adds
	digits int          // after the point; -1: unknown
	count  bool         // each row adds 1
	once   bool         // rows of one unit in one group add what one of them does
	moves  *ranges.Span // of aggregates over pieces: what one unit adds to a group in all
	share  *share
	row    *value // what each row adds; nil: not known
}

// mostRows is more than one group of rows has.
const mostRows = 1 << 40

// group is the groups of one query.
type group struct {
	number  int
	release bool // of rows of many units
}

// rows is how many a group has at most: those of one unit, or all.
func (g group) rows() int64 {
	if g.release {
		return mostRows
	}
	return 1 << 31
}

// moved reports whether a value is an aggregate over many units already.
func (v *value) moved() bool { return v.terms != nil && v.terms.moves != nil }

// counted is count(...).
func (d *Terms) counted(g group, where []int) *value {
	v := d.make(int8, d.intern("count", append([]int{g.number}, where...)...))
	v.whole, v.within = true, ranges.Of(0, mostRows)
	v.terms = &tally{of: g, where: where, each: ranges.Point(ranges.One), count: true}
	return v
}

// different is count(DISTINCT x); once: x follows from the unit.
func (d *Terms) different(g group, where []int, id int, once bool) *value {
	v := d.make(int8, id)
	v.whole, v.within = true, ranges.Of(0, mostRows)
	v.terms = &tally{of: g, where: where, each: ranges.Between(ranges.Zero, ranges.One), once: once}
	return v
}

// summedOnce is sum(DISTINCT x): of as many terms as rows at most.
func (d *Terms) summedOnce(g group, where []int, x *value, id int) *value {
	v := d.summed(g, where, x)
	v.id, v.nulls = id, []int{id}
	v.terms = &tally{of: g, each: x.within.WithZero(), where: where, digits: x.digits}
	return v
}

// summed is sum(x).
func (d *Terms) summed(g group, where []int, x *value) *value {
	k := int8
	switch x.kind {
	case int2, int4:
		if g.release && !x.within.Inside(ranges.Of(-1<<23, 1<<23)) {
			refuse("a sum of whole numbers that may leave bigint")
		}
	case int8:
		k = numeric
	case numeric:
		k = numeric
		if !x.within.Inside(huge) && x.scale < 0 {
			refuse("a sum of numerics without bounds")
		}
	default:
		refuse("a sum of a type that depends on the order of rows")
	}
	v := d.make(k, d.intern("sum", append([]int{g.number, x.id}, where...)...))
	v.whole = true
	v.nulls = []int{v.id}
	v.terms = &tally{of: g, where: where, each: x.within, digits: x.digits, share: x.split, row: x}
	d.totals(v)
	if k == numeric && x.kind == numeric {
		v.digits, v.scale, v.same = x.digits, x.scale, x.scale >= 0
	} else if k == numeric {
		v.digits, v.scale, v.same = 0, 0, true
	}
	return v
}

// totals bounds a tally as a number.
func (d *Terms) totals(v *value) {
	t := v.terms
	if t.each.Finite() {
		v.within = t.each.Times(ranges.Of(0, mostRows)).WithZero()
	} else {
		v.within = ranges.Span{}
	}
	if v.kind.isInteger() {
		v.within = v.within.Meet(fits(v.kind)) // it is of that type, or the sum left it: see grouping.go
	}
	v.digits = t.digits
	v.nonzero = false
}

// plain is a tally as an ordinary value of a group, that remembers what it is.
func (d *Terms) plain(v *value) *value {
	if v.terms == nil {
		return v
	}
	if v.moved() {
		refuse("a computation with an aggregate over many units")
	}
	c := *v
	c.terms, c.tallied = nil, v.terms
	if v.terms.share != nil {
		c.tallied = nil
	}
	return &c
}

// combine is an operator on tallies.
func (d *Terms) combine(op string, l, r *value) *value {
	a, b := l.terms, r.terms
	if l.moved() || r.moved() {
		refuse("a computation with an aggregate over many units")
	}
	switch {
	case a != nil && b != nil && (op == "+" || op == "-") && a.of == b.of && slices.Equal(a.where, b.where) && a.share == nil &&
		b.share == nil:
		t := &tally{of: a.of, where: a.where, each: a.each.Plus(b.each), digits: unknownOr(a.digits, b.digits)}
		if op == "-" {
			t.each = a.each.Minus(b.each)
		}
		return d.tallied(op, l, r, t)
	case op == "*" && (a == nil) != (b == nil):
		t, c := a, r
		if a == nil {
			t, c = b, l
		}
		factor := c.number()
		if factor == nil || c.kind.isFloat() || t.share != nil {
			break
		}
		digits := -1
		if t.digits >= 0 {
			digits = t.digits + max(c.digits, 0)
			for digits > 0 && new(big.Rat).Mul(ranges.Ten(digits-1-t.digits), factor).IsInt() { // 0.01 · 100 is a whole number
				digits--
			}
		}
		return d.tallied(op, l, r, &tally{of: t.of, where: t.where, each: t.each.Times(ranges.Point(factor)), digits: digits})
	}
	return d.arithmetic(op, d.plain(l), d.plain(r))
}

func (d *Terms) tallied(op string, l, r *value, t *tally) *value {
	k := common(l.kind, r.kind)
	v := d.apply(k, op, l, r)
	v.whole, v.terms = true, t
	if a, b := l.places(), r.places(); a >= 0 && b >= 0 {
		if v.scale = max(a, b); op == "*" {
			v.scale = a + b
		}
	}
	v.nulls = []int{v.id}
	d.totals(v)
	if v.within.Finite() && k == int8 && !t.each.Times(ranges.Of(0, t.of.rows())).Inside(ranges.Int8) {
		refuse("a computation with sums that may leave bigint")
	}
	return v
}

// places are the digits after the point that all of a number's values are written with; -1: not known.
func (v *value) places() int {
	if v.kind.isInteger() {
		return 0
	}
	return v.scale
}

// cast converts a tally: a whole number stays one.
func (t *tally) cast(d *Terms, v *value, k kind) *value {
	defer steps.Visit(d.steps).Leave()
	if t.moves == nil && (v.kind == numeric || v.kind.isInteger()) && (k == numeric || k == int8) && t.digits == 0 {
		if k == int8 && v.kind == numeric && !t.each.Times(ranges.Of(0, t.of.rows())).Inside(ranges.Int8) {
			refuse("a sum that may leave bigint")
		}
		if k == v.kind {
			return v
		}
		c := *v
		c.id, c.kind = d.intern("to:"+kindName(k), v.id), k
		d.totals(&c)
		return &c
	}
	p := d.plain(v)
	p.terms = nil
	if k.isNumber() && k > p.kind {
		return d.convert(p, k)
	}
	return d.cast(p, k)
}

// orZero is COALESCE(tally, 0): NULL only where no row adds.
func (t *tally) orZero(d *Terms, v *value) *value {
	c := *v
	c.id, c.nulls = d.intern("orZero", v.id), nil
	return &c
}

// linear is trunc of a tally that is a whole number; other functions take tallies as numbers.
func (d *Terms) linear(name string, args []*value) *value {
	for i, a := range args {
		if a.terms == nil {
			continue
		}
		if name == "trunc" && len(args) == 1 && a.terms.digits == 0 && a.kind == numeric && !a.moved() {
			c := *a
			c.id, c.scale = d.intern(name, a.id), 0
			return &c
		}
		args[i] = d.plain(a)
	}
	return nil
}

func clearTally(v *value) *value {
	c := *v
	c.tallied = nil
	return &c
}
