package parse_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/parse"
	"noisegate.example/sqlrewrite/internal/parsetest"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/syntax"
)

// sqlText writes a tree as PostgreSQL's SQL, everything in parentheses and all names in quotes, so that parsing it gives the tree back.
type sqlText struct{ strings.Builder }

func (w *sqlText) put(format string, args ...any) { fmt.Fprintf(w, format, args...) }

// quoted is a name in quotes, as PostgreSQL reads it: of at most 63 bytes. MySQL calls an expression what its author wrote.
func quoted(name string) string {
	const most = 63
	end := min(len(name), most)
	for end < len(name) && !utf8.RuneStart(name[end]) {
		end--
	}
	return scalar.QuoteIdent(name[:end])
}

func writeQuery(q *syntax.Query) string {
	w := &sqlText{}
	if len(q.With) > 0 {
		w.put("WITH ")
		for i, c := range q.With {
			w.put("%s%s%s AS (%s)", comma(i), quoted(c.Name), writeNames(c.Columns), writeQuery(c.Query))
		}
		w.put(" ")
	}
	if q.Set != nil {
		all := ""
		if q.Set.All {
			all = " ALL"
		}
		w.put("(%s) %s%s (%s)", writeQuery(q.Set.Left), q.Set.Kind, all, writeQuery(q.Set.Right))
	} else {
		w.selectClauses(q)
	}
	w.order(" ORDER BY ", q.OrderBy)
	if q.Limit != nil {
		w.put(" LIMIT %s", writeExpr(q.Limit))
	}
	if q.Offset != nil {
		w.put(" OFFSET %s", writeExpr(q.Offset))
	}
	return w.String()
}

func (w *sqlText) selectClauses(q *syntax.Query) {
	w.put("SELECT ")
	if q.Distinct {
		w.put("DISTINCT ")
	}
	if q.DistinctOn != nil {
		w.put("DISTINCT ON (%s) ", writeList(q.DistinctOn))
	}
	for i, item := range q.Items {
		w.put("%s%s", comma(i), writeExpr(item.Expr))
		if item.Alias != "" {
			w.put(" AS %s", quoted(item.Alias))
		}
	}
	for i, r := range q.From {
		w.put("%s%s", []string{" FROM ", ", "}[min(i, 1)], writeRelation(r))
	}
	if q.Where != nil {
		w.put(" WHERE %s", writeExpr(q.Where))
	}
	if q.GroupBy != nil {
		w.put(" GROUP BY %s", writeList(q.GroupBy))
	}
	if q.Having != nil {
		w.put(" HAVING %s", writeExpr(q.Having))
	}
	for i, named := range q.Windows {
		w.put("%s%s AS %s", []string{" WINDOW ", ", "}[min(i, 1)], quoted(named.Name), writeWindow(named.Window))
	}
}

func comma(i int) string { return []string{"", ", "}[min(i, 1)] }

func writeNames(names []string) string {
	if names == nil {
		return ""
	}
	var all []string
	for _, n := range names {
		all = append(all, quoted(n))
	}
	return " (" + strings.Join(all, ", ") + ")"
}

func (w *sqlText) order(keyword string, items []syntax.OrderItem) {
	for i, item := range items {
		w.put("%s%s", []string{keyword, ", "}[min(i, 1)], writeExpr(item.Expr))
		w.put("%s%s", []string{" ASC", " DESC"}[algebra.BoolIndex(item.Descending)], []string{"", " NULLS FIRST", " NULLS LAST"}[item.Nulls])
	}
}

func writeRelation(r syntax.Relation) string {
	w := &sqlText{}
	switch r := r.(type) {
	case *syntax.Table:
		if r.Database != "" {
			w.put("%s.", quoted(r.Database))
		}
		if r.Schema != "" {
			w.put("%s.", quoted(r.Schema))
		}
		w.put("%s", quoted(r.Name))
		if r.Alias != "" {
			w.put(" AS %s", quoted(r.Alias))
		}
	case *syntax.Subquery:
		w.put("%s(%s)", map[bool]string{true: "LATERAL "}[r.Lateral], writeQuery(r.Query))
		if r.Alias != "" {
			w.put(" AS %s%s", quoted(r.Alias), writeNames(r.Columns))
		}
	case *syntax.Join:
		kinds := map[syntax.JoinKind]string{syntax.InnerJoin: "JOIN", syntax.LeftJoin: "LEFT JOIN", syntax.RightJoin: "RIGHT JOIN",
			syntax.FullJoin: "FULL JOIN", syntax.CrossJoin: "CROSS JOIN"}
		w.put("(%s %s%s %s", writeRelation(r.Left), map[bool]string{true: "NATURAL "}[r.Natural], kinds[r.Kind], writeRelation(r.Right))
		if r.On != nil {
			w.put(" ON %s", writeExpr(r.On))
		}
		if r.Using != nil {
			w.put(" USING%s", writeNames(r.Using))
		}
		w.put(")")
	}
	return w.String()
}

