package bind

import (
	"fmt"

	"noisegate/catalog"
	"noisegate/internal/fault"
	"noisegate/sqlrewrite/internal/algebra"
	"noisegate/sqlrewrite/internal/domain"
	"noisegate/sqlrewrite/internal/sqlprint"
	"noisegate/sqlrewrite/syntax"
)

// postName is a name that the expressions of a post-processing query can use.
type postName struct {
	relation, name string
	e              algebra.Expr
	merged         bool // USING has put another name in its place: reached by relation.name only
}

// items binds FROM.
func (lb *postBinder) items() error {
	for i, r := range lb.Query.From {
		item, names, err := lb.item(r)
		if err != nil {
			return err
		}
		lb.names = append(lb.names, names...)
		if i == 0 {
			lb.query.From = item
		} else {
			lb.query.From = &algebra.Joined{Kind: syntax.CrossJoin, Left: lb.query.From, Right: item}
		}
	}
	lb.query.Ordinal = lb.query.From != nil && sqlprint.OrdinalOf(lb.query.From) != ""
	return lb.relationsAreTold()
}

// relationsAreTold refuses two relations of one name.
func (lb *postBinder) relationsAreTold() error {
	first := map[string]algebra.Expr{}
	for _, n := range lb.names {
		c, ok := n.e.(algebra.Column)
		if !ok || n.relation == "" {
			continue
		}
		if known, twice := first[n.relation].(algebra.Column); twice && known.Of.Relation != c.Of.Relation {
			return fault.Unsupported(lb.Position(lb.Query.Pos), "the name "+fault.Quote(n.relation)+" for two relations", "give each an alias of its own")
		}
		first[n.relation] = c
	}
	return nil
}

func (lb *postBinder) item(r syntax.Relation) (algebra.FromItem, []postName, error) {
	if lb.open.Items++; lb.open.Items > algebra.MaxItems {
		return nil, nil, fault.TooComplex(lb.At(r), fmt.Sprintf("the query reads more than %d relations, each use of a CTE counted", algebra.MaxItems))
	}
	switch r := r.(type) {
	case *syntax.Table:
		alias := r.Alias
		if alias == "" {
			alias = r.Name
		}
		if e := lb.CTEs.Find(r); e != nil {
			return lb.derived(r, e.CTE.Query, e.Outer, alias, e.CTE.Columns)
		}
		return lb.scan(r, alias)
	case *syntax.Subquery:
		if r.Lateral {
			return nil, nil, lb.Unsupported(r, "LATERAL over released values or public tables", "compute the columns in the select list")
		}
		return lb.derived(r, r.Query, lb.CTEs, r.Alias, r.Columns)
	case *syntax.Join:
		return lb.join(r)
	default:
		return nil, nil, lb.Unsupported(r, "this item of FROM", "")
	}
}

// nextAlias is a name for the next relation of the statement.
func nextAlias(o *algebra.Opened) string { return fmt.Sprintf("t%d", o.Items) }

// scan reads a public table: what is not public stays outside, which [postOf] checks again of what it made.
func (lb *postBinder) scan(r *syntax.Table, alias string) (algebra.FromItem, []postName, error) {
	t, ok := lb.Snapshot.Table(r.Schema, r.Name)
	if !ok {
		return nil, nil, lb.unknownTable(r)
	}
	if !t.Public {
		return nil, nil, lb.Unsupported(r, "private rows of table "+fault.Quote(t.Name)+" beside released values",
			"aggregate them first, in one SELECT over the private tables, and join public tables to the result")
	}
	s := &algebra.Scan{Table: t, Leaf: algebra.Leaf{Alias: nextAlias(lb.open)}}
	var names []postName
	for _, c := range t.Columns {
		if !c.Exposed {
			continue
		}
		f := &algebra.Field{Column: c, Relation: s.Alias, Table: t.Name}
		s.Fields = append(s.Fields, f)
		names = append(names, postName{relation: alias, name: c.Name, e: algebra.Column{Of: f}})
	}
	lb.open.Scans = append(lb.open.Scans, s)
	return s, names, nil
}

func (lb *postBinder) unknownTable(r *syntax.Table) error {
	if r.Schema != "" {
		return fault.UnknownTable(lb.At(r), r.Schema+"."+r.Name, nil)
	}
	return fault.UnknownTable(lb.At(r), r.Name, tableNames(lb.Binder))
}

