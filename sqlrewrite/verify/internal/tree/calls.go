package tree

import (
	"regexp"
	"slices"
	"strings"

	pgquery "github.com/pganalyze/pg_query_go/v6"
)

// Aggregating reports whether an output calls an aggregate.
func Aggregating(list []*pgquery.Node, isAggregate func(string) bool) bool {
	return slices.ContainsFunc(list, func(n *pgquery.Node) bool { return calls(n.GetResTarget().GetVal(), isAggregate) })
}

func calls(n *pgquery.Node, isAggregate func(string) bool) bool {
	any := func(list ...*pgquery.Node) bool {
		return slices.ContainsFunc(list, func(n *pgquery.Node) bool { return calls(n, isAggregate) })
	}
	switch e := n.GetNode().(type) {
	case *pgquery.Node_FuncCall:
		if w := Words(e.FuncCall.Funcname); e.FuncCall.Over == nil && (e.FuncCall.AggStar || isAggregate(w[len(w)-1])) {
			return true
		}
		return any(e.FuncCall.Args...)
	case *pgquery.Node_TypeCast:
		return any(e.TypeCast.Arg)
	case *pgquery.Node_CollateClause:
		return any(e.CollateClause.Arg)
	case *pgquery.Node_AExpr:
		return any(e.AExpr.Lexpr, e.AExpr.Rexpr)
	case *pgquery.Node_List:
		return any(e.List.Items...)
	case *pgquery.Node_BoolExpr:
		return any(e.BoolExpr.Args...)
	case *pgquery.Node_NullTest:
		return any(e.NullTest.Arg)
	case *pgquery.Node_BooleanTest:
		return any(e.BooleanTest.Arg)
	case *pgquery.Node_CoalesceExpr:
		return any(e.CoalesceExpr.Args...)
	case *pgquery.Node_MinMaxExpr:
		return any(e.MinMaxExpr.Args...)
	case *pgquery.Node_CaseExpr:
		return any(e.CaseExpr.Args...) || any(e.CaseExpr.Defresult)
	case *pgquery.Node_CaseWhen:
		return any(e.CaseWhen.Expr, e.CaseWhen.Result)
	default:
		return false
	}
}

// NameOf is the name of an output, which outer queries use; without AS only a column has one that counts.
func NameOf(t *pgquery.ResTarget) string {
	if t.Name != "" {
		return t.Name
	}
	if c := t.Val.GetColumnRef(); c != nil {
		w := Words(c.Fields)
		return w[len(w)-1]
	}
	return "" // of no use to others
}

// Contrary reports whether no unit can meet the conditions of both.
func Contrary(a, b []string) bool {
	opposite := map[string]string{`"="`: `"<>"`, `"<>"`: `"="`, `"<"`: `">="`, `">="`: `"<"`}
	for _, x := range a {
		op, rest, _ := strings.Cut(x, "(")
		if other, ok := opposite[op]; ok && slices.Contains(b, other+"("+rest) {
			return true
		}
	}
	return false
}

// zone has a slash: else PostgreSQL could take it for an abbreviation, which a setting defines, or a rule (EST5EDT).
var zone = regexp.MustCompile(`^[A-Z][A-Za-z]*(/[A-Za-z0-9_+-]+){1,2}$`)

// IsZone reports whether a text is written as the name of a time zone.
func IsZone(name string) bool { return zone.MatchString(name) }
