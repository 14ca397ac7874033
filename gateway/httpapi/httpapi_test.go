package httpapi

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/go-cmp/cmp"

	"noisegate/api"
	"noisegate/gateway/auth"
	"noisegate/gateway/gatewaytest"
	"noisegate/internal/fault"
	"noisegate/internal/pgserver"
)

// durable is the server of all control databases of this package's tests.
var durable *pgserver.Server

func TestMain(m *testing.M) {
	var err error
	if durable, err = gatewaytest.Server(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	status := m.Run()
	if err := durable.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

// names is a verifier whose tokens say who one is: "ana:analyst,steward".
type names struct{}

func (names) Verify(_ context.Context, token string) (auth.Principal, error) {
	subject, roles, ok := strings.Cut(token, ":")
	if !ok {
		return auth.Principal{}, fault.AuthInvalid(errors.New("no colon"))
	}
	if subject == "panic" {
		panic("the text of a panic")
	}
	p, ok := auth.NewPrincipal(subject, strings.Split(roles, ","), nil)
	if !ok {
		return auth.Principal{}, fault.AuthInvalid(errors.New("no principal"))
	}
	return p, nil
}

// front is an HTTP server over a whole gateway.
type front struct {
	*gatewaytest.Gateway
	url string
	log *lockedBuffer
}

// lockedBuffer is a log that handlers of several requests write to.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newFront(t testing.TB, o gatewaytest.Options, places int) *front {
	t.Helper()
	f := &front{log: new(lockedBuffer)}
	o.Log = slog.New(slog.NewTextHandler(f.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	f.Gateway = gatewaytest.New(t, durable, o)
	handler, err := New(Config{Service: f.Service, Verifier: names{}, ConcurrentQueries: places, Log: o.Log})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	f.url = server.URL
	return f
}

func (f *front) client(token string) *api.Client { return api.NewClient(f.url, token) }

// call is one request by hand.
type call struct {
	method, path, token, kind, body string
	header                          http.Header
}

func (f *front) do(t *testing.T, c call) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), c.method, f.url+c.path, strings.NewReader(c.body))
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range c.header {
		request.Header[name] = values
	}
	if c.kind != "" {
		request.Header.Set("Content-Type", c.kind)
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(text)
}

func codeOf(t *testing.T, text string) fault.Code {
	t.Helper()
	var p api.Problem
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return ""
	}
	return fault.Code(p.Code)
}

// TestA73EveryRouteHasARole walks what the router really has: each route is a line of the table, and each line that is not
// public names a role and refuses everyone else.
func TestA73EveryRouteHasARole(t *testing.T) {
	table := map[string]route{}
	for _, r := range routes() {
		table[r.method+" "+r.pattern] = r
		if r.public == (len(r.roles) > 0) {
			t.Errorf("%s %s: public %v with roles %v", r.method, r.pattern, r.public, r.roles)
		}
	}
	s := &server{log: slog.New(slog.DiscardHandler), newRequestID: func() string { return "id" }, verifier: names{}}
	router := s.router(routes())
	err := chi.Walk(router, func(method, pattern string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		if _, ok := table[method+" "+pattern]; !ok {
			t.Errorf("%s %s is not in the table", method, pattern)
		}
		delete(table, method+" "+pattern)
		return nil
	})
	if err != nil || len(table) > 0 {
		t.Errorf("%v; not mounted: %v", err, table)
	}
	// The service is nil: a handler that is reached panics, which shows as 500; a caller without the role never gets there.
	for _, r := range routes() {
		path := strings.NewReplacer("{dataset}", "d", "{account}", "dataset", "{id}", "x").Replace(r.pattern)
		for _, role := range []auth.Role{"", auth.Analyst, auth.Steward, auth.ML, "root"} {
			request := httptest.NewRequest(r.method, path, strings.NewReader(`{}`))
			request.Header.Set("Content-Type", "application/json")
			if role != "" {
				request.Header.Set("Authorization", "Bearer x:"+string(role))
			}
			w := httptest.NewRecorder()
			router.ServeHTTP(w, request)
			want := http.StatusForbidden
			if role == "" {
				want = http.StatusUnauthorized
			}
			allowed := r.public || slices.Contains(r.roles, role)
			if refused := w.Code == want; refused == allowed {
				t.Errorf("%s %s as %q: %d %s", r.method, r.pattern, role, w.Code, w.Body)
			}
		}
	}
	if (route{}).allows(auth.Principal{Roles: []auth.Role{auth.Steward}}) {
		t.Error("a route without roles lets somebody in")
	}
}

