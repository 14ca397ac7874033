package sqlrewrite

import (
	"testing"

	"noisegate.example/catalog"
)

// Every layout of a question that is tried over a copy is proven: with each set of ranks, and without.
func TestLayoutsOverCopies(t *testing.T) {
	on := parseSnapshot(t, "visits\n  visit_id integer not null unique\n  person integer not null\n  ward integer not null\n"+
		"  season integer not null\n  minutes integer not null\n  reason text\n", `version: 1
dataset: test
neighbours: add-remove
tables:
  visits:
    unit: {column: person}
    max_rows: 3
    max_groups: 5
    prepare: {max_rows: 9, ranks: [[ward], [ward, season], [reason]]}
    columns:
      ward: {domain: [1, 2, 3, 4]}
      season: {domain: [1, 2, 3]}
      minutes: {bounds: [0, 40]}
      reason: {keys: private, max_length: 9}
budgets:
  - {dataset: true, form: approx, epsilon: 10, delta: 1e-6}
`)
	table, _ := on.Table("public", "visits")
	v := catalog.Version{Table: catalog.TableName{Schema: "public", Name: "visits"}, Number: 1, OID: 77}
	b, err := Prepare(on, table, v)
	if err != nil {
		t.Fatal(err)
	}
	v.Digest = b.Digest
	serving := Serving(on, v)
	for _, sql := range []string{
		"SELECT count(DISTINCT person) FROM visits",
		"SELECT count(DISTINCT person) FROM visits WHERE minutes > 3",
		"SELECT count(DISTINCT person), count(*) FROM visits",
		"SELECT ward, count(DISTINCT person) FROM visits GROUP BY ward",
		"SELECT ward, season, avg(minutes) FROM visits GROUP BY ward, season",
		"SELECT minutes > 3 AS m, sum(minutes) FROM visits GROUP BY 1",
		"SELECT reason, count(*) FROM visits GROUP BY reason",
		"SELECT ward FROM visits GROUP BY ward ORDER BY count(*) DESC LIMIT 2",
		"SELECT ward, percentile_disc(0.5) WITHIN GROUP (ORDER BY minutes) FROM visits GROUP BY ward",
		"SELECT season, count(*) FROM visits GROUP BY 1 UNION ALL SELECT ward, count(*) FROM visits GROUP BY 1",
	} {
		live, err := Rewrite(sql, on, sharp())
		if err != nil {
			t.Errorf("%s: of the table: %v", sql, err)
			continue
		}
		if p, err := live.On(serving); err != nil {
			t.Errorf("%s: of the copy: %v", sql, err)
		} else if p.Unproven() != nil {
			t.Errorf("%s: a layout is not proven: %v", sql, p.Unproven())
		}
	}
}
