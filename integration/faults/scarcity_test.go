package faults

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"noisegate.example/api"
	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/internal/pgtest"
)

// widen adds a table with so many long keys, of ten people each, and lets ana0 ask for them.
func (s *site) widen(t *testing.T, url string, keys int) {
	t.Helper()
	s.protected.Exec(t, fmt.Sprintf(`CREATE TABLE wide (id int PRIMARY KEY, k text, n int);
		INSERT INTO wide SELECT i, repeat('long-', 20) || i %% %d, 0 FROM generate_series(1, %d) i`, keys, 10*keys))
	s.protected.Grant(t)
	steward := api.NewClient(url, "sam")
	document, version, err := steward.Policy(t.Context(), gatewaytest.Dataset)
	if err != nil {
		t.Fatal(err)
	}
	wider := strings.Replace(string(document), "tables:\n", "tables:\n  wide:\n    unit: {row: id}\n    columns:\n      k: {keys: "+
		"private}\n      n: {bounds: [0, 1]}\n", 1)
	if _, err := steward.SetPolicy(t.Context(), gatewaytest.Dataset, []byte(wider), version); err != nil {
		t.Fatal(err)
	}
	for _, account := range []string{"dataset", "analyst:ana0"} {
		limit := api.BudgetLimit{Form: "approx", Epsilon: "100000", Delta: "1e-3"}
		if _, err := steward.SetAccount(t.Context(), gatewaytest.Dataset, account, limit); err != nil {
			t.Fatal(err)
		}
	}
}

// TestScarceMemory asks a gateway that should do with 128 MiB for many answers at a time, of several MiB each: every
// one comes whole, the same bytes to everybody, or is refused: as one too many, or, on a busy machine, because the ledger
// does not answer in time. Afterwards it answers as before.
//
// covers: F16
func TestScarceMemory(t *testing.T) {
	const keys, questions, clients = 20_000, 4, 80
	s := newSite(t)
	s.widen(t, s.inProcess(t, never(), nil), keys)
	c, _ := startChild(t, orders{Databases: s.databases, Address: pgtest.FreeAddress(t), Memory: 128 << 20})
	ana := api.NewClient(c.url, "ana0")
	for round := range *rounds {
		wide := func(i int) api.QueryRequest {
			return api.QueryRequest{Dataset: gatewaytest.Dataset, Epsilon: "5", Delta: "1e-9",
				SQL: fmt.Sprintf("SELECT k, count(*) AS n FROM wide WHERE n <> %d GROUP BY k", 1+round*questions+i)}
		}
		together(questions, func(i int) {
			answer, err := ana.Query(t.Context(), wide(i), "")
			if err != nil || len(answer.Rows) < keys/2 {
				t.Errorf("no large answer: %v", err)
				return
			}
			s.judge.Told.Told("", answer)
		})
		var mu sync.Mutex
		told := map[[sha256.Size]byte]int{}
		together(clients, func(i int) {
			code, body, err := post(t.Context(), c.url, wide(i%questions))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				t.Error(err)
			case code == http.StatusOK:
				told[sha256.Sum256(body)]++
			case code != http.StatusTooManyRequests && code != http.StatusServiceUnavailable:
				t.Errorf("%d: %s", code, body)
			}
		})
		if len(told) > questions {
			t.Errorf("%d questions had %d different answers", questions, len(told))
		}
		s.heals(t, &numbers{}, c.url)
		s.check(t, "many large answers")
	}
	t.Logf("at most %s of memory", c.memory("VmHWM"))
}

// together runs so many at a time.
func together(n int, work func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { work(i) })
	}
	all.Wait()
}

// post asks as ana0 and gives what came, byte for byte; an error if it is less than was announced.
func post(ctx context.Context, url string, q api.QueryRequest) (code int, body []byte, err error) {
	text, err := json.Marshal(q)
	if err != nil {
		return 0, nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/query", bytes.NewReader(text))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer ana0")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	body, err = io.ReadAll(response.Body)
	return response.StatusCode, body, err
}

// memory is a line of what the system says of the child's memory; "" where there is no such system.
func (c *child) memory(field string) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid))
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, field+":"); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

// idle opens connections and keeps them; every so manieth has asked something. There are fewer when the gateway takes no more.
func idle(t *testing.T, c *child, wanted, asking int) (open []net.Conn) {
	t.Helper()
	address := strings.TrimPrefix(c.url, "http://")
	t.Cleanup(func() { hangUp(open) })
	for i := range wanted {
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err != nil {
			break
		}
		open = append(open, conn)
		if i%asking == 0 {
			_, _ = fmt.Fprintf(conn, "GET /healthz HTTP/1.1\r\nHost: %s\r\n\r\n", address)
		}
	}
	return open
}

