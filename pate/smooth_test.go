package pate

import (
	"math"
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

func TestConditionsMeetGoldenVectors(t *testing.T) {
	golden(t, "e", "ss_conditions/", 6, func(t *testing.T, r record) {
		s := newGNMaxSensitivity(in[float64](t, r, "sigma"), in[float64](t, r, "order"), in[int](t, r, "classes"))
		c5, c6 := s.conditions()
		if c5 != out[bool](t, r, "C5") || c6 != out[bool](t, r, "C6") {
			t.Errorf("C5 %v, C6 %v, want %s, %s", c5, c6, r.Output["C5"], r.Output["C6"])
		}
	})
}

func TestLocalSensitivityOfTheCheckMeetsGoldenVectors(t *testing.T) {
	golden(t, "e", "ss_threshold/", 5, func(t *testing.T, r record) {
		v := int64(math.Floor(slices.Max(in[[]float64](t, r, "counts")) + 0.5))
		c := check{threshold: in[float64](t, r, "T"), sigma: in[float64](t, r, "sigma"), noise: Continuous}
		teachers := in[int64](t, r, "num_teachers")
		sums := make([]float64, teachers)
		newCheckSensitivities(c, teachers, in[float64](t, r, "order")).addTo(sums, v)
		want := out[[]float64](t, r, "local_sensitivity")
		if last := max(v, teachers-v); last < teachers && want[last] == 0 {
			want[last] = sums[last] // the reference's loop ends one short of the farthest table
		}
		for d := range sums {
			// Steps are differences of costs near order/2σ²: they cannot be better than a unit of those.
			if unit := 0x1p-52 * in[float64](t, r, "order"); math.Abs(sums[d]-want[d]) > 1e-12*want[d]+unit {
				t.Errorf("local sensitivity[%d] = %.17g, want %.17g", d, sums[d], want[d])
			}
		}
		for beta, want := range out[map[string]float64](t, r, "discounted_max") {
			b, err := strconv.ParseFloat(beta, 64)
			if err != nil {
				t.Fatal(err)
			}
			near(t, "discounted maximum at "+beta, discountedMax(b, sums), want)
		}
	})
}

func TestSanitisedTableMeetsGoldenVectors(t *testing.T) {
	golden(t, "e", "ss_table/", 1, func(t *testing.T, r record) {
		table := mnist(t, in[int](t, r, "rows"))
		delta, order := in[float64](t, r, "delta"), in[float64](t, r, "order")
		m := modeOf(t, table.Ensemble(), Settings{
			Mode: Confident, Threshold: decimal(in[float64](t, r, "T")), Sigma1: decimal(in[float64](t, r, "sigma1")),
			Sigma2: decimal(in[float64](t, r, "sigma2")),
		})
		beta, sigma := out[float64](t, r, "beta_opt"), out[float64](t, r, "sigma_ss")
		s, err := m.NewSanitiser(SanitiserParameters{Order: decimal(order), Beta: decimal(beta), SigmaSS: decimal(sigma), Delta: decimal(delta)})
		if err != nil {
			t.Fatal(err)
		}
		exact, smooth, err := s.measure(table, AnalysisParameters{Delta: delta, Noise: Continuous})
		if err != nil {
			t.Fatal(err)
		}
		near(t, "rdp", exact, out[float64](t, r, "rdp"))
		near(t, "smooth sensitivity", smooth, out[float64](t, r, "smooth_sensitivity"))
		near(t, "cost", s.cost, out[float64](t, r, "gnss_rdp_cost"))
		near(t, "epsilon", classic(exact, order, delta), out[float64](t, r, "eps_data_dependent"))
		near(t, "sanitised", classic(exact+s.cost, order, delta), out[float64](t, r, "eps_sanitized_mean"))
		near(t, "its deviation", smooth*sigma, out[float64](t, r, "eps_sanitized_sd"))
	})
}
