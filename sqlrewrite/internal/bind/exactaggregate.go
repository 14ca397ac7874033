package bind

import (
	"noisegate/catalog"
	"noisegate/sqlrewrite/internal/algebra"
	"noisegate/sqlrewrite/internal/domain"
	"noisegate/sqlrewrite/internal/scalar"
	"noisegate/sqlrewrite/syntax"
)

func exactAggregateNames() []string {
	var names []string
	for name := range domain.ExactAggregates {
		names = append(names, name)
	}
	return names
}

// exactAggregate binds an aggregate over rows that hold nothing private.
func exactAggregate(b *algebra.Binder, s domain.Scope, n *syntax.Call) (algebra.AggregateCall, error) {
	form := domain.ExactAggregates[n.Name]
	e := algebra.AggregateCall{Name: n.Name, Star: n.Star, Distinct: n.Distinct}
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
	for _, child := range e.Children() {
		if holdsAggregate(child) {
			return e, b.Unsupported(n, "an aggregate inside an aggregate", "compute the inner one in a subquery")
		}
	}
	return e, nil
}

// typeAggregate checks the arguments of an aggregate and finds its type.
func typeAggregate(b *algebra.Binder, n *syntax.Call, form domain.AggregateForm, e *algebra.AggregateCall) error {
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
	of := scalar.UnknownType
	switch {
	case within > 0:
		of = e.Within[0].Expr.Typ()
	case want > 0:
		of = e.Args[0].Typ()
	}
	switch form {
	case domain.CountForm:
		e.T = catalog.Int8
		return nil
	case domain.SumForm, domain.MeanForm, domain.SpreadForm, domain.QuantileForm, domain.MedianForm:
		if !of.IsNumber() {
			return wrong()
		}
		e.T = numericOf(form, of)
	case domain.ExtremeForm:
		if scalar.FamilyOf(of) == scalar.BoolFamily || scalar.FamilyOf(of) == scalar.UuidFamily {
			return wrong()
		}
		e.T = of
	case domain.OrderedForm, domain.ModeForm:
		e.T = of
	case domain.BooleanForm:
		if of != catalog.Bool {
			return wrong()
		}
		e.T = catalog.Bool
	case domain.PairForm, domain.PairCountForm:
		if !of.IsNumber() || !e.Args[1].Typ().IsNumber() {
			return wrong()
		}
		if e.T = catalog.Float8; form == domain.PairCountForm {
			e.T = catalog.Int8
		}
	case domain.JoinForm:
		if scalar.FamilyOf(of) != scalar.TextFamily || scalar.FamilyOf(e.Args[1].Typ()) != scalar.TextFamily {
			return wrong()
		}
		e.T = catalog.Text
	}
	if (form == domain.QuantileForm || form == domain.OrderedForm) && !isFraction(e.Args[0]) {
		return b.Unsupported(n.Args[0], "a fraction that is not a constant from 0 to 1", "write percentile_cont(0.5)")
	}
	return nil
}

func numericOf(form domain.AggregateForm, t catalog.Type) catalog.Type {
	switch form {
	case domain.SumForm:
		return sumType(t)
	case domain.QuantileForm, domain.MedianForm:
		return catalog.Float8
	default:
		return meanType(t)
	}
}

// isFraction reports whether an expression is a constant from 0 to 1.
func isFraction(e algebra.Expr) bool {
	c, ok := e.(algebra.Constant)
	v, number := scalar.ParseNumber(c.Text)
	return ok && !c.Null && number && v.Sign() >= 0 && v.Cmp(scalar.One()) <= 0
}

// holdsAggregate reports whether an aggregate that is no window function's is part of an expression.
func holdsAggregate(e algebra.Expr) bool {
	if _, ok := e.(algebra.AggregateCall); ok {
		return true
	}
	if w, ok := e.(algebra.WindowCall); ok {
		for _, child := range w.Children() {
			if holdsAggregate(child) {
				return true
			}
		}
		return false
	}
	for _, child := range algebra.Children(e) {
		if holdsAggregate(child) {
			return true
		}
	}
	return false
}
