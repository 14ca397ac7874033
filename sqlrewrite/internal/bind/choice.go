package bind

import (
	"strings"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/domain"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/syntax"
)

// expressions binds a list.
func expressions(b *algebra.Binder, s domain.Scope, nodes []syntax.Expr) ([]algebra.Expr, error) {
	var all []algebra.Expr
	for _, n := range nodes {
		e, err := expression(b, s, n)
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

// choice binds CASE; the form with an operand is a comparison in every arm.
func choice(b *algebra.Binder, s domain.Scope, n *syntax.Case) (algebra.Expr, error) {
	var e algebra.Choice
	var results []algebra.Expr
	var nodes []syntax.Expr
	for _, w := range n.Whens {
		var cond algebra.Expr
		var err error
		if n.Operand == nil {
			cond, err = condition(b, s, w.Cond)
		} else {
			var l, r algebra.Expr
			l, r, err = comparable(b, s, w.Cond, syntax.Eq, n.Operand, w.Cond)
			cond = algebra.Binary{Op: syntax.Eq, L: l, R: r, T: catalog.Bool}
		}
		if err != nil {
			return nil, err
		}
		result, err := expression(b, s, w.Result)
		if err != nil {
			return nil, err
		}
		e.Arms = append(e.Arms, algebra.Arm{Cond: cond})
		results, nodes = append(results, result), append(nodes, w.Result)
	}
	if n.Else != nil {
		result, err := expression(b, s, n.Else)
		if err != nil {
			return nil, err
		}
		results, nodes = append(results, result), append(nodes, n.Else)
	}
	results, t, err := domain.Common(b, nodes, results)
	if err != nil {
		return nil, err
	}
	e.T = t
	for i := range e.Arms {
		e.Arms[i].Result = results[i]
	}
	if n.Else != nil {
		e.Otherwise = results[len(results)-1]
	}
	return domain.ErrorFree(b, s, n, e)
}

// cast binds a cast: constants are read here and now, released numbers and keys are cast by PostgreSQL.
func cast(b *algebra.Binder, s domain.Scope, n *syntax.Cast) (algebra.Expr, error) {
	if (n.Type == "varchar" || n.Type == "bpchar") && len(n.Mods) == 1 && n.Mods[0] > 0 {
		return cutText(b, s, n)
	}
	x, err := expression(b, s, n.X)
	if err != nil {
		return nil, err
	}
	t, err := castType(b, s, n)
	if err != nil {
		return nil, err
	}
	if err := domain.CastZone(b, n, x, t); err != nil {
		return nil, err
	}
	if c, isConstant := x.(algebra.Constant); isConstant && len(n.Mods) == 0 {
		switch {
		case c.Null:
			return algebra.Constant{T: t, Null: true}, nil
		case c.T == scalar.UnknownType, c.T == t, t == catalog.Text, c.T.IsNumber() && (t == catalog.Numeric || scalar.IsFloat(t)):
			return domain.Typed(b, n, c.Text, t)
		}
	}
	from := x.Typ()
	switch {
	case from == scalar.UnknownType, t == catalog.Text, scalar.FamilyOf(from) == scalar.FamilyOf(t) && t != catalog.Enum:
	case from == catalog.Bool && t == catalog.Int4:
	case from.IsTime() && t.IsTime():
	default:
		return nil, b.Mismatch(n, "cannot cast "+scalar.TypeName(from)+" to "+scalar.TypeName(t), "")
	}
	if x, err = domain.Coerce(b, n.X, x, t); err != nil {
		return nil, err
	}
	return domain.ErrorFree(b, s, n, algebra.Cast{X: x, T: t, Mods: n.Mods})
}

// castType returns the type to which a value is cast.
func castType(b *algebra.Binder, s domain.Scope, n *syntax.Cast) (catalog.Type, error) {
	t, ok := scalar.CastType(n.Type)
	if n.Type == "interval" && !s.Computes() {
		t, ok = scalar.IntervalType, true
	}
	if !ok || len(n.Mods) > 0 && t != catalog.Numeric {
		return t, b.Unsupported(n, "a cast to "+fault.Quote(n.Type), "cast to numeric, bigint, integer, double precision or text")
	}
	return t, nil
}

// cutText binds a cast to varchar(n), the first n characters, or to character(n), whose blanks at the end count nowhere.
func cutText(b *algebra.Binder, s domain.Scope, n *syntax.Cast) (algebra.Expr, error) {
	x, err := expression(b, s, &syntax.Cast{Pos: n.Pos, X: n.X, Type: "text"})
	if err != nil {
		return nil, err
	}
	most, blanks := int(n.Mods[0]), n.Type == "bpchar"
	if c, isConstant := x.(algebra.Constant); isConstant {
		if letters := []rune(c.Text); len(letters) > most {
			c.Text = string(letters[:most])
		}
		if blanks {
			c.Text = strings.TrimRight(c.Text, " ")
		}
		return c, nil
	}
	if s.Computes() || domain.MaxLetters(x) > int64(most) {
		x, err = applied(b, s, n, "left", x, algebra.NumberConstant(scalar.Number(int64(min(most, 1<<20))), false))
	} else if c, ok := x.(algebra.Computed); ok && blanks {
		cast, ok := c.Written.(algebra.Cast)
		blanks = !ok || cast.X.Typ() != catalog.Char // whose text has none at its end
	}
	if err == nil && blanks {
		x, err = applied(b, s, n, "rtrim", x)
	}
	return x, err
}

// applied is a function of operands that are bound.
func applied(b *algebra.Binder, s domain.Scope, at syntax.Expr, name string, args ...algebra.Expr) (algebra.Expr, error) {
	n := &syntax.Call{Pos: at.At(), Name: name}
	for range args {
		n.Args = append(n.Args, at)
	}
	e, err := domain.CallOf(b, n, args)
	if err != nil {
		return nil, err
	}
	return domain.ErrorFree(b, s, at, e)
}