func writeList(list []syntax.Expr) string {
	var texts []string
	for _, e := range list {
		texts = append(texts, writeExpr(e))
	}
	return strings.Join(texts, ", ")
}

func writeNot(not bool) string { return []string{"", "NOT "}[algebra.BoolIndex(not)] }

func writeExpr(e syntax.Expr) string {
	switch e := e.(type) {
	case *syntax.Star:
		if e.Qualifier != "" {
			return quoted(e.Qualifier) + ".*"
		}
		return "*"
	case *syntax.Column:
		if e.Qualifier != "" {
			schema := ""
			if e.Schema != "" {
				schema = quoted(e.Schema) + "."
			}
			return schema + quoted(e.Qualifier) + "." + quoted(e.Name)
		}
		return quoted(e.Name)
	case *syntax.Literal:
		switch e.Kind {
		case syntax.NullLiteral:
			return "NULL"
		case syntax.StringLiteral:
			return scalar.QuoteText(e.Text)
		default:
			return e.Text
		}
	case *syntax.Unary:
		return fmt.Sprintf("(%s %s)", e.Op, writeExpr(e.X))
	case *syntax.Binary:
		var texts []string
		for _, link := range links(e.Op, e) {
			texts = append(texts, writeExpr(link))
		}
		return "(" + strings.Join(texts, " "+string(e.Op)+" ") + ")"
	case *syntax.In:
		return fmt.Sprintf("(%s %sIN (%s))", writeExpr(e.X), writeNot(e.Not), writeList(e.List))
	case *syntax.InQuery:
		x := writeList(e.X)
		if len(e.X) > 1 {
			x = "(" + x + ")"
		}
		return fmt.Sprintf("(%s IN (%s))", x, writeQuery(e.Query))
	case *syntax.Exists:
		return "EXISTS (" + writeQuery(e.Query) + ")"
	case *syntax.Scalar:
		return "(" + writeQuery(e.Query) + ")"
	case *syntax.Array:
		return "ARRAY[" + writeList(e.Items) + "]"
	case *syntax.Between:
		return fmt.Sprintf("(%s %sBETWEEN %s%s AND %s)", writeExpr(e.X), writeNot(e.Not),
			[]string{"", "SYMMETRIC "}[algebra.BoolIndex(e.Symmetric)], writeExpr(e.Lo), writeExpr(e.Hi))
	case *syntax.Is:
		return fmt.Sprintf("(%s IS %s%s)", writeExpr(e.X), writeNot(e.Not), e.What)
	case *syntax.IsDistinct:
		return fmt.Sprintf("(%s IS %sDISTINCT FROM %s)", writeExpr(e.L), writeNot(e.Not), writeExpr(e.R))
	case *syntax.Like:
		switch e.Language {
		case syntax.RegexPattern:
			return fmt.Sprintf("(%s %s~%s %s)", writeExpr(e.X), []string{"", "!"}[algebra.BoolIndex(e.Not)],
				[]string{"", "*"}[algebra.BoolIndex(e.CaseInsensitive)], writeExpr(e.Pattern))
		case syntax.SimilarPattern:
			return fmt.Sprintf("(%s %sSIMILAR TO %s)", writeExpr(e.X), writeNot(e.Not), writeExpr(e.Pattern))
		case syntax.LikePattern:
		}
		return fmt.Sprintf("(%s %s%s %s)", writeExpr(e.X), writeNot(e.Not), []string{"LIKE", "ILIKE"}[algebra.BoolIndex(e.CaseInsensitive)],
			writeExpr(e.Pattern))
	case *syntax.Case:
		w := &sqlText{}
		w.put("CASE")
		if e.Operand != nil {
			w.put(" %s", writeExpr(e.Operand))
		}
		for _, when := range e.Whens {
			w.put(" WHEN %s THEN %s", writeExpr(when.Cond), writeExpr(when.Result))
		}
		if e.Else != nil {
			w.put(" ELSE %s", writeExpr(e.Else))
		}
		return w.String() + " END"
	case *syntax.Cast:
		mods := ""
		if len(e.Mods) > 0 {
			mods = "(" + strings.Trim(strings.ReplaceAll(fmt.Sprint(e.Mods), " ", ", "), "[]") + ")"
		}
		return fmt.Sprintf("CAST(%s AS pg_catalog.%s%s)", writeExpr(e.X), quoted(e.Type), mods)
	case *syntax.Call:
		return writeCall(e)
	default:
		panic(fmt.Sprintf("no way to write %T", e))
	}
}

