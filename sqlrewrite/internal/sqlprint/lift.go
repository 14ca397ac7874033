package sqlprint

import (
	"fmt"
	"slices"

	"noisegate/catalog"
	"noisegate/sqlrewrite/internal/algebra"
	"noisegate/sqlrewrite/internal/scalar"
	"noisegate/sqlrewrite/internal/stability"
	"noisegate/sqlrewrite/syntax"
)

// PostgreSQL evaluates EXISTS and IN row by row, or makes a hash table of their rows for the first row that asks. So over rows of people,
// and over large public tables, they are printed as joins with different values, of which one at most is equal: inner ones where a row is
// left only if there is one, else outer ones, and the expression tests whether there was one. steady.go prints these joins, so that both
// sides are read.

// lifted is EXISTS or IN as a join.
type lifted struct {
	values *algebra.Derived
	public bool           // over large public tables
	on     []algebra.Expr // equalities of a value, on the left, and an expression of the rows around
	// Where other conditions than equalities tie the inner rows to those around, the values are those of rows around that have such an inner
	// row.
	around []*algebra.Field // of the rows around; nil: it is tied by equalities
	inner  algebra.Exists
}

func (l *lifted) within(n algebra.FromItem) bool {
	if l.around != nil && unitIn(holding(n, l.around)) == nil {
		return false
	}
	return !slices.ContainsFunc(l.on, func(c algebra.Expr) bool { return !stability.ReadsWithin(c.(algebra.Binary).R, n) })
}

// add makes an expression of the inner rows a value.
func (l *lifted) add(inner algebra.Expr, like catalog.Column, unit bool) *algebra.Field {
	q := l.values.Parts[0]
	f := &algebra.Field{Column: &like, Printed: fmt.Sprintf("c%d", len(q.Outputs)), Unit: unit, Relation: l.values.Alias}
	q.Outputs = append(q.Outputs, algebra.Output{Expr: inner})
	l.values.Fields = append(l.values.Fields, f)
	return f
}

// tie makes a value of the inner rows equal to an expression of the rows around.
func (l *lifted) tie(inner algebra.Expr, like catalog.Column, unit bool, outer algebra.Expr) {
	f := l.add(inner, like, unit)
	l.on = append(l.on, algebra.Binary{Op: syntax.Eq, L: algebra.Column{Of: f}, R: outer, T: catalog.Bool})
}

// semijoins makes joins of EXISTS and IN.
func (p *Printer) semijoins(n algebra.FromItem, where algebra.Expr) (algebra.FromItem, algebra.Expr) {
	var rest []algebra.Expr
	var inner []*lifted
	conditions := algebra.BoundConjuncts(where)
	n = p.liftOn(n, &conditions)
	for _, c := range conditions {
		switch l := p.asJoin(c); {
		case l != nil && l.within(n):
			inner = append(inner, l)
			continue
		case !stability.IsJoin(c) || isNegated(c):
			p.liftAll(c, n)
		}
		rest = append(rest, c)
	}
	bare := n // the values of rows around are those of rows that no such join has left out
	for _, l := range inner {
		l.reads(bare)
		n = &algebra.Joined{Kind: syntax.InnerJoin, Left: n, Right: l.values, On: algebra.All(l.on), Semi: true, Public: l.public}
	}
	return p.found(n, bare), algebra.All(rest)
}

// found joins an item with the values that wait for it; bare is the item without other such joins.
func (p *Printer) found(n, bare algebra.FromItem) algebra.FromItem {
	waiting := p.lifts
	p.lifts = nil
	for _, l := range waiting {
		if l.within(bare) {
			l.reads(bare)
			n = &algebra.Joined{Kind: syntax.LeftJoin, Left: n, Right: l.values, On: algebra.All(l.on), Semi: true, Public: l.public}
		} else {
			p.lifts = append(p.lifts, l)
		}
	}
	return n
}

