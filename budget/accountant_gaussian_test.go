package budget

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
