package verify

import (
	"slices"

	"noisegate.example/sqlrewrite/verify/internal/value"
)

// both are the pairs of a row of each.
func (d *Proof) both(l, r *relation) *relation {
	both := &relation{solid: make(map[int]bool), tables: append(slices.Clone(l.tables), r.tables...)}
	both.columns = append(slices.Clone(l.columns), r.columns...)
	for _, x := range []*relation{l, r} {
		if len(x.parts) == 1 && len(x.whole) > 0 {
			p := *x.parts[0]
			p.number = d.Number()
			p.limits = append(slices.Clone(p.limits), x.whole...)
			x.parts = []*part{&p}
		} else if len(x.whole) > 0 {
			both.cuts = append(both.cuts, cut{x.parts, x.whole})
		}
		both.cuts = append(both.cuts, x.cuts...)
		both.parts = append(both.parts, x.parts...)
		both.edges = append(both.edges, x.edges...)
		both.outer = append(both.outer, x.outer...)
		both.units = append(both.units, x.units...)
		both.roots = append(both.roots, x.roots...)
		for id := range x.solid {
			both.solid[id] = true
		}
	}
	both.fixed = append(slices.Clone(l.fixed), r.fixed...)
	return both
}

// left is l LEFT JOIN r, of which on reads the condition into the pairs.
func (d *Proof) left(pairs, l, r *relation, on func()) *relation {
	owner := l.owner()
	before := &relation{solid: make(map[int]bool), units: slices.Clone(l.units), roots: slices.Clone(l.roots), fixed: slices.Clone(l.fixed),
		edges: append(slices.Clone(l.edges), r.edges...), parts: pairs.parts, cuts: pairs.cuts, tables: pairs.tables}
	for id := range l.solid {
		before.solid[id] = true
	}
	inLeft := make(knowledge)
	for _, c := range l.columns {
		inLeft.add(c.v.ID, false, true)
	}
	at, given := len(pairs.edges), len(pairs.fixed)
	on()
	if r.owner() != nil && r.owner() != owner {
		refuse("LEFT JOIN of rows that are not the left row's unit's own")
	}
	// The right row follows from the left one, not the other way round.
	for _, e := range pairs.edges[at:] {
		if d.determined(e.from, inLeft) && !d.determined(e.to, inLeft) {
			before.edges = append(before.edges, e)
		}
	}
	// Of the right rows that match, columns that ON sets equal to a constant, or to a value of an outer query, are fixed.
	for _, id := range pairs.fixed[given:] {
		if slices.ContainsFunc(r.parts, func(p *part) bool { return slices.Contains(p.ids, id) }) {
			before.fixed = append(before.fixed, id)
		}
	}
	before.columns = slices.Clone(l.columns)
	matched := outerJoin{left: l, right: r.parts, on: slices.Clone(pairs.edges[at:])}
	var ids []int
	for _, p := range append(slices.Clone(l.parts), r.parts...) {
		ids = append(ids, p.ids...)
	}
	for _, c := range r.columns {
		v := *c.v
		v.ID = d.Fresh(append([]int{c.v.ID}, ids...)...)
		v.Nulls, v.Strict, v.Constant, v.Opaque = []int{v.ID}, false, false, false
		v.Place, v.Running, v.Summed, v.Split = nil, nil, nil, nil
		d.Note(&v)
		before.columns = append(before.columns, named{c.table, c.name, &v})
		matched.shown = append(matched.shown, v.ID)
		matched.on = append(matched.on, edge{from: c.v.ID, to: v.ID}, edge{from: v.ID, to: c.v.ID})
	}
	before.outer = append(slices.Clone(pairs.outer), matched)
	return before
}

// of reports whether a unit is one of the rows'.
func (r *relation) of(u *value.Unit) bool {
	return slices.ContainsFunc(r.units, func(x *value.Unit) bool { return x.Find() == u })
}

// equal is l = r: both are not NULL, and each follows from the other.
func (r *relation) equal(l, c *value.Value, around []*relation) {
	for _, v := range []*value.Value{l, c} {
		if !v.Outer && !v.Constant {
			r.solid[v.ID] = true
		}
	}
	if (l.Kind != c.Kind || l.Kind == value.Char) && !(l.Kind.IsInteger() && c.Kind.IsInteger()) {
		if c.Constant != l.Constant {
			r.fix(l, c)
		}
		return
	}
	switch {
	case l.Constant || c.Constant:
		r.fix(l, c)
	case l.Outer && c.Outer:
	default:
		if l.Outer != c.Outer { // one value for each row of the outer query
			r.fixed = append(r.fixed, map[bool]int{true: c.ID, false: l.ID}[l.Outer])
		}
		if !l.Outer && !c.Outer {
			r.edges = append(r.edges, edge{from: l.ID, to: c.ID}, edge{from: c.ID, to: l.ID})
		}
		for _, a := range l.Anchors {
			for _, b := range c.Anchors {
				if a.Name == b.Name {
					r.merge(a.Of.Find(), b.Of.Find(), around)
				}
			}
		}
	}
}

// fix says that a value is equal to a constant, under an equality that tells its values apart as its own type does.
func (r *relation) fix(v, c *value.Value) {
	if v.Constant {
		v, c = c, v
	}
	if v.Constant || v.Outer {
		return
	}
	small := v.Kind == value.Int2 || v.Kind == value.Int4
	if v.Kind == c.Kind || v.Kind.IsInteger() && (c.Kind.IsInteger() || c.Kind == value.Numeric) ||
		v.Kind == value.Numeric && c.Kind.IsInteger() || small && c.Kind.IsFloat() {
		r.fixed = append(r.fixed, v.ID)
	}
}

// merge makes two units one. Those of an outer query stay as many as they are: an inner row has one of them.
func (r *relation) merge(a, b *value.Unit, around []*relation) {
	if a == b {
		return
	}
	mine := func(u *value.Unit) bool { return r.of(u) }
	outer := func(u *value.Unit) bool {
		return slices.ContainsFunc(around, func(r *relation) bool { return r.of(u) })
	}
	switch {
	case outer(a) && outer(b):
	case mine(a) && (mine(b) || outer(b)) && !outer(a):
		a.Into = b
	case mine(b) && outer(a):
		b.Into = a
	default:
		refuse("an equality of units that are elsewhere")
	}
}
