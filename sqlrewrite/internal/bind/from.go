package sqlrewrite

import (
	"slices"

	"noisegate/internal/fault"
	"noisegate/sqlrewrite/syntax"
)

// from binds FROM of a release block: rows of privacy units.
func (b *binder) from() error {
	if len(b.query.From) == 0 {
		return fault.Unsupported(b.position(b.query.Pos), "a query without FROM", "name one of the dataset's tables in FROM")
	}
	r, err := b.fromList()
	if err != nil {
		return err
	}
	if err := b.reachOwner(r); err != nil {
		return err
	}
	first := b.query.From[0]
	if r.owner() == nil {
		return b.unsupported(first, "a query over the public table "+fault.Quote(r.table)+" alone", "")
	}
	if t := r.owner().Type; isFloat(t) || familyOf(t) == unknownFamily {
		return b.unsupported(first, "a table whose privacy unit is not told apart by whole numbers, text, dates or uuids", "")
	}
	return nil
}

// fromList binds the items of FROM, which WHERE may join; afterwards names resolve to their fields.
func (b *binder) fromList() (*relation, error) {
	where := conjuncts(b.query.Where)
	all, err := b.relation(b.query.From[0], where)
	if err != nil {
		return nil, err
	}
	for _, item := range b.query.From[1:] {
		b.bound.source = all // for LATERAL
		next, err := b.relation(item, where)
		if err != nil {
			return nil, err
		}
		if all, err = b.join(&syntax.Join{Pos: item.At(), Kind: syntax.CrossJoin}, all, next, where); err != nil {
			return nil, err
		}
	}
	b.bound.source = all
	all.labelFields(b.outer != nil)
	return all, nil
}

// relation binds an item of FROM. The conditions of where hold on every row that is used: those of WHERE, where no outer join comes between.
func (b *binder) relation(r syntax.Relation, where []syntax.Expr) (*relation, error) {
	switch r := r.(type) {
	case *syntax.Table:
		return b.table(r)
	case *syntax.Subquery:
		if r.Query == nil {
			return nil, b.unsupported(r, "this item of FROM", "")
		}
		in := subqueryIn{query: r.Query, at: r.Pos, alias: r.Alias, columns: r.Columns, ctes: b.ctes}
		if r.Lateral {
			in.beside = b.bound.source
		}
		return b.subquery(in)
	case *syntax.Join:
		if s, ok := r.Right.(*syntax.Subquery); ok && s.Lateral && (r.Kind == syntax.RightJoin || r.Kind == syntax.FullJoin) {
			return nil, b.unsupported(s, "LATERAL on the side of a join that can stand alone", "write CROSS JOIN LATERAL or LEFT JOIN LATERAL ... ON true")
		}
		leftWhere, rightWhere := where, where
		if r.Kind == syntax.RightJoin || r.Kind == syntax.FullJoin {
			leftWhere = nil
		}
		if r.Kind == syntax.LeftJoin || r.Kind == syntax.FullJoin {
			rightWhere = nil
		}
		if r.Natural {
			rightWhere = nil // which columns are the left side's is not known yet
		}
		rightWhere = notNaming(r.Using, rightWhere) // there the name is the left side's column, which may equal the right one's only roughly
		left, err := b.relation(r.Left, leftWhere)
		if err != nil {
			return nil, err
		}
		if left.lateral { // what stands beside it would be beside each row of a third relation too
			return nil, b.unsupported(r.Left, "LATERAL as the left side of a join", "write it as the right side: CROSS JOIN LATERAL (SELECT expressions)")
		}
		b.bound.source = left // for LATERAL
		right, err := b.relation(r.Right, rightWhere)
		if err != nil {
			return nil, err
		}
		return b.join(r, left, right, where)
	default:
		return nil, b.unsupported(r, "this item of FROM", "")
	}
}

// notNaming leaves out the conditions that are comparisons of a column with one of these names and no qualifier.
func notNaming(columns []string, conditions []syntax.Expr) []syntax.Expr {
	named := func(n syntax.Expr) bool {
		c, ok := n.(*syntax.Column)
		return ok && c.Qualifier == "" && slices.Contains(columns, c.Name)
	}
	return slices.DeleteFunc(slices.Clone(conditions), func(n syntax.Expr) bool {
		c, ok := n.(*syntax.Binary)
		return ok && (named(c.L) || named(c.R))
	})
}

