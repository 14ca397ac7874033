package mechanisms

import (
	"errors"
	"math/big"
	"slices"
)

// QuantileParameters are the parameters of [Quantile].
type QuantileParameters struct {
	// Fraction is which quantile: 1/2 for the median. In [0, 1].
	Fraction *big.Rat
	// Offset is added to the rank that is looked for, in rows; nil: 0. With the fraction 0 it must not be negative, with 1 not
	// positive, and the rank then stays on its side of the middle: min(Offset, n/2), max(n+Offset, n/2).
	Offset *big.Rat
	// Grid is the number of points of the public grid, 1 to 2⁶¹: the column's range in steps.
	Grid uint64
	// Rows is how many rows one unit may contribute. Positive.
	Rows *big.Int
	// Epsilon is the price. Positive.
	Epsilon PicoEpsilon
	// By is the selector; empty: [ExponentialMechanism]. The others visit the points one by one: at most 65,536 of them.
	By Name
}

// Quantile chooses a point of a public grid that is near a quantile of the data: a selector with the score
//
//	u(v) = -distance of α·n to the interval [#{x < v}, #{x <= v}]
//
// of the rank that α·n of n rows asks for. One row moves α·n by α and the ends of the interval by 0 or 1, both by 1 where the row is
// below v, so that u moves by at most max(α, 1-α). Scores are multiplied by a common denominator and stay integers.
//
// An offset to the rank is a constant and moves with no row. At α = 0 the rank min(t, n/2) moves by 0 to 1/2 when a row comes, at
// α = 1 by 1/2 to 1: less than the ends of the interval, so that u still moves by at most 1.
//
// Guarantee: that of the selector; by the exponential mechanism ε-bounded range, hence ε-DP and ε²/8-zCDP too. Domain: rows on the grid;
// others count at its nearer end. Sampler: exact; by the exponential mechanism runs of points without rows have one score and are one slot
// (choose.go), so that the size of the grid costs no time. Source: Smith 2011; McSherry, Talwar 2007.
type Quantile struct {
	parameters QuantileParameters
	scale      *big.Int // what scores are multiplied by
	each       selector
}

var (
	errFraction = errors.New("mechanisms: the fraction of a quantile is not in [0, 1]")
	errOffset   = errors.New("mechanisms: the offset of the least or the greatest value looks outside the data")
	errGrid     = errors.New("mechanisms: the grid has no points, or too many")
)

const (
	maxGrid   = 1 << 61
	maxListed = 1 << 16 // points that are visited one by one
)

// NewQuantile makes the mechanism. It returns an error if a parameter is out of its range.
func NewQuantile(p QuantileParameters) (*Quantile, error) {
	switch {
	case p.Fraction == nil || p.Fraction.Sign() < 0 || p.Fraction.Cmp(big.NewRat(1, 1)) > 0:
		return nil, errFraction
	case p.Grid == 0 || p.Grid > maxGrid:
		return nil, errGrid
	}
	if p.Offset == nil {
		p.Offset = new(big.Rat)
	}
	if p.Fraction.Sign() == 0 && p.Offset.Sign() < 0 || p.Fraction.Cmp(big.NewRat(1, 1)) == 0 && p.Offset.Sign() > 0 {
		return nil, errOffset
	}
	common, err := newSelection(SelectionParameters{Sensitivity: sensitivityOfRank(p), Epsilon: p.Epsilon})
	if err != nil {
		return nil, err
	}
	p.Fraction, p.Offset, p.Rows = new(big.Rat).Set(p.Fraction), new(big.Rat).Set(p.Offset), new(big.Int).Set(p.Rows)
	if p.By = orExponential(p.By); p.By != ExponentialMechanism && p.Grid > maxListed {
		return nil, errGrid
	}
	each, err := common.by(p.By)
	if err != nil {
		return nil, err
	}
	return &Quantile{parameters: p, scale: rankScale(p), each: each}, nil
}

// rankScale is the least number that makes the ranks that are looked for, the middle included, whole.
func rankScale(p QuantileParameters) *big.Int {
	scale := lcm(p.Fraction.Denom(), p.Offset.Denom())
	if p.Fraction.IsInt() && p.Offset.Sign() != 0 {
		scale = lcm(scale, big.NewInt(2))
	}
	return scale
}

func lcm(a, b *big.Int) *big.Int {
	product := new(big.Int).Mul(a, b)
	return product.Quo(product, new(big.Int).GCD(nil, nil, a, b))
}

// sensitivityOfRank is rows·max(α, 1-α) times the scale of the scores.
func sensitivityOfRank(p QuantileParameters) *big.Int {
	if p.Rows == nil {
		return nil
	}
	most := new(big.Rat).Sub(big.NewRat(1, 1), p.Fraction)
	if most.Cmp(p.Fraction) < 0 {
		most.Set(p.Fraction)
	}
	most.Mul(most, new(big.Rat).SetInt(rankScale(p)))
	return new(big.Int).Mul(p.Rows, most.Num()) // whole: the fraction's denominator divides the scale
}

