package sqlrewrite

import (
	"fmt"
	"slices"

	"noisegate/catalog"
)

// relation is what FROM, or a part of it, means: rows with fields, each row of at most one privacy unit. For the rows of a unit
// holds that they are a function of that unit's own rows and of public tables: taking a unit out takes its rows out, and moves no other's.
type relation struct {
	node   fromItem
	fields []*field // what names resolve to, in the order of *
	// owners are fields that hold the id of the privacy unit, all of them the same one; empty for a public relation. Rows where the
	// first is NULL belong to nobody and are left out of every release.
	owners []*field
	table  string   // the table whose rows are counted, for people
	keys   []rowKey // sets of fields that no two rows share, as far as the catalog proves
	// maxRows and maxGroups are the policy's: what one unit may contribute to one group, and to how many groups; 0: it does not say.
	maxRows, maxGroups int64
}

// rowKey is a set of fields that no two rows of a relation share (rows where one is NULL apart), and what that rests on.
type rowKey struct {
	fields []*field
	relies []reliance
}

// reliance is a unique key of a table that must still be there when the statement runs.
type reliance struct {
	scan    *scan
	columns []string
}

// fromItem is how a relation prints: [*scan].
type fromItem interface{ fromItem() }

// scan is a table of the protected database.
type scan struct {
	table  *catalog.Table
	alias  string // in the statement; "" while no other relation is near
	fields []*field
	relied [][]string // sets of columns whose uniqueness was used in a proof
}

func (*scan) fromItem() {}

// owner is the field by which the rows of units are told apart; nil for a public relation.
func (r *relation) owner() *field {
	if len(r.owners) == 0 {
		return nil
	}
	return r.owners[0]
}

// unitName names the privacy unit for people.
func (r *relation) unitName() string {
	if o := r.owner(); o != nil {
		return o.Name
	}
	return "unit"
}

// onePerUnit finds the proof that no unit has two rows.
func (r *relation) onePerUnit() (rowKey, bool) {
	for _, k := range r.keys {
		if !slices.ContainsFunc(k.fields, func(f *field) bool { return !slices.Contains(r.owners, f) }) {
			return k, true
		}
	}
	return rowKey{}, false
}

// rely makes a proof's keys part of what the statement requires of its tables.
func (k rowKey) rely() {
	for _, r := range k.relies {
		if !slices.ContainsFunc(r.scan.relied, func(known []string) bool { return slices.Equal(known, r.columns) }) {
			r.scan.relied = append(r.scan.relied, r.columns)
		}
	}
}

// scanOf is the relation of a table.
func scanOf(t *catalog.Table) *relation {
	s := &scan{table: t}
	r := &relation{node: s, table: t.Name, maxRows: t.MaxRows, maxGroups: t.MaxGroups}
	for _, c := range t.Columns {
		f := &field{Column: c, table: t.Name}
		switch {
		case t.Unit.Kind == catalog.RowUnit && c.Name == t.Unit.Column:
			f.unit, f.present = true, true // its key is pinned, and that it is not null
			r.keys = append(r.keys, rowKey{fields: []*field{f}, relies: []reliance{{s, []string{c.Name}}}})
		case t.Unit.Kind == catalog.ColumnUnit && c.Name == t.Unit.Column:
			f.unit = true
		}
		if f.unit {
			r.owners = []*field{f}
		}
		s.fields = append(s.fields, f)
	}
	r.fields = s.fields
	return r
}

// from prints the relations of the block.
func (p *statementPrinter) from() string { return p.fromItem(p.q.source.node) }

func (p *printer) fromItem(n fromItem) string {
	switch n := n.(type) {
	case *scan:
		name := quoteIdent(n.table.Schema) + "." + quoteIdent(n.table.Name)
		if n.alias != "" {
			name += " AS " + quoteIdent(n.alias)
		}
		return name
	default:
		panic("sqlrewrite: relation without a printed form")
	}
}

// lines are a relation's part of the plan's text.
func (r *relation) lines() []string { return itemLines(r.node) }

func itemLines(n fromItem) []string {
	switch n := n.(type) {
	case *scan:
		return []string{"scan " + n.table.Schema + "." + n.table.Name}
	default:
		panic("sqlrewrite: relation without a text")
	}
}

// scans are the tables that a relation reads.
func scans(n fromItem) []*scan {
	switch n := n.(type) {
	case *scan:
		return []*scan{n}
	default:
		panic("sqlrewrite: relation without tables")
	}
}

// origin names an expression of a row with the table that it comes from, as far as there is one.
func (r *relation) origin(e expr) string {
	table := r.table
	if f := plainField(e); f != nil && f.table != "" {
		table = f.table
	}
	return fmt.Sprintf("%s.%s", table, describe(e))
}

// indented shifts lines one level to the right.
func indented(lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = "  " + l
	}
	return out
}
