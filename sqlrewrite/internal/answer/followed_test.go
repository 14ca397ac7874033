package answer_test

import (
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/internal/pgtest"
	"noisegate.example/internal/randomtest"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/answer"
	"noisegate.example/sqlrewrite/internal/explain"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/internal/sqlprint"
	"noisegate.example/sqlrewrite/proofs/gen"
)

// followedQueries are outputs that are computed from several released rows, each kind with its intervals.
var followedQueries = map[string]string{
	"share of total":  "SELECT ward, 100.0 * count(*) / sum(count(*)) OVER () FROM visits GROUP BY ward",
	"share of season": "SELECT ward, season, count(*)::float8 / sum(count(*)) OVER (PARTITION BY season) FROM visits GROUP BY ward, season",
	"running total":   "SELECT ward, sum(count(*)) OVER (ORDER BY ward) FROM visits GROUP BY ward",
	"running sum": "SELECT ward, season, sum(sum(minutes)) OVER (PARTITION BY ward ORDER BY season DESC) " +
		"FROM visits GROUP BY ward, season",
	"running share": "SELECT ward, sum(count(*)) OVER (ORDER BY ward) / sum(count(*)) OVER () FROM visits GROUP BY ward",
	"moving mean": "SELECT season, avg(count(*)) OVER (ORDER BY season ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) " +
		"FROM visits GROUP BY season",
	"difference":       "SELECT season, count(*) - lag(count(*)) OVER (ORDER BY season) FROM visits GROUP BY season",
	"lag with default": "SELECT season, count(*) - lag(count(*), 1, 0) OVER (ORDER BY season) FROM visits GROUP BY season",
	"growth": "SELECT season, round(100.0 * n / lead(n) OVER (ORDER BY season DESC) - 100, 1) " +
		"FROM (SELECT season, count(*) AS n FROM visits GROUP BY season) t",
	"against the first": "SELECT season, (n - first_value(n) OVER (ORDER BY season))::numeric / nullif(n, 0) " +
		"FROM (SELECT season, count(*) AS n FROM visits GROUP BY season) t",
	"means": "SELECT season, avg(minutes) - lag(avg(minutes)) OVER (ORDER BY season) FROM visits GROUP BY season",
	"through layers": "WITH m AS (SELECT season, count(*) AS n FROM visits GROUP BY season), " +
		"d AS (SELECT season, n, lag(n) OVER (ORDER BY season) AS p FROM m) SELECT n, n - coalesce(p, 0) FROM d WHERE season > 1",
	"sum of groups": "SELECT season, sum(n), avg(n) FROM (SELECT ward, season, count(*) AS n FROM visits GROUP BY ward, season) t " +
		"GROUP BY season",
	"rollup": "SELECT season, ward, count(*), sum(minutes), avg(minutes), 100.0 * count(*) FILTER (WHERE minutes > 5) / count(*) " +
		"FROM visits GROUP BY ROLLUP (season, ward)",
	"ratio of sums": "SELECT sum(m) / sum(n) FROM (SELECT ward, count(*) AS n, sum(minutes) AS m FROM visits GROUP BY ward) t",
	"filtered":      "SELECT sum(n) FILTER (WHERE ward > 2) / sum(n) FROM (SELECT ward, count(*) AS n FROM visits GROUP BY ward) t",
}

// answers are the intervals of repeated releases of one question about fixed rows, and its true answer.
type answers struct {
	plan  *plan.Plan
	truth *plan.Released
	rows  []answer.PostRow
	types []string
}

