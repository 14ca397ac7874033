package sqlrewrite

import (
	"slices"

	"noisegate/sqlrewrite/syntax"
)

// scalar binds a query that stands for a value in a condition on rows: one aggregate of public tables, without GROUP BY. It has one row
// whatever the tables hold, so that it is joined to the rows at hand: a join with a public relation of one row, which adds a column and
// neither adds nor drops a row.
func (b *binder) scalar(n *syntax.Scalar) (expr, error) {
	q, source := n.Query, b.bound.source
	if source == nil || source.node == nil {
		return nil, b.unsupported(n, "a subquery as a value in this place", "move it to WHERE")
	}
	if q.Set != nil || len(q.From) == 0 {
		return nil, b.refuseScalar(n)
	}
	child := b.child(q, b.ctes)
	r, err := child.fromList()
	if err != nil {
		return nil, err
	}
	if r.owned() {
		return nil, b.refuseScalar(n)
	}
	if err := child.where(); err != nil {
		return nil, err
	}
	call, ok := oneItem(q).(*syntax.Call)
	if !ok || !slices.Contains(unitAggregates, call.Name) || q.GroupBy != nil || q.Having != nil || q.Distinct || q.DistinctOn != nil ||
		q.Windows != nil || q.OrderBy != nil || q.Limit != nil || q.Offset != nil {
		return nil, b.unsupported(n, "a subquery as a value that is not one aggregate", "select count, sum, avg, min or max alone, without GROUP BY: it then has one row")
	}
	g := &grouping{binder: child, p: child.projection(r)}
	e, err := g.call(call)
	if err != nil {
		return nil, err
	}
	f := plainField(e)
	f.public, f.label = true, "("+describeRows(g.p.leaf)+")"
	source.node = &joined{left: source.node, right: g.p.leaf, kind: syntax.CrossJoin}
	return e, b.addLeaf(&g.p.leaf.leaf)
}

// oneItem is the only item of a select list, nil if there are more.
func oneItem(q *syntax.Query) syntax.Expr {
	if len(q.Items) != 1 {
		return nil
	}
	return q.Items[0].Expr
}

// refuseScalar refuses a query that stands for a value.
func (b *binder) refuseScalar(n *syntax.Scalar) error {
	return b.unsupported(n, "a subquery as a value", "ask for its result first, and write that as a constant")
}
