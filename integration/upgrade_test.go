package integration

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"noisegate.example/internal/pgtest"
)

// endsWithin is how long a gateway has to end, drain included: far more than it needs.
const endsWithin = time.Minute

// TestSigtermUnderLoad asks the gateway to end while clients ask: it ends by itself, every charge is settled, and every
// answer that was paid for was told.
//
// covers: F20
func TestSigtermUnderLoad(t *testing.T) {
	t.Parallel()
	s := newStack(t, people(ampleBudget))
	load := s.startLoad(t, "ana", 8)
	for range max(1, *kills/20) {
		_, answered := load.judge.Told.Counts()
		load.await(t, answered+1+rand.IntN(20))
		if err := s.gateway.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := s.ended(t); err != nil {
			t.Errorf("the gateway ended with %v", err)
		}
		load.check(t, s)
		s.drained(t, load)
		s.serve(t)
	}
	load.stop()
	load.check(t, s)
}

// ended waits until the gateway has ended by itself, and gives what it ended with.
func (s *stack) ended(t *testing.T) error {
	t.Helper()
	select {
	case err := <-s.exited:
		s.exited <- err
		return err
	case <-time.After(endsWithin):
		t.Fatalf("the gateway does not end\n%s", s.log.end())
		return nil
	}
}

// drained fails the test for a charge that stayed open, and for an answer that was paid for and not told. The gateways
// have ended; clients may still be reading.
func (s *stack) drained(t *testing.T, l *load) {
	t.Helper()
	settled := s.count(t, "settle")
	if open := s.count(t, "reserve") - settled; open != 0 {
		t.Errorf("%d charges were left open", open)
	}
	s.eventually(t, func() bool { _, told := l.judge.Told.Counts(); return told == settled })
}

// beside starts a second gateway on the databases of the first.
func (s *stack) beside(t *testing.T) *stack {
	t.Helper()
	other := *s
	address := pgtest.FreeAddress(t)
	other.url, other.log = "http://"+address, new(logBuffer)
	other.config = filepath.Join(s.dir, "beside.yaml")
	write(t, other.config, strings.NewReplacer(strings.TrimPrefix(s.url, "http://"), address, "anchor.json",
		"beside.json").Replace(read(t, s.config)))
	other.serve(t)
	t.Cleanup(other.kill)
	return &other
}

// TestSchemaMigratedUnderLoad migrates the control database, as a newer noisegate would, under two gateways with
// clients: from then on neither writes an entry, whatever it had begun, both end by themselves, neither starts again,
// and what was charged is right. When the migration is taken back, they serve again.
//
// covers: F21
func TestSchemaMigratedUnderLoad(t *testing.T) {
	t.Parallel()
	s := newStack(t, people(ampleBudget))
	other := s.beside(t)
	load := s.startLoad(t, "ana", 4)
	others := other.startLoad(t, "bob", 4)
	others.judge.Told = load.judge.Told
	_, answered := load.judge.Told.Counts()
	load.await(t, answered+40)
	s.exec(t, control, `BEGIN; LOCK TABLE noisegate.schema_migration IN ACCESS EXCLUSIVE MODE; CREATE TABLE noisegate.of_tomorrow (x int);
		INSERT INTO noisegate.schema_migration (number, name, checksum) SELECT max(number) + 1, 'tomorrow.sql', repeat('0', 64) FROM noisegate.schema_migration; COMMIT`)
	reserved, settled := s.count(t, "reserve"), s.count(t, "settle")
	for _, gateway := range []*stack{s, other} {
		if err := gateway.ended(t); err == nil || !strings.Contains(gateway.log.String(), "newer than this noisegate") {
			t.Errorf("on a newer schema the gateway ended with %v\n%s", err, gateway.log.end())
		}
	}
	load.check(t, s)
	if r, w := s.count(t, "reserve"), s.count(t, "settle"); r != reserved || w != settled || r-w > 8 { // one for each client
		t.Errorf("%d charges and %d answers were written by the end of the migration, %d and %d by the end of the gateways", reserved,
			settled, r, w)
	}
	s.eventually(t, func() bool { _, told := load.judge.Told.Counts(); return told == settled })
	for _, command := range []string{"serve", "migrate"} {
		cmd := s.command(command, "--config", s.config)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Run(); err == nil || !strings.Contains(out.String(), "newer than this noisegate") {
			t.Errorf("%s on a newer schema: %v, %s", command, err, &out)
		}
	}
	s.exec(t, control, "BEGIN; DROP TABLE noisegate.of_tomorrow; DELETE FROM noisegate.schema_migration WHERE name = 'tomorrow.sql'; COMMIT")
	s.serve(t)
	other.serve(t)
	_, answered = load.judge.Told.Counts()
	load.await(t, answered+10)
	load.stop()
	others.stop()
	load.check(t, s)
}

// TestOlderLedgersAreRefused puts states of the control database back that are older by one answer, by two, and so on,
// while the gateway is down: it answers for none of them, and for the newest it does.
//
// covers: F12
func TestOlderLedgersAreRefused(t *testing.T) {
	t.Parallel()
	s := newStack(t, people(ampleBudget))
	ana := s.analyst(t, "ana")
	backups := max(1, *kills/100)
	for i := range backups + 1 {
		if _, err := ana.Query(t.Context(), question(i), ""); err != nil {
			t.Fatal(err)
		}
		s.stop(t)
		s.exec(t, "postgres", fmt.Sprintf("CREATE DATABASE %s_%d TEMPLATE %[1]s", s.database(control), i))
		s.serve(t)
	}
	s.stop(t)
	for i := range backups + 1 {
		s.exec(t, "postgres", "DROP DATABASE "+s.database(control))
		s.exec(t, "postgres", fmt.Sprintf("ALTER DATABASE %s_%d RENAME TO %[1]s", s.database(control), i))
		if i == backups {
			break
		}
		before := len(s.log.String())
		s.serveUntil(t, "/healthz") // it is never ready
		s.eventually(t, func() bool { return strings.Contains(s.log.String()[before:], "older than it was") })
		if p := refusal(t, ana, question(200)); p.Status != http.StatusServiceUnavailable {
			t.Errorf("on a ledger that is older by %d: %v, want 503", backups-i, p)
		}
		s.kill()
	}
	s.serve(t)
	if _, err := ana.Query(t.Context(), question(100), ""); err != nil {
		t.Error(err)
	}
}
