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
	if scan == nil || q.Private() || q.Top > 0 || q.Pairs != nil && q.Pairs.Cmp(big.NewInt(1)) > 0 {
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
	for _, s := range q.Statistics {
		switch s.Kind {
		case algebra.CountRows, algebra.CountValues, algebra.SumSteps, algebra.SumCentred, algebra.SumProducts:
		case algebra.CountUnits: // every unit has a row of the first rank, and one only
			if len(q.Statistics) > 1 || len(q.Keys) > 0 || q.Where != nil || s.Filter != nil || q.Source.Node != algebra.FromItem(scan) {
				return Bounding{}, fault.Internal(errLive)
			}
			m = 1
		default:
			return Bounding{}, fault.Internal(errLive)
		}
	}
	groups := int64(1)
	if len(q.Keys) > 0 {
		groups = max(min(m, scalar.ClampInt64(q.PublicTuples())), 1)
	}
	return Bounding{Kind: Flat, MaxRows: m, MaxGroups: groups, MaxTotal: m, MaxValues: m, MostRank: m}, nil
}
