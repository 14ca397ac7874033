package verify

import (
	"math/big"
	"slices"
	"strconv"

	pgquery "github.com/pganalyze/pg_query_go/v6"

	"noisegate.example/sqlrewrite/verify/internal/relation"
	"noisegate.example/sqlrewrite/verify/internal/release"
	"noisegate.example/sqlrewrite/verify/internal/tree"
	"noisegate.example/sqlrewrite/verify/internal/value"
)

// GROUP BY (**Lemma 0**). Three cases:
//
//  1. *within a unit*: a key names the unit of each row, or the unit's number follows from one. A group has rows of one unit, and its
//     output row is that unit's: a function of its rows, as every aggregate below is one of the set of rows, whatever their order.
//  2. *of public rows*: the result is public.
//  3. *otherwise* the aggregates are over many units: that is the release, and the outermost query (package release).
//
// Groups without aggregates are different tuples of many units also where a key leads to the unit, but no key is the unit's id. It is then
// not known that each tuple has a unit, nor how many tuples a unit has, although both are known of the rows below.
//
// *Example.* SELECT person_id, ward, max(minutes) FROM visits GROUP BY person_id, ward is of (1), with one row for each pair; without
// person_id it is of (3), and max is refused there.
//
// Every part of an output must be a key, an aggregate or a constant: other columns of a group could be any row's. Where equal keys are not
// identical, which of them the group has is up to the order of reading: such a key is vague, and may only be compared and hashed.
//
// Aggregates: count; sum of whole numbers and numerics, which is exact, and never of floats, whose sum depends on the order; avg of
// numerics; min and max, vague where equal values are not identical; bool_or, bool_and. A sum of whole numbers of 32 bits is one of 64,
// and would leave it with 2^31 rows in one group; other sums are numerics.

// grouping is a query's groups.
type grouping struct {
	value.Group
	keys   map[int]*value.Value
	order  []int // ids of the keys, as written
	having bool
}

// key is what a column is in a group.
func (g *grouping) key(v *value.Value) *value.Value {
	c := *v
	c.Whole = false
	return &c
}

// of is a value that was computed in a group: a key is a function of the group.
func (g *grouping) of(v *value.Value) *value.Value {
	if k := g.keys[v.ID]; k != nil {
		c := *k
		c.Collation = v.Collation
		return &c
	}
	return v
}

// grouped is a SELECT with aggregates.
func (s *scope) grouped(q *pgquery.SelectStmt) *relation.Relation {
	s.unmerge(q)
	d := s.d
	g := &grouping{Group: value.Group{Number: d.Fresh()}, keys: make(map[int]*value.Value)}
	owner := s.rel.Owner()
	led := s.groupBy(q, g)
	tuples := q.HavingClause == nil && !tree.Aggregating(q.TargetList, value.IsAggregate)
	g.Release = owner != nil && (!led || tuples && !s.rel.Rooted(g.order))
	s.group = g
	r := &relation.Relation{Solid: make(map[int]bool)}
	domains := s.rel.Domains
	if q.HavingClause != nil {
		domains = s.having(q.HavingClause)
	}
	if s.rel.Released != 0 {
		return s.total(q, domains)
	}
	if q.HavingClause != nil && !g.Release {
		refuse("HAVING within a unit")
	}
	if g.Release && tuples {
		return s.different(q)
	}
	for _, n := range q.TargetList {
		t := n.GetResTarget()
		if t == nil || len(t.Indirection) > 0 {
			refuse("an output that no rule covers")
		}
		v := s.expr(t.Val)
		if !v.Whole && !v.Constant {
			refuse("an output that is neither a key nor an aggregate")
		}
		if !g.Release && v.Sum != nil {
			v = d.Plain(v)
		}
		r.Columns = append(r.Columns, relation.Column{Name: tree.NameOf(t), Value: value.Typed(v)})
	}
	if g.Release {
		r.Released = d.releasing(&release.Release{Rows: d.Owned(s.rel), Keys: g.order, Domains: domains, Columns: r.Columns})
		return r
	}
	if owner == nil && len(g.order) > 0 && q.LimitOffset == nil {
		refuse("groups of public rows that PostgreSQL may compute anew for each row of people")
	}
	keys := make([]*value.Value, len(g.order))
	for i, id := range g.order {
		keys[i] = g.keys[id]
	}
	return s.rel.Grouped(d.Proof, r.Columns, keys)
}

