package sqlrewrite

import (
	"fmt"
	"math/big"
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
	p.chained = p.chained || len(s.present)+len(s.outer) > 1 || joinsLarge(n)
	return from, strings.Join(list, " AND "), true
}

func (s *steadier) nulls(fields []*field) string {
	var names []string
	for _, f := range fields {
		names = append(names, s.p.field(f))
	}
	return "pg_catalog.num_nulls(" + strings.Join(names, ", ") + ")"
}

// steadies reports whether an item joins rows of people with rows of people, or with large public tables.
func steadies(n fromItem) bool {
	switch n := n.(type) {
	case *rowCap:
		return !n.active() && steadies(n.of)
	case *joined:
		return n.readsBoth() || steadies(n.left) || steadies(n.right)
	default:
		return false
	}
}

// readsBoth reports whether a join is to read both sides whatever is in them.
func (n *joined) readsBoth() bool { return n.ofPeople() || n.ofLarge() }

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

// ofLarge reports whether one side is rows of people and the other one public rows that take long to read.
func (n *joined) ofLarge() bool {
	switch {
	case n.meets == nil:
		return n.on == nil && large(n.right) // the value of a query
	case n.meets.l.owned() == n.meets.r.owned():
		return false
	case n.meets.l.owned():
		return large(n.right)
	default:
		return large(n.left)
	}
}

// joinsLarge reports whether an item joins large public tables: a merge would read them, in the order of an index, as far as one unit's value goes.
func joinsLarge(n fromItem) bool {
	switch n := n.(type) {
	case *rowCap:
		return !n.active() && joinsLarge(n.of)
	case *joined:
		return n.ofLarge() || n.public || joinsLarge(n.left) || joinsLarge(n.right)
	default:
		return false
	}
}

// large reports whether public rows may take longer to read than the work of one unit may differ by: whether they are read is then no business of a
// unit's rows. Small ones are read as PostgreSQL likes.
func large(n fromItem) bool {
	rows := readRows(n)
	return rows.Mul(rows, big.NewInt(scanRow)).Cmp(big.NewInt(maxUnitWork)) > 0
}

// readRows is how many rows are read, at most, for the rows of a public item.
func readRows(n fromItem) *big.Int {
	rows := new(big.Int)
	switch n := n.(type) {
	case *scan:
		rows, _ = mostRows(n)
	case *rowCap:
		return readRows(n.of)
	case *joined:
		met, _ := mostRows(n)
		rows.Add(rows.Add(readRows(n.left), readRows(n.right)), met)
	case *derived:
		for _, q := range n.parts {
			if q.from != nil {
				rows.Add(rows, readRows(q.from))
			}
		}
	}
	return new(big.Int).Set(rows)
}

