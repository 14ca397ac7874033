package pgledger_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"noisegate.example/budget"
	"noisegate.example/budget/journal"
	"noisegate.example/budget/pgledger"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/pgtest"
	"noisegate.example/mechanisms"
)

// checkpointsAt is a file of checkpoints, and its key.
func checkpointsAt(t *testing.T) (*journal.Checkpoints, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "verified")
	return journal.NewCheckpoints(path, newSigner(t)), path
}

// A start goes on from a checkpoint: it finds what was done to accounts, open charges, plans and the end of the chain,
// and what was done to newer entries. The rest is found by the look at the whole that follows.
func testCheckpoint(t *testing.T, d *pgtest.ControlDatabase) {
	l := open(t, d)
	everyKind(t, l)
	before := time.Now()
	if err := l.VerifyAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	file, _ := checkpointsAt(t)
	if err := file.Write(l.Checkpoints()); err != nil {
		t.Fatal(err)
	}
	known, err := file.Read()
	if err != nil || len(known) != 1 || known[0].Head() != l.Heads()[0] || known[0].Whole.Before(before) || known[0].Whole.After(time.Now()) {
		t.Fatalf("%+v, %v", known, err)
	}

	// What was open ends, slots are drawn, and more is charged; a start adds that up.
	own := account(budget.AnalystScope, "ana", 100)
	drawing := charge("draws more", mechanisms.Loss{}, own)
	drawing.Draws = &budget.Draw{Plan: "plan", From: 2, Count: 1}
	for _, err := range []error{
		l.Settle(t.Context(), "open", mechanisms.Loss{Epsilon: 2}, []byte("late")),
		l.SetLimit(t.Context(), "stella", budget.Account{ID: own.ID, Limit: own.Limit, Origin: budget.FromSteward}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	reserve(t, l, drawing)
	reserve(t, l, charge("newer", mechanisms.Loss{Epsilon: 1}, own))
	start := func() (*pgledger.Ledger, error) {
		restarted := open(t, d)
		return restarted, restarted.VerifyAtStart(t.Context(), l.Anchored(), known)
	}
	if _, err := start(); err != nil {
		t.Fatal(err)
	}

	restore := save(t, d)
	for edit, atStart := range map[string]bool{
		"UPDATE noisegate.account SET used_epsilon = used_epsilon - 1, reserved_epsilon = 0 WHERE name = 'ana'": true,
		"UPDATE noisegate.account SET epsilon_cap = 200, epsilon_ceiling = 200 WHERE name = 'ana'":              true,
		"UPDATE noisegate.account SET frozen = true WHERE scope = 'dataset'":                                    true,
		"UPDATE noisegate.account SET refills = 7 WHERE name = 'ana'":                                           true,
		"UPDATE noisegate.account SET opened_at = opened_at - interval '1 day' WHERE name = 'bob'":              true,
		"DELETE FROM noisegate.account WHERE name = 'bob'":                                                      true,
		"UPDATE noisegate.charge SET epsilon = 100 WHERE charge_id = 'newer'":                                   true,
		"DELETE FROM noisegate.charge WHERE charge_id = 'again'":                                                true,
		"UPDATE noisegate.plan SET next_slot = 0":                                                               true,
		"UPDATE noisegate.plan SET epsilon = '{20,0,20}'":                                                       true,
		"UPDATE noisegate.entry SET epsilon = 0 WHERE charge_id = 'newer'":                                      true,
		"DELETE FROM noisegate.entry WHERE charge_id = 'newer'":                                                 true,
		"DELETE FROM noisegate.entry":                                                                           true,
		"DELETE FROM noisegate.chain":                                                                           true,
		"DELETE FROM noisegate.chain; DELETE FROM noisegate.account; DELETE FROM noisegate.charge":              true,
		"UPDATE noisegate.chain SET head = sha256('x')":                                                         true,
		"UPDATE noisegate.entry SET epsilon = 0 WHERE charge_id = 'settled'":                                    false,
		"DELETE FROM noisegate.entry WHERE charge_id = 'voided'":                                                false,
		"UPDATE noisegate.charge SET answer = 'forged' WHERE charge_id = 'settled'":                             false,
		"UPDATE noisegate.charge SET analyst = 'bob' WHERE charge_id = 'settled'":                               false,
	} {
		restore()
		d.Exec(t, "SET session_replication_role = replica", edit)
		l, err := start()
		var broken *journal.BrokenError
		if got := errors.As(err, &broken); got != atStart || !got && err != nil {
			t.Errorf("%s: at start %v", edit, err)
		}
		if err := l.VerifyAll(t.Context()); !errors.As(err, &broken) {
			t.Errorf("%s: never found: %v", edit, err)
		}
		if _, err := l.Reserve(t.Context(), charge("after", mechanisms.Loss{Epsilon: 1}, own)); fault.CodeOf(err) != fault.CodeDataUnavailable {
			t.Errorf("%s: the dataset is answered for: %v", edit, err)
		}
		if len(l.Checkpoints()) != 0 {
			t.Errorf("%s: the next start would go on from a broken ledger", edit)
		}
		l.Close()
	}
}

// A file that the gateway's key did not sign says nothing.
func TestCheckpointsAreSigned(t *testing.T) {
	file, path := checkpointsAt(t)
	if all, err := file.Read(); err != nil || all != nil {
		t.Errorf("no file: %v, %v", all, err)
	}
	if err := file.Write(nil); err != nil {
		t.Fatal(err)
	}
	if all, err := file.Read(); err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	others, elsewhere := checkpointsAt(t)
	if err := others.Write(nil); err != nil {
		t.Fatal(err)
	}
	foreign, err := os.ReadFile(elsewhere)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"nothing": "", "more": strings.Replace(string(good), "[]", "[ ]", 1), "cut off": string(good[:len(good)-9]),
		"no signature":      `{"checkpoints":[]}`,
		"another gateway's": string(foreign),
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if all, err := file.Read(); err == nil {
			t.Errorf("%s: %v", name, all)
		}
	}
}
