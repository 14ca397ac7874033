package integration

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"noisegate.example/api"
	"noisegate.example/internal/pgtest"
)

const (
	monitoring = "../deploy/prometheus"
	// alertPatience bounds the wait for a panel's data and for an alert: Prometheus looks each second.
	alertPatience = 30 * time.Second
	// verifiedEach is how often a gateway verifies what is new (proofInterval), and some time for it.
	verifiedEach = 75 * time.Second
)

// prometheus is a running one that reads a gateway.
type prometheus struct{ url string }

// startPrometheus runs Prometheus as deploy/prometheus configures it, but for the times that it waits, and for the gateway's address.
func startPrometheus(t *testing.T, admin string) *prometheus {
	t.Helper()
	dir := t.TempDir()
	const gateway, wait = "127.0.0.1:9464", ": 15s"
	text := read(t, filepath.Join(monitoring, "prometheus.yaml"))
	if strings.Count(text, gateway) < 1 || strings.Count(text, wait) != 2 {
		t.Fatalf("the configuration of Prometheus is another one than this test takes:\n%s", text)
	}
	write(t, filepath.Join(dir, "prometheus.yaml"), strings.NewReplacer(gateway, admin, wait, ": 1s").Replace(text))
	rules := regexp.MustCompile(`(?m)^( +for): 1m$`).ReplaceAllString(read(t, filepath.Join(monitoring, "alerts.yaml")), "$1: 1s")
	const late = "verified_timestamp_seconds > 300"
	if strings.Count(rules, late) != 1 {
		t.Fatalf("no rule has %q", late)
	}
	rules = strings.Replace(rules, late, fmt.Sprintf("verified_timestamp_seconds > %d", int(verifiedEach.Seconds())), 1)
	write(t, filepath.Join(dir, "alerts.yaml"), rules)
	address := pgtest.FreeAddress(t)
	cmd := exec.Command("prometheus", "--config.file="+filepath.Join(dir, "prometheus.yaml"),
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address, "--log.level=warn")
	var log logBuffer
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("Prometheus says:\n%s", log.String())
		}
	})
	p := &prometheus{"http://" + address}
	for deadline := time.Now().Add(alertPatience); ; time.Sleep(50 * time.Millisecond) {
		if response, err := http.Get(p.url + "/-/ready"); err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return p
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("Prometheus is not ready:\n%s", log.String())
		}
	}
}

// results is how many series an expression has now.
func (p *prometheus) results(t *testing.T, expression string) int {
	t.Helper()
	_, _, text := get(t, p.url+"/api/v1/query?query="+url.QueryEscape(expression))
	var answer struct {
		Status, Error string
		Data          struct{ Result []json.RawMessage }
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil || answer.Status != "success" {
		t.Fatalf("%s: %v %s", expression, err, text)
	}
	return len(answer.Data.Result)
}

// expect waits until an expression has series.
func (p *prometheus) expect(t *testing.T, what, expression string, patience time.Duration, meanwhile func()) {
	t.Helper()
	for deadline := time.Now().Add(patience); p.results(t, expression) == 0; time.Sleep(200 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Errorf("%s: %s gives nothing", what, expression)
			return
		}
		meanwhile()
	}
}

// fires waits for an alert.
func (p *prometheus) fires(t *testing.T, alert string, meanwhile func()) {
	t.Helper()
	p.expect(t, alert, fmt.Sprintf(`ALERTS{alertname=%q,alertstate="firing"}`, alert), alertPatience, meanwhile)
}

