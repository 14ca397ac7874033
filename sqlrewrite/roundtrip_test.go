package sqlrewrite

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	pg "github.com/pganalyze/pg_query_go/v6"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/explain"
	"noisegate.example/sqlrewrite/internal/parse"
	"noisegate.example/sqlrewrite/internal/parsetest"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/syntax"
)

// sqlText writes a tree as PostgreSQL's SQL, everything in parentheses and all names in quotes, so that parsing it gives the tree back.
type sqlText struct{ strings.Builder }

func (w *sqlText) put(format string, args ...any) { fmt.Fprintf(w, format, args...) }

func writeQuery(q *syntax.Query) string {
	w := &sqlText{}
	if len(q.With) > 0 {
		w.put("WITH ")
		for i, c := range q.With {
			w.put("%s%s%s AS (%s)", comma(i), scalar.QuoteIdent(c.Name), writeNames(c.Columns), writeQuery(c.Query))
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
			w.put(" AS %s", scalar.QuoteIdent(item.Alias))
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
		w.put("%s%s AS %s", []string{" WINDOW ", ", "}[min(i, 1)], scalar.QuoteIdent(named.Name), writeWindow(named.Window))
	}
}

func comma(i int) string { return []string{"", ", "}[min(i, 1)] }

func writeNames(names []string) string {
	if names == nil {
		return ""
	}
	var quoted []string
	for _, n := range names {
		quoted = append(quoted, scalar.QuoteIdent(n))
	}
	return " (" + strings.Join(quoted, ", ") + ")"
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
			w.put("%s.", scalar.QuoteIdent(r.Database))
		}
		if r.Schema != "" {
			w.put("%s.", scalar.QuoteIdent(r.Schema))
		}
		w.put("%s", scalar.QuoteIdent(r.Name))
		if r.Alias != "" {
			w.put(" AS %s", scalar.QuoteIdent(r.Alias))
		}
	case *syntax.Subquery:
		w.put("%s(%s)", map[bool]string{true: "LATERAL "}[r.Lateral], writeQuery(r.Query))
		if r.Alias != "" {
			w.put(" AS %s%s", scalar.QuoteIdent(r.Alias), writeNames(r.Columns))
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
			return scalar.QuoteIdent(e.Qualifier) + ".*"
		}
		return "*"
	case *syntax.Column:
		if e.Qualifier != "" {
			schema := ""
			if e.Schema != "" {
				schema = scalar.QuoteIdent(e.Schema) + "."
			}
			return schema + scalar.QuoteIdent(e.Qualifier) + "." + scalar.QuoteIdent(e.Name)
		}
		return scalar.QuoteIdent(e.Name)
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
		return fmt.Sprintf("CAST(%s AS pg_catalog.%s%s)", writeExpr(e.X), scalar.QuoteIdent(e.Type), mods)
	case *syntax.Call:
		return writeCall(e)
	default:
		panic(fmt.Sprintf("no way to write %T", e))
	}
}

