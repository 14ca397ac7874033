package integration

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"noisegate.example/api"
)

var (
	floodQuestions = flag.Int("flood-questions", 20, "questions of the victim of TestOneAnalystsFloodStopsNobody, with each kind of "+
		"flood and without")
	floodQuantum = flag.Duration("flood-quantum", 50*time.Millisecond, "the quantum of the gateway that the flood meets")
	floodPeople  = flag.Int("flood-people", 300_000, "rows of the table that the flood asks about")
)

// hostileClients is how many clients of one analyst flood the gateway.
const hostileClients = 64

// floodPatience bounds each wait of the flood test.
const floodPatience = 2 * time.Minute

// crowd is a large table for slow questions, and a small one for the victim's.
func crowd() dataset {
	return dataset{name: "crowd", policy: `version: 1
dataset: crowd
neighbours: add-remove
max_failures: 100
tables:
  crowd:
    unit: {row: id}
    columns:
      id:   {expose: false}
      age:  {bounds: [0, 100]}
      note: {expose: true}
  people:
    unit: {row: id}
    columns:
      id:  {expose: false}
      age: {bounds: [0, 100]}
budgets:
` + ampleBudget + `  - {group: ml, per: analyst, form: approx, epsilon: 1000, delta: 1e-4}
pate:
  votes: [{table: votes, unit: teacher, query: query, label: label}]
`, load: func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.PgConn().Exec(ctx, fmt.Sprintf(`
			CREATE TABLE crowd (id int PRIMARY KEY, age int NOT NULL, note text NOT NULL);
			INSERT INTO crowd SELECT i, i %% 100, repeat('a note about person ' || i || ', ', 5) FROM generate_series(1, %d) AS i;
			CREATE TABLE people (id int PRIMARY KEY, age int NOT NULL);
			INSERT INTO people SELECT i, i %% 100 FROM generate_series(1, 1000) AS i;
			CREATE TABLE votes AS SELECT teacher, 'q' || item AS query, CASE WHEN item %% 2 = 0 THEN 'cat' ELSE 'dog' END AS label
				FROM generate_series(1, 60) AS teacher, generate_series(0, 199) AS item;
			ANALYZE`, *floodPeople)).ReadAll()
		return err
	}}
}

// floods are what a hostile client does again and again; each request is new. Labels are asked for with a token of that role.
func floods(ml *api.Client) map[string]func(context.Context, *api.Client, int64) error {
	return map[string]func(context.Context, *api.Client, int64) error{
		"slow-questions": func(ctx context.Context, eve *api.Client, n int64) error {
			_, err := eve.Query(ctx, api.QueryRequest{Dataset: "crowd", Epsilon: "0.001",
				SQL: fmt.Sprintf("SELECT count(*), sum(age) FROM crowd WHERE note ~ 'p[a-z]+n [0-9]*%d' AND note ~ 'a.*b.*t.*%d' AND note LIKE "+
					"'%%1%%2%%'", n, n%10)}, "")
			return err
		},
		"estimates": func(ctx context.Context, eve *api.Client, n int64) error {
			_, err := eve.Estimate(ctx, api.QueryRequest{Dataset: "crowd", MaxError: map[string]api.Decimal{"a": "3", "b": "100", "c": "50"},
				SQL: fmt.Sprintf("SELECT age, count(*) AS a, sum(age) AS b, sum(age) FILTER (WHERE age > %d) AS c FROM people WHERE age < 90 "+
					"GROUP BY 1", n%80)})
			return err
		},
		"plans": func(ctx context.Context, eve *api.Client, n int64) error {
			lines := make([]api.PlanMechanism, 100)
			for i := range lines {
				lines[i] = api.PlanMechanism{Mechanism: "laplace", Epsilon: api.Decimal(fmt.Sprintf("0.01%03d", int(n)%900+i))}
			}
			_, err := eve.RegisterPlan(ctx, api.PlanRequest{Dataset: "crowd", Delta: "1e-12", Mechanisms: lines}, "")
			return err
		},
		"labels": func(ctx context.Context, _ *api.Client, n int64) error {
			queries := make([]string, 200)
			for i := range queries {
				queries[i] = fmt.Sprintf("q%d", i)
			}
			_, err := ml.Labels(ctx, "pets", api.LabelRequest{Queries: queries, Mechanism: "gnmax",
				Sigma: api.Decimal(fmt.Sprint(2000 + n))}, "")
			return err
		},
		"lists": func(ctx context.Context, eve *api.Client, n int64) (err error) {
			if n%2 == 0 {
				_, err = eve.Releases(ctx, "")
			} else {
				_, err = eve.Budget(ctx, "crowd")
			}
			return err
		},
	}
}

