package accounting

import (
	"math"
	"math/big"
	"testing"

	"noisegate.example/internal/exact"
	"noisegate.example/mechanisms"
)

// Why PLD is no filter. An analyst asks k counts with Laplace noise and may then choose between two releases, Gaussian noise or a
// threshold that fails with probability δ. Either way the PLD of what was asked is within (ε, δ). But an analyst who asks for the threshold
// when the counts lost little, and for Gaussian noise when they lost much, has spent up to twice the δ.
func TestPLDIsNoFilter(t *testing.T) {
	vectors(t, "filter_counterexample", func(t *testing.T, v vector) {
		first := v.Inputs["first"].(map[string]any)
		each, k := v.rat(t, first["eps"]), v.rat(t, first["count"]).Num().Int64()
		eps, delta := v.num(t, "eps_budget"), v.num(t, "delta_budget")
		sigma, lost := v.out(t, "gaussian_sigma"), v.out(t, "threshold_delta")
		counts := Repeated{event(t, PureEvent, each), k} // the law of discrete Laplace noise at sensitivity 1
		threshold, err := ApproxEvent(big.NewRat(1, 1e15), new(big.Rat).SetFloat64(lost))
		if err != nil {
			t.Fatal(err)
		}
		gauss := event(t, continuousGaussianEvent, new(big.Rat).SetFloat64(sigma))

		// Each path alone is within the budget, as PLD sees it.
		for name, e := range map[string]Event{"gaussian": gauss, "threshold": threshold} {
			if d := newPLD(t, counts, Repeated{e, 1}).delta(eps); d > delta*(1+1e-4) {
				t.Errorf("%s alone: delta = %g, the record says it meets %g", name, d, delta)
			}
		}

		// The analyst who looks first: the sum over what the counts may lose, of the worse of the two.
		adaptive, e := 0.0, float(each)
		for wins := range k + 1 {
			loss := e * float64(2*wins-k)
			logChance := logBinomial(k, wins) - float64(k-wins)*e - float64(k)*math.Log1p(math.Exp(-e))
			byThreshold := lost + (1-lost)*max(0, -math.Expm1(eps-loss))
			byGaussian := GaussianDelta(sigma, eps-loss)
			adaptive += math.Exp(logChance) * max(byThreshold, byGaussian)
		}
		if want := v.out(t, "delta_adaptive"); math.Abs(adaptive/want-1) > v.RelTol {
			t.Errorf("delta = %.12g, want %.12g", adaptive, want)
		}
		if adaptive < 1.2*delta {
			t.Errorf("delta = %g: no counterexample", adaptive)
		}

		// Our rule for the same budget refuses both: it has no room for the threshold's δ on top of ρ's, nor for the Gaussian's ρ.
		epsilon := mechanisms.PicoEpsilon(exact.FloorUnits(v.in(t, "eps_budget"), int64(mechanisms.EpsilonUnit)))
		total := mechanisms.AttoDelta(exact.FloorUnits(v.in(t, "delta_budget"), int64(mechanisms.DeltaUnit)))
		coins := total / 2 // form approx, as budget.NewLimit has it
		most := RhoFor(epsilon, total-coins)
		if spent := float64(k)*counts.Event.model.rho() + gauss.model.rho(); spent*1e12 <= float64(most) {
			t.Errorf("rho %g fits in %d", spent, most)
		}
		if mechanisms.AttoDelta(lost*1e18) <= coins {
			t.Errorf("delta %g fits in %d", lost, coins)
		}
	})
}

func logBinomial(n, k int64) float64 {
	lg := func(x int64) float64 { v, _ := math.Lgamma(float64(x) + 1); return v }
	return lg(n) - lg(k) - lg(n-k)
}
