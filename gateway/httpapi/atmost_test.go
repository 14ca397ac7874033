package httpapi

import (
	"strings"
	"testing"

	"noisegate.example/api"
	"noisegate.example/gateway"
	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/internal/fault"
)

// What was spent of the dataset, in ε.
func spentOf(t *testing.T, f *front) string {
	t.Helper()
	all, err := f.Ledger.DatasetBalances(t.Context(), gatewaytest.Dataset)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range all {
		if b.ID.Name == "" {
			return b.Spent.Epsilon.String() + " " + b.Spent.Rho.String()
		}
	}
	return "nothing"
}

func applyPolicy(t *testing.T, f *front, replaces int64, text string) {
	t.Helper()
	if _, err := f.SetPolicy(t.Context(), gateway.PolicyChange{Dataset: gatewaytest.Dataset, By: "sam", Replaces: replaces,
		Text: []byte(text)}); err != nil {
		t.Fatal(err)
	}
}

// TestAtMost: above what a request may be charged, questions, models and plans are refused, and nothing is written; at it they are not.
func TestAtMost(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	ana := f.client("ana:analyst")
	entries := func() (n int) {
		t.Helper()
		page, err := f.client("sam:steward").Audit(t.Context(), gatewaytest.Dataset, "")
		if err != nil {
			t.Fatal(err)
		}
		return len(page.Entries)
	}
	ask := func(most *api.Price) error {
		_, err := ana.Query(t.Context(), api.QueryRequest{Dataset: gatewaytest.Dataset, SQL: "SELECT count(*) FROM people", Epsilon: "0.01",
			AtMost: most}, "")
		return err
	}
	fit := func(most *api.Price) error {
		_, err := ana.Fit(t.Context(), api.FitRequest{Dataset: gatewaytest.Dataset, From: "people", Target: "age", Model: "linear",
			Features: []api.FitFeature{{Column: "income"}}, Rho: "0.01", AtMost: most}, "")
		return err
	}
	model := func(most *api.Price) error {
		_, err := ana.Query(t.Context(), api.QueryRequest{Dataset: gatewaytest.Dataset, Rho: "0.02", AtMost: most,
			SQL: "SELECT linregr(income, ARRAY[1, age]) FROM people"}, "")
		return err
	}
	plan := func(most *api.Price) error {
		_, err := ana.RegisterPlan(t.Context(), api.PlanRequest{Dataset: gatewaytest.Dataset, Delta: "1e-9", AtMost: most,
			Mechanisms: []api.PlanMechanism{{Mechanism: "laplace", Epsilon: "0.01"}}}, "")
		return err
	}
	for _, c := range []struct {
		name string
		ask  func(*api.Price) error
		over []api.Price
		at   api.Price
	}{
		{"question", ask, []api.Price{{Epsilon: "0.009999999999"}, {Epsilon: "1", Rho: "0.000049"}}, api.Price{Epsilon: "1e-2"}},
		{"fit", fit, []api.Price{{Rho: "0.009999999999"}, {Epsilon: "100"}}, api.Price{Rho: "1e-2"}},
		{"model in SQL", model, []api.Price{{Rho: "0.019999999999"}, {Epsilon: "100"}}, api.Price{Rho: "0.02"}},
		{"plan", plan, []api.Price{{Epsilon: "0.009"}, {Epsilon: "1"}}, api.Price{Epsilon: "0.01", Delta: "1e-9"}},
	} {
		before, written := spentOf(t, f), entries()
		for _, most := range c.over {
			if err := c.ask(&most); codeOfError(err) != fault.CodeBudgetOverAtMost {
				t.Errorf("%s at most %+v: %v", c.name, most, err)
			}
		}
		if now := spentOf(t, f); now != before || entries() != written {
			t.Errorf("%s: refused, and the dataset spent %s, before %s; %d entries, before %d", c.name, now, before, entries(), written)
		}
		if err := c.ask(&c.at); err != nil {
			t.Errorf("%s at most %+v: %v", c.name, c.at, err)
		}
		if now := spentOf(t, f); now == before {
			t.Errorf("%s: paid, and nothing was spent", c.name)
		}
	}
	if err := ask(&api.Price{Epsilon: "0"}); err != nil {
		t.Errorf("a replay is free: %v", err)
	}
}

