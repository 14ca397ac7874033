package sqlrewrite

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"noisegate.example/internal/fault"
	"noisegate.example/internal/pgtest"
	"noisegate.example/sqlrewrite/internal/rewritetest"
)

const suggestionPolicy = `version: 1
dataset: test
neighbours: add-remove
tables:
  people: {unit: {row: id}, columns: {sex: {domain: [F, M]}}}
  visits: {unit: {column: id}, max_rows: 5, max_groups: 2, columns: {ward: {domain: [1, 2, 3]}}}
budgets:
  - {dataset: true, form: approx, epsilon: 10, delta: 1e-6}
`

// TestCountedUnitsAreSuggestedAsRows: what is suggested for a count of the unit's id is accepted, and is what PostgreSQL answers to the
// original, over random rows.
//
// needs: postgres
func TestCountedUnitsAreSuggestedAsRows(t *testing.T) {
	snapshot := rewritetest.ParseSnapshot(t, "people\n  id integer not null unique\n  sex text not null\nvisits\n"+
		"  visit integer not null unique\n  id integer not null\n  ward integer not null\n", suggestionPolicy)
	db := pgtest.New(t)
	db.Exec(t, "CREATE TABLE people (id int PRIMARY KEY, sex text NOT NULL)",
		"CREATE TABLE visits (visit int PRIMARY KEY, id int NOT NULL, ward int NOT NULL)",
		"SELECT setseed(0.15)", "INSERT INTO people SELECT g, CASE WHEN random() < 0.4 THEN 'F' ELSE 'M' END FROM generate_series(1, 40) g",
		"INSERT INTO visits SELECT g, 1 + (random() * 39)::int, 1 + (random() * 2)::int FROM generate_series(1, 90) g")
	conn := db.Conn(t, db.DSN)
	random := rand.New(rand.NewPCG(15, 28))
	one := func(of ...string) string { return of[random.IntN(len(of))] }
	seen := map[string]bool{}
	for range 60 {
		counted := one("count(id)", "count(v.id)", "COUNT( id )", "count(v . id) FILTER (WHERE ward > 1)", "2 * count(id) + 1")
		text := fmt.Sprintf("SELECT %s%s AS n FROM visits v%s", one("", "ward, "), counted,
			one("", " WHERE ward < 3", " WHERE ward IN (1, 3)"))
		if strings.Contains(text, "SELECT ward") {
			text += " GROUP BY ward" + one("", " HAVING count(*) > 0") + " ORDER BY ward"
		}
		if seen[text] {
			continue
		}
		seen[text] = true
		o := rewritetest.Sharp()
		_, _, err := Read(t.Context(), text, snapshot, o)
		if fault.CodeOf(err) != fault.CodeUnitColumn {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var refusal *fault.Error
		if !errors.As(Suggest(t.Context(), err, text, snapshot, o), &refusal) {
			t.Fatal(err)
		}
		i := slices.IndexFunc(refusal.Details, func(d fault.Detail) bool { return d.Name == "suggestion" })
		if i < 0 {
			t.Errorf("%s: nothing is suggested", text)
			continue
		}
		suggested := refusal.Details[i].Value
		if _, _, err := Read(t.Context(), suggested, snapshot, o); err != nil {
			t.Errorf("%s suggests %s: %v", text, suggested, err)
		}
		answer := func(sql string) (rows string) {
			t.Helper()
			if err := conn.QueryRow(t.Context(), "SELECT string_agg(q::text, ',') FROM ("+sql+") q").Scan(&rows); err != nil {
				t.Fatal(sql, err)
			}
			return rows
		}
		if got, want := answer(suggested), answer(text); got != want {
			t.Errorf("%s is %s, and what is suggested, %s, is %s", text, want, suggested, got)
		}
	}
}
