package verify

import (
	"maps"
	"math/big"
	"slices"
	"strconv"

	pgquery "github.com/pganalyze/pg_query_go/v6"

	"noisegate.example/sqlrewrite/internal/steps"
	"noisegate.example/sqlrewrite/verify/internal/value"
)

// shown are the rows with other columns, each computed of one row.
func (r *relation) shown(d *Proof, columns []named) *relation {
	of := r
	c0 := *of
	r = &c0
	r.columns = columns
	for i, c := range r.columns {
		if len(c.v.Anchors) > 0 && r.solid[c.v.ID] && !c.v.Strict { // it is NULL on no row that is left
			v := *c.v
			v.Strict = true
			r.columns[i].v, c.v = &v, &v
		}
		if p := c.v.Place; p != nil && slices.Equal(p.Of, of.parted()) { // row_number() differs among the rows of a partition
			r.whole = append(slices.Clone(r.whole), limit{by: append(slices.Clone(p.Partition), c.v.ID), rows: 1})
		}
		id := c.v.ID
		for of, ok := d.Behind(id); ok; of, ok = d.Behind(id) {
			r.edges = append(slices.Clone(r.edges), edge{id, of, true})
			id = of
		}
		if slices.ContainsFunc(c.v.Anchors, func(a value.Anchor) bool { return a.Root }) && c.v.Strict &&
			!slices.Contains(r.roots, c.v.ID) {
			r.roots = append(slices.Clone(r.roots), c.v.ID)
			if of, ok := d.Behind(c.v.ID); ok && r.solid[of] {
				r.solid[c.v.ID] = true
			}
		}
	}
	return r
}

// grouped are the groups of rows by keys, each with rows of one unit or public ones.
func (r *relation) grouped(d *Proof, columns []named, keys []int) *relation {
	p := &part{number: d.Number(), public: r.owner() == nil, limits: []limit{{by: keys, rows: 1}}}
	for _, c := range columns {
		p.ids = append(p.ids, c.v.ID)
	}
	// What is left of a key's values is left of groups.
	return &relation{columns: columns, parts: []*part{p}, units: r.units, domains: r.domains, roots: kept(r.roots, keys),
		solid: maps.Clone(r.solid)}
}

// distinct is SELECT DISTINCT.
func (d *Proof) distinct(r *relation) *relation {
	owner := r.owner()
	led := owner == nil
	p := &part{number: d.Number(), public: owner == nil}
	l := limit{rows: 1}
	for i, c := range r.columns {
		led = led || names(c.v, r)
		l.by = append(l.by, c.v.ID)
		if !c.v.Same {
			v := *c.v
			v.Vague = true
			r.columns[i].v = &v
		}
	}
	if !led {
		refuse("DISTINCT over rows of several units")
	}
	p.limits, p.ids = []limit{l}, l.by
	for _, id := range kept(r.roots, l.by) {
		if rows := r.rows(d, []int{id}, false); rows != nil && rows.IsInt64() {
			p.limits = append(p.limits, limit{by: []int{id}, rows: rows.Int64()})
		}
	}
	return &relation{columns: r.columns, parts: []*part{p}, solid: r.solid, units: r.units, roots: kept(r.roots, l.by)}
}

// names reports whether a value names the unit of each row, also where it is NULL.
func names(v *value.Value, r *relation) bool {
	if !v.Strict && !r.solid[v.ID] || v.Vague {
		return false
	}
	return slices.ContainsFunc(v.Anchors, func(a value.Anchor) bool { return a.Of.Find() == r.owner() })
}

// kept are the ids that are still there.
func kept(ids, there []int) []int {
	var all []int
	for _, id := range ids {
		if slices.Contains(there, id) {
			all = append(all, id)
		}
	}
	return all
}

