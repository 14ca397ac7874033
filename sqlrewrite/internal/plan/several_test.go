package plan_test

import (
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/randomtest"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/answer"
	"noisegate.example/sqlrewrite/internal/explain"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
)

// refusedAsWritten is a part of the golden question that is planned in another order than written. Then all blocks of a statement are
// reordered, and their releases may differ from those of the same blocks alone (docs/decisions/0089).
const refusedAsWritten = "visits v, visits w, people p"

// Each block of a statement releases what it would release by itself at its share of the price: the same statements, which are proven by
// themselves, the same claims and the same identity. So whatever holds of statements with one block holds of each.
func TestSeveralReleasesAreTheirBlocks(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	pairs := 0
	for _, clause := range rewritetest.GoldenClauses() {
		if clause == "several" {
			continue
		}
		before := ""
		rewritetest.RunGoldenFile(t, clause, func(t *testing.T, d *datadriven.TestData, snapshot *catalog.Snapshot) string {
			if d.Cmd != "plan" || len(d.CmdArgs) > 1 {
				return d.Expected
			}
			if strings.Contains(d.Input, refusedAsWritten) {
				before = ""
				return d.Expected
			}
			if both, ok := together(before, d.Input, snapshot); ok {
				pairs++
				checkShares(t, both, snapshot, before, d.Input)
			}
			before = d.Input
			return d.Expected
		})
	}
	if pairs < 150 {
		t.Errorf("only %d pairs were planned", pairs)
	}
}

// Each level of totals that are no sums is the release of a query over its own groups, at its share of the price.
func TestLevelsAreTheirQueries(t *testing.T) {
	snapshot := rewritetest.ParseSnapshot(t, rewritetest.WardTables, strings.Replace(rewritetest.WardPolicy, "minutes: {bounds: [0, 40]}",
		"minutes: {keys: private}", 1))
	for _, c := range [][3]string{
		{"SELECT %s, count(DISTINCT minutes) AS n FROM visits WHERE ward > 1 %s", "season", "GROUP BY ROLLUP (season)"},
		{"SELECT count(DISTINCT ward), %s, count(*) AS n FROM visits %s HAVING count(*) > 3", "season + 1", "GROUP BY CUBE (season + 1)"},
		{"SELECT coalesce(%s, -1), count(*) AS n FROM visits %s", "minutes", "GROUP BY GROUPING SETS ((minutes), ())"},
		{"SELECT %s, mode() WITHIN GROUP (ORDER BY v.ward) AS n FROM visits v JOIN visits w USING (visit_id) %s", "w.season",
			"GROUP BY ROLLUP (w.season)"},
	} {
		o, _ := severalOptions()
		sql := fmt.Sprintf(c[0], c[1], c[2])
		p, err := pipeline.Rewrite(sql, snapshot, o)
		if err != nil {
			t.Errorf("%s: %v", sql, err)
			continue
		}
		if len(p.Different()) != 2 {
			t.Errorf("%s: %d releases", sql, len(p.Different()))
			continue
		}
		checkShares(t, p, snapshot, fmt.Sprintf(c[0], c[1], "GROUP BY "+c[1]), fmt.Sprintf(c[0], "NULL::int", ""))
	}
}

