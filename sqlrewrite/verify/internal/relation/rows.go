package relation

import (
	"maps"
	"math/big"
	"slices"
	"strconv"

	pgquery "github.com/pganalyze/pg_query_go/v6"

	"noisegate.example/sqlrewrite/internal/steps"
	"noisegate.example/sqlrewrite/verify/internal/value"
)

// Shown gives the rows other columns, each computed from one row.
func (r *Relation) Shown(d *Proof, columns []Column) *Relation {
	of := r
	c0 := *of
	r = &c0
	r.Columns = columns
	for i, c := range r.Columns {
		if len(c.Value.Anchors) > 0 && r.Solid[c.Value.ID] && !c.Value.Strict { // it is NULL on no row that is left
			v := *c.Value
			v.Strict = true
			r.Columns[i].Value, c.Value = &v, &v
		}
		if p := c.Value.Place; p != nil && slices.Equal(p.Of, of.Numbers()) { // row_number() differs among the rows of a partition
			r.whole = append(slices.Clone(r.whole), limit{by: append(slices.Clone(p.Partition), c.Value.ID), rows: 1})
		}
		id := c.Value.ID
		for of, ok := d.Behind(id); ok; of, ok = d.Behind(id) {
			r.edges = append(slices.Clone(r.edges), edge{id, of, true})
			id = of
		}
		if slices.ContainsFunc(c.Value.Anchors, func(a value.Anchor) bool { return a.Root }) && c.Value.Strict &&
			!slices.Contains(r.Roots, c.Value.ID) {
			r.Roots = append(slices.Clone(r.Roots), c.Value.ID)
			if of, ok := d.Behind(c.Value.ID); ok && r.Solid[of] {
				r.Solid[c.Value.ID] = true
			}
		}
	}
	return r
}

// Grouped derives the groups of rows by keys, each with rows of one unit or public ones.
//
// **Lemma U.** Where a key is a value of a unique column that names the unit, as a path's, two groups with equal keys but for the unit's
// id, none of them NULL, are one. *Proof.* Rows with one such value are one unit's (scan.go), so that the ids are equal too. ∎
func (r *Relation) Grouped(d *Proof, columns []Column, by []*value.Value) *Relation {
	var keys, others []int
	owner, told := r.Owner(), false
	for _, k := range by {
		keys = append(keys, k.ID)
		if slices.Contains(r.Roots, k.ID) {
			continue
		}
		others = append(others, k.ID)
		told = told || !k.Vague && slices.ContainsFunc(k.Anchors, func(a value.Anchor) bool { return a.Of.Find() == owner })
	}
	p := &part{number: d.Number(), public: owner == nil, limits: []limit{{by: keys, rows: 1}}}
	if told {
		p.limits = append(p.limits, limit{by: others, rows: 1, sql: true})
	}
	if p.public && len(by) > 0 {
		p.counted(d, r, keys)
	}
	for _, c := range columns {
		p.ids = append(p.ids, c.Value.ID)
	}
	// What is left of a key's values is left of groups.
	return &Relation{Columns: columns, Parts: []*part{p}, Units: r.Units, Domains: r.Domains, Roots: kept(r.Roots, keys),
		Solid: maps.Clone(r.Solid), Once: owner == nil && len(by) > 0}
}

// counted bounds the groups of public rows, or the different ones: there are no more than rows, nor of those with one value of a key.
func (p *part) counted(d *Proof, r *Relation, keys []int) {
	if n := r.chosen(d, slices.Clone(r.Parts), make(knowledge)); n != nil && n.IsInt64() {
		p.most = n.Int64()
	}
	p.equal = make(map[int]int64)
	for _, id := range keys {
		known := make(knowledge)
		known.add(id, true, false)
		if n := r.chosen(d, slices.Clone(r.Parts), known); n != nil && n.IsInt64() {
			p.equal[id] = n.Int64()
		}
	}
}

// written reports whether the text itself has all rows of some relations: no table is read.
func written(all ...*Relation) bool {
	return !slices.ContainsFunc(all, func(r *Relation) bool {
		return slices.ContainsFunc(r.Parts, func(p *part) bool { return !p.written })
	})
}

// Distinct derives SELECT DISTINCT. Of rows that the text has there are no more different ones.
func (d *Proof) Distinct(r *Relation) *Relation {
	owner := r.Owner()
	led := owner == nil
	p := &part{number: d.Number(), public: owner == nil}
	l := limit{rows: 1}
	for i, c := range r.Columns {
		led = led || Names(c.Value, r)
		l.by = append(l.by, c.Value.ID)
		if !c.Value.Same {
			v := *c.Value
			v.Vague = true
			r.Columns[i].Value = &v
		}
	}
	if !led {
		refuse("DISTINCT over rows of several units")
	}
	p.limits, p.ids = []limit{l}, l.by
	if p.written = p.public && written(r); p.written { // few rows, made anew in next to no time
		p.counted(d, r, l.by)
	}
	for _, id := range kept(r.Roots, l.by) {
		if rows := r.Rows(d, []int{id}, false); rows != nil && rows.IsInt64() {
			p.limits = append(p.limits, limit{by: []int{id}, rows: rows.Int64()})
		}
	}
	return &Relation{Columns: r.Columns, Parts: []*part{p}, Solid: r.Solid, Units: r.Units, Roots: kept(r.Roots, l.by),
		Once: r.Once}
}

