package bind

import (
	"reflect"

	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/domain"
	"noisegate.example/sqlrewrite/internal/sqlprint"
	"noisegate.example/sqlrewrite/syntax"
)

// scalarQuery binds a query that stands for a value in a condition on rows: one aggregate of public tables, without GROUP BY. It has one
// row whatever the tables hold, so that it is joined to the rows at hand: a join with a public relation of one row, which adds a column and
// neither adds nor drops a row.
func scalarQuery(b *algebra.Binder, n *syntax.Scalar) (algebra.Expr, error) {
	q, source := n.Query, b.Bound.Source
	if source == nil || source.Node == nil {
		return nil, b.Unsupported(n, "a subquery as a value in this place", "move it to WHERE")
	}
	if q.Set != nil || len(q.From) == 0 {
		return nil, refuseScalar(b, n)
	}
	if b.Buy != nil {
		if e, err := b.Buy(n); e != nil || err != nil {
			return e, err
		}
	}
	child := child(b, q, b.CTEs)
	r, err := fromList(child)
	if err != nil {
		return nil, err
	}
	if r.Owned() {
		return nil, b.Unsupported(n, "a subquery as a value", "ask for its result first, and write that as a constant; what one person has is "+
			"joined: LEFT JOIN (SELECT the unit, count(*) FROM t GROUP BY 1) s ON ...")
	}
	if err := where(child); err != nil {
		return nil, err
	}
	call, ok := oneItem(q).(*syntax.Call)
	if !ok || !domain.BuiltinOf(call.Name).IsOfUnit() || q.Groups() || q.Having != nil || q.Distinct || q.DistinctOn != nil ||
		q.Windows != nil || q.OrderBy != nil || q.Limit != nil || q.Offset != nil {
		return nil, b.Unsupported(n, "a subquery as a value that is not one aggregate",
			"select count, sum, avg, min or max alone, without GROUP BY: it then has one row")
	}
	g := &grouping{Binder: child, p: newProjection(child, r)}
	e, err := g.Call(call)
	if err != nil {
		return nil, err
	}
	g.p.query.From = child.Bound.Source.Node // with what its expressions have joined
	algebra.PlainField(e).Label = "(" + sqlprint.DescribeRows(g.p.leaf) + ")"
	joined := *source
	joined.Node = &algebra.Joined{Left: source.Node, Right: g.p.leaf, Kind: syntax.CrossJoin}
	b.Bound.Source = &joined
	return e, b.AddLeaf(&g.p.leaf.Leaf)
}

// withoutFrom is the expression that (SELECT expression) stands for; nil for other queries. An aggregate in it would be one of no rows.
func withoutFrom(n syntax.Expr) syntax.Expr {
	scalar, ok := n.(*syntax.Scalar)
	if !ok || scalar.Query == nil || len(scalar.Query.Items) != 1 {
		return nil
	}
	item := scalar.Query.Items[0]
	alone := syntax.Query{Pos: scalar.Query.Pos, Items: scalar.Query.Items}
	if _, star := item.Expr.(*syntax.Star); star || !reflect.DeepEqual(*scalar.Query, alone) || callsAggregate(item.Expr) ||
		callsWindow(item.Expr) {
		return nil
	}
	return item.Expr
}

// oneItem is the only item of a select list, nil if there are more.
func oneItem(q *syntax.Query) syntax.Expr {
	if len(q.Items) != 1 {
		return nil
	}
	return q.Items[0].Expr
}

// refuseScalar refuses a query that stands for a value.
func refuseScalar(b *algebra.Binder, n *syntax.Scalar) error {
	return b.Unsupported(n, "a subquery as a value", "ask for its result first, and write that as a constant")
}