// TestAtMostAfterAPolicyChange: a request pays no more than it names, whatever became of the default price since it was estimated.
func TestAtMostAfterAPolicyChange(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	priced := func(epsilon string) string {
		return strings.Replace(gatewaytest.Policy, "max_epsilon_per_query: 5}", "max_epsilon_per_query: 5, default_epsilon: "+epsilon+"}", 1)
	}
	applyPolicy(t, f, 1, priced("0.01"))
	ana := f.client("ana:analyst")
	request := api.QueryRequest{Dataset: gatewaytest.Dataset, SQL: "SELECT count(*) FROM people"}
	estimate, err := ana.Estimate(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	applyPolicy(t, f, 2, priced("0.02"))
	request.AtMost = &api.Price{Epsilon: estimate.Price.Epsilon, Delta: estimate.Price.Delta}
	if _, err := ana.Query(t.Context(), request, "key"); codeOfError(err) != fault.CodeBudgetOverAtMost {
		t.Fatalf("%v, want a refusal", err)
	}
	if spent := spentOf(t, f); spent != "nothing" {
		t.Errorf("spent %s", spent)
	}
	request.AtMost.Epsilon = "0.02"
	if answer, err := ana.Query(t.Context(), request, "key"); err != nil || answer.Spent.Epsilon != "0.02" {
		t.Errorf("%+v, %v", answer, err)
	}
	request.AtMost.Epsilon = "0"
	if answer, err := ana.Query(t.Context(), request, "key"); err != nil || !answer.Replayed {
		t.Errorf("at_most is no part of what a key stands for: %+v, %v", answer, err)
	}
}

// TestAtMostTellsNothingOfOthers: where releases are shared, a ceiling below the whole price is refused whether or not somebody else
// bought the answer, or one that makes it cheaper.
//
// covers: L5
func TestAtMostTellsNothingOfOthers(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	applyPolicy(t, f, 1, strings.Replace(gatewaytest.Policy, "neighbours: add-remove\n", "neighbours: add-remove\nshare_releases: true\n", 1))
	request := func(sql, rho, most string) api.QueryRequest {
		r := api.QueryRequest{Dataset: gatewaytest.Dataset, SQL: sql, Rho: api.Decimal(rho), Mechanism: "gaussian"}
		if most != "" {
			r.AtMost = &api.Price{Rho: api.Decimal(most)}
		}
		return r
	}
	const bought, other = "SELECT count(*) FROM people", "SELECT count(*) FROM people WHERE age > 30"
	ana, bob := f.client("ana:analyst"), f.client("bob:analyst")
	if _, err := bob.Query(t.Context(), request(bought, "0.01", ""), ""); err != nil {
		t.Fatal(err)
	}
	for _, rho := range []string{"0.01", "0.005", "0.011"} { // free, free, and the difference
		var texts []string
		for _, sql := range []string{bought, other} {
			_, err := ana.Query(t.Context(), request(sql, rho, "0.0049"), "")
			if codeOfError(err) != fault.CodeBudgetOverAtMost {
				t.Fatalf("rho %s: %v", rho, err)
			}
			texts = append(texts, err.Error())
		}
		if texts[0] != texts[1] {
			t.Errorf("rho %s: %q", rho, texts)
		}
	}
	if answer, err := ana.Query(t.Context(), request(bought, "0.01", "0.01"), ""); err != nil || answer.Spent.Rho != "0" {
		t.Errorf("within the whole price, what others bought is free: %+v, %v", answer, err)
	}
	if answer, err := bob.Query(t.Context(), request(bought, "0.01", "0"), ""); err != nil || !answer.Replayed {
		t.Errorf("what is one's own is free: %+v, %v", answer, err)
	}
}