// promtool runs a command of Prometheus' own on what is deployed.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "promtool", args...)
	cmd.Dir = monitoring
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// Prometheus reads a gateway: every panel of the dashboard has data, and each alert fires under the fault that it is for, and not before.
func TestMonitoring(t *testing.T) {
	t.Parallel()
	pgtest.Need(t, "sudo apt-get install -y --no-install-recommends prometheus", "prometheus", "promtool")
	promtool(t, "check", "config", "prometheus.yaml")
	promtool(t, "test", "rules", "alerts_test.yaml")
	sets := []dataset{people(watchedBudget)}
	s := prepareStack(t, sets...)
	s.admin = pgtest.FreeAddress(t)
	s.writeConfig(t, sets)
	write(t, s.config, read(t, s.config)+"limits: {places: 2, per_analyst: 1, queue: 1}\n")
	s.ready(t, sets)
	s.accountsRead(t)
	p := startPrometheus(t, s.admin)
	ana := s.analyst(t, "ana")
	asked, lastRefusal := 0, error(nil)
	ask := func() {
		asked++
		q := api.QueryRequest{Dataset: "people", SQL: fmt.Sprintf("SELECT count(*) FROM people WHERE age > %d", asked), Epsilon: "0.001"}
		if _, err := ana.Query(t.Context(), q, ""); err != nil {
			lastRefusal = err
		}
	}

	t.Run("panels", func(t *testing.T) {
		for _, panel := range panels(t) {
			for _, target := range panel.Targets {
				p.expect(t, panel.Title, target.Expr, alertPatience, ask)
			}
		}
	})
	if lastRefusal != nil {
		t.Fatalf("a question was refused before any fault: %v", lastRefusal)
	}
	if n := p.results(t, `ALERTS{alertstate="firing"}`); n != 0 {
		t.Fatalf("%d alerts before any fault", n)
	}

	s.exec(t, control, "REVOKE SELECT ON noisegate.archive FROM noisegate") // questions need it not; the next verification does
	p.fires(t, "NoisegateQueueFull", func() {
		var together sync.WaitGroup
		for range 16 {
			together.Go(func() {
				_, _ = ana.Estimate(t.Context(), api.QueryRequest{Dataset: "people", SQL: "SELECT count(*) FROM people", Epsilon: "0.1"})
			})
		}
		together.Wait()
	})

	anchor := filepath.Join(s.dir, "anchor.json")
	if err := os.Rename(anchor, anchor+".aside"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(anchor, 0o700); err != nil { // nothing can be renamed to it
		t.Fatal(err)
	}
	p.fires(t, "NoisegateAnchorNotWritten", ask)
	if err := os.Remove(anchor); err != nil {
		t.Fatal(err)
	}

	s.shut(t, "people", "ALLOW_CONNECTIONS false")
	p.fires(t, "NoisegateErrors", ask)
	p.fires(t, "NoisegateNotReady", ask)
	s.exec(t, "postgres", "ALTER DATABASE "+s.database("people")+" ALLOW_CONNECTIONS true")

	p.expect(t, "not verified", `ALERTS{alertname="NoisegateLedgerNotVerified",alertstate="firing"}`, verifiedEach+alertPatience, func() {})
	s.exec(t, control, "GRANT SELECT ON noisegate.archive TO noisegate")

	s.kill()
	p.fires(t, "NoisegateDown", func() {})

	s.serve(t)
	for _, name := range []string{"b1", "b2", "b3", "b4"} { // 3.6 of 4
		q := api.QueryRequest{Dataset: "people", SQL: "SELECT count(*) FROM people", Epsilon: "0.9"}
		if _, err := s.analyst(t, name).Query(t.Context(), q, ""); err != nil {
			t.Fatal(err)
		}
	}
	s.kill()
	s.serve(t) // accounts are read when it starts
	p.fires(t, "NoisegateBudgetNearlyUsed", func() {})

	s.kill()
	s.exec(t, control, "SET session_replication_role = replica; UPDATE noisegate.entry SET analyst = 'bob' WHERE analyst = 'ana'")
	s.serveUntil(t, "/healthz")
	p.fires(t, "NoisegateLedgerBroken", func() {})
}

type panel struct {
	Title   string
	Targets []struct{ Expr string }
}

// panels are those of the dashboard.
func panels(t *testing.T) []panel {
	t.Helper()
	var dashboard struct{ Panels []panel }
	if err := json.Unmarshal([]byte(read(t, filepath.Join(monitoring, "dashboard.json"))), &dashboard); err != nil {
		t.Fatal(err)
	}
	if len(dashboard.Panels) < 10 {
		t.Fatalf("the dashboard has %d panels", len(dashboard.Panels))
	}
	return dashboard.Panels
}
