package syntax_test

import (
	"reflect"
	"testing"

	"noisegate.example/sqlrewrite/syntax"
)

// walked is WITH w AS (SELECT a FROM t) SELECT CASE WHEN b = c THEN 2 END FROM w JOIN x ON d = a
// WHERE EXISTS (SELECT 1 FROM v WHERE e IN (1, f)).
func walked() *syntax.Query {
	column := func(name string) syntax.Expr { return &syntax.Column{Name: name} }
	equal := func(l, r string) syntax.Expr { return &syntax.Binary{Op: syntax.Eq, L: column(l), R: column(r)} }
	number := func(text string) syntax.Expr { return &syntax.Literal{Kind: syntax.IntegerLiteral, Text: text} }
	from := func(name string) syntax.Relation { return &syntax.Table{Name: name} }
	inner := &syntax.Query{Items: []syntax.Item{{Expr: number("1")}}, From: []syntax.Relation{from("v")},
		Where: &syntax.In{X: column("e"), List: []syntax.Expr{number("1"), column("f")}}}
	return &syntax.Query{
		With:  []syntax.CTE{{Name: "w", Query: &syntax.Query{Items: []syntax.Item{{Expr: column("a")}}, From: []syntax.Relation{from("t")}}}},
		Items: []syntax.Item{{Expr: &syntax.Case{Whens: []syntax.When{{Cond: equal("b", "c"), Result: number("2")}}}}},
		From:  []syntax.Relation{&syntax.Join{Left: from("w"), Right: from("x"), On: equal("d", "a")}},
		Where: &syntax.Exists{Query: inner},
	}
}

// names are the columns of a query; deep, those of the queries in it too.
func names(q *syntax.Query, deep bool) map[string]bool {
	all := map[string]bool{}
	syntax.Each(*q, func(n any) bool {
		if c, ok := n.(*syntax.Column); ok {
			all[c.Name] = true
		}
		_, query := n.(*syntax.Query)
		return query && !deep
	})
	return all
}

// Every node is visited, but those in a node that the function has done with.
func TestEach(t *testing.T) {
	q := walked()
	want := map[string]bool{"a": true, "b": true, "c": true, "d": true, "e": true, "f": true}
	if got := names(q, true); !reflect.DeepEqual(got, want) {
		t.Errorf("columns %v, want %v", got, want)
	}
	delete(want, "e")
	delete(want, "f")
	if got := names(q, false); !reflect.DeepEqual(got, want) {
		t.Errorf("columns outside of queries %v, want %v", got, want)
	}
}

// A copy is equal, and no change of one of its nodes is seen in the query.
func TestCopy(t *testing.T) {
	q := walked()
	other := syntax.Copy(q)
	if !reflect.DeepEqual(q, other) {
		t.Fatal("the copy differs")
	}
	syntax.Each(other, func(n any) bool {
		if c, ok := n.(*syntax.Column); ok {
			c.Name = "changed"
		}
		if q, ok := n.(*syntax.Query); ok {
			q.Where, q.From = nil, q.From[:0]
		}
		return false
	})
	if !reflect.DeepEqual(q, walked()) {
		t.Error("a change of the copy is seen in the query")
	}
}
