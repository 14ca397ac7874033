package keys

import (
	"errors"
	"fmt"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
)

// A query asks for each list once, and for at most mostLists of them. Known lists are given. Once all are settled, unknown lists are not
// asked for.
func TestAsked(t *testing.T) {
	list := func(i int) algebra.KeyList {
		f := &algebra.Field{Column: &catalog.Column{Name: fmt.Sprint("c", i), Type: catalog.Text}}
		return algebra.KeyList{Keys: []algebra.Expr{algebra.Column{Of: f}}, Declared: []algebra.DeclaredKeys{{Of: f,
			Keys: []catalog.Key{{Text: fmt.Sprint(i)}, {Null: true}}}}}
	}
	on := &catalog.Snapshot{Dataset: "d"}
	if NewAsked(nil, on) != nil || NewAsked(nil, on).Needed() != nil {
		t.Error("lists are asked for where nobody asks")
	}
	asked := NewAsked(&Lists{}, on)
	for range 2 {
		for i := range mostLists + 4 {
			if tuples, known := asked.List(list(i)); tuples != nil || known != (i >= mostLists) {
				t.Errorf("list %d: %v, %t", i, tuples, known)
			}
		}
	}
	var needed *Needed
	if !errors.As(asked.Needed(), &needed) || len(needed.Questions) != mostLists {
		t.Fatalf("%v", asked.Needed())
	}
	known := &Lists{Known: map[Name]Tuples{needed.Questions[0].Name: {{{Text: "0"}}}, needed.Questions[1].Name: nil}}
	for _, known.Settled = range []bool{false, true} {
		asked = NewAsked(known, on)
		if tuples, found := asked.List(list(0)); !found || len(tuples) != 1 || tuples[0][0].Text != "0" {
			t.Errorf("%v, %t", tuples, found)
		}
		if tuples, found := asked.List(list(1)); !found || tuples != nil {
			t.Errorf("%v, %t", tuples, found)
		}
		if tuples, found := asked.List(list(2)); found != known.Settled || tuples != nil || (asked.Needed() == nil) != known.Settled {
			t.Errorf("%v, %t, %v", tuples, found, asked.Needed())
		}
	}
	for _, q := range needed.Questions {
		post := q.Post()
		if err := post.Prove(nil); err != nil {
			t.Errorf("%s: %v", post.SQL(), err)
		}
	}
}
