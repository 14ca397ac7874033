package bind

import (
	"fmt"
	"slices"
	"strconv"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/syntax"
)

// What is no sum over groups, and what has private or constant keys, has no totals that are sums of released groups: there each set of
// ROLLUP, CUBE and GROUPING SETS is a query of its own, a release at its share of the price, and the answer is their UNION ALL.

// separates reports whether the sets of such a query are released one by one. A constant among the keys has no column that totals could
// leave out.
func separates(b *algebra.Binder, block *algebra.BoundQuery) bool {
	return len(b.Constants) > 0 || block.Private() || slices.ContainsFunc(block.Estimators, func(v algebra.Estimator) bool {
		return v.How != algebra.MeanOf && (v.How != algebra.AsReleased || !adds(block.Statistics[v.Of[0]]))
	})
}

// oneByOne binds such a query, of which block is over all of its keys.
func oneByOne(o *algebra.Opened, q *syntax.Query, env *algebra.Environment, block *algebra.BoundQuery) (*algebra.Query, error) {
	b := sourceOf(o, q, env).Binder
	at := b.Position(q.Pos)
	switch {
	case slices.ContainsFunc(block.Outputs, func(out algebra.Output) bool { return holdsWindow(out.Expr) }),
		slices.ContainsFunc(block.OrderBy, func(by algebra.Ordering) bool { return holdsWindow(by.Expr) }):
		return nil, fault.Unsupported(at, "a window over groups of ROLLUP, CUBE or GROUPING SETS that are released one by one",
			"write SELECT ... OVER (...) FROM (SELECT ... GROUP BY ROLLUP (...)) t")
	case len(block.Estimators) == 0:
		return nil, fault.Unsupported(at, "ROLLUP, CUBE or GROUPING SETS over private keys without an aggregate", "add count(*)")
	case len(q.Sets) > maxBlocks:
		return nil, fault.TooComplex(at, fmt.Sprintf("ROLLUP, CUBE or GROUPING SETS with more than %d sets of groups, each of them a release "+
			"of its own", maxBlocks))
	}
	items, order := slices.Clone(q.Items), make([]int, len(q.OrderBy))
	for i, by := range q.OrderBy {
		if order[i] = outputOf(q, by.Expr); order[i] < 0 {
			order[i], items = len(items), append(items, syntax.Item{Pos: by.Pos, Expr: by.Expr})
		}
	}
	union := (*algebra.Query)(nil)
	for i, set := range q.Sets {
		level := *q
		level.GroupBy, level.Sets, level.Items = nil, nil, items
		level.OrderBy, level.Limit, level.Offset, level.Distinct = nil, nil, nil, false
		for _, key := range set {
			level.GroupBy = append(level.GroupBy, q.GroupBy[key])
		}
		s := sourceOf(o, &level, env)
		if s.Refused == nil {
			if err := absentKeys(s.Binder, q, set); err != nil {
				return nil, err
			}
		}
		l, err := releaseBlock(o, &level, env)
		if err != nil {
			return nil, err
		}
		if i == 0 && len(q.Sets) > 1 {
			o.Blocks[l.BlockAt].Source.Note("levels", "each level of these totals is a release of its own, at an equal share of the price: "+
				"groups need not add up to their totals")
		}
		if union, err = bothLevels(o, b, union, l); err != nil {
			return nil, err
		}
	}
	return ordered(o, b, union, order)
}

// outputOf is the output that an item of ORDER BY names or counts; -1: none.
func outputOf(q *syntax.Query, n syntax.Expr) int {
	switch n := n.(type) {
	case *syntax.Literal:
		target := aliased(q, n)
		return slices.IndexFunc(q.Items, func(item syntax.Item) bool { return item.Expr == target })
	case *syntax.Column:
		return slices.IndexFunc(q.Items, func(item syntax.Item) bool { return n.Qualifier == "" && itemName(item) == n.Name })
	default:
		return -1
	}
}

// absentKeys tells the binder of one set which keys of the others its groups do not have: they are NULL there.
func absentKeys(b *algebra.Binder, q *syntax.Query, set []int) error {
	b.Level = &algebra.Level{}
	for i, n := range q.GroupBy {
		if slices.Contains(set, i) {
			continue
		}
		n, err := groupItem(b, n)
		if err != nil {
			return err
		}
		key := algebra.GroupKey{Node: n}
		if c, ok := n.(*syntax.Column); ok {
			f, err := column(b, c)
			if err != nil {
				return err
			}
			key.X, key.Node = algebra.Column{Of: f}, nil
		} else if key.X, err = expression(b, rowScope{b}, n); err != nil {
			return err
		}
		if c, ok := key.X.(algebra.Constant); ok {
			b.Constants = append(b.Constants, algebra.GroupKey{Node: n, X: algebra.Constant{T: c.T, Null: true}})
			continue
		}
		b.Level.Absent = append(b.Level.Absent, key)
	}
	return nil
}

// keyValue is the key that an expression over a row is; NULL of its type where the groups do not have it.
func keyValue(b *algebra.Binder, x algebra.Expr) (algebra.Expr, bool) {
	if key, ok := keyOf(b, x); ok {
		return key, true
	}
	if b.Level != nil {
		for _, k := range b.Level.Absent {
			if algebra.SameKey(k.X, x) {
				return algebra.Constant{T: algebra.OutputType(x.Typ()), Null: true}, true
			}
		}
	}
	return nil, false
}

// groupingOf is GROUPING over keys in the groups of one set: a bit for each key, which is set where they do not have it.
func groupingOf(b *algebra.Binder, s blockScope, n *syntax.Call) (algebra.Expr, error) {
	args, err := expressions(b, s, n.Args)
	value := int64(0)
	for _, arg := range args {
		c, isConstant := arg.(algebra.Constant)
		value = value<<1 | int64(algebra.BoolIndex(isConstant && c.Null))
	}
	return algebra.Constant{T: catalog.Int4, Text: strconv.FormatInt(value, 10)}, err
}

// bothLevels are the rows of both queries, of equal types; left is nil for none.
func bothLevels(o *algebra.Opened, b *algebra.Binder, left, right *algebra.Query) (*algebra.Query, error) {
	if left == nil {
		return right, nil
	}
	lb := &postBinder{Binder: b, open: o, query: &algebra.Query{Set: &algebra.SetOperation{Kind: syntax.Union, All: true, Left: left,
		Right: right}}}
	return lb.query, lb.sides(b.Query.Pos)
}

// ordered is a query over the outputs of another one, ordered by those at some places and cut as the binder's query says. What else it is
// ordered by is not shown.
func ordered(o *algebra.Opened, b *algebra.Binder, of *algebra.Query, order []int) (*algebra.Query, error) {
	o.Items++
	rows := derivedOf(o, of, nextAlias(o))
	l := &algebra.Query{From: rows}
	for i, item := range b.Query.Items {
		l.Outputs = append(l.Outputs, algebra.Output{Name: itemName(item), Expr: algebra.Column{Of: rows.Fields[i]}})
	}
	next := 0
	var err error
	l.OrderBy, err = orderings(b, b.Query.OrderBy, func(syntax.Expr) (algebra.Expr, error) {
		next++
		return algebra.Column{Of: rows.Fields[order[next-1]]}, nil
	})
	if err == nil {
		l.Limit, l.Offset, err = limitOffset(b)
	}
	if err != nil {
		return nil, err
	}
	return l, substituted(o, l, scalar.Position(o.Text, b.Query.Pos))
}
