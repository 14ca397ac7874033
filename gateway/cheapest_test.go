package gateway

import (
	"math/big"
	"strings"
	"testing"

	"noisegate.example/api"
	"noisegate.example/internal/fault"
)

// TestMaxErrorOfGroupsAndSums: the bound holds for each group, and for what is added up from aggregates, where the noises of the parts
// do not all fall to one side at once.
func TestMaxErrorOfGroupsAndSums(t *testing.T) {
	r, ana := newRig(t), principal(t, "ana")
	for _, sql := range []string{
		"SELECT sex, count(*) AS n FROM people GROUP BY sex",
		"SELECT sex, count(*) FILTER (WHERE age > 40) - count(*) FILTER (WHERE age <= 40) AS n FROM people GROUP BY sex ORDER BY n",
		"SELECT 3 * count(*) / 4.0 + sum(age) / 50.0 AS n FROM people",
	} {
		request := api.QueryRequest{Dataset: "d", SQL: sql, MaxError: map[string]api.Decimal{"n": "40"}}
		accounts, err := r.AccountsOf(t.Context(), ana, r.policies.snapshot)
		if err != nil {
			t.Fatal(err)
		}
		options, err := optionsOf(request, accounts)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := cheapest(t.Context(), request, r.policies.snapshot, options, accounts)
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		width := widthsOf(plan)["n"]
		if low := big.NewRat(38, 1); width.Cmp(big.NewRat(40, 1)) > 0 || width.Cmp(low) < 0 {
			t.Errorf("%s: half-width %s", sql, width.FloatString(3))
		}
	}
}

// TestMaxErrorRefusals: bounds that no price keeps, that the account cannot pay for, and outputs whose error only data would tell.
func TestMaxErrorRefusals(t *testing.T) {
	for name, c := range map[string]struct{ sql, output, bound, text string }{
		"mean":         {"SELECT avg(age) AS n FROM people", "n", "1", "how many rows"},
		"quantile":     {"SELECT median(age) AS n FROM people", "n", "1", "before there is data"},
		"product":      {"SELECT count(*) * count(*) AS n FROM people", "n", "1", "before there is data"},
		"key":          {"SELECT sex AS n, count(*) FROM people GROUP BY sex", "n", "1", `about "count"`},
		"rounded":      {"SELECT round(count(*) / 10.0) AS n, avg(age) FROM people", "avg", "1", `about "n"`},
		"too small":    {"SELECT count(*) / 1000.0 AS n FROM people", "n", "1e-30", "reaches 0.003"},
		"not for sale": {"SELECT count(*) AS n FROM people", "n", "0.5", `reaches 3 for "n"`},
	} {
		t.Run(name, func(t *testing.T) {
			r, ana := newRig(t), principal(t, "ana")
			request := api.QueryRequest{Dataset: "d", SQL: c.sql, MaxError: map[string]api.Decimal{c.output: api.Decimal(c.bound)}}
			_, err := r.Estimate(t.Context(), ana, request)
			if fault.CodeOf(err) != fault.CodeRequestMaxError || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v", err)
			}
		})
	}
}
