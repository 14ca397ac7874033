package mechanisms

import (
	"math/big"
	"testing"

	"noisegate.example/internal/stattest"
)

func selectors() []Name { return []Name{ExponentialMechanism, PermuteAndFlipMechanism, ReportNoisyMax} }

// lawOf is the law of a selector, computed without it.
func lawOf(by Name, rate float64, scores []int64) []float64 {
	switch by {
	case ExponentialMechanism:
		return stattest.ExponentialLaw(rate, scores)
	case PermuteAndFlipMechanism:
		return stattest.PermuteAndFlipLaw(rate, scores)
	default:
		return stattest.NoisyMaxLaw(rate, scores)
	}
}

// Medians and first groups by each selector have the selector's law, pick by pick (false alarm 1e-9 each).
func TestSelectorsByName(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	scores := []int64{5, 5, 4, 1}
	for _, by := range selectors() {
		top, err := NewTopK(TopKParameters{K: 2, By: by, SelectionParameters: SelectionParameters{Sensitivity: big.NewInt(2), Monotone: true,
			Epsilon: 3 * EpsilonUnit}})
		if err != nil {
			t.Fatal(err)
		}
		const rate = 3.0 / 2 / 2
		var want []float64
		for i, p := range lawOf(by, rate, scores) {
			rest := append(append([]int64{}, scores[:i]...), scores[i+1:]...)
			for _, q := range lawOf(by, rate, rest) {
				want = append(want, p*q)
			}
		}
		s, counts, sealed := fixedSampler(t), make([]int64, len(want)), scoresOf([]float64{5, 5, 4, 1})
		for range 40_000 {
			chosen := top.Select(s, sealed)
			i, j := chosen[0], chosen[1]
			if j > i {
				j--
			}
			counts[3*i+j]++
		}
		fits(t, counts, want)
		if p := top.Parameters(); p.Mechanism != TopKSelection || p.Selection != by || p.Count != 2 {
			t.Errorf("%+v", p)
		}

		quantile, err := NewQuantile(QuantileParameters{Fraction: big.NewRat(1, 2), Grid: 6, Rows: big.NewInt(1), By: by, Epsilon: EpsilonUnit})
		if err != nil {
			t.Fatal(err)
		}
		tallies := []Tally{{SealInt64(1), SealInt64(3)}, {SealInt64(4), SealInt64(4)}}
		counts = make([]int64, 6)
		for range 40_000 {
			counts[quantile.Select(s, tallies)]++
		}
		// Twice the rank is 7; twice the ranks are 0, 0 to 6, 6, 6, 6 to 14, 14, and move by 1.
		fits(t, counts, lawOf(by, 0.5, []int64{-7, -1, -1, -1, 0, -7}))
		if p := quantile.Parameters(); p.Mechanism != QuantileSelection || p.Selection != by {
			t.Errorf("%+v", p)
		}
	}
}

// A price in ρ buys the largest ε whose charge keeps to it, by each selector's own bound.
func TestSelectionsPricedInRho(t *testing.T) {
	for _, by := range selectors() {
		for _, rho := range []PicoRho{1, 1_000_000, RhoUnit / 8, 2 * RhoUnit, 30 * RhoUnit} {
			charged := func(epsilon PicoEpsilon) PicoRho {
				m, err := NewSelector(by, SelectionParameters{Sensitivity: big.NewInt(1), Epsilon: epsilon})
				if err != nil {
					t.Fatal(err)
				}
				return m.Loss().Rho
			}
			epsilon := SelectionEpsilon(by, rho)
			if epsilon == 0 || charged(epsilon) > rho || charged(epsilon+epsilon/1_000_000+2) < rho {
				t.Errorf("%s: ρ %s buys ε %s", by, rho, epsilon)
			}
		}
	}
}

func TestSelectorsOfOtherNames(t *testing.T) {
	good := SelectionParameters{Sensitivity: big.NewInt(1), Epsilon: EpsilonUnit}
	for _, name := range []Name{"", "gumbel", TopKSelection, QuantileSelection, DiscreteLaplace} {
		if _, err := NewSelector(name, good); err == nil || IsSelector(name) {
			t.Errorf("%q is a selector", name)
		}
	}
	if _, err := NewTopK(TopKParameters{K: 1, By: DiscreteLaplace, SelectionParameters: good}); err == nil {
		t.Error("first groups by Laplace noise")
	}
	for _, by := range selectors() {
		_, err := NewQuantile(QuantileParameters{Fraction: big.NewRat(1, 2), Grid: maxListed + 1, Rows: big.NewInt(1), By: by,
			Epsilon: EpsilonUnit})
		if (err == nil) != (by == ExponentialMechanism) {
			t.Errorf("%s over %d points: %v", by, maxListed+1, err)
		}
	}
}
