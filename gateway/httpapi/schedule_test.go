package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"noisegate.example/api"
	"noisegate.example/gateway"
	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/internal/fault"
)

// stage is a place where the first request that comes there waits until the test has looked around.
type stage struct {
	once      *sync.Once
	there, on chan struct{}
}

func newStage() stage { return stage{new(sync.Once), make(chan struct{}), make(chan struct{})} }

// patience is how long these tests wait for a request to come to a stage, or to leave.
const patience = 60 * time.Second

func (s stage) wait() {
	if s.once != nil {
		s.once.Do(func() { s.there <- struct{}{}; <-s.on })
	}
}

// look waits for the request, looks, and lets it go on.
func (s stage) look(t *testing.T, what string, look func()) {
	t.Helper()
	select {
	case <-s.there:
	case <-time.After(patience):
		t.Fatalf("no request comes to where it %s", what)
	}
	look()
	s.on <- struct{}{}
}

// stagedClock stops who is charged and begins to work, and who waits for a boundary.
type stagedClock struct {
	gateway.SystemClock
	working, boundary stage
}

func (c stagedClock) AfterFunc(d time.Duration, f func()) (stop func()) {
	c.working.wait()
	return c.SystemClock.AfterFunc(d, f)
}

func (c stagedClock) Sleep(ctx context.Context, d time.Duration) {
	c.boundary.wait()
	c.SystemClock.Sleep(ctx, d)
}

var perRequest = regexp.MustCompile(`"request_id":"[^"]*"`)

// everything is what all routes that read say to each role, and what the same question says when it is asked again.
func everything(t *testing.T, f *front, question string) map[string]string {
	t.Helper()
	seen := map[string]string{}
	keep := func(name string, response *http.Response, text string) {
		seen[name] = fmt.Sprint(response.StatusCode, perRequest.ReplaceAllString(text, ""))
	}
	names := strings.NewReplacer("{dataset}", "census", "{account}", "analyst:ana", "{id}", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "{ensemble}",
		"votes")
	for _, r := range routes() {
		if r.method != http.MethodGet || strings.Contains(r.pattern, "openapi") {
			continue
		}
		for _, who := range []string{"ana:analyst", "bob:analyst", "sam:steward", "mel:ml"} {
			response, text := f.do(t, call{method: http.MethodGet, path: names.Replace(r.pattern), token: who})
			keep(who+" "+r.pattern, response, text)
		}
	}
	response, text := f.do(t, call{method: http.MethodPost, path: "/v1/query", token: "ana:analyst", kind: "application/json", body: question})
	keep("the same question", response, strings.ReplaceAll(text, `"replayed":true`, ""))
	response, text = f.do(t, call{method: http.MethodPost, path: "/v1/query/estimate", token: "ana:analyst", kind: "application/json",
		body: question})
	keep("its estimate", response, text)
	return seen
}

func differences(a, b map[string]string) (list []string) {
	for name := range a {
		if a[name] != b[name] {
			list = append(list, fmt.Sprintf("%s:\n%s\n%s", name, a[name], b[name]))
		}
	}
	return list
}

// TestNothingShowsBeforeTheBoundary: every route that reads, the question itself and its estimate say the same while a
// question works and when its work has ended and it waits for its boundary. After the boundary they do not: the test is
// not blind. Its client has hung up meanwhile.
//
// needs: postgres
// covers: A33 W.3 W.7
func TestNothingShowsBeforeTheBoundary(t *testing.T) {
	clock := stagedClock{working: newStage(), boundary: newStage()}
	f := newFront(t, gatewaytest.Options{Quantum: time.Second, Change: func(c *gateway.Config) { c.Clock = clock }}, 4)
	const question = `{"dataset":"census","sql":"SELECT count(*) FROM people","epsilon":"0.5"}`
	ctx, hangUp := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := f.client("ana:analyst").Query(ctx, api.QueryRequest{Dataset: "census", SQL: "SELECT count(*) FROM people", Epsilon: "0.5"}, "")
		left <- err
	}()
	var atWork, ended map[string]string
	clock.working.look(t, "works", func() { atWork = everything(t, f, question) })
	hangUp()
	select {
	case err := <-left:
		if err == nil {
			t.Fatal("the client did not hang up")
		}
	case <-time.After(patience):
		t.Fatal("the client does not hang up")
	}
	clock.boundary.look(t, "waits for its boundary", func() { ended = everything(t, f, question) })
	for _, difference := range differences(atWork, ended) {
		t.Errorf("when its work has ended: %s", difference)
	}
	if !strings.Contains(ended["the same question"], "request/in-flight") {
		t.Errorf("%s", ended["the same question"])
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		after := everything(t, f, question)
		if strings.HasPrefix(after["the same question"], "200") {
			if list := differences(ended, everything(t, f, question)); len(list) < 5 {
				t.Errorf("few routes show that the question was answered: %s", list)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the answer is not stored: %s", after["the same question"])
		}
	}
}

