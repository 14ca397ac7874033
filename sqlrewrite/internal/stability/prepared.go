package stability

import (
	"math/big"
	"slices"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/steps"
)

// notOfCopy refuses what a prepared copy cannot answer: the question is then asked of the table, where the policy lets it be read.
func notOfCopy(q *algebra.BoundQuery, why, hint string) error {
	return fault.NotOfCopy(q.At, q.Copied().Of.String(), why, hint)
}

// ofCopy bounds a query over a prepared copy: with the rows of a rank of at most m, each in at most f tuples, a unit is in at most m·f
// groups, with at most m·f rows in all. Its errors are policy/prepared-only.
func ofCopy(q *algebra.BoundQuery, asked Bounds) (Bounding, error) {
	scan := q.CopyOf()
	switch {
	case scan == nil:
		return Bounding{}, notOfCopy(q, "it needs several rows of a person, and a copy lacks some",
			"ask about each row alone: without GROUP BY, DISTINCT or windows below an aggregate, EXISTS or IN over people, and joins of people "+
				"with each other")
	case q.Fan == nil:
		return Bounding{}, notOfCopy(q, "nothing bounds in how many rows of a join one of its rows is",
			"join public tables by a column of theirs, and none that is itself a join")
	}
	most := scan.Table.Copy.MaxRows
	wanted, m := smallest(most, asked.MaxTotal), smallest(most, asked.MaxTotal, q.Source.MaxTotal)
	if set := asked.Set; set != nil {
		return ofSet(q, set, m, asked)
	}
	if len(q.Keys) > 0 && (asked.MaxRows > 0 || asked.MaxGroups > 0) {
		return Bounding{}, notOfCopy(q, "max_rows and max_groups bound each group, and no ranks of the copy do",
			"leave out max_rows and max_groups; max_rows_total bounds all groups together")
	}
	if len(q.Keys) == 0 {
		wanted, m = smallest(wanted, asked.MaxRows), smallest(m, asked.MaxRows, q.Source.MaxRows)
	}
	switch {
	case q.RankedCopy() == nil && wanted < most:
		return Bounding{}, notOfCopy(q, "within a query in FROM no condition leaves out a row of the copy by its rank",
			"leave out max_rows and max_rows_total, or name the table in the FROM of the outer query")
	case q.RankedCopy() == nil:
		m = most
	case q.CountsEveryUnit(): // each has a row of the first rank, and one only
		m = 1
	}
	return joinedBy(q, Bounding{Kind: Flat, MaxRows: m, MaxTotal: m, MostRank: m})
}

// joinedBy bounds the tuples of a copy's rows, of which each is in as many as it meets rows of public tables. Their groups are at most
// those that are there, or that were bounded before.
func joinedBy(q *algebra.BoundQuery, b Bounding) (Bounding, error) {
	if b.MaxRows > MaxBound/q.Fan.Int64() || b.MaxTotal > MaxBound/q.Fan.Int64() {
		return Bounding{}, notOfCopy(q, "its rows meet so many public rows that no noise hides a person", "join public tables by a unique key")
	}
	b.MaxRows, b.MaxTotal = b.MaxRows*q.Fan.Int64(), b.MaxTotal*q.Fan.Int64()
	b.MaxValues, b.MaxGroups = b.MaxRows, smallest(cells(q, b.MaxTotal), b.MaxGroups)
	return b, nil
}

