package bind

import (
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/syntax"
)

// RowOutputs binds a query over private rows for its outputs alone. Columns that analysts cannot see are none of them; the id of a privacy
// unit is one where it is named.
func RowOutputs(o *algebra.Opened) ([]algebra.Output, error) {
	b := newBinder(o, o.Query, nil)
	for _, step := range []func(*algebra.Binder) error{from, owner, where} {
		if err := step(b); err != nil {
			return nil, err
		}
	}
	var outputs []algebra.Output
	for _, item := range o.Query.Items {
		if star, ok := item.Expr.(*syntax.Star); ok {
			fields, err := starFields(b, b.Bound.Source, star)
			if err != nil {
				return nil, err
			}
			for _, f := range fields {
				if f.Exposed {
					outputs = append(outputs, algebra.Output{Name: f.Name, Expr: algebra.Column{Of: f}})
				}
			}
			continue
		}
		e, err := rowOutput(b, item.Expr)
		if err != nil {
			return nil, err
		}
		outputs = append(outputs, algebra.Output{Name: itemName(item), Expr: e})
	}
	return outputs, nil
}

// newBinder is a binder of one query on its own.
func newBinder(o *algebra.Opened, query *syntax.Query, env *algebra.Environment) *algebra.Binder {
	return &algebra.Binder{Text: o.Text, Snapshot: o.Snapshot, Zone: o.Zone, Whole: o.Query, Query: query,
		Bound: &algebra.BoundQuery{Load: o.Load, Facts: &algebra.StatementFacts{Steps: o.Steps, List: o.List}},
		CTEs:  env.With(query.With), Sources: o.Sources, Wide: o.Wide}
}
