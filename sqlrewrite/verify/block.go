package verify

import (
	"math/big"
	"slices"
	"strconv"

	pgquery "github.com/pganalyze/pg_query_go/v6"

	"noisegate.example/sqlrewrite/internal/steps"
	"noisegate.example/sqlrewrite/verify/internal/tree"
	"noisegate.example/sqlrewrite/verify/internal/value"
)

// SELECT (**Lemma 0**). Its rows are those of FROM that meet WHERE, with outputs computed of one row each; the order in which PostgreSQL
// does so does not matter, as nothing raises an error.
//
//  1. A condition is a function of one row, so that what is left of a unit's rows is a function of the unit's rows.
//  2. DISTINCT of rows of one unit each: a column must name the unit. Equal rows become one; which one is seen does not matter where equal
//     values are identical, and columns where they are not are vague. Of a unit's rows there are no more than before.
//  3. UNION ALL: a unit's rows are those of both sides. A column names the unit where it does so on both.
//
// *Example.* SELECT DISTINCT person_id, ward FROM visits has one row for each unit and ward; SELECT DISTINCT ward has rows of several
// units.
//
// By the end of WHERE each row must belong to one unit (relation.owner). ORDER BY, LIMIT, GROUPING SETS, INTERSECT and the like make rows
// depend on those of others, and are refused.

// query is a SELECT with its WITH.
func (d *derivation) query(q *pgquery.SelectStmt, s *scope) *relation {
	defer steps.Visit(d.Steps).Leave()
	tree.Plain(q)
	if w := q.WithClause; w != nil {
		if w.Recursive || s.ctes != nil || len(w.Ctes) == 0 {
			refuse("WITH RECURSIVE, or WITH inside WITH")
		}
		s.ctes = make(map[string]*pgquery.SelectStmt)
		for _, n := range w.Ctes {
			c := n.GetCommonTableExpr()
			tree.Reads(c, "Ctename", "Ctequery", "Ctematerialized")
			if c.Ctematerialized > pgquery.CTEMaterialize_CTEMaterializeNever {
				refuse("a query of WITH that is kept in another way")
			}
			if s.ctes[c.Ctename] != nil {
				refuse("two queries of one name in WITH")
			}
			s.ctes[c.Ctename] = tree.SelectOf(c.Ctequery)
		}
	}
	if q.Op == pgquery.SetOperation_SETOP_UNION {
		tree.Reads(q, "WithClause", "Op", "All", "Larg", "Rarg", "LimitOption", "LimitOffset")
		l := &scope{d: d, number: d.Number(), parent: s.parent, ctes: s.ctes, reads: s.reads}
		r := &scope{d: d, number: d.Number(), parent: s.parent, ctes: s.ctes, reads: s.reads}
		s.rel = d.union(d.query(q.Larg, l), d.query(q.Rarg, r))
		return s.rel
	}
	if q.Larg != nil || q.Rarg != nil {
		refuse("a field of SELECT")
	}
	if s.meeting == nil {
		s.meeting = new(big.Int)
	}
	if s.bill == nil {
		s.bill = newBill()
	}
	s.present = tree.Present(q.WhereClause)
	s.rel = s.from(q.FromClause)
	s.besides = s.reads != nil && len(*s.reads) > 0
	s.conditions(q.WhereClause, nil)
	s.rel.owner()
	var r *relation
	if len(q.GroupClause) > 0 || q.HavingClause != nil || tree.Aggregating(q.TargetList, value.IsAggregate) {
		if len(q.DistinctClause) > 0 {
			refuse("DISTINCT of aggregates")
		}
		r = s.grouped(q)
	} else {
		r = s.rowwise(q)
	}
	s.d.remembering(func() { // what is known now
		s.works()
		s.bills(len(q.GroupClause) > 0 || len(q.DistinctClause) > 0)
	})
	return r
}

// rowwise is a SELECT without aggregates.
func (s *scope) rowwise(q *pgquery.SelectStmt) *relation {
	if s.rel.released != 0 {
		refuse("aggregates over many units below other computations")
	}
	s.runs = &windows{}
	var columns []named
	for _, n := range q.TargetList {
		t := n.GetResTarget()
		if t == nil || len(t.Indirection) > 0 {
			refuse("an output that no rule covers")
		}
		if c := t.Val.GetColumnRef(); c != nil && len(c.Fields) > 0 && c.Fields[len(c.Fields)-1].GetAStar() != nil {
			columns = append(columns, s.star(c, t.Name)...)
			continue
		}
		of := *s
		of.numbers = s.parent == nil && t.Val.GetColumnRef() != nil // an item of FROM may hand it on
		columns = append(columns, named{"", tree.NameOf(t), value.Typed(of.expr(t.Val))})
	}
	r := s.rel.shown(s.d.Proof, columns)
	s.settle(r)
	if len(q.DistinctClause) == 0 {
		return r
	}
	if len(q.DistinctClause) != 1 || q.DistinctClause[0].GetNode() != nil {
		refuse("DISTINCT ON")
	}
	return s.d.distinct(r)
}

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

// star is alias.*.
func (s *scope) star(c *pgquery.ColumnRef, name string) []named {
	if len(c.Fields) != 2 || name != "" {
		refuse("a * without a table")
	}
	table := tree.Words(c.Fields[:1])[0]
	if slices.Contains(s.rel.tables, table) {
		refuse("a * of a table, which may have more columns than are pinned")
	}
	var all []named
	for _, col := range s.rel.columns {
		if col.table == table {
			all = append(all, named{"", col.name, col.v})
		}
	}
	if len(all) == 0 {
		refuse("a * of no table")
	}
	return all
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
	return &relation{columns: r.columns, parts: []*part{p}, solid: r.solid, units: r.units, roots: kept(r.roots, l.by), scanned: r.scanned}
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

// union is l UNION ALL r.
func (d *derivation) union(l, r *relation) *relation {
	if len(l.columns) != len(r.columns) {
		refuse("UNION ALL of different numbers of columns")
	}
	if l.released != 0 || r.released != 0 {
		return d.pieces(l, r)
	}
	return d.unionAll(l, r)
}

// unionAll is l UNION ALL r, of as many columns.
func (d *Proof) unionAll(l, r *relation) *relation {
	both := &relation{solid: make(map[int]bool), scanned: l.scanned + r.scanned}
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
