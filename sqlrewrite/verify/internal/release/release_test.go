package release

import (
	"fmt"
	"math/big"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/verify/internal/ranges"
	"noisegate.example/sqlrewrite/verify/internal/relation"
	"noisegate.example/sqlrewrite/verify/internal/tree"
	"noisegate.example/sqlrewrite/verify/internal/value"
)

// visits has releases over the rows of a table in which a unit has one row at most for each ward.
type visits struct {
	*value.Terms
	rows *relation.Owned
	ward *value.Value
}

func newVisits() *visits {
	t := &catalog.Table{Name: "visits", Unit: catalog.Unit{Kind: catalog.ColumnUnit, Column: "person_id"}}
	pin := relation.Pin{Table: "visits", Keys: [][]string{{"person_id", "ward"}}}
	for _, name := range pin.Keys[0] {
		t.Columns = append(t.Columns, &catalog.Column{Name: name, Type: catalog.Int4})
		pin.Columns = append(pin.Columns, relation.PinnedColumn{Name: name, NotNull: true})
	}
	d := relation.NewProof(value.NewTerms(nil, nil), nil, []relation.Pin{pin})
	rows := d.Owned(d.Scan(t, "v"))
	return &visits{d.Terms, rows, rows.Find("v", "ward")}
}

// shown is a key as text.
func (v *visits) shown(key int) relation.Column {
	return relation.Column{Value: v.Make(value.Text, v.Intern("text", key))}
}

// sum adds up numbers from -2 to 5, one for each row.
func (v *visits) sum() relation.Column {
	s := v.Make(value.Text, v.Fresh())
	s.Sum = &value.Tally{Each: ranges.Of(-2, 5)}
	return relation.Column{Value: s}
}

// refusal says why a derivation ended; "" if it did not.
func refusal(derive func()) string {
	var err error
	func() {
		defer tree.Caught(&err)
		derive()
	}()
	if err == nil {
		return ""
	}
	return err.Error()
}

// A unit moves a sum of a ward by what its row there adds, in as many wards as conditions leave.
func TestMovesOfGroups(t *testing.T) {
	v := newVisits()
	x := &Release{Rows: v.rows, Keys: []int{v.ward.ID}, Columns: []relation.Column{v.shown(v.ward.ID), v.sum()}}
	got := x.Moves(v.Terms, 1, Plain)
	if l1, l2 := got.Norm([]int{0}); got.Groups != nil || l1 != nil || l2 != nil {
		t.Errorf("of any wards: %v groups, L1 %v, L2² %v", got.Groups, l1, l2)
	}
	x.Domains = map[int]*big.Int{v.ward.ID: big.NewInt(3)}
	got = x.Moves(v.Terms, 1, Plain)
	l1, l2 := got.Norm([]int{0})
	if have := fmt.Sprint(got.Groups, got.PerGroup, got.Spread, l1, l2); have != "3 [5] [7] 15 75" {
		t.Errorf("of three wards: %s", have)
	}
	if l1, l2 := got.Norm([]int{0, 0}); l1 != nil || l2 != nil {
		t.Errorf("of a column twice: %v, %v", l1, l2)
	}
	for want, x := range map[string]*Release{
		"a key of a group is not shown":                 {Rows: v.rows, Keys: []int{v.ward.ID}, Columns: []relation.Column{v.sum()}},
		"a value without bounds on what a unit adds":    {Rows: v.rows, Columns: []relation.Column{v.sum()}},
		"a value that is not a sum over units, as text": {Rows: v.rows, Columns: []relation.Column{v.shown(v.ward.ID)}},
		"more keys than columns, or nothing but keys":   {Keys: []int{v.ward.ID}, Below: v.rows.Relation},
	} {
		if why := refusal(func() { x.Moves(v.Terms, 0, Plain) }); why != "verify: "+want {
			t.Errorf("%q, want %q", why, want)
		}
	}
}

// Where no unit is in two pieces it moves what one of them moves, else what all of them do.
func TestMovesOfPieces(t *testing.T) {
	v := newVisits()
	piece := func(form string) *Release {
		rows := *v.rows
		rows.Relation = &relation.Relation{}
		*rows.Relation = *v.rows.Relation
		rows.Forms = []string{form}
		return &Release{Rows: &rows, Keys: []int{v.ward.ID}, Domains: map[int]*big.Int{v.ward.ID: big.NewInt(3)},
			Columns: []relation.Column{{Value: v.ward}, v.sum()}}
	}
	twice, hidden := piece(`"="(unit,5,)`), piece(`"="(unit,5,)`)
	twice.Keys, twice.Columns = append(twice.Keys, v.ward.ID), append([]relation.Column{{Value: v.ward}}, twice.Columns...)
	if union := Union(v.Terms, twice, twice); len(union.Keys) != 2 || twice.groupsOf().Int64() != 9 {
		t.Errorf("a key twice: %d keys of %v groups", len(union.Keys), twice.groupsOf())
	}
	hidden.Keys = append(hidden.Keys, v.Fresh())
	if why := refusal(func() { Union(v.Terms, hidden, hidden) }); why != "verify: a piece's key that is not shown" {
		t.Errorf("a hidden key: %q", why)
	}
	for other, want := range map[string]string{`"<>"(unit,5,)`: "3 [5] [7]", `"="(unit,6,)`: "6 [10] [14]"} {
		union := Union(v.Terms, piece(`"="(unit,5,)`), piece(other))
		key, sum := union.Columns[0].Value, *union.Columns[1].Value
		if why := refusal(func() { union.Total(nil, nil) }); why != "verify: pieces that are not added up by all their keys" {
			t.Errorf("by no key: %q", why)
		}
		total := union.Total([]int{key.ID}, nil)
		sum.Kind = value.Text
		total.Columns = []relation.Column{v.shown(key.ID), {Value: &sum}}
		got := total.Moves(v.Terms, 1, Plain)
		if have := fmt.Sprint(got.Groups, got.PerGroup, got.Spread); have != want {
			t.Errorf("beside %s: %s, want %s", other, have, want)
		}
		if why := refusal(func() { Union(v.Terms, total, piece(other)) }); why != "verify: a total of pieces as a piece" {
			t.Errorf("a total as a piece: %q", why)
		}
	}
}