// rank is the rank that is looked for among n rows, times the scale.
func (m *Quantile) rank(n *big.Int) *big.Int {
	p, scale := m.parameters, new(big.Rat).SetInt(m.scale)
	rank := new(big.Rat).Mul(p.Fraction, new(big.Rat).SetInt(n))
	rank.Add(rank, p.Offset)
	middle := new(big.Rat).SetFrac(n, big.NewInt(2))
	switch {
	case p.Offset.Sign() == 0 || !p.Fraction.IsInt():
	case p.Fraction.Sign() == 0 && rank.Cmp(middle) > 0, p.Fraction.Sign() > 0 && rank.Cmp(middle) < 0:
		rank = middle
	}
	return rank.Mul(rank, scale).Num()
}

// Name is [QuantileSelection].
func (m *Quantile) Name() Name { return QuantileSelection }

// Loss is that of the selector.
func (m *Quantile) Loss() Loss { return m.each.Loss() }

// Tally is how many rows are at one point of the grid, both sealed: which points have rows is data.
type Tally struct{ Point, Rows Exact }

// Select returns a point of the grid, counted from 0. Tallies may come in any order; those of one point are added up, and
// negative ones count as 0.
func (m *Quantile) Select(s *Sampler, tallies []Tally) uint64 {
	runs := m.runs(m.sorted(tallies))
	exponential, ok := m.each.(*Exponential)
	if !ok {
		return uint64(m.each.Select(s, scoresOfRuns(runs)))
	}
	best := runs[0].distance
	for _, r := range runs {
		if r.distance.Cmp(best) < 0 {
			best = r.distance
		}
	}
	slots := make([]slot, len(runs))
	for i, r := range runs {
		slots[i] = slot{count: r.count, gap: new(big.Int).Sub(r.distance, best)}
	}
	run := runs[s.choose(exponential.decay, slots)]
	return run.start + s.Uniform(run.count)
}

// scoresOfRuns are the scores of all points.
func scoresOfRuns(runs []run) []Exact {
	var scores []Exact
	for _, r := range runs {
		scores = append(scores, slices.Repeat([]Exact{Seal(new(big.Int).Neg(r.distance))}, int(r.count))...)
	}
	return scores
}

// Parameters are ε, the selector, the sensitivity of the rank times the scale of the scores, and what those scores are divided by.
func (m *Quantile) Parameters() Parameters {
	p := m.each.Parameters()
	p.Mechanism, p.Selection = QuantileSelection, m.parameters.By
	return p
}

// rowsAt is an opened tally on the grid.
type rowsAt struct {
	point uint64
	rows  *big.Int
}

// sorted opens tallies, moves them onto the grid and merges them by point.
func (m *Quantile) sorted(tallies []Tally) []rowsAt {
	last := new(big.Int).SetUint64(m.parameters.Grid - 1)
	opened := make([]rowsAt, 0, len(tallies))
	for _, t := range tallies {
		point, rows := t.Point.open(), t.Rows.open()
		if rows.Sign() <= 0 {
			continue
		}
		if point.Sign() < 0 {
			point = new(big.Int)
		}
		opened = append(opened, rowsAt{point: minInt(point, last).Uint64(), rows: rows})
	}
	slices.SortFunc(opened, func(a, b rowsAt) int {
		switch {
		case a.point < b.point:
			return -1
		case a.point > b.point:
			return 1
		default:
			return 0
		}
	})
	merged := opened[:0]
	for _, r := range opened {
		if k := len(merged); k > 0 && merged[k-1].point == r.point {
			merged[k-1].rows = new(big.Int).Add(merged[k-1].rows, r.rows)
			continue
		}
		merged = append(merged, r)
	}
	return merged
}

// run is a stretch of the grid whose points have the same distance from the rank that is asked for (times the scale).
type run struct {
	start, count uint64
	distance     *big.Int
}

// runs cuts the grid into single points with rows and stretches without.
func (m *Quantile) runs(data []rowsAt) []run {
	n := new(big.Int)
	for _, r := range data {
		n.Add(n, r.rows)
	}
	target := m.rank(n)

	var runs []run
	below, next := new(big.Int), uint64(0) // scale·#{x < next}
	add := func(upTo uint64, through *big.Int) {
		if upTo > next {
			runs = append(runs, run{start: next, count: upTo - next, distance: distance(target, below, through)})
			next = upTo
		}
	}
	for _, r := range data {
		add(r.point, below)
		through := new(big.Int).Add(below, new(big.Int).Mul(m.scale, r.rows))
		add(r.point+1, through)
		below = through
	}
	add(m.parameters.Grid, below)
	return runs
}

// distance is how far x is from the interval [lo, hi].
func distance(x, lo, hi *big.Int) *big.Int {
	switch {
	case x.Cmp(lo) < 0:
		return new(big.Int).Sub(lo, x)
	case x.Cmp(hi) > 0:
		return new(big.Int).Sub(x, hi)
	default:
		return new(big.Int)
	}
}

// Scores are the rows of tallies by candidate, 0 where there is no tally. A tally of no candidate counts nowhere.
func Scores(tallies []Tally, candidates int) []Exact {
	sums := make([]big.Int, candidates)
	for _, t := range tallies {
		if at := t.Point.open(); at.IsInt64() && at.Int64() >= 0 && at.Int64() < int64(candidates) {
			sums[at.Int64()].Add(&sums[at.Int64()], t.Rows.open())
		}
	}
	scores := make([]Exact, candidates)
	for i := range sums {
		scores[i] = Seal(&sums[i])
	}
	return scores
}
