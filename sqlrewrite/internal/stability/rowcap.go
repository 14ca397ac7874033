package stability

import (
	"slices"

	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/steps"
)

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

// capBase caps the rows that drive a block: with the tables that lead from them to their unit, where they do not hold its id.
func (w *workload) capBase(root *algebra.FromItem, e effort) error {
	if _, already := e.base.(*algebra.RowCap); already || e.base == nil || e.of.MaxRows <= 0 || w.Binder == nil {
		return w.refuse(e)
	}
	base := *e.of
	base.Node = e.base
	rows, err := ReachOwner(w.Binder, &base)
	if err != nil {
		return err
	}
	for _, o := range rows.Owners {
		if !algebra.Holds(rows.Node, o) {
			continue
		}
		c := NewRowCap(rows.Node, e.of, o)
		c.Rows, c.Units = c.Most, true
		w.facts.Caps = append(w.facts.Caps, c)
		replaceItem(w.Steps(), root, e.base, c)
		return nil
	}
	return w.refuse(e)
}

// replaceItem puts one item in place of another.
func replaceItem(count *steps.Count, at *algebra.FromItem, old, new algebra.FromItem) bool {
	defer steps.Visit(count).Leave()
	if *at == old {
		*at = new
		return true
	}
	switch n := (*at).(type) {
	case *algebra.Joined:
		return replaceItem(count, &n.Left, old, new) || replaceItem(count, &n.Right, old, new)
	case *algebra.RowCap:
		return n != new && replaceItem(count, &n.Of, old, new)
	case *algebra.Derived:
		for _, q := range n.Parts {
			if q.From != nil && replaceItem(count, &q.From, old, new) {
				return true
			}
		}
	}
	return false
}

// capsIn are the caps that the rows of a block pass, and those of conditions on them; with grouped, also those of rows that a query in FROM
// groups.
func capsIn(n algebra.FromItem, grouped bool, more ...algebra.Expr) []*algebra.RowCap {
	var all []*algebra.RowCap
	switch n := n.(type) {
	case *algebra.Joined:
		all = append(append(all, capsIn(n.Left, grouped)...), capsIn(n.Right, grouped)...)
	case *algebra.RowCap:
		if n.Active() {
			all = append(all, n)
		}
		if grouped {
			all = append(all, capsIn(n.Of, grouped, n.Where)...)
		}
	case *algebra.Derived:
		for _, q := range n.Parts {
			if q.From != nil && (grouped || len(n.Parts) == 1 && q.Rowwise()) {
				all = append(all, capsIn(q.From, grouped, append(append(q.Results(), q.Where), q.Keys...)...)...)
			}
		}
	}
	for _, e := range more {
		all = append(all, capsOf(e, grouped)...)
	}
	return all
}

func capsOf(e algebra.Expr, grouped bool) (all []*algebra.RowCap) {
	for _, x := range algebra.Parts(e) {
		if x, ok := x.(algebra.Exists); ok {
			all = append(append(all, capsIn(x.From, grouped)...), capsOf(x.Where, grouped)...)
		}
	}
	return all
}

// narrowest lowers the largest cap of a block that can be lowered: one of rows that queries in FROM group, where there is no other.
func narrowest(n algebra.FromItem, where algebra.Expr, each []algebra.Expr) bool {
	conditions := append(slices.Clone(each), where)
	return narrow(capsIn(n, false, conditions...)) || narrow(capsIn(n, true, conditions...))
}

// narrow lowers the largest of some caps that can be lowered.
func narrow(caps []*algebra.RowCap) bool {
	var largest *algebra.RowCap
	for _, c := range caps {
		if c.Rows > c.Least && (largest == nil || c.Rows > largest.Rows) {
			largest = c
		}
	}
	return largest != nil && largest.Narrow()
}
