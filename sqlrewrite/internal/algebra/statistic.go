package algebra

import (
	"math/big"
	"slices"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/scalar"
)

// statisticKind is what a release adds up, or chooses by.
type statisticKind int

const (
	CountRows     statisticKind = iota // rows that pass the filter
	CountValues                        // of these, rows where the expression is not NULL
	CountUnits                         // privacy units that have a row that passes the filter
	SumSteps                           // the expression's values in steps of its grid
	SumCentred                         // the same after subtracting the middle of the bounds from each value
	SumProducts                        // products of the centred steps of two expressions; squares less the middle of their range
	CountDistinct                      // different values of the expression
	ChooseRank                         // a point of the expression's grid near a rank among its values
	ChooseMode                         // one of the candidates: the value that most rows have
)

// Statistic is one exact integer per group, which one release makes noisy; or, for those that choose, how many rows each candidate of a
// group has, from which one release takes a candidate.
type Statistic struct {
	Kind   statisticKind `node:"1"`
	X      Expr          `node:"2"`         // over columns; nil for CountRows; the unit's id for CountUnits
	Grid   *Grid         `node:"3,encoded"` // of x, where its values are numbers of steps
	Y      Expr          `node:"4"`         // SumProducts only: the second factor
	GridY  *Grid         `node:"5,encoded"`
	Filter Expr          `node:"6"`         // over columns; nil: none
	Rank   *big.Rat      `node:"7,encoded"` // ChooseRank only: the fraction of the rows that lie below, in [0, 1]
	Upper  bool          `node:"8,encoded"` // ChooseRank only: where two ranks fit, the upper one
	Among  []catalog.Key `node:"9,encoded"` // ChooseMode only: the candidates; nil: the points of the grid
	Name   string        `node:"10,-"`      // its description
}

// Chooses reports whether the release of a statistic is a selection; else it is noise on an integer.
func (m Statistic) Chooses() bool { return m.Kind == ChooseRank || m.Kind == ChooseMode }

// IsSquare reports whether both factors of products are one.
func (m Statistic) IsSquare() bool { return m.GridY == m.Grid }

// Unit is one step of a statistic's integer in the output's unit.
func (m Statistic) Unit() *big.Rat {
	switch {
	case m.Kind == SumProducts:
		return new(big.Rat).Mul(m.Grid.Step, m.GridY.Step)
	case m.Grid != nil && !m.Chooses():
		return m.Grid.Step
	default:
		return scalar.One()
	}
}

// PerRow is the largest absolute value that one row adds to a sum; at least 1, so that no release is free of noise.
func (m Statistic) PerRow() *big.Int {
	switch m.Kind {
	case SumSteps:
		return m.Grid.magnitude()
	case SumCentred:
		return m.Grid.Deviation()
	case SumProducts:
		most := new(big.Int).Mul(m.Grid.Deviation(), m.GridY.Deviation())
		return scalar.MaxInt(big.NewInt(1), most.Sub(most, m.Middle())) // the middle is rounded down: the upper end is farther
	default:
		panic("sqlrewrite: statistic without a sum")
	}
}

// Middle is what is subtracted from each product: half of the largest square, so that squares lie around 0; products do already.
func (m Statistic) Middle() *big.Int {
	if !m.IsSquare() {
		return new(big.Int)
	}
	d := m.Grid.Deviation()
	return d.Rsh(new(big.Int).Mul(d, d), 1)
}

// Candidates is how many candidates a mode is chosen from.
func (m Statistic) Candidates() int {
	if m.Among != nil {
		return len(m.Among)
	}
	return int(m.Grid.Points().Int64())
}

// Monotone reports whether a unit's rows can only raise the statistic.
func (m Statistic) Monotone() bool {
	switch m.Kind {
	case CountRows, CountValues, CountUnits, CountDistinct:
		return true
	case SumSteps:
		return m.Grid.Lo.Sign() >= 0
	default:
		return false
	}
}

// Estimator is what outputs refer to. It is computed from releases, in the same way from noisy ones and from true ones.
type Estimator struct {
	Name string // as the analyst could have written it
	T    catalog.Type
	How  Formula
	Of   []int // the releases that the formula reads, as indexes into BoundQuery.Statistics
}

// Formula says how an estimator comes from its releases. Below, s and q stand for the means of centred steps and of their squares or
// products, n for the count of the rows that they are over.
type Formula int

const (
	AsReleased   Formula = iota // the release itself
	ArrayOf                     // the array of releases
	MeanOf                      // n, s
	VariancePop                 // n, s, q: q - s²
	VarianceSamp                // the same times n/(n-1)
	DeviationPop                // the roots of these
	DeviationSamp
	CovariancePop  // n, s of x, s of y, q of x and y
	CovarianceSamp // the same times n/(n-1)
	Squares        // n, s, q: the variance times n
	Covariances    // n, s of x, s of y, q of x and y: the covariance times n
	Slope          // n, s of x, s of y, q of x and y, q of x: covariance over variance of x
	Intercept      // the same: mean of y less slope times mean of x
	Correlation    // n, s of x, s of y, q of x and y, q of x, q of y
	Determination  // its square
)

func (v Estimator) Computed() bool { return v.How != AsReleased }

// SameAs reports whether two estimators are one.
func (v Estimator) SameAs(w Estimator) bool {
	return v.How == w.How && v.T == w.T && slices.Equal(v.Of, w.Of)
}

// ClampsUnits reports whether one unit's sum is clamped to what max_rows rows can add, instead of scaled to that many rows. Both have the
// same sensitivity. Clamping changes only units whose sum is beyond; scaling keeps ratios, so sums that means and moments are made of are
// scaled.
func (q *BoundQuery) ClampsUnits(release int) bool {
	if q.Statistics[release].Kind != SumSteps {
		return false
	}
	return !slices.ContainsFunc(q.Estimators, func(v Estimator) bool { return v.Computed() && slices.Contains(v.Of, release) })
}
