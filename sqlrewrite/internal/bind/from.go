package bind

import (
	"fmt"
	"slices"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/domain"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/sqlprint"
	"noisegate.example/sqlrewrite/internal/stability"
	"noisegate.example/sqlrewrite/internal/steps"
	"noisegate.example/sqlrewrite/syntax"
)

// identityOf finds the field that an expression names, if it is the identity of a unit and that may stand here: not the unit's own id,
// which is known wherever there is a row.
func identityOf(b *algebra.Binder, n syntax.Expr) (*algebra.Field, bool) {
	c, ok := n.(*syntax.Column)
	if !ok {
		return nil, false
	}
	f, err := column(b, c)
	return f, err == nil && f.Identity() && !f.Unit
}

// inScope is a field that tells a unit, where a scope knows it.
func inScope(s domain.Scope, f *algebra.Field) (algebra.Expr, bool) {
	switch s := s.(type) {
	case rowScope:
		return algebra.Column{Of: f}, true
	case *windowRows:
		return algebra.Column{Of: s.field(f)}, true
	case *grouping:
		key := s.keys[f]
		return algebra.Column{Of: key}, key != nil
	default:
		return nil, false
	}
}

// presence says when an expression is not NULL whose value is an id, of a unit or of a unit's row. It is a column, or CASE that chooses
// among such columns, and is counted or tested for NULL.
type presence struct {
	of   []*algebra.Field // the ids, each once
	cond algebra.Expr     // it is not NULL on the rows where this is true; nil: on all rows that are used
}

// presenceOf recognises such an expression; ok is false for all others.
func presenceOf(b *algebra.Binder, s domain.Scope, n syntax.Expr) (p presence, ok bool, err error) {
	defer steps.Visit(b.Steps()).Leave()
	switch n := n.(type) {
	case *syntax.Column:
		f, unknown := column(b, n)
		if unknown != nil || !f.Identity() {
			return p, false, nil
		}
		x, ok := inScope(s, f)
		if p.of = []*algebra.Field{f}; !f.Unit || !onEveryRow(b, f) && !f.NotNull() {
			p.cond = algebra.Is{X: x, What: syntax.IsNull, Not: true}
		}
		return p, ok, nil
	case *syntax.Literal:
		return presence{cond: truth(false)}, n.Kind == syntax.NullLiteral, nil
	case *syntax.Case:
		return presenceOfCase(b, s, n)
	default:
		return p, false, nil
	}
}

// presenceOfCase looks at the results before it binds a condition: what is no such CASE is bound as any other.
func presenceOfCase(b *algebra.Binder, s domain.Scope, n *syntax.Case) (p presence, ok bool, err error) {
	p.cond = truth(false)
	if n.Else != nil {
		if p, ok, err = presenceOf(b, s, n.Else); !ok || err != nil {
			return p, false, err
		}
	}
	results := make([]presence, len(n.Whens))
	for i, w := range n.Whens {
		if results[i], ok, err = presenceOf(b, s, w.Result); !ok || err != nil {
			return p, false, err
		}
		for _, f := range results[i].of {
			if !slices.Contains(p.of, f) {
				p.of = append(p.of, f)
			}
		}
	}
	for i := len(results) - 1; i >= 0 && len(p.of) > 0; i-- {
		when := n.Whens[i].Cond
		if n.Operand != nil {
			when = &syntax.Binary{Pos: when.At(), Op: syntax.Eq, L: n.Operand, R: when}
		}
		cond, err := condition(b, s, when)
		if err != nil {
			return p, false, err
		}
		p.cond = chosen(cond, results[i].cond, p.cond)
	}
	return p, len(p.of) > 0, nil
}

// chosen is true where CASE WHEN cond THEN then ELSE otherwise END is; nil is true.
func chosen(cond, then, otherwise algebra.Expr) algebra.Expr {
	switch {
	case otherwise == truth(false):
		return both(cond, then)
	case then == nil && otherwise == nil:
		return nil
	case then == nil:
		return algebra.Binary{Op: syntax.Or, L: cond, R: otherwise, T: catalog.Bool}
	default:
		all := func(e algebra.Expr) algebra.Expr {
			if e == nil {
				return truth(true)
			}
			return e
		}
		return algebra.Choice{Arms: []algebra.Arm{{Cond: cond, Result: all(then)}}, Otherwise: all(otherwise), T: catalog.Bool}
	}
}

// presenceTest is x IS NULL, or with not x IS NOT NULL, of a presence.
func presenceTest(b *algebra.Binder, p presence, not bool) algebra.Expr {
	switch cond := p.cond.(type) {
	case nil:
		if !not {
			b.Bound.Source.Note("ownerless", "no row that is used is without %s: such rows belong to nobody and are left out", p.of[0].Name)
		}
		return truth(not)
	case algebra.Is:
		cond.Not = cond.Not == not
		return cond
	default:
		return algebra.Is{X: cond, What: syntax.IsTrue, Not: !not}
	}
}

