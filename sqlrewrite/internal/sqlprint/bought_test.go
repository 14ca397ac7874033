package sqlprint

import (
	"math/big"
	"reflect"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/verify"
)

// A statement takes each value as its argument, and whether there is one; NULL has another value that is not looked at. The
// statement that waits stays as it is.
func TestStatementsTakeValues(t *testing.T) {
	within := &algebra.Bounds{Lo: big.NewRat(5, 2), Hi: big.NewRat(9, 1)}
	waiting := Statement{Args: []any{"x", verify.Any{}, verify.Any{}, verify.Any{}},
		Awaited: []Awaited{{Arg: 2, T: catalog.Numeric, Within: within},
			{Arg: 3, T: catalog.Bool, Within: within, Exists: true}, {Arg: 4, At: 1, T: catalog.Date, Within: within}}}
	seven, day := "7", "2024-02-29"
	for _, c := range []struct {
		values []*string
		args   []any
	}{{[]*string{&seven, &day}, []any{"x", "7", "true", day}}, {[]*string{nil, &day}, []any{"x", "2.5", "false", day}}} {
		got, err := waiting.WithBought(c.values)
		if err != nil || !reflect.DeepEqual(got.Args, c.args) || got.Awaited != nil || waiting.Args[1] != (verify.Any{}) {
			t.Errorf("%v, %v, want %v", got.Args, err, c.args)
		}
	}
	if got := waiting.AtEnds(); !reflect.DeepEqual(got.Args, []any{"x", "2.5", "true", "1970-01-03"}) {
		t.Errorf("%v", got.Args)
	}
	if _, err := waiting.WithBought([]*string{&seven}); err == nil {
		t.Error("a value is missing")
	}
}
