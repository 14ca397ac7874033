package sqlrewrite

import (
	"fmt"
	"slices"

	"noisegate/catalog"
	"noisegate/internal/fault"
	"noisegate/sqlrewrite/syntax"
)

// from finds the table of the query.
func (b *binder) from() error {
	if len(b.query.From) == 0 {
		return fault.Unsupported(b.position(b.query.Pos), "a query without FROM", "name one of the dataset's tables in FROM")
	}
	var tables []namedTable
	for _, r := range b.query.From {
		if err := b.relation(r, &tables); err != nil {
			return err
		}
	}
	if len(tables) > 1 {
		return b.refuseJoin(tables)
	}
	t := tables[0]
	switch t.table.Unit.Kind {
	case catalog.RowUnit:
	case catalog.ColumnUnit:
		if c, ok := t.table.Column(t.table.Unit.Column); !ok || isFloat(c.Type) || familyOf(c.Type) == unknownFamily {
			return b.unsupported(t.node, "a table whose privacy unit is not told apart by whole numbers, text, dates or uuids", "")
		}
	case catalog.NoUnit:
		return b.unsupported(t.node, "a query over the public table "+fault.Quote(t.table.Name)+" alone", "")
	case catalog.PathUnit:
		return b.unsupported(t.node, fmt.Sprintf("table %s, whose rows reach their privacy unit through table %s,",
			fault.Quote(t.table.Name), fault.Quote(t.table.Unit.ToTable)), "")
	default:
		return b.unsupported(t.node, "a table with this kind of privacy unit", "")
	}
	b.bound.source, b.bound.alias = scanOf(t.table), t.alias
	return nil
}

// namedTable is a table under the name that the query gives it.
type namedTable struct {
	node  *syntax.Table
	table *catalog.Table
	alias string
}

func (b *binder) relation(r syntax.Relation, tables *[]namedTable) error {
	switch r := r.(type) {
	case *syntax.Table:
		t, ok := b.snapshot.Table(r.Schema, r.Name)
		if !ok {
			if r.Schema != "" {
				return fault.UnknownTable(b.at(r), r.Schema+"."+r.Name, nil)
			}
			return fault.UnknownTable(b.at(r), r.Name, b.tableNames())
		}
		alias := r.Alias
		if alias == "" {
			alias = r.Name
		}
		*tables = append(*tables, namedTable{node: r, table: t, alias: alias})
		return nil
	case *syntax.Join:
		if err := b.relation(r.Left, tables); err != nil {
			return err
		}
		return b.relation(r.Right, tables)
	default:
		return b.unsupported(r, "this item of FROM", "")
	}
}

func (b *binder) tableNames() []string {
	var names []string
	for _, t := range b.snapshot.Tables {
		names = append(names, t.Name)
	}
	return names
}

// refuseJoin tells joins across privacy units, which never have an answer, from joins that are not written yet.
func (b *binder) refuseJoin(tables []namedTable) error {
	var owned []namedTable
	for _, t := range tables {
		if !t.table.Public {
			owned = append(owned, t)
		}
	}
	second := tables[1]
	if len(owned) >= 2 && !b.joinsUnits(owned[0], owned[1]) {
		return fault.UnitJoin(b.at(owned[1].node), fmt.Sprintf("%s.%s = %s.%s",
			owned[0].alias, owned[0].table.Unit.Column, owned[1].alias, owned[1].table.Unit.Column))
	}
	return b.unsupported(second.node, "a join", "ask for one table at a time")
}

// joinsUnits reports whether some join of the query equates the privacy units of l and r.
func (b *binder) joinsUnits(l, r namedTable) bool {
	isUnit := func(e syntax.Expr, t namedTable) bool {
		c, ok := e.(*syntax.Column)
		return ok && c.Qualifier == t.alias && c.Name == t.table.Unit.Column
	}
	equates := func(e syntax.Expr) bool {
		c, ok := e.(*syntax.Binary)
		return ok && c.Op == syntax.Eq && (isUnit(c.L, l) && isUnit(c.R, r) || isUnit(c.L, r) && isUnit(c.R, l))
	}
	sameName := l.table.Unit.Column == r.table.Unit.Column
	found := slices.ContainsFunc(conjuncts(b.query.Where), equates)
	var walk func(syntax.Relation)
	walk = func(rel syntax.Relation) {
		if j, ok := rel.(*syntax.Join); ok {
			found = found || slices.ContainsFunc(conjuncts(j.On), equates) ||
				sameName && slices.Contains(j.Using, l.table.Unit.Column)
			walk(j.Left)
			walk(j.Right)
		}
	}
	for _, rel := range b.query.From {
		walk(rel)
	}
	return found
}

// conjuncts splits a condition at its outermost ANDs.
func conjuncts(e syntax.Expr) []syntax.Expr {
	if e == nil {
		return nil
	}
	if and, ok := e.(*syntax.Binary); ok && and.Op == syntax.And {
		return append(conjuncts(and.L), conjuncts(and.R)...)
	}
	return []syntax.Expr{e}
}

// column finds a column of the table that analysts may name. Hidden columns and columns that do not exist give the same
// refusal. The unit's id is found too: callers decide where it may stand.
func (b *binder) column(n *syntax.Column) (*field, error) {
	if n.Qualifier != "" && n.Qualifier != b.bound.alias {
		return nil, fault.UnknownTable(b.at(n), n.Qualifier, []string{b.bound.alias})
	}
	if c, ok := b.visible(n.Name); ok {
		return c, nil
	}
	switch n.Name {
	case "ctid", "xmin", "xmax", "cmin", "cmax", "tableoid":
		return nil, b.unsupported(n, "system column "+fault.Quote(n.Name), "")
	}
	var known []string
	for _, f := range b.bound.source.fields {
		if f.Exposed {
			known = append(known, f.Name)
		}
	}
	return nil, fault.UnknownColumn(b.at(n), n.Name, known)
}

// visible finds a column that exists for analysts. The unit's id does, even when it is not exposed.
func (b *binder) visible(name string) (*field, bool) {
	for _, f := range b.bound.source.fields {
		if f.Name == name {
			return f, f.Exposed || f.unit
		}
	}
	return nil, false
}
