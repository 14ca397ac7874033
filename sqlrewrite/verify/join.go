package verify

import (
	"slices"

	pgquery "github.com/pganalyze/pg_query_go/v6"

	"noisegate.example/sqlrewrite/internal/steps"
	"noisegate.example/sqlrewrite/verify/internal/tree"
	"noisegate.example/sqlrewrite/verify/internal/value"
)

// FROM. A row of a join is a tuple of rows (Lemma 0):
//
//   - owned x public: a tuple belongs to the owned row's unit.
//   - owned x owned: it belongs to one unit where a condition that every tuple meets equates two values that name whose the rows are in
//     the same way (anchor.name): both are the unit, or both are values of one unique column of an owned table. Conditions of inner joins
//     and of WHERE hold for every tuple that is left.
//   - LEFT JOIN: a tuple belongs to the left row's unit. The right side must be public, or ON must make its rows the left row's own: then
//     whether there is a partner depends on the unit's rows. The left side must be owned, or both public: the tuples of a public row
//     without a partner would belong to nobody, and depend on everybody.
//
// Ids of two types are equated only where equality means the same for both: whole numbers, or one type.
//
// The columns of a LEFT JOIN's right side are other values than before, as they may be NULL: they follow from both sides' rows. They still
// name the unit where they are not NULL, but not where they are (strict).
//
// What WHERE says is not NULL makes an outer join an inner one, or a FULL JOIN a LEFT JOIN (present.go). RIGHT JOIN, other FULL JOINs,
// USING and NATURAL are not printed, and are refused.

func (s *scope) from(list []*pgquery.Node) *relation {
	if len(list) > 1 {
		refuse("a list in FROM")
	}
	if len(list) == 0 {
		return &relation{solid: make(map[int]bool)}
	}
	return s.item(list[0], nil)
}

// item is a part of FROM; left is what a LATERAL sees.
func (s *scope) item(n *pgquery.Node, left *relation) *relation {
	defer steps.Visit(s.d.Steps).Leave()
	switch e := n.GetNode().(type) {
	case *pgquery.Node_RangeVar:
		return s.rangeVar(e.RangeVar)
	case *pgquery.Node_RangeSubselect:
		q := e.RangeSubselect
		inner := &scope{d: s.d, number: s.d.Number(), ctes: s.ctes}
		if q.Lateral {
			if left == nil {
				refuse("LATERAL beside nothing")
			}
			inner.parent, inner.meeting = &scope{d: s.d, number: s.d.Number(), rel: left}, s.meeting
			inner.bill = s.bill
		}
		alias := tree.AliasOf(q.Alias)
		if alias == "" {
			refuse("a query without an alias")
		}
		sub := tree.SelectOf(q.Subquery)
		if q.Lateral && (len(sub.FromClause) > 0 || sub.Op > pgquery.SetOperation_SETOP_NONE) {
			refuse("a LATERAL query with FROM")
		}
		r := s.d.query(sub, inner).named(alias)
		for i, c := range r.columns {
			if q.Lateral && c.v.Outer { // of the row beside it
				v := *c.v
				v.Outer = false
				r.columns[i].v = &v
			}
		}
		return r
	case *pgquery.Node_JoinExpr:
		return s.join(e.JoinExpr)
	default:
		refuse("an item of FROM that no rule covers")
		return nil
	}
}

func (s *scope) join(j *pgquery.JoinExpr) *relation {
	if j.IsNatural || len(j.UsingClause) > 0 || j.JoinUsingAlias != nil || j.Alias != nil || j.Rtindex != 0 {
		refuse("a field of JOIN")
	}
	l := s.item(j.Larg, nil)
	present := s.present
	s.present = append(slices.Clone(present), tree.Present(j.Quals)...) // rows of the right side where it is not so meet none of the left one
	r := s.item(j.Rarg, l)
	s.present = present
	if l.released != 0 || r.released != 0 {
		refuse("a join of aggregates over many units")
	}
	both := s.d.both(l, r)
	on := &scope{d: s.d, number: s.d.Number(), parent: s.parent, ctes: s.ctes, rel: both, reads: s.reads, meeting: s.meeting, bill: s.bill}
	kind := j.Jointype
	if kind == pgquery.JoinType_JOIN_LEFT && s.matched(r) || kind == pgquery.JoinType_JOIN_FULL && s.matched(l) && s.matched(r) {
		kind = pgquery.JoinType_JOIN_INNER
	}
	if kind == pgquery.JoinType_JOIN_FULL && s.matched(l) {
		kind = pgquery.JoinType_JOIN_LEFT
	}
	switch kind {
	case pgquery.JoinType_JOIN_INNER:
		on.conditions(j.Quals, nil)
		return both
	case pgquery.JoinType_JOIN_LEFT:
		return s.d.left(both, l, r, func() {
			// What ON says binds the right side's rows only: to it the left side is an outer query.
			on.parent = &scope{d: s.d, number: s.d.Number(), parent: on.parent, rel: l}
			both.units = r.units
			on.conditions(j.Quals, l)
		})
	default:
		refuse("a join that is neither inner nor left")
		return nil
	}
}

