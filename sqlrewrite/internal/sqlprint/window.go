package sqlprint

import (
	"slices"

	"noisegate/catalog"
	"noisegate/sqlrewrite/internal/algebra"
	"noisegate/sqlrewrite/syntax"
)

func SameOrder(w *algebra.UnitWindow, o *algebra.UnitWindow) bool {
	same := func(a, b algebra.Ordering) bool {
		return a.Descending == b.Descending && a.NullsFirst == b.NullsFirst && structureOf(a.Expr) == structureOf(b.Expr)
	}
	return slices.EqualFunc(w.Partition, o.Partition, func(a, b algebra.Expr) bool { return structureOf(a) == structureOf(b) }) &&
		slices.EqualFunc(w.Order, o.Order, same)
}

// windowed prints an aggregate of a window, without a value where no key tells the row apart.
func (p *Printer) windowed(e algebra.UnitAggregate, call func()) {
	var present []algebra.Expr
	if e.Over != nil {
		for _, f := range e.Over.Key {
			present = append(present, algebra.Is{X: algebra.Column{Of: f}, What: syntax.IsNull, Not: true})
		}
	}
	if len(present) == 0 || p.inline {
		call()
		return
	}
	p.write("CASE WHEN ")
	p.expr(algebra.All(present))
	p.write(" THEN ")
	call()
	p.write(" END")
}

// over prints the window of an aggregate. The unit's id always comes first, whatever field named it.
func (p *Printer) over(w *algebra.UnitWindow) {
	if w == nil {
		return
	}
	p.write(" OVER (PARTITION BY ", p.Text(algebra.Column{Of: w.Owner}))
	for _, e := range w.Partition {
		p.write(", ")
		p.collated(e)
	}
	if len(w.Order) > 0 {
		p.write(" ORDER BY ")
		p.orderings(w.Order)
	}
	if !p.inline {
		p.ties(w)
	}
	if w.Frame != nil {
		p.write(" ")
		p.frame(w.Frame)
	}
	p.write(")")
}

// ties prints what tells rows apart that tie: rows are equal in it only if no expression tells them apart.
func (p *Printer) ties(w *algebra.UnitWindow) {
	for i, f := range w.Ties {
		switch {
		case i > 0 || len(w.Order) > 0:
			p.write(", ")
		default:
			p.write(" ORDER BY ")
		}
		p.write(p.identical(f))
	}
}

// rank prints a function that exists only with OVER.
func (p *Printer) rank(e algebra.UnitAggregate) {
	if !p.inline {
		p.write("pg_catalog.")
	}
	p.write(e.Name, "(")
	if e.X != nil {
		p.write(p.asIs(e.X))
	}
	for i, arg := range e.Args {
		p.separator(algebra.BoolIndex(e.X != nil) + i)
		p.expr(arg)
	}
	p.write(")")
	p.over(e.Over)
}

// window prints a algebra.WindowCall.
func (p *Printer) window(e algebra.WindowCall) {
	p.aggregate(e.Function)
	p.write(" OVER (")
	space := ""
	if len(e.Partition) > 0 {
		p.write("PARTITION BY ")
		for i, x := range e.Partition {
			p.separator(i)
			p.collated(x)
		}
		space = " "
	}
	if len(e.Order) > 0 {
		p.write(space, "ORDER BY ")
		p.orderings(e.Order)
		space = " "
	}
	if e.Frame != nil {
		p.write(space)
		p.frame(e.Frame)
	}
	p.write(")")
}

func (p *Printer) frame(f *algebra.Frame) {
	p.write(string(f.Mode), " BETWEEN ")
	p.frameBound(f.Start)
	p.write(" AND ")
	p.frameBound(f.End)
}

func (p *Printer) frameBound(b algebra.FrameBound) {
	if b.Offset != nil {
		p.constant(*b.Offset)
		p.write(" ")
	}
	p.write(string(b.Kind))
}

func (p *Printer) separator(i int) {
	if i > 0 {
		p.write(", ")
	}
}

// sortKey prints what rows are ordered by: text under one collation, and enums by the order of their labels.
func (p *Printer) sortKey(e algebra.Expr) {
	if f := algebra.PlainField(e); f != nil && f.Type == catalog.Enum && !p.inline {
		p.write(p.field(f))
		return
	}
	p.collated(e)
}

// orderings prints the items of ORDER BY.
func (p *Printer) orderings(items []algebra.Ordering) {
	for i, o := range items {
		p.separator(i)
		p.sortKey(o.Expr)
		p.write([]string{" ASC", " DESC"}[algebra.BoolIndex(o.Descending)], []string{" NULLS LAST", " NULLS FIRST"}[algebra.BoolIndex(o.NullsFirst)])
	}
}
