package gateway

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/budget/accounting"
	"noisegate.example/catalog"
	"noisegate.example/gateway/auth"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite"
)

func TestQueryIsChargedAndReplayed(t *testing.T) {
	r, ana := newRig(t), principal(t, "ana")
	first, err := r.Query(t.Context(), ana, count("0.5"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(api.Amounts{Epsilon: "0.5", Rho: first.Spent.Rho, Delta: "0"}, first.Spent); diff != "" {
		t.Error(diff)
	}
	if first.Replayed || first.Remaining.Epsilon != "2.5" || len(first.ID) != 26 {
		t.Errorf("%+v", first)
	}
	var result api.Result
	if err := json.Unmarshal(first.Result, &result); err != nil {
		t.Fatal(err)
	}
	if len(result.Rows) != 1 || !result.Rows[0][0].IsNumber() || result.Intervals[0][0] == nil || result.Columns[0].Name != "count" {
		t.Errorf("%s", first.Result)
	}
	// The same question in other words: the same bytes, free.
	again := count("5e-1")
	again.SQL = "select  COUNT(*) -- how many?\n from public.people"
	second, err := r.Query(t.Context(), ana, again)
	if err != nil {
		t.Fatal(err)
	}
	if !second.Replayed || second.ID != first.ID || string(second.Result) != string(first.Result) || second.Spent.Epsilon != "0" ||
		second.Remaining.Epsilon != "2.5" || r.data.runs != 1 {
		t.Errorf("%+v", second)
	}
	// Another analyst pays.
	third, err := r.Query(t.Context(), principal(t, "bob"), count("0.5"))
	if err != nil || third.Replayed || r.data.runs != 2 {
		t.Errorf("%+v, %v", third, err)
	}
}

// TestRefusedRequestsCostNothing: what is not a number in range, and what no account allows, names the field and costs nothing.
//
// covers: A71
func TestRefusedRequestsCostNothing(t *testing.T) {
	type edit = func(*api.QueryRequest)
	epsilon := func(text api.Decimal) edit { return func(q *api.QueryRequest) { q.Epsilon = text } }
	whole := func(n int64) *int64 { return &n }
	cases := map[string]struct {
		edit edit
		code fault.Code
	}{
		"no dataset":      {func(q *api.QueryRequest) { q.Dataset = "" }, fault.CodeRequestMissingField},
		"unknown dataset": {func(q *api.QueryRequest) { q.Dataset = "e" }, fault.CodeUnknownDataset},
		"no SQL":          {func(q *api.QueryRequest) { q.SQL = "" }, fault.CodeRequestMissingField},
		"rho NaN":         {func(q *api.QueryRequest) { q.Epsilon, q.Rho = "", "NaN" }, fault.CodeRequestRho},
		"epsilon and rho": {func(q *api.QueryRequest) { q.Rho = "1" }, fault.CodeRequestConflictingPrice},
		"epsilon and error": {func(q *api.QueryRequest) { q.MaxError = map[string]api.Decimal{"count": "9"} },
			fault.CodeRequestConflictingPrice},
		"delta one":      {func(q *api.QueryRequest) { q.Delta = "1" }, fault.CodeRequestDelta},
		"delta negative": {func(q *api.QueryRequest) { q.Delta = "-1e-9" }, fault.CodeRequestDelta},
		"mechanism":      {func(q *api.QueryRequest) { q.Mechanism = "none" }, fault.CodeRequestMechanism},
		"dialect":        {func(q *api.QueryRequest) { q.Dialect = "oracle" }, fault.CodeRequestDialect},
		"confidence 0":   {func(q *api.QueryRequest) { q.Confidence = api.Level(0) }, fault.CodeRequestConfidence},
		"confidence almost 1, simultaneous": {func(q *api.QueryRequest) {
			q.Confidence = api.Level(0.9999999)
			q.Confidence.Simultaneous = true
		}, fault.CodeRequestConfidence},
		"confidence 1":       {func(q *api.QueryRequest) { q.Confidence = api.Level(1) }, fault.CodeRequestConfidence},
		"confidence -1":      {func(q *api.QueryRequest) { q.Confidence = api.Level(-1) }, fault.CodeRequestConfidence},
		"max_groups 0":       {func(q *api.QueryRequest) { q.MaxGroups = whole(0) }, fault.CodeRequestMaxGroups},
		"max_rows negative":  {func(q *api.QueryRequest) { q.MaxRows = whole(-5) }, fault.CodeRequestMaxRows},
		"max_rows too large": {func(q *api.QueryRequest) { q.MaxRows = whole(2) }, fault.CodeLooserBound},
		"gaussian, no delta": {func(q *api.QueryRequest) { q.Mechanism = "gaussian" }, fault.CodeRequestDelta},
		"over the query cap": {epsilon("1.000000000001"), fault.CodeBudgetOverQueryCap},
		"max_error no number": {func(q *api.QueryRequest) { q.Epsilon, q.MaxError = "", map[string]api.Decimal{"count": "-2"} },
			fault.CodeRequestMaxError},
		"max_error no output": {func(q *api.QueryRequest) { q.Epsilon, q.MaxError = "", map[string]api.Decimal{"n": "2"} },
			fault.CodeRequestMaxError},
		"syntax":  {func(q *api.QueryRequest) { q.SQL = "SELEC" }, fault.CodeSyntax},
		"column":  {func(q *api.QueryRequest) { q.SQL = "SELECT sum(nope) FROM people" }, fault.CodeUnknownColumn},
		"two SQL": {func(q *api.QueryRequest) { q.SQL += "; SELECT 1" }, fault.CodeUnsupported},
	}
	for _, text := range []string{"-1", "-0", "0", "0.0", "0e0", "NaN", "nan", "Infinity", "inf", "1e308", "1e-320", "1e-13", "1000001",
		"abc", " 1", "1 ",
		"+1", "0x1", "1_0", "1,5", "٣", "1e", "e1", ".", "", "1e99999999999", "true", "{}", strings.Repeat("9", 41),
		"0." + strings.Repeat("1", 50)} {
		if text != "" {
			cases["epsilon "+text] = struct {
				edit edit
				code fault.Code
			}{epsilon(api.Decimal(text)), fault.CodeRequestEpsilon}
		}
	}
	r, ana := newRig(t), principal(t, "ana")
	for name, c := range cases {
		request := count("0.5")
		c.edit(&request.QueryRequest)
		if _, err := r.Query(t.Context(), ana, request); fault.CodeOf(err) != c.code {
			t.Errorf("%s: got %v, want %s", name, err, c.code)
		}
	}
	for _, key := range []string{"a b", "a\n", "é", strings.Repeat("k", 256)} {
		request := count("0.5")
		request.IdempotencyKey = key
		if _, err := r.Query(t.Context(), ana, request); fault.CodeOf(err) != fault.CodeRequestIdempotencyKey {
			t.Errorf("key %q: %v", key, err)
		}
	}
	if entries, err := r.ledger.Entries(t.Context(), budget.Page{Limit: 10}); err != nil || len(entries) != 0 || r.data.runs != 0 {
		t.Errorf("refused requests left %v in the ledger (%v) and ran %d statements", entries, err, r.data.runs)
	}
}

func TestPrices(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*api.QueryRequest)
		want mechanisms.Loss // Rho and Epsilon are compared where they are not zero
	}{
		"epsilon": {func(q *api.QueryRequest) { q.Epsilon = "0.25" }, mechanisms.Loss{Epsilon: mechanisms.EpsilonUnit / 4}},
		"rho gaussian": {func(q *api.QueryRequest) { q.Epsilon, q.Rho, q.Mechanism = "", "0.01", "gaussian" },
			mechanisms.Loss{Rho: mechanisms.RhoUnit / 100, Unbounded: true}},
		"epsilon gaussian": {func(q *api.QueryRequest) { q.Mechanism, q.Delta = "gaussian", "1e-9" },
			mechanisms.Loss{Rho: accounting.RhoFor(mechanisms.EpsilonUnit/2, 1_000_000_000), Unbounded: true}},
	} {
		t.Run(name, func(t *testing.T) {
			request := count("0.5").QueryRequest
			c.edit(&request)
			r := newRig(t)
			q, err := r.prepare(t.Context(), principal(t, "ana"), Request{QueryRequest: request})
			if err != nil {
				t.Fatal(err)
			}
			loss := q.plan.Loss()
			if loss.Unbounded != c.want.Unbounded || c.want.Rho != 0 && loss.Rho != c.want.Rho ||
				c.want.Epsilon != 0 && loss.Epsilon != c.want.Epsilon {
				t.Errorf("got %+v, want %+v", loss, c.want)
			}
		})
	}
}

