package sqlprint

import (
	"fmt"
	"strconv"
	"strings"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
)

// PrintPost prints the post-processing queries over released(k0.., v0.., ordinal); nil when the outputs are keys and values as they are.
// Its first arguments are the columns of released, as arrays of text that are filled in by [sqlrewrite.Released.Post].
//
// They run in PostgreSQL, so that arithmetic, rounding and order mean what PostgreSQL says, and cannot touch protected rows. Rows that
// tie keep the order of their keys.
func PrintPost(q *algebra.BoundQuery) *Post {
	if isIdentity(q) {
		return nil
	}
	p := postQuery(q, Style{})
	post := NewPost(p.B.String(), p.Args(), PublicPreconditions(q.Scans), nil)
	post.zones = p.needs.zones
	return post
}

// PrintPublic prints a query over public tables alone.
func PrintPublic(l *algebra.Query, o *algebra.Opened) *Post {
	p := newPostPrinter(nil, Style{}, o.Steps)
	p.query(l, true)
	post := NewPost(p.B.String(), p.Args(), PublicPreconditions(o.Scans), o.Snapshot)
	post.zones = p.needs.zones
	return post
}

// PostIdentity is [PrintPost] as it identified a question; see [Style].
func PostIdentity(q *algebra.BoundQuery) string {
	return postQuery(q, Style{Identity: true}).B.String()
}

// postQuery prints the post-processing queries.
func postQuery(q *algebra.BoundQuery, as Style) *postPrinter {
	p := newPostPrinter(q, as, q.Shared().Steps)
	for _, block := range q.Computed() {
		rows := ""
		if block != nil {
			rows = p.releasedRows(block)
		}
		p.released = append(p.released, rows)
	}
	if q.Post != nil {
		p.query(q.Post, true)
	} else {
		p.blockSelect(q, 0, false, true)
	}
	return p
}

// blockSelect prints the SELECT of a release block itself over released values; named gives its outputs names.
func (p *postPrinter) blockSelect(q *algebra.BoundQuery, at int, named, top bool) {
	p.write("SELECT ")
	for i, o := range OwnOutputs(q) {
		p.expr(o.Expr)
		if named {
			p.write(" AS ", algebra.OutputColumn(i))
		}
		p.write(", ")
	}
	for _, number := range p.tells(nil) {
		p.rowsOf(number, OwnOutputs(q), "r")
		p.write(", ")
	}
	if p.several() {
		p.numbers(top, map[int]string{at: "r.ordinal"})
	} else {
		p.write("r.ordinal")
	}
	p.write("\nFROM ", p.released[at])
	if q.Having != nil {
		p.write("\nWHERE ")
		p.expr(q.Having)
	}
	p.write("\nORDER BY ")
	if p.orderings(q.OrderBy); len(q.OrderBy) > 0 {
		p.write(", ")
	}
	p.write("r.ordinal")
	p.cut(q.Limit, q.Offset)
}

// OwnOutputs are the outputs of the block's own SELECT.
func OwnOutputs(q *algebra.BoundQuery) []algebra.Output {
	if q.Post != nil {
		return q.Inner
	}
	return q.Outputs
}

// isIdentity reports whether the released rows are the answer.
func isIdentity(q *algebra.BoundQuery) bool {
	if q.Post != nil || q.Having != nil || len(q.OrderBy) > 0 || q.Limit != nil || q.Offset > 0 {
		return false
	}
	for _, o := range q.Outputs {
		switch o.Expr.(type) {
		case algebra.KeyRef, algebra.EstimatorRef:
		default:
			return false
		}
	}
	return true
}

// releasedRows prints the released values as a table of typed columns.
func (p *Printer) releasedRows(q *algebra.BoundQuery) string {
	var arrays, names, typed []string
	add := func(name string, t catalog.Type) {
		n := p.rawArg([]*string(nil))
		arrays = append(arrays, fmt.Sprintf("pg_catalog.unnest($%d::pg_catalog.text[])", n))
		names = append(names, name)
		typed = append(typed, fmt.Sprintf("u.%s::%s AS %s", name, sqlType(t), name))
	}
	for i, k := range q.Keys {
		add("k"+strconv.Itoa(i), k.X.Typ())
	}
	for i, v := range q.Estimators {
		add("v"+strconv.Itoa(i), v.T)
	}
	return fmt.Sprintf("(SELECT %s, u.ordinal\n      FROM ROWS FROM (%s) WITH ORDINALITY AS u(%s, ordinal)) AS r",
		strings.Join(typed, ", "), strings.Join(arrays, ", "), strings.Join(names, ", "))
}
