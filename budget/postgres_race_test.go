package budget_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"noisegate/budget"
	"noisegate/internal/fault"
	"noisegate/internal/pgtest"
	"noisegate/mechanisms"
)

// hold locks the accounts of a scope until the returned function is called.
func hold(t *testing.T, d *pgtest.ControlDatabase, scope budget.Scope) (release func()) {
	t.Helper()
	conn := d.Conn(t, d.DSN)
	run := func(conn *pgx.Conn, sql string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	run(conn, "BEGIN")
	run(conn, "SELECT FROM noisegate.account WHERE scope = '"+string(scope)+"' FOR UPDATE")
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

// A charge is taken back through one gateway while another one, which holds the dataset's account, is about to see that it asks the
// same question. Neither waits for the other: a deadlock would cost the refund.
func testVoidMeetsItsQuestion(t *testing.T, d *pgtest.ControlDatabase) {
	here, there := open(t, d), open(t, d)
	whole, group := account(budget.DatasetScope, "", 100), account(budget.GroupScope, "g", 100)
	own := account(budget.AnalystScope, "ana", 100)
	reserve(t, here, charge("opens the accounts", mechanisms.Loss{Epsilon: 10}, whole, group, own))
	first, again := charge("first", mechanisms.Loss{Epsilon: 10}, whole, own), charge("again", mechanisms.Loss{Epsilon: 10}, whole, group, own)
	again.Fingerprint = first.Fingerprint

	letDataset, letGroup := hold(t, d, budget.DatasetScope), hold(t, d, budget.GroupScope)
	takes := reserving(t, here, first)
	queued(t, d, 1)
	asks := reserving(t, there, again) // it looked for earlier charges before the first was there
	queued(t, d, 2)
	letDataset()
	if got := <-takes; got.err != nil || got.outcome.Reserved == nil {
		t.Fatalf("%+v", got)
	}
	queued(t, d, 1) // the other one, with the dataset's account, for the group's
	voided := make(chan error, 1)
	go func() { voided <- here.Void(t.Context(), "first") }()
	queued(t, d, 2)
	letGroup()
	if err := <-voided; err != nil {
		t.Errorf("Void gave %v", err)
	}
	if got := <-asks; got.err != nil && fault.CodeOf(got.err) != fault.CodeRequestInFlight {
		t.Errorf("%+v", got)
	}
}

// Of one question through two gateways, with budget for one, the second is told of the first and not of an empty account.
func testReplayBeforeRefusal(t *testing.T, d *pgtest.ControlDatabase) {
	here, there := open(t, d), open(t, d)
	own := account(budget.AnalystScope, "ana", 20)
	reserve(t, here, charge("opens the account", mechanisms.Loss{Epsilon: 10}, own))
	first, again := charge("first", mechanisms.Loss{Epsilon: 10}, own), charge("again", mechanisms.Loss{Epsilon: 10}, own)
	again.Fingerprint = first.Fingerprint

	let := hold(t, d, budget.AnalystScope)
	takes := reserving(t, here, first)
	queued(t, d, 1)
	asks := reserving(t, there, again)
	queued(t, d, 2)
	let()
	if got := <-takes; got.err != nil || got.outcome.Reserved == nil {
		t.Errorf("%+v", got)
	}
	if got := <-asks; fault.CodeOf(got.err) != fault.CodeRequestInFlight {
		t.Errorf("%+v", got)
	}
}
