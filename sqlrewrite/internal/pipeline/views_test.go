package pipeline_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/explain"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/rewritetest"
)

// A question over a view is planned, or refused, as the question that has the view's query in WITH, also where it has a WITH clause itself.
func TestViewsAreQueriesInWith(t *testing.T) {
	const tables = `people
  id    integer not null unique
  city  integer not null
  age   integer
cities
  city  integer not null unique
  size  integer
  name  text
  values name a b
big
  view SELECT c.city, c.name FROM public.cities c WHERE (c.size > 3)
named
  view WITH big AS (SELECT b.city, b.name AS kind FROM public.big b) SELECT big.city, big.kind FROM big WHERE (big.kind ~~ 'a%'::text)
self
  view SELECT s.city FROM public.self s
people_of
  view SELECT p.city FROM public.people p
`
	snapshot := rewritetest.ParseSnapshot(t, tables, `version: 1
dataset: test
neighbours: add-remove
tables:
  people: {unit: {row: id}, columns: {age: {bounds: [0, 100]}}}
  cities: {public: true}
  big: {public: true}
  named: {public: true}
  self: {public: true}
  people_of: {public: true}
budgets:
  - {dataset: true, form: approx, epsilon: 10, delta: 1e-6}
`)
	big := "big AS (SELECT c.city, c.name FROM cities c WHERE c.size > 3)"
	views := map[string]string{"big": big, "named": strings.Replace(big, "big", "b", 1) +
		", named AS (WITH big AS (SELECT b.city, b.name AS kind FROM b) SELECT big.city, big.kind FROM big WHERE big.kind LIKE 'a%')"}
	shown := func(sql string) string {
		private, public, err := pipeline.Read(sql, snapshot, rewritetest.Sharp())
		switch {
		case err != nil:
			return string(fault.CodeOf(err))
		case public != nil:
			return fmt.Sprint(public.Tree(), public.Columns())
		default:
			return explain.Explain(private).Tree
		}
	}
	r := rand.New(rand.NewPCG(8, 8))
	pick := func(all ...string) string { return all[r.IntN(len(all))] }
	for range 200 {
		view := pick("big", "named")
		column := map[string]string{"big": "name", "named": "kind"}[view]
		sql := fmt.Sprintf(pick("SELECT %[1]s.%[2]s, count(*) FROM people %[3]s JOIN %[4]s ON people.city = %[1]s.city GROUP BY 1",
			"SELECT count(*) FROM %[4]s, people WHERE %[1]s.city = people.city AND %[2]s < 'b'", "SELECT %[1]s.* FROM %[4]s ORDER BY %[5]s",
			"SELECT count(*) FROM people WHERE city %[6]s IN (SELECT city FROM %[4]s)", "SELECT sum(age) FROM %[4]s JOIN people USING (%[5]s)",
			"SELECT count(*) FROM (SELECT city FROM %[4]s) x JOIN people USING (city)"), "v", column, pick("", "CROSS JOIN cities"), "%s AS v",
			pick("city", "nothing", column), pick("", "NOT"))
		wanted := shown("WITH " + views[view] + " " + fmt.Sprintf(sql, view))
		if got := shown(fmt.Sprintf(sql, pick(view, "public."+view, "test.public."+view))); got != wanted {
			t.Errorf("%s of %s:\n%s\nnot\n%s", sql, view, got, wanted)
		}
	}
	if got, wanted := shown("WITH big AS (SELECT name FROM big) SELECT count(*) FROM big"),
		shown("SELECT count(*) FROM (SELECT name FROM big) x"); got != wanted {
		t.Errorf("a query in WITH with a view's name:\n%s\nnot\n%s", got, wanted)
	}
	for sql, code := range map[string]fault.Code{"SELECT city FROM self": fault.CodeUnsupported,
		"SELECT city FROM other.big": fault.CodeUnknownTable, "SELECT city FROM people_of": fault.CodeNotAggregate,
		"SELECT city, count(*) FROM people_of GROUP BY 1": fault.CodeMissingKeys} {
		if got := shown(sql); got != string(code) {
			t.Errorf("%s: %s, not %s", sql, got, code)
		}
	}
}
