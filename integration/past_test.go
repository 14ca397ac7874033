package integration

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"noisegate.example/api"
)

var othersPast = flag.Int("others-past", 40, "pairs of questions of each kind that TestOthersPastInTime asks")

// pastData has a table of people and a public one, for analysts of whom one is poor.
func pastData(name, most string) dataset {
	return dataset{name: name, policy: `version: 1
dataset: ` + name + `
tables:
  people: {unit: {row: id}, columns: {age: {bounds: [0, 100]}, height: {bounds: [0, 250]}}}
  shops: {public: true}
budgets:
  - {dataset: true, form: approx, epsilon: ` + most + `, delta: 1e-3}
  - {analyst: poor, form: approx, epsilon: 0.001, delta: 1e-5}
  - {group: analysts, per: analyst, form: approx, epsilon: 100000, delta: 1e-4}
`, load: func(ctx context.Context, conn *pgx.Conn) error {
		return execAll(ctx, conn, `CREATE TABLE people (id int PRIMARY KEY, age int NOT NULL, height int NOT NULL);
			INSERT INTO people SELECT i, i % 90, 150 + i % 50 FROM generate_series(1, 200) i;
			CREATE TABLE shops (shop int PRIMARY KEY, zone int NOT NULL); INSERT INTO shops SELECT i, i % 7 FROM generate_series(1, 50) i; ANALYZE;`)
	}}
}

// conditions are of a text that nobody asked before: its structure is another one each time, too.
func conditions(r *rand.Rand, x, y string) string {
	all := make([]string, 6)
	for i := range all {
		column := []string{x, y}[r.IntN(2)]
		all[i] = fmt.Sprintf("%s(%s + %d) %s %d.%d", []string{"ln", "sqrt", "abs", "log"}[r.IntN(4)], column, r.IntN(1000)+1,
			[]string{"<", ">", "<=", ">=", "<>"}[r.IntN(5)], r.IntN(50), r.IntN(1000))
	}
	return strings.Join(all, []string{" AND ", " OR "}[r.IntN(2)])
}

// What an analyst asks takes the time that it takes whether another one asked the same before or not: at each entry point that is free, and
// for each refusal. A dry run of others' was once remembered for everybody, before a question that is refused: by its time, free,
// everybody knew what had been asked.
//
// Both times of a pair are taken in random order, after the other has asked either this question or another one. So without a leak each is
// as likely the longer one, whatever the machine does meanwhile: the area under the curve is ½ with the standard error of Wilcoxon's test,
// and six of them are exceeded with a probability below 2·10⁻⁹ for each kind.
//
// needs: postgres
func TestOthersPastInTime(t *testing.T) {
	t.Parallel()
	sets := []dataset{pastData("past", "100000"), pastData("tight", "0.5")}
	s := newStack(t, sets...)
	ana, bob, poor := s.analyst(t, "ana"), s.analyst(t, "bob"), s.analyst(t, "poor")
	ctx := t.Context()
	query := func(c *api.Client, r api.QueryRequest) error {
		_, err := c.Query(ctx, r, "")
		return err
	}
	estimate := func(c *api.Client, r api.QueryRequest) error {
		_, err := c.Estimate(ctx, r)
		return err
	}
	fit := func(c *api.Client, r api.QueryRequest) error {
		_, where, _ := strings.Cut(r.SQL, "WHERE ")
		_, err := c.Fit(ctx, api.FitRequest{Dataset: r.Dataset, From: "people", Where: where, Target: "age", Model: "linear",
			Features: []api.FitFeature{{Column: "height"}}, Rho: "0.1", AtMost: r.AtMost}, "")
		return err
	}
	none := api.Price{Epsilon: "0.0001"}
	people := func(r *rand.Rand) string {
		return "SELECT count(*) FROM people WHERE " + conditions(r, "age", "height")
	}
	kinds := []struct {
		name string
		sql  func(*rand.Rand) string
		ask  func(*api.Client, api.QueryRequest) error // by the other
		as   *api.Client
		then func(*api.Client, api.QueryRequest) error
		code string // that it is refused with; "": it is answered
		edit func(*api.QueryRequest)
	}{
		{"estimate", people, query, ana, estimate, "", nil},
		{"more than at_most", people, query, ana, query, "budget/over-at-most", func(r *api.QueryRequest) { r.AtMost = &none }},
		{"no balance", people, query, poor, query, "budget/exhausted", nil},
		{"no balance of all", people, query, ana, query, "budget/exhausted", func(r *api.QueryRequest) { r.Dataset = "tight" }},
		{"no price", people, query, ana, query, "request/no-price", func(r *api.QueryRequest) { r.Epsilon = "" }},
		{"free", func(r *rand.Rand) string {
			return "SELECT zone, count(*) FROM shops WHERE " + conditions(r, "shop", "zone") + " GROUP BY zone"
		},
			query, ana, query, "", nil},
		{"nothing read", func(r *rand.Rand) string {
			return fmt.Sprintf("SELECT %d + sqrt(%d)%s", r.IntN(1e6), r.IntN(1e6), strings.Repeat(" + 1", r.IntN(20)))
		}, query, ana, query, "", nil},
		{"fit", people, fit, ana, fit, "budget/over-at-most", func(r *api.QueryRequest) { r.AtMost = &none }},
	}
	for _, k := range kinds {
		r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 7))
		var asked, not []float64
		pair := func(before bool) {
			request := api.QueryRequest{Dataset: "past", SQL: k.sql(r), Epsilon: "1"}
			other := request
			if !before {
				other.SQL = k.sql(r)
			}
			if k.edit != nil {
				k.edit(&request)
				other.Dataset = request.Dataset
			}
			_ = k.ask(bob, other)
			began := time.Now()
			err := k.then(k.as, request)
			took := time.Since(began).Seconds()
			if code := codeOf(err); code != k.code {
				t.Fatalf("%s: %v, want %q\n%s", k.name, err, k.code, request.SQL)
			}
			if before {
				asked = append(asked, took)
			} else {
				not = append(not, took)
			}
		}
		for range *othersPast {
			first := r.IntN(2) == 0
			pair(first)
			pair(!first)
		}
		area, deviation := areaUnder(asked, not)
		t.Logf("%s: area %.3f, standard error %.3f", k.name, area, deviation)
		if math.Abs(area-0.5) > 6*deviation {
			t.Errorf("%s: the time tells whether somebody asked before: the area under the curve is %.3f, %.1f standard errors from 1/2", k.name,
				area, math.Abs(area-0.5)/deviation)
		}
	}
}

// codeOf is the code of a refusal; "" of an answer.
func codeOf(err error) string {
	var p *api.Problem
	switch {
	case err == nil:
		return ""
	case errors.As(err, &p):
		return p.Code
	}
	return err.Error()
}

// areaUnder is the probability that a value of the first is less than one of the second, and its standard error where both are of one law.
func areaUnder(first, second []float64) (area, deviation float64) {
	slices.Sort(second)
	for _, x := range first {
		at, _ := slices.BinarySearch(second, x)
		area += float64(len(second) - at)
	}
	n, m := float64(len(first)), float64(len(second))
	return area / (n * m), math.Sqrt((n + m + 1) / (12 * n * m))
}
