package bind

import (
	"math/big"
	"slices"

	"noisegate.example/sqlrewrite/internal/algebra"
)

// Sums, means and chosen rows of released values have intervals where it is known which released rows each is computed from, and where
// that depends on nothing released: then the noise of the rows has the law that it was drawn from. So neither a condition on a released
// value nor LIMIT may choose the rows, nor may one be in the order or the partition of a window. PostgreSQL tells the rows
// ([algebra.RowsOfAggregate]).

// followBlock numbers the windows of the block's own SELECT.
func followBlock(o *algebra.Opened, q *algebra.BoundQuery) {
	if !steadyBlock(o, q) {
		return
	}
	for i, out := range q.Outputs {
		q.Outputs[i].Expr = numbered(o, out.Expr, func(a algebra.Aggregate) bool { return a.Over != nil })
	}
}

// follow numbers the aggregates and windows of a post-processing query.
func follow(o *algebra.Opened, l *algebra.Query) {
	if len(o.Blocks) != 1 || l.Set != nil || !keysOnly(o, append(slices.Clone(l.Keys), l.Where)...) || !steadyRows(o, l.From) {
		return
	}
	for i, out := range l.Outputs {
		l.Outputs[i].Expr = numbered(o, out.Expr, func(a algebra.Aggregate) bool { return (a.Over == nil) == l.Grouped })
	}
}

// steadyBlock reports whether which rows the block has is known before there is data.
func steadyBlock(o *algebra.Opened, q *algebra.BoundQuery) bool {
	return q.Releases() && !q.Private() && q.PublicTuples().Cmp(big.NewInt(algebra.MaxFollowed)) <= 0 && keysOnly(o, q.Having)
}

// steadyRows reports whether which released rows an item of FROM has depends on no released value.
func steadyRows(o *algebra.Opened, n algebra.FromItem) bool {
	switch n := n.(type) {
	case *algebra.Scan:
		return true
	case *algebra.Joined:
		return keysOnly(o, n.On) && steadyRows(o, n.Left) && steadyRows(o, n.Right)
	case *algebra.Derived:
		l := n.Parts[0]
		switch {
		case l.Block:
			b := o.Blocks[l.BlockAt]
			return steadyBlock(o, b) && b.Limit == nil && b.Offset == 0
		case l.Rows() == algebra.PublicRows:
			return true
		}
		return l.Stem() != nil && len(l.On) == 0 && l.Limit == nil && l.Offset == 0 && keysOnly(o, l.Where) && steadyRows(o, l.From)
	default:
		return false
	}
}

// keysOnly reports whether expressions, nil ones among them, are computed from keys and public rows.
func keysOnly(o *algebra.Opened, all ...algebra.Expr) bool {
	return !slices.ContainsFunc(all, func(e algebra.Expr) bool { return e != nil && released(substitute(o, e)) })
}

// released reports whether an expression is computed from released values.
func released(e algebra.Expr) bool {
	switch e := e.(type) {
	case algebra.EstimatorRef:
		return true
	case algebra.Subquery:
		if e.Query.Rows() != algebra.PublicRows {
			return true
		}
	}
	return slices.ContainsFunc(algebra.Children(e), released)
}

// numbered gives a number to each aggregate in an expression that can be followed.
func numbered(o *algebra.Opened, e algebra.Expr, here func(algebra.Aggregate) bool) algebra.Expr {
	a, ok := e.(algebra.Aggregate)
	if !ok {
		return algebra.Map(e, func(x algebra.Expr) algebra.Expr { return numbered(o, x, here) })
	}
	if here(a) && followable(o, a) {
		o.Followed++
		a.Cells = o.Followed
	}
	return a
}

// followable reports whether the rows of an aggregate depend on no released value, and its value on these rows alone.
func followable(o *algebra.Opened, a algebra.Aggregate) bool {
	picks := a.Over != nil && algebra.Picks(a.Name)
	if !picks && a.Name != "sum" && a.Name != "avg" || a.Distinct || len(a.Order)+len(a.Within) > 0 || len(a.Args) == 0 ||
		!a.T.IsNumber() || !released(substitute(o, a.Args[0])) || !keysOnly(o, a.Filter) {
		return false
	}
	if picks && len(a.Args) > 1 && !keysOnly(o, a.Args[1]) {
		return false
	}
	if a.Over == nil {
		return true
	}
	order := slices.Clone(a.Over.Partition)
	for _, by := range a.Over.Order {
		order = append(order, by.Expr)
	}
	return keysOnly(o, order...)
}
