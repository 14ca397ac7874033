package sqlrewrite

import (
	"fmt"
	"slices"

	"noisegate/catalog"
	"noisegate/sqlrewrite/syntax"
)

// PostgreSQL evaluates EXISTS and IN row by row, or makes a hash table of their rows for the first row that asks. So over rows of people, and over
// large public tables, they are printed as joins with different values, of which one at most is equal: inner ones where a row is left only if there
// is one, else outer ones, and the expression tests whether there was one. steady.go prints these joins, so that both sides are read.

// lifted is EXISTS or IN as a join.
type lifted struct {
	values *derived
	public bool   // over large public tables
	on     []expr // equalities of a value, on the left, and an expression of the rows around
	// Where other conditions than equalities tie the inner rows to those around, the values are those of rows around that have such an inner row.
	around []*field // of the rows around; nil: it is tied by equalities
	inner  exists
}

func (l *lifted) within(n fromItem) bool {
	if l.around != nil && unitIn(holding(n, l.around)) == nil {
		return false
	}
	return !slices.ContainsFunc(l.on, func(c expr) bool { return !readsWithin(c.(binary).r, n) })
}

// add makes an expression of the inner rows a value.
func (l *lifted) add(inner expr, like catalog.Column, unit bool) *field {
	q := l.values.parts[0]
	f := &field{Column: &like, printed: fmt.Sprintf("c%d", len(q.outputs)), unit: unit, relation: l.values.alias}
	q.outputs = append(q.outputs, inner)
	l.values.fields = append(l.values.fields, f)
	return f
}

// tie makes a value of the inner rows equal to an expression of the rows around.
func (l *lifted) tie(inner expr, like catalog.Column, unit bool, outer expr) {
	f := l.add(inner, like, unit)
	l.on = append(l.on, binary{op: syntax.Eq, l: column{of: f}, r: outer, t: catalog.Bool})
}

// semijoins makes joins of EXISTS and IN.
func (p *printer) semijoins(n fromItem, where expr) (fromItem, expr) {
	var rest []expr
	var inner []*lifted
	conditions := boundConjuncts(where)
	n = p.liftOn(n, &conditions)
	for _, c := range conditions {
		switch l := p.asJoin(c); {
		case l != nil && l.within(n):
			inner = append(inner, l)
			continue
		case !isJoin(c) || isNegated(c):
			p.liftAll(c, n)
		}
		rest = append(rest, c)
	}
	bare := n // the values of rows around are those of rows that no such join has left out
	for _, l := range inner {
		l.reads(bare)
		n = &joined{kind: syntax.InnerJoin, left: n, right: l.values, on: all(l.on), semi: true, public: l.public}
	}
	return p.found(n, bare), all(rest)
}

// found joins an item with the values that wait for it; bare is the item without other such joins.
func (p *printer) found(n, bare fromItem) fromItem {
	waiting := p.lifts
	p.lifts = nil
	for _, l := range waiting {
		if l.within(bare) {
			l.reads(bare)
			n = &joined{kind: syntax.LeftJoin, left: n, right: l.values, on: all(l.on), semi: true, public: l.public}
		} else {
			p.lifts = append(p.lifts, l)
		}
	}
	return n
}

// liftOn makes joins of EXISTS and IN in the conditions of joins. Those of inner joins become conditions of WHERE; where that is nil, an outer join is
// around. Those of outer joins are found beside one of the sides, else they stay what they are.
func (p *printer) liftOn(n fromItem, where *[]expr) fromItem {
	if c, ok := n.(*rowCap); ok && !c.active() {
		return p.liftOn(c.of, where)
	}
	j, ok := n.(*joined)
	if !ok {
		return n
	}
	out, inside := *j, where
	if j.kind == syntax.LeftJoin || j.kind == syntax.FullJoin {
		inside = nil
	}
	out.left, out.right = p.liftOn(j.left, inside), p.liftOn(j.right, inside)
	var on []expr
	for _, c := range boundConjuncts(j.on) {
		switch {
		case !hasQuery(c):
		case inside != nil:
			*inside = append(*inside, c)
			continue
		default:
			p.liftAll(c, out.left)
			out.left = p.found(out.left, j.left)
			p.liftAll(c, out.right)
			out.right = p.found(out.right, j.right)
			p.settle(c)
		}
		on = append(on, c)
	}
	out.on = all(on)
	return &out
}

