package sqlprint

import (
	"fmt"
	"math/big"

	"noisegate/catalog"
	"noisegate/sqlrewrite/internal/algebra"
	"noisegate/sqlrewrite/internal/domain"
	"noisegate/sqlrewrite/internal/scalar"
)

// aggregate prints an algebra.AggregateCall.
func (p *Printer) aggregate(e algebra.AggregateCall) {
	args := e.Args
	switch e.Name {
	case "median":
		p.functionName("percentile_cont")
		p.write("(")
		p.constant(algebra.Constant{T: catalog.Float8, Text: "0.5"})
		p.write(") WITHIN GROUP (ORDER BY ")
		p.floatKey(args[0])
		p.write(")")
	case "percentile_cont":
		p.functionName(e.Name)
		p.write("(")
		p.expr(CastTo(args[0], catalog.Float8))
		p.write(") WITHIN GROUP (ORDER BY ")
		p.floatKey(e.Within[0].Expr)
		p.write([]string{" ASC", " DESC"}[algebra.BoolIndex(e.Within[0].Descending)], ")")
	default:
		p.functionName(e.Name)
		p.write("(")
		p.aggregateArguments(e)
		p.write(")")
		if len(e.Within) > 0 {
			p.write(" WITHIN GROUP (ORDER BY ")
			p.orderings(e.Within)
			p.write(")")
		}
	}
	if e.Filter != nil {
		p.write(" FILTER (WHERE ")
		p.expr(e.Filter)
		p.write(")")
	}
}

func (p *Printer) aggregateArguments(e algebra.AggregateCall) {
	if e.Star {
		p.write("*")
	}
	if e.Distinct {
		p.write("DISTINCT ")
	}
	for i, x := range e.Args {
		p.separator(i)
		switch {
		case e.Name == "percentile_disc":
			p.expr(CastTo(x, catalog.Float8))
		case domain.ExactAggregates[e.Name] == domain.PairForm || domain.ExactAggregates[e.Name] == domain.PairCountForm:
			p.expr(CastTo(x, catalog.Float8))
		case e.Name == "min" || e.Name == "max":
			p.sortKey(x)
		case e.Distinct:
			p.collated(x)
		default:
			p.expr(x)
		}
	}
	if len(e.Order) > 0 {
		p.write(" ORDER BY ")
		p.orderings(e.Order)
	}
}

// floatKey prints a number as what percentile_cont interpolates between.
func (p *Printer) floatKey(e algebra.Expr) { p.expr(CastTo(e, catalog.Float8)) }

func (p *Printer) functionName(name string) {
	if !p.inline {
		p.write("pg_catalog.")
	}
	p.write(name)
}

// CastTo is e as a value of type t.
func CastTo(e algebra.Expr, t catalog.Type) algebra.Expr {
	if e.Typ() == t {
		return e
	}
	return algebra.Cast{X: e, T: t}
}

// AddsFloats reports whether values of floats are added.
func AddsFloats(e algebra.UnitAggregate) bool {
	return e.X != nil && (e.Name == "sum" || e.Name == "avg") && scalar.IsFloat(e.X.Typ())
}

// unitAggregate prints an aggregate over the rows of one unit. Floats are clamped to their bounds and added as numerics: their sum as floats
// depends on the order in which PostgreSQL reads the rows, which another unit's may change.
func (p *Printer) unitAggregate(e algebra.UnitAggregate) {
	p.windowed(e, func() {
		if domain.IsRank(e) {
			p.rank(e)
		} else {
			p.ofUnit(e)
		}
	})
}

// ofUnit prints the aggregate itself.
func (p *Printer) ofUnit(e algebra.UnitAggregate) {
	floats := AddsFloats(e) && !p.inline
	if floats {
		p.write("pg_catalog.round(")
	}
	if !p.inline {
		p.write("pg_catalog.")
	}
	p.write(e.Name, "(")
	if e.Distinct {
		p.write("DISTINCT ")
	}
	switch {
	case e.X == nil:
		p.write("*")
	case floats:
		w, x := algebra.BoundsOf(e.X), p.Text(e.X)
		bound := func(v *big.Rat) string { return p.sub(func() { p.arg(scalar.DecimalText(v), "double precision") }) }
		p.write(fmt.Sprintf("(CASE WHEN %[1]s < %[2]s THEN %[2]s WHEN %[1]s > %[3]s THEN %[3]s ELSE %[1]s END)::numeric", x, bound(w.Lo), bound(w.Hi)))
	case e.Name == "min" || e.Name == "max":
		p.write(p.settled(e.X, p.sub(func() { p.collated(e.X) })))
	default:
		p.collated(e.X)
	}
	p.write(")")
	if e.Filter != nil {
		p.write(" FILTER (WHERE ")
		p.expr(e.Filter)
		p.write(")")
	}
	p.over(e.Over)
	if floats { // a smaller number than 10^-300 might be none for the cast
		p.write(", 300)::double precision")
	}
}