// liftOn makes joins of EXISTS and IN in the conditions of joins. Those of inner joins become conditions of WHERE; where that is nil, an
// outer join is around. Those of outer joins are found beside one of the sides, else they stay what they are.
func (p *Printer) liftOn(n algebra.FromItem, where *[]algebra.Expr) algebra.FromItem {
	if c, ok := n.(*algebra.RowCap); ok && !c.Active() {
		return p.liftOn(c.Of, where)
	}
	j, ok := n.(*algebra.Joined)
	if !ok {
		return n
	}
	out, inside := *j, where
	if j.Kind == syntax.LeftJoin || j.Kind == syntax.FullJoin {
		inside = nil
	}
	out.Left, out.Right = p.liftOn(j.Left, inside), p.liftOn(j.Right, inside)
	var on []algebra.Expr
	for _, c := range algebra.BoundConjuncts(j.On) {
		switch {
		case !hasQuery(c):
		case inside != nil:
			*inside = append(*inside, c)
			continue
		default:
			p.liftAll(c, out.Left)
			out.Left = p.found(out.Left, j.Left)
			p.liftAll(c, out.Right)
			out.Right = p.found(out.Right, j.Right)
			p.settle(c)
		}
		on = append(on, c)
	}
	out.On = algebra.All(on)
	return &out
}

// hasQuery reports whether there is EXISTS or IN (query) in an expression.
func hasQuery(e algebra.Expr) bool {
	if e == nil {
		return false
	}
	return stability.IsQuery(e) || slices.ContainsFunc(algebra.Children(e), hasQuery)
}

// settle says that what has not become a join in an expression does not.
func (p *Printer) settle(e algebra.Expr) {
	if p.stays == nil {
		p.stays = map[algebra.FromItem]bool{}
	}
	switch e := e.(type) {
	case algebra.Exists:
		p.stays[e.From] = true
	case algebra.InRows:
		p.stays[e.From] = true
		if spelled := p.spells[e.From]; spelled != nil {
			p.settle(spelled)
		}
	}
	for _, c := range algebra.Children(e) {
		p.settle(c)
	}
}

func isNegated(e algebra.Expr) bool {
	_, ok := e.(algebra.Not)
	return ok
}

// lift makes a join of EXISTS or IN that stands for a value; nil where it cannot. It is TRUE where the join found a row.
func (p *Printer) lift(e algebra.Expr) *algebra.Field {
	if p.inline || p.Identity || p.structure != nil || p.fixed > 0 {
		return nil
	}
	var at algebra.FromItem
	switch e := e.(type) {
	case algebra.Exists:
		at = e.From
	case algebra.InRows:
		if !e.NeverNull() {
			return nil
		}
		at = e.From
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
			p.asJoins = map[algebra.FromItem]*lifted{}
		}
		p.asJoins[at] = l
		p.lifts = append(p.lifts, l)
		p.adds()
	}
	return l.values.Fields[0]
}

// liftAll lifts what stands in an expression over an item.
func (p *Printer) liftAll(e algebra.Expr, n algebra.FromItem) {
	switch e := e.(type) {
	case nil:
		return
	case algebra.Exists:
		if l := p.asJoin(e); l != nil && l.within(n) {
			p.lift(e)
		}
	case algebra.InRows:
		if !e.NeverNull() {
			p.liftAll(p.spelled(e), n)
		} else if l := p.asJoin(e); l != nil && l.within(n) {
			p.lift(e)
		}
	}
	for _, c := range algebra.Children(e) {
		p.liftAll(c, n)
	}
}

// hasLifted reports whether an expression tests what a join found.
func (p *Printer) hasLifted(e algebra.Expr) bool {
	switch e := e.(type) {
	case algebra.Exists:
		return p.asJoins[e.From] != nil
	case algebra.InRows:
		return p.asJoins[e.From] != nil || p.hasLifted(p.spells[e.From])
	case nil:
		return false
	}
	return slices.ContainsFunc(algebra.Children(e), p.hasLifted)
}

// asJoin is EXISTS or IN over rows of people, or of large public tables, as a join; nil for all else.
func (p *Printer) asJoin(c algebra.Expr) *lifted {
	var e algebra.Exists
	switch c := c.(type) {
	case algebra.Exists:
		e = c
	case algebra.InRows:
		e = c.AsExists()
	default:
		return nil
	}
	if !e.Of.Owned() && !stability.Large(e.From) {
		return nil
	}
	l := p.tied(e)
	if l == nil && !p.unpaired {
		l = p.paired(e)
		p.pairings = p.pairings || l != nil
	}
	if l != nil {
		l.public = !e.Of.Owned()
	}
	return l
}

// mostSpelled is at how many places IN may compare what may be NULL to be said by EXISTS: there are up to 3 of these for each.
const mostSpelled = 3