// derived is a query in FROM or one use of a CTE. It sees nothing of the query around it.
func (lb *postBinder) derived(at syntax.Relation, q *syntax.Query, env *algebra.Environment, alias string, renamed []string) (algebra.FromItem, []postName, error) {
	item := &algebra.Derived{Leaf: algebra.Leaf{Alias: nextAlias(lb.open)}}
	inner, err := postOf(lb.open, q, env, nil)
	if err != nil {
		return nil, nil, err
	}
	item.Parts = []*algebra.Query{inner}
	if len(renamed) > len(inner.Outputs) {
		return nil, nil, lb.Unsupported(at, "a list of more column names than there are columns", "")
	}
	var names []postName
	for i, out := range inner.Outputs {
		name := out.Name
		if i < len(renamed) {
			name = renamed[i]
		}
		f := &algebra.Field{Column: &catalog.Column{Name: name, Type: algebra.OutputType(out.Expr.Typ()), TypMod: -1, Exposed: true},
			Relation: item.Alias, Printed: algebra.OutputColumn(i)}
		if algebra.RawEnum(inner, i) {
			f.Type = catalog.Enum
		}
		lb.open.Origins[f], lb.open.Sizes[f] = inner.Origins[i], inner.Sizes[i]
		item.Fields = append(item.Fields, f)
		names = append(names, postName{relation: alias, name: name, e: algebra.Column{Of: f}})
	}
	return item, names, nil
}

func (lb *postBinder) join(r *syntax.Join) (algebra.FromItem, []postName, error) {
	left, leftNames, err := lb.item(r.Left)
	if err != nil {
		return nil, nil, err
	}
	right, rightNames, err := lb.item(r.Right)
	if err != nil {
		return nil, nil, err
	}
	j := &algebra.Joined{Kind: r.Kind, Left: left, Right: right}
	names := append(leftNames[:len(leftNames):len(leftNames)], rightNames...)
	if r.Natural {
		named := *r
		named.Using = commonNames(shownNames(leftNames), shownNames(rightNames))
		r = &named
	}
	switch {
	case r.Using != nil:
		names, err = lb.using(j, r, leftNames, rightNames)
	case r.On != nil:
		inside := *lb
		inside.names = names
		j.On, err = condition(lb.Binder, postScope{postBinder: &inside}, r.On)
	case r.Kind != syntax.CrossJoin:
		err = lb.Unsupported(r, "a join without ON or USING, or a common column", "write JOIN ... ON a = b")
	}
	return j, names, err
}

// shownNames are the names of what is not hidden behind a merged column.
func shownNames(all []postName) []string {
	var names []string
	for _, n := range all {
		if !n.merged {
			names = append(names, n.name)
		}
	}
	return names
}

// using joins by columns of one name on both sides, each of which is one column of the result, before all others.
func (lb *postBinder) using(j *algebra.Joined, r *syntax.Join, left, right []postName) ([]postName, error) {
	var merged []postName
	for _, name := range r.Using {
		l, err := lb.lookup(left, &syntax.Column{Pos: r.Pos, Name: name})
		if err != nil {
			return nil, err
		}
		rr, err := lb.lookup(right, &syntax.Column{Pos: r.Pos, Name: name})
		if err != nil {
			return nil, err
		}
		at := &syntax.Column{Pos: r.Pos, Name: name}
		x, y, err := domain.Unify(lb.Binder, at, syntax.Eq, at, at, l, rr)
		if err != nil {
			return nil, err
		}
		equal := algebra.Expr(algebra.Binary{Op: syntax.Eq, L: x, R: y, T: catalog.Bool})
		if j.On != nil {
			equal = algebra.Binary{Op: syntax.And, L: j.On, R: equal, T: catalog.Bool}
		}
		j.On = equal
		one := l
		switch r.Kind {
		case syntax.RightJoin:
			one = rr
		case syntax.FullJoin:
			both, t, err := domain.Common(lb.Binder, []syntax.Expr{at, at}, []algebra.Expr{l, rr})
			if err != nil {
				return nil, err
			}
			one = algebra.Call{Name: "coalesce", Args: both, T: t}
		default: // the left is there whenever the right is
		}
		merged = append(merged, postName{name: name, e: one})
		hide(left, name)
		hide(right, name)
	}
	return append(append(merged, left...), right...), nil
}

func hide(names []postName, name string) {
	for i := range names {
		if names[i].name == name {
			names[i].merged = true
		}
	}
}

// lookup finds what a column means among names.
func (lb *postBinder) lookup(names []postName, n *syntax.Column) (algebra.Expr, error) {
	var found []postName
	var known, relations []string
	relation := false
	for _, c := range names {
		relation = relation || c.relation == n.Qualifier
		if n.Qualifier != "" && c.relation != n.Qualifier || n.Qualifier == "" && c.merged {
			continue
		}
		known = append(known, c.name)
		if c.name == n.Name {
			found, relations = append(found, c), append(relations, c.relation)
		}
	}
	switch {
	case len(found) == 1:
		return found[0].e, nil
	case len(found) > 1:
		return nil, fault.AmbiguousColumn(lb.At(n), n.Name, relations)
	case n.Qualifier != "" && !relation:
		return nil, fault.UnknownTable(lb.At(n), n.Qualifier, relationsOf(names))
	default:
		return nil, fault.UnknownColumn(lb.At(n), n.Name, known)
	}
}

func relationsOf(names []postName) []string {
	var all []string
	for _, n := range names {
		if n.relation != "" {
			all = append(all, n.relation)
		}
	}
	return all
}
