package sqlrewrite

import "noisegate/catalog"

// Plain is the answer without the outer layer: keys and aggregates as they were released. It is for an outer layer that
// failed after everything was paid: what was bought is then still delivered.
func (r *Released) Plain() *Answer {
	p := r.plan
	a := &Answer{Notes: append(p.notes(), Note{Code: "outer-layer-failed",
		Text: "HAVING, ORDER BY, LIMIT and expressions over aggregates could not be computed; these are the released values themselves"})}
	for _, k := range p.query.keys {
		a.Columns = append(a.Columns, Column{Name: k.name, Type: typeOfOutput(k.x.typ()), Kind: KeyColumn})
	}
	for _, v := range p.query.values {
		c := Column{Name: v.name, Type: string(v.t), Kind: DerivedColumn}
		if !v.computed() {
			c = p.aggregateColumn(c, p.releases[v.of[0]])
		}
		a.Columns = append(a.Columns, c)
	}
	for _, row := range r.rows {
		values := append([]catalog.Key(nil), row.keys...)
		for i := range p.query.values {
			values = append(values, p.valueText(i, row))
		}
		a.Rows = append(a.Rows, values)
		a.Intervals = append(a.Intervals, make([]*Interval, len(values)))
	}
	return a
}
