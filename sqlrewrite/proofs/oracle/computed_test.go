package oracle

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"noisegate.example/internal/fault"
	"noisegate.example/internal/pgtest"
	"noisegate.example/sqlrewrite/internal/keys"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/proofs/gen"
)

const visitTables = `
CREATE TABLE public.visit(visit_id int PRIMARY KEY, patient int NOT NULL, began date NOT NULL, ended date, ward text NOT NULL,
  beds int NOT NULL, bought timestamptz NOT NULL, left_at timestamp)`

const visitPolicy = `version: 1
dataset: test
neighbours: add-remove
tables:
  visit:
    unit: {column: patient}
    max_rows: 4
    max_groups: 4
    columns:
      began: {bounds: [2000-01-01, 2020-12-31]}
      ended: {bounds: [2000-01-01, 2020-12-31]}
      ward: {domain: [north, south]}
      beds: {bounds: [1, 400000]}
      bought: {bounds: [2016-01-01, 2020-12-31]}
      left_at: {bounds: [2016-01-01, 2020-12-31]}
budgets:
  - {dataset: true, form: approx, epsilon: 10, delta: 1e-6}
`

// Keys that are refused without lists are listed: the first and the last, and how many there are.
//
// needs: postgres
func TestListsOfComputedKeys(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.Exec(t, visitTables)
	snapshot := gen.SnapshotOf(t, db, visitPolicy)
	lists := gen.NewLists(db.Conn(t, db.DSN))
	for _, c := range [][3]string{
		{"extract(year FROM began)::int", "", "21: 2000 to 2020"},
		{"extract(year FROM began) * 100 + extract(month FROM began)", "", "252: 200001 to 202012"},
		{"extract(year FROM ended) * 100 + extract(month FROM ended)", "", "253: 200001 to NULL"},
		{"extract(year FROM ended) * 100 + extract(month FROM ended)", "ended IS NOT NULL", "252: 200001 to 202012"},
		{"extract(year FROM began) * 100 + extract(month FROM began)", "began BETWEEN '2001-02-10' AND '2019-04-01'", "219: 200102 to 201904"},
		{"extract(year FROM began) * 100 + extract(month FROM began)", "extract(year FROM began) = 2007", "12: 200701 to 200712"},
		{"date_trunc('week', began + INTERVAL '1 day') - INTERVAL '1 day'", "", "1097: 1999-12-26 00:00:00 to 2020-12-27 00:00:00"},
		{"date_bin('7 days', began::timestamp, '2000-01-02')", "", "1097: 1999-12-26 00:00:00 to 2020-12-27 00:00:00"},
		{"date_trunc('week', bought AT TIME ZONE 'America/New_York')", "", "262: 2015-12-28 00:00:00 to 2020-12-28 00:00:00"},
		{"ward || extract(year FROM began)::int::text", "ward <> 'south'", "21: north2000 to north2020"},
		{"extract(year FROM began) * 100 + extract(month FROM began)", "began <> '2004-01-01' AND extract(doy FROM began) = 1",
			"20: 200001 to 202001"},
		{"round(sqrt(beds)::numeric, 1)", "beds > 500", "6102: 22.4 to 632.5"},
		{"DATE_TRUNC('MONTH', CAST(bought AS TIMESTAMP))", "", "60: 2016-01-01 00:00:00 to 2020-12-01 00:00:00"},
		{"CAST(DATE_TRUNC('week', bought + INTERVAL '1 day') AS TIMESTAMP) + INTERVAL '-1 day'", "",
			"262: 2015-12-27 00:00:00 to 2020-12-27 00:00:00"},
		{"floor(extract(epoch FROM bought)/3600)*3600", "bought >= '2018-06-07 00:00:00+00' AND bought < '2018-06-08 00:00:00+00'",
			"24: 1528329600 to 1528412400"},
		{"floor(extract(epoch FROM left_at)/3600)*2", "", "43826: 806448 to NULL"},
		{"to_char(left_at, 'YYYY-MM-DD HH24') || to_char(left_at, 'Q')", "", "43826: 2016-01-01 001 to NULL"},
		{"CASE WHEN left_at < '2018-01-01' THEN 'before' ELSE to_char(left_at, 'YYYY-MM-DD HH24') || to_char(left_at, 'Q') END", "",
			"26283: 2018-01-01 001 to NULL"},
		{"extract(second FROM left_at) * 2", "", "refused"},
		{"extract(epoch FROM left_at) + 1", "", "refused"},
		{"floor(extract(epoch FROM left_at))", "", "refused"},
		{"extract(month FROM began) * beds", "", "refused"}, // too many
		{"CASE WHEN began > '2030-01-01' THEN extract(year FROM began) ELSE 0 END * 1000 + extract(doy FROM began)", "", "refused"},
	} {
		sql := "SELECT count(*) FROM visit GROUP BY " + c[0]
		if c[1] != "" {
			sql = "SELECT count(*) FROM visit WHERE " + c[1] + " GROUP BY " + c[0]
		}
		if _, err := pipeline.Rewrite(sql, snapshot, rewritetest.Sharp()); fault.CodeOf(err) != fault.CodeMissingKeys {
			t.Errorf("%s: without lists: %v", sql, err)
		}
		p, err := lists.Plan(sql, snapshot, rewritetest.Sharp())
		got := "refused"
		if err == nil {
			all := p.Query.Keys[0].Domain
			name := func(i int) string {
				if all[i].Null {
					return "NULL"
				}
				return all[i].Text
			}
			got = fmt.Sprintf("%d: %s to %s", len(all), name(0), name(len(all)-1))
		} else if fault.CodeOf(err) != fault.CodeMissingKeys {
			t.Errorf("%s: %v: %v", sql, err, errors.Unwrap(err))
		}
		if got != c[2] {
			t.Errorf("%s: %s, want %s", sql, got, c[2])
		}
	}
}

