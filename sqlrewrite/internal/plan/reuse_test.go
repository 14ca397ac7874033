package plan_test

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/internal/randomtest"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/answer"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
)

// atRho are options under which everything additive is Gaussian.
func atRho(rho mechanisms.PicoRho) plan.Options {
	return plan.Options{Rho: rho, Mechanism: plan.MechanismGaussian, Currency: catalog.ZCDP, Confidence: 0.95}
}

const centiRho = mechanisms.PicoRho(mechanisms.RhoUnit) / 100

// releasedOnce is one release of a plan.
func releasedOnce(t testing.TB, s *mechanisms.Sampler, p *plan.Plan, rows ...plan.ExactRow) *plan.Released {
	t.Helper()
	released, err := pipeline.Release(p, s, p.Draw(s), rewritetest.Streamed(rows))
	if err != nil {
		t.Fatal(err)
	}
	return released
}

// reused is the answer to a plan with the help of a vector, and the vector afterwards.
func reused(t *testing.T, s *mechanisms.Sampler, p *plan.Plan, earlier *plan.Vector, rows ...plan.ExactRow) (*plan.Released, *plan.Vector) {
	t.Helper()
	u := pipeline.Reuse(p, earlier)
	if u == nil {
		t.Fatal("the earlier release does not help")
	}
	if u.More == nil {
		weaker, err := pipeline.Weaker(u, s)
		if err != nil {
			t.Fatal(err)
		}
		return weaker, earlier
	}
	stronger, all, err := pipeline.Stronger(u, s, releasedOnce(t, s, u.More, rows...))
	if err != nil {
		t.Fatal(err)
	}
	return stronger, all
}

// The errors of weaker and of stronger answers have the law of what they are made of ([mechanisms.Combination], whose own law is tested
// there), and so about the variance of one release at their price; their half widths hold. Each is told at a rate of false alarms below
// 1e-6.
func TestReusedLaws(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	const exact = 500
	draws := randomtest.Times(1_000, 4_000)
	text := "SELECT count(*) FROM people"
	for name, prices := range map[string][]mechanisms.PicoRho{
		"equal":                 {4 * centiRho, 4 * centiRho},
		"weaker":                {4 * centiRho, centiRho},
		"stronger":              {centiRho, 4 * centiRho},
		"stronger and stronger": {centiRho, 2 * centiRho, 4 * centiRho},
		"stronger, then weaker": {centiRho, 4 * centiRho, 2 * centiRho},
	} {
		t.Run(name, func(t *testing.T) {
			plans := make([]*plan.Plan, len(prices))
			for i, rho := range prices {
				plans[i] = rewritetest.TownPlan(t, text, atRho(rho))
			}
			s, last, width := rewritetest.FixedSampler(t), plans[len(plans)-1], new(big.Int)
			drawn, got, outside, squares := map[int64]int64{}, map[int64]int64{}, 0, 0.0
			for range draws {
				answer := releasedOnce(t, s, plans[0], row("", exact))
				vector := answer.Vector()
				for _, p := range plans[1:] {
					answer, vector = reused(t, s, p, vector, row("", exact))
				}
				law := answer.Plan.Releases[0].Mechanism
				if width.Sign() == 0 {
					width = law.HalfWidth(0.95)
				}
				off := answer.Rows[0].Noisy[0].Int64() - exact
				got[off]++
				squares += float64(off * off)
				if new(big.Int).Abs(big.NewInt(off)).Cmp(width) > 0 {
					outside++
				}
				drawn[law.Draw(s).Release(mechanisms.Exact{}).Int64()]++
			}
			sameLaw(t, got, drawn)
			// The error of a sample variance of noise that is nearly normal is √(2/n) of it, and rounding adds at most 1/4.
			n := float64(draws)
			want, _ := new(big.Rat).SetString(last.Releases[0].Mechanism.Parameters().Variance)
			variance, _ := want.Float64()
			if have := squares / n; math.Abs(have-variance) > 0.25+5.5*variance*math.Sqrt(2/n) {
				t.Errorf("variance %g, want %g", have, variance)
			}
			if float64(outside) > n*0.05+5*math.Sqrt(n*0.05*0.95) {
				t.Errorf("%d of %d are outside of their intervals", outside, draws)
			}
		})
	}
}

// sameLaw compares two samples of one size. Given x+y draws in a cell, x is binomial, so that (x-y)²/(x+y) is about chi-square with one
// degree of freedom; Wilson and Hilferty's cube root makes the sum normal, and five standard deviations are 3e-7.
func sameLaw(t *testing.T, a, b map[int64]int64) {
	t.Helper()
	statistic, cells := 0.0, 0.0
	add := func(x, y int64) {
		if x+y > 0 {
			statistic, cells = statistic+float64((x-y)*(x-y))/float64(x+y), cells+1
		}
	}
	var rareA, rareB int64
	for off := int64(-100); off <= 100; off++ {
		if a[off]+b[off] < 50 {
			rareA, rareB = rareA+a[off], rareB+b[off]
		} else {
			add(a[off], b[off])
		}
	}
	add(rareA, rareB)
	if z := (math.Cbrt(statistic/cells) - (1 - 2/(9*cells))) / math.Sqrt(2/(9*cells)); z > 5 {
		t.Errorf("chi-square %g with %g degrees of freedom", statistic, cells)
	}
}

