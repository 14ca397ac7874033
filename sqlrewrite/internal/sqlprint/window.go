package sqlprint

import (
	"strconv"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
)

// over prints the window of an aggregate. The unit's id always comes first, whatever field named it.
func (p *Printer) over(w *algebra.Window) {
	if w == nil {
		return
	}
	p.write(" OVER (")
	partition := w.Partition
	if w.Owner != nil {
		partition = append([]algebra.Expr{algebra.Column{Of: w.Owner}}, partition...)
	}
	space := ""
	if len(partition) > 0 {
		p.write("PARTITION BY ")
		for i, x := range partition {
			p.separator(i)
			if i == 0 && w.Owner != nil {
				p.write(p.scattered(p.Text(x), w.Owner.Type))
			} else {
				p.collated(x)
			}
		}
		space = " "
	}
	if len(w.Order) > 0 || len(w.Ties) > 0 && !p.inline {
		p.write(space, "ORDER BY ")
		p.orderings(w.Order)
		p.ties(w)
		space = " "
	}
	if w.Frame != nil {
		p.write(space)
		p.frame(w.Frame)
	}
	p.write(")")
}

// scatter is an odd number without a pattern: the fraction of the root of 2.
const scatter = 0x6a09e667f3bcc909

// scattered prints a unit's id as a key to sort by. A sort first checks whether its rows are in order already, so that one row that is not
// decides how long it takes (docs/sql/work.md). No table lies in the order of scattered ids.
func (p *Printer) scattered(id string, t catalog.Type) string {
	if !p.adds() {
		return id
	}
	number := p.arg(strconv.FormatInt(scatter, 10), "bigint")
	first := p.hashOf(id, t, number)
	if t.IsInteger() {
		first = "pg_catalog.int8xor(" + id + "::bigint, " + number + ")"
	}
	if t.IsInteger() && !p.Distributed {
		return first
	}
	return first + ", " + id // each of several servers sorts its own rows, where it sees the id
}

// ties prints what tells rows apart that tie: rows are equal in it only if no expression tells them apart.
func (p *Printer) ties(w *algebra.Window) {
	if p.inline {
		return
	}
	for i, f := range w.Ties {
		p.separator(len(w.Order) + i)
		p.write(p.identical(f))
	}
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
		p.write([]string{" ASC", " DESC"}[algebra.BoolIndex(o.Descending)], []string{" NULLS LAST",
			" NULLS FIRST"}[algebra.BoolIndex(o.NullsFirst)])
	}
}
