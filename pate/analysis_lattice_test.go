package pate

import (
	"math"
	"testing"
)

// latticeEpsilon is ε of two integers with Gaussian noise, one moving up and one down, summed over all pairs.
func latticeEpsilon(sigma, delta float64) float64 {
	const reach = 40
	mass, total := map[int]float64{}, 0.0
	for x := -reach; x <= reach; x++ {
		mass[x] = math.Exp(-float64(x*x) / (2 * sigma * sigma))
		total += mass[x]
	}
	lost := func(epsilon float64) (sum float64) {
		for x := -reach + 1; x < reach; x++ {
			for y := -reach + 1; y < reach; y++ {
				sum += math.Max(0, mass[x]*mass[y]-math.Exp(epsilon)*mass[x-1]*mass[y+1]) / (total * total)
			}
		}
		return sum
	}
	low, high := 0.0, 100.0
	for high-low > 1e-7 {
		if middle := (low + high) / 2; lost(middle) > delta {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// analysed are the lines for votes on so many queries, all teachers agreeing.
func analysed(t *testing.T, s Settings, p AnalysisParameters, queries int, perPerson int64) (*Analysis, map[Method]Line) {
	t.Helper()
	e := ensembleOf(t, 2, 50, perPerson)
	var counts []uint32
	for range queries {
		counts = append(counts, 50, 0)
	}
	table, err := NewTable(e, counts)
	if err != nil {
		t.Fatal(err)
	}
	a, err := modeOf(t, e, s).Analyse(table, p)
	if err != nil {
		t.Fatal(err)
	}
	lines := map[Method]Line{}
	for _, l := range a.Lines {
		lines[l.Method] = l
	}
	return a, lines
}

// TestLatticeIsTheTruth: with integer noise the line is the sum over all outcomes, from above; the formula for continuous noise is below
// the truth at small σ, and is not shown for integer noise.
func TestLatticeIsTheTruth(t *testing.T) {
	for _, sigma := range []float64{1, 1.5, 2} {
		s := Settings{Mode: GNMax, Sigma: decimal(sigma)}
		_, discrete := analysed(t, s, AnalysisParameters{Delta: 1e-5}, 1, 1)
		_, continuous := analysed(t, s, AnalysisParameters{Delta: 1e-5, Noise: Continuous}, 1, 1)
		truth := latticeEpsilon(sigma, 1e-5)
		got := discrete[LatticePLD].Total()
		if got < truth-1e-6 || got > truth*(1+1e-4) {
			t.Errorf("σ %g: %.6f, truth %.6f", sigma, got, truth)
		}
		if formula := continuous[ExactGaussian].Total(); sigma == 1 && (math.Abs(truth-6.7013) > 5e-5 || math.Abs(formula-6.5730) > 5e-5) {
			t.Errorf("σ 1: truth %.4f, formula %.4f", truth, formula)
		}
		if _, shown := discrete[ExactGaussian]; shown {
			t.Error("the formula for continuous noise stands beside integer noise")
		}
		if _, shown := continuous[LatticePLD]; shown {
			t.Error("the law of integer noise stands beside continuous noise")
		}
	}
}

// TestLatticeOfFourQueries: the same ρ of 1 from four queries with σ = 2, whose ε was computed independently.
func TestLatticeOfFourQueries(t *testing.T) {
	_, lines := analysed(t, Settings{Mode: GNMax, Sigma: "2"}, AnalysisParameters{Delta: 1e-5, Points: 1}, 4, 1)
	if got := lines[LatticePLD].Total(); got < 6.5753 || got > 6.5760 {
		t.Errorf("ε %.4f, want 6.5754", got)
	}
}

// TestLatticeLine: on the whole way the line rises, is never above Rényi accounting, and counts checks; it is there where the law is known.
func TestLatticeLine(t *testing.T) {
	gnmax := Settings{Mode: GNMax, Sigma: "10"}
	a, lines := analysed(t, gnmax, AnalysisParameters{Delta: 1e-6, Points: 10}, 40, 1)
	line, tight := lines[LatticePLD].Epsilon, lines[TightIndependent].Epsilon
	if len(line) != len(a.Points) || lines[LatticePLD].Secret {
		t.Fatalf("%v", lines[LatticePLD])
	}
	for i, epsilon := range line {
		if !(epsilon > 0) || epsilon > tight[i] || i > 0 && epsilon < line[i-1]-1e-9 {
			t.Errorf("point %d: %g after %g; Rényi says %g", i, epsilon, line[max(i-1, 0)], tight[i])
		}
	}
	confident := Settings{Mode: Confident, Sigma1: "20", Sigma2: "10", Threshold: "30"}
	answered := make([]Status, 40)
	for i := range answered {
		answered[i] = Answered
	}
	_, checked := analysed(t, confident, AnalysisParameters{Delta: 1e-6, Points: 1, Outcomes: answered}, 40, 1)
	with := checked[LatticePLD]
	if with.Total() <= lines[LatticePLD].Total() || with.Secret || with.Total() > checked[TightIndependent].Total() {
		t.Errorf("with checks %v, without %v", with, lines[LatticePLD])
	}
	if _, expected := analysed(t, confident, AnalysisParameters{Delta: 1e-6, Points: 1}, 40, 1); !expected[LatticePLD].Secret {
		t.Error("an expectation over votes is not secret")
	}
	for name, s := range map[string]Settings{"two teachers a person": gnmax, "Laplace noise": {Mode: LNMax, NoiseScale: "10"}} {
		perPerson := int64(1)
		if s.Mode == GNMax {
			perPerson = 2
		}
		if _, lines := analysed(t, s, AnalysisParameters{Delta: 1e-6, Points: 1}, 2, perPerson); len(lines[LatticePLD].Epsilon) > 0 {
			t.Errorf("%s: %v", name, lines[LatticePLD])
		}
	}
}
