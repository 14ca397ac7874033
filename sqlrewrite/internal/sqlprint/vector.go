package sqlprint

import (
	"fmt"
	"math/big"
	"strings"

	"noisegate/sqlrewrite/internal/algebra"
	"noisegate/sqlrewrite/internal/stability"
)

// Factor is a whole number that each row has: of a grid 2·steps less the ends, which lies in [-(hi-lo), hi-lo]; of an indicator itself, 0
// or 1; without either 1.
type Factor struct {
	Grid      *algebra.Grid
	Indicator algebra.Expr // CASE WHEN x = c THEN 1 ELSE 0 END
}

// Most is the largest absolute value of a factor.
func (f Factor) Most() *big.Int {
	if f.Grid == nil {
		return big.NewInt(1)
	}
	return new(big.Int).Sub(f.Grid.Hi, f.Grid.Lo)
}

// Vector are sums of products of factors, which are released together.
type Vector struct {
	Factors []Factor
	Columns [][2]int // of each column the two factors, by place
}

// PrintVector prints the statement of a vector over the rows of a query without keys. Each factor is computed once a row. Of a unit that
// has more than max_rows rows each sum is scaled to that many (docs/sql/contributions.md, Lemmas 2 and 2c).
func (p *StatementPrinter) PrintVector(v Vector) {
	p.hides = true
	p.spare, p.fans = p.Q.Spare, p.Q.Pairs == nil || p.Q.Pairs.Cmp(big.NewInt(1)) > 0
	list := []string{p.unitKey() + " AS unit"}
	for i, f := range v.Factors {
		list = append(list, fmt.Sprintf("%s AS k%d", p.factor(f), i))
	}
	rows := p.sub(func() {
		p.clause("SELECT ", strings.Join(list, ",\n       "))
		p.fromWhere(nil, true)
	})
	var outputs, inner []string
	for i, c := range v.Columns {
		sum := fmt.Sprintf("pg_catalog.sum(r.k%d * r.k%d)", c[0], c[1])
		if p.bounding.Kind != stability.Flat {
			inner = append(inner, fmt.Sprintf("%s AS a%d", sum, i))
			limit := p.number(big.NewInt(p.bounding.MaxRows), "bigint")
			sum = fmt.Sprintf("pg_catalog.sum(CASE WHEN u.n > %[1]s THEN pg_catalog.div(u.a%[2]d::numeric * %[1]s, u.n::numeric) ELSE u.a%[2]d END)",
				limit, i)
		}
		outputs = append(outputs, asTextSQL("COALESCE("+sum+", 0)"))
	}
	p.write("WITH r AS MATERIALIZED (", rows, ")\n")
	p.clause("SELECT ", strings.Join(outputs, ",\n       "))
	if p.bounding.Kind == stability.Flat {
		p.clause("\nFROM ", "r")
	} else {
		p.clause("\nFROM ", "(SELECT pg_catalog.count(*) AS n, "+strings.Join(inner, ", ")+"\n      FROM r\n      GROUP BY r.unit) AS u")
	}
	if len(p.lifts) > 0 {
		panic("sqlrewrite: rows that nothing joins")
	}
	p.part.Template = p.template()
	p.part.Statement = Statement{SQL: p.part.Template.sql(), Args: p.Args, Values: len(v.Columns), Preconditions: preconditions(p.Q),
		Sorts: p.bounding.Kind != stability.Flat, Hashes: p.pairs, InOrder: p.joins, Blind: p.joins && p.hides}
	p.part.RowByRow = p.rowByRow
}

// factor prints a factor as bigint.
func (p *StatementPrinter) factor(f Factor) string {
	switch {
	case f.Indicator != nil:
		return "(" + p.Text(f.Indicator) + ")::bigint"
	case f.Grid == nil:
		return p.number(big.NewInt(1), "bigint")
	}
	g := *f.Grid
	if g.Form == algebra.ExactDecimal {
		g.Form = algebra.RoundDecimal // in steps row by row
	}
	steps := p.steps(&g)
	if stepType(&g) != "bigint" {
		steps = "(" + steps + ")::bigint"
	}
	ends := new(big.Int).Add(g.Lo, g.Hi)
	return "(" + steps + " * " + p.number(big.NewInt(2), "bigint") + " - " + p.number(ends, "bigint") + ")"
}
