package httpapi

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"testing"
	"time"

	"noisegate.example/api"
	"noisegate.example/gateway"
	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/internal/randomtest"
	"noisegate.example/internal/stattest"
)

const (
	modelDraws      = 320   // of each table
	freshModelDraws = 450   // where randomness is drawn anew
	modelPeople     = 2_000 // in the table without the person
)

// modelFront is a gateway in front of two tables that differ by one person: half of the people are at either end of x, half of each half
// has a v, and nobody but that person has a y.
func modelFront(t *testing.T) *front {
	t.Helper()
	f := newFront(t, gatewaytest.Options{Quantum: time.Millisecond}, 4)
	policy := "version: 1\ndataset: census\nneighbours: add-remove\ntables:\n"
	for _, table := range []string{"nobody", "somebody"} {
		f.Protected.Exec(t, fmt.Sprintf(`CREATE TABLE %s (id serial PRIMARY KEY, x int NOT NULL, y int NOT NULL, v int NOT NULL);
			INSERT INTO %[1]s (x, y, v) SELECT (g %% 2 * 2 - 1) * 1000, 0, g / 2 %% 2 FROM generate_series(1, %d) g`, table, modelPeople))
		policy += "  " + table + ":\n    unit: {row: id}\n" +
			"    columns: {x: {bounds: [-1000, 1000]}, y: {bounds: [-1000, 1000]}, v: {bounds: [0, 1]}}\n"
	}
	f.Protected.Exec(t, "INSERT INTO somebody (x, y, v) VALUES (1000, 1000, 1)")
	f.Protected.Grant(t)
	policy += "budgets:\n  - {dataset: true, form: zcdp, rho: 100000}\n  - {group: analysts, per: analyst, form: zcdp, rho: 100000}\n"
	change := gateway.PolicyChange{Dataset: gatewaytest.Dataset, By: "sam", Replaces: 1, Text: []byte(policy)}
	if _, err := f.SetPolicy(t.Context(), change); err != nil {
		t.Fatal(err, errors.Unwrap(err))
	}
	return f
}

// normalBelow is the normal law's distribution function.
func normalBelow(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }

