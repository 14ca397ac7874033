package plan

import (
	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/sqlprint"
	"noisegate.example/sqlrewrite/internal/stability"
)

// NewPlan plans a query. All statements of the question together cost one unit no more than is allowed.
func NewPlan(q *algebra.BoundQuery, snapshot *catalog.Snapshot, o Options) (*Plan, error) {
	if o.Proofs == nil {
		o.Proofs = new(sqlprint.Proofs)
	}
	for {
		p, err := newPlan(q, snapshot, o)
		if err != nil {
			return nil, err
		}
		fit, err := stability.Together(p.accounted())
		if err != nil {
			return nil, err
		}
		if fit {
			return p, nil
		}
	}
}

// accounted are the statements of a question, those of blocks that will be recalled too: what was asked before changes no plan.
func (p *Plan) accounted() []stability.Statement {
	var all []stability.Statement
	for _, block := range p.Different() {
		for _, part := range block.Parts {
			s := stability.Statement{Query: block.Query, Again: part.Template.Again()}
			for _, i := range part.Releases {
				s.Statistics = append(s.Statistics, block.Query.Statistics[i])
			}
			all = append(all, s)
		}
	}
	return all
}
