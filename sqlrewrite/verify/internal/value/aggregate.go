package value

import (
	"strconv"

	"noisegate.example/sqlrewrite/verify/internal/ranges"
)

// aggregates are the aggregate functions: count and sum are tallies, and the rules of the others derive a group's value.
var aggregates = map[string]function{
	"count":    {},
	"sum":      {},
	"avg":      taking("E", (*Terms).mean),
	"min":      taking("N t c d T", (*Terms).extreme),
	"max":      taking("N t c d T", (*Terms).extreme),
	"bool_or":  taking("b", (*Terms).extreme),
	"bool_and": taking("b", (*Terms).extreme),
}

// Aggregated derives an aggregate other than count and sum, over the values that an argument has in a group.
func (d *Terms) Aggregated(name string, x *Value) *Value {
	v := aggregates[name].value(d, name, x)
	if v == nil {
		refuse("%s of this type", name)
	}
	return v
}

// IsAggregate reports whether a function is an aggregate that is taken.
func IsAggregate(name string) bool {
	_, is := aggregates[name]
	return is
}

// mean derives avg: for whole numbers a quotient, with the digits of a quotient by MostRows (arithmetic.go).
func (d *Terms) mean(_ string, args ...*Value) *Value {
	x := args[0]
	if x.Kind == Numeric && !x.Within.Finite() && x.Scale < 0 {
		refuse("avg of numerics without bounds")
	}
	v := d.Make(Numeric, x.ID)
	if x.Kind.IsInteger() {
		v.Digits = 24 + len(strconv.Itoa(MostRows))
	}
	v.Within = x.Within.Widened(ranges.Ten(-15))
	return v
}

// extreme derives min and max, which give one of the values, and bool_or and bool_and.
func (d *Terms) extreme(_ string, args ...*Value) *Value {
	v := d.Make(args[0].Kind, args[0].ID)
	d.Bounded(v, args[0])
	v.Vague, v.Collation = !v.Same, args[0].Collation
	return v
}
