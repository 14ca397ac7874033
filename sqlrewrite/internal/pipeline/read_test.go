package pipeline_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	pg "github.com/pganalyze/pg_query_go/v6"

	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/explain"
	"noisegate.example/sqlrewrite/internal/parse"
	"noisegate.example/sqlrewrite/internal/parsetest"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/rewritetest"
)

// FuzzRead: what is free names no table with a privacy unit, whatever the text, and is one statement of PostgreSQL's grammar.
func FuzzRead(f *testing.F) {
	for _, sql := range rewritetest.GoldenQueries(f) {
		f.Add(sql, false)
	}
	for _, sql := range []string{"SELECT name, count(*) FROM shops GROUP BY name", "SELECT * FROM people LIMIT 0", "SELECT 1",
		"SELECT name FROM shops WHERE shop_id IN (SELECT age FROM people)"} {
		f.Add(sql, true)
	}
	snapshot := rewritetest.PostSnapshot(f)
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
	snapshot := rewritetest.PostSnapshot(t)
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
