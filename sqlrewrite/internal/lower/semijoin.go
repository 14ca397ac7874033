package lower

import (
	"fmt"
	"slices"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/stability"
	"noisegate.example/sqlrewrite/internal/steps"
	"noisegate.example/sqlrewrite/syntax"
)

// PostgreSQL evaluates EXISTS and IN row by row, or makes a hash table of their rows for the first row that asks. So over rows of people,
// and over large public tables, they become joins with different values, where one at most is equal: inner ones where a row is
// left only if there is one, else outer ones, and the expression tests whether there was one.

// SemiJoins says which EXISTS and IN of one query become joins. A query that is printed twice has its own each time.
type SemiJoins struct {
	made    *int          // number in the whole statement, for their names
	fired   map[Rule]bool // in the whole statement
	Steps   *steps.Count
	asJoins map[algebra.FromItem]*lifted
	spells  map[algebra.FromItem]algebra.Expr // IN as EXISTS; nil: it has no such form
	stays   map[algebra.FromItem]bool         // EXISTS and IN that become no joins
	lifts   []*lifted                         // those that FROM has not joined yet
	fixed   int                               // number of enclosing queries that cannot join them
	off     []string                          // the passes that are left out
	// every: FROM has joins of which both sides are read, which a condition beside them must not undo. So small public tables are joined too.
	every bool
}

// The passes of this package, in their order; each has the rules of one file.
const (
	LiftSemiJoin  = "LiftSemiJoin"
	ReadBothSides = "ReadBothSides"
)

// NewSemiJoins gives those of a statement, without the passes in off.
func NewSemiJoins(n *steps.Count, off ...string) *SemiJoins {
	return &SemiJoins{made: new(int), fired: map[Rule]bool{}, Steps: n, off: off}
}

// OfQuery are those of a query in FROM.
func (s *SemiJoins) OfQuery() *SemiJoins {
	return &SemiJoins{made: s.made, fired: s.fired, Steps: s.Steps, off: s.off, fixed: s.fixed}
}

// Stay leaves EXISTS and IN as they are until its result is called.
func (s *SemiJoins) Stay() (end func()) {
	s.fixed++
	return func() { s.fixed-- }
}

// Wait reports whether FROM has not joined all yet.
func (s *SemiJoins) Wait() bool { return len(s.lifts) > 0 }

// lifted is EXISTS or IN as a join.
type lifted struct {
	rule   Rule
	values *algebra.Derived
	public bool           // over large public tables
	on     []algebra.Expr // equalities of a value, on the left, and an expression of the rows around; none: it is one value for all rows
	// Where other conditions than equalities tie the inner rows to those around, the values are those of rows around that have such an inner
	// row.
	around []*algebra.Field // of the rows around; nil: it is tied by equalities
	inner  algebra.Exists
}

// alone reports whether it is one value, NULL if there is no row.
func (l *lifted) alone() bool { return l.around == nil && len(l.on) == 0 }