// table binds a name in FROM: of a query of WITH, else of a table of the snapshot.
func (b *binder) table(n *syntax.Table) (*relation, error) {
	alias := n.Alias
	if alias == "" {
		alias = n.Name
	}
	if e := b.ctes.find(n); e != nil {
		return b.subquery(subqueryIn{query: e.cte.Query, at: n.Pos, alias: alias, columns: e.cte.Columns, ctes: e.outer})
	}
	t, ok := b.snapshot.Table(n.Schema, n.Name)
	switch {
	case ok:
		return b.scanOf(t, alias)
	case n.Schema != "":
		return nil, fault.UnknownTable(b.at(n), n.Schema+"."+n.Name, nil)
	default:
		return nil, fault.UnknownTable(b.at(n), n.Name, b.tableNames())
	}
}

func (b *binder) tableNames() []string {
	var names []string
	for _, c := range b.ctes.list() {
		names = append(names, c.Name)
	}
	for _, t := range b.snapshot.Tables {
		names = append(names, t.Name)
	}
	return names
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

// labelFields gives the fields whose names are ambiguous, or all of them, a text that is not.
func (r *relation) labelFields(all bool) {
	count := map[string]int{}
	for _, p := range r.parts {
		for _, f := range p.fields {
			count[f.Name]++
		}
	}
	for _, p := range r.parts {
		for _, f := range p.fields {
			if all || count[f.Name] > 1 {
				f.label = p.alias + "." + f.Name
			}
		}
	}
}

// column finds a field that analysts may name, here or in the queries around. Hidden columns and columns that do not exist give the same
// refusal. The unit's id is found too: callers decide where it may stand.
func (b *binder) column(n *syntax.Column) (*field, error) {
	for at := b; at != nil; at = at.outer {
		f, found, err := b.columnOf(at.bound.source, n)
		if found || err != nil {
			return f, err
		}
	}
	return nil, b.unknownColumn(n)
}

// columnOf finds a field in one relation.
func (b *binder) columnOf(r *relation, n *syntax.Column) (f *field, found bool, err error) {
	if r == nil {
		return nil, false, nil
	}
	if n.Qualifier != "" {
		for _, p := range r.parts {
			if p.alias == n.Qualifier {
				if f, visible := p.field(n.Name); visible {
					return f, true, nil
				}
				return nil, false, b.unknownColumn(n)
			}
		}
		return nil, false, nil
	}
	var relations []string
	for _, candidate := range r.fields {
		if candidate.Name != n.Name || !candidate.Exposed && !candidate.unit {
			continue
		}
		f, found = candidate, true
		relations = append(relations, r.partOf(f))
	}
	if len(relations) > 1 {
		return nil, false, fault.AmbiguousColumn(b.at(n), n.Name, relations)
	}
	return f, found, nil
}

// partOf is the name of the part that a field belongs to.
func (r *relation) partOf(f *field) string {
	for _, p := range r.parts {
		if slices.Contains(p.fields, f) {
			return p.alias
		}
	}
	return ""
}

func (b *binder) unknownColumn(n *syntax.Column) error {
	var known, aliases []string
	qualified := false
	for at := b; at != nil; at = at.outer {
		if at.bound.source == nil {
			continue
		}
		for _, p := range at.bound.source.parts {
			aliases = append(aliases, p.alias)
			qualified = qualified || p.alias == n.Qualifier
			if n.Qualifier != "" && p.alias != n.Qualifier {
				continue
			}
			for _, f := range p.fields {
				if f.Exposed {
					known = append(known, f.Name)
				}
			}
		}
	}
	switch {
	case n.Qualifier != "" && !qualified:
		return fault.UnknownTable(b.at(n), n.Qualifier, aliases)
	case slices.Contains(systemColumns, n.Name):
		return b.unsupported(n, "system column "+fault.Quote(n.Name), "")
	default:
		return fault.UnknownColumn(b.at(n), n.Name, known)
	}
}

// visible finds a column of the relation that exists for analysts. The unit's id does, even when it is not exposed.
func (b *binder) visible(name string) (*field, bool) {
	for _, f := range b.bound.source.fields {
		if f.Name == name && (f.Exposed || f.unit) {
			return f, true
		}
	}
	return nil, false
}
