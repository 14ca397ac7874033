package pgledger

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"noisegate.example/budget"
	"noisegate.example/budget/internal/machine"
	"noisegate.example/budget/journal"
	"noisegate.example/migrations"
)

// archive is where a journal goes on whose older entries are in files.
type archive struct {
	journal.Archived
	text  []byte // as the chain has it
	state journal.Replayed
}

// newestArchive is nil where nothing was archived.
func newestArchive(ctx context.Context, tx pgx.Tx, dataset string) (*archive, error) {
	a := &archive{state: journal.NewReplayed(dataset)}
	var seq int64
	var state []byte
	switch err := tx.QueryRow(ctx, sqlArchive, dataset).Scan(&seq, &a.text, &state); {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, err
	}
	if json.Unmarshal(a.text, &a.Archived) != nil || a.Seq != seq {
		a.Archived = journal.Archived{Seq: seq} // which has no state
	}
	a.Dataset = dataset
	var err error
	a.state, err = a.StateOf(string(state))
	return a, err
}

// said finds the entry of an archive among those that follow it: the chain, and not a table, vouches for where the rest begins.
func (a *archive) said(e budget.Entry) bool {
	return a != nil && e.Kind == budget.EntryArchive && bytes.Equal(e.AccountText, a.text)
}

// keptDigest hashes what stays of the charges that had ended at an entry, and of the entries before it.
func keptDigest(ctx context.Context, tx pgx.Tx, at budget.Head, until time.Time) (sum journal.Digest, err error) {
	whole := sha256.New()
	charges, err := tx.Query(ctx, sqlKeptCharges, at.Dataset, until)
	if err != nil {
		return sum, err
	}
	for charges.Next() {
		whole.Write(charges.RawValues()[0])
	}
	if err := charges.Err(); err != nil {
		return sum, err
	}
	entries, err := tx.Query(ctx, sqlKeptEntries, at.Dataset, at.Seq)
	if err != nil {
		return sum, err
	}
	defer entries.Close()
	for entries.Next() {
		e, err := scanChained(entries)
		if err != nil {
			return sum, err
		}
		text := journal.HashAfter(e, e.Hash)
		whole.Write(text[:])
	}
	whole.Sum(sum[:0])
	return sum, entries.Err()
}

// compareKept compares what stayed with what it was when the rest was archived.
func (a *archive) compareKept(ctx context.Context, tx pgx.Tx) error {
	if a == nil {
		return nil
	}
	kept, err := keptDigest(ctx, tx, a.Head(), a.At)
	if err == nil && kept != a.Kept {
		err = &journal.BrokenError{Dataset: a.Dataset, Seq: a.Seq,
			What: "charges or entries from before it are not as they were when it was archived"}
	}
	return err
}

// end is what [sqlCompareSums] takes: the last archived entry and its time.
func (a *archive) end() (seq int64, until pgtype.Timestamptz) {
	if a == nil {
		return 0, pgtype.Timestamptz{InfinityModifier: pgtype.NegativeInfinity, Valid: true}
	}
	return a.Seq, pgtype.Timestamptz{Time: a.At, Valid: true}
}

// ArchiveOrder says which entries are to be archived.
type ArchiveOrder struct {
	OwnerDSN string // of the role that owns the tables
	Dataset  string
	Before   time.Time // entries from then on stay
	By       string    // for the journal
	Path     string    // of the file: of a new one, or of one that an earlier run left that was ended
	Signer   *journal.Signer
}

// ErrNothingToArchive says that there is no entry before which all charges had ended and that is old enough.
var ErrNothingToArchive = errors.New("budget: nothing to archive: no entry is old enough at which all charges before it had ended")

