package bind

import (
	"slices"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/domain"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/syntax"
)

// exactAggregate binds an aggregate over rows that hold nothing private.
func exactAggregate(b *algebra.Binder, s domain.Scope, n *syntax.Call) (algebra.Aggregate, error) {
	form := domain.BuiltinOf(n.Name).Form
	e := algebra.Aggregate{Name: n.Name, Star: n.Star, Distinct: n.Distinct}
	if n.Star && (n.Name != "count" || n.Distinct) {
		return e, b.Mismatch(n, n.Name+" needs an argument", "")
	}
	var err error
	if n.Filter != nil {
		if e.Filter, err = condition(b, s, n.Filter); err != nil {
			return e, err
		}
	}
	if e.Args, err = expressions(b, s, n.Args); err != nil {
		return e, err
	}
	bind := func(n syntax.Expr) (algebra.Expr, error) { return expression(b, s, n) }
	if e.Order, err = orderings(b, n.OrderBy, bind); err != nil {
		return e, err
	}
	if e.Within, err = orderings(b, n.Within, bind); err != nil {
		return e, err
	}
	if err := typeAggregate(b, n, form, &e); err != nil {
		return e, err
	}
	if slices.ContainsFunc(algebra.Children(e), holdsAggregate) {
		return e, b.Unsupported(n, "an aggregate inside an aggregate", "compute the inner one in a subquery")
	}
	return e, nil
}

// typeAggregate checks the arguments of an aggregate and finds its type.
func typeAggregate(b *algebra.Binder, n *syntax.Call, form domain.AggregateForm, e *algebra.Aggregate) error {
	wrong := func() error { return b.Mismatch(n, n.Name+" does not take these arguments", "") }
	want, within := form.Arguments(n.Star)
	if len(e.Args) != want || len(e.Within) != within || len(e.Order) > 0 && form != domain.JoinForm ||
		e.Distinct && (within > 0 || len(e.Order) > 0) {
		return wrong()
	}
	for i := range e.Args {
		var err error
		if e.Args[i], err = domain.Coerce(b, n.Args[i], e.Args[i], form.Constants()); err != nil {
			return err
		}
	}
	var of []catalog.Type
	for _, o := range e.Within {
		of = append(of, o.Expr.Typ())
	}
	if within == 0 {
		for _, x := range e.Args {
			of = append(of, x.Typ())
		}
	}
	var ok bool
	if e.T, ok = form.Result(of...); !ok {
		return wrong()
	}
	if (form == domain.QuantileForm || form == domain.OrderedForm) && !isFraction(e.Args[0]) {
		return b.Unsupported(n.Args[0], "a fraction that is not a constant from 0 to 1", "write percentile_cont(0.5)")
	}
	return nil
}

// isFraction reports whether an expression is a constant from 0 to 1.
func isFraction(e algebra.Expr) bool {
	c, ok := e.(algebra.Constant)
	v, number := scalar.ParseNumber(c.Text)
	return ok && !c.Null && number && v.Sign() >= 0 && v.Cmp(scalar.One()) <= 0
}

// holdsAggregate reports whether an aggregate that is no window function's is part of an expression.
func holdsAggregate(e algebra.Expr) bool {
	a, ok := e.(algebra.Aggregate)
	return ok && a.Over == nil || slices.ContainsFunc(algebra.Children(e), holdsAggregate)
}
