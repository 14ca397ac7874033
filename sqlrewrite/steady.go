package sqlrewrite

import (
	"fmt"
	"slices"
	"strings"

	"noisegate/catalog"
	"noisegate/sqlrewrite/syntax"
)

// PostgreSQL does not read one side of a join where the other one is empty, and of two sorted sides it reads one no further than the other goes. Where
// a condition leaves one unit's rows alone, that unit then decides whether another table is read, or sorted, at all. So joins of rows of people are
// printed in an equivalent form of which PostgreSQL reads both sides to the end, whatever is in them:
//
//	l LEFT JOIN r ON (what joins them, and the conditions of WHERE) WHERE num_nulls(r.key) <> 1
//
// l is read without conditions, so that it is empty for nobody. Where conditions are inside of both sides (of a cap, a query in FROM) it is a FULL
// JOIN. num_nulls is not strict: PostgreSQL does not see that the outer join is an inner one, nor that it may test what stands beside it earlier.
// docs/sql.md, section 4, has the argument.

// steadied is an item of FROM on its way to such a form.
type steadied struct {
	text   string
	steady bool // whether it has rows does not depend on what a condition says of one unit
}

// steadier prints the items of one FROM.
type steadier struct {
	p       *printer
	pending []expr   // conditions of WHERE that no join has yet
	last    []string // conditions that the outermost such join gets
	present []*field // are not NULL on the rows that count
	outer   []*field // of joins that were written as outer ones
}

