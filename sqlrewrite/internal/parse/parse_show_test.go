package parse

import (
	"fmt"
	"strings"

	"noisegate.example/sqlrewrite/internal/parsetest"
	"noisegate.example/sqlrewrite/syntax"
)

// showQuery prints a tree compactly, one clause a line, every operation in parentheses, so that a golden file shows what
// was understood.
func showQuery(q *syntax.Query) string {
	var b strings.Builder
	line := func(clause, text string) {
		if text != "" {
			fmt.Fprintf(&b, "%s %s\n", clause, text)
		}
	}
	items := make([]string, len(q.Items))
	for i, item := range q.Items {
		items[i] = showExpr(item.Expr)
		if item.Alias != "" {
			items[i] += " as " + item.Alias
		}
	}
	for _, cte := range q.With {
		name := cte.Name
		if cte.Columns != nil {
			name += "(" + strings.Join(cte.Columns, ", ") + ")"
		}
		b.WriteString("with " + name + "\n" + parsetest.Indent(strings.TrimSuffix(showQuery(cte.Query), "\n")))
	}
	if q.Set != nil {
		return b.String() + showSet(q)
	}
	clause := "select"
	if q.DistinctOn != nil {
		clause = "select distinct on (" + showExprs(q.DistinctOn) + ")"
	}
	if q.Distinct {
		clause = "select distinct"
	}
	line(clause, strings.Join(items, ", "))
	from := make([]string, len(q.From))
	for i, relation := range q.From {
		from[i] = showRelation(relation)
	}
	line("from", strings.Join(from, ", "))
	line("where", showExpr(q.Where))
	line("group by", showExprs(q.GroupBy))
	if q.Sets != nil {
		line("sets", fmt.Sprint(q.Sets))
	}
	line("having", showExpr(q.Having))
	for _, w := range q.Windows {
		line("window", w.Name+" as "+showWindow(w.Window))
	}
	line("order by", showOrder(q.OrderBy))
	line("limit", showExpr(q.Limit))
	line("offset", showExpr(q.Offset))
	return b.String()
}

// showSet prints a set operation with its sides indented.
func showSet(q *syntax.Query) string {
	side := func(q *syntax.Query) string { return parsetest.Indent(strings.TrimSuffix(showQuery(q), "\n")) }
	text := side(q.Set.Left) + strings.ToLower(string(q.Set.Kind))
	if q.Set.All {
		text += " all"
	}
	text += "\n" + side(q.Set.Right)
	if q.OrderBy != nil {
		text += "order by " + showOrder(q.OrderBy) + "\n"
	}
	if q.Limit != nil {
		text += "limit " + showExpr(q.Limit) + "\n"
	}
	if q.Offset != nil {
		text += "offset " + showExpr(q.Offset) + "\n"
	}
	return text
}

func showWindow(w *syntax.Window) string {
	var parts []string
	if w.Name != "" {
		parts = append(parts, w.Name)
	}
	if w.PartitionBy != nil {
		parts = append(parts, "partition by "+showExprs(w.PartitionBy))
	}
	if w.OrderBy != nil {
		parts = append(parts, "order by "+showOrder(w.OrderBy))
	}
	if w.Frame != nil {
		bound := func(b syntax.FrameBound) string {
			return strings.ToLower(strings.TrimSpace(showExpr(b.Offset) + " " + string(b.Kind)))
		}
		parts = append(parts, fmt.Sprintf("%s from %s to %s", strings.ToLower(string(w.Frame.Mode)), bound(w.Frame.Start), bound(w.Frame.End)))
	}
	return "(" + strings.Join(parts, " ") + ")"
}

// showNested prints a query inside another on one line.
func showNested(q *syntax.Query) string {
	if q == nil {
		return "()"
	}
	return "(" + strings.Join(strings.Fields(strings.ReplaceAll(showQuery(q), "\n", " ")), " ") + ")"
}

func showRelation(relation syntax.Relation) string {
	switch r := relation.(type) {
	case *syntax.Table:
		text := r.Name
		if r.Schema != "" {
			text = strings.TrimPrefix(r.Database+"."+r.Schema+"."+text, ".")
		}
		if r.Alias != "" {
			text += " as " + r.Alias
		}
		return text
	case *syntax.Subquery:
		text := map[bool]string{true: "lateral "}[r.Lateral] + showNested(r.Query)
		if r.Alias != "" {
			text += " as " + r.Alias
		}
		if r.Columns != nil {
			text += "(" + strings.Join(r.Columns, ", ") + ")"
		}
		return text
	case *syntax.Join:
		kind := [...]string{syntax.InnerJoin: "inner", syntax.LeftJoin: "left", syntax.RightJoin: "right", syntax.FullJoin: "full",
			syntax.CrossJoin: "cross"}[r.Kind]
		text := fmt.Sprintf("(%s %s join %s", showRelation(r.Left), kind, showRelation(r.Right))
		if r.On != nil {
			text += " on " + showExpr(r.On)
		}
		if r.Using != nil {
			text += " using " + strings.Join(r.Using, ", ")
		}
		if r.Natural {
			text += " natural"
		}
		return text + ")"
	default:
		panic(fmt.Sprintf("relation %T", relation))
	}
}

