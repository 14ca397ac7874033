package plan

import "math/big"

// ErrsNoMoreThan reports whether every release of p has a half-width of at most that of the same release of another plan of the question.
// Plans with a selection are not compared.
func (p *Plan) ErrsNoMoreThan(other *Plan) bool {
	if p.Several != nil || other.Several != nil {
		blocks, others := p.Different(), other.Different()
		for i := range blocks {
			if len(others) != len(blocks) || !blocks[i].ErrsNoMoreThan(others[i]) {
				return false
			}
		}
		return true
	}
	if len(p.Releases) != len(other.Releases) || p.PartitionSelection != nil || other.PartitionSelection != nil {
		return false
	}
	for i, r := range p.Releases {
		o := other.Releases[i]
		if r.Selection != nil || o.Selection != nil || r.Statistic.Kind != o.Statistic.Kind {
			return false
		}
		mine := new(big.Rat).Mul(new(big.Rat).SetInt(r.HalfWidth(comparedAt)), r.Unit)
		if mine.Cmp(new(big.Rat).Mul(new(big.Rat).SetInt(o.HalfWidth(comparedAt)), o.Unit)) > 0 {
			return false
		}
	}
	return true
}
