package verify

import (
	"math/big"
	"slices"
)

// Work. One row of a unit is a part of at most so many tuples: of each SELECT, fix one row of FROM; the other parts of FROM then have, each
// given those before it, as many rows as the columns that are determined leave. That many are 1 under a unique key, what a cut to a number of
// rows leaves (window.go), and of a public table the rows that share a determined column, or all it has, as its pin says. An EXISTS or IN is
// evaluated for each tuple, and meets as many rows more. What no key, cut or pin bounds is not bounded: a claim on it is refused. PostgreSQL
// may join in another order, and meets more pairs on the way at most of rows that are joined later.

// tuples is of how many tuples one row of a part is one; nil: of any number.
func (r *relation) tuples(d *derivation, fixed *part) *big.Int {
	known := make(knowledge)
	for _, id := range fixed.ids {
		known.add(id, true, true)
	}
	for _, id := range r.fixed {
		known.add(id, true, false)
	}
	total := big.NewInt(1)
	left := slices.DeleteFunc(slices.Clone(r.parts), func(p *part) bool { return p == fixed })
	for moved := true; moved; {
		moved = false
		for _, e := range r.edges {
			if !known[e.to].known && d.determined(e.from, known) {
				known.add(e.to, true, false)
				moved = true
			}
		}
		// The parts under a key first; what is only counted determines nothing.
		for i, p := range left {
			if p.least(d, known) != 1 {
				continue
			}
			for _, id := range p.ids {
				known.add(id, true, true)
			}
			left, moved = slices.Delete(slices.Clone(left), i, i+1), true
			break
		}
	}
	for _, p := range left {
		least := p.least(d, known)
		if least < 0 {
			least = p.most
		}
		for id, equal := range p.equal {
			if known[id].known && (least <= 0 || equal < least) {
				least = equal
			}
		}
		if least <= 0 {
			return nil
		}
		total.Mul(total, big.NewInt(least))
	}
	return total
}

// works notes what a SELECT makes of one row; inner queries have noted theirs.
func (s *scope) works() {
	d := s.d
	if len(s.rel.units) == 0 {
		return // what is public is read whoever is there
	}
	for _, p := range s.rel.parts {
		if p.public {
			continue
		}
		n := s.rel.tuples(d, p)
		if n == nil {
			d.unbounded = true
			return
		}
		d.work = bigger(d.work, n)
	}
}

// met notes how many rows of an inner query one row of the outer one meets: of an IN, those with equal values (the given ones). A query that
// is written several times in one place is counted once.
func (s *scope) met(query int, r *relation, given []int) {
	d := s.d
	if d.queries[query] {
		return
	}
	d.queries[query] = true
	n := r.tuples(d, &part{ids: given})
	if n == nil {
		d.unbounded = true
		return
	}
	d.inner = new(big.Int).Mul(d.inner, n.Add(n, big.NewInt(1)))
}

// pairs is what was noted; nil: not bounded.
func (d *derivation) pairs() *big.Int {
	if d.unbounded {
		return nil
	}
	return new(big.Int).Mul(d.work, d.inner)
}
