package bind

import (
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/domain"
	"noisegate.example/sqlrewrite/syntax"
)

// call binds a function of the table: its types, which are PostgreSQL's, and below the noise its error-free form.
func call(b *algebra.Binder, s domain.Scope, n *syntax.Call) (algebra.Expr, error) {
	if n.Star || n.Distinct || n.Filter != nil || len(n.OrderBy)+len(n.Within) > 0 {
		return nil, b.Mismatch(n, n.Name+" is not an aggregate", "")
	}
	args, err := expressions(b, s, n.Args)
	if err != nil {
		return nil, err
	}
	e, err := domain.CallOf(b, n, args)
	if err != nil {
		return nil, err
	}
	if _, isConstant := e.(algebra.Constant); isConstant {
		return e, nil
	}
	return domain.ErrorFree(b, s, n, e)
}
