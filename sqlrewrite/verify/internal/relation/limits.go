package relation

import (
	"slices"

	"noisegate.example/sqlrewrite/verify/internal/value"
)

// Placed reads place <= n.
func (r *Relation) Placed(d *Proof, l, most *value.Value) {
	n := most.Number()
	if l.Place == nil || n == nil || n.Sign() < 0 || !n.IsInt() || !n.Num().IsInt64() || l.Outer {
		return
	}
	rows := max(n.Num().Int64(), 1)
	if l.Place.Dense {
		r.rankings = append(r.rankings, ranking{by: l.Place.Partition, order: l.Place.Order, places: rows})
		r.both(d)
		return
	}
	defer r.both(d)
	cut := limit{by: l.Place.Partition, rows: rows}
	if slices.Equal(l.Place.Of, r.Numbers()) {
		r.whole = append(r.whole, cut)
		return
	}
	for i, part := range r.Parts {
		if len(l.Place.Of) == 1 && slices.Equal(part.ids, l.Place.Rows) {
			r.limited(d, i, cut)
		}
	}
}

// Placing is row_number of a relation's rows.
func (r *Relation) Placing(partition, order []int) *value.Place {
	p := &value.Place{Partition: partition, Order: order, Of: r.Numbers()}
	if len(r.Parts) == 1 {
		p.Rows = r.Parts[0].ids
	}
	return p
}

// limited adds a limit to a part.
func (r *Relation) limited(d *Proof, i int, l limit) {
	p := *r.Parts[i]
	p.number = d.Number()
	p.limits = append(slices.Clone(p.limits), l)
	r.Parts = slices.Clone(r.Parts)
	r.Parts[i] = &p
}

// both counts the rows that a number of tuples, and a number of rows in each, leave of a partition.
func (r *Relation) both(d *Proof) {
	for _, k := range r.rankings {
		of := append(slices.Clone(k.by), k.order...)
		for i, p := range r.Parts {
			for _, l := range p.limits {
				if value.Subset(l.by, of) && !value.Subset(l.by, k.by) && !l.sql {
					r.limited(d, i, limit{by: k.by, rows: value.Product(k.places, l.rows)})
				}
			}
		}
		for _, l := range r.whole {
			if value.Subset(l.by, of) && !value.Subset(l.by, k.by) && !l.sql {
				r.whole = append(r.whole, limit{by: k.by, rows: value.Product(k.places, l.rows)})
			}
		}
	}
}
