package cost

import (
	"slices"
	"testing"

	"github.com/cockroachdb/datadriven"

	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/domain"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/internal/stability"
)

// costKeys lists the names in the table of costs that a plan's expressions have.
func costKeys(q *algebra.BoundQuery) []string {
	var keys []string
	var exprs func(list ...algebra.Expr)
	var item func(n algebra.FromItem)
	exprs = func(list ...algebra.Expr) {
		for _, e := range list {
			switch e := e.(type) {
			case nil, algebra.Column, algebra.Constant, algebra.Bought, algebra.KeyRef, algebra.EstimatorRef, algebra.Computed, algebra.Aggregate:
			case algebra.Exists:
				item(e.From)
				exprs(e.Where)
			case algebra.InRows:
				item(e.From)
				exprs(e.Where)
			case algebra.In:
				keys = append(keys, "= "+stability.KindOfType(e.X.Typ()))
			default:
				keys = append(keys, stability.CostKey(e))
			}
			if e != nil {
				exprs(algebra.Children(e)...)
			}
		}
	}
	item = func(n algebra.FromItem) {
		switch n := n.(type) {
		case *algebra.Joined:
			item(n.Left)
			item(n.Right)
			exprs(n.On)
		case *algebra.RowCap:
			item(n.Of)
		case *algebra.Derived:
			for _, q := range n.Parts {
				if q.From != nil {
					item(q.From)
				}
				exprs(q.Where)
				exprs(q.Keys...)
				exprs(q.Results()...)
			}
		}
	}
	item(q.Source.Node)
	exprs(q.Where)
	for _, k := range q.Keys {
		exprs(k.X)
	}
	for _, m := range q.Statistics {
		exprs(m.Filter, m.X, m.Y)
	}
	return keys
}

// Every builtin that a golden statement computes with has a price.
func TestEveryBuiltinIsPriced(t *testing.T) {
	t.Parallel()
	var missing []string
	rewritetest.EachGoldenPlan(t, func(d *datadriven.TestData, p *plan.Plan) {
		for _, key := range costKeys(p.Query) {
			if _, ok := domain.PriceNamed(key); !ok && !slices.Contains(missing, key) {
				missing = append(missing, key)
				t.Errorf("%q has no price: %s", key, d.Input)
			}
		}
	})
}
