package relation

import (
	"math/big"
	"slices"
)

// TuplesOfUnit is how many tuples of a FROM one row of people is charged for, and how many one unit, by the best part; nil: any number.
func (r *Relation) TuplesOfUnit(d *Proof) (row, unit *big.Int) {
	row = r.Work(d)
	for _, p := range r.Parts {
		n := r.tuples(d, p)
		if p.public || n == nil {
			continue
		}
		for _, o := range r.outer {
			if !o.holds(p) {
				continue
			}
			alone := o.left.Work(d)
			if alone == nil {
				n = nil
				break
			}
			n = Larger(n, alone)
		}
		of := &Relation{Parts: []*part{p}, edges: r.edges, fixed: r.fixed, Solid: r.Solid, Roots: r.Roots}
		if len(r.Parts) == 1 {
			of.whole = r.whole
		}
		if rows := of.Rows(d, nil, true); n != nil && rows != nil {
			if total := new(big.Int).Mul(n, rows); unit == nil || total.Cmp(unit) < 0 {
				unit = total
			}
		}
	}
	for _, c := range r.cuts {
		known := r.ofUnit()
		rows := (&part{limits: c.limits}).least(d, known)
		for _, p := range c.parts {
			p.choose(known)
		}
		n := r.chosen(d, slices.DeleteFunc(slices.Clone(r.Parts), func(p *part) bool { return isAmong(p, c.parts) }), known)
		beside := func(p *part) bool { // rows of others stay where they meet none of these
			return p.public || slices.ContainsFunc(r.outer, func(o outerJoin) bool { return o.holds(p) })
		}
		if rows >= 0 && n != nil && !slices.ContainsFunc(c.parts, beside) {
			if n.Mul(n, big.NewInt(rows)); unit == nil || n.Cmp(unit) < 0 {
				unit = n
			}
		}
	}
	if whole := r.Rows(d, nil, true); whole != nil && (unit == nil || whole.Cmp(unit) < 0) {
		unit = whole
	}
	return row, unit
}