func TestA73PathTricks(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	for path, want := range map[string]int{
		"/v1/datasets/census/budgets":         http.StatusForbidden,
		"/v1/datasets/census/budgets/":        http.StatusNotFound,
		"//v1/datasets/census/budgets":        http.StatusNotFound,
		"/v1//datasets/census/budgets":        http.StatusNotFound,
		"/v1/datasets/census/./budgets":       http.StatusNotFound,
		"/v1/datasets/x/../census/budgets":    http.StatusNotFound,
		"/v1/datasets/census%2fbudgets":       http.StatusNotFound, // a dataset of that name
		"/v1/datasets/census/%62udgets":       http.StatusNotFound,
		"/v1/datasets/census/budgets%00":      http.StatusNotFound,
		"/v1/datasets/census/budgets;x":       http.StatusNotFound,
		"/V1/datasets/census/budgets":         http.StatusNotFound,
		"/v1/datasets/census/budgets/dataset": http.StatusForbidden,
	} {
		response, text := f.do(t, call{method: "GET", path: path, token: "ana:analyst"})
		if response.StatusCode != want || strings.Contains(text, "epsilon") {
			t.Errorf("%s: %d %s", path, response.StatusCode, text)
		}
	}
	for _, method := range []string{"HEAD", "OPTIONS", "PATCH", "DELETE", "POST", "TRACE", "FOO"} {
		header := http.Header{"X-Http-Method-Override": {"PUT"}}
		response, _ := f.do(t, call{method: method, path: "/v1/datasets/census/budgets/dataset", token: "ana:analyst", header: header})
		if response.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d", method, response.StatusCode)
		}
	}
}

func TestQueryOverHTTP(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	ana := f.client("ana:analyst")
	request := api.QueryRequest{Dataset: "census", Epsilon: "1", SQL: "SELECT region, count(*) AS n, avg(age) FROM people GROUP BY region ORDER BY n DESC"}
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

// TestReplaysAreByteForByte compares the bodies, not what they decode to.
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
	if want := strings.Replace(head, `"replayed":false`, `"replayed":true`, 1); !strings.HasPrefix(second, want) {
		t.Errorf("%s\n%s", first, second)
	}
}

func TestA68IdempotencyKey(t *testing.T) {
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
	if status, text, _ := query("ana:analyst", "k1", "SELECT count(*) FROM visits"); status != 422 || codeOf(t, text) != fault.CodeBudgetReplayMismatch {
		t.Errorf("another body: %d %s", status, text)
	}
	// The key of one analyst is nothing to another.
	if status, _, other := query("bob:analyst", "k1", "SELECT count(*) FROM visits"); status != 200 || other == first {
		t.Errorf("another analyst: %d, %s", status, other)
	}
}