func hangUp(open []net.Conn) {
	for _, conn := range open {
		_ = conn.Close()
	}
}

// TestIdleConnections keeps 5,000 connections open, as far as this machine lets it; half have asked something and half have said nothing:
// health and answers come all the same.
//
// covers: F17
func TestIdleConnections(t *testing.T) {
	s := newSite(t)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	c, _ := startChild(t, orders{Databases: s.databases, Address: pgtest.FreeAddress(t)})
	s.refill(t, c.url, 1000)
	n := &numbers{}
	l := s.load(t, n, c.url, 8)
	open := idle(t, c, min(5000, int(limit.Cur)-500), 2)
	var waits []time.Duration
	for range 100 {
		start := time.Now()
		if !healthy(c.url) {
			t.Error("not healthy")
		}
		waits = append(waits, time.Since(start))
	}
	_, before := s.judge.Told.Counts()
	s.answered(t, before+10)
	l.stop(t)
	s.check(t, "idle connections")
	slices.Sort(waits)
	t.Logf("beside %d connections: health after %v in the median, %v at most", len(open), waits[len(waits)/2], waits[len(waits)-1])
}

func healthy(url string) bool {
	response, err := http.Get(url + "/healthz")
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// TestNoDescriptors leaves a gateway with no file descriptor to spare, under load: who gets no answer was charged
// nothing that is lost. When the idle connections have gone, it answers again by itself.
//
// covers: F17
func TestNoDescriptors(t *testing.T) {
	s := newSite(t)
	c, _ := startChild(t, orders{Databases: s.databases, Address: pgtest.FreeAddress(t), Descriptors: 64})
	n := &numbers{}
	for range *rounds {
		s.refill(t, c.url, 1000)
		l := s.load(t, n, c.url, 8)
		open := idle(t, c, 100, 1)
		time.Sleep(100 * time.Millisecond)
		// The pools have to connect again, and cannot.
		s.control.Exec(t, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename LIKE 'noisegate%'")
		within(t, "nobody meets the limit", func() bool { return l.refused("data/unavailable") > 0 })
		time.Sleep(100 * time.Millisecond)
		hangUp(open)
		s.heals(t, n, c.url)
		l.stop(t)
		s.check(t, "a time without descriptors")
	}
}

// TestDataPoolExhausted holds every connection to the protected database: what needs none of them is answered. Requests that waited are
// answered or refused for free.
//
// covers: F17
func TestDataPoolExhausted(t *testing.T) {
	s := newSite(t)
	url := s.inProcess(t, never(), nil)
	s.refill(t, url, 1000)
	n := &numbers{}
	ana := api.NewClient(url, "ana0")
	known := question(n.next())
	first, err := ana.Query(t.Context(), known, "")
	if err != nil {
		t.Fatal(err)
	}
	for range *rounds {
		unlock := s.lockPeople(t)
		l := s.load(t, n, url, 30)
		s.waiting(t, gatewayConnections)
		if !healthy(url) {
			t.Error("not healthy while the protected database is busy")
		}
		again, err := ana.Query(t.Context(), known, "")
		if err != nil || again.ReleaseID != first.ReleaseID {
			t.Errorf("an answer that is there is not told: %v", err)
		}
		if _, err := ana.Budget(t.Context(), gatewaytest.Dataset); err != nil {
			t.Errorf("the budget: %v", err)
		}
		unlock()
		_, before := s.judge.Told.Counts()
		s.answered(t, before+1)
		l.stop(t)
		s.check(t, "a pool without a connection")
	}
}

// gatewayConnections are how many connections to the protected database a gateway of gatewaytest has.
const gatewayConnections = 8

// lockPeople makes every reader of people wait, until unlock is called.
func (s *site) lockPeople(t *testing.T) (unlock func()) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.protected.DSN)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	if _, err := conn.PgConn().Exec(t.Context(), "BEGIN; LOCK TABLE people IN ACCESS EXCLUSIVE MODE").ReadAll(); err != nil {
		t.Fatal(err)
	}
	return func() {
		if _, err := conn.Exec(t.Context(), "COMMIT"); err != nil {
			t.Error(err)
		}
	}
}

// waiting waits until so many readers wait for a lock.
func (s *site) waiting(t *testing.T, readers int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.protected.DSN)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	within(t, "not all connections are held", func() bool {
		var now int
		if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND "+
			"wait_event_type = 'Lock'").Scan(&now); err != nil {
			t.Fatal(err)
		}
		return now >= readers
	})
}
