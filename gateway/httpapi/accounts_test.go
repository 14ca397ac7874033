package httpapi

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"noisegate.example/api"
	"noisegate.example/gateway"
	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/internal/fault"
)

// budgets puts these lines of budgets in place of the policy's.
func (f *front) budgets(t testing.TB, lines ...string) {
	t.Helper()
	head, _, _ := strings.Cut(gatewaytest.Policy, "budgets:\n")
	text := head + "budgets:\n  - " + strings.Join(lines, "\n  - ") + "\n"
	now, err := f.Policy(t.Context(), gatewaytest.Dataset)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.SetPolicy(t.Context(), gateway.PolicyChange{Dataset: gatewaytest.Dataset, By: "sam", Text: []byte(text),
		Replaces: now.Version}); err != nil {
		t.Fatal(err)
	}
}

// counted is a request for the n-th of many different counts.
func counted(n int, price api.QueryRequest) api.QueryRequest {
	price.Dataset, price.SQL = gatewaytest.Dataset, fmt.Sprintf("SELECT count(*) FROM people WHERE age > %d", n)
	return price
}

// TestGaussianNoiseLeavesTheEpsilonClauseOpen: the smallest Gaussian release that the policy allows takes next to
// nothing of what others may ask with Laplace noise.
//
// covers: L3
func TestGaussianNoiseLeavesTheEpsilonClauseOpen(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	f := newFront(t, gatewaytest.Options{}, 4)
	f.budgets(t, "{dataset: true, form: approx, epsilon: 20, delta: 1e-6, min_epsilon: 0.0001}",
		"{group: analysts, per: analyst, form: approx, epsilon: 100, delta: 1e-6}",
		"{analyst: small, form: approx, epsilon: 3, delta: 1e-7}")
	answers := func(who, epsilon string, from int) (n int) {
		t.Helper()
		for {
			_, err := f.client(who+":analyst").Query(t.Context(), counted(from+n, api.QueryRequest{Epsilon: api.Decimal(epsilon)}), "")
			if code := codeOfError(err); code == fault.CodeBudgetExhausted {
				return n
			}
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
	}
	gauss := api.QueryRequest{Mechanism: "gaussian", Rho: "0.000000005"}
	for i, who := range []string{"bob", "small"} {
		got, err := f.client(who+":analyst").Query(t.Context(), counted(i, gauss), "")
		if err != nil || got.Spent.Epsilon != "" || got.Spent.Rho != "5e-9" {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	if n := answers("small", "0.5", 0); n < 5 {
		t.Errorf("(3, 1e-7) gives %d answers of epsilon 0.5", n)
	}
	// The dataset's account has 2.5 less after these.
	if n := answers("ana", "1", 20); n < 17 {
		t.Errorf("(20, 1e-6) gives %d answers of epsilon 1", n)
	}
	account, err := f.client("sam:steward").Account(t.Context(), gatewaytest.Dataset, "dataset")
	if err != nil || account.Spent.Tail != "2e-18" || account.Spent.Epsilon == "" {
		t.Errorf("%+v, %v", account.Spent, err)
	}
	if err := f.Ledger.VerifyAll(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestAccountsTakeMechanisms: an account that takes one family of mechanisms only refuses the other, and says so; what
// was bought before is given again.
//
// covers: L3
func TestAccountsTakeMechanisms(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	gauss, laplace := counted(1, api.QueryRequest{Mechanism: "gaussian", Rho: "0.01"}),
		counted(1, api.QueryRequest{Mechanism: "laplace", Epsilon: "0.1"})
	ana := f.client("ana:analyst")
	if _, err := ana.Query(t.Context(), gauss, ""); err != nil {
		t.Fatal(err)
	}
	own := "{group: analysts, per: analyst, form: approx, epsilon: 100, delta: 1e-6}"
	f.budgets(t, "{dataset: true, form: approx, epsilon: 20, delta: 1e-6, mechanisms: [laplace]}", own)
	for _, ask := range []api.QueryRequest{counted(2, gauss), counted(3, gauss)} {
		if _, err := ana.Query(t.Context(), ask, ""); codeOfError(err) != fault.CodeBudgetMechanism ||
			!strings.Contains(err.Error(), "the dataset account takes laplace noise only") {
			t.Errorf("%v", err)
		}
		if _, err := ana.Estimate(t.Context(), ask); codeOfError(err) != fault.CodeBudgetMechanism {
			t.Errorf("%v", err)
		}
	}
	plan := api.PlanRequest{Dataset: gatewaytest.Dataset, Delta: "1e-8", Mechanisms: []api.PlanMechanism{{Mechanism: "gaussian", Rho: "0.01"}}}
	if _, err := ana.RegisterPlan(t.Context(), plan, ""); codeOfError(err) != fault.CodeBudgetMechanism {
		t.Errorf("%v", err)
	}
	if _, err := ana.Query(t.Context(), laplace, ""); err != nil {
		t.Error(err)
	}
	f.budgets(t, "{dataset: true, form: approx, epsilon: 20, delta: 1e-6}", strings.Replace(own, "}", ", mechanisms: [gaussian]}", 1))
	if _, err := ana.Query(t.Context(), counted(4, laplace), ""); codeOfError(err) != fault.CodeBudgetMechanism {
		t.Errorf("%v", err)
	}
	// Of a question with several releases each is of a family; their sum is of none.
	for list, refused := range map[string]bool{"max(n)": false, "max(n), (SELECT mode() WITHIN GROUP (ORDER BY region) FROM people)": true} {
		several := gauss
		several.SQL = "SELECT " + list + ", (SELECT count(*) FROM people WHERE age > 50) FROM (SELECT count(*) AS n FROM people) a"
		if _, err := ana.Query(t.Context(), several, ""); (codeOfError(err) == fault.CodeBudgetMechanism) != refused || !refused && err != nil {
			t.Errorf("%s: %v", list, err)
		}
	}
	if _, err := ana.Query(t.Context(), counted(5, gauss), ""); err != nil {
		t.Error(err)
	}
}

// TestRatesFallBackToWhatWasSpent: a request that reserves most of a shared rate and spends an eighth of that leaves
// the rest of the rate to others.
//
// covers: L2
func TestRatesFallBackToWhatWasSpent(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	sealedEnsemble(t, f, "digits", 20)
	f.budgets(t, "{dataset: true, form: approx, epsilon: 20, delta: 1e-6, rate: {epsilon: 1, per: 1h}}",
		"{group: analysts, per: analyst, form: approx, epsilon: 100, delta: 1e-6}",
		"{group: ml, per: analyst, form: approx, epsilon: 20, delta: 1e-6}")
	// The check never passes: its noise is 40, and its threshold is six times that above all votes.
	hopeless := api.LabelRequest{Queries: queries(0, 2), Mechanism: "confident", Threshold: "340", Sigma1: "40", Sigma2: "10"}
	got, err := f.client("mel:ml").Labels(t.Context(), "digits", hopeless, "")
	if err != nil || got.Labels[0].Status != "rejected" || got.WorstCase.Rho < "0.02" || got.Spent.Rho >= "0.01" {
		t.Fatalf("%+v, %v", got, err)
	}
	// Of ε 1 an hour, or ρ 0.0229, 0.0206 was reserved.
	if _, err := f.client("ana:analyst").Query(t.Context(), counted(0, api.QueryRequest{Epsilon: "0.7"}), ""); err != nil {
		t.Error(err)
	}
	if _, err := f.client("ana:analyst").Query(t.Context(), counted(1, api.QueryRequest{Epsilon: "0.7"}),
		""); codeOfError(err) != fault.CodeBudgetExhausted {
		t.Error(err)
	}
}

// TestReplaysHaveTheReceiptOfTheirSettlement: the receipt of an answer, and the pages of a history, are the same
// whatever others were charged since.
//
// covers: L8
func TestReplaysHaveTheReceiptOfTheirSettlement(t *testing.T) {
	f, signer := signing(t)
	sealedForEpsilon(t, f, "digits", 40)
	body := func(n int) string {
		return fmt.Sprintf(`{"dataset":"census","sql":"SELECT count(*) FROM people WHERE age > %d","epsilon":"0.01"}`, n)
	}
	asked := func(token, body string) string {
		t.Helper()
		response, text := f.do(t, call{method: "POST", path: "/v1/query", token: token, kind: "application/json", body: body})
		if response.StatusCode != 200 {
			t.Fatal(text)
		}
		return response.Header.Get("Noisegate-Receipt")
	}
	labels := call{path: "/v1/pate/digits/labels", token: "mel:ml", body: `{"queries":["q1","q2","q3"],"mechanism":"gnmax","sigma":"5"}`}
	history := func() string {
		t.Helper()
		_, first := f.do(t, call{method: "GET", path: "/v1/releases", token: "ana:analyst"})
		cursor := regexp.MustCompile(`"next_cursor":"([^"]*)"`).FindStringSubmatch(first)
		if cursor == nil || regexp.MustCompile(`^[0-9]+$`).MatchString(cursor[1]) {
			t.Fatalf("%v", cursor)
		}
		_, second := f.do(t, call{method: "GET", path: "/v1/releases?cursor=" + cursor[1], token: "ana:analyst"})
		return first + second
	}
	first := asked("ana:analyst", body(0))
	for n := range 105 { // more than a page
		asked("ana:analyst", body(n))
	}
	var bought, again api.LabelResponse
	f.signed(t, signer, labels, &bought)
	free := f.signed(t, signer, labels, &again)
	before := history()
	for n := range 5 {
		asked("bob:analyst", body(n))
	}
	if second := asked("ana:analyst", body(0)); second != first || strings.Contains(second, `"seq"`) {
		t.Errorf("%s\n%s", first, second)
	}
	f.Receipt(t, signer, first)
	if after := history(); after != before {
		t.Errorf("a history changed:\n%s\n%s", before, after)
	}
	if later := f.signed(t, signer, labels, &again); later.Head != free.Head || later.Answer != free.Answer {
		t.Errorf("%+v\n%+v", free, later)
	}
	for _, cursor := range []string{"17", "nobody's", "01ARZ3NDEKTSV4RRFFQ69G5FAV"} {
		if response, text := f.do(t, call{method: "GET", path: "/v1/releases?cursor=" + url.QueryEscape(cursor),
			token: "ana:analyst"}); response.StatusCode != 400 {
			t.Errorf("%s: %s", cursor, text)
		}
	}
}
