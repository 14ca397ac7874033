package bind

import (
	"fmt"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/steps"
	"noisegate.example/sqlrewrite/syntax"
)

// items binds FROM.
func (lb *postBinder) items() error {
	all := &algebra.Relation{}
	for i, r := range lb.Query.From {
		next, err := lb.item(r)
		if err == nil && i > 0 {
			next, err = lb.join(&syntax.Join{Pos: r.At(), Kind: syntax.CrossJoin}, all, next)
		}
		if err != nil {
			return err
		}
		all = next
	}
	lb.Bound.Source, lb.query.From = all, all.Node
	return nil
}

func (lb *postBinder) item(r syntax.Relation) (*algebra.Relation, error) {
	defer steps.Visit(lb.Steps()).Leave()
	if lb.open.Items++; lb.open.Items > algebra.MaxItems {
		return nil, fault.TooComplex(lb.At(r), fmt.Sprintf("the query reads more than %d relations, each use of a CTE counted", algebra.MaxItems))
	}
	switch r := r.(type) {
	case *syntax.Table:
		alias := r.Alias
		if alias == "" {
			alias = r.Name
		}
		if e := lb.CTEs.Find(r); e != nil {
			return lb.derived(subqueryIn{query: e.CTE.Query, at: r.Pos, alias: alias, columns: e.CTE.Columns, ctes: e.Outer})
		}
		return lb.scan(r, alias)
	case *syntax.Subquery:
		if r.Lateral {
			return nil, lb.Unsupported(r, "LATERAL over released values or public tables", "compute the columns in the select list")
		}
		return lb.derived(subqueryIn{query: r.Query, at: r.Pos, alias: r.Alias, columns: r.Columns, ctes: lb.CTEs})
	case *syntax.Join:
		left, err := lb.item(r.Left)
		if err != nil {
			return nil, err
		}
		right, err := lb.item(r.Right)
		if err != nil {
			return nil, err
		}
		return lb.join(r, left, right)
	default:
		return nil, lb.Unsupported(r, "this item of FROM", "")
	}
}

// nextAlias is a name for the next relation of the statement.
func nextAlias(o *algebra.Opened) string { return fmt.Sprintf("t%d", o.Items) }

// scan reads a public table: what is not public stays outside, which [postOf] checks again of what it made.
func (lb *postBinder) scan(r *syntax.Table, alias string) (*algebra.Relation, error) {
	t, err := tableOf(lb.Binder, r)
	if err != nil {
		return nil, err
	}
	if !t.Public {
		return nil, lb.Unsupported(r, "private rows of table "+fault.Quote(t.Name)+" beside released values",
			"aggregate them first, in one SELECT over the private tables, and join public tables to the result")
	}
	s := &algebra.Scan{Table: t, Leaf: algebra.Leaf{Alias: nextAlias(lb.open)}}
	for _, c := range t.Columns {
		if c.Exposed {
			s.Fields = append(s.Fields, &algebra.Field{Column: c, Relation: s.Alias, Table: t.Name})
		}
	}
	lb.open.Scans = append(lb.open.Scans, s)
	return &algebra.Relation{Node: s, Parts: []algebra.FromPart{algebra.NewFromPart(t, alias, s.Fields)}, Fields: s.Fields}, nil
}

// derived is a query in FROM or one use of a CTE. It sees nothing of the query around it.
func (lb *postBinder) derived(in subqueryIn) (*algebra.Relation, error) {
	alias := nextAlias(lb.open)
	inner, err := postOf(lb.open, in.query, in.ctes, nil)
	if err != nil {
		return nil, err
	}
	item := derivedOf(lb.open, inner, alias)
	return renamed(lb.Binder, in, &algebra.Relation{Node: item, Fields: item.Fields})
}

func derivedOf(o *algebra.Opened, inner *algebra.Query, alias string) *algebra.Derived {
	item := &algebra.Derived{Leaf: algebra.Leaf{Alias: alias}, Parts: []*algebra.Query{inner}}
	for i, out := range inner.Outputs {
		f := &algebra.Field{Column: &catalog.Column{Name: out.Name, Type: algebra.OutputType(out.Expr.Typ()), TypMod: -1, Exposed: true},
			Relation: item.Alias, Printed: algebra.OutputColumn(i)}
		if algebra.RawEnum(inner, i) {
			f.Type = catalog.Enum
		}
		o.Origins[f], o.Sizes[f] = inner.Origins[i], inner.Sizes[i]
		item.Fields = append(item.Fields, f)
	}
	return item
}

func (lb *postBinder) join(n *syntax.Join, l, r *algebra.Relation) (*algebra.Relation, error) {
	j, err := sides(lb.Binder, n, l, r)
	if err != nil {
		return nil, err
	}
	on := j.using
	switch {
	case n.On != nil:
		e, err := condition(lb.Binder, postScope{postBinder: lb}, n.On)
		if err != nil {
			return nil, err
		}
		on = append(on, e)
	case on == nil && n.Kind != syntax.CrossJoin:
		return nil, lb.Unsupported(n, "a join without ON or USING, or a common column", "write JOIN ... ON a = b")
	}
	j.out.Node = &algebra.Joined{Kind: n.Kind, Left: l.Node, Right: r.Node, On: algebra.All(on)}
	return j.out, nil
}
