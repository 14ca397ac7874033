package integration

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"noisegate.example/api"
)

// people is a small generated dataset: 1,000 rows, one per person, and one value of each column that occurs only once.
func people(budgets string) dataset {
	return dataset{name: "people", policy: `version: 1
dataset: people
neighbours: add-remove
tables:
  people:
    unit: {row: id}
    columns:
      id:      {expose: false}
      age:     {bounds: [0, 100]}
      city:    {keys: private}
      club:    {domain: [red, green, blue]}
      secret:  {expose: false}
budgets:
` + budgets, load: func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.PgConn().Exec(ctx, `
			CREATE TABLE people (id int PRIMARY KEY, age int NOT NULL, city text, club text, secret text);
			INSERT INTO people SELECT i, i % 90, 'city' || i % 5, (ARRAY['red','green'])[1 + i % 2], 'canary-secret-' || i
			FROM generate_series(1, 1000) AS i;
			INSERT INTO people VALUES (4711, 97, 'canary-city-zwq', 'green', 'canary-secret-zwq')`).ReadAll()
		return err
	}}
}

const ampleBudget = `  - {dataset: true, form: approx, epsilon: 100000, delta: 1e-3}
  - {group: analysts, per: analyst, form: approx, epsilon: 1000, delta: 1e-4}
`

// raw is one HTTP exchange without the client's help.
type raw struct {
	method, path, token, contentType, body string
}

