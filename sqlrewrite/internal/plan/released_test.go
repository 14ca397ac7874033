package plan_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"noisegate.example/catalog"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/answer"
	"noisegate.example/sqlrewrite/internal/earlier"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
)

// answersTo reports whether what was released for one plan answers another.
func answersTo(had, wanted *plan.Plan) bool {
	identity := had.Forms()[0].ReleaseIdentity()
	return slices.ContainsFunc(wanted.Forms(), func(f *plan.Plan) bool { return f.ReleaseIdentity() == identity })
}

// Views of one release: outputs by other names and in another order, arithmetic over them, ORDER BY, LIMIT, outer queries, HAVING over what
// is released anyway, the spelling of conditions, aliases of tables.
var views = [][]string{
	{
		"SELECT sex, count(*) AS n FROM people GROUP BY sex",
		"SELECT sex AS s, count(*) AS total FROM people GROUP BY 1 ORDER BY 2 DESC LIMIT 1",
		"SELECT count(*) AS n, sex FROM people GROUP BY sex ORDER BY sex",
		"SELECT sex, round(count(*) / 1000.0, 1) FROM people p GROUP BY p.sex HAVING count(*) > 10",
		"SELECT max(n) - min(n) FROM (SELECT sex, count(*) AS n FROM people GROUP BY sex) t",
		"WITH t AS (SELECT sex AS s, count(*) AS n FROM people GROUP BY sex) SELECT s, n, 100.0 * n / sum(n) OVER () FROM t ORDER BY n",
		"SELECT sex, count(*) > 100 FROM people GROUP BY sex OFFSET 1",
	},
	{
		"SELECT sex, grade, count(*), sum(age) FROM people WHERE age > 20 AND sex <> 'Male' GROUP BY sex, grade",
		"SELECT grade, sex, sum(age), count(*) FROM people WHERE sex <> 'Male' AND age > 20 GROUP BY 1, 2 ORDER BY sum(age) / count(*)",
		"SELECT sum(age) / count(*), grade FROM people WHERE age > 20.0 AND sex <> 'Male' GROUP BY grade, sex",
	},
	{
		"SELECT country, count(*) FROM people GROUP BY country",
		"SELECT country FROM people GROUP BY country ORDER BY count(*) DESC LIMIT 3",
		"SELECT country, 2 * count(*) FROM people GROUP BY country",
	},
	{ // a count that shows keys, and one that is divided by
		"SELECT country, count(*), sum(age) FROM people GROUP BY country",
		"SELECT country, sum(age) / count(*) FROM people GROUP BY country",
		"SELECT sum(age) AS a, count(*) AS n, country AS c FROM people GROUP BY country HAVING count(*) > 5",
	},
	{ // a selection of groups, and the numbers by which they are sorted
		"SELECT grade, sex, count(*) FROM people GROUP BY grade, sex",
		"SELECT grade, sex FROM people GROUP BY grade, sex ORDER BY count(*) DESC LIMIT 1",
	},
	{"SELECT avg(age), count(*) FROM people", "SELECT count(*), round(avg(age), 1) AS mean FROM people", "SELECT avg(age) FROM people"},
	{
		"SELECT median(age), mode() WITHIN GROUP (ORDER BY sex) FROM people",
		"SELECT mode() WITHIN GROUP (ORDER BY sex), median(age) / 2 FROM people",
	},
}

