package tree

import (
	"slices"

	pgquery "github.com/pganalyze/pg_query_go/v6"
)

const numNulls = "num_nulls"

// NumNulls recognises num_nulls(columns) < n, with a whole number n, and num_nulls(column) <> 1, which is the same as < 1.
func NumNulls(n *pgquery.Node) (columns []*pgquery.Node, below int32, ok bool) {
	e := n.GetAExpr()
	f, c := e.GetLexpr().GetFuncCall(), e.GetRexpr().GetAConst()
	if f == nil || c.GetIval() == nil || c.Isnull || e.Kind != pgquery.A_Expr_Kind_AEXPR_OP ||
		!slices.Contains([]string{"<", "<>"}, Operator(e.Name)) ||
		!slices.Equal(Words(f.Funcname), []string{"pg_catalog", numNulls}) || len(f.Args) == 0 {
		return nil, 0, false
	}
	Reads(f, "Funcname", "Args", "Funcformat")
	if f.Funcformat != pgquery.CoercionForm_COERCE_EXPLICIT_CALL {
		Refuse("num_nulls called in another way")
	}
	for _, a := range f.Args {
		if r := a.GetColumnRef(); r == nil || len(r.Fields) != 2 ||
			slices.ContainsFunc(r.Fields, func(f *pgquery.Node) bool { return f.GetString_() == nil }) {
			Refuse("num_nulls of something else than columns of tables")
		}
	}
	below = c.GetIval().Ival
	if Operator(e.Name) == "<>" && (below != 1 || len(f.Args) != 1) { // of one value it is 0 or 1
		return nil, 0, false
	}
	return f.Args, below, true
}

// Present are the columns that conditions say are not NULL.
func Present(where *pgquery.Node) [][2]string {
	var all [][2]string
	for _, c := range Conjuncts(where, nil) {
		if then := Fenced(c); then != nil {
			all = append(all, Present(then)...)
		}
		columns, below, ok := NumNulls(c)
		if !ok || below != 1 {
			continue
		}
		for _, n := range columns {
			w := Words(n.GetColumnRef().Fields)
			all = append(all, [2]string{w[0], w[1]})
		}
	}
	return all
}

// Fenced is c of CASE WHEN num_nulls(...) < n THEN c END.
func Fenced(n *pgquery.Node) *pgquery.Node {
	c := n.GetCaseExpr()
	if c == nil || len(c.Args) != 1 || c.Arg != nil || c.Defresult != nil || c.Xpr != nil || c.Casetype != 0 || c.Casecollid != 0 {
		return nil
	}
	w := c.Args[0].GetCaseWhen()
	if w == nil || w.Xpr != nil {
		return nil
	}
	if _, _, ok := NumNulls(w.Expr); !ok {
		return nil
	}
	return w.Result
}
