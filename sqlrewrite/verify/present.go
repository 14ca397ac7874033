package verify

import (
	"slices"

	pgquery "github.com/pganalyze/pg_query_go/v6"

	"noisegate/sqlrewrite/verify/internal/tree"
)

// num_nulls(a, b, ...) < 1, and num_nulls(a) <> 1, as a condition of WHERE says that none of these columns is NULL in the rows that are left. A row of l LEFT JOIN r that
// has no partner has NULL in each column of r: where WHERE names one of them, the rows that are left are those of the inner join. So it is with a
// FULL JOIN of which it names a column of each side. Of a FULL JOIN of which it names a column of l alone the rows without one of l go, and those
// of l LEFT JOIN r are left. It is true also where further joins are around, inner or outer: what they add to a row
// leaves its columns as they are, or makes all of a side NULL, and then the row goes.
// As a condition of ON it says so of the rows of the right side that meet one of the left one: of l LEFT JOIN (a LEFT JOIN b) ON ... AND num_nulls(b.key) < 1
// the right side is as good as a JOIN b.
//
// CASE WHEN num_nulls(...) < n THEN c END is true only where c is: as a condition it says c, and leaves out more at most. All that it is written
// for is when PostgreSQL tests c. num_nulls raises no error, of columns: each is
// looked up, as p.f is a call of f(p) where p has no column f.

const numNulls = "num_nulls"

// nulls recognises num_nulls(columns) < n, with a whole number n, and num_nulls(column) <> 1, which is the same as < 1.
func nulls(n *pgquery.Node) (columns []*pgquery.Node, below int32, ok bool) {
	e := n.GetAExpr()
	if e == nil || e.Kind != pgquery.A_Expr_Kind_AEXPR_OP || len(e.Name) != 1 || !slices.Contains([]string{"<", "<>"}, tree.Operator(e.Name)) || e.Lexpr == nil || e.Rexpr == nil {
		return nil, 0, false
	}
	f, c := e.Lexpr.GetFuncCall(), e.Rexpr.GetAConst()
	if f == nil || c == nil || c.Isnull || c.GetIval() == nil || !slices.Equal(tree.Words(f.Funcname), []string{"pg_catalog", numNulls}) || len(f.Args) == 0 {
		return nil, 0, false
	}
	if len(f.AggOrder) > 0 || f.AggFilter != nil || f.Over != nil || f.AggWithinGroup || f.AggStar || f.AggDistinct || f.FuncVariadic ||
		f.Funcformat != pgquery.CoercionForm_COERCE_EXPLICIT_CALL {
		refuse("a field of num_nulls")
	}
	for _, a := range f.Args {
		if r := a.GetColumnRef(); r == nil || len(r.Fields) != 2 || slices.ContainsFunc(r.Fields, func(f *pgquery.Node) bool { return f.GetString_() == nil }) {
			refuse("num_nulls of something else than columns of tables")
		}
	}
	below = c.GetIval().Ival
	if tree.Operator(e.Name) == "<>" && (below != 1 || len(f.Args) != 1) { // of one value it is 0 or 1
		return nil, 0, false
	}
	return f.Args, below, true
}

// presentIn are the columns that conditions say are not NULL.
func presentIn(where *pgquery.Node) [][2]string {
	var all [][2]string
	for _, c := range tree.Conjuncts(where, nil) {
		if then := fenced(c); then != nil {
			all = append(all, presentIn(then)...)
		}
		columns, below, ok := nulls(c)
		if !ok || below != 1 {
			continue
		}
		for _, n := range columns {
			w := tree.Words(n.GetColumnRef().Fields)
			all = append(all, [2]string{w[0], w[1]})
		}
	}
	return all
}

// matched reports whether a column of a side of a join is NULL in no row that is left.
func (s *scope) matched(r *relation) bool {
	return slices.ContainsFunc(s.present, func(p [2]string) bool {
		return slices.ContainsFunc(r.columns, func(c named) bool { return c.table == p[0] && c.name == p[1] })
	})
}

// unfenced are conditions without num_nulls: its columns are noted, and what stands behind it takes its place.
func (s *scope) unfenced(conditions []*pgquery.Node) []*pgquery.Node {
	var all []*pgquery.Node
	for _, n := range conditions {
		if columns, below, ok := nulls(n); ok {
			for _, c := range columns {
				v := s.column(tree.Words(c.GetColumnRef().Fields))
				if below == 1 && !v.outer {
					s.rel.solid[v.id] = true
				}
			}
			continue
		}
		if then := fenced(n); then != nil {
			columns, _, _ := nulls(n.GetCaseExpr().Args[0].GetCaseWhen().Expr)
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

// fenced is c of CASE WHEN num_nulls(...) < n THEN c END.
func fenced(n *pgquery.Node) *pgquery.Node {
	c := n.GetCaseExpr()
	if c == nil || len(c.Args) != 1 || c.Arg != nil || c.Defresult != nil || c.Xpr != nil || c.Casetype != 0 || c.Casecollid != 0 {
		return nil
	}
	w := c.Args[0].GetCaseWhen()
	if w == nil || w.Xpr != nil {
		return nil
	}
	if _, _, ok := nulls(w.Expr); !ok {
		return nil
	}
	return w.Result
}
