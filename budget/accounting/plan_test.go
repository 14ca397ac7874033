package accounting

import (
	"math"
	"slices"
	"testing"

	"noisegate.example/mechanisms"
)

func laplaceSlots(n int, milli int64) []mechanisms.Slot {
	return slices.Repeat([]mechanisms.Slot{{Epsilon: mechanisms.PicoEpsilon(milli * 1_000_000_000)}}, n)
}

func gaussianSlots(n int, micro int64) []mechanisms.Slot {
	return slices.Repeat([]mechanisms.Slot{{Rho: mechanisms.PicoRho(micro * 1_000_000)}}, n)
}

// TestPlanLoss: a plan of many slots costs less than its parts, and its ρ is their sum.
func TestPlanLoss(t *testing.T) {
	const delta = 1_000_000_000_000 // 10⁻⁶
	for name, c := range map[string]struct {
		slots     []mechanisms.Slot
		low, high float64 // of ε
		rho       mechanisms.PicoRho
		delta     mechanisms.AttoDelta
	}{
		"one":     {laplaceSlots(1, 100), 0.09999, 0.1, 4_995_837_496, delta},
		"ten":     {laplaceSlots(10, 100), 0.999, 1, 49_958_374_960, delta},
		"hundred": {laplaceSlots(100, 100), 4.6, 5.1, 499_583_749_600, delta},
		// below CKS20's 2.1419389 at ρ 0.1
		"gaussian": {gaussianSlots(20, 5000), 2, 2.142, 100_000_000_000, delta},
		// above the ε of either
		"both kinds": {slices.Concat(laplaceSlots(50, 100), gaussianSlots(20, 5000)), 4, 5, 249_791_874_800 + 100_000_000_000, delta},
	} {
		got, err := PlanLoss(c.slots, delta)
		if err != nil {
			t.Fatal(name, err)
		}
		eps := float64(got.Epsilon) / float64(mechanisms.EpsilonUnit)
		if eps < c.low || eps > c.high || got.Rho != c.rho || got.Delta != c.delta || got.Unbounded {
			t.Errorf("%s: ε %.6f, loss %+v", name, eps, got)
		}
		reversed := slices.Clone(c.slots)
		slices.Reverse(reversed)
		if again, err := PlanLoss(reversed, delta); err != nil || again.Rho != got.Rho ||
			math.Abs(float64(again.Epsilon-got.Epsilon)) > 1e-9*float64(got.Epsilon) {
			t.Errorf("%s: in another order %+v, %v", name, again, err)
		}
	}
}

// TestPlanLossIsExact holds the price against the exact δ of n-fold binary randomized response, a binomial sum.
func TestPlanLossIsExact(t *testing.T) {
	for _, c := range []struct {
		n     int
		eps   float64
		delta mechanisms.AttoDelta
	}{{10, 0.1, 1_000_000_000_000}, {40, 0.25, 1_000_000_000}, {100, 0.1, 1_000_000_000_000}, {7, 1.5, 1_000_000_000_000_000}} {
		got, err := PlanLoss(laplaceSlots(c.n, int64(c.eps*1000)), c.delta)
		if err != nil {
			t.Fatal(err)
		}
		at := float64(got.Epsilon) / float64(mechanisms.EpsilonUnit)
		exact := 0.0
		for k := range c.n + 1 { // k answers the likelier way
			loss := c.eps * float64(2*k-c.n)
			if loss > at {
				p := choose(c.n, k) - float64(c.n)*math.Log1p(math.Exp(-c.eps)) - c.eps*float64(c.n-k)
				exact += math.Exp(p) * -math.Expm1(at-loss)
			}
		}
		delta := float64(c.delta) / float64(mechanisms.DeltaUnit)
		if exact > delta || exact < 0.99*delta {
			t.Errorf("%d slots of %g: at ε %.9f the exact δ is %g, asked for %g", c.n, c.eps, at, exact, delta)
		}
	}
}

// choose is the logarithm of a binomial coefficient.
func choose(n, k int) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return a - b - c
}

func TestPlanLossRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		slots []mechanisms.Slot
		delta mechanisms.AttoDelta
	}{
		"nothing": {nil, 1000}, "no δ": {laplaceSlots(2, 1), 0}, "a δ of 1": {laplaceSlots(2, 1), mechanisms.DeltaUnit},
		"too many": {laplaceSlots(MaxSlots+1, 1), 1000}, "no slot": {[]mechanisms.Slot{{}}, 1000},
	} {
		if got, err := PlanLoss(c.slots, c.delta); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestPlanLossExtremes: the smallest and largest slots, alone and together, have a price that admission can add up.
func TestPlanLossExtremes(t *testing.T) {
	small, large := mechanisms.Slot{Epsilon: 1}, mechanisms.Slot{Epsilon: mechanisms.MaxEpsilon}
	for _, slots := range [][]mechanisms.Slot{
		{small}, {large}, {small, large}, {{Rho: 1}}, {{Rho: 1}, small}, {{Rho: 1}, {Rho: 1_000_000_000_000}},
		slices.Repeat([]mechanisms.Slot{large}, MaxSlots),
	} {
		for _, delta := range []mechanisms.AttoDelta{1, 1_000_000_000, mechanisms.MaxDelta} {
			got, err := PlanLoss(slots, delta)
			if err != nil || got.Epsilon < 0 || got.Rho <= 0 || got.Unbounded {
				t.Errorf("%+v at %s: %+v, %v", slots[0], delta, got, err)
			}
		}
	}
}

// TestPlanLossWithoutUseForDelta: where δ buys nothing, none is charged.
func TestPlanLossWithoutUseForDelta(t *testing.T) {
	got, err := PlanLoss([]mechanisms.Slot{{Epsilon: mechanisms.MaxEpsilon}, {Epsilon: mechanisms.MaxEpsilon}}, 1)
	if err != nil || got.Epsilon != 2*mechanisms.MaxEpsilon || got.Delta != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}
