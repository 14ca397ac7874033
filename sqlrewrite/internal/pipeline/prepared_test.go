package pipeline_test

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
)

// Every layout of a question that is tried over a copy is proven: with each set of ranks, and without.
func TestLayoutsOverCopies(t *testing.T) {
	on, serving := preparedVisits(t)
	for _, sql := range []string{
		"SELECT count(DISTINCT person) FROM visits",
		"SELECT count(DISTINCT person) FROM visits WHERE minutes > 3",
		"SELECT count(DISTINCT person), count(*) FROM visits",
		"SELECT ward, count(DISTINCT person) FROM visits GROUP BY ward",
		"SELECT ward, season, avg(minutes) FROM visits GROUP BY ward, season",
		"SELECT minutes > 3 AS m, sum(minutes) FROM visits GROUP BY 1",
		"SELECT ward, EXISTS (SELECT 1 FROM tags t WHERE t.ward = v.minutes) AS m, count(*) FROM visits v GROUP BY 1, 2",
		"SELECT reason, count(*) FROM visits GROUP BY reason",
		"SELECT ward FROM visits GROUP BY ward ORDER BY count(*) DESC LIMIT 2",
		"SELECT ward, percentile_disc(0.5) WITHIN GROUP (ORDER BY minutes) FROM visits GROUP BY ward",
		"SELECT ward, sum(m) FROM (SELECT ward, minutes + 1 AS m FROM visits WHERE minutes > 3) AS v GROUP BY ward",
		"WITH long AS (SELECT * FROM visits WHERE minutes > 30) SELECT ward, count(*) FROM long GROUP BY ward",
		"SELECT v.season, count(*), sum(t.weight) FROM visits v JOIN tags t ON t.ward = v.ward GROUP BY v.season",
		"SELECT v.ward, count(DISTINCT v.person) FROM visits v LEFT JOIN tags t ON t.ward = v.ward AND t.weight > 3 GROUP BY v.ward",
		"SELECT sum(m) FROM (SELECT v.minutes + t.weight AS m FROM tags t JOIN visits v ON t.ward = v.ward) AS j",
		"SELECT season, count(*) FROM visits GROUP BY 1 UNION ALL SELECT ward, count(*) FROM visits GROUP BY 1",
	} {
		live, err := pipeline.Rewrite(sql, on, rewritetest.Sharp())
		if err != nil {
			t.Errorf("%s: of the table: %v", sql, err)
			continue
		}
		if p, err := pipeline.Rewrite(sql, serving, live.Options); err != nil {
			t.Errorf("%s: of the copy: %v", sql, err)
		} else if p.Unproven() != nil {
			t.Errorf("%s: a layout is not proven: %v", sql, p.Unproven())
		}
	}
}

// A copy takes the place of its table where each row is computed of one: of what is computed of several it lacks some. What it cannot
// answer at all, the table does.
func TestCopiesLackRows(t *testing.T) {
	on, serving := preparedVisits(t)
	const taken, left, live = "the copy's", "the table's, though the copy has a plan", "the table's alone"
	for sql, want := range map[string]string{
		"SELECT ward, count(*) FROM visits GROUP BY ward":                                                  taken,
		"SELECT ward, count(*) FROM (SELECT ward FROM visits WHERE minutes > 3) AS v GROUP BY ward":        taken,
		"SELECT ward, count(*) FROM (SELECT DISTINCT person, ward, season FROM visits) AS v GROUP BY ward": left,
		"SELECT ward, sum(n) FROM (SELECT ward, row_number() OVER (PARTITION BY person ORDER BY minutes, season, ward) AS n " +
			"FROM visits) AS v WHERE n < 5 GROUP BY ward": live,
		"SELECT avg(n) FROM (SELECT person, count(*) AS n FROM visits GROUP BY person) AS v WHERE n < 9": live,
		// Where noise is the same, people of whom the copy leaves out the rows that count are missing in it, and in the table nobody is.
		"SELECT count(DISTINCT person) FROM visits":                               taken,
		"SELECT count(DISTINCT person) FROM visits WHERE minutes > 3":             left,
		"SELECT ward, count(DISTINCT person) FROM visits GROUP BY ward":           left,
		"SELECT count(DISTINCT person), count(*) FROM visits WHERE minutes > 3":   left,
		"SELECT ward, count(DISTINCT person), count(*) FROM visits GROUP BY ward": taken, // less noise in one
		"SELECT ward, season, count(DISTINCT person) FROM visits GROUP BY 1, 2":   taken, // biased in both: 12 groups
		"SELECT reason, count(DISTINCT person) FROM visits GROUP BY reason":       taken, // biased in both
		"SELECT count(*) FROM visits WHERE minutes > 3":                           taken,
	} {
		of, err := pipeline.Rewrite(sql, on, plan.Options{Epsilon: mechanisms.EpsilonUnit, Delta: 1000, Mechanism: plan.MechanismLaplace,
			Currency: catalog.Approx, Confidence: 0.95})
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		got := left
		if p, err := pipeline.Rewrite(sql, serving, of.Options); err != nil {
			got = live
		} else if pipeline.Replaces(p, of) {
			got = taken
		}
		if got != want {
			t.Errorf("%s: the plan is %s, not %s", sql, got, want)
		}
	}
}

