package pgledger_test

import (
	"fmt"
	"testing"

	"noisegate.example/budget"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/pgtest"
	"noisegate.example/mechanisms"
)

// Two ledgers on one database, one written for another schema. That one reads, and writes nothing, whichever way it comes to write. A
// ledger that was in time before a migration writes nothing from the commit of that on, also when its charge had waited for it; and a
// migration waits for a writer.
func testOtherSchema(t *testing.T, d *pgtest.ControlDatabase) {
	own := account(budget.AnalystScope, "ana", 1000)
	right, other := open(t, d), open(t, d)
	loss := mechanisms.Loss{Epsilon: 1}
	reserve(t, right, charge("held", loss, own))
	entries := func() int {
		t.Helper()
		all, err := right.Entries(t.Context(), budget.Page{Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	for _, newer := range []int{-1, 2} { // older, then newer
		other.Believe(newer)
		before := entries()
		for name, write := range map[string]func(budget.Ledger) error{
			"reserve": func(l budget.Ledger) error { _, err := l.Reserve(t.Context(), charge("late", loss, own)); return err },
			"elsewhere": func(l budget.Ledger) error {
				c := charge("away", loss, own)
				c.Dataset, c.Accounts[0].ID.Dataset = "e", "e"
				_, err := l.Reserve(t.Context(), c)
				return err
			},
			"settle": func(l budget.Ledger) error { return l.Settle(t.Context(), "held", loss, []byte("a")) },
			"void":   func(l budget.Ledger) error { return l.Void(t.Context(), "held") },
			"limit": func(l budget.Ledger) error {
				a := own
				a.Limit.Epsilon, a.Origin = 2000, budget.FromSteward
				return l.SetLimit(t.Context(), "stella", a)
			},
			"freeze": func(l budget.Ledger) error { return l.Freeze(t.Context(), "stella", own.ID, true) },
			"policy": func(budget.Ledger) error {
				_, err := other.RecordPolicy(t.Context(), policy(own.ID.Dataset, 1))
				return err
			},
			"free": func(budget.Ledger) error { return other.RecordFreeReads(t.Context(), someReads(own.ID.Dataset)) },
			"keys": func(budget.Ledger) error {
				return other.RecordKeys(t.Context(), budget.SigningKeys{Dataset: own.ID.Dataset, Receipts: "k"})
			},
			"import": func(l budget.Ledger) error {
				return l.RecordImport(t.Context(), "stella", budget.Import{Dataset: own.ID.Dataset, Ensemble: "digits", Version: 1, Source: "a file"})
			},
		} {
			if err := write(other); fault.CodeOf(err) != fault.CodeDataUnavailable {
				t.Errorf("%s with a schema that is %+d: %v", name, newer, err)
			}
		}
		if got := entries(); got != before {
			t.Errorf("%d entries, and there were %d", got, before)
		}
		if b, err := other.Balances(t.Context(), []budget.AccountID{own.ID}); err != nil || len(b) != 1 {
			t.Errorf("reading: %+v, %v", b, err)
		}
	}
	for i := range 40 { // so that it writes without looking first
		reserve(t, right, charge(fmt.Sprint("before", i), loss, own))
	}

	owner := d.Conn(t, d.OwnerDSN)
	run := func(sql string) {
		t.Helper()
		if _, err := owner.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	run(`BEGIN; LOCK TABLE noisegate.schema_migration IN ACCESS EXCLUSIVE MODE;
		INSERT INTO noisegate.schema_migration (number, name, checksum) SELECT max(number) + 1, 'tomorrow.sql', repeat('0', 64) FROM noisegate.schema_migration`)
	waits := reserving(t, right, charge("waits", loss, own))
	queued(t, d, 1)
	run("COMMIT")
	if got := <-waits; fault.CodeOf(got.err) != fault.CodeDataUnavailable {
		t.Errorf("a charge that waited for a migration: %+v", got)
	}
	if _, err := right.Reserve(t.Context(), charge("after", loss, own)); fault.CodeOf(err) != fault.CodeDataUnavailable {
		t.Errorf("a charge after a migration: %v", err)
	}
	// The other one knows the schema of tomorrow: it was taken back by one, and forth by two.
	reserve(t, other, charge("tomorrow", loss, own))
	run("DELETE FROM noisegate.schema_migration WHERE name = 'tomorrow.sql'")
	reserve(t, right, charge("again", loss, own))

	release := hold(t, d) // a writer in the middle of its transaction
	writes := reserving(t, right, charge("writes", loss, own))
	queued(t, d, 1)
	migrates := make(chan error, 1)
	go func() {
		_, err := owner.Exec(t.Context(), "BEGIN; LOCK TABLE noisegate.schema_migration IN ACCESS EXCLUSIVE MODE; LOCK TABLE "+
			"noisegate.chain IN ACCESS EXCLUSIVE MODE; COMMIT")
		migrates <- err
	}()
	queued(t, d, 2)
	release()
	if got := <-writes; got.err != nil {
		t.Error(got.err)
	}
	if err := <-migrates; err != nil {
		t.Error(err)
	}
	if err := right.VerifyAll(t.Context()); err != nil {
		t.Error(err)
	}
}