// TestMaxError: the price that is found keeps the bound, and a price a hundredth below it does not.
func TestMaxError(t *testing.T) {
	r, ana := newRig(t), principal(t, "ana")
	request := count("").QueryRequest
	request.MaxError = map[string]api.Decimal{"count": "25"}
	found, err := r.Estimate(t.Context(), ana, request)
	if err != nil {
		t.Fatal(err)
	}
	if got := found.Outputs[0].HalfWidth.String(); got != "25" {
		t.Errorf("half-width %s at %s", got, found.Price.Epsilon)
	}
	price, err := mechanisms.ParseEpsilon(string(found.Price.Epsilon))
	if err != nil {
		t.Fatal(err)
	}
	request.MaxError, request.Epsilon = nil, api.Decimal((price * 99 / 100).String())
	cheaper, err := r.Estimate(t.Context(), ana, request)
	if err != nil {
		t.Fatal(err)
	}
	if got := cheaper.Outputs[0].HalfWidth.String(); got == "25" {
		t.Errorf("%s would have been enough, and %s was found", request.Epsilon, found.Price.Epsilon)
	}
}

// TestOuterLayerFails: what was paid for is delivered without ORDER BY and arithmetic, and replayed like that.
func TestOuterLayerFails(t *testing.T) {
	r, ana := newRig(t), principal(t, "ana")
	r.data.do = func() ([]sqlrewrite.ExactRow, error) {
		return []sqlrewrite.ExactRow{{Keys: []catalog.Key{{Text: "f"}}, Values: []mechanisms.Exact{mechanisms.SealInt64(1000)}}}, nil
	}
	request := count("1")
	request.SQL = "SELECT sex, count(*) * 2 AS twice FROM people GROUP BY sex ORDER BY 2"
	answer, err := r.Query(t.Context(), ana, request)
	if err != nil {
		t.Fatal(err)
	}
	var result api.Result
	if err := json.Unmarshal(answer.Result, &result); err != nil {
		t.Fatal(err)
	}
	if len(result.Rows) != 3 || len(result.Columns) != 2 || result.Columns[1].Name != "count(*)" || result.Columns[1].HalfWidth.IsNull() ||
		result.Rows[0][0].String() != "f" || result.Notes[len(result.Notes)-1].Code != "outer-layer-failed" {
		t.Errorf("%s", answer.Result)
	}
	again, err := r.Query(t.Context(), ana, request)
	if err != nil || !again.Replayed || string(again.Result) != string(answer.Result) {
		t.Errorf("%+v, %v", again, err)
	}
}

