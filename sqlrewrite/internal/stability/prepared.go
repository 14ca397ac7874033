package stability

import (
	"errors"
	"math/big"

	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/scalar"
)

// errLive refuses what only the table itself can answer. Nobody sees it: the question is then asked of the table.
var errLive = errors.New("stability: the query has no bound over a prepared copy")

// ofCopy bounds a query over a prepared copy: with the rows of a rank of at most m a unit is in at most m groups, with at most m rows in
// all. Its errors are internal.
func ofCopy(q *algebra.BoundQuery, asked Bounds) (Bounding, error) {
	scan := q.CopyOf()
	if scan == nil || q.Pairs != nil && q.Pairs.Cmp(big.NewInt(1)) > 0 {
		return Bounding{}, fault.Internal(errLive)
	}
	if len(q.Keys) > 0 && (asked.MaxRows > 0 || asked.MaxGroups > 0) { // bounds of each group are asked for
		return Bounding{}, fault.Internal(errLive)
	}
	m, most := scan.Table.Copy.MaxRows, []int64{asked.MaxTotal, q.Source.MaxTotal}
	if len(q.Keys) == 0 {
		most = append(most, asked.MaxRows, q.Source.MaxRows)
	}
	for _, bound := range most {
		if bound > 0 {
			m = min(m, bound)
		}
	}
	if q.CountsEveryUnit() { // each has a row of the first rank, and one only
		m = 1
	}
	groups := m
	switch {
	case len(q.Keys) == 0:
		groups = 1
	case !q.Private():
		groups = max(min(m, scalar.ClampInt64(q.PublicTuples())), 1)
	}
	return Bounding{Kind: Flat, MaxRows: m, MaxGroups: groups, MaxTotal: m, MaxValues: m, MostRank: m}, nil
}
