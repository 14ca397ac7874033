package verify

import (
	"maps"
	"math/big"
	"slices"
)

// Work. One row of a unit is a part of at most so many tuples: of each SELECT, fix one row of FROM; the other parts of FROM then have, each
// given those before it (a row of each, so that their columns are determined), as many rows as the columns that are determined leave. That many are 1 under a unique key, what a cut to a number of
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
	return r.chosen(d, slices.DeleteFunc(slices.Clone(r.parts), func(p *part) bool { return p == fixed }), known)
}

// mostOrders is how many parts are tried in every order; more are taken in the order of the text.
const mostOrders = 5

// chosen is how many choices of a row of each part there are: the parts are chosen one after another, and a row that is chosen determines its columns
// for those after it. Every order gives a bound; the smallest counts. Parts under a key have one choice, and come first.
func (r *relation) chosen(d *derivation, left []*part, known knowledge) *big.Int {
	for moved := true; moved; {
		moved = false
		for _, e := range r.edges {
			if !known[e.to].known && d.determined(e.from, known) {
				known.add(e.to, true, false)
				moved = true
			}
		}
		for i, p := range left {
			if p.least(d, known) != 1 {
				continue
			}
			p.choose(known)
			left, moved = slices.Delete(slices.Clone(left), i, i+1), true
			break
		}
	}
	if len(left) == 0 {
		return big.NewInt(1)
	}
	var best *big.Int
	for i, p := range left {
		n := p.choices(d, known)
		if n <= 0 || len(left) > mostOrders && best != nil {
			continue
		}
		given := maps.Clone(known)
		p.choose(given)
		rest := r.chosen(d, slices.Delete(slices.Clone(left), i, i+1), given)
		if rest == nil {
			continue
		}
		if total := rest.Mul(rest, big.NewInt(n)); best == nil || total.Cmp(best) < 0 {
			best = total
		}
	}
	return best
}

// choose notes that one row of a part is given.
func (p *part) choose(known knowledge) {
	for _, id := range p.ids {
		known.add(id, true, true)
	}
}

// choices is how many rows of a part there are with what is known; 0 or less: any number.
func (p *part) choices(d *derivation, known knowledge) int64 {
	least := p.least(d, known)
	if least < 0 {
		least = p.most
	}
	for id, equal := range p.equal {
		if known[id].known && (least <= 0 || equal < least) {
			least = equal
		}
	}
	return least
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
