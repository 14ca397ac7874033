package sqlprint_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/internal/randomtest"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/bind"
	"noisegate.example/sqlrewrite/internal/parse"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/sqlprint"
)

// The table has columns whose names read like computed values, or like parts of them.
const (
	oddTables = `t
  id  integer not null unique
  a   integer
  b   integer
  %s`
	oddPolicy = `version: 1
dataset: test
neighbours: add-remove
tables:
  t:
    unit: {row: id}
    columns:
      a: {bounds: [0, 9]}
      b: {bounds: [0, 9]}
%s
budgets:
  - {dataset: true, form: approx, epsilon: 10, delta: 1e-6}
`
)

var oddNames = []string{"a + b", "(a + b)", "(a + 1)", "b + 1", "1", "true", "NULL", "abs(a)", "(a = 1)", "a = 1", "(a)::numeric",
	"a AND b", "'x'"}

func oddSnapshot(t *testing.T) *catalog.Snapshot {
	t.Helper()
	snapshot := rewritetest.ParseSnapshot(t, fmt.Sprintf(oddTables, oddColumns()), fmt.Sprintf(oddPolicy, oddBounds()))
	for _, table := range snapshot.Tables {
		for _, c := range table.Columns {
			var i int
			if n, _ := fmt.Sscanf(c.Name, "odd%d", &i); n == 1 {
				c.Name = oddNames[i]
			}
		}
	}
	return snapshot
}

func oddColumns() string {
	var lines []string
	for i := range oddNames {
		lines = append(lines, fmt.Sprintf("odd%d integer", i))
	}
	return strings.Join(lines, "\n  ")
}

func oddBounds() string {
	var lines []string
	for i := range oddNames {
		lines = append(lines, fmt.Sprintf("      odd%d: {bounds: [0, 9]}", i))
	}
	return strings.Join(lines, "\n")
}

// Two expressions are one statistic only if they print alike, whatever columns are called and however numbers are written.
//
// covers: E.5 W1
func TestExpressionsAreToldApartByStructure(t *testing.T) {
	t.Parallel()
	snapshot := oddSnapshot(t)
	r := rand.New(rand.NewPCG(21, 22)) // reproducible on purpose
	leaf := func() string {
		all := append([]string{"a", "b", "1", "2", "2.0", "1.0"}, oddNames...)
		i := r.IntN(len(all))
		if i < 6 {
			return all[i]
		}
		return scalar.QuoteIdent(all[i])
	}
	var write func(depth int) string
	write = func(depth int) string {
		if depth == 0 {
			return leaf()
		}
		forms := []string{"(%s + %s)", "(%s / %s)", "abs(%s)", "(%s)::numeric", "coalesce(%s, %s)", "CASE WHEN %s = %s THEN 1 END",
			"nullif(%s, %s)"}
		form := forms[r.IntN(len(forms))]
		args := []any{write(depth - 1), write(r.IntN(depth))}
		return fmt.Sprintf(form, args[:strings.Count(form, "%s")]...)
	}
	printed := func(text string) (string, bool) {
		query, err := parse.Parse("SELECT count("+text+") FROM t", "")
		if err != nil {
			return "", false
		}
		bound, err := bind.Releasing(algebra.NewOpened("", query, snapshot))
		if err != nil || bound.Statistics[0].X == nil {
			return "", false
		}
		p := sqlprint.NewRowPrinter()
		return p.Text(bound.Statistics[0].X) + fmt.Sprintf("%q", p.Args()), true
	}
	merged, apart, pairs := 0, 0, randomtest.Part(8_000, 40_000)
	for range pairs {
		x, y := write(r.IntN(2)), write(r.IntN(3))
		query, err := parse.Parse("SELECT count("+x+"), count("+y+") FROM t", "")
		if err != nil {
			continue
		}
		bound, err := bind.Releasing(algebra.NewOpened("", query, snapshot))
		if err != nil {
			continue
		}
		if len(bound.Statistics) == 2 {
			apart++
			continue
		}
		px, okX := printed(x)
		py, okY := printed(y)
		if okX != okY || px != py {
			t.Fatalf("%s and %s are one statistic, and print as\n%s\n%s", x, y, px, py)
		}
		merged++
	}
	t.Logf("%d pairs apart, %d one", apart, merged)
	if merged < 100 || apart < pairs/4 {
		t.Error("too few to tell")
	}
}

// Questions that read alike, and of which the statements are the same, are two questions where their outputs differ.
//
// covers: E.5 W1
func TestQuestionsThatReadAlikeAreTwo(t *testing.T) {
	snapshot := oddSnapshot(t)
	seen := make(map[[32]byte]string)
	for _, text := range []string{
		`SELECT sum("(a + 1)") AS x, sum(a + 1) AS y, sum("(a + 1)") AS z FROM t`,
		`SELECT sum("(a + 1)") AS x, sum(a + 1) AS y, sum(a + 1) AS z FROM t`,
		`SELECT sum(a + 1) AS x, sum("(a + 1)") AS y, sum("(a + 1)") AS z FROM t`,
		`SELECT sum(a / 2) AS x, sum(a / 2.0) AS y FROM t`,
		`SELECT sum(a / 2.0) AS x, sum(a / 2) AS y FROM t`,
		`SELECT sum(a / 2) AS x, sum(a / 2) AS y FROM t`,
		`SELECT count(*), a + 1 FROM t GROUP BY a + 1, "(a + 1)"`,
		`SELECT count(*), "(a + 1)" FROM t GROUP BY a + 1, "(a + 1)"`,
	} {
		p, err := pipeline.Rewrite(text, snapshot, plan.Options{Mechanism: plan.MechanismAuto, Currency: catalog.Approx, Confidence: 0.95,
			Epsilon: mechanisms.EpsilonUnit})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if known, ok := seen[p.Fingerprint()]; ok {
			t.Errorf("%s\n%s\nare one question", known, text)
		}
		seen[p.Fingerprint()] = text
	}
}

