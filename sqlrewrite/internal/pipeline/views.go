package pipeline

import (
	"cmp"
	"slices"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/parse"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/syntax"
)

// A public view is a query in WITH: a question that names one is bound as if its author had written the view's query there. So nothing
// below knows of views, and one that is replaced is not read.

// viewReader puts the views that a query names into its WITH.
type viewReader struct {
	text     string
	snapshot *catalog.Snapshot
	clock    parse.Clock
	ctes     []syntax.CTE
	reading  []*catalog.View // whose queries are being read
	read     []*catalog.View
}

// withViews adds the queries of the public views that a query names. Its refusals point at the name in the query.
func withViews(text string, query *syntax.Query, snapshot *catalog.Snapshot, clock parse.Clock) error {
	if len(snapshot.Views) == 0 {
		return nil
	}
	r := &viewReader{text: text, snapshot: snapshot, clock: clock}
	if err := r.names(query, nil); err != nil {
		return err
	}
	query.With = append(r.ctes, query.With...)
	return nil
}

// viewName is the name in WITH of a view that is written with its schema, which no other name can be.
func viewName(v *catalog.View) string { return v.Schema + "." + v.Name }

// names reads the views that a query names; of is the view whose query it is, nil for none. A name without a schema may be one of the
// question's own WITH, which then comes before the view's. In the query of a view it always is.
func (r *viewReader) names(query *syntax.Query, of *syntax.Pos) (err error) {
	syntax.Each(query, func(n any) bool {
		t, ok := n.(*syntax.Table)
		if !ok || err != nil {
			return err != nil
		}
		if t.Database != "" && t.Database != r.snapshot.Dataset || t.Schema == "" && of != nil {
			return false
		}
		if v, ok := r.snapshot.View(t.Schema, t.Name); ok {
			at := t.Pos
			if of != nil {
				at = *of
			}
			if err = r.view(v, at); t.Schema != "" {
				t.Alias, t.Database, t.Schema, t.Name = cmp.Or(t.Alias, t.Name), "", "", viewName(v)
			}
		}
		return err != nil
	})
	return err
}

// view adds a view's query, after those of the views that it names.
func (r *viewReader) view(v *catalog.View, at syntax.Pos) error {
	switch {
	case slices.Contains(r.read, v):
		return nil
	case slices.Contains(r.reading, v):
		return fault.Unsupported(scalar.Position(r.text, at), "view "+fault.Quote(v.Name)+", which reads itself", "")
	}
	r.reading = append(r.reading, v)
	query, err := parse.ParseAt(v.Definition, parse.DialectPostgres, r.clock)
	if err != nil {
		return fault.Unsupported(scalar.Position(r.text, at), "the query of view "+fault.Quote(v.Name), err.Error())
	}
	if err := r.names(query, &at); err != nil {
		return err
	}
	syntax.Place(query, at)
	r.read = append(r.read, v)
	r.ctes = append(r.ctes, syntax.CTE{Pos: at, Name: viewName(v), Query: query})
	if v.Schema == catalog.DefaultSchema {
		r.ctes = append(r.ctes, syntax.CTE{Pos: at, Name: v.Name, Query: query})
	}
	return nil
}
