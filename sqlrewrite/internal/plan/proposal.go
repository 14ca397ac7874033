package plan

import (
	"math/big"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/sqlprint"
	"noisegate.example/sqlrewrite/verify"
)

// prove claims every statement of a plan, and proves each claim, and that post-processing reads public tables and released values only.
func (p *Plan) prove(on *catalog.Snapshot) error {
	for i := range p.Parts {
		if p.Parts[i].RowByRow {
			return fault.RowByRow()
		}
		s := &p.Parts[i].Statement
		s.Claim, s.On, s.Proofs = p.Proposal(i), on, p.Options.Proofs
		if err := s.ClaimWork(p.Query.Shared().Steps, p.Options.Proofs.Work); err != nil {
			return err
		}
	}
	if p.Post == nil {
		return nil
	}
	if len(p.Post.Zones()) > 0 { // it runs after the charge, perhaps on a server that does not know the zone
		return fault.Unsupported(fault.Position{}, "AT TIME ZONE '"+p.Post.Zones()[0]+"' of released values",
			"write it into GROUP BY, or into what is aggregated")
	}
	sqlprint.PostOn(p.Post, on, p.Options.Proofs)
	return p.Post.Prove(p.Options.Proofs)
}

// Proposal is what the plan claims of one of its statements, in the words of package verify: what the price was computed from.
func (p *Plan) Proposal(at int) verify.Claim {
	part := p.Parts[at]
	c := verify.Claim{Keys: part.Statement.Keys, Groups: big.NewInt(p.Bounding.Groups()), PairsPerRow: p.Query.Pairs}
	for _, i := range part.Releases {
		r := p.Releases[i]
		if r.Selection == nil { // noise on all groups together
			l1, l2Squared := p.Bounding.Norms(r.Statistic)
			c.Norms = append(c.Norms, verify.Norm{Columns: []int{len(c.PerGroup)}, L1: l1, L2Squared: l2Squared})
		}
		c.PerGroup, c.Spread = append(c.PerGroup, r.PerGroup), append(c.Spread, nil)
	}
	switch {
	case part.Histogram(p.Query):
		c.PerGroup, c.Spread, c.Histogram = c.PerGroup[:1], nil, verify.Each
		if p.Releases[part.Releases[0]].Statistic.Kind == algebra.ChooseRank {
			c.Histogram = verify.Together
		}
	case p.Query.Top > 0:
		// A selection of groups pays for how far two scores move apart: the largest move if all are of one sign, twice that else.
		r := p.Releases[part.Releases[0]]
		if c.Spread[0] = r.PerGroup; !r.Statistic.Monotone() {
			c.Spread[0] = new(big.Int).Lsh(r.PerGroup, 1)
		}
	}
	if part.Units {
		c.PerGroup, c.Spread = append(c.PerGroup, big.NewInt(1)), append(c.Spread, nil)
	}
	return c
}
