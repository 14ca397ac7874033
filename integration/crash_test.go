package integration

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"noisegate.example/api"
	"noisegate.example/integration/invariants"
)

// question i, at a price of 0.1. Different questions, so that none is a replay of another.
func question(i int) api.QueryRequest {
	return api.QueryRequest{Dataset: "people", SQL: fmt.Sprintf("SELECT count(*) FROM people WHERE age <> %d", i), Epsilon: "0.1"}
}

// TestPostgresStopped stops the server under the gateway: 503, and no charge that is not in the ledger. When the server is
// back, so is the gateway, without a hand on it.
//
// covers: F03
func TestPostgresStopped(t *testing.T) {
	t.Parallel()
	s := newOwnStack(t, "stopped", people(ampleBudget))
	client := s.analyst(t, "ana")
	if _, err := client.Query(t.Context(), question(1), ""); err != nil {
		t.Fatal(err)
	}
	s.server.StopImmediate()
	for i := range 3 {
		if p := refusal(t, client, question(2+i)); p.Status != http.StatusServiceUnavailable || p.Code != "data/unavailable" {
			t.Errorf("with PostgreSQL stopped: %v, want data/unavailable", p)
		}
	}
	s.alive(t)
	s.eventually(t, func() bool { return s.status("/readyz") == http.StatusServiceUnavailable })
	if err := s.server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	answered := s.eventually(t, func() bool {
		_, err := client.Query(t.Context(), question(10), "")
		return err == nil
	})
	t.Logf("answers again %v after PostgreSQL is back", answered.Round(time.Millisecond))
	s.expectSpent(t, "ana", "0.2")
}