func writeCall(e *syntax.Call) string {
	w := &sqlText{}
	name := scalar.QuoteIdent(e.Name)
	switch {
	case e.Schema != "":
		name = scalar.QuoteIdent(e.Schema) + "." + name
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
		w.put("%s", scalar.QuoteIdent(n.Name))
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

// postSnapshot is that of testdata/post: private tables of two kinds and a public one.
func postSnapshot(t testing.TB) *catalog.Snapshot {
	t.Helper()
	data, err := os.ReadFile(rewritetest.GoldenFile("post"))
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.SplitN(string(data), "\n----\n", 3)
	_, tables, _ := strings.Cut(parts[0], "tables\n")
	_, policy, _ := strings.Cut(parts[1], "policy\n")
	return rewritetest.ParseSnapshot(t, tables, policy)
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
	for _, text := range append(append(goldenQueries(t), parsedTexts(t, rewritetest.GoldenFile("parse"))...), parsetest.Everything...) {
		roundTrip(t, text, parse.DialectPostgres)
	}
	for _, text := range parsedTexts(t, rewritetest.GoldenFile("mysql_parse")) {
		roundTrip(t, text, parse.DialectMySQL)
	}
}

// FuzzRoundTrip: no text of either dialect makes a parser panic, and what a text means is what its tree says.
func FuzzRoundTrip(f *testing.F) {
	for _, text := range append(goldenQueries(f), parsedTexts(f, rewritetest.GoldenFile("parse"))...) {
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

// FuzzRead: what is free names no table with a privacy unit, whatever the text, and is one statement of PostgreSQL's grammar.
func FuzzRead(f *testing.F) {
	for _, sql := range goldenQueries(f) {
		f.Add(sql, false)
	}
	for _, sql := range []string{"SELECT name, count(*) FROM shops GROUP BY name", "SELECT * FROM people LIMIT 0", "SELECT 1",
		"SELECT name FROM shops WHERE shop_id IN (SELECT age FROM people)"} {
		f.Add(sql, true)
	}
	snapshot := postSnapshot(f)
	f.Fuzz(func(t *testing.T, sql string, mysql bool) {
		options := rewritetest.Sharp()
		if mysql {
			options.Dialect = parse.DialectMySQL
		}
		private, public, err := pipeline.Read(sql, snapshot, options)
		var texts []string
		switch {
		case err != nil:
			var refusal *fault.Error
			if !errors.As(err, &refusal) || refusal.Code == fault.CodeInternal {
				t.Fatalf("%v", err)
			}
		case public != nil:
			public.Tree()
			if post, ok := public.Post(); ok {
				texts = append(texts, post.SQL())
			}
		default:
			explain.Explain(private)
			if private.Post != nil {
				texts = append(texts, private.Post.SQL())
			}
		}
		for _, printed := range texts {
			if strings.Contains(printed, `"people"`) || strings.Contains(printed, `"visits"`) {
				t.Fatalf("%s\nreads private rows for nothing:\n%s", sql, printed)
			}
			if parsed, err := pg.Parse(printed); err != nil || len(parsed.Stmts) != 1 {
				t.Fatalf("%s: %v", printed, err)
			}
		}
	})
}

// Bombs that only binding meets (A44): each is planned or refused in time, and memory does not follow the number of ways to expand it.
//
// covers: A44
func TestBoundBombs(t *testing.T) {
	snapshot := postSnapshot(t)
	chain := func(first, link, last string, n int) string {
		parts := []string{"a0 AS (" + first + ")"}
		for i := 1; i < n; i++ {
			parts = append(parts, fmt.Sprintf("a%d AS (%s)", i, strings.ReplaceAll(link, "?", fmt.Sprintf("a%d", i-1))))
		}
		return "WITH " + strings.Join(parts, ", ") + " " + strings.ReplaceAll(last, "?", fmt.Sprintf("a%d", n-1))
	}
	nested := func(around, innermost string, n int) string {
		for range n {
			innermost = strings.Replace(around, "?", innermost, 1)
		}
		return innermost
	}
	repeat := func(part, separator string, n int) string { return strings.Repeat(part+separator, n-1) + part }
	for name, sql := range map[string]string{
		"released CTEs, each used twice in FROM": chain("SELECT count(*) AS n FROM people", "SELECT x.n FROM ? x, ? y", "SELECT n FROM ?",
			8),
		"released CTEs, each used twice in values": chain("SELECT count(*) AS n FROM people",
			"SELECT (SELECT n FROM ?) + (SELECT n FROM ?) AS n", "SELECT n FROM ?", 60),
		"released CTEs, each used twice in conditions": chain("SELECT count(*) AS n FROM people",
			"SELECT 1 AS n WHERE EXISTS (SELECT 1 FROM ?) OR EXISTS (SELECT 1 FROM ?)", "SELECT n FROM ?", 60),
		"public CTEs, each used twice": chain("SELECT name FROM shops",
			"SELECT name FROM ? WHERE name IN (SELECT name FROM ?) OR name IN (SELECT name FROM ?)", "SELECT name FROM ?", 60),
		"private CTEs, each used twice": chain("SELECT * FROM visits", "SELECT * FROM ? WHERE person_id IN (SELECT person_id FROM ?)",
			"SELECT count(*) FROM ?", 60),
		"private CTEs, joined with themselves": chain("SELECT * FROM visits", "SELECT x.* FROM ? x JOIN ? y ON x.person_id = y.person_id",
			"SELECT count(*) FROM ?", 8),
		"many windows": "SELECT " + repeat("rank() OVER (PARTITION BY sex ORDER BY count(*))", ", ", 200) +
			" FROM people GROUP BY sex",
		"many window names": "SELECT sex FROM (SELECT sex, count(*) AS n FROM people GROUP BY sex) t WINDOW " +
			strings.TrimSuffix(strings.Repeat("w AS (ORDER BY n), ", 300), ", "),
		"many keys above a release": "SELECT " + repeat("n + 1", ", ", 400) +
			" FROM (SELECT sex, count(*) AS n FROM people GROUP BY sex) t GROUP BY " + repeat("n + 1", ", ", 400),
		"many orders of a DISTINCT": "SELECT DISTINCT " + repeat("n", ", ", 500) + " FROM (SELECT count(*) AS n FROM people) t ORDER BY " +
			repeat("n", ", ", 500),
		"many sides":              repeat("SELECT name FROM shops", " UNION ALL ", 9),
		"public stars, doubled":   nested("SELECT *, *, name FROM (?) t", "SELECT name FROM shops", 40),
		"private stars, doubled":  "SELECT count(*) FROM (" + nested("SELECT *, * FROM (?) t", "SELECT age FROM people", 40) + ") t",
		"released stars, doubled": nested("SELECT *, * FROM (?) t", "SELECT count(*) AS n FROM people", 40),
		"stars of stars": "SELECT *, *, *, * FROM (SELECT *, *, *, * FROM (SELECT *, *, *, * FROM (SELECT *, *, *, * FROM (SELECT *, " +
			"*, *, *, name FROM shops) a) b) c) d",
	} {
		var err error
		if took := parsetest.Fastest(func() { _, _, err = pipeline.Read(sql, snapshot, rewritetest.Sharp()) }); took > parsetest.Longest {
			t.Errorf("%s: took %v", name, took)
		} else {
			t.Logf("%s: %v, %v", name, took, fault.CodeOf(err))
		}
		if fault.CodeOf(err) == fault.CodeInternal {
			t.Errorf("%s: %v", name, err)
		}
	}
}