// send gives the status and the problem document, which every refusal must be.
func (s *stack) send(t *testing.T, r raw) (int, api.Problem) {
	t.Helper()
	if r.method == "" {
		r.method = http.MethodPost
	}
	if r.path == "" {
		r.path = "/v1/query"
	}
	if r.contentType == "" {
		r.contentType = "application/json"
	}
	request, err := http.NewRequestWithContext(t.Context(), r.method, s.url+r.path, strings.NewReader(r.body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", r.contentType)
	if r.token != "" {
		request.Header.Set("Authorization", "Bearer "+r.token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode/100 == 2 {
		return response.StatusCode, api.Problem{}
	}
	var p api.Problem
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if kind != "application/problem+json" || json.Unmarshal(body, &p) != nil {
		t.Fatalf("%d without a problem document: %s %.300s", response.StatusCode, kind, body)
	}
	if p.Status != response.StatusCode || p.Code == "" || p.Detail == "" || p.RequestID == "" || !strings.HasSuffix(p.Type, p.Code) {
		t.Errorf("the problem document is not complete: %+v", p)
	}
	return response.StatusCode, p
}

// body is a query request with fields replaced or added.
func body(t *testing.T, sql string, fields ...string) string {
	t.Helper()
	members := map[string]json.RawMessage{"dataset": json.RawMessage(`"people"`), "epsilon": json.RawMessage(`"0.1"`)}
	text, err := json.Marshal(sql)
	if err != nil {
		t.Fatal(err)
	}
	members["sql"] = text
	for i := 0; i < len(fields); i += 2 {
		members[fields[i]] = json.RawMessage(fields[i+1])
	}
	all, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	return string(all)
}

// TestWithstand sends what a gateway must withstand. Each gets a clear problem document; nothing is charged; the process lives.
func TestWithstand(t *testing.T) {
	t.Parallel()
	s := newStack(t, people(ampleBudget))
	good := s.token(t, "ana", "analyst")
	const count = "SELECT count(*) FROM people"
	cases := []struct {
		name   string
		send   raw
		status int
		code   string
	}{
		{"no token", raw{body: body(t, count)}, 401, "auth/missing"},
		{"A72 bad token", raw{token: "not.a.token", body: body(t, count)}, 401, "auth/invalid"},
		{"A72 wrong signature", raw{token: good[:len(good)-4] + "AAAA", body: body(t, count)}, 401, "auth/invalid"},
		{"A72 expired token", raw{token: s.sign(t, "ana", "analyst", time.Now().Add(-time.Hour)), body: body(t, count)}, 401, "auth/expired"},
		{"A72 token without algorithm", raw{token: unsigned(t, "ana"), body: body(t, count)}, 401, "auth/invalid"},
		{"A73 ml role asks SQL", raw{token: s.token(t, "mia", "ml"), body: body(t, count)}, 403, "auth/forbidden"},
		{"A73 analyst reads the policy", raw{token: good, method: "GET", path: "/v1/datasets/people/policy"}, 403, "auth/forbidden"},
		{"A75 unknown field", raw{token: good, body: body(t, count, "noise", "false")}, 400, "request/unknown-field"},
		{"A75 duplicate field", raw{token: good, body: strings.Replace(body(t, count), "{", `{"epsilon":"9",`, 1)}, 400,
			"request/duplicate-field"},
		{"not JSON", raw{token: good, body: "SELECT 1"}, 400, "request/invalid-body"},
		{"1 MB body", raw{token: good, body: body(t, count+strings.Repeat(" ", 1<<20))}, 413, "request/too-large"},
		{"A44 10,000 tokens", raw{token: good, body: body(t, count+" WHERE age IN (1"+strings.Repeat(",1", 5000)+")")}, 422, "sql/too-complex"},
		{"A45 1+1+...", raw{token: good, body: body(t, "SELECT count(*) FROM people WHERE age = 1"+strings.Repeat("+1", 20000))}, 422,
			"sql/too-complex"},
		{"A45 nested", raw{token: good, body: body(t, "SELECT "+strings.Repeat("round(", 100)+"count(*)"+strings.Repeat(")",
			100)+" FROM people")}, 422, "sql/too-complex"},
		{"A49 second statement", raw{token: good, body: body(t, count+"; DROP TABLE people")}, 422, "sql/unsupported"},
		{"not SQL", raw{token: good, body: body(t, "SELEC count(*)")}, 400, "sql/syntax"},
		{"unknown column", raw{token: good, body: body(t, "SELECT avg(agee) FROM people")}, 422, "sql/unknown-column"},
		{"hidden column", raw{token: good, body: body(t, "SELECT count(secret) FROM people")}, 422, "sql/unknown-column"},
		{"unknown dataset", raw{token: good, body: body(t, count, "dataset", `"nowhere"`)}, 404, "policy/unknown-dataset"},
		{"A71 epsilon -1", raw{token: good, body: body(t, count, "epsilon", `"-1"`)}, 400, "request/invalid-epsilon"},
		{"A71 epsilon -1 as number", raw{token: good, body: body(t, count, "epsilon", `-1`)}, 400, "request/invalid-epsilon"},
		{"A71 epsilon NaN", raw{token: good, body: body(t, count, "epsilon", `"NaN"`)}, 400, "request/invalid-epsilon"},
		{"A71 epsilon 1e308", raw{token: good, body: body(t, count, "epsilon", `"1e308"`)}, 400, "request/invalid-epsilon"},
		{"A71 epsilon 1e308 as number", raw{token: good, body: body(t, count, "epsilon", `1e308`)}, 400, "request/invalid-epsilon"},
		{"A71 epsilon 0", raw{token: good, body: body(t, count, "epsilon", `"0"`)}, 400, "request/invalid-epsilon"},
		{"A71 epsilon 0 as number", raw{token: good, body: body(t, count, "epsilon", `0`)}, 400, "request/invalid-epsilon"},
		{"A71 epsilon 1e-300", raw{token: good, body: body(t, count, "epsilon", `"1e-300"`)}, 400, "request/invalid-epsilon"},
		{"A71 epsilon abc", raw{token: good, body: body(t, count, "epsilon", `"abc"`)}, 400, "request/invalid-epsilon"},
		{"A71 epsilon and rho", raw{token: good, body: body(t, count, "rho", `"0.1"`)}, 400, "request/conflicting-price"},
		{"no such route", raw{token: good, path: "/v1/queries", body: "{}"}, 404, "request/not-found"},
		{"over budget", raw{token: good, body: body(t, count, "epsilon", `"1001"`)}, 422, "budget/exhausted"},
	}
	before := s.entries(t)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			status, p := s.send(t, c.send)
			if status != c.status || p.Code != c.code {
				t.Errorf("got %d %s (%s), want %d %s", status, p.Code, p.Detail, c.status, c.code)
			}
			if p.Code != "internal" && strings.Contains(p.Detail, "canary") {
				t.Errorf("the refusal holds data: %s", p.Detail)
			}
			s.alive(t)
		})
	}
	if after := s.entries(t); after != before {
		t.Errorf("refused requests wrote %d entries into the ledger", after-before)
	}
	if status, _ := s.send(t, raw{token: good, body: body(t, count)}); status != http.StatusOK {
		t.Errorf("after all this a plain query gets %d", status)
	}
}

// lifetime is that of tokens, as the binary makes them.
const lifetime = 12 * time.Hour

// sign makes a token with the stack's key, by hand: the binary makes no expired ones, and takes 20 ms of processor time for each.
func (s *stack) sign(t testing.TB, subject, role string, expires time.Time) string {
	t.Helper()
	claims := fmt.Sprintf(`{"iss":%q,"aud":%q,"sub":%q,"roles":[%q],"iat":%d,"exp":%d}`,
		issuer, audience, subject, role, expires.Add(-lifetime).Unix(), expires.Unix())
	text := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." +
		base64.RawURLEncoding.EncodeToString([]byte(claims))
	mac := hmac.New(sha256.New, s.key(t))
	mac.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// key is the content of the stack's key file.
func (s *stack) key(t testing.TB) []byte {
	t.Helper()
	return []byte(strings.TrimSpace(read(t, filepath.Join(s.dir, "hs256.key"))))
}

func unsigned(t *testing.T, subject string) string {
	t.Helper()
	claims := fmt.Sprintf(`{"iss":%q,"aud":%q,"sub":%q,"roles":["analyst"],"exp":%d}`, issuer, audience, subject,
		time.Now().Add(time.Hour).Unix())
	return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","typ":"JWT"}`)) + "." +
		base64.RawURLEncoding.EncodeToString([]byte(claims)) + "."
}

// TestParallelClientsSpendOnce lets 64 clients race for an account that pays for ten of their queries: exactly ten get an answer,
// each of the others a refusal.
//
// covers: A66
func TestParallelClientsSpendOnce(t *testing.T) {
	t.Parallel()
	s := newStack(t, people(`  - {dataset: true, form: approx, epsilon: 100, delta: 1e-6}
  - {group: analysts, per: analyst, form: pure, epsilon: 1}
`))
	client := s.analyst(t, "ana")
	var group sync.WaitGroup
	outcomes := make([]error, 64)
	for i := range outcomes {
		group.Go(func() {
			_, outcomes[i] = client.Query(t.Context(), api.QueryRequest{
				Dataset: "people", SQL: fmt.Sprintf("SELECT count(*) FROM people WHERE age < %d", i), Epsilon: "0.1"}, "")
		})
	}
	group.Wait()
	answered := 0
	for i, err := range outcomes {
		if err == nil {
			answered++
		} else if p := problemOf(t, err); p.Code != "budget/exhausted" {
			t.Errorf("client %d: %v", i, err)
		}
	}
	if answered != 10 {
		t.Errorf("%d answers from a cap that fits 10", answered)
	}
	s.expectSpent(t, "ana", "1")
}

// expectSpent compares the ledger's own word on what an analyst has spent and reserved.
func (s *stack) expectSpent(t *testing.T, subject, want string) {
	t.Helper()
	budget, err := s.analyst(t, subject).Budget(t.Context(), "people")
	if err != nil {
		t.Fatal(err)
	}
	if len(budget.Budgets) != 1 {
		t.Fatalf("%d budgets, want 1", len(budget.Budgets))
	}
	if got := budget.Budgets[0]; string(got.Spent.Epsilon) != want || got.Reserved.Epsilon != "0" {
		t.Errorf("%s spent %s and has %s reserved, want %s and 0", subject, got.Spent.Epsilon, got.Reserved.Epsilon, want)
	}
}

// TestReplaysAreTheSameAndFree asks the same question again: by text, by spelling and by Idempotency-Key it is the same answer, free; the
// same key with another question is refused.
//
// covers: A05 A68
func TestReplaysAreTheSameAndFree(t *testing.T) {
	t.Parallel()
	s := newStack(t, people(ampleBudget))
	client := s.analyst(t, "ana")
	ask := func(sql, key string) (*api.QueryResponse, error) {
		return client.Query(t.Context(), api.QueryRequest{Dataset: "people", SQL: sql, Epsilon: "0.5"}, key)
	}
	first, err := ask("SELECT club, count(*) FROM people GROUP BY club", "key-1")
	if err != nil {
		t.Fatal(err)
	}
	for name, again := range map[string]struct{ sql, key string }{
		"same text":         {"SELECT club, count(*) FROM people GROUP BY club", ""},
		"same key":          {"SELECT club, count(*) FROM people GROUP BY club", "key-1"},
		"other white space": {"select club,\n  count(*) from people group by club -- again", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ask(again.sql, again.key)
			if err != nil {
				t.Fatal(err)
			}
			if !got.Replayed || got.ReleaseID != first.ReleaseID || fmt.Sprint(got.Rows) != fmt.Sprint(first.Rows) {
				t.Errorf("not a replay: %+v after %+v", got, first)
			}
		})
	}
	_, err = ask("SELECT count(*) FROM people", "key-1")
	if p := problemOf(t, err); p.Code != "budget/replay-mismatch" {
		t.Errorf("the same key with another question: %v", err)
	}
	s.expectSpent(t, "ana", "0.5")

	other := s.analyst(t, "bob")
	if _, err := other.Release(t.Context(), first.ReleaseID); problemOf(t, err).Status != http.StatusNotFound {
		t.Errorf("A74: another analyst's release gives %v, want 404", err)
	}
	mine, err := client.Release(t.Context(), first.ReleaseID)
	if err != nil || fmt.Sprint(mine.Rows) != fmt.Sprint(first.Rows) {
		t.Errorf("own release: %v, %v", mine, err)
	}
}

// canaries are questions about values that few people have; some of them fail.
func canaries() []string {
	return []string{
		"SELECT city, count(*) FROM people GROUP BY city",
		"SELECT city, avg(age) FROM people GROUP BY city ORDER BY 2 DESC",
		"SELECT DISTINCT city FROM people",
		"SELECT count(*) FROM people WHERE secret = 'x'",
		"SELECT secret, count(*) FROM people GROUP BY secret",
		"SELECT count(*) FROM people WHERE city::int = 1",
		"SELECT sum(1 / (age - 97)) FROM people",
		"SELECT * FROM people",
		"SELECT max(city) FROM people",
		"SELECT count(*) FROM people WHERE people.*::text LIKE '%zwq%'",
	}
}

// TestCanariesStayInside asks about rare values in many ways, also in some that fail, and looks for them in everything the gateway ever
// said: responses and log. A private key is shown only if it is selected, which for one person has probability at most δ = 1e-9 per query.
//
// covers: A30 A78
func TestCanariesStayInside(t *testing.T) {
	t.Parallel()
	s := newStack(t, people(ampleBudget))
	token := s.token(t, "ana", "analyst")
	var said strings.Builder
	for _, sql := range canaries() {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/v1/query",
			strings.NewReader(body(t, sql, "delta", `"1e-9"`, "epsilon", `"1"`)))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+token)
		request.Header.Set("Content-Type", "application/json")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&said, "%s\n%s\n", response.Header, text)
	}
	if !strings.Contains(said.String(), "city1") {
		t.Fatalf("no city of 200 people was shown: the test asked nothing\n%s", &said)
	}
	for _, where := range []struct{ name, text string }{{"responses", said.String()}, {"log", s.log.String()}} {
		for _, canary := range []string{"canary-city", "canary-secret"} {
			if strings.Contains(where.text, canary) {
				t.Errorf("%s: %q came out\n%s", where.name, canary, where.text)
			}
		}
	}
	if strings.Contains(s.log.String(), "zwq") || strings.Contains(s.log.String(), token) {
		t.Errorf("A78: the log holds a literal of a query or a token\n%s", s.log)
	}
}
