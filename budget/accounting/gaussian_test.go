package accounting

import (
	"math"
	"testing"
)

func TestGaussianProfileMeetsGoldenVectors(t *testing.T) {
	vectors(t, "gaussian_delta", func(t *testing.T, v vector) {
		got := GaussianDelta(v.num(t, "sigma")/v.num(t, "sensitivity"), v.num(t, "eps"))
		above(t, "delta", got, v.out(t, "delta"), v.RelTol)
	})
	vectors(t, "analytic_gaussian_sigma", func(t *testing.T, v vector) {
		sensitivity := v.num(t, "l2_sensitivity")
		got := GaussianMultiplier(v.num(t, "eps"), v.num(t, "delta")) * sensitivity
		above(t, "sigma", got, v.out(t, "sigma"), v.RelTol)
	})
	vectors(t, "gdp_filter", func(t *testing.T, v vector) {
		square := 0.0
		for _, mu := range v.list(t, v.Inputs["mu"]) {
			square += mu * mu
		}
		if mu := math.Sqrt(square); math.Abs(mu/v.out(t, "mu_total")-1) > v.RelTol {
			t.Errorf("mu = %g, want %g", mu, v.out(t, "mu_total"))
		}
		above(t, "epsilon", GaussianEpsilon(1/math.Sqrt(square), v.num(t, "delta")), v.out(t, "eps_exact"), v.RelTol)
		zcdp, _ := rdpEpsilon([]Repeated{{Event{name: "zcdp", model: zcdpModel{square / 2}}, 1}}, v.num(t, "delta"))
		above(t, "epsilon by zCDP", zcdp, v.out(t, "eps_zcdp_tight"), v.RelTol)
	})
}

func TestGroupsAndSamplesMeetGoldenVectors(t *testing.T) {
	vectors(t, "group_privacy", func(t *testing.T, v vector) {
		size := v.in(t, "group").Num().Int64()
		eps, delta := GroupLoss(v.num(t, "eps"), v.num(t, "delta"), size)
		above(t, "epsilon", eps, v.out(t, "eps_group"), 1e-11)
		above(t, "delta", delta, v.out(t, "delta_group"), 1e-11)
		if float64(size*size) != v.out(t, "rho_scale") {
			t.Errorf("rho grows by %g", v.out(t, "rho_scale"))
		}
	})
	vectors(t, "amplification_poisson_pure", func(t *testing.T, v vector) {
		eps, _ := SampledLoss(v.num(t, "eps"), 0, v.num(t, "q"))
		above(t, "epsilon", eps, v.out(t, "eps_amplified"), 1e-11)
	})
}

// At ε = 0, δ is erf(μ/√8), a difference of nearly equal numbers for small μ.
func TestGaussianDeltaRoundsUpForMuchNoise(t *testing.T) {
	for i := range 1500 {
		multiplier := math.Exp(2 + float64(i)*0.01)
		exact := math.Erf(1 / multiplier / math.Sqrt(8))
		if got := GaussianDelta(multiplier, 0); got < exact*(1-4*unitRoundoff) {
			t.Errorf("multiplier %g: delta = %.17g, exact %.17g", multiplier, got, exact)
		}
	}
}

// With little noise ε is beyond what e^ε can hold. The normal loss, of mean μ²/2 and deviation μ, exceeds ε with a probability above δ.
func TestGaussianEpsilonHoldsForLittleNoise(t *testing.T) {
	const delta, quantile = 1e-9, 5.9978 // Q(5.9978) is just below 10⁻⁹
	for _, multiplier := range []float64{0.001, 0.01, 0.02, 0.0265, 0.03} {
		mu := 1 / multiplier
		got, most := GaussianEpsilon(multiplier, delta), mu*mu/2+quantile*mu
		if d := GaussianDelta(multiplier, got*0.99); !(d > delta) || !(got > most-2*mu && got <= most) {
			t.Errorf("multiplier %g: epsilon = %g, delta just below it %g; want up to %g", multiplier, got, d, most)
		}
	}
}

func TestGroupLossOfManyPeopleIsANumber(t *testing.T) {
	for _, delta := range []float64{0, 1e-9} {
		for _, epsilon := range []float64{10, 1000} {
			want := math.Ceil(delta) // nothing stays nothing, and anything becomes all
			if eps, got := GroupLoss(epsilon, delta, 1000); eps < 1000*epsilon || got != want {
				t.Errorf("(%g, %g) for a thousand people: (%g, %g)", epsilon, delta, eps, got)
			}
		}
	}
}

// The asymptotic series takes over where e^(x²) and erfc(x) are both still in range.
func TestScaledErfcIsContinuous(t *testing.T) {
	const x = 25
	if got, want := scaledErfc(x), math.Exp(x*x)*math.Erfc(x); math.Abs(got/want-1) > 10*unitRoundoff {
		t.Errorf("erfcx(%d) = %.17g, want %.17g", x, got, want)
	}
}
