package relation

import (
	"slices"

	"noisegate.example/sqlrewrite/verify/internal/value"
)

// Pairs gives the pairs of a row of each relation.
func (d *Proof) Pairs(l, r *Relation) *Relation {
	both := &Relation{Solid: make(map[int]bool), Tables: append(slices.Clone(l.Tables), r.Tables...)}
	both.Columns = append(slices.Clone(l.Columns), r.Columns...)
	for _, x := range []*Relation{l, r} {
		if len(x.Parts) == 1 && len(x.whole) > 0 {
			p := *x.Parts[0]
			p.number = d.Number()
			p.limits = append(slices.Clone(p.limits), x.whole...)
			x.Parts = []*part{&p}
		} else if len(x.whole) > 0 {
			both.cuts = append(both.cuts, cut{x.Parts, x.whole})
		}
		both.cuts = append(both.cuts, x.cuts...)
		both.Parts = append(both.Parts, x.Parts...)
		both.edges = append(both.edges, x.edges...)
		both.outer = append(both.outer, x.outer...)
		both.Units = append(both.Units, x.Units...)
		both.Roots = append(both.Roots, x.Roots...)
		for id := range x.Solid {
			both.Solid[id] = true
		}
	}
	both.fixed = append(slices.Clone(l.fixed), r.fixed...)
	both.Once = (l.Once || r.Once) && len(both.Units) == 0 // else MeetOnce has seen it
	return both
}

// LeftJoin derives l LEFT JOIN r; on reads its condition into the pairs.
func (d *Proof) LeftJoin(pairs, l, r *Relation, on func()) *Relation {
	owner := l.Owner()
	before := &Relation{Solid: make(map[int]bool), Units: slices.Clone(l.Units), Roots: slices.Clone(l.Roots), fixed: slices.Clone(l.fixed),
		edges: append(slices.Clone(l.edges), r.edges...), Parts: pairs.Parts, cuts: pairs.cuts, Tables: pairs.Tables, Once: pairs.Once}
	for id := range l.Solid {
		before.Solid[id] = true
	}
	inLeft := make(knowledge)
	for _, c := range l.Columns {
		inLeft.add(c.Value.ID, false, true)
	}
	at, given := len(pairs.edges), len(pairs.fixed)
	on()
	if r.Owner() != nil && r.Owner() != owner {
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
		if slices.ContainsFunc(r.Parts, func(p *part) bool { return slices.Contains(p.ids, id) }) {
			before.fixed = append(before.fixed, id)
		}
	}
	before.Columns = slices.Clone(l.Columns)
	matched := outerJoin{left: l, right: r.Parts, on: slices.Clone(pairs.edges[at:])}
	var ids []int
	for _, p := range append(slices.Clone(l.Parts), r.Parts...) {
		ids = append(ids, p.ids...)
	}
	for _, c := range r.Columns {
		v := *c.Value
		v.ID = d.Fresh(append([]int{c.Value.ID}, ids...)...)
		v.Nulls, v.Strict, v.Constant, v.Opaque = []int{v.ID}, false, false, false
		v.Place, v.Running, v.Summed, v.Split = nil, nil, nil, nil
		d.Note(&v)
		before.Columns = append(before.Columns, Column{c.Table, c.Name, &v})
		matched.shown = append(matched.shown, v.ID)
		matched.on = append(matched.on, edge{from: c.Value.ID, to: v.ID}, edge{from: v.ID, to: c.Value.ID})
	}
	before.outer = append(slices.Clone(pairs.outer), matched)
	return before
}

// MeetOnce refuses pairs of rows of people and of groups that PostgreSQL may compute anew for each row: where an equality of two columns
// pairs them, it hashes the rows of one side, and reads each side once.
func (d *Proof) MeetOnce(pairs, l, r *Relation) {
	if !(l.Once || r.Once) || len(l.Units)+len(r.Units) == 0 {
		return
	}
	has := func(r *Relation, id int) bool {
		return slices.ContainsFunc(r.Columns, func(c Column) bool { return c.Value.ID == id })
	}
	if !slices.ContainsFunc(pairs.edges, func(e edge) bool { return has(l, e.from) && has(r, e.to) }) {
		refuse("groups of public rows that no equality joins to rows of people")
	}
}

// of reports whether a unit is one of the rows'.
func (r *Relation) of(u *value.Unit) bool {
	return slices.ContainsFunc(r.Units, func(x *value.Unit) bool { return x.Find() == u })
}

// Equate notes l = r: both are not NULL, and each follows from the other.
func (r *Relation) Equate(l, c *value.Value, around []*Relation) {
	for _, v := range []*value.Value{l, c} {
		if !v.Outer && !v.Constant {
			r.Solid[v.ID] = true
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

// fix notes that a value equals a constant, under an equality that separates values as the value's type does.
func (r *Relation) fix(v, c *value.Value) {
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
func (r *Relation) merge(a, b *value.Unit, around []*Relation) {
	if a == b {
		return
	}
	mine := func(u *value.Unit) bool { return r.of(u) }
	outer := func(u *value.Unit) bool {
		return slices.ContainsFunc(around, func(r *Relation) bool { return r.of(u) })
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