// TestBackendsTerminated ends the gateway's connections under load. Whatever a client saw, the ledger has it, and nothing
// is charged twice.
//
// covers: F04
func TestBackendsTerminated(t *testing.T) {
	t.Parallel()
	s := newStack(t, people(ampleBudget))
	load := s.startLoad(t, "ana", 8)
	for range 20 {
		time.Sleep(50 * time.Millisecond)
		for _, database := range []string{control, "people"} {
			s.exec(t, database, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
				WHERE datname = current_database() AND usename LIKE 'noisegate%'`)
		}
	}
	load.stop()
	load.check(t, s)
	s.audited(t)
}

// make faults-short and make faults give more.
var kills = flag.Int("kills", 3, "how often TestKillsUnderLoad kills the gateway")

// killsPerLedger is the number of kills after which TestKillsUnderLoad begins a new ledger: the whole of it is judged after each kill.
const killsPerLedger = 100

// TestKillsUnderLoad kills the gateway with SIGKILL at random moments and starts it again. After each kill the ledger is judged.
//
// covers: F01
func TestKillsUnderLoad(t *testing.T) {
	// alone: it measures how soon gateways are ready
	var waits invariants.Waits
	for len(waits) < *kills {
		before := len(waits)
		t.Run(fmt.Sprint("from ", before+1), func(t *testing.T) {
			waits = append(waits, killUnderLoad(t, min(killsPerLedger, *kills-before))...)
		})
		if t.Failed() {
			return
		}
	}
	soon, text := waits.Within(2 * time.Second)
	t.Logf("%d kills; ready again: %s", *kills, text)
	if !soon {
		t.Errorf("gateways are ready too late: %s", text)
	}
}

// killUnderLoad gives how long it took, after each kill, until a gateway was ready again.
func killUnderLoad(t *testing.T, kills int) (waits invariants.Waits) {
	s := newStack(t, people(`  - {dataset: true, form: approx, epsilon: 100000, delta: 1e-3}
  - {group: analysts, per: analyst, form: approx, epsilon: 100000, delta: 1e-3}
`))
	load := s.startLoad(t, "ana", 8)
	for range kills {
		// After answers and not after a time, so that there is work between two kills on any machine.
		_, answered := load.judge.Told.Counts()
		load.await(t, answered+1+rand.IntN(40))
		time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond)
		s.kill()
		load.check(t, s)
		start := time.Now()
		s.serve(t)
		waits = append(waits, time.Since(start))
	}
	load.stop()
	load.check(t, s)
	s.audited(t)
	if out, code := s.as(t, s.token(t, "sam", "steward"), "audit", "verify"); code != 0 {
		t.Errorf("I5: %s", out)
	}
	asked, answered := load.judge.Told.Counts()
	t.Logf("%d kills, %d questions, %d answers", kills, asked, answered)
	return waits
}

// load is a number of clients that ask one question after another. What they are told is held against the ledger.
type load struct {
	subject string
	client  *api.Client
	judge   invariants.Judge
	asked   atomic.Int64
	cancel  context.CancelFunc
	group   sync.WaitGroup
}

func (s *stack) startLoad(t *testing.T, subject string, clients int) *load {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{subject: subject, client: s.analyst(t, subject), judge: invariants.Judge{Told: &invariants.Answered{}}, cancel: cancel}
	for range clients {
		l.group.Go(func() {
			for ctx.Err() == nil {
				l.ask(t)
			}
		})
	}
	return l
}

func (l *load) ask(t *testing.T) {
	i := l.asked.Add(1)
	l.judge.Told.Asked()
	key := fmt.Sprint(l.subject, i)
	answer, err := l.client.Query(t.Context(), question(int(i)), key)
	if err != nil {
		time.Sleep(5 * time.Millisecond) // the gateway is down: do not spin
		answer, err = l.client.Query(t.Context(), question(int(i)), key)
	}
	if err == nil {
		l.judge.Told.Told(key, answer)
	}
}

func (l *load) stop() {
	l.cancel()
	l.group.Wait()
}

// await waits until clients hold so many answers.
func (l *load) await(t *testing.T, answers int) {
	t.Helper()
	for start := time.Now(); ; time.Sleep(time.Millisecond) {
		if _, answered := l.judge.Told.Counts(); answered >= answers {
			return
		}
		if time.Since(start) > time.Minute {
			t.Fatal("no answers any more")
		}
	}
}

// audited has the ledger of a gateway that runs verified by the command that auditors use.
func (s *stack) audited(t *testing.T) {
	t.Helper()
	if out, code := s.as(t, s.token(t, "sam", "steward"), "audit", "verify"); code != 0 {
		t.Errorf("audit verify: exit code %d: %s", code, out)
	}
}

// check has the ledger judged by what clients were told.
func (l *load) check(t *testing.T, s *stack) {
	t.Helper()
	conn := s.superuser(t, control)
	defer conn.Close(context.Background())
	if err := l.judge.Check(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	if _, answered := l.judge.Told.Counts(); answered == 0 {
		t.Fatal("no question was answered: the test asked nothing")
	}
}

// count counts the journal's entries of one kind.
func (s *stack) count(t *testing.T, kind string) int {
	t.Helper()
	conn := s.superuser(t, control)
	defer conn.Close(context.Background())
	var n int
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM noisegate.entry WHERE kind = $1", kind).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// reserved asks a question that waits for a lock, its charge committed: what becomes of it, and what opens the lock.
func (s *stack) reserved(t *testing.T, client *api.Client) (outcome <-chan error, unlock func()) {
	t.Helper()
	unlock = s.lock(t)
	done := make(chan error, 1)
	go func() {
		_, err := client.Query(t.Context(), question(1), "")
		done <- err
	}()
	s.eventually(t, func() bool { return s.count(t, "reserve") == 1 })
	return done, unlock
}

// TestKillBetweenReserveAndAnswer stops a query at a lock, after its charge was committed and before it is answered, and
// kills the gateway there: the charge stands.
//
// covers: F02 A67
func TestKillBetweenReserveAndAnswer(t *testing.T) {
	t.Parallel()
	s := newStack(t, people(ampleBudget))
	client := s.analyst(t, "ana")
	outcome, unlock := s.reserved(t, client)
	s.kill()
	if err := <-outcome; err == nil {
		t.Error("a killed gateway gave an answer")
	}
	unlock()
	s.serve(t)
	budget, err := client.Budget(t.Context(), "people")
	if err != nil {
		t.Fatal(err)
	}
	b := budget.Budgets[0]
	spent, _ := number(string(b.Spent.Epsilon))
	open, _ := number(string(b.Reserved.Epsilon))
	if spent.Add(spent, open).FloatString(3) != "0.100" {
		t.Errorf("spent %s, reserved %s after the kill: the charge does not stand", b.Spent.Epsilon, b.Reserved.Epsilon)
	}
	if _, err := client.Query(t.Context(), question(2), ""); err != nil {
		t.Errorf("the next question: %v", err)
	}
}

// TestSigtermDrains asks the gateway to end while a query is running: the query gets its answer, new ones are not taken.
//
// covers: F20
func TestSigtermDrains(t *testing.T) {
	t.Parallel()
	s := newStack(t, people(ampleBudget))
	client := s.analyst(t, "ana")
	outcome, unlock := s.reserved(t, client)
	if err := s.gateway.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond)
	unlock()
	if err := <-outcome; err != nil {
		t.Errorf("the running query: %v", err)
	}
	select {
	case err := <-s.exited:
		s.exited <- err
		if err != nil {
			t.Errorf("the gateway ended with %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the gateway did not end")
	}
	if n := s.count(t, "settle"); n != 1 {
		t.Errorf("%d charges were settled, want 1", n)
	}
}

// TestProtectedDatabaseDown takes the protected database away and leaves the ledger: 503, and the charge comes back, since
// no row can have been read.
//
// covers: F10
func TestProtectedDatabaseDown(t *testing.T) {
	t.Parallel()
	s := newStack(t, people(ampleBudget))
	client := s.analyst(t, "ana")
	s.shut(t, "people", "ALLOW_CONNECTIONS false")
	if p := refusal(t, client, question(1)); p.Code != "data/unavailable" || p.Status != http.StatusServiceUnavailable {
		t.Errorf("got %v, want data/unavailable", p)
	}
	s.expectSpent(t, "ana", "0")
	s.exec(t, "postgres", "ALTER DATABASE "+s.database("people")+" ALLOW_CONNECTIONS true")
	s.eventually(t, func() bool { _, err := client.Query(t.Context(), question(2), ""); return err == nil })
	s.expectSpent(t, "ana", "0.1")
}

// TestLedgerReadOnly makes the control database read-only, as a standby is: no answer without a charge.
//
// covers: F11
func TestLedgerReadOnly(t *testing.T) {
	t.Parallel()
	s := newStack(t, people(ampleBudget))
	client := s.analyst(t, "ana")
	s.shut(t, control, "SET default_transaction_read_only = on")
	for i := range 3 {
		if p := refusal(t, client, question(i)); p.Status != http.StatusServiceUnavailable {
			t.Errorf("got %v, want 503", p)
		}
	}
	s.alive(t)
}

// TestTableChanged changes a protected table under a running gateway: its policy is stale, and queries are refused until it
// is applied again.
//
// covers: F22 A59
func TestTableChanged(t *testing.T) {
	t.Parallel()
	for name, ddl := range map[string]string{
		"column type":    "ALTER TABLE people ALTER COLUMN age TYPE numeric",
		"column gone":    "ALTER TABLE people DROP COLUMN age",
		"column swapped": "ALTER TABLE people RENAME COLUMN age TO x; ALTER TABLE people ADD COLUMN age int",
		"table swapped":  "ALTER TABLE people RENAME TO old; CREATE TABLE people AS TABLE old; GRANT SELECT ON people TO noisegate_reader",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStack(t, people(ampleBudget))
			client := s.analyst(t, "ana")
			if _, err := client.Query(t.Context(), question(1), ""); err != nil {
				t.Fatal(err)
			}
			s.exec(t, "people", ddl)
			if p := refusal(t, client, question(2)); p.Code != "policy/stale" {
				t.Errorf("after %s: %v, want policy/stale", ddl, p)
			}
			s.expectSpent(t, "ana", "0.1")
		})
	}
}

// lock holds people in a way that makes every reader wait, and gives the function that lets go.
func (s *stack) lock(t *testing.T) (unlock func()) {
	t.Helper()
	conn := s.superuser(t, "people")
	if _, err := conn.PgConn().Exec(t.Context(), "BEGIN; LOCK TABLE people IN ACCESS EXCLUSIVE MODE").ReadAll(); err != nil {
		t.Fatal(err)
	}
	return func() {
		if _, err := conn.Exec(context.Background(), "COMMIT"); err != nil {
			t.Error(err)
		}
	}
}

// shut changes a database's setting and ends the connections that do not know it yet.
func (s *stack) shut(t *testing.T, database, setting string) {
	t.Helper()
	s.exec(t, "postgres", "ALTER DATABASE "+s.database(database)+" "+setting)
	s.exec(t, "postgres", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '"+s.database(database)+"'")
}

// refusal asks and gives the problem document that comes back.
func refusal(t *testing.T, client *api.Client, request api.QueryRequest) *api.Problem {
	t.Helper()
	_, err := client.Query(t.Context(), request, "")
	return problemOf(t, err)
}

// eventually waits until a condition holds, and says how long that took.
func (s *stack) eventually(t *testing.T, holds func() bool) time.Duration {
	t.Helper()
	start := time.Now()
	for time.Since(start) < time.Minute {
		if holds() {
			return time.Since(start)
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("not within a minute; the gateway's log:\n%s", s.log)
	return 0
}
