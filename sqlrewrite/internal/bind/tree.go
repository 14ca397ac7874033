package bind

import (
	"slices"
	"strconv"

	"noisegate.example/sqlrewrite/internal/domain"
	"noisegate.example/sqlrewrite/syntax"
)

// aliased is the item of the select list that an item of GROUP BY or ORDER BY means by its position or its alias, or the item itself.
func aliased(q *syntax.Query, n syntax.Expr) syntax.Expr {
	switch n := n.(type) {
	case *syntax.Literal:
		if i, err := strconv.Atoi(n.Text); n.Kind == syntax.IntegerLiteral && err == nil && i >= 1 && i <= len(q.Items) {
			return q.Items[i-1].Expr
		}
	case *syntax.Column:
		for _, item := range q.Items {
			if n.Qualifier == "" && item.Alias == n.Name {
				return item.Expr
			}
		}
	}
	return n
}

// callsAggregate reports whether an expression holds an aggregate that is not a window function's. Queries inside it are their own.
func callsAggregate(n syntax.Expr) bool {
	if c, ok := n.(*syntax.Call); ok && c.Over == nil {
		f := domain.BuiltinOf(c.Name)
		if f.IsAggregate() || c.Star || c.Distinct || len(c.Within) > 0 {
			return true
		}
	}
	return slices.ContainsFunc(operands(n), callsAggregate)
}

// operands are the direct parts of an expression as it was written, queries inside it apart.
func operands(n syntax.Expr) []syntax.Expr {
	var all []syntax.Expr
	switch n := n.(type) {
	case *syntax.Unary:
		all = append(all, n.X)
	case *syntax.Binary:
		all = append(all, n.L, n.R)
	case *syntax.In:
		all = append(append(all, n.X), n.List...)
	case *syntax.InQuery:
		all = append(all, n.X...)
	case *syntax.Array:
		all = append(all, n.Items...)
	case *syntax.Between:
		all = append(all, n.X, n.Lo, n.Hi)
	case *syntax.Is:
		all = append(all, n.X)
	case *syntax.IsDistinct:
		all = append(all, n.L, n.R)
	case *syntax.Like:
		all = append(all, n.X, n.Pattern)
	case *syntax.Case:
		all = append(all, n.Operand, n.Else)
		for _, w := range n.Whens {
			all = append(all, w.Cond, w.Result)
		}
	case *syntax.Cast:
		all = append(all, n.X)
	case *syntax.Call:
		all = append(append(all, n.Args...), n.Filter)
		for _, o := range append(append([]syntax.OrderItem(nil), n.OrderBy...), n.Within...) {
			all = append(all, o.Expr)
		}
		if n.Over != nil {
			all = append(all, windowExpressions(n.Over)...)
		}
	}
	return slices.DeleteFunc(all, func(e syntax.Expr) bool { return e == nil })
}

func windowExpressions(w *syntax.Window) []syntax.Expr {
	all := slices.Clone(w.PartitionBy)
	for _, o := range w.OrderBy {
		all = append(all, o.Expr)
	}
	return all
}

// reads reports whether a column of some name may be read anywhere in a part of a statement.
func reads(part any, name string) (found bool) {
	syntax.Each(part, func(n any) bool {
		switch n := n.(type) {
		case *syntax.Column:
			found = found || n.Name == name
		case *syntax.Star:
			found = true
		case *syntax.Join:
			found = found || n.Natural || slices.Contains(n.Using, name)
		}
		return found
	})
	return found
}