// holds reports whether a condition is that an id is there which is on every row: it says nothing.
func holds(n syntax.Expr, e algebra.Expr) bool {
	_, written := n.(*syntax.Literal)
	return !written && e == truth(true)
}

// counted is the argument of count where that asks for no more than presence: the id of a unit, or CASE. Another column is counted by its
// values.
func counted(b *algebra.Binder, n *syntax.Call) (p presence, ok bool, err error) {
	p, ok, err = presenceOf(b, rowScope{b}, oneArgument(n))
	if !ok || err != nil || len(p.of) == 0 {
		return p, false, err
	}
	if _, plain := n.Args[0].(*syntax.Column); plain {
		return p, p.of[0].Unit, nil
	}
	units := !slices.ContainsFunc(p.of, func(f *algebra.Field) bool { return !f.Unit })
	return p, !n.Distinct || units || len(p.of) == 1, nil // all ids of units that a row has are one
}

// truth is a boolean constant.
func truth(b bool) algebra.Constant {
	return algebra.Constant{T: catalog.Bool, Text: map[bool]string{true: "true", false: "false"}[b]}
}

// owner leads the rows of a release block to their privacy units.
func owner(b *algebra.Binder) error {
	r, err := stability.ReachOwner(b, b.Bound.Source)
	if err != nil {
		return err
	}
	b.Bound.Source = r
	first := b.Query.From[0]
	if r.Owner() == nil {
		return b.Unsupported(first, "a query over the public table "+fault.Quote(r.Table)+" alone", "")
	}
	if t := r.Owner().Type; scalar.IsFloat(t) || scalar.FamilyOf(t) == scalar.UnknownFamily {
		return b.Unsupported(first, "a table whose privacy unit is not told apart by whole numbers, text, dates or uuids", "")
	}
	return nil
}

// fromList binds the items of FROM, which WHERE may join; afterwards names resolve to their fields.
func fromList(b *algebra.Binder) (*algebra.Relation, error) {
	item := b.Query.From[0]
	for _, next := range b.Query.From[1:] {
		item = &syntax.Join{Pos: next.At(), Kind: syntax.CrossJoin, Left: item, Right: next}
	}
	all, err := relation(b, item, algebra.Conjuncts(b.Query.Where), nil)
	if err != nil {
		return nil, err
	}
	b.Bound.Source = all
	all.LabelFields(b.Outer != nil)
	return all, nil
}

