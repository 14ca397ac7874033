package pipeline_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	pg "github.com/pganalyze/pg_query_go/v6"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/pgtest"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/explain"
	"noisegate.example/sqlrewrite/internal/parsetest"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/internal/sqlprint"
	"noisegate.example/sqlrewrite/proofs/gen"
)

// A name means the same whether a hidden column has it or no column: analysts cannot find out which hidden columns there are.
func TestHiddenColumnsDoNotExist(t *testing.T) {
	snapshot := rewritetest.TownSnapshot(t)
	people, _ := snapshot.Table("", "people")
	hidden, _ := people.Column("age")
	hidden.Exposed = false
	for _, sql := range []string{
		"SELECT sex AS %s, count(*) FROM people GROUP BY %s", "SELECT sex AS %s, count(*) FROM people GROUP BY 1 ORDER BY %s",
		"SELECT count(*) AS %s FROM people HAVING count(%s) > 1", "SELECT count(*) FROM people WHERE people.%s = people.%s",
	} {
		var got []string
		for _, name := range []string{"age", "xyz"} {
			p, err := pipeline.Rewrite(strings.ReplaceAll(sql, "%s", name), snapshot, rewritetest.Sharp())
			text := fmt.Sprint(err)
			if err == nil {
				text = explain.Explain(p).Tree
			}
			got = append(got, strings.ReplaceAll(text, name, "%s"))
		}
		if got[0] != got[1] {
			t.Errorf("%s:\n%s\n%s", sql, got[0], got[1])
		}
	}
}

// A17: rows without a unit stay out also where the policy saw a NOT NULL, which may be gone by the time of the query.
//
// covers: A17
func TestNotNullMayBeDropped(t *testing.T) {
	db := pgtest.New(t)
	db.Exec(t, "CREATE TABLE public.sales AS SELECT nullif(i % 10, 0) AS buyer, 7 AS items FROM generate_series(1, 100) i")
	snapshot := rewritetest.ParseSnapshot(t, "sales\n  buyer  integer not null\n  items  integer not null", `version: 1
dataset: test
neighbours: add-remove
tables:
  sales: {unit: {column: buyer}, max_rows: 10, max_groups: 1, columns: {items: {bounds: [0, 100]}}}
budgets:
  - {dataset: true, form: approx, epsilon: 10, delta: 1e-6}
`)
	p, err := pipeline.Rewrite("SELECT count(*), sum(items), count(DISTINCT buyer) FROM sales", snapshot, rewritetest.Sharp())
	if err != nil {
		t.Fatal(err)
	}
	exact, err := gen.ExactRows(t, db.Conn(t, db.DSN), p.Statements(&plan.Draws{})[0])
	if got := fmt.Sprint(exact.At("", 0), exact.At("", 1), exact.At("", 2)); err != nil || got != "90 630 9" {
		t.Errorf("%s, %v", got, err)
	}
}

// A sum of floats of public rows is exact, so that it is the same in whatever order PostgreSQL reads them: one unit's rows may move that
// order, and all rows of people meet the sum.
func TestSumsOfPublicFloatsFollowNoOrder(t *testing.T) {
	db := pgtest.New(t)
	db.Exec(t, "CREATE TABLE public.sales AS SELECT i AS buyer, 1 AS kind FROM generate_series(1, 9) i; "+
		"CREATE TABLE public.rates (kind integer NOT NULL, rate double precision)")
	conn := db.Conn(t, db.DSN)
	snapshot := func(columns string) *catalog.Snapshot {
		return rewritetest.ParseSnapshot(t, "sales\n  buyer  integer not null\n  kind  integer not null\n"+
			"rates\n  kind  integer not null\n  rate  double", `version: 1
dataset: test
neighbours: add-remove
tables:
  sales: {unit: {column: buyer}, max_rows: 1, max_groups: 1}
  rates: {public: true`+columns+`}
budgets:
  - {dataset: true, form: approx, epsilon: 10, delta: 1e-6}
`)
	}
	const question = "SELECT count(*) FROM sales JOIN (SELECT kind, sum(%[1]s) AS s, avg(%[1]s) AS a FROM rates GROUP BY kind) g USING " +
		"(kind) WHERE g.s > 0.05 AND g.a > 0.01"
	p, err := pipeline.Rewrite(fmt.Sprintf(question, "rate"), snapshot(", columns: {rate: {bounds: [-1e17, 1e17]}}"), rewritetest.Sharp())
	if err != nil {
		t.Fatal(err)
	}
	sums := make(map[float64]bool)
	for _, order := range []string{"(1, 1e17), (1, 0.1), (1, -1e17)", "(1, 1e17), (1, -1e17), (1, 0.1)", "(1, 0.1), (1, -1e17), (1, 1e17)"} {
		db.Exec(t, "TRUNCATE public.rates; INSERT INTO public.rates VALUES "+order)
		var sum float64
		if err := conn.QueryRow(t.Context(), "SELECT sum(rate) FROM public.rates").Scan(&sum); err != nil {
			t.Fatal(err)
		}
		sums[sum] = true
		exact, err := gen.ExactRows(t, conn, p.Statements(&plan.Draws{})[0])
		if got := fmt.Sprint(exact.At("", 0)); err != nil || got != "9" {
			t.Errorf("%s: %s, %v", order, got, err)
		}
	}
	if len(sums) < 2 {
		t.Errorf("PostgreSQL's own sum of floats is the same in all orders: %v", sums)
	}
	_, err = pipeline.Rewrite(fmt.Sprintf(question, "rate"), snapshot(""), rewritetest.Sharp())
	if fault.CodeOf(err) != fault.CodeMissingBounds {
		t.Errorf("without bounds: %v", err)
	}
}