// δ is divided among the releases with private keys alone, each once. Public releases are what they were, with their fingerprints, when δ
// was divided among all; what was released of private keys then is one of the forms that answer the question.
func TestDeltaIsForPrivateKeys(t *testing.T) {
	snapshot := rewritetest.ParseSnapshot(t, rewritetest.WardTables, strings.Replace(rewritetest.WardPolicy, "minutes: {bounds: [0, 40]}",
		"minutes: {keys: private}", 1))
	const keyed = "(SELECT minutes, count(*) AS n FROM visits WHERE ward > %d GROUP BY minutes)"
	const public = "(SELECT count(*) AS n FROM visits WHERE ward > %d)"
	o, _ := severalOptions()
	for _, c := range []struct {
		from  []string
		parts []mechanisms.AttoDelta // by release
	}{
		{[]string{fmt.Sprintf(keyed, 1), fmt.Sprintf(public, 1)}, []mechanisms.AttoDelta{o.Delta, 0}},
		{[]string{fmt.Sprintf(public, 1), fmt.Sprintf(keyed, 1), fmt.Sprintf(public, 2)}, []mechanisms.AttoDelta{0, o.Delta, 0}},
		{[]string{fmt.Sprintf(keyed, 1), fmt.Sprintf(keyed, 2), fmt.Sprintf(public, 1)}, []mechanisms.AttoDelta{o.Delta / 2, o.Delta / 2, 0}},
		{[]string{fmt.Sprintf(keyed, 1), fmt.Sprintf(keyed, 1), fmt.Sprintf(public, 1)}, []mechanisms.AttoDelta{o.Delta, 0}},
		{[]string{fmt.Sprintf(keyed, 1), fmt.Sprintf(keyed, 2)}, []mechanisms.AttoDelta{o.Delta / 2, o.Delta / 2}},
	} {
		from := ""
		for i, block := range c.from {
			from += fmt.Sprintf(", %s AS t%d", block, i)
		}
		p, err := pipeline.Rewrite("SELECT 1 AS one FROM "+strings.TrimPrefix(from, ", "), snapshot, o)
		if err != nil {
			t.Fatalf("%s: %v", c.from, err)
		}
		blocks := p.Different()
		if len(blocks) != len(c.parts) {
			t.Errorf("%s: %d releases", c.from, len(blocks))
			continue
		}
		even := o
		even.Epsilon, even.Delta = o.Epsilon/mechanisms.PicoEpsilon(len(blocks)), o.Delta/mechanisms.AttoDelta(len(blocks))
		for i, block := range blocks {
			if got := block.Loss().Delta; got != c.parts[i] {
				t.Errorf("%s: release %d has δ %s, not %s", c.from, i+1, got, c.parts[i])
			}
			text := c.from[i]
			if len(c.from) > len(blocks) { // of two that are equal the first
				text = c.from[2*i]
			}
			earlier, err := pipeline.Rewrite("SELECT t.* FROM "+text+" AS t", snapshot, even)
			if err != nil {
				t.Fatal(err)
			}
			if !answersTo(earlier, block) {
				t.Errorf("%s: what was released at δ %s does not answer release %d", c.from, even.Delta, i+1)
			}
		}
	}
}

// severalOptions are those of a question with two releases, and of one by itself at half its price.
func severalOptions() (both, half plan.Options) {
	both = plan.Options{Epsilon: 2 * mechanisms.EpsilonUnit, Delta: mechanisms.DeltaUnit / 500_000, Mechanism: plan.MechanismAuto,
		Currency: catalog.Approx, Confidence: 0.95}
	half = both
	half.Epsilon, half.Delta = both.Epsilon/2, both.Delta/2
	return both, half
}

// together is the plan of one query beside another; ok is false where that is none of two releases.
func together(left, right string, snapshot *catalog.Snapshot) (p *plan.Plan, ok bool) {
	o, _ := severalOptions()
	p, err := pipeline.Rewrite(fmt.Sprintf("SELECT 1 AS one FROM (%s) AS a, (%s) AS b", left, right), snapshot, o)
	return p, err == nil && len(p.Different()) == 2
}

func checkShares(t *testing.T, both *plan.Plan, snapshot *catalog.Snapshot, queries ...string) {
	t.Helper()
	whole, half := severalOptions()
	keyed := 0
	for _, block := range both.Different() {
		keyed += algebra.BoolIndex(block.Query.Private())
	}
	if keyed == 1 { // which has δ to itself
		half.Delta = whole.Delta
	}
	var loss mechanisms.Loss
	for i, block := range both.Different() {
		loss = loss.Plus(block.Loss())
		alone, err := pipeline.Rewrite(fmt.Sprintf("SELECT 1 AS one FROM (%s) AS x", queries[i]), snapshot, half)
		if err != nil {
			t.Errorf("%s: %v", queries[i], err)
			return
		}
		if len(block.Parts) != len(alone.Parts) {
			t.Errorf("%s: %d statements, %d alone", queries[i], len(block.Parts), len(alone.Parts))
			return
		}
		found := false
		for _, form := range alone.Forms() { // which one is chosen depends on what is shown
			found = found || form.ReleaseIdentity() == block.Forms()[0].ReleaseIdentity()
		}
		if !found {
			t.Errorf("%s: another release than alone", queries[i])
		}
		for j, part := range block.Parts {
			s, other := part.Statement, alone.Parts[j].Statement
			if found && alone.Forms()[0].ReleaseIdentity() == block.Forms()[0].ReleaseIdentity() &&
				(s.SQL != other.SQL || !reflect.DeepEqual(s.Args, other.Args) || !reflect.DeepEqual(s.Claim, other.Claim)) {
				t.Errorf("%s: another statement than alone: %s\n%s", queries[i], s.SQL, other.SQL)
			}
		}
	}
	if both.Loss() != loss || len(both.Mechanisms()) != len(both.Different()[0].Mechanisms())+len(both.Different()[1].Mechanisms()) {
		t.Errorf("the loss %v is not that of the releases together, %v", both.Loss(), loss)
	}
}

