package sqlrewrite

import (
	"strings"

	"noisegate/catalog"
	"noisegate/internal/fault"
	"noisegate/sqlrewrite/syntax"
)

// scope says what the names inside an expression mean.
type scope interface {
	column(*syntax.Column) (expr, error)
	call(*syntax.Call) (expr, error)
	// computes is false below the aggregates, where every operation is printed in its total form: nothing may fail on a row's values.
	computes() bool
}

// rowScope is below the aggregates: WHERE, FILTER and the arguments of aggregates. Every expression in it must be total on any
// row that PostgreSQL can store.
type rowScope struct{ *binder }

func (s rowScope) column(n *syntax.Column) (expr, error) {
	c, err := s.binder.column(n)
	if err != nil {
		return nil, err
	}
	if c.identity() {
		return nil, fault.UnitColumn(s.at(n), c.Name)
	}
	return column{of: c}, nil
}

func (s rowScope) call(n *syntax.Call) (expr, error) {
	f, err := s.function(n)
	if err != nil {
		return nil, err
	}
	if f.kind == aggregate || f.kind == refusedAggregate {
		return nil, s.unsupported(n, "an aggregate inside WHERE, FILTER or another aggregate", "use HAVING, or FILTER (WHERE ...)")
	}
	return s.rowCall(s, n)
}

func (rowScope) computes() bool { return false }

// blockScope is above the aggregates: the select list, HAVING and ORDER BY. Columns are group keys, calls may be aggregates.
type blockScope struct{ *binder }

func (s blockScope) column(n *syntax.Column) (expr, error) {
	c, err := s.binder.column(n)
	if err != nil {
		return nil, err
	}
	if key, ok := s.keyOf(column{of: c}); ok {
		return key, nil
	}
	if c.unit {
		return nil, fault.UnitColumn(s.at(n), c.Name)
	}
	keys := []string{c.Name}
	for i := len(s.bound.keys) - 1; i >= 0; i-- {
		keys = append([]string{s.bound.keys[i].name}, keys...)
	}
	return nil, fault.NotGrouped(s.at(n), c.Name, "GROUP BY "+strings.Join(keys, ", "))
}

func (s blockScope) call(n *syntax.Call) (expr, error) {
	if n.Over != nil {
		return s.windowFunction(s, s.query.Windows, n)
	}
	f, err := s.function(n)
	if err != nil {
		return nil, err
	}
	switch f.kind {
	case aggregate:
		return s.aggregate(n)
	case refusedAggregate:
		return nil, s.unsupported(n, "aggregate "+n.Name, f.hint)
	case postFunction, rowFunction:
		return s.postCall(s, n)
	default:
		return nil, fault.UnknownFunction(s.at(n), n.Name, functionNames())
	}
}

func (blockScope) computes() bool { return true }

// expression binds n in scope s.
func (b *binder) expression(s scope, n syntax.Expr) (expr, error) {
	if in, ok := s.(layerScope); ok && holdsQuery(n) {
		return in.subquery(n)
	}
	if above, ok := s.(blockScope); ok {
		if key, ok := above.computedKey(n); ok {
			return key, nil
		}
	}
	switch n := n.(type) {
	case *syntax.Literal:
		return b.literal(n)
	case *syntax.Column:
		return s.column(n)
	case *syntax.Call:
		return s.call(n)
	case *syntax.Unary:
		return b.unary(s, n)
	case *syntax.Binary:
		return b.binary(s, n)
	case *syntax.In:
		return b.in(s, n)
	case *syntax.Between:
		return b.between(s, n)
	case *syntax.Is:
		return b.is(s, n)
	case *syntax.IsDistinct:
		l, r, err := b.comparable(s, n, "IS DISTINCT FROM", n.L, n.R)
		return distinct{l: l, r: r, not: n.Not}, err
	case *syntax.Like:
		return b.like(s, n)
	case *syntax.Case:
		return b.choice(s, n)
	case *syntax.Cast:
		return b.cast(s, n)
	case *syntax.InQuery:
		if _, rows := s.(rowScope); rows {
			return b.inQuery(n)
		}
		return nil, b.unsupported(n, "IN (SELECT ...) in this place", "move it to WHERE")
	case *syntax.Exists:
		if _, rows := s.(rowScope); rows {
			return b.exists(n)
		}
		return nil, b.unsupported(n, "EXISTS in this place", "move it to WHERE")
	case *syntax.Scalar:
		if _, rows := s.(rowScope); rows {
			return b.scalar(n)
		}
		return nil, b.refuseScalar(n)
	case *syntax.Star:
		return nil, b.unsupported(n, "* inside an expression", "name the columns")
	default:
		return nil, b.unsupported(n, "this expression", "")
	}
}

// condition binds a boolean expression.
func (b *binder) condition(s scope, n syntax.Expr) (expr, error) {
	e, err := b.expression(s, n)
	if err != nil {
		return nil, err
	}
	if e, err = b.coerce(n, e, catalog.Bool); err != nil {
		return nil, err
	}
	if e.typ() != catalog.Bool {
		return nil, b.mismatch(n, "a condition must be boolean, not "+typeName(e.typ()), "compare it with something")
	}
	return e, nil
}
