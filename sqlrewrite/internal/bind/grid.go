package bind

import (
	"cmp"
	"math/big"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/domain"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/sqlprint"
)

// gridWith makes the grid of an expression within bounds, and within narrower ones that conditions imply; nil: they imply none.
func gridWith(x algebra.Expr, within, implied *algebra.Bounds, at fault.Position) (*algebra.Grid, error) {
	t, name := algebra.CarrierOf(x), sqlprint.Describe(x)
	g := &algebra.Grid{X: x, Step: within.Step}
	switch {
	case g.Step == nil && t.IsInteger(), g.Step != nil && t.IsInteger() && g.Step.Cmp(scalar.One()) < 0:
		g.Step = scalar.One() // whole numbers lie on every finer grid
	case g.Step == nil:
		g.Step, g.Derived = domain.DerivedStep(x, cmp.Or(implied, within)), true
	}
	if g.Step.Sign() <= 0 || !g.Step.IsInt() && g.Step.Num().Cmp(big.NewInt(1)) != 0 {
		return nil, fault.BadStep(at, name, "the step is neither a whole number nor one over a whole number")
	}
	wrong := laid(g, t, within, implied)
	for wrong != "" && g.Derived && g.Form != algebra.DividedSteps { // the bounds are close together, and far from 0
		g.Step = new(big.Rat).Mul(g.Step, big.NewRat(10, 1))
		wrong = laid(g, t, within, implied)
	}
	if wrong != "" {
		return nil, fault.BadStep(at, name, wrong)
	}
	if c, ok := x.(algebra.Computed); ok { // by functions: a CASE would repeat the expression
		o := domain.Operand{X: c.ErrorFree, Range: c.Within, Printed: c.Printed}
		if o.X.Typ() == catalog.Float4 { // NULL, which no operation has widened
			o = o.In(catalog.Float8)
		}
		o = domain.Clamped(o, g.Value(g.Lo), g.Value(g.Hi))
		g.X, g.Clamped = domain.ComputedOf(c.Written, o), true
	}
	return g, nil
}

// laid lays the steps of a grid over the bounds of numbers of type t, and says why that cannot be done; "" where it can. Bounds between two
// multiples of a derived step become these.
func laid(g *algebra.Grid, t catalog.Type, within, implied *algebra.Bounds) string {
	if g.Lo, g.Hi = endsOn(g.Step, within, implied); g.Lo.Cmp(g.Hi) > 0 {
		if !g.Derived {
			return "no multiple of the step lies between the bounds"
		}
		g.Lo, g.Hi = g.Hi, g.Lo
	}
	switch {
	case t.IsInteger() && g.Step.Cmp(scalar.One()) == 0:
		g.Form = algebra.WholeSteps
	case t.IsInteger():
		g.Form = algebra.DividedSteps
	case t == catalog.Numeric && domain.OnGrid(g.X, g.Step):
		g.Form = algebra.ExactDecimal
	case t == catalog.Numeric:
		g.Form = algebra.RoundDecimal
	case g.Step.IsInt() && g.Step.Cmp(scalar.One()) > 0:
		g.Form = algebra.DividedSteps
	default:
		g.Form = algebra.ScaledFloat
	}
	return beyondSteps(g, t)
}

// beyondSteps says why a number of type t cannot count the steps of a grid; "" where it can.
func beyondSteps(g *algebra.Grid, t catalog.Type) string {
	limit := int64(algebra.FloatSteps)
	if t.IsInteger() || t == catalog.Numeric {
		limit = algebra.WholeRange
	}
	for _, bound := range []*big.Int{g.Lo, g.Hi} {
		units := new(big.Rat).SetInt(bound)
		if g.Form == algebra.DividedSteps {
			units.Mul(units, g.Step)
		}
		if new(big.Int).Abs(units.Num()).Cmp(big.NewInt(limit)) >= 0 {
			return "the bounds hold too many steps"
		}
	}
	if g.Form == algebra.DividedSteps && g.Step.Cmp(new(big.Rat).SetInt64(limit)) >= 0 {
		return "the step is too large"
	}
	if g.Form == algebra.ScaledFloat && !(g.RoundTrips(g.Lo) && g.RoundTrips(g.Hi)) {
		return "the bounds hold too many steps"
	}
	return ""
}

// coarser is g, or where g has more than so many points the finest grid of the same bounds on 1, 2 or 5 times a power of ten that has not.
// Where conditions imply the bounds of g, those of the policy are given, too.
func coarser(g *algebra.Grid, policy *algebra.Bounds, points int64, at fault.Position) (*algebra.Grid, error) {
	if g.Points().Cmp(big.NewInt(points)) <= 0 {
		return g, nil
	}
	ends := &algebra.Bounds{Lo: g.Value(g.Lo), Hi: g.Value(g.Hi)}
	within, implied := *ends, (*algebra.Bounds)(nil)
	if policy != nil {
		within, implied = *policy, ends
		points -= 2 // ends are moved outward
	}
	span := new(big.Rat).Sub(ends.Hi, ends.Lo)
	least := span.Quo(span, new(big.Rat).SetInt64(points-1))
	step := scalar.One()
	for ten := big.NewRat(10, 1); step.Cmp(least) >= 0; {
		step = new(big.Rat).Quo(step, ten)
	}
	for i := 0; step.Cmp(least) < 0; i++ {
		step = new(big.Rat).Mul(step, []*big.Rat{big.NewRat(2, 1), big.NewRat(5, 2), big.NewRat(2, 1)}[i%3])
	}
	within.Step = step
	coarse, err := gridWith(g.X, &within, implied, at)
	if err != nil {
		return nil, err
	}
	coarse.Derived, coarse.Coarse = true, true
	return coarse, nil
}

// timeGrid is the grid of a column of dates or times, from which quantiles are chosen: as fine as the policy says and the number of
// points allows, in steps that clocks have. Its unit is the day for dates and the microsecond for times, since 1970-01-01 UTC.
func timeGrid(x algebra.Expr, within, implied *algebra.Bounds, at fault.Position) (*algebra.Grid, error) {
	g := &algebra.Grid{X: x, Form: algebra.TimeSteps}
	finest := within.Step
	if finest == nil {
		finest = scalar.One()
	}
	for _, step := range domain.ClockSteps(x.Typ()) {
		if step.Cmp(finest) < 0 {
			continue
		}
		g.Step, g.Derived = step, within.Step == nil || step.Cmp(finest) > 0
		g.Lo, g.Hi = endsOn(step, within, implied)
		if g.Lo.Cmp(g.Hi) <= 0 && g.Points().Cmp(big.NewInt(sqlprint.MaxCandidates)) <= 0 {
			return g, nil
		}
	}
	return nil, fault.BadStep(at, sqlprint.Describe(x), "there is no step between 10000 points and none")
}
