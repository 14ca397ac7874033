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
	// Grid is the number of points of the public grid, 1 to 2⁶¹: the column's range in steps.
	Grid uint64
	// Rows is how many rows one unit may contribute. Positive.
	Rows *big.Int
	// Epsilon is the price. Positive.
	Epsilon PicoEpsilon
}

// Quantile chooses a point of a public grid that is near a quantile of the data: the exponential mechanism with the score
//
//	u(v) = -distance of α·n to the interval [#{x < v}, #{x <= v}]
//
// of the rank that α·n of n rows asks for. One row moves α·n by α and the ends of the interval by 0 or 1, both by 1 where the row is
// below v, so that u moves by at most max(α, 1-α). α = a/b is a rational: scores are multiplied by b and stay integers.
//
// Guarantee: ε-bounded range, hence ε-DP and ε²/8-zCDP. Domain: rows on the grid; others count at its nearer end. Sampler: exact;
// runs of points without rows have one score and are one slot (choose.go), so that the size of the grid costs no
// time. Source: Smith 2011; McSherry, Talwar 2007.
type Quantile struct {
	parameters QuantileParameters
	decay      decay
}

var (
	errFraction = errors.New("mechanisms: the fraction of a quantile is not in [0, 1]")
	errGrid     = errors.New("mechanisms: the grid has no points, or too many")
)

const maxGrid = 1 << 61

// NewQuantile makes the mechanism. It returns an error if a parameter is out of its range.
func NewQuantile(p QuantileParameters) (*Quantile, error) {
	switch {
	case p.Fraction == nil || p.Fraction.Sign() < 0 || p.Fraction.Cmp(big.NewRat(1, 1)) > 0:
		return nil, errFraction
	case p.Grid == 0 || p.Grid > maxGrid:
		return nil, errGrid
	}
	common, err := newSelection(SelectionParameters{Sensitivity: sensitivityOfRank(p), Epsilon: p.Epsilon})
	if err != nil {
		return nil, err
	}
	p.Fraction, p.Rows = new(big.Rat).Set(p.Fraction), new(big.Int).Set(p.Rows)
	return &Quantile{parameters: p, decay: newDecay(common.rate)}, nil
}

// sensitivityOfRank is rows·max(a, b-a) for α = a/b: the sensitivity of b·u.
func sensitivityOfRank(p QuantileParameters) *big.Int {
	if p.Rows == nil {
		return nil
	}
	a := p.Fraction.Num()
	rest := new(big.Int).Sub(p.Fraction.Denom(), a)
	if rest.Cmp(a) < 0 {
		rest = a
	}
	return new(big.Int).Mul(p.Rows, rest)
}

// Name is [QuantileSelection].
func (m *Quantile) Name() Name { return QuantileSelection }

// Loss is ε and ε²/8.
func (m *Quantile) Loss() Loss {
	return Loss{Epsilon: m.parameters.Epsilon, Rho: rhoOfBoundedRange(m.parameters.Epsilon.Rat())}
}

// Tally is how many rows are at one point of the grid, both sealed: which points have rows is data.
type Tally struct{ Point, Rows Exact }

// Select returns a point of the grid, counted from 0. Tallies may come in any order; those of one point are added up, and
// negative ones count as 0.
func (m *Quantile) Select(s *Sampler, tallies []Tally) uint64 {
	runs := m.runs(m.sorted(tallies))
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
	run := runs[s.choose(m.decay, slots)]
	return run.start + s.Uniform(run.count)
}

// Parameters are ε, the sensitivity of the rank times the fraction's denominator, and the scale of the same.
func (m *Quantile) Parameters() Parameters {
	return Parameters{
		Mechanism:   QuantileSelection,
		Sensitivity: sensitivityOfRank(m.parameters).String(),
		Scale:       new(big.Rat).Inv(m.decay.rate).RatString(),
		Epsilon:     m.parameters.Epsilon.String(),
	}
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

// run is a stretch of the grid whose points have the same distance from the rank that is asked for (times the fraction's
// denominator).
type run struct {
	start, count uint64
	distance     *big.Int
}

// runs cuts the grid into single points with rows and stretches without.
func (m *Quantile) runs(data []rowsAt) []run {
	a, b := m.parameters.Fraction.Num(), m.parameters.Fraction.Denom()
	target := new(big.Int)
	for _, r := range data {
		target.Add(target, r.rows)
	}
	target.Mul(target, a) // b·α·n

	var runs []run
	below, next := new(big.Int), uint64(0) // b·#{x < next}
	add := func(upTo uint64, through *big.Int) {
		if upTo > next {
			runs = append(runs, run{start: next, count: upTo - next, distance: distance(target, below, through)})
			next = upTo
		}
	}
	for _, r := range data {
		add(r.point, below)
		through := new(big.Int).Add(below, new(big.Int).Mul(b, r.rows))
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
