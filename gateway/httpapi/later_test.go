package httpapi

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"noisegate.example/api"
	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/internal/fault"
)

// laterBody is a question that is not waited for.
const laterBody = `{"dataset": "` + gatewaytest.Dataset + `", "sql": "SELECT count(*) FROM people", "epsilon": "0.5", "wait": 0}`

// TestAnswersThatAreNotWaitedFor: a client that does not wait is told where its answer will be, and finds it there once the question has
// ended, as often as it asks, in whatever format. Others do not find it, nobody is charged twice, and asked again it is a replay.
func TestAnswersThatAreNotWaitedFor(t *testing.T) {
	f := newFront(t, gatewaytest.Options{Quantum: 50 * time.Millisecond}, 4)
	holder := f.Protected.Conn(t, f.Protected.DSN)
	if _, err := holder.Exec(t.Context(), "BEGIN; LOCK TABLE people IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	post := call{method: http.MethodPost, path: "/v1/query", token: "ana:analyst", kind: "application/json", body: laterBody}
	begun, text := f.do(t, post)
	where := begun.Header.Get("Location")
	if begun.StatusCode != http.StatusAccepted || !strings.HasPrefix(where, "/v1/query/") || begun.Header.Get("Retry-After") == "" ||
		!strings.Contains(text, strings.TrimPrefix(where, "/v1/query/")) {
		t.Fatalf("%d, %v, %s", begun.StatusCode, begun.Header, text)
	}
	for path, want := range map[string]int{where: http.StatusAccepted, where + "?wait=1": http.StatusAccepted,
		where + "?wait=61": http.StatusBadRequest, where + "?wait=soon": http.StatusBadRequest, where + "0": http.StatusNotFound} {
		if answer, text := f.do(t, call{method: http.MethodGet, path: path, token: "ana:analyst"}); answer.StatusCode != want {
			t.Errorf("%s while the question runs: %d, %s", path, answer.StatusCode, text)
		}
	}
	if answer, text := f.do(t, call{method: http.MethodGet, path: where, token: "bob:analyst"}); answer.StatusCode != http.StatusNotFound {
		t.Errorf("somebody else: %d, %s", answer.StatusCode, text)
	}
	if _, err := holder.Exec(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	first, body := f.do(t, call{method: http.MethodGet, path: where + "?wait=60", token: "ana:analyst"})
	if first.StatusCode != http.StatusOK || first.Header.Get("Noisegate-Spent-Epsilon") != "0.5" {
		t.Fatalf("once it has ended: %d, %s", first.StatusCode, body)
	}
	get := call{method: http.MethodGet, path: where, token: "ana:analyst"}
	if again, text := f.do(t, get); again.StatusCode != http.StatusOK || text != body {
		t.Errorf("asked for again: %d, %s", again.StatusCode, text)
	}
	csv := call{method: http.MethodGet, path: where, token: "ana:analyst", header: http.Header{"Accept": {"text/csv"}}}
	if again, text := f.do(t, csv); again.StatusCode != http.StatusOK || !strings.HasPrefix(text, "count,count_low,count_high") {
		t.Errorf("as CSV: %d, %s", again.StatusCode, text)
	}
	release := first.Header.Get("Noisegate-Release-Id")
	post.body = strings.Replace(laterBody, `"wait": 0`, `"wait": 60`, 1)
	if again, text := f.do(t, post); again.StatusCode != http.StatusOK || again.Header.Get("Noisegate-Replayed") != "true" ||
		again.Header.Get("Noisegate-Release-Id") != release {
		t.Errorf("asked again: %d, %v, %s", again.StatusCode, again.Header, text)
	}
	if n := f.Charges(t); n != 1 {
		t.Errorf("%d charges", n)
	}
}

// TestCancelledJobs: who asked, and nobody else, stops a question that is not waited for, with a key or without one. Its charge stands.
func TestCancelledJobs(t *testing.T) {
	f := newFront(t, gatewaytest.Options{Quantum: 50 * time.Millisecond}, 4)
	for i, key := range []string{"", "a-key"} {
		holder := f.Protected.Conn(t, f.Protected.DSN)
		if _, err := holder.Exec(t.Context(), "BEGIN; LOCK TABLE people IN ACCESS EXCLUSIVE MODE"); err != nil {
			t.Fatal(err)
		}
		post := call{method: http.MethodPost, path: "/v1/query", token: "ana:analyst", kind: "application/json", body: laterBody}
		if key != "" {
			post.header = http.Header{"Idempotency-Key": {key}}
		}
		begun, text := f.do(t, post)
		where := begun.Header.Get("Location")
		if begun.StatusCode != http.StatusAccepted {
			t.Fatalf("%d, %s", begun.StatusCode, text)
		}
		for token, want := range map[string]int{"bob:analyst": http.StatusNotFound, "ana:steward": http.StatusForbidden} {
			if answer, text := f.do(t, call{method: http.MethodDelete, path: where, token: token}); answer.StatusCode != want {
				t.Errorf("%s: %d, %s", token, answer.StatusCode, text)
			}
		}
		stop := call{method: http.MethodDelete, path: where, token: "ana:analyst"}
		if answer, text := f.do(t, stop); answer.StatusCode != http.StatusAccepted || !strings.Contains(text, `"status":"stopping"`) {
			t.Errorf("who asked: %d, %s", answer.StatusCode, text)
		}
		ended, text := f.do(t, call{method: http.MethodGet, path: where + "?wait=60", token: "ana:analyst"})
		if ended.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(text, "budget/cancelled") {
			t.Errorf("what it gives: %d, %s", ended.StatusCode, text)
		}
		if answer, text := f.do(t, stop); answer.StatusCode != http.StatusNotFound {
			t.Errorf("once it has ended: %d, %s", answer.StatusCode, text)
		}
		if _, err := holder.Exec(t.Context(), "ROLLBACK"); err != nil {
			t.Fatal(err)
		}
		if n := f.Charges(t); n > i+1 {
			t.Errorf("%d charges", n)
		}
	}
}

// TestRefusalsThatAreNotWaitedFor: a refusal comes where the answer would; what is wrong with the request itself is said at once. The text
// alone takes the setting as well.
func TestRefusalsThatAreNotWaitedFor(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	post := call{method: http.MethodPost, path: "/v1/query?wait=0&epsilon=0.5&dataset=" + gatewaytest.Dataset, token: "ana:analyst",
		kind: "text/plain", body: "SELECT count(*) FROM nothing"}
	begun, text := f.do(t, post)
	if begun.StatusCode != http.StatusAccepted {
		t.Fatalf("%d, %s", begun.StatusCode, text)
	}
	refused, text := f.do(t, call{method: http.MethodGet, path: begun.Header.Get("Location") + "?wait=60", token: "ana:analyst"})
	if refused.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(text, "sql/unknown-table") {
		t.Errorf("%d, %s", refused.StatusCode, text)
	}
	for _, wait := range []string{"-1", "61", `"soon"`, "1.5", "null"} {
		body := strings.Replace(laterBody, `"wait": 0`, `"wait": `+wait, 1)
		want := http.StatusBadRequest
		if wait == "null" {
			want = http.StatusOK // as if it were left out
		}
		answer, text := f.do(t, call{method: http.MethodPost, path: "/v1/query", token: "ana:analyst", kind: "application/json", body: body})
		if answer.StatusCode != want {
			t.Errorf("wait %s: %d, %s", wait, answer.StatusCode, text)
		}
	}
}

// TestClientsComeBack: the client for Go comes back for an answer by itself.
func TestClientsComeBack(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	ana, request := f.client("ana:analyst"), api.QueryRequest{Dataset: gatewaytest.Dataset, SQL: "SELECT count(*) FROM people", Epsilon: "0.5",
		Wait: new(int64(0))}
	first, err := ana.Query(t.Context(), request, "")
	if err != nil || first.Replayed || first.Spent.Epsilon != "0.5" || len(first.Rows) != 1 {
		t.Fatalf("%+v, %v", first, err)
	}
	if again, err := ana.Query(t.Context(), request, ""); err != nil || !again.Replayed || again.ReleaseID != first.ReleaseID {
		t.Errorf("%+v, %v", again, err)
	}
	request.SQL = "SELECT count(*) FROM nothing"
	if _, err := ana.Query(t.Context(), request, ""); codeOfError(err) != fault.CodeUnknownTable {
		t.Errorf("%v", err)
	}
}
