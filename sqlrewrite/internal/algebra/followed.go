package algebra

import (
	"fmt"
	"slices"

	"noisegate.example/catalog"
)

// MaxFollowed caps the groups whose aggregates and windows are followed: each row of an answer then lists the rows that it is computed
// from.
const MaxFollowed = 1000

// Followed are the numbers of the aggregates and windows whose rows a post-processing query tells beside its outputs, in order: those that
// the outputs are computed from. Over several blocks none is followed.
func (q *BoundQuery) Followed() []int {
	if q.Blocks != nil {
		return nil
	}
	var needed []int
	for _, out := range q.Outputs {
		needed = append(needed, numbersIn(out.Expr)...)
	}
	told := TellsOf(q.Post, q)
	slices.Sort(needed)
	return slices.DeleteFunc(slices.Compact(needed), func(n int) bool { return !slices.Contains(told, n) })
}

// TellsOf are the numbers whose rows each row of a query can tell: of its own aggregates and windows, and of those of the query that its
// rows stem from. Nil is the block's own SELECT.
func TellsOf(l *Query, q *BoundQuery) (all []int) {
	outputs := q.Outputs
	switch {
	case l == nil && q.Post == nil:
	case l == nil || l.Block:
		outputs = q.Inner
	case l.Set != nil || l.Distinct:
		return nil
	default:
		outputs = l.Outputs
		if stem := l.Stem(); stem != nil {
			all = TellsOf(l.Under(), q)
		}
	}
	for _, out := range outputs {
		all = append(all, numbersIn(out.Expr)...)
	}
	return all
}

// numbersIn are the numbers of the followed aggregates in an expression.
func numbersIn(e Expr) (all []int) {
	if a, ok := e.(Aggregate); ok && a.Cells > 0 {
		return []int{a.Cells}
	}
	for _, child := range Children(e) {
		all = append(all, numbersIn(child)...)
	}
	return all
}

// Numbered finds the followed aggregate with a number in an expression.
func Numbered(e Expr, number int) (found Aggregate, ok bool) {
	for _, x := range Parts(e) {
		if a, is := x.(Aggregate); is && a.Cells == number {
			return a, true
		}
	}
	return Aggregate{}, false
}

// Under is the query in FROM whose rows are released rows, or stem from them, and that no other does; nil: none.
func (q *Query) Under() *Query {
	if d := stemItem(q.From); d != nil {
		return d.Parts[0]
	}
	return nil
}

// RowsBelow is the item of FROM with the number of the released row, in a query whose aggregates are over such rows.
func (q *Query) RowsBelow() *Leaf { return stemOf(q.From) }

func stemItem(n FromItem) *Derived {
	switch n := n.(type) {
	case *Derived:
		if n.Parts[0].KeepsRows() {
			return n
		}
	case *Joined:
		l, r := stemItem(n.Left), stemItem(n.Right)
		if l == nil {
			return r
		}
		if r == nil {
			return l
		}
	}
	return nil
}

// RowsOfAggregate is what tells the rows that a value is computed from: an array of the numbers of released rows, or the number of the one
// that a window function picks; ordinal is the field with these numbers.
func RowsOfAggregate(e Aggregate, ordinal *Field) Aggregate {
	tells := Aggregate{Name: "array_agg", Args: []Expr{Column{Of: ordinal}}, Filter: e.Filter, Over: e.Over, T: catalog.Type("bigint[]")}
	if Picks(e.Name) {
		tells.Name, tells.T = e.Name, catalog.Int8
		if len(e.Args) > 1 {
			tells.Args = append(tells.Args, e.Args[1])
		}
	}
	return tells
}

// OrdinalOf is the field with the number of the released row in a relation of a statement.
func OrdinalOf(relation string) *Field {
	return &Field{Column: &catalog.Column{Name: "ordinal", Type: catalog.Int8, TypMod: -1}, Relation: relation, Printed: "ordinal"}
}

// RowsColumn is the name of the column that tells the rows of a followed aggregate.
func RowsColumn(number int) string { return fmt.Sprintf("m%d", number) }

// Picks reports whether a window function gives the value of one row.
func Picks(name string) bool {
	return slices.Contains([]string{"lag", "lead", "first_value", "last_value", "nth_value"}, name)
}
