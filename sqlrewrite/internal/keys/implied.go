package keys

import (
	"slices"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/syntax"
)

// Implied returns a condition on known columns alone that is true wherever e is; nil: only TRUE is known to be.
//
// It pushes NOT to the leaves. I(a AND b) is I(a) AND I(b), I(a OR b) is I(a) OR I(b); a leaf stays if it reads known columns alone, else
// it is TRUE. In three-valued logic NOT (a AND b) is true exactly where NOT a or NOT b is. AND and OR stay true where their operands are
// replaced by weaker ones.
func Implied(e algebra.Expr, known func(*algebra.Field) bool) algebra.Expr {
	return implied(e, known, false)
}

func implied(e algebra.Expr, known func(*algebra.Field) bool, negated bool) algebra.Expr {
	switch e := e.(type) {
	case nil:
		return nil
	case algebra.Not:
		return implied(e.X, known, !negated)
	case algebra.Binary:
		if e.Op != syntax.And && e.Op != syntax.Or {
			break
		}
		l, r := implied(e.L, known, negated), implied(e.R, known, negated)
		switch both := (e.Op == syntax.And) != negated; {
		case both && l == nil:
			return r
		case both && r == nil:
			return l
		case both:
			return algebra.Binary{Op: syntax.And, L: l, R: r, T: catalog.Bool}
		case l == nil || r == nil:
			return nil
		default:
			return algebra.Binary{Op: syntax.Or, L: l, R: r, T: catalog.Bool}
		}
	}
	if !readsOnly(e, known) {
		return nil
	}
	if negated {
		return algebra.Not{X: e}
	}
	return e
}

// readsOnly reports whether an expression is computed from known columns and constants alone.
func readsOnly(e algebra.Expr, known func(*algebra.Field) bool) bool {
	switch e := e.(type) {
	case algebra.Column:
		return known(e.Of)
	case algebra.Constant:
		return true
	case algebra.Bought, algebra.Exists, algebra.InRows, algebra.Aggregate, algebra.Subquery, algebra.KeyRef,
		algebra.EstimatorRef, algebra.Either:
		return false
	default:
		return !slices.ContainsFunc(algebra.Children(e), func(x algebra.Expr) bool { return !readsOnly(x, known) })
	}
}
