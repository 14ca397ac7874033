package answer_test

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/answer"
	"noisegate.example/sqlrewrite/internal/explain"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
)

// intervalExpressions are outputs whose intervals come from interval arithmetic.
var intervalExpressions = []string{
	"count(*) + sum(age)", "count(*) - sum(age)", "-count(*) * sum(age)", "sum(age) / count(*)", "sum(age) / 7",
	"sum(age)::numeric / nullif(count(*), 0)",
	"count(*) / sum(age)::numeric", "avg(age)", "2 * avg(age) - 1.5", "round(avg(age), 1)", "round(sum(age), -2)", "round(sum(age) / 3.0)",
	"floor(avg(age))", "ceil(sum(age) / 7.0)",
	"abs(count(*) - 50)", "greatest(count(*), sum(age), 10)", "least(count(*), sum(age))", "coalesce(avg(age), 0)", "sum(age)::float8 / 3",
	"var_pop(age)", "var_samp(age)", "stddev_pop(age)", "stddev_samp(age) / 2", "covar_pop(age, 100 - age)", "covar_samp(100 - age, age)",
	"corr(age, 100 - age)",
	"regr_slope(age, 100 - age)", "regr_intercept(age, 100 - age)", "regr_r2(age, 100 - age)", "regr_avgx(age, 100 - age)",
	"regr_avgy(age, 100 - age)", "corr(age, age)",
}

// An interval holds the expression's value at every point of the box: for any true values that the noise allows, what PostgreSQL
// would have computed from them lies inside.
func TestIntervalsHoldTheirBox(t *testing.T) {
	for _, text := range intervalExpressions {
		o := rewritetest.Sharp()
		o.Epsilon = mechanisms.EpsilonUnit
		p := rewritetest.TownPlan(t, "SELECT "+text+" FROM people", o)
		e, form := p.Query.Outputs[0].Expr, p.Outputs[0]
		if !answer.HasInterval(p, e) {
			t.Errorf("%s: no interval", text)
		}
		found := 0
		rapid.Check(t, func(t *rapid.T) {
			noisy, truth, wide, exact := plan.ReleasedRow{}, plan.ReleasedRow{}, answer.NewBox(p), answer.NewBox(p)
			for i := range p.Releases {
				width := rapid.Int64Range(0, 20).Draw(t, "width")
				value := rapid.Int64Range(-60, 60).Draw(t, "value")
				if p.Releases[i].Statistic.Kind == algebra.SumProducts && rapid.Bool().Draw(t, "spread") {
					value += 3000 // so that there is a variance to divide by
				}
				noisy.Noisy = append(noisy.Noisy, big.NewInt(value))
				truth.Noisy = append(truth.Noisy, big.NewInt(value+rapid.Int64Range(-width, width).Draw(t, "noise")))
				wide.Widths[answer.WidthKey{Release: i, Together: form.Releases}] = new(big.Rat).SetInt64(width)
				exact.Widths[answer.WidthKey{Release: i, Together: form.Releases}] = new(big.Rat)
			}
			box, point := wide.Eval(e, form.Releases, noisy), exact.Eval(e, form.Releases, truth)
			if box == nil || point == nil {
				return // a divisor that may be zero
			}
			found++
			if point.Lo.Cmp(box.Lo) < 0 || point.Hi.Cmp(box.Hi) > 0 {
				t.Fatalf("%s: [%s, %s] does not hold [%s, %s]", text, box.Lo, box.Hi, point.Lo, point.Hi)
			}
		})
		if found < 10 && !testing.Short() {
			t.Errorf("%s: only %d intervals were tried", text, found)
		}
	}
}

// What interval arithmetic does not know has no interval, and a note says so.
func TestNoInterval(t *testing.T) {
	for _, text := range []string{"count(*)::text", "CASE WHEN count(*) > 3 THEN 1 ELSE 0 END", "count(*) % 7", "count(*) > 3"} {
		p := rewritetest.TownPlan(t, "SELECT "+text+" FROM people", rewritetest.Sharp())
		notes := explain.Explain(p).Notes
		if answer.HasInterval(p, p.Query.Outputs[0].Expr) || len(notes) != 1 || notes[0].Code != "no-interval" {
			t.Errorf("%s: %v", text, notes)
		}
	}
}

// What is the same whatever was released needs no interval, and no note says that it has none.
func TestConstantsNeedNoInterval(t *testing.T) {
	for _, sql := range []string{
		"SELECT 'all' AS label, count(*) FROM people", "SELECT 'a' || 'b' AS label, NULL::text, true, DATE '2024-01-01', count(*) FROM people",
		"SELECT 'old' AS label, count(*) FROM people WHERE age > 40 UNION ALL SELECT 'young', count(*) FROM people WHERE age <= 40",
		"SELECT sex, grouping(sex), 'n' AS label, count(*) FROM people GROUP BY ROLLUP (sex)",
		"SELECT sex, grouping(sex), 'n' AS label, count(DISTINCT age) FROM people GROUP BY ROLLUP (sex)",
	} {
		p := rewritetest.TownPlan(t, sql, rewritetest.Sharp())
		for _, n := range explain.Explain(p).Notes {
			if n.Code == "no-interval" {
				t.Errorf("%s: %s", sql, n.Text)
			}
		}
	}
	sql := "WITH c AS (SELECT sex, count(*) AS n FROM people GROUP BY sex) SELECT (SELECT max(n) FROM c) AS most, 'a' AS label, n FROM c"
	if notes := fmt.Sprint(explain.Explain(rewritetest.TownPlan(t, sql, rewritetest.Sharp())).Notes); !strings.Contains(notes,
		"no-interval most:") {
		t.Errorf("a chosen number: %s", notes)
	}
}

func TestIntervalText(t *testing.T) {
	for _, c := range []struct {
		num, denom int64
		lo, hi     string
	}{
		{1, 2, "0.5", "0.5"}, {7, 1, "7", "7"}, {1, 3, "0.333333", "0.333334"}, {-1, 3, "-0.333334", "-0.333333"},
		{1, 3_000_000, "0.000000333333", "0.000000333334"},
	} {
		v := big.NewRat(c.num, c.denom)
		if lo, hi := answer.Outward(v, -1), answer.Outward(v, 1); lo != c.lo || hi != c.hi {
			t.Errorf("%s: %s, %s; want %s, %s", v, lo, hi, c.lo, c.hi)
		}
	}
}
