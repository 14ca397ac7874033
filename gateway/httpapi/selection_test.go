package httpapi

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"noisegate.example/api"
	"noisegate.example/gateway"
	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/randomtest"
	"noisegate.example/internal/stattest"
)

// selectionGroups is how many groups of identical contents the table has: two rows of a, two of b and one of c, at 0, 1 and 2.
const selectionGroups = 500

const modeOfLetters = "SELECT mode() WITHIN GROUP (ORDER BY letter) FROM drawn"

// selectionFront is a gateway in front of that table.
func selectionFront(t *testing.T, form string) *front {
	t.Helper()
	f := newFront(t, gatewaytest.Options{Quantum: time.Millisecond}, 4)
	f.Protected.Exec(t, fmt.Sprintf(`CREATE TABLE drawn (id serial PRIMARY KEY, k int NOT NULL, letter text NOT NULL, v int NOT NULL);
		INSERT INTO drawn (k, letter, v) SELECT k, substr('aabbc', i, 1), (i - 1) / 2
		FROM generate_series(0, %d) k, generate_series(1, 5) i`,
		selectionGroups-1))
	f.Protected.Grant(t)
	policy := fmt.Sprintf(`version: 1
dataset: census
neighbours: add-remove
tables:
  drawn:
    unit: {row: id}
    columns:
      k:      {bounds: [0, %d]}
      letter: {domain: [a, b, c]}
      v:      {bounds: [0, 2]}
budgets:
  - {dataset: true, form: %s}
  - {group: analysts, per: analyst, form: %s}
`, selectionGroups-1, form, form)
	change := gateway.PolicyChange{Dataset: gatewaytest.Dataset, By: "sam", Replaces: 1, Text: []byte(policy)}
	if _, err := f.SetPolicy(t.Context(), change); err != nil {
		t.Fatal(err, errors.Unwrap(err))
	}
	return f
}

// The law of each selection by name, through HTTP: of modes, of medians, and of the first two of three groups. Noise is the same in each
// run, and distinguishes each law from the two others; drawn anew, a verdict is false with a probability of at most 1e-9. Then it does not
// distinguish laws: 500 first groups look like those of another selection in a run of twenty.
func TestSelectionLawsOverHTTP(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	const once, requests = 1.0, 12
	laws := map[string]func(float64, []int64) []float64{"exponential": stattest.ExponentialLaw,
		"permute_and_flip": stattest.PermuteAndFlipLaw, "report_noisy_max": stattest.NoisyMaxLaw}
	// Twice the rank of a median of 5 rows less a quarter is 9 quarters; the ranks at 0, 1 and 2 are 0 to 8, 8 to 16 and 16 to 20.
	modes, ranks := []int64{2, 2, 1}, []int64{-1, 0, -7}
	pairs := func(law func(float64, []int64) []float64) []float64 {
		var all []float64
		for i, p := range law(once, modes) {
			rest := append(append([]int64{}, modes[:i]...), modes[i+1:]...)
			for _, q := range law(once, rest) {
				all = append(all, p*q)
			}
		}
		return all
	}
	f := selectionFront(t, "approx, epsilon: 100000, delta: 1e-6")
	ana := f.client("ana:analyst")
	for i, name := range slices.Sorted(maps.Keys(laws)) {
		if i >= randomtest.Part(1, 3) && !randomtest.Fresh() {
			break // make audit and make whole ask all three
		}
		law := laws[name]
		ask := func(sql, epsilon string) *api.QueryResponse {
			t.Helper()
			r, err := ana.Query(t.Context(), api.QueryRequest{Dataset: "census", SQL: sql, Epsilon: api.Decimal(epsilon), Selection: name}, "")
			if err != nil || r.Replayed {
				t.Fatalf("%s: %+v, %v", sql, r, err)
			}
			if last := r.Columns[len(r.Columns)-1]; last.Kind == "aggregate" && last.Selection != name {
				t.Errorf("%s: selected by %+v", name, last)
			}
			return r
		}
		mode, median, first := make([]int64, 3), make([]int64, 3), make([]int64, 6)
		for i := range requests {
			const byGroup = "SELECT k, %s WITHIN GROUP (ORDER BY %s) FROM drawn WHERE v <> %d GROUP BY k"
			for _, row := range ask(fmt.Sprintf(byGroup, "mode()", "letter", -1-i), "1").Rows {
				mode[row[1].String()[0]-'a']++
			}
			for _, row := range ask(fmt.Sprintf(byGroup, "percentile_disc(0.5)", "v", -1-i), "2").Rows {
				median[row[1].String()[0]-'0']++
			}
		}
		for k := range selectionGroups {
			rows := ask(fmt.Sprintf("SELECT letter FROM drawn WHERE k = %d GROUP BY letter ORDER BY count(*) DESC LIMIT 2", k), "2").Rows
			if len(rows) != 2 {
				t.Fatalf("%d groups", len(rows))
			}
			i, j := rows[0][0].String()[0]-'a', rows[1][0].String()[0]-'a'
			if j > i {
				j-- // among those that were left
			}
			first[2*i+j]++
		}
		for _, c := range []struct {
			of     string
			counts []int64
			law    func(func(float64, []int64) []float64) []float64
		}{
			{"mode", mode, func(law func(float64, []int64) []float64) []float64 { return law(once, modes) }},
			{"median", median, func(law func(float64, []int64) []float64) []float64 { return law(once/2, ranks) }},
			{"first groups", first, pairs},
		} {
			for other, theirs := range laws {
				fit, err := stattest.ChiSquare(c.counts, c.law(theirs))
				if err != nil {
					t.Fatal(err)
				}
				switch {
				case other == name && fit.Rejects(stattest.PerTest):
					t.Errorf("%s of %s: not the law: %+v, counts %v, law %v", name, c.of, fit, c.counts, c.law(law))
				case other != name && !randomtest.Fresh() && fit.P > 1e-2:
					t.Errorf("%s of %s: as likely %s: %+v", name, c.of, other, fit)
				}
			}
		}
	}
}

