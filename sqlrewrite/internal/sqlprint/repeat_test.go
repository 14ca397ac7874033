package sqlprint_test

import (
	"fmt"
	"strings"
	"testing"

	"noisegate.example/sqlrewrite/internal/parsetest"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/proofs/gen"
)

// doubled is a query in FROM that names each column of the one below it twice.
func doubled(levels int) string {
	from := "SELECT person_id, age::numeric / 3 AS x FROM people"
	for i := range levels {
		from = fmt.Sprintf("SELECT person_id, x + x * %d AS x FROM (%s) d", i+2, from)
	}
	return "(" + from + ")"
}

// laterals is such columns of a row beside each other.
func laterals(levels int) string {
	text, last := "", "p.paid"
	for i := range levels {
		text += fmt.Sprintf(", LATERAL (SELECT %[1]s %% 5 + %[1]s %% 6 + %[1]s %% 7 AS x%[2]d) l%[2]d", last, i)
		last = fmt.Sprintf("l%[1]d.x%[1]d", i)
	}
	return text
}

// passed is such queries with others between them that pass the column on.
func passed(levels int) string {
	from := "SELECT person_id, paid AS x FROM visits"
	for i := range levels {
		from = fmt.Sprintf("SELECT person_id, y %% 7 + y %% %d AS x FROM (SELECT person_id, x AS y FROM (%s) d) d", i+2, from)
	}
	return "(" + from + ") d"
}

// costly is an expression that takes long.
func costly(x string, terms int) string {
	text := "CASE"
	for i := range terms {
		text += fmt.Sprintf(" WHEN %s::text ~ 'c+d%d' THEN %d", x, i, i%3)
	}
	return text + " ELSE 9 END"
}

// What a query in FROM computes is computed once for each row, where computing it wherever it is named would cost more than a row is
// charged: neither plans nor the work of a row double at each level. Cheap columns are left to PostgreSQL.
//
// needs: postgres
// covers: W.1
func TestColumnsOfQueriesAreComputedOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	conn, snapshot := rewritetest.SteadyWorld(t, "")
	for sql, fences := range map[string]int{
		"SELECT sum(x) FROM " + doubled(14) + " d":                                                                                         8,
		"SELECT sum(x) FROM " + doubled(14) + " d WHERE x > 3 AND x < 300000":                                                              9,
		"SELECT sum(x) FROM " + doubled(14) + " d JOIN people p ON p.person_id = d.person_id":                                              8,
		"SELECT sum(x + x) FROM (SELECT * FROM " + doubled(4) + " d UNION ALL SELECT person_id, age::numeric FROM people) e":               4,
		"SELECT sum(x) FROM " + doubled(5) + " d, LATERAL (SELECT x + x * 2 AS y) e WHERE y < y + x * y":                                   3,
		"SELECT count(*) FILTER (WHERE x), count(*) FILTER (WHERE NOT x) FROM (SELECT age IN (SELECT line FROM lines) AS x FROM people) d": 1,
		"SELECT sum(x6) FROM visits p" + laterals(7):                                                                                       6,
		"SELECT sum(x) FROM " + passed(10):                                                                                                 5,
		"SELECT sum(d.x) FROM (SELECT person_id, age, " + costly("age", 30) + " AS x FROM people) d JOIN lines l ON l.line > d.age - 200":  1,
		"SELECT sum(l.x) FROM people p JOIN (SELECT line, " + costly("line", 32) + " AS x FROM lines) l ON l.line = p.age":                 1,
		"SELECT sum(x), count(x), avg(x) FROM (SELECT age + 1 AS x FROM people) d WHERE x > 3":                                             0,
		"SELECT sum(x) FROM (SELECT age::numeric * 3 AS x FROM people) d":                                                                  0,
	} {
		p, err := pipeline.Rewrite(sql, snapshot, rewritetest.SteadyOptions)
		if err != nil {
			t.Errorf("%s: %s", sql, parsetest.ShowFault(err))
			continue
		}
		for _, s := range p.Statements(p.Draw(rewritetest.FixedSampler(t))) {
			tx, err := conn.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			plan, err := gen.Explained(t.Context(), tx, s, "COSTS OFF, VERBOSE, FORMAT TEXT")
			if err != nil {
				t.Fatalf("%s\n%v", s.SQL, err)
			}
			if err := tx.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			if len(plan) > 4*len(s.SQL) && !strings.Contains(s.SQL, "LATERAL") { // whose columns EXPLAIN writes out in any case
				t.Errorf("%s\nis planned as %d bytes\n%s", s.SQL, len(plan), plan)
			}
			if n := strings.Count(s.SQL, " OFFSET 0"); n != fences {
				t.Errorf("%s: %d fences, want %d\n%s", sql, n, fences, s.SQL)
			}
		}
	}
}
