package lower

import (
	"slices"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/stability"
	"noisegate.example/sqlrewrite/internal/steps"
	"noisegate.example/sqlrewrite/syntax"
)

// PostgreSQL does not read one side of a join where the other one is empty, and of two sorted sides it reads one no further than the other
// goes. Where a condition leaves one unit's rows alone, that unit then decides whether another table is read, or sorted, at all. So joins
// of rows of people get an equivalent form (rules.go) in which PostgreSQL reads both sides to the end, whatever they hold. docs/sql/work.md
// has the argument.

// Read is a join in such a form.
type Read struct {
	*algebra.Joined // as the query has it
	Kind            syntax.JoinKind
	Left, Right     algebra.FromItem
	Swapped         bool // Left is the right side of the query's join
	On              []algebra.Expr
}

// Nulls compares how many of some fields are NULL with a number.
type Nulls struct {
	Of   []*algebra.Field
	Op   syntax.Operator
	Than int
}

// Typ gives boolean.
func (Nulls) Typ() catalog.Type { return catalog.Bool }

// Written is a condition that is printed already, and whose arguments have numbers; "" is none.
type Written string

// Typ gives boolean.
func (Written) Typ() catalog.Type { return catalog.Bool }

// Reading is FROM and WHERE with such joins.
type Reading struct {
	From  algebra.FromItem
	Where []Condition
	// Fence is true on all rows; nil: there is none. PostgreSQL tests the conditions behind it after all joins.
	Fence algebra.Expr
	Small bool // rows of people meet small public tables only
	Pairs bool // there are joins on equalities
}

// Condition is one of WHERE.
type Condition struct {
	algebra.Expr
	Late bool // tested after all joins
}

// reader finds the form of one FROM.
type reader struct {
	lifts   *SemiJoins
	people  algebra.FromItem // where all other items are small public tables
	pending []algebra.Expr   // conditions of WHERE that no join has yet
	last    []algebra.Expr   // conditions that the outermost such join gets
	present []*algebra.Field // are not NULL on the rows that count
	outer   []*algebra.Field // of joins that were written as outer ones
	pairs   bool
}

// side is an item of a join, and its form.
type side struct {
	was, item algebra.FromItem // before, and after
	steady    bool             // no condition on one unit decides whether it has rows
	key       *algebra.Field   // is NULL on no row of the join; nil: none is known
}

// ReadBothSides gives FROM and WHERE their form. owned is the condition that rows have owners, groups the one that selects groups.
func (s *SemiJoins) ReadBothSides(n algebra.FromItem, where algebra.Expr, owned, groups Written) (out Reading) {
	r := &reader{lifts: s, pending: algebra.BoundConjuncts(where)}
	matters := func(j *algebra.Joined) bool {
		return stability.ReadsBoth(j) && !(j.Semi && j.Public && !stability.Large(j.Right)) || stability.LargeBeside(j, where)
	}
	if out.Small = !anyJoin(n, matters); out.Small {
		r.people = people(n)
		out.Where, owned = append(out.Where, Condition{Expr: owned}), ""
	}
	r.last = slices.DeleteFunc([]algebra.Expr{owned, groups}, func(c algebra.Expr) bool { return c == Written("") })
	out.From = r.item(n, true).item
	out.Pairs = r.pairs || r.people == nil
	if n := len(r.present); n > 0 {
		op := []syntax.Operator{syntax.Ne, syntax.Lt}[min(n-1, 1)]
		out.Where = append(out.Where, Condition{Nulls{r.present, op, 1}, true})
	}
	all, late := slices.Concat(r.present, r.outer), len(r.last)
	for _, c := range r.pending {
		ahead := !s.HasLifted(c) && (len(all) == 0 && stability.IsJoin(c) || r.ahead(c))
		late += algebra.BoolIndex(!ahead)
		out.Where = append(out.Where, Condition{c, !ahead})
	}
	for _, c := range r.last {
		out.Where = append(out.Where, Condition{c, true})
	}
	if len(all) > 0 && late > 0 || len(r.present) > 0 && len(r.outer) > 0 {
		s.Fire(FenceLate)
		out.Fence = Nulls{all, syntax.Lt, len(all) + 1}
	}
	return out
}