func showExprs(list []syntax.Expr) string {
	texts := make([]string, len(list))
	for i, e := range list {
		if texts[i] = showExpr(e); e == nil {
			panic("a list with a hole")
		}
	}
	return strings.Join(texts, ", ")
}

func showOrder(items []syntax.OrderItem) string {
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = showExpr(item.Expr)
		if item.Descending {
			texts[i] += " desc"
		}
		texts[i] += [...]string{syntax.NullsDefault: "", syntax.NullsFirst: " nulls first", syntax.NullsLast: " nulls last"}[item.Nulls]
	}
	return strings.Join(texts, ", ")
}

func showExpr(expr syntax.Expr) string {
	not := func(b bool) string {
		if b {
			return "not "
		}
		return ""
	}
	switch e := expr.(type) {
	case nil:
		return ""
	case *syntax.Star:
		return strings.TrimPrefix(e.Qualifier+".*", ".")
	case *syntax.Column:
		return strings.TrimPrefix(e.Qualifier+"."+e.Name, ".")
	case *syntax.Literal:
		return [...]string{syntax.NullLiteral: "null", syntax.BoolLiteral: "bool:", syntax.IntegerLiteral: "int:", syntax.DecimalLiteral: "dec:",
			syntax.StringLiteral: "str:"}[e.Kind] + e.Text
	case *syntax.Unary:
		return fmt.Sprintf("(%s %s)", e.Op, showExpr(e.X))
	case *syntax.Binary:
		return fmt.Sprintf("(%s %s %s)", showExpr(e.L), e.Op, showExpr(e.R))
	case *syntax.In:
		return fmt.Sprintf("(%s %sin [%s])", showExpr(e.X), not(e.Not), showExprs(e.List))
	case *syntax.Between:
		symmetric := ""
		if e.Symmetric {
			symmetric = "symmetric "
		}
		return fmt.Sprintf("(%s %sbetween %s[%s, %s])", showExpr(e.X), not(e.Not), symmetric, showExpr(e.Lo), showExpr(e.Hi))
	case *syntax.Is:
		return fmt.Sprintf("(%s is %s%s)", showExpr(e.X), not(e.Not), e.What)
	case *syntax.IsDistinct:
		return fmt.Sprintf("(%s is %sdistinct from %s)", showExpr(e.L), not(e.Not), showExpr(e.R))
	case *syntax.Like:
		op := "like"
		if e.CaseInsensitive {
			op = "ilike"
		}
		op = [...]string{syntax.LikePattern: op, syntax.RegexPattern: "regex " + op, syntax.SimilarPattern: "similar"}[e.Language]
		return fmt.Sprintf("(%s %s%s %s)", showExpr(e.X), not(e.Not), op, showExpr(e.Pattern))
	case *syntax.Case:
		text := "(case"
		if e.Operand != nil {
			text += " of " + showExpr(e.Operand)
		}
		for _, w := range e.Whens {
			text += fmt.Sprintf(" when %s then %s", showExpr(w.Cond), showExpr(w.Result))
		}
		if e.Else != nil {
			text += " else " + showExpr(e.Else)
		}
		return text + ")"
	case *syntax.Cast:
		mods := ""
		if e.Mods != nil {
			mods = fmt.Sprint(e.Mods)
		}
		return fmt.Sprintf("(%s :: %s%s)", showExpr(e.X), e.Type, mods)
	case *syntax.InQuery:
		return fmt.Sprintf("(%s in %s)", showExprs(e.X), showNested(e.Query))
	case *syntax.Array:
		return fmt.Sprintf("(array %s)", showExprs(e.Items))
	case *syntax.Exists:
		return "exists " + showNested(e.Query)
	case *syntax.Scalar:
		return "value " + showNested(e.Query)
	case *syntax.Call:
		return showCall(e)
	default:
		panic(fmt.Sprintf("expression %T", expr))
	}
}

func showCall(e *syntax.Call) string {
	text := strings.TrimPrefix(e.Schema+"."+e.Name, ".") + "("
	if e.Distinct {
		text += "distinct "
	}
	if e.Star {
		text += "*"
	}
	text += showExprs(e.Args)
	if e.OrderBy != nil {
		text += " order by " + showOrder(e.OrderBy)
	}
	text += ")"
	if e.Within != nil {
		text += " within group by " + showOrder(e.Within)
	}
	if e.Filter != nil {
		text += " filter " + showExpr(e.Filter)
	}
	if e.Over != nil {
		text += " over " + showWindow(e.Over)
	}
	return text
}
