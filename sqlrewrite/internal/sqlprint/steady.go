package sqlprint

import (
	"fmt"
	"slices"
	"strings"

	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/lower"
	"noisegate.example/sqlrewrite/internal/stability"
	"noisegate.example/sqlrewrite/internal/steps"
	"noisegate.example/sqlrewrite/syntax"
)

// PostgreSQL does not read one side of a join where the other one is empty, and of two sorted sides it reads one no further than the other
// goes. Where a condition leaves one unit's rows alone, that unit then decides whether another table is read, or sorted, at all. So joins
// of rows of people are printed in an equivalent form of which PostgreSQL reads both sides to the end, whatever is in them:
//
//	l LEFT JOIN r ON (what joins them, and the conditions of WHERE) WHERE num_nulls(r.key) <> 1
//
// l is read without conditions, so that it is empty for nobody. Where conditions are inside of both sides (of a cap, a query in FROM) it
// is a FULL JOIN. num_nulls is not strict: PostgreSQL does not see that the outer join is an inner one, nor that it may test what stands
// beside it earlier.
// docs/sql/work.md has the argument.

// steadied is an item of FROM on its way to such a form.
type steadied struct {
	text   string
	steady bool // whether it has rows does not depend on what a condition says of one unit
}

// steadier prints the items of one FROM.
type steadier struct {
	p       *Printer
	people  algebra.FromItem // where small public tables alone are beside it
	pending []algebra.Expr   // conditions of WHERE that no join has yet
	last    []string         // conditions that the outermost such join gets
	present []*algebra.Field // are not NULL on the rows that count
	outer   []*algebra.Field // of joins that were written as outer ones
}

// steady prints FROM and WHERE of a query; false if it has no join that depends on it. more gives further conditions of WHERE: one that
// says that rows are somebody's, and one on the groups.
func (p *Printer) steady(n algebra.FromItem, where algebra.Expr, more func() (owned, groups string)) (from, conditions string, ok bool) {
	if p.inline || p.Identity || p.structure != nil {
		return "", "", false
	}
	if n == nil {
		return "", "", false
	}
	every := steadies(n) || lower.QueriesMany(where) || anyOn(n, lower.QueriesMany) || people(n) != nil && looksUp(where)
	n, where = p.SemiJoins.Join(n, where, every)
	if !steadies(n) || !p.adds() {
		return "", "", false
	}
	around := p.hiding
	p.hiding = p.hides
	defer func() { p.hiding = around }()
	s := &steadier{p: p, pending: algebra.BoundConjuncts(where)}
	owned, groups := more()
	var list, late []string
	matters := func(j *algebra.Joined) bool { return mustReadBoth(j) || stability.LargeBeside(j, where) }
	if !anyJoin(n, matters) {
		s.people = people(n)
		p.hiding = false // PostgreSQL hashes the small side, or both are small
		list, owned = []string{owned}, ""
	}
	p.joins, p.pairs = true, p.pairs || s.people == nil
	s.last = slices.DeleteFunc([]string{owned, groups}, func(c string) bool { return c == "" })
	from = s.item(n, true).text
	if len(s.present) > 0 {
		late = append(late, "("+s.nulls(s.present)+map[bool]string{true: " <> 1)", false: " < 1)"}[len(s.present) == 1])
	}
	fenced := len(s.present)+len(s.outer) > 0
	for _, c := range s.pending {
		if !p.SemiJoins.HasLifted(c) && (!fenced && stability.IsJoin(c) || s.ahead(c)) {
			list = append(list, p.Text(c))
		} else {
			late = append(late, p.Text(c))
		}
	}
	late = append(late, s.last...)
	switch all := slices.Concat(s.present, s.outer); {
	case len(late) == 0:
	case len(all) == 0 || len(s.outer) == 0 && len(late) == 1 && len(s.present) > 0:
		list = append(late, list...)
	default: // the test is always true, but PostgreSQL makes it once all joins are done
		late = []string{fmt.Sprintf("CASE WHEN (%s < %d) THEN (%s) END", s.nulls(all), len(all)+1, strings.Join(late, " AND "))}
		list = append(late, list...)
	}
	return from, joinConditions(list), true
}

// mustReadBoth reports whether a join is to read both sides, and not that of people alone.
func mustReadBoth(j *algebra.Joined) bool {
	return stability.ReadsBoth(j) && !(j.Semi && j.Public && !stability.Large(j.Right))
}

// ahead reports whether a condition is about rows of people alone, where no other table is to be read whatever it says.
func (s *steadier) ahead(c algebra.Expr) bool {
	return s.people != nil && stability.ReadsWithin(c, s.people)
}

// people is the item of FROM that has rows of people, of one with public tables else; nil: all are public.
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