// spelled is IN said by EXISTS over equalities: TRUE where there is an equal row, else NULL where there is one that is equal at some
// places, and at each of the others one of both is NULL, else FALSE. It is nil where all that is too much, or nothing would be a join.
func (p *Printer) spelled(e algebra.InRows) algebra.Expr {
	if known, ok := p.spells[e.From]; ok {
		return known
	}
	if p.spells == nil {
		p.spells = map[algebra.FromItem]algebra.Expr{}
	}
	p.spells[e.From] = nil
	places := e.MayBeNull()
	if p.inline || p.Identity || p.structure != nil || p.fixed > 0 || len(places) > mostSpelled || p.asJoin(e) == nil {
		return nil
	}
	there := func(outer, inner []algebra.Expr) algebra.Expr {
		return algebra.All(append(outer, algebra.Exists{Of: e.Of, From: &algebra.RowCap{Of: e.From},
			Where: algebra.All(append(algebra.BoundConjuncts(e.Where), inner...))}))
	}
	equal := func(i int) algebra.Expr {
		return algebra.Binary{Op: syntax.Eq, L: algebra.Column{Of: e.Outputs[i]}, R: e.X[i], T: catalog.Bool}
	}
	var sure []algebra.Expr
	for i := range e.X {
		if !slices.Contains(places, i) {
			sure = append(sure, equal(i))
		}
	}
	found := slices.Clone(sure)
	for _, i := range places {
		found = append(found, equal(i))
	}
	var unknown algebra.Expr
	ways := 1
	for range places {
		ways *= 3
	}
	for way := 1; way < ways; way++ { // 0 is found
		var outer []algebra.Expr
		inner := slices.Clone(sure)
		for rest, at := way, 0; at < len(places); rest, at = rest/3, at+1 {
			switch i := places[at]; rest % 3 {
			case 0:
				inner = append(inner, equal(i))
			case 1:
				inner = append(inner, algebra.Is{X: algebra.Column{Of: e.Outputs[i]}, What: syntax.IsNull})
			default:
				outer = append(outer, algebra.Is{X: e.X[i], What: syntax.IsNull})
			}
		}
		if unknown == nil {
			unknown = there(outer, inner)
		} else {
			unknown = algebra.Binary{Op: syntax.Or, L: unknown, R: there(outer, inner), T: catalog.Bool}
		}
	}
	p.spells[e.From] = algebra.Choice{Arms: []algebra.Arm{{Cond: there(nil, found), Result: boolean(true)},
		{Cond: unknown, Result: algebra.Constant{Null: true, T: catalog.Bool}}},
		Otherwise: boolean(false), T: catalog.Bool}
	return p.spells[e.From]
}

func boolean(b bool) algebra.Constant { return algebra.Constant{Text: fmt.Sprint(b), T: catalog.Bool} }

// newLifted begins a join.
func (p *Printer) newLifted() *lifted {
	p.semis++
	values := &algebra.Derived{Parts: []*algebra.Query{{Distinct: true}}}
	values.Alias = fmt.Sprintf("e%d", p.semis)
	return &lifted{values: values}
}

