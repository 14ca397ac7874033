package budget

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"noisegate/mechanisms"
)

func (v vector) stakes(t *testing.T, sensitivities string) []Stake {
	t.Helper()
	weights, moves := v.Inputs["weights"].([]any), v.Inputs[sensitivities].([]any)
	stakes := make([]Stake, len(weights))
	for i := range stakes {
		d := v.rat(t, moves[i])
		stakes[i] = Stake{v.rat(t, weights[i]), d.Mul(d, d)}
	}
	return stakes
}

// granted checks that shares meet the record, rounded down to a unit.
func granted[P mechanisms.PicoRho | mechanisms.PicoEpsilon](t *testing.T, v vector, shares []P, wanted []float64) {
	t.Helper()
	if len(shares) != len(wanted) {
		t.Fatalf("%d shares, want %d", len(shares), len(wanted))
	}
	for i, want := range wanted {
		if got := float64(shares[i]) * 1e-12; got > want*(1+v.RelTol) || got < want*(1-v.RelTol)-1e-12 {
			t.Errorf("share %d = %.15g, want %.15g", i, got, want)
		}
	}
}

func TestAllocateMeetsGoldenVectors(t *testing.T) {
	vectors(t, "allocate_rho", func(t *testing.T, v vector) {
		total := mechanisms.PicoRho(floor(v.in(t, "rho"), int64(mechanisms.RhoUnit)))
		stakes := v.stakes(t, "l2_sensitivities")
		shares, err := AllocateRho(total, stakes)
		if err != nil {
			t.Fatal(err)
		}
		granted(t, v, shares, v.list(t, v.Outputs["rho_j"]))
		for i, sigma := range v.list(t, v.Outputs["sigma_j"]) {
			if got := math.Sqrt(float(stakes[i].SquaredSensitivity) / (2e-12 * float64(shares[i]))); math.Abs(got/sigma-1) > 1e-10 {
				t.Errorf("sigma %d = %g, want %g", i, got, sigma)
			}
		}
	})
	vectors(t, "allocate_eps", func(t *testing.T, v vector) {
		total := mechanisms.PicoEpsilon(floor(v.in(t, "eps"), int64(mechanisms.EpsilonUnit)))
		shares, err := AllocateEpsilon(total, v.stakes(t, "l1_sensitivities"))
		if err != nil {
			t.Fatal(err)
		}
		granted(t, v, shares, v.list(t, v.Outputs["eps_j"]))
	})
}

// Shares never sum to more than the price, and are as good as any other: moving some of one share to another does not lower the
// weighted variance.
func TestAllocateIsThriftyAndBest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		positive := rapid.Int64Range(1, 10_000)
		var stakes []Stake
		for range rapid.IntRange(1, 8).Draw(t, "releases") {
			stakes = append(stakes, Stake{big.NewRat(positive.Draw(t, "w"), positive.Draw(t, "v")), big.NewRat(positive.Draw(t, "d"), 1)})
		}
		total := rapid.Int64Range(1e10, 1e18).Draw(t, "total")
		rhos, err := AllocateRho(mechanisms.PicoRho(total), stakes)
		if err != nil {
			t.Fatal(err)
		}
		epsilons, err := AllocateEpsilon(mechanisms.PicoEpsilon(total), stakes)
		if err != nil {
			t.Fatal(err)
		}
		best := func(what string, shares []float64, power float64) {
			sum, cost := 0.0, func(i int, share float64) float64 {
				return float(stakes[i].Weight) * float(stakes[i].SquaredSensitivity) / math.Pow(share, power)
			}
			for i, s := range shares {
				sum += s
				j := (i + 1) % len(shares)
				move := 0.01 * s
				if i != j && cost(i, s-move)+cost(j, shares[j]+move) < (cost(i, s)+cost(j, shares[j]))*(1-1e-6) {
					t.Fatalf("%s: moving a part of share %d to %d is better: %v", what, i, j, shares)
				}
			}
			if n := float64(len(shares)); sum < float64(total)*(1-1e-12)-n {
				t.Fatalf("%s: %g of %d shared", what, sum, total)
			}
		}
		var exact big.Int
		as := func(n int64) float64 { exact.Add(&exact, big.NewInt(n)); return float64(n) }
		shares := make([]float64, len(stakes))
		for i, r := range rhos {
			shares[i] = as(int64(r))
		}
		best("rho", shares, 1)
		if exact.Cmp(big.NewInt(total)) > 0 {
			t.Fatalf("rho: %v shared of %d", &exact, total)
		}
		exact.SetInt64(0)
		for i, e := range epsilons {
			shares[i] = as(int64(e))
		}
		best("epsilon", shares, 2)
		if exact.Cmp(big.NewInt(total)) > 0 {
			t.Fatalf("epsilon: %v shared of %d", &exact, total)
		}
	})
}

func TestAllocateRefuses(t *testing.T) {
	one := big.NewRat(1, 1)
	for name, stakes := range map[string][]Stake{
		"weight 0":         {{one, one}, {new(big.Rat), one}},
		"negative weight":  {{big.NewRat(-1, 1), one}},
		"no sensitivity":   {{one, nil}},
		"a share below 1 ": {{one, one}, {big.NewRat(1, 1e18), big.NewRat(1, 1e18)}},
	} {
		if shares, err := AllocateRho(1000, stakes); err == nil {
			t.Errorf("%s: %v", name, shares)
		}
	}
}
