package sqlrewrite

import (
	"testing"

	"github.com/cockroachdb/datadriven"

	"noisegate/catalog"
	"noisegate/sqlrewrite/internal/algebra"
	"noisegate/sqlrewrite/internal/bind"
	"noisegate/sqlrewrite/internal/parse"
)

// What the rows of a query are is derived from its leaves, and agrees with what binding found: a release block reads rows of units, each
// relation below it has owners where its leaves have, and what post-processes a release reads no row of a unit. It is what decided how the
// query was bound.
func TestRowsAreDerived(t *testing.T) {
	plans, owned, posts := 0, 0, 0
	eachGoldenPlan(t, func(d *datadriven.TestData, p *Plan) {
		q := p.made.Query
		plans++
		want := algebra.ReleasedRows
		if q.Post != nil {
			want = q.Post.Rows()
		}
		if kind := rowKind(t, d, p.made.Snapshot); kind != want {
			t.Errorf("rows of kind %d were bound to rows of kind %d: %s", kind, want, d.Input)
		}
		if algebra.RowsOf(q.Source.Node) != algebra.OwnedRows {
			t.Errorf("the block reads no rows of units: %s", d.Input)
		}
		for _, r := range relationsIn(q.Source.Node) {
			if r.Owned() {
				owned++
			}
			if r.Owned() != (algebra.RowsOf(r.Node) == algebra.OwnedRows) {
				t.Errorf("a relation with owners %v has rows of kind %d: %s", r.Owners, algebra.RowsOf(r.Node), d.Input)
			}
		}
		if q.Post != nil {
			posts++
			if q.Post.Rows() == algebra.OwnedRows {
				t.Errorf("rows of units after the noise: %s", d.Input)
			}
		}
	})
	if plans < 100 || owned < 20 || posts < 10 {
		t.Errorf("of %d plans %d relations are owned and %d are post-processed", plans, owned, posts)
	}
}

// rowKind is what decides how a query is bound.
func rowKind(t *testing.T, d *datadriven.TestData, snapshot *catalog.Snapshot) algebra.RowKind {
	t.Helper()
	query, err := parse.Parse(d.Input, parseOptions(t, d).Dialect)
	if err != nil {
		t.Fatal(err)
	}
	return bind.KindOf(algebra.NewOpened(d.Input, query, snapshot), query, nil)
}

// relationsIn are the relations that an item of FROM joins or selects from.
func relationsIn(n algebra.FromItem) []*algebra.Relation {
	switch n := n.(type) {
	case *algebra.Joined:
		all := append(relationsIn(n.Left), relationsIn(n.Right)...)
		if n.Meets != nil {
			all = append(all, n.Meets.L, n.Meets.R)
		}
		return all
	case *algebra.RowCap:
		return relationsIn(n.Of)
	case *algebra.Derived:
		var all []*algebra.Relation
		for _, q := range n.Parts {
			if q.From != nil && q.Of != nil {
				all = append(append(all, q.Of), relationsIn(q.From)...)
			}
		}
		return all
	default:
		return nil
	}
}
