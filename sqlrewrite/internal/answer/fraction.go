package answer

import (
	"math/big"
	"slices"

	"noisegate/catalog"
	"noisegate/mechanisms"
	"noisegate/sqlrewrite/internal/algebra"
	"noisegate/sqlrewrite/internal/bind"
	"noisegate/sqlrewrite/internal/domain"
	"noisegate/sqlrewrite/internal/plan"
	"noisegate/sqlrewrite/internal/scalar"
	"noisegate/sqlrewrite/syntax"
)

func constantly(v *big.Rat) plan.Linear { return plan.Linear{Constant: v} }

// fraction is the form of an expression over releases and constants; ok is false for others.
func fraction(p *plan.Plan, e algebra.Expr) (f plan.Fraction, ok bool) {
	switch e := e.(type) {
	case algebra.EstimatorRef:
		return valueFraction(p, p.Query.Estimators[e.Index])
	case algebra.Constant:
		v, ok := numberOf(e)
		return plan.Fraction{Over: constantly(v), Under: constantly(scalar.One()), Within: scalar.Point(v)}, ok
	case algebra.Negate:
		f, ok := fraction(p, e.X)
		return f.Scaled(big.NewRat(-1, 1)), ok
	case algebra.Cast:
		if e.T != catalog.Numeric && !scalar.IsFloat(e.T) || len(e.Mods) > 0 {
			return plan.Fraction{}, false
		}
		return fraction(p, e.X)
	case algebra.Call:
		if !isFirst(p, e) || len(bind.ReleasesOf(p.Query, e)) > len(bind.ReleasesOf(p.Query, e.Args[0])) {
			return plan.Fraction{}, false
		}
		return fraction(p, e.Args[0])
	case algebra.Binary:
		if e.Op == syntax.Divide && e.T.IsInteger() {
			return plan.Fraction{}, false // it is truncated
		}
		return binaryFraction(p, e)
	default:
		return plan.Fraction{}, false
	}
}

// isFirst reports whether a value that is not NULL is that of the first argument.
func isFirst(p *plan.Plan, e algebra.Call) bool {
	first := domain.BuiltinOf(e.Name).First
	return first == domain.FirstOrNull || first == domain.FirstUnlessNull && neverNull(p, e.Args[0])
}

// neverNull reports whether an expression is a release as it is.
func neverNull(p *plan.Plan, e algebra.Expr) bool {
	v, ok := e.(algebra.EstimatorRef)
	return ok && !p.Query.Estimators[v.Index].Computed()
}

// valueFraction is a release, or a mean: the sum of centred values over their number, and the centre.
func valueFraction(p *plan.Plan, v algebra.Estimator) (plan.Fraction, bool) {
	if v.How == algebra.ArrayOf || p.Releases[v.Of[0]].Mechanism == nil {
		return plan.Fraction{}, false
	}
	release := func(i int, weight *big.Rat) plan.Linear {
		return plan.Linear{Weights: map[int]*big.Rat{i: weight}, Constant: new(big.Rat)}
	}
	first := v.Of[0]
	switch v.How {
	case algebra.AsReleased:
		return plan.Fraction{Over: release(first, p.Releases[first].Unit), Under: constantly(scalar.One())}, true
	case algebra.MeanOf:
		g := p.Releases[v.Of[1]].Statistic.Grid
		sum, centre := release(v.Of[1], g.Step), release(first, scalar.InUnits(g.Centre(), g.Step))
		return plan.Fraction{Over: sum.Plus(centre), Under: release(first, scalar.One()), Within: p.Certain(v)}, true
	default:
		return plan.Fraction{}, false
	}
}

func binaryFraction(p *plan.Plan, e algebra.Binary) (plan.Fraction, bool) {
	l, okL := fraction(p, e.L)
	r, okR := fraction(p, e.R)
	if !okL || !okR {
		return plan.Fraction{}, false
	}
	switch e.Op {
	case syntax.Add:
		return l.Plus(r)
	case syntax.Subtract:
		return l.Plus(r.Scaled(big.NewRat(-1, 1)))
	case syntax.Multiply:
		return l.Times(r)
	case syntax.Divide:
		if divisor := r.Over.Constant; r.Over.IsConstant() && r.Under.IsConstant() && divisor.Sign() != 0 {
			return l.Scaled(new(big.Rat).Quo(r.Under.Constant, divisor)), true
		}
		return l.Times(plan.Fraction{Over: r.Under, Under: r.Over})
	default:
		return plan.Fraction{}, false
	}
}

// numberOf is the value of a constant.
func numberOf(e algebra.Expr) (*big.Rat, bool) {
	c, ok := e.(algebra.Constant)
	if !ok || c.Null || !c.T.IsNumber() {
		return nil, false
	}
	return scalar.ParseNumber(c.Text)
}

// sumWidth is the half-width of a weighted sum of releases at the requested confidence; nil: infinite.
func sumWidth(p *plan.Plan, weights map[int]*big.Rat) *big.Rat {
	terms := terms(p, weights)
	if len(terms) == 1 {
		w := scalar.InUnits(terms[0].Noise.HalfWidth(p.Options.Confidence), terms[0].Weight)
		return w.Abs(w)
	}
	return new(big.Rat).SetFloat64(mechanisms.SumHalfWidth(terms, p.Options.Confidence))
}

// terms are the noise of a weighted sum, in the order of releases: the sum of floats depends on it.
func terms(p *plan.Plan, weights map[int]*big.Rat) []mechanisms.Term {
	var terms []mechanisms.Term
	for _, i := range sortedReleases(weights) {
		terms = append(terms, mechanisms.Term{Noise: p.Releases[i].Mechanism, Weight: weights[i]})
	}
	return terms
}

func sortedReleases(weights map[int]*big.Rat) []int {
	var order []int
	for i, w := range weights {
		if w.Sign() != 0 {
			order = append(order, i)
		}
	}
	slices.Sort(order)
	return order
}
