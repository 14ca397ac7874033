package httpapi

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"

	"noisegate.example/api"
	"noisegate.example/gateway/auth"
	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/internal/fault"
)

// TestEveryRouteHasARole walks what the router really has: each route is a line of the table, and each line that is not
// public names a role and refuses everyone else.
//
// covers: A73
func TestEveryRouteHasARole(t *testing.T) {
	table := map[string]route{}
	for _, r := range routes() {
		table[r.method+" "+r.pattern] = r
		if r.public == (len(r.roles) > 0) {
			t.Errorf("%s %s: public %v with roles %v", r.method, r.pattern, r.public, r.roles)
		}
	}
	s := &server{log: slog.New(slog.DiscardHandler), newRequestID: func() string { return "id" }, verifier: new(gatewaytest.Names)}
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
		for _, role := range []auth.Role{"", auth.Analyst, auth.Steward, auth.ML, auth.Collector, "root"} {
			request := httptest.NewRequest(r.method, path, strings.NewReader(`{}`))
			request.Header.Set("Content-Type", "application/json")
			if role != "" {
				request.Header.Set("Authorization", "Bearer x:"+string(role))
			}
			w := httptest.NewRecorder()
			router.ServeHTTP(w, request)
			want := fault.CodeAuthForbidden
			if role == "" {
				want = fault.CodeAuthMissing
			}
			allowed := r.public || slices.Contains(r.roles, role)
			if refused := strings.Contains(w.Body.String(), `"code":"`+string(want)+`"`); refused == allowed {
				t.Errorf("%s %s as %q: %d %s", r.method, r.pattern, role, w.Code, w.Body)
			}
		}
	}
	if (route{}).allows(auth.Principal{Roles: []auth.Role{auth.Steward}}) {
		t.Error("a route without roles lets somebody in")
	}
}

// covers: A73
func TestPathTricksOpenNoRoute(t *testing.T) {
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
		if allow := response.Header.Get("Allow"); response.StatusCode != http.StatusMethodNotAllowed || allow != "GET, PUT" {
			t.Errorf("%s: %d, allowed %q", method, response.StatusCode, allow)
		}
	}
	for path, want := range map[string]string{"/v1/query": "POST, DELETE", "/healthz": "GET", "/v1/datasets/a%2fb/policy": "GET, PUT"} {
		response, _ := f.do(t, call{method: "PATCH", path: path})
		if allow := response.Header.Get("Allow"); allow != want {
			t.Errorf("%s allows %q, want %q", path, allow, want)
		}
	}
}

// TestInexactBodiesChangeNothing: what is not exactly a request is refused and changes nothing.
//
// covers: A75
func TestInexactBodiesChangeNothing(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	const good = `"dataset":"census","sql":"SELECT count(*) FROM people","epsilon":"0.1"`
	type refusal struct {
		body string
		code fault.Code
	}
	cases := map[string]refusal{
		"empty":          {``, fault.CodeRequestBody},
		"list":           {`[]`, fault.CodeRequestBody},
		"null":           {`null`, fault.CodeRequestBody},
		"text":           {`"x"`, fault.CodeRequestBody},
		"cut off":        {`{` + good, fault.CodeRequestBody},
		"trailing":       {`{` + good + `} x`, fault.CodeRequestBody},
		"two values":     {`{` + good + `}{}`, fault.CodeRequestBody},
		"comment":        {`{` + good + `/* */}`, fault.CodeRequestBody},
		"trailing comma": {`{` + good + `,}`, fault.CodeRequestBody},
		"single quotes":  {`{'dataset':'census'}`, fault.CodeRequestBody},
		"NaN":            {`{"dataset":"census","sql":"SELECT 1","epsilon":NaN}`, fault.CodeRequestBody},
		"deep": {`{` + good + `,"max_error":` + strings.Repeat(`{"a":`, 40) + `1` + strings.Repeat(`}`, 40) + `}`,
			fault.CodeRequestBody},
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
		"at_most number":    {`{` + good + `,"at_most":1}`, fault.CodeRequestAtMost},
		"at_most null":      {`{` + good + `,"at_most":null}`, fault.CodeRequestAtMost},
		"at_most empty":     {`{` + good + `,"at_most":{}}`, fault.CodeRequestAtMost},
		"at_most delta":     {`{` + good + `,"at_most":{"delta":"1e-9"}}`, fault.CodeRequestAtMost},
		"at_most negative":  {`{` + good + `,"at_most":{"epsilon":"-1"}}`, fault.CodeRequestAtMost},
		"at_most huge":      {`{` + good + `,"at_most":{"epsilon":"1e999999999"}}`, fault.CodeRequestAtMost},
		"at_most unknown":   {`{` + good + `,"at_most":{"epsilom":"1"}}`, fault.CodeRequestUnknownField},
		"mechanism number":  {`{` + good + `,"mechanism":1}`, fault.CodeRequestMechanism},
		"sql number":        {`{"dataset":"census","sql":1,"epsilon":1}`, fault.CodeRequestBody},
		"dataset null":      {`{"dataset":null,"sql":"SELECT 1","epsilon":1}`, fault.CodeRequestMissingField},
	}
	for _, name := range []string{"Epsilon", "EPSILON", "epsilon ", "epsilon_cap", "role", "noise", "analyst", "subject", "budget",
		"Dataset", "SQL", "__proto__"} {
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
		"A44 a megabyte": {call{kind: "application/json", body: `{"sql":"` + strings.Repeat("1+", 1<<19) + `"}`}, 413},
		"just too large": {call{kind: "text/plain", body: strings.Repeat("x", maxBody+1)}, 413},
		"no type":        {call{body: `{` + good + `}`}, 415},
		"form":           {call{kind: "application/x-www-form-urlencoded", body: "sql=1"}, 415},
		"other charset":  {call{kind: "application/json; charset=utf-16", body: `{` + good + `}`}, 415},
		"A85 gzip":       {call{kind: "application/json", body: "x", header: http.Header{"Content-Encoding": {"gzip"}}}, 415},
		"accept image":   {call{kind: "application/json", body: `{` + good + `}`, header: http.Header{"Accept": {"image/png"}}}, 406},
		"accept nothing": {call{kind: "application/json", body: `{` + good + `}`,
			header: http.Header{"Accept": {"application/json;q=0"}}}, 406},
		"two keys": {call{kind: "application/json", body: `{` + good + `}`, header: http.Header{"Idempotency-Key": {"a", "b"}}}, 400},
		"two tokens": {call{kind: "application/json", body: `{` + good + `}`,
			header: http.Header{"Authorization": {"Bearer ana:analyst", "Bearer sam:steward"}}}, 401},
		"basic": {call{kind: "application/json", body: `{` + good + `}`, header: http.Header{"Authorization": {"Basic YTpi"}}}, 401},
		"token in the URL": {call{path: "/v1/query?access_token=ana:analyst", kind: "application/json", body: `{` + good + `}`,
			header: http.Header{"X": {""}}}, 400},
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

// TestLogNamesRequestsOnly: a line names the request, never what was asked or answered.
//
// covers: A78
func TestLogNamesRequestsOnly(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	answer, err := f.client("ana:analyst").Query(t.Context(), api.QueryRequest{Dataset: "census",
		SQL: "SELECT count(*) AS n FROM people WHERE region = 'literal-canary'", Epsilon: "1"}, "key-canary")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = f.client("ana:analyst").Query(t.Context(), api.QueryRequest{Dataset: "census", SQL: "SELECT literal_canary FROM people",
		Epsilon: "1"}, "")
	_, _ = f.client("panic:analyst").Query(t.Context(), api.QueryRequest{}, "")
	_, _ = f.client("token-canary").Datasets(t.Context())
	log := f.log.String()
	for _, secret := range []string{"canary", "text of a panic", "SELECT", answer.Rows[0][0].String() + ","} {
		if strings.Contains(log, secret) {
			t.Errorf("the log shows %q:\n%s", secret, log)
		}
	}
	for _, want := range []string{"route=/v1/query status=200 subject=ana", "code=sql/unknown-column", "code=auth/invalid",
		"panic of type string in noisegate.example/gateway/gatewaytest."} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %q:\n%s", want, log)
		}
	}
}