// covers: C2 A86 A43 W.8
//
// While 64 clients of one analyst, in a process of their own, send slow questions, estimates with max_error, plans of 100 lines, labels or
// lists as fast as they can, and 200 sockets do nothing or trickle, another analyst gets each answer, at most one boundary later than
// without them; /readyz answers within 10 ms, and the gateway keeps to 512 MiB.
//
// The bound is on the 99th percentile where there are at least 200 questions; with fewer, which is what a build has
// time for, on the median, because one answer of a few may be late for a reason that lies outside: then each must only
// come before the flood's own would.
//
// needs: postgres
func TestOneAnalystsFloodStopsNobody(t *testing.T) {
	// alone: it measures latencies and memory
	s := prepareOwnStack(t, "measured", crowd()).watched(t, crowd())
	s.kill()
	config := strings.ReplaceAll(read(t, s.config), "quantum: 0s", "quantum: "+floodQuantum.String())
	if *floodQuantum == 0 { // what docs/operations.md advises where one server of few cores has several analysts, and nothing waits
		s.exec(t, "crowd", "ALTER ROLE noisegate_reader SET max_parallel_workers_per_gather = 0")
		config += "limits: {per_analyst: 1}\n"
	}
	write(t, s.config, config)
	s.serve(t)
	eve, ana := s.analyst(t, "eve"), s.analyst(t, "ana")
	s.sealPets(t, "crowd")
	asked := 0
	ask := func() (latencies []time.Duration) {
		t.Helper()
		for range *floodQuestions {
			asked++
			ctx, cancel := context.WithTimeout(t.Context(), floodPatience)
			began := time.Now()
			_, err := ana.Query(ctx, api.QueryRequest{Dataset: "crowd", Epsilon: "0.001",
				SQL: fmt.Sprintf("SELECT count(*), sum(age) FROM people WHERE age < %d AND age <> %d", 1+asked%97, asked/97)}, "")
			cancel()
			if err != nil {
				t.Fatalf("question %d of the victim: %v", asked, err)
			}
			latencies = append(latencies, time.Since(began))
		}
		slices.Sort(latencies)
		return latencies
	}
	ask() // caches
	idle(t, strings.TrimPrefix(s.url, "http://"))
	for name := range floods(nil) {
		alone := ask()
		flood := s.flood(t, name)
		for deadline := time.Now().Add(floodPatience); flood.state().Answered < 2; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) || flood.state().Failed != "" {
				t.Fatalf("%s: the flood does not begin: %q", name, flood.state().Failed)
			}
		}
		before := flood.state().Answered
		looks := s.watchReady(t)
		beset := ask()
		s.readyInTime(t, name, looks())
		during := flood.state().Answered - before
		end := flood.end(t)
		if end.Failed != "" {
			t.Errorf("%s: %s", name, end.Failed)
		}
		t.Logf("%s: the victim's %d answers took p50 %v, p99 %v, at most %v; alone p50 %v, p99 %v; of the flood %d were answered "+
			"meanwhile, %d refused",
			name, len(beset), sortedQuantile(beset, 0.5), sortedQuantile(beset, 0.99), beset[len(beset)-1], sortedQuantile(alone, 0.5),
			sortedQuantile(alone, 0.99), during, end.Refused)
		// On a quiet machine 99 of 100 answers come one boundary later at most; while other work runs, half of them do, or a few boundaries
		// later.
		q, boundaries := 0.5, 4
		if *floodQuestions >= 200 {
			q, boundaries = 0.99, 1
		}
		// Without boundaries they take three times as long at most.
		most := 3 * sortedQuantile(alone, q)
		if *floodQuantum > 0 {
			most = later(sortedQuantile(alone, q), boundaries)
		}
		if sortedQuantile(beset, q) > most {
			t.Errorf("%s: the victim's answers took %v (quantile %v); alone %v, and at most %v is allowed", name, sortedQuantile(beset, q), q,
				sortedQuantile(alone, q), most)
		}
		if late := beset[len(beset)-1]; late > 30*time.Second {
			t.Errorf("%s: an answer took %v", name, late)
		}
	}
	if kib := peakMemory(t, s.gateway.Process.Pid); kib > mostMemory {
		t.Errorf("the gateway took %d KiB, more than %d", kib, mostMemory)
	} else {
		t.Logf("the gateway took %d MiB at most", kib/1024)
	}
	// The flood is over: what is left of it, cancelled requests that run to their end, gives its places back.
	for deadline := time.Now().Add(floodPatience); ; time.Sleep(50 * time.Millisecond) {
		if _, err := eve.Query(t.Context(), api.QueryRequest{Dataset: "crowd", Epsilon: "0.001", SQL: "SELECT count(*) FROM people"},
			""); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("after the flood the gateway does not answer its analyst")
		}
	}
}

