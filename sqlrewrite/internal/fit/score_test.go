package fit_test

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"noisegate.example/internal/fault"
	"noisegate.example/internal/randomtest"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/fit"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/internal/sqlprint"
	"noisegate.example/sqlrewrite/proofs/gen"
)

// scoring are scores of a grouping of the data at a price.
func (c clusterData) scoring(t testing.TB, centres [][]float64, epsilon float64, which ...bool) *fit.Scoring {
	t.Helper()
	q := fit.ScoreQuestion{From: c.q.From, Where: c.q.Where, Columns: c.q.Columns, Centres: centres, CalinskiHarabasz: which[0],
		Silhouette: which[1]}
	p, err := fit.NewScoring(q, rewritetest.ParseSnapshot(t, c.tables, c.policy), fit.ScoreOptions{Rho: rhoFor(epsilon, 1e-6),
		Confidence: 0.95})
	if err != nil {
		t.Fatal(err, errors.Unwrap(err))
	}
	return p
}

// trueScoreSums are those of the statement of scores.
func (c clusterData) trueScoreSums(t testing.TB, p *fit.Scoring) []*big.Int {
	t.Helper()
	statement, _ := p.Start(nil).Next()
	if err := statement.Prove(new(sqlprint.Proofs)); err != nil {
		t.Fatal(err, errors.Unwrap(err))
	}
	return trueSums(t, c.conn, statement)
}