// What is charged is the difference, exactly; what is shown are columns of the accuracy asked for, and a note.
func TestReuseCharges(t *testing.T) {
	text := "SELECT sex, count(*) AS n, sum(age) AS years FROM people GROUP BY sex"
	rows := []plan.ExactRow{row("Female", 40, 1600), row("Male", 50, 2500)}
	first, s := rewritetest.TownPlan(t, text, atRho(2*centiRho)), rewritetest.FixedSampler(t)
	vector := releasedOnce(t, s, first, rows...).Vector()
	for name, c := range map[string]struct {
		rho, charge mechanisms.PicoRho
		note        string
	}{
		"equal":    {2 * centiRho, 0, "was at least as accurate"},
		"weaker":   {centiRho + 2, 0, "was at least as accurate"},
		"stronger": {7*centiRho + 4, 5*centiRho + 4, "combines"},
	} {
		p := rewritetest.TownPlan(t, text, atRho(c.rho))
		u := pipeline.Reuse(p, vector)
		if u == nil {
			t.Fatal(name)
		}
		charged := mechanisms.Loss{}
		if u.More != nil {
			charged = u.More.Loss()
			if u.More.Statements(&plan.Draws{})[0].SQL != p.Statements(&plan.Draws{})[0].SQL {
				t.Errorf("%s: another statement", name)
			}
		}
		if charged.Rho != c.charge || charged.Epsilon != 0 || charged.Delta != 0 || charged.Unbounded != (c.charge > 0) {
			t.Errorf("%s: charged %+v", name, charged)
		}
		released, after := reused(t, s, p, vector, rows...)
		answered, err := answer.Complete(released, nil, nil)
		if err != nil || len(answered.Rows) != 2 || answered.Notes[0].Code != "reused" || !strings.Contains(answered.Notes[0].Text, c.note) {
			t.Fatalf("%s: %+v, %v", name, answered, err)
		}
		whole, err := answer.Complete(releasedOnce(t, s, p, rows...), nil, nil)
		if err != nil || whole.Notes[0].Code == "reused" {
			t.Fatalf("%s: %+v, %v", name, whole, err)
		}
		for i, column := range answered.Columns[1:] {
			want := whole.Columns[i+1]
			ratio, _ := new(big.Rat).Quo(column.HalfWidth, want.HalfWidth).Float64()
			if column.Mechanism != want.Mechanism || column.Scale != want.Scale || column.Sensitivity != want.Sensitivity || ratio < 0.9 ||
				ratio > 1.3 {
				t.Errorf("%s: %+v, want about %+v", name, column, want)
			}
			for j := range answered.Rows {
				value, _ := strconv.ParseFloat(answered.Rows[j][i+1].Text, 64)
				lo, _ := strconv.ParseFloat(answered.Intervals[j][i+1].Lo, 64)
				width, _ := column.HalfWidth.Float64()
				if value-lo != width {
					t.Errorf("%s: interval %+v of %g is not %g wide", name, answered.Intervals[j][i+1], value, width)
				}
			}
		}
		if held, _ := vectorRho(t, after); held != max(c.rho, 2*centiRho) {
			t.Errorf("%s: %d is known now", name, held)
		}
	}
}

func vectorRho(t *testing.T, v *plan.Vector) (mechanisms.PicoRho, *plan.Vector) {
	t.Helper()
	text, rho, err := v.Text()
	if err != nil {
		t.Fatal(err)
	}
	again, err := plan.ReadVector(text)
	if err != nil {
		t.Fatal(err)
	}
	if second, _, err := again.Text(); err != nil || string(second) != string(text) {
		t.Fatalf("%s is %s when read again (%v)", text, second, err)
	}
	return rho, again
}

// One question at two prices is one question; any other difference makes another one.
func TestQuestionIsWithoutPrice(t *testing.T) {
	text := "SELECT sex, count(*) FROM people WHERE age < 30 AND grade = 2 GROUP BY sex"
	one := rewritetest.TownPlan(t, text, atRho(centiRho))
	auto := plan.Options{Rho: 2 * centiRho, Mechanism: plan.MechanismAuto, Currency: catalog.Approx, Confidence: 0.95, Delta: 5}
	for _, same := range []*plan.Plan{
		rewritetest.TownPlan(t, text, atRho(3*centiRho)), rewritetest.TownPlan(t, text, auto),
		rewritetest.TownPlan(t, "select sex, count(*) from people where grade=2 and age<30.0 group by sex", atRho(2*centiRho)),
	} {
		if !same.Reusable() || same.BlockQuestion() != one.BlockQuestion() || same.Fingerprint() == one.Fingerprint() {
			t.Errorf("%v: not the same question at another price", same.Options)
		}
	}
	wider, weighted := atRho(centiRho), atRho(centiRho)
	wider.Confidence, weighted.Weights = 0.99, map[string]*big.Rat{"count": big.NewRat(2, 1)}
	bumped := rewritetest.TownSnapshot(t)
	bumped.Version++
	newer, err := pipeline.Rewrite(text, bumped, atRho(centiRho))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		other *plan.Plan
		same  bool
	}{
		"text":       {rewritetest.TownPlan(t, strings.Replace(text, "30", "31", 1), atRho(centiRho)), false},
		"statistic":  {rewritetest.TownPlan(t, strings.Replace(text, "(*)", "(grade)", 1), atRho(centiRho)), false},
		"name":       {rewritetest.TownPlan(t, strings.Replace(text, "(*)", "(*) AS n", 1), atRho(centiRho)), true},
		"confidence": {rewritetest.TownPlan(t, text, wider), true},
		"weights":    {rewritetest.TownPlan(t, text, weighted), true},
		"version":    {newer, true},
	} {
		if (c.other.BlockQuestion() == one.BlockQuestion()) != c.same {
			t.Errorf("%s: the same question: %t", name, !c.same)
		}
	}
}