// What differs in what is released is another release: other rows, keys, statistics, prices, noise, bounds.
var others = []string{
	"SELECT sex, count(*) FROM people WHERE age > 20 GROUP BY sex",
	"SELECT sex, count(*) FROM people WHERE age > 21 GROUP BY sex",
	"SELECT sex, count(*) FROM people WHERE age >= 20 GROUP BY sex",
	"SELECT sex, count(*), sum(age) FROM people GROUP BY sex",
	"SELECT sex, count(*) FILTER (WHERE age > 20) FROM people GROUP BY sex",
	"SELECT sex, count(grade) FROM people GROUP BY sex",
	"SELECT count(*) FROM people",
	"SELECT count(*) FROM people WHERE sex = 'Male'",
	"SELECT count(*) FROM people WHERE sex = 'Female'",
	"SELECT grade, count(*) FROM people GROUP BY grade",
	"SELECT sum(age) FROM people",
	"SELECT sum(age + 0) FROM people",
	"SELECT sum(least(age, 50)) FROM people",
	"SELECT sum(least(age, 51)) FROM people",
	"SELECT median(age) FROM people",
	"SELECT percentile_disc(0.25) WITHIN GROUP (ORDER BY age) FROM people",
	"SELECT grade, sex FROM people WHERE age > 30 GROUP BY grade, sex ORDER BY count(*) DESC LIMIT 1",
	"SELECT grade, sex FROM people GROUP BY grade, sex ORDER BY sum(age) DESC LIMIT 1",
	"SELECT country FROM people GROUP BY country",
	"SELECT born, count(*) FROM people GROUP BY born",
	"SELECT country, count(*), sum(age) FILTER (WHERE sex = 'Male') FROM people GROUP BY country",
}

// A release is known by its block: views share it, and whatever differs below the noise does not.
//
// covers: E.5 A07
func TestReleasesAreKnownByTheirBlocks(t *testing.T) {
	plans := map[string]*plan.Plan{}
	own, known := map[string][32]byte{}, map[string][][32]byte{}
	all := slices.Clone(others)
	for _, same := range views {
		all = append(all, same[0])
	}
	for _, text := range slices.Concat(all, slices.Concat(views...)) {
		plans[text] = rewritetest.TownPlan(t, text, rewritetest.TownOptions("0.5"))
		known[text] = nil
		for _, f := range plans[text].Forms() {
			known[text] = append(known[text], f.ReleaseIdentity())
		}
		own[text] = known[text][0]
	}
	for _, same := range views {
		for _, had := range same {
			for _, wanted := range same {
				if !slices.Contains(known[wanted], own[had]) && plans[had].Query.Top == 0 {
					t.Errorf("what was released for %s does not answer %s", had, wanted)
				}
			}
		}
	}
	for i, had := range all {
		for _, wanted := range all[:i] {
			if slices.Contains(known[wanted], own[had]) || slices.Contains(known[had], own[wanted]) {
				t.Errorf("one of them answers the other: %s and %s", had, wanted)
			}
		}
	}
}

// The level of intervals is no part of a release, nor is how its price was named; its noise is, and so is what bounds units.
//
// covers: E.5
func TestReleasesAreKnownByTheirNoise(t *testing.T) {
	const text = "SELECT sex, count(*) AS n FROM people GROUP BY sex"
	base := rewritetest.TownPlan(t, text, rewritetest.TownOptions("0.5"))
	for name, c := range map[string]struct {
		change func(*plan.Options)
		same   bool
	}{
		"confidence":       {func(o *plan.Options) { o.Confidence = 0.8 }, true},
		"laplace by name":  {func(o *plan.Options) { o.Mechanism = plan.MechanismLaplace }, true},
		"unused delta":     {func(o *plan.Options) { o.Delta = 1 }, true},
		"weight of all":    {func(o *plan.Options) { o.Weights = map[string]*big.Rat{"n": big.NewRat(3, 1)} }, true},
		"another currency": {func(o *plan.Options) { o.Currency = catalog.Pure }, true},
		"more":             {func(o *plan.Options) { o.Epsilon++ }, false},
		"less":             {func(o *plan.Options) { o.Epsilon-- }, false},
		"gaussian":         {func(o *plan.Options) { o.Epsilon, o.Rho, o.Mechanism = 0, mechanisms.RhoUnit/8, plan.MechanismGaussian }, false},
	} {
		o := rewritetest.TownOptions("0.5")
		c.change(&o)
		if got := answersTo(base, rewritetest.TownPlan(t, text, o)); got != c.same {
			t.Errorf("%s: the same release: %t", name, got)
		}
	}
}

