package plan

import (
	"math/big"

	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/scalar"
)

// OutputForm is what a plan knows of an output before any row is read.
type OutputForm struct {
	Column   Column
	Releases int // how many releases it is computed from
	Ratio    *Ratio
}

// Ratio is the one part of an output that all its releases are in, and that is a fraction of them: the mean in round(avg(x), 1). The
// fraction's interval has the level asked for by itself, and the rest of the output carries it on.
type Ratio struct {
	Context algebra.Expr // the output, with a [answer.ratioRef] in the fraction's place
	Of      Fraction
	Width   *big.Rat // of the fraction, known before there is data; nil: not known
}

// Fraction is an expression as a quotient of two weighted sums of releases: a mean, a share, a rate, and what is added to or
// multiplied with one of these. Of such an expression the interval is known exactly ([answer.Fieller]), and before there is data where the
// divisor is a constant.
type Fraction struct {
	Over, Under Linear
	Within      *scalar.Span // where the true value lies in any case, by the policy's bounds; nil: anywhere
}

func (f Fraction) Scaled(factor *big.Rat) Fraction {
	f.Over = f.Over.scaled(factor)
	if f.Within != nil {
		f.Within = Extremes(f.Within, scalar.Point(factor), product)
	}
	return f
}

// Plus is the sum of two fractions, where one divisor is a constant, or both are the same.
func (f Fraction) Plus(g Fraction) (sum Fraction, ok bool) {
	if f.Within != nil && g.Within != nil {
		sum.Within = &scalar.Span{Lo: new(big.Rat).Add(f.Within.Lo, g.Within.Lo), Hi: new(big.Rat).Add(f.Within.Hi, g.Within.Hi)}
	}
	if f.Under.equals(g.Under) {
		sum.Over, sum.Under = f.Over.Plus(g.Over), f.Under
		return sum, true
	}
	left, okLeft := f.Over.times(g.Under)
	right, okRight := g.Over.times(f.Under)
	under, okUnder := f.Under.times(g.Under)
	sum.Over, sum.Under = left.Plus(right), under
	return sum, okLeft && okRight && okUnder
}

// Times is the product of two fractions, where both of its sums stay linear.
func (f Fraction) Times(g Fraction) (out Fraction, ok bool) {
	if f.Within != nil && g.Within != nil {
		out.Within = Extremes(f.Within, g.Within, product)
	}
	over, okOver := f.Over.times(g.Over)
	under, okUnder := f.Under.times(g.Under)
	out.Over, out.Under = over, under
	return out, okOver && okUnder
}

func product(a, b *big.Rat) *big.Rat { return new(big.Rat).Mul(a, b) }

// Affine is the fraction as a sum, where the divisor is a constant that is not zero.
func (f Fraction) Affine() (Linear, bool) {
	if !f.Under.IsConstant() || f.Under.Constant.Sign() == 0 {
		return Linear{}, false
	}
	return f.Over.scaled(new(big.Rat).Inv(f.Under.Constant)), true
}

// OverRows is the sum over all rows of some runs of rows, of what a fraction is for each of them, where its divisor is a constant.
func (f Fraction) OverRows(runs [][2]int) (Fraction, bool) {
	sum, ok := f.Affine()
	if !ok {
		return Fraction{}, false
	}
	return Fraction{Over: sum.Over(runs), Under: Linear{Constant: scalar.One()}}, true
}

// InRow is what a fraction is for another row.
func (f Fraction) InRow(row int) Fraction {
	f.Over, f.Under = f.Over.in(row), f.Under.in(row)
	return f
}

// ColumnKind says what an output column is.
type ColumnKind string

// The kinds of output column.
const (
	KeyColumn       ColumnKind = "key"
	AggregateColumn ColumnKind = "aggregate" // one release as it is
	DerivedColumn   ColumnKind = "derived"   // computed from releases
	PublicColumn    ColumnKind = "public"    // of a query that reads nothing private: exact
)

// Column describes one output.
type Column struct {
	Name        string
	Type        string // PostgreSQL's name: bigint, numeric, text, ...
	Kind        ColumnKind
	Mechanism   mechanisms.Name // aggregate only
	Selection   mechanisms.Name // of a selection: the selector
	Sensitivity string          // aggregate only: in the output's unit
	Scale       string          // aggregate only: Laplace b or Gaussian σ², in the output's unit
	// HalfWidth is that of the noise at the requested confidence, in the output's unit: of aggregates, and of what is a weighted sum of
	// them. Nil where it is not known before there is data.
	HalfWidth *big.Rat
	// RankError of a selection is how far off it is at the requested confidence, in rows: its error in values depends on the data.
	RankError *big.Rat
	// Bias is the direction in which values are off where contribution bounding left out rows or groups of a unit. Intervals do not include
	// it.
	Bias Bias
}

// Bias is the direction of an error that noise does not explain.
type Bias string

// The directions.
const (
	Unbiased    Bias = ""
	LowBias     Bias = "low"     // values may be too low, and are not too high
	UnknownBias Bias = "unknown" // values may be too low or too high
)