// unitIn is a field that is NULL on no row of an item that belongs to somebody; nil: none is known.
func unitIn(n fromItem) *field {
	of := func(fields []*field) *field {
		if i := slices.IndexFunc(fields, func(f *field) bool { return f.unit }); i >= 0 {
			return fields[i]
		}
		return nil
	}
	switch n := n.(type) {
	case *scan:
		if n.table.Unit.Kind != catalog.PathUnit {
			return of(n.fields)
		}
	case *rowCap:
		if n.active() {
			return n.by
		}
		return unitIn(n.of)
	case *derived:
		return of(n.fields)
	case *joined:
		if f := unitIn(n.left); f != nil || n.kind == syntax.LeftJoin || n.kind == syntax.FullJoin {
			return f
		}
		return unitIn(n.right)
	}
	return nil
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
		value := n.meets == nil && n.on == nil // one row
		return (n.kind == syntax.LeftJoin || value) && readWhole(n.left)
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

// item prints an item; outermost says that no join is around it.
func (s *steadier) item(n fromItem, outermost bool) steadied {
	if c, ok := n.(*rowCap); ok && !c.active() {
		return s.item(c.of, outermost)
	}
	j, ok := n.(*joined)
	if !ok || !steadies(n) {
		return steadied{s.p.fromItem(n), readWhole(n)}
	}
	l := s.item(j.left, false)
	if j.kind == syntax.LeftJoin || j.kind == syntax.FullJoin {
		return s.outerJoin(j, l)
	}
	r := s.item(j.right, false)
	left, right := j.left, j.right
	on := boundConjuncts(j.on)
	if unit := unitIn(left); j.meets == nil && j.on == nil && j.ofLarge() && unit != nil {
		return s.besideValue(j, l, r, unit)
	}
	lKey, rKey := s.keys(j, append(slices.Clone(on), s.pending...))
	if rKey == nil && l.steady {
		rKey = j.mark()
	}
	if lKey == nil && !l.steady {
		lKey = unitIn(left)
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
		texts = append(texts, s.p.text(c))
	}
	if outermost {
		texts, s.last = append(texts, s.last...), nil
	}
	return steadied{l.text + word + bracketed(right, r.text) + " ON " + strings.Join(texts, " AND "), l.steady || word == " FULL JOIN " && r.steady}
}

// swaps reports whether the right side of an inner join is better the one of which all rows are joined: rows of people before public ones, a side
// that has rows in any case, joins, which no condition may be tested below, and the side that conditions leave alone.
func (s *steadier) swaps(j *joined, l, r steadied) bool {
	leftJoins, rightJoins := readsBothInside(j.left), readsBothInside(j.right)
	switch {
	case j.meets != nil && !j.meets.l.owned() && r.steady, r.steady && !l.steady:
		return true
	case l.steady != r.steady:
		return false
	case leftJoins != rightJoins && r.steady:
		return rightJoins
	default:
		return s.narrowed(j.left) && !s.narrowed(j.right)
	}
}

// asWritten is a join as it was written.
func (s *steadier) asWritten(j *joined, l, r steadied) string {
	text := l.text + joinWord(j) + bracketed(j.right, r.text)
	if j.on != nil {
		text += " ON " + s.p.text(j.on)
	}
	return text
}

// outerJoin prints a join that was written as an outer one. Of l LEFT JOIN r PostgreSQL reads r only if l has rows: where one unit may decide that, it
// is a FULL JOIN of which the rows without one of l are left out.
// What is left of the right side, a condition of ON says: WHERE is about rows that no row of it has met, too.
func (s *steadier) outerJoin(j *joined, l steadied) steadied {
	pending, present := s.pending, s.present
	s.pending, s.present = nil, nil
	r := s.item(j.right, false)
	on := s.p.text(j.on)
	if len(s.present) > 0 {
		on += " AND (" + s.nulls(s.present) + " < 1)"
	}
	s.pending, s.present = pending, present
	_, key := s.keys(j, boundConjuncts(j.on))
	mark := key
	if mark == nil {
		mark = j.mark()
	}
	word := joinWord(j)
	if j.kind == syntax.LeftJoin && mark != nil && j.readsBoth() {
		s.outer = append(s.outer, mark)
		if unit := unitIn(j.left); unit != nil && key != nil && (!l.steady || readsBothInside(j.right)) {
			s.present = append(s.present, unit)
			word, l.steady = " FULL JOIN ", l.steady || r.steady
		}
	}
	return steadied{l.text + word + bracketed(j.right, r.text) + " ON " + on, l.steady}
}

// readsBothInside reports whether an item is printed as joins that read both sides. On the right side of a LEFT JOIN PostgreSQL tests conditions of
// ON below them.
func readsBothInside(n fromItem) bool { return nestedJoin(n) && steadies(n) }

// besideValue prints rows of people beside the value of a query, which has one row whatever the tables hold: that one comes first.
func (s *steadier) besideValue(j *joined, l, r steadied, unit *field) steadied {
	s.present = append(s.present, unit)
	conditions := []string{s.p.text(is{x: column{of: unit}, what: syntax.IsNull, not: true})}
	for _, c := range s.take(j.right, j.left) {
		conditions = append(conditions, s.p.text(c))
	}
	return steadied{r.text + " LEFT JOIN " + bracketed(j.left, l.text) + " ON " + strings.Join(conditions, " AND "), true}
}

// mark is a field that is not NULL where a join that stands for EXISTS or IN found a row; nil for other joins.
func (n *joined) mark() *field {
	if d, ok := n.right.(*derived); ok && n.semi {
		return d.fields[0]
	}
	return nil
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

// keys are fields of both sides that are NULL on no row of the join, for an equality among its conditions is true of them; nil: none.
func (s *steadier) keys(j *joined, conditions []expr) (l, r *field) {
	for _, c := range conditions {
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