// TestA75Bodies: what is not exactly a request is refused and changes nothing.
func TestA75Bodies(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	const good = `"dataset":"census","sql":"SELECT count(*) FROM people","epsilon":"0.1"`
	type refusal struct {
		body string
		code fault.Code
	}
	cases := map[string]refusal{
		"empty":             {``, fault.CodeRequestBody},
		"list":              {`[]`, fault.CodeRequestBody},
		"null":              {`null`, fault.CodeRequestBody},
		"text":              {`"x"`, fault.CodeRequestBody},
		"cut off":           {`{` + good, fault.CodeRequestBody},
		"trailing":          {`{` + good + `} x`, fault.CodeRequestBody},
		"two values":        {`{` + good + `}{}`, fault.CodeRequestBody},
		"comment":           {`{` + good + `/* */}`, fault.CodeRequestBody},
		"trailing comma":    {`{` + good + `,}`, fault.CodeRequestBody},
		"single quotes":     {`{'dataset':'census'}`, fault.CodeRequestBody},
		"NaN":               {`{"dataset":"census","sql":"SELECT 1","epsilon":NaN}`, fault.CodeRequestBody},
		"deep":              {`{` + good + `,"max_error":` + strings.Repeat(`{"a":`, 40) + `1` + strings.Repeat(`}`, 40) + `}`, fault.CodeRequestBody},
		"twice":             {`{` + good + `,"sql":"SELECT 1"}`, fault.CodeRequestDuplicateField},
		"twice, escaped":    {`{` + good + `,"\u0073ql":"SELECT 1"}`, fault.CodeRequestDuplicateField},
		"twice in an inner": {`{` + good + `,"max_error":{"n":1,"n":2}}`, fault.CodeRequestDuplicateField},
		"epsilon true":      {`{"dataset":"census","sql":"SELECT count(*) FROM people","epsilon":true}`, fault.CodeRequestEpsilon},
		"epsilon list":      {`{"dataset":"census","sql":"SELECT count(*) FROM people","epsilon":["1"]}`, fault.CodeRequestEpsilon},
		"epsilon empty":     {`{"dataset":"census","sql":"SELECT count(*) FROM people","epsilon":""}`, fault.CodeRequestEpsilon},
		"confidence text":   {`{` + good + `,"confidence":"high"}`, fault.CodeRequestConfidence},
		"max_groups 1.5":    {`{` + good + `,"max_groups":1.5}`, fault.CodeRequestMaxGroups},
		"max_rows 1e99":     {`{` + good + `,"max_rows":1e99}`, fault.CodeRequestMaxRows},
		"max_error text":    {`{` + good + `,"max_error":"5"}`, fault.CodeRequestMaxError},
		"mechanism number":  {`{` + good + `,"mechanism":1}`, fault.CodeRequestMechanism},
		"sql number":        {`{"dataset":"census","sql":1,"epsilon":1}`, fault.CodeRequestBody},
		"dataset null":      {`{"dataset":null,"sql":"SELECT 1","epsilon":1}`, fault.CodeRequestMissingField},
	}
	for _, name := range []string{"Epsilon", "EPSILON", "epsilon ", "epsilon_cap", "role", "noise", "analyst", "subject", "budget", "Dataset", "SQL", "__proto__"} {
		cases["field "+name] = refusal{`{` + good + `,"` + name + `":"1"}`, fault.CodeRequestUnknownField}
	}
	for name, c := range cases {
		response, text := f.do(t, call{method: "POST", path: "/v1/query", token: "ana:analyst", kind: "application/json", body: c.body})
		if codeOf(t, text) != c.code || response.StatusCode != 400 {
			t.Errorf("%s: %d %s", name, response.StatusCode, text)
		}
	}
	for name, c := range map[string]call{
		"URL field":         {path: "/v1/query?epsilon=1", kind: "application/json", body: `{` + good + `}`},
		"unknown URL field": {path: "/v1/query?epsilom=1&dataset=census", kind: "text/plain", body: "SELECT 1"},
		"URL field twice":   {path: "/v1/query?dataset=census&dataset=census", kind: "text/plain", body: "SELECT 1"},
		"bad URL":           {path: "/v1/query?dataset=%zz", kind: "text/plain", body: "SELECT 1"},
	} {
		c.method, c.token = "POST", "ana:analyst"
		if response, text := f.do(t, c); response.StatusCode != 400 {
			t.Errorf("%s: %d %s", name, response.StatusCode, text)
		}
	}
	for name, c := range map[string]struct {
		call
		status int
	}{
		"A44 a megabyte":   {call{kind: "application/json", body: `{"sql":"` + strings.Repeat("1+", 1<<19) + `"}`}, 413},
		"just too large":   {call{kind: "text/plain", body: strings.Repeat("x", maxBody+1)}, 413},
		"no type":          {call{body: `{` + good + `}`}, 415},
		"form":             {call{kind: "application/x-www-form-urlencoded", body: "sql=1"}, 415},
		"other charset":    {call{kind: "application/json; charset=utf-16", body: `{` + good + `}`}, 415},
		"A85 gzip":         {call{kind: "application/json", body: "x", header: http.Header{"Content-Encoding": {"gzip"}}}, 415},
		"accept image":     {call{kind: "application/json", body: `{` + good + `}`, header: http.Header{"Accept": {"image/png"}}}, 406},
		"accept nothing":   {call{kind: "application/json", body: `{` + good + `}`, header: http.Header{"Accept": {"application/json;q=0"}}}, 406},
		"two keys":         {call{kind: "application/json", body: `{` + good + `}`, header: http.Header{"Idempotency-Key": {"a", "b"}}}, 400},
		"two tokens":       {call{kind: "application/json", body: `{` + good + `}`, header: http.Header{"Authorization": {"Bearer ana:analyst", "Bearer sam:steward"}}}, 401},
		"basic":            {call{kind: "application/json", body: `{` + good + `}`, header: http.Header{"Authorization": {"Basic YTpi"}}}, 401},
		"token in the URL": {call{path: "/v1/query?access_token=ana:analyst", kind: "application/json", body: `{` + good + `}`, header: http.Header{"X": {""}}}, 400},
	} {
		c.method = "POST"
		if c.path == "" {
			c.path = "/v1/query"
		}
		if c.header.Get("Authorization") == "" {
			c.token = "ana:analyst"
		}
		if response, text := f.do(t, c.call); response.StatusCode != c.status {
			t.Errorf("%s: %d %.200s", name, response.StatusCode, text)
		}
	}
	if n := f.Entries(t); n != 0 {
		t.Errorf("refused requests left %d entries in the ledger", n)
	}
	if _, err := f.client("ana:analyst").Budget(t.Context(), ""); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func TestFormats(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	ask := func(accept string) (*http.Response, string) {
		return f.do(t, call{method: "POST", path: "/v1/query?dataset=census&epsilon=5&confidence=0.9", token: "ana:analyst", kind: "text/plain; charset=UTF-8",
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
	wantHeader := []string{"region", "count", "count_lo", "count_hi", "count_2", "count_lo_2", "count_hi_2"}
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
	response, _ := f.do(t, call{method: "PUT", path: "/v1/datasets/census/policy", token: "sam:steward", kind: "application/yaml", body: string(text)})
	if response.StatusCode != http.StatusPreconditionRequired {
		t.Errorf("no precondition: %d", response.StatusCode)
	}
	var p *api.Problem
	_, err = sam.SetPolicy(t.Context(), "census", bytes.Replace(changed, []byte("income:"), []byte("incomes:"), 1), 2)
	if !errors.As(err, &p) || p.Code != "policy/invalid" || p.Position == nil || p.Position.Line != 9 {
		t.Errorf("a column that does not exist: %v", err)
	}
	if _, err = sam.SetPolicy(t.Context(), "census", bytes.Replace(changed, []byte("dataset: census"), []byte("dataset: other"), 1), 2); codeOfError(err) != fault.CodePolicyInvalid {
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

func codeOfError(err error) fault.Code {
	var p *api.Problem
	if errors.As(err, &p) {
		return fault.Code(p.Code)
	}
	return ""
}

// TestReplayOnly: an account without a budget reads what it asked before, and nothing else.
func TestReplayOnly(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	_, err := f.client("bi:analyst").Query(t.Context(), api.QueryRequest{Dataset: "census", SQL: "SELECT count(*) FROM people", Epsilon: "1"}, "")
	if codeOfError(err) != fault.CodeBudgetReplayOnly {
		t.Errorf("%v", err)
	}
}

// TestF10DataUnavailable: what is lost before the statement was sent costs nothing. What is lost after it costs the query, and
// looks the same (TestA30NothingOfAFailureShows).
func TestF10DataUnavailable(t *testing.T) {
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

// TestA30NothingOfAFailureShows: not in the answer, not in the log.
func TestA30NothingOfAFailureShows(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	f.Protected.Exec(t, "CREATE FUNCTION boom(int) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE 'canary-%', $1; END $$",
		"ALTER TABLE people ENABLE ROW LEVEL SECURITY", "CREATE POLICY p ON people USING (boom(id))")
	ana := f.client("ana:analyst")
	_, err := ana.Query(t.Context(), api.QueryRequest{Dataset: "census", SQL: "SELECT count(*) FROM people WHERE region <> 'literal-canary'", Epsilon: "1"}, "")
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

// TestA78Log: a line names the request, never what was asked or answered.
func TestA78Log(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	answer, err := f.client("ana:analyst").Query(t.Context(), api.QueryRequest{Dataset: "census", SQL: "SELECT count(*) AS n FROM people WHERE region = 'literal-canary'", Epsilon: "1"}, "key-canary")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = f.client("ana:analyst").Query(t.Context(), api.QueryRequest{Dataset: "census", SQL: "SELECT literal_canary FROM people", Epsilon: "1"}, "")
	_, _ = f.client("panic:analyst").Query(t.Context(), api.QueryRequest{}, "")
	_, _ = f.client("token-canary").Datasets(t.Context())
	log := f.log.String()
	for _, secret := range []string{"canary", "text of a panic", "SELECT", answer.Rows[0][0].String() + ","} {
		if strings.Contains(log, secret) {
			t.Errorf("the log shows %q:\n%s", secret, log)
		}
	}
	for _, want := range []string{"route=/v1/query status=200 subject=ana", "code=sql/unknown-column", "code=auth/invalid", "panic of type string"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %q:\n%s", want, log)
		}
	}
}

func TestF19PanicIsOpaque(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	response, text := f.do(t, call{method: "GET", path: "/v1/datasets", token: "panic:analyst"})
	if response.StatusCode != 500 || codeOf(t, text) != fault.CodeInternal || strings.Contains(text, "panic") {
		t.Errorf("%d %s", response.StatusCode, text)
	}
	if response.Header.Get("Noisegate-Request-Id") == "" || !strings.Contains(text, response.Header.Get("Noisegate-Request-Id")) {
		t.Errorf("%v %s", response.Header, text)
	}
}

// TestHeaders holds every kind of response against section 5.3 of the security design.
func TestHeaders(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	for _, c := range []call{
		{method: "GET", path: "/healthz"}, {method: "GET", path: "/openapi.json"}, {method: "GET", path: "/nowhere"}, {method: "PUT", path: "/healthz"},
		{method: "GET", path: "/v1/datasets"}, {method: "GET", path: "/v1/datasets", token: "ana:analyst"}, {method: "GET", path: "/v1/datasets", token: "panic:x"},
		{method: "GET", path: "/v1/datasets/census/policy", token: "sam:steward"},
	} {
		response, _ := f.do(t, c)
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
			"Strict-Transport-Security": "max-age=31536000; includeSubDomains", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Server": "", "Access-Control-Allow-Origin": "",
		} {
			if got := response.Header.Get(name); got != want {
				t.Errorf("%s %s: %s is %q", c.method, c.path, name, got)
			}
		}
		if response.StatusCode == 401 && response.Header.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("%s %s: 401 without WWW-Authenticate", c.method, c.path)
		}
	}
	response, _ := f.do(t, call{method: "GET", path: "/v1/releases/unknown", token: "ana:analyst"})
	if response.StatusCode != 404 {
		t.Errorf("unknown release: %d", response.StatusCode)
	}
}

func TestReleaseTag(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	answer, err := f.client("ana:analyst").Query(t.Context(), api.QueryRequest{Dataset: "census", SQL: "SELECT count(*) FROM people", Epsilon: "1"}, "")
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

func TestReady(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	response, text := f.do(t, call{method: "GET", path: "/readyz"})
	if response.StatusCode != 200 || text != `{"status":"ok","checks":{"dataset:census":"ok","ledger":"ok"}}` {
		t.Errorf("%d %s", response.StatusCode, text)
	}
	f.Protected.Exec(t, "ALTER TABLE people ALTER age TYPE bigint")
	f.Policies.Refresh(t.Context())
	response, text = f.do(t, call{method: "GET", path: "/readyz"})
	if response.StatusCode != 503 || text != `{"status":"unavailable","checks":{"dataset:census":"unavailable","ledger":"ok"}}` {
		t.Errorf("%d %s", response.StatusCode, text)
	}
	if response, _ := f.do(t, call{method: "GET", path: "/healthz"}); response.StatusCode != 200 {
		t.Errorf("health: %d", response.StatusCode)
	}
}

// TestA59StalePolicyIsFree: a table that changed refuses before anything is charged, also before the change was noticed.
func TestA59StalePolicyIsFree(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	f.Protected.Exec(t, "ALTER TABLE people ALTER age TYPE bigint")
	ana := f.client("ana:analyst")
	request := api.QueryRequest{Dataset: "census", SQL: "SELECT sum(age) FROM people", Epsilon: "1"}
	for range 2 {
		if _, err := ana.Query(t.Context(), request, ""); codeOfError(err) != fault.CodePolicyStale {
			t.Errorf("%v", err)
		}
		f.Policies.Refresh(t.Context())
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

func TestPlaces(t *testing.T) {
	p := newPlaces(2)
	leave1, ok1 := p.take("ana")
	_, ok2 := p.take("ana")
	_, ok3 := p.take("ana")
	_, other := p.take("bob")
	if !ok1 || !ok2 || ok3 || !other {
		t.Errorf("%v %v %v, %v", ok1, ok2, ok3, other)
	}
	leave1()
	if _, ok := p.take("ana"); !ok {
		t.Error("a place that was left is not free")
	}
	if _, ok := p.take("ana"); ok {
		t.Error("there are more places than two")
	}
}
