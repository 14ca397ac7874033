package keys

import (
	"slices"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/syntax"
)

// Listed keys are sorted by value, NULL last. What cannot be listed is not asked for; a list that is unavailable, or has a text that is no
// value, gives no keys.
func TestComputed(t *testing.T) {
	small := &algebra.Field{Column: &catalog.Column{Name: "n", Type: catalog.Int4, Domain: []catalog.Key{{Text: "1"}, {Text: "2"}}}}
	other := &algebra.Field{Column: &catalog.Column{Name: "m", Type: catalog.Int4}}
	sum := func(f *algebra.Field) algebra.Expr {
		return algebra.Binary{Op: syntax.Add, L: algebra.Column{Of: small}, R: algebra.Column{Of: f}, T: catalog.Int4}
	}
	large := sum(small)
	for range 20 {
		large = algebra.Computed{Written: large, ErrorFree: algebra.Binary{Op: syntax.Add, L: large, R: large, T: catalog.Int4}}
	}
	two, ten, null := []catalog.Key{{Text: "2"}}, []catalog.Key{{Text: "10"}}, []catalog.Key{{Null: true}}
	for name, c := range map[string]struct {
		x      algebra.Expr
		tuples [][]catalog.Key
		known  bool
		want   []catalog.Key
		ok     bool
	}{
		"sorted":       {sum(small), [][]catalog.Key{null, ten, two}, true, []catalog.Key{two[0], ten[0], null[0]}, true},
		"empty":        {sum(small), [][]catalog.Key{}, true, []catalog.Key{}, true},
		"asked for":    {sum(small), nil, false, []catalog.Key{}, true},
		"unavailable":  {sum(small), nil, true, nil, false},
		"no value":     {sum(small), [][]catalog.Key{{{Text: "x"}}}, true, nil, false},
		"not listable": {sum(other), [][]catalog.Key{two}, true, nil, false},
		"too large":    {large, [][]catalog.Key{two}, true, nil, false},
	} {
		list := func(algebra.KeyList) ([][]catalog.Key, bool) { return c.tuples, c.known }
		keys, known, ok := Computed(algebra.List{Of: list}, c.x, nil)
		if !slices.Equal(keys, c.want) || (keys == nil) != (c.want == nil) || known != c.known || ok != c.ok {
			t.Errorf("%s: %v, %t, %t", name, keys, known, ok)
		}
	}
	if _, known, ok := Computed(algebra.List{}, sum(small), nil); !known || ok {
		t.Error("keys are listed where nobody can be asked")
	}
}