// ahead reports whether a condition reads rows of people alone, where no other table must be read whatever the condition leaves.
func (s *reader) ahead(c algebra.Expr) bool {
	return s.people != nil && stability.ReadsWithin(c, s.people)
}

// people gives the item with rows of people, in a FROM whose other items are public; nil: all are public.
func people(n algebra.FromItem) algebra.FromItem {
	switch n := n.(type) {
	case *algebra.RowCap:
		if !n.Active() || algebra.RowsOf(n.Of) == algebra.PublicRows {
			return people(n.Of)
		}
	case *algebra.Joined:
		if n.Meets != nil && !n.Meets.L.Owned() {
			if !n.Meets.R.Owned() {
				return nil
			}
			return people(n.Right)
		}
		return people(n.Left)
	case *algebra.Scan:
		if n.Table.Public {
			return nil
		}
	case *algebra.Derived:
		if !slices.ContainsFunc(n.Parts, func(q *algebra.Query) bool { return q.Of != nil && q.Of.Owned() }) {
			return nil
		}
	}
	return n
}

// looksUp reports whether a condition of WHERE is EXISTS or IN over public rows, which PostgreSQL makes an inner join.
func looksUp(where algebra.Expr) bool {
	return slices.ContainsFunc(algebra.BoundConjuncts(where), func(c algebra.Expr) bool {
		e, ok := asExists(c)
		return ok && Linked(e)
	})
}

// anyJoin reports whether such holds for a join of an item.
func anyJoin(n algebra.FromItem, such func(*algebra.Joined) bool) bool {
	switch n := n.(type) {
	case *algebra.RowCap:
		return !n.Active() && anyJoin(n.Of, such)
	case *algebra.Joined:
		return such(n) || anyJoin(n.Left, such) || anyJoin(n.Right, such)
	default:
		return false
	}
}

// Pairs reports whether a join is made by equalities.
func Pairs(j *algebra.Joined) bool {
	return j.Meets == nil && j.On != nil || j.Meets != nil && len(j.Meets.Pairs) > 0
}

// joinsPeople reports whether an item joins rows of people with others, or with public tables.
func joinsPeople(n algebra.FromItem) bool {
	return anyJoin(n, func(j *algebra.Joined) bool { return stability.ReadsBoth(j) || j.MeetsPublic() })
}

// readWhole reports whether an item is read without conditions.
func readWhole(n algebra.FromItem) bool {
	switch n := n.(type) {
	case *algebra.Scan:
		return true
	case *algebra.RowCap:
		return readWhole(n.Of) && (!n.Active() || onlyThere(n.Where))
	case *algebra.Derived:
		return !n.Lateral && slices.ContainsFunc(n.Parts, func(q *algebra.Query) bool {
			return q.From != nil && onlyThere(q.Where) && readWhole(q.From)
		})
	case *algebra.Joined:
		value := n.Meets == nil && n.On == nil // one row
		return (n.Kind == syntax.LeftJoin || value) && readWhole(n.Left)
	default:
		return false
	}
}

// onlyThere reports whether all conditions are that columns are not NULL.
func onlyThere(where algebra.Expr) bool {
	return !slices.ContainsFunc(algebra.BoundConjuncts(where), func(c algebra.Expr) bool {
		e, ok := c.(algebra.Is)
		return !ok || e.What != syntax.IsNull || !e.Not || algebra.PlainField(e.X) == nil
	})
}