// Of questions that ask for others of a person's rows no layout over a copy is tried: none is refused as unproven.
func TestCopiesAskForNoOtherRows(t *testing.T) {
	on, serving := preparedVisits(t)
	const again = "(SELECT 1 FROM visits w WHERE w.person = v.person AND w.minutes > v.minutes)"
	for _, sql := range []string{
		"SELECT count(*) FROM visits v WHERE EXISTS " + again,
		"SELECT count(*) FROM visits v WHERE v.ward = 2 OR NOT EXISTS " + again,
		"SELECT count(*) FILTER (WHERE EXISTS " + again + ") FROM visits v",
		"SELECT sum(CASE WHEN EXISTS " + again + " THEN minutes END) FROM visits v",
		"SELECT EXISTS " + again + " AS a, count(*) FROM visits v GROUP BY 1",
		"SELECT count(*) FROM visits v WHERE v.person IN (SELECT person FROM visits WHERE ward = 3)",
		"SELECT count(*) FROM visits v WHERE (v.person, v.ward) NOT IN (SELECT person, season FROM visits)",
		"SELECT sum(m) FROM (SELECT v.minutes AS m FROM visits v WHERE EXISTS " + again + ") AS s",
		"SELECT count(*) FROM visits v LEFT JOIN tags t ON t.ward = v.ward AND EXISTS " + again,
		"SELECT count(*) FROM visits v JOIN visits w ON w.person = v.person",
	} {
		live, err := pipeline.Rewrite(sql, on, rewritetest.Sharp())
		if err != nil {
			t.Errorf("%s: of the table: %v", sql, err)
			continue
		}
		if p, err := pipeline.Rewrite(sql, serving, live.Options); err == nil || fault.CodeOf(err) == fault.CodeUnverified {
			t.Errorf("%s: of the copy: %v, %v", sql, p, err)
		}
	}
}

// Where a row of a copy meets several of a public table, these are cut to as many as are approved, and count for as many of the unit's.
func TestCopiesJoinPublic(t *testing.T) {
	on, serving := preparedVisits(t)
	const tagged = "FROM visits v JOIN tags t ON t.ward = v.ward"
	inAll, groups := func(o *plan.Options) { o.MaxTotal = 2 }, func(o *plan.Options) { o.MaxGroups = 2 }
	for sql, want := range map[string]struct {
		ask                 func(*plan.Options)
		rows, groups, total int64 // 0: the table answers
	}{
		"SELECT count(*) FROM visits":                                               {rows: 3, groups: 1, total: 3},
		"SELECT count(*) " + tagged:                                                 {rows: 12, groups: 1, total: 12},
		"SELECT count(*), sum(t.weight) " + tagged:                                  {ask: inAll, rows: 8, groups: 1, total: 8},
		"SELECT v.ward, count(*) " + tagged + " GROUP BY 1":                         {rows: 36, groups: 4, total: 36},
		"SELECT v.ward, count(*), sum(t.weight) " + tagged + " GROUP BY 1":          {ask: groups, rows: 12, groups: 2, total: 24},
		"SELECT count(*) " + tagged + " JOIN tags u ON u.ward = v.season":           {rows: 48, groups: 1, total: 48},
		"SELECT count(*) FROM visits v JOIN wards w ON w.ward = v.ward":             {rows: 3, groups: 1, total: 3},
		"SELECT count(*) FROM visits v JOIN tags t ON t.ward < v.ward":              {},
		"SELECT count(*) FROM visits v CROSS JOIN tags t":                           {},
		"SELECT count(*) FROM visits v JOIN tags t ON t.ward = v.ward + v.season":   {},
		"SELECT count(*) FROM visits v JOIN (SELECT ward FROM tags) t USING (ward)": {},
	} {
		o := rewritetest.Sharp()
		if want.ask != nil {
			want.ask(&o)
		}
		live, err := pipeline.Rewrite(sql, on, o)
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		p, err := pipeline.Rewrite(sql, serving, live.Options)
		switch {
		case want.rows == 0:
			if err == nil || fault.CodeOf(err) == fault.CodeUnverified {
				t.Errorf("%s: a copy is asked: %v", sql, err)
			}
		case err != nil || p.Unproven() != nil:
			t.Errorf("%s: %v", sql, errors.Join(err, p.Unproven()))
		case p.Bounding.MaxRows != want.rows || p.Bounding.MaxGroups != want.groups || p.Bounding.MaxTotal != want.total:
			b := p.Bounding
			t.Errorf("%s: %d rows, %d groups, %d in all, want %+v", sql, b.MaxRows, b.MaxGroups, b.MaxTotal, want)
		}
	}
}

