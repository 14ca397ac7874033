package bind_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/bind"
	"noisegate.example/sqlrewrite/internal/parse"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/internal/sqlprint"
	"noisegate.example/sqlrewrite/syntax"
)

// What the rows of a query are is derived from its leaves, and agrees with what binding found: a release block reads rows of units, each
// relation below it has owners where its leaves have, and what post-processes a release reads no row of a unit. It is what decided how the
// query was bound.
func TestRowsAreDerived(t *testing.T) {
	plans, owned, posts := 0, 0, 0
	rewritetest.EachGoldenPlan(t, func(d *datadriven.TestData, p *plan.Plan) {
		q := p.Query
		plans++
		want := algebra.ReleasedRows
		if q.Post != nil {
			want = q.Post.Rows()
		}
		several := strings.Contains(d.Pos, "several") // the plan is of one of its releases
		if kind := rowKind(t, d, p.Snapshot); kind != want && !several {
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

// What joins make of a field is derived from the sides on which it stands, and agrees with the tree of joins; what a snapshot says of a
// column stays as it is.
func TestFieldsFollowTheirJoins(t *testing.T) {
	absent := 0
	rewritetest.EachGoldenPlan(t, func(d *datadriven.TestData, p *plan.Plan) {
		read := sqlprint.NewPreconditionWalk()
		read.Query(p.Query)
		for _, s := range read.Scans {
			for i, f := range s.Fields {
				if f.Column != s.Table.Columns[i] {
					t.Errorf("%s.%s is not the snapshot's column: %s", s.Table.Name, f.Name, d.Input)
				}
			}
		}
		eachLeaf(p.Query.Source.Node, false, func(l *algebra.Leaf, outer bool) {
			for _, f := range l.Fields {
				if f.Side == nil { // of a path, or of a value: no join leaves it out
					continue
				}
				if outer {
					absent++
				}
				if null := slices.Contains(f.Domain(), catalog.Key{Null: true}); f.NotNull() != (f.Column.NotNull && !outer) ||
					outer && (f.Present() || f.Domain() != nil && !null) {
					t.Errorf("%s beside an outer join, %t: %+v: %s", f.Name, outer, f.Known(), d.Input)
				}
			}
		})
	})
	if absent < 50 {
		t.Errorf("only %d fields are absent on some rows", absent)
	}
}

// eachLeaf visits the tables and queries of an item, and says whether a join above has rows without one of theirs.
func eachLeaf(n algebra.FromItem, outer bool, visit func(l *algebra.Leaf, outer bool)) {
	switch n := n.(type) {
	case *algebra.Scan:
		visit(&n.Leaf, outer)
	case *algebra.Derived:
		visit(&n.Leaf, outer)
		for _, q := range n.Parts {
			if q.From != nil {
				eachLeaf(q.From, false, visit)
			}
		}
	case *algebra.RowCap:
		eachLeaf(n.Of, outer, visit)
	case *algebra.Joined:
		eachLeaf(n.Left, outer || n.Kind == syntax.FullJoin, visit)
		eachLeaf(n.Right, outer || n.Kind == syntax.FullJoin || n.Kind == syntax.LeftJoin, visit)
	}
}

// A query is bound once: the FROM of one that is grouped by units, which is bound to find out what its rows are, is what its own binding
// goes on from.
func TestQueriesAreBoundOnce(t *testing.T) {
	found := 0
	rewritetest.EachGoldenPlan(t, func(d *datadriven.TestData, p *plan.Plan) {
		o := rewritetest.ParseOptions(t, d)
		query, err := parse.ParseAt(d.Input, o.Dialect, parse.Clock{Now: o.Now})
		if err != nil {
			t.Fatal(err)
		}
		opened := algebra.NewOpened(d.Input, query, p.Snapshot)
		_, err = bind.Statement(opened)
		switch fault.CodeOf(err) {
		case "":
		case fault.CodeFanOut, fault.CodeUnitJoin: // planned in another order
			return
		case fault.CodeUnknownTable: // a view, which is a query in WITH where the statement is opened
			if len(p.Snapshot.Views) > 0 {
				return
			}
			t.Fatal(err)
		default:
			t.Fatal(err)
		}
		for q, s := range opened.Sources {
			if found++; !s.Taken {
				t.Errorf("FROM at %d was bound for nothing: %s", q.Pos, d.Input)
			}
		}
	})
	if found < 200 {
		t.Errorf("only %d queries", found)
	}
}

// rowKind is what decides how a query is bound.
func rowKind(t *testing.T, d *datadriven.TestData, snapshot *catalog.Snapshot) algebra.RowKind {
	t.Helper()
	o := rewritetest.ParseOptions(t, d)
	query, err := parse.ParseAt(d.Input, o.Dialect, parse.Clock{Now: o.Now})
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