// severalCase is a question over several blocks, and how its answer comes from their true numbers. Rows are those of the truth: what
// PostgreSQL says of them is what TestGoldenStatementsRun runs.
type severalCase struct {
	sql    string
	truth  [][]int64 // by block: the only number of each row
	values []float64 // the first output, by row of the answer
	stems  [][]int   // by row of the answer: the released row of each block, 0 for NULL
}

var severalCases = map[string]severalCase{
	"ratio of totals": {"SELECT (SELECT count(*) FROM visits WHERE minutes > 9)::numeric / (SELECT count(*) FROM visits)",
		[][]int64{{400}, {1000}}, []float64{0.4}, [][]int{{0, 0}}},
	"ratio through CTEs": {"WITH a AS (SELECT count(*) AS n FROM visits WHERE minutes > 9), b AS (SELECT count(*) AS n FROM visits) " +
		"SELECT 100.0 * a.n / (SELECT n FROM b) FROM a", [][]int64{{400}, {1000}}, []float64{40}, [][]int{{1, 0}}},
	"difference": {"SELECT a.n - b.n FROM (SELECT count(*) AS n FROM visits WHERE minutes > 9) a, (SELECT count(*) AS n FROM visits) b",
		[][]int64{{400}, {1000}}, []float64{-600}, [][]int{{1, 1}}},
	"rate by season": {"WITH a AS (SELECT season, count(*) AS n FROM visits WHERE ward = 1 GROUP BY season), " +
		"b AS (SELECT season, count(*) AS n FROM visits GROUP BY season) SELECT a.n::numeric / b.n FROM a JOIN b USING (season)",
		[][]int64{{300, 200, 500}, {600, 800, 1000}}, []float64{0.5, 0.25, 0.5}, [][]int{{1, 1}, {2, 2}, {3, 3}}},
	"against the total": {"SELECT count(*)::numeric / (SELECT count(*) FROM visits) FROM visits GROUP BY season",
		[][]int64{{1000}, {200, 300, 500}}, []float64{0.2, 0.3, 0.5}, [][]int{{0, 1}, {0, 2}, {0, 3}}},
	"product": {"SELECT a.n * b.n FROM (SELECT count(*) AS n FROM visits WHERE minutes > 9) a, (SELECT count(*) AS n FROM visits) b",
		[][]int64{{400}, {1000}}, []float64{400_000}, [][]int{{1, 1}}},
	"sides of a union": {"SELECT count(*) AS n FROM visits WHERE minutes > 9 UNION ALL SELECT count(*) FROM visits GROUP BY season",
		[][]int64{{400}, {200, 300, 500}}, []float64{400, 200, 300, 500}, [][]int{{1, 0}, {0, 1}, {0, 2}, {0, 3}}},
	"through a union": {"SELECT 100.0 * u.n / t.n FROM (SELECT count(*) AS n FROM visits WHERE minutes > 9 UNION ALL SELECT count(*) " +
		"FROM visits WHERE ward = 1 UNION ALL SELECT 2 * count(*) FROM visits WHERE ward = 2) u, (SELECT count(*) AS n FROM visits) t",
		[][]int64{{400}, {300}, {350}, {1000}}, []float64{40, 30, 70}, [][]int{{1, 0, 0, 1}, {0, 1, 0, 1}, {0, 0, 1, 1}}},
	"levels": {"SELECT 2 * count(DISTINCT minutes) AS n FROM visits GROUP BY ROLLUP (season) ORDER BY grouping(season), n",
		[][]int64{{200, 300, 500}, {1000}}, []float64{400, 600, 1000, 2000}, [][]int{{1, 0}, {2, 0}, {3, 0}, {0, 1}}},
	"equal blocks": {"SELECT a.n + b.n FROM (SELECT count(*) AS n FROM visits) a, (SELECT count(*) AS n FROM visits) b",
		[][]int64{{1000}, nil}, []float64{2000}, [][]int{{1, 1}}},
}

