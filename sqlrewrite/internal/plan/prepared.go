package plan

import (
	"cmp"
	"math"
	"math/big"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/algebra"
)

// ErrsNoMoreThan reports whether every release of p has a half-width of at most that of the same release of another plan of the question.
// It does not where p reads a copy and computes values of several of its rows: those that the copy leaves out would be missing in them.
// Of selections that choose in one way, the one errs less in which a unit's rows are worth less of its price; of two sets of private
// keys, the one that shows groups of fewer units, as [shownAt] has it.
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
	if p.Query.Copied() != nil && !p.Query.RowByRow() {
		return false
	}
	if len(p.Releases) != len(other.Releases) || p.Query.Private() && p.ShownFrom(shownAt) > other.ShownFrom(shownAt) {
		return false
	}
	for i, r := range p.Releases {
		o := other.Releases[i]
		if r.Statistic.Kind != o.Statistic.Kind || (r.Selection != nil) != (o.Selection != nil) {
			return false
		}
		if r.Selection != nil {
			if !r.choosesNoWorse(o) {
				return false
			}
			continue
		}
		mine := new(big.Rat).Mul(new(big.Rat).SetInt(r.HalfWidth(comparedAt)), r.Unit)
		if mine.Cmp(new(big.Rat).Mul(new(big.Rat).SetInt(o.HalfWidth(comparedAt)), o.Unit)) > 0 {
			return false
		}
	}
	return true
}

// choosesNoWorse compares two selections of the same statistic: all that candidates beside the best have is the rows of one unit, over ε.
func (r Release) choosesNoWorse(o Release) bool {
	if r.Selection.By != o.Selection.By || (r.Selection.Top != nil) != (o.Selection.Top != nil) {
		return false
	}
	mine := new(big.Int).Mul(r.PerGroup, big.NewInt(int64(o.Selection.price())))
	return mine.Cmp(new(big.Int).Mul(o.PerGroup, big.NewInt(int64(r.Selection.price())))) <= 0
}

// price is what one candidate is chosen for.
func (c *Selection) price() mechanisms.PicoEpsilon {
	if c.Top != nil {
		return c.Mechanism.Loss().Epsilon
	}
	return c.Epsilon
}

// ShownFrom is how many units, or counted rows, a group with private keys needs to be shown with a probability.
func (p *Plan) ShownFrom(probability float64) int64 {
	if p.PartitionSelection != nil {
		return p.PartitionSelection.Mechanism.ShownAt(probability)
	}
	for _, r := range p.Releases {
		if r.Shown != nil {
			return r.Shown.ShownAt(probability)
		}
	}
	return math.MaxInt64
}

// planOf lays a plan out, and proves it. Of a prepared copy it is the one that errs least: over the rows that count in all, or over those
// that one of its sets of ranks leaves; of those that err alike, the first, which reads fewer columns.
func planOf(q *algebra.BoundQuery, snapshot *catalog.Snapshot, o Options) (*Plan, error) {
	var best *Plan
	var why, unproven error
	for _, set := range rankSets(q) {
		o.set = set
		p, err := layOut(q, snapshot, o, keysByOutputs)
		if err == nil {
			err = p.prove(snapshot)
		}
		if err != nil {
			why = cmp.Or(why, err)
			if fault.CodeOf(err) == fault.CodeUnverified {
				unproven = cmp.Or(unproven, err)
			}
		} else if best == nil || p.ErrsNoMoreThan(best) && !best.ErrsNoMoreThan(p) {
			best = p
		}
	}
	if best != nil {
		best.unproven = unproven
		return best, nil
	}
	return nil, why
}

// Unproven says why a layout over a prepared copy was not proven and another was taken; nil: none was.
func (p *Plan) Unproven() error {
	if p.Several != nil {
		for _, block := range p.Different() {
			if err := block.Unproven(); err != nil {
				return err
			}
		}
		return nil
	}
	if p.unproven == nil && p.sorted != nil {
		return p.sorted.unproven
	}
	return p.unproven
}

// rankSets are the sets of ranks by which a query may be bounded; nil is none of them.
func rankSets(q *algebra.BoundQuery) []*catalog.RankSet {
	sets := []*catalog.RankSet{nil}
	if scan := q.RankedCopy(); scan != nil {
		for i := range scan.Table.Copy.Ranks {
			sets = append(sets, &scan.Table.Copy.Ranks[i])
		}
	}
	return sets
}

// cheaperThan reports whether selecting groups errs less than sorting them by noisy numbers: the noise that decides which of two groups
// comes first is compared at the level where mechanisms are.
func (p *Plan) cheaperThan(sorted *Plan) bool {
	scale, ok := new(big.Rat).SetString(p.Releases[0].Law().Parameters().Scale)
	if !ok {
		return false
	}
	gumbel := new(big.Rat).Mul(scale, gumbelPoint())
	return gumbel.Cmp(new(big.Rat).SetInt(sorted.Releases[0].Mechanism.HalfWidth(comparedAt))) < 0
}

// gumbelPoint is the distance from the median within which 95 % of the Gumbel distribution of scale 1 lie: peeling by the exponential
// mechanism adds such noise to each score. That of the exponential distribution, for permute-and-flip (Ding et al. 2021, arXiv
// 2105.07260), is 2.30.
func gumbelPoint() *big.Rat { return big.NewRat(261, 100) }
