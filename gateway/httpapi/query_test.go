package httpapi

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"noisegate.example/api"
	"noisegate.example/gateway"
	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/internal/fault"
)

// Parameters travel as JSON, bare or with a type: the question is the one with constants, so that the second is a replay. One that is
// missing, or of another type, is refused and costs nothing.
func TestParametersOverHTTP(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	ana := f.client("ana:analyst")
	request := func(sql string, params ...string) api.QueryRequest {
		q := api.QueryRequest{Dataset: "census", Epsilon: "1", SQL: sql}
		for _, p := range params {
			q.Params = append(q.Params, json.RawMessage(p))
		}
		return q
	}
	const sql = "SELECT count(*) FROM people WHERE age > $1"
	first, err := ana.Query(t.Context(), request(sql, "30"), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, same := range []api.QueryRequest{request(sql, "30"), request(sql, `{"type": "integer", "value": "30"}`),
		request("SELECT count(*) FROM people WHERE age > 30")} {
		again, err := ana.Query(t.Context(), same, "")
		if err != nil || !again.Replayed || again.ReleaseID != first.ReleaseID || again.Spent.Epsilon != "0" {
			t.Errorf("%s with %s: %+v, %v", same.SQL, same.Params, again, err)
		}
	}
	for code, bad := range map[fault.Code]api.QueryRequest{fault.CodeRequestParams: request(sql, "1", "2"),
		fault.CodeUnsupported: request(sql), fault.CodeTypeMismatch: request(sql, "true")} {
		if _, err := ana.Query(t.Context(), bad, ""); codeOfError(err) != code {
			t.Errorf("%s with %s: %v, want %s", bad.SQL, bad.Params, err, code)
		}
	}
	other, err := ana.Query(t.Context(), request(sql, "31"), "")
	if err != nil || other.Replayed || other.Remaining.Epsilon != "8" {
		t.Errorf("another value: %+v, %v", other, err)
	}
}

func TestQueryOverHTTP(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	ana := f.client("ana:analyst")
	request := api.QueryRequest{Dataset: "census", Epsilon: "1",
		SQL: "SELECT region, count(*) AS n, avg(age) FROM people GROUP BY region ORDER BY n DESC"}
	first, err := ana.Query(t.Context(), request, "")
	if err != nil {
		t.Fatal(err)
	}
	if len(first.Rows) != 3 || first.Replayed || first.Spent.Epsilon != "1" || first.Remaining.Epsilon != "9" {
		t.Errorf("%+v", first)
	}
	for _, row := range first.Rows {
		if row[0].IsNull() || !row[1].IsNumber() {
			t.Errorf("row %v", row)
		}
	}
	second, err := ana.Query(t.Context(), request, "")
	if err != nil || !second.Replayed || second.Spent.Epsilon != "0" {
		t.Fatalf("%+v, %v", second, err)
	}
	second.Notes = withoutAge(t, second.Notes)
	if diff := cmp.Diff(first.Result, second.Result, cmp.AllowUnexported(api.Value{})); diff != "" {
		t.Error(diff)
	}
	release, err := ana.Release(t.Context(), first.ReleaseID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first.Result, release.Result, cmp.AllowUnexported(api.Value{})); diff != "" || release.Cost.Epsilon != "1" {
		t.Errorf("%+v: %s", release.ReleaseSummary, diff)
	}
	// Private keys, a unit in a column, arithmetic over releases.
	visits, err := ana.Query(t.Context(), api.QueryRequest{Dataset: "census", Epsilon: "2", Delta: "1e-8",
		SQL: "SELECT shop, sum(amount), sum(amount) / count(*) FROM visits GROUP BY shop HAVING count(*) > 0"}, "")
	if err != nil || len(visits.Columns) != 3 || visits.Spent.Delta == "0" {
		t.Errorf("%+v, %v", visits, err)
	}
	// The steward's role does not ask questions.
	_, err = f.client("sam:steward").Query(t.Context(), request, "")
	var p *api.Problem
	if !errors.As(err, &p) || p.Status != 403 || p.Code != "auth/forbidden" {
		t.Errorf("%v", err)
	}
}

// withoutAge are the notes of a replay without the last one, which says how old it is.
func withoutAge(t *testing.T, notes []api.Note) []api.Note {
	t.Helper()
	if len(notes) == 0 || notes[len(notes)-1].Code != "replayed" {
		t.Errorf("a replay does not say its age: %+v", notes)
		return notes
	}
	return notes[:len(notes)-1]
}

// ageNote is that note as it stands behind others.
var ageNote = regexp.MustCompile(`,?\{"code":"replayed","text":"of [^"]*"\}`)

// TestReplaysAreByteForByte compares the bodies, not what they decode to: all but the note on their age is the same.
func TestReplaysAreByteForByte(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	query := call{method: "POST", path: "/v1/query", token: "ana:analyst", kind: "application/json",
		body: `{"dataset":"census","sql":"SELECT region, avg(income) FROM people GROUP BY 1","epsilon":0.5}`}
	_, first := f.do(t, query)
	_, second := f.do(t, query)
	head, _, found := strings.Cut(first, `"spent"`)
	if !found || !json.Valid([]byte(first)) {
		t.Fatalf("%s", first)
	}
	if want := strings.Replace(head, `"replayed":false`, `"replayed":true`, 1); !strings.HasPrefix(ageNote.ReplaceAllString(second, ""), want) {
		t.Errorf("%s\n%s", first, second)
	}
}

// covers: A68
func TestIdempotencyKeyReplays(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	query := func(token, key, sql string) (int, string, string) {
		response, text := f.do(t, call{method: "POST", path: "/v1/query", token: token, kind: "application/json",
			header: http.Header{"Idempotency-Key": {key}}, body: fmt.Sprintf(`{"dataset":"census","sql":%q,"epsilon":"0.1"}`, sql)})
		return response.StatusCode, text, response.Header.Get("Noisegate-Release-Id")
	}
	status, _, first := query("ana:analyst", "k1", "SELECT count(*) FROM people")
	if status != 200 {
		t.Fatal(status)
	}
	if status, _, again := query("ana:analyst", "k1", "SELECT count(*) FROM people"); status != 200 || again != first {
		t.Errorf("%d, %s", status, again)
	}
	if status, text, _ := query("ana:analyst", "k1", "SELECT count(*) FROM visits"); status != 422 ||
		codeOf(t, text) != fault.CodeBudgetReplayMismatch {
		t.Errorf("another body: %d %s", status, text)
	}
	// The key of one analyst is nothing to another.
	if status, _, other := query("bob:analyst", "k1", "SELECT count(*) FROM visits"); status != 200 || other == first {
		t.Errorf("another analyst: %d, %s", status, other)
	}
}

func TestFormats(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	ask := func(accept string) (*http.Response, string) {
		return f.do(t, call{method: "POST", path: "/v1/query?dataset=census&epsilon=5&confidence=0.9", token: "ana:analyst",
			kind: "text/plain; charset=UTF-8",
			body: "SELECT region, count(*), count(*) + 1 AS count FROM people GROUP BY region", header: http.Header{"Accept": {accept}}})
	}
	response, text := ask("text/csv")
	if response.StatusCode != 200 || response.Header.Get("Content-Type") != "text/csv; charset=utf-8; header=present" ||
		response.Header.Get("Noisegate-Spent-Epsilon") != "5" || response.Header.Get("Noisegate-Remaining-Epsilon") != "5" {
		t.Fatalf("%d %v %s", response.StatusCode, response.Header, text)
	}
	lines, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(lines) != 4 {
		t.Fatalf("%v, %v", lines, err)
	}
	wantHeader := []string{"region", "count", "count_low", "count_high", "count_2", "count_low_2", "count_high_2"}
	if diff := cmp.Diff(wantHeader, lines[0]); diff != "" {
		t.Error(diff)
	}
	_, text = ask("application/x-ndjson, text/csv;q=0.5")
	objects := strings.Split(strings.TrimSpace(text), "\n")
	if len(objects) != 3 {
		t.Fatal(text)
	}
	for i, object := range objects {
		var row map[string]json.RawMessage
		if err := json.Unmarshal([]byte(object), &row); err != nil || len(row) != 7 || string(row["count"]) != lines[i+1][1] {
			t.Errorf("%s, %v; %v", object, err, lines[i+1])
		}
	}
	for accept, want := range map[string]string{
		"":                                  "application/json; charset=utf-8",
		"*/*":                               "application/json; charset=utf-8",
		"text/*":                            "text/csv; charset=utf-8; header=present",
		"text/csv;q=0.1, application/*":     "application/json; charset=utf-8",
		"text/html, */*;q=0.1":              "application/json; charset=utf-8",
		"application/x-ndjson;q=x,text/csv": "text/csv; charset=utf-8; header=present",
	} {
		if response, text := ask(accept); response.Header.Get("Content-Type") != want {
			t.Errorf("%q: %v %s", accept, response.Header, text)
		}
	}
}

// TestPlansAreReadable: people read the plan of an estimate in a terminal.
func TestPlansAreReadable(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	response, text := f.do(t, call{method: "POST", path: "/v1/query/estimate?dataset=census&epsilon=1", token: "ana:analyst",
		kind: "text/plain",
		body: "SELECT count(*) FROM people WHERE age > 30 AND age <> 40"})
	if response.StatusCode != 200 || !strings.Contains(text, "age > 30") || strings.Contains(text, `\u003`) {
		t.Errorf("%d %s", response.StatusCode, text)
	}
}

func TestStewardship(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	sam := f.client("sam:steward")
	text, version, err := sam.Policy(t.Context(), "census")
	if err != nil || string(text) != gatewaytest.Policy || version != 1 {
		t.Fatalf("%d, %v: %s", version, err, text)
	}
	changed := bytes.Replace(text, []byte("epsilon: 10,"), []byte("epsilon: 2,"), 1)
	if _, err := sam.SetPolicy(t.Context(), "census", changed, 7); codeOfError(err) != fault.CodePolicyConflict {
		t.Errorf("another version: %v", err)
	}
	applied, err := sam.SetPolicy(t.Context(), "census", changed, version)
	if err != nil || applied.Version != 2 || len(applied.Digest) != 64 {
		t.Fatalf("%+v, %v", applied, err)
	}
	if _, err := sam.SetPolicy(t.Context(), "census", text, version); codeOfError(err) != fault.CodePolicyConflict {
		t.Errorf("the version before: %v", err)
	}
	response, _ := f.do(t, call{method: "PUT", path: "/v1/datasets/census/policy", token: "sam:steward", kind: "application/yaml",
		body: string(text)})
	if response.StatusCode != http.StatusPreconditionRequired {
		t.Errorf("no precondition: %d", response.StatusCode)
	}
	var p *api.Problem
	_, err = sam.SetPolicy(t.Context(), "census", bytes.Replace(changed, []byte("income:"), []byte("incomes:"), 1), 2)
	if !errors.As(err, &p) || p.Code != "policy/invalid" || p.Position == nil || p.Position.Line != 9 {
		t.Errorf("a column that does not exist: %v", err)
	}
	if _, err = sam.SetPolicy(t.Context(), "census", bytes.Replace(changed, []byte("dataset: census"), []byte("dataset: other"), 1),
		2); codeOfError(err) != fault.CodePolicyInvalid {
		t.Errorf("another dataset's file: %v", err)
	}
	mine, err := f.client("ana:analyst").Budget(t.Context(), "census")
	if err != nil || mine.Budgets[0].Remaining.Epsilon != "2" {
		t.Errorf("%+v, %v", mine, err)
	}
	// A budget for somebody whose name needs escaping.
	account, err := sam.SetAccount(t.Context(), "census", "analyst:eve/ü @x", api.BudgetLimit{Form: "pure", Epsilon: "4"})
	if err != nil || account.Account != "analyst:eve/ü @x" || account.Remaining.Epsilon != "4" {
		t.Errorf("%+v, %v", account, err)
	}
	if mine, err := f.client("eve/ü @x:analyst").Budget(t.Context(), "census"); err != nil || mine.Budgets[0].Limit.Epsilon != "4" {
		t.Errorf("%+v, %v", mine, err)
	}
	list, err := sam.Accounts(t.Context(), "census")
	if err != nil || len(list.Accounts) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	if _, err := sam.Account(t.Context(), "nope", "dataset"); codeOfError(err) != fault.CodeUnknownDataset {
		t.Errorf("%v", err)
	}
}

// TestReplayOnly: an account without a budget reads what it asked before, and nothing else.
func TestReplayOnly(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	_, err := f.client("bi:analyst").Query(t.Context(), api.QueryRequest{Dataset: "census", SQL: "SELECT count(*) FROM people",
		Epsilon: "1"}, "")
	if codeOfError(err) != fault.CodeBudgetReplayOnly {
		t.Errorf("%v", err)
	}
}

// TestDataUnavailable: what is lost before the statement was sent costs nothing. What is lost after it costs the query, and
// looks the same (TestNothingOfAFailureShows).
//
// covers: F10
func TestDataUnavailable(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	f := newFront(t, gatewaytest.Options{StatementTimeout: time.Second}, 4)
	ana := f.client("ana:analyst")
	spent := func() api.Decimal {
		b, err := ana.Budget(t.Context(), "census")
		if err != nil {
			t.Fatal(err)
		}
		return b.Budgets[0].Spent.Epsilon
	}
	query := func(sql string) *api.Problem {
		_, err := ana.Query(t.Context(), api.QueryRequest{Dataset: "census", SQL: sql, Epsilon: "1"}, "")
		var p *api.Problem
		if !errors.As(err, &p) {
			t.Fatalf("%s: %v", sql, err)
		}
		p.RequestID = ""
		return p
	}
	// A lock that somebody holds: LOCK TABLE fails before the statement is sent.
	locker := f.Protected.Conn(t, f.Protected.DSN)
	if _, err := locker.Exec(t.Context(), "BEGIN; LOCK TABLE people IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	before := query("SELECT count(*) FROM people")
	if before.Status != 503 || spent() != "0" {
		t.Errorf("locked: %+v, spent %s", before, spent())
	}
	if _, err := locker.Exec(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	// The tables are gone for good before the policy notices.
	f.Protected.Exec(t, "ALTER TABLE visits RENAME TO hits")
	if gone := query("SELECT count(*) FROM visits"); gone.Detail != before.Detail || spent() != "0" {
		t.Errorf("renamed: %+v, spent %s", gone, spent())
	}
}

// TestNothingOfAFailureShows: not in the answer, not in the log.
//
// covers: A30
func TestNothingOfAFailureShows(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	policy := strings.Replace(gatewaytest.Policy, "unit: {row: id}", "unit: {row: id}\n    row_security: per-row", 1)
	if _, err := f.SetPolicy(t.Context(), gateway.PolicyChange{Dataset: gatewaytest.Dataset, By: "sam", Replaces: 1,
		Text: []byte(policy)}); err != nil {
		t.Fatal(err)
	}
	f.Protected.Exec(t, "CREATE FUNCTION boom(int) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE 'canary-%', $1; END $$",
		"ALTER TABLE people ENABLE ROW LEVEL SECURITY", "CREATE POLICY p ON people USING (boom(id))")
	ana := f.client("ana:analyst")
	_, err := ana.Query(t.Context(), api.QueryRequest{Dataset: "census",
		SQL: "SELECT count(*) FROM people WHERE region <> 'literal-canary'", Epsilon: "1"}, "")
	var p *api.Problem
	if !errors.As(err, &p) || p.Code != "data/unavailable" || p.Status != 503 {
		t.Fatalf("%v", err)
	}
	b, err := ana.Budget(t.Context(), "census")
	if err != nil || b.Budgets[0].Spent.Epsilon != "1" {
		t.Errorf("A31: a failure after the statement was sent cost %+v, %v", b, err)
	}
	if all := f.log.String() + fmt.Sprintf("%+v", p); strings.Contains(all, "canary") || !strings.Contains(all, "SQLSTATE") {
		t.Errorf("%s", all)
	}
}

func TestReleaseTag(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	answer, err := f.client("ana:analyst").Query(t.Context(), api.QueryRequest{Dataset: "census", SQL: "SELECT count(*) FROM people",
		Epsilon: "1"}, "")
	if err != nil {
		t.Fatal(err)
	}
	get := call{method: "GET", path: "/v1/releases/" + answer.ReleaseID, token: "ana:analyst"}
	response, _ := f.do(t, get)
	get.header = http.Header{"If-None-Match": {`"x", W/` + response.Header.Get("ETag")}}
	if again, text := f.do(t, get); again.StatusCode != http.StatusNotModified || text != "" {
		t.Errorf("%d %s", again.StatusCode, text)
	}
	get.token = "bob:analyst"
	if foreign, _ := f.do(t, get); foreign.StatusCode != 404 || foreign.Header.Get("ETag") != "" {
		t.Errorf("A74: someone else's release: %d", foreign.StatusCode)
	}
}

// TestStalePolicyIsFree: a table that changed refuses before anything is charged, also before the change was noticed.
//
// covers: A59
func TestStalePolicyIsFree(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	f.Protected.Exec(t, "ALTER TABLE people ALTER age TYPE bigint")
	ana := f.client("ana:analyst")
	request := api.QueryRequest{Dataset: "census", SQL: "SELECT sum(age) FROM people", Epsilon: "1"}
	for range 2 {
		if _, err := ana.Query(t.Context(), request, ""); codeOfError(err) != fault.CodePolicyStale {
			t.Errorf("%v", err)
		}
		if err := f.Policies.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	sam := f.client("sam:steward")
	text, version, err := sam.Policy(t.Context(), "census")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sam.SetPolicy(t.Context(), "census", text, version); err != nil {
		t.Fatal(err)
	}
	answer, err := ana.Query(t.Context(), request, "")
	if err != nil || answer.Remaining.Epsilon != "9" {
		t.Errorf("after the policy was applied again: %+v, %v", answer, err)
	}
}
