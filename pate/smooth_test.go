package pate

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"testing"

	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

func TestLocalSensitivityOfGNMaxMeetsGoldenVectors(t *testing.T) {
	golden(t, "e", "ss_gnmax/", 11, func(t *testing.T, r record) {
		counts := countsOf(t, r)
		teachers := in[int64](t, r, "num_teachers")
		s := newGNMaxSensitivity(in[float64](t, r, "sigma"), in[float64](t, r, "order"), len(counts))
		near(t, "logq0", s.logq0, out[float64](t, r, "logq0"))
		near(t, "logq1", s.logq1, out[float64](t, r, "logq1"))
		sums := make([]float64, teachers)
		newWalker(s, s.sigma, teachers, Continuous).addTo(sums, counts, 1)
		nearAll(t, "local sensitivity", sums, expand(out[[][2]float64](t, r, "local_sensitivity_rle")))
		for beta, want := range out[map[string]float64](t, r, "discounted_max") {
			b, err := strconv.ParseFloat(beta, 64)
			if err != nil {
				t.Fatal(err)
			}
			near(t, "discounted maximum at "+beta, discountedMax(b, sums), want)
		}
	})
}

// expand undoes run-length encoding.
func expand(runs [][2]float64) []float64 {
	var list []float64
	for _, r := range runs {
		list = append(list, slices.Repeat([]float64{r[0]}, int(r[1]))...)
	}
	return list
}

func TestGNSSCostMeetsGoldenVectors(t *testing.T) {
	golden(t, "e", "gnss/", 4, func(t *testing.T, r record) {
		near(t, "cost", gnssCost(in[float64](t, r, "beta"), in[float64](t, r, "sigma_ss"), in[float64](t, r, "order")), out[float64](t, r, "rdp"))
	})
}

func TestConditionsMeetGoldenVectors(t *testing.T) {
	golden(t, "e", "ss_conditions/", 6, func(t *testing.T, r record) {
		s := newGNMaxSensitivity(in[float64](t, r, "sigma"), in[float64](t, r, "order"), in[int](t, r, "classes"))
		c5, c6 := s.conditions()
		if c5 != out[bool](t, r, "C5") || c6 != out[bool](t, r, "C6") {
			t.Errorf("C5 %v, C6 %v, want %s, %s", c5, c6, r.Output["C5"], r.Output["C6"])
		}
	})
}

func TestLocalSensitivityOfTheCheckMeetsGoldenVectors(t *testing.T) {
	golden(t, "e", "ss_threshold/", 5, func(t *testing.T, r record) {
		v := int64(math.Floor(slices.Max(in[[]float64](t, r, "counts")) + 0.5))
		c := check{threshold: in[float64](t, r, "T"), sigma: in[float64](t, r, "sigma"), noise: Continuous}
		teachers := in[int64](t, r, "num_teachers")
		sums := make([]float64, teachers)
		costs := newCheckCosts(c, teachers, in[float64](t, r, "order"))
		for d := range sums {
			sums[d] = costs.at(v, int64(d))
		}
		want := out[[]float64](t, r, "local_sensitivity")
		if last := max(v, teachers-v); last < teachers && want[last] == 0 {
			want[last] = sums[last] // the reference's loop ends one short of the farthest table
		}
		for d := range sums {
			// Steps are differences of costs near order/2σ²: they cannot be better than a unit of those.
			if unit := 0x1p-52 * in[float64](t, r, "order"); math.Abs(sums[d]-want[d]) > 1e-12*want[d]+unit {
				t.Errorf("local sensitivity[%d] = %.17g, want %.17g", d, sums[d], want[d])
			}
		}
		for beta, want := range out[map[string]float64](t, r, "discounted_max") {
			b, err := strconv.ParseFloat(beta, 64)
			if err != nil {
				t.Fatal(err)
			}
			near(t, "discounted maximum at "+beta, discountedMax(b, sums), want)
		}
	})
}

