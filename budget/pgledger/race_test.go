package pgledger_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"noisegate.example/budget"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/pgtest"
	"noisegate.example/mechanisms"
)

// hold locks the dataset's ledger until the returned function is called.
func hold(t *testing.T, d *pgtest.ControlDatabase) (release func()) {
	t.Helper()
	conn := d.Conn(t, d.DSN)
	run := func(conn *pgx.Conn, sql string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	run(conn, "BEGIN")
	run(conn, "SELECT FROM noisegate.chain FOR UPDATE")
	return func() { run(conn, "ROLLBACK") }
}

// queued waits until so many backends wait for a lock.
func queued(t *testing.T, d *pgtest.ControlDatabase, want int) {
	t.Helper()
	conn := d.Conn(t, d.DSN)
	for range 1000 {
		var got int
		err := conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
			WHERE wait_event_type = 'Lock' AND datname = current_database()`).Scan(&got)
		if err != nil {
			t.Fatal(err)
		}
		if got == want {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("never %d backends that wait for a lock", want)
}

type reserved struct {
	outcome budget.Outcome
	err     error
}

func reserving(t *testing.T, l budget.Ledger, c budget.Charge) <-chan reserved {
	done := make(chan reserved, 1)
	go func() {
		outcome, err := l.Reserve(t.Context(), c)
		done <- reserved{outcome, err}
	}()
	return done
}

// A change of a dataset's ledger waits for a change through another gateway: there is one lock, so no deadlock.
func testOneAfterAnother(t *testing.T, d *pgtest.ControlDatabase) {
	own := account(budget.AnalystScope, "ana", 100)
	reserve(t, open(t, d), charge("first", mechanisms.Loss{Epsilon: 10}, own))
	reserve(t, open(t, d), charge("second", mechanisms.Loss{Epsilon: 10}, own))
	raised := own
	raised.Limit.Epsilon, raised.Origin = 200, budget.FromSteward
	changes := []func(budget.Ledger) error{
		func(l budget.Ledger) error { return l.Void(t.Context(), "first") },
		func(l budget.Ledger) error { return l.Settle(t.Context(), "second", mechanisms.Loss{}, []byte("a")) },
		func(l budget.Ledger) error { return l.SetLimit(t.Context(), "stella", raised) },
		func(l budget.Ledger) error { return l.Freeze(t.Context(), "stella", own.ID, true) },
		func(l budget.Ledger) error {
			return l.Refill(t.Context(), "stella", budget.Refill{Account: account(budget.DatasetScope, "", 0).ID, Epsilon: 1})
		},
	}
	release := hold(t, d)
	done := make(chan error)
	for i, change := range changes {
		l := open(t, d)
		go func() { done <- change(l) }()
		queued(t, d, i+1)
	}
	release()
	for range changes {
		if err := <-done; err != nil && fault.CodeOf(err) != fault.CodeRequestNotFound {
			t.Error(err)
		}
	}
}

// Of one question through two gateways, with budget for one, the second finds the first and not an empty account.
func testReplayBeforeRefusal(t *testing.T, d *pgtest.ControlDatabase) {
	here, there := open(t, d), open(t, d)
	own := account(budget.AnalystScope, "ana", 20)
	reserve(t, here, charge("opens the account", mechanisms.Loss{Epsilon: 10}, own))
	first, again := charge("first", mechanisms.Loss{Epsilon: 10}, own), charge("again", mechanisms.Loss{Epsilon: 10}, own)
	again.Fingerprint = first.Fingerprint

	release := hold(t, d)
	takes := reserving(t, here, first)
	queued(t, d, 1)
	asks := reserving(t, there, again)
	queued(t, d, 2)
	release()
	if got := <-takes; got.err != nil || got.outcome.Reserved == nil {
		t.Errorf("%+v", got)
	}
	if got := <-asks; fault.CodeOf(got.err) != fault.CodeRequestInFlight {
		t.Errorf("%+v", got)
	}
}

// Who gives up while the ledger is busy leaves nothing behind: what was not begun is not, and what was committed
// nevertheless is taken back.
func testGivenUp(t *testing.T, d *pgtest.ControlDatabase) {
	l := open(t, d)
	own := account(budget.AnalystScope, "ana", 100)
	reserve(t, l, charge("opens the account", mechanisms.Loss{Epsilon: 10}, own))
	release := hold(t, d)
	ctx, giveUp := context.WithCancel(t.Context())
	done := make(chan error, 2)
	for i, id := range []string{"begun", "queued"} {
		go func() {
			_, err := l.Reserve(ctx, charge(id, mechanisms.Loss{Epsilon: 20}, own))
			done <- err
		}()
		if i == 0 {
			queued(t, d, 1)
		} else {
			time.Sleep(20 * time.Millisecond) // it has no trace in the server
		}
	}
	giveUp()
	for range 2 {
		if err := <-done; fault.CodeOf(err) != fault.CodeDataUnavailable || !errors.Is(err, context.Canceled) {
			t.Errorf("Reserve gave %v", err)
		}
	}
	release()
	for range 1000 {
		entries, err := l.Entries(t.Context(), budget.Page{})
		if err != nil {
			t.Fatal(err)
		}
		if entries[0].Kind == budget.EntryVoid && entries[0].Reservation == "begun" {
			b, err := l.Balances(t.Context(), []budget.AccountID{own.ID})
			if err != nil || b[0].Used().Epsilon != 10 {
				t.Errorf("%+v, %v", b, err)
			}
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Error("what was given up is charged")
}

// A gateway ends what it reserved without looking. When another one has ended it meanwhile, each is told as if it had looked.
func testEndedElsewhere(t *testing.T, d *pgtest.ControlDatabase) {
	here, there := open(t, d), open(t, d)
	own := account(budget.AnalystScope, "ana", 100)
	for _, id := range []string{"same", "other", "bystander"} {
		reserve(t, here, charge(id, mechanisms.Loss{Epsilon: 10}, own))
	}
	for _, id := range []budget.ReservationID{"same", "other"} {
		if err := there.Expire(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	release := hold(t, d)
	failed := make(chan error, 1)
	go func() { failed <- here.Settle(t.Context(), "bystander", mechanisms.Loss{}, []byte("a")) }() // what follows is one batch
	queued(t, d, 1)
	same, other := make(chan error, 1), make(chan error, 1)
	go func() { same <- here.Expire(t.Context(), "same") }()
	go func() { other <- here.Settle(t.Context(), "other", mechanisms.Loss{}, []byte("a")) }()
	time.Sleep(20 * time.Millisecond)
	release()
	if err := <-failed; err != nil {
		t.Errorf("the bystander: %v", err)
	}
	if err := <-same; err != nil {
		t.Errorf("the same ending: %v", err)
	}
	if err := <-other; fault.CodeOf(err) != fault.CodeInternal {
		t.Errorf("another ending: %v", err)
	}
	if err := here.VerifyAll(t.Context()); err != nil {
		t.Error(err)
	}
}

// A gateway that replays what another one settled knows a head with that settlement in it, which receipts of the answer name.
func testReplayedElsewhere(t *testing.T, d *pgtest.ControlDatabase) {
	here, there := open(t, d), open(t, d)
	c := charge("asked there", mechanisms.Loss{Epsilon: 10}, account(budget.AnalystScope, "ana", 100))
	reserve(t, here, charge("first", mechanisms.Loss{}, c.Accounts...))
	reserve(t, there, c)
	if err := there.Settle(t.Context(), c.ID, c.Loss, []byte("answer")); err != nil {
		t.Fatal(err)
	}
	if stored, err := here.Replay(t.Context(), c); err != nil || stored == nil {
		t.Fatalf("%+v, %v", stored, err)
	}
	got, err := here.Head(t.Context(), "d")
	if want := there.Heads()[0]; err != nil || got != want {
		t.Errorf("the head is %+v, want %+v; %v", got, want, err)
	}
}
