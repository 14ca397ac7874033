package domain

import (
	"math/big"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/syntax"
)

// impliedBy are the limits of a whole number between -1000 and 1000 that a condition on it, or on what is computed of it, implies.
func impliedBy(t *testing.T, condition func(x algebra.Expr) algebra.Expr, holds bool) string {
	t.Helper()
	f := &algebra.Field{Column: &catalog.Column{Name: "x", Type: catalog.Int4, Bounds: &catalog.Bounds{Lo: big.NewRat(-1000, 1),
		Hi: big.NewRat(1000, 1)}}}
	k := NewImplied(&algebra.Binder{Bound: &algebra.BoundQuery{}}, nil)
	k.Learn(condition(algebra.Column{Of: f}), holds)
	within := k.BoundsOf(algebra.Column{Of: f})
	return within.Lo.RatString() + " " + within.Hi.RatString()
}

func number(text string) algebra.Constant {
	t := catalog.Int4
	if len(text) > 1 && text[len(text)-2] == '.' {
		t = catalog.Numeric
	}
	return algebra.Constant{T: t, Text: text}
}

func compared(l algebra.Expr, op syntax.Operator, r algebra.Expr) algebra.Expr {
	return algebra.Binary{Op: op, L: l, R: r, T: catalog.Bool}
}

func TestImplied(t *testing.T) {
	t.Parallel()
	null := algebra.Constant{T: catalog.Int4, Null: true}
	for _, c := range []struct {
		about string
		of    func(x algebra.Expr) algebra.Expr
		is    string // where it is not false
		not   string // where it is not true
	}{
		{"x < 5", func(x algebra.Expr) algebra.Expr { return compared(x, syntax.Lt, number("5")) }, "-1000 4", "5 1000"},
		{"5.5 <= x", func(x algebra.Expr) algebra.Expr { return compared(number("5.5"), syntax.Le, x) }, "6 1000", "-1000 5"},
		{"x = 5", func(x algebra.Expr) algebra.Expr { return compared(x, syntax.Eq, number("5")) }, "5 5", "-1000 1000"},
		{"x < NULL", func(x algebra.Expr) algebra.Expr { return compared(x, syntax.Lt, null) }, "-1000 1000", "-1000 1000"},
		{"x > 5000, which no value is", func(x algebra.Expr) algebra.Expr { return compared(x, syntax.Gt, number("5000")) }, "-1000 1000",
			"-1000 1000"},
		{"x >= 1 AND x < 9", func(x algebra.Expr) algebra.Expr {
			return compared(compared(x, syntax.Ge, number("1")), syntax.And, compared(x, syntax.Lt, number("9")))
		}, "1 8", "-1000 1000"},
		{"NOT (x < 1 OR x > 9)", func(x algebra.Expr) algebra.Expr {
			return algebra.Not{X: compared(compared(x, syntax.Lt, number("1")), syntax.Or, compared(x, syntax.Gt, number("9")))}
		}, "1 9", "-1000 1000"},
		{"x IN (3, 7)", func(x algebra.Expr) algebra.Expr {
			return algebra.In{X: x, List: []algebra.Expr{number("3"), number("7")}}
		}, "3 7",
			"-1000 1000"},
		{"x NOT IN (3, NULL), which is never true", func(x algebra.Expr) algebra.Expr {
			return algebra.In{X: x, List: []algebra.Expr{number("3"), null}, Not: true}
		}, "-1000 1000", "-1000 1000"},
		{"(x > 3) IS TRUE", func(x algebra.Expr) algebra.Expr {
			return algebra.Is{X: compared(x, syntax.Gt, number("3")), What: syntax.IsTrue}
		}, "4 1000", "-1000 1000"},
		{"(x > 3) IS NOT TRUE", func(x algebra.Expr) algebra.Expr {
			return algebra.Is{X: compared(x, syntax.Gt, number("3")), What: syntax.IsTrue, Not: true}
		}, "-1000 1000", "4 1000"},
		{"x IS NOT DISTINCT FROM 3", func(x algebra.Expr) algebra.Expr {
			return algebra.Distinct{L: x, R: number("3"), Not: true}
		}, "3 3", "-1000 1000"},
	} {
		if got := impliedBy(t, c.of, true); got != c.is {
			t.Errorf("%s: %s, want %s", c.about, got, c.is)
		}
		if got := impliedBy(t, c.of, false); got != c.not {
			t.Errorf("not %s: %s, want %s", c.about, got, c.not)
		}
	}
}