func TestSanitisedTableMeetsGoldenVectors(t *testing.T) {
	golden(t, "e", "ss_table/", 1, func(t *testing.T, r record) {
		table := mnist(t, in[int](t, r, "rows"))
		delta, order := in[float64](t, r, "delta"), in[float64](t, r, "order")
		m := modeOf(t, table.Ensemble(), Settings{
			Mode: Confident, Threshold: decimal(in[float64](t, r, "T")), Sigma1: decimal(in[float64](t, r, "sigma1")),
			Sigma2: decimal(in[float64](t, r, "sigma2")),
		})
		beta, sigma := out[float64](t, r, "beta_opt"), out[float64](t, r, "sigma_ss")
		s, err := m.NewSanitiser(SanitiserParameters{Order: decimal(order), Beta: decimal(beta), SigmaSS: decimal(sigma), Delta: decimal(delta)})
		if err != nil {
			t.Fatal(err)
		}
		exact, smooth, err := s.measure(table, AnalysisParameters{Delta: delta, Noise: Continuous})
		if err != nil {
			t.Fatal(err)
		}
		near(t, "rdp", exact, out[float64](t, r, "rdp"))
		near(t, "smooth sensitivity", smooth, out[float64](t, r, "smooth_sensitivity"))
		near(t, "cost", s.cost, out[float64](t, r, "gnss_rdp_cost"))
		near(t, "epsilon", classic(exact, order, delta), out[float64](t, r, "eps_data_dependent"))
		near(t, "sanitised", classic(exact+s.cost, order, delta), out[float64](t, r, "eps_sanitized_mean"))
		near(t, "its deviation", smooth*sigma, out[float64](t, r, "eps_sanitized_sd"))
	})
}

// TestSanitisedEpsilonIsStableWhereVotesAreUnanimous: the reference crashes on such tables, because q underflows.
func TestSanitisedEpsilonIsStableWhereVotesAreUnanimous(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	for _, c := range []struct {
		votes        uint32
		sigma, order string
	}{{5000, "20", "14"}, {5000, "40", "8"}, {1000, "10", "4"}, {1000, "5", "2"}} {
		table := tableOf(t, slices.Repeat([][]uint32{append([]uint32{c.votes}, make([]uint32, 9)...)}, 100))
		s, err := modeOf(t, table.Ensemble(), Settings{Mode: GNMax, Sigma: c.sigma}).NewSanitiser(SanitiserParameters{Order: c.order,
			SigmaSS: "6", Delta: "1e-5"})
		if err != nil {
			t.Fatal(err)
		}
		exact, smooth, err := s.measure(table, AnalysisParameters{Delta: 1e-5, Noise: Discrete})
		if err != nil || !(exact >= 0 && exact < 1e-20) || !(smooth >= 0 && smooth < 1) {
			t.Errorf("%+v: divergence %g, smooth sensitivity %g, %v", c, exact, smooth, err)
		}
		got, err := s.Release(fixedSampler(t), table, nil, nil)
		if want := min(tight(s.cost, s.order, s.delta), s.Independent(100, nil)); err != nil || math.Abs(got.Epsilon-want) > 0.01 {
			t.Errorf("%+v: epsilon %g, want about %g, %v", c, got.Epsilon, want, err)
		}
	}
}

// sanitised is what is published of an invented table: the sanitiser, the exact number and its smooth sensitivity.
func sanitised(t *testing.T) (s *Sanitiser, exact, smooth float64) {
	t.Helper()
	table := tableOf(t, invented(200, 10, 250))
	s, err := modeOf(t, table.Ensemble(), Settings{Mode: GNMax, Sigma: "40"}).NewSanitiser(SanitiserParameters{Order: "14", SigmaSS: "3",
		Delta: "1e-5"})
	if err != nil {
		t.Fatal(err)
	}
	if exact, smooth, err = s.measure(table, AnalysisParameters{Delta: s.delta, Noise: Discrete}); err != nil {
		t.Fatal(err)
	}
	return s, exact, smooth
}

// TestSanitisedEpsilonHasItsLaw: 2,000 draws have mean and deviation of the theorem's Gaussian, within five and a half
// standard errors (false alarm 4e-8 each).
func TestSanitisedEpsilonHasItsLaw(t *testing.T) {
	s, exact, smooth := sanitised(t)
	const draws = 2000
	raised, wider, _ := s.margin()
	deviation := wider * smooth * s.sigma
	mean := tight(exact+s.cost, s.order, s.delta) + raised*deviation
	sampler, sum, squares := fixedSampler(t), 0.0, 0.0
	for range draws {
		got, err := s.draw(sampler, exact, smooth)
		if err != nil {
			t.Fatal(err)
		}
		z := (got.Epsilon - mean) / deviation
		sum, squares = sum+z, squares+z*z
	}
	if z := sum / math.Sqrt(draws); math.Abs(z) > 5.5 {
		t.Errorf("the mean is %g standard errors off", z)
	}
	if z := (squares - draws) / math.Sqrt(2*draws); math.Abs(z) > 6.5 { // a chi-square's tail is a little longer
		t.Errorf("the variance is %g standard errors off", z)
	}
}

