package sqlrewrite

import (
	"fmt"
	"strings"

	"noisegate/catalog"
	"noisegate/internal/fault"
	"noisegate/sqlrewrite/syntax"
)

// where binds the row filter. Its logic is PostgreSQL's three-valued one; nothing in it can raise an error on any row.
func (b *binder) where() error {
	if b.query.Where == nil {
		return nil
	}
	e, err := b.rowCondition(b.query.Where)
	b.bound.where = e
	return err
}

func (b *binder) unary(s scope, n *syntax.Unary) (expr, error) {
	if n.Op == syntax.Not {
		x, err := b.condition(s, n.X)
		return not{x: x}, err
	}
	x, err := b.expression(s, n.X)
	if err != nil {
		return nil, err
	}
	if x.typ() == unknownType {
		if x, err = b.coerce(n.X, x, catalog.Float8); err != nil {
			return nil, err
		}
	}
	if !x.typ().IsNumber() {
		return nil, b.mismatch(n, "there is no operator "+string(n.Op)+" "+typeName(x.typ()), "")
	}
	if n.Op == syntax.Add {
		return x, nil
	}
	if c, ok := x.(constant); ok && !c.null {
		if v, ok := parseNumber(c.text); ok { // not NaN, nor Infinity
			return numberConstant(v.Neg(v), !c.t.IsInteger()), nil
		}
	}
	return b.total(s, n, negate{x: x, t: x.typ()})
}

func (b *binder) binary(s scope, n *syntax.Binary) (expr, error) {
	switch n.Op {
	case syntax.And, syntax.Or:
		l, err := b.condition(s, n.L)
		if err != nil {
			return nil, err
		}
		r, err := b.condition(s, n.R)
		return binary{op: n.Op, l: l, r: r, t: catalog.Bool}, err
	case syntax.Eq, syntax.Ne, syntax.Lt, syntax.Le, syntax.Gt, syntax.Ge:
		l, r, err := b.comparable(s, n, n.Op, n.L, n.R)
		return binary{op: n.Op, l: l, r: r, t: catalog.Bool}, err
	case syntax.Add, syntax.Subtract, syntax.Multiply, syntax.Divide, syntax.Modulo, syntax.Concat:
		l, err := b.expression(s, n.L)
		if err != nil {
			return nil, err
		}
		r, err := b.expression(s, n.R)
		if err != nil {
			return nil, err
		}
		e, err := b.arithmetic(n, l, r)
		if err != nil {
			return nil, err
		}
		return b.total(s, n, e)
	default:
		return nil, b.unsupported(n, "operator "+string(n.Op), "")
	}
}

// comparable binds two operands that compare with each other.
func (b *binder) comparable(s scope, n syntax.Expr, op syntax.Operator, ln, rn syntax.Expr) (l, r expr, err error) {
	if l, err = b.expression(s, ln); err != nil {
		return nil, nil, err
	}
	if r, err = b.expression(s, rn); err != nil {
		return nil, nil, err
	}
	l, r, err = b.unify(n, op, ln, rn, l, r)
	if err != nil || s.computes() {
		return l, r, err
	}
	return besideFloat(l, r), besideFloat(r, l), nil
}

// besideFloat is a computed numeric that is compared with a float, in double precision: PostgreSQL would cast it, and raise an error where it does not fit.
func besideFloat(e, other expr) expr {
	c, ok := e.(computed)
	if !ok || c.within == nil || c.total.typ() != catalog.Numeric || !isFloat(carrierOf(other)) {
		return e
	}
	o := operand{x: c.total, extent: c.within, printed: c.printed}
	cast := o.in(catalog.Float8)
	cast.x = guard{x: c.total, clamped: cast.x}
	return computedOf(c.written, cast)
}

// unify gives the constants among l and r the other's type and checks that the two compare under op.
func (b *binder) unify(n syntax.Expr, op syntax.Operator, ln, rn syntax.Expr, l, r expr) (expr, expr, error) {
	if l.typ() == unknownType && r.typ() == unknownType {
		l, _ = b.coerce(ln, l, catalog.Text) // any string is text
	}
	l, err := b.coerce(ln, l, r.typ())
	if err != nil {
		return nil, nil, err
	}
	if r, err = b.coerce(rn, r, l.typ()); err != nil {
		return nil, nil, err
	}
	if familyOf(l.typ()) != familyOf(r.typ()) {
		return nil, nil, b.noOperator(n, op, l, r)
	}
	if isFloat(l.typ()) && beyondFloat(r) || isFloat(r.typ()) && beyondFloat(l) {
		return nil, nil, b.unsupported(n, "comparing a floating-point value with a numeric column without fixed digits",
			"compare both with constants")
	}
	switch op {
	case syntax.Lt, syntax.Le, syntax.Gt, syntax.Ge:
		if l.typ() == catalog.Enum || r.typ() == catalog.Enum {
			return nil, nil, b.unsupported(n, "comparing the order of enum labels", "list the labels: IN ('a', 'b')")
		}
	default: // equality of labels is that of their texts
	}
	return l, r, nil
}

// beyondFloat reports whether an operand is a numeric column with values that float8 cannot hold: beside a float PostgreSQL casts
// it, and raises an error on rows with such a value.
func beyondFloat(e expr) bool {
	c, ok := e.(column)
	if !ok || c.of.Type != catalog.Numeric {
		return false
	}
	digits, fixed := scale(c)
	return !fixed || digits > 300 || (c.of.TypMod-4)>>16 > 300
}

