package pgledger_test

import (
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"noisegate.example/budget"
	"noisegate.example/budget/journal"
	"noisegate.example/internal/pgtest"
	"noisegate.example/mechanisms"
)

// A crash takes back transactions and the numbers that they had drawn, and the first transaction afterwards draws these again. A gateway
// whose answer was lost in the crash must not take another's entry of that number for its own.
func testNumberGivenTwice(t *testing.T, d *pgtest.ControlDatabase) {
	opener, here, there := open(t, d), open(t, d), open(t, d) // here and there have drawn no numbers in advance
	own := account(budget.AnalystScope, "ana", 100)
	elsewhere := account(budget.AnalystScope, "ana", 100)
	elsewhere.ID.Dataset = "e"
	onE := func(id string) budget.Charge {
		c := charge(id, mechanisms.Loss{Epsilon: 10}, elsewhere)
		c.Dataset = "e"
		return c
	}
	reserve(t, opener, onE("before"))
	reserve(t, opener, charge("first", mechanisms.Loss{Epsilon: 10}, own))
	var last int64
	if err := d.Conn(t, d.DSN).QueryRow(t.Context(), "SELECT last_value FROM noisegate.entry_seq_seq").Scan(&last); err != nil {
		t.Fatal(err)
	}

	blocker := d.Conn(t, d.DSN)
	if _, err := blocker.Exec(t.Context(), "BEGIN; LOCK TABLE noisegate.entry IN EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	lost := reserving(t, here, charge("lost", mechanisms.Loss{Epsilon: 10}, own))
	backend := waiting(t, d) // it has its number, and the dataset's lock
	holder := d.Conn(t, d.DSN)
	held := make(chan error, 1)
	go func() {
		_, err := holder.Exec(t.Context(), "BEGIN; SELECT FROM noisegate.chain WHERE dataset = 'd' FOR UPDATE")
		held <- err
	}()
	queued(t, d, 2)
	d.Exec(t, "SELECT pg_terminate_backend("+strconv.Itoa(backend)+")")
	if err := <-held; err != nil {
		t.Fatal(err)
	}
	if _, err := blocker.Exec(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	d.Exec(t, fmt.Sprintf("SELECT setval('noisegate.entry_seq_seq', %d)", last))
	reserve(t, there, onE("elsewhere"))
	if _, err := holder.Exec(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}

	if got := <-lost; got.err != nil || got.outcome.Reserved == nil {
		t.Fatalf("%+v", got)
	}
	b, err := here.Balances(t.Context(), []budget.AccountID{own.ID})
	if err != nil || b[0].Reserved != (mechanisms.Loss{Epsilon: 20}) {
		t.Errorf("I2: a reservation was acknowledged that is not in the ledger: %+v, %v", b, err)
	}
	if err := here.VerifyAll(t.Context()); err != nil {
		t.Error(err)
	}
}

// A standby that lagged takes over, and another gateway, which has not seen what is lost, writes beyond it before this
// one looks: more entries than there were do not make up for the ones that are gone.
func testOlderLedgerWrittenOn(t *testing.T, d *pgtest.ControlDatabase) {
	here, there := open(t, d), open(t, d)
	own := account(budget.AnalystScope, "ana", 100)
	reserve(t, here, charge("kept", mechanisms.Loss{Epsilon: 10}, own))
	restore := save(t, d)
	reserve(t, here, charge("lost", mechanisms.Loss{Epsilon: 10}, own))
	restore()
	d.Exec(t, "SELECT setval('noisegate.entry_seq_seq', (SELECT max(seq) FROM noisegate.entry))")
	for i := range 3 {
		reserve(t, there, charge(fmt.Sprint("beyond ", i), mechanisms.Loss{Epsilon: 10}, own))
	}
	var broken *journal.BrokenError
	if err := here.Settle(t.Context(), "lost", mechanisms.Loss{Epsilon: 10}, []byte("a")); !errors.As(err, &broken) {
		t.Errorf("what is lost was settled: %v", err)
	}
	if _, err := here.Reserve(t.Context(), charge("more", mechanisms.Loss{Epsilon: 10}, own)); !errors.As(err, &broken) {
		t.Errorf("the ledger is charged further: %v", err)
	}
	if _, err := here.Replay(t.Context(), charge("kept", mechanisms.Loss{Epsilon: 10}, own)); !errors.As(err, &broken) {
		t.Errorf("the ledger answers further: %v", err)
	}
	if err := here.Check(t.Context()); !errors.As(err, &broken) {
		t.Errorf("the ledger is said to be well: %v", err)
	}
	if err := here.Attend(t.Context()); err != nil { // as a gateway does each second: others are told
		t.Error(err)
	}
	if _, err := there.Reserve(t.Context(), charge("their own", mechanisms.Loss{Epsilon: 10}, own)); !errors.As(err, &broken) || !broken.Held {
		t.Errorf("a gateway that saw nothing of it: %v", err)
	}
	if err := there.Check(t.Context()); !errors.As(err, &broken) || !broken.Held {
		t.Errorf("the same: %v", err)
	}
}

// A batch that ends a charge and asks its question again replays the answer, as if one had come after the other.
func testAskedAsItEnds(t *testing.T, d *pgtest.ControlDatabase) {
	l := open(t, d)
	own := account(budget.AnalystScope, "ana", 100)
	for _, id := range []string{"other", "first"} {
		reserve(t, l, charge(id, mechanisms.Loss{Epsilon: 10}, own))
	}
	again := charge("again", mechanisms.Loss{Epsilon: 10}, own)
	again.Fingerprint = charge("first", mechanisms.Loss{}).Fingerprint
	release := hold(t, d)
	ended := make(chan error, 2)
	go func() { ended <- l.Expire(t.Context(), "other") }() // what follows is one batch
	queued(t, d, 1)
	go func() { ended <- l.Settle(t.Context(), "first", mechanisms.Loss{Epsilon: 4}, []byte("a")) }()
	time.Sleep(50 * time.Millisecond)
	asks := reserving(t, l, again)
	time.Sleep(50 * time.Millisecond)
	release()
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if got := <-asks; got.err != nil || got.outcome.Replay == nil || string(got.outcome.Replay.Answer) != "a" {
		t.Errorf("%+v", got)
	}
	if err := l.VerifyAll(t.Context()); err != nil {
		t.Error(err)
	}
}
