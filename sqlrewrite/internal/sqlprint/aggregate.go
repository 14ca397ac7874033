package sqlprint

import (
	"fmt"
	"math/big"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/domain"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/syntax"
)

// aggregate prints an aggregate, with its window. One below the noise has no value where no key identifies its row.
//
// There floats are clamped to their bounds and added as numerics: their sum as floats depends on the order in which PostgreSQL reads the
// rows, which another unit's may change.
func (p *Printer) aggregate(e algebra.Aggregate) {
	var present []algebra.Expr
	if e.Over != nil && !p.inline {
		for _, f := range e.Over.Key {
			present = append(present, algebra.Is{X: algebra.Column{Of: f}, What: syntax.IsNull, Not: true})
		}
	}
	if len(present) > 0 {
		p.write("CASE WHEN ")
		p.expr(algebra.All(present))
		p.write(" THEN ")
		defer p.write(" END")
	}
	if e.AddsFloats() && !p.inline {
		p.write("pg_catalog.round(")
		defer p.write(", 300)::double precision") // a smaller number than 10^-300 might be none for the cast
	}
	p.aggregateCall(e)
	if e.Filter != nil {
		p.write(" FILTER (WHERE ")
		p.expr(e.Filter)
		p.write(")")
	}
	p.over(e.Over)
}

func (p *Printer) aggregateCall(e algebra.Aggregate) {
	switch e.Name {
	case syntax.Grouping:
		p.write("GROUPING(")
		for i, x := range e.Args {
			p.separator(i)
			if f := algebra.PlainField(x); f != nil && !p.inline {
				p.write(p.field(f)) // as GROUP BY has it
			} else {
				p.expr(x)
			}
		}
		p.write(")")
	case "median":
		p.functionName("percentile_cont")
		p.write("(")
		p.constant(algebra.Constant{T: catalog.Float8, Text: "0.5"})
		p.write(") WITHIN GROUP (ORDER BY ")
		p.floatKey(e.Args[0])
		p.write(")")
	case "percentile_cont":
		p.functionName(e.Name)
		p.write("(")
		p.expr(CastTo(e.Args[0], catalog.Float8))
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
}

func (p *Printer) aggregateArguments(e algebra.Aggregate) {
	if e.Star {
		p.write("*")
	}
	if e.Distinct {
		p.write("DISTINCT ")
	}
	for i, x := range e.Args {
		p.separator(i)
		switch f := domain.BuiltinOf(e.Name); {
		case e.Safe && f.IsRank():
			p.write(p.asIs(x))
		case e.AddsFloats() && !p.inline:
			p.clampedNumeric(x)
		case e.Safe && f.Form == domain.ExtremeForm:
			in := p.apart()
			in.collated(x)
			p.write(p.settled(x, in.B.String()))
		case e.Safe:
			p.collated(x)
		case e.Name == "percentile_disc":
			p.expr(CastTo(x, catalog.Float8))
		case f.Form.Pairs():
			p.expr(CastTo(x, catalog.Float8))
		case f.Form == domain.ExtremeForm:
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

// clampedNumeric prints a float within its bounds, as a numeric.
func (p *Printer) clampedNumeric(e algebra.Expr) {
	w, x := algebra.BoundsOf(e), p.Text(e)
	bound := func(v *big.Rat) string { return p.arg(scalar.DecimalText(v), "double precision") }
	p.write(fmt.Sprintf("(CASE WHEN %[1]s < %[2]s THEN %[2]s WHEN %[1]s > %[3]s THEN %[3]s ELSE %[1]s END)::numeric",
		x, bound(w.Lo), bound(w.Hi)))
}
