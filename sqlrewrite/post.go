package sqlrewrite

import (
	"fmt"
	"strconv"
	"strings"

	"noisegate/catalog"
)

// printPost prints the outer layer over released(k0.., v0.., ordinal); nil when the outputs are keys and values as they are. Its
// first arguments are the columns of released, as arrays of text that are filled in by [Released.Post].
//
// It runs in PostgreSQL, on the control database, so that arithmetic, rounding and order mean what PostgreSQL says, and an
// outer layer cannot touch protected rows. Rows that tie keep the order of their keys.
func printPost(q *boundQuery) *Post {
	if q.isIdentity() {
		return nil
	}
	p := &printer{known: make(map[string]int), collation: byteCollation, leaf: func(p *printer, e expr) {
		switch e := e.(type) {
		case keyRef:
			p.write("r.k", strconv.Itoa(e.index))
		case valueRef:
			p.write("r.v", strconv.Itoa(e.index))
		default:
			panic(fmt.Sprintf("sqlrewrite: %T above the aggregates", e))
		}
	}}
	source := p.released(q)
	p.write("SELECT ")
	for _, o := range q.outputs {
		p.expr(o.expr)
		p.write(", ")
	}
	p.write("r.ordinal\nFROM ", source)
	if q.having != nil {
		p.write("\nWHERE ")
		p.expr(q.having)
	}
	p.write("\nORDER BY ")
	if p.orderings(q.orderBy); len(q.orderBy) > 0 {
		p.write(", ")
	}
	p.write("r.ordinal")
	if q.limit != nil {
		p.write("\nLIMIT ")
		p.arg(strconv.FormatInt(*q.limit, 10), "bigint")
	}
	if q.offset > 0 {
		p.write("\nOFFSET ")
		p.arg(strconv.FormatInt(q.offset, 10), "bigint")
	}
	return &Post{SQL: p.b.String(), Args: p.args}
}

func boolIndex(b bool) int {
	if b {
		return 1
	}
	return 0
}

// isIdentity reports whether the released rows are the answer.
func (q *boundQuery) isIdentity() bool {
	if q.having != nil || len(q.orderBy) > 0 || q.limit != nil || q.offset > 0 {
		return false
	}
	for _, o := range q.outputs {
		switch o.expr.(type) {
		case keyRef, valueRef:
		default:
			return false
		}
	}
	return true
}

// released prints the released values as a table of typed columns.
func (p *printer) released(q *boundQuery) string {
	var arrays, names, typed []string
	add := func(name string, t catalog.Type) {
		n := p.rawArg([]*string(nil))
		arrays = append(arrays, fmt.Sprintf("pg_catalog.unnest($%d::pg_catalog.text[])", n))
		names = append(names, name)
		typed = append(typed, fmt.Sprintf("u.%s::%s AS %s", name, sqlType(t), name))
	}
	for i, k := range q.keys {
		add("k"+strconv.Itoa(i), k.x.typ())
	}
	for i, v := range q.values {
		add("v"+strconv.Itoa(i), v.t)
	}
	return fmt.Sprintf("(SELECT %s, u.ordinal\n      FROM ROWS FROM (%s) WITH ORDINALITY AS u(%s, ordinal)) AS r",
		strings.Join(typed, ", "), strings.Join(arrays, ", "), strings.Join(names, ", "))
}

// Post is the outer layer as SQL over the released values; ok is false when there is none to run.
func (r *Released) Post() (post Post, ok bool) {
	if r.plan.post == nil {
		return Post{}, false
	}
	q := r.plan.query
	post = Post{SQL: r.plan.post.SQL, Args: append([]any(nil), r.plan.post.Args...)}
	for i := range q.keys {
		column := make([]*string, len(r.rows))
		for j, row := range r.rows {
			column[j] = keyText(row.keys[i])
		}
		post.Args[i] = column
	}
	for i := range q.values {
		column := make([]*string, len(r.rows))
		for j, row := range r.rows {
			column[j] = keyText(r.plan.valueText(i, row))
		}
		post.Args[len(q.keys)+i] = column
	}
	return post, true
}

func keyText(k catalog.Key) *string {
	if k.Null {
		return nil
	}
	return &k.Text
}
