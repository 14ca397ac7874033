package domain_test

import (
	"testing"

	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/bind"
	"noisegate.example/sqlrewrite/internal/parse"
	"noisegate.example/sqlrewrite/internal/parsetest"
	"noisegate.example/sqlrewrite/internal/rewritetest"
)

// The work that a condition takes leaves enough for the key after it, whether all its values were looked at or not: keys are public in any
// order.
//
// covers: A44
func TestConditionsLeaveWorkForOtherKeys(t *testing.T) {
	t.Parallel()
	snapshot := rewritetest.ParseSnapshot(t, "t\n  id integer not null unique\n  wide integer\n  other integer", `version: 1
dataset: test
neighbours: add-remove
tables:
  t: {unit: {row: id}, columns: {wide: {bounds: [-32768, 10]}, other: {bounds: [-9000, 9000]}}}
budgets:
  - {dataset: true, form: approx, epsilon: 10, delta: 1e-6}
`)
	conditions := []string{
		"wide / nullif(wide, 0) > 0.1", // each value, many times: more work than there is
		"wide / nullif(other, 0) > 0.1",
		"wide % 7 = 3",
		"other > 5",
		"wide IS NULL",
	}
	for _, condition := range conditions {
		for _, key := range []string{"CASE WHEN other < 3 THEN 'low' ELSE 'high' END", "other / 1000", "wide / 3000"} {
			for _, sql := range []string{condition + ", " + key, key + ", " + condition} {
				query, err := parse.Parse("SELECT count(*) FROM t GROUP BY "+sql, "")
				if err != nil {
					t.Fatalf("%s: %v", sql, err)
				}
				bound, err := bind.Releasing(algebra.NewOpened("", query, snapshot))
				if err != nil {
					t.Errorf("%s\n%s", sql, parsetest.ShowFault(err))
					continue
				}
				for _, k := range bound.Keys {
					if k.Private() {
						t.Errorf("%s: a private key", sql)
					}
				}
			}
		}
	}
}
