package domain

import (
	"math"
	"math/big"
	"strconv"
	"strings"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/syntax"
)

// Coerce gives a constant without a type the type t, and a number beside floats the type float8. Every other expression stays
// as it is. It fails when the text is no value of t.
func Coerce(b *algebra.Binder, at syntax.Expr, e algebra.Expr, t catalog.Type) (algebra.Expr, error) {
	if v, ok := e.(algebra.Bought); ok && v.T.IsNumber() {
		switch { // the argument is read as what it stands beside: then PostgreSQL casts no row's value
		case scalar.IsFloat(t):
			v.T = catalog.Float8
		case t == catalog.Numeric && scalar.IsFloat(v.T):
			v.T = t
		}
		return v, nil
	}
	c, ok := e.(algebra.Constant)
	if !ok || t == scalar.UnknownType {
		return e, nil
	}
	switch {
	case c.T == scalar.UnknownType && c.Null:
		return algebra.Constant{T: t, Null: true}, nil
	case c.T == scalar.UnknownType:
		return Typed(b, at, c.Text, t)
	case scalar.IsFloat(t) && c.T.IsNumber() && !c.Null:
		return Typed(b, at, c.Text, catalog.Float8)
	case t == catalog.Timestamptz && c.T.IsTime() && !c.Null:
		return Typed(b, at, c.Text, t) // not left to the session's time zone
	default:
		return e, nil
	}
}

// Typed reads text as a value of type t and gives its canonical spelling, so that PostgreSQL cannot fail on it.
func Typed(b *algebra.Binder, at syntax.Expr, text string, t catalog.Type) (algebra.Constant, error) {
	var canonical string
	var ok bool
	wanted := t
	switch t {
	case catalog.Int2, catalog.Int4, catalog.Int8:
		canonical, t, ok = algebra.IntegerText(text)
	case catalog.Numeric:
		var v *big.Rat
		if v, ok = scalar.ParseNumber(text); ok {
			canonical = scalar.DecimalText(v)
		}
	case catalog.Float4, catalog.Float8:
		if canonical, ok = scalar.FloatText(text); t == catalog.Float4 {
			canonical = realText(canonical)
		}
		t = catalog.Float8
	case catalog.Text, catalog.Enum:
		t, canonical, ok = catalog.Text, text, true
	case catalog.Char:
		canonical, ok = strings.TrimRight(text, " "), true
	case catalog.Bool:
		canonical, ok = scalar.BoolText(text)
	case catalog.Date, catalog.Timestamp, catalog.Timestamptz:
		canonical, t, ok = scalar.TimeText(text, t)
	case catalog.UUID:
		canonical, ok = scalar.UuidText(text)
	case scalar.IntervalType:
		canonical, ok = scalar.IntervalText(text)
	default:
		return algebra.Constant{}, b.Unsupported(at, "a constant of this type", "")
	}
	if wanted == catalog.Timestamptz && ok && !scalar.HasOffset(text) {
		if err := refuseZone(b, at, "a time without an offset"); err != nil {
			return algebra.Constant{}, err
		}
	}
	if within := scalar.RangeOf(text, wanted); !ok && within != "" {
		return algebra.Constant{}, b.Mismatch(at, fault.Quote(text)+" is out of range for a value of type "+string(wanted), within)
	}
	if !ok {
		return algebra.Constant{}, b.Mismatch(at, fault.Quote(text)+" is not a value of type "+string(wanted), scalar.ExampleOf(wanted))
	}
	return algebra.Constant{T: t, Text: canonical}, nil
}

// realText is the number of type real that PostgreSQL makes of one in double precision; that number itself where it is none.
func realText(text string) string {
	f, err := strconv.ParseFloat(text, 32)
	if err != nil || f == 0 || math.IsNaN(f) || math.IsInf(f, 0) {
		return text
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// Common gives expressions that stand for one another one type: that of the first with a type, the widest for numbers.
func Common(b *algebra.Binder, nodes []syntax.Expr, all []algebra.Expr) ([]algebra.Expr, catalog.Type, error) {
	t := scalar.UnknownType
	for i, e := range all {
		switch {
		case e.Typ() == scalar.UnknownType:
		case t == scalar.UnknownType:
			t = e.Typ()
		case scalar.FamilyOf(e.Typ()) != scalar.FamilyOf(t):
			return nil, t, b.Mismatch(nodes[i], "expected "+scalar.TypeName(t)+", not "+scalar.TypeName(e.Typ()), "")
		case t.IsNumber():
			t = scalar.Wider(t, e.Typ())
		}
	}
	if t == scalar.UnknownType || scalar.FamilyOf(t) == scalar.TextFamily {
		t = catalog.Text
	}
	out := make([]algebra.Expr, len(all))
	for i, e := range all {
		c, err := Coerce(b, nodes[i], e, t)
		if err != nil {
			return nil, t, err
		}
		out[i] = c
	}
	if err := mixedZone(b, nodes[0], out...); err != nil {
		return nil, t, err
	}
	return out, t, nil
}

// Unify gives the constants among l and r the other's type and checks that the two compare under op.
func Unify(b *algebra.Binder, n syntax.Expr, op syntax.Operator, ln, rn syntax.Expr, l, r algebra.Expr) (
	algebra.Expr, algebra.Expr, error,
) {
	if l.Typ() == scalar.UnknownType && r.Typ() == scalar.UnknownType {
		l, _ = Coerce(b, ln, l, catalog.Text) // any string is text
	}
	l, err := Coerce(b, ln, l, r.Typ())
	if err != nil {
		return nil, nil, err
	}
	if r, err = Coerce(b, rn, r, l.Typ()); err != nil {
		return nil, nil, err
	}
	if scalar.FamilyOf(l.Typ()) != scalar.FamilyOf(r.Typ()) {
		return nil, nil, b.NoOperator(n, op, l, r)
	}
	if err := mixedZone(b, n, l, r); err != nil {
		return nil, nil, err
	}
	for _, e := range [][2]algebra.Expr{{l, r}, {r, l}} {
		if scalar.IsFloat(e[0].Typ()) && BeyondFloat(e[1]) {
			return nil, nil, b.Unsupported(n, "comparing a floating-point value with a numeric column that may be beyond it",
				"compare both with constants: "+fieldNames(e[1])+" may be beyond double precision")
		}
	}
	switch op {
	case syntax.Lt, syntax.Le, syntax.Gt, syntax.Ge:
		if l.Typ() == catalog.Enum || r.Typ() == catalog.Enum {
			return nil, nil, b.Unsupported(n, "comparing the order of enum labels", "list the labels: IN ('a', 'b')")
		}
	default: // equality of labels is that of their texts
	}
	return l, r, nil
}

// BeyondFloat reports whether an operand is a numeric column with values that float8 cannot hold: beside a float PostgreSQL casts
// it, and raises an error on rows with such a value.
func BeyondFloat(e algebra.Expr) bool {
	c, ok := e.(algebra.Column)
	if !ok || c.Of.Type != catalog.Numeric {
		return false
	}
	digits, fixed := algebra.Scale(c)
	return !fixed || digits > 300 || (c.Of.TypMod-4)>>16 > 300
}