// hasQuery reports whether there is EXISTS or IN (query) in an expression.
func hasQuery(e expr) bool {
	if e == nil {
		return false
	}
	return isQuery(e) || slices.ContainsFunc(children(e), hasQuery)
}

func isQuery(e expr) bool {
	switch e.(type) {
	case exists, inRows:
		return true
	default:
		return false
	}
}

// settle says that what has not become a join in an expression does not.
func (p *printer) settle(e expr) {
	if p.stays == nil {
		p.stays = map[fromItem]bool{}
	}
	switch e := e.(type) {
	case exists:
		p.stays[e.from] = true
	case inRows:
		p.stays[e.from] = true
		if spelled := p.spells[e.from]; spelled != nil {
			p.settle(spelled)
		}
	}
	for _, c := range children(e) {
		p.settle(c)
	}
}

func isNegated(e expr) bool {
	_, ok := e.(not)
	return ok
}

// lift makes a join of EXISTS or IN that stands for a value; nil where it cannot. It is TRUE where the join found a row.
func (p *printer) lift(e expr) *field {
	if p.inline || p.identity || p.structure != nil || p.fixed > 0 {
		return nil
	}
	var at fromItem
	switch e := e.(type) {
	case exists:
		at = e.from
	case inRows:
		if !e.neverNull() {
			return nil
		}
		at = e.from
	}
	l := p.asJoins[at]
	if l == nil {
		if p.stays[at] {
			return nil
		}
		if l = p.asJoin(e); l == nil {
			return nil
		}
		if p.asJoins == nil {
			p.asJoins = map[fromItem]*lifted{}
		}
		p.asJoins[at] = l
		p.lifts = append(p.lifts, l)
		p.adds()
	}
	return l.values.fields[0]
}

// liftAll lifts what stands in an expression over an item.
func (p *printer) liftAll(e expr, n fromItem) {
	switch e := e.(type) {
	case nil:
		return
	case exists:
		if l := p.asJoin(e); l != nil && l.within(n) {
			p.lift(e)
		}
	case inRows:
		if !e.neverNull() {
			p.liftAll(p.spelled(e), n)
		} else if l := p.asJoin(e); l != nil && l.within(n) {
			p.lift(e)
		}
	}
	for _, c := range children(e) {
		p.liftAll(c, n)
	}
}

// hasLifted reports whether an expression tests what a join found.
func (p *printer) hasLifted(e expr) bool {
	switch e := e.(type) {
	case exists:
		return p.asJoins[e.from] != nil
	case inRows:
		return p.asJoins[e.from] != nil || p.hasLifted(p.spells[e.from])
	case nil:
		return false
	}
	return slices.ContainsFunc(children(e), p.hasLifted)
}

// asJoin is EXISTS or IN over rows of people, or of large public tables, as a join; nil for all else.
func (p *printer) asJoin(c expr) *lifted {
	var e exists
	switch c := c.(type) {
	case exists:
		e = c
	case inRows:
		e = c.asExists()
	default:
		return nil
	}
	if !e.of.owned() && !large(e.from) {
		return nil
	}
	l := p.tied(e)
	if l == nil {
		l = p.paired(e)
	}
	if l != nil {
		l.public = !e.of.owned()
	}
	return l
}

// asExists is IN as EXISTS: they are the same where IN is not NULL.
func (e inRows) asExists() exists {
	where := boundConjuncts(e.where)
	for i, x := range e.x {
		where = append(where, binary{op: syntax.Eq, l: column{of: e.outputs[i]}, r: x, t: catalog.Bool})
	}
	return exists{of: e.of, from: e.from, where: all(where)}
}

// mayBeNull are the places at which IN compares what may be NULL: what links the rows of one unit is there (linkedRows).
func (e inRows) mayBeNull() []int {
	var places []int
	for i, x := range e.x {
		y := e.outputs[i]
		there := slices.ContainsFunc(boundConjuncts(e.where), func(c expr) bool {
			t, ok := c.(is)
			return ok && t.what == syntax.IsNull && t.not && plainField(t.x) == y
		})
		f := plainField(x)
		sure := f != nil && (f.NotNull || f.present || there && y.identity())
		if !sure || !there && !y.NotNull {
			places = append(places, i)
		}
	}
	return places
}

