package pgledger_test

import (
	"crypto/sha256"
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"noisegate.example/budget"
	"noisegate.example/budget/journal"
	"noisegate.example/budget/pgledger"
	"noisegate.example/internal/pgtest"
	"noisegate.example/mechanisms"
)

var manyInLedger = flag.Int("entries", 2_000, "how many entries TestArchiveOfMany archives")

// manyEntries writes so many entries into a ledger as a gateway would have, without its transactions: charges that settled.
func manyEntries(t *testing.T, d *pgtest.ControlDatabase, n int) {
	t.Helper()
	l := open(t, d)
	defer l.Close()
	own := account(budget.AnalystScope, "ana", 1_000_000_000_000)
	own.Origin = budget.FromSteward
	if err := l.SetLimit(t.Context(), "stella", own); err != nil {
		t.Fatal(err)
	}
	conn := d.Conn(t, d.OwnerDSN)
	var at time.Time
	var hash []byte
	var number int64
	head := budget.Head{Dataset: "d"}
	if err := conn.QueryRow(t.Context(), `SELECT c.seq, c.head, c.at, a.account_id FROM noisegate.chain c JOIN noisegate.account a USING (dataset)`).
		Scan(&head.Seq, &hash, &at, &number); err != nil {
		t.Fatal(err)
	}
	copy(head.Hash[:], hash)
	request, mechanism := []byte(`{"dataset": "d", "sql": "SELECT region, count(*) AS n, avg(amount) FROM visits GROUP BY region", `+
		`"epsilon": "0.5"}`),
		[]byte(`[{"mechanism":"discrete_laplace","sensitivity":"1","scale":"4","epsilon":"0.25","delta":"0"},`+
			`{"mechanism":"discrete_laplace","sensitivity":"500","scale":"2000","epsilon":"0.25","delta":"0"}]`)
	answer := make([]byte, 400)
	const batch = 50_000 // charges
	for from := 0; from < n/2; from += batch {
		var entries, charges [][]any
		for i := from; i < min(from+batch, n/2); i++ {
			id, fingerprint := budget.ReservationID(fmt.Sprintf("c%010d", i)), sha256.Sum256(binary.AppendVarint(nil, int64(i)))
			asked, given := sha256.Sum256(append(fingerprint[:], request...)), sha256.Sum256(answer)
			opened, closed := at.Add(time.Microsecond), at.Add(2*time.Microsecond)
			at = closed
			for _, e := range []budget.Entry{
				{At: opened, Kind: budget.EntryReserve, Digest: asked[:], MechanismText: mechanism},
				{At: closed, Kind: budget.EntrySettle, Digest: given[:]},
			} {
				e.Seq, e.Dataset, e.Analyst, e.Reservation = head.Seq+1, "d", "ana", id
				e.AccountIDs, e.Loss = []int64{number}, mechanisms.Loss{Epsilon: 1}
				e.Hash = journal.HashAfter(e, head.Hash)
				head.Seq, head.Hash = e.Seq, e.Hash
				var text any
				if e.MechanismText != nil {
					text = string(e.MechanismText)
				}
				entries = append(entries, []any{e.Seq, e.At, string(e.Kind), e.Dataset, e.Analyst, e.AccountIDs, string(id), int64(1),
					e.Digest, text, e.Hash[:]})
			}
			charges = append(charges, []any{string(id), "d", "ana", []int64{number}, "settled", int64(1), false, int64(0), int64(0),
				fingerprint[:], string(request), answer, opened, closed})
		}
		for table, c := range map[string]struct {
			columns []string
			rows    [][]any
		}{
			"entry": {[]string{"seq", "at", "kind", "dataset", "analyst", "account_ids", "charge_id", "epsilon", "digest", "mechanisms",
				"hash"}, entries},
			"charge": {[]string{"charge_id", "dataset", "analyst", "account_ids", "state", "epsilon", "unbounded", "rho", "delta",
				"fingerprint", "request", "answer", "opened_at", "closed_at"}, charges},
		} {
			if _, err := conn.CopyFrom(t.Context(), pgx.Identifier{"noisegate", table}, c.columns, pgx.CopyFromRows(c.rows)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, statement := range []string{
		fmt.Sprintf("UPDATE noisegate.account SET used_epsilon = %d", n/2),
		fmt.Sprintf("UPDATE noisegate.chain SET seq = %d, head = '\\x%x', at = '%s'", head.Seq, head.Hash, at.Format(time.RFC3339Nano)),
		fmt.Sprintf("SELECT setval('noisegate.entry_seq_seq', %d)", head.Seq), "ANALYZE noisegate.entry, noisegate.charge",
	} {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	for time.Now().Before(at) {
		time.Sleep(time.Second)
	}
}

// TestArchiveOfMany says what it takes to verify and to archive a ledger of so many entries (make ledger), and to start from it.
func TestArchiveOfMany(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	n := *manyInLedger
	d := pgtest.On(t, durableServer(t))
	took := func(what string, do func() error) {
		t.Helper()
		began := time.Now()
		if err := do(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		t.Logf("%-45s %8.2f s", what, time.Since(began).Seconds())
	}
	size := func(when string) {
		t.Helper()
		var entries, whole int64
		if err := d.Conn(t, d.OwnerDSN).QueryRow(t.Context(), `SELECT pg_total_relation_size('noisegate.entry'),
			pg_database_size(current_database())`).Scan(&entries, &whole); err != nil {
			t.Fatal(err)
		}
		t.Logf("%-45s %8d MB, of them the journal %d MB", when, whole>>20, entries>>20)
	}
	took(fmt.Sprintf("%d entries written", n), func() error { manyEntries(t, d, n); return nil })
	size("database")
	l, signer := open(t, d), newSigner(t)
	took("verified whole", func() error { return l.VerifyAll(t.Context()) })
	start := func(checkpoints []journal.Checkpoint) error {
		fresh := open(t, d)
		defer fresh.Close()
		return fresh.VerifyAtStart(t.Context(), l.Anchored(), checkpoints)
	}
	took("start from a checkpoint", func() error { return start(l.Checkpoints()) })
	path := filepath.Join(t.TempDir(), "archive")
	took("archived", func() error {
		made, err := pgledger.Archive(t.Context(), pgledger.ArchiveOrder{OwnerDSN: d.OwnerDSN, Dataset: "d", Before: time.Now(), By: "operator",
			Path: path, Signer: signer})
		t.Logf("%d entries archived", made.Entries)
		return err
	})
	file, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%-45s %8d MB", "file", file.Size()>>20)
	took("vacuumed", func() error {
		_, err := d.Conn(t, d.OwnerDSN).Exec(t.Context(), "VACUUM FULL noisegate.entry")
		return err
	})
	size("database afterwards")
	took("the file verified", func() error {
		_, err := pgledger.CheckArchive(path, signer.Public(), nil)
		return err
	})
	took("new entries verified by a running gateway", func() error { return l.VerifyNew(t.Context()) })
	took("start from a checkpoint, archived", func() error { return start(l.Checkpoints()) })
	took("start without a checkpoint, archived", func() error { return start(nil) })
	took("verified whole, archived", func() error { return l.VerifyAll(t.Context()) })
}
