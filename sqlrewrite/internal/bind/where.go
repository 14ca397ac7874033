package bind

import (
	"fmt"
	"strings"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/domain"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/syntax"
)

// where binds the row filter. Its logic is PostgreSQL's three-valued one; nothing in it can raise an error on any row.
func where(b *algebra.Binder) error {
	if b.Query.Where == nil {
		return nil
	}
	e, err := rowCondition(b, b.Query.Where)
	if !holds(b.Query.Where, e) {
		b.Bound.Where = e
	}
	return err
}

func unary(b *algebra.Binder, s domain.Scope, n *syntax.Unary) (algebra.Expr, error) {
	if n.Op == syntax.Not {
		x, err := condition(b, s, n.X)
		return algebra.Not{X: x}, err
	}
	x, err := expression(b, s, n.X)
	if err != nil {
		return nil, err
	}
	if x.Typ() == scalar.UnknownType {
		if x, err = domain.Coerce(b, n.X, x, catalog.Float8); err != nil {
			return nil, err
		}
	}
	if !x.Typ().IsNumber() {
		return nil, b.Mismatch(n, "there is no operator "+string(n.Op)+" "+scalar.TypeName(x.Typ()), "")
	}
	if n.Op == syntax.Add {
		return x, nil
	}
	if c, ok := x.(algebra.Constant); ok && !c.Null {
		if v, ok := scalar.ParseNumber(c.Text); ok { // not NaN, nor Infinity
			return algebra.NumberConstant(v.Neg(v), !c.T.IsInteger()), nil
		}
	}
	return domain.ErrorFree(b, s, n, algebra.Negate{X: x, T: x.Typ()})
}

func binary(b *algebra.Binder, s domain.Scope, n *syntax.Binary) (algebra.Expr, error) {
	switch n.Op {
	case syntax.And, syntax.Or:
		l, err := condition(b, s, n.L)
		if err != nil {
			return nil, err
		}
		r, err := condition(b, s, n.R)
		return algebra.Binary{Op: n.Op, L: l, R: r, T: catalog.Bool}, err
	case syntax.Eq, syntax.Ne, syntax.Lt, syntax.Le, syntax.Gt, syntax.Ge:
		l, r, err := comparable(b, s, n, n.Op, n.L, n.R)
		return algebra.Binary{Op: n.Op, L: l, R: r, T: catalog.Bool}, err
	case syntax.Add, syntax.Subtract, syntax.Multiply, syntax.Divide, syntax.Modulo, syntax.Concat:
		l, err := expression(b, s, n.L)
		if err != nil {
			return nil, err
		}
		r, err := expression(b, s, n.R)
		if err != nil {
			return nil, err
		}
		e, err := domain.Arithmetic(b, n, l, r)
		if err != nil {
			return nil, err
		}
		return domain.ErrorFree(b, s, n, e)
	case syntax.Power:
		return call(b, s, &syntax.Call{Pos: n.Pos, Name: "power", Args: []syntax.Expr{n.L, n.R}})
	default:
		return nil, b.Unsupported(n, "operator "+string(n.Op), "")
	}
}

// comparable binds two operands that compare with each other.
func comparable(b *algebra.Binder, s domain.Scope, n syntax.Expr, op syntax.Operator, ln, rn syntax.Expr) (l, r algebra.Expr, err error) {
	if l, err = expression(b, s, ln); err != nil {
		return nil, nil, err
	}
	if r, err = expression(b, s, rn); err != nil {
		return nil, nil, err
	}
	l, r, err = domain.Unify(b, n, op, ln, rn, l, r)
	if err != nil || s.Computes() {
		return l, r, err
	}
	return besideFloat(l, r), besideFloat(r, l), nil
}

// besideFloat is a computed numeric that is compared with a float, in double precision: PostgreSQL would cast it, and raise an error where
// it does not fit.
func besideFloat(e, other algebra.Expr) algebra.Expr {
	c, ok := e.(algebra.Computed)
	if !ok || c.Within == nil || c.ErrorFree.Typ() != catalog.Numeric || !scalar.IsFloat(algebra.CarrierOf(other)) {
		return e
	}
	o := domain.Operand{X: c.ErrorFree, Range: c.Within, Printed: c.Printed}
	cast := o.In(catalog.Float8)
	cast.X = algebra.Guard{X: c.ErrorFree, Clamped: cast.X}
	return domain.ComputedOf(c.Written, cast)
}

func in(b *algebra.Binder, s domain.Scope, n *syntax.In) (algebra.Expr, error) {
	x, err := expression(b, s, n.X)
	if err != nil {
		return nil, err
	}
	e := algebra.In{Not: n.Not}
	for _, item := range n.List {
		v, err := expression(b, s, item)
		if err != nil {
			return nil, err
		}
		if x, v, err = domain.Unify(b, item, syntax.Eq, n.X, item, x, v); err != nil {
			return nil, err
		}
		e.List = append(e.List, v)
	}
	e.X = x
	if s.Computes() {
		return e, nil
	}
	for i, v := range e.List {
		e.List[i] = besideFloat(v, x)
	}
	for _, v := range e.List {
		e.X = besideFloat(e.X, v)
	}
	return e, nil
}

