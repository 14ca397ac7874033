package httpapi

import (
	"fmt"
	"strings"
	"testing"

	"noisegate.example/api"
	"noisegate.example/gateway"
	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/internal/fault"
)

// Two analysts ask one question at several prices, over HTTP and on PostgreSQL: whatever they ask for, the dataset pays
// for the most accurate answer and for nothing else.
func TestSharedAtOtherPricesOverHTTP(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	policy := strings.Replace(gatewaytest.Policy, "neighbours: add-remove\n", "neighbours: add-remove\nshare_releases: true\n", 1)
	if _, err := f.SetPolicy(t.Context(), gateway.PolicyChange{Dataset: gatewaytest.Dataset, By: "sam", Replaces: 1,
		Text: []byte(policy)}); err != nil {
		t.Fatal(err)
	}
	spent := func() string {
		t.Helper()
		all, err := f.Ledger.DatasetBalances(t.Context(), gatewaytest.Dataset)
		if err != nil || len(all) == 0 {
			t.Fatalf("%+v, %v", all, err)
		}
		return all[0].Spent.Rho.String()
	}
	ask := func(token, rho string) *api.QueryResponse {
		t.Helper()
		got, err := f.client(token).Query(t.Context(), api.QueryRequest{Dataset: gatewaytest.Dataset, Mechanism: "gaussian",
			Rho: api.Decimal(rho),
			SQL: "SELECT region, count(*) AS n, avg(age) AS age FROM people GROUP BY region ORDER BY n DESC"}, "")
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	ana, bob := "ana:analyst", "bob:analyst"
	for i, step := range []struct{ token, rho, cost, dataset, note string }{
		{ana, "0.01", "0.01", "0.01", ""},
		{bob, "0.002", "0", "0.01", "at least as accurate"},
		{bob, "0.05", "0.04", "0.05", "combines"},
		{ana, "0.04", "0", "0.05", "at least as accurate"},
	} {
		got := ask(step.token, step.rho)
		if string(got.Spent.Rho) != step.cost || got.Replayed || len(got.Rows) != 3 || spent() != step.dataset {
			t.Errorf("step %d: %+v, the dataset spent %s", i, got, spent())
		}
		if step.note != "" && (got.Notes[0].Code != "reused" || !strings.Contains(got.Notes[0].Text, step.note)) {
			t.Errorf("step %d: %+v", i, got.Notes)
		}
		for _, token := range []string{ana, bob} {
			if again := ask(token, step.rho); !again.Replayed || again.ReleaseID != got.ReleaseID || again.Spent.Rho != "0" {
				t.Errorf("step %d: asked again: %+v", i, again)
			}
		}
		if spent() != step.dataset {
			t.Errorf("step %d: after replays the dataset spent %s", i, spent())
		}
	}
}

// TestNothingOfOthersAfterAFreeze: whose account is frozen is not given what others bought, whether before the freeze
// or after it; what they bought themselves they may read again. A thaw gives it back.
//
// covers: L5
func TestNothingOfOthersAfterAFreeze(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	policy := strings.Replace(gatewaytest.Policy, "neighbours: add-remove\n", "neighbours: add-remove\nshare_releases: true\n", 1)
	if _, err := f.SetPolicy(t.Context(), gateway.PolicyChange{Dataset: gatewaytest.Dataset, By: "sam", Replaces: 1,
		Text: []byte(policy)}); err != nil {
		t.Fatal(err)
	}
	ask := func(token string, age int) (*api.QueryResponse, error) {
		return f.client(token).Query(t.Context(), api.QueryRequest{Dataset: gatewaytest.Dataset, Epsilon: "0.1",
			SQL: fmt.Sprintf("SELECT count(*) FROM people WHERE age > %d", age)}, "")
	}
	gets := func(token string, age int, replayed bool) {
		t.Helper()
		if got, err := ask(token, age); err != nil || got.Replayed != replayed {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	const own, before, after = 20, 30, 40
	freeze := func(account string, frozen bool) {
		t.Helper()
		if _, err := f.client("sam:steward").Freeze(t.Context(), gatewaytest.Dataset, account, frozen); err != nil {
			t.Fatal(err)
		}
	}
	gets("bob:analyst", own, false)
	gets("ana:analyst", before, false)
	freeze("analyst:bob", true)
	gets("ana:analyst", after, false)
	for _, age := range []int{before, after, 50} {
		if got, err := ask("bob:analyst", age); codeOfError(err) != fault.CodeBudgetFrozen {
			t.Errorf("bought by another: %+v, %v", got, err)
		}
	}
	gets("bob:analyst", own, true)
	gets("eve:analyst", before, true)
	freeze("analyst:bob", false)
	gets("bob:analyst", after, true)
}
