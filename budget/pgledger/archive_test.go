package pgledger_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"noisegate.example/budget"
	"noisegate.example/budget/journal"
	"noisegate.example/budget/pgledger"
	"noisegate.example/internal/pgtest"
	"noisegate.example/mechanisms"
)

// archived moves what is older than now to a file.
func archived(t *testing.T, d *pgtest.ControlDatabase, path string, signer *journal.Signer) (journal.Archived, error) {
	t.Helper()
	return pgledger.Archive(t.Context(), pgledger.ArchiveOrder{OwnerDSN: d.OwnerDSN, Dataset: "d", Before: time.Now(), By: "operator",
		Path: path, Signer: signer})
}

// spendSome makes charges that end in each way; the last ones stay open.
func spendSome(t *testing.T, l *pgledger.Ledger, prefix string, open int) {
	t.Helper()
	whole, own := account(budget.DatasetScope, "", 1_000_000), account(budget.AnalystScope, "ana", 1_000_000)
	for i := range 12 + open {
		c := charge(fmt.Sprintf("%s%02d", prefix, i), mechanisms.Loss{Epsilon: 10}, whole, own)
		c.Mechanisms = []mechanisms.Parameters{{Mechanism: mechanisms.DiscreteLaplace, Sensitivity: "1", Scale: "10"}}
		if i%4 == 1 && i < 12 {
			c.Fingerprint = [32]byte{'a', 'g', 'a', 'i', 'n'} // one question, asked over and over
		}
		reserve(t, l, c)
		if i >= 12 {
			continue
		}
		var err error
		switch i % 4 {
		case 0, 2:
			err = l.Settle(t.Context(), c.ID, mechanisms.Loss{Epsilon: 7}, []byte("answer "+string(c.ID)))
		case 1:
			err = l.Void(t.Context(), c.ID)
		default:
			err = l.Expire(t.Context(), c.ID)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// verifiesWhole looks at the ledger as a start without checkpoints does.
func verifiesWhole(t *testing.T, d *pgtest.ControlDatabase) error {
	t.Helper()
	l := open(t, d)
	defer l.Close()
	return l.VerifyAtStart(t.Context(), journal.Anchored{}, nil)
}

// What is archived is in the file, the rest verifies, and gateways that run notice nothing: answers, balances, plans and receipts stay.
func testArchive(t *testing.T, d *pgtest.ControlDatabase) {
	l, signer, dir := open(t, d), newSigner(t), t.TempDir()
	plan := charge("plan", mechanisms.Loss{Epsilon: 20}, account(budget.DatasetScope, "", 1_000_000),
		account(budget.AnalystScope, "ana", 1_000_000))
	plan.Registers = []mechanisms.Slot{{Epsilon: 10}, {Rho: 5}}
	reserve(t, l, plan)
	if err := l.Settle(t.Context(), "plan", plan.Loss, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if err := l.RecordKeys(t.Context(), budget.SigningKeys{Dataset: plan.Dataset, Stewards: []string{"sam=1"}}); err != nil {
		t.Fatal(err)
	}
	name, err := l.LedgerName(t.Context(), plan.Dataset)
	if err != nil || name == budget.NoLedger {
		t.Fatalf("the ledger's name: %q, %v", name, err)
	}
	spendSome(t, l, "a", 0)
	if err := l.VerifyAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	known := l.Checkpoints()
	spendSome(t, l, "b", 2) // two are open: the archive ends before them
	before, err := l.Settlement(t.Context(), "a00")
	if err != nil {
		t.Fatal(err)
	}
	first, err := archived(t, d, filepath.Join(dir, "1"), signer)
	if err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"a running gateway, new": l.VerifyNew(t.Context()), "a running gateway, whole": l.VerifyAll(t.Context()),
		"a start":                        verifiesWhole(t, d),
		"a start from an old checkpoint": open(t, d).VerifyAtStart(t.Context(), l.Anchored(), known),
		"a start from an anchor":         open(t, d).VerifyAtStart(t.Context(), l.Anchored(), nil),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if after, err := l.Settlement(t.Context(), "a00"); err != nil || after != before {
		t.Errorf("the receipt of an archived charge: %+v, before %+v, %v", after, before, err)
	}
	if after, err := open(t, d).LedgerName(t.Context(), plan.Dataset); err != nil || after != name {
		t.Errorf("the ledger's name: %q, before %q, %v", after, name, err)
	}
	again := charge("again", mechanisms.Loss{Epsilon: 10}, account(budget.DatasetScope, "", 1_000_000))
	again.Fingerprint = charge("a00", mechanisms.Loss{}).Fingerprint
	if stored, err := l.Replay(t.Context(), again); err != nil || stored == nil || string(stored.Answer) != "answer a00" {
		t.Errorf("the replay of an archived charge: %v, %v", stored, err)
	}
	drawing := charge("draws", mechanisms.Loss{}, plan.Accounts...)
	drawing.Draws = &budget.Draw{Plan: "plan", Count: 1}
	reserve(t, l, drawing)
	for _, id := range []budget.ReservationID{"draws", "b12", "b13"} {
		if err := l.Settle(t.Context(), id, mechanisms.Loss{}, []byte("late")); err != nil {
			t.Fatal(err)
		}
	}
	spendSome(t, l, "c", 0)
	second, err := archived(t, d, filepath.Join(dir, "2"), signer)
	if err != nil {
		t.Fatal(err)
	}
	if second.After != first.Seq {
		t.Errorf("the second file follows %d, and the first ends with %d", second.After, first.Seq)
	}
	if after, err := l.Settlement(t.Context(), "draws"); err != nil || after.Charged.Plan == nil || after.Charged.Plan.ID != "plan" ||
		after.Charged.Plan.Count != 1 || after.Charged.Plan.Loss != plan.Loss || len(after.Charged.Plan.Accounts) != 2 {
		t.Errorf("the receipt of an archived draw: %+v, %v", after.Charged, err)
	}
	spendSome(t, l, "d", 1)
	if err := errors.Join(l.VerifyAll(t.Context()), verifiesWhole(t, d)); err != nil {
		t.Error(err)
	}
	t.Logf("%d and %d entries archived", first.Entries, second.Entries)

	auditsWhole(t, l, signer, filepath.Join(dir, "1"), filepath.Join(dir, "2"))
}

// auditsWhole makes sure that files and what is left are one chain, whose charges kept the rules.
func auditsWhole(t *testing.T, l *pgledger.Ledger, signer *journal.Signer, files ...string) {
	t.Helper()
	auditsWholeOf(t, l, "d", signer, files...)
}

func auditsWholeOf(t *testing.T, l *pgledger.Ledger, dataset string, signer *journal.Signer, files ...string) {
	t.Helper()
	auditor, chain := journal.NewAuditor(dataset, nil), journal.NewChain(budget.Head{Dataset: dataset})
	add := func(e budget.Entry, _ journal.Shown) error { return errors.Join(chain.Add(e), auditor.Add(e)) }
	for _, path := range files {
		if _, err := pgledger.CheckArchive(path, signer.Public(), add); err != nil {
			t.Error(err)
		}
	}
	rest, err := l.Entries(t.Context(), budget.Page{Limit: 1000, Dataset: dataset})
	if err != nil {
		t.Fatal(err)
	}
	for i := range rest {
		if err := add(rest[len(rest)-1-i], journal.Shown{}); err != nil {
			t.Error(err)
		}
	}
	head, err := l.Head(t.Context(), dataset)
	if err == nil {
		err = chain.EndsAt(head)
	}
	if err != nil {
		t.Error(err)
	}
}

// What fails leaves the ledger as it was; what is edited afterwards is found.
func testArchiveAttacked(t *testing.T, d *pgtest.ControlDatabase) {
	l, signer, dir := open(t, d), newSigner(t), t.TempDir()
	spendSome(t, l, "a", 0)
	count := func() (n int) {
		t.Helper()
		if err := d.Conn(t, d.OwnerDSN).QueryRow(t.Context(), "SELECT count(*) FROM noisegate.entry").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	entries := count()
	// The last statement of the removal fails.
	d.Exec(t, `CREATE FUNCTION fails() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$;
		CREATE TRIGGER fails BEFORE UPDATE ON noisegate.chain FOR EACH ROW EXECUTE FUNCTION fails()`)
	if _, err := archived(t, d, filepath.Join(dir, "failed"), signer); err == nil {
		t.Error("a removal that failed succeeds")
	}
	d.Exec(t, "DROP TRIGGER fails ON noisegate.chain; DROP FUNCTION fails()")
	for name, content := range map[string]string{"empty": "", "other": "a file of somebody"} {
		there := filepath.Join(dir, name)
		if err := os.WriteFile(there, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := archived(t, d, there, signer)
		if now, _ := os.ReadFile(there); err == nil || string(now) != content {
			t.Errorf("a file that is there is written over: %v", err)
		}
	}
	if count() != entries {
		t.Fatalf("%d entries, before %d", count(), entries)
	}
	if err := l.VerifyAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	refused := func(statement string) bool {
		_, err := d.Conn(t, d.OwnerDSN).Exec(t.Context(), statement)
		return err != nil
	}
	for _, statement := range []string{"DELETE FROM noisegate.entry WHERE kind = 'void'",
		"DELETE FROM noisegate.entry WHERE kind = 'settle'"} {
		if !refused(statement) {
			t.Errorf("%s, and nothing is archived", statement)
		}
	}
	path := filepath.Join(dir, "file")
	if _, err := archived(t, d, path, signer); err != nil {
		t.Fatal(err)
	}
	if _, err := archived(t, d, filepath.Join(dir, "more"), signer); err != nil && !errors.Is(err, pgledger.ErrNothingToArchive) {
		t.Errorf("archived again: %v", err)
	}
	if !refused("DELETE FROM noisegate.entry WHERE kind = 'settle'") {
		t.Error("what replays need is removed")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for what, edit := range map[string]func([]byte) []byte{
		"a byte":         func(b []byte) []byte { return bytes.Replace(b, []byte(`"void"`), []byte(`"vold"`), 1) },
		"cut off":        func(b []byte) []byte { return b[:len(b)-10] },
		"a line less":    func(b []byte) []byte { i := bytes.IndexByte(b, '\n'); return b[i+1:] },
		"something more": func(b []byte) []byte { return append(b, b...) },
		"nothing":        func([]byte) []byte { return nil },
	} {
		edited := filepath.Join(dir, "edited")
		if err := os.WriteFile(edited, edit(bytes.Clone(text)), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := pgledger.CheckArchive(edited, signer.Public(), nil); err == nil {
			t.Errorf("an archive with %s is believed", what)
		}
	}
	if _, err := pgledger.CheckArchive(path, newSigner(t).Public(), nil); err == nil {
		t.Error("another key's archive is believed")
	}
	spendSome(t, l, "b", 1)
	l.Close()
	if err := verifiesWhole(t, d); err != nil {
		t.Fatal(err)
	}
	for _, edit := range []string{
		"UPDATE noisegate.charge SET answer = 'forged' WHERE charge_id = 'a00'",
		"UPDATE noisegate.charge SET epsilon = 1 WHERE charge_id = 'a00'",
		"UPDATE noisegate.charge SET opened_at = opened_at - interval '1 hour' WHERE charge_id = 'b00'",
		"UPDATE noisegate.charge SET analyst = 'bob' WHERE charge_id = 'a03'", "DELETE FROM noisegate.charge WHERE charge_id = 'a00'",
		"UPDATE noisegate.charge SET attempt = attempt + 9 WHERE charge_id = 'b01'",
		"DELETE FROM noisegate.entry WHERE kind = 'settle' AND charge_id = 'a00'",
		"UPDATE noisegate.entry SET analyst = 'x' WHERE charge_id = 'a00'",
		"DELETE FROM noisegate.archive", "DELETE FROM noisegate.entry WHERE kind = 'archive'",
		"UPDATE noisegate.archive SET state = (state::text || ' ')::json", "UPDATE noisegate.archive SET record = (record::text || ' ')::json",
		"UPDATE noisegate.account SET used_epsilon = used_epsilon - 10",
		"UPDATE noisegate.account SET epsilon_cap = 7, epsilon_ceiling = 2000000",
		"DELETE FROM noisegate.entry WHERE seq = (SELECT seq FROM noisegate.archive)",
		"UPDATE noisegate.entry SET digest = sha256('x') WHERE charge_id = 'b00' AND kind = 'settle'",
	} {
		restore := keepAll(t, d)
		d.Exec(t, "SET session_replication_role = replica; "+edit)
		var broken *journal.BrokenError
		if err := verifiesWhole(t, d); !errors.As(err, &broken) {
			t.Errorf("%s: %v", edit, err)
		}
		restore()
	}
	if err := verifiesWhole(t, d); err != nil {
		t.Error(err)
	}
}

// keepAll makes a copy of the ledger with its archives, which the returned function puts back.
func keepAll(t *testing.T, d *pgtest.ControlDatabase) (restore func()) {
	t.Helper()
	back := `SET session_replication_role = replica; ALTER TABLE noisegate.account ALTER COLUMN account_id SET GENERATED BY DEFAULT;
		ALTER TABLE noisegate.entry ALTER COLUMN seq SET GENERATED BY DEFAULT;`
	d.Exec(t, "DROP SCHEMA IF EXISTS kept CASCADE; CREATE SCHEMA kept")
	for _, table := range []string{"account", "charge", "entry", "chain", "plan", "archive"} {
		d.Exec(t, "CREATE TABLE kept."+table+" AS SELECT * FROM noisegate."+table)
		back += "DELETE FROM noisegate." + table + "; INSERT INTO noisegate." + table + " SELECT * FROM kept." + table + ";"
	}
	return func() {
		t.Helper()
		d.Exec(t, back)
	}
}

// A gateway that signed off finds the entry that it knew last, also where that is archived, and holds the dataset where it
// is not there. One that is waited for must have found what is archived, and nothing is archived of a dataset that is held.
func testArchiveAndGateways(t *testing.T, d *pgtest.ControlDatabase) {
	signer, dir := newSigner(t), t.TempDir()
	whole := account(budget.DatasetScope, "", 1_000_000)
	gone := open(t, d)
	if err := gone.Join(t.Context(), "gone", "a run of gone"); err != nil {
		t.Fatal(err)
	}
	reserve(t, gone, charge("known", mechanisms.Loss{Epsilon: 10}, whole)) // not the kind of entry that stays
	anchored := gone.Anchored()
	if err := errors.Join(gone.Attend(t.Context()), gone.SignOff(t.Context())); err != nil {
		t.Fatal(err)
	}
	l := open(t, d)
	if err := l.Join(t.Context(), "here", "a run of here"); err != nil {
		t.Fatal(err)
	}
	if err := l.Settle(t.Context(), "known", mechanisms.Loss{Epsilon: 7}, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	spendSome(t, l, "a", 0)

	refused := func(what, name string) {
		t.Helper()
		was := l.Anchored()
		if made, err := archived(t, d, filepath.Join(dir, name), signer); err == nil {
			t.Errorf("%s: %d entries are archived", what, made.Entries)
		}
		if err := errors.Join(l.Attend(t.Context()), l.VerifyAll(t.Context())); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if now := l.Anchored(); now.Heads[0] != was.Heads[0] {
			t.Errorf("%s: the ledger goes on to %d", what, now.Heads[0].Seq)
		}
	}
	refused("a gateway that is waited for has not found it", "behind") // "here" said last what it knows when it signed on
	d.Exec(t, "UPDATE noisegate.gateway SET ended_at = NULL, ended_by = NULL WHERE name = 'gone'")
	refused("a gateway was killed", "killed")
	if n, err := l.Forget(t.Context(), "sam", "gone"); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	for _, held := range []string{"postmaster = 'epoch'", "lost = true"} {
		d.Exec(t, "UPDATE noisegate.chain SET "+held)
		var broken *journal.BrokenError
		if _, err := archived(t, d, filepath.Join(dir, held[:4]), signer); !errors.As(err, &broken) || !broken.Held {
			t.Errorf("%s: %v", held, err)
		}
		d.Exec(t, "UPDATE noisegate.chain SET postmaster = pg_postmaster_start_time(), lost = false")
	}
	made, err := archived(t, d, filepath.Join(dir, "file"), signer)
	if err != nil {
		t.Fatal(err)
	}
	if made.Seq <= anchored.Heads[0].Seq {
		t.Fatalf("%d is archived, and %d was known", made.Seq, anchored.Heads[0].Seq)
	}
	starts := func(a journal.Anchored) error {
		again := open(t, d)
		defer again.Close()
		if err := again.VerifyAtStart(t.Context(), a, nil); err != nil {
			return err
		}
		return errors.Join(again.Join(t.Context(), "gone", "another run of gone"), again.Check(t.Context()), again.SignOff(t.Context()))
	}
	if err := errors.Join(starts(anchored), l.Attend(t.Context()), l.Check(t.Context()), l.VerifyAll(t.Context())); err != nil {
		t.Error(err)
	}
	forged := anchored
	forged.Heads = []budget.Head{anchored.Heads[0]}
	forged.Heads[0].Hash[0]++
	var broken *journal.BrokenError
	if err := starts(forged); !errors.As(err, &broken) || !broken.Held {
		t.Errorf("another entry was there: %v", err)
	}
	if _, err := l.Reserve(t.Context(), charge("held", mechanisms.Loss{Epsilon: 1}, whole)); !errors.As(err, &broken) || !broken.Held {
		t.Errorf("one gateway holds the dataset, and another goes on: %v", err)
	}
}

// A gateway that was killed, and whose anchor is newer than what it said last, finds its entry after an archive. One whose anchor is
// much newer holds the dataset, which is needless but safe.
func testArchiveAndKilled(t *testing.T, d *pgtest.ControlDatabase) {
	for name, c := range map[string]struct {
		said string // how long before it was killed
		held bool
	}{"just now": {"0", false}, "a second ago": {"1", false}, "a minute ago": {"60", true}} {
		t.Run(name, func(t *testing.T) {
			empty(t, d)
			signer, whole := newSigner(t), account(budget.DatasetScope, "", 1_000_000)
			killed, l := open(t, d), open(t, d)
			reserve(t, killed, charge("before", mechanisms.Loss{Epsilon: 10}, whole))
			for name, g := range map[string]*pgledger.Ledger{"here": l, "killed": killed} {
				if err := g.Join(t.Context(), name, "run of "+name); err != nil {
					t.Fatal(err)
				}
			}
			reserve(t, killed, charge("last", mechanisms.Loss{Epsilon: 10}, whole)) // not the kind of entry that stays
			anchored := killed.Anchored()
			killed.Close()
			for _, id := range []budget.ReservationID{"before", "last"} {
				if err := l.Settle(t.Context(), id, mechanisms.Loss{}, []byte("{}")); err != nil {
					t.Fatal(err)
				}
			}
			spendSome(t, l, "a", 0)
			d.Exec(t, "UPDATE noisegate.gateway SET seen_at = seen_at - "+c.said+" * interval '1 second' WHERE name = 'killed'")
			if n, err := l.Forget(t.Context(), "sam", "killed"); n != 1 || err != nil {
				t.Fatal(n, err)
			}
			if err := l.Attend(t.Context()); err != nil {
				t.Fatal(err)
			}
			made, err := archived(t, d, filepath.Join(t.TempDir(), "file"), signer)
			if err != nil || made.Seq <= anchored.Heads[0].Seq {
				t.Fatalf("%+v, %v", made, err)
			}
			again := open(t, d)
			err = again.VerifyAtStart(t.Context(), anchored, nil)
			var broken *journal.BrokenError
			if held := errors.As(err, &broken) && broken.Held; held != c.held || !held && err != nil {
				t.Errorf("held: %t, %v", held, err)
			}
			if err := errors.Join(l.Attend(t.Context()), l.Check(t.Context())); (err != nil) != c.held {
				t.Errorf("the other gateway: %v", err)
			}
		})
	}
}

// A receipt is not booked again whose entries are archived, whether it was settled or booked from a receipt before; one that
// is of no charge is, and its recharge can be archived.
func testArchiveAndReceipts(t *testing.T, d *pgtest.ControlDatabase) {
	l, signer, dir := open(t, d), newSigner(t), t.TempDir()
	own := account(budget.AnalystScope, "ana", 1_000_000)
	spendSome(t, l, "a", 0)
	receipt := func(id budget.ReservationID) budget.Recharge {
		t.Helper()
		settled, err := l.Settlement(t.Context(), "a00")
		if err != nil {
			t.Fatal(err)
		}
		r, err := signer.Recharge(signer.Sign(settled, id, []byte("answer "+string(id))))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	book := func(id budget.ReservationID, want int) {
		t.Helper()
		there, err := l.Booked(t.Context(), id)
		if err != nil || there != (want == 0) {
			t.Errorf("%s is there: %t, %v", id, there, err)
		}
		if n, err := l.Recharge(t.Context(), "operator", []budget.Recharge{receipt(id)}); n != want || err != nil {
			t.Errorf("%s is booked: %d, %v", id, n, err)
		}
	}
	spent := func() mechanisms.Loss {
		t.Helper()
		b, err := l.Balances(t.Context(), []budget.AccountID{own.ID})
		if err != nil {
			t.Fatal(err)
		}
		return b[0].Spent
	}
	book("lost", 1)
	d.Exec(t, "UPDATE noisegate.chain SET postmaster = 'epoch'")
	if _, held, err := l.Resume(t.Context(), "operator", budget.Resume{Dataset: "d", Reason: "booked"}); !held || err != nil {
		t.Fatal(held, err)
	}
	spendSome(t, l, "b", 0)
	before := spent()
	if _, err := archived(t, d, filepath.Join(dir, "1"), signer); err != nil {
		t.Fatal(err)
	}
	var left int
	if err := d.Conn(t, d.OwnerDSN).QueryRow(t.Context(), `SELECT count(*) FROM noisegate.entry
		WHERE kind IN ('recharge', 'resume', 'reserve')`).Scan(&left); err != nil || left != 0 {
		t.Fatalf("%d entries stay that nothing reads, %v", left, err)
	}
	for _, id := range []budget.ReservationID{"a00", "lost"} {
		book(id, 0)
	}
	if after := spent(); after != before {
		t.Errorf("spent %+v, before %+v", after, before)
	}
	book("also lost", 1)
	if err := errors.Join(l.VerifyNew(t.Context()), l.VerifyAll(t.Context()), verifiesWhole(t, d)); err != nil {
		t.Error(err)
	}
	spendSome(t, l, "c", 0)
	if _, err := archived(t, d, filepath.Join(dir, "2"), signer); err != nil {
		t.Fatal(err)
	}
	book("also lost", 0)
	if err := errors.Join(l.VerifyAll(t.Context()), verifiesWhole(t, d)); err != nil {
		t.Error(err)
	}
}
