package bind

import (
	"strconv"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/domain"
	"noisegate.example/sqlrewrite/syntax"
)

// having binds the filter over groups. It sees noisy values only (A10).
func having(b *algebra.Binder) (err error) {
	b.Bound.Having, err = filter(b, blockScope{b}, b.Query.Having, "HAVING")
	return err
}

// orderBy binds the order of the rows. It sees noisy values and keys only; ties, and everything when there is no ORDER BY, are
// ordered by key (A11). As in PostgreSQL, a name is first an output and then a column.
func orderBy(b *algebra.Binder) error {
	var err error
	b.Bound.OrderBy, err = orderings(b, b.Query.OrderBy, func(x0 syntax.Expr) (algebra.Expr, error) { return orderItem(b, x0) })
	return err
}

// orderings binds the items of an ORDER BY, each key by what bind makes of it.
func orderings(b *algebra.Binder, items []syntax.OrderItem, bind func(syntax.Expr) (algebra.Expr, error)) ([]algebra.Ordering, error) {
	var all []algebra.Ordering
	for _, item := range items {
		e, err := bind(item.Expr)
		if err != nil {
			return nil, err
		}
		if e, err = domain.Coerce(b, item.Expr, e, catalog.Text); err != nil {
			return nil, err
		}
		o := algebra.Ordering{Expr: e, Descending: item.Descending}
		switch item.Nulls {
		case syntax.NullsDefault:
			o.NullsFirst = item.Descending
		case syntax.NullsFirst:
			o.NullsFirst = true
		case syntax.NullsLast:
		default:
			return nil, fault.Unsupported(b.Position(item.Pos), "this order of NULLs", "")
		}
		all = append(all, o)
	}
	return all, nil
}

func orderItem(b *algebra.Binder, n syntax.Expr) (algebra.Expr, error) {
	switch n := n.(type) {
	case *syntax.Literal:
		item, err := ordinal(b, n, "ORDER BY")
		if err != nil {
			return nil, err
		}
		for i, known := range b.Query.Items {
			if known.Expr == item.Expr {
				return b.Bound.Outputs[i].Expr, nil
			}
		}
	case *syntax.Column:
		if n.Qualifier != "" {
			break
		}
		for _, o := range b.Bound.Outputs {
			if o.Name == n.Name {
				return o.Expr, nil
			}
		}
	}
	return expression(b, blockScope{b}, n)
}

// limit binds LIMIT and OFFSET, which cut the noisy answer.
func limit(b *algebra.Binder) (err error) {
	if b.Query.DistinctOn != nil || b.Query.Set != nil {
		return fault.Unsupported(b.Position(b.Query.Pos), "DISTINCT ON or a set operation here", "")
	}
	b.Bound.Limit, b.Bound.Offset, err = limitOffset(b)
	return err
}

func limitOffset(b *algebra.Binder) (limit *int64, offset int64, err error) {
	if limit, err = rowCount(b, b.Query.Limit, "LIMIT"); err != nil {
		return nil, 0, err
	}
	skipped, err := rowCount(b, b.Query.Offset, "OFFSET")
	if skipped != nil {
		offset = *skipped
	}
	return limit, offset, err
}

// rowCount reads a constant number of rows; nil for none and for NULL.
func rowCount(b *algebra.Binder, n syntax.Expr, clause string) (*int64, error) {
	if n == nil {
		return nil, nil
	}
	if l, ok := n.(*syntax.Literal); ok {
		if l.Kind == syntax.NullLiteral {
			return nil, nil
		}
		if count, err := strconv.ParseInt(l.Text, 10, 64); l.Kind == syntax.IntegerLiteral && err == nil && count >= 0 {
			return &count, nil
		}
	}
	return nil, b.Unsupported(n, clause+" that is not a whole number", "write "+clause+" 10")
}
