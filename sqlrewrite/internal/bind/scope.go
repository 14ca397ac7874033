package bind

import (
	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/domain"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/steps"
	"noisegate.example/sqlrewrite/syntax"
)

// rowScope is below the aggregates: WHERE, FILTER and the arguments of aggregates. Every expression in it must be error-free on any
// row that PostgreSQL can store.
type rowScope struct{ *algebra.Binder }

func (s rowScope) Column(n *syntax.Column) (algebra.Expr, error) {
	c, err := column(s.Binder, n)
	if err != nil {
		return nil, err
	}
	if c.Identity() {
		return nil, fault.UnitColumn(s.At(n), c.Name)
	}
	return algebra.Column{Of: c}, nil
}

func (s rowScope) Call(n *syntax.Call) (algebra.Expr, error) {
	f, err := domain.Function(s.Binder, n)
	if err != nil {
		return nil, err
	}
	if f.IsAggregate() {
		return nil, s.Unsupported(n, "an aggregate inside WHERE, FILTER or another aggregate", "use HAVING, or FILTER (WHERE ...)")
	}
	return call(s.Binder, s, n)
}

func (rowScope) Computes() bool { return false }

// blockScope is above the aggregates: the select list, HAVING and ORDER BY. Columns are group keys, calls may be aggregates.
type blockScope struct{ *algebra.Binder }

func (s blockScope) Column(n *syntax.Column) (algebra.Expr, error) {
	c, err := column(s.Binder, n)
	if err != nil {
		return nil, err
	}
	if key, ok := keyValue(s.Binder, algebra.Column{Of: c}); ok {
		return key, nil
	}
	if c.Unit {
		return nil, fault.UnitColumn(s.At(n), c.Name)
	}
	return nil, fault.NotGrouped(s.At(n), c.Name).WithPart(scalar.NameText(c.Name))
}

func (s blockScope) Call(n *syntax.Call) (algebra.Expr, error) {
	switch {
	case n.Name == syntax.Grouping && s.Level != nil:
		return groupingOf(s.Binder, s, n)
	case n.Name == syntax.Grouping:
		return groupingCall(s.Binder, s, n, s.isKey)
	}
	if n.Over != nil {
		return windowFunction(s.Binder, s, s.Query.Windows, n)
	}
	f, err := domain.Function(s.Binder, n)
	if err != nil {
		return nil, err
	}
	switch f.Kind {
	case domain.Aggregate:
		return aggregate(s.Binder, n)
	case domain.RefusedAggregate:
		return nil, s.Unsupported(n, "aggregate "+n.Name, f.Hint)
	default:
		return call(s.Binder, s, n)
	}
}

func (blockScope) Computes() bool { return true }

// expression binds n in scope s.
func expression(b *algebra.Binder, s domain.Scope, n syntax.Expr) (algebra.Expr, error) {
	defer steps.Visit(b.Steps()).Leave()
	switch above := s.(type) {
	case blockScope:
		if key, ok := above.computedKey(n); ok {
			return key, nil
		}
	case *grouping:
		if key, ok := above.repeated(n); ok {
			return key, nil
		}
	}
	switch n := n.(type) {
	case *syntax.Literal:
		return b.Literal(n)
	case *syntax.Column:
		return s.Column(n)
	case *syntax.Call:
		return s.Call(n)
	case *syntax.Unary:
		return unary(b, s, n)
	case *syntax.Binary:
		return binary(b, s, n)
	case *syntax.In:
		return in(b, s, n)
	case *syntax.Between:
		return between(b, s, n)
	case *syntax.Is:
		return is(b, s, n)
	case *syntax.IsDistinct:
		l, r, err := comparable(b, s, n, "IS DISTINCT FROM", n.L, n.R)
		return algebra.Distinct{L: l, R: r, Not: n.Not}, err
	case *syntax.Like:
		return like(b, s, n)
	case *syntax.Case:
		return choice(b, s, n)
	case *syntax.Cast:
		return cast(b, s, n)
	case *syntax.InQuery, *syntax.Exists, *syntax.Scalar:
		return queryInside(b, s, n)
	case *syntax.Star:
		return nil, b.Unsupported(n, "* inside an expression", "name the columns")
	default:
		return nil, b.Unsupported(n, "this expression", "")
	}
}

// queryInside binds a query inside an expression. Rows take each kind, released groups too, and a block takes one value where
// [algebra.Binder.Value] is set.
func queryInside(b *algebra.Binder, s domain.Scope, n syntax.Expr) (algebra.Expr, error) {
	if in, ok := s.(postScope); ok {
		return in.subquery(n)
	}
	if x := withoutFrom(n); x != nil {
		return expression(b, s, x)
	}
	_, rows := s.(rowScope)
	_, block := s.(blockScope)
	switch n := n.(type) {
	case *syntax.InQuery:
		if rows {
			return inQuery(b, n)
		}
		return nil, b.Unsupported(n, "IN (SELECT ...) in this place", "move it to WHERE")
	case *syntax.Exists:
		if rows {
			return exists(b, n)
		}
		return nil, b.Unsupported(n, "EXISTS in this place", "move it to WHERE")
	case *syntax.Scalar:
		if rows {
			return scalarQuery(b, n)
		}
		if block && b.Value != nil {
			return b.Value(n)
		}
		return nil, refuseScalar(b, n)
	default:
		panic("sqlrewrite: no query inside an expression")
	}
}

// settled binds an expression to which nothing around it gives a type: a string is then a text.
func settled(b *algebra.Binder, s domain.Scope, n syntax.Expr) (algebra.Expr, error) {
	e, err := expression(b, s, n)
	if err != nil {
		return nil, err
	}
	return domain.Coerce(b, n, e, catalog.Text)
}

// filter binds a clause that keeps rows or groups, before window functions; nil for none.
func filter(b *algebra.Binder, s domain.Scope, n syntax.Expr, clause string) (algebra.Expr, error) {
	if n == nil {
		return nil, nil
	}
	e, err := condition(b, s, n)
	if err != nil {
		return nil, err
	}
	return e, refuseWindow(b, n, e, clause)
}

// condition binds a boolean expression.
func condition(b *algebra.Binder, s domain.Scope, n syntax.Expr) (algebra.Expr, error) {
	e, err := expression(b, s, n)
	if err != nil {
		return nil, err
	}
	if e, err = domain.Coerce(b, n, e, catalog.Bool); err != nil {
		return nil, err
	}
	if e.Typ() != catalog.Bool {
		return nil, b.Mismatch(n, "a condition must be boolean, not "+scalar.TypeName(e.Typ()), "compare it with something")
	}
	return e, nil
}
