package domain

import (
	"math/big"
	"strings"

	"noisegate/catalog"
	"noisegate/internal/fault"
	"noisegate/sqlrewrite/internal/algebra"
	"noisegate/sqlrewrite/internal/scalar"
	"noisegate/sqlrewrite/syntax"
)

// Coerce gives a constant without a type the type t, and a number beside floats the type float8. Every other expression stays
// as it is. It fails when the text is no value of t.
func Coerce(b *algebra.Binder, at syntax.Expr, e algebra.Expr, t catalog.Type) (algebra.Expr, error) {
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
		t = catalog.Float8
		canonical, ok = scalar.FloatText(text)
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
	if !ok {
		return algebra.Constant{}, b.Mismatch(at, fault.Quote(text)+" is not a value of type "+string(wanted), scalar.ExampleOf(wanted))
	}
	return algebra.Constant{T: t, Text: canonical}, nil
}