// both are the pairs of a row of each.
func (d *Proof) both(l, r *relation) *relation {
	both := &relation{solid: make(map[int]bool), scanned: l.scanned + r.scanned, tables: append(slices.Clone(l.tables), r.tables...)}
	both.columns = append(slices.Clone(l.columns), r.columns...)
	for _, x := range []*relation{l, r} {
		if len(x.parts) == 1 && len(x.whole) > 0 {
			p := *x.parts[0]
			p.number = d.Number()
			p.limits = append(slices.Clone(p.limits), x.whole...)
			x.parts = []*part{&p}
		} else if len(x.whole) > 0 {
			both.cuts = append(both.cuts, cut{x.parts, x.whole})
		}
		both.cuts = append(both.cuts, x.cuts...)
		both.parts = append(both.parts, x.parts...)
		both.edges = append(both.edges, x.edges...)
		both.outer = append(both.outer, x.outer...)
		both.units = append(both.units, x.units...)
		both.roots = append(both.roots, x.roots...)
		for id := range x.solid {
			both.solid[id] = true
		}
	}
	both.fixed = append(slices.Clone(l.fixed), r.fixed...)
	return both
}

// left is l LEFT JOIN r, of which on reads the condition into the pairs.
func (d *Proof) left(pairs, l, r *relation, on func()) *relation {
	owner := l.owner()
	before := &relation{solid: make(map[int]bool), units: slices.Clone(l.units), roots: slices.Clone(l.roots), fixed: slices.Clone(l.fixed),
		edges: append(slices.Clone(l.edges), r.edges...), parts: pairs.parts, cuts: pairs.cuts, scanned: pairs.scanned, tables: pairs.tables}
	for id := range l.solid {
		before.solid[id] = true
	}
	inLeft := make(knowledge)
	for _, c := range l.columns {
		inLeft.add(c.v.ID, false, true)
	}
	at, given := len(pairs.edges), len(pairs.fixed)
	on()
	if r.owner() != nil && r.owner() != owner {
		refuse("LEFT JOIN of rows that are not the left row's unit's own")
	}
	// The right row follows from the left one, not the other way round.
	for _, e := range pairs.edges[at:] {
		if d.determined(e.from, inLeft) && !d.determined(e.to, inLeft) {
			before.edges = append(before.edges, e)
		}
	}
	// Of the right rows that match, columns that ON sets equal to a constant, or to a value of an outer query, are fixed.
	for _, id := range pairs.fixed[given:] {
		if slices.ContainsFunc(r.parts, func(p *part) bool { return slices.Contains(p.ids, id) }) {
			before.fixed = append(before.fixed, id)
		}
	}
	before.columns = slices.Clone(l.columns)
	matched := outerJoin{left: l, right: r.parts, on: slices.Clone(pairs.edges[at:])}
	var ids []int
	for _, p := range append(slices.Clone(l.parts), r.parts...) {
		ids = append(ids, p.ids...)
	}
	for _, c := range r.columns {
		v := *c.v
		v.ID = d.Fresh(append([]int{c.v.ID}, ids...)...)
		v.Nulls, v.Strict, v.Constant, v.Opaque = []int{v.ID}, false, false, false
		v.Place, v.Running, v.Summed, v.Split = nil, nil, nil, nil
		d.Note(&v)
		before.columns = append(before.columns, named{c.table, c.name, &v})
		matched.shown = append(matched.shown, v.ID)
		matched.on = append(matched.on, edge{from: c.v.ID, to: v.ID}, edge{from: v.ID, to: c.v.ID})
	}
	before.outer = append(slices.Clone(pairs.outer), matched)
	return before
}

