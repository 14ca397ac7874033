package sqlrewrite

import (
	"fmt"
	"strconv"
	"strings"

	"noisegate/catalog"
)

// printPost prints the layers over released(k0.., v0.., ordinal); nil when the outputs are keys and values as they are. Its
// first arguments are the columns of released, as arrays of text that are filled in by [Released.Post].
//
// They run in PostgreSQL, so that arithmetic, rounding and order mean what PostgreSQL says, and cannot touch protected rows. Rows that
// tie keep the order of their keys.
func printPost(q *boundQuery) *Post {
	if q.isIdentity() {
		return nil
	}
	p := q.layers(false)
	post := newPost(p.b.String(), p.args, publicPins(q.scans), nil)
	if p.added {
		post.identity = q.layers(true).b.String()
	}
	return post
}

// layers prints the layers, or what identifies them.
func (q *boundQuery) layers(identity bool) *layerPrinter {
	p := newLayerPrinter(q)
	p.identity = identity
	p.released = p.releasedRows(q)
	if q.layer != nil {
		p.layer(q.layer, true)
	} else {
		p.blockSelect(q, p.released, false)
	}
	return p
}

// blockSelect prints the SELECT of the release block itself over released values; named gives its outputs names.
func (p *printer) blockSelect(q *boundQuery, source string, named bool) {
	p.write("SELECT ")
	for i, o := range q.own() {
		p.expr(o.expr)
		if named {
			p.write(" AS ", outputColumn(i))
		}
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
	p.cut(q.limit, q.offset)
}

// own are the outputs of the block's own SELECT.
func (q *boundQuery) own() []output {
	if q.layer != nil {
		return q.inner
	}
	return q.outputs
}

func boolIndex(b bool) int {
	if b {
		return 1
	}
	return 0
}

// isIdentity reports whether the released rows are the answer.
func (q *boundQuery) isIdentity() bool {
	if q.layer != nil || q.having != nil || len(q.orderBy) > 0 || q.limit != nil || q.offset > 0 {
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

// releasedRows prints the released values as a table of typed columns.
func (p *printer) releasedRows(q *boundQuery) string {
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
func (r *releasedPlan) Post() (post Post, ok bool) {
	if r.plan.post == nil {
		return Post{}, false
	}
	q := r.plan.query
	args := append([]any(nil), r.plan.post.Args()...)
	for i := range q.keys {
		column := make([]*string, len(r.rows))
		for j, row := range r.rows {
			column[j] = keyText(row.keys[i])
		}
		args[i] = column
	}
	for i := range q.values {
		column := make([]*string, len(r.rows))
		for j, row := range r.rows {
			column[j] = keyText(r.plan.valueText(i, row))
		}
		args[len(q.keys)+i] = column
	}
	return postWith(r.plan.post, args), true
}

func keyText(k catalog.Key) *string {
	if k.Null {
		return nil
	}
	return &k.Text
}