// TestChargeForSanitising: what is charged depends on no vote, covers the theorem's cost and is rounded up.
func TestChargeForSanitising(t *testing.T) {
	m := modeOf(t, ensembleOf(t, 10, 250, 1), Settings{Mode: GNMax, Sigma: "40"})
	s, err := m.NewSanitiser(SanitiserParameters{Order: "14", Beta: "0.0329", SigmaSS: "6.23", Delta: "1e-5"})
	if err != nil {
		t.Fatal(err)
	}
	within(t, "cost", s.cost, 0.5183929399476159, 1e-12) // golden record gnss/0.0329/6.23/14.0
	epsilon := float64(s.Loss().Epsilon) / float64(mechanisms.EpsilonUnit)
	if want := tight(s.cost, 14, 1e-5); epsilon < want || epsilon > want*(1+1e-8) || s.Loss().Delta != mechanisms.DeltaUnit/100_000 ||
		s.Loss().Unbounded {
		t.Errorf("%+v is charged, the cost is ε = %g", s.Loss(), want)
	}
	if want := (SanitiserParameters{Order: "14", Beta: "329/10000", SigmaSS: "623/100", Delta: "0.00001"}); s.Parameters() != want {
		t.Errorf("parameters %+v, want %+v", s.Parameters(), want)
	}
	byDefault, err := m.NewSanitiser(SanitiserParameters{Order: "14", SigmaSS: "6.23", Delta: "1e-5"})
	if err != nil || byDefault.Parameters().Beta != "1/35" {
		t.Errorf("β is %v by default, %v", byDefault, err)
	}
}

func TestSanitisersThatAreRefused(t *testing.T) {
	e := ensembleOf(t, 10, 250, 1)
	good := SanitiserParameters{Order: "14", SigmaSS: "6", Delta: "1e-5"}
	gnmax := Settings{Mode: GNMax, Sigma: "40"}
	for name, c := range map[string]struct {
		ensemble Ensemble
		settings Settings
		p        SanitiserParameters
		code     fault.Code
	}{
		"Laplace":      {e, Settings{Mode: LNMax, NoiseScale: "20"}, good, fault.CodePateConditions},
		"Gumbel":       {e, Settings{Mode: Gumbel, Gamma: "0.05"}, good, fault.CodePateConditions},
		"two teachers": {ensembleOf(t, 10, 250, 2), gnmax, good, fault.CodePateConditions},
		"C6 fails": {e, Settings{Mode: GNMax, Sigma: "20"}, SanitiserParameters{Order: "25", SigmaSS: "6", Delta: "1e-5"},
			fault.CodePateConditions},
		"little noise":  {e, Settings{Mode: GNMax, Sigma: "0.9"}, good, fault.CodePateConditions},
		"beta too high": {e, gnmax, SanitiserParameters{Order: "14", Beta: "0.036", SigmaSS: "6", Delta: "1e-5"}, fault.CodePateConditions},
		"order of one":  {e, gnmax, SanitiserParameters{Order: "1", SigmaSS: "6", Delta: "1e-5"}, fault.CodePateParameters},
		"no sigma":      {e, gnmax, SanitiserParameters{Order: "14", Delta: "1e-5"}, fault.CodePateParameters},
		"no delta":      {e, gnmax, SanitiserParameters{Order: "14", SigmaSS: "6"}, fault.CodePateParameters},
		"delta of one":  {e, gnmax, SanitiserParameters{Order: "14", SigmaSS: "6", Delta: "1"}, fault.CodePateParameters},
	} {
		if _, err := modeOf(t, c.ensemble, c.settings).NewSanitiser(c.p); fault.CodeOf(err) != c.code {
			t.Errorf("%s: %v", name, err)
		}
	}
	confident := modeOf(t, e, Settings{Mode: Confident, Threshold: "200", Sigma1: "150", Sigma2: "40"})
	s, err := confident.NewSanitiser(good)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Release(fixedSampler(t), tableOf(t, invented(2, 10, 250)), nil, nil); fault.CodeOf(err) != fault.CodePateParameters {
		t.Errorf("a run without outcomes: %v", err)
	}
}

// TestSmoothSensitivityBoundsEveryTable enumerates all ways in which five teachers can vote on two queries: from every table, the
// cost of no table within a distance changes by more towards any neighbour than the sums say. For checks alone that fails with the sums
// of the published script, over what is at a distance instead of within it.
func TestSmoothSensitivityBoundsEveryTable(t *testing.T) {
	const teachers = 5
	for _, noise := range []Noise{Continuous, Discrete} {
		for _, order := range []float64{2, 10} {
			for threshold := 0.0; threshold <= teachers+1; threshold += 0.5 {
				checks := newCheckCosts(check{threshold: threshold, sigma: 1, noise: noise}, teachers, order)
				boundsEveryTable(t, fmt.Sprintf("%s check of %g at order %g", noise, threshold, order), teachers,
					func(sums []float64, counts []uint32) float64 {
						return checks.addTo(sums, largestSum(counts, []int64{0, -teachers})) // interactive: the student is sure of the second class
					})
			}
		}
		s := newGNMaxSensitivity(1, 2, 2)
		if c5, c6 := s.conditions(); !c5 || !c6 {
			t.Fatalf("C5 %v, C6 %v", c5, c6)
		}
		walk := newWalker(s, s.sigma, teachers, noise)
		boundsEveryTable(t, string(noise)+" answers", teachers, func(sums []float64,
			counts []uint32) float64 {
			return walk.addTo(sums, counts, 1)
		})
	}
}

