package verify

import (
	"slices"
	"strings"

	pgquery "github.com/pganalyze/pg_query_go/v6"

	"noisegate.example/sqlrewrite/verify/internal/relation"
	"noisegate.example/sqlrewrite/verify/internal/release"
	"noisegate.example/sqlrewrite/verify/internal/tree"
	"noisegate.example/sqlrewrite/verify/internal/value"
)

// Sorts. PostgreSQL's sort first checks whether its rows are in order already, so that one row out of order decides how long it takes.
// What can be hashed is hashed (enable_sort is off). PostgreSQL sorts the rows of windows, and of groups with an aggregate that sorts; so
// over rows of people:
//
//  1. PARTITION BY begins with the id of the unit, scattered: int8xor(id, scatter), or a hash of the id and then the id.
//  2. GROUP BY within a unit begins so where an aggregate has DISTINCT. That sorts rows of one unit alone.
//  3. Over many units there is no DISTINCT, but of the numbers of a copy.
//
// **Lemma 18.** int8xor(id, scatter) differs for each id, so that (1) has the partitions of the id. Among L different ids in order at least
// log2(L) bits are the highest in which two neighbours differ; the scattered ids are in order only if scatter has none of these bits.
//
// *Different values.* A query with GROUP BY and no aggregate has the different tuples of its keys, of many units. A query over that alone,
// with all other columns as its keys, may count one: the count is count(DISTINCT x) of the rows below (Lemma 4).
//
// *Example.* SELECT k::text, count(x)::text FROM (SELECT k, x FROM rows GROUP BY k, x) u GROUP BY k.

// scattered gives the id of the value that v scatters, -1 for other values; exact: no two are scattered to one.
func (d *derivation) scattered(v *value.Value) (of int, exact bool) {
	if v.ID < 0 || len(d.Term(v.ID).Args) != 2 {
		return -1, false
	}
	t := d.Term(v.ID)
	of, exact = t.Args[0], t.Op == "int8xor"
	if !exact && !strings.HasPrefix(t.Op, "hash") {
		return -1, false
	}
	for _, cast := range []string{"to:" + value.KindName(value.Int8), "text"} {
		if c := d.Term(of); c.Op == cast && len(c.Args) == 1 {
			return c.Args[0], exact
		}
	}
	return of, exact
}

// unscattered gives the values of PARTITION BY, with the unit's id for its scattered form.
func (s *scope) unscattered(list []*value.Value) []*value.Value {
	if s.rel.Owner() == nil || s.d.alone && slices.ContainsFunc(list, func(v *value.Value) bool { return relation.Names(v, s.rel) }) {
		return list
	}
	if len(list) > 0 {
		of, exact := s.d.scattered(list[0])
		for _, c := range s.rel.Columns {
			if c.Value.ID == of && relation.Names(c.Value, s.rel) && (exact || len(list) > 1 && list[1].ID == of) {
				return append([]*value.Value{c.Value}, slices.DeleteFunc(slices.Clone(list[1:]), func(v *value.Value) bool { return v.ID == of })...)
			}
		}
	}
	refuse("a window whose rows are not those of one unit, in an order that is first that of scattered ids")
	return nil
}

// unsorted refuses an aggregate with DISTINCT for which PostgreSQL may sort rows that are in order already.
func (s *scope) unsorted(x *value.Value) {
	switch of, exact := s.d.scattered(x); {
	case s.rel.Owner() == nil:
	case s.group.Release && !x.Numeral && !(exact && s.numbersOf(of)):
		refuse("DISTINCT over many units, which PostgreSQL sorts for")
	case !s.group.Release:
		first, _ := s.d.scattered(s.group.keys[s.group.order[0]])
		if id := s.group.keys[first]; id == nil || !relation.Names(id, s.rel) {
			refuse("DISTINCT in groups whose first key is no scattered id")
		}
	}
}

// numbersOf reports whether an id belongs to a copy's column of unit numbers.
func (s *scope) numbersOf(id int) bool {
	return slices.ContainsFunc(s.rel.Columns, func(c relation.Column) bool { return c.Value.ID == id && c.Value.Numeral })
}

// isColumn reports whether an argument is a column, or a scattered one.
func isColumn(n *pgquery.Node) bool {
	if f := n.GetFuncCall(); f != nil && tree.Builtin(f.Funcname) == "int8xor" && len(f.Args) == 2 {
		n = f.Args[0].GetTypeCast().GetArg()
	}
	return n.GetColumnRef() != nil
}

// different derives a query of the different tuples of its keys, of many units.
func (s *scope) different(q *pgquery.SelectStmt) *relation.Relation {
	r := &relation.Relation{Solid: s.rel.Solid, Units: s.rel.Units,
		Released: s.d.releasing(&release.Release{Keys: s.group.order, Below: s.rel})}
	for _, n := range q.TargetList {
		t := n.GetResTarget()
		if t == nil || len(t.Indirection) > 0 {
			refuse("an output that no rule covers")
		}
		k := s.group.keys[s.expr(t.Val).ID]
		if k == nil {
			refuse("an output of different tuples that is no key")
		}
		r.Columns = append(r.Columns, relation.Column{Name: tree.NameOf(t), Value: s.group.key(k)})
	}
	if len(r.Columns) != len(s.group.order) {
		refuse("a key of different tuples that is not shown")
	}
	return r
}

// unmerge replaces different tuples by the rows below, and notes that the query counts the tuples.
func (s *scope) unmerge(q *pgquery.SelectStmt) {
	m := s.d.released(s.rel)
	if m == nil || m.Below == nil {
		return
	}
	if q.WhereClause != nil || q.HavingClause != nil {
		refuse("a condition on different tuples of many units")
	}
	r := *m.Below
	r.Columns = s.rel.Columns
	s.rel, s.merged = &r, m.Keys
}

// counts refuses all but the count of a column of different tuples, where the others are the keys.
func (s *scope) counts(name string, x *value.Value, where []int) {
	if s.merged == nil {
		return
	}
	if name != "count" || x == nil || !s.group.Release || len(where) > 0 || !value.Subset(s.group.order, s.merged) ||
		!slices.Contains(s.merged, x.ID) || !value.Subset(s.merged, append(slices.Clone(s.group.order), x.ID)) {
		refuse("another aggregate than the count of a column over different tuples of many units")
	}
}
