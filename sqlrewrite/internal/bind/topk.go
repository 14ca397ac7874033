package bind

import (
	"fmt"
	"math/big"

	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/sqlprint"
)

// AsTopK is the query as a selection, if it asks for the keys of the largest groups and for nothing else of them: SELECT key ... GROUP BY
// key ORDER BY count(*) DESC LIMIT k over public keys. Nil for other queries.
//
// The selected groups are the rows of the release, in the order of their choice.
func AsTopK(q *algebra.BoundQuery) *algebra.BoundQuery {
	if q.Private() || len(q.Keys) == 0 || q.Having != nil || q.Limit == nil || len(q.Statistics) != 1 || len(q.Estimators) != 1 ||
		len(q.OrderBy) == 0 {
		return nil
	}
	by, ok := q.OrderBy[0].Expr.(algebra.EstimatorRef)
	if !ok || !q.OrderBy[0].Descending || q.Estimators[by.Index].Computed() || q.Statistics[0].Chooses() {
		return nil
	}
	for _, o := range sqlprint.OwnOutputs(q) {
		if len(ReleasesOf(q, o.Expr)) > 0 {
			return nil // a number that is shown is bought: then the groups are sorted by it
		}
	}
	for _, o := range q.OrderBy[1:] {
		if len(ReleasesOf(q, o.Expr)) > 0 {
			return nil
		}
	}
	k := *q.Limit + q.Offset
	if *q.Limit <= 0 || k <= 0 || big.NewInt(k).Cmp(q.PublicTuples()) >= 0 {
		return nil // all groups: there is nothing to select
	}
	selected := *q
	selected.Top, selected.OrderBy, selected.Limit, selected.Estimators = k, nil, nil, nil
	selected.Statistics = []algebra.Statistic{q.Statistics[0]}
	selected.Statistics[0].Name = fmt.Sprintf("first %d by %s", k, q.Statistics[0].Name)
	return &selected
}
