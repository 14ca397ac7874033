package verify

import (
	"math/big"
	"slices"

	pgquery "github.com/pganalyze/pg_query_go/v6"

	"noisegate.example/sqlrewrite/internal/steps"
	"noisegate.example/sqlrewrite/verify/internal/relation"
	"noisegate.example/sqlrewrite/verify/internal/release"
	"noisegate.example/sqlrewrite/verify/internal/tree"
	"noisegate.example/sqlrewrite/verify/internal/value"
)

// SELECT (**Lemma 0**). Its rows are those of FROM that meet WHERE, with outputs computed of one row each; the order in which PostgreSQL
// does so does not matter, as nothing raises an error.
//
//  1. A condition is a function of one row, so that what is left of a unit's rows is a function of the unit's rows.
//  2. DISTINCT of rows of one unit each: a column must name the unit. Equal rows become one; which one is seen does not matter where equal
//     values are identical, and columns where they are not are vague. Of a unit's rows there are no more than before.
//  3. UNION ALL: a unit's rows are those of both sides. A column names the unit where it does so on both. It is a function of the
//     unit only if it is NULL in no row of a unit: an id on the right of a LEFT JOIN may be NULL.
//
// *Example.* SELECT DISTINCT person_id, ward FROM visits has one row for each unit and ward; SELECT DISTINCT ward has rows of several
// units.
//
// By the end of WHERE each row must belong to one unit (relation.owner). ORDER BY, LIMIT, GROUPING SETS, INTERSECT and the like make rows
// depend on those of others, and are refused.

// query is a SELECT with its WITH.
func (d *derivation) query(q *pgquery.SelectStmt, s *scope) *relation.Relation {
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
	s.rel.Owner()
	var r *relation.Relation
	if len(q.GroupClause) > 0 || q.HavingClause != nil || tree.Aggregating(q.TargetList, value.IsAggregate) {
		if len(q.DistinctClause) > 0 {
			refuse("DISTINCT of aggregates")
		}
		r = s.grouped(q)
	} else {
		r = s.rowwise(q)
	}
	s.d.Remembering(func() { // what is known now
		s.works()
		s.bills(len(q.GroupClause) > 0 || len(q.DistinctClause) > 0)
	})
	return r
}

// rowwise is a SELECT without aggregates.
func (s *scope) rowwise(q *pgquery.SelectStmt) *relation.Relation {
	if s.rel.Released != 0 {
		refuse("aggregates over many units below other computations")
	}
	s.runs = &windows{}
	var columns []relation.Column
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
		columns = append(columns, relation.Column{Name: tree.NameOf(t), Value: value.Typed(of.expr(t.Val))})
	}
	r := s.rel.Shown(s.d.Proof, columns)
	s.settle(r)
	if len(q.DistinctClause) == 0 {
		return r
	}
	if len(q.DistinctClause) != 1 || q.DistinctClause[0].GetNode() != nil {
		refuse("DISTINCT ON")
	}
	return s.d.Distinct(r)
}

// star is alias.*.
func (s *scope) star(c *pgquery.ColumnRef, name string) []relation.Column {
	if len(c.Fields) != 2 || name != "" {
		refuse("a * without a table")
	}
	table := tree.Words(c.Fields[:1])[0]
	if slices.Contains(s.rel.Tables, table) {
		refuse("a * of a table, which may have more columns than are pinned")
	}
	var all []relation.Column
	for _, col := range s.rel.Columns {
		if col.Table == table {
			all = append(all, relation.Column{Name: col.Name, Value: col.Value})
		}
	}
	if len(all) == 0 {
		refuse("a * of no table")
	}
	return all
}

// union is l UNION ALL r.
func (d *derivation) union(l, r *relation.Relation) *relation.Relation {
	if len(l.Columns) != len(r.Columns) {
		refuse("UNION ALL of different numbers of columns")
	}
	if l.Released != 0 || r.Released != 0 {
		if l.Released == 0 || r.Released == 0 {
			refuse("UNION ALL of aggregates over many units with other rows")
		}
		u := release.Union(d.Terms, d.released(l), d.released(r))
		return &relation.Relation{Columns: u.Columns, Solid: make(map[int]bool), Released: d.releasing(u), Units: []*value.Unit{{}}}
	}
	return d.UnionAll(l, r)
}
