package accounting

import (
	"math"
	"math/big"
	"testing"
	"time"

	"noisegate.example/internal/randomtest"
)

func TestPLDMeetsGoldenVectors(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	parts := randomtest.Part(1, 4) // of four, of the queries of each record
	t.Run("randomized response", func(t *testing.T) {
		vectors(t, "pld_randomized_response", func(t *testing.T, v vector) {
			e, err := randomizedResponseEvent(v.in(t, "noise_parameter"), v.in(t, "num_buckets").Num().Int64())
			if err != nil {
				t.Fatal(err)
			}
			v.exact(t, newPLD(t, Repeated{e, v.times(t)}), parts)
		})
	})
	t.Run("discrete laplace", func(t *testing.T) {
		vectors(t, "pld_discrete_laplace", func(t *testing.T, v vector) {
			shift := v.in(t, "sensitivity")
			e, err := DiscreteLaplaceEvent(shift.Num(), new(big.Rat).Quo(shift, v.in(t, "eps_per_query")))
			if err != nil {
				t.Fatal(err)
			}
			v.exact(t, newPLD(t, Repeated{e, v.times(t)}), parts)
		})
	})
	t.Run("gaussian", func(t *testing.T) {
		vectors(t, "pld_gaussian", func(t *testing.T, v vector) {
			multiplier := new(big.Rat).Quo(v.in(t, "sigma"), v.in(t, "sensitivity"))
			v.exact(t, newPLD(t, Repeated{event(t, continuousGaussianEvent, multiplier), v.times(t)}), parts)
		})
	})
	t.Run("discrete gaussian", func(t *testing.T) {
		vectors(t, "pld_discrete_gaussian", func(t *testing.T, v vector) {
			e, err := DiscreteGaussianEvent(v.in(t, "sensitivity").Num(), v.in(t, "sigma2"))
			if err != nil {
				t.Fatal(err)
			}
			v.exact(t, newPLD(t, Repeated{e, v.times(t)}), parts)
		})
	})
	t.Run("laplace", func(t *testing.T) {
		vectors(t, "pld_laplace", func(t *testing.T, v vector) {
			v.exact(t, newPLD(t, Repeated{event(t, continuousLaplaceEvent, v.in(t, "eps_per_query")), v.times(t)}), parts)
		})
		vectors(t, "pld_laplace_bracket", func(t *testing.T, v vector) {
			v.bracket(t, newPLD(t, Repeated{event(t, continuousLaplaceEvent, v.in(t, "eps_per_query")), v.times(t)}), parts)
		})
	})
	t.Run("heterogeneous", func(t *testing.T) {
		vectors(t, "pld_heterogeneous", func(t *testing.T, v vector) {
			p := newPLD(t, v.events(t)...)
			v.bracket(t, p, parts)
			if v.Outputs["delta_exact"] != nil {
				v.exact(t, p, parts)
			}
		})
	})
	t.Run("prv", func(t *testing.T) {
		vectors(t, "prv_bracket", func(t *testing.T, v vector) {
			got := newPLD(t, v.events(t)...).epsilon(v.num(t, "delta"))
			if got < v.out(t, "eps_lower") || got > v.out(t, "eps_upper") {
				t.Errorf("epsilon = %.12g, not in [%.12g, %.12g]", got, v.out(t, "eps_lower"), v.out(t, "eps_upper"))
			}
		})
	})
}

// The two known mistakes of a reference accountant, which lost the count of some events, are not ours.
func TestReferenceBugsAreNotOurs(t *testing.T) {
	vectors(t, "reference_bug_regression", func(t *testing.T, v vector) {
		delta := v.num(t, "delta")
		switch v.Inputs["mechanism"] {
		case "exponential_mechanism":
			list := []Repeated{{event(t, RangeEvent, v.in(t, "eps")), v.times(t)}}
			got, _ := rdpEpsilon(list, delta)
			// The record minimised over 154 orders, we over all.
			above(t, "epsilon", got, v.out(t, "eps_correct_rdp")*(1-1e-4), 2e-4)
			if one, _ := rdpEpsilon([]Repeated{{list[0].Event, 1}}, delta); got <= one {
				t.Errorf("%d releases cost %g, one costs %g", v.times(t), got, one)
			}
		case "binary_randomized_response":
			e, err := randomizedResponseEvent(v.in(t, "noise_parameter"), 2)
			if err != nil {
				t.Fatal(err)
			}
			above(t, "epsilon", newPLD(t, Repeated{e, v.times(t)}).epsilon(delta), v.out(t, "eps_correct_pld")*(1-v.RelTol), 2*v.RelTol)
		default:
			t.Fatal("unknown mechanism")
		}
	})
}

// A thousand different releases: the price is tighter than Rényi accounting's and near the limit law's; -v shows the time.
func TestThousandDifferentReleases(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	list := thousand(t)
	start := time.Now()
	p := newPLD(t, list...)
	tight := p.epsilon(1e-6)
	took := time.Since(start)
	rdp, _ := rdpEpsilon(list, 1e-6)
	var variance float64
	for _, r := range list {
		variance += 2 * r.Event.model.rho()
	}
	// By the central limit theorem the sum's loss is that of a Gaussian with this variance, within a few per cent.
	limit := GaussianEpsilon(1/math.Sqrt(variance), 1e-6)
	t.Logf("1,000 different releases: ε = %.6f by PLD in %v, %.6f by RDP; Gaussian limit %.6f", tight, took.Round(time.Millisecond),
		rdp, limit)
	if tight >= rdp || math.Abs(tight/limit-1) > 0.02 {
		t.Errorf("ε = %g, RDP says %g, the Gaussian limit %g", tight, rdp, limit)
	}
	if took > time.Minute {
		t.Errorf("took %v", took)
	}
}

func thousand(t testing.TB) []Repeated {
	t.Helper()
	var list []Repeated
	for i := range int64(500) {
		laplace, err := DiscreteLaplaceEvent(big.NewInt(1+i%7), big.NewRat((1+i%7)*10_000, 200+i))
		if err != nil {
			t.Fatal(err)
		}
		gauss, err := DiscreteGaussianEvent(big.NewInt(1+i%5), big.NewRat((1+i%5)*(1+i%5)*(400+i), 1))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, Repeated{laplace, 1}, Repeated{gauss, 1})
	}
	if n := len(merge(list)); n != 1000 {
		t.Fatalf("%d different releases", n)
	}
	return list
}

func BenchmarkPLDThousandDifferent(b *testing.B) {
	list := thousand(b)
	for b.Loop() {
		newPLD(b, list...).epsilon(1e-6)
	}
}

func BenchmarkPLDThousandEqual(b *testing.B) {
	e := event(b, continuousLaplaceEvent, big.NewRat(1, 100))
	for b.Loop() {
		newPLD(b, Repeated{e, 1000}).epsilon(1e-6)
	}
}