// preparedVisits is a table with a copy, and the snapshot in which that takes its place.
func preparedVisits(t *testing.T) (on, serving *catalog.Snapshot) {
	t.Helper()
	on = rewritetest.ParseSnapshot(t, "visits\n  visit_id integer not null unique\n  person integer not null\n  ward integer not null\n"+
		"  season integer not null\n  minutes integer not null\n  reason text\n"+
		"tags\n  ward integer not null\n  weight integer not null\nwards\n  ward integer not null unique\n", `version: 1
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
  tags:
    public: true
    columns:
      weight: {bounds: [0, 9]}
  wards: {public: true}
budgets:
  - {dataset: true, form: approx, epsilon: 10, delta: 1e-6}
`)
	table, _ := on.Table("public", "visits")
	v := catalog.Version{Table: catalog.TableName{Schema: "public", Name: "visits"}, Number: 1, OID: 77}
	b, err := pipeline.Prepare(on, table, v)
	if err != nil {
		t.Fatal(err)
	}
	v.Digest = b.Digest
	return on, pipeline.Serving(on, v)
}

// A version is what its policy asks for as long as the digest of what made it is the same, and releases are found again by it: no other
// Noisegate gives a copy that is made alike another one. One with integers in place of bigints has a digest that no earlier one knows,
// and the same releases.
func TestDigestsOfCopiesStay(t *testing.T) {
	for prepare, want := range map[string]string{
		"{max_rows: 9}": "544821c4496c94897e6310168cd23a8474101f34c00845335cda9764060eeaf7",
		"{max_rows: 9, ranks: [[ward], [ward, season], [reason]]}": "9d059b4b713e89bf017fac0499724c0e5d3b54e30dfb4f9a3fe9e038160887c3",
		"{max_rows: 9, refresh: {append: made, settle: 1m}}":       "da5e0a659af57c71d5bc7a5bb9eb96fcfc733195bb64245983bca4c53c07b2ad",
		"{max_rows: 7, refresh: {append: made, settle: 1m}}":       "fc2c42547e5c1107f15fe6f8a3f62daad486838f5df680e88fb8f71d84f209db",
	} {
		on := rewritetest.ParseSnapshot(t, "visits\n  visit_id integer not null unique\n  person integer not null\n  ward integer not null\n"+
			"  season integer not null\n  reason text\n  made timestamptz not null\n", `version: 1
dataset: test
neighbours: add-remove
tables:
  visits:
    unit: {column: person}
    max_rows: 3
    max_groups: 5
    prepare: `+prepare+`
    columns:
      ward: {domain: [1, 2, 3, 4]}
      season: {domain: [1, 2, 3]}
      reason: {keys: private, max_length: 9}
      made: {expose: false}
budgets:
  - {dataset: true, form: approx, epsilon: 10, delta: 1e-6}
`)
		table, _ := on.Table("public", "visits")
		for _, v := range []catalog.Version{{Number: 1}, {Number: 1, Narrow: true}} {
			b, err := pipeline.Prepare(on, table, v)
			if err != nil {
				t.Fatal(err)
			}
			if got := hex.EncodeToString(b.Digest[:]); (got == want) == v.Narrow {
				t.Errorf("%s: %s, want %s unless numbers are integers: %t", prepare, got, want, v.Narrow)
			}
			v.Table, v.OID, v.Digest = catalog.TableName{Schema: "public", Name: "visits"}, 77, b.Digest
			if every := pipeline.EveryVersion(on, v); every == nil || !strings.HasSuffix(every.DataVersion, "made by "+want) {
				t.Errorf("%s: releases of %q", prepare, every.DataVersion)
			}
			if narrow := strings.Contains(b.Create, "0::integer AS \"person\""); narrow != v.Narrow {
				t.Errorf("numbers are integers: %t, want %t, in %s", narrow, v.Narrow, b.Create)
			}
		}
	}
}
