package sqlrewrite

import (
	"fmt"
	"slices"

	"noisegate/catalog"
	"noisegate/internal/fault"
	"noisegate/sqlrewrite/syntax"
)

// PublicPlan is a query whose answer holds nothing private: it reads public tables alone, or it has no rows whatever the tables hold. It
// is exact, costs nothing, and has no [Statement]: nothing that it can be made to run names a table with a privacy unit.
type PublicPlan struct {
	columns []Column
	post    *Post // nil: there are no rows
	lines   []string
}

// maxPublicRows caps the rows of a public answer.
const maxPublicRows = 100_000

// openPlan is the plan of a query whose answer holds nothing private, nil for all others.
func openPlan(text string, query *syntax.Query, snapshot *catalog.Snapshot) (*PublicPlan, error) {
	o := newOpened(text, snapshot)
	kind := o.kindOf(query, nil)
	switch {
	case query.Set == nil && hasNoRows(query, kind == ownedRows):
		return o.emptyPlan(query, kind)
	case kind == publicRows:
		return o.publicPlan(query)
	default:
		return nil, nil
	}
}

func (o *opened) publicPlan(query *syntax.Query) (*PublicPlan, error) {
	l, err := o.query(query, nil, nil)
	if err != nil {
		return nil, err
	}
	if o.block != nil {
		return nil, o.refusePublic(query) // kindOf knows better: never
	}
	if l.limit == nil || *l.limit > maxPublicRows {
		cut := int64(maxPublicRows + 1)
		l.limit = &cut
	}
	p := newLayerPrinter(nil)
	p.layer(l, true)
	plan := &PublicPlan{post: newPost(p.b.String(), p.args, publicPins(o.scans), o.snapshot), lines: l.lines(nil)}
	for _, out := range l.outputs {
		plan.columns = append(plan.columns, Column{Name: out.name, Type: typeOfOutput(out.expr.typ()), Kind: PublicColumn})
	}
	return plan, plan.post.Prove(new(Proofs))
}

// Post is what runs; ok is false when nothing does, because there are no rows.
func (p *PublicPlan) Post() (post Post, ok bool) {
	if p.post == nil {
		return Post{}, false
	}
	return *p.post, true
}

// Columns describes the outputs of the answer.
func (p *PublicPlan) Columns() []Column { return append([]Column(nil), p.columns...) }

// Tree is the plan as text.
func (p *PublicPlan) Tree() string {
	text := "answer: exact and free"
	for _, line := range p.lines {
		text += "\n  " + line
	}
	return text + "\n"
}

// Answer assembles the answer from what [PublicPlan.Post] gave; types are PostgreSQL's names of the columns.
func (p *PublicPlan) Answer(rows []PostRow, types []string) (*Answer, error) {
	switch {
	case len(rows) > maxPublicRows:
		return nil, fault.TooComplex(fault.Position{}, fmt.Sprintf("the answer has more than %d rows", maxPublicRows)).WithHint("add LIMIT, or aggregate")
	case p.post != nil && len(types) != len(p.columns):
		return nil, fault.Internal(errShape)
	}
	a := &Answer{Columns: p.Columns()}
	for i := range types {
		a.Columns[i].Type = types[i]
	}
	for _, row := range rows {
		a.Rows = append(a.Rows, row.Values)
		a.Intervals = append(a.Intervals, make([]*Interval, len(row.Values)))
	}
	return a, nil
}

// publicPins are the metadata of public tables that a statement relies on.
func publicPins(scans []*layerScan) []Pin {
	var pins []Pin
	for _, s := range scans {
		if slices.ContainsFunc(pins, func(p Pin) bool { return p.OID == s.table.OID }) {
			continue
		}
		pin := pinOf(s.table)
		for _, f := range s.fields {
			pin.Columns = append(pin.Columns, pinnedColumn(f.Column))
		}
		pins = append(pins, pin)
	}
	return pins
}
