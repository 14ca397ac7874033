package integration

import (
	"context"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"noisegate.example/api"
	"noisegate.example/internal/pgtest"
)

// watchedBudget is spent by one question of ε 0.9, so that the next one is refused.
const watchedBudget = `  - {dataset: true, form: pure, epsilon: 4}
  - {group: analysts, per: analyst, form: pure, epsilon: 1}
`

// watched starts a gateway that shows metrics.
func (s *stack) watched(t *testing.T, sets ...dataset) *stack {
	t.Helper()
	s.admin = pgtest.FreeAddress(t)
	s.started(t, sets)
	s.accountsRead(t)
	return s
}

// accountsRead waits until a gateway that starts has read its accounts.
func (s *stack) accountsRead(t *testing.T) {
	t.Helper()
	const never = "noisegate_accounts_read_timestamp_seconds 0\n"
	for deadline := time.Now().Add(20 * time.Second); strings.Contains(s.scrape(t), never); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("accounts were not read")
		}
	}
}

// get is the answer to a GET without a token.
func get(t *testing.T, url string) (status int, kind, text string) {
	t.Helper()
	client := http.Client{Timeout: 10 * time.Second}
	response, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header.Get("Content-Type"), string(body)
}

func (s *stack) scrape(t *testing.T) string {
	t.Helper()
	status, kind, text := get(t, "http://"+s.admin+"/metrics")
	if status != http.StatusOK || !strings.HasPrefix(kind, "text/plain") {
		t.Fatalf("/metrics answers %d, %s: %s", status, kind, text)
	}
	return text
}

// Metrics for operators are at a separate listener, where nothing else is, and analysts cannot reach it.
func TestMetricsHaveADoorOfTheirOwn(t *testing.T) {
	t.Parallel()
	s := prepareStack(t, people(ampleBudget)).watched(t, people(ampleBudget))
	if got := s.status("/metrics"); got != http.StatusNotFound {
		t.Errorf("/metrics where analysts ask answers %d", got)
	}
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/metrics": 200, "/metrics?x=1": 400, "/": 404, "/v1/budget": 404,
		"/v1/query": 404, "/docs": 404, "/openapi.json": 404, "/debug/pprof/": 404} {
		if status, _, text := get(t, "http://"+s.admin+path); status != want {
			t.Errorf("%s answers %d, want %d: %s", path, status, want, text)
		}
	}
	question := api.QueryRequest{Dataset: "people", SQL: "SELECT count(*) FROM people", Epsilon: "0.5"}
	if _, err := s.analyst(t, "ana-the-analyst").Query(t.Context(), question, ""); err != nil {
		t.Fatal(err)
	}
	// What docs/monitoring.md shows, at this gateway's address.
	pgtest.Need(t, "sudo apt-get install -y curl", "curl")
	_, page, _ := strings.Cut(read(t, "../docs/monitoring.md"), "```console\n$ ")
	page, _, _ = strings.Cut(page, "```")
	command, shows, _ := strings.Cut(page, "\n")
	out, err := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(command, "127.0.0.1:9464", s.admin)).Output()
	if err != nil || !strings.HasPrefix(command, "curl ") {
		t.Errorf("%s: %v", command, err)
	}
	for line := range strings.Lines(shows) {
		if !strings.Contains(string(out), line) {
			t.Errorf("%s does not print %s:\n%s", command, line, out)
		}
	}
	text := s.scrape(t)
	for _, shown := range []string{`noisegate_requests_total{route="POST /v1/query",status="200"} 1`, `noisegate_ready{check="ledger"} 1`,
		`noisegate_ledger_broken{dataset="people"} 0`, `noisegate_gate_places{gate="questions"}`, `noisegate_ledger_entries{dataset="people"}`,
		`noisegate_request_seconds_bucket{route="POST /v1/query",le="51.2"} 1`, `noisegate_accounts{dataset="people",scope="dataset",used="0"} 0`} {
		if !strings.Contains(text, shown) {
			t.Errorf("there is no %s in\n%s", shown, text)
		}
	}
	// Names of people, and what shows work: memory, processor time, numbers of goroutines.
	for _, hidden := range []string{"ana-the-analyst", "go_", "process_", "promhttp_"} {
		if strings.Contains(text, hidden) {
			t.Errorf("there is %q in\n%s", hidden, text)
		}
	}
}

// privately are the lines of metrics that may be another time: when something was looked at, how long requests took, and how often this
// test looked whether the gateway is ready.
var privately = regexp.MustCompile(`(?m)^(# .*|noisegate_\w+_timestamp_seconds .*|noisegate_request_seconds_.*|` +
	`noisegate_requests_total\{route="GET /(readyz|healthz)".*)\n`)

// The gateways of two databases that differ by one person, asked the same, have the same metrics, byte for byte but for times
// ([privately]).
//
// covers: A80
func TestMetricsSayNothingOfRows(t *testing.T) {
	t.Parallel()
	set := people(watchedBudget)
	without := set
	without.load = func(ctx context.Context, conn *pgx.Conn) error {
		if err := set.load(ctx, conn); err != nil {
			return err
		}
		_, err := conn.Exec(ctx, "DELETE FROM people WHERE id = 4711")
		return err
	}
	var scrapes []string
	for _, d := range []dataset{set, without} {
		s := prepareStack(t, d).watched(t, d)
		ana := s.analyst(t, "ana")
		for _, q := range []api.QueryRequest{
			{SQL: "SELECT count(*) FROM people WHERE age > 95", Epsilon: "0.2"},
			{SQL: "SELECT city, count(*) FROM people GROUP BY city", Epsilon: "0.2", Delta: "0"}, // refused: private keys have a δ
			{SQL: "SELECT club, sum(age) FROM people WHERE city = 'canary-city-zwq' GROUP BY club", Epsilon: "0.5"},
			{SQL: "SELECT count(*) FROM people WHERE age > 95", Epsilon: "0.2"}, // replayed
			{SQL: "SELECT * FROM people WHERE age = 97", Epsilon: "0.1"},        // refused
			{SQL: "SELECT count(*) FROM people WHERE age = 97", Epsilon: "0.9"}, // more than is left
			{SQL: "SELECT count(*) FROM nobody", Epsilon: "0.1"},
		} {
			q.Dataset = "people"
			_, _ = ana.Query(t.Context(), q, "")
			_, _ = ana.Estimate(t.Context(), q)
		}
		_, _, _ = get(t, s.url+"/v1/budget")
		_, _, _ = get(t, s.url+"/none")
		asked := s.scrape(t)
		s.kill()
		s.serve(t)
		s.accountsRead(t)
		scrapes = append(scrapes, privately.ReplaceAllString(asked+"again\n"+s.scrape(t), ""))
		s.kill()
	}
	if diff := cmp.Diff(scrapes[0], scrapes[1]); diff != "" {
		t.Error(diff)
	}
	for _, want := range []string{`route="POST /v1/query",status="200"} 3`, `route="POST /v1/query",status="422"}`,
		`route="POST /v1/query/estimate",status="200"}`, `route="GET /v1/budget",status="401"} 1`, `route="(none)",status="404"} 1`,
		`noisegate_accounts{dataset="people",scope="analyst",used="70"} 1`, `noisegate_accounts{dataset="people",scope="dataset",used="10"} 1`} {
		if !strings.Contains(scrapes[0], want) {
			t.Errorf("nothing of it happened: there is no %s in\n%s", want, scrapes[0])
		}
	}
}