// What is used is what was asked for, else the most accurate selection of the account's currency, and each is charged by its own bound.
func TestSelectionsByName(t *testing.T) {
	const median, mode, first = "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY v) FROM drawn", modeOfLetters,
		"SELECT letter FROM drawn GROUP BY letter ORDER BY count(*) DESC LIMIT 1"
	const range2, pure2 = "0.5", "1.523188311912" // 2²/8 and 2·tanh(1)
	fronts := map[string]*front{"approx": selectionFront(t, "approx, epsilon: 100, delta: 1e-6"),
		"pure": selectionFront(t, "pure, epsilon: 100"), "zcdp": selectionFront(t, "zcdp, rho: 100")}
	for _, c := range []struct{ form, sql, selection, mechanism, used, rho string }{
		{"approx", median, "", "", "exponential", range2},
		{"approx", mode, "", "", "permute_and_flip", pure2},
		{"approx", first, "exponential", "", "exponential", range2},
		{"pure", median, "", "", "permute_and_flip", pure2},
		{"pure", mode, "auto", "", "permute_and_flip", pure2},
		{"zcdp", mode, "", "", "exponential", range2},
		{"zcdp", mode, "report_noisy_max", "", "report_noisy_max", pure2},
		{"approx", median, "permute_and_flip", "laplace", "permute_and_flip", pure2},
		{"approx", first, "report_noisy_max", "", "report_noisy_max", pure2},
		{"approx", mode, "", "exponential", "exponential", range2},
		{"pure", mode, "", "report_noisy_max", "report_noisy_max", pure2},
		{"approx", mode, "report_noisy_max", "report_noisy_max", "report_noisy_max", pure2},
	} {
		t.Run(c.form+"/"+c.used, func(t *testing.T) {
			ana := fronts[c.form].client("ana:analyst")
			request := api.QueryRequest{Dataset: "census", SQL: c.sql, Epsilon: "2", Selection: c.selection, Mechanism: c.mechanism}
			e, err := ana.Estimate(t.Context(), request)
			if err != nil || e.Outputs[0].Selection != c.used || e.Price.Rho != api.Decimal(c.rho) {
				t.Fatalf("estimate %+v, %v", e, err)
			}
			r, err := ana.Query(t.Context(), request, "")
			if err != nil || r.Spent.Rho != api.Decimal(c.rho) || r.Spent.Epsilon != "2" {
				t.Fatalf("answer %+v, %v", r, err)
			}
			if c.sql != first && (r.Columns[0].Selection != c.used || r.Columns[0].RankError != e.Outputs[0].RankError) {
				t.Errorf("column %+v", r.Columns[0])
			}
			// Named in the other field it is the same question.
			if c.selection != "" && c.selection != "auto" && c.mechanism == "" {
				request.Mechanism, request.Selection = c.selection, ""
				if again, err := ana.Query(t.Context(), request, ""); err != nil || !again.Replayed {
					t.Errorf("%+v, %v", again, err)
				}
			}
		})
	}
}

func TestSelectionsThatAreRefused(t *testing.T) {
	f := selectionFront(t, "approx, epsilon: 10, delta: 1e-6")
	ana, entries := f.client("ana:analyst"), f.Entries(t)
	for name, c := range map[string]struct {
		request api.QueryRequest
		code    fault.Code
	}{
		"unknown": {api.QueryRequest{SQL: modeOfLetters, Selection: "best"}, fault.CodeRequestSelection},
		"noise":   {api.QueryRequest{SQL: modeOfLetters, Selection: "laplace"}, fault.CodeRequestSelection},
		"two": {api.QueryRequest{SQL: modeOfLetters, Selection: "exponential", Mechanism: "report_noisy_max"},
			fault.CodeRequestSelection},
		"nothing to select": {api.QueryRequest{SQL: "SELECT count(*) FROM drawn", Selection: "exponential"}, fault.CodeMechanism},
		"in place of noise": {api.QueryRequest{SQL: "SELECT count(*), mode() WITHIN GROUP (ORDER BY letter) FROM drawn",
			Mechanism: "exponential"}, fault.CodeMechanism},
		"first by a number that is shown": {api.QueryRequest{SQL: "SELECT letter, count(*) FROM drawn GROUP BY letter ORDER BY 2 DESC LIMIT 1",
			Selection: "report_noisy_max"}, fault.CodeMechanism},
	} {
		c.request.Dataset, c.request.Epsilon = "census", "1"
		_, err := ana.Query(t.Context(), c.request, "")
		var p *api.Problem
		if !errors.As(err, &p) || p.Code != string(c.code) || (p.Hint == "") == (c.code == fault.CodeMechanism) {
			t.Errorf("%s: %v, %+v", name, err, p)
		}
	}
	if f.Entries(t) != entries {
		t.Error("a refusal changed the ledger")
	}
}