// scored are scores of sums; without a sampler there is no noise.
func scored(t testing.TB, p *fit.Scoring, s *mechanisms.Sampler, sums []*big.Int) *fit.Scored {
	t.Helper()
	run := p.Start(s)
	err := error(nil)
	if s == nil {
		err = run.Advance(sums)
	} else {
		row := plan.ExactRow{}
		for _, n := range sums {
			row.Values = append(row.Values, mechanisms.Seal(n))
		}
		err = run.Release(row)
	}
	if err != nil {
		t.Fatal(err)
	}
	got, err := run.Scored()
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// scoresOf computes both scores of rows and centres, which are scaled likewise.
func scoresOf(rows, centres [][]float64) (calinski, silhouette float64) {
	d := len(rows[0])
	sums, counts, total, within := make([][]float64, len(centres)), make([]float64, len(centres)), make([]float64, d), 0.0
	for i := range sums {
		sums[i] = make([]float64, d)
	}
	for _, row := range rows {
		at, a, b := 0, math.Inf(1), math.Inf(1)
		for i, c := range centres {
			distance := 0.0
			for j, x := range row {
				distance += (x - c[j]) * (x - c[j])
			}
			if distance < a {
				at, a, b = i, distance, a
			} else {
				b = min(b, distance)
			}
		}
		silhouette += 1 - math.Sqrt(a/b)
		counts[at]++
		for j, x := range row {
			sums[at][j] += x
			total[j] += x
			within += x * x
		}
	}
	n, between := float64(len(rows)), 0.0
	for j := range d {
		between -= total[j] * total[j] / n
		for i, count := range counts {
			between += sums[i][j] * sums[i][j] / count
			within -= sums[i][j] * sums[i][j] / count
		}
	}
	k := float64(len(centres))
	return between / (k - 1) / (within / (n - k)), silhouette / n
}

// roundedCentres are published ones, in the units of the columns.
var roundedCentres = map[string][][]float64{
	"Adult":    {{34.74, 8.413, 43.05}, {23.87, 10.05, 33.8}, {42.11, 13.26, 45.47}, {55.26, 8.992, 39.13}},
	"penguins": {{38.3, 18.1, 188.1, 3540}, {46.9, 18.7, 195.7, 4030}, {47.5, 14.96, 217.2, 5090}},
}

// Without noise scores are those of scikit-learn, Calinski-Harabasz to 1e-9 and the silhouette, which is in steps, to 1e-5.
func TestScoresWithoutNoise(t *testing.T) {
	reference := map[string][2]float64{}
	for name, r := range clusterReference(t) {
		reference[name] = [2]float64{r.Calinski, r.Silhouette}
	}
	data := []clusterData{clusterPenguins(t)}
	if !testing.Short() {
		data = append(data, clusterAdult(t))
	}
	for _, c := range data {
		centres := roundedCentres[c.name]
		p := c.scoring(t, centres, 1, true, true)
		got := scored(t, p, nil, c.trueScoreSums(t, p))
		if got.CalinskiHarabasz == nil || got.Silhouette == nil {
			t.Fatalf("%s: %+v", c.name, got)
		}
		want := reference[c.name]
		if x := got.CalinskiHarabasz.Value; math.Abs(x/want[0]-1) > 1e-9 {
			t.Errorf("%s: Calinski-Harabasz is %.12g, want %.12g", c.name, x, want[0])
		}
		if x := got.Silhouette.Value; math.Abs(x-want[1]) > 1e-5 {
			t.Errorf("%s: silhouette is %.12g, want %.12g", c.name, x, want[1])
		}
	}
}

// What a price buys, with noise that is the same in each run: Calinski-Harabasz within a part of the truth in 90 % of runs, or not
// resolvable, and the root mean square error of silhouettes.
func TestAccuracyOfScores(t *testing.T) {
	data, runs := []clusterData{clusterPenguins(t)}, randomtest.Part(30, 100)
	if !testing.Short() {
		data = append(append(data, clusterAdult(t)), clusterDigits(t)[:randomtest.Part(1, 2)]...)
	}
	bars := map[string]struct{ calinski, silhouette float64 }{"Adult": {0.04, 0.0005}, "optdigits": {0.15, 0.002},
		"optdigits blocks": {0, 0.002}, "penguins": {0, 0.03}}
	for _, c := range data {
		centres := roundedCentres[c.name]
		if centres == nil {
			for _, centre := range c.clusteredBy(t, c.plan(t, 8, 1), nil, nil).Centres {
				centres = append(centres, centre.Values)
			}
		}
		var near [][]float64
		for _, centre := range centres {
			row := slices.Clone(centre)
			scaleBy(row, c.bounds)
			near = append(near, row)
		}
		calinski, silhouette := scoresOf(c.rows, near)
		s := rewritetest.FixedSampler(t)
		both, alone := c.scoring(t, centres, 1, true, false), c.scoring(t, centres, 1, false, true)
		sums, excess := c.trueScoreSums(t, both), c.trueScoreSums(t, alone)
		var ratios []float64
		resolved, covered, held, square := 0, 0, 0, 0.0
		for range runs {
			if got := scored(t, both, s, sums).CalinskiHarabasz; got != nil {
				resolved++
				ratios = append(ratios, math.Abs(got.Value/calinski-1))
				if got.Interval[0] <= calinski && calinski <= got.Interval[1] {
					covered++
				}
			}
			got := scored(t, alone, s, excess).Silhouette
			square += (got.Value - silhouette) * (got.Value - silhouette)
			if got.Interval[0] <= silhouette && silhouette <= got.Interval[1] {
				held++
			}
		}
		slices.Sort(ratios)
		ratio, rmse, bar := 0.0, math.Sqrt(square/float64(runs)), bars[c.name]
		if resolved > 0 {
			ratio = ratios[resolved*9/10]
		}
		verdict := fmt.Sprintf("%s: Calinski-Harabasz %.4g, resolved in %d of %d runs, 90 %% within %.3f, intervals cover %d; silhouette %.4f, "+
			"rmse %.5f, intervals cover %d", c.name, calinski, resolved, runs, ratio, covered, silhouette, rmse, held)
		t.Log(verdict)
		if rmse > bar.silhouette || held < runs*85/100 || bar.calinski > 0 && (resolved < runs || ratio > bar.calinski ||
			covered < runs*85/100) || c.name == "penguins" && resolved > 0 {
			t.Errorf("%s; want %+v", verdict, bar)
		}
	}
}

// What is no score is refused, with a code of its own or that of a query over the same expressions.
func TestScoreRefusals(t *testing.T) {
	snapshot := rewritetest.ParseSnapshot(t, fitTables, fitPolicy)
	for name, c := range map[string]struct {
		change func(*fit.ScoreQuestion)
		code   fault.Code
	}{
		"nothing":            {func(*fit.ScoreQuestion) {}, ""},
		"one centre":         {func(q *fit.ScoreQuestion) { q.Centres = q.Centres[:1] }, fault.CodeFit},
		"too many centres":   {func(q *fit.ScoreQuestion) { q.Centres = slices.Repeat(q.Centres, 33) }, fault.CodeFit},
		"a centre too short": {func(q *fit.ScoreQuestion) { q.Centres = [][]float64{{1, 2}, {1}} }, fault.CodeFit},
		"no number":          {func(q *fit.ScoreQuestion) { q.Centres = [][]float64{{1, 2}, {1, math.NaN()}} }, fault.CodeFit},
		"no columns":         {func(q *fit.ScoreQuestion) { q.Columns = nil }, fault.CodeFit},
		"a level too high":   {nil, fault.CodeFit},
		"no score":           {func(q *fit.ScoreQuestion) { q.CalinskiHarabasz, q.Silhouette = false, false }, fault.CodeFit},
		"a text":             {func(q *fit.ScoreQuestion) { q.Columns[0].Expr = "sex" }, fault.CodeTypeMismatch},
		"a unit picked":      {func(q *fit.ScoreQuestion) { q.Where = "person_id = 7" }, fault.CodeUnitColumn},
		"a weight of dust":   {func(q *fit.ScoreQuestion) { q.Columns[0].Weight = big.NewRat(1, 1001) }, fault.CodeFit},
		"too many sums": {func(q *fit.ScoreQuestion) {
			q.Columns, q.Centres = nil, make([][]float64, 64)
			for i := range 40 {
				q.Columns = append(q.Columns, features(fmt.Sprintf("age + %d * education_num", i+1))...)
			}
			for i := range q.Centres {
				q.Centres[i] = make([]float64, 40)
			}
		}, fault.CodeFit},
	} {
		q := fit.ScoreQuestion{From: "people", Columns: features("age", "hours_per_week"), Centres: [][]float64{{30, 40}, {50, 20}},
			CalinskiHarabasz: true, Silhouette: true}
		o := fit.ScoreOptions{Rho: mechanisms.RhoUnit, Confidence: 0.95}
		if c.change == nil {
			o.Confidence = 0.999
		} else {
			c.change(&q)
		}
		_, err := fit.NewScoring(q, snapshot, o)
		if c.code == "" && err != nil || c.code != "" && fault.CodeOf(err) != c.code {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
	}
}

// Two spellings of one scoring are one; what changes the answer is another.
func TestScoringsAreKnownByWhatTheyAsk(t *testing.T) {
	all := known{}
	seen := map[[32]byte]int{}
	for i, change := range []func(*fit.ScoreQuestion, *fit.ScoreOptions){
		func(*fit.ScoreQuestion, *fit.ScoreOptions) {},
		func(q *fit.ScoreQuestion, _ *fit.ScoreOptions) { q.Where = "" },
		func(q *fit.ScoreQuestion, _ *fit.ScoreOptions) { q.Centres[1][0] = 51 },
		func(q *fit.ScoreQuestion, _ *fit.ScoreOptions) { q.Silhouette = false },
		func(q *fit.ScoreQuestion, _ *fit.ScoreOptions) { q.CalinskiHarabasz = false },
		func(q *fit.ScoreQuestion, _ *fit.ScoreOptions) { q.Columns[0].Weight = big.NewRat(2, 1) },
		func(_ *fit.ScoreQuestion, o *fit.ScoreOptions) { o.Rho *= 2 },
		func(_ *fit.ScoreQuestion, o *fit.ScoreOptions) { o.Confidence = 0.9 },
		func(q *fit.ScoreQuestion, _ *fit.ScoreOptions) { q.Where = "sex='Male' and (age) > 30.0" },
	} {
		q := fit.ScoreQuestion{From: "people", Where: "age > 30 AND sex = 'Male'", Columns: features("age", "education_num"),
			Centres: [][]float64{{30, 9}, {50, 12}}, CalinskiHarabasz: true, Silhouette: true}
		o := fit.ScoreOptions{Rho: mechanisms.RhoUnit, Confidence: 0.95}
		change(&q, &o)
		p, err := fit.NewScoring(q, rewritetest.ParseSnapshot(t, fitTables, fitPolicy), o)
		if err != nil {
			t.Fatal(err)
		}
		if had, twice := seen[all.name(t, p)]; twice != (i == 8) || i == 8 && had != 0 {
			t.Errorf("change %d: known %v, as %d", i, twice, had)
		}
		seen[p.Fingerprint()] = i
		if p.Loss().Rho != o.Rho || len(p.Mechanisms()) != 1 {
			t.Errorf("change %d costs %v", i, p.Loss())
		}
	}
}

// A centre beyond the bounds of a column is one at the bound, however far.
func TestCentresEndAtBounds(t *testing.T) {
	all := known{}
	identity := func(age float64) [32]byte {
		q := fit.ScoreQuestion{From: "people", Columns: features("age"), Centres: [][]float64{{30}, {age}}, CalinskiHarabasz: true}
		p, err := fit.NewScoring(q, rewritetest.ParseSnapshot(t, fitTables, fitPolicy),
			fit.ScoreOptions{Rho: mechanisms.RhoUnit, Confidence: 0.95})
		if err != nil {
			t.Fatal(err)
		}
		return all.name(t, p)
	}
	if identity(1e5) != identity(1e9) || identity(-1e5) != identity(-1e9) || identity(1e5) == identity(-1e5) || identity(1e5) == identity(50) {
		t.Error("centres beyond the bounds are told apart, or are not where the bound is")
	}
}

// The silhouette's interval holds also where its number of rows is a sum of many noisy sizes. The randomness is fixed.
func TestSilhouettesOfManyCentresCover(t *testing.T) {
	const centres, rows, runs = 16, 40_000, 200
	q := fit.ScoreQuestion{From: "people", Columns: features("age"), CalinskiHarabasz: true, Silhouette: true}
	for i := range centres {
		q.Centres = append(q.Centres, []float64{20 + 3*float64(i)})
	}
	p, err := fit.NewScoring(q, rewritetest.ParseSnapshot(t, fitTables, fitPolicy), fit.ScoreOptions{Rho: mechanisms.RhoUnit / 100,
		Confidence: 0.95})
	if err != nil {
		t.Fatal(err)
	}
	var sums []*big.Int // sizes and sums by centre, squares, and 2a/b - 1, which is -1 of rows that lie on their centres
	for range centres {
		sums = append(sums, big.NewInt(rows/centres), new(big.Int))
	}
	sums = append(sums, big.NewInt(rows), big.NewInt(-rows*int64(1<<16)))
	s, covered := rewritetest.FixedSampler(t), 0
	for range runs {
		if got := scored(t, p, s, sums).Silhouette; got != nil && got.Interval[1] >= 1 {
			covered++
		}
	}
	if covered < runs*90/100 { // the upper end alone is held to the truth: 97.5 %
		t.Errorf("%d of %d intervals hold the truth", covered, runs)
	}
}

// TestNeighboursOfScores: taking one unit out of a random database moves the integers of a random scoring by at most what its noise is made
// for.
func TestNeighboursOfScores(t *testing.T) {
	t.Parallel()
	w := gen.NewWorld(t, 17, gen.Wild, 4)
	reached, ran, several := new(big.Rat), 0, 0
	for tried := 0; ran < randomtest.Part(30, 160) && tried < 5000; tried++ {
		if tried%20 == 0 {
			w.Fill(t, tried%40 == 0)
		}
		f := randomFit(w)
		q := fit.ScoreQuestion{From: f.From, Where: f.Where, CalinskiHarabasz: w.Rand.IntN(3) > 0}
		q.Silhouette = !q.CalinskiHarabasz || w.Rand.IntN(2) == 0
		for _, c := range f.Features {
			if !c.OneHot {
				q.Columns = append(q.Columns, c)
			}
		}
		for range 2 + w.Rand.IntN(4) {
			var centre []float64
			for range q.Columns {
				centre = append(centre, 20*w.Rand.NormFloat64())
			}
			q.Centres = append(q.Centres, centre)
		}
		p, err := fit.NewScoring(q, w.Snapshot, fit.ScoreOptions{Rho: mechanisms.RhoUnit, MaxRows: int64(w.Rand.IntN(3)), Confidence: 0.95})
		if err != nil {
			if fault.CodeOf(err) == fault.CodeUnverified || fault.CodeOf(err) == fault.CodeInternal {
				t.Fatal(err, errors.Unwrap(err))
			}
			continue
		}
		ran++
		s := p.DryRuns()[0].For
		if !strings.Contains(s.SQL, "least") {
			t.Fatal(s.SQL)
		}
		if s.Claim.Joint[0].L2Squared.Cmp(big.NewRat(4, 1)) > 0 {
			several++
		}
		reached = larger(reached, movesWithin(t, w, s))
	}
	t.Logf("%d scorings, %d of units with several rows; the largest move is %s of its claim", ran, several, reached.FloatString(3))
	if reached.Cmp(big.NewRat(8, 10)) < 0 || several < ran/5 {
		t.Error("the test has no power")
	}
}
