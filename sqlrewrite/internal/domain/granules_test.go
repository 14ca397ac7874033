package domain

import (
	"testing"
	"time"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/syntax"
)

// Parts of an expression grow with a time, and how many granules they have at most is foreseen. What may fall, or changes too often, has
// none.
func TestGranulesOf(t *testing.T) {
	at := &algebra.Field{Column: &catalog.Column{Name: "at", Type: catalog.Timestamp, NotNull: true, Bounds: &catalog.Bounds{
		Lo: scalar.InUnit(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), catalog.Timestamp),
		Hi: scalar.InUnit(time.Date(2021, 1, 1, 0, 0, 0, 0, time.UTC), catalog.Timestamp)}}}
	x := clampedColumn(at).X
	of := func(e algebra.Expr) algebra.Expr { return algebra.Computed{Written: e, ErrorFree: replaced(e, at, x)} }
	column := algebra.Column{Of: at}
	call := func(name string, t catalog.Type, args ...algebra.Expr) algebra.Expr {
		return algebra.Call{Name: name, Args: args, T: t}
	}
	text := func(s string) algebra.Expr { return algebra.Constant{T: catalog.Text, Text: s} }
	op := func(o syntax.Operator, l algebra.Expr, r algebra.Constant, t catalog.Type) algebra.Expr {
		return algebra.Binary{Op: o, L: l, R: r, T: t}
	}
	epoch := call("extract", catalog.Numeric, text("epoch"), column)
	hours := op(syntax.Divide, epoch, algebra.Constant{T: catalog.Numeric, Text: "3600"}, catalog.Numeric)
	span := func(s string) algebra.Constant { return algebra.Constant{T: scalar.IntervalType, Text: s} }
	instant := algebra.Constant{T: catalog.Timestamp, Text: "2020-05-05 00:00:00"}
	falling := op(syntax.Divide, epoch, algebra.Constant{T: catalog.Int4, Text: "-3600"}, catalog.Numeric)
	for name, c := range map[string]struct {
		x     algebra.Expr
		parts int
		most  int64
	}{
		"months":                 {call("date_trunc", catalog.Timestamp, text("month"), column), 1, 16}, // of at least 28 days
		"hours":                  {call("floor", catalog.Numeric, hours), 1, 366*24 + 3},
		"hours as integers":      {algebra.Cast{X: hours, T: catalog.Int4}, 1, 366*24 + 3},
		"hours of the day":       {call("extract", catalog.Numeric, text("hour"), column), 1, 366*24 + 3},
		"days":                   {algebra.Cast{X: column, T: catalog.Date}, 1, 366 + 3},
		"days later":             {algebra.Cast{X: op(syntax.Add, column, span("1 day"), catalog.Timestamp), T: catalog.Date}, 1, 366 + 3},
		"a month later":          {algebra.Cast{X: op(syntax.Add, column, span("1 month"), catalog.Timestamp), T: catalog.Date}, 0, 0},
		"once":                   {op(syntax.Lt, column, instant, catalog.Bool), 1, 3},
		"at an instant":          {op(syntax.Eq, column, instant, catalog.Bool), 0, 0},
		"its time":               {column, 0, 0},
		"seconds":                {epoch, 0, 0},
		"too many":               {call("floor", catalog.Numeric, epoch), 0, 0},
		"a number that falls":    {call("floor", catalog.Numeric, falling), 0, 0},
		"what nobody knows of":   {call("sqrt", catalog.Float8, epoch), 0, 0},
		"a function of a second": {call("extract", catalog.Numeric, text("second"), column), 0, 0},
	} {
		g, most, ok := granulesOf(at, of(c.x), nil)
		if ok != (c.parts > 0) || len(g.Parts) != c.parts || most != c.most {
			t.Errorf("%s: %d parts, %d granules, %t", name, len(g.Parts), most, ok)
		}
	}
	within := op(syntax.Lt, column, algebra.Constant{T: catalog.Timestamp, Text: "2020-01-02 00:00:00"}, catalog.Bool)
	if g, most, ok := granulesOf(at, of(call("floor", catalog.Numeric, hours)), within); !ok || most != 26 ||
		g.Last != "2020-01-01 23:59:59.999999" {
		t.Errorf("%d granules up to %s, %t", most, g.Last, ok)
	}
	if _, _, ok := granulesOf(at, algebra.Cast{X: column, T: catalog.Date}, nil); ok {
		t.Error("a time that is not clamped has granules")
	}
	unbounded := &algebra.Field{Column: &catalog.Column{Name: "at", Type: catalog.Timestamp}}
	if _, _, ok := granulesOf(unbounded, algebra.Cast{X: algebra.Column{Of: unbounded}, T: catalog.Date}, nil); ok {
		t.Error("a time without bounds has granules")
	}
}

// replaced is an expression whose column is clamped, but where it is compared.
func replaced(e algebra.Expr, f *algebra.Field, x algebra.Expr) algebra.Expr {
	if b, is := e.(algebra.Binary); is && algebra.IsComparison(b.Op) {
		return e
	}
	if algebra.PlainField(e) == f {
		return x
	}
	return algebra.Map(e, func(e algebra.Expr) algebra.Expr { return replaced(e, f, x) })
}
