package bind

import (
	"math/big"
	"slices"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/domain"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/syntax"
)

// publicGroups binds a query that groups public rows: they are public rows, of which no two have equal keys. Rows of people may decide in
// which order PostgreSQL reads public ones, so that no aggregate is taken whose value depends on it.
func publicGroups(b *algebra.Binder, r *algebra.Relation) (*algebra.Relation, error) {
	g := &grouping{Binder: b, p: newProjection(b, r), keys: map[*algebra.Field]*algebra.Field{}}
	if b.Query.Sets != nil {
		return nil, fault.Unsupported(b.Position(b.Query.Pos), "ROLLUP, CUBE or GROUPING SETS of public rows that are joined to rows of people",
			"group by plain columns")
	}
	for _, n := range b.Query.GroupBy {
		target, err := groupItem(b, n)
		if err != nil {
			return nil, err
		}
		e, err := rowOutput(b, target)
		if err != nil {
			return nil, err
		}
		f := algebra.PlainField(e)
		if algebra.IsConstant(e) || f != nil && g.keys[f] != nil {
			continue
		}
		if f == nil || !algebra.OneText(e) {
			return nil, b.Unsupported(n, "this key of groups of public rows that are joined to rows of people",
				"group by plain columns whose equal values are written alike; compute columns in a query in FROM below")
		}
		g.keys[f] = g.p.put(g.p.field(f.Name, e), e, true)
		g.p.query.Keys = append(g.p.query.Keys, e)
	}
	if len(g.p.query.Keys) == 0 {
		return nil, fault.Unsupported(b.Position(b.Query.Pos), "an aggregate of all rows of a public table as an item of FROM beside rows of people",
			"write it as a value, (SELECT count(*) FROM t), or group by a column and join on it")
	}
	return g.above(r)
}

// rangesOf gives columns of public tables that an expression reads, and of which nothing says bounds, the least and the largest of their
// values. While these are not known yet the query is bound once more later: until then any bounds do.
func (g *grouping) rangesOf(n syntax.Expr) error {
	list := g.Bound.Shared().List
	c, isColumn := n.(*syntax.Column)
	if list == nil || !isColumn {
		for _, x := range operands(n) {
			if err := g.rangesOf(x); err != nil {
				return err
			}
		}
		return nil
	}
	f, err := column(g.Binder, c)
	if err != nil || f.Bounds != nil || !f.Type.IsNumber() || scalar.IsFloat(f.Type) {
		return err
	}
	scan := scanOf(g.p.of.Node, f)
	if scan == nil || !scan.Table.Public {
		return nil
	}
	tuples, known := list(algebra.KeyList{Scans: []*algebra.Scan{scan}, Keys: []*algebra.Field{f}})
	within := leastAndLargest(tuples)
	if !known {
		within = &catalog.Bounds{Lo: new(big.Rat), Hi: scalar.One()}
	}
	if within != nil {
		own := *f.Column
		own.Bounds, f.Column = within, &own
	}
	return nil
}

// leastAndLargest are the bounds of a list of numbers; nil if one of them is none.
func leastAndLargest(tuples [][]catalog.Key) (b *catalog.Bounds) {
	for _, t := range tuples {
		if t[0].Null {
			continue
		}
		v, ok := scalar.ParseNumber(t[0].Text)
		switch {
		case !ok:
			return nil
		case b == nil:
			b = &catalog.Bounds{Lo: v, Hi: v}
		case v.Cmp(b.Lo) < 0:
			b.Lo = v
		case v.Cmp(b.Hi) > 0:
			b.Hi = v
		}
	}
	return b
}

// scanOf is the table that a field is a column of; nil: it is computed, or a query in FROM has it.
func scanOf(n algebra.FromItem, f *algebra.Field) *algebra.Scan {
	switch n := n.(type) {
	case *algebra.Scan:
		if slices.Contains(n.Fields, f) {
			return n
		}
	case *algebra.RowCap:
		return scanOf(n.Of, f)
	case *algebra.Joined:
		if s := scanOf(n.Left, f); s != nil {
			return s
		}
		return scanOf(n.Right, f)
	}
	return nil
}

// refusePublic refuses an aggregate of public rows that are joined to rows of people.
func (g *grouping) refusePublic(n *syntax.Call) error {
	what := "aggregate " + n.Name + " of public rows that are joined to rows of people"
	switch f := domain.BuiltinOf(n.Name); {
	case f.Form.Pairs():
		return g.Unsupported(n, what, n.Name+" adds floats, whose sum depends on the order in which PostgreSQL reads the rows, and one person's "+
			"rows may change that order: write it with sums of numerics, sum(x::numeric)")
	case n.Name == "string_agg" || n.Name == "array_agg":
		return g.Unsupported(n, what, "its value depends on the order in which PostgreSQL reads the rows, which one person's rows may change: "+
			"min and max have one value in any order")
	default:
		return g.Unsupported(n, what, "count, sum, avg, min, max, bool_or and bool_and are taken")
	}
}