func (b *binder) in(s scope, n *syntax.In) (expr, error) {
	x, err := b.expression(s, n.X)
	if err != nil {
		return nil, err
	}
	e := in{not: n.Not}
	for _, item := range n.List {
		v, err := b.expression(s, item)
		if err != nil {
			return nil, err
		}
		if x, v, err = b.unify(item, syntax.Eq, n.X, item, x, v); err != nil {
			return nil, err
		}
		e.list = append(e.list, v)
	}
	e.x = x
	if s.computes() {
		return e, nil
	}
	for i, v := range e.list {
		e.list[i] = besideFloat(v, x)
	}
	for _, v := range e.list {
		e.x = besideFloat(e.x, v)
	}
	return e, nil
}

// between writes BETWEEN as the two comparisons that SQL defines it to be.
func (b *binder) between(s scope, n *syntax.Between) (expr, error) {
	within := func(lo, hi syntax.Expr) (expr, error) {
		x1, l, err := b.comparable(s, n, syntax.Ge, n.X, lo)
		if err != nil {
			return nil, err
		}
		x2, h, err := b.comparable(s, n, syntax.Le, n.X, hi)
		return binary{op: syntax.And, t: catalog.Bool,
			l: binary{op: syntax.Ge, l: x1, r: l, t: catalog.Bool}, r: binary{op: syntax.Le, l: x2, r: h, t: catalog.Bool}}, err
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
		e = binary{op: syntax.Or, l: e, r: swapped, t: catalog.Bool}
	}
	if n.Not {
		e = not{x: e}
	}
	return e, nil
}

func (b *binder) is(s scope, n *syntax.Is) (expr, error) {
	if n.What != syntax.IsNull {
		x, err := b.condition(s, n.X)
		return is{x: x, what: n.What, not: n.Not}, err
	}
	if x, ok := b.identityIn(s, n.X); ok {
		return is{x: x, what: n.What, not: n.Not}, nil
	}
	x, err := b.expression(s, n.X)
	if err != nil {
		return nil, err
	}
	x, err = b.coerce(n.X, x, catalog.Text)
	return is{x: x, what: n.What, not: n.Not}, err
}

// These bound the work of one LIKE on one row (A32): matching can take time in the power of the number of % signs, and at each character of a
// text as long as the pattern.
const (
	maxWildcards = 8
	maxPattern   = 200 // bytes
)

// like takes constant patterns only, and checks them: PostgreSQL raises an error for a pattern that ends in its escape
// character, but only on rows that get that far.
func (b *binder) like(s scope, n *syntax.Like) (expr, error) {
	x, err := b.expression(s, n.X)
	if err != nil {
		return nil, err
	}
	if x, err = b.coerce(n.X, x, catalog.Text); err != nil {
		return nil, err
	}
	if familyOf(x.typ()) != textFamily {
		return nil, b.mismatch(n, "a pattern needs text, not "+typeName(x.typ()), "")
	}
	literal, ok := n.Pattern.(*syntax.Literal)
	if !ok || literal.Kind != syntax.StringLiteral {
		return nil, b.unsupported(n.Pattern, "a pattern that is not a string constant", "write the pattern as 'a%'")
	}
	if len(literal.Text) > maxPattern {
		return nil, fault.TooComplex(b.at(n.Pattern), fmt.Sprintf("the pattern has more than %d bytes", maxPattern))
	}
	if n.Language != syntax.LikePattern {
		return b.regex(s, n, x, literal)
	}
	escapes := len(literal.Text) - len(strings.TrimRight(literal.Text, `\`))
	if escapes%2 == 1 {
		return nil, b.mismatch(n.Pattern, "the pattern "+fault.Quote(literal.Text)+" ends with its escape character", `write \\ for a backslash`)
	}
	if strings.Count(literal.Text, "%") > maxWildcards {
		return nil, fault.TooComplex(b.at(n.Pattern), "the pattern has more than 8 wildcards %")
	}
	pattern := constant{t: catalog.Text, text: literal.Text}
	return like{x: x, pattern: pattern, caseInsensitive: n.CaseInsensitive, not: n.Not}, nil
}

// regex takes the patterns that [checkRegex] takes. Below the aggregates a text counts by its first characters, as it does for every function
// of texts (A32).
func (b *binder) regex(s scope, n *syntax.Like, x expr, literal *syntax.Literal) (expr, error) {
	text := literal.Text
	if n.Language == syntax.SimilarPattern {
		text = similarRegex(text)
	}
	if err := checkRegex(text); err != nil {
		return nil, b.unsupported(n.Pattern, "the pattern "+fault.Quote(literal.Text), err.Error())
	}
	if !s.computes() {
		o, err := b.operandOf(n.X, x)
		if err != nil {
			return nil, err
		}
		x = computedOf(x, o)
	}
	return like{x: x, pattern: constant{t: catalog.Text, text: text}, regex: true, caseInsensitive: n.CaseInsensitive, not: n.Not}, nil
}

// operator is the operator that a like is.
func (e like) operator() string {
	if e.regex {
		return []string{"", "!"}[boolIndex(e.not)] + []string{"~", "~*"}[boolIndex(e.caseInsensitive)]
	}
	return []string{"", "NOT "}[boolIndex(e.not)] + []string{"LIKE", "ILIKE"}[boolIndex(e.caseInsensitive)]
}
