package metrics

import (
	"errors"
	"math"
	"math/rand/v2"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"noisegate.example/budget"
	"noisegate.example/gateway"
	"noisegate.example/mechanisms"
)

func show(t *testing.T, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

// Of a time nothing is kept but its class, in the sum as well: two times of one class leave the same metrics.
func TestTimesAreClasses(t *testing.T) {
	r := rand.New(rand.NewPCG(18, 26))
	quiet := Sources{Gates: func() []gateway.GateState { return nil }, Ready: func() map[string]error { return nil },
		Heads: func() []budget.Head { return nil }, Broken: func() []string { return nil }}
	for k := range classes + 2 {
		end := 50 * time.Millisecond << k
		texts := map[string]bool{}
		for range 10 {
			m := New(quiet)
			took := end - time.Duration(r.Int64N(int64(end/2)))
			if k > classes {
				took += end
			}
			if got, want := class(took), (50 * time.Millisecond << min(k, classes)).Seconds(); math.Abs(got-want) > 1e-9 {
				t.Errorf("%s is of the class that ends at %g s, want %g", took, got, want)
			}
			m.Request("POST /v1/query", 200, took)
			texts[show(t, m)] = true
		}
		if len(texts) != 1 {
			t.Errorf("class %d: %d different texts", k, len(texts))
		}
	}
	if class(0) != firstBound || class(-time.Second) != firstBound {
		t.Error("a clock that went back")
	}
}

// The whole of what a gateway shows.
func TestMetricsAreShown(t *testing.T) {
	m := New(Sources{
		Datasets: []string{"a", "b"}, Routes: []string{"POST /v1/query"},
		Gates: func() []gateway.GateState {
			return []gateway.GateState{{Name: "questions", Places: 16, Running: 3, Waiting: 2, Longest: 1, Queue: 64, TooMany: 5, TooLong: 6}}
		},
		Ready:    func() map[string]error { return map[string]error{"ledger": nil, "datasets": errors.New("away")} },
		Heads:    func() []budget.Head { return []budget.Head{{Dataset: "a", Seq: 7}} },
		Broken:   func() []string { return []string{"b"} },
		Sessions: func() int { return 9 }, Unprintable: func() int64 { return 8 },
	})
	m.Request("POST /v1/query", 200, 60*time.Millisecond)
	m.Request("POST /v1/query", 200, time.Hour)
	m.Request("POST /v1/query", 418, 0)
	m.Question("")
	m.Question("42501")
	m.AnchorFailed()
	m.Verified(time.Unix(100, 5))
	account := func(scope budget.Scope, used mechanisms.PicoEpsilon) budget.Balance {
		b := budget.Balance{Spent: mechanisms.Loss{Epsilon: used / 2}, Reserved: mechanisms.Loss{Epsilon: used - used/2}}
		b.ID = budget.AccountID{Dataset: "a", Scope: scope, Name: "a person's name"}
		b.Limit = budget.Limit{Form: budget.Pure, Epsilon: 1000, Rho: budget.Never}
		return b
	}
	m.Accounts(map[string][]budget.Balance{"a": {account(budget.DatasetScope, 899), account(budget.AnalystScope, 0),
		account(budget.AnalystScope, 99), account(budget.AnalystScope, 100), account(budget.AnalystScope, 1000),
		account(budget.GroupScope, 2000)}}, time.Unix(200, 0))
	text := show(t, m)
	for _, want := range []string{
		`noisegate_requests_total{route="POST /v1/query",status="200"} 2`, `noisegate_requests_total{route="POST /v1/query",status="503"} 0`,
		`noisegate_requests_total{route="POST /v1/query",status="418"} 1`, `noisegate_request_seconds_bucket{route="POST /v1/query",le="0.1"} 2`,
		`noisegate_request_seconds_bucket{route="POST /v1/query",le="51.2"} 2`, `noisegate_request_seconds_count{route="POST /v1/query"} 3`,
		`noisegate_wire_questions_total{sqlstate="00000"} 1`, `noisegate_wire_questions_total{sqlstate="42501"} 1`, `noisegate_wire_sessions 9`,
		`noisegate_unprintable_total 8`,
		`noisegate_gate_places{gate="questions"} 16`, `noisegate_gate_running{gate="questions"} 3`, `noisegate_gate_waiting{gate="questions"} 2`,
		`noisegate_gate_longest_queue{gate="questions"} 1`, `noisegate_gate_queue_limit{gate="questions"} 64`,
		`noisegate_gate_refused_total{gate="questions",why="queue"} 5`, `noisegate_gate_refused_total{gate="questions",why="wait"} 6`,
		`noisegate_ready{check="ledger"} 1`, `noisegate_ready{check="datasets"} 0`, `noisegate_ready{check="checks"} 1`,
		`noisegate_ledger_broken{dataset="a"} 0`, `noisegate_ledger_broken{dataset="b"} 1`, `noisegate_ledger_entries{dataset="a"} 7`,
		`noisegate_ledger_verified_timestamp_seconds 100`, `noisegate_anchor_failures_total 1`, `noisegate_accounts_read_timestamp_seconds 200`,
		`noisegate_accounts{dataset="a",scope="dataset",used="80"} 1`, `noisegate_accounts{dataset="a",scope="analyst",used="0"} 2`,
		`noisegate_accounts{dataset="a",scope="analyst",used="10"} 1`, `noisegate_accounts{dataset="a",scope="analyst",used="100"} 1`,
		`noisegate_accounts{dataset="a",scope="group",used="100"} 1`, `noisegate_accounts{dataset="a",scope="group",used="50"} 0`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("there is no %s in\n%s", want, text)
		}
	}
	if strings.Contains(text, "person") {
		t.Errorf("a name is shown:\n%s", text)
	}
}

// A gateway that was not looked at yet is not ready.
func TestNothingWasLookedAt(t *testing.T) {
	m := New(Sources{Gates: func() []gateway.GateState { return nil }, Heads: func() []budget.Head { return nil },
		Broken: func() []string { return nil }, Ready: func() map[string]error { return map[string]error{"checks": errors.New("not yet")} }})
	for _, check := range []string{"checks", "ledger", "datasets"} {
		if want := `noisegate_ready{check="` + check + `"} 0` + "\n"; !strings.Contains(show(t, m), want) {
			t.Errorf("there is no %s", want)
		}
	}
}