// neverNull reports whether IN is TRUE or FALSE on each row that counts.
func (e inRows) neverNull() bool { return len(e.mayBeNull()) == 0 }

// mostSpelled is at how many places IN may compare what may be NULL to be said by EXISTS: there are up to 3 of these for each.
const mostSpelled = 2

// spelled is IN said by EXISTS over equalities: TRUE where there is an equal row, else NULL where there is one that is equal at some places, and at each
// of the others one of both is NULL, else FALSE. It is nil where all that is too much, or nothing would be a join.
func (p *printer) spelled(e inRows) expr {
	if known, ok := p.spells[e.from]; ok {
		return known
	}
	if p.spells == nil {
		p.spells = map[fromItem]expr{}
	}
	p.spells[e.from] = nil
	places := e.mayBeNull()
	if p.inline || p.identity || p.structure != nil || p.fixed > 0 || len(places) > mostSpelled || p.asJoin(e) == nil {
		return nil
	}
	there := func(outer, inner []expr) expr {
		return all(append(outer, exists{of: e.of, from: &rowCap{of: e.from}, where: all(append(boundConjuncts(e.where), inner...))}))
	}
	equal := func(i int) expr {
		return binary{op: syntax.Eq, l: column{of: e.outputs[i]}, r: e.x[i], t: catalog.Bool}
	}
	var sure []expr
	for i := range e.x {
		if !slices.Contains(places, i) {
			sure = append(sure, equal(i))
		}
	}
	found := slices.Clone(sure)
	for _, i := range places {
		found = append(found, equal(i))
	}
	var unknown expr
	ways := 1
	for range places {
		ways *= 3
	}
	for way := 1; way < ways; way++ { // 0 is found
		var outer []expr
		inner := slices.Clone(sure)
		for rest, at := way, 0; at < len(places); rest, at = rest/3, at+1 {
			switch i := places[at]; rest % 3 {
			case 0:
				inner = append(inner, equal(i))
			case 1:
				inner = append(inner, is{x: column{of: e.outputs[i]}, what: syntax.IsNull})
			default:
				outer = append(outer, is{x: e.x[i], what: syntax.IsNull})
			}
		}
		if unknown == nil {
			unknown = there(outer, inner)
		} else {
			unknown = binary{op: syntax.Or, l: unknown, r: there(outer, inner), t: catalog.Bool}
		}
	}
	p.spells[e.from] = choice{arms: []arm{{cond: there(nil, found), result: boolean(true)}, {cond: unknown, result: constant{null: true, t: catalog.Bool}}},
		otherwise: boolean(false), t: catalog.Bool}
	return p.spells[e.from]
}

func boolean(b bool) constant { return constant{text: fmt.Sprint(b), t: catalog.Bool} }

// newLifted begins a join.
func (p *printer) newLifted() *lifted {
	p.semis++
	values := &derived{parts: []*rowQuery{{distinct: true}}}
	values.alias = fmt.Sprintf("e%d", p.semis)
	return &lifted{values: values}
}

// tied is EXISTS whose rows equalities alone tie to the rows around.
func (p *printer) tied(e exists) *lifted {
	from := e.from
	if c, ok := from.(*rowCap); ok {
		if c.active() {
			return nil
		}
		from = c.of
	}
	var inner, there []expr // a row whose value is NULL is equal to none
	var fields []*field
	var outer [][2]expr
	for _, x := range boundConjuncts(e.where) {
		in, out, equal := isEquality(x, from)
		switch {
		case equal && plainField(in) != nil && sameEquality(in.typ(), out.typ()):
			outer = append(outer, [2]expr{in, out})
			if f := plainField(in); !slices.Contains(fields, f) {
				fields, there = append(fields, f), append(there, is{x: in, what: syntax.IsNull, not: true})
			}
		case readsOnly(x, from):
			inner = append(inner, x)
		default:
			return nil
		}
	}
	l := p.newLifted()
	if len(outer) == 0 { // of public rows: TRUE, if there is any
		l.tie(boolean(true), catalog.Column{Type: catalog.Bool, TypMod: -1, NotNull: true}, false, boolean(true))
	}
	for _, f := range fields {
		l.add(column{of: f}, *f.Column, f.unit)
	}
	for _, o := range outer {
		f := l.values.fields[slices.Index(fields, plainField(o[0]))]
		l.on = append(l.on, binary{op: syntax.Eq, l: column{of: f}, r: o[1], t: catalog.Bool})
	}
	q := l.values.parts[0]
	q.from, q.where = from, all(append(inner, there...))
	return l
}

