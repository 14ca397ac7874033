package stability_test

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/parsetest"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/rewritetest"
)

// pairedSnapshot is people beside 341 public shops, which no condition ties to them, and visits that a cap can bound.
func pairedSnapshot(t *testing.T) *catalog.Snapshot {
	t.Helper()
	return rewritetest.ParseSnapshot(t, `people
  person_id integer not null unique
  age integer
  income integer
  sex text
  weight numeric
  name text
visits
  visit_id integer not null unique
  person_id integer not null
  paid integer
shops
  shop_id integer not null unique
  rows 341
`, `version: 1
dataset: test
neighbours: add-remove
tables:
  people: {unit: {row: person_id}, columns: {age: {domain: [0, 1, 2, 3]}, income: {bounds: [0, 100]}, sex: {domain: [f, m]}}}
  visits: {unit: {column: person_id}, max_rows: 64, max_groups: 4}
  shops: {public: true}
budgets:
  - {dataset: true, form: approx, epsilon: 10, delta: 1e-6}
`)
}

// found are questions of which one row decided when an answer left, by far more than its price said.
func found() map[string]string {
	const pairs = " FROM people p JOIN shops s ON s.shop_id > 0 WHERE p.age = 2 AND p.income = 63 AND "
	long := "'" + strings.Repeat("a", 880) + "' || (p.age + s.shop_id)::text"
	like := "(" + long + ") LIKE '%" + strings.Repeat("a", 190) + "b%'"
	var several []string
	for i := range 8 {
		several = append(several, fmt.Sprintf("(SELECT count(*) FROM people p JOIN shops s ON s.shop_id > 0 WHERE p.age = 2 AND "+
			"p.income = %d AND (p.age + s.shop_id)::text LIKE '%%x%%')", i))
	}
	return map[string]string{
		"the pattern":  "SELECT count(*)" + pairs + like,
		"its negation": "SELECT count(*)" + pairs + "NOT (" + like + ")",
		"ILIKE":        "SELECT count(*)" + pairs + strings.Replace(like, "LIKE", "ILIKE", 1),
		"CUBE": "SELECT p.age, p.sex, count(*), count(DISTINCT p.income)" + pairs +
			"(p.age + s.shop_id)::text LIKE '%x%' GROUP BY CUBE (p.age, p.sex)",
		"eight-fold": "SELECT " + strings.Join(several, ", "),
		"strpos":     "SELECT count(*)" + pairs + "strpos(" + long + ", p.name) > 0",
		"its needle": "SELECT count(*)" + pairs + "strpos(" + long + ", 'b" + strings.Repeat("a", 190) + "') > 0",
		"a quotient": "SELECT count(*)" + pairs + strings.Repeat(
			"(p.weight * p.weight * p.weight * p.weight * p.weight) / (p.weight * p.weight) > "+
				"s.shop_id AND ", 3) + "true",
	}
}

// What one row could make slow is refused, with what would make it faster.
//
// covers: B4 C1
func TestNoRowDecidesABoundary(t *testing.T) {
	t.Parallel()
	snapshot := pairedSnapshot(t)
	for name, sql := range found() {
		_, err := pipeline.Rewrite(sql, snapshot, rewritetest.Sharp())
		if fault.CodeOf(err) != fault.CodeFanOut {
			t.Errorf("%s: %v, want %s\n%s", name, err, fault.CodeFanOut, sql)
			continue
		}
		t.Logf("%s: %s", name, parsetest.ShowFault(err))
	}
	for name, hint := range map[string]string{"the pattern": "pattern", "strpos": "constant needle"} {
		_, err := pipeline.Rewrite(found()[name], snapshot, rewritetest.Sharp())
		if shown := parsetest.ShowFault(err); !strings.Contains(shown, hint) {
			t.Errorf("%s: %s, want %q", name, shown, hint)
		}
	}
	for _, sql := range []string{
		"SELECT count(*) FROM people WHERE name LIKE '%smith%' AND name NOT ILIKE '%jones%'",
		"SELECT count(*) FROM people p JOIN shops s ON s.shop_id > 0 WHERE p.age = 2 AND p.income = 63",
		"SELECT age, sex, count(*) FROM people WHERE name LIKE '%smith%' GROUP BY CUBE (age, sex)",
		"SELECT count(*) FROM people WHERE strpos(name, 'smith') > 0 AND weight / 3 * weight > 7",
	} {
		if _, err := pipeline.Rewrite(sql, snapshot, rewritetest.Sharp()); err != nil {
			t.Errorf("%s\n%s", sql, parsetest.ShowFault(err))
		}
	}
}

// Statements of one question have one limit together: their caps are lowered, the largest first, until they fit.
//
// covers: B4 C1
func TestStatementsShareOneLimit(t *testing.T) {
	t.Parallel()
	snapshot := pairedSnapshot(t)
	pairs := func(sql string) *big.Int {
		t.Helper()
		p, err := pipeline.Rewrite(sql, snapshot, rewritetest.Sharp())
		if err != nil {
			t.Fatalf("%s\n%s", sql, parsetest.ShowFault(err))
		}
		return p.Different()[0].Query.Pairs
	}
	const block = "SELECT count(*) AS n FROM visits a JOIN visits b ON a.person_id = b.person_id WHERE a.paid > b.paid + %d"
	one := pairs(fmt.Sprintf(block, 0))
	var several []string
	for i := range 8 {
		several = append(several, fmt.Sprintf("(%s)", fmt.Sprintf(block, i)))
	}
	all := pairs("SELECT " + strings.Join(several, ", "))
	t.Logf("a row meets %v rows, in each of eight releases %v", one, all)
	if all.Cmp(one) >= 0 {
		t.Errorf("each of eight releases pairs a row with %v others, as one does alone (%v)", all, one)
	}
}