// item gives an item its form; outermost says that no join is around it.
func (s *reader) item(n algebra.FromItem, outermost bool) side {
	defer steps.Visit(s.lifts.Steps).Leave()
	if c, ok := n.(*algebra.RowCap); ok && !c.Active() {
		return s.item(c.Of, outermost)
	}
	j, ok := n.(*algebra.Joined)
	if !ok || !joinsPeople(n) {
		return side{was: n, item: n, steady: s.people != nil || readWhole(n)}
	}
	s.pairs = s.pairs || Pairs(j)
	l := s.item(j.Left, false)
	if d, ok := j.Right.(*algebra.Derived); ok && d.Lateral { // has a row for each of the left side, and reads no table
		return s.lateral(j, l)
	}
	if j.Kind == syntax.LeftJoin || j.Kind == syntax.FullJoin {
		return s.outerJoin(j, l)
	}
	r := s.item(j.Right, false)
	if unit := UnitIn(j.Left); j.Meets == nil && j.On == nil && stability.OfLarge(j) && unit != nil {
		return s.besideValue(j, l, r, unit)
	}
	return s.inner(j, l, r, outermost)
}

// inner gives an inner join its form.
func (s *reader) inner(j *algebra.Joined, l, r side, outermost bool) side {
	out := &Read{Joined: j, Kind: syntax.LeftJoin, On: algebra.BoundConjuncts(j.On)}
	l.key, r.key = s.keys(j, append(slices.Clone(out.On), s.pending...))
	s.mark(j, &l, &r)
	if r.key == nil || l.key == nil && !l.steady {
		return asWritten(j, l, r)
	}
	if l.key != nil && s.swaps(j, l, r) {
		s.lifts.Fire(SwapSides)
		l, r, out.Swapped = r, l, true
	}
	if !l.steady || joinsPeople(r.was) && l.key != nil {
		out.Kind = syntax.FullJoin
		s.present = append(s.present, l.key)
		s.lifts.Fire(FullForInner)
	} else {
		s.lifts.Fire(LeftForInner)
	}
	s.present = append(s.present, r.key)
	out.Left, out.Right = l.item, r.item
	out.On = append(out.On, s.take(l.was, r.was)...)
	if outermost {
		out.On, s.last = append(out.On, s.last...), nil
	}
	if len(out.On) == 0 {
		out.On = []algebra.Expr{Boolean(true)}
	}
	return side{was: j, item: out, steady: l.steady || out.Kind == syntax.FullJoin && r.steady}
}

// mark finds keys where no equality gives them.
func (s *reader) mark(j *algebra.Joined, l, r *side) {
	if mark := j.Mark(); mark != nil && l.key == nil && algebra.Holds(l.was, mark) {
		l.key = mark
	} else if r.key == nil && l.steady {
		r.key = mark
	}
	if l.key == nil && !l.steady {
		l.key = UnitIn(l.was)
	}
}

// swaps reports whether an inner join should keep all rows of its right side: rows of people before public ones, a side that has rows in
// any case, joins, below which no condition may be tested, and the side that conditions leave alone.
func (s *reader) swaps(j *algebra.Joined, l, r side) bool {
	leftJoins, rightJoins := joinsPeople(j.Left), joinsPeople(j.Right)
	switch {
	case j.MeetsPublic() && !stability.OfLarge(j):
		return j.Meets.R.Owned()
	case j.Meets != nil && !j.Meets.L.Owned() && r.steady, r.steady && !l.steady:
		return true
	case l.steady != r.steady:
		return false
	case leftJoins != rightJoins && r.steady:
		return rightJoins
	default:
		return s.narrowed(j.Left) && !s.narrowed(j.Right)
	}
}

// lateral joins values that are computed from each row to the left side. Conditions of an inner join on them are tested above all joins.
func (s *reader) lateral(j *algebra.Joined, l side) side {
	out := *j
	if j.Kind != syntax.LeftJoin {
		s.pending = append(algebra.BoundConjuncts(j.On), s.pending...)
		out.Kind, out.On = syntax.CrossJoin, nil
	}
	return asWritten(&out, l, side{item: j.Right})
}

// asWritten keeps a join as it was written.
func asWritten(j *algebra.Joined, l, r side) side {
	out := &Read{Joined: j, Kind: j.Kind, Left: l.item, Right: r.item}
	if j.On != nil {
		out.On = []algebra.Expr{j.On}
	}
	return side{was: j, item: out, steady: l.steady}
}

