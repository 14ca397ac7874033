package value

import (
	"noisegate.example/sqlrewrite/verify/internal/ranges"
)

// Tallies. Inside a group an aggregate is a tally: with k rows that meet certain conditions (FILTER, and that the argument is not NULL) it
// lies in k times a range, and so does what a unit's k rows move it by: a sum of one number for each row, or a count of distinct values
// (Lemma 4). Tallies over the same rows are added, and multiplied by constants, range by range: sum(x) - C·count(x) adds x - C for each
// row where x is not NULL. Casts and trunc keep a tally only where it is a whole number.

// Counted derives count(...).
func (d *Terms) Counted(g Group, where []int) *Value {
	v := d.Make(Int8, d.Intern("count", append([]int{g.Number}, where...)...))
	v.Whole, v.Within = true, ranges.Of(0, MostRows)
	v.Sum = &Tally{Of: g, Where: where, Each: ranges.Point(ranges.One), Count: true}
	return v
}

// Different derives count(DISTINCT x); once: x follows from the unit.
func (d *Terms) Different(g Group, where []int, id int, once bool) *Value {
	v := d.Make(Int8, id)
	v.Whole, v.Within = true, ranges.Of(0, MostRows)
	v.Sum = &Tally{Of: g, Where: where, Each: ranges.Between(ranges.Zero, ranges.One), Once: once}
	return v
}

// SummedOnce derives sum(DISTINCT x), which has at most as many terms as rows.
func (d *Terms) SummedOnce(g Group, where []int, x *Value, id int) *Value {
	v := d.Summed(g, where, x)
	v.ID, v.Nulls = id, []int{id}
	v.Sum = &Tally{Of: g, Each: x.Within.WithZero(), Where: where, Digits: x.Digits}
	return v
}

// Summed derives sum(x).
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

// Plain makes a tally an ordinary value of a group, which keeps the tally in Summed.
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