// Names reports whether a value names the unit of each row, also where it is NULL.
func Names(v *value.Value, r *Relation) bool {
	if !v.Strict && !r.Solid[v.ID] || v.Vague {
		return false
	}
	return slices.ContainsFunc(v.Anchors, func(a value.Anchor) bool { return a.Of.Find() == r.Owner() })
}

// Rooted reports whether one of some values is the number of each row's unit.
func (r *Relation) Rooted(ids []int) bool { return len(kept(r.Roots, ids)) > 0 }

// kept gives the ids that remain.
func kept(ids, there []int) []int {
	var all []int
	for _, id := range ids {
		if slices.Contains(there, id) {
			all = append(all, id)
		}
	}
	return all
}

// UnionAll derives l UNION ALL r, which have as many columns.
func (d *Proof) UnionAll(l, r *Relation) *Relation {
	both := &Relation{Solid: make(map[int]bool), Once: l.Once || r.Once}
	var owner *value.Unit
	if l.Owner() != nil && r.Owner() != nil {
		owner = &value.Unit{}
		both.Units = []*value.Unit{owner}
	} else if l.Owner() != r.Owner() {
		refuse("UNION ALL of owned and public rows")
	}
	p := &part{number: d.Number(), public: owner == nil, written: written(l, r)}
	for i := range l.Columns {
		a, b := l.Columns[i].Value, r.Columns[i].Value
		if a.Kind != b.Kind || a.Numeral != b.Numeral || a.Moved() || b.Moved() {
			refuse("UNION ALL of different types, or of numbers of units and other values")
		}
		v := d.Choice("union", []*value.Value{value.Clear(a), value.Clear(b)}, nil)
		v.ID = d.Fresh()
		v.Nulls, v.Constant, v.Opaque = []int{v.ID}, false, false
		v.Vague, v.Numeral = a.Vague || b.Vague, a.Numeral
		v.Strict = a.Strict && b.Strict
		if l.Solid[a.ID] && r.Solid[b.ID] {
			both.Solid[v.ID] = true
		}
		if owner != nil && anchored(v, a, b, owner) && (v.Strict || both.Solid[v.ID]) { // one that may be NULL does not follow from the unit
			both.Roots = append(both.Roots, v.ID)
		}
		d.Note(v)
		p.ids = append(p.ids, v.ID)
		both.Columns = append(both.Columns, Column{"", l.Columns[i].Name, v})
	}
	if owner == nil { // as many rows as both have
		if of, more := l.Met(d, false), r.Met(d, false); of != nil && more != nil {
			if of.Add(of, more); of.IsInt64() {
				p.most = of.Int64()
			}
		}
	}
	both.Parts = []*part{p}
	return both
}

// anchored notes what v, which is a in some rows and b in others, names as both do. It reports whether that is the unit itself.
func anchored(v, a, b *value.Value, owner *value.Unit) (root bool) {
	for _, x := range a.Anchors {
		for _, y := range b.Anchors {
			if x.Name == y.Name {
				v.Anchors = append(v.Anchors, value.Anchor{Name: x.Name, Root: x.Root && y.Root, Of: owner})
				root = root || x.Root && y.Root
			}
		}
	}
	return root
}

// Holds notes a condition that every row meets.
func (r *Relation) Holds(d *Proof, condition int) {
	r.domain(d, condition)
	if form := d.form(condition, r); form != "" {
		r.Forms = append(r.Forms, form)
	}
}

// Leaving bounds the values of each key that conditions on groups leave.
func (r *Relation) Leaving(d *Proof, conditions []int) map[int]*big.Int {
	left := &Relation{Solid: r.Solid, Domains: maps.Clone(r.Domains)}
	for _, id := range conditions {
		left.domain(d, id)
	}
	return left.Domains
}

// domain notes a condition that leaves only some texts of a value: text = ANY (array) [OR text IS NULL].
func (r *Relation) domain(d *Proof, id int) {
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
func (r *Relation) leave(d *Proof, x int, t value.Term, null bool) {
	size, known := d.Elements(t.Args[1])
	if !known {
		return
	}
	if null {
		size++
	} else {
		r.Solid[x] = true
	}
	r.AtMost(x, size)
}

// AtMost notes that a value is one of at most so many, NULL among them.
func (r *Relation) AtMost(x, size int) {
	n := big.NewInt(int64(size))
	if r.Domains == nil {
		r.Domains = make(map[int]*big.Int)
	}
	if had := r.Domains[x]; had == nil || had.Cmp(n) > 0 {
		r.Domains[x] = n
	}
}

// form writes a condition on the unit alone, in the same way in every query; "" for others.
func (d *Proof) form(id int, r *Relation) string {
	defer steps.Visit(d.Steps).Leave()
	if slices.Contains(r.Roots, id) {
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
		if f == "" || slices.Contains(r.Roots, a) && !d.Identical(a) {
			return ""
		}
		out += f + ","
	}
	return out + ")"
}
