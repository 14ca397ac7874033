package verify

import (
	"slices"
	"strconv"
	"strings"

	pgquery "github.com/pganalyze/pg_query_go/v6"

	"noisegate.example/sqlrewrite/verify/internal/relation"
	"noisegate.example/sqlrewrite/verify/internal/tree"
	"noisegate.example/sqlrewrite/verify/internal/value"
)

// EXISTS and IN inside an expression. Their inner rows must be public:
//
//  1. The value is then a function of the outer row and of public rows, so that it is the outer row's unit's (Lemma 0).
//  2. PostgreSQL evaluates them for each row that other conditions leave. Over rows of people whether their table is read at all would
//     follow from those conditions, and so from one unit's rows: it is the same rows that a join with their different values shows, of
//     which both sides are read (docs/sql/work.md). So they are refused there, whatever ties them to the outer row.
//  3. The value is computed of what is compared and of the outer row's columns that the query reads: it is determined where these are.
//  4. The rows of IN that read nothing around are a set that is hashed once, and a row outside meets one of it; but all of them where
//     PostgreSQL has no hash of what is compared, or looks for rows that are equal but for a NULL among several values.
//
// Example: of people p WHERE EXISTS (SELECT 1 FROM lines l WHERE l.line = p.age) the condition follows from p.age; with visits in the
// place of lines it is refused, and people JOIN (SELECT DISTINCT person_id FROM visits) is not.
func (s *scope) subquery(l *pgquery.SubLink) *value.Value {
	if s.group != nil && !s.inside { // of a row; it counts where it is a key
		c := *s
		c.inside = true
		s = &c
	}
	d := s.d
	inner := &scope{d: d, number: d.Number(), parent: s, reads: new([]int)}
	switch l.SubLinkType {
	case pgquery.SubLinkType_EXISTS_SUBLINK:
		tree.Reads(l, "SubLinkType", "Subselect")
		r := d.query(tree.SelectOf(l.Subselect), inner)
		if r.Released != 0 || r.Owner() != nil {
			refuse("EXISTS over rows of people, row by row")
		}
		v := d.Make(value.Boolean, s.written(l, *inner.reads...))
		if len(*inner.reads) > 0 { // else it is evaluated once
			s.met(v.ID, inner, !inner.besides && s.joined(l, *inner.reads))
		}
		return v
	case pgquery.SubLinkType_ANY_SUBLINK:
		tree.Reads(l, "SubLinkType", "Testexpr", "Subselect")
		tests := []*pgquery.Node{l.Testexpr}
		if row := l.Testexpr.GetRowExpr(); row != nil {
			tree.Reads(row, "Args", "RowFormat")
			tests = row.Args
		}
		r := d.query(tree.SelectOf(l.Subselect), inner)
		if r.Released != 0 || len(r.Columns) != len(tests) {
			refuse("IN over aggregates, or of another number of columns")
		}
		if r.Owner() != nil {
			refuse("IN over rows of people, row by row")
		}
		var args []int
		hashed := true
		for i, n := range tests {
			x, c := s.loose(n), r.Columns[i].Value
			d.Meet(x, c)
			args = append(args, x.ID)
			hashed = hashed && (len(tests) == 1 || d.NeverNull(x) && d.NeverNull(c))
			hashed = hashed && (x.Kind == c.Kind || !x.Kind.IsTime() || !c.Kind.IsTime()) // of times of two kinds there is no hash
		}
		v := d.Make(value.Boolean, s.written(l, append(args, *inner.reads...)...))
		v.Nulls = []int{v.ID}
		if len(*inner.reads) > 0 || !hashed { // else its rows are a set, which is looked into once
			s.met(v.ID, inner, false)
		}
		return v
	default:
		refuse("a query inside an expression that is neither EXISTS nor IN")
		return nil
	}
}

// joined reports whether PostgreSQL makes a join of EXISTS (SELECT 1 ...) whose FROM reads nothing of the rows around (Lemma 12, 4).
func (s *scope) joined(l *pgquery.SubLink, reads []int) bool {
	left, ok := s.d.joins[l]
	ofLeft := func(c relation.Column) bool { return slices.Contains(reads, c.Value.ID) }
	q := tree.SelectOf(l.Subselect)
	one := len(q.TargetList) == 1 && q.TargetList[0].GetResTarget().GetVal().GetAConst() != nil && q.HavingClause == nil
	return ok && one && q.LimitOffset == nil && (left == nil || !slices.ContainsFunc(left.Columns, ofLeft))
}

// written is the id of a query inside an expression: two that are written alike in one place have one value. What is written ends where the
// bracket after EXISTS or IN closes; a text with quotes of another kind than 'a' and "a" is not looked at.
func (s *scope) written(l *pgquery.SubLink, args ...int) int {
	d := s.d
	at := int(l.Location)
	if at < 0 || at >= len(d.sql) || strings.ContainsAny(d.sql, "\\") || strings.Contains(d.sql, "$$") || strings.Contains(d.sql, "--") ||
		strings.Contains(d.sql, "/*") {
		return d.Fresh(args...)
	}
	depth, quote := 0, byte(0)
	for i := at; i < len(d.sql); i++ {
		switch c := d.sql[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '(':
			depth++
		case c == ')':
			if depth--; depth <= 0 {
				place := ""
				for p := s; p != nil; p = p.parent {
					place += strconv.Itoa(p.number) + ","
				}
				return d.Intern("#query "+place+strconv.Itoa(int(l.SubLinkType))+d.sql[at:i+1], args...)
			}
		}
	}
	return d.Fresh(args...)
}
