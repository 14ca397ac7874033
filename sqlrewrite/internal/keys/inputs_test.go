package keys

import (
	"fmt"
	"slices"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/domain"
	"noisegate.example/sqlrewrite/syntax"
)

// Tables that conditions tie share one list, with the conditions of WHERE and inner joins on them. The condition of an outer join holds for
// the columns of the side that may be absent, and for no others. A list of one key that leaves out no more than the key's own conditions is
// not asked for.
func TestInputs(t *testing.T) {
	table := func(name string, public bool) *algebra.Scan {
		s := &algebra.Scan{Table: &catalog.Table{Name: name, Public: public}}
		for _, column := range []string{"a", "b"} {
			s.Fields = append(s.Fields, &algebra.Field{Public: public, Column: &catalog.Column{Name: name + "." + column, Type: catalog.Text,
				Domain: []catalog.Key{{Text: "x"}, {Text: "y"}, {Null: true}}}})
		}
		return s
	}
	people, nation, region, absent := table("people", false), table("nation", true), table("region", true), table("absent", true)
	equal := func(l *algebra.Field, r algebra.Expr) algebra.Expr {
		return algebra.Binary{Op: syntax.Eq, L: algebra.Column{Of: l}, R: r, T: catalog.Bool}
	}
	x, y := algebra.Constant{T: catalog.Text, Text: "x"}, algebra.Constant{T: catalog.Text, Text: "y"}
	either := func(l, r algebra.Expr) algebra.Expr {
		return algebra.Binary{Op: syntax.Or, L: l, R: r, T: catalog.Bool}
	}
	tied := &algebra.Joined{Kind: syntax.InnerJoin, Left: people, On: equal(people.Fields[1], algebra.Column{Of: nation.Fields[1]}),
		Right: &algebra.Joined{Kind: syntax.InnerJoin, Left: nation, Right: region, On: algebra.Equal(nation.Fields[1], region.Fields[1])}}
	outer := &algebra.Joined{Kind: syntax.LeftJoin, Left: tied, Right: absent, On: algebra.All([]algebra.Expr{
		equal(nation.Fields[0], x), equal(absent.Fields[1], y)})}
	p, n, r, o := people.Fields, nation.Fields, region.Fields, absent.Fields
	for name, c := range map[string]struct {
		keys  []*algebra.Field
		where algebra.Expr
		want  string // scans, declared keys, keys of each list
	}{
		"tied":                    {[]*algebra.Field{n[0]}, equal(r[0], x), "2 0 1;"},
		"a tie alone":             {[]*algebra.Field{n[0]}, nil, "2 0 1;"},
		"two keys":                {[]*algebra.Field{n[0], r[0]}, nil, "2 0 2;"},
		"a private column":        {[]*algebra.Field{p[0]}, equal(p[0], x), ""},
		"or of a private column":  {[]*algebra.Field{p[0]}, either(equal(p[0], x), equal(p[0], y)), "0 1 1;"},
		"or with what is no key":  {[]*algebra.Field{p[0]}, either(equal(p[0], x), equal(p[1], y)), ""},
		"or ties a private key":   {[]*algebra.Field{p[0]}, either(equal(p[0], x), equal(r[0], y)), "2 1 1;"},
		"of what may be absent":   {[]*algebra.Field{o[0]}, equal(o[1], x), "1 0 1;"},
		"what its join says":      {[]*algebra.Field{o[0]}, nil, "1 0 1;"},
		"beside what may be":      {[]*algebra.Field{p[0]}, either(equal(p[0], x), equal(o[0], y)), "1 1 1;"},
		"a private and a public":  {[]*algebra.Field{p[0], n[0]}, equal(p[0], x), "2 0 1;"},
		"of all of which one key": {[]*algebra.Field{p[1]}, nil, "2 1 1;"},
	} {
		got := ""
		q := &algebra.BoundQuery{Source: &algebra.Relation{Node: outer}, Where: c.where}
		q.Shared().List.Of = func(l algebra.KeyList) ([][]catalog.Key, bool) {
			got += fmt.Sprintf("%d %d %d;", len(l.Tables()), len(l.Declared), len(l.Keys))
			if l.Where == nil && len(l.Sides) == 0 {
				t.Errorf("%s: a list without a condition", name)
			}
			for _, side := range l.Sides {
				if !slices.Equal(domain.ColumnsOf(side.On), []*algebra.Field{absent.Fields[1]}) {
					t.Errorf("%s: what is said of a side that may be absent: %v", name, side.On)
				}
			}
			return nil, false
		}
		for _, f := range c.keys {
			q.Keys = append(q.Keys, algebra.GroupKey{X: algebra.Column{Of: f}, Domain: f.Column.Domain})
		}
		if waiting := Narrow(q); got != c.want || waiting != (c.want != "") {
			t.Errorf("%s: %q, waiting %t, want %q", name, got, waiting, c.want)
		}
	}
}
