package relation

import (
	"fmt"
	"maps"
	"math/big"
	"slices"

	"noisegate.example/sqlrewrite/internal/steps"
)

// Work. **Lemma 12.** Of each SELECT, the tuples of its FROM can be charged to rows of people so that one row is charged for at most
// PairsPerRow of them, counting what a tuple meets in EXISTS, IN and windows as well. So a unit of R rows makes at most R·PairsPerRow.
//
//  1. *Tuples of one row.* Fix a row of one part of FROM. The other parts have, each given those before it (a row of each, so that their
//     columns are determined), as many rows as the columns that are determined leave: 1 under a unique key, what a cut to a number of
//     rows leaves (limits.go), and of a public table the rows that share a determined column, or all that it has, as its pin says; public
//     rows of UNION ALL are as many as those of both sides, and what has no FROM is one row; DISTINCT leaves no more of those that
//     the text has. A cut of rows of several parts leaves so many choices of those of its parts that are not given, all at once. Every
//     order of the parts gives a bound; the smallest counts.
//  2. *Whom a tuple is charged to.* To its row of one part of people, the same for all tuples: the part with the smallest bound counts. A
//     visit meets one person, however many visits a person has.
//  3. *Outer joins.* Where that part stands on the right side of l LEFT JOIN r, what ON says holds for each tuple of its rows. Tuples
//     without a row of r are charged as l alone is. Where a column of r, as the join shows it, is equal to something, there is a row of
//     r: ON holds.
//  4. *EXISTS* that is a condition of WHERE, or of ON but for what reads the left side of LEFT JOIN, and reads the rows around in WHERE
//     alone, is a join, and meets as many rows more as (1) says of its FROM with nothing fixed but what it is compared with. Else EXISTS,
//     and IN, are queries of their own for each tuple, which may read all rows that their FROM has. Each of these meets what stands
//     inside of it. One that reads nothing of the rows around is evaluated once; an IN is then a set, which is looked into, if its
//     equalities have a hash.
//  5. *Windows* meet the rows of a frame whose start moves, where PostgreSQL computes the aggregate anew for each row (slides).
//  6. What no key, cut, pin or frame bounds is not bounded: a claim on it is refused.
//
// PostgreSQL may join in another order, and meets more pairs on the way at most of rows that are joined later.
//
// *Example.* people p CROSS JOIN tags t LEFT JOIN visits v ON v.person_id = p.person_id AND t.shop_id = v.ward, with 40 tags of which 3
// share a shop: a visit has one person and 3 tags (1), which is less than a person's any number of visits (2). A person without visits
// has 40 tags (3): PairsPerRow is 40. With EXISTS (SELECT 1 FROM tags u WHERE u.shop_id = p.ward) in WHERE it is 40·(1 + 3) (4).

// tuples is of how many tuples a row of a part is one (1); nil: of any number.
func (r *Relation) tuples(d *Proof, fixed *part) *big.Int {
	if n, counted := d.tuples[counted{r, fixed}]; counted {
		return n
	}
	known := make(knowledge)
	for _, id := range fixed.ids {
		known.add(id, true, true)
	}
	for _, id := range r.fixed {
		known.add(id, true, false)
	}
	of := *r
	for _, o := range r.outer {
		if o.holds(fixed) {
			of.edges = append(slices.Clone(of.edges), o.on...)
		}
	}
	n := of.chosen(d, slices.DeleteFunc(slices.Clone(r.Parts), func(p *part) bool { return p == fixed }), known)
	if d.tuples != nil {
		d.tuples[counted{r, fixed}] = n
	}
	return n
}

// Remembering counts tuples once while nothing more becomes known.
func (d *Proof) Remembering(count func()) {
	d.tuples = make(map[counted]*big.Int)
	count()
	d.tuples = nil
}

// mostOrders is how many parts are tried in every order. Of more the parts of a cut are chosen all at once; of more than so many of these
// the first.
const mostOrders = 5

// chosen is how many choices of a row of each part there are: the parts are chosen one after another, and a row that is chosen determines
// its columns for those after it. Every order gives a bound; the smallest counts. Parts under a key have one choice, and come first.
func (r *Relation) chosen(d *Proof, left []*part, known knowledge) *big.Int {
	return (&choosing{r, d, make(map[string]*big.Int)}).rest(left, known)
}

// choosing remembers how many choices of some parts there are where all others are given.
type choosing struct {
	*Relation
	d    *Proof
	made map[string]*big.Int
}