// releases adds noise to the true numbers, once.
func (c severalCase) released(t *testing.T, p *plan.Plan, s *mechanisms.Sampler) *answer.Answer {
	t.Helper()
	var blocks []*plan.Released
	for i, block := range p.Several.Plans {
		if p.Several.Same(i) != i {
			continue
		}
		r := &plan.Released{Plan: block}
		err := plan.EachPublicTuple(block.Query, func(j int, keys []catalog.Key) error {
			exact := mechanisms.Seal(big.NewInt(c.truth[i][j]))
			r.Rows = append(r.Rows, plan.ReleasedRow{Keys: keys, Noisy: []*big.Int{block.Releases[0].Mechanism.Draw(s).Release(exact)}})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		blocks = append(blocks, r)
	}
	whole, err := pipeline.Whole(p.Given(blocks))
	if err != nil {
		t.Fatal(err)
	}
	rows, types := make([]answer.PostRow, len(c.values)), []string{"numeric"}
	for range c.truth {
		types = append(types, "bigint")
	}
	for j, v := range c.values {
		rows[j].Values = []catalog.Key{{Text: fmt.Sprint(v)}}
		if v == float64(int64(v)) {
			rows[j].Values[0].Text = fmt.Sprint(int64(v))
		}
		for _, stem := range c.stems[j] {
			rows[j].Values = append(rows[j].Values, catalog.Key{Null: stem == 0, Text: fmt.Sprint(stem)})
		}
	}
	answer, err := answer.Complete(whole, rows, types)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// Intervals of what is computed from several releases hold as often as they say, in each row, and all together where that is asked for. The
// randomness is fixed.
func TestSeveralIntervalsCover(t *testing.T) {
	repeats := randomtest.Times(100, 500)
	if testing.Short() {
		repeats = 50
	}
	snapshot := rewritetest.ParseSnapshot(t, rewritetest.WardTables, rewritetest.WardPolicy)
	for name, c := range severalCases {
		for _, level := range []float64{0.8, 0.95} {
			t.Run(fmt.Sprintf("%s at %v", name, level), func(t *testing.T) {
				s := rewritetest.FixedSampler(t)
				o := plan.Options{Epsilon: mechanisms.EpsilonUnit / 10, Mechanism: plan.MechanismLaplace, Currency: catalog.Approx,
					Confidence: mechanisms.Confidence(level)}
				p, err := pipeline.Rewrite(c.sql, snapshot, o)
				if err != nil {
					t.Fatal(err)
				}
				o.Simultaneous = true
				together, err := pipeline.Rewrite(c.sql, snapshot, o)
				if err != nil {
					t.Fatal(err)
				}
				misses, wrong := make([]int, len(c.values)), 0
				for range repeats {
					for j, miss := range c.misses(t, c.released(t, p, s)) {
						misses[j] += algebra.BoolIndex(miss)
					}
					wrong += algebra.BoolIndex(slices.Contains(c.misses(t, c.released(t, together, s)), true))
				}
				for j, n := range misses {
					if rewritetest.Beyond(n, repeats, level) {
						t.Errorf("row %d: %d of %d intervals miss", j, n, repeats)
					}
				}
				if rewritetest.Beyond(wrong, repeats, level) {
					t.Errorf("in %d of %d answers not all intervals hold", wrong, repeats)
				}
			})
		}
	}
}

// misses says of each row whether its interval misses.
func (c severalCase) misses(t *testing.T, a *answer.Answer) []bool {
	t.Helper()
	missed := make([]bool, len(c.values))
	for j, row := range a.Intervals {
		if row[0] == nil {
			t.Fatalf("row %d has no interval", j)
		}
		v := new(big.Rat).SetFloat64(c.values[j])
		missed[j] = rewritetest.Number(t, row[0].Lo).Cmp(v) > 0 || rewritetest.Number(t, row[0].Hi).Cmp(v) < 0
	}
	return missed
}

// What does not tell which released rows it stems from has no interval, and says so.
func TestSeveralWithoutIntervals(t *testing.T) {
	const byWard = "(SELECT ward, count(*) AS n FROM visits GROUP BY ward)"
	const total = "(SELECT count(*) AS n FROM visits WHERE minutes > 3)"
	for name, sql := range map[string]string{
		"equal blocks with keys": "SELECT a.n - b.n AS d FROM " + byWard + " a JOIN " + byWard + " b ON b.ward = a.ward + 1",
		"one block twice": "WITH w AS " + byWard + ", t AS " + total +
			" SELECT a.n - b.n + t.n AS d FROM w a JOIN w b ON b.ward = a.ward + 1, t",
		"different rows of a union": "SELECT n AS d FROM " + byWard + " a UNION SELECT n FROM " + total + " b",
		"equal sides of a union":    "SELECT n AS d FROM " + byWard + " a UNION ALL SELECT n FROM " + byWard + " b",
		"a sum over a union":        "SELECT sum(n) AS d FROM (SELECT n FROM " + byWard + " a UNION ALL SELECT n FROM " + total + " b) u",
		"an aggregate":              "SELECT sum(a.n * b.n) AS d FROM " + byWard + " a, " + total + " b",
		"different rows":            "SELECT DISTINCT a.n + b.n AS d FROM " + byWard + " a, " + total + " b",
		"a chosen row":              "SELECT a.n + (SELECT max(n) FROM " + byWard + " b) AS d FROM " + total + " a",
	} {
		p, err := pipeline.Rewrite(sql, rewritetest.ParseSnapshot(t, rewritetest.WardTables, rewritetest.WardPolicy), rewritetest.Sharp())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if text := fmt.Sprint(explain.Explain(p).Notes); !strings.Contains(text, "{no-interval d: ") || answer.Columns(p)[0].HalfWidth != nil {
			t.Errorf("%s: an interval: %s, ± %v", name, text, answer.Columns(p)[0].HalfWidth)
		}
	}
}

// A row that has no row of a release by an outer join has no interval of what is computed from it.
func TestSeveralAbsentRows(t *testing.T) {
	c := severalCases["rate by season"]
	c.sql = strings.ReplaceAll(strings.Replace(c.sql, "a.n::numeric / b.n", "coalesce(b.n, 0)", 1), "FROM a JOIN", "FROM a LEFT JOIN")
	c.values, c.stems = []float64{600, 0, 1000}, [][]int{{1, 1}, {2, 0}, {3, 3}}
	p, err := pipeline.Rewrite(c.sql, rewritetest.ParseSnapshot(t, rewritetest.WardTables, rewritetest.WardPolicy), rewritetest.Sharp())
	if err != nil {
		t.Fatal(err)
	}
	intervals := c.released(t, p, rewritetest.FixedSampler(t)).Intervals
	if intervals[0][0] == nil || intervals[1][0] != nil || intervals[2][0] == nil {
		t.Errorf("intervals %v", intervals)
	}
}

// Of a union, a row of public tables, or one whose side does not tell, has no interval; the rows of the other side have theirs.
func TestSeveralUntoldSides(t *testing.T) {
	const union = "SELECT count(*) AS n FROM visits WHERE minutes > 9 UNION ALL SELECT count(*) FROM visits GROUP BY season UNION ALL "
	for _, third := range []string{"SELECT 7", "SELECT sum(n) FROM (SELECT count(*) AS n FROM visits GROUP BY season, ward) t"} {
		c := severalCase{sql: union + third, truth: [][]int64{{400}, {200, 300, 500}, make([]int64, 64)}, values: []float64{400, 300, 7},
			stems: [][]int{{1, 0, 0}, {0, 2, 0}, {0, 0, 0}}}
		p, err := pipeline.Rewrite(c.sql, rewritetest.ParseSnapshot(t, rewritetest.WardTables, rewritetest.WardPolicy), rewritetest.Sharp())
		if err != nil {
			t.Fatal(err)
		}
		blocks := len(p.Different())
		c.truth = c.truth[:blocks]
		for j := range c.stems {
			c.stems[j] = c.stems[j][:blocks]
		}
		answer := c.released(t, p, rewritetest.FixedSampler(t))
		if i := answer.Intervals; i[0][0] == nil || i[1][0] == nil || i[2][0] != nil {
			t.Errorf("%s: intervals %v", third, i)
		}
		if text := fmt.Sprint(answer.Notes); strings.Contains(text, "unbounded-interval") {
			t.Errorf("%s: %s", third, text)
		}
	}
}

// One noise is one noise in how many blocks it stands: twice a count has twice the half-width.
func TestEqualBlocksHaveOneNoise(t *testing.T) {
	snapshot := rewritetest.ParseSnapshot(t, rewritetest.WardTables, rewritetest.WardPolicy)
	width := func(sql string) *big.Rat {
		t.Helper()
		p, err := pipeline.Rewrite(sql, snapshot, rewritetest.Sharp())
		if err != nil {
			t.Fatal(err)
		}
		return answer.Columns(p)[0].HalfWidth
	}
	one, two := width("SELECT count(*) FROM visits"), width(severalCases["equal blocks"].sql)
	if two == nil || two.Cmp(new(big.Rat).Add(one, one)) != 0 {
		t.Errorf("± %v once, ± %v twice", one, two)
	}
}

// What a question with several releases does not take is refused before anything is charged.
func TestSeveralOptions(t *testing.T) {
	snapshot := rewritetest.ParseSnapshot(t, rewritetest.WardTables, rewritetest.WardPolicy)
	o := rewritetest.Sharp()
	o.Weights = map[string]*big.Rat{"n": big.NewRat(1, 1)}
	if _, err := pipeline.Rewrite(severalCases["difference"].sql, snapshot, o); fault.CodeOf(err) != fault.CodeRequestWeights {
		t.Errorf("weights: %v", err)
	}
	o, _ = severalOptions()
	o.Simultaneous = true
	keyed := rewritetest.ParseSnapshot(t, rewritetest.WardTables, strings.Replace(rewritetest.WardPolicy, "minutes: {bounds: [0, 40]}",
		"minutes: {keys: private}", 1))
	const totals = "SELECT minutes, count(*) FROM visits GROUP BY ROLLUP (minutes)"
	if _, err := pipeline.Rewrite(totals, keyed, o); fault.CodeOf(err) != fault.CodeRequestConfidence {
		t.Errorf("intervals together, of private keys: %v", err)
	}
	many, product := "", "1"
	for season := range 3 {
		many += fmt.Sprintf(", (SELECT minutes, ward, count(*) AS n FROM visits WHERE season = %d GROUP BY 1, 2) t%d", season+1, season)
		product += fmt.Sprintf(" * t%d.n", season)
		_, err := pipeline.Rewrite("SELECT "+product+" FROM "+strings.TrimPrefix(many, ", "), snapshot, o)
		if taken := season < 2; (err == nil) != taken || !taken && fault.CodeOf(err) != fault.CodeRequestConfidence { // 165 rows of each, or none
			t.Errorf("intervals together, of %d releases with 164 groups: %v", season+1, err)
		}
	}
	p, err := pipeline.Rewrite(severalCases["difference"].sql, snapshot, rewritetest.Sharp())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pipeline.WithSlots(p, nil); err == nil || p.Reusable() {
		t.Errorf("slots: %v", err)
	}
}

// A release that was bought within the policy's bounds has the values of all blocks that are equal to the one that it is of.
func TestEqualBlocksOfAWideRelease(t *testing.T) {
	o, _ := severalOptions()
	const block = "(SELECT avg(age) AS mean FROM people WHERE age < %s)"
	p := rewritetest.TownPlan(t, fmt.Sprintf("SELECT a.mean - b.mean FROM "+block+" AS a, "+block+" AS b", "30", "30.0"), o)
	if len(p.Several.Plans) != 2 || len(p.Different()) != 1 {
		t.Fatalf("%d blocks, %d releases", len(p.Several.Plans), len(p.Different()))
	}
	wide := p.Different()[0].Wide()
	bought, err := wide.Recall([]byte(`{"rows":[{"keys":null,"noisy":[7,3]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	whole, err := p.Given([]*plan.Released{bought}).Whole()
	if err != nil {
		t.Fatal(err)
	}
	for i, made := range whole.Blocks {
		if got, want := made.Plan.ValueText(0, made.Rows[0]), wide.ValueText(0, bought.Rows[0]); got != want {
			t.Errorf("block %d has the value %s, want %s", i, got.Text, want.Text)
		}
	}
}