// followedAnswers prepares repeated releases of a question about visits: which rows an output is computed from is asked of PostgreSQL once,
// as it is the same for all.
func followedAnswers(t *testing.T, query string, o plan.Options, computed func(sqlprint.Post) ([]answer.PostRow, []string)) answers {
	t.Helper()
	p, err := pipeline.Rewrite(query, rewritetest.ParseSnapshot(t, rewritetest.WardTables, rewritetest.WardPolicy), o)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	a := answers{plan: p, truth: &plan.Released{Plan: p}}
	err = plan.EachPublicTuple(p.Query, func(i int, keys []catalog.Key) error {
		rows := int64(300 + 211*i%700)
		a.truth.Rows = append(a.truth.Rows, plan.ReleasedRow{Keys: keys, Noisy: trueRow(p, rows).Noisy})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	post, ok := a.truth.Post()
	if !ok {
		t.Fatalf("%s: no post-processing", query)
	}
	a.rows, a.types = computed(post)
	return a
}

// release adds noise once.
func (a answers) release(t *testing.T, s *mechanisms.Sampler) *answer.Answer {
	t.Helper()
	noisy := &plan.Released{Plan: a.plan}
	for _, row := range a.truth.Rows {
		drawn := plan.ReleasedRow{Keys: row.Keys}
		for i, r := range a.plan.Releases {
			drawn.Noisy = append(drawn.Noisy, r.Mechanism.Draw(s).Release(mechanisms.Seal(row.Noisy[i])))
		}
		noisy.Rows = append(noisy.Rows, drawn)
	}
	answer, err := answer.Complete(noisy, a.rows, a.types)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// misses counts, for each bar of the answer, how many releases have an interval without the true value; bars without an interval are nil.
func (a answers) misses(t *testing.T, s *mechanisms.Sampler, repeats int) (each map[[2]int]int, any int) {
	t.Helper()
	each = make(map[[2]int]int)
	for range repeats {
		missed := false
		for j, row := range a.release(t, s).Intervals {
			for i, interval := range row {
				if interval == nil {
					continue
				}
				v := rewritetest.Number(t, a.rows[j].Values[i].Text)
				out := rewritetest.Number(t, interval.Lo).Cmp(v) > 0 || rewritetest.Number(t, interval.Hi).Cmp(v) < 0
				missed = missed || out
				if each[[2]int{j, i}] += 0; out {
					each[[2]int{j, i}]++
				}
			}
		}
		if missed {
			any++
		}
	}
	return each, any
}

// Intervals of what is computed from several released rows hold as often as they say: each for itself, and all together where that is asked
// for. The randomness is fixed.
func TestFollowedIntervalsCover(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	db := pgtest.New(t)
	conn := db.Conn(t, db.DSN)
	repeats := randomtest.Times(40, 500)
	s := rewritetest.FixedSampler(t)
	for _, name := range slices.Sorted(maps.Keys(followedQueries)) { // in one order, so that the randomness is fixed
		query := followedQueries[name]
		for _, level := range []mechanisms.Confidence{0.8, 0.95} {
			o := plan.Options{Epsilon: mechanisms.EpsilonUnit / 2, Mechanism: plan.MechanismLaplace, Currency: catalog.Pure, Confidence: level}
			if level == 0.95 || strings.HasPrefix(name, "running") {
				o.Epsilon, o.Rho, o.Mechanism, o.Currency = 0, mechanisms.RhoUnit/20, plan.MechanismGaussian, catalog.ZCDP
			}
			a := followedAnswers(t, query, o, func(post sqlprint.Post) ([]answer.PostRow, []string) { return gen.RunPost(t, conn, post) })
			each, _ := a.misses(t, s, repeats)
			if len(each) < len(a.rows)-1 {
				t.Errorf("%s: %d bars in %d rows", name, len(each), len(a.rows))
			}
			for bar, n := range each {
				if rewritetest.Beyond(n, repeats, float64(level)) {
					t.Errorf("%s at %g, row %d, output %d: %d of %d intervals miss", name, float64(level), bar[0], bar[1], n, repeats)
				}
			}
			o.Simultaneous = true
			a = followedAnswers(t, query, o, func(post sqlprint.Post) ([]answer.PostRow, []string) { return gen.RunPost(t, conn, post) })
			if each, any := a.misses(t, s, repeats); rewritetest.Beyond(any, repeats, float64(level)) {
				t.Errorf("%s at %g together: of %d answers %d have a bar that misses: %v", name, float64(level), repeats, any, each)
			}
		}
	}
}

// A total's interval is that of the sum of its noise, and no wider: of n equal noises, about √n times that of one.
func TestFollowedIntervalsAreNarrow(t *testing.T) {
	db := pgtest.New(t)
	conn := db.Conn(t, db.DSN)
	o := plan.Options{Rho: mechanisms.RhoUnit / 20, Mechanism: plan.MechanismGaussian, Currency: catalog.ZCDP, Confidence: 0.95}
	a := followedAnswers(t, "SELECT ward, season, count(*), sum(count(*)) OVER () FROM visits GROUP BY ward, season", o,
		func(post sqlprint.Post) ([]answer.PostRow, []string) { return gen.RunPost(t, conn, post) })
	answer := a.release(t, rewritetest.FixedSampler(t))
	width := func(i int) float64 {
		bar := answer.Intervals[0][i]
		w, _ := new(big.Rat).Sub(rewritetest.Number(t, bar.Hi), rewritetest.Number(t, bar.Lo)).Float64()
		return w
	}
	if ratio := width(3) / width(2) / math.Sqrt(12); ratio < 0.95 || ratio > 1.1 {
		t.Errorf("the interval of the total is %g times the root of 12 as wide as one of its parts", ratio)
	}
}

// What chooses rows by released values, and what is no fraction of sums, has no interval, and a note says so.
func TestWhatIsNotFollowed(t *testing.T) {
	snapshot := rewritetest.ParseSnapshot(t, rewritetest.WardTables, strings.Replace(rewritetest.WardPolicy, "season: {domain: [1, 2, 3]}",
		"season: {keys: private}", 1))
	const t1 = "(SELECT ward, count(*) AS n FROM visits GROUP BY ward) t"
	for _, query := range []string{
		"SELECT ward, sum(count(*)) OVER (ORDER BY count(*)) FROM visits GROUP BY ward",
		"SELECT ward, sum(count(*)) OVER (PARTITION BY count(*) > 10) FROM visits GROUP BY ward",
		"SELECT ward, sum(count(*)) OVER () FROM visits GROUP BY ward HAVING count(*) > 10",
		"SELECT season, sum(count(*)) OVER () FROM visits GROUP BY season",
		"SELECT sum(n) OVER () FROM " + t1 + " WHERE n > 10",
		"SELECT sum(n) OVER () FROM (SELECT n FROM " + t1 + " LIMIT 2) u",
		"SELECT sum(n) OVER () FROM (SELECT DISTINCT n FROM " + t1 + ") u",
		"SELECT sum(n) FILTER (WHERE n > 3) FROM " + t1,
		"SELECT sum(n) FROM " + t1 + " GROUP BY n > 3",
		"SELECT lag(n, n::int) OVER (ORDER BY ward) FROM " + t1,
		"SELECT max(n) FROM " + t1,
		"SELECT sum(n * n) FROM " + t1,
		"SELECT sum(a) OVER (ORDER BY ward) FROM (SELECT ward, avg(minutes) AS a FROM visits GROUP BY ward) t",
		"SELECT sum(s) OVER () FROM (SELECT sum(n) OVER (ORDER BY ward) AS s FROM " + t1 + ") u",
	} {
		o := rewritetest.Sharp()
		o.Delta = mechanisms.DeltaUnit / 1_000_000
		p, err := pipeline.Rewrite(query, snapshot, o)
		if err != nil {
			t.Errorf("%s: %v", query, err)
			continue
		}
		notes := fmt.Sprint(explain.Explain(p).Notes)
		if !strings.Contains(notes, "no-interval") {
			t.Errorf("%s: %s", query, notes)
		}
	}
}