// unionAll is l UNION ALL r, of as many columns.
func (d *Proof) unionAll(l, r *relation) *relation {
	both := &relation{solid: make(map[int]bool)}
	var owner *value.Unit
	if l.owner() != nil && r.owner() != nil {
		owner = &value.Unit{}
		both.units = []*value.Unit{owner}
	} else if l.owner() != r.owner() {
		refuse("UNION ALL of owned and public rows")
	}
	p := &part{number: d.Number(), public: owner == nil}
	for i := range l.columns {
		a, b := l.columns[i].v, r.columns[i].v
		if a.Kind != b.Kind || a.Numeral != b.Numeral || a.Moved() || b.Moved() {
			refuse("UNION ALL of different types, or of numbers of units and other values")
		}
		v := d.Choice("union", []*value.Value{value.Clear(a), value.Clear(b)}, nil)
		v.ID = d.Fresh()
		v.Nulls, v.Constant, v.Opaque = []int{v.ID}, false, false
		v.Vague, v.Numeral = a.Vague || b.Vague, a.Numeral
		v.Strict = a.Strict && b.Strict
		if l.solid[a.ID] && r.solid[b.ID] {
			both.solid[v.ID] = true
		}
		for _, x := range a.Anchors {
			for _, y := range b.Anchors {
				if x.Name == y.Name && owner != nil {
					v.Anchors = append(v.Anchors, value.Anchor{Name: x.Name, Root: x.Root && y.Root, Of: owner})
					if x.Root && y.Root {
						both.roots = append(both.roots, v.ID)
					}
				}
			}
		}
		d.Note(v)
		p.ids = append(p.ids, v.ID)
		both.columns = append(both.columns, named{"", l.columns[i].name, v})
	}
	both.parts = []*part{p}
	return both
}

// holds notes a condition that every row meets.
func (r *relation) holds(d *Proof, condition int) {
	r.domain(d, condition)
	if form := d.form(condition, r); form != "" {
		r.forms = append(r.forms, form)
	}
}

// leaving is how many values of each key conditions on groups leave.
func (r *relation) leaving(d *Proof, conditions []int) map[int]*big.Int {
	left := &relation{solid: r.solid, domains: maps.Clone(r.domains)}
	for _, id := range conditions {
		left.domain(d, id)
	}
	return left.domains
}

// domain notes a condition that leaves only some texts of a value: text = ANY (array) [OR text IS NULL].
func (r *relation) domain(d *Proof, id int) {
	t := d.Term(id)
	null := false
	if t.Op == "or" && len(t.Args) == 2 {
		other := d.Term(t.Args[1])
		t = d.Term(t.Args[0])
		if t.Op != "any" || other.Op != "isnull:"+strconv.Itoa(int(pgquery.NullTestType_IS_NULL)) || other.Args[0] != t.Args[0] {
			return
		}
		null = true
	}
	if t.Op != "any" {
		return
	}
	x := t.Args[0]
	if d.Term(x).Op == "text" {
		r.leave(d, d.Term(x).Args[0], t, null)
	}
	r.leave(d, x, t, null)
}

// leave notes that a value is NULL, if null, or one of those with the texts of an array.
func (r *relation) leave(d *Proof, x int, t value.Term, null bool) {
	size, known := d.Elements(t.Args[1])
	if !known {
		return
	}
	if null {
		size++
	} else {
		r.solid[x] = true
	}
	n := big.NewInt(int64(size))
	if r.domains == nil {
		r.domains = make(map[int]*big.Int)
	}
	if had := r.domains[x]; had == nil || had.Cmp(n) > 0 {
		r.domains[x] = n
	}
}

// form is a condition on the unit alone, written so that it is the same in every query; "" for others.
func (d *Proof) form(id int, r *relation) string {
	defer steps.Visit(d.Steps).Leave()
	if slices.Contains(r.roots, id) {
		return "unit"
	}
	if id < 0 {
		return "" // an aggregate
	}
	t := d.Term(id)
	if len(t.Args) == 0 {
		if t.Op[0] == '#' || t.Op[0] == '[' {
			return ""
		}
		return strconv.Quote(t.Op)
	}
	if t.Op[0] == '#' {
		return ""
	}
	out := strconv.Quote(t.Op) + "("
	for _, a := range t.Args {
		f := d.form(a, r)
		if f == "" || slices.Contains(r.roots, a) && !d.Identical(a) {
			return ""
		}
		out += f + ","
	}
	return out + ")"
}
