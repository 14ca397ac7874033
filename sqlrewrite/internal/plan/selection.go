package plan

import (
	"fmt"
	"math"
	"math/big"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/sqlprint"
)

// Selection releases one candidate of each group: a point of a grid near a rank, or the candidate that most rows have. Groups choose
// independently, and one unit has rows in at most some number of them: it moves the outcome of no other, so that the losses of so
// many selections add up.
type Selection struct {
	groups    int64                  // L0
	Epsilon   mechanisms.PicoEpsilon // of one group
	Quantile  *mechanisms.Quantile
	Selector  mechanisms.Selector // of candidates
	Top       *mechanisms.TopK    // of groups: not one candidate of each group, but groups
	Among     int                 // candidates of selector
	Mechanism law                 // of one group
	By        mechanisms.Name     // the selector
	Offset    *big.Rat            // of a rank, in rows: by how much it is moved
}

// selector is the selector of a release: the one that the request names, else the most accurate one at the same charge.
//
//   - Where ρ is what adds up, the exponential mechanism: it costs ε²/8, the others ε·tanh(ε/2), so that it has about twice the ε (Cesar,
//     Rogers 2021, arXiv 2004.07223).
//   - Where ε alone does, permute-and-flip: its expected score is never below the exponential mechanism's (McKenna, Sheldon 2020, arXiv
//     2010.12603, Theorem 2). It is not above report-noisy-max's on all scores, but its shortfall is bounded by half of that.
//   - Where both may, permute-and-flip for modes, and the exponential mechanism for ranks and first groups, at a quarter of the ρ: among
//     many scores that are about the best the two choose alike.
func (p *Plan) selector(m algebra.Statistic, share Portion) mechanisms.Name {
	switch {
	case p.Options.Selection != "":
		return p.Options.Selection
	case share.Epsilon == 0, p.Options.Currency == catalog.ZCDP:
		return mechanisms.ExponentialMechanism
	case p.Options.Currency == catalog.Pure, m.Kind == algebra.ChooseMode:
		return mechanisms.PermuteAndFlipMechanism
	default:
		return mechanisms.ExponentialMechanism
	}
}

// checkSelection refuses a selector that would choose nothing, and one in place of noise.
func (p *Plan) checkSelection() error {
	o := p.Options
	if o.Selection == "" {
		return nil
	}
	if !mechanisms.IsSelector(o.Selection) {
		return fault.MechanismChoice("there is no such selection", `ask for "exponential", "permute_and_flip" or "report_noisy_max"`)
	}
	chooses := p.Query.Top > 0
	for _, m := range p.Query.Statistics {
		chooses = chooses || m.Chooses()
		if o.SelectsOnly && p.Query.Top == 0 && !m.Chooses() {
			return fault.MechanismChoice(fmt.Sprintf("%s chooses and adds no noise, which %s needs", o.Selection, sqlprint.DescribeStatistic(m)),
				`give it as "selection", beside "mechanism"`)
		}
	}
	if !chooses {
		return fault.MechanismChoice(
			"the query selects nothing: a selection is for quantiles, min, max, mode, and the first groups by a number that is not shown",
			`leave "selection" out`)
	}
	return nil
}

// NewSelection makes the selection of a release from its portion of the price.
func (p *Plan) NewSelection(r Release, share Portion) (*Selection, error) {
	by := p.selector(r.Statistic, share)
	epsilon := share.Epsilon / mechanisms.PicoEpsilon(p.Bounding.MaxGroups)
	if share.Epsilon == 0 {
		epsilon = mechanisms.SelectionEpsilon(by, share.Rho/mechanisms.PicoRho(p.Bounding.MaxGroups))
	}
	if epsilon == 0 {
		return nil, fault.PriceTooSmall(len(p.Query.Statistics))
	}
	c, err := &Selection{groups: p.Bounding.MaxGroups, Epsilon: epsilon, By: by}, error(nil)
	if r.Statistic.Kind == algebra.ChooseRank {
		points := r.Statistic.Grid.Points()
		c.Offset = rankOffset(r, epsilon, by)
		c.Quantile, err = mechanisms.NewQuantile(mechanisms.QuantileParameters{Fraction: r.Statistic.Rank, Offset: c.Offset,
			Grid: points.Uint64(), Rows: r.PerGroup, Epsilon: epsilon, By: by})
		c.Mechanism = c.Quantile
		return c, internal(err)
	}
	c.Among = r.Statistic.Candidates()
	// One unit's rows raise scores and lower none.
	parameters := mechanisms.SelectionParameters{Sensitivity: r.PerGroup, Monotone: true, Epsilon: epsilon}
	c.Selector, err = mechanisms.NewSelector(by, parameters)
	c.Mechanism = c.Selector
	return c, internal(err)
}