// between writes BETWEEN as the two comparisons that SQL defines it to be.
func between(b *algebra.Binder, s domain.Scope, n *syntax.Between) (algebra.Expr, error) {
	within := func(lo, hi syntax.Expr) (algebra.Expr, error) {
		x1, l, err := comparable(b, s, n, syntax.Ge, n.X, lo)
		if err != nil {
			return nil, err
		}
		x2, h, err := comparable(b, s, n, syntax.Le, n.X, hi)
		return algebra.Binary{Op: syntax.And, T: catalog.Bool,
			L: algebra.Binary{Op: syntax.Ge, L: x1, R: l, T: catalog.Bool}, R: algebra.Binary{Op: syntax.Le, L: x2, R: h, T: catalog.Bool}}, err
	}
	e, err := within(n.Lo, n.Hi)
	if err != nil {
		return nil, err
	}
	if n.Symmetric {
		swapped, err := within(n.Hi, n.Lo)
		if err != nil {
			return nil, err
		}
		e = algebra.Binary{Op: syntax.Or, L: e, R: swapped, T: catalog.Bool}
	}
	if n.Not {
		e = algebra.Not{X: e}
	}
	return e, nil
}

func is(b *algebra.Binder, s domain.Scope, n *syntax.Is) (algebra.Expr, error) {
	if n.What != syntax.IsNull {
		x, err := condition(b, s, n.X)
		return algebra.Is{X: x, What: n.What, Not: n.Not}, err
	}
	if p, ok, err := presenceOf(b, s, n.X); err != nil || ok && len(p.of) > 0 {
		return presenceTest(b, p, n.Not), err
	}
	x, err := settled(b, s, n.X)
	return algebra.Is{X: x, What: n.What, Not: n.Not}, err
}

// These bound the work of one LIKE on one row (A32): matching can take time in the power of the number of % signs, and at each character of
// a text as long as the pattern.
const (
	maxWildcards = 8
	MaxPattern   = 200 // bytes
)

// like takes constant patterns only, and checks them: PostgreSQL raises an error for a pattern that ends in its escape
// character, but only on rows that get that far.
func like(b *algebra.Binder, s domain.Scope, n *syntax.Like) (algebra.Expr, error) {
	x, err := settled(b, s, n.X)
	if err != nil {
		return nil, err
	}
	if scalar.FamilyOf(x.Typ()) != scalar.TextFamily {
		return nil, b.Mismatch(n, "a pattern needs text, not "+scalar.TypeName(x.Typ()), "")
	}
	literal, ok := n.Pattern.(*syntax.Literal)
	if !ok || literal.Kind != syntax.StringLiteral {
		return nil, b.Unsupported(n.Pattern, "a pattern that is not a string constant", "write the pattern as 'a%'")
	}
	if len(literal.Text) > MaxPattern {
		return nil, fault.TooComplex(b.At(n.Pattern), fmt.Sprintf("the pattern has more than %d bytes", MaxPattern))
	}
	if n.Language != syntax.LikePattern {
		return regex(b, s, n, x, literal)
	}
	escapes := len(literal.Text) - len(strings.TrimRight(literal.Text, `\`))
	if escapes%2 == 1 {
		return nil, b.Mismatch(n.Pattern, "the pattern "+fault.Quote(literal.Text)+" ends with its escape character", `write \\ for a backslash`)
	}
	if strings.Count(literal.Text, "%") > maxWildcards {
		return nil, fault.TooComplex(b.At(n.Pattern), "the pattern has more than 8 wildcards %")
	}
	pattern := algebra.Constant{T: catalog.Text, Text: literal.Text}
	return algebra.Like{X: x, Pattern: pattern, CaseInsensitive: n.CaseInsensitive, Not: n.Not}, nil
}

// regex takes the patterns that [domain.CheckRegex] takes. Below the aggregates a text counts by its first characters, as it does for every
// function of texts (A32).
func regex(b *algebra.Binder, s domain.Scope, n *syntax.Like, x algebra.Expr, literal *syntax.Literal) (algebra.Expr, error) {
	text := literal.Text
	if n.Language == syntax.SimilarPattern {
		text = domain.SimilarRegex(text)
	}
	if err := domain.CheckRegex(text); err != nil {
		return nil, b.Unsupported(n.Pattern, "the pattern "+fault.Quote(literal.Text), err.Error())
	}
	if !s.Computes() {
		o, err := domain.OperandOf(b, n.X, x)
		if err != nil {
			return nil, err
		}
		x = domain.ComputedOf(x, o)
	}
	return algebra.Like{X: x, Pattern: algebra.Constant{T: catalog.Text, Text: text}, Regex: true, CaseInsensitive: n.CaseInsensitive,
		Not: n.Not}, nil
}
