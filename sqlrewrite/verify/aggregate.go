package verify

import (
	"strconv"

	"noisegate.example/sqlrewrite/verify/internal/ranges"
)

// aggregates are the functions that are one: count and sum are tallies, and the rules of the others give what is known of a group's value.
var aggregates = map[string]function{
	"count":    {},
	"sum":      {},
	"avg":      taking("E", (*Terms).mean),
	"min":      taking("N t c d T", (*Terms).extreme),
	"max":      taking("N t c d T", (*Terms).extreme),
	"bool_or":  taking("b", (*Terms).extreme),
	"bool_and": taking("b", (*Terms).extreme),
}

// aggregated is the value of an aggregate that is neither count nor sum, of the values that an argument has in a group.
func (d *Terms) aggregated(name string, x *value) *value {
	v := aggregates[name].value(d, name, x)
	if v == nil {
		refuse("%s of this type", name)
	}
	return v
}

func isAggregate(name string) bool {
	_, is := aggregates[name]
	return is
}

// mean is avg: of whole numbers a quotient, whose digits are those of one by mostRows (arithmetic.go).
func (d *Terms) mean(_ string, args ...*value) *value {
	x := args[0]
	if x.kind == numeric && !x.within.Finite() && x.scale < 0 {
		refuse("avg of numerics without bounds")
	}
	v := d.make(numeric, x.id)
	if x.kind.isInteger() {
		v.digits = 24 + len(strconv.Itoa(mostRows))
	}
	v.within = x.within.Widened(ranges.Ten(-15))
	return v
}

// extreme is one of the values, or what all or one of them are.
func (d *Terms) extreme(_ string, args ...*value) *value {
	v := d.make(args[0].kind, args[0].id)
	d.like0(v, args[0])
	v.vague, v.collation = !v.same, args[0].collation
	return v
}
