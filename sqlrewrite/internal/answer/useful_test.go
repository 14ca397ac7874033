package answer_test

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/answer"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
)

// visitsPlan plans a question about visits at ε 0.1; private makes the minutes of a visit private keys.
func visitsPlan(t *testing.T, sql string, private bool) *plan.Plan {
	t.Helper()
	policy := rewritetest.WardPolicy
	if private {
		policy = strings.Replace(policy, "minutes: {bounds: [0, 40]}", "minutes: {keys: private}", 1)
	}
	o := rewritetest.Sharp()
	o.Epsilon = mechanisms.EpsilonUnit / 10
	p, err := pipeline.Rewrite(sql, rewritetest.ParseSnapshot(t, rewritetest.WardTables, policy), o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// answered is the answer with these noisy values of each group, and these rows of the query around the release, each with the number of the
// group that it stems from before its values; "" is NULL. Without such a query there are no rows.
func answered(t *testing.T, p *plan.Plan, noisy [][]int64, rows ...[]string) *answer.Answer {
	t.Helper()
	r := &plan.Released{Plan: p}
	for i, group := range noisy {
		row := plan.ReleasedRow{Keys: []catalog.Key{{Text: fmt.Sprint(i + 1)}}}
		for _, n := range group {
			row.Noisy = append(row.Noisy, big.NewInt(n))
		}
		r.Rows = append(r.Rows, row)
	}
	var types []string
	var post []answer.PostRow
	if p.Post != nil {
		for _, o := range p.Query.Outputs {
			types = append(types, string(o.Expr.Typ()))
		}
		for _, row := range rows {
			number, err := strconv.Atoi(row[0])
			if err != nil {
				t.Fatal(err)
			}
			one := answer.PostRow{Ordinal: number}
			for _, value := range row[1:] {
				one.Values = append(one.Values, catalog.Key{Text: value, Null: value == ""})
			}
			post = append(post, one)
		}
	}
	a, err := answer.Complete(r, post, types)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// halfWidth is that of the noise of a plan's first release.
func halfWidth(p *plan.Plan, level mechanisms.Confidence) int64 {
	return p.Releases[0].Mechanism.HalfWidth(level).Int64()
}

// A row is useful from four half-widths on, below zero too; of several values each has to be.
func TestUsefulRows(t *testing.T) {
	p := visitsPlan(t, "SELECT ward, count(*) FROM visits GROUP BY ward", false)
	w := halfWidth(p, 0.95)
	if got := answered(t, p, [][]int64{{4 * w}, {4*w - 1}, {-4 * w}, {0}}).Useful; got == nil || *got != (answer.Useful{Rows: 2, Of: 4}) {
		t.Errorf("got %v, want 2 of 4", got)
	}
	p = visitsPlan(t, "SELECT ward, count(*), sum(minutes) FROM visits GROUP BY ward", false)
	large, small := 4*halfWidth(p, 0.95), int64(1)
	sum := 4 * p.Releases[1].Mechanism.HalfWidth(0.95).Int64()
	if got := answered(t, p, [][]int64{{large, sum}, {large, small}, {small, sum}, {small, small}}).Useful; got == nil || got.Rows != 1 {
		t.Errorf("got %v, want the row of which both values are useful", got)
	}
	for _, sql := range []string{"SELECT DISTINCT minutes FROM visits",
		"SELECT ward, mode() WITHIN GROUP (ORDER BY season) FROM visits GROUP BY ward"} {
		p := visitsPlan(t, sql, true)
		row := make([]int64, len(p.Releases))
		if got := answered(t, p, [][]int64{row, row}).Useful; got != nil {
			t.Errorf("%s: %v: nothing in it has an interval", sql, got)
		}
	}
}

// A share is useful within five points, in whatever it is written, and nothing else is judged so.
func TestUsefulShares(t *testing.T) {
	for sql, points := range map[string]float64{
		"count(*) FILTER (WHERE season = 1)::numeric / count(*)":                    0.05,
		"round(100.0 * count(*) FILTER (WHERE season = 1) / count(*), 1)":           5.1, // rounding moves it by a step more
		"sum(CASE WHEN season = 1 THEN 1 ELSE 0 END)::numeric / count(*)":           0.05,
		"avg(CASE WHEN season = 1 THEN 1.0 ELSE 0.0 END)":                           0.05,
		"100 * avg((season = 1)::int)":                                              5,
		"avg(minutes)":                                                              0,
		"sum(minutes)::numeric / count(*)":                                          0,
		"count(*)":                                                                  0,
		"count(*)::numeric / count(*) FILTER (WHERE season = 1)":                    0,
		"count(*) FILTER (WHERE season = 1) / nullif(count(*), 0)::numeric":         0.05,
		"count(*) FILTER (WHERE season = 1) - count(*) FILTER (WHERE minutes <= 3)": 0,
	} {
		p := visitsPlan(t, "SELECT ward, "+sql+" FROM visits GROUP BY ward", false)
		if got := answer.PointsOf(p, p.Outputs[1]); got < points-1e-9 || got > points+1e-9 {
			t.Errorf("%s: %v, want %v", sql, got, points)
		}
	}
	p := visitsPlan(t, "SELECT ward, count(*) FILTER (WHERE season = 1)::numeric / count(*) FROM visits GROUP BY ward", false)
	rows := [][]string{{"1", "1", "0.01"}, {"2", "2", "0.01"}, {"3", "3", ""}}
	a := answered(t, p, [][]int64{{20, 2000}, {2, 200}, {5, 0}, {1, 1}}, rows...)
	if *a.Useful != (answer.Useful{Rows: 1, Of: 3}) { // ± 2 points; ± 24; NULL
		t.Errorf("%+v, intervals %v %v", a.Useful, a.Intervals[0][1], a.Intervals[1][1])
	}
}

// The first of many are judged by the noise among all.
func TestUsefulAmongMany(t *testing.T) {
	p := visitsPlan(t, "SELECT ward, count(*) AS n FROM visits GROUP BY ward ORDER BY n DESC LIMIT 2", false)
	alone, among := halfWidth(p, 0.95), halfWidth(p, 1-0.05/4)
	if among <= alone {
		t.Fatalf("%d among four, %d alone", among, alone)
	}
	first, second := 4*among, 4*among-1
	a := answered(t, p, [][]int64{{first}, {second}, {0}, {0}}, []string{"1", "1", fmt.Sprint(first)},
		[]string{"2", "2", fmt.Sprint(second)})
	if *a.Useful != (answer.Useful{Rows: 1, Of: 2}) {
		t.Errorf("%+v, want 1 of 2", a.Useful)
	}
	if width := a.Intervals[0][1]; width.Hi != fmt.Sprint(first+alone) {
		t.Errorf("the interval that is shown became %v", width)
	}
	p = visitsPlan(t, "SELECT ward, count(*) AS n FROM visits GROUP BY ward ORDER BY n DESC", false) // all are shown
	if got := answered(t, p, [][]int64{{4 * alone}}, []string{"1", "1", fmt.Sprint(4 * alone)}).Useful; got.Rows != 1 {
		t.Errorf("all are shown: %+v", got)
	}
}

// Where no group is shown, the answer says how many people a group can have, as the plan's threshold has it.
func TestHiddenGroupsAreNotAbsent(t *testing.T) {
	for _, sql := range []string{"SELECT minutes, count(*) FROM visits GROUP BY minutes", "SELECT DISTINCT minutes FROM visits"} {
		p := visitsPlan(t, sql, true)
		want := algebra.Note{Code: "hidden-groups", Text: fmt.Sprintf("no group clearly has more than %d people; smaller ones are hidden, "+
			"not absent", p.ShownFrom(0.95)-1)}
		if got := fmt.Sprint(answered(t, p, nil).Notes); !strings.Contains(got, fmt.Sprint(want)) {
			t.Errorf("%s: want %v\n%s", sql, want, got)
		}
		row := make([]int64, len(p.Releases))
		if got := fmt.Sprint(answered(t, p, [][]int64{row}).Notes); strings.Contains(got, "hidden") {
			t.Errorf("%s: a group is shown: %s", sql, got)
		}
	}
}

// What a row has to hold is known before there is one, from text and policy alone, and how many can where that is public.
func TestForetold(t *testing.T) {
	alone := visitsPlan(t, "SELECT ward, count(*) AS n FROM visits GROUP BY ward", false)
	needs := 4 * halfWidth(alone, 0.95)
	among := visitsPlan(t, "SELECT ward, count(*) AS n FROM visits GROUP BY ward ORDER BY n DESC LIMIT 2", false)
	rounded := func(n int64) string { return strconv.FormatFloat(answer.RoundUp(float64(n)), 'f', -1, 64) }
	for _, c := range []struct {
		sql      string
		private  bool
		people   int64
		output   string
		needs    string
		of       int64
		possible int64 // negative: not known
	}{
		{"SELECT ward, count(*) AS n FROM visits GROUP BY ward", false, 2*needs + 1, "n", rounded(needs), 4, 2},
		{"SELECT ward, count(*) AS n FROM visits GROUP BY ward", false, 2*needs - 1, "n", rounded(needs), 4, 1},
		{"SELECT ward, count(*) AS n FROM visits GROUP BY ward", false, needs - 1, "n", rounded(needs), 4, 0},
		{"SELECT ward, count(*) AS n FROM visits GROUP BY ward", false, 100 * needs, "n", rounded(needs), 4, 4},
		{"SELECT ward, count(*) AS n FROM visits GROUP BY ward", false, 0, "n", rounded(needs), 4, -1},
		{"SELECT ward, count(*) AS n FROM visits GROUP BY ward ORDER BY n DESC LIMIT 2", false, 100 * needs, "n",
			rounded(4 * halfWidth(among, 1-0.05/4)), 2, 2},
		{"SELECT ward, count(*) AS n FROM visits GROUP BY ward ORDER BY ward LIMIT 3", false, 100 * needs, "n", rounded(needs), 3, 3},
		{"SELECT minutes, count(*) AS n FROM visits GROUP BY minutes", true, 100 * needs, "n", "", 0, -1},
		{"SELECT ward, avg(minutes) AS n FROM visits GROUP BY ward", false, 60, "n", "188", 4, 0},
		{"SELECT ward, avg(minutes) AS n FROM visits GROUP BY ward", false, 188, "n", "188", 4, 2}, // near the upper end fewer will do
		{"SELECT ward, 100.0 * avg((season = 1)::int) AS n FROM visits GROUP BY ward", false, 0, "n", "1230", 4, -1},
		{"SELECT ward, stddev(minutes) AS n FROM visits GROUP BY ward", false, 9000, "n", "924", 4, 4},
		{"SELECT ward, avg(minutes) AS n, sum(minutes) AS s, count(*) AS c FROM visits GROUP BY ward", false, 9000, "c", "", 4, 4},
		{"SELECT ward, avg(minutes) AS n FROM visits GROUP BY ward ORDER BY n DESC LIMIT 1", false, 0, "n", "", 1, -1},
		{"SELECT minutes, count(*) FILTER (WHERE season = 1)::numeric / count(*) AS n FROM visits GROUP BY minutes", true, 0, "n", "", 0, -1},
		{"SELECT ward, sum(minutes) / nullif(count(*) FILTER (WHERE season = 1), 0) AS n FROM visits GROUP BY ward", false, 9000, "", "", 0, -1},
		{"SELECT ward, avg(minutes) * ward AS n FROM visits GROUP BY ward", false, 9000, "", "", 0, -1},
		{"SELECT ward, avg(minutes) - 20 AS n FROM visits GROUP BY ward", false, 9000, "n", "", 4, 4},
		{"SELECT ward, avg(minutes) * 0 AS n FROM visits GROUP BY ward", false, 9000, "", "", 0, -1},
		{"SELECT ward, count(*) AS n FROM visits GROUP BY ROLLUP (ward)", false, 1000, "", "", 0, -1},
	} {
		got := answer.Foretell(visitsPlan(t, c.sql, c.private), c.people)
		if got == nil {
			if c.output != "" {
				t.Errorf("%s: nothing is foretold", c.sql)
			}
			continue
		}
		possible := int64(-1)
		if got.Possible != nil {
			possible = *got.Possible
		}
		if got.Output != c.output || c.needs != "" && got.Needs != c.needs || got.Of != c.of || possible != c.possible {
			t.Errorf("%s, %d people: %+v, possible %d, want %+v", c.sql, c.people, got, possible, c)
		}
	}
}
