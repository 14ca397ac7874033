package domain

import (
	"fmt"
	"math/big"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/syntax"
)

// Columns that an expression has as they are, beyond their bounds, are not listed; clamped ones are, and so are comparisons with constants
// between the bounds. A condition that sees values beyond a bound leaves the bound.
func TestKeyListOf(t *testing.T) {
	field := func(lo, hi int64, notNull bool) *algebra.Field {
		return &algebra.Field{Column: &catalog.Column{Name: "n", Type: catalog.Int4, NotNull: notNull,
			Bounds: &catalog.Bounds{Lo: big.NewRat(lo, 1), Hi: big.NewRat(hi, 1)}}}
	}
	n, wide := field(1, 9, false), field(1, 300_000, true)
	op := func(op syntax.Operator, l, r algebra.Expr) algebra.Expr {
		return algebra.Binary{Op: op, L: l, R: r, T: catalog.Bool}
	}
	c := func(text string) algebra.Expr { return algebra.Constant{T: catalog.Int4, Text: text} }
	raw, clamped := algebra.Expr(algebra.Column{Of: n}), clampedColumn(n).X
	both := op(syntax.Lt, clamped, clampedColumn(wide).X)
	for name, c := range map[string]struct {
		x, where algebra.Expr
		want     string
	}{
		"clamped":                {clamped, nil, "[1 to 9 true] or 0"},
		"as it is":               {op(syntax.Lt, clamped, raw), nil, "none"},
		"compared inside":        {op(syntax.Lt, raw, c("5")), nil, "[1 to 9 true] or 0"},
		"compared with a bound":  {op(syntax.Lt, raw, c("9")), nil, "none"},
		"tested for NULL":        {algebra.Is{X: raw, What: syntax.IsNull}, nil, "[1 to 9 true] or 0"},
		"tested to be 9":         {algebra.In{X: raw, List: []algebra.Expr{c("9"), c("3")}}, nil, "none"},
		"left by a condition":    {clamped, op(syntax.Ge, raw, c("4")), "[4 to 9 false] or 0"},
		"a condition beyond":     {clamped, op(syntax.Gt, raw, c("11")), "[9 to 9 false] or 1"},
		"a condition on a bound": {clamped, op(syntax.Ne, raw, c("1")), "[1 to 9 false] or 2"},
		"a clamped condition":    {clamped, op(syntax.Ne, clamped, c("1")), "[1 to 9 true] or 0"},
		"too many":               {both, nil, "none"},
		"not too many":           {both, op(syntax.Le, raw, c("3")), "[1 to 3 false][1 to 300000 false] or 0"},
	} {
		var implied []algebra.Expr
		if c.where != nil {
			implied = append(implied, c.where)
		}
		l, ok := KeyListOf(c.x, c.where, implied)
		got := "none"
		if ok {
			got = ""
			for _, r := range l.Ranges {
				got += fmt.Sprintf("[%d to %d %t]", r.First, r.Last, r.Null)
			}
			ors := 0
			for _, e := range algebra.Parts(l.Where) {
				if b, is := e.(algebra.Binary); is && b.Op == syntax.Or {
					ors++
				}
			}
			got += fmt.Sprint(" or ", ors)
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// The range of a bounded column is computed once for all its values. Bins by CASE compare with it for each value.
func TestBoundsOfColumnsAreComputedOnce(t *testing.T) {
	f := &algebra.Field{Column: &catalog.Column{Name: "n", Type: catalog.Int4,
		Bounds: &catalog.Bounds{Lo: big.NewRat(0, 1), Hi: big.NewRat(4000, 1)}}}
	c := func(text string) algebra.Constant { return algebra.Constant{T: catalog.Int4, Text: text} }
	var bins algebra.Choice
	for _, end := range []string{"1000", "2000", "3000"} {
		bins.Arms = append(bins.Arms, algebra.Arm{Result: c(end),
			Cond: algebra.Binary{Op: syntax.Lt, L: algebra.Column{Of: f}, R: c(end), T: catalog.Bool}})
	}
	bins.T, bins.Otherwise = catalog.Int4, c("4000")
	x := algebra.Computed{Written: bins, ErrorFree: bins}
	allocations := testing.AllocsPerRun(1, func() {
		work := MaxWork
		if keys, ok := KeyDomainIn(x, nil, &work); !ok || len(keys) != 4 {
			t.Fatalf("%d keys, %t", len(keys), ok)
		}
	})
	if most := 4000.0 * 120; allocations > most {
		t.Errorf("%.0f allocations for 4,001 values, want at most %.0f", allocations, most)
	}
}
