package stability

import (
	"errors"
	"math/big"
	"slices"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/domain"
	"noisegate.example/sqlrewrite/internal/scalar"
)

// errLive refuses what only the table itself can answer. Nobody sees it: the question is then asked of the table.
var errLive = errors.New("stability: the query has no bound over a prepared copy")

// ofCopy bounds a query over a prepared copy: with the rows of a rank of at most m, each in at most one tuple, a unit is in at most m
// groups, with at most m rows in all. Its errors are internal.
func ofCopy(q *algebra.BoundQuery, asked Bounds) (Bounding, error) {
	scan := q.CopyOf()
	if scan == nil || q.Fan == nil || q.Fan.Cmp(big.NewInt(1)) > 0 {
		return Bounding{}, fault.Internal(errLive)
	}
	most := scan.Table.Copy.MaxRows
	wanted, m := smallest(most, asked.MaxTotal), smallest(most, asked.MaxTotal, q.Source.MaxTotal)
	if set := asked.Set; set != nil {
		return ofSet(q, set, m, asked)
	}
	if len(q.Keys) > 0 && (asked.MaxRows > 0 || asked.MaxGroups > 0) { // bounds of each group are asked for
		return Bounding{}, fault.Internal(errLive)
	}
	if len(q.Keys) == 0 {
		wanted, m = smallest(wanted, asked.MaxRows), smallest(m, asked.MaxRows, q.Source.MaxRows)
	}
	switch {
	case q.RankedCopy() == nil && wanted < most: // no condition can leave out a row by its rank
		return Bounding{}, fault.Internal(errLive)
	case q.RankedCopy() == nil:
		m = most
	case q.CountsEveryUnit(): // each has a row of the first rank, and one only
		m = 1
	}
	return Bounding{Kind: Flat, MaxRows: m, MaxGroups: cells(q, m), MaxTotal: m, MaxValues: m, MostRank: m}, nil
}

// ofSet bounds a query over the rows of a copy that a set of its ranks leaves: G groups of each unit, r rows in each, N rows in all.
//
//   - Keys that are the set's, or more, tell its groups apart: a group has at most r of the unit's rows. Of others a group may have all N.
//   - Keys that follow from the set's are as many as its groups, G. Others may be as many as rows.
func ofSet(q *algebra.BoundQuery, set *catalog.RankSet, m int64, asked Bounds) (Bounding, error) {
	groups, rows := smallest(m, asked.MaxGroups, q.Source.MaxGroups), smallest(m, asked.MaxRows, q.Source.MaxRows)
	if asked.MaxGroups > q.Source.MaxGroups && q.Source.MaxGroups > 0 || asked.MaxRows > q.Source.MaxRows && q.Source.MaxRows > 0 ||
		q.CountsEveryUnit() { // without ranks each is counted once, and none is left out
		return Bounding{}, fault.Internal(errLive)
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
		for _, f := range domain.ColumnsOf(k.X) {
			follows = follows && slices.Contains(scan.Fields, f) && slices.Contains(set.Keys, f.Name)
		}
	}
	b := Bounding{Kind: Flat, MaxRows: total, MaxGroups: cells(q, total), MaxTotal: total, MostRank: m,
		Set: set, SetGroups: groups, SetRows: rows}
	if within {
		b.MaxRows = min(rows, total)
	}
	if follows {
		b.MaxGroups = min(b.MaxGroups, groups)
	}
	b.MaxValues = b.MaxRows
	return b, nil
}

// cells are how many groups a unit with so many rows is in at most.
func cells(q *algebra.BoundQuery, rows int64) int64 {
	switch {
	case len(q.Keys) == 0:
		return 1
	case q.Private():
		return rows
	default:
		return max(min(rows, scalar.ClampInt64(q.PublicTuples())), 1)
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