// Archive moves a dataset's oldest entries to a signed file. It verifies the ledger, writes the file, has the disk take it, reads it back,
// and then, in one transaction, writes the file's digest into the chain and removes the entries that nothing needs any more. Whatever ends
// it before the commit leaves the ledger as it was, and perhaps a file, with which the next run goes on; afterwards the file is needed to
// audit the whole, and the next run says the same as the first one would have. Gateways go on meanwhile; a migration waits. It removes
// nothing of answers, balances or plans.
func Archive(ctx context.Context, order ArchiveOrder) (journal.Archived, error) {
	conn, err := pgx.Connect(ctx, order.OwnerDSN)
	if err != nil {
		return journal.Archived{}, fmt.Errorf("cannot connect to the control database: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, "SET search_path = ''; SET synchronous_commit = on; SET statement_timeout = 0"); err != nil {
		return journal.Archived{}, err
	}
	var made journal.Archived
	var state []byte
	err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		made, state, err = order.write(ctx, tx)
		return err
	})
	if err == nil && state != nil {
		if err = order.readBack(made); err == nil {
			err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return order.remove(ctx, tx, made, state) })
		}
	}
	if err != nil && made.File != (journal.Digest{}) {
		err = fmt.Errorf("%w (keep %s: entries may be in it alone; the same command again goes on with it, or says that it is done)", err,
			order.Path)
	}
	return made, err
}

// there is what the file has that an earlier run left; zero where there is none.
func (o ArchiveOrder) there(before *archive, after budget.Head) (found journal.Archived, err error) {
	if _, err := os.Lstat(o.Path); errors.Is(err, fs.ErrNotExist) {
		return found, nil
	}
	if found, err = CheckArchive(o.Path, o.Signer.Public(), nil); err != nil {
		return journal.Archived{}, fmt.Errorf("%s is there already, and cannot be gone on with: keep it, and give another name: %w", o.Path, err)
	}
	if before != nil && found.File == before.File {
		return before.Archived, nil
	}
	if found.Dataset != o.Dataset || found.After != after.Seq || !found.At.Before(o.Before) {
		return journal.Archived{}, fmt.Errorf("budget: %s is there already, with entries of %s from after %d up to %d, which are not those that "+
			"are to be archived now: keep it, and give another name", o.Path, found.Dataset, found.After, found.Seq)
	}
	return found, journal.SyncArchive(o.Path)
}

// write verifies what there is and writes the file, unless it is there. Without a state all is done already.
func (o ArchiveOrder) write(ctx context.Context, tx pgx.Tx) (made journal.Archived, state []byte, err error) {
	whole := journal.NewReplayed(o.Dataset)
	if _, err := verify(ctx, tx, budget.Head{Dataset: o.Dataset}, &whole); err != nil {
		return made, nil, err
	}
	before, err := newestArchive(ctx, tx, o.Dataset)
	if err != nil {
		return made, nil, err
	}
	after, replayed := budget.Head{Dataset: o.Dataset}, journal.NewReplayed(o.Dataset)
	if before != nil {
		after, replayed = before.Head(), before.state.Clone()
	}
	made, err = o.there(before, after)
	if err != nil || before != nil && made == before.Archived {
		return made, nil, err
	}
	last, err := o.last(ctx, tx, after)
	if err != nil {
		return made, nil, err
	}
	if made.Seq > last.Seq { // somebody may still look for them
		return made, nil, fmt.Errorf("budget: %s is there already, with entries up to %d, and only those up to %d may go now: keep it, and give "+
			"another name", o.Path, made.Seq, last.Seq)
	}
	var w *journal.ArchiveWriter
	if made.Seq == 0 {
		if w, err = journal.NewArchiveWriter(o.Path, after, o.Signer); err != nil {
			return made, nil, err
		}
		made = journal.Archived{Dataset: o.Dataset, Seq: last.Seq, Hash: last.Hash, At: last.At, After: after.Seq}
	}
	made.Entries = 0
	err = eachEntry(ctx, tx, after, func(e budget.Entry) (bool, error) {
		if what := replayed.Add(e); what != "" {
			return false, &journal.BrokenError{Dataset: o.Dataset, Seq: e.Seq, What: what}
		}
		made.Entries++
		if w == nil {
			return e.Seq < made.Seq, nil
		}
		return e.Seq < made.Seq, w.Add(e)
	})
	if err == nil && replayed.Head != made.Head() {
		err = fmt.Errorf("budget: the ledger has not the entry %d that %s ends with: it is older than the file, or another one", made.Seq, o.Path)
	}
	switch {
	case w == nil:
	case err != nil:
		w.Discard()
	default:
		made.File, err = w.Close()
	}
	if err != nil {
		return made, nil, err
	}
	if state, err = json.Marshal(replayed); err != nil {
		return made, nil, err
	}
	made.State = sha256.Sum256(state)
	made.Kept, err = keptDigest(ctx, tx, made.Head(), made.At)
	return made, state, err
}