// boundsEveryTable calls add for each query of each table. A table is a number: two bits for each teacher, its votes on the two queries.
func boundsEveryTable(t *testing.T, what string, teachers int, add func(sums []float64, counts []uint32) (cost float64)) {
	t.Helper()
	tables := 1 << (2 * teachers)
	cost, bounds, local := make([]float64, tables), make([][]float64, tables), make([]float64, tables)
	for table := range tables {
		bounds[table] = make([]float64, teachers+1)
		for query := range 2 {
			counts := []uint32{uint32(teachers), 0}
			for teacher := range teachers {
				vote := uint32(table >> (2*teacher + query) & 1)
				counts[0], counts[1] = counts[0]-vote, counts[1]+vote
			}
			cost[table] += add(bounds[table], counts)
		}
	}
	distance := func(a, b int) int { return bits.OnesCount(uint(((a ^ b) | (a^b)>>1) & 0x5555_5555)) }
	for a := range tables {
		for b := range tables {
			if distance(a, b) == 1 {
				local[a] = max(local[a], math.Abs(cost[a]-cost[b]))
			}
		}
	}
	for a := range tables {
		for b := range tables {
			if d := distance(a, b); local[b] > bounds[a][d]*(1+1e-9)+1e-12 {
				t.Fatalf("%s: from table %#x, at distance %d: %g, bound %g", what, a, d, local[b], bounds[a][d])
			}
		}
	}
}

// TestSmoothSensitivityIsSmooth enumerates the histograms of one query of several classes: no cost changes by more towards a neighbour than
// the bounds say, and no bound exceeds that of a neighbour one step farther, which is what makes their discounted maximum smooth. At
// σ 1 and order 1.5 the data-independent bound begins in a jump, and the largest step is the one across it.
func TestSmoothSensitivityIsSmooth(t *testing.T) {
	for _, c := range []struct {
		classes, teachers int
		sigma, order      float64
	}{{2, 60, 7.3, 5}, {3, 12, 1, 2}, {3, 24, 4, 4}, {4, 10, 1, 1.5}, {4, 12, 3, 2}, {5, 9, 1, 2}} {
		s := newGNMaxSensitivity(c.sigma, c.order, c.classes)
		if c5, c6 := s.conditions(); !c5 || !c6 {
			t.Fatalf("%+v: C5 %v, C6 %v", c, c5, c6)
		}
		for _, noise := range []Noise{Continuous, Discrete} {
			walk := newWalker(s, c.sigma, int64(c.teachers), noise)
			tables := histograms(c.classes, c.teachers)
			cost, bounds := make([]float64, len(tables)), make([][]float64, len(tables))
			for i, counts := range tables {
				bounds[i] = make([]float64, c.teachers+1)
				cost[i] = walk.addTo(bounds[i], counts, 1)
			}
			for a := range tables {
				for b := range tables {
					if movedVotes(tables[a], tables[b]) != 1 {
						continue
					}
					if step := math.Abs(cost[a] - cost[b]); step > bounds[a][0]*(1+1e-9)+1e-12 {
						t.Fatalf("%+v, %s: from %v to %v the cost changes by %g, bound %g", c, noise, tables[a], tables[b], step, bounds[a][0])
					}
					for d, bound := range bounds[a][:c.teachers] {
						if next := bounds[b][d+1]; bound > next*(1+1e-9)+1e-12 {
							t.Fatalf("%+v, %s: %g at distance %d from %v, %g one farther from %v", c, noise, bound, d, tables[a], next, tables[b])
						}
					}
				}
			}
		}
	}
}

// histograms are all ways in which teachers can vote on one query.
func histograms(classes, teachers int) [][]uint32 {
	if classes == 1 {
		return [][]uint32{{uint32(teachers)}}
	}
	var all [][]uint32
	for n := range teachers + 1 {
		for _, rest := range histograms(classes-1, teachers-n) {
			all = append(all, append([]uint32{uint32(n)}, rest...))
		}
	}
	return all
}

// movedVotes is how many votes differ between two histograms.
func movedVotes(a, b []uint32) (moved uint32) {
	for i := range a {
		moved += max(a[i], b[i]) - b[i]
	}
	return moved
}