// conditions reads what every row that is left meets, or, of a LEFT JOIN's ON, every pair that matches. What it says of NULLs and
// equalities is collected first, so that conditions with queries can use it. Queries that read rows of the left side of a LEFT JOIN are
// no joins in its ON.
func (s *scope) conditions(n *pgquery.Node, left *relation) {
	given := tree.Conjuncts(n, nil)
	for _, c := range given {
		if not := c.GetBoolExpr(); not != nil && not.Boolop == pgquery.BoolExprType_NOT_EXPR && len(not.Args) == 1 {
			c = not.Args[0]
		}
		if l := c.GetSubLink(); l != nil && l.SubLinkType == pgquery.SubLinkType_EXISTS_SUBLINK {
			s.d.joins[l] = left
		}
	}
	all := s.unfenced(given)
	for _, c := range all {
		s.fact(c)
	}
	for _, c := range all {
		v := s.truth(c)
		s.rel.domain(s.d.Proof, v.ID)
		if form := s.d.form(v.ID, s.rel); form != "" {
			s.rel.forms = append(s.rel.forms, form)
		}
	}
}

// fact is what one condition says.
func (s *scope) fact(n *pgquery.Node) {
	if t := n.GetNullTest(); t != nil && t.Nulltesttype == pgquery.NullTestType_IS_NOT_NULL {
		if v := s.loose(t.Arg); !v.Outer {
			s.rel.solid[v.ID] = true
		}
		return
	}
	e := n.GetAExpr()
	if e == nil || e.Kind != pgquery.A_Expr_Kind_AEXPR_OP || e.Lexpr == nil {
		return
	}
	op := tree.Operator(e.Name)
	if op != "=" && op != "<=" {
		return
	}
	l, r := s.loose(e.Lexpr), s.loose(e.Rexpr)
	if op == "<=" {
		s.rel.placed(s.d.Proof, l, r)
		return
	}
	s.rel.equal(l, r, s.around())
}

// around are the relations of the queries around this one.
func (s *scope) around() (all []*relation) {
	for p := s.parent; p != nil; p = p.parent {
		if p.rel != nil {
			all = append(all, p.rel)
		}
	}
	return all
}

// of reports whether a unit is one of the rows'.
func (r *relation) of(u *value.Unit) bool {
	return slices.ContainsFunc(r.units, func(x *value.Unit) bool { return x.Find() == u })
}

// equal is l = r: both are not NULL, and each follows from the other.
func (r *relation) equal(l, c *value.Value, around []*relation) {
	for _, v := range []*value.Value{l, c} {
		if !v.Outer && !v.Constant {
			r.solid[v.ID] = true
		}
	}
	if (l.Kind != c.Kind || l.Kind == value.Char) && !(l.Kind.IsInteger() && c.Kind.IsInteger()) {
		if c.Constant != l.Constant {
			r.fix(l, c)
		}
		return
	}
	switch {
	case l.Constant || c.Constant:
		r.fix(l, c)
	case l.Outer && c.Outer:
	default:
		if l.Outer != c.Outer { // one value for each row of the outer query
			r.fixed = append(r.fixed, map[bool]int{true: c.ID, false: l.ID}[l.Outer])
		}
		if !l.Outer && !c.Outer {
			r.edges = append(r.edges, edge{from: l.ID, to: c.ID}, edge{from: c.ID, to: l.ID})
		}
		for _, a := range l.Anchors {
			for _, b := range c.Anchors {
				if a.Name == b.Name {
					r.merge(a.Of.Find(), b.Of.Find(), around)
				}
			}
		}
	}
}

// fix says that a value is equal to a constant, under an equality that tells its values apart as its own type does.
func (r *relation) fix(v, c *value.Value) {
	if v.Constant {
		v, c = c, v
	}
	if v.Constant || v.Outer {
		return
	}
	small := v.Kind == value.Int2 || v.Kind == value.Int4
	if v.Kind == c.Kind || v.Kind.IsInteger() && (c.Kind.IsInteger() || c.Kind == value.Numeric) ||
		v.Kind == value.Numeric && c.Kind.IsInteger() || small && c.Kind.IsFloat() {
		r.fixed = append(r.fixed, v.ID)
	}
}

// merge makes two units one. Those of an outer query stay as many as they are: an inner row has one of them.
func (r *relation) merge(a, b *value.Unit, around []*relation) {
	if a == b {
		return
	}
	mine := func(u *value.Unit) bool { return r.of(u) }
	outer := func(u *value.Unit) bool {
		return slices.ContainsFunc(around, func(r *relation) bool { return r.of(u) })
	}
	switch {
	case outer(a) && outer(b):
	case mine(a) && (mine(b) || outer(b)) && !outer(a):
		a.Into = b
	case mine(b) && outer(a):
		b.Into = a
	default:
		refuse("an equality of units that are elsewhere")
	}
}