// last finds the newest entry that is old enough, at which no charge is open, and after which time goes on: those that were opened until
// then are then those whose entries are archived. Between times from and to which the dataset's was set back that is none.
func (o ArchiveOrder) last(ctx context.Context, tx pgx.Tx, after budget.Head) (found budget.Entry, err error) {
	type times struct{ To, From time.Time }
	back, err := queried(ctx, tx, pgx.RowToStructByPos[times], `SELECT e.at,
		(SELECT max(p.at) FROM noisegate.entry p WHERE p.dataset = e.dataset AND p.seq < e.seq)
		FROM noisegate.entry e WHERE e.dataset = $1 AND e.kind = 'clock'`, o.Dataset)
	if err != nil {
		return found, err
	}
	open := map[budget.ReservationID]bool{}
	var candidate budget.Entry
	err = eachEntry(ctx, tx, after, func(e budget.Entry) (bool, error) {
		if candidate.Seq > 0 && e.At.After(candidate.At) {
			found = candidate
		}
		switch e.Kind {
		case budget.EntryReserve:
			open[e.Reservation] = true
		case budget.EntrySettle, budget.EntryVoid, budget.EntryExpire, budget.EntryFail:
			delete(open, e.Reservation)
		default:
		}
		if candidate = e; len(open) > 0 || !e.At.Before(o.Before) || e.Kind == budget.EntryArchive || e.Hash == [32]byte{} ||
			slices.ContainsFunc(back, func(t times) bool { return !e.At.Before(t.To) && !e.At.After(t.From) }) {
			candidate = budget.Entry{}
		}
		return e.At.Before(o.Before), nil
	})
	if candidate.Seq > 0 { // the end of the chain: what is written next is later, since this is old
		found = candidate
	}
	if err == nil && found.Seq == 0 {
		err = ErrNothingToArchive
	}
	return found, err
}

// eachEntry reads the entries after a head until one says that it is the last.
func eachEntry(ctx context.Context, tx pgx.Tx, after budget.Head, each func(budget.Entry) (more bool, err error)) error {
	rows, err := tx.Query(ctx, sqlChain, after.Dataset, after.Seq)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		e, err := scanChained(rows)
		if err != nil {
			return err
		}
		if more, err := each(e); err != nil || !more {
			return err
		}
	}
	return rows.Err()
}

// readBack makes sure that the file alone gives what is about to be removed.
func (o ArchiveOrder) readBack(made journal.Archived) error {
	found, err := CheckArchive(o.Path, o.Signer.Public(), nil)
	if err == nil && (found.File != made.File || found.Hash != made.Hash || found.Seq != made.Seq || found.Entries != made.Entries ||
		found.After != made.After) {
		err = errors.New("budget: the file does not have what was written to it; nothing was removed")
	}
	return err
}

// CheckArchive checks a file's signature, and that its entries are a chain. It calls each, unless nil, with every entry.
func CheckArchive(path string, key ed25519.PublicKey, each func(budget.Entry, journal.Shown) error) (journal.Archived, error) {
	var found journal.Archived
	var chain *journal.Chain
	after, sum, err := journal.ReadArchive(path, key, func(head budget.Head, e budget.Entry, shown journal.Shown) error {
		if chain == nil {
			chain = journal.NewChain(head)
		}
		if found.Entries++; each != nil {
			if err := each(e, shown); err != nil {
				return err
			}
		}
		found.Seq, found.Hash, found.At = e.Seq, e.Hash, e.At
		if err := chain.Add(e); err != nil {
			return fmt.Errorf("budget: the archive %s is damaged: %w", path, err)
		}
		return nil
	})
	found.Dataset, found.After, found.File = after.Dataset, after.Seq, sum
	return found, err
}

