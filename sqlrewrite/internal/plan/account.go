package plan

import (
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
		row, unit := p.claimed()
		if stability.Proven(row, unit) {
			return p, nil
		}
		if err := stability.Lower(p.Accounted(), row, unit); err != nil {
			return nil, err
		}
	}
}

// claimed is what the statements of a question claim: what one row takes, of the dearest of them where nothing bounds how many rows its
// unit has, and what one unit takes in all of them together, in ns; nil: nothing bounds it.
func (p *Plan) claimed() (row, unit *big.Int) {
	row, unit = new(big.Int), new(big.Int)
	for _, block := range p.Different() {
		for _, part := range block.Parts {
			c := part.Statement.Claim
			if c.RowWork == nil || c.UnitWork == nil {
				return nil, nil
			}
			unit.Add(unit, c.UnitWork)
			if c.RowWork.Cmp(row) > 0 {
				row = c.RowWork
			}
		}
	}
	return row, unit
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
