package sqlrewrite

import (
	"strconv"

	"noisegate/catalog"
	"noisegate/internal/fault"
	"noisegate/sqlrewrite/syntax"
)

// having binds the filter over groups. It sees noisy values only (A10).
func (b *binder) having() error {
	if b.query.Having == nil {
		return nil
	}
	e, err := b.condition(blockScope{b}, b.query.Having)
	if err != nil {
		return err
	}
	b.bound.having = e
	return b.refuseWindow(b.query.Having, e, "HAVING")
}

// orderBy binds the order of the rows. It sees noisy values and keys only; ties, and everything when there is no ORDER BY, are
// ordered by key (A11). As in PostgreSQL, a name is first an output and then a column.
func (b *binder) orderBy() error {
	var err error
	b.bound.orderBy, err = b.orderings(b.query.OrderBy, b.orderItem)
	return err
}

// orderings binds the items of an ORDER BY, each key by what bind makes of it.
func (b *binder) orderings(items []syntax.OrderItem, bind func(syntax.Expr) (expr, error)) ([]ordering, error) {
	var all []ordering
	for _, item := range items {
		e, err := bind(item.Expr)
		if err != nil {
			return nil, err
		}
		if e, err = b.coerce(item.Expr, e, catalog.Text); err != nil {
			return nil, err
		}
		o := ordering{expr: e, descending: item.Descending}
		switch item.Nulls {
		case syntax.NullsDefault:
			o.nullsFirst = item.Descending
		case syntax.NullsFirst:
			o.nullsFirst = true
		case syntax.NullsLast:
		default:
			return nil, fault.Unsupported(b.position(item.Pos), "this order of NULLs", "")
		}
		all = append(all, o)
	}
	return all, nil
}

func (b *binder) orderItem(n syntax.Expr) (expr, error) {
	switch n := n.(type) {
	case *syntax.Literal:
		item, err := b.ordinal(n, "ORDER BY")
		if err != nil {
			return nil, err
		}
		for i, known := range b.query.Items {
			if known.Expr == item.Expr {
				return b.bound.outputs[i].expr, nil
			}
		}
	case *syntax.Column:
		if n.Qualifier != "" {
			break
		}
		for _, o := range b.bound.outputs {
			if o.name == n.Name {
				return o.expr, nil
			}
		}
	}
	return b.expression(blockScope{b}, n)
}

// limit binds LIMIT and OFFSET, which cut the noisy answer.
func (b *binder) limit() error {
	if b.query.DistinctOn != nil || b.query.Set != nil {
		return fault.Unsupported(b.position(b.query.Pos), "DISTINCT ON or a set operation here", "")
	}
	limit, err := b.rowCount(b.query.Limit, "LIMIT")
	if err != nil {
		return err
	}
	b.bound.limit = limit
	offset, err := b.rowCount(b.query.Offset, "OFFSET")
	if offset != nil {
		b.bound.offset = *offset
	}
	return err
}

// rowCount reads a constant number of rows; nil for none and for NULL.
func (b *binder) rowCount(n syntax.Expr, clause string) (*int64, error) {
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
	return nil, b.unsupported(n, clause+" that is not a whole number", "write "+clause+" 10")
}