// looksUp reports whether a condition of WHERE is EXISTS or IN over public rows, which PostgreSQL makes an inner join of.
func looksUp(where algebra.Expr) bool {
	return slices.ContainsFunc(algebra.BoundConjuncts(where), func(c algebra.Expr) bool {
		switch c := c.(type) {
		case algebra.Exists:
			return lower.Linked(c)
		case algebra.InRows:
			return lower.Linked(c.AsExists())
		}
		return false
	})
}

// hidden is a column that is compared with an expression of rows, so written that PostgreSQL knows no statistics of it. By these, how
// often the most frequent value occurs, it chooses the side of a join that is hashed: one unit with many rows would choose it.
func hidden(e, with algebra.Expr) algebra.Expr {
	if algebra.PlainField(e) == nil || algebra.IsConstant(with) {
		return e
	}
	return algebra.Call{Name: "coalesce", Args: []algebra.Expr{e, e}, T: e.Typ()}
}

func (s *steadier) nulls(fields []*algebra.Field) string {
	var names []string
	for _, f := range fields {
		names = append(names, s.p.field(f))
	}
	return "pg_catalog.num_nulls(" + strings.Join(names, ", ") + ")"
}

// anyOn reports whether a condition of a join in an item is such.
func anyOn(n algebra.FromItem, such func(algebra.Expr) bool) bool {
	return anyJoin(n, func(j *algebra.Joined) bool { return such(j.On) })
}

// anyJoin reports whether a join of an item is such.
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

