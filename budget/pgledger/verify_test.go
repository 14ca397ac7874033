package pgledger_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"noisegate.example/budget"
	"noisegate.example/budget/journal"
	"noisegate.example/budget/pgledger"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/pgtest"
	"noisegate.example/mechanisms"
	"noisegate.example/migrations"
)

// pastOf is a ledger in which everything has happened, several times.
func pastOf(t *testing.T, d *pgtest.ControlDatabase) *pgledger.Ledger {
	t.Helper()
	l := open(t, d)
	whole, own := account(budget.DatasetScope, "", 1_000_000), account(budget.AnalystScope, "ana", 1_000_000)
	ends := []func(budget.ReservationID) error{
		func(id budget.ReservationID) error {
			return l.Settle(t.Context(), id, mechanisms.Loss{Epsilon: 7}, []byte("answer "+string(id)))
		},
		func(id budget.ReservationID) error { return l.Void(t.Context(), id) },
		func(id budget.ReservationID) error { return l.Expire(t.Context(), id) },
		func(budget.ReservationID) error { return nil },
	}
	for i := range 40 {
		c := charge(fmt.Sprintf("c%02d", i), mechanisms.Loss{Epsilon: 10}, whole, own)
		c.Mechanisms = []mechanisms.Parameters{{Mechanism: mechanisms.DiscreteLaplace, Sensitivity: "1", Scale: "10"}}
		c.Request = []byte(`{"sql": "SELECT count(*) FROM people"}`)
		reserve(t, l, c)
		if err := ends[i%len(ends)](c.ID); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{
		l.Refill(t.Context(), "stella", budget.Refill{Account: own.ID, Epsilon: 5, Reason: "more"}),
		l.Freeze(t.Context(), "stella", own.ID, true), l.Freeze(t.Context(), "stella", own.ID, false),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := l.VerifyAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	return l
}

// edits are 50 ways to tamper with a ledger as a superuser who switches triggers and constraints off.
func edits() []string {
	var all []string
	for _, set := range []string{
		"epsilon = epsilon - 1", "epsilon = 0", "unbounded = true", "rho = 5", "delta = 1", "at = at - interval '1 second'",
		"analyst = 'bob'", "account_ids = '{1}'", "digest = sha256('x')", "hash = sha256('x')", "charge_id = 'c39'",
		"kind = 'expire', digest = NULL",
		"seq = 100000", "dataset = 'other'",
	} {
		all = append(all, "UPDATE noisegate.entry SET "+set+" WHERE kind = 'settle' AND charge_id = 'c16'")
	}
	for _, set := range []string{
		"mechanisms = '[]'", "mechanisms = (mechanisms::text || ' ')::json", "digest = sha256('y')", "seq = 0 - seq", "charge_id = 'none'",
		"hash = NULL",
	} {
		all = append(all, "UPDATE noisegate.entry SET "+set+" WHERE kind = 'reserve' AND charge_id = 'c20'")
	}
	for _, where := range []string{
		"seq = (SELECT min(seq) FROM noisegate.entry)", "seq = (SELECT max(seq) FROM noisegate.entry)", "kind = 'void' AND charge_id = 'c01'",
		"kind = 'limit'", "kind = 'refill'", "kind = 'freeze'", "charge_id = 'c12'", "kind = 'reserve'", "seq > 50", "true",
	} {
		all = append(all, "DELETE FROM noisegate.entry WHERE "+where)
	}
	for _, set := range []string{
		"state = 'voided', answer = NULL, epsilon = 0", "epsilon = 1", "answer = 'forged'", "fingerprint = sha256('z')", "request = '{}'",
		"account_ids = '{2}'", "rho = 1",
	} {
		all = append(all, "UPDATE noisegate.charge SET "+set+" WHERE charge_id = 'c16'")
	}
	for _, set := range []string{
		"used_epsilon = used_epsilon - 10", "used_rho = 1", "used_epsilon = used_epsilon + 1", "epsilon_cap = 2000000, epsilon_ceiling = 2000000",
		"origin = CASE origin WHEN 'policy' THEN 'steward' ELSE 'policy' END", "replay_only = true", "frozen = true",
		"rate_per = 0, tranche_every = 1",
		"opened_at = opened_at - interval '1 day'",
	} {
		all = append(all, "UPDATE noisegate.account SET "+set+" WHERE name = 'ana'")
	}
	return append(all,
		"DELETE FROM noisegate.charge WHERE charge_id = 'c08'",
		"DELETE FROM noisegate.account WHERE name = 'ana'",
		"UPDATE noisegate.chain SET head = sha256('x')",
		"UPDATE noisegate.chain SET seq = seq - 1",
		"DELETE FROM noisegate.chain",
		"DELETE FROM noisegate.chain; DELETE FROM noisegate.account",
		"INSERT INTO noisegate.plan VALUES ('c16', '{100}', '{0}')", // slots that nobody paid for
		// Two entries change places.
		`UPDATE noisegate.entry SET seq = -7 WHERE charge_id = 'c03'; UPDATE noisegate.entry SET seq = (SELECT e.seq + 1000 FROM noisegate.entry e
			WHERE charge_id = 'c07') WHERE seq = -7; `,
	)
}

// save makes a copy of the ledger, which the returned function puts back.
func save(t *testing.T, d *pgtest.ControlDatabase) (restore func()) {
	t.Helper()
	tables := []string{"account", "charge", "entry", "chain", "plan", "policy"}
	d.Exec(t, "CREATE SCHEMA saved")
	t.Cleanup(func() { d.Exec(t, "DROP SCHEMA saved CASCADE") })
	back := "SET session_replication_role = replica;"
	for _, table := range tables {
		d.Exec(t, "CREATE TABLE saved."+table+" AS SELECT * FROM noisegate."+table)
		overriding := ""
		if table == "account" || table == "entry" {
			overriding = "OVERRIDING SYSTEM VALUE"
		}
		back += "INSERT INTO noisegate." + table + " " + overriding + " SELECT * FROM saved." + table + ";"
	}
	return func() {
		t.Helper()
		empty(t, d)
		d.Exec(t, back)
	}
}

// Whatever is edited, removed, put in or moved is found, and the dataset is not answered for any more.
func testEditsAreFound(t *testing.T, d *pgtest.ControlDatabase) {
	all := edits()
	if len(all) < 50 {
		t.Fatalf("%d edits", len(all))
	}
	found := 0
	pastOf(t, d).Close()
	restore := save(t, d)
	for i, edit := range all {
		restore()
		d.Exec(t, `SET session_replication_role = replica;
			ALTER TABLE noisegate.entry DROP CONSTRAINT IF EXISTS entry_is_sound, ALTER COLUMN seq SET GENERATED BY DEFAULT`, edit)
		l := open(t, d)
		err := l.VerifyAll(t.Context())
		var broken *journal.BrokenError
		if !errors.As(err, &broken) {
			t.Errorf("edit %d was not found (%v): %s", i, err, edit)
			continue
		}
		found++
		own := account(budget.AnalystScope, "ana", 1_000_000)
		if broken.Dataset == "d" {
			if _, err := l.Reserve(t.Context(), charge("after", mechanisms.Loss{Epsilon: 1}, own)); fault.CodeOf(err) != fault.CodeDataUnavailable {
				t.Errorf("edit %d: the dataset is answered for: %v", i, err)
			}
		}
		l.Close()
	}
	t.Logf("%d edits, %d found", len(all), found)
}

// What a newer program's migrations made of the ledger's guards says nothing against the ledger; without such migrations it does.
func testNewerSchema(t *testing.T, d *pgtest.ControlDatabase) {
	l := pastOf(t, d)
	defer l.Close()
	replaced := func(by string) {
		d.Exec(t, fmt.Sprintf(`DO $do$ BEGIN EXECUTE (SELECT replace(pg_get_functiondef(oid), prosrc, %s)
			FROM pg_proc WHERE pronamespace = 'noisegate'::regnamespace ORDER BY proname LIMIT 1); END $do$`, by))
	}
	defer replaced("ltrim(prosrc, ' ')")
	replaced("' ' || prosrc")
	d.Exec(t, "INSERT INTO noisegate.schema_migration VALUES (999, '999_later.sql', 'x')")
	_, err := l.Verify(t.Context(), budget.Head{Dataset: "d"})
	if fault.CodeOf(err) != fault.CodeDataUnavailable || !errors.Is(err, migrations.ErrNewer) {
		t.Errorf("a newer schema: %v", err)
	}
	d.Exec(t, "DELETE FROM noisegate.schema_migration WHERE number = 999")
	reserve(t, l, charge("later", mechanisms.Loss{Epsilon: 1}, account(budget.AnalystScope, "ana", 1_000_000)))
	var broken *journal.BrokenError
	if _, err := l.Verify(t.Context(), budget.Head{Dataset: "d"}); !errors.As(err, &broken) {
		t.Errorf("a function was replaced: %v", err)
	}
}

// An older ledger is put back while the gateway is down (its anchor knows), and under a running gateway (which knows itself).
func testOlderLedger(t *testing.T, d *pgtest.ControlDatabase) {
	own := account(budget.AnalystScope, "ana", 1_000_000)
	l := pastOf(t, d)
	anchor := journal.NewAnchor(filepath.Join(t.TempDir(), "anchor"))
	restore := save(t, d)
	reserve(t, l, charge("newer", mechanisms.Loss{Epsilon: 10}, own))
	if err := anchor.Write(l.Anchored()); err != nil {
		t.Fatal(err)
	}
	restore()
	_, err := l.Reserve(t.Context(), charge("running", mechanisms.Loss{Epsilon: 10}, own))
	var broken *journal.BrokenError
	if fault.CodeOf(err) != fault.CodeDataUnavailable || !errors.As(err, &broken) {
		t.Errorf("under a running gateway: %v", err)
	}
	restarted := open(t, d)
	if err := restarted.VerifyAll(t.Context()); err != nil {
		t.Errorf("without an anchor an older ledger is a good ledger, and got %v", err)
	}
	was, err := anchor.Read()
	if err != nil || len(was.Heads) != 1 {
		t.Fatal(was, err)
	}
	if err := open(t, d).VerifyAtStart(t.Context(), was, nil); !errors.As(err, &broken) || !broken.Held || broken.Seq != was.Heads[0].Seq {
		t.Errorf("with an anchor: %v", err)
	}
}

// Verification keeps up with long ledgers: it is part of starting.
func testVerificationIsFast(t *testing.T, d *pgtest.ControlDatabase) {
	l := open(t, d)
	var wait []<-chan error
	for i := range 64 {
		done := make(chan error, 1)
		wait = append(wait, done)
		go func() {
			for n := range 40 {
				if err := spend(t.Context(), l, int64(i*1000+n)); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for _, done := range wait {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	start := time.Now()
	verified, err := l.Verify(t.Context(), budget.Head{Dataset: "d"})
	took := time.Since(start)
	if err != nil || verified.Entries != 64*40*2+2 {
		t.Fatalf("%+v, %v", verified, err)
	}
	t.Logf("%d entries in %s: %.0f/s", verified.Entries, took, float64(verified.Entries)/took.Seconds())
	if took > 5*time.Second { // slower by far than it should be, and still no accident of a busy machine
		t.Errorf("%d entries took %s", verified.Entries, took)
	}
}
