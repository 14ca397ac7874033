package sqlrewrite

import (
	"noisegate/catalog"
	"noisegate/sqlrewrite/syntax"
)

// rowShape binds a query over private rows for its outputs alone. Columns that analysts cannot see are none of them; the id of a privacy
// unit is one where it is named.
func rowShape(text string, q *syntax.Query, snapshot *catalog.Snapshot) ([]output, error) {
	b := newBinder(text, q, snapshot)
	for _, step := range []func(*binder) error{(*binder).from, (*binder).where} {
		if err := step(b); err != nil {
			return nil, err
		}
	}
	var outputs []output
	for _, item := range q.Items {
		if star, ok := item.Expr.(*syntax.Star); ok {
			fields, err := b.starFields(b.bound.source, star)
			if err != nil {
				return nil, err
			}
			for _, f := range fields {
				if f.Exposed {
					outputs = append(outputs, output{name: f.Name, expr: column{of: f}})
				}
			}
			continue
		}
		e, err := b.rowOutput(item.Expr)
		if err != nil {
			return nil, err
		}
		outputs = append(outputs, output{name: itemName(item), expr: e})
	}
	return outputs, nil
}

// newBinder is a binder of one query on its own.
func newBinder(text string, query *syntax.Query, snapshot *catalog.Snapshot) *binder {
	b := &binder{text: text, snapshot: snapshot, query: query, bound: &boundQuery{facts: &statementFacts{}}}
	b.ctes = b.ctes.with(query.With)
	return b
}
