package sqlprint

import (
	"fmt"
	"slices"
	"strings"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/lower"
)

// SettleCaps names the caps of a statement, and says which fields they hand on: all that anything else of it reads.
func SettleCaps(q *algebra.BoundQuery) {
	caps := slices.DeleteFunc(slices.Clone(q.Shared().Caps), func(c *algebra.RowCap) bool { return !c.Active() })
	if len(caps) == 0 {
		return
	}
	read := NewPreconditionWalk()
	read.ties = true
	read.Query(q)
	for i, c := range caps {
		c.Alias = fmt.Sprintf("w%d", i+1)
		for _, l := range algebra.LeavesIn(c.Of) {
			for _, f := range l.Fields {
				if read.Used[f] || f == c.By {
					c.Outputs = append(c.Outputs, f)
				}
			}
		}
	}
	// An outer cap hands on what an inner one does: the outer one comes first.
	slices.SortStableFunc(caps, func(a, b *algebra.RowCap) int { return len(algebra.LeavesIn(b.Of)) - len(algebra.LeavesIn(a.Of)) })
	for _, c := range caps {
		for _, f := range c.Outputs {
			f.Caps = append(f.Caps, c)
		}
	}
}

// rowCap prints a capped relation.
func (p *Printer) rowCap(c *algebra.RowCap) string {
	if !c.Active() || p.inline {
		return p.fromItem(c.Of)
	}
	public := algebra.RowsOf(c.Of) == algebra.PublicRows // which rows stay is nobody's secret
	hash := ""
	if !public {
		hash = p.seed()
	}
	p.SemiJoins.Fire(lower.CapRows)
	in := p.within(c)
	var outer, list, ties []string
	for i, f := range c.Outputs {
		list = append(list, fmt.Sprintf("%s AS c%d", in.field(f), i))
		outer = append(outer, fmt.Sprintf("v.c%d", i))
		hash = "pg_catalog.hashtextextended(COALESCE(" + asTextSQL(in.field(f)) + ", ''), " + hash + ")"
		ties = append(ties, in.identical(f))
	}
	there := func() string { return "(" + in.field(c.By) + " IS NOT NULL)" }
	from, conditions, _ := in.fromWhere(c.Of, c.Where, there, nothing, true)
	ties = append([]string{hash}[algebra.BoolIndex(public):], ties...)
	by := in.field(c.By)
	if !public {
		by = in.scattered(by, c.By.Type)
	}
	place := "pg_catalog.row_number() OVER (PARTITION BY " + by + " ORDER BY " + strings.Join(ties, ", ") + ") AS place"
	source := "SELECT " + strings.Join(append(list, place), ", ") + " FROM " + from + " WHERE " + conditions
	limit := p.arg(fmt.Sprint(c.Rows), "bigint")
	return "(SELECT " + strings.Join(outer, ", ") + " FROM (" + source + ") AS v WHERE v.place <= " + limit + ")" + as(&c.Leaf)
}

// identical prints a field as a sort key in which only identical values are equal.
func (p *Printer) identical(f *algebra.Field) string {
	name := p.field(f)
	switch {
	case f.Type == catalog.Char: // 'a' and 'a ' are equal, and are one text
		return name + "::" + textType + " COLLATE " + byteCollation + ", pg_catalog.octet_length(" + name + ")"
	case f.Type == catalog.Text || !algebra.OneText(algebra.Column{Of: f}): // -0 and 0, 1.0 and 1.00, 1 day and 24 hours
		return name + "::" + textType + " COLLATE " + byteCollation
	default:
		return name
	}
}
