package pgledger_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"noisegate.example/budget"
	"noisegate.example/budget/journal"
	"noisegate.example/budget/pgledger"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/pgtest"
	"noisegate.example/mechanisms"
)

// An account that was edited is found by the first charge that looks at it, also where other gateways wrote since this
// one verified; and accounts that changed by the rules are not found to be edited.
func testEditsAreNotBelieved(t *testing.T, d *pgtest.ControlDatabase) {
	whole, own := account(budget.DatasetScope, "", 1000), account(budget.AnalystScope, "ana", 100)
	first := open(t, d)
	n := 0
	spend := func(l budget.Ledger) error {
		n++
		c := charge(fmt.Sprint("c", n), mechanisms.Loss{Epsilon: 1}, whole, own)
		_, err := l.Reserve(t.Context(), c)
		if err == nil && n%2 == 0 {
			err = l.Settle(t.Context(), c.ID, mechanisms.Loss{Epsilon: 1}, []byte("{}"))
		}
		return err
	}
	for range 6 {
		if err := spend(first); err != nil {
			t.Fatal(err)
		}
	}
	const superuser = "SET session_replication_role = replica; "
	d.Exec(t, "CREATE TABLE saved_account AS TABLE noisegate.account")
	for name, edit := range map[string]string{
		"less used": "UPDATE noisegate.account SET used_epsilon = 0, reserved_epsilon = 0 WHERE name = 'ana'",
		"more cap":  "UPDATE noisegate.account SET epsilon_cap = 10000, epsilon_ceiling = 10000 WHERE name = 'ana'",
		"dataset":   "UPDATE noisegate.account SET used_epsilon = used_epsilon - 1 WHERE scope = 'dataset'",
		"another":   "DELETE FROM noisegate.account WHERE name = 'ana'",
	} {
		second := open(t, d)
		if err := second.VerifyAll(t.Context()); err != nil {
			t.Fatal(err)
		}
		d.Exec(t, superuser+edit)
		err := spend(second)
		if broken := (*journal.BrokenError)(nil); fault.CodeOf(err) != fault.CodeDataUnavailable || !errors.As(err, &broken) {
			t.Errorf("%s: %v", name, err)
		}
		if len(second.Broken()) != 1 {
			t.Errorf("%s: nobody is told", name)
		}
		d.Exec(t, superuser+"DELETE FROM noisegate.account; INSERT INTO noisegate.account OVERRIDING SYSTEM VALUE TABLE saved_account")
	}
	d.Exec(t, "DROP TABLE saved_account")

	second, third := open(t, d), open(t, d)
	for _, l := range []*pgledger.Ledger{second, third} {
		if err := l.VerifyAll(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	bob := account(budget.AnalystScope, "bob", 10)
	bob.Origin = budget.FromSteward
	for range 10 { // in turn, with accounts opened, refilled and frozen in between
		for _, l := range []budget.Ledger{first, second, third} {
			if err := spend(l); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(first.SetLimit(t.Context(), "stella", bob), second.Refill(t.Context(), "stella",
			budget.Refill{Account: whole.ID, Epsilon: 5, Reason: "more"}), third.Freeze(t.Context(), "stella", bob.ID, n%4 == 0)); err != nil {
			t.Fatal(err)
		}
	}
	d.Exec(t, superuser+"UPDATE noisegate.account SET used_epsilon = 1, reserved_epsilon = 0 WHERE name = 'ana'")
	if err := spend(third); fault.CodeOf(err) != fault.CodeDataUnavailable {
		t.Errorf("after others wrote: %v", err)
	}
}

// While entries of one dataset are read, charges of another are admitted and settled.
func testOneDatasetIsRead(t *testing.T, d *pgtest.ControlDatabase) {
	l := open(t, d)
	if err := l.VerifyAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer l.Reads("another")()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		c := charge("c", mechanisms.Loss{Epsilon: 1}, account(budget.DatasetScope, "", 1000))
		_, err := l.Reserve(ctx, c)
		if err == nil {
			err = l.Settle(ctx, c.ID, mechanisms.Loss{Epsilon: 1}, []byte("{}"))
		}
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-ctx.Done():
		t.Error("a charge waits for the entries of another dataset")
	}
}