func (r *choosing) rest(left []*part, known knowledge) (best *big.Int) {
	defer steps.Visit(r.d.Steps).Leave()
	set := fmt.Sprint(left)
	if made, ok := r.made[set]; ok {
		return made
	}
	defer func() { r.made[set] = best }()
	for moved := true; moved; {
		moved = false
		for _, e := range r.holding(known) {
			if !known[e.to].known && r.d.determined(e.from, known) {
				known.add(e.to, true, false)
				moved = true
			}
		}
		for i, p := range left {
			if p.least(r.d, known) != 1 {
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
	all := r.choices(r.d, left, known)
	for _, c := range all {
		if best != nil && (len(left) > mostOrders && len(all) > mostOrders || best.Cmp(big.NewInt(c.rows)) <= 0) {
			continue
		}
		given := maps.Clone(known)
		for _, p := range c.of {
			p.choose(given)
		}
		rest := r.rest(slices.DeleteFunc(slices.Clone(left), func(p *part) bool { return slices.Contains(c.of, p) }), given)
		if rest == nil {
			continue
		}
		if total := new(big.Int).Mul(rest, big.NewInt(c.rows)); best == nil || total.Cmp(best) < 0 {
			best = total
		}
	}
	return best
}

// choice is how many rows of some parts there are at most, all at once.
type choice struct {
	rows int64
	of   []*part
}

// choices are those that may be made first: of the parts that a cut leaves, and of each part. Where there are too many parts, those of a
// cut are chosen all at once, if none of them is given.
func (r *Relation) choices(d *Proof, left []*part, known knowledge) (all []choice) {
	var fresh []*part
	add := func(rows int64, of ...*part) {
		if rows > 0 && !slices.ContainsFunc(of, func(p *part) bool { return slices.Contains(fresh, p) }) {
			all = append(all, choice{rows, of})
		}
	}
	for _, c := range r.cuts { // outer ones before those inside
		of := slices.DeleteFunc(slices.Clone(left), func(p *part) bool { return len(p.ids) == 0 || !isAmong(p, c.parts) })
		if len(of) == 0 {
			continue
		}
		rows := (&part{limits: c.limits}).least(d, known)
		add(rows, of...)
		if len(left) > mostOrders && rows > 0 && len(of) == len(c.parts) {
			fresh = append(fresh, of...)
		}
	}
	for _, p := range left {
		add(p.choices(d, known), p)
	}
	return all
}

// isAmong reports whether a part is one of some, of which a join may have copies.
func isAmong(p *part, parts []*part) bool {
	return slices.ContainsFunc(parts, func(q *part) bool { return slices.Equal(p.ids, q.ids) })
}

// holding are the edges of tuples with known values: where a column of an outer join's right side is not NULL, there is a row of it.
func (r *Relation) holding(known knowledge) []edge {
	all := r.edges
	for _, o := range r.outer {
		if slices.ContainsFunc(o.shown, func(id int) bool { return known[id].solid }) {
			all = append(slices.Clone(all), o.on...)
		}
	}
	return all
}

// choose notes that one row of a part is given.
func (p *part) choose(known knowledge) {
	for _, id := range p.ids {
		known.add(id, true, true)
	}
}

// choices is how many rows of a part there are with what is known; 0 or less: any number.
func (p *part) choices(d *Proof, known knowledge) int64 {
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

func (o outerJoin) holds(p *part) bool {
	return isAmong(p, o.right)
}

// Work bounds what one row is charged for, by the best choice of (2); nil: unbounded.
func (r *Relation) Work(d *Proof) (best *big.Int) {
	defer steps.Visit(d.Steps).Leave()
	for _, p := range r.Parts {
		if p.public {
			continue
		}
		n := r.tuples(d, p)
		for _, o := range r.outer {
			if n == nil || !o.holds(p) {
				continue
			}
			if alone := o.left.Work(d); alone == nil || alone.Cmp(n) > 0 {
				n = alone
			}
		}
		if n != nil && (best == nil || n.Cmp(best) < 0) {
			best = n
		}
	}
	return best
}

// Met bounds the rows of a query that one row around it meets: of a join those with equal values, else all; nil: unbounded.
func (r *Relation) Met(d *Proof, joined bool) *big.Int {
	if joined {
		return r.tuples(d, new(part))
	}
	return r.chosen(d, slices.Clone(r.Parts), make(knowledge))
}

// TuplesOfUnit bounds the tuples of a FROM that one row of people is charged for, and those of one unit, by the best part; nil: unbounded.
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
