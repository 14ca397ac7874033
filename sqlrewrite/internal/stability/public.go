package stability

import (
	"math/big"
	"slices"

	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/syntax"
)

// This file says of public tables how many rows they have and what reading them takes: facts that no person's rows change.

// mostRows is how many rows a public item has at most, and the facts that this rests on.
func mostRows(n algebra.FromItem) (*big.Int, []algebra.Count) {
	switch n := n.(type) {
	case *algebra.Scan:
		if n.Table.MostRows <= 0 {
			return big.NewInt(unknownRows), nil
		}
		return big.NewInt(n.Table.MostRows), []algebra.Count{{Table: n.Table}}
	case *algebra.RowCap:
		return mostRows(n.Of)
	case *algebra.Joined:
		l, counts := mostRows(n.Left)
		r, more := mostRows(n.Right)
		product := new(big.Int).Mul(l, r)
		if n.Kind == syntax.FullJoin {
			return product.Add(product, l.Add(l, r)), append(counts, more...)
		}
		if n.Meets != nil {
			for _, p := range n.Meets.Pairs {
				if !algebra.SameEquality(p.L.Type, p.R.Type) {
					continue
				}
				if rows, rests := equalRows(n.Right, p.R); n.Kind != syntax.FullJoin {
					if fan := new(big.Int).Mul(l, rows); fan.Cmp(product) < 0 {
						product, more = fan, rests
					}
				}
			}
		}
		return product, append(counts, more...)
	case *algebra.Derived:
		total, counts := new(big.Int), []algebra.Count(nil)
		for _, q := range n.Parts {
			rows, more := big.NewInt(1), []algebra.Count(nil)
			if q.From != nil && (len(q.Keys) > 0 || !slices.ContainsFunc(q.Results(), algebra.HasAggregate)) {
				rows, more = mostRows(q.From)
			}
			total.Add(total, rows)
			counts = append(counts, more...)
		}
		return total, counts
	default:
		panic("sqlrewrite: relation without a number of rows")
	}
}

// RowsOfGroup bounds how many rows of a public item have equal values in the given fields; 0: no bound is known.
func RowsOfGroup(n algebra.FromItem, by []*algebra.Field) int64 {
	least, _ := mostRows(n)
	for _, f := range by {
		if rows, _ := equalRows(n, f); f.NotNull() && rows.Cmp(least) < 0 { // rows without a value are not among those that are counted
			least = rows
		}
	}
	if least.Cmp(big.NewInt(unknownRows)) >= 0 {
		return 0
	}
	return least.Int64()
}

// GroupsPublic reports whether a query has a row for each group of public rows.
func GroupsPublic(q *algebra.Query) bool { return len(q.Keys) > 0 && q.Of != nil && !q.Of.Owned() }

// hasGroups reports whether a public item has groups of rows, which are computed once for all rows that they are joined to.
func hasGroups(n algebra.FromItem) bool {
	switch n := n.(type) {
	case *algebra.RowCap:
		return hasGroups(n.Of)
	case *algebra.Joined:
		return hasGroups(n.Left) || hasGroups(n.Right)
	case *algebra.Derived:
		return slices.ContainsFunc(n.Parts, func(q *algebra.Query) bool {
			return q.From != nil && (GroupsPublic(q) || hasGroups(q.From))
		})
	default:
		return false
	}
}

// equalRows is how many rows of a public item have one value of a field at most, and the facts that this rests on.
func equalRows(n algebra.FromItem, f *algebra.Field) (*big.Int, []algebra.Count) {
	switch n := n.(type) {
	case *algebra.Scan:
		if slices.ContainsFunc(n.Table.Unique, func(key []string) bool { return len(key) == 1 && key[0] == f.Name }) {
			return big.NewInt(1), []algebra.Count{{Table: n.Table, Key: f.Name}}
		}
		if c, ok := n.Table.Column(f.Name); ok && c.MostEqual > 0 {
			return big.NewInt(c.MostEqual), []algebra.Count{{Table: n.Table, Column: c.Name}}
		}
	case *algebra.RowCap:
		return equalRows(n.Of, f)
	case *algebra.Joined:
		if n.Meets == nil || n.Kind == syntax.FullJoin {
			break
		}
		side, other, own := n.Left, n.Right, func(p algebra.Pair) *algebra.Field { return p.R }
		if algebra.Holds(n.Right, f) {
			side, other, own = n.Right, n.Left, func(p algebra.Pair) *algebra.Field { return p.L }
		}
		rows, counts := equalRows(side, f)
		fan, more := mostRows(other)
		for _, p := range n.Meets.Pairs {
			if by, rests := equalRows(other, own(p)); algebra.SameEquality(p.L.Type, p.R.Type) && by.Cmp(fan) < 0 {
				fan, more = by, rests
			}
		}
		return new(big.Int).Mul(rows, fan), append(counts, more...)
	case *algebra.Derived:
		if len(n.Parts) != 1 || n.Parts[0].From == nil {
			break
		}
		if i := slices.Index(n.Fields, f); i >= 0 && i < len(n.Parts[0].Outputs) {
			if stem := algebra.PlainField(n.Parts[0].Outputs[i].Expr); stem != nil && (n.Parts[0].Rowwise() || GroupsPublic(n.Parts[0])) {
				return equalRows(n.Parts[0].From, stem)
			}
		}
	}
	return mostRows(n)
}

// ReadsBoth reports whether a join is to read both sides whatever is in them.
func ReadsBoth(n *algebra.Joined) bool { return n.OfPeople() || OfLarge(n) }

// OfLarge reports whether one side is rows of people and the other one public rows that take long to read.
func OfLarge(n *algebra.Joined) bool {
	if n.Meets == nil {
		return n.On == nil && Large(n.Right) // the value of a query
	}
	return LargeBeside(n, n.On)
}

