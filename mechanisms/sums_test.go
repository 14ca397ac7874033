package mechanisms

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// Prepared sums are as wide as the law of each says, but for a little on the safe side, and never wider than Boole's bound.
func TestSumsAreSumHalfWidths(t *testing.T) {
	noises := map[string][]Additive{
		"laplace":  {laplaceTerm(t, 20, 1).Noise, laplaceTerm(t, 3, 1).Noise},
		"small":    {laplaceTerm(t, 0.3, 1).Noise, laplaceTerm(t, 0.5, 1).Noise},
		"gaussian": {gaussianTerm(t, 400, 1).Noise, gaussianTerm(t, 17, 1).Noise},
		"mixed":    {gaussianTerm(t, 400, 1).Noise, laplaceTerm(t, 3, 1).Noise},
	}
	for name, two := range noises {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				weights := []float64{rapid.Float64Range(-100, 100).Draw(t, "weight"), math.Exp2(rapid.Float64Range(-20, 10).Draw(t, "other"))}
				if rapid.Bool().Draw(t, "equal") {
					weights[0] = weights[1] * rapid.SampledFrom([]float64{3. / 20, 1, 20. / 3, 1.0001 * 3. / 20}).Draw(t, "ratio")
				}
				times := []int{1, rapid.SampledFrom([]int{1, 1, 1, 5}).Draw(t, "times")}
				level := rapid.SampledFrom([]Confidence{0.5, 0.8, 0.95, 0.999}).Draw(t, "level")
				var terms []weightedTerm
				for i, w := range weights {
					if w != 0 {
						terms = append(terms, weightedTerm{two[i], math.Abs(w), float64(times[i])})
					}
				}
				sums := NewSums(two, times, level)
				got, most := sums.HalfWidth(weights), sums.Boole(weights)
				want := sumWidth(terms, 1-float64(level)) // on no grid, by the series, which is rounded up
				if len(terms) > 1 && (got < want*(1-1e-3) || got > want*1.001+1e-9) || got > most*(1+1e-12) {
					t.Fatalf("weights %v, times %v, level %g: %g, by the series %g, Boole %g", weights, times, float64(level), got, want, most)
				}
			})
		})
	}
	if got := NewSums(noises["laplace"], []int{1, 1}, 0.95).HalfWidth([]float64{0, 0}); got != 0 {
		t.Errorf("the half width of nothing is %g", got)
	}
}
