package sqlrewrite

import (
	"math"
	"math/big"

	"noisegate/catalog"
	"noisegate/internal/fault"
	"noisegate/mechanisms"
)

// pick releases one candidate of each group: a point of a grid near a rank, or the candidate that most rows have. Groups choose
// independently, and one unit has rows in at most some number of them: it moves the outcome of no other, so that the losses of so
// many selections add up.
type pick struct {
	groups    int64                  // L0
	epsilon   mechanisms.PicoEpsilon // of one group
	quantile  *mechanisms.Quantile
	selector  mechanisms.Selector // of candidates
	top       *mechanisms.TopK    // of groups: not one candidate of each group, but groups
	among     int                 // candidates of selector
	mechanism law                 // of one group
}

// newPick makes the selection of a release from its portion of the price.
func (p *pricedPlan) newPick(r release, share portion) (*pick, error) {
	epsilon := share.epsilon / mechanisms.PicoEpsilon(p.shape.maxGroups)
	if share.epsilon == 0 {
		epsilon = mechanisms.BoundedRangeEpsilon(share.rho / mechanisms.PicoRho(p.shape.maxGroups))
	}
	if epsilon == 0 {
		return nil, fault.PriceTooSmall(len(p.query.measures))
	}
	c, err := &pick{groups: p.shape.maxGroups, epsilon: epsilon}, error(nil)
	if r.measure.kind == chooseRank {
		points := r.measure.grid.points()
		c.quantile, err = mechanisms.NewQuantile(mechanisms.QuantileParameters{Fraction: r.measure.rank, Offset: rankOffset(r, epsilon),
			Grid: points.Uint64(), Rows: r.perGroup, Epsilon: epsilon})
		c.mechanism = c.quantile
		return c, internal(err)
	}
	c.among = r.measure.candidates()
	// One unit's rows raise scores and lower none.
	parameters := mechanisms.SelectionParameters{Sensitivity: r.perGroup, Monotone: true, Epsilon: epsilon}
	if share.epsilon == 0 || p.options.Currency == catalog.ZCDP {
		c.selector, err = mechanisms.NewExponential(parameters) // ε²/8 in ρ
	} else {
		c.selector, err = mechanisms.NewPermuteAndFlip(parameters) // never further from the best at equal ε
	}
	c.mechanism = c.selector
	return c, internal(err)
}

// rankOffset moves the rank that is looked for from n·fraction. Inside, by half of the smallest step between two such ranks, so that
// it is the rank of percentile_disc. For the least and the greatest value, inward by so many rows that points beyond the data, which may
// be most of the grid, are chosen with a probability of 5 % at most: at T rows their weight together is at most
// points·e^(-ε·T/2Δ) of that of one point at the rank.
func rankOffset(r release, epsilon mechanisms.PicoEpsilon) *big.Rat {
	fraction := r.measure.rank
	if !fraction.IsInt() {
		half := new(big.Rat).SetFrac(big.NewInt(-1), new(big.Int).Lsh(fraction.Denom(), 1))
		if r.measure.upper {
			half.Neg(half)
		}
		return half
	}
	points, _ := new(big.Float).SetInt(r.measure.grid.points()).Float64()
	rows, _ := new(big.Float).SetInt(r.perGroup).Float64()
	price := float64(epsilon) / float64(mechanisms.EpsilonUnit)
	halves := math.Max(1, math.Ceil(2*2*rows/price*math.Log(20*points)))
	offset := new(big.Rat).SetFrac(big.NewInt(int64(math.Min(halves, 1<<53))), big.NewInt(2))
	if fraction.Sign() > 0 {
		offset.Neg(offset)
	}
	return offset
}

// choose opens the tallies of one group.
func (c *pick) choose(s *mechanisms.Sampler, tallies []mechanisms.Tally) *big.Int {
	if c.quantile != nil {
		return new(big.Int).SetUint64(c.quantile.Select(s, tallies))
	}
	return big.NewInt(int64(c.selector.Select(s, mechanisms.Scores(tallies, c.among))))
}

func (c *pick) Name() mechanisms.Name { return c.mechanism.Name() }

func (c *pick) Loss() mechanisms.Loss { return c.mechanism.Loss().Times(c.groups) }

// Parameters are those of one group, with the ε of all groups of a unit together and their number.
func (c *pick) Parameters() mechanisms.Parameters {
	parameters := c.mechanism.Parameters()
	if c.top == nil {
		parameters.Epsilon, parameters.Count = c.Loss().Epsilon.String(), c.groups
	}
	return parameters
}

// rows is how many rows one unit of the scores of a selection is: those of ranks are multiplied to be whole. Of a selection of groups, it is
// the unit of what they are ordered by.
func (r release) rows() *big.Rat {
	scaled, ok := new(big.Rat).SetString(r.pick.mechanism.Parameters().Sensitivity)
	switch {
	case r.pick.top != nil:
		return r.measure.unit()
	case !ok || r.measure.kind != chooseRank:
		return one()
	}
	most := maxRat(new(big.Rat).Sub(one(), r.measure.rank), r.measure.rank)
	return new(big.Rat).Mul(most, new(big.Rat).SetFrac(r.perGroup, scaled.Num()))
}

// candidates is how many candidates a mode is chosen from.
func (m measure) candidates() int {
	if m.among != nil {
		return len(m.among)
	}
	return int(m.grid.points().Int64())
}
