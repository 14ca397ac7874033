package pgledger_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"noisegate.example/budget"
	"noisegate.example/budget/internal/machine"
	"noisegate.example/budget/journal"
	"noisegate.example/budget/pgledger"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/pgtest"
)

// inForce gives a dataset's entries of one kind, oldest first.
func inForce(t *testing.T, l *pgledger.Ledger, kind budget.EntryKind) (all []budget.Entry) {
	t.Helper()
	page, err := l.Entries(t.Context(), budget.Page{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range page {
		if e.Kind == kind {
			all = append([]budget.Entry{e}, all...)
		}
	}
	return all
}

// A version is stored with its entry or not at all, once, by whichever gateway comes first; a version that is edited,
// taken away or put in is found, and so is an entry of it or of free reads.
func testPoliciesAreInTheChain(t *testing.T, d *pgtest.ControlDatabase) {
	l, other := open(t, d), open(t, d)
	own := account(budget.AnalystScope, "ana", 1000).ID.Dataset
	if _, err := l.RecordPolicy(t.Context(), policy(own, 2)); !errors.Is(err, budget.ErrPolicyTaken) {
		t.Errorf("a second version before the first: %v", err)
	}
	for version := range int64(8) { // two gateways, one version each time
		var failures [2]error
		var both sync.WaitGroup
		for i, gateway := range []*pgledger.Ledger{l, other} {
			both.Go(func() { _, failures[i] = gateway.RecordPolicy(t.Context(), policy(own, version+1)) })
		}
		both.Wait()
		if first, second := failures[0] == nil, failures[1] == nil; first == second ||
			!errors.Is(errors.Join(failures[:]...), budget.ErrPolicyTaken) {
			t.Fatalf("version %d: %v", version+1, failures)
		}
	}
	if err := l.RecordFreeReads(t.Context(), someReads(own)); err != nil {
		t.Fatal(err)
	}
	rows, err := l.PolicyRows(t.Context(), own)
	if err != nil || len(rows) != 8 {
		t.Fatalf("%d versions, %v", len(rows), err)
	}
	for i, e := range inForce(t, l, budget.EntryPolicy) {
		if v, ok := machine.PolicyOf(e); !ok || v.PolicyRow != rows[i] || v.Protected["people"] != 16384 || e.Analyst != "stella" {
			t.Errorf("entry %+v of row %+v", v, rows[i])
		}
	}
	if err := l.VerifyAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if ever, err := l.EverProtected(t.Context(), own); err != nil || len(ever) != 1 || !slices.Equal(ever["people"], []uint32{16384}) {
		t.Errorf("ever protected: %v, %v", ever, err)
	}

	// A gateway from before stores versions without an entry.
	_, err = d.Conn(t, d.LedgerDSN).Exec(t.Context(), `INSERT INTO noisegate.policy (dataset, version, document, digest, metadata, applied_by)
		SELECT dataset, 9, document, digest, metadata, applied_by FROM noisegate.policy WHERE version = 8`)
	if err == nil || !strings.Contains(err.Error(), "policy_is_in_the_chain") {
		t.Errorf("a version without an entry: %v", err)
	}
	// What cannot be stored has no entry.
	before := len(inForce(t, l, budget.EntryPolicy))
	p := policy(own, 9)
	p.Text = strings.Repeat("x", 1<<20+1)
	if _, err := l.RecordPolicy(t.Context(), p); fault.CodeOf(err) != fault.CodeDataUnavailable {
		t.Errorf("a policy that is too long: %v", err)
	}
	if after := len(inForce(t, l, budget.EntryPolicy)); after != before {
		t.Errorf("%d entries of policies, and there were %d", after, before)
	}

	d.Exec(t, "CREATE TABLE saved_policy AS TABLE noisegate.policy", "CREATE TABLE saved_entry AS TABLE noisegate.entry")
	const superuser = "SET session_replication_role = replica; "
	for name, edit := range map[string]string{
		"edited text": "UPDATE noisegate.policy SET document = 'policy 0' WHERE version = 3",
		"edited fact": "UPDATE noisegate.policy SET metadata = '{}' WHERE version = 8",
		"deleted":     "DELETE FROM noisegate.policy WHERE version = 8",
		"deleted old": "DELETE FROM noisegate.policy WHERE version = 2",
		"put in": `INSERT INTO noisegate.policy (dataset, version, document, digest, metadata, applied_by, entry)
			SELECT dataset, 9, document, digest, metadata, applied_by, entry + 100 FROM noisegate.policy WHERE version = 8`,
		"edited reads":   `UPDATE noisegate.entry SET account = replace(account::text, '"reads":4', '"reads":1')::json WHERE kind = 'free'`,
		"no reads":       "DELETE FROM noisegate.entry WHERE kind = 'free'",
		"edited steward": "UPDATE noisegate.policy SET applied_by = 'sam' WHERE version = 8",
	} {
		d.Exec(t, superuser+edit)
		err := open(t, d).VerifyAll(t.Context())
		if broken := (*journal.BrokenError)(nil); !errors.As(err, &broken) {
			t.Errorf("%s: %v", name, err)
		}
		d.Exec(t, superuser+`DELETE FROM noisegate.policy; INSERT INTO noisegate.policy TABLE saved_policy;
			DELETE FROM noisegate.entry; INSERT INTO noisegate.entry OVERRIDING SYSTEM VALUE TABLE saved_entry`)
	}
	d.Exec(t, "DROP TABLE saved_policy, saved_entry")
	if err := open(t, d).VerifyAll(t.Context()); err != nil {
		t.Errorf("what was put back: %v", err)
	}
	// A running gateway looks at policies whenever it looks at what is new.
	d.Exec(t, superuser+"UPDATE noisegate.policy SET document = 'policy 0' WHERE version = 3")
	if broken := (*journal.BrokenError)(nil); !errors.As(l.VerifyNew(t.Context()), &broken) {
		t.Error("an edit under a running gateway was not found")
	}
}

// Versions that are older than entries of policies are entered once, all together; what is put in later is not.
func testOlderPoliciesAreEnteredOnce(t *testing.T, d *pgtest.ControlDatabase) {
	l := open(t, d)
	own := account(budget.AnalystScope, "ana", 1000).ID.Dataset
	store := func(version int64) {
		t.Helper()
		p := policy(own, version)
		d.Exec(t, `ALTER TABLE noisegate.policy DROP CONSTRAINT IF EXISTS policy_is_in_the_chain`)
		if _, err := d.Conn(t, d.DSN).Exec(t.Context(), `INSERT INTO noisegate.policy (dataset, version, document, digest, metadata, applied_by)
			VALUES ($1, $2, $3, $4, '{}', 'stella')`, own, version, p.Text, p.Digest[:]); err != nil {
			t.Fatal(err)
		}
	}
	store(1)
	store(2)
	versions := []budget.PolicyVersion{policy(own, 1).PolicyVersion, policy(own, 2).PolicyVersion}
	if err := l.VerifyAll(t.Context()); err != nil {
		t.Fatalf("before they are entered: %v", err)
	}
	if err := l.EnterPolicies(t.Context(), own, versions[:1]); !errors.Is(err, budget.ErrPolicyTaken) {
		t.Errorf("not all of them: %v", err)
	}
	for range 3 {
		if err := l.EnterPolicies(t.Context(), own, versions); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.RecordPolicy(t.Context(), policy(own, 3)); err != nil {
		t.Fatal(err)
	}
	if n := len(inForce(t, l, budget.EntryPolicy)); n != 3 {
		t.Errorf("%d entries, want 3", n)
	}
	if err := l.VerifyAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	store(4)
	if err := l.EnterPolicies(t.Context(), own, append(versions, policy(own, 3).PolicyVersion, policy(own, 4).PolicyVersion)); err != nil {
		t.Fatal(err)
	}
	if broken := (*journal.BrokenError)(nil); !errors.As(l.VerifyAll(t.Context()), &broken) {
		t.Error("a version that was put in was made good")
	}
	d.Exec(t, `SET session_replication_role = replica; DELETE FROM noisegate.policy;
		ALTER TABLE noisegate.policy ADD CONSTRAINT policy_is_in_the_chain CHECK (entry IS NOT NULL) NOT VALID`)
}

// Keys are written down when they change.
func testKeysAreInTheChain(t *testing.T, d *pgtest.ControlDatabase) {
	own := account(budget.AnalystScope, "ana", 1000).ID.Dataset
	none, some := budget.SigningKeys{Dataset: own}, budget.SigningKeys{Dataset: own, Stewards: []string{"a", "b"}, Receipts: "r"}
	for i, keys := range []budget.SigningKeys{none, some, some, none, none, some} {
		if err := open(t, d).RecordKeys(t.Context(), keys); err != nil {
			t.Fatal(err)
		}
		if want := []int{0, 1, 1, 2, 2, 3}[i]; len(inForce(t, open(t, d), budget.EntryKeys)) != want {
			t.Errorf("after %+v: %d entries, want %d", keys, len(inForce(t, open(t, d), budget.EntryKeys)), want)
		}
	}
	if err := open(t, d).VerifyAll(t.Context()); err != nil {
		t.Error(err)
	}
}
