package oracle

import (
	"errors"
	"fmt"
	"testing"

	"noisegate.example/internal/fault"
	"noisegate.example/internal/pgtest"
	"noisegate.example/sqlrewrite/internal/keys"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
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