// steadies reports whether an item joins rows of people with others, or with public tables.
func steadies(n algebra.FromItem) bool {
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

// onlyThere reports whether conditions say nothing but that columns are not NULL.
func onlyThere(where algebra.Expr) bool {
	return !slices.ContainsFunc(algebra.BoundConjuncts(where), func(c algebra.Expr) bool {
		e, ok := c.(algebra.Is)
		return !ok || e.What != syntax.IsNull || !e.Not || algebra.PlainField(e.X) == nil
	})
}

// item prints an item; outermost says that no join is around it.
func (s *steadier) item(n algebra.FromItem, outermost bool) steadied {
	defer steps.Visit(s.p.planning).Leave()
	if c, ok := n.(*algebra.RowCap); ok && !c.Active() {
		return s.item(c.Of, outermost)
	}
	j, ok := n.(*algebra.Joined)
	if !ok || !steadies(n) {
		return steadied{s.p.fromItem(n), s.people != nil || readWhole(n)}
	}
	s.p.pairs = s.p.pairs || j.Meets == nil && j.On != nil || j.Meets != nil && len(j.Meets.Pairs) > 0
	l := s.item(j.Left, false)
	if d, ok := j.Right.(*algebra.Derived); ok && d.Lateral { // has a row for each of the left side, and reads no table
		return s.lateral(j, l)
	}
	if j.Kind == syntax.LeftJoin || j.Kind == syntax.FullJoin {
		return s.outerJoin(j, l)
	}
	r := s.item(j.Right, false)
	left, right := j.Left, j.Right
	on := algebra.BoundConjuncts(j.On)
	if unit := lower.UnitIn(left); j.Meets == nil && j.On == nil && stability.OfLarge(j) && unit != nil {
		return s.besideValue(j, l, r, unit)
	}
	lKey, rKey := s.keys(j, append(slices.Clone(on), s.pending...))
	if mark := j.Mark(); mark != nil && lKey == nil && algebra.Holds(left, mark) {
		lKey = mark
	} else if rKey == nil && l.steady {
		rKey = mark
	}
	if lKey == nil && !l.steady {
		lKey = lower.UnitIn(left)
	}
	if rKey == nil || lKey == nil && !l.steady {
		return steadied{s.asWritten(j, l, r), l.steady}
	}
	if lKey != nil && s.swaps(j, l, r) {
		l, r, left, right, lKey, rKey = r, l, right, left, rKey, lKey
	}
	word := " LEFT JOIN "
	if !l.steady || readsBothInside(right) && lKey != nil {
		word = " FULL JOIN "
		s.present = append(s.present, lKey)
	}
	s.present = append(s.present, rKey)
	var texts []string
	for _, c := range append(on, s.take(left, right)...) {
		texts = append(texts, s.p.Text(c))
	}
	if outermost {
		texts, s.last = append(texts, s.last...), nil
	}
	if len(texts) == 0 {
		texts = []string{s.p.Text(lower.Boolean(true))}
	}
	text := l.text + word + bracketed(right, r.text) + " ON " + strings.Join(texts, " AND ")
	return steadied{text, l.steady || word == " FULL JOIN " && r.steady}
}

// swaps reports whether the right side of an inner join is better the one of which all rows are joined: rows of people before public ones,
// a side that has rows in any case, joins, which no condition may be tested below, and the side that conditions leave alone.
func (s *steadier) swaps(j *algebra.Joined, l, r steadied) bool {
	leftJoins, rightJoins := readsBothInside(j.Left), readsBothInside(j.Right)
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

// lateral prints values that are computed of each row of the left side. What an inner join says of them is tested above all joins.
func (s *steadier) lateral(j *algebra.Joined, l steadied) steadied {
	out := *j
	if j.Kind != syntax.LeftJoin {
		s.pending = append(algebra.BoundConjuncts(j.On), s.pending...)
		out.Kind, out.On = syntax.CrossJoin, nil
	}
	return steadied{s.asWritten(&out, l, steadied{text: s.p.fromItem(j.Right)}), l.steady}
}

// asWritten is a join as it was written.
func (s *steadier) asWritten(j *algebra.Joined, l, r steadied) string {
	text := l.text + joinWord(j) + bracketed(j.Right, r.text)
	if j.On != nil {
		text += " ON " + s.p.Text(j.On)
	}
	return text
}

// outerJoin prints a join that was written as an outer one. Of l LEFT JOIN r PostgreSQL reads r only if l has rows: where one unit may
// decide that, it is a FULL JOIN of which the rows without one of l are left out.
// What is left of the right side, a condition of ON says: WHERE is about rows that no row of it has met, too.
func (s *steadier) outerJoin(j *algebra.Joined, l steadied) steadied {
	pending, present := s.pending, s.present
	s.pending, s.present = nil, nil
	r := s.item(j.Right, false)
	on := s.p.Text(j.On)
	if len(s.present) > 0 {
		on += " AND (" + s.nulls(s.present) + " < 1)"
	}
	s.pending, s.present = pending, present
	_, key := s.keys(j, algebra.BoundConjuncts(j.On))
	mark := key
	if mark == nil {
		mark = j.Mark()
	}
	word := joinWord(j)
	if both := stability.ReadsBoth(j); j.Kind == syntax.LeftJoin && mark != nil && (both || j.MeetsPublic()) {
		s.outer = append(s.outer, mark)
		if unit := lower.UnitIn(j.Left); both && unit != nil && key != nil && (!l.steady || readsBothInside(j.Right)) {
			s.present = append(s.present, unit)
			word, l.steady = " FULL JOIN ", l.steady || r.steady
		}
	}
	return steadied{l.text + word + bracketed(j.Right, r.text) + " ON " + on, l.steady}
}

// readsBothInside reports whether an item is printed as joins that read both sides. On the right side of a LEFT JOIN PostgreSQL tests
// conditions of ON below them.
func readsBothInside(n algebra.FromItem) bool { return nestedJoin(n) && steadies(n) }

// besideValue prints rows of people beside the value of a query, which has one row whatever the tables hold: that one comes first. Where
// these are joins themselves, no condition stands beside them that PostgreSQL could test below.
func (s *steadier) besideValue(j *algebra.Joined, l, r steadied, unit *algebra.Field) steadied {
	if !slices.Contains(s.present, unit) {
		s.present = append(s.present, unit)
	}
	var conditions []string
	if readsBothInside(j.Left) {
		conditions = []string{s.p.Text(lower.Boolean(true))}
	} else {
		conditions = []string{s.p.Text(algebra.Is{X: algebra.Column{Of: unit}, What: syntax.IsNull, Not: true})}
		for _, c := range s.take(j.Right, j.Left) {
			conditions = append(conditions, s.p.Text(c))
		}
	}
	return steadied{r.text + " LEFT JOIN " + bracketed(j.Left, l.text) + " ON " + strings.Join(conditions, " AND "), true}
}

// bracketed is an item on the right side of a join.
func bracketed(n algebra.FromItem, text string) string {
	if nestedJoin(n) {
		return "(" + text + ")"
	}
	return text
}

// narrowed reports whether conditions look at one item alone.
func (s *steadier) narrowed(n algebra.FromItem) bool {
	return slices.ContainsFunc(s.pending, func(c algebra.Expr) bool { return stability.ReadsWithin(c, n) })
}

// take are the conditions that a join of two items can test. EXISTS and IN about the left one alone PostgreSQL joins above all others.
func (s *steadier) take(left, right algebra.FromItem) []algebra.Expr {
	var taken []algebra.Expr
	s.pending = slices.DeleteFunc(slices.Clone(s.pending), func(c algebra.Expr) bool {
		if !stability.ReadsWithin(c, left, right) || stability.IsJoin(c) && !stability.ReadsWithin(c, right) ||
			s.p.SemiJoins.HasLifted(c) || s.ahead(c) {
			return false
		}
		taken = append(taken, c)
		return true
	})
	return taken
}

// keys are fields of both sides that are NULL on no row of the join, for an equality among its conditions is true of them; nil: none.
func (s *steadier) keys(j *algebra.Joined, conditions []algebra.Expr) (l, r *algebra.Field) {
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