// relation binds an item of FROM, on a side of the joins around. The conditions of where hold on every row that is used: those of WHERE,
// where no outer join comes between.
func relation(b *algebra.Binder, r syntax.Relation, where []syntax.Expr, side *algebra.Side) (*algebra.Relation, error) {
	defer steps.Visit(b.Steps()).Leave()
	switch r := r.(type) {
	case *syntax.Table:
		return table(b, r, side)
	case *syntax.Subquery:
		if r.Query == nil {
			return nil, b.Unsupported(r, "this item of FROM", "")
		}
		in := subqueryIn{query: r.Query, at: r.Pos, alias: r.Alias, columns: r.Columns, ctes: b.CTEs, side: side}
		if r.Lateral {
			in.beside = b.Bound.Source
		}
		return subquery(b, in)
	case *syntax.Join:
		if s, ok := r.Right.(*syntax.Subquery); ok && s.Lateral && (r.Kind == syntax.RightJoin || r.Kind == syntax.FullJoin) {
			return nil, b.Unsupported(s, "LATERAL on the side of a join that can stand alone",
				"write CROSS JOIN LATERAL or LEFT JOIN LATERAL ... ON true")
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
		leftSide, rightSide := side.Sides()
		left, err := relation(b, r.Left, leftWhere, leftSide)
		if err != nil {
			return nil, err
		}
		if left.Lateral { // what stands beside it would be beside each row of a third relation too
			return nil, b.Unsupported(r.Left, "LATERAL as the left side of a join",
				"write it as the right side: CROSS JOIN LATERAL (SELECT expressions)")
		}
		b.Bound.Source = left // for LATERAL
		right, err := relation(b, r.Right, rightWhere, rightSide)
		if err != nil {
			return nil, err
		}
		if right.Lateral {
			left = b.Bound.Source
		}
		j, err := sides(b, r, left, right)
		if err != nil {
			return nil, err
		}
		j.left, j.right = leftSide, rightSide
		return join(b, j, where)
	default:
		return nil, b.Unsupported(r, "this item of FROM", "")
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
func table(b *algebra.Binder, n *syntax.Table, side *algebra.Side) (*algebra.Relation, error) {
	alias := n.Alias
	if alias == "" {
		alias = n.Name
	}
	if e := b.CTEs.Find(n); e != nil {
		return subquery(b, subqueryIn{query: e.CTE.Query, at: n.Pos, alias: alias, columns: e.CTE.Columns, ctes: e.Outer, side: side})
	}
	t, err := tableOf(b, n)
	if err != nil {
		return nil, err
	}
	return b.ScanOf(t, alias, side)
}

// tableOf finds a table of the snapshot.
func tableOf(b *algebra.Binder, n *syntax.Table) (*catalog.Table, error) {
	if n.Database != "" && n.Database != b.Snapshot.Dataset {
		return nil, b.Unsupported(n, "a table of another database", "leave the database's name out")
	}
	t, ok := b.Snapshot.Named(n.Schema, n.Name)
	if ok {
		return t, nil
	}
	name, known := n.Name, tableNames(b)
	if n.Schema != "" {
		name, known = n.Schema+"."+n.Name, nil
	}
	for _, other := range b.Snapshot.Tables { // of that name in another schema
		if other.Name == n.Name {
			return nil, fault.TableElsewhere(b.At(n), name, writtenTable(other))
		}
	}
	return nil, fault.UnknownTable(b.At(n), name, known)
}

// writtenTable is a table's name as a query may write it.
func writtenTable(t *catalog.Table) string {
	if t.Schema == catalog.DefaultSchema {
		return t.Name
	}
	return t.Schema + "." + t.Name
}

func tableNames(b *algebra.Binder) []string {
	var names []string
	for _, c := range b.CTEs.List() {
		names = append(names, c.Name)
	}
	for _, t := range b.Snapshot.Shown() {
		names = append(names, writtenTable(t))
	}
	return names
}

// column finds a field that analysts may name, here or in the queries around. Hidden columns and columns that do not exist give the same
// refusal. The unit's id is found too: callers decide where it may stand.
func column(b *algebra.Binder, n *syntax.Column) (*algebra.Field, error) {
	for at := b; at != nil; at = at.Outer {
		f, found, err := columnOf(b, at.Bound.Source, n)
		if found || err != nil {
			return f, err
		}
	}
	return nil, unknownColumn(b, n)
}

// columnOf finds a field in one relation.
func columnOf(b *algebra.Binder, r *algebra.Relation, n *syntax.Column) (f *algebra.Field, found bool, err error) {
	if r == nil {
		return nil, false, nil
	}
	if n.Qualifier != "" {
		for _, p := range r.Parts {
			if p.Is(n.Schema, n.Qualifier) {
				if f, visible := p.Field(n.Name); visible {
					return f, true, nil
				}
				return nil, false, unknownColumn(b, n)
			}
		}
		return nil, false, nil
	}
	var relations []string
	for _, candidate := range r.Fields {
		if candidate.Name != n.Name || !candidate.Exposed && !candidate.Unit {
			continue
		}
		f, found = candidate, true
		relations = append(relations, r.PartOf(f))
	}
	if len(relations) > 1 {
		return nil, false, fault.AmbiguousColumn(b.At(n), n.Name, relations)
	}
	return f, found, nil
}

func unknownColumn(b *algebra.Binder, n *syntax.Column) error {
	var known, aliases []string
	qualified := false
	for at := b; at != nil; at = at.Outer {
		if at.Bound.Source == nil {
			continue
		}
		for _, p := range at.Bound.Source.Parts {
			aliases = append(aliases, p.Alias)
			qualified = qualified || p.Is(n.Schema, n.Qualifier)
			if n.Qualifier != "" && !p.Is(n.Schema, n.Qualifier) {
				continue
			}
			for _, f := range p.Fields {
				if f.Exposed {
					known = append(known, f.Name)
				}
			}
		}
	}
	switch {
	case n.Qualifier != "" && !qualified:
		return fault.UnknownTable(b.At(n), n.Table(), aliases)
	case slices.Contains(scalar.SystemColumns, n.Name):
		return b.Unsupported(n, "system column "+fault.Quote(n.Name), "")
	default:
		return fault.UnknownColumn(b.At(n), n.Name, known)
	}
}

// visible finds a column of the relation that exists for analysts. The unit's id does, even when it is not exposed.
func visible(b *algebra.Binder, name string) (*algebra.Field, bool) {
	for _, f := range b.Bound.Source.Fields {
		if f.Name == name && (f.Exposed || f.Unit) {
			return f, true
		}
	}
	return nil, false
}

// Origin names an expression of a row with the table that it comes from, as far as there is one.
func Origin(r *algebra.Relation, e algebra.Expr) string {
	table := r.Table
	if f := algebra.PlainField(e); f != nil && f.Table != "" {
		table = f.Table
	}
	return fmt.Sprintf("%s.%s", table, sqlprint.Describe(e))
}
