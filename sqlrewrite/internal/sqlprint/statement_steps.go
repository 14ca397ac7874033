package sqlprint

import (
	"math/big"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/scalar"
)

// sumOfProducts is the sum of the products of two centred numbers of steps, less the middle for each. Products that could leave bigint are
// numeric, as sums of bigint are.
func (p *StatementPrinter) sumOfProducts(m algebra.Statistic) string {
	wide := "bigint"
	if most := new(big.Int).Mul(m.Grid.Deviation(), m.GridY.Deviation()); most.BitLen() > 62 {
		wide = "numeric"
	}
	factor := func(g algebra.Grid) string {
		if g.Form == algebra.ExactDecimal {
			g.Form = algebra.RoundDecimal // in steps row by row
		}
		steps := p.steps(&g)
		if t := stepType(&g); t != "numeric" && t != wide {
			steps = "(" + steps + ")::" + wide
		}
		return "(" + steps + " - " + p.number(g.Centre(), wide) + ")"
	}
	s := "pg_catalog.sum(" + factor(*m.Grid) + " * " + factor(*m.GridY) + ")" + p.filterClause(m)
	if m.Middle().Sign() == 0 {
		return s
	}
	return "(" + s + " - " + p.number(m.Middle(), "numeric") + " * " + p.count(m) + ")"
}

// stepType is the type of a grid's printed steps.
func stepType(g *algebra.Grid) string {
	switch {
	case g.Form == algebra.ExactDecimal, g.Form == algebra.RoundDecimal:
		return "numeric"
	case g.Small():
		return "integer"
	default:
		return "bigint"
	}
}

// decimalDigits is d where the step of a grid is 10^-d.
func decimalDigits(g *algebra.Grid) (int, bool) {
	digits, exact := g.Step.FloatPrec()
	return digits, exact && g.Step.Num().Cmp(scalar.One().Num()) == 0 && g.Step.Denom().Cmp(scalar.Power10(digits)) == 0
}

// timeSteps is the place of a time among the points of its grid. As for numbers, CASE keeps NULL and lets only times within the bounds
// reach the subtraction, which infinite ones would fail.
func (p *StatementPrinter) timeSteps(g *algebra.Grid) string {
	x, t := p.asIs(g.X), g.X.Typ()
	bound := func(k *big.Int) string { return p.arg(algebra.ClockText(g.Value(k), t), sqlType(t)) }
	last := new(big.Int).Sub(g.Hi, g.Lo)
	since := "(" + x + " - " + bound(g.Lo) + ")"
	if t != catalog.Date {
		since = "(EXTRACT(epoch FROM (" + x + " - " + bound(g.Lo) + ")) * 1000000)"
	}
	half := new(big.Int).Rsh(g.Step.Num(), 1)
	return "CASE WHEN " + x + " < " + bound(g.Lo) + " THEN 0 WHEN " + x + " > " + bound(g.Hi) + " THEN " + p.number(last, "integer") +
		" ELSE ((" + since + "::bigint + " + p.number(half, "bigint") + ") / " + p.number(g.Step.Num(), "bigint") + ")::integer END"
}