// floodState is what a flood has met so far.
type floodState struct {
	Answered, Refused int64
	Failed            string // how a request failed otherwise, which ends a flood
}

// floodProcess is a flood from a separate process: its clients do not compete with the victim for a processor more than others do.
type floodProcess struct {
	command *exec.Cmd
	stop    io.Closer
	last    atomic.Pointer[floodState]
	ended   chan struct{}
}

// flood begins one; see [floodFromHere].
func (s *stack) flood(t *testing.T, name string) *floodProcess {
	t.Helper()
	f := &floodProcess{command: exec.Command(os.Args[0]), ended: make(chan struct{})}
	f.last.Store(&floodState{})
	f.command.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %s %s", floodVariable, name, s.url, s.token(t, "eve", "analyst"),
		s.token(t, "eve", "ml")))
	f.command.Stderr = os.Stderr
	states, err := f.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if f.stop, err = f.command.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := f.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.end(t) })
	go func() {
		defer close(f.ended)
		for decoder := json.NewDecoder(states); ; {
			var state floodState
			if decoder.Decode(&state) != nil {
				return
			}
			f.last.Store(&state)
		}
	}()
	return f
}

func (f *floodProcess) state() floodState { return *f.last.Load() }

// end ends it and gives what it met.
func (f *floodProcess) end(t *testing.T) floodState {
	t.Helper()
	_ = f.stop.Close()
	select {
	case <-f.ended:
		_ = f.command.Wait()
	case <-time.After(floodPatience):
		t.Errorf("the flood does not end within %v", floodPatience)
		_ = f.command.Process.Kill()
	}
	return f.state()
}

// floodVariable has the name of a flood, the gateway's address, and tokens of an analyst and of an ML team: then the test binary is that
// flood.
const floodVariable = "NOISEGATE_TEST_FLOOD"

// floodFromHere floods a gateway until the input ends, and prints what it meets.
func floodFromHere(what string) {
	words := strings.Fields(what)
	eve := api.NewClient(words[1], words[2])
	flood := floods(api.NewClient(words[1], words[3]))[words[0]]
	var n, answered, refused atomic.Int64
	var failed atomic.Pointer[string]
	failed.Store(new(string))
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	var all sync.WaitGroup
	for range hostileClients {
		all.Go(func() {
			for ctx.Err() == nil {
				err := flood(ctx, eve, n.Add(1))
				var problem *api.Problem
				switch {
				case err == nil:
					answered.Add(1)
				case errors.As(err, &problem) && problem.Status == http.StatusTooManyRequests:
					refused.Add(1)
					time.Sleep(10 * time.Millisecond) // ruder than Retry-After allows
				case ctx.Err() == nil:
					failed.Store(new(err.Error()))
					stop()
				}
			}
		})
	}
	states := json.NewEncoder(os.Stdout)
	for tick := time.NewTicker(20 * time.Millisecond); ctx.Err() == nil; <-tick.C {
		_ = states.Encode(floodState{answered.Load(), refused.Load(), *failed.Load()})
	}
	all.Wait()
	_ = states.Encode(floodState{answered.Load(), refused.Load(), *failed.Load()})
}

