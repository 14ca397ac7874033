package budget_test

import (
	"fmt"
	"strconv"
	"testing"

	"noisegate/budget"
	"noisegate/internal/pgtest"
	"noisegate/mechanisms"
)

// A crash takes back the numbers that transactions had drawn which it took back as well, and whoever comes first afterwards draws them again. A gateway whose
// answer was lost in the crash must not take another's entry of that number for its own.
func testNumberGivenTwice(t *testing.T, d *pgtest.ControlDatabase) {
	here, there := open(t, d), open(t, d)
	own := account(budget.AnalystScope, "ana", 100)
	elsewhere := account(budget.AnalystScope, "ana", 100)
	elsewhere.ID.Dataset = "e"
	onE := func(id string) budget.Charge {
		c := charge(id, mechanisms.Loss{Epsilon: 10}, elsewhere)
		c.Dataset = "e"
		return c
	}
	reserve(t, there, onE("before"))
	reserve(t, here, charge("first", mechanisms.Loss{Epsilon: 10}, own))
	var last int64
	if err := d.Conn(t, d.DSN).QueryRow(t.Context(), "SELECT max(seq) FROM noisegate.entry").Scan(&last); err != nil {
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
	if err := here.VerifyAll(t.Context(), nil); err != nil {
		t.Error(err)
	}
}