// So many conditions are looked at, however long a question is; those after them narrow nothing.
//
// covers: A44
func TestFewConditionsAreLookedAt(t *testing.T) {
	t.Parallel()
	long := func(n int) func(x algebra.Expr) algebra.Expr {
		return func(x algebra.Expr) algebra.Expr {
			all := compared(x, syntax.Lt, number("9"))
			for range n {
				all = compared(compared(x, syntax.Lt, number("99")), syntax.And, all)
			}
			return all
		}
	}
	if got := impliedBy(t, long(maxImplied/4), true); got != "-1000 8" {
		t.Errorf("few conditions: %s", got)
	}
	if got := impliedBy(t, long(2*maxImplied), true); got != "-1000 98" {
		t.Errorf("many conditions: %s", got)
	}
}

func TestInverse(t *testing.T) {
	t.Parallel()
	b := &algebra.Binder{Bound: &algebra.BoundQuery{}}
	computed := func(w algebra.Expr) algebra.Expr {
		o, err := errorFreeOf(b, nil, w)
		if err != nil {
			t.Fatal(err)
		}
		return ComputedOf(w, o)
	}
	arithmetic := func(l algebra.Expr, op syntax.Operator, r algebra.Expr) algebra.Expr {
		return computed(algebra.Binary{Op: op, L: l, R: r, T: catalog.Int4})
	}
	call := func(name string, t catalog.Type, args ...algebra.Expr) algebra.Expr {
		return computed(algebra.Call{Name: name, Args: args, T: t})
	}
	for _, c := range []struct {
		about string
		of    func(x algebra.Expr) algebra.Expr
		want  string // where it is between 10 and 20
	}{
		{"x + 3", func(x algebra.Expr) algebra.Expr { return arithmetic(x, syntax.Add, number("3")) }, "7 17"},
		{"3 - x", func(x algebra.Expr) algebra.Expr { return arithmetic(number("3"), syntax.Subtract, x) }, "-17 -7"},
		{"x * -2", func(x algebra.Expr) algebra.Expr { return arithmetic(x, syntax.Multiply, number("-2")) }, "-10 -5"},
		{"x / 3", func(x algebra.Expr) algebra.Expr { return arithmetic(x, syntax.Divide, number("3")) }, "27 63"},
		{"x % 30, which does not rise", func(x algebra.Expr) algebra.Expr { return arithmetic(x, syntax.Modulo, number("30")) }, "-1000 1000"},
		{"-x", func(x algebra.Expr) algebra.Expr { return computed(algebra.Negate{X: x, T: catalog.Int4}) }, "-20 -10"},
		{"abs(x)", func(x algebra.Expr) algebra.Expr { return call("abs", catalog.Int4, x) }, "-20 20"},
		{"coalesce(x, 15)", func(x algebra.Expr) algebra.Expr { return call("coalesce", catalog.Int4, x, number("15")) }, "10 20"},
		{"floor(x)", func(x algebra.Expr) algebra.Expr { return call("floor", catalog.Float8, x) }, "10 21"},
		{"x::smallint", func(x algebra.Expr) algebra.Expr { return computed(algebra.Cast{X: x, T: catalog.Int2}) }, "19/2 41/2"},
	} {
		got := impliedBy(t, func(x algebra.Expr) algebra.Expr {
			y := c.of(x)
			return compared(compared(y, syntax.Ge, number("10")), syntax.And, compared(y, syntax.Le, number("20")))
		}, true)
		if got != c.want {
			t.Errorf("%s between 10 and 20: %s, want %s", c.about, got, c.want)
		}
	}
}

// A constant in double precision is the float that PostgreSQL reads, not the decimal number that is written: 7 times 0.1 is above 0.7.
func TestConstantsAreTheirFloats(t *testing.T) {
	t.Parallel()
	b := &algebra.Binder{Bound: &algebra.BoundQuery{}}
	for text, want := range map[string]float64{"0.1": 0.7000000000000001, "0.25": 1.75} {
		c := algebra.Constant{T: catalog.Float8, Text: text}
		o, err := errorFreeOf(b, nil, algebra.Binary{Op: syntax.Multiply, L: number("7"), R: c, T: catalog.Float8})
		if err != nil {
			t.Fatal(err)
		}
		if want := new(big.Rat).SetFloat64(want); o.Lo.Cmp(want) != 0 || o.Hi.Cmp(want) != 0 {
			t.Errorf("7 * %s lies within %s and %s", text, o.Lo.FloatString(20), o.Hi.FloatString(20))
		}
	}
	for text, want := range map[string]string{"0.3": "0.30000001192092896", "0.25": "0.25", "-16777217": "-1.6777216e+07", "1e39": "1e+39",
		"0": "0", "NaN": "NaN", "-inf": "-Infinity"} {
		if c, err := Typed(b, nil, text, catalog.Float4); err != nil || c.Text != want || c.T != catalog.Float8 {
			t.Errorf("%s::real is %s::%s, %v", text, c.Text, c.T, err)
		}
	}
}
