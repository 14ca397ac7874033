package stability

import "noisegate/sqlrewrite/internal/algebra"

// leastKept is how many rows of a unit a cap keeps at least, or as many as one group counts of it: with fewer, better no answer than one of
// so little.
const leastKept = 4

// NewRowCap makes room for a cap of a relation's rows by a field. With rows 0 it changes nothing.
func NewRowCap(of algebra.FromItem, r *algebra.Relation, by *algebra.Field) *algebra.RowCap {
	most := r.MaxRows
	if r.MaxGroups > 0 {
		most = Bound(r.MaxRows, r.MaxGroups, MultiplyCapped)
	}
	if r.MaxTotal > 0 {
		most = min(most, r.MaxTotal)
	}
	return &algebra.RowCap{Of: of, By: by, Least: max(1, min(r.MaxRows, leastKept)), Most: max(1, min(most, MaxBound))}
}

// OnlyOn are the conditions of a conjunction that look at rows of one item alone.
func OnlyOn(where algebra.Expr, n algebra.FromItem) algebra.Expr {
	var some []algebra.Expr
	for _, e := range algebra.BoundConjuncts(where) {
		if algebra.ReadsOnly(e, n) {
			some = append(some, e)
		}
	}
	return algebra.All(some)
}
