package verify

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	pgquery "github.com/pganalyze/pg_query_go/v6"
)

// EXISTS and IN. They are functions of the outer row's unit where the inner rows are public, or are the outer row's unit's own:
//
//   - EXISTS: a condition that every inner row meets equates what names its unit with what names the outer row's (join.go).
//   - (x, ...) IN (SELECT c, ...): the same; or x and c name units in the same way, and neither is NULL. Then the comparison with a row of
//     another unit is false, whatever the other columns hold, as x <> c: the result is that over the unit's own rows. Were c NULL in a row of
//     another unit, NOT IN would be NULL because of it; were x NULL, the result would be NULL if there is any inner row at all.
//
// Where it matters only whether the result is true, and it stands under no NOT (scope.positive), x may be NULL: NULL and false do the same.
// So it may where it is so on rows of nobody only: what is made of these belongs to nobody, and is left out of the release.
// That x is not NULL may be said beside the condition (WHERE x IS NOT NULL AND NOT x IN ...): where it is NULL the row is left out in any case.
// The value is computed of what is compared and of the outer row's columns that the query reads: it is determined where these are.
func (s *scope) subquery(l *pgquery.SubLink) *value {
	if l.Xpr != nil || l.SubLinkId != 0 || len(l.OperName) > 0 {
		refuse("a query compared by an operator")
	}
	if s.group != nil && !s.inside { // of a row; it counts where it is a key
		c := *s
		c.inside = true
		s = &c
	}
	d := s.d
	inner := &scope{d: d, parent: s, reads: new([]int)}
	switch l.SubLinkType {
	case pgquery.SubLinkType_EXISTS_SUBLINK:
		if l.Testexpr != nil {
			refuse("a field of EXISTS")
		}
		r := d.query(selectOf(l.Subselect), inner)
		if r.released != nil || r.owner() != nil && !s.outer(r.owner()) {
			refuse("EXISTS over rows that are not the outer row's unit's own")
		}
		v := d.make(boolean, s.written(l, *inner.reads...))
		s.met(v.id, inner.rel, nil)
		return v
	case pgquery.SubLinkType_ANY_SUBLINK:
		tests := []*pgquery.Node{l.Testexpr}
		if row := l.Testexpr.GetRowExpr(); row != nil {
			if row.Xpr != nil || row.RowTypeid != 0 || len(row.Colnames) > 0 {
				refuse("a field of ROW")
			}
			tests = row.Args
		}
		r := d.query(selectOf(l.Subselect), inner)
		if r.released != nil || len(r.columns) != len(tests) {
			refuse("IN over aggregates, or of another number of columns")
		}
		tied := r.owner() == nil || s.outer(r.owner())
		var args, given []int
		for i, n := range tests {
			x, c := s.loose(n), r.columns[i].v
			identities(x, c)
			d.comparable(x, common(x.kind, c.kind))
			d.comparable(c, common(x.kind, c.kind))
			args, given = append(args, x.id), append(given, c.id)
			tied = tied || s.ties(x, c, r)
		}
		if !tied {
			refuse("IN over rows that are not the outer row's unit's own")
		}
		v := d.make(boolean, s.written(l, append(args, *inner.reads...)...))
		v.nulls = []int{v.id}
		if len(*inner.reads) > 0 { // else its rows are a set, which is looked into once
			s.met(v.id, inner.rel, given)
		}
		return v
	default:
		refuse("a query inside an expression that is neither EXISTS nor IN")
		return nil
	}
}

// written is the id of a query inside an expression: two that are written alike in one place have one value. What is written ends where the
// bracket after EXISTS or IN closes; a text with quotes of another kind than 'a' and "a" is not looked at.
func (s *scope) written(l *pgquery.SubLink, args ...int) int {
	d := s.d
	at := int(l.Location)
	if at < 0 || at >= len(d.sql) || strings.ContainsAny(d.sql, "\\") || strings.Contains(d.sql, "$$") || strings.Contains(d.sql, "--") || strings.Contains(d.sql, "/*") {
		return d.fresh(args...)
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
					d.held = append(d.held, p.rel) // no other is ever at its address
					place += fmt.Sprintf("%p,", p.rel)
				}
				return d.intern("#query "+place+strconv.Itoa(int(l.SubLinkType))+d.sql[at:i+1], args...)
			}
		}
	}
	return d.fresh(args...)
}

// outer reports whether a unit is one of the rows that a query is evaluated for.
func (s *scope) outer(u *unit) bool {
	for p := s; p != nil; p = p.parent {
		if p.rel != nil && slices.ContainsFunc(p.rel.units, func(x *unit) bool { return x.find() == u }) {
			return true
		}
	}
	return false
}

// ties reports whether x = c only for rows of one unit, and is false, not NULL, for all others.
func (s *scope) ties(x, c *value, r *relation) bool {
	if !s.positive && !s.given(x) || !r.solid[c.id] || x.kind != c.kind && !(isInteger(x.kind) && isInteger(c.kind)) || x.kind == bpchar {
		return false
	}
	for _, a := range x.anchors {
		for _, b := range c.anchors {
			if a.name == b.name && b.of.find() == r.owner() && s.outer(a.of.find()) {
				return true
			}
		}
	}
	return false
}

// given reports whether a value is not NULL in any row that counts.
func (s *scope) given(v *value) bool {
	if len(v.nulls) == 0 || s.facts[v.id] || v.strict {
		return true
	}
	for p := s; p != nil; p = p.parent {
		if slices.ContainsFunc(p.narrow, func(n narrowed) bool { return n.solid && n.id == v.id }) {
			return true // in CASE WHEN x IS NOT NULL THEN
		}
		if p.rel == nil {
			continue
		}
		if p.rel.solid[v.id] {
			return true
		}
	}
	return false
}