// groupBy reads GROUP BY, and reports whether a key names the unit of each row.
func (s *scope) groupBy(q *pgquery.SelectStmt, g *grouping) (led bool) {
	for _, n := range q.GroupClause {
		if c := n.GetAConst(); c != nil {
			at := int(tree.Integer(n))
			if at < 1 || at > len(q.TargetList) || q.TargetList[at-1].GetResTarget() == nil {
				refuse("GROUP BY of an output that does not exist")
			}
			n = q.TargetList[at-1].GetResTarget().Val
		}
		v := s.loose(n)
		if v.Outer { // PostgreSQL groups by an output that has the name
			refuse("GROUP BY of an outer query's value")
		}
		led = led || relation.Names(v, s.rel)
		if v.Kind == value.Boolean { // true, false or NULL
			s.rel.AtMost(v.ID, 3)
		}
		k := *v
		k.Whole, k.Vague = true, !v.Same
		k.Sum, k.Running = nil, nil
		g.keys[v.ID] = &k
		g.order = append(g.order, v.ID)
	}
	return led
}

// having reads CASE WHEN count(*) > 0 THEN condition END, where the condition is one on keys; a group has a row, so that the CASE takes its
// branch. What it says of keys bounds how many groups there are.
func (s *scope) having(n *pgquery.Node) map[int]*big.Int {
	c := n.GetCaseExpr()
	if c == nil || len(c.Args) != 1 || len(s.group.order) == 0 {
		refuse("HAVING that no rule covers")
	}
	tree.Reads(c, "Args")
	w := c.Args[0].GetCaseWhen()
	e := w.GetExpr().GetAExpr()
	if w == nil || w.Xpr != nil || e == nil || e.Kind != pgquery.A_Expr_Kind_AEXPR_OP || tree.Operator(e.Name) != ">" {
		refuse("HAVING that no rule covers")
	}
	rows, none := s.expr(e.Lexpr), s.expr(e.Rexpr).Number()
	if rows.Sum == nil || !rows.Sum.Count || len(rows.Sum.Where) > 0 || none == nil || none.Sign() != 0 {
		refuse("HAVING that no rule covers")
	}
	s.group.having = true
	var conditions []int
	for _, n := range tree.Conjuncts(w.Result, nil) {
		v := s.truth(n)
		if !v.Whole && !v.Constant {
			refuse("HAVING over what is no key")
		}
		conditions = append(conditions, v.ID)
	}
	s.group.having = false
	return s.rel.Leaving(s.d.Proof, conditions)
}

// aggregate is a call of an aggregate.
func (s *scope) aggregate(name string, f *pgquery.FuncCall) *value.Value {
	if s.group == nil || s.inside || s.group.having {
		refuse("an aggregate where there may be none")
	}
	d, g := s.d, s.group
	x, where := s.aggregated(name, f)
	s.counts(name, x, where)
	if f.AggDistinct {
		s.unsorted(x)
	}
	id := func(collation string) int {
		return d.Intern("aggregate "+name+strconv.FormatBool(f.AggDistinct)+strconv.Itoa(g.Number)+collation,
			append([]int{x.ID, -1}, where...)...)
	}
	switch {
	case x == nil:
		return d.Counted(g.Group, where)
	case name == "count" && (f.AggDistinct || s.merged != nil):
		return d.Different(g.Group, where, id(""), s.rel.Within(d.Proof, []int{x.ID}, nil))
	case name == "count":
		return d.Counted(g.Group, value.Union(where, d.present(x)))
	case name == "sum" && f.AggDistinct:
		return d.SummedOnce(g.Group, where, x, id(""))
	case name == "sum":
		return d.Summed(g.Group, value.Union(where, d.present(x)), x)
	case g.Release:
		refuse("%s over many units", name)
	}
	v := d.Aggregated(name, x)
	v.ID, v.Whole = id(x.Collation), true
	v.Nulls = []int{v.ID}
	return v
}

