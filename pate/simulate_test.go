package pate

import (
	"math"
	"math/big"
	"testing"

	"noisegate.example/internal/fault"
)

// TestSimulationCounts: with little noise a simulation agrees with the plurality, and the check rejects what is below its threshold.
func TestSimulationCounts(t *testing.T) {
	table := tableOf(t, [][]uint32{{90, 10, 0}, {10, 80, 10}, {34, 33, 33}, {100, 0, 0}})
	m := modeOf(t, table.Ensemble(), Settings{Mode: Confident, Threshold: "60", Sigma1: "1", Sigma2: "1"})
	s, err := m.Simulate(fixedSampler(t), table, SimulationParameters{Rounds: 20, Truth: []int{0, 2, 0, 0}})
	if err != nil {
		t.Fatal(err)
	}
	want := Simulation{
		Queries: 4, Answered: 0.75, Labelled: 0.75, Agreement: 1, Accuracy: 2.0 / 3, Plurality: 0.75,
		Mean: m.Released(4, 3), Worst: m.WorstCase(4),
	}
	if *s != want {
		t.Errorf("%+v, want %+v", *s, want)
	}
	for name, p := range map[string]SimulationParameters{
		"no round": {}, "too many rounds": {Rounds: 1001}, "truth of others": {Rounds: 1, Truth: []int{1}},
		"a student": {Rounds: 1, Students: make([]Student, 4)},
	} {
		if _, err := m.Simulate(fixedSampler(t), table, p); fault.CodeOf(err) != fault.CodePateParameters &&
			fault.CodeOf(err) != fault.CodePateStudent {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSimulationOfInteractive: where teachers agree with a sure student, the student's label stands.
func TestSimulationOfInteractive(t *testing.T) {
	table := tableOf(t, [][]uint32{{90, 10}, {10, 90}})
	var students []Student
	for range 2 {
		s, err := NewStudent(table.Ensemble(), []*big.Rat{big.NewRat(9, 10), big.NewRat(1, 10)})
		if err != nil {
			t.Fatal(err)
		}
		students = append(students, s)
	}
	m := modeOf(t, table.Ensemble(), Settings{Mode: Interactive, Threshold: "40", Sigma1: "1", Sigma2: "1", StudentConfidence: "0.8"})
	s, err := m.Simulate(fixedSampler(t), table, SimulationParameters{Rounds: 50, Students: students})
	if err != nil || s.Answered != 0.5 || s.Labelled != 1 || s.Agreement != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestMoreTeachersPerPersonScaleTheNoise: k teachers per person, with k times the noise and votes, cost what one teacher costs.
//
// covers: A82
func TestMoreTeachersPerPersonScaleTheNoise(t *testing.T) {
	one, three := invented(40, 5, 100), [][]uint32{}
	for _, row := range one {
		scaled := make([]uint32, len(row))
		for i, n := range row {
			scaled[i] = 3 * n
		}
		three = append(three, scaled)
	}
	small := tableOf(t, one)
	var flat []uint32
	for _, row := range three {
		flat = append(flat, row...)
	}
	large, err := NewTable(ensembleOf(t, 5, 300, 3), flat)
	if err != nil {
		t.Fatal(err)
	}
	for _, pair := range [][2]Settings{
		{{Mode: LNMax, NoiseScale: "10"}, {Mode: LNMax, NoiseScale: "30"}},
		{{Mode: GNMax, Sigma: "15"}, {Mode: GNMax, Sigma: "45"}},
		{{Mode: Confident, Threshold: "70", Sigma1: "20", Sigma2: "15"}, {Mode: Confident, Threshold: "210", Sigma1: "60", Sigma2: "45"}},
		{{Mode: Gumbel, Gamma: "0.3"}, {Mode: Gumbel, Gamma: "0.1"}},
	} {
		a, b := analyse(t, small, pair[0], AnalysisParameters{Delta: 1e-5}), analyse(t, large, pair[1], AnalysisParameters{Delta: 1e-5})
		for i, l := range a.Lines {
			tolerance := 1e-9
			if l.Method == TightIndependent && pair[0].Mode == LNMax {
				tolerance = 0.03 // ρ of integer noise under a move by one is a little larger than that of its continuous limit
			}
			if got := b.Lines[i].Total(); math.Abs(got/l.Total()-1) > tolerance {
				t.Errorf("%s, %s: %g with k = 3, %g with k = 1", pair[0].Mode, l.Method, got, l.Total())
			}
		}
	}
}

// TestDiscreteNoiseIsBoundedFromAbove: the bounds on q for integer noise are not below its true q, summed term by term, ties going
// against the winner; and they are not far above it.
func TestDiscreteNoiseIsBoundedFromAbove(t *testing.T) {
	// tail is P(X-Y >= d) for two noises with this mass.
	tail := func(mass func(int64) float64, reach, d int64) float64 {
		total, sum := 0.0, 0.0
		for x := -reach; x <= reach; x++ {
			total += mass(x)
		}
		for x := -reach; x <= reach; x++ {
			for y := -reach; y <= x-d; y++ {
				sum += mass(x) * mass(y)
			}
		}
		return sum / (total * total)
	}
	for _, scale := range []float64{0.3, 0.5, 0.7, 1, 2.5, 10} {
		for _, d := range []int64{0, 1, 2, 5, 11} {
			counts := []uint32{uint32(20 + d), 20}
			exact := tail(gaussianMass(scale), int64(12*scale)+20, d)
			if q := math.Exp(logqGaussian(counts, scale, Discrete)); q < min(exact, 0.5)*(1-1e-12) ||
				d > 2 && scale >= 1 && q > exact*math.Exp(float64(d)/square(scale)+1/scale) {
				t.Errorf("σ %g, gap %d: q <= %g, exact %g", scale, d, q, exact)
			}
			exact = tail(laplaceMass(scale), int64(45*scale)+20, d)
			near(t, "tail of Laplace noise", math.Exp(logDiscreteLaplaceTail(float64(d), 1/scale)), exact)
		}
		for threshold := int64(-9); threshold <= 9; threshold++ {
			c := check{threshold: float64(threshold), sigma: scale, noise: Discrete}
			yes, all := 0.0, 0.0
			for x := -int64(12 * scale); x <= int64(12*scale); x++ {
				all += gaussianMass(scale)(x)
				if x >= threshold {
					yes += gaussianMass(scale)(x)
				}
			}
			yes /= all
			if q := math.Exp(c.logq(0)); q < min(yes, 1-yes)*(1-1e-9) {
				t.Errorf("σ %g, threshold %d: q <= %g, exact %g", scale, threshold, q, min(yes, 1-yes))
			}
		}
	}
}

// TestFractionsOfVotes: integers that are to reach 149.1 must reach 150, in the analysis as in the mechanism.
func TestFractionsOfVotes(t *testing.T) {
	table := tableOf(t, invented(20, 4, 250))
	analyse := func(threshold string, noise Noise) float64 {
		m := modeOf(t, table.Ensemble(), Settings{Mode: Confident, Threshold: threshold, Sigma1: "30", Sigma2: "15"})
		a, err := m.Analyse(table, AnalysisParameters{Delta: 1e-5, Noise: noise})
		if err != nil {
			t.Fatal(err)
		}
		return total(t, a, TightDependent).Total()
	}
	if got, want := analyse("149.1", Discrete), analyse("150", Discrete); got != want {
		t.Errorf("discrete: ε = %g at 149.1, %g at 150", got, want)
	}
	if analyse("149.1", Continuous) == analyse("150", Continuous) {
		t.Error("continuous noise is held to integers")
	}
}

// TestAnalysesThatAreRefused: parameters out of range.
func TestAnalysesThatAreRefused(t *testing.T) {
	table := tableOf(t, invented(3, 4, 100))
	m := modeOf(t, table.Ensemble(), Settings{Mode: GNMax, Sigma: "15"})
	for name, p := range map[string]AnalysisParameters{
		"no delta":           {},
		"delta of one":       {Delta: 1},
		"order of one":       {Delta: 1e-5, Orders: []float64{1}},
		"no orders":          {Delta: 1e-5, Orders: []float64{}},
		"infinite order":     {Delta: 1e-5, Orders: []float64{math.Inf(1)}},
		"NaN":                {Delta: math.NaN()},
		"unknown noise":      {Delta: 1e-5, Noise: "pink"},
		"negative moments":   {Delta: 1e-5, Moments: -1},
		"outcomes of others": {Delta: 1e-5, Outcomes: []Status{Answered}},
	} {
		if _, err := m.Analyse(table, p); fault.CodeOf(err) != fault.CodePateParameters {
			t.Errorf("%s: %v", name, err)
		}
	}
	other := modeOf(t, ensembleOf(t, 4, 99, 1), Settings{Mode: GNMax, Sigma: "15"})
	if _, err := other.Analyse(table, AnalysisParameters{Delta: 1e-5}); fault.CodeOf(err) != fault.CodePateParameters {
		t.Errorf("another ensemble: %v", err)
	}
	interactive := modeOf(t, table.Ensemble(), Settings{Mode: Interactive, Threshold: "1", Sigma1: "1", Sigma2: "1", StudentConfidence: "0.5"})
	for _, students := range [][]Student{nil, make([]Student, 3)} {
		if _, err := interactive.Analyse(table, AnalysisParameters{Delta: 1e-5, Students: students}); fault.CodeOf(err) != fault.CodePateStudent {
			t.Errorf("%d empty students: %v", len(students), err)
		}
	}
	if _, err := modeOf(t, ensembleOf(t, 4, 100, 2), Settings{Mode: GNMax, Sigma: "15"}).Analyse(table,
		AnalysisParameters{Delta: 1e-5, Exact: true}); err == nil {
		t.Error("exact divergences of two teachers per person")
	}
}

// TestVotesNeverCostMoreThanIsCharged: of integer noise, what an analysis of votes finds is at most what is charged
// without looking at them.
func TestVotesNeverCostMoreThanIsCharged(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	table := tableOf(t, invented(100, 4, 100))
	for _, s := range []Settings{
		{Mode: LNMax, NoiseScale: "40"}, {Mode: LNMax, NoiseScale: "3"}, {Mode: GNMax, Sigma: "15"}, {Mode: Gumbel, Gamma: "0.05"},
		{Mode: Confident, Threshold: "80", Sigma1: "30", Sigma2: "15"},
	} {
		a, err := modeOf(t, table.Ensemble(), s).Analyse(table, AnalysisParameters{Delta: 1e-5, Exact: true,
			Orders: []float64{1.5, 2, 3, 5, 8, 13}})
		if err != nil {
			t.Fatal(err)
		}
		charged := total(t, a, TightIndependent).Total()
		for _, m := range []Method{TightDependent, ExactLocal} {
			if l, ok := a.Line(m); ok && l.Total() > charged*(1+1e-9) {
				t.Errorf("%s %s%s: %g, charged %g", s.Mode, s.NoiseScale, m, l.Total(), charged)
			}
		}
	}
}
