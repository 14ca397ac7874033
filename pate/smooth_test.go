package pate

import (
	"slices"
	"strconv"
	"testing"
)

func TestLocalSensitivityOfGNMaxMeetsGoldenVectors(t *testing.T) {
	golden(t, "e", "ss_gnmax/", 11, func(t *testing.T, r record) {
		counts := countsOf(t, r)
		teachers := in[int64](t, r, "num_teachers")
		s := newGNMaxSensitivity(in[float64](t, r, "sigma"), in[float64](t, r, "order"), len(counts))
		near(t, "logq0", s.logq0, out[float64](t, r, "logq0"))
		near(t, "logq1", s.logq1, out[float64](t, r, "logq1"))
		sums := make([]float64, teachers)
		newWalker(s, s.sigma, teachers, Continuous).addTo(sums, counts, 1)
		nearAll(t, "local sensitivity", sums, expand(out[[][2]float64](t, r, "local_sensitivity_rle")))
		for beta, want := range out[map[string]float64](t, r, "discounted_max") {
			b, err := strconv.ParseFloat(beta, 64)
			if err != nil {
				t.Fatal(err)
			}
			near(t, "discounted maximum at "+beta, discountedMax(b, sums), want)
		}
	})
}

// expand undoes run-length encoding.
func expand(runs [][2]float64) []float64 {
	var list []float64
	for _, r := range runs {
		list = append(list, slices.Repeat([]float64{r[0]}, int(r[1]))...)
	}
	return list
}

func TestGNSSCostMeetsGoldenVectors(t *testing.T) {
	golden(t, "e", "gnss/", 4, func(t *testing.T, r record) {
		near(t, "cost", gnssCost(in[float64](t, r, "beta"), in[float64](t, r, "sigma_ss"), in[float64](t, r, "order")), out[float64](t, r, "rdp"))
	})
}