// covers: F19
func TestPanicIsOpaque(t *testing.T) {
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
		{method: "GET", path: "/healthz"}, {method: "GET", path: "/openapi.json"}, {method: "GET", path: "/nowhere"},
		{method: "PUT", path: "/healthz"},
		{method: "GET", path: "/v1/datasets"}, {method: "GET", path: "/v1/datasets", token: "ana:analyst"},
		{method: "GET", path: "/v1/datasets", token: "panic:x"},
		{method: "GET", path: "/v1/datasets/census/policy", token: "sam:steward"},
	} {
		response, _ := f.do(t, c)
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
			"Content-Security-Policy":   "default-src 'none'; frame-ancestors 'none'",
			"Strict-Transport-Security": "max-age=31536000; includeSubDomains", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Server": "",
			"Access-Control-Allow-Origin": "",
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

func TestReady(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	response, text := f.do(t, call{method: "GET", path: "/readyz"})
	if response.StatusCode != 503 || text != `{"status":"unavailable","checks":{"checks":"unavailable"}}` {
		t.Errorf("before the first look: %d %s", response.StatusCode, text)
	}
	f.CheckReady(t.Context())
	response, text = f.do(t, call{method: "GET", path: "/readyz"})
	if response.StatusCode != 200 || text != `{"status":"ok","checks":{"datasets":"ok","ledger":"ok"}}` {
		t.Errorf("%d %s", response.StatusCode, text)
	}
	f.Protected.Exec(t, "ALTER TABLE people ALTER age TYPE bigint")
	if err := f.Policies.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.CheckReady(t.Context())
	response, text = f.do(t, call{method: "GET", path: "/readyz"})
	if response.StatusCode != 503 || text != `{"status":"unavailable","checks":{"datasets":"unavailable","ledger":"ok"}}` {
		t.Errorf("%d %s", response.StatusCode, text)
	}
	if response, _ := f.do(t, call{method: "GET", path: "/healthz"}); response.StatusCode != 200 {
		t.Errorf("health: %d", response.StatusCode)
	}
}

// Whether a page has requests is true or false; anything else is refused, not taken for one of the two.
func TestJournalPagesSayWhatTheyWant(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	for query, status := range map[string]int{"": 200, "?requests=true": 200, "?requests=false": 200, "?requests=1": 400,
		"?requests=yes": 400} {
		if response, text := f.do(t, call{method: "GET", path: "/v1/audit" + query, token: "sam:steward"}); response.StatusCode != status {
			t.Errorf("%q: %d %.200s", query, response.StatusCode, text)
		}
	}
}