// steady prints FROM and WHERE of a query; false if it has no join that depends on it. more gives further conditions of WHERE.
func (p *printer) steady(n fromItem, where expr, more func() []string) (from, conditions string, ok bool) {
	if p.inline || p.identity || p.structure != nil {
		return "", "", false
	}
	if n == nil {
		return "", "", false
	}
	n, where = p.semijoins(n, where)
	if !steadies(n) || !p.adds() {
		return "", "", false
	}
	p.joins, p.pairs = true, true
	s := &steadier{p: p, pending: boundConjuncts(where), last: slices.DeleteFunc(more(), func(c string) bool { return c == "" })}
	from = s.item(n, true).text
	var list, late []string
	if len(s.present) > 0 {
		late = append(late, "("+s.nulls(s.present)+map[bool]string{true: " <> 1)", false: " < 1)"}[len(s.present) == 1])
	}
	for _, c := range s.pending {
		if isJoin(c) && !p.hasLifted(c) {
			list = append(list, p.text(c))
		} else {
			late = append(late, p.text(c))
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
	p.chained = p.chained || len(s.present)+len(s.outer) > 1
	return from, strings.Join(list, " AND "), true
}

func (s *steadier) nulls(fields []*field) string {
	var names []string
	for _, f := range fields {
		names = append(names, s.p.field(f))
	}
	return "pg_catalog.num_nulls(" + strings.Join(names, ", ") + ")"
}

// steadies reports whether an item joins rows of people with rows of people.
func steadies(n fromItem) bool {
	switch n := n.(type) {
	case *rowCap:
		return !n.active() && steadies(n.of)
	case *joined:
		return n.ofPeople() || steadies(n.left) || steadies(n.right)
	default:
		return false
	}
}

// ofPeople reports whether both sides are rows of people: a path, a join on their units, or EXISTS.
func (n *joined) ofPeople() bool {
	if n.semi {
		return true
	}
	if n.meets == nil {
		return n.on != nil
	}
	return n.meets.l.owned() && n.meets.r.owned()
}

// readWhole reports whether an item is read without conditions.
func readWhole(n fromItem) bool {
	switch n := n.(type) {
	case *scan:
		return true
	case *rowCap:
		return readWhole(n.of) && (!n.active() || onlyThere(n.where))
	case *derived:
		return !n.lateral && slices.ContainsFunc(n.parts, func(q *rowQuery) bool { return q.from != nil && onlyThere(q.where) && readWhole(q.from) })
	case *joined:
		return n.kind == syntax.LeftJoin && readWhole(n.left)
	default:
		return false
	}
}

// onlyThere reports whether conditions say nothing but that columns are not NULL.
func onlyThere(where expr) bool {
	return !slices.ContainsFunc(boundConjuncts(where), func(c expr) bool {
		e, ok := c.(is)
		return !ok || e.what != syntax.IsNull || !e.not || plainField(e.x) == nil
	})
}

// semijoins makes joins of EXISTS and IN over rows of people, where equalities tie their rows to those around: with the different values that
// these rows have, of which one at most is equal. Where a row is left only if there is one it is an inner join. Elsewhere (below NOT or OR, in CASE
// and FILTER) it is an outer one, and the expression tests whether it found a row; else PostgreSQL may run the query anew for each row.
func (p *printer) semijoins(n fromItem, where expr) (fromItem, expr) {
	var rest []expr
	var inner []*lifted
	for _, c := range boundConjuncts(where) {
		switch l := p.tied(c); {
		case l != nil && l.within(n):
			inner = append(inner, l)
			continue
		case !isJoin(c) || isNegated(c):
			p.liftAll(c, n)
		}
		rest = append(rest, c)
	}
	for _, l := range inner {
		n = &joined{kind: syntax.InnerJoin, left: n, right: l.values, on: all(l.on), semi: true}
	}
	waiting := p.lifts
	p.lifts = nil
	for _, l := range waiting {
		if l.within(n) {
			n = &joined{kind: syntax.LeftJoin, left: n, right: l.values, on: all(l.on), semi: true}
		} else {
			p.lifts = append(p.lifts, l)
		}
	}
	return n, all(rest)
}

func isNegated(e expr) bool {
	_, ok := e.(not)
	return ok
}

// lifted is EXISTS or IN as a join.
type lifted struct {
	values *derived
	on     []expr // equalities of a value, on the left, and an expression of the rows around
}

func (l *lifted) within(n fromItem) bool {
	return !slices.ContainsFunc(l.on, func(c expr) bool { return !readsWithin(c.(binary).r, n) })
}

// lift makes a join of EXISTS, or of IN of one value, that stands for a value; nil where it cannot. It is TRUE where the join found a row.
func (p *printer) lift(e expr) *field {
	if p.inline || p.identity || p.structure != nil || p.fixed > 0 {
		return nil
	}
	var at fromItem
	switch e := e.(type) {
	case exists:
		at = e.from
	case inRows:
		if len(e.x) > 1 {
			return nil // NULL, where one of them is
		}
		at = e.from
	}
	l := p.asJoins[at]
	if l == nil {
		if l = p.tied(e); l == nil {
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
	case exists, inRows:
		if l := p.tied(e); l != nil && l.within(n) {
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
		return p.asJoins[e.from] != nil
	}
	return slices.ContainsFunc(children(e), p.hasLifted)
}

// tied is EXISTS or IN over rows of people that equalities tie to the rows around; nil for all else.
func (p *printer) tied(c expr) *lifted {
	q := &rowQuery{distinct: true}
	l := &lifted{values: &derived{parts: []*rowQuery{q}}}
	var there []expr // a row whose value is NULL is equal to none
	tie := func(inner *field, outer expr) {
		at := slices.IndexFunc(q.outputs, func(e expr) bool { return plainField(e) == inner })
		if at < 0 {
			at = len(q.outputs)
			like := *inner.Column
			q.outputs = append(q.outputs, column{of: inner})
			there = append(there, is{x: column{of: inner}, what: syntax.IsNull, not: true})
			l.values.fields = append(l.values.fields, &field{Column: &like, printed: fmt.Sprintf("c%d", at), unit: inner.unit})
		}
		l.on = append(l.on, binary{op: syntax.Eq, l: column{of: l.values.fields[at]}, r: outer, t: catalog.Bool})
	}
	switch e := c.(type) {
	case exists:
		of, ok := e.from.(*rowCap)
		if !ok || !e.of.owned() || of.active() {
			return nil
		}
		var inner []expr
		for _, x := range boundConjuncts(e.where) {
			in, out, equal := isEquality(x, of.of)
			switch {
			case equal && plainField(in) != nil && sameEquality(in.typ(), out.typ()):
				tie(plainField(in), out)
			case readsOnly(x, of.of):
				inner = append(inner, x)
			default:
				return nil
			}
		}
		q.from, q.where = of.of, all(inner)
	case inRows:
		if !e.of.owned() {
			return nil
		}
		for i, x := range e.x {
			if !sameEquality(x.typ(), e.outputs[i].Type) {
				return nil
			}
			tie(e.outputs[i], x)
		}
		q.from, q.where = e.from, e.where
	}
	if len(l.on) == 0 {
		return nil
	}
	q.where = all(append(boundConjuncts(q.where), there...))
	p.semis++
	l.values.alias = fmt.Sprintf("e%d", p.semis)
	for _, f := range l.values.fields {
		f.relation = l.values.alias
	}
	return l
}

// item prints an item; outermost says that no join is around it.
func (s *steadier) item(n fromItem, outermost bool) steadied {
	if c, ok := n.(*rowCap); ok && !c.active() {
		return s.item(c.of, outermost)
	}
	j, ok := n.(*joined)
	if !ok || !steadies(n) {
		return steadied{s.p.fromItem(n), readWhole(n)}
	}
	l, r := s.item(j.left, false), s.item(j.right, false)
	left, right := j.left, j.right
	on := boundConjuncts(j.on)
	lKey, rKey := s.keys(j, on)
	if j.kind == syntax.LeftJoin || j.kind == syntax.FullJoin || rKey == nil || lKey == nil && !l.steady {
		if j.kind == syntax.LeftJoin && rKey != nil && j.ofPeople() {
			s.outer = append(s.outer, rKey)
		}
		text := l.text + joinWord(j) + bracketed(right, r.text)
		if j.on != nil {
			text += " ON " + s.p.text(j.on)
		}
		return steadied{text, l.steady}
	}
	public := j.meets != nil && !j.meets.l.owned() && r.steady // rows of people come first
	if lKey != nil && (public || !l.steady && r.steady || l.steady == r.steady && s.narrowed(left) && !s.narrowed(right)) {
		l, r, left, right, lKey, rKey = r, l, right, left, rKey, lKey
	}
	word := " LEFT JOIN "
	if !l.steady {
		word = " FULL JOIN "
		s.present = append(s.present, lKey)
	}
	s.present = append(s.present, rKey)
	var texts []string
	for _, c := range append(on, s.take(left, right)...) {
		texts = append(texts, s.p.text(c))
	}
	if outermost {
		texts, s.last = append(texts, s.last...), nil
	}
	return steadied{l.text + word + bracketed(right, r.text) + " ON " + strings.Join(texts, " AND "), l.steady}
}

// bracketed is an item on the right side of a join.
func bracketed(n fromItem, text string) string {
	if nestedJoin(n) {
		return "(" + text + ")"
	}
	return text
}

// narrowed reports whether conditions look at one item alone.
func (s *steadier) narrowed(n fromItem) bool {
	return slices.ContainsFunc(s.pending, func(c expr) bool { return readsWithin(c, n) })
}

// take are the conditions that a join of two items can test. EXISTS and IN about the left one alone PostgreSQL joins above all others.
func (s *steadier) take(left, right fromItem) []expr {
	var taken []expr
	s.pending = slices.DeleteFunc(slices.Clone(s.pending), func(c expr) bool {
		if !readsWithin(c, left, right) || isJoin(c) && !readsWithin(c, right) || s.p.hasLifted(c) {
			return false
		}
		taken = append(taken, c)
		return true
	})
	return taken
}

// keys are fields of both sides that are NULL on no row of the join, for an equality is true of them; nil: none.
func (s *steadier) keys(j *joined, on []expr) (l, r *field) {
	for _, c := range append(slices.Clone(on), s.pending...) {
		b, ok := c.(binary)
		if !ok || b.op != syntax.Eq || !sameEquality(b.l.typ(), b.r.typ()) {
			continue
		}
		for _, side := range [][2]expr{{b.l, b.r}, {b.r, b.l}} {
			x, y := plainField(side[0]), plainField(side[1])
			if y == nil || !holds(j.right, y) || !readsOnly(side[0], j.left) || isConstant(side[0]) {
				continue
			}
			if r == nil || x != nil && l == nil {
				l, r = x, y
			}
		}
	}
	return l, r
}
