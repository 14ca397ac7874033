package verify

import (
	"slices"

	pgquery "github.com/pganalyze/pg_query_go/v6"

	"noisegate.example/sqlrewrite/internal/steps"
	"noisegate.example/sqlrewrite/verify/internal/relation"
	"noisegate.example/sqlrewrite/verify/internal/tree"
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

func (s *scope) from(list []*pgquery.Node) *relation.Relation {
	if len(list) > 1 {
		refuse("a list in FROM")
	}
	if len(list) == 0 {
		return &relation.Relation{Solid: make(map[int]bool)}
	}
	return s.item(list[0], nil)
}

// item is a part of FROM; left is what a LATERAL sees.
func (s *scope) item(n *pgquery.Node, left *relation.Relation) *relation.Relation {
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
		r := s.d.query(sub, inner).As(alias)
		for i, c := range r.Columns {
			if q.Lateral && c.Value.Outer { // of the row to its left
				v := *c.Value
				v.Outer = false
				r.Columns[i].Value = &v
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

func (s *scope) join(j *pgquery.JoinExpr) *relation.Relation {
	if j.IsNatural || len(j.UsingClause) > 0 || j.JoinUsingAlias != nil || j.Alias != nil || j.Rtindex != 0 {
		refuse("a field of JOIN")
	}
	l := s.item(j.Larg, nil)
	present := s.present
	s.present = append(slices.Clone(present), tree.Present(j.Quals)...) // rows of the right side where it is not so meet none of the left one
	r := s.item(j.Rarg, l)
	s.present = present
	if l.Released != 0 || r.Released != 0 {
		refuse("a join of aggregates over many units")
	}
	both := s.d.Pairs(l, r)
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
		s.d.MeetOnce(both, l, r)
		return both
	case pgquery.JoinType_JOIN_LEFT:
		return s.d.LeftJoin(both, l, r, func() {
			// What ON says binds the right side's rows only: to it the left side is an outer query.
			on.parent = &scope{d: s.d, number: s.d.Number(), parent: on.parent, rel: l}
			both.Units = r.Units
			on.conditions(j.Quals, l)
			s.d.MeetOnce(both, l, r)
		})
	default:
		refuse("a join that is neither inner nor left")
		return nil
	}
}

// conditions reads what every row that is left meets, or, of a LEFT JOIN's ON, every pair that matches. What it says of NULLs and
// equalities is collected first, so that conditions with queries can use it. Queries that read rows of the left side of a LEFT JOIN are
// no joins in its ON.
func (s *scope) conditions(n *pgquery.Node, left *relation.Relation) {
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
		s.rel.Holds(s.d.Proof, v.ID)
	}
}

// fact is what one condition says.
func (s *scope) fact(n *pgquery.Node) {
	if t := n.GetNullTest(); t != nil && t.Nulltesttype == pgquery.NullTestType_IS_NOT_NULL {
		if v := s.loose(t.Arg); !v.Outer {
			s.rel.Solid[v.ID] = true
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
		s.rel.Placed(s.d.Proof, l, r)
		return
	}
	s.rel.Equate(l, r, s.around())
}

// around are the relations of the queries around this one.
func (s *scope) around() (all []*relation.Relation) {
	for p := s.parent; p != nil; p = p.parent {
		if p.rel != nil {
			all = append(all, p.rel)
		}
	}
	return all
}

// rangeVar is a table, or a query of WITH.
func (s *scope) rangeVar(v *pgquery.RangeVar) *relation.Relation {
	if v.Catalogname != "" || v.Relpersistence != "p" {
		refuse("a table written in another way")
	}
	alias := tree.AliasOf(v.Alias)
	if alias == "" {
		alias = v.Relname
	}
	if v.Schemaname == "" {
		q := s.ctes[v.Relname]
		if q == nil || !v.Inh {
			refuse("a table without a schema")
		}
		inner := scope{d: s.d, number: s.d.Number()}
		return s.d.query(q, &inner).As(alias)
	}
	t, known := s.d.On.Table(v.Schemaname, v.Relname)
	if !known {
		refuse("a table that the policy does not have")
	}
	// Without ONLY a table shows the rows of those that inherit from it, which no pin covers; a partitioned one has no others.
	if v.Inh != t.Partitioned {
		refuse("a plain table without ONLY, or a partitioned one with it")
	}
	return s.d.Scan(t, alias)
}
