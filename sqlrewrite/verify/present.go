package verify

import (
	"slices"

	pgquery "github.com/pganalyze/pg_query_go/v6"

	"noisegate.example/sqlrewrite/verify/internal/relation"
	"noisegate.example/sqlrewrite/verify/internal/tree"
)

// num_nulls(a, b, ...) < 1, and num_nulls(a) <> 1, as a condition of WHERE says that none of these columns is NULL in the rows that are
// left. A row of l LEFT JOIN r that has no partner has NULL in each column of r: where WHERE names one of them, the rows that are left
// are those of the inner join. So it is with a FULL JOIN of which it names a column of each side. Of a FULL JOIN of which it names a
// column of l alone the rows without one of l go, and those of l LEFT JOIN r are left. It is true also where further joins are around,
// inner or outer: what they add to a row leaves its columns as they are, or makes all of a side NULL, and then the row goes. As a
// condition of ON it says so of the rows of the right side that meet one of the left one: of l LEFT JOIN (a LEFT JOIN b) ON ... AND
// num_nulls(b.key) < 1 the right side is as good as a JOIN b.
//
// CASE WHEN num_nulls(...) < n THEN c END is true only where c is: as a condition it says c, and leaves out more at most. All that it is
// written for is when PostgreSQL tests c. num_nulls raises no error, of columns: each is looked up, as p.f is a call of f(p) where p has
// no column f.

// matched reports whether a column of a side of a join is NULL in no row that is left.
func (s *scope) matched(r *relation.Relation) bool {
	return slices.ContainsFunc(s.present, func(p [2]string) bool {
		return slices.ContainsFunc(r.Columns, func(c relation.Column) bool { return c.Table == p[0] && c.Name == p[1] })
	})
}

// unfenced are conditions without num_nulls: its columns are noted, and what stands behind it takes its place.
func (s *scope) unfenced(conditions []*pgquery.Node) []*pgquery.Node {
	var all []*pgquery.Node
	for _, n := range conditions {
		if columns, below, ok := tree.NumNulls(n); ok {
			for _, c := range columns {
				v := s.column(tree.Words(c.GetColumnRef().Fields))
				if below == 1 && !v.Outer {
					s.rel.Solid[v.ID] = true
				}
			}
			continue
		}
		if then := tree.Fenced(n); then != nil {
			columns, _, _ := tree.NumNulls(n.GetCaseExpr().Args[0].GetCaseWhen().Expr)
			for _, c := range columns {
				s.column(tree.Words(c.GetColumnRef().Fields))
			}
			all = append(all, s.unfenced(tree.Conjuncts(then, nil))...)
		} else {
			all = append(all, n)
		}
	}
	return all
}
