package answer

import (
	"math/big"

	"noisegate.example/catalog"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/bind"
	"noisegate.example/sqlrewrite/internal/domain"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/syntax"
)

func constantly(v *big.Rat) plan.Linear { return plan.Linear{Constant: v} }

// follower finds the fractions of the outputs of a plan, in one row of the answer or before there are rows.
type follower struct {
	p  *plan.Plan
	at *place // nil: before there are rows
}

// fraction returns an expression over releases and constants as a fraction; ok is false for others.
func (w follower) fraction(e algebra.Expr) (f plan.Fraction, ok bool) {
	switch e := e.(type) {
	case algebra.EstimatorRef:
		f, ok := w.valueFraction(w.p.Query.Estimators[e.Index])
		if w.at != nil && ok {
			return f.InRow(w.at.row), w.at.row > 0
		}
		return f, ok
	case algebra.Aggregate:
		return w.aggregate(e)
	case algebra.Constant:
		v, ok := numberOf(e)
		return plan.Fraction{Over: constantly(v), Under: constantly(scalar.One()), Within: scalar.Point(v)}, ok
	case algebra.Negate:
		f, ok := w.fraction(e.X)
		return f.Scaled(big.NewRat(-1, 1)), ok
	case algebra.Cast:
		if e.T != catalog.Numeric && !scalar.IsFloat(e.T) && e.X.Typ() != e.T && !isWhole(e) || len(e.Mods) > 0 {
			return plan.Fraction{}, false
		}
		return w.fraction(e.X)
	case algebra.Call:
		x := w.first(e)
		if x == nil || len(bind.ReleasesOf(w.p.Query, e)) > len(bind.ReleasesOf(w.p.Query, x)) {
			return plan.Fraction{}, false
		}
		return w.fraction(x)
	case algebra.Binary:
		if e.Op == syntax.Divide && e.T.IsInteger() {
			return plan.Fraction{}, false // it is truncated
		}
		return w.binaryFraction(e)
	default:
		return plan.Fraction{}, false
	}
}

// isWhole reports whether a cast gives a sum of whole numbers as a whole number.
func isWhole(e algebra.Cast) bool {
	a, ok := e.X.(algebra.Aggregate)
	return ok && e.T.IsInteger() && a.Name == "sum" && a.Args[0].Typ().IsInteger()
}

// only returns the result of a CASE with one arm and no ELSE; nil for others.
func only(e algebra.Choice) algebra.Expr {
	if len(e.Arms) != 1 || e.Otherwise != nil {
		return nil
	}
	return e.Arms[0].Result
}

// first returns the argument that a call gives unchanged, where its value is not NULL; nil: none.
func (w follower) first(e algebra.Call) algebra.Expr {
	switch domain.BuiltinOf(e.Name).First {
	case domain.FirstOrNull:
		return e.Args[0]
	case domain.FirstUnlessNull:
		a, row := e.Args[0].(algebra.Aggregate)
		switch {
		case neverNull(w.p, e.Args[0]):
			return e.Args[0]
		case row && w.at != nil && w.at.absent(a) && len(e.Args) == 2: // lag has no row to look at
			return e.Args[1]
		case row && len(a.Args) > 0 && neverNull(w.p, a.Args[0]):
			return a
		}
	case domain.Computed:
	}
	return nil
}

// isFirst reports whether a call gives its first argument wherever its value is not NULL.
func isFirst(p *plan.Plan, e algebra.Call) bool {
	first := domain.BuiltinOf(e.Name).First
	return first == domain.FirstOrNull || first == domain.FirstUnlessNull && neverNull(p, e.Args[0])
}

// neverNull reports whether an expression is a released value as it is.
func neverNull(p *plan.Plan, e algebra.Expr) bool {
	v, ok := e.(algebra.EstimatorRef)
	return ok && !p.Query.Estimators[v.Index].Computed()
}

// valueFraction returns a release, or a mean: the sum of centred values over their number, plus the centre.
func (w follower) valueFraction(v algebra.Estimator) (plan.Fraction, bool) {
	p := w.p
	if v.How == algebra.ArrayOf || p.Releases[v.Of[0]].Mechanism == nil {
		return plan.Fraction{}, false
	}
	release := func(i int, weight *big.Rat) plan.Linear {
		return plan.Linear{Terms: []plan.Weighted{{Cells: plan.Cells{Release: i}, Weight: weight}}, Constant: new(big.Rat)}
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

func (w follower) binaryFraction(e algebra.Binary) (plan.Fraction, bool) {
	l, okL := w.fraction(e.L)
	r, okR := w.fraction(e.R)
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

func numberOf(e algebra.Expr) (*big.Rat, bool) {
	c, ok := e.(algebra.Constant)
	if !ok || c.Null || !c.T.IsNumber() {
		return nil, false
	}
	return scalar.ParseNumber(c.Text)
}

// sumWidth returns the half-width of a weighted sum of releases at a level; nil: infinite.
func sumWidth(p *plan.Plan, sum plan.Linear, level mechanisms.Confidence) *big.Rat {
	var terms []mechanisms.Term // in the order of releases: the sum of floats depends on it
	for _, n := range plan.NoisesOf(plan.Fraction{Over: sum}) {
		terms = append(terms, mechanisms.Term{Noise: p.Releases[n.Release].Mechanism, Weight: n.Over, Times: n.Times})
	}
	if len(terms) == 1 && terms[0].Times == 1 {
		w := scalar.InUnits(terms[0].Noise.HalfWidth(level), terms[0].Weight)
		return w.Abs(w)
	}
	return new(big.Rat).SetFloat64(mechanisms.SumHalfWidth(terms, level))
}