// LargeBeside reports whether a join is one of rows of people with public rows that take long to read, with some conditions on them alone.
func LargeBeside(n *algebra.Joined, conditions algebra.Expr) bool {
	switch {
	case n.Meets == nil || n.Meets.L.Owned() == n.Meets.R.Owned():
		return false
	case n.Meets.L.Owned():
		return Large(n.Right, conditions)
	default:
		return Large(n.Left, conditions)
	}
}

// Large reports whether reading public rows, and computing with them, may take longer than a part of what the work of one unit may differ
// by: whether that is done is then no business of a unit's rows. Smaller ones are read as PostgreSQL likes, but for groups, which it must
// compute once. Conditions that read these rows alone are tested once for each of them.
func Large(n algebra.FromItem, conditions ...algebra.Expr) bool {
	return hasGroups(n) || publicWork(n, conditions...).Cmp(big.NewInt(MaxUnitWork/largePart)) > 0
}

// publicWork is what it takes, at most, to read public rows and to test the conditions that read these alone, in ns.
func publicWork(n algebra.FromItem, conditions ...algebra.Expr) *big.Int {
	work := readingOf(n)
	rows, _ := mostRows(n)
	var alone []algebra.Expr
	for _, all := range conditions {
		for _, c := range algebra.BoundConjuncts(all) {
			if ReadsWithin(c, n) {
				alone = append(alone, c)
			}
		}
	}
	return work.Add(work, beyondReading(rows, alone...))
}

// once refuses groups of public rows that are joined without an equality: PostgreSQL could compute them anew for each row.
func (w *workload) once(n algebra.FromItem, pairs []algebra.Pair) error {
	if !hasGroups(n) || slices.ContainsFunc(pairs, func(p algebra.Pair) bool { return algebra.SameEquality(p.L.Type, p.R.Type) }) {
		return nil
	}
	return fault.Unsupported(w.place, "a join of rows of people with groups of public rows without an equality of two columns of one type",
		"join them on a column, ON g.x = t.x, or write one value as a query: (SELECT max(x) FROM t)")
}

// small refuses public rows that are read as PostgreSQL likes, and would take too long for that in all runs together. Conditions of the
// blocks around are tested of them too.
func (w *workload) small(n algebra.FromItem, conditions ...algebra.Expr) error {
	if w.runs.Cmp(big.NewInt(1)) == 0 {
		return nil
	}
	limit, work := big.NewInt(MaxUnitWork/largePart), publicWork(n, append(slices.Clone(w.tested), conditions...)...)
	if work.Cmp(limit) > 0 { // it is large
		return nil
	}
	if work.Mul(work, w.runs).Cmp(limit) > 0 {
		micros := work.Div(work.Add(work, big.NewInt(999)), big.NewInt(1000))
		return fault.FanOut(w.place, "the rows of "+tablesOf(n), []string{w.runs.String() + " passes"}, micros.String(),
			MaxUnitWork/largePart/1000, "")
	}
	_, counts := mostRows(n)
	w.facts.Count(counts...)
	return nil
}

// readingOf is what it takes, at most, to read the rows of a public item, in ns.
func readingOf(n algebra.FromItem) *big.Int {
	work := new(big.Int)
	switch n := n.(type) {
	case *algebra.Scan:
		rows, _ := mostRows(n)
		work.Mul(rows, big.NewInt(ScanRow))
	case *algebra.RowCap:
		return readingOf(n.Of)
	case *algebra.Joined:
		met, _ := mostRows(n)
		work.Add(readingOf(n.Left), readingOf(n.Right))
		work.Add(work, new(big.Int).Mul(met, big.NewInt(ScanRow)))
		work.Add(work, beyondReading(met, n.On))
	case *algebra.Derived:
		for _, q := range n.Parts {
			rows := big.NewInt(1)
			if q.From != nil {
				rows, _ = mostRows(q.From)
				work.Add(work, readingOf(q.From))
			}
			work.Add(work, beyondReading(rows, append(slices.Concat(q.Keys, q.Results()), q.Where)...))
		}
	}
	return work
}

// beyondReading is what it takes to compute expressions of each of some public rows beyond what is counted for reading a row: that has room
// for plain conditions.
func beyondReading(rows *big.Int, list ...algebra.Expr) *big.Int {
	work := computing(rows, list...)
	work.Sub(work, new(big.Int).Mul(rows, big.NewInt(ScanRow)))
	if work.Sign() < 0 {
		work.SetInt64(0)
	}
	return work
}

// computing is what it takes to compute expressions of each of some public rows, in ns.
func computing(rows *big.Int, list ...algebra.Expr) *big.Int {
	each, once := new(big.Int), new(big.Int)
	for _, e := range list {
		switch e := e.(type) {
		case nil:
			continue
		case algebra.Exists:
			once.Add(once, readingOf(e.From))
			inner, _ := mostRows(e.From)
			each.Add(each, computing(inner, e.Where))
		case algebra.InRows:
			once.Add(once, readingOf(e.From))
			inner, _ := mostRows(e.From)
			each.Add(each, big.NewInt(LookupRow))
			each.Add(each, computing(inner, e.Where))
		case algebra.Aggregate:
			most := int64(GroupedRow)
			if e.Over != nil {
				most = MultiplyCapped(WindowRow, max(1, e.Over.Most(scalar.ClampInt64(rows))))
			}
			each.Add(each, big.NewInt(most))
		default:
			each.Add(each, big.NewInt(PriceOf(e)))
		}
		of := new(big.Int)
		if _, exists := e.(algebra.Exists); !exists {
			of = computing(big.NewInt(1), algebra.Children(e)...)
		}
		each.Add(each, of)
	}
	return once.Add(once, each.Mul(each, rows))
}
