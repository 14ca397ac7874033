package bind

import (
	"slices"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/syntax"
)

// firstRows binds DISTINCT ON over rows of people: the first of those rows that are equal in some expressions, among which is the unit.
//
//	SELECT DISTINCT ON (unit, k) x FROM t ORDER BY unit, k, y
//	SELECT x FROM (SELECT x, row_number() OVER (PARTITION BY unit, k ORDER BY y) AS nth FROM t) q WHERE nth = 1
func firstRows(b *algebra.Binder) (*algebra.Relation, error) {
	q, side := *b.Query, b.Side
	q.DistinctOn, q.OrderBy = nil, nil
	if err := refuseUnstable(b, &q); err != nil {
		return nil, err
	}
	if q.Groups() || q.Having != nil || slices.ContainsFunc(q.Items, func(i syntax.Item) bool { return callsAggregate(i.Expr) }) {
		return nil, fault.Unsupported(b.Position(q.Pos), "DISTINCT ON of statistics of single people", "write it around a query in FROM")
	}
	if err := from(b); err != nil {
		return nil, err
	}
	window, err := placeAmong(b)
	if err != nil {
		return nil, err
	}
	q.Items = append(slices.Clone(q.Items), syntax.Item{Pos: q.Pos, Expr: &syntax.Call{Pos: q.Pos, Name: "row_number", Over: window}})
	b.Query, b.Side, b.InFrom = &q, nil, false
	rows, err := rowsOf(b)
	if err != nil {
		return nil, err
	}
	last := len(rows.Fields) - 1
	b.Side, b.Bound.Source = side, rows
	b.Bound.Where = algebra.Binary{Op: syntax.Eq, L: algebra.Column{Of: rows.Fields[last]}, R: algebra.Constant{T: catalog.Int4, Text: "1"},
		T: catalog.Bool}
	p := newResult(b, rows)
	for _, f := range rows.Fields[:last] {
		p.add(f.Name, algebra.Column{Of: f}, true)
	}
	return finish(b, p)
}

// placeAmong is the window in which the first row is the one that DISTINCT ON keeps. As in PostgreSQL, its expressions come first in ORDER
// BY, or all of that is of them.
func placeAmong(b *algebra.Binder) (*syntax.Window, error) {
	q, w := b.Query, &syntax.Window{Pos: b.Query.Pos}
	for _, n := range q.DistinctOn {
		w.PartitionBy = append(w.PartitionBy, aliased(q, n))
	}
	ordered := make([]bool, len(w.PartitionBy))
	for _, item := range q.OrderBy {
		item.Expr = aliased(q, item.Expr)
		at := slices.IndexFunc(w.PartitionBy, func(n syntax.Expr) bool { return sameRowValue(b, n, item.Expr) })
		if at >= 0 {
			ordered[at] = true
		} else {
			w.OrderBy = append(w.OrderBy, item)
		}
		if len(w.OrderBy) > 0 && (at >= 0 || slices.Contains(ordered, false)) {
			return nil, b.Unsupported(item.Expr, "DISTINCT ON whose expressions are not the first of ORDER BY", "")
		}
	}
	return w, nil
}

// sameRowValue reports whether two expressions over a row are one.
func sameRowValue(b *algebra.Binder, l, r syntax.Expr) bool {
	x, err := rowOutput(b, l)
	if err != nil {
		return false
	}
	y, err := rowOutput(b, r)
	return err == nil && algebra.Same(x, y)
}