// Conditions leave out computed numbers that no row which meets them has, and no other: also of rows beyond the bounds, which count as the
// bounds.
//
// needs: postgres
func TestConditionsNarrowComputedNumbers(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.Exec(t, visitTables+`; INSERT INTO visit SELECT g, g % 50, date '1999-06-01' + g * 37 % 8200,
		CASE WHEN g % 7 > 0 THEN date '1999-06-01' + g * 53 % 8200 END, (ARRAY['north', 'south'])[1 + g % 2], g * 7919 % 450000 - 1000,
		timestamptz '2015-12-01+00' + g * 104729 % 2000 * interval '1 day 7 minutes', timestamp '2016-01-01' FROM generate_series(1, 3000) g`)
	snapshot := gen.SnapshotOf(t, db, visitPolicy)
	conn := db.Conn(t, db.DSN)
	lists := gen.NewLists(conn)
	r := rand.New(rand.NewPCG(3, 12)) // reproducible on purpose
	pick := func(all ...string) string { return all[r.IntN(len(all))] }
	var condition func(depth int) string
	condition = func(depth int) string {
		if depth > 0 && r.IntN(3) > 0 {
			return fmt.Sprintf(pick("(%s AND %s)", "(%s AND %s)", "(%s OR %s)", "(NOT (%s OR %s))"), condition(depth-1), condition(depth-1))
		}
		day := fmt.Sprintf("'%d-%02d-%02d'", 1999+r.IntN(23), 1+r.IntN(12), 1+r.IntN(28))
		return pick("bought", "began", "ended") + pick(" < ", " >= ", " = ", " <= ", " > ") + day + pick("", "", " AND ended IS NOT NULL",
			fmt.Sprintf(" AND beds BETWEEN %d AND %d", r.IntN(300000)-5000, 100000+r.IntN(400000)), " AND beds / 1000 > 70",
			" AND extract(year FROM bought) = 2018", " AND ward = 'north'")
	}
	narrowed, groups := 0, 0
	const questions = 50
	for range questions {
		key := pick("floor(extract(epoch FROM bought) / 864000) * 864000 + 0", "floor(extract(epoch FROM bought) / 86400)",
			"floor(beds / 5000.0) * 5000", "beds / 4000", "-(beds / 1000)", "beds % 100000 / 1000")
		own := fmt.Sprintf(pick("bought >= '%[1]d-03-01' AND bought < '%[2]d-02-03'", "bought BETWEEN '%[1]d-01-01' AND '%[2]d-12-31'"),
			2014+r.IntN(5), 2018+r.IntN(5))
		if strings.Contains(key, "beds") {
			own = fmt.Sprintf("beds %s %d", pick(">", "<", "<=", "BETWEEN -5 AND"), r.IntN(420000)-1000)
		}
		sql := fmt.Sprintf("SELECT %s, count(*) FROM visit WHERE %s AND %s GROUP BY 1", key, own, condition(1))
		p, err := lists.Plan(sql, snapshot, rewritetest.Sharp())
		if err != nil {
			t.Fatalf("%s: %v: %v", sql, err, errors.Unwrap(err))
		}
		wide := p.Unlisted()
		if wide == nil {
			continue
		}
		narrowed++
		if strings.Contains(key, "beds") { // without lists, hours and the like are refused
			holdsNames(t, sql, snapshot, p)
		}
		all, left := tuplesOf(t, wide), tuplesOf(t, p)
		for _, row := range rewritetest.Sealed(t, conn, wide.Statements(&plan.Draws{})) {
			groups++
			if id := scalar.KeyIdentity(row.Keys); all[id] && !left[id] {
				t.Errorf("%s: rows have the key %v, which is left out of %d", sql, row.Keys, len(all))
			}
		}
	}
	t.Logf("%d of %d questions are narrowed; they have %d groups", narrowed, questions, groups)
	if narrowed < questions/4 || groups < questions {
		t.Errorf("only %d questions are narrowed, of %d groups", narrowed, groups)
	}
}