func (l *lifted) within(n algebra.FromItem) bool {
	if l.around != nil && UnitIn(holding(n, l.around)) == nil {
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

// Join makes joins of EXISTS and IN in FROM and WHERE; reads means that [SemiJoins.ReadBothSides] must follow.
func (s *SemiJoins) Join(from algebra.FromItem, where algebra.Expr) (n algebra.FromItem, rest algebra.Expr, reads bool) {
	on := func(j *algebra.Joined) bool { return QueriesMany(j.On) }
	s.every = s.Wait() || joinsPeople(from) || QueriesMany(where) || anyJoin(from, on) || people(from) != nil && looksUp(where)
	defer func() { s.every = false }() // of conditions only: outputs are printed before FROM, and after it
	var kept []algebra.Expr
	var inner []*lifted
	conditions := algebra.BoundConjuncts(where)
	n = s.liftOn(from, &conditions)
	for _, c := range conditions {
		switch l := s.asJoin(c); {
		case l != nil && l.within(n) && !l.alone():
			inner = append(inner, l)
			continue
		case !stability.IsJoin(c), isNegated(c), l != nil && l.alone():
			s.liftAll(c, n)
		}
		kept = append(kept, c)
	}
	bare := n // the values of rows around are those of rows that no such join has left out
	for _, l := range inner {
		s.Fire(l.rule)
		l.reads(bare)
		n = &algebra.Joined{Kind: syntax.InnerJoin, Left: n, Right: l.values, On: algebra.All(l.on), Semi: true, Public: l.public}
	}
	if n = s.found(n, bare); !joinsPeople(n) {
		return from, where, false
	}
	return n, algebra.All(kept), !slices.Contains(s.off, ReadBothSides)
}

// found joins an item with the values that wait for it; bare is the item without other such joins.
func (s *SemiJoins) found(n, bare algebra.FromItem) algebra.FromItem {
	waiting := s.lifts
	s.lifts = nil
	for _, l := range waiting {
		if l.within(bare) {
			s.Fire(l.rule)
			if l.alone() {
				n = &algebra.Joined{Kind: syntax.CrossJoin, Left: n, Right: l.values}
				continue
			}
			l.reads(bare)
			n = &algebra.Joined{Kind: syntax.LeftJoin, Left: n, Right: l.values, On: algebra.All(l.on), Semi: true, Public: l.public}
		} else {
			s.lifts = append(s.lifts, l)
		}
	}
	return n
}

// liftOn makes joins of EXISTS and IN in the conditions of joins. Those of inner joins become conditions of WHERE; where that is nil, an
// outer join is around. Those that read one side of an outer join are found beside that side; those that read both are tested ahead
// (ahead).
func (s *SemiJoins) liftOn(n algebra.FromItem, where *[]algebra.Expr) algebra.FromItem {
	defer steps.Visit(s.Steps).Leave()
	if c, ok := n.(*algebra.RowCap); ok && !c.Active() {
		return s.liftOn(c.Of, where)
	}
	j, ok := n.(*algebra.Joined)
	if !ok {
		return n
	}
	out, inside := *j, where
	if j.Kind == syntax.LeftJoin || j.Kind == syntax.FullJoin {
		inside = nil
	}
	out.Left, out.Right = s.liftOn(j.Left, inside), s.liftOn(j.Right, inside)
	if d, ok := out.Right.(*algebra.Derived); ok && d.Lateral { // its values are of the row beside it
		for _, e := range d.Parts[0].Results() {
			s.liftBeside(&out.Left, out.Left, e)
			s.settle(e)
		}
	}
	var on, both []algebra.Expr
	l, r := out.Left, out.Right
	for _, c := range algebra.BoundConjuncts(j.On) {
		switch {
		case !hasQuery(c):
		case inside != nil:
			*inside = append(*inside, c)
			continue
		case j.Kind != syntax.FullJoin && s.readsBoth(c, l, r):
			both = append(both, c)
			continue
		default:
			s.liftBeside(&out.Left, l, c)
			s.liftBeside(&out.Right, r, c)
			s.settle(c)
		}
		on = append(on, c)
	}
	out.On = algebra.All(on)
	if len(both) == 0 {
		return &out
	}
	return s.ahead(&out, l, r, both)
}

// liftBeside joins what an expression looks up to an item; bare is the item without other such joins.
func (s *SemiJoins) liftBeside(n *algebra.FromItem, bare algebra.FromItem, e algebra.Expr) {
	around := s.lifts
	s.lifts = nil
	s.liftAll(e, bare)
	*n = s.found(*n, bare)
	s.lifts = append(around, s.lifts...)
}

// readsBoth reports whether EXISTS or IN that could be a join reads rows of both sides of a join.
func (s *SemiJoins) readsBoth(c algebra.Expr, left, right algebra.FromItem) bool {
	defer steps.Visit(s.Steps).Leave()
	if in, ok := c.(algebra.InRows); ok && !in.NeverNull() {
		if spelled := s.Spelled(in); spelled != nil {
			return s.readsBoth(spelled, left, right)
		}
	}
	if stability.IsQuery(c) {
		if l := s.asJoin(c); l != nil {
			at := &algebra.Joined{Left: left, Right: right}
			return !l.within(left) && !l.within(right) && l.within(at)
		}
	}
	return slices.ContainsFunc(algebra.Children(c), func(e algebra.Expr) bool { return s.readsBoth(e, left, right) })
}

// ahead tests conditions of a join that read both sides before the join is made: they are a function of the fields that they read, and so
// hold of two rows if and only if the rows' values are among those that they hold of for some two rows. These values are joined like those
// of EXISTS: to the right side of an outer join, whose rows meet none of the left one else, or to an inner join.
func (s *SemiJoins) ahead(j *algebra.Joined, left, right algebra.FromItem, conditions []algebra.Expr) algebra.FromItem {
	s.Fire(TestAhead)
	l := s.newLifted(TestAhead)
	from := &algebra.Joined{Kind: syntax.InnerJoin, Meets: j.Meets, Left: left, Right: right}
	var links []algebra.Expr
	for _, c := range algebra.BoundConjuncts(j.On) {
		if out := equalColumn(c, from.Right); out != nil && algebra.Holds(from.Left, out) {
			links = append(links, c)
		}
	}
	from.On = algebra.All(links)
	where := algebra.All(conditions)
	read := algebra.FreeFields(algebra.All(append(slices.Clone(links), where)))
	for _, side := range []algebra.FromItem{from.Left, from.Right} {
		if unit := UnitIn(side); unit != nil && !slices.Contains(read, unit) { // whose the values are
			read = append(read, unit)
		}
	}
	for _, f := range read {
		l.among(f, f.Unit || slices.ContainsFunc(links, func(c algebra.Expr) bool { return failsOnNull(c, f) }) || failsOnNull(where, f))
	}
	l.values.Parts[0].From, l.values.Parts[0].Where = from, where
	if j.Kind != syntax.LeftJoin {
		return &algebra.Joined{Kind: syntax.InnerJoin, Left: j, Right: l.values, On: algebra.All(l.on), Semi: true}
	}
	var ofLeft, ofRight []algebra.Expr
	for _, c := range l.on {
		if algebra.ReadsOnly(c.(algebra.Binary).R, j.Right) {
			ofRight = append(ofRight, c)
		} else {
			ofLeft = append(ofLeft, c)
		}
	}
	j.Right = &algebra.Joined{Kind: syntax.InnerJoin, Left: j.Right, Right: l.values, On: algebra.All(ofRight), Semi: true}
	j.On, j.Semi = algebra.All(append(algebra.BoundConjuncts(j.On), ofLeft...)), true
	return j
}

// hasQuery reports whether there is EXISTS or IN (query) in an expression.
func hasQuery(e algebra.Expr) bool { return algebra.Has(e, stability.IsQuery) }

// settle says that what has not become a join in an expression does not.
func (s *SemiJoins) settle(e algebra.Expr) {
	defer steps.Visit(s.Steps).Leave()
	if s.stays == nil {
		s.stays = map[algebra.FromItem]bool{}
	}
	if x, ok := asExists(e); ok {
		s.stays[x.From] = true
		if spelled := s.spells[x.From]; spelled != nil {
			s.settle(spelled)
		}
	}
	for _, c := range algebra.Children(e) {
		s.settle(c)
	}
}

func isNegated(e algebra.Expr) bool {
	_, ok := e.(algebra.Not)
	return ok
}

// Lift makes a join of EXISTS or IN that stands for a value; nil where it cannot. It is TRUE where the join found a row.
func (s *SemiJoins) Lift(e algebra.Expr) *algebra.Field {
	in, isIn := e.(algebra.InRows)
	if s.fixed > 0 || isIn && !in.NeverNull() {
		return nil
	}
	at := in.From
	if x, ok := e.(algebra.Exists); ok {
		at = x.From
	}
	l := s.asJoins[at]
	if l == nil {
		if s.stays[at] {
			return nil
		}
		if l = s.asJoin(e); l == nil {
			return nil
		}
		if s.asJoins == nil {
			s.asJoins = map[algebra.FromItem]*lifted{}
		}
		s.asJoins[at] = l
		s.lifts = append(s.lifts, l)
	}
	return l.values.Fields[0]
}

// liftAll lifts what stands in an expression over an item.
func (s *SemiJoins) liftAll(e algebra.Expr, n algebra.FromItem) {
	defer steps.Visit(s.Steps).Leave()
	if e == nil {
		return
	}
	if in, ok := e.(algebra.InRows); ok && !in.NeverNull() {
		s.liftAll(s.Spelled(in), n)
	} else if l := s.asJoin(e); l != nil && l.within(n) {
		s.Lift(e)
	}
	for _, c := range algebra.Children(e) {
		s.liftAll(c, n)
	}
}

// HasLifted reports whether an expression tests what a join found.
func (s *SemiJoins) HasLifted(e algebra.Expr) bool {
	defer steps.Visit(s.Steps).Leave()
	switch e := e.(type) {
	case algebra.Exists:
		return s.asJoins[e.From] != nil
	case algebra.InRows:
		return s.asJoins[e.From] != nil || s.HasLifted(s.spells[e.From])
	case nil:
		return false
	}
	return slices.ContainsFunc(algebra.Children(e), s.HasLifted)
}

// asJoin is EXISTS or IN over rows of people, or of large public tables, as a join; nil for all else.
func (s *SemiJoins) asJoin(c algebra.Expr) *lifted {
	e, ok := asExists(c)
	if !ok || slices.Contains(s.off, LiftSemiJoin) || !ReadsMany(e) && !(s.every && Linked(e)) || algebra.ReadsAround(e.From) {
		return nil
	}
	l := s.tied(e)
	if l == nil {
		l = s.paired(e)
	}
	if l != nil {
		l.public = !e.Of.Owned()
	}
	return l
}

// Unbounded reports whether what EXISTS reads, if it stays what it is, is more than what the rows of one unit are charged for: those of a
// large public table that no equality ties to them are all counted.
func Unbounded(e algebra.Exists) bool {
	return e.Of.Owned() || stability.Large(e.From, e.Where) && Linked(e) || QueriesMany(e.Where)
}

// ReadsMany reports whether EXISTS reads rows of people, or a large public table.
func ReadsMany(e algebra.Exists) bool {
	return e.Of.Owned() || stability.Large(e.From, e.Where) || QueriesMany(e.Where)
}

// QueriesMany reports whether EXISTS or IN in an expression does.
func QueriesMany(x algebra.Expr) bool {
	return algebra.Has(x, func(x algebra.Expr) bool {
		e, ok := asExists(x)
		return ok && ReadsMany(e)
	})
}

// asExists gives EXISTS, or IN as EXISTS.
func asExists(x algebra.Expr) (e algebra.Exists, ok bool) {
	switch x := x.(type) {
	case algebra.Exists:
		return x, true
	case algebra.InRows:
		return x.AsExists(), true
	}
	return e, false
}

// mostSpelled is at how many places IN may compare what may be NULL to be said by EXISTS: there are up to 3 of these for each.
const mostSpelled = 3

// Spelled is IN said by EXISTS over equalities: TRUE where there is an equal row, else NULL where there is one that is equal at some
// places, and at each of the others one of both is NULL, else FALSE. It is nil where all that is too much, or nothing would be a join.
func (s *SemiJoins) Spelled(e algebra.InRows) algebra.Expr {
	if known, ok := s.spells[e.From]; ok {
		return known
	}
	if s.spells == nil {
		s.spells = map[algebra.FromItem]algebra.Expr{}
	}
	s.spells[e.From] = nil
	places := e.MayBeNull()
	if s.fixed > 0 || len(places) > mostSpelled || s.asJoin(e) == nil {
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
	s.Fire(SpellIn)
	s.spells[e.From] = algebra.Choice{Arms: []algebra.Arm{{Cond: there(nil, found), Result: Boolean(true)},
		{Cond: unknown, Result: algebra.Constant{Null: true, T: catalog.Bool}}},
		Otherwise: Boolean(false), T: catalog.Bool}
	return s.spells[e.From]
}

func Boolean(b bool) algebra.Constant { return algebra.Constant{Text: fmt.Sprint(b), T: catalog.Bool} }

// newLifted begins a join.
func (s *SemiJoins) newLifted(r Rule) *lifted {
	*s.made++
	values := &algebra.Derived{Parts: []*algebra.Query{{Distinct: true}}}
	values.Alias = fmt.Sprintf("e%d", *s.made)
	return &lifted{rule: r, values: values}
}

// tieOf recognises an equality between an expression of an item's rows and one of the rows around, of which one value at most of several
// that differ is equal to that outside: both are of one type, or numbers that PostgreSQL compares exactly.
func tieOf(x algebra.Expr, n algebra.FromItem) (in, out algebra.Expr, ok bool) {
	in, out, ok = algebra.IsEquality(x, n)
	if !ok || algebra.IsConstant(out) {
		return nil, nil, false
	}
	a, b := in.Typ(), out.Typ()
	switch {
	case algebra.SameEquality(a, b), a == b:
	case a.IsInteger() && b == catalog.Numeric:
		in = algebra.Cast{X: in, T: catalog.Numeric}
	case a == catalog.Numeric && b.IsInteger():
		out = algebra.Cast{X: out, T: catalog.Numeric}
	case a == catalog.Float4 && b == catalog.Float8:
		in = algebra.Cast{X: in, T: catalog.Float8}
	case a == catalog.Float8 && b == catalog.Float4:
		out = algebra.Cast{X: out, T: catalog.Float8}
	default:
		return nil, nil, false
	}
	if a == catalog.Enum { // printed as a text wherever it is no plain column
		in, out = algebra.Cast{X: in, T: catalog.Text}, algebra.Cast{X: out, T: catalog.Text}
	}
	return in, out, true
}

// tied is EXISTS whose rows equalities alone tie to the rows around.
func (s *SemiJoins) tied(e algebra.Exists) *lifted {
	from := e.From
	if c, ok := from.(*algebra.RowCap); ok {
		if c.Active() {
			return nil
		}
		from = c.Of
	}
	var inner, there []algebra.Expr // a row whose value is NULL is equal to none
	var equal [][2]algebra.Expr
	for _, x := range algebra.BoundConjuncts(e.Where) {
		in, out, ok := tieOf(x, from)
		switch {
		case ok:
			equal = append(equal, [2]algebra.Expr{in, out})
		case algebra.ReadsOnly(x, from):
			inner = append(inner, x)
		default:
			return nil
		}
	}
	l := s.newLifted(JoinByEqualities)
	if len(equal) == 0 { // of public rows: 1, if there is any
		l.rule = JoinOneValue
		l.values.Parts[0].Distinct = false
		one := algebra.Constant{Text: "1", T: catalog.Int4}
		largest := algebra.Aggregate{Name: "max", Args: []algebra.Expr{one}, Safe: true, T: catalog.Int4}
		l.add(largest, catalog.Column{Type: catalog.Int4, TypMod: -1}, false)
	}
	known := make(map[*algebra.Field]*algebra.Field)
	for _, x := range equal {
		column, f := algebra.PlainField(x[0]), known[algebra.PlainField(x[0])]
		if column == nil || f == nil {
			there = append(there, algebra.Is{X: x[0], What: syntax.IsNull, Not: true})
		}
		switch {
		case column == nil:
			f = l.add(x[0], catalog.Column{Type: x[0].Typ(), TypMod: -1, NotNull: true}, false)
		case f == nil:
			f = l.add(x[0], *column.Known(), column.Unit)
			known[column] = f
		}
		l.on = append(l.on, algebra.Binary{Op: syntax.Eq, L: algebra.Column{Of: f}, R: x[1], T: catalog.Bool})
	}
	q := l.values.Parts[0]
	q.From, q.Where = from, algebra.All(append(inner, there...))
	return l
}

// paired is EXISTS whose rows one equality at least and other conditions tie to the rows around; of a small public table also without an
// equality. Whether there is a row is a function of the fields that the conditions read of those around: so the join is one with the
// values of these fields for which there is one.
func (s *SemiJoins) paired(e algebra.Exists) *lifted {
	around := algebra.FreeFields(e.Where, e.From)
	if !Linked(e) && (e.Of.Owned() || stability.Large(e.From, e.Where)) {
		return nil
	}
	l := s.newLifted(JoinByFields)
	l.around, l.inner = around, e
	for _, f := range around {
		l.among(f, f.Unit || failsOnNull(e.Where, f))
	}
	return l
}

// Linked reports whether a column of EXISTS' rows is equal to something of those around.
func Linked(e algebra.Exists) bool {
	return slices.ContainsFunc(algebra.BoundConjuncts(e.Where), func(x algebra.Expr) bool {
		in, out, equal := algebra.IsEquality(x, e.From)
		return equal && algebra.PlainField(in) != nil && !algebra.IsConstant(out) && algebra.SameEquality(in.Typ(), out.Typ())
	})
}

// equalColumn is the column of other rows that a condition makes equal to one of an item's; nil: it is no such condition.
func equalColumn(x algebra.Expr, n algebra.FromItem) *algebra.Field {
	in, out, equal := algebra.IsEquality(x, n)
	if !equal || algebra.PlainField(in) == nil || !algebra.SameEquality(in.Typ(), out.Typ()) {
		return nil
	}
	return algebra.PlainField(out)
}

// among makes the values of a field of the rows around some of the join's; solid says that it is NULL in none of the rows that count.
func (l *lifted) among(f *algebra.Field, solid bool) {
	x := algebra.Column{Of: f}
	if (solid || f.NotNull() || f.Present()) && f.Type != scalar.IntervalType && f.Type != catalog.Enum { // equal intervals may differ
		l.tie(x, *f.Known(), f.Unit, x)
		return
	}
	null := algebra.Is{X: x, What: syntax.IsNull}
	text := algebra.Call{Name: "coalesce", Args: []algebra.Expr{algebra.Cast{X: x, T: catalog.Text}, algebra.Constant{T: catalog.Text}},
		T: catalog.Text}
	l.tie(null, catalog.Column{Type: catalog.Bool, TypMod: -1, NotNull: true}, false, null)
	l.tie(text, catalog.Column{Type: catalog.Text, TypMod: -1, NotNull: true}, false, text)
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
	if unit := UnitIn(at); !l.inner.Of.Owned() && !slices.Contains(l.around, unit) { // whose the values are
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
		if !slices.ContainsFunc(fields, func(f *algebra.Field) bool { return !algebra.Holds(side, f) }) && UnitIn(side) != nil {
			return holding(side, fields)
		}
	}
	return n
}

// failsOnNull reports whether a condition is true of no row where a field is NULL: a comparison of it is among its conjuncts.
func failsOnNull(where algebra.Expr, f *algebra.Field) bool {
	return slices.ContainsFunc(algebra.BoundConjuncts(where), func(c algebra.Expr) bool {
		b, ok := c.(algebra.Binary)
		return ok && algebra.IsComparison(b.Op) && (algebra.PlainField(b.L) == f || algebra.PlainField(b.R) == f)
	})
}

// UnitIn is a field that is NULL on no row of an item that belongs to somebody; nil: none is known.
func UnitIn(n algebra.FromItem) *algebra.Field {
	of := func(fields []*algebra.Field) *algebra.Field {
		if i := slices.IndexFunc(fields, func(f *algebra.Field) bool { return f.Unit }); i >= 0 {
			return fields[i]
		}
		return nil
	}
	switch n := n.(type) {
	case *algebra.Scan:
		if n.Table.Unit.Kind != catalog.PathUnit {
			return of(n.Fields)
		}
	case *algebra.RowCap:
		if n.Active() {
			return n.By
		}
		return UnitIn(n.Of)
	case *algebra.Derived:
		return of(n.Fields)
	case *algebra.Joined:
		if f := UnitIn(n.Left); f != nil || n.Kind == syntax.LeftJoin || n.Kind == syntax.FullJoin {
			return f
		}
		return UnitIn(n.Right)
	}
	return nil
}