// TestLabelsShowAtTheBoundary: labels that were drawn are not there for others, and change no view, before the boundary.
//
// needs: postgres
// covers: A33 W.3
func TestLabelsShowAtTheBoundary(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	clock := stagedClock{boundary: newStage()}
	f := newFront(t, gatewaytest.Options{Quantum: time.Second, Change: func(c *gateway.Config) { c.Clock = clock }}, 4)
	sam := f.client("sam:steward")
	ensemble(t, f, "votes")
	if _, err := sam.LoadVotes(t.Context(), "votes", "text/csv", "", strings.NewReader(votes(20))); err != nil {
		t.Fatal(err)
	}
	if _, err := sam.SealEnsemble(t.Context(), "votes"); err != nil {
		t.Fatal(err)
	}
	question := api.LabelRequest{Queries: []string{"q0", "q1"}, Mechanism: "gnmax", Sigma: "30"}
	views := func() string {
		e, err := f.client("mel:ml").EstimateLabels(t.Context(), "votes",
			api.LabelEstimateRequest{Queries: question.Queries, Mechanism: "gnmax", Sigma: "30"})
		if err != nil {
			t.Fatal(err)
		}
		_, shown := f.do(t, call{method: http.MethodGet, path: "/v1/pate/votes", token: "mel:ml"})
		return fmt.Sprint(e.Replayed, perRequest.ReplaceAllString(shown, ""))
	}
	before := views()
	left := make(chan error, 1)
	go func() {
		_, err := f.client("mel:ml").Labels(t.Context(), "votes", question, "")
		left <- err
	}()
	clock.boundary.look(t, "waits for its boundary", func() {
		if ended := views(); ended != before {
			t.Errorf("when they are drawn: %s\nbefore: %s", ended, before)
		}
	})
	select {
	case err := <-left:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(patience):
		t.Fatal("the labels do not leave")
	}
	if after := views(); after == before {
		t.Errorf("the test sees nothing: %s", after)
	}
}

// TestCancelOverHTTP: DELETE names a running question by its key. The request that asked it gets budget/cancelled, also when its work has
// ended and its answer waits for the boundary, and its charge stands.
//
// needs: postgres
// covers: W.7
func TestCancelOverHTTP(t *testing.T) {
	clock := stagedClock{boundary: newStage()}
	f := newFront(t, gatewaytest.Options{Quantum: 50 * time.Millisecond, Change: func(c *gateway.Config) { c.Clock = clock }}, 4)
	ana := f.client("ana:analyst")
	left := make(chan error, 1)
	go func() {
		_, err := ana.Query(t.Context(), api.QueryRequest{Dataset: "census", SQL: "SELECT count(*) FROM people", Epsilon: "0.5"}, "key")
		left <- err
	}()
	clock.boundary.look(t, "waits for its boundary", func() {
		if _, err := f.client("bob:analyst").CancelQuery(t.Context(), "key"); codeOfError(err) != "request/not-found" {
			t.Errorf("another's question: %v", err)
		}
		cancelled, err := ana.CancelQuery(t.Context(), "key")
		if err != nil || cancelled.Status != "stopping" || !strings.Contains(cancelled.Text, "asking again is a new charge") {
			t.Errorf("%+v, %v", cancelled, err)
		}
	})
	select {
	case err := <-left:
		if codeOfError(err) != "budget/cancelled" || !strings.Contains(err.Error(), "its charge stands") {
			t.Errorf("%v", err)
		}
	case <-time.After(patience):
		t.Fatal("the question does not leave")
	}
	b, err := ana.Budget(t.Context(), "census")
	if err != nil || b.Budgets[0].Spent.Epsilon != "0.5" || b.Budgets[0].Reserved.Epsilon != "0" {
		t.Errorf("%+v, %v", b, err)
	}
}

// TestCancelBeforeAnyRowIsCharged: a question that is cancelled while it waits for its table to be readable, before it
// has read a row, is charged: its admission reveals what the accounts that all share afford. The test waits for the question to wait, 10 s
// at most.
//
// needs: postgres
// covers: W.7 L1
func TestCancelBeforeAnyRowIsCharged(t *testing.T) {
	f := newFront(t, gatewaytest.Options{Quantum: 50 * time.Millisecond}, 4)
	ana := f.client("ana:analyst")
	holder, watcher := f.Protected.Conn(t, f.Protected.DSN), f.Protected.Conn(t, f.Protected.DSN)
	if _, err := holder.Exec(t.Context(), "BEGIN; LOCK TABLE people IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	asked := make(chan error, 1)
	go func() {
		_, err := ana.Query(t.Context(), api.QueryRequest{Dataset: gatewaytest.Dataset, SQL: "SELECT count(*) FROM people",
			Epsilon: "0.5"}, "key")
		asked <- err
	}()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		var waits int
		if err := watcher.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = "+
			"current_database() AND query LIKE 'LOCK TABLE%'").Scan(&waits); err != nil {
			t.Fatal(err)
		}
		if waits == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the question does not wait for its table")
		}
	}
	if _, err := ana.CancelQuery(t.Context(), "key"); err != nil {
		t.Fatal(err)
	}
	if err := <-asked; codeOfError(err) != fault.CodeBudgetCancelled || !strings.Contains(err.Error(), "its charge stands") {
		t.Errorf("%v", err)
	}
	if b, err := ana.Budget(t.Context(), gatewaytest.Dataset); err != nil || b.Budgets[0].Spent.Epsilon != "0.5" {
		t.Errorf("%+v, %v", b, err)
	}
	if _, err := holder.Exec(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
}
