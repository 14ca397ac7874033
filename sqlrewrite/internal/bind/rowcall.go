package bind

import (
	"noisegate/sqlrewrite/internal/algebra"
	"noisegate/sqlrewrite/internal/domain"
	"noisegate/sqlrewrite/internal/scalar"
	"noisegate/sqlrewrite/syntax"
)

// rowCall binds a function over the columns of a row: its types, then its total form.
func rowCall(b *algebra.Binder, s domain.Scope, n *syntax.Call) (algebra.Expr, error) {
	if n.Star || n.Distinct || n.Filter != nil || len(n.OrderBy)+len(n.Within) > 0 {
		return nil, b.Mismatch(n, n.Name+" is not an aggregate", "")
	}
	args := make([]algebra.Expr, len(n.Args))
	for i, arg := range n.Args {
		e, err := expression(b, s, arg)
		if err != nil {
			return nil, err
		}
		args[i] = e
	}
	e, err := typedCall(b, n, args)
	if err != nil {
		return nil, err
	}
	return domain.Total(b, s, n, e)
}

// typedCall gives a call the types that PostgreSQL gives it.
func typedCall(b *algebra.Binder, n *syntax.Call, args []algebra.Expr) (algebra.Expr, error) {
	switch n.Name {
	case "coalesce", "greatest", "least":
		if len(args) == 0 {
			return nil, domain.Arity(b, n, "at least one argument")
		}
		args, t, err := common(b, n.Args, args)
		return algebra.Call{Name: n.Name, Args: args, T: t}, err
	case "nullif":
		if len(args) != 2 {
			return nil, domain.Arity(b, n, "two arguments")
		}
		l, r, err := unify(b, n, syntax.Eq, n.Args[0], n.Args[1], args[0], args[1])
		if err == nil && scalar.IsFloat(r.Typ()) && !scalar.IsFloat(l.Typ()) {
			err = b.Unsupported(n, "nullif of a "+scalar.TypeName(l.Typ())+" and a "+scalar.TypeName(r.Typ()), "cast the first to double precision")
		}
		if err != nil {
			return nil, err
		}
		return algebra.Call{Name: n.Name, Args: []algebra.Expr{l, r}, T: domain.NullifType(l.Typ(), r.Typ())}, nil
	case "abs", "sign", "round", "trunc", "floor", "ceil", "ceiling", "sqrt", "ln", "log", "log10", "exp", "power", "pow", "mod", "div", "width_bucket":
		return domain.MathCall(b, n, args)
	case "extract", "date_part", "date_trunc":
		return domain.TimeCall(b, n, args)
	default:
		return domain.TextCall(b, n, args)
	}
}
