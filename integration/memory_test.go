package integration

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"noisegate.example/api"
)

var greedyAnalysts = flag.Int("greedy", 0, "analysts of TestUnreadAnswersLeaveRoom who read nothing, with the limits of the manifests; "+
	"0: two, with a small memory.answers")

// wide makes a public table with an answer of 5 MiB, and a table of people.
func wide() dataset {
	return dataset{name: "wide", policy: `version: 1
dataset: wide
neighbours: add-remove
tables:
  people:
    unit: {row: id}
    columns: {id: {expose: false}, age: {bounds: [0, 100]}}
  notes: {public: true}
budgets:
` + ampleBudget, load: func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.PgConn().Exec(ctx, `CREATE TABLE people (id int PRIMARY KEY, age int NOT NULL);
			INSERT INTO people SELECT i, i % 100 FROM generate_series(1, 1000) AS i;
			CREATE TABLE notes (id int PRIMARY KEY, note text NOT NULL);
			INSERT INTO notes SELECT i, repeat('a note, ', 60) FROM generate_series(1, 10000) AS i`).ReadAll()
		return err
	}}
}

// manifestLimits are what systemd's unit and the manifest of Kubernetes give a gateway, in MiB, and what they tell it.
func manifestLimits(t *testing.T) (most, told int) {
	t.Helper()
	for file, form := range map[string]string{
		"../deploy/noisegate.service": `(?s)MemoryMax=(\d+)G.*GOMEMLIMIT=(\d+)MiB`,
		"../deploy/kubernetes.yaml":   `(?s)limits: \{memory: (\d+)Gi\}.*GOMEMLIMIT, value: (\d+)MiB`,
	} {
		found := regexp.MustCompile(form).FindStringSubmatch(read(t, file))
		if found == nil {
			t.Fatalf("%s has no limits", file)
		}
		gibibytes, _ := strconv.Atoi(found[1])
		limit, _ := strconv.Atoi(found[2])
		if most != 0 && (most != gibibytes<<10 || told != limit) {
			t.Fatalf("%s has other limits than the other manifest", file)
		}
		most, told = gibibytes<<10, limit
	}
	return most, told
}

// peak is the most memory that the gateway had so far, in MiB, as the kernel counts it.
func (s *stack) peak(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.gateway.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	kibibytes, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return kibibytes >> 10
}

// TestUnreadAnswersLeaveRoom: analysts who open cursors and requests, and read nothing of them, are refused when they have their share of
// the memory for answers, on both doors. The gateway takes no more than nine tenths of what its manifest gives it, and another analyst is
// answered, in twice the time that it takes alone at most.
func TestUnreadAnswersLeaveRoom(t *testing.T) {
	t.Parallel()
	s := newWireStackOver(t, wide())
	s.kill()
	most, told := manifestLimits(t)
	greedy, settings := *greedyAnalysts, fmt.Sprintf("GOMEMLIMIT=%dMiB", told)
	if greedy == 0 {
		greedy, settings = 2, settings+" NOISEGATE_MEMORY_ANSWERS=32MiB"
	}
	s.shell = "export " + settings
	s.serve(t)
	late := s.analyst(t, "late")
	asked := 0
	ask := func() time.Duration { // the median
		var took []time.Duration
		for range 9 {
			asked++
			began := time.Now()
			if _, err := late.Query(t.Context(), api.QueryRequest{Dataset: "wide", Epsilon: "0.001",
				SQL: fmt.Sprintf("SELECT count(*) FROM people WHERE age > %d", asked)}, ""); err != nil {
				t.Fatal(err)
			}
			took = append(took, time.Since(began))
		}
		slices.Sort(took)
		return took[len(took)/2]
	}
	alone := ask()
	const sql = "SELECT * FROM notes"
	for i := range greedy {
		subject := fmt.Sprintf("greedy%d", i)
		token := s.tokenOnce(t, subject, "analyst")
		at := url.URL{Scheme: "postgres", User: url.UserPassword(subject, token), Path: "/wide", Host: net.JoinHostPort(s.host, s.port),
			RawQuery: "sslmode=disable"}
		conn, err := pgx.Connect(t.Context(), at.String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.WithoutCancel(t.Context()))
		if _, err := conn.Exec(t.Context(), "BEGIN", pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatal(err)
		}
		state := ""
		for n := 0; n < 40 && state == ""; n++ {
			_, err := conn.Exec(t.Context(), fmt.Sprintf("DECLARE c%d CURSOR FOR %s; FETCH 1 FROM c%d", n, sql, n), pgx.QueryExecModeSimpleProtocol)
			var refused *pgconn.PgError
			if errors.As(err, &refused) {
				state = refused.Code
			} else if err != nil {
				t.Fatal(err)
			}
			if n%4 == 3 && i > 0 { // and requests whose answers nobody reads
				defer s.unread(t, token, sql)()
			}
		}
		if state != "53200" {
			t.Errorf("%s is refused with %q, want 53200", subject, state)
		}
	}
	beside := ask()
	if alone = max(alone, 20*time.Millisecond); beside > 2*alone {
		t.Errorf("another analyst's question takes %v beside %d greedy ones, %v alone", beside, greedy, alone)
	}
	if peak := s.peak(t); peak*10 > most*9 {
		t.Errorf("the gateway took %d MiB of %d", peak, most)
	} else {
		t.Logf("%d MiB of %d at most; %v alone, %v beside %d greedy analysts", peak, most, alone, beside, greedy)
	}
	s.alive(t)
}

// unread asks over HTTP and reads nothing, until it is closed.
func (s *stack) unread(t *testing.T, token, sql string) (end func()) {
	t.Helper()
	address := strings.TrimPrefix(s.url, "http://")
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	body := fmt.Sprintf(`{"dataset": "wide", "sql": %q}`, sql)
	_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	_, _ = fmt.Fprintf(conn, "POST /v1/query HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
		"Content-Length: %d\r\n\r\n%s", address, token, len(body), body)
	return func() { _ = conn.Close() }
}