// aggregated is what an aggregate is of: an argument, nil for *, in the rows that meet some conditions.
func (s *scope) aggregated(name string, f *pgquery.FuncCall) (x *value.Value, where []int) {
	in := *s
	in.inside, in.narrow, in.runs = true, nil, nil
	for _, n := range tree.Conjuncts(f.AggFilter, nil) {
		where = value.Union(where, s.d.condition(in.truth(n), n))
	}
	if f.AggStar {
		if name != "count" || len(f.Args) > 0 || f.AggDistinct {
			refuse("a * of another aggregate than count")
		}
		return nil, where
	}
	if len(f.Args) != 1 {
		refuse("an aggregate of %d arguments", len(f.Args))
	}
	in.numbers = name == "count" && f.AggDistinct && s.group.Release && isColumn(f.Args[0])
	x = in.expr(f.Args[0])
	if x.Moved() {
		refuse("an aggregate over an aggregate of many units")
	}
	if x.Running != nil || x.Kind == value.NoKind || x.Kind == value.Texts {
		refuse("an aggregate over a value that no rule covers")
	}
	if name != "count" && (x.Vague || f.AggDistinct && (!x.Same || s.group.Release)) {
		refuse("DISTINCT of many units, or a vague value, in another aggregate than count")
	}
	return x, where
}

// condition is what a conjunct of FILTER asks of a row.
func (d *derivation) condition(v *value.Value, n *pgquery.Node) []int {
	if t := n.GetNullTest(); t != nil && t.Nulltesttype == pgquery.NullTestType_IS_NOT_NULL {
		if of := d.Term(v.ID); len(of.Args) == 1 {
			if x := d.Value(of.Args[0]); x != nil {
				return d.present(x)
			}
		}
	}
	return []int{v.ID}
}

// present are the conditions under which a value is not NULL.
func (d *derivation) present(v *value.Value) []int {
	all := make([]int, len(v.Nulls))
	for i, id := range v.Nulls {
		all[i] = d.Intern("present", id)
	}
	slices.Sort(all)
	return all
}

// total adds pieces up.
func (s *scope) total(q *pgquery.SelectStmt, domains map[int]*big.Int) *relation.Relation {
	below := s.d.released(s.rel)
	if below.Rows != nil || q.WhereClause != nil {
		refuse("aggregates over aggregates over many units")
	}
	up := below.Total(s.group.order, domains)
	for _, n := range q.TargetList {
		t := n.GetResTarget()
		if t == nil || len(t.Indirection) > 0 {
			refuse("an output that no rule covers")
		}
		up.Columns = append(up.Columns, relation.Column{Name: tree.NameOf(t), Value: s.piecewise(t.Val)})
	}
	return &relation.Relation{Columns: up.Columns, Solid: s.rel.Solid, Released: s.d.releasing(up), Units: s.rel.Units}
}

// piecewise is an output over pieces: a key as text, or the sum of a column as text.
func (s *scope) piecewise(n *pgquery.Node) *value.Value {
	c := n.GetTypeCast()
	k, precision, _ := value.TypeOf(c.GetTypeName())
	if c == nil || k != value.Text || precision != 0 {
		refuse("an output over pieces that is no text")
	}
	f := c.Arg.GetFuncCall()
	if f == nil {
		v := s.d.Cast(s.expr(c.Arg), value.Text)
		if !v.Whole || v.Sum != nil {
			refuse("an output over pieces that is neither a key nor a sum")
		}
		return v
	}
	tree.Reads(f, "Funcname", "Args", "Funcformat")
	if tree.Builtin(f.Funcname) != "sum" || len(f.Args) != 1 || f.Funcformat != pgquery.CoercionForm_COERCE_EXPLICIT_CALL {
		refuse("an aggregate over pieces that is no sum")
	}
	in := *s
	in.inside = true
	v := in.expr(f.Args[0])
	if !v.Moved() || f.Args[0].GetColumnRef() == nil {
		refuse("a sum over pieces of what is no sum")
	}
	sum := *v
	sum.ID, sum.Kind = s.d.Fresh(), value.Text
	return &sum
}
