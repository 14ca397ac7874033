package stability_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/parsetest"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/rewritetest"
)

// Many light statements are not light together: what all of them take of a hundred rows of one unit stays within 40 ms.
//
// covers: B4 C1
func TestLightStatementsHaveALimit(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	snapshot := rewritetest.ParseSnapshot(t, `visits
  visit_id integer not null unique
  person_id integer not null
  paid integer not null
`, `version: 1
dataset: test
neighbours: add-remove
tables:
  visits: {unit: {column: person_id}, max_rows: 64, max_groups: 4, columns: {paid: {bounds: [0, 100]}}}
budgets:
  - {dataset: true, form: approx, epsilon: 10, delta: 1e-6}
`)
	r := rand.New(rand.NewPCG(34, 1))
	accepted, refused, most := 0, 0, 0.0
	for range 30 {
		var parts []string
		conditions := r.IntN(10)
		for i := range []int{1, 8, 20, 32}[r.IntN(4)] { // each is a separate statement
			part := fmt.Sprintf("percentile_cont(0.%02d) WITHIN GROUP (ORDER BY paid) FILTER (WHERE paid > %d", 1+i, i)
			for range conditions {
				part += fmt.Sprintf(" AND length(paid::text || '%s') > %d", strings.Repeat("x", r.IntN(100)), r.IntN(9))
			}
			parts = append(parts, part+")")
		}
		sql := "SELECT " + strings.Join(parts, ", ") + " FROM visits"
		p, err := pipeline.Rewrite(sql, snapshot, rewritetest.Sharp())
		if err != nil {
			if refused++; fault.CodeOf(err) != fault.CodeFanOut {
				t.Errorf("%.200s\n%s", sql, parsetest.ShowFault(err))
			}
			continue
		}
		accepted++
		all := int64(0)
		for _, s := range rewritetest.StatementsOf(p) {
			all += s.Claim.AllWork.Int64()
		}
		ms := float64(all) / 1e6
		if most = max(most, ms); ms > 40 {
			t.Errorf("a hundred rows take %.0f ms in %d statements: %.200s", ms, len(parts), sql)
		}
	}
	if t.Logf("%d are accepted, %d refused; the most is %.0f ms", accepted, refused, most); accepted < 5 || refused < 3 {
		t.Errorf("%d are accepted, %d refused", accepted, refused)
	}
}

// What is computed of texts that the policy limits to few bytes is answered of texts without a limit too: their rows are capped where one
// takes too long. Functions of texts stand as keys, in conditions, in CASE and below aggregates, over each shape of unit.
func TestLongTextsAreAnswered(t *testing.T) {
	t.Parallel()
	snapshot := func(limit string) func(sql string) error {
		on := rewritetest.ParseSnapshot(t, `people
  person_id integer not null unique
  note text
visits
  visit_id integer not null unique
  person_id integer not null
  note text
parts
  visit_id integer not null references visits(visit_id)
  note text
`, strings.ReplaceAll(`version: 1
dataset: test
neighbours: add-remove
tables:
  people: {unit: {row: person_id}, columns: {note: {keys: privateLIMIT}}}
  visits: {unit: {column: person_id}, max_rows: 64, max_groups: 4, columns: {note: {keys: privateLIMIT}}}
  parts: {unit: {via: visit_id, to: visits}, max_rows: 64, max_groups: 4, columns: {note: {keys: privateLIMIT}}}
budgets:
  - {dataset: true, form: approx, epsilon: 10, delta: 1e-6}
`, "LIMIT", limit))
		return func(sql string) error {
			_, err := pipeline.Rewrite(sql, on, rewritetest.Sharp())
			return err
		}
	}
	short, long := snapshot(", max_length: 40"), snapshot("")
	answered, all := 0, 0
	for _, table := range []string{"people", "visits", "parts"} {
		for _, f := range []string{"note", "length(note)", "octet_length(note)", "upper(note)", "lower(note)", "initcap(note)", "left(note, 20)",
			"right(note, 20)", "substr(note, 2, 30)", "btrim(note)", "note || '-' || note", "concat(note, 'x')", "length(upper(note))",
			"strpos(note, 'ab')", "length(note) + length(lower(note))", "left(upper(note), 3)", "coalesce(note, 'none')"} {
			text, number := f, "length("+f+")"
			if strings.HasPrefix(f, "length") || strings.Contains(f, "octet") || strings.HasPrefix(f, "strpos") {
				text, number = f+"::text", f
			}
			for _, use := range []string{"SELECT $value, count(*) FROM $table GROUP BY 1", "SELECT count(*) FROM $table WHERE $text LIKE '%ab%'",
				"SELECT count(*) FROM $table WHERE $number > 7", "SELECT sum(least(greatest($number, 0), 99)) FROM $table",
				"SELECT CASE WHEN $number > 7 THEN 'long' ELSE 'short' END, count(*) FROM $table GROUP BY 1",
				"SELECT count(DISTINCT $value) FROM $table", "SELECT count(*) FILTER (WHERE $text = 'ab') FROM $table",
				"SELECT $value, $number, count(*) FROM $table GROUP BY 1, 2"} {
				sql := strings.NewReplacer("$text", text, "$number", number, "$value", f, "$table", table).Replace(use)
				if all++; short(sql) != nil {
					continue
				}
				answered++
				if err := long(sql); err != nil {
					t.Errorf("%s\n%s", sql, parsetest.ShowFault(err))
				}
			}
		}
	}
	if t.Logf("%d of %d", answered, all); answered < all/2 {
		t.Errorf("only %d of %d are answered of short texts", answered, all)
	}
}
