package plan

import (
	"math/big"

	"noisegate/sqlrewrite/internal/algebra"
	"noisegate/sqlrewrite/internal/scalar"
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