// An expression that is written twice is one statistic, and with another constant, function, operator or relation in one place it is two.
func TestExpressionsWrittenTwiceAreOne(t *testing.T) {
	snapshot := oddSnapshot(t)
	for _, pair := range [][2]string{
		{"a > 3", "a > 4"}, {"a > 3", "a >= 3"}, {"a > 3", "b > 3"}, {"NOT a > 3", "a > 3"}, {"a + 1 > b", "a - 1 > b"}, {"-a > b", "a > b"},
		{"a / 2 > 1", "a / 2.0 > 1"}, {"a IN (1, 2)", "a IN (1, 3)"}, {"a IN (1, 2)", "a NOT IN (1, 2)"}, {"a IN (1, 2)", "a IN (1, 2, 3)"},
		{"a IS NULL", "a IS NOT NULL"}, {"(a > 1) IS TRUE", "(a > 1) IS UNKNOWN"}, {"a IS DISTINCT FROM b", "a IS NOT DISTINCT FROM b"},
		{"a BETWEEN 1 AND 2", "a BETWEEN 1 AND 3"}, {"a::text LIKE '1%'", "a::text LIKE '2%'"}, {"a::text LIKE '1%'", "a::text ILIKE '1%'"},
		{"a::text LIKE '1'", "a::text ~ '1'"}, {"CASE WHEN a > 1 THEN b > 1 ELSE b > 2 END", "CASE WHEN a > 1 THEN b > 1 END"},
		{"a::numeric / 2 > 1", "a::double precision / 2 > 1"}, {"abs(a) > 1", "sign(a) > 1"}, {"coalesce(a, 1) > 1", "coalesce(a, b) > 1"},
		{"EXISTS (SELECT 1 FROM t u WHERE u.id = t.id AND u.a > 1)", "EXISTS (SELECT 1 FROM t u WHERE u.id = t.id AND u.b > 1)"},
		{"EXISTS (SELECT 1 FROM t u WHERE u.id = t.id AND u.a > t.b)", "EXISTS (SELECT 1 FROM t u WHERE u.id = t.id AND u.a > u.b)"},
		{"EXISTS (SELECT 1 FROM t u JOIN t v ON u.id = v.id WHERE u.id = t.id)",
			"EXISTS (SELECT 1 FROM t u LEFT JOIN t v ON u.id = v.id WHERE u.id = t.id)"},
		{"EXISTS (SELECT 1 FROM t u WHERE u.id = t.id AND u.a > 1)", "t.id IN (SELECT u.id FROM t u WHERE u.a > 1)"},
		{"t.id IN (SELECT u.id FROM t u WHERE u.a > 1)", "t.id IN (SELECT u.id FROM t u WHERE u.a > 2)"},
		{"t.id IN (SELECT u.id FROM t u GROUP BY u.id HAVING max(u.a) > 1)", "t.id IN (SELECT u.id FROM t u GROUP BY u.id HAVING min(u.a) > 1)"},
		{"(t.id, a) IN (SELECT u.id, u.a FROM t u)", "(t.id, a) IN (SELECT u.id, u.b FROM t u)"},
		{"t.id IN (SELECT w.id FROM (SELECT id, row_number() OVER (PARTITION BY id ORDER BY a) AS n FROM t) w WHERE n < 3)",
			"t.id IN (SELECT w.id FROM (SELECT id, row_number() OVER (PARTITION BY id ORDER BY b) AS n FROM t) w WHERE n < 3)"},
		{"t.id IN (SELECT w.id FROM (SELECT id, sum(a) OVER (PARTITION BY id ORDER BY a ROWS 1 PRECEDING) AS n FROM t) w WHERE n < 3)",
			"t.id IN (SELECT w.id FROM (SELECT id, sum(a) OVER (PARTITION BY id ORDER BY a ROWS 2 PRECEDING) AS n FROM t) w WHERE n < 3)"},
	} {
		for second, want := range map[string]int{pair[0]: 1, pair[1]: 2} {
			text := fmt.Sprintf("SELECT count(*) FILTER (WHERE %s) AS x, count(*) FILTER (WHERE %s) AS y FROM t", pair[0], second)
			query, err := parse.Parse(text, "")
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			bound, err := bind.Releasing(algebra.NewOpened("", query, snapshot))
			if err != nil {
				t.Errorf("%s: %v", text, err)
			} else if len(bound.Statistics) != want {
				t.Errorf("%s: %d statistics, want %d", text, len(bound.Statistics), want)
			}
		}
	}
}
