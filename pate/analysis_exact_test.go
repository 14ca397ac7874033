package pate

import (
	"math"
	"testing"
)

// lawIsNear wants probabilities to agree to 10⁻⁹ and divergences to 10⁻⁶ relatively or 10⁻¹¹, the tolerances that the records state.
func lawIsNear(t *testing.T, what string, got, want, relative, absolute float64) {
	t.Helper()
	if !(math.Abs(got-want) <= max(relative*math.Abs(want), absolute)) {
		t.Errorf("%s = %.15g, want %.15g", what, got, want)
	}
}

// probabilities are the law's, by class.
func probabilities(counts []uint32, groups []group, law outcomeLaw) []float64 {
	p := law.now()
	list := make([]float64, len(counts))
	for i, n := range counts {
		for g := range groups {
			if groups[g].count == float64(n) {
				list[i] = p[g]
			}
		}
	}
	return list
}

func TestExactLawOfGNMaxMeetsGoldenVectors(t *testing.T) {
	golden(t, "x", "exact_gnmax/", 11, func(t *testing.T, r record) {
		counts, sigma := countsOf(t, r), in[float64](t, r, "sigma")
		groups := groupsOf(counts)
		law := newNoisyMaxLaw(groups, gaussianNoise{sigma})
		checkLaw(t, r, probabilities(counts, groups, law), counts)
		logq := logqGaussian(counts, sigma, Continuous)
		lawIsNear(t, "union bound", math.Exp(logq), out[float64](t, r, "union_bound_q"), 1e-12*max(1, -logq), 0)
		orders := in[[]float64](t, r, "orders")
		for i, order := range orders {
			near(t, "theorem 6", theorem6(logq, sigma).rdp(order), out[[]float64](t, r, "theorem6_rdp")[i])
		}
		checkDivergences(t, r, groups, law, orders)
	})
}

func TestExactLawOfGumbelMeetsGoldenVectors(t *testing.T) {
	golden(t, "x", "exact_em/", 13, func(t *testing.T, r record) {
		counts, gamma := countsOf(t, r), in[float64](t, r, "gamma")
		groups := groupsOf(counts)
		law := newSoftmaxLaw(groups, gamma)
		for i, p := range probabilities(counts, groups, law) {
			near(t, "p", p, out[[]float64](t, r, "p")[i])
		}
		orders := in[[]float64](t, r, "orders")
		checkDivergences(t, r, groups, law, orders)
		for i, order := range orders {
			near(t, "data-independent", order*gamma*gamma/2, out[[]float64](t, r, "rdp_data_independent")[i])
		}
	})
}

func TestExactLawOfLNMaxMeetsGoldenVectors(t *testing.T) {
	golden(t, "x", "exact_lnmax/", 10, func(t *testing.T, r record) {
		counts, gamma := countsOf(t, r), in[float64](t, r, "gamma")
		groups := groupsOf(counts)
		checkLaw(t, r, probabilities(counts, groups, newNoisyMaxLaw(groups, laplaceNoise{1 / gamma})), counts)
		logq := logqLaplace(counts, gamma, Continuous)
		lawIsNear(t, "union bound", math.Exp(logq), out[float64](t, r, "union_bound_q"), 1e-12*max(1, -logq), 0)
	})
}

func checkLaw(t *testing.T, r record, p []float64, counts []uint32) {
	t.Helper()
	total, winner := 0.0, 0
	for i, want := range out[[]float64](t, r, "p") {
		lawIsNear(t, "p", p[i], want, 0, 1e-9)
		total += p[i]
		if counts[i] > counts[winner] {
			winner = i
		}
	}
	lawIsNear(t, "sum of p", total, 1, 0, 1e-12)
	lawIsNear(t, "probability of another", total-p[winner], out[float64](t, r, "pr_not_argmax"), 0, 1e-9)
}

func checkDivergences(t *testing.T, r record, groups []group, law outcomeLaw, orders []float64) {
	t.Helper()
	if r.Output["exact_local_rdp_both_directions"] == nil {
		return // two records have the law only
	}
	forward, both := localDivergence(groups, law, orders)
	for i := range orders {
		lawIsNear(t, "forward", forward[i], out[[]float64](t, r, "exact_local_rdp_D_given_Dprime")[i], 1e-6, 1e-11)
		lawIsNear(t, "both", both[i], out[[]float64](t, r, "exact_local_rdp_both_directions")[i], 1e-6, 1e-11)
	}
}