// FuzzRewrite: whatever the text, the answer is a plan or a refusal, never a panic or an internal error; a plan's SQL is one
// statement that PostgreSQL's grammar takes, and holds none of the text's constants.
func FuzzRewrite(f *testing.F) {
	for _, sql := range rewritetest.GoldenQueries(f) {
		f.Add(sql)
	}
	snapshot := rewritetest.TownSnapshot(f)
	f.Fuzz(func(t *testing.T, sql string) {
		p, err := pipeline.Rewrite(sql, snapshot, rewritetest.Sharp())
		if err != nil {
			var refusal *fault.Error
			if !errors.As(err, &refusal) || refusal.Code == fault.CodeInternal {
				t.Fatalf("%v", err)
			}
			return
		}
		for _, printed := range printedSQL(p) {
			parsed, err := pg.Parse(printed)
			if err != nil || len(parsed.Stmts) != 1 {
				t.Fatalf("%s: %v", printed, err)
			}
		}
		explain.Explain(p)
		if again, err := pipeline.Rewrite(sql, snapshot, rewritetest.Sharp()); err != nil || again.Fingerprint() != p.Fingerprint() {
			t.Fatalf("another plan the second time: %v", err)
		}
	})
}

func printedSQL(p *plan.Plan) []string {
	var all []string
	if statements := rewritetest.StatementsOf(p); len(statements) > 0 {
		all = append(all, statements[0].SQL)
	}
	if p.Post != nil {
		all = append(all, p.Post.SQL())
	}
	return all
}