// remove writes into the chain which file has the entries, and removes those that nothing needs. Either both are committed or nothing is.
func (o ArchiveOrder) remove(ctx context.Context, tx pgx.Tx, made journal.Archived, state []byte) error {
	var schema int
	if err := tx.QueryRow(ctx, "SELECT max(number) FROM noisegate.schema_migration").Scan(&schema); err != nil {
		return err
	}
	if schema != migrations.Newest() {
		return fmt.Errorf("%w: it has migration %d last, and %d is known here", errSchema, schema, migrations.Newest())
	}
	if _, err := tx.Exec(ctx, "LOCK TABLE noisegate.archive IN SHARE ROW EXCLUSIVE MODE"); err != nil { // one at a time
		return err
	}
	before, err := newestArchive(ctx, tx, o.Dataset)
	if err != nil {
		return err
	}
	if before == nil && made.After > 0 || before != nil && before.Seq != made.After {
		return errors.New("budget: somebody else archived meanwhile; nothing was removed")
	}
	var name string
	switch err := tx.QueryRow(ctx, sqlBehind, o.Dataset, made.Seq).Scan(&name); {
	case err == nil:
		return fmt.Errorf("budget: gateway %q had not found entry %d when it was there last, and would miss what is removed; nothing was: start "+
			"it, or forget it (noisegate audit gateways)", name, made.Seq)
	case !errors.Is(err, pgx.ErrNoRows):
		return err
	}
	text, err := json.Marshal(made)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "INSERT INTO noisegate.archive (dataset, seq, record, state) VALUES ($1, $2, $3, $4)", o.Dataset, made.Seq,
		text, state); err != nil {
		return err
	}
	var entries int
	if err := tx.QueryRow(ctx, "SELECT count(*) FROM noisegate.entry WHERE dataset = $1 AND seq > $2 AND seq <= $3", o.Dataset, made.After,
		made.Seq).Scan(&entries); err != nil {
		return err
	}
	if entries != made.Entries {
		return fmt.Errorf("budget: the file has %d entries, and there are %d; nothing was removed", made.Entries, entries)
	}
	if _, err := tx.Exec(ctx, sqlRemoveArchived, o.Dataset, made.Seq); err != nil {
		return err
	}
	return o.enter(ctx, tx, text)
}

// enter writes the entry of the archive. The dataset's lock is taken last: charges do not wait for the rest.
func (o ArchiveOrder) enter(ctx context.Context, tx pgx.Tx, text []byte) error {
	head := budget.Head{Dataset: o.Dataset}
	e := budget.Entry{Kind: budget.EntryArchive, Dataset: o.Dataset, Analyst: o.By, AccountText: text}
	var hash []byte
	var confirmed, lost, believed bool
	clocks := machine.Clocks{Own: time.Now()}
	if err := tx.QueryRow(ctx, `SELECT seq, head, at + interval '1 microsecond', clock_timestamp(), nextval('noisegate.entry_seq_seq'),
		postmaster = pg_catalog.pg_postmaster_start_time(), lost
		FROM noisegate.chain WHERE dataset = $1 FOR NO KEY UPDATE`, o.Dataset).
		Scan(&head.Seq, &hash, &clocks.Newest, &clocks.Server, &e.Seq, &confirmed, &lost); err != nil {
		return err
	}
	if e.At, believed = clocks.Time(); !believed {
		return errClock
	}
	if held := heldFor(o.Dataset, head.Seq, confirmed, lost); held != nil { // gateways are yet to find what they know
		return held
	}
	copy(head.Hash[:], hash)
	if e.Seq <= head.Seq {
		return errors.New("budget: the journal's numbers went back")
	}
	e.Hash = journal.HashAfter(e, head.Hash)
	if _, err := tx.Exec(ctx, `INSERT INTO noisegate.entry (seq, at, kind, dataset, analyst, account_ids, account, hash)
		OVERRIDING SYSTEM VALUE VALUES ($1, $2, $3, $4, $5, '{}', $6, $7)`, e.Seq, e.At, e.Kind, e.Dataset, e.Analyst, text,
		e.Hash[:]); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, "UPDATE noisegate.chain SET seq = $2, head = $3, at = $4 WHERE dataset = $1", o.Dataset, e.Seq, e.Hash[:], e.At)
	return err
}
