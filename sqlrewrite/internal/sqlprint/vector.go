package sqlprint

import (
	"fmt"
	"math"
	"math/big"
	"strings"

	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/stability"
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
	// Logistic: the last factor is a target, -1 or 1, and each row has a [Residual].
	Logistic bool
}

// Residual stands for the place of a factor: [ResidualSteps] times the probability that a logistic model gives the target 1, rounded, less
// as much for a target that is 1. The model's coefficients are arguments of the statement, which the text clamps.
const Residual = -1

// The scales of a logistic model. A coefficient times its factor is at most maxCoefficient·2^coefficientBits, so that sums of 2^16 of them
// are bigints.
const (
	ResidualSteps   = 1 << 16
	coefficientBits = 40 // the logarithm of the odds is in steps of 2^-40
	maxCoefficient  = 64 // of a factor that is divided by its largest value
	maxLogit        = 30 // beyond it a probability is 0 or 1 in steps
)

// Coefficient is a coefficient of a factor that is divided by its largest value, as an argument of the statement.
func (f Factor) Coefficient(c float64) int64 {
	most, _ := new(big.Float).SetInt(f.Most()).Float64()
	c = max(-maxCoefficient, min(maxCoefficient, c))
	return int64(math.RoundToEven(c * (1 << coefficientBits) / most))
}

// largestCoefficient bounds [Factor.Coefficient].
func (f Factor) largestCoefficient() *big.Int {
	return new(big.Int).Quo(new(big.Int).Lsh(big.NewInt(maxCoefficient), coefficientBits), f.Most())
}

// PrintVector prints the statement of a vector over the rows of a query without keys. Each factor is computed once a row. Of a unit that
// has more than max_rows rows each sum is scaled to that many (docs/sql/contributions.md, Lemmas 2 and 2c). Of a logistic model it gives
// the places of the coefficients among the arguments, from 0, in the order of the factors.
func (p *StatementPrinter) PrintVector(v Vector) (coefficients []int) {
	rows := p.factorRows(v.Factors)
	if v.Logistic {
		var residual string
		residual, coefficients = p.residual(v)
		list := []string{"q.unit"}
		for i := range v.Factors[1:] {
			list = append(list, fmt.Sprintf("q.k%d", i))
		}
		rows = p.over(rows, "q", append(list, residual+" AS e"))
	}
	var products []string
	for _, c := range v.Columns {
		products = append(products, factorName(c[0])+" * "+factorName(c[1]))
	}
	p.printSums(rows, products)
	return coefficients
}

// over prints a query with some columns over the rows of another, which it calls name. Each column of these is computed once a row: a fence
// keeps PostgreSQL from making one query of both, and takes half the time of rows that are put aside, as which a question is known.
func (p *StatementPrinter) over(rows, name string, columns []string) string {
	if p.Identity {
		return "WITH " + name + " AS MATERIALIZED (" + rows + ")\nSELECT " + strings.Join(columns, ", ") + "\nFROM " + name
	}
	return "SELECT " + strings.Join(columns, ", ") + "\nFROM " + fenced(rows, name)
}

// fenced is a query in FROM that is planned by itself.
func fenced(rows, name string) string {
	if !strings.HasSuffix(rows, fence) {
		rows += fence
	}
	return "(" + rows + ") AS " + name
}

// factorRows prints a query for the factors of each row, and its unit.
func (p *StatementPrinter) factorRows(factors []Factor) string {
	list := []string{p.unitKey() + " AS unit"}
	for i, f := range factors {
		list = append(list, fmt.Sprintf("%s AS k%d", p.factor(f), i))
	}
	from, _ := p.fromWhere(inner, nil, true)
	return "SELECT " + strings.Join(list, ",\n       ") + from
}

// printSums prints the sums of products over rows that are printed, of which a unit has its cut share.
func (p *StatementPrinter) printSums(rows string, products []string) {
	var outputs, inner []string
	for i, product := range products {
		sum := "pg_catalog.sum(" + product + ")"
		if p.bounding.Kind != stability.Flat {
			inner = append(inner, fmt.Sprintf("%s AS a%d", sum, i))
			limit := p.number(big.NewInt(p.bounding.MaxRows), "bigint")
			sum = fmt.Sprintf("pg_catalog.sum(CASE WHEN u.n > %[1]s THEN pg_catalog.div(u.a%[2]d::numeric * %[1]s, u.n::numeric) ELSE u.a%[2]d END)",
				limit, i)
		}
		outputs = append(outputs, asTextSQL("COALESCE("+sum+", 0)"))
	}
	from := fenced(rows, "r")
	if p.Identity {
		p.write("WITH r AS MATERIALIZED (", rows, ")\n")
		from = "r"
	}
	p.clause("SELECT ", strings.Join(outputs, ",\n       "))
	if p.bounding.Kind != stability.Flat {
		from = "(SELECT pg_catalog.count(*) AS n, " + strings.Join(inner, ", ") + "\n      FROM " + from + "\n      GROUP BY r.unit) AS u"
	}
	p.clause("\nFROM ", from)
	p.finish(len(products))
}

// factorName is a factor by its place.
func factorName(place int) string {
	if place == Residual {
		return "r.e"
	}
	return fmt.Sprintf("r.k%d", place)
}

// residual prints that of a row: the logarithm of the odds in whole numbers, the probability of the target -1 by exp, which neither
// overflows nor underflows as its argument is clamped, and back to whole numbers, whatever rounding did.
func (p *StatementPrinter) residual(v Vector) (text string, coefficients []int) {
	target := len(v.Factors) - 1
	var terms []string
	for i, f := range v.Factors[:target] {
		terms = append(terms, fmt.Sprintf("q.k%d * ", i)+p.argument(&coefficients, f.largestCoefficient()))
	}
	one := new(big.Int).Lsh(big.NewInt(1), coefficientBits)
	float := func(n *big.Int) string { return p.number(n, "double precision") }
	logit := p.clamped("("+strings.Join(terms, " + ")+")", new(big.Int).Mul(one, big.NewInt(maxLogit)))
	missed := "pg_catalog.round(" + float(big.NewInt(ResidualSteps)) + " / (" + float(big.NewInt(1)) + " + pg_catalog.exp(" + logit +
		"::double precision / " + float(one) + ")))::bigint"
	half := p.number(big.NewInt(ResidualSteps/2), "bigint")
	return fmt.Sprintf("(%[1]s - q.k%[2]d * %[1]s - %[3]s)", half, target, missed), coefficients
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
