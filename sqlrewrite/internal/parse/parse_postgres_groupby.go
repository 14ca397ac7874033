package parse

import (
	"fmt"
	"reflect"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"noisegate.example/sqlrewrite/syntax"
)

// maxSets caps the sets of groups of one GROUP BY: CUBE of n keys has 2ⁿ.
const maxSets = 64

// groupBy converts GROUP BY: its keys, each once, and which of them each of the sets has that GROUPING SETS, ROLLUP and CUBE name. Several
// items of GROUP BY have the sets that take one of each.
func (c *converter) groupBy(q *syntax.Query, nodes []*pg.Node, at syntax.Pos) {
	if !slices.ContainsFunc(nodes, func(n *pg.Node) bool { return n.GetGroupingSet() != nil }) {
		q.GroupBy = c.exprs(nodes)
		return
	}
	sets := [][]int{nil}
	for _, n := range nodes {
		sets = c.product(sets, c.groupingSets(q, n), at)
	}
	q.Sets = sets
}

// product joins each set of one list with each of another.
func (c *converter) product(a, b [][]int, at syntax.Pos) (all [][]int) {
	if len(a)*len(b) > maxSets {
		c.tooComplex(at, fmt.Sprintf("GROUP BY has more than %d sets of groups", maxSets))
		return nil
	}
	for _, x := range a {
		for _, y := range b {
			all = append(all, union(x, y))
		}
	}
	return all
}

func union(lists ...[]int) []int {
	all := slices.Concat(lists...)
	slices.Sort(all)
	return slices.Compact(all)
}

// groupingSets are the sets of one item of GROUP BY.
func (c *converter) groupingSets(q *syntax.Query, node *pg.Node) (sets [][]int) {
	n := node.GetGroupingSet()
	if n == nil {
		return [][]int{c.groupKeys(q, node)}
	}
	at := syntax.Pos(take(&n.Location))
	if !c.enterAt(at) {
		return nil
	}
	defer c.leave()
	kind, content := take(&n.Kind), take(&n.Content)
	c.spent(n, at)
	switch kind {
	case pg.GroupingSetKind_GROUPING_SET_EMPTY:
		return [][]int{nil}
	case pg.GroupingSetKind_GROUPING_SET_SETS:
		for _, item := range content {
			sets = append(sets, c.groupingSets(q, item)...)
		}
	case pg.GroupingSetKind_GROUPING_SET_ROLLUP, pg.GroupingSetKind_GROUPING_SET_CUBE:
		var parts [][]int
		for _, item := range content {
			parts = append(parts, c.groupKeys(q, item))
		}
		if kind == pg.GroupingSetKind_GROUPING_SET_ROLLUP {
			for i := len(parts); i >= 0; i-- {
				sets = append(sets, union(parts[:i]...))
			}
			break
		}
		sets = [][]int{nil}
		for _, part := range slices.Backward(parts) {
			sets = c.product([][]int{part, nil}, sets, at)
		}
	default:
		c.refuse(at, "this kind of GROUP BY", "")
	}
	if len(sets) > maxSets {
		c.tooComplex(at, fmt.Sprintf("GROUP BY has more than %d sets of groups", maxSets))
		return nil
	}
	return sets
}

// groupKeys are the places of the keys of one item: an expression, or several in parentheses.
func (c *converter) groupKeys(q *syntax.Query, node *pg.Node) []int {
	row := node.GetRowExpr()
	if row == nil {
		return []int{c.groupKey(q, c.expr(node))}
	}
	var keys []int
	for _, item := range take(&row.Args) {
		keys = append(keys, c.groupKey(q, c.expr(item)))
	}
	row.RowFormat = 0
	c.spent(row, syntax.Pos(take(&row.Location)))
	return union(keys)
}

// groupKey is the place of a key in GROUP BY, where it is put unless it is there.
func (c *converter) groupKey(q *syntax.Query, key syntax.Expr) int {
	same := func(known syntax.Expr) bool { return sameWords(reflect.ValueOf(known), reflect.ValueOf(key)) }
	if at := slices.IndexFunc(q.GroupBy, same); at >= 0 {
		return at
	}
	q.GroupBy = append(q.GroupBy, key)
	return len(q.GroupBy) - 1
}

// sameWords reports whether two nodes of the tree are the same but for where they stand.
func sameWords(a, b reflect.Value) bool {
	if a.IsValid() != b.IsValid() || a.IsValid() && a.Type() != b.Type() {
		return false
	}
	switch {
	case !a.IsValid() || a.Type() == reflect.TypeFor[syntax.Pos]():
		return true
	case a.Kind() == reflect.Pointer || a.Kind() == reflect.Interface:
		return a.IsNil() == b.IsNil() && sameWords(a.Elem(), b.Elem())
	case a.Kind() == reflect.Struct:
		for i := range a.NumField() {
			if !sameWords(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case a.Kind() == reflect.Slice:
		if a.Len() != b.Len() {
			return false
		}
		for i := range a.Len() {
			if !sameWords(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	default:
		return a.Equal(b)
	}
}
