package faults

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"noisegate.example/api"
	"noisegate.example/integration/invariants"
	"noisegate.example/internal/pgserver"
	"noisegate.example/internal/pgtest"
)

// healsWithin is how soon there must be an answer again after a database is back.
const healsWithin = 3 * time.Second

// TestPostgresStoppedUnderLoad stops the ledger's server, in turn as a power failure would and with SIGKILL, and starts
// it again. Two gateways are at work, so that each finds what the other wrote where its own transaction was lost.
//
// covers: F03
func TestPostgresStoppedUnderLoad(t *testing.T) {
	s := ownSite(t)
	url, other := s.inProcess(t, never(), nil), s.inProcess(t, never(), nil)
	n := &numbers{}
	var waits invariants.Waits
	for i := range *restarts {
		s.refill(t, url, 200)
		l, others := s.load(t, n, url, 8), s.load(t, n, other, 8)
		_, before := s.judge.Told.Counts()
		s.answered(t, before+1+rand.IntN(40))
		time.Sleep(time.Duration(rand.IntN(50)) * time.Millisecond)
		if i%2 == 0 {
			s.server.StopImmediate()
		} else {
			s.server.Kill()
		}
		if err := s.server.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		waits = append(waits, s.heals(t, n, url))
		l.stop(t)
		others.stop(t)
		s.check(t, "a stop of the server")
	}
	asked, answered := s.judge.Told.Counts()
	soon, text := waits.Within(healsWithin)
	t.Logf("%d stops, %d questions, %d answers; the first answer: %s", *restarts, asked, answered, text)
	if !soon {
		t.Errorf("the first answers come too late: %s", text)
	}
}

// never is a trap that does not spring.
func never() *trap { return newTrap("", 0, func() {}) }

// heals asks until there is an answer, and gives how long that took.
func (s *site) heals(t *testing.T, n *numbers, url string) time.Duration {
	t.Helper()
	start := time.Now()
	ana := api.NewClient(url, "eve") // who has a budget of her own
	for time.Since(start) < time.Minute {
		answer, err := ana.Query(t.Context(), question(n.next()), "")
		var p *api.Problem
		switch {
		case err == nil:
			s.judge.Told.Told("", answer)
		case errors.As(err, &p) && p.Code == "budget/exhausted": // also a sign of life
		default:
			time.Sleep(5 * time.Millisecond)
			continue
		}
		return time.Since(start)
	}
	t.Fatal("no answer any more")
	return 0
}

// TestBackendsTerminatedUnderLoad ends every connection of the gateway to the ledger, in the middle of whatever they do.
//
// covers: F04
func TestBackendsTerminatedUnderLoad(t *testing.T) {
	s := newSite(t)
	url := s.inProcess(t, never(), nil)
	n := &numbers{}
	for range *rounds {
		s.refill(t, url, 300)
		l := s.load(t, n, url, 8)
		for range 20 {
			time.Sleep(20 * time.Millisecond)
			s.control.Exec(t, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename LIKE 'noisegate%'")
		}
		s.heals(t, n, url)
		l.stop(t)
		s.check(t, "the end of all connections")
	}
}

// TestReadOnlyLedger makes the control database read-only, as a standby is: nobody gets an answer (I9).
//
// covers: F11
func TestReadOnlyLedger(t *testing.T) {
	s := newSite(t)
	url := s.inProcess(t, never(), nil)
	n := &numbers{}
	for range *rounds {
		s.refill(t, url, 100)
		s.control.Exec(t, "ALTER ROLE noisegate IN DATABASE "+s.control.Name+" SET default_transaction_read_only = on",
			"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename LIKE 'noisegate%'")
		s.nobodyIsAnswered(t, n, url)
		s.control.Exec(t, "ALTER ROLE noisegate IN DATABASE "+s.control.Name+" RESET default_transaction_read_only",
			"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename LIKE 'noisegate%'")
		s.heals(t, n, url)
		s.check(t, "a time without writing")
	}
}

// nobodyIsAnswered asks several questions, which must all be refused as data/unavailable.
func (s *site) nobodyIsAnswered(t *testing.T, n *numbers, url string) {
	t.Helper()
	for range 5 {
		_, err := api.NewClient(url, "ana0").Query(t.Context(), question(n.next()), "")
		var p *api.Problem
		if !errors.As(err, &p) || p.Code != "data/unavailable" {
			t.Errorf("got %v, want data/unavailable", err)
		}
	}
}

// TestDiskFull lets the ledger's server run out of space under load, on a small separate file system, and gives the space back. Only root
// may mount one: elsewhere the test says so and checks nothing of it.
//
// covers: F09
func TestDiskFull(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("F09 is left out: only root can mount a small file system")
		return
	}
	dir := mountSmall(t)
	programs, err := pgtest.Programs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	server, err := pgserver.Start(t.Context(), pgserver.Options{Programs: programs, Dir: filepath.Join(dir, "server"),
		Settings: map[string]string{
			"fsync": "on", "full_page_writes": "on", "max_wal_size": "32MB", "min_wal_size": "32MB", "shared_buffers": "16MB"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	s := siteOn(t, server)
	url := s.inProcess(t, never(), nil)
	n := &numbers{}
	for range *rounds {
		s.refill(t, url, 100_000)
		l := s.load(t, n, url, 8)
		filler := filepath.Join(dir, "filler")
		fill(t, filler)
		unanswered(t, l)
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		// A server that cannot write its log ends itself; its supervisor starts it again.
		if err := server.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.heals(t, n, url)
		l.stop(t)
		s.check(t, "a full disk")
	}
}

// mountSmall mounts a file system with room for a fresh server and little else.
func mountSmall(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "noisegate-small-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=128m,mode=755"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Unmount(dir, syscall.MNT_DETACH)
		_ = os.Remove(dir)
	})
	return dir
}

// fill writes until there is no space left.
func fill(t *testing.T, file string) {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for block := make([]byte, 1<<16); len(block) > 0; block = block[:len(block)/2] {
		for err = nil; err == nil; {
			_, err = f.Write(block)
		}
		if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, io.ErrShortWrite) {
			t.Fatal(err)
		}
	}
}

// unanswered waits until the clients of a load get no answers any more.
func unanswered(t *testing.T, l *load) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		_, before := l.told.Counts()
		time.Sleep(300 * time.Millisecond)
		if _, after := l.told.Counts(); after == before {
			return
		}
	}
	t.Fatal("a full disk stopped nobody")
}
