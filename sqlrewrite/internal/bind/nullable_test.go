package bind_test

import (
	"testing"

	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
)

// Columns that may be NULL make one release of each statistic over each different condition: of two such columns the moments of rows that
// have both, and of each what is asked of it alone. Of columns that are never NULL all conditions are one.
func TestReleasesOfNullableColumns(t *testing.T) {
	on := rewritetest.ParseSnapshot(t, "t\n  id integer not null unique\n  a integer not null\n  b integer not null\n  n integer\n  m integer",
		`version: 1
dataset: test
neighbours: add-remove
tables:
  t:
    unit: {row: id}
    columns: {a: {bounds: [0, 100]}, b: {bounds: [0, 100]}, n: {bounds: [0, 100]}, m: {bounds: [0, 100]}}
budgets:
  - {dataset: true, form: pure, epsilon: 100}
`)
	for sql, want := range map[string]int{
		"SELECT regr_slope(a, b), corr(a, b), avg(a), avg(b), stddev(a), covar_pop(a, b) FROM t":   6,
		"SELECT regr_slope(n, m), corr(n, m), avg(n), avg(m), stddev(n), covar_pop(n, m) FROM t":   11,
		"SELECT count(*), count(a), avg(a), sum(a), stddev(a), variance(a) FROM t":                 4,
		"SELECT count(*), count(n), avg(n), sum(n), stddev(n), variance(n), avg(n), avg(n) FROM t": 5,
	} {
		p, err := pipeline.Rewrite(sql, on, plan.Options{Epsilon: mechanisms.EpsilonUnit, Confidence: 0.95, Mechanism: plan.MechanismAuto})
		if err != nil {
			t.Fatal(sql, err)
		}
		if got := len(p.Releases); got != want {
			t.Errorf("%s: %d releases, want %d", sql, got, want)
		}
	}
}

// A boolean column of a side of a join that may be absent is NULL there, which is a key: rows without a partner are in a group, as they are
// by a column with a domain.
func TestBooleansOfAbsentSidesHaveNull(t *testing.T) {
	on := rewritetest.ParseSnapshot(t, "p\n  id integer not null unique\nt\n  id integer not null unique\n  b boolean not null\n  k text\n", `version: 1
dataset: test
neighbours: add-remove
tables:
  p: {unit: {row: id, of: person}}
  t: {unit: {row: id, of: person}, columns: {k: {domain: [a, b]}}}
budgets:
  - {dataset: true, form: pure, epsilon: 100}
`)
	for sql, want := range map[string]int64{
		"SELECT t.b, count(*) FROM p JOIN t ON t.id = p.id GROUP BY t.b":                          2,
		"SELECT t.b, count(*) FROM p LEFT JOIN t ON t.id = p.id GROUP BY t.b":                     3,
		"SELECT t.k, count(*) FROM p LEFT JOIN t ON t.id = p.id GROUP BY t.k":                     3,
		"SELECT NOT t.b, count(*) FROM p LEFT JOIN t ON t.id = p.id GROUP BY 1":                   3,
		"SELECT q.b, count(*) FROM (SELECT t.b FROM p LEFT JOIN t ON t.id = p.id) q GROUP BY q.b": 3,
		"SELECT t.b, count(*) FROM p LEFT JOIN t ON t.id = p.id GROUP BY t.b HAVING count(*) > 3": 3,
	} {
		p, err := pipeline.Rewrite(sql, on, plan.Options{Epsilon: mechanisms.EpsilonUnit, Confidence: 0.95, Mechanism: plan.MechanismAuto})
		if err != nil {
			t.Fatal(sql, err)
		}
		if got := p.Query.PublicTuples().Int64(); got != want {
			t.Errorf("%s: %d keys, want %d", sql, got, want)
		}
	}
}
