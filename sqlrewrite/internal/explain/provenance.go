package sqlrewrite

import (
	"fmt"
	"slices"
	"strings"

	"noisegate/catalog"
)

// Where the numbers that a sensitivity is made of come from: the request, lines of the policy, or a unique key of the catalog.

// bound says what bounds one unit's part in a release, factor by factor, and who said so.
func (p *pricedPlan) bound(r release) string {
	var parts []string
	for _, g := range []*grid{r.measure.grid, r.measure.gridY} {
		if g == nil || g == r.measure.grid && len(parts) > 0 {
			continue
		}
		source := policyOf(g.x)
		if g.derived {
			source += "; step derived from the bounds"
		}
		parts = append(parts, fmt.Sprintf("%s in [%s, %s] by %s, %s", p.query.source.origin(g.x), g.label(g.lo), g.label(g.hi), g.stepLabel(), source))
	}
	switch {
	case p.shape.kind == flat:
		parts = append(parts, p.flatBound()+", "+p.proof())
	case r.measure.kind == countUnits:
		parts = append(parts, fmt.Sprintf("each %s counts once", p.query.source.unitName()))
	case r.measure.kind == countDistinct && p.query.source.maxValues > 0:
		parts = append(parts, fmt.Sprintf("max_values %d, %s", p.shape.maxValues, p.source(p.options.MaxRows, func(t ownedTable) int { return t.Lines.MaxValues })))
	default:
		parts = append(parts, fmt.Sprintf("max_rows %d, %s", p.shape.maxRows, p.source(p.options.MaxRows, rowsLine)))
	}
	if len(p.query.keys) > 0 && p.shape.kind != flat {
		parts = append(parts, p.groupsBound())
	}
	return strings.Join(append(parts, p.unitBound()), "; ")
}

// unitBound says whose part it is.
func (p *pricedPlan) unitBound() string {
	return fmt.Sprintf("unit %s, %s", p.query.source.unitName(), p.source(0, func(t ownedTable) int { return t.Lines.Unit }))
}

// groupsBound says what bounds the number of groups that one unit is in.
func (p *pricedPlan) groupsBound() string {
	switch p.shape.kind {
	case flat:
		return p.flatBound() + ", " + p.proof()
	case perUnitAndKey:
		var lines []int
		for _, k := range p.query.keys {
			lines = append(lines, linesOf(k.x, func(f *field) int { return f.DomainLine })...)
			lines = append(lines, boundLines(k.x)...)
		}
		return fmt.Sprintf("%d groups in all, domain of %s", p.shape.maxGroups, policyLines(lines))
	default:
		return fmt.Sprintf("max_groups %d, %s", p.shape.maxGroups, p.source(p.options.MaxGroups, func(t ownedTable) int { return t.Lines.MaxGroups }))
	}
}

// flatBound is what a unique key proves of a flat shape.
func (p *pricedPlan) flatBound() string {
	if _, one := p.query.source.onePerUnit(); !one && len(p.query.keys) > 0 {
		return fmt.Sprintf("one row per %s and group in each of %d groups", p.query.source.unitName(), p.shape.maxGroups)
	}
	return "one row per " + p.query.source.unitName()
}

// proof names the unique keys that the statement relies on, and checks.
func (p *pricedPlan) proof() string {
	var keys []string
	for _, r := range p.query.shared().relied {
		keys = append(keys, fmt.Sprintf("%s (%s)", r.table.Name, strings.Join(r.columns, ", ")))
	}
	if len(keys) == 0 {
		return "catalog proof" // of how the query is made: a statistic has one row for each unit
	}
	return "catalog proof: unique key of " + strings.Join(keys, ", ")
}

// source says who gave a bound: the request, if it asked for one, or the lines of the policy for the tables whose rows units own.
func (p *pricedPlan) source(asked int64, line func(ownedTable) int) string {
	if asked > 0 {
		return "request"
	}
	var lines []int
	for _, t := range ownedTables(p.query.source.node) {
		lines = append(lines, line(t))
	}
	return policyLines(lines)
}

// ownedTable is a table with a privacy unit that a relation is made of.
type ownedTable struct {
	*catalog.Table
	grouped bool // by unit and something else: its groups are the rows
}

// rowsLine is where a table's bound on rows comes from.
func rowsLine(t ownedTable) int {
	if t.grouped && t.MaxGroups > 0 {
		return t.Lines.MaxGroups
	}
	return t.Lines.MaxRows
}

func ownedTables(n fromItem) []ownedTable {
	switch n := n.(type) {
	case nil:
		return nil // a query without FROM
	case *scan:
		if n.table.Public {
			return nil
		}
		return []ownedTable{{Table: n.table}}
	case *joined:
		return append(ownedTables(n.left), ownedTables(n.right)...)
	case *rowCap:
		return ownedTables(n.of)
	case *derived:
		var all []ownedTable
		for _, q := range n.parts {
			for _, t := range ownedTables(q.from) {
				t.grouped = t.grouped || len(q.keys) > 0
				all = append(all, t)
			}
		}
		return all
	default:
		panic("sqlrewrite: relation without a case in ownedTables")
	}
}

// policyOf names the lines of the policy that bound an expression.
func policyOf(e expr) string { return policyLines(boundLines(e)) }

func boundLines(e expr) []int {
	return linesOf(e, func(f *field) int {
		if f.Bounds == nil {
			return 0
		}
		return f.Bounds.Line
	})
}

// linesOf are the lines that the fields of an expression name.
func linesOf(e expr, line func(*field) int) []int {
	if f := plainField(e); f != nil {
		return []int{line(f)}
	}
	var lines []int
	for _, child := range children(e) {
		lines = append(lines, linesOf(child, line)...)
	}
	return lines
}

// policyLines names lines of the policy, each once; 0 is none.
func policyLines(lines []int) string {
	lines = slices.DeleteFunc(slices.Clone(lines), func(n int) bool { return n == 0 })
	slices.Sort(lines)
	lines = slices.Compact(lines)
	switch len(lines) {
	case 0:
		return "policy"
	case 1:
		return fmt.Sprintf("policy line %d", lines[0])
	default:
		return "policy lines " + strings.Trim(strings.Join(strings.Fields(fmt.Sprint(lines)), ", "), "[]")
	}
}
