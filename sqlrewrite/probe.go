package sqlrewrite

import (
	"noisegate/catalog"
	"noisegate/sqlrewrite/syntax"
)

// rowShape binds a query over private rows for its outputs alone. Columns that analysts cannot see are none of them; the id of a privacy
// unit is one where it is named.
func rowShape(text string, q *syntax.Query, snapshot *catalog.Snapshot) ([]output, error) {
	b := &binder{text: text, snapshot: snapshot, query: q, bound: &boundQuery{}}
	for _, step := range []func() error{b.from, b.where} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	var outputs []output
	for _, item := range q.Items {
		switch n := item.Expr.(type) {
		case *syntax.Star:
			for _, f := range b.bound.source.fields {
				if f.Exposed {
					outputs = append(outputs, output{name: f.Name, expr: column{of: f}})
				}
			}
		case *syntax.Column:
			f, err := b.column(n)
			if err != nil {
				return nil, err
			}
			name := item.Alias
			if name == "" {
				name = f.Name
			}
			outputs = append(outputs, output{name: name, expr: column{of: f}})
		default:
			e, err := b.expression(rowScope{b}, n)
			if err != nil {
				return nil, err
			}
			name := item.Alias
			if name == "" {
				name = outputName(n)
			}
			outputs = append(outputs, output{name: name, expr: e})
		}
	}
	return outputs, nil
}
