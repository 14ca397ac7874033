package sqlrewrite

import (
	"strconv"

	"noisegate/internal/fault"
	"noisegate/sqlrewrite/syntax"
)

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
