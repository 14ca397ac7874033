package mechanisms

import (
	"math"
	"testing"
)

// Thresholds on Laplace counts are what other systems select groups with. Noisegate does not: at the same price, the optimal
// rule shows every group at least as readily. The records hold that against the thresholds of other systems.
func TestPartitionSelectionBeatsLaplaceThresholds(t *testing.T) {
	shown := map[string]func(v vector, n, threshold float64) float64{
		"threshold_laplace": func(v vector, n, threshold float64) float64 {
			distance := (n - threshold) / v.output(t, "lambda")
			if distance < 0 {
				return math.Exp(distance) / 2
			}
			return 1 - math.Exp(-distance)/2
		},
		"threshold_discrete_laplace": func(v vector, n, threshold float64) float64 {
			a := v.input(t, "eps") / v.input(t, "l0")
			if n < threshold {
				return math.Exp(-a*(threshold-n)) / (1 + math.Exp(-a))
			}
			return 1 - math.Exp(-a*(n-threshold+1))/(1+math.Exp(-a))
		},
	}
	seen := map[string]int{}
	for _, v := range readVectors(t, "testdata/thresholds.json") {
		seen[v.Family]++
		t.Run(v.ID, func(t *testing.T) {
			l0 := v.rat(t, "l0").Num().Int64()
			g, err := NewPartitionSelection(GroupSelectionParameters{
				Epsilon: PicoEpsilon(ceilUnits(v.rat(t, "eps"), int64(EpsilonUnit))),
				Delta:   AttoDelta(ceilUnits(v.rat(t, "delta"), int64(DeltaUnit))), L0: l0})
			if err != nil {
				t.Fatal(err)
			}
			// Both rules give each of L0 groups an equal part of δ.
			name, perGroup := "threshold_union", v.input(t, "delta")/float64(l0)
			if v.Family == "threshold_discrete_laplace" {
				name = "threshold_integer"
				if got := shown[v.Family](v, 1, v.output(t, name)); math.Abs(got/v.output(t, "delta_achieved_per_partition")-1) > v.RelTol {
					t.Errorf("one unit is shown with probability %g, the record says otherwise", got)
				}
			}
			threshold := v.output(t, name)
			if one := shown[v.Family](v, 1, threshold); one > perGroup*(1+1e-4) {
				t.Errorf("one unit is shown with probability %g, more than %g", one, perGroup)
			}
			for _, n := range []float64{1, 2, threshold / 2, threshold, 1.2 * threshold, 2 * threshold} {
				n = math.Floor(n)
				if ours, theirs := g.KeepProbability(int64(n)), shown[v.Family](v, n, threshold); ours < theirs*(1-1e-4) {
					t.Errorf("a group of %g is shown with probability %g, by the threshold with %g", n, ours, theirs)
				}
			}
		})
	}
	for family := range shown {
		if seen[family] == 0 {
			t.Errorf("no records of %s", family)
		}
	}
}
