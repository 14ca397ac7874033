package sqlrewrite

import (
	"noisegate/catalog"
	"noisegate/internal/fault"
	"noisegate/sqlrewrite/syntax"
)

// The expressions of this file are taken over released values and group keys only (blockScope). They run after the noise, so
// errors in them say nothing about rows; but by then the query is paid for, so types are checked here.

// arithmetic types x op y.
func (b *binder) arithmetic(n *syntax.Binary, l, r expr) (expr, error) {
	want := r.typ()
	if want == unknownType {
		want = l.typ()
	}
	if n.Op == syntax.Concat {
		want = catalog.Text
	}
	l, err := b.coerce(n.L, l, want)
	if err != nil {
		return nil, err
	}
	if r, err = b.coerce(n.R, r, want); err != nil {
		return nil, err
	}
	if n.Op == syntax.Concat {
		if familyOf(l.typ()) != textFamily && familyOf(r.typ()) != textFamily {
			return nil, b.noOperator(n, n.Op, l, r)
		}
		return binary{op: n.Op, l: asText(l), r: asText(r), t: catalog.Text}, nil
	}
	if t, ok := timeArithmetic(n.Op, l.typ(), r.typ()); ok {
		return binary{op: n.Op, l: l, r: r, t: t}, nil
	}
	t := wider(l.typ(), r.typ())
	if !l.typ().IsNumber() || !r.typ().IsNumber() || n.Op == syntax.Modulo && isFloat(t) {
		return nil, b.noOperator(n, n.Op, l, r)
	}
	return binary{op: n.Op, l: l, r: r, t: t}, nil
}

// expressions binds a list.
func (b *binder) expressions(s scope, nodes []syntax.Expr) ([]expr, error) {
	var all []expr
	for _, n := range nodes {
		e, err := b.expression(s, n)
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

func asText(e expr) expr {
	if e.typ() == catalog.Text {
		return e
	}
	return cast{x: e, t: catalog.Text}
}

// choice binds CASE; the form with an operand is a comparison in every arm.
func (b *binder) choice(s scope, n *syntax.Case) (expr, error) {
	var e choice
	var results []expr
	var nodes []syntax.Expr
	for _, w := range n.Whens {
		var cond expr
		var err error
		if n.Operand == nil {
			cond, err = b.condition(s, w.Cond)
		} else {
			var l, r expr
			l, r, err = b.comparable(s, w.Cond, syntax.Eq, n.Operand, w.Cond)
			cond = binary{op: syntax.Eq, l: l, r: r, t: catalog.Bool}
		}
		if err != nil {
			return nil, err
		}
		result, err := b.expression(s, w.Result)
		if err != nil {
			return nil, err
		}
		e.arms = append(e.arms, arm{cond: cond})
		results, nodes = append(results, result), append(nodes, w.Result)
	}
	if n.Else != nil {
		result, err := b.expression(s, n.Else)
		if err != nil {
			return nil, err
		}
		results, nodes = append(results, result), append(nodes, n.Else)
	}
	results, t, err := b.common(nodes, results)
	if err != nil {
		return nil, err
	}
	e.t = t
	for i := range e.arms {
		e.arms[i].result = results[i]
	}
	if n.Else != nil {
		e.otherwise = results[len(results)-1]
	}
	return b.total(s, n, e)
}

// common gives expressions that stand for one another one type: that of the first with a type, the widest for numbers.
func (b *binder) common(nodes []syntax.Expr, all []expr) ([]expr, catalog.Type, error) {
	t := unknownType
	for i, e := range all {
		switch {
		case e.typ() == unknownType:
		case t == unknownType:
			t = e.typ()
		case familyOf(e.typ()) != familyOf(t):
			return nil, t, b.mismatch(nodes[i], "expected "+typeName(t)+", not "+typeName(e.typ()), "")
		case t.IsNumber():
			t = wider(t, e.typ())
		}
	}
	if t == unknownType || familyOf(t) == textFamily {
		t = catalog.Text
	}
	out := make([]expr, len(all))
	for i, e := range all {
		c, err := b.coerce(nodes[i], e, t)
		if err != nil {
			return nil, t, err
		}
		out[i] = c
	}
	return out, t, nil
}

// cast binds a cast: constants are read here and now, released numbers and keys are cast by PostgreSQL.
func (b *binder) cast(s scope, n *syntax.Cast) (expr, error) {
	x, err := b.expression(s, n.X)
	if err != nil {
		return nil, err
	}
	t, ok := castType(n.Type)
	if n.Type == "interval" && !s.computes() {
		t, ok = intervalType, true
	}
	if !ok || len(n.Mods) > 0 && t != catalog.Numeric {
		return nil, b.unsupported(n, "a cast to "+fault.Quote(n.Type), "cast to numeric, bigint, integer, double precision or text")
	}
	if c, isConstant := x.(constant); isConstant && len(n.Mods) == 0 {
		switch {
		case c.null:
			return constant{t: t, null: true}, nil
		case c.t == unknownType, c.t == t, t == catalog.Text, c.t.IsNumber() && (t == catalog.Numeric || isFloat(t)):
			return b.typed(n, c.text, t)
		}
	}
	from := x.typ()
	switch {
	case from == unknownType, t == catalog.Text, familyOf(from) == familyOf(t) && t != catalog.Enum:
	case from == catalog.Bool && t == catalog.Int4:
	case from.IsTime() && t.IsTime():
	default:
		return nil, b.mismatch(n, "cannot cast "+typeName(from)+" to "+typeName(t), "")
	}
	if x, err = b.coerce(n.X, x, t); err != nil {
		return nil, err
	}
	return b.total(s, n, cast{x: x, t: t, mods: n.Mods})
}

// castType names the types that casts may name.
func castType(name string) (catalog.Type, bool) {
	switch name {
	case "int2", "smallint":
		return catalog.Int2, true
	case "int4", "int", "integer":
		return catalog.Int4, true
	case "int8", "bigint":
		return catalog.Int8, true
	case "numeric", "decimal":
		return catalog.Numeric, true
	case "float4", "real":
		return catalog.Float4, true
	case "float8", "double precision":
		return catalog.Float8, true
	case "text", "varchar":
		return catalog.Text, true
	case "bool", "boolean":
		return catalog.Bool, true
	case "date":
		return catalog.Date, true
	case "timestamp":
		return catalog.Timestamp, true
	case "timestamptz":
		return catalog.Timestamptz, true
	case "uuid":
		return catalog.UUID, true
	default:
		return unknownType, false
	}
}

// postCall binds a function over released values, keys and public columns. It has PostgreSQL's types and runs as it is.
func (b *binder) postCall(s scope, n *syntax.Call) (expr, error) {
	if n.Star || n.Distinct || n.Filter != nil || len(n.OrderBy)+len(n.Within) > 0 {
		return nil, b.mismatch(n, n.Name+" is not an aggregate", "")
	}
	args, err := b.expressions(s, n.Args)
	if err != nil {
		return nil, err
	}
	return b.typedCall(n, args)
}

func (b *binder) arity(n *syntax.Call, want string) error {
	return b.mismatch(n, n.Name+" needs "+want, "")
}

func (b *binder) noFunction(n *syntax.Call, x expr) error {
	return b.mismatch(n, "there is no function "+n.Name+"("+typeName(x.typ())+")", "")
}
