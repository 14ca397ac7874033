package sqlrewrite

import "math/big"

// sumOfProducts is the sum of the products of two centred numbers of steps, less the middle for each. Products that could leave bigint are
// numeric, as sums of bigint are.
func (p *statementPrinter) sumOfProducts(m measure) string {
	wide := "bigint"
	if most := new(big.Int).Mul(m.grid.deviation(), m.gridY.deviation()); most.BitLen() > 62 {
		wide = "numeric"
	}
	factor := func(g grid) string {
		if g.form == exactDecimal {
			g.form = roundDecimal // in steps row by row
		}
		steps := p.steps(&g)
		if t := g.stepType(); t != "numeric" && t != wide {
			steps = "(" + steps + ")::" + wide
		}
		return "(" + steps + " - " + p.number(g.centre(), wide) + ")"
	}
	s := "pg_catalog.sum(" + factor(*m.grid) + " * " + factor(*m.gridY) + ")" + p.filterClause(m)
	if m.middle().Sign() == 0 {
		return s
	}
	return "(" + s + " - " + p.number(m.middle(), "numeric") + " * " + p.count(m) + ")"
}

// stepType is the type of a grid's printed steps.
func (g *grid) stepType() string {
	switch {
	case g.form == exactDecimal, g.form == roundDecimal:
		return "numeric"
	case g.small():
		return "integer"
	default:
		return "bigint"
	}
}