func writeCall(e *syntax.Call) string {
	w := &sqlText{}
	name := quoted(e.Name)
	switch {
	case e.Schema != "":
		name = quoted(e.Schema) + "." + name
	case e.Name == "coalesce" || e.Name == "nullif" || e.Name == "greatest" || e.Name == "least":
		name = e.Name
	}
	w.put("%s(", name)
	if e.Distinct {
		w.put("DISTINCT ")
	}
	if e.Star {
		w.put("*")
	}
	w.put("%s", writeList(e.Args))
	w.order(" ORDER BY ", e.OrderBy)
	w.put(")")
	if e.Within != nil {
		w.order(" WITHIN GROUP (ORDER BY ", e.Within)
		w.put(")")
	}
	if e.Filter != nil {
		w.put(" FILTER (WHERE %s)", writeExpr(e.Filter))
	}
	if e.Over != nil {
		w.put(" OVER %s", writeWindow(e.Over))
	}
	return w.String()
}

func writeWindow(n *syntax.Window) string {
	w := &sqlText{}
	w.put("(")
	if n.Name != "" {
		w.put("%s", quoted(n.Name))
	}
	if n.PartitionBy != nil {
		w.put(" PARTITION BY %s", writeList(n.PartitionBy))
	}
	w.order(" ORDER BY ", n.OrderBy)
	if f := n.Frame; f != nil {
		bound := func(b syntax.FrameBound) string {
			if b.Offset != nil {
				return writeExpr(b.Offset) + " " + string(b.Kind)
			}
			return string(b.Kind)
		}
		w.put(" %s BETWEEN %s AND %s", f.Mode, bound(f.Start), bound(f.End))
	}
	w.put(")")
	return w.String()
}

// links are the operands of an operation, or of all of one associative operation in a row.
func links(op syntax.Operator, e syntax.Expr) []syntax.Expr {
	b, ok := e.(*syntax.Binary)
	switch {
	case !ok || b.Op != op:
		return []syntax.Expr{e}
	case op == syntax.And || op == syntax.Or:
		return append(links(op, b.L), links(op, b.R)...)
	default:
		return []syntax.Expr{b.L, b.R}
	}
}

// roundTrip parses a text, writes the tree as PostgreSQL's SQL and parses that: the same tree must come back, whatever the dialect was.
// Trees are compared as texts, in which a chain of ANDs or ORs is flat, as PostgreSQL's grammar reads it.
func roundTrip(t *testing.T, text string, dialect parse.Dialect) {
	t.Helper()
	tree, err := parse.Parse(text, dialect)
	if err != nil {
		var refusal *fault.Error
		if !errors.As(err, &refusal) || refusal.Code == fault.CodeInternal {
			t.Fatalf("%q: %v", text, err)
		}
		return
	}
	written := writeQuery(tree)
	again, err := parse.Parse(written, parse.DialectPostgres)
	if fault.CodeOf(err) == fault.CodeTooComplex {
		return // parentheses are tokens and levels too
	}
	if err != nil {
		t.Fatalf("%q\nwritten as %q\n%v", text, written, err)
	}
	if rewritten := writeQuery(again); rewritten != written {
		t.Fatalf("%q\nwritten as %q\nmeans %q", text, written, rewritten)
	}
}

// parsedTexts are the queries of a golden parse file.
func parsedTexts(t testing.TB, file string) []string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, part := range strings.Split(string(data), "\nparse\n")[1:] {
		text, _, _ := strings.Cut(part, "\n----")
		texts = append(texts, text)
	}
	return texts
}

func TestRoundTrip(t *testing.T) {
	for _, text := range append(append(rewritetest.GoldenQueries(t), parsedTexts(t, rewritetest.GoldenFile("parse"))...),
		parsetest.Everything...) {
		roundTrip(t, text, parse.DialectPostgres)
	}
	for _, text := range parsedTexts(t, rewritetest.GoldenFile("mysql_parse")) {
		roundTrip(t, text, parse.DialectMySQL)
	}
}

// FuzzRoundTrip: no text of either dialect makes a parser panic, and what a text means is what its tree says.
func FuzzRoundTrip(f *testing.F) {
	for _, text := range append(rewritetest.GoldenQueries(f), parsedTexts(f, rewritetest.GoldenFile("parse"))...) {
		f.Add(text, false)
	}
	for _, text := range parsedTexts(f, rewritetest.GoldenFile("mysql_parse")) {
		f.Add(text, true)
	}
	f.Fuzz(func(t *testing.T, text string, mysql bool) {
		dialect := parse.DialectPostgres
		if mysql {
			dialect = parse.DialectMySQL
		}
		roundTrip(t, text, dialect)
	})
}