// paired is EXISTS whose rows one equality at least and other conditions tie to the rows around. Whether there is a row is a function of the fields
// that the conditions read of those around: so the join is one with the values of these fields for which there is one.
func (p *printer) paired(e exists) *lifted {
	around := freeFields(e.where, e.from)
	linked := slices.ContainsFunc(boundConjuncts(e.where), func(x expr) bool {
		in, out, equal := isEquality(x, e.from)
		return equal && plainField(in) != nil && plainField(out) != nil && sameEquality(in.typ(), out.typ())
	})
	if !linked || slices.ContainsFunc(around, func(f *field) bool { return f.Type == intervalType }) {
		return nil
	}
	l := p.newLifted()
	l.around, l.inner = around, e
	for _, f := range around {
		x := column{of: f}
		if f.NotNull || f.present || failsOnNull(e.where, f) {
			l.tie(x, *f.Column, f.unit, x)
			continue
		}
		null := is{x: x, what: syntax.IsNull}
		text := call{name: "coalesce", args: []expr{cast{x: x, t: catalog.Text}, constant{t: catalog.Text}}, t: catalog.Text}
		l.tie(null, catalog.Column{Type: catalog.Bool, TypMod: -1, NotNull: true}, false, null)
		l.tie(text, catalog.Column{Type: catalog.Text, TypMod: -1, NotNull: true}, false, text)
	}
	return l
}

// reads says of which rows around the values are: of those that FROM has before any condition.
func (l *lifted) reads(n fromItem) {
	if l.around == nil {
		return
	}
	at := holding(n, l.around)
	var link, rest []expr
	for _, x := range boundConjuncts(l.inner.where) {
		if in, out, equal := isEquality(x, l.inner.from); equal && plainField(in) != nil && readsOnly(out, at) {
			link = append(link, x)
		} else {
			rest = append(rest, x)
		}
	}
	if unit := unitIn(at); !l.inner.of.owned() && !slices.Contains(l.around, unit) { // whose the values are
		l.tie(column{of: unit}, *unit.Column, true, column{of: unit})
	}
	q := l.values.parts[0]
	q.from, q.where = &joined{kind: syntax.InnerJoin, left: at, right: l.inner.from, on: all(link), semi: true, public: l.public}, all(rest)
}

// holding is the smallest part of an item that has some fields.
func holding(n fromItem, fields []*field) fromItem {
	j, ok := n.(*joined)
	if !ok {
		if c, ok := n.(*rowCap); ok && !c.active() {
			return holding(c.of, fields)
		}
		return n
	}
	for _, side := range []fromItem{j.left, j.right} {
		if !slices.ContainsFunc(fields, func(f *field) bool { return !holds(side, f) }) && unitIn(side) != nil {
			return holding(side, fields)
		}
	}
	return n
}

// freeFields are the fields that a condition on an item's rows reads of rows around it.
func freeFields(e expr, inside ...fromItem) []*field {
	var all []*field
	add := func(more []*field) {
		for _, f := range more {
			if !slices.Contains(all, f) {
				all = append(all, f)
			}
		}
	}
	switch e := e.(type) {
	case nil:
	case column:
		if !slices.ContainsFunc(inside, func(n fromItem) bool { return holds(n, e.of) }) {
			add([]*field{e.of})
		}
	case exists:
		add(freeFields(e.where, append(slices.Clone(inside), e.from)...))
	case inRows:
		add(freeFields(e.where, append(slices.Clone(inside), e.from)...))
	}
	if e != nil {
		for _, c := range children(e) {
			add(freeFields(c, inside...))
		}
	}
	return all
}

// failsOnNull reports whether a condition is true of no row where a field is NULL: a comparison of it is among its conjuncts.
func failsOnNull(where expr, f *field) bool {
	return slices.ContainsFunc(boundConjuncts(where), func(c expr) bool {
		b, ok := c.(binary)
		return ok && isComparison(b.op) && (plainField(b.l) == f || plainField(b.r) == f)
	})
}