// A47, A48: a constant of the analyst's arrives at PostgreSQL as the value that it is, whatever it is made of, and none of it is
// in the text that runs.
//
// covers: A47
func TestConstantsTravelAsParameters(t *testing.T) {
	snapshot := rewritetest.TownSnapshot(t)
	conn := pgtest.New(t)
	db := conn.Conn(t, conn.DSN)
	parts := []string{`\`, `'`, `"`, "$1", "`", "\u2019", "\uff07", "%27", "--", "/*", ";", "é", "\u200b", " ", "\n", "E'", "U&'", "$$", "union select"}
	for _, a := range parts {
		for _, b := range parts {
			want := a + b + "marker"
			p, err := pipeline.Rewrite("SELECT count(*) FROM people WHERE country = '"+strings.ReplaceAll(want, "'", "''")+"'", snapshot,
				rewritetest.Sharp())
			if err != nil {
				t.Fatalf("%q: %v", want, err)
			}
			if strings.Contains(p.Parts[0].Statement.SQL, "marker") || len(p.Parts[0].Statement.Args) != 1 ||
				p.Parts[0].Statement.Args[0] != want {
				t.Fatalf("%q: %s %q", want, p.Parts[0].Statement.SQL, p.Parts[0].Statement.Args)
			}
			var got string
			if err := db.QueryRow(t.Context(), "SELECT $1::text", p.Parts[0].Statement.Args...).Scan(&got); err != nil || got != want {
				t.Fatalf("%q arrives as %q, %v", want, got, err)
			}
		}
	}
}

// A57: operators and functions planted in public, with types that match better than PostgreSQL's own, are not used.
//
// covers: A57
func TestPlantedOperators(t *testing.T) {
	db := pgtest.New(t)
	db.Exec(t, `CREATE TABLE public.people (id integer PRIMARY KEY, sex varchar(10) NOT NULL, grade integer, country varchar(20),
	  age integer NOT NULL, born date)`,
		"INSERT INTO public.people SELECT i, 'Male', 2, 'NL', 40, NULL FROM generate_series(1, 9) i",
		"CREATE FUNCTION public.evil(varchar, text) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
		"CREATE OPERATOR public.= (LEFTARG = varchar, RIGHTARG = text, FUNCTION = public.evil)",
		"CREATE OPERATOR public.~~ (LEFTARG = varchar, RIGHTARG = text, FUNCTION = public.evil)",
		"CREATE FUNCTION public.evilage(integer, integer) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
		"CREATE OPERATOR public.> (LEFTARG = integer, RIGHTARG = integer, FUNCTION = public.evilage)",
		"CREATE FUNCTION public.evilcount() RETURNS bigint LANGUAGE sql AS 'SELECT 42::bigint'")
	conn := db.Conn(t, db.DSN)
	count := func(sql string) string {
		rows, err := gen.ExactRows(t, conn, rewritetest.TownPlan(t, sql, rewritetest.Sharp()).Parts[0].Statement)
		if err != nil {
			t.Fatal(err)
		}
		return rows[""][0].String()
	}
	for _, path := range []string{"''", "public, pg_catalog"} {
		rewritetest.MustExec(t, conn, "SET search_path = "+path)
		for _, where := range []string{"country = 'BE'", "country LIKE 'B%'", "age > 90", "country IN ('BE', 'FR')"} {
			if got := count("SELECT count(*) FROM people WHERE " + where); path == "''" && got != "0" {
				t.Errorf("%s counts %s", where, got)
			}
		}
	}
	// The control: with public first, the planted operator is found, and the test would see it.
	if got := count("SELECT count(*) FROM people WHERE age > 90"); got != "9" {
		t.Errorf("the planted operator was not found even with public first: %s", got)
	}
}

// The filter on groups outside the domain must not become a test of every row: it costs as much as the whole scan.
func TestDomainFilterIsOfGroups(t *testing.T) {
	db := pgtest.New(t)
	db.Exec(t, "CREATE TABLE public.people (id integer PRIMARY KEY, sex text NOT NULL, grade integer, country text, age integer NOT NULL, "+
		"born date)")
	conn := db.Conn(t, db.DSN)
	p := rewritetest.TownPlan(t, "SELECT sex, grade, count(*) FROM people GROUP BY sex, grade", rewritetest.Sharp())
	args := append([]any{pgx.QueryExecModeExec}, p.Parts[0].Statement.Args...)
	rows, err := conn.Query(t.Context(), "EXPLAIN (COSTS OFF) "+p.Parts[0].Statement.SQL, args...)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	plan := strings.Join(lines, "\n")
	aggregate, scan, _ := strings.Cut(plan, "Scan on people")
	if !strings.Contains(aggregate, "Filter: CASE") || strings.Contains(scan, "Filter") {
		t.Error(plan)
	}
}

// sixteen is a question over as many relations as there may be: people, and public tables each joined with the one before.
func sixteen(t testing.TB) (sql string, snapshot *catalog.Snapshot) {
	tables, policy := "people\n  id integer not null unique\n  k0 integer\n  age integer\n", `version: 1
dataset: test
neighbours: add-remove
tables:
  people: {unit: {row: id}, columns: {age: {bounds: [0, 100]}}}
`
	sql = " FROM people"
	for i := range 15 {
		tables += fmt.Sprintf("t%[1]d\n  k%[1]d integer not null unique\n  k%[2]d integer not null\n  name text\n  values name a b c\n", i, i+1)
		policy += fmt.Sprintf("  t%d: {public: true}\n", i)
		sql += fmt.Sprintf(" JOIN t%[1]d USING (k%[1]d)", i)
	}
	return "SELECT t14.name, count(*), avg(age)" + sql + " GROUP BY 1", rewritetest.ParseSnapshot(t, tables, policy+
		"budgets:\n  - {dataset: true, form: approx, epsilon: 10, delta: 1e-6}\n")
}

// A question of 16 relations is answered in each order, and proven; one of 17 is too complex.
func TestSixteenRelations(t *testing.T) {
	sql, snapshot := sixteen(t)
	commas := "SELECT count(*) FROM t14"
	where := " WHERE people.k0 = t0.k0"
	for i := 13; i >= 0; i-- {
		commas += fmt.Sprintf(", t%d", i)
		where += fmt.Sprintf(" AND t%d.k%d = t%d.k%d", i, i+1, i+1, i+1)
	}
	for _, text := range []string{sql, commas + ", people" + where} {
		if _, err := pipeline.Rewrite(text, snapshot, rewritetest.Sharp()); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	_, err := pipeline.Rewrite(strings.Replace(sql, " GROUP", " CROSS JOIN t0 AS again GROUP", 1), snapshot, rewritetest.Sharp())
	if fault.CodeOf(err) != fault.CodeTooComplex {
		t.Errorf("17 relations: %v", err)
	}
}

// BenchmarkRewrite is text to plan: parse, bind, price, print. The aim is below 150 µs.
func BenchmarkRewrite(b *testing.B) {
	town := rewritetest.TownSnapshot(b)
	most, relations := sixteen(b)
	for name, sql := range map[string]string{
		"most":    most,
		"count":   "SELECT count(*) FROM people",
		"typical": "SELECT sex, count(*) AS n, avg(age) FROM people WHERE country = 'NL' AND age BETWEEN 18 AND 65 GROUP BY sex ORDER BY n DESC",
		"private": "SELECT country, count(*) FROM people GROUP BY country HAVING count(*) > 100 ORDER BY 2 DESC LIMIT 10",
		"partial": "SELECT sex, sum((age + 1) * 2), avg(age * 2.5 / (age + 1)), count(exp(age)) FROM people WHERE born + 30 < DATE " +
			"'2020-01-01' GROUP BY sex",
	} {
		for kind, proofs := range map[string]*sqlprint.Proofs{"new": nil, "proven": new(sqlprint.Proofs)} {
			b.Run(name+"/"+kind, func(b *testing.B) {
				snapshot := town
				if name == "most" {
					snapshot = relations
				}
				o := plan.Options{Epsilon: mechanisms.EpsilonUnit, Delta: 1_000_000_000, Mechanism: plan.MechanismAuto, Currency: catalog.Approx,
					Confidence: 0.95, Proofs: proofs}
				b.ReportAllocs()
				for b.Loop() {
					if _, err := pipeline.Rewrite(sql, snapshot, o); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// The longest queries (A44) that the parser lets through are bound, planned and printed in time, however their parts multiply.
func TestLongQueriesArePlannedInTime(t *testing.T) {
	snapshot := rewritetest.TownSnapshot(t)
	repeat := func(n int, part func(i int) string, separator string) string {
		var parts []string
		for i := range n {
			parts = append(parts, part(i))
		}
		return strings.Join(parts, separator)
	}
	for name, sql := range map[string]string{
		"aggregates": "SELECT " + repeat(300, func(i int) string { return fmt.Sprintf("count(*) FILTER (WHERE age > %d)", i) }, ", ") +
			" FROM people",
		"means": "SELECT " + repeat(200, func(i int) string { return fmt.Sprintf("avg(age) FILTER (WHERE age = %d)", i) }, ", ") +
			" FROM people",
		"conditions":   "SELECT count(*) FROM people WHERE " + repeat(900, func(i int) string { return fmt.Sprintf("age <> %d", i) }, " AND "),
		"alternatives": "SELECT count(*) FROM people WHERE " + repeat(900, func(i int) string { return fmt.Sprintf("age = %d", i) }, " OR "),
		"keys": "SELECT sex FROM people WHERE " + repeat(900, func(int) string { return "sex <> 'x'" }, " AND ") + " GROUP BY " +
			repeat(90, func(int) string { return "sex" }, ", "),
		"outputs": "SELECT " + repeat(1500, func(int) string { return "sex" }, ", ") + " FROM people GROUP BY sex",
		"sums":    "SELECT " + repeat(60, func(int) string { return "count(*)" }, " + ") + " FROM people",
	} {
		took := parsetest.Fastest(func() {
			p, err := pipeline.Rewrite(sql, snapshot, rewritetest.Sharp())
			if err != nil {
				t.Errorf("%s: %v", name, err)
				return
			}
			explain.Explain(p)
		})
		if took > parsetest.Longest {
			t.Errorf("%s: took %v", name, took)
		} else {
			t.Logf("%s: %v", name, took)
		}
	}
}

// An aggregate that needs an argument and has a star is refused, also over the rows of single people and as a value of public tables.
func TestStarOfOtherAggregatesIsRefused(t *testing.T) {
	for _, f := range []string{"sum", "avg", "min", "max", "bool_or", "bool_and"} {
		func() {
			defer func() {
				if p := recover(); p != nil {
					t.Errorf("%s(*): %v", f, p)
				}
			}()
			text := "SELECT count(*) FROM people p JOIN (SELECT id, " + f + "(*) AS c FROM people GROUP BY id) g ON g.id = p.id"
			if _, err := pipeline.Rewrite(text, rewritetest.TownSnapshot(t), rewritetest.TownOptions("0.5")); err == nil {
				t.Errorf("%s(*) is taken", f)
			}
		}()
	}
}
