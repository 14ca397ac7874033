package explain

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/bind"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/stability"
)

// Where the numbers that a sensitivity is made of come from: the request, lines of the policy, or a unique key of the catalog.

// bound says what bounds one unit's part in a release, factor by factor, and who said so.
func bound(p *plan.Plan, r plan.Release) string {
	var parts []string
	for _, g := range []*algebra.Grid{r.Statistic.Grid, r.Statistic.GridY} {
		if g == nil || g == r.Statistic.Grid && len(parts) > 0 {
			continue
		}
		source := policyOf(g.X)
		if g.Narrowed {
			source += "; narrowed by conditions of the question"
		}
		if g.Derived {
			source += "; step derived from the bounds"
		}
		parts = append(parts, fmt.Sprintf("%s in [%s, %s] by %s, %s", bind.Origin(p.Query.Source, g.X), g.Label(g.Lo), g.Label(g.Hi),
			g.StepLabel(), source))
	}
	switch {
	case p.Query.Part == algebra.AllRows:
		return fmt.Sprintf("kept_cap %d, %d times what counts; %s", p.Bounding.MaxRows, algebra.KeptCap, unitBound(p))
	case p.Bounding.Kind == stability.Flat:
		parts = append(parts, flatBound(p)+", "+proof(p))
	case r.Statistic.Kind == algebra.CountUnits:
		parts = append(parts, fmt.Sprintf("each %s counts once", p.Query.Source.UnitName()))
	case r.Statistic.Kind == algebra.CountDistinct && p.Query.Source.MaxValues > 0:
		parts = append(parts, fmt.Sprintf("max_values %d, %s", p.Bounding.MaxValues,
			source(p, p.Options.MaxRows, func(t ownedTable) int { return t.Lines.MaxValues })))
	default:
		parts = append(parts, fmt.Sprintf("max_rows %d, %s", p.Bounding.MaxRows, source(p, p.Options.MaxRows, rowsLine)))
	}
	if p.Bounding.BoundsTotal(r.Statistic) && p.Bounding.MostRank == 0 {
		parts = append(parts, fmt.Sprintf("max_rows_total %d, %s", p.Bounding.MaxTotal,
			source(p, p.Options.MaxTotal, func(t ownedTable) int { return t.Lines.MaxTotal })))
	}
	if len(p.Query.Cells()) > 0 && p.Bounding.Kind != stability.Flat {
		parts = append(parts, groupsBound(p))
	}
	return strings.Join(append(parts, unitBound(p)), "; ")
}

// unitBound says whose part it is.
func unitBound(p *plan.Plan) string {
	return fmt.Sprintf("unit %s, %s", p.Query.Source.UnitName(), source(p, 0, func(t ownedTable) int { return t.Lines.Unit }))
}

// groupsBound says what bounds the number of groups that one unit is in.
func groupsBound(p *plan.Plan) string {
	switch p.Bounding.Kind {
	case stability.Flat:
		return flatBound(p) + ", " + proof(p)
	case stability.PerUnitAndKey:
		var lines []int
		for _, k := range p.Query.Keys {
			lines = append(lines, linesOf(k.X, func(f *algebra.Field) int { return f.DomainLine })...)
			lines = append(lines, boundLines(k.X)...)
		}
		return fmt.Sprintf("%d groups in all, domain of %s", p.Bounding.MaxGroups, policyLines(lines))
	default:
		return fmt.Sprintf("max_groups %d, %s", p.Bounding.MaxGroups, source(p, p.Options.MaxGroups,
			func(t ownedTable) int { return t.Lines.MaxGroups }))
	}
}

// flatBound is what a unique key proves of a flat bounding.
func flatBound(p *plan.Plan) string {
	if b := p.Bounding; b.Set != nil {
		return fmt.Sprintf("at most %d groups by (%s) of each %s with %d rows in each%s, %d rows in all, in a prepared table", b.SetGroups,
			strings.Join(b.Set.Keys, ", "), p.Query.Source.UnitName(), b.SetRows, fanText(p), b.MaxTotal)
	}
	if m := p.Bounding.MostRank; m > 0 {
		return fmt.Sprintf("at most %d rows of each %s in all, in a prepared table", m, p.Query.Source.UnitName()) + fanText(p)
	}
	if _, one := p.Query.Source.OnePerUnit(); !one && len(p.Query.Keys) > 0 {
		return fmt.Sprintf("one row per %s and group in each of %d groups", p.Query.Source.UnitName(), p.Bounding.MaxGroups)
	}
	return "one row per " + p.Query.Source.UnitName()
}

// fanText says in how many rows of a join each row of a copy is.
func fanText(p *plan.Plan) string {
	if fan := p.Query.Fan; fan.Cmp(big.NewInt(1)) > 0 {
		return fmt.Sprintf(", each joined with at most %s public rows", fan)
	}
	return ""
}

// proof names the unique keys that the statement relies on, and checks.
func proof(p *plan.Plan) string {
	if p.Bounding.MostRank > 0 {
		if p.Bounding.Set != nil {
			return "ranks of " + p.Query.CopyOf().Table.Name
		}
		return "catalog proof: unique key and check of " + p.Query.CopyOf().Table.Name
	}
	var keys []string
	for _, r := range p.Query.Shared().Relied {
		keys = append(keys, fmt.Sprintf("%s (%s)", r.Table.Name, strings.Join(r.Columns, ", ")))
	}
	if len(keys) == 0 {
		return "catalog proof" // of how the query is made: a statistic has one row for each unit
	}
	return "catalog proof: unique key of " + strings.Join(keys, ", ")
}

// source says who gave a bound: the request, if it asked for one, or the lines of the policy for the tables whose rows units own.
func source(p *plan.Plan, asked int64, line func(ownedTable) int) string {
	if asked > 0 {
		return "request"
	}
	var lines []int
	for _, t := range ownedTables(p.Query.Source.Node) {
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

func ownedTables(n algebra.FromItem) []ownedTable {
	switch n := n.(type) {
	case nil:
		return nil // a query without FROM
	case *algebra.Scan:
		if n.Table.Public {
			return nil
		}
		return []ownedTable{{Table: n.Table}}
	case *algebra.Joined:
		return append(ownedTables(n.Left), ownedTables(n.Right)...)
	case *algebra.RowCap:
		return ownedTables(n.Of)
	case *algebra.Derived:
		var all []ownedTable
		for _, q := range n.Parts {
			for _, t := range ownedTables(q.From) {
				t.grouped = t.grouped || len(q.Keys) > 0
				all = append(all, t)
			}
		}
		return all
	default:
		panic("sqlrewrite: relation without a case in ownedTables")
	}
}

// policyOf names the lines of the policy that bound an expression.
func policyOf(e algebra.Expr) string { return policyLines(boundLines(e)) }

func boundLines(e algebra.Expr) []int {
	return linesOf(e, func(f *algebra.Field) int {
		if f.Bounds == nil {
			return 0
		}
		return f.Bounds.Line
	})
}

// linesOf are the lines that the fields of an expression name.
func linesOf(e algebra.Expr, line func(*algebra.Field) int) (lines []int) {
	for _, x := range algebra.Parts(e) {
		if f := algebra.PlainField(x); f != nil {
			lines = append(lines, line(f))
		}
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
