package pate

import (
	"math"
	"strconv"
	"testing"
)

func TestLNMaxOfOneQueryMeetsGoldenVectors(t *testing.T) {
	golden(t, "a", "lnmax1/", 189, func(t *testing.T, r record) {
		counts, gamma, l := countsOf(t, r), in[float64](t, r, "gamma"), in[float64](t, r, "l")
		logq := logqLaplace(counts, gamma, Continuous)
		near(t, "logq", logq, out[float64](t, r, "logq_2018"))
		within(t, "q", math.Exp(logq), out[float64](t, r, "q"), 1e-12*max(1, -logq/10)) // e^x amplifies the last digit of x
		moment := theorem3(logq, gamma).moment(l)
		// The reference takes the logarithm of a number near 1, and so loses what is below a unit of that, l times over.
		if want := out[float64](t, r, "log_mgf_with_guard"); math.Abs(moment-want) > 1e-12*want+1e-15*(1+l) {
			t.Errorf("moment = %.17g, want %.17g", moment, want)
		}
		near(t, "rdp", theorem3(logq, gamma).moment(l)/l, out[float64](t, r, "rdp_2018_order_l_plus_1"))
	})
}

func TestGNMaxOfOneQueryMeetsGoldenVectors(t *testing.T) {
	golden(t, "c", "gnmax1/", 49, func(t *testing.T, r record) {
		counts, sigma := countsOf(t, r), in[float64](t, r, "sigma")
		logq := logqGaussian(counts, sigma, Continuous)
		near(t, "logq", logq, out[float64](t, r, "logq"))
		exactq, err := strconv.ParseFloat(out[string](t, r, "logq_60digits"), 64)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "logq (60 digits)", logq, exactq)
		exact, reference := out[[]string](t, r, "rdp_60digits"), out[[]float64](t, r, "rdp")
		b := theorem6(logq, sigma)
		for i, order := range in[[]float64](t, r, "orders") {
			digits, err := strconv.ParseFloat(exact[i], 64)
			if err != nil {
				t.Fatal(err)
			}
			near(t, "rdp", b.rdp(order), reference[i])
			near(t, "rdp (60 digits)", b.rdp(order), digits)
			near(t, "data-independent", order/square(sigma), out[[]float64](t, r, "rdp_data_independent")[i])
		}
	})
}

func TestConfidentOfOneQueryMeetsGoldenVectors(t *testing.T) {
	golden(t, "d", "confident1/", 25, func(t *testing.T, r record) {
		counts := countsOf(t, r)
		sigma2 := in[float64](t, r, "sigma2")
		c := check{threshold: in[float64](t, r, "T"), sigma: in[float64](t, r, "sigma1"), noise: Continuous}
		v := float64(largest(counts))
		near(t, "logpr_answered", c.logAnswered(v), out[float64](t, r, "logpr_answered"))
		logq := logqGaussian(counts, sigma2, Continuous)
		near(t, "logq", logq, out[float64](t, r, "logq"))
		for i, order := range in[[]float64](t, r, "orders") {
			near(t, "threshold", c.bound(v, 1).rdp(order), out[[]float64](t, r, "rdp_threshold")[i])
			near(t, "threshold, data-independent", order/(2*square(c.sigma)), out[[]float64](t, r, "rdp_threshold_data_independent")[i])
			near(t, "gnmax", theorem6(logq, sigma2).rdp(order), out[[]float64](t, r, "rdp_gnmax")[i])
			near(t, "gnmax, data-independent", order/square(sigma2), out[[]float64](t, r, "rdp_gnmax_data_independent")[i])
		}
	})
}

func largest(counts []uint32) uint32 {
	top := uint32(0)
	for _, n := range counts {
		top = max(top, n)
	}
	return top
}
