package verify

import (
	"slices"

	"noisegate.example/sqlrewrite/verify/internal/value"
)

// placed reads place <= n.
func (r *relation) placed(d *Proof, l, most *value.Value) {
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
	if slices.Equal(l.Place.Of, r.parted()) {
		r.whole = append(r.whole, cut)
		return
	}
	for i, part := range r.parts {
		if len(l.Place.Of) == 1 && slices.Equal(part.ids, l.Place.Rows) {
			r.limited(d, i, cut)
		}
	}
}

// placing is row_number of a relation's rows.
func (r *relation) placing(partition, order []int) *value.Place {
	p := &value.Place{Partition: partition, Order: order, Of: r.parted()}
	if len(r.parts) == 1 {
		p.Rows = r.parts[0].ids
	}
	return p
}

// limited adds a limit to a part.
func (r *relation) limited(d *Proof, i int, l limit) {
	p := *r.parts[i]
	p.number = d.Number()
	p.limits = append(slices.Clone(p.limits), l)
	r.parts = slices.Clone(r.parts)
	r.parts[i] = &p
}

// both counts the rows that a number of tuples, and a number of rows in each, leave of a partition.
func (r *relation) both(d *Proof) {
	for _, k := range r.rankings {
		of := append(slices.Clone(k.by), k.order...)
		for i, p := range r.parts {
			for _, l := range p.limits {
				if value.Subset(l.by, of) && !value.Subset(l.by, k.by) && !l.sql {
					r.limited(d, i, limit{by: k.by, rows: k.places * l.rows})
				}
			}
		}
		for _, l := range r.whole {
			if value.Subset(l.by, of) && !value.Subset(l.by, k.by) && !l.sql {
				r.whole = append(r.whole, limit{by: k.by, rows: k.places * l.rows})
			}
		}
	}
}
