package pgledger_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"noisegate.example/budget"
	"noisegate.example/budget/journal"
	"noisegate.example/internal/pgtest"
	"noisegate.example/mechanisms"
	"noisegate.example/migrations"
)

// A ledger from before the chain verifies after its migration, replays what it answered, ends what is open, and goes on
// in a chain. What was edited in it since is found as far as its balances tell.
func testBeforeTheChain(t *testing.T, d *pgtest.ControlDatabase) {
	owner := d.Conn(t, d.OwnerDSN)
	names, err := filepath.Glob("../../migrations/00[123]_*.sql")
	if err != nil || len(names) != 3 {
		t.Fatal(names, err)
	}
	record := "CREATE TABLE noisegate.schema_migration (number int PRIMARY KEY, name text, checksum text)"
	for _, statements := range []string{record, textOf(t, names[0]), textOf(t, names[1]), textOf(t, names[2]),
		textOf(t, "testdata/ledger_before_chain.sql")} {
		if _, err := owner.Exec(t.Context(), statements); err != nil {
			t.Fatal(err)
		}
	}
	for i, name := range names {
		if _, err := owner.Exec(t.Context(), "INSERT INTO noisegate.schema_migration VALUES ($1, $2, $3)",
			i+1, filepath.Base(name), fmt.Sprintf("%x", sha256.Sum256([]byte(textOf(t, name))))); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := migrations.Apply(t.Context(), owner); err != nil {
		t.Fatal(err)
	}

	l := open(t, d)
	verified := func() budget.Verified {
		t.Helper()
		v, err := l.Verify(t.Context(), budget.Head{Dataset: "d"})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if v := verified(); v.Unchained != 19 || v.Entries != 0 {
		t.Errorf("%+v", v)
	}
	own := account(budget.AnalystScope, "ana", 1)
	replays := charge("replays", mechanisms.Loss{Epsilon: 10}, own)
	replays.Fingerprint, replays.IdempotencyKey = charge("lost", mechanisms.Loss{}).Fingerprint, "a key of today"
	if got, err := l.Reserve(t.Context(), replays); err != nil || got.Replay == nil || string(got.Replay.Answer) != `{"n": 42}` {
		t.Errorf("%+v, %v", got, err)
	}
	if err := errors.Join(
		l.Settle(t.Context(), "open", mechanisms.Loss{Epsilon: 4}, []byte("late")),
		l.Void(t.Context(), "gaussian"),
	); err != nil {
		t.Fatal(err)
	}
	draws := charge("draws", mechanisms.Loss{}, own)
	draws.Draws = &budget.Draw{Plan: "plan", From: 2, Count: 1}
	reserve(t, l, draws)
	b, err := l.Balances(t.Context(), []budget.AccountID{own.ID})
	if want := (mechanisms.Loss{Epsilon: 7 + 10 + 10 + 20 + 4, Rho: 3, Delta: 2}); err != nil || b[0].Spent != want ||
		!b[0].Reserved.IsZero() {
		t.Errorf("%+v, %v, want %+v", b, err, want)
	}
	if v := verified(); v.Unchained != 19 || v.Entries != 3 {
		t.Errorf("%+v", v)
	}

	d.Exec(t, "ALTER TABLE noisegate.entry DROP CONSTRAINT entry_is_sound",
		"SET session_replication_role = replica; UPDATE noisegate.entry SET epsilon = 6 WHERE charge_id = 'answered' AND kind = 'settle'")
	var broken *journal.BrokenError
	if err := l.VerifyAll(t.Context()); !errors.As(err, &broken) || broken.Seq != 5 {
		t.Errorf("an edit of the time before: %v", err)
	}
}

func textOf(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