// The noise of models, seen from outside: one number of each answer has a known law, with one person and without, and what an attacker
// proves of ρ by 320 answers about either table (450 drawn anew) is no more than was charged. Noise is the same in each run, and the proofs
// come near enough to the price to have power; drawn anew, each of the nine verdicts is false with a probability of at most 1e-9. Noise of
// half the size is told from it.
func TestAuditOfModelsOverHTTP(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	f := modelFront(t)
	ana := f.client("ana:analyst")
	fit := func(r api.FitRequest) (*api.FitResponse, api.Sale, error) {
		r.Dataset, r.Features = gatewaytest.Dataset, []api.FitFeature{{Column: "x"}}
		answer, err := ana.Fit(t.Context(), r, "")
		if err != nil {
			return nil, api.Sale{}, err
		}
		return answer, answer.Sale, nil
	}
	positive := func(x float64) int {
		if x > 0 {
			return 1
		}
		return 0
	}
	for i, a := range []struct {
		name  string
		rho   int
		least float64                               // certified, as part of the price
		law   func(people, noise float64) []float64 // of as many people more, and so much of the noise that is paid for
		ask   func(table string, rho api.Decimal) (number float64, cell int, sale api.Sale, err error)
	}{
		// A prediction at the end of x, times half of the people, is the sum of y there with noise of variance 1/ρ: half of the released vector's
		// squared length is for the products of features, which this prediction does not depend on. Cells are 0.4 wide in standard deviations.
		{"moments", 4, 0.05, func(people, noise float64) (law []float64) {
			for i := range 16 {
				from, to := float64(i-6)*0.4, float64(i-5)*0.4
				law = append(law, normalBelow((to-2*people)/noise)-normalBelow((from-2*people)/noise))
			}
			law[0] += normalBelow((-6*0.4 - 2*people) / noise)
			law[15] += 1 - normalBelow((10*0.4-2*people)/noise)
			return law
		}, func(table string, rho api.Decimal) (float64, int, api.Sale, error) {
			m, sale, err := fit(api.FitRequest{From: table, Target: "y", Model: "linear", Rho: rho})
			if err != nil {
				return 0, 0, sale, err
			}
			sum := (m.Intercept.Scaled + m.Coefficients[0].Scaled) / 1000 * modelPeople / 2
			return sum, max(0, min(15, int(math.Floor(sum*2/0.4))+6)), sale, nil
		}},
		// After one pass, Adam's step reveals only the sign of each place of the gradient. The person's are half of the row's: 1/√8 each of 1.
		{"gradient", 8, 0.01, func(people, noise float64) (law []float64) {
			p := normalBelow(people / math.Sqrt(8) * math.Sqrt(2*8) / noise)
			return []float64{(1 - p) * (1 - p), (1 - p) * p, p * (1 - p), p * p}
		}, func(table string, rho api.Decimal) (float64, int, api.Sale, error) {
			m, sale, err := fit(api.FitRequest{From: table, Target: "CASE WHEN v = 1 THEN 1 ELSE 0 END", Model: "logistic",
				Iterations: new(int64(1)), Rho: rho})
			if err != nil {
				return 0, 0, sale, err
			}
			a, b := positive(m.Intercept.Scaled), positive(m.Coefficients[0].Scaled)
			return float64(a + b), 2*a + b, sale, nil
		}},
		// A size has discrete noise: steps have seven tenths of the price, and the number of rows half of that: a variance of 1/0.7ρ.
		{"clusters", 4, 0.05, func(people, noise float64) (law []float64) {
			total := 0.0
			for i := range 41 {
				x := float64(i-20) - people
				law = append(law, math.Exp(-x*x*0.7*4/2/noise/noise))
				total += law[i]
			}
			for i := range law {
				law[i] /= total
			}
			return law
		}, func(table string, rho api.Decimal) (float64, int, api.Sale, error) {
			m, err := ana.Cluster(t.Context(), api.ClusterRequest{Dataset: gatewaytest.Dataset, From: table, Columns: []string{"x"}, K: 2,
				Iterations: new(int64(1)), Rho: rho}, "")
			if err != nil {
				return 0, 0, api.Sale{}, err
			}
			size := m.Sizes[positive(m.Centers[1][0])] - modelPeople/2
			return size, max(0, min(40, int(size)+20)), m.Sale, nil
		}},
	} {
		if i >= randomtest.Part(1, 3) && !randomtest.Fresh() {
			break // make audit and make whole ask all three
		}
		t.Run(a.name, func(t *testing.T) {
			var seen stattest.Draws
			var withOne []int64
			for people, draws := range []*[]float64{&seen.Without, &seen.With} {
				law := a.law(float64(people), 1)
				counts := make([]int64, len(law))
				for i := range randomtest.Times(modelDraws, freshModelDraws) {
					// Another price is another release; these differ by too little to have another law.
					number, cell, sale, err := a.ask([]string{"nobody", "somebody"}[people], api.Decimal(fmt.Sprintf("%d.%09d", a.rho, i)))
					if err != nil {
						t.Fatal(err)
					}
					spent, err := strconv.ParseFloat(string(sale.Spent.Rho), 64)
					if err != nil || sale.Replayed || math.Abs(spent-float64(a.rho)) > 1e-6 {
						t.Fatalf("%+v, %v", sale, err)
					}
					counts[cell]++
					*draws = append(*draws, number)
				}
				withOne = counts
				found, err := stattest.ChiSquare(counts, law)
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("%d people more: P %.3f", people, found.P)
				if found.Rejects(stattest.PerTest) {
					t.Errorf("%d people more: %v, want the law %.3f", people, counts, law)
				}
			}
			if half, err := stattest.ChiSquare(withOne, a.law(1, 0.5)); err != nil || !half.Rejects(stattest.PerTest) {
				t.Errorf("half of the noise is not told from it: %v, %v", half, err)
			}
			proof, err := seen.Certify(0, stattest.PerTest)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("certified ρ %.3f of %d", proof.Rho, a.rho)
			if proof.Rho > float64(a.rho) || proof.Rho < a.least*float64(a.rho) && !randomtest.Fresh() {
				t.Errorf("certified ρ %.3f, want %.3f to %d", proof.Rho, a.least*float64(a.rho), a.rho)
			}
		})
	}
}
