package plan

import (
	"errors"
	"math/big"

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
		fit, err := stability.Together(p.Accounted())
		if err != nil {
			return nil, err
		}
		if !fit {
			continue
		}
		if stability.Proven(p.claimed()) {
			return p, nil
		}
		if err := p.claimExactly(); err != nil {
			return nil, err
		}
		proven := p.claimed()
		if stability.Proven(proven) {
			return p, nil
		}
		if err := stability.Lower(p.Accounted(), proven); err != nil {
			return nil, err
		}
	}
}

// IsDear reports whether a question was refused for a row that takes too long, and may be bound again with [algebra.Load].Dear, so that
// such rows are capped.
func IsDear(err error) bool { return errors.As(err, new(stability.DearRow)) }

// claimed is the time that the statements of a question claim: of one row, that of the dearest of them; of one unit, that of all together.
func (p *Plan) claimed() stability.Claimed {
	all := stability.Claimed{Row: new(big.Int), Unit: new(big.Int), All: new(big.Int)}
	for _, block := range p.Different() {
		for _, part := range block.Parts {
			c := part.Statement.Claim
			if c.RowWork == nil || c.UnitWork == nil || c.AllWork == nil {
				return stability.Claimed{}
			}
			all.Unit.Add(all.Unit, c.UnitWork)
			all.All.Add(all.All, c.AllWork)
			if c.RowWork.Cmp(all.Row) > 0 {
				all.Row = c.RowWork
			}
		}
	}
	return all
}

// claimExactly has statements claim what they take with just their constants, as what is remembered of any constants may be more: so that
// what was asked before lowers no caps.
func (p *Plan) claimExactly() error {
	for _, block := range p.Different() {
		for i := range block.Parts {
			s := &block.Parts[i].Statement
			if err := s.ClaimWork(block.Query.Shared().Steps, block.Options.Proofs.WorkOf); err != nil {
				return err
			}
		}
	}
	return nil
}

// Accounted are the statements of a question, those of blocks that will be recalled too: what was asked before changes no plan.
func (p *Plan) Accounted() []stability.Statement {
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