// fanOf cuts public tables that a copy is joined with to so many rows of a value as are approved, where no key says that there is one,
// and gives how many tuples a row of the copy is in at most; nil: nothing bounds them. What is approved bounds time, and may be counted a
// minute late: what a unit adds is bounded by the statement itself.
func (w *workload) fanOf(at *algebra.FromItem) *big.Int {
	defer steps.Visit(w.Steps()).Leave()
	switch n := (*at).(type) {
	case *algebra.Scan:
		return big.NewInt(1)
	case *algebra.RowCap:
		return w.fanOf(&n.Of)
	case *algebra.Derived:
		return w.fanOf(&n.Parts[0].From)
	case *algebra.Joined:
		m := n.Meets
		switch {
		case m == nil: // beside a value
			return w.fanOf(&n.Left)
		case !m.L.Owned():
			fan, by := w.publicFan(n.Left, m.LKey, m.Pairs, ofLeft)
			return w.cut(&n.Left, by, fan, w.fanOf(&n.Right))
		default:
			fan, by := w.publicFan(n.Right, m.RKey, m.Pairs, ofRight)
			return w.cut(&n.Right, by, fan, w.fanOf(&n.Left))
		}
	}
	return nil
}

// cut cuts a public table to so many rows of a field, for each of rows others.
func (w *workload) cut(at *algebra.FromItem, by *algebra.Field, fan, rows *big.Int) *big.Int {
	if rows == nil || fan.Cmp(big.NewInt(1)) <= 0 {
		return rows
	}
	scan, ok := (*at).(*algebra.Scan)
	if rows = new(big.Int).Mul(rows, fan); !ok || by == nil || rows.Cmp(big.NewInt(MaxBound)) > 0 {
		return nil
	}
	c := &algebra.RowCap{Of: scan, By: by, Rows: fan.Int64()}
	w.facts.Caps = append(w.facts.Caps, c)
	*at = c
	return rows
}

// ofSet bounds a query over the rows of a copy that a set of its ranks leaves: G groups of each unit, r rows in each, N rows in all.
//
//   - Keys that are the set's, or more, tell its groups apart: a group has at most r of the unit's rows. Of others a group may have all N.
//   - Keys that follow from the set's are as many as its groups, G. Others may be as many as rows.
func ofSet(q *algebra.BoundQuery, set *catalog.RankSet, m int64, asked Bounds) (Bounding, error) {
	groups, rows := smallest(m, asked.MaxGroups, q.Source.MaxGroups), smallest(m, asked.MaxRows, q.Source.MaxRows)
	if asked.MaxGroups > q.Source.MaxGroups && q.Source.MaxGroups > 0 || asked.MaxRows > q.Source.MaxRows && q.Source.MaxRows > 0 ||
		q.CountsEveryUnit() { // without ranks each is counted once, and none is left out
		return Bounding{}, notOfCopy(q, "its ranks bound no more than the policy does, and no count of all people",
			"leave out max_rows and max_groups")
	}
	scan := q.RankedCopy()
	total, within, follows := m, len(q.Keys) > 0, len(q.Keys) > 0
	if m/rows >= groups { // no product that may be too large
		total = groups * rows
	}
	for _, name := range set.Keys {
		within = within && slices.ContainsFunc(q.Keys, func(k algebra.GroupKey) bool {
			f := algebra.PlainField(k.X)
			return f != nil && f.Name == name && slices.Contains(scan.Fields, f)
		})
	}
	for _, k := range q.Keys {
		for _, f := range algebra.FreeFields(k.X) {
			follows = follows && slices.Contains(scan.Fields, f) && slices.Contains(set.Keys, f.Name)
		}
	}
	b := Bounding{Kind: Flat, MaxRows: total, MaxTotal: total, MostRank: m, Set: set, SetGroups: groups, SetRows: rows}
	if within {
		b.MaxRows = min(rows, total)
	}
	if follows {
		b.MaxGroups = groups
	}
	return joinedBy(q, b)
}

// cells are how many groups a unit with so many rows is in at most.
func cells(q *algebra.BoundQuery, rows int64) int64 {
	switch {
	case len(q.Keys) == 0:
		return 1
	case q.Private():
		return rows
	default:
		return max(min(rows, scalar.ClampInt64(q.Combinations())), 1)
	}
}

// smallest is the smallest of a bound and of those of others that there are.
func smallest(bound int64, others ...int64) int64 {
	for _, o := range others {
		if o > 0 {
			bound = min(bound, o)
		}
	}
	return bound
}