// tied is EXISTS whose rows equalities alone tie to the rows around.
func (p *Printer) tied(e algebra.Exists) *lifted {
	from := e.From
	if c, ok := from.(*algebra.RowCap); ok {
		if c.Active() {
			return nil
		}
		from = c.Of
	}
	var inner, there []algebra.Expr // a row whose value is NULL is equal to none
	var fields []*algebra.Field
	var outer [][2]algebra.Expr
	for _, x := range algebra.BoundConjuncts(e.Where) {
		in, out, equal := algebra.IsEquality(x, from)
		switch {
		case equal && algebra.PlainField(in) != nil && algebra.SameEquality(in.Typ(), out.Typ()):
			outer = append(outer, [2]algebra.Expr{in, out})
			if f := algebra.PlainField(in); !slices.Contains(fields, f) {
				fields, there = append(fields, f), append(there, algebra.Is{X: in, What: syntax.IsNull, Not: true})
			}
		case algebra.ReadsOnly(x, from):
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
		l.add(algebra.Column{Of: f}, *f.Column, f.Unit)
	}
	for _, o := range outer {
		f := l.values.Fields[slices.Index(fields, algebra.PlainField(o[0]))]
		l.on = append(l.on, algebra.Binary{Op: syntax.Eq, L: algebra.Column{Of: f}, R: o[1], T: catalog.Bool})
	}
	q := l.values.Parts[0]
	q.From, q.Where = from, algebra.All(append(inner, there...))
	return l
}

// paired is EXISTS whose rows one equality at least and other conditions tie to the rows around. Whether there is a row is a function of
// the fields that the conditions read of those around: so the join is one with the values of these fields for which there is one.
func (p *Printer) paired(e algebra.Exists) *lifted {
	around := freeFields(e.Where, e.From)
	linked := slices.ContainsFunc(algebra.BoundConjuncts(e.Where), func(x algebra.Expr) bool {
		in, out, equal := algebra.IsEquality(x, e.From)
		return equal && algebra.PlainField(in) != nil && algebra.PlainField(out) != nil && algebra.SameEquality(in.Typ(), out.Typ())
	})
	if !linked || slices.ContainsFunc(around, func(f *algebra.Field) bool { return f.Type == scalar.IntervalType }) {
		return nil
	}
	l := p.newLifted()
	l.around, l.inner = around, e
	for _, f := range around {
		x := algebra.Column{Of: f}
		if f.NotNull || f.Present || failsOnNull(e.Where, f) {
			l.tie(x, *f.Column, f.Unit, x)
			continue
		}
		null := algebra.Is{X: x, What: syntax.IsNull}
		text := algebra.Call{Name: "coalesce", Args: []algebra.Expr{algebra.Cast{X: x, T: catalog.Text}, algebra.Constant{T: catalog.Text}},
			T: catalog.Text}
		l.tie(null, catalog.Column{Type: catalog.Bool, TypMod: -1, NotNull: true}, false, null)
		l.tie(text, catalog.Column{Type: catalog.Text, TypMod: -1, NotNull: true}, false, text)
	}
	return l
}

// reads says of which rows around the values are: of those that FROM has before any condition.
func (l *lifted) reads(n algebra.FromItem) {
	if l.around == nil {
		return
	}
	at := holding(n, l.around)
	var link, rest []algebra.Expr
	for _, x := range algebra.BoundConjuncts(l.inner.Where) {
		if in, out, equal := algebra.IsEquality(x, l.inner.From); equal && algebra.PlainField(in) != nil && algebra.ReadsOnly(out, at) {
			link = append(link, x)
		} else {
			rest = append(rest, x)
		}
	}
	if unit := unitIn(at); !l.inner.Of.Owned() && !slices.Contains(l.around, unit) { // whose the values are
		l.tie(algebra.Column{Of: unit}, *unit.Column, true, algebra.Column{Of: unit})
	}
	q := l.values.Parts[0]
	q.From, q.Where = &algebra.Joined{Kind: syntax.InnerJoin, Left: at, Right: l.inner.From, On: algebra.All(link), Semi: true,
		Public: l.public}, algebra.All(rest)
}

// holding is the smallest part of an item that has some fields.
func holding(n algebra.FromItem, fields []*algebra.Field) algebra.FromItem {
	j, ok := n.(*algebra.Joined)
	if !ok {
		if c, ok := n.(*algebra.RowCap); ok && !c.Active() {
			return holding(c.Of, fields)
		}
		return n
	}
	for _, side := range []algebra.FromItem{j.Left, j.Right} {
		if !slices.ContainsFunc(fields, func(f *algebra.Field) bool { return !algebra.Holds(side, f) }) && unitIn(side) != nil {
			return holding(side, fields)
		}
	}
	return n
}

// freeFields are the fields that a condition on an item's rows reads of rows around it.
func freeFields(e algebra.Expr, inside ...algebra.FromItem) []*algebra.Field {
	var all []*algebra.Field
	add := func(more []*algebra.Field) {
		for _, f := range more {
			if !slices.Contains(all, f) {
				all = append(all, f)
			}
		}
	}
	switch e := e.(type) {
	case nil:
	case algebra.Column:
		if !slices.ContainsFunc(inside, func(n algebra.FromItem) bool { return algebra.Holds(n, e.Of) }) {
			add([]*algebra.Field{e.Of})
		}
	case algebra.Exists:
		add(freeFields(e.Where, append(slices.Clone(inside), e.From)...))
	case algebra.InRows:
		add(freeFields(e.Where, append(slices.Clone(inside), e.From)...))
	}
	if e != nil {
		for _, c := range algebra.Children(e) {
			add(freeFields(c, inside...))
		}
	}
	return all
}

// failsOnNull reports whether a condition is true of no row where a field is NULL: a comparison of it is among its conjuncts.
func failsOnNull(where algebra.Expr, f *algebra.Field) bool {
	return slices.ContainsFunc(algebra.BoundConjuncts(where), func(c algebra.Expr) bool {
		b, ok := c.(algebra.Binary)
		return ok && algebra.IsComparison(b.Op) && (algebra.PlainField(b.L) == f || algebra.PlainField(b.R) == f)
	})
}