// mostMemory is what a gateway may take under a flood, in KiB.
const mostMemory = 512 << 10

// sealPets defines and seals an ensemble of the votes of a dataset.
func (s *stack) sealPets(t *testing.T, dataset string) {
	t.Helper()
	sam := api.NewClient(s.url, s.token(t, "sam", "steward"))
	if _, err := sam.DefineEnsemble(t.Context(), "pets", api.EnsembleDefinition{Dataset: dataset, Teachers: 60,
		Classes: []string{"cat", "dog"}, Budget: &api.BudgetLimit{Form: "zcdp", Rho: "100"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := sam.LoadVoteTable(t.Context(), "pets", api.VoteTable{Schema: "public", Table: "votes", Teacher: "teacher",
		Query: "query", Label: "label"}); err != nil {
		t.Fatal(err)
	}
	if _, err := sam.SealEnsemble(t.Context(), "pets"); err != nil {
		t.Fatal(err)
	}
}

// idle opens sockets that ask nothing until the test ends; half of them trickle.
func idle(t *testing.T, address string) {
	t.Helper()
	for i := range 200 {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		if i%2 == 0 {
			go func() {
				for _, b := range []byte("POST /v1/query HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat("x", 1000)) {
					if _, err := conn.Write([]byte{b}); err != nil {
						return // the gateway has enough of it
					}
					time.Sleep(20 * time.Millisecond)
				}
			}()
		}
	}
}

// watchReady asks /readyz where the operator does, until it is told to stop; it gives how long answers took, sorted.
func (s *stack) watchReady(t *testing.T) (stop func() []time.Duration) {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	var took []time.Duration
	var watching sync.WaitGroup
	watching.Go(func() {
		client := http.Client{Timeout: floodPatience}
		for ctx.Err() == nil {
			began := time.Now()
			response, err := client.Get("http://" + s.admin + "/readyz")
			if err != nil {
				t.Errorf("/readyz: %v", err)
				return
			}
			_, _ = io.Copy(io.Discard, response.Body)
			response.Body.Close()
			if took = append(took, time.Since(began)); response.StatusCode != http.StatusOK {
				t.Errorf("/readyz answers %d", response.StatusCode)
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
	return func() []time.Duration {
		end()
		watching.Wait()
		slices.Sort(took)
		return took
	}
}

// readyInTime looks how long /readyz took: on a quiet machine 99 of 100 looks take 10 ms at most; while other work runs, half of them.
func (s *stack) readyInTime(t *testing.T, flood string, looks []time.Duration) {
	t.Helper()
	const bar = 10 * time.Millisecond
	q := 0.5
	if *floodQuestions >= 200 {
		q = 0.99
	}
	t.Logf("%s: /readyz took p50 %v, p99 %v in %d looks", flood, sortedQuantile(looks, 0.5), sortedQuantile(looks, 0.99), len(looks))
	if got := sortedQuantile(looks, q); got > bar {
		t.Errorf("%s: /readyz took %v (quantile %v)", flood, got, q)
	}
}

// peakMemory is the most memory that a process had so far, in KiB; 0 where the system does not say it as Linux does.
func peakMemory(t *testing.T, pid int) (kib int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(text), "VmHWM:")
	if _, err := fmt.Sscan(after, &kib); err != nil {
		t.Fatalf("VmHWM: %v in %s", err, text)
	}
	return kib
}

// sortedQuantile is the smallest of sorted times that so many of them do not pass.
func sortedQuantile(sorted []time.Duration, q float64) time.Duration {
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// later is when an answer comes that left so many boundaries after another one: boundaries are at 50 ms x 2^k after a
// request has entered, each moved by a tenth at most, and the answer of a small question takes up to 25 ms more through
// the gateway and the network stack.
func later(latency time.Duration, boundaries int) time.Duration {
	boundary := 50 * time.Millisecond
	for boundary*11/10+25*time.Millisecond < latency {
		boundary *= 2
	}
	return boundary<<boundaries*11/10 + 25*time.Millisecond
}
