package free

import (
	"fmt"

	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/answer"
	"noisegate.example/sqlrewrite/internal/bind"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/sqlprint"
)

// PublicPlan is a query whose answer holds nothing private: it reads public tables alone, or it has no rows whatever the tables hold. It
// is exact, costs nothing, and has no [sqlprint.Statement]: nothing that it can be made to run names a table with a privacy unit.
type PublicPlan struct {
	columns []plan.Column
	post    *sqlprint.Post // nil: there are no rows
	lines   []string
}

// maxPublicRows caps the rows of a public answer.
const maxPublicRows = 100_000

// OpenPlan is the plan of a query whose answer holds nothing private, nil for all others.
func OpenPlan(o *algebra.Opened) (*PublicPlan, error) {
	kind := bind.KindOf(o, o.Query, nil)
	switch {
	case o.Query.Set == nil && hasNoRows(o.Query, kind == algebra.OwnedRows):
		return emptyPlan(o, kind)
	case kind != algebra.PublicRows:
		return nil, nil
	}
	q, err := bind.Statement(o)
	if err != nil || q.Releases() {
		return nil, err
	}
	return publicPlan(q.Post, o)
}

func publicPlan(l *algebra.Query, o *algebra.Opened) (*PublicPlan, error) {
	if l.Limit == nil || *l.Limit > maxPublicRows {
		cut := int64(maxPublicRows + 1)
		l.Limit = &cut
	}
	public := &PublicPlan{post: sqlprint.PrintPublic(l, o), lines: sqlprint.PostLines(l, new(algebra.BoundQuery))}
	for _, out := range l.Outputs {
		public.columns = append(public.columns, plan.Column{Name: out.Name, Type: scalar.TypeOfOutput(out.Expr.Typ()), Kind: plan.PublicColumn})
	}
	proofs := new(sqlprint.Proofs)
	sqlprint.PostOn(public.post, o.Snapshot, proofs)
	return public, public.post.Prove(proofs)
}

// Post is what runs; ok is false when nothing does, because there are no rows.
func (p *PublicPlan) Post() (post sqlprint.Post, ok bool) {
	if p.post == nil {
		return sqlprint.Post{}, false
	}
	return sqlprint.PostFree(p.post), true
}

// Columns describes the outputs of the answer.
func (p *PublicPlan) Columns() []plan.Column { return append([]plan.Column(nil), p.columns...) }

// Tree is the plan as text.
func (p *PublicPlan) Tree() string {
	text := "answer: exact and free"
	for _, line := range p.lines {
		text += "\n  " + line
	}
	return text + "\n"
}

// Answer assembles the answer from what [PublicPlan.Post] gave; types are PostgreSQL's names of the columns.
func (p *PublicPlan) Answer(rows []answer.PostRow, types []string) (*answer.Answer, error) {
	switch {
	case len(rows) > maxPublicRows:
		return nil, fault.TooComplex(fault.Position{}, fmt.Sprintf("the answer has more than %d rows", maxPublicRows)).WithHint(
			"add LIMIT, or aggregate")
	case p.post != nil && len(types) != len(p.columns):
		return nil, fault.Internal(plan.ErrShape)
	}
	a := &answer.Answer{Columns: p.Columns()}
	for i := range types {
		a.Columns[i].Type = types[i]
	}
	for _, row := range rows {
		a.Rows = append(a.Rows, row.Values)
		a.Intervals = append(a.Intervals, make([]*answer.Interval, len(row.Values)))
	}
	return a, nil
}
