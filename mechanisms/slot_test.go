package mechanisms

import (
	"math/big"
	"testing"
)

// TestSlotLossIsTheWorst: whatever the sensitivity, the slot's noise loses no more than the slot says, and keeps its ε or ρ.
func TestSlotLossIsTheWorst(t *testing.T) {
	for _, s := range []Slot{{Epsilon: 1}, {Epsilon: EpsilonUnit / 10}, {Epsilon: 7 * EpsilonUnit}, {Epsilon: MaxEpsilon}, {Rho: 1},
		{Rho: RhoUnit / 200}, {Rho: MaxRho}} {
		worst, err := s.Loss()
		if err != nil {
			t.Fatal(err)
		}
		for _, l1 := range []int64{1, 2, 3, 100, 1 << 40} {
			noise, err := s.Noise(big.NewInt(l1), new(big.Int).Mul(big.NewInt(l1), big.NewInt(l1)))
			if err != nil {
				t.Fatal(err)
			}
			got := noise.Loss()
			if noise.Name() != s.Name() || got.Unbounded != worst.Unbounded || got.Rho > worst.Rho || got.Delta != 0 ||
				!got.Unbounded && (got.Epsilon > worst.Epsilon || got.Epsilon != s.Epsilon) || got.Unbounded && got.Rho > s.Rho {
				t.Errorf("%+v, sensitivity %d: %s loses %+v, at most %+v", s, l1, noise.Name(), got, worst)
			}
		}
	}
}

func TestSlotsAreChecked(t *testing.T) {
	for _, s := range []Slot{{}, {Epsilon: 1, Rho: 1}, {Epsilon: -1}, {Rho: -1}, {Epsilon: 1, Rho: -1}, {Epsilon: MaxEpsilon + 1},
		{Rho: MaxRho + 1}} {
		if _, err := s.Noise(big.NewInt(1), big.NewInt(1)); err == nil || s.Check() == nil {
			t.Errorf("%+v is taken", s)
		}
		if _, err := s.Loss(); err == nil {
			t.Errorf("%+v has a loss", s)
		}
	}
}