// rankOffset moves the rank that is looked for from n·fraction. Inside, by half of the smallest step between two such ranks, so that it is
// the rank of percentile_disc. For the least and the greatest value, inward by so many rows that points beyond the data, which may be most
// of the grid, are chosen with a probability of 5 % at most: at T rows their weight together is at most points·e^(-ε·T/2Δ) of that of one
// point at the rank. Of permute-and-flip they need a coin each that rarely shows true, and less rows would do; of report-noisy-max, where
// one of all the noises must be beyond half of the gap, twice as many do.
func rankOffset(r Release, epsilon mechanisms.PicoEpsilon, by mechanisms.Name) *big.Rat {
	fraction := r.Statistic.Rank
	if !fraction.IsInt() {
		half := new(big.Rat).SetFrac(big.NewInt(-1), new(big.Int).Lsh(fraction.Denom(), 1))
		if r.Statistic.Upper {
			half.Neg(half)
		}
		return half
	}
	points, _ := new(big.Float).SetInt(r.Statistic.Grid.Points()).Float64()
	rows, _ := new(big.Float).SetInt(r.PerGroup).Float64()
	price := float64(epsilon) / float64(mechanisms.EpsilonUnit)
	halves := math.Max(1, math.Ceil(2*2*rows/price*math.Log(20*points)))
	if by == mechanisms.ReportNoisyMax {
		halves = math.Max(1, math.Ceil(2*2*2*rows/price*math.Log(20*(points+1))))
	}
	offset := new(big.Rat).SetFrac(big.NewInt(int64(math.Min(halves, 1<<53))), big.NewInt(2))
	if fraction.Sign() > 0 {
		offset.Neg(offset)
	}
	return offset
}

// Choose opens the tallies of one group.
func (c *Selection) Choose(s *mechanisms.Sampler, tallies []mechanisms.Tally) *big.Int {
	if c.Quantile != nil {
		return new(big.Int).SetUint64(c.Quantile.Select(s, tallies))
	}
	return big.NewInt(int64(c.Selector.Select(s, mechanisms.Scores(tallies, c.Among))))
}

func (c *Selection) Name() mechanisms.Name { return c.Mechanism.Name() }

func (c *Selection) Loss() mechanisms.Loss { return c.Mechanism.Loss().Times(c.groups) }

// Parameters are those of one group, with the ε of all groups of a unit together and their number.
func (c *Selection) Parameters() mechanisms.Parameters {
	parameters := c.Mechanism.Parameters()
	if c.Top == nil {
		parameters.Epsilon, parameters.Count = c.Loss().Epsilon.String(), c.groups
	}
	return parameters
}

// rows is how many rows one unit of the scores of a selection is: those of ranks are multiplied to be whole. Of a selection of groups, it
// is the unit of what they are ordered by.
func (r Release) rows() *big.Rat {
	scaled, ok := new(big.Rat).SetString(r.Selection.Mechanism.Parameters().Sensitivity)
	switch {
	case r.Selection.Top != nil:
		return r.Statistic.Unit()
	case !ok || r.Statistic.Kind != algebra.ChooseRank:
		return scalar.One()
	}
	most := scalar.MaxRat(new(big.Rat).Sub(scalar.One(), r.Statistic.Rank), r.Statistic.Rank)
	return new(big.Rat).Mul(most, new(big.Rat).SetFrac(r.PerGroup, scaled.Num()))
}