// Only Gaussian noise on public groups is combined, and only what fits.
func TestWhatIsNotReused(t *testing.T) {
	laplace := atRho(centiRho)
	laplace.Mechanism = plan.MechanismLaplace
	private := atRho(centiRho)
	private.Delta = mechanisms.DeltaUnit / 1000
	for text, o := range map[string]plan.Options{
		"SELECT count(*) FROM people":                           laplace,
		"SELECT country, count(*) FROM people GROUP BY country": private,
		"SELECT max(age) FROM people":                           atRho(centiRho),
		"SELECT count(*), max(age) FROM people":                 atRho(centiRho),
		"SELECT DISTINCT sex FROM people":                       atRho(centiRho),
	} {
		if rewritetest.TownPlan(t, text, o).Reusable() {
			t.Errorf("%s is reused", text)
		}
	}
	text := "SELECT sex, count(*), sum(age) FROM people GROUP BY sex"
	p := rewritetest.TownPlan(t, text, atRho(4*centiRho))
	sums := func(rows, columns int) [][]*big.Int {
		all := make([][]*big.Int, rows)
		for j := range all {
			for range columns {
				all[j] = append(all[j], big.NewInt(1))
			}
		}
		return all
	}
	rho := func(parts ...mechanisms.PicoRho) []mechanisms.PicoRho { return parts }
	long := make([]mechanisms.PicoRho, plan.MaxReuseParts)
	for i := range long {
		long[i] = 1
	}
	holes := sums(2, 2)
	holes[1][1] = nil
	for name, v := range map[string]*plan.Vector{
		"empty":                    {},
		"of one release":           {Rho: [][]mechanisms.PicoRho{rho(centiRho)}, Sums: sums(2, 1)},
		"of one group":             {Rho: [][]mechanisms.PicoRho{rho(centiRho), rho(centiRho)}, Sums: sums(1, 2)},
		"with a hole":              {Rho: [][]mechanisms.PicoRho{rho(centiRho), rho(centiRho)}, Sums: holes},
		"without parts":            {Rho: [][]mechanisms.PicoRho{rho(), rho()}, Sums: sums(2, 2)},
		"of unequal parts":         {Rho: [][]mechanisms.PicoRho{rho(1), rho(1, 1)}, Sums: sums(2, 2)},
		"without accuracy":         {Rho: [][]mechanisms.PicoRho{rho(0), rho(1)}, Sums: sums(2, 2)},
		"of endless accuracy":      {Rho: [][]mechanisms.PicoRho{rho(math.MaxInt64, 5), rho(math.MaxInt64, 5)}, Sums: sums(2, 2)},
		"one weaker, one stronger": {Rho: [][]mechanisms.PicoRho{rho(centiRho), rho(3 * centiRho)}, Sums: sums(2, 2)},
		"of too many parts":        {Rho: [][]mechanisms.PicoRho{long, long}, Sums: sums(2, 2)},
	} {
		if pipeline.Reuse(p, v) != nil {
			t.Errorf("a vector %s is reused", name)
		}
	}
	if _, err := plan.ReadVector([]byte("[1]")); err == nil {
		t.Error("a list is no vector")
	}
}

// Units whose groups are chosen at random are other ones in each release: those are not combined.
func TestRandomGroupsAreNotReused(t *testing.T) {
	snapshot := rewritetest.ParseSnapshot(t, `visits
  person integer not null
  sex    text not null`, `version: 1
dataset: town
neighbours: add-remove
tables:
  visits:
    unit: {column: person}
    max_rows: 3
    max_groups: 1
    columns:
      sex: {domain: [Female, Male]}
budgets:
  - {dataset: true, form: approx, epsilon: 10, delta: 1e-6}
`)
	for text, want := range map[string]bool{
		"SELECT sex, count(*) FROM visits GROUP BY sex": false,
		"SELECT count(*) FROM visits":                   true,
	} {
		p, err := pipeline.Rewrite(text, snapshot, atRho(centiRho))
		if err != nil || p.Reusable() != want {
			t.Errorf("%s: %v, %v", text, p.Reusable(), err)
		}
	}
}