func TestMySQLDialect(t *testing.T) {
	r, ana := newRig(t), principal(t, "ana")
	request := count("1")
	request.SQL, request.Dialect = "SELECT COUNT(*) FROM `people`", "mysql"
	if _, err := r.Query(t.Context(), ana, request); err != nil {
		t.Error(err)
	}
	request.Dialect = ""
	if _, err := r.Query(t.Context(), ana, request); fault.CodeOf(err) != fault.CodeSyntax {
		t.Errorf("%v", err)
	}
}

func TestEstimateCostsNothing(t *testing.T) {
	r, ana := newRig(t), principal(t, "ana")
	e, err := r.Estimate(t.Context(), ana, count("0.5").QueryRequest)
	if err != nil {
		t.Fatal(err)
	}
	if !e.Affordable || e.Price.Epsilon != "0.5" || e.Remaining.Epsilon != "3" || len(e.Outputs) != 1 || e.Plan == "" || e.Confidence != 0.95 {
		t.Errorf("%+v", e)
	}
	if e, err = r.Estimate(t.Context(), ana, count("2").QueryRequest); err != nil || e.Affordable {
		t.Errorf("over the cap of one query: %+v, %v", e, err)
	}
	if entries, err := r.ledger.Entries(t.Context(), budget.Page{Limit: 10}); err != nil || len(entries) != 0 || r.data.runs != 0 {
		t.Errorf("%v, %v, %d runs", entries, err, r.data.runs)
	}
}

// Where policy shares releases, one analyst's answer is another one's: the same bytes, at no cost to anybody, under a key as well. A
// new version of the policy, as new data are, starts anew.
func TestSharedReleases(t *testing.T) {
	r := newRig(t, line("dataset", "", 1), perAnalyst("analysts", 1),
		catalog.Budget{Scope: catalog.AnalystScope, Name: "bi", ReplayOnly: true})
	ana, bob, bi := principal(t, "ana"), principal(t, "bob"), principal(t, "bi")
	paid, err := r.Query(t.Context(), ana, count("1"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Query(t.Context(), bob, count("1")); fault.CodeOf(err) != fault.CodeBudgetExhausted {
		t.Fatalf("not shared: %v, want exhausted", err)
	}
	r.policies.snapshot.ShareReleases = true
	for _, who := range []auth.Principal{bob, bi, ana} {
		again := count("1")
		again.IdempotencyKey = "key"
		for range 2 {
			got, err := r.Query(t.Context(), who, again)
			if err != nil || !got.Replayed || got.ID != paid.ID || string(got.Result) != string(paid.Result) || got.Spent.Epsilon != "0" {
				t.Errorf("%s: %+v, %v", who.Subject, got, err)
			}
		}
		again.Epsilon = "0.5"
		if _, err := r.Query(t.Context(), who, again); fault.CodeOf(err) != fault.CodeBudgetReplayMismatch {
			t.Errorf("%s: another question under the key: %v", who.Subject, err)
		}
	}
	if _, err := r.Query(t.Context(), bi, count("0.5")); fault.CodeOf(err) != fault.CodeBudgetReplayOnly {
		t.Errorf("another price: %v", err)
	}
	r.policies.snapshot.Version, r.policies.snapshot.DataVersion = 2, "new"
	if _, err := r.Query(t.Context(), bob, count("1")); fault.CodeOf(err) != fault.CodeBudgetExhausted {
		t.Errorf("new data: %v, want exhausted", err)
	}
	if r.data.runs != 1 {
		t.Errorf("the data were asked %d times", r.data.runs)
	}
}
