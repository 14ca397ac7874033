package faults

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"noisegate.example/integration/invariants"
	"noisegate.example/internal/pgtest"
)

// readyWithin is how soon a gateway must be ready after it was killed.
const readyWithin = 2 * time.Second

// TestKillAtEveryPoint kills the gateway with SIGKILL at every step of a query, under load, again and again on one ledger, which a
// second gateway that stays alive draws on as well.
//
// covers: F02 F21 A67
func TestKillAtEveryPoint(t *testing.T) {
	s := newSite(t)
	s.installHold(t)
	survivor := s.inProcess(t, never(), nil)
	n := &numbers{}
	o := orders{Databases: s.databases, Address: pgtest.FreeAddress(t)}
	var waits invariants.Waits
	for range *killsPerPoint {
		for _, p := range points() {
			o.KillAt, o.Visit = p, int64(1+rand.IntN(12))
			c, took := startChild(t, o)
			waits = append(waits, took)
			if p.inDatabase() {
				s.refill(t, c.url, 1000) // while PostgreSQL is held, nobody can give more
			} else {
				s.refill(t, c.url, 30)
			}
			l := s.load(t, n, c.url, 4)
			var others *load
			beside := func() { others = s.load(t, n, survivor, 2) }
			if p.inDatabase() {
				s.killWhileHeld(t, c, p, beside)
			} else {
				beside()
				s.patiently(t, survivor, "the trap does not spring", c.dead)
			}
			l.stop(t)
			others.stop(t)
			s.check(t, "a kill "+string(p))
		}
	}
	asked, answered := s.judge.Told.Counts()
	soon, text := waits.Within(readyWithin)
	t.Logf("%d kills, %d questions, %d answers; ready again: %s", len(waits), asked, answered, text)
	if !soon {
		t.Errorf("gateways are ready too late: %s", text)
	}
	if answered == 0 {
		t.Error("no question was answered: the test asked nothing")
	}
}

// The locks that PostgreSQL waits for in the middle of a reservation.
const (
	holdStatement = 4711 // in the statement that writes the reservation's entry
	holdCommit    = 4712 // in the transaction's commit
)

// installHold lets a test hold PostgreSQL itself in the middle of a reservation. The holder of a trigger's lock holds PostgreSQL.
func (s *site) installHold(t *testing.T) {
	t.Helper()
	s.control.Exec(t, `
		CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
		BEGIN
			PERFORM pg_advisory_xact_lock_shared(TG_ARGV[0]::bigint);
			RETURN NULL;
		END $$`,
		`CREATE TRIGGER hold_statement AFTER INSERT ON noisegate.entry FOR EACH ROW WHEN (NEW.kind = 'reserve') EXECUTE FUNCTION hold(4711)`,
		`CREATE CONSTRAINT TRIGGER hold_commit AFTER INSERT ON noisegate.entry DEFERRABLE INITIALLY DEFERRED
			FOR EACH ROW WHEN (NEW.kind = 'reserve') EXECUTE FUNCTION hold(4712)`)
}

// killWhileHeld kills the gateway while PostgreSQL is held with one of its reservations, and then lets PostgreSQL go on: what
// it had not been told to commit goes, and what it had been told to commit stays. It calls its last argument once the reservation is held:
// others queue behind it.
func (s *site) killWhileHeld(t *testing.T, c *child, at point, beside func()) {
	t.Helper()
	time.Sleep(time.Duration(rand.IntN(50)) * time.Millisecond)
	conn, err := pgx.Connect(t.Context(), s.super)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context())) // and the lock goes with the connection
	lock := holdStatement
	if at == beforeCommit {
		lock = holdCommit
	}
	if _, err := conn.Exec(t.Context(), "SELECT pg_advisory_lock($1::bigint)", lock); err != nil {
		t.Fatal(err)
	}
	within(t, "no reservation comes to "+string(at), func() (held bool) {
		const waits = "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted)"
		if err := conn.QueryRow(t.Context(), waits).Scan(&held); err != nil {
			t.Fatal(err)
		}
		return held
	})
	beside()
	time.Sleep(time.Duration(rand.IntN(10)) * time.Millisecond)
	c.kill()
}

// patiently waits until something happens that questions lead to, and lets clients ask more when they have nothing left.
func (s *site) patiently(t *testing.T, survivor, otherwise string, happened func() bool) {
	t.Helper()
	asked := time.Now()
	within(t, otherwise, func() bool {
		if time.Since(asked) > time.Second {
			s.refill(t, survivor, 30)
			asked = time.Now()
		}
		return happened()
	})
}