// A wrong list costs rows: the statement has the listed keys alone, and no row of another key leaves it.
//
// needs: postgres
func TestWrongListsCostRows(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.Exec(t, visitTables+"; INSERT INTO visit "+
		"SELECT g, g, make_date(2000 + g % 3, 5, 5), NULL, 'north', 1, '2017-01-01' FROM generate_series(1, 9) g")
	snapshot := gen.SnapshotOf(t, db, visitPolicy)
	const sql = "SELECT extract(year FROM began)::int, count(*) FROM visit GROUP BY 1"
	o := rewritetest.Sharp()
	o.Lists = &keys.Lists{}
	var needed *keys.Needed
	if _, err := pipeline.Rewrite(sql, snapshot, o); !errors.As(err, &needed) || len(needed.Questions) != 1 {
		t.Fatal(err)
	}
	for _, c := range []struct {
		list keys.Tuples
		rows int
	}{{keys.Tuples{{{Text: "1999"}}, {{Text: "2001"}}, {{Null: true}}}, 1}, {keys.Tuples{}, 0},
		{keys.Tuples{{{Text: "no year"}}}, -1}, {nil, -1}} {
		o.Lists.Known = map[keys.Name]keys.Tuples{needed.Questions[0].Name: c.list}
		p, err := pipeline.Rewrite(sql, snapshot, o)
		if (err != nil) != (c.rows < 0) || err != nil && fault.CodeOf(err) != fault.CodeMissingKeys {
			t.Errorf("%v: %v", c.list, err)
		}
		if err != nil {
			continue
		}
		if rows := rewritetest.Sealed(t, db.Conn(t, db.DSN), p.Statements(&plan.Draws{})); len(rows) != c.rows {
			t.Errorf("%v: %d rows, want %d", c.list, len(rows), c.rows)
		}
	}
}