// outerJoin gives a written outer join its form. PostgreSQL reads r of l LEFT JOIN r only if l has rows: where one unit may decide that, it
// is a FULL JOIN whose rows without one of l are left out. A condition of ON selects the rows that the right side keeps: WHERE reads rows
// that met none of it, too.
func (s *reader) outerJoin(j *algebra.Joined, l side) side {
	pending, present := s.pending, s.present
	s.pending, s.present = nil, nil
	r := s.item(j.Right, false)
	out := &Read{Joined: j, Kind: j.Kind, Left: l.item, Right: r.item, On: []algebra.Expr{j.On}}
	if len(s.present) > 0 {
		out.On = append(out.On, Nulls{s.present, syntax.Lt, 1})
	}
	s.pending, s.present = pending, present
	_, key := s.keys(j, algebra.BoundConjuncts(j.On))
	mark := key
	if mark == nil {
		mark = j.Mark()
	}
	if both := stability.ReadsBoth(j); j.Kind == syntax.LeftJoin && mark != nil && (both || j.MeetsPublic()) {
		s.outer = append(s.outer, mark)
		if unit := UnitIn(j.Left); both && unit != nil && key != nil && (!l.steady || joinsPeople(j.Right)) {
			s.lifts.Fire(FullForLeft)
			s.present = append(s.present, unit)
			out.Kind, l.steady = syntax.FullJoin, l.steady || r.steady
		}
	}
	return side{was: j, item: out, steady: l.steady}
}

// besideValue joins rows of people to the value of a query, which comes first: it has one row whatever the tables hold. Where the rows of
// people are joins themselves, ON has no condition that PostgreSQL could test below them.
func (s *reader) besideValue(j *algebra.Joined, l, r side, unit *algebra.Field) side {
	s.lifts.Fire(ValueFirst)
	if !slices.Contains(s.present, unit) {
		s.present = append(s.present, unit)
	}
	on := []algebra.Expr{Boolean(true)}
	if !joinsPeople(j.Left) {
		on = append([]algebra.Expr{algebra.Is{X: algebra.Column{Of: unit}, What: syntax.IsNull, Not: true}}, s.take(j.Right, j.Left)...)
	}
	return side{was: j, item: &Read{Joined: j, Kind: syntax.LeftJoin, Left: r.item, Right: l.item, Swapped: true, On: on}, steady: true}
}

// narrowed reports whether a condition reads one item alone.
func (s *reader) narrowed(n algebra.FromItem) bool {
	return slices.ContainsFunc(s.pending, func(c algebra.Expr) bool { return stability.ReadsWithin(c, n) })
}

// take takes the conditions that a join of two items can test. PostgreSQL joins EXISTS and IN over the left one alone above all others.
func (s *reader) take(left, right algebra.FromItem) []algebra.Expr {
	var taken []algebra.Expr
	s.pending = slices.DeleteFunc(slices.Clone(s.pending), func(c algebra.Expr) bool {
		if !stability.ReadsWithin(c, left, right) || stability.IsJoin(c) && !stability.ReadsWithin(c, right) ||
			s.lifts.HasLifted(c) || s.ahead(c) {
			return false
		}
		taken = append(taken, c)
		return true
	})
	return taken
}

// keys gives fields of both sides that are NULL on no row of the join, as an equality of its conditions compares them; nil: none.
func (s *reader) keys(j *algebra.Joined, conditions []algebra.Expr) (l, r *algebra.Field) {
	for _, c := range conditions {
		b, ok := c.(algebra.Binary)
		if !ok || b.Op != syntax.Eq || !algebra.SameEquality(b.L.Typ(), b.R.Typ()) {
			continue
		}
		for _, side := range [][2]algebra.Expr{{b.L, b.R}, {b.R, b.L}} {
			x, y := algebra.PlainField(side[0]), algebra.PlainField(side[1])
			if y == nil || !algebra.Holds(j.Right, y) || !algebra.ReadsOnly(side[0], j.Left) || algebra.IsConstant(side[0]) {
				continue
			}
			if r == nil || x != nil && l == nil {
				l, r = x, y
			}
		}
	}
	return l, r
}