// Facts of the tables that are read, and the name of the data, are part of a release; the rest of the policy is not.
//
// covers: E.5
func TestReleasesAreKnownByTheirFacts(t *testing.T) {
	const text = "SELECT sex, count(*), sum(age) FROM people GROUP BY sex"
	at := func(change func(*catalog.Snapshot)) *plan.Plan {
		snapshot := rewritetest.TownSnapshot(t)
		change(snapshot)
		p, err := pipeline.Rewrite(text, snapshot, rewritetest.TownOptions("0.5"))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	column := func(s *catalog.Snapshot, name string) *catalog.Column {
		c, _ := s.Tables[0].Column(name)
		return c
	}
	base := at(func(*catalog.Snapshot) {})
	for name, c := range map[string]struct {
		change func(*catalog.Snapshot)
		same   bool
	}{
		"version and digest": {func(s *catalog.Snapshot) { s.Version, s.Digest[0] = s.Version+1, s.Digest[0]+1 }, true},
		"budgets": {func(s *catalog.Snapshot) {
			s.Budgets = append(s.Budgets, catalog.Budget{Scope: catalog.GroupScope, Name: "g"})
		}, true},
		"another table": {func(s *catalog.Snapshot) {
			s.Tables = append(s.Tables, &catalog.Table{Schema: "public", Name: "z", OID: 9, Public: true})
		}, true},
		"a column that is not read": {func(s *catalog.Snapshot) { column(s, "born").TypeOID++ }, true},
		"bounds that are not used":  {func(s *catalog.Snapshot) { column(s, "grade").Domain = nil }, true},
		"how rows are stored":       {func(s *catalog.Snapshot) { s.Tables[0].Partitioned = true }, true},
		"data":                      {func(s *catalog.Snapshot) { s.DataVersion = "2026-03" }, false},
		"dataset":                   {func(s *catalog.Snapshot) { s.Dataset = "village" }, false},
		"made again":                {func(s *catalog.Snapshot) { s.Tables[0].OID++ }, false},
		"type":                      {func(s *catalog.Snapshot) { column(s, "age").TypeOID++ }, false},
		"bounds":                    {func(s *catalog.Snapshot) { column(s, "age").Bounds.Hi = big.NewRat(101, 1) }, false},
		"domain":                    {func(s *catalog.Snapshot) { column(s, "sex").Domain = column(s, "sex").Domain[:1] }, false},
	} {
		if got := answersTo(base, at(c.change)); got != c.same {
			t.Errorf("%s: the same release: %t", name, got)
		}
	}
}

// made is what a plan could have released: random groups and numbers.
func made(p *plan.Plan, r *rand.Rand) *plan.Released {
	out := &plan.Released{Plan: p}
	for range p.Query.Bought {
		value := []*string{nil, new("7.5")}[r.IntN(2)]
		out.Bought = append(out.Bought, value)
	}
	add := func(keys []catalog.Key) {
		row := plan.ReleasedRow{Keys: slices.Clone(keys), Noisy: make([]*big.Int, len(p.Releases))}
		for i, release := range p.Releases {
			switch {
			case release.Selection == nil:
				row.Noisy[i] = big.NewInt(r.Int64N(2000) - 100)
			case release.Selection.Top != nil:
				row.Noisy[i] = new(big.Int)
			case release.Selection.Quantile != nil:
				row.Noisy[i] = big.NewInt(r.Int64N(release.Statistic.Grid.Points().Int64()))
			default:
				row.Noisy[i] = big.NewInt(r.Int64N(int64(release.Selection.Among)))
			}
		}
		out.Rows = append(out.Rows, row)
	}
	if p.Query.Private() {
		for i := range 3 {
			keys := make([]catalog.Key, len(p.Query.Keys))
			for j := range keys {
				keys[j] = catalog.Key{Text: fmt.Sprint(10*i + j)}
			}
			add(keys)
		}
		return out
	}
	_ = plan.EachPublicTuple(p.Query, func(i int, keys []catalog.Key) error {
		if p.Query.Top == 0 || int64(i) < p.Query.Top {
			add(keys)
		}
		return nil
	})
	return out
}

// What is kept of a release of any golden plan is recalled as it was, and releases of two plans with one identity cost the same.
//
// covers: E.5
func TestKeptReleasesAreRecalled(t *testing.T) {
	r := rand.New(rand.NewPCG(25, 11)) // reproducible on purpose
	n, shared, shown := 0, 0, 0
	seen := map[[32]byte]*plan.Plan{}
	rewritetest.EachGoldenPlan(t, func(_ *datadriven.TestData, p *plan.Plan) {
		if !p.NeedsData() || p.Query.PublicTuples().Cmp(big.NewInt(5000)) > 0 {
			return
		}
		had := made(p, r)
		text, err := had.Kept()
		if err != nil {
			t.Fatal(err)
		}
		got, err := pipeline.Recall(p.Forms()[0], text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if again, err := got.Kept(); err != nil || string(again) != string(text) {
			t.Fatalf("%s was recalled as %s, %v", text, again, err)
		}
		shown += showOtherForms(t, p, r)
		if diff := cmp.Diff(had.Rows, got.Rows, cmpopts.EquateEmpty(),
			cmp.Comparer(func(a, b *big.Int) bool { return a.Cmp(b) == 0 })); diff != "" {
			t.Fatal(diff)
		}
		identity := p.Forms()[0].ReleaseIdentity()
		if other := seen[identity]; other != nil {
			shared++
			if other.Loss() != p.Loss() {
				t.Errorf("two questions with one release cost %+v and %+v", other.Loss(), p.Loss())
			}
		}
		seen[identity] = p
		n++
	})
	t.Logf("%d plans, %d of them with the release of another; %d other forms", n, shared, shown)
	if n < 200 || shown < 10 {
		t.Error("too few plans")
	}
}

// What earlier versions stored, under names of identity 1 and in an order of their own, is recalled. testdata/kept was written by version
// d13a6f88: a question, its name, and what was stored of made-up numbers.
func TestReleasesOfEarlierVersionsAreRecalled(t *testing.T) {
	stored, err := os.ReadFile("testdata/kept")
	if err != nil {
		t.Fatal(err)
	}
	other := 0 // are stored in another order now
	all := strings.Split(strings.TrimSpace(string(stored)), "\n\n")
	for _, one := range all {
		lines := strings.Split(one, "\n")
		text, name, kept := lines[0], lines[1], lines[2]
		p := rewritetest.TownPlan(t, text, rewritetest.TownOptions("0.5"))
		if identity := earlier.Release(p); fmt.Sprintf("%x", identity) != name {
			t.Errorf("%s: it has the name %x of identity 1, and had %s", text, identity, name)
		}
		got, err := pipeline.RecallEarlier(p, []byte(kept))
		if err != nil {
			t.Fatal(err)
		}
		want := made(p, rand.New(rand.NewPCG(1, 2)))
		if diff := cmp.Diff(want.Rows, got.Rows, cmpopts.EquateEmpty(),
			cmp.Comparer(func(a, b *big.Int) bool { return a.Cmp(b) == 0 })); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
		if now, err := got.Kept(); err != nil {
			t.Fatal(err)
		} else if string(now) != kept {
			other++
		}
	}
	if len(all) < 10 || other == 0 {
		t.Errorf("%d of %d are stored in another order now: nothing is tried", other, len(all))
	}
}

// What is foretold of the length of a release is reached where each noisy number has one digit, and else exceeded. Where groups are
// selected nothing is foretold.
func TestLengthOfReleasesIsForetold(t *testing.T) {
	n := 0
	rewritetest.EachGoldenPlan(t, func(_ *datadriven.TestData, p *plan.Plan) {
		if !p.NeedsData() || (p.Several != nil) || p.Query.PublicTuples().Cmp(big.NewInt(5000)) > 0 {
			return
		}
		n++
		digits := &plan.Released{Plan: p}
		if err := plan.EachPublicTuple(p.Query, func(_ int, keys []catalog.Key) error {
			row := plan.ReleasedRow{Keys: keys}
			for range p.Releases {
				row.Noisy = append(row.Noisy, big.NewInt(7))
			}
			digits.Rows = append(digits.Rows, row)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		text, err := digits.Kept()
		if err != nil {
			t.Fatal(err)
		}
		want := int64(len(text))
		if len(digits.Rows) == 0 || p.Query.Private() || p.Query.Top > 0 {
			want = 0
		}
		if got := p.KeptLeast(); got != want {
			t.Errorf("foretold are %d bytes of %d: %.300s", got, want, text)
		}
	})
	if n < 200 {
		t.Errorf("%d plans", n)
	}
}

// showOtherForms answers a question from made-up releases of its other forms, and says how many there are: whatever its outputs are, they
// have columns and intervals, or none.
func showOtherForms(t *testing.T, p *plan.Plan, r *rand.Rand) int {
	t.Helper()
	forms := p.Forms()[1:]
	for _, f := range forms {
		text, err := made(f, r).Kept()
		if err != nil {
			t.Fatal(err)
		}
		got, err := pipeline.Recall(f, text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		var rows []answer.PostRow
		var types []string
		if _, ok := got.Post(); ok {
			for _, c := range got.Plan.Outputs {
				types = append(types, c.Column.Type)
			}
			for i := range got.Rows {
				rows = append(rows, answer.PostRow{Ordinal: i + 1, Values: slices.Repeat([]catalog.Key{{Text: "1"}}, len(types))})
			}
		}
		if _, err := answer.Complete(got, rows, types); err != nil {
			t.Fatal(err)
		}
	}
	return len(forms)
}

// A view shows the numbers that were released for another one, whatever the order of keys and outputs.
func TestViewsShowOneRelease(t *testing.T) {
	o := rewritetest.TownOptions("0.5")
	had := rewritetest.TownPlan(t, "SELECT sex, grade, count(*) AS n, sum(age) AS a FROM people GROUP BY sex, grade", o)
	text, err := made(had, rand.New(rand.NewPCG(1, 2))).Kept()
	if err != nil {
		t.Fatal(err)
	}
	shown := func(p *plan.Plan, columns ...int) map[string]string {
		t.Helper()
		r, err := pipeline.Recall(p.Forms()[0], text)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := answer.Complete(r, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		rows := map[string]string{}
		for i, row := range answer.Rows {
			at := func(c int) string { return row[columns[c]].Text }
			rows[at(0)+" "+at(1)] = fmt.Sprint(at(2), " ", at(3), " ", *answer.Intervals[i][columns[2]])
		}
		return rows
	}
	want := shown(had, 0, 1, 2, 3)
	got := shown(rewritetest.TownPlan(t, "SELECT sum(age) AS x, grade, count(*), sex FROM people GROUP BY grade, sex", o), 3, 1, 2, 0)
	if diff := cmp.Diff(want, got); diff != "" || len(want) != 6 {
		t.Errorf("%d rows: %s", len(want), diff)
	}
	o.Confidence = 0.5
	narrow := shown(rewritetest.TownPlan(t, "SELECT sex, grade, count(*), sum(age) FROM people GROUP BY sex, grade", o), 0, 1, 2, 3)
	if cmp.Equal(want, narrow) {
		t.Error("intervals do not follow the level that is asked for")
	}
}

// Values under the slots of a registered plan, and of several releases together, keep their noise.
func TestRecalledNoise(t *testing.T) {
	p := rewritetest.TownPlan(t, "SELECT sex, sum(age) AS a, count(*) AS n FROM people GROUP BY sex", atRho(4*centiRho))
	view := rewritetest.TownPlan(t, "SELECT count(*) AS n, sex, sum(age) AS a FROM people GROUP BY sex", atRho(4*centiRho))
	slots, err := pipeline.WithSlots(p, []mechanisms.Slot{{Rho: centiRho}, {Rho: 2 * centiRho}})
	if err != nil {
		t.Fatal(err)
	}
	weaker := rewritetest.TownPlan(t, "SELECT sex, sum(age) AS a, count(*) AS n FROM people GROUP BY sex", atRho(8*centiRho))
	s := rewritetest.FixedSampler(t)
	combined := pipeline.Reuse(p, releasedOnce(t, s, weaker).Vector())
	reused, err := pipeline.Weaker(combined, s)
	if err != nil {
		t.Fatal(err)
	}
	for name, had := range map[string]*plan.Released{"slots": releasedOnce(t, s, slots), "combination": reused} {
		text, err := had.Kept()
		if err != nil {
			t.Fatal(err)
		}
		got, err := pipeline.Recall(view.Forms()[0], text)
		if err != nil {
			t.Fatal(err)
		}
		before, after := had.Plan, got.Plan
		for i, j := range []int{1, 0} {
			if a, b := before.Releases[i].Mechanism.Parameters(), after.Releases[j].Mechanism.Parameters(); a != b {
				t.Errorf("%s: %+v was recalled as %+v", name, a, b)
			}
			if a, b := before.Outputs[1+i].Column.HalfWidth, after.Outputs[2*j].Column.HalfWidth; a.Cmp(b) != 0 {
				t.Errorf("%s: ± %s was recalled as %s", name, a, b)
			}
		}
		if before.Reused != after.Reused {
			t.Errorf("%s: %q was recalled as %q", name, before.Reused, after.Reused)
		}
	}
}

// What cannot have been released for a question is refused.
func TestRecallRefuses(t *testing.T) {
	public := rewritetest.TownPlan(t, "SELECT sex, count(*) FROM people GROUP BY sex", rewritetest.TownOptions("0.5"))
	chosen := rewritetest.TownPlan(t, "SELECT median(age), mode() WITHIN GROUP (ORDER BY sex) FROM people", rewritetest.TownOptions("0.5"))
	top := rewritetest.TownPlan(t, "SELECT grade, sex FROM people GROUP BY grade, sex ORDER BY count(*) DESC LIMIT 1",
		rewritetest.TownOptions("0.5"))
	if top.Query.Top != 1 {
		t.Fatal("nothing is selected")
	}
	for _, c := range []struct {
		of   *plan.Plan
		text string
		ok   bool
	}{
		{public, `{"rows":[{"keys":["Male"],"noisy":[7]},{"keys":["Female"],"noisy":[8]}]}`, true},
		{public, `{"rows":[{"keys":["Male"],"noisy":[7]}]}`, false},
		{public, `{"rows":[{"keys":["Male"],"noisy":[7]},{"keys":["Male"],"noisy":[8]}]}`, false},
		{public, `{"rows":[{"keys":["Male"],"noisy":[7]},{"keys":["Female"],"noisy":[8]},{"keys":["?"],"noisy":[8]}]}`, false},
		{public, `{"rows":[{"keys":["Male"],"noisy":[7]},{"keys":[null],"noisy":[8]}]}`, false},
		{public, `{"rows":[{"keys":["Male"],"noisy":[7,1]},{"keys":["Female"],"noisy":[8,1]}]}`, false},
		{public, `{"rows":[{"keys":[],"noisy":[7]},{"keys":["Female"],"noisy":[8]}]}`, false},
		{public, `{"rows":[{"keys":["Male"],"noisy":[null]},{"keys":["Female"],"noisy":[8]}]}`, false},
		{public, `{"rows":[{"keys":["Male"],"noisy":[7.5]},{"keys":["Female"],"noisy":[8]}]}`, false},
		{public, `{"rows":[{"keys":["Male"],"noisy":[7]},{"keys":["Female"],"noisy":[8]}],"noise":[{"epsilon":5,"rho":5}]}`, false},
		{public, `{"rows":[{"keys":["Male"],"noisy":[7]},{"keys":["Female"],"noisy":[8]}],"noise":[{"parts":[-5]}]}`, false},
		{public, `{"rows":[{"keys":["Male"],"noisy":[7]},{"keys":["Female"],"noisy":[8]}],"noise":[{"rho":5},{"rho":5}]}`, false},
		{public, `{"rows":[{"keys":["Male"],"noisy":[7]},{"keys":["Female"],"noisy":[8]}],"exact":[1]}`, false},
		{public, ``, false},
		{chosen, `{"rows":[{"keys":[],"noisy":[0,1]}]}`, true},
		{chosen, `{"rows":[{"keys":[],"noisy":[-1,0]}]}`, false},
		{chosen, `{"rows":[{"keys":[],"noisy":[1000,1000]}]}`, false},
		{chosen, `{"rows":[{"keys":[],"noisy":[0,1]}],"noise":[{"rho":5},{"rho":5}]}`, false},
		{top, `{"rows":[{"keys":["Male",null],"noisy":[0]}]}`, true},
		{top, `{"rows":[]}`, false},
		{top, `{"rows":[{"keys":["Male","2"],"noisy":[0]},{"keys":["Female",null],"noisy":[0]}]}`, false},
		{top, `{"rows":[{"keys":["Female","3"],"noisy":[0]}]}`, false},
		{top, `{"rows":[{"keys":["Male","2"],"noisy":[9]}]}`, false},
	} {
		if _, err := pipeline.Recall(c.of.Forms()[0], []byte(c.text)); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.text, err)
		}
	}
}

// Whatever the store holds, recalling it gives a refusal or an answer.
func FuzzRecall(f *testing.F) {
	plans := []*plan.Plan{
		rewritetest.TownPlan(f, "SELECT sex, count(*) FROM people GROUP BY sex", rewritetest.TownOptions("0.5")),
		rewritetest.TownPlan(f, "SELECT country, sum(age), avg(age) FROM people GROUP BY country", rewritetest.TownOptions("0.5")),
		rewritetest.TownPlan(f, "SELECT median(age), mode() WITHIN GROUP (ORDER BY sex) FROM people", rewritetest.TownOptions("0.5")),
		rewritetest.TownPlan(f, "SELECT count(*) FROM people", atRho(centiRho)),
	}
	for i, p := range plans {
		text, err := made(p, rand.New(rand.NewPCG(3, uint64(i)))).Kept()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(i), text)
	}
	f.Add(uint8(3), []byte(`{"rows":[{"keys":[],"noisy":[7]}],"noise":[{"parts":[10000000000,10000000000]}],"reused":"x"}`))
	f.Fuzz(func(t *testing.T, which uint8, text []byte) {
		r, err := pipeline.Recall(plans[int(which)%len(plans)].Forms()[0], text)
		if err != nil {
			return
		}
		if _, err := answer.Complete(r, nil, nil); err != nil && r.Plan.Post == nil {
			t.Error(err)
		}
		answer.Plain(r)
		if again, err := r.Kept(); err != nil || !json.Valid(again) {
			t.Errorf("%s: %v", again, err)
		}
	})
}

// releasedTexts are questions with the identities under which their releases were stored first, one a line. They are never rewritten: a
// release that has another identity is charged again.
const releasedTexts = "stored/released.txt"

// covers: E.5
func TestReleasedIdentitiesStay(t *testing.T) {
	var lines []string
	for _, text := range slices.Concat(slices.Concat(views...), others) {
		identity := earlier.Release(rewritetest.TownPlan(t, text, rewritetest.TownOptions("0.5")).Forms()[0])
		lines = append(lines, fmt.Sprintf("%x %s", identity[:8], text))
	}
	want, err := os.ReadFile(rewritetest.GoldenFile(releasedTexts))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(strings.TrimSuffix(string(want), "\n"), "\n"), lines); diff != "" {
		t.Error(diff)
	}
}
