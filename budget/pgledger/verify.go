package pgledger

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"noisegate.example/budget"
	"noisegate.example/budget/journal"
	"noisegate.example/internal/fault"
	"noisegate.example/migrations"
)

// heads are the newest ends of chains that this process knows to be committed, on which server, and the datasets whose
// ledger is known to be broken, or was held when it was looked at last.
type heads struct {
	mu        sync.Mutex
	byDataset map[string]budget.Head
	newest    int64 // the highest number of theirs: about how many entries the journal has
	verified  map[string]journal.Checkpoint
	broken    map[string]*journal.BrokenError
	held      map[string]*journal.BrokenError
	server    site           // whose commits are told
	left      map[int64]bool // servers that it was before, by their start (µs)
}

func (p *Ledger) saw(h budget.Head) {
	p.heads.mu.Lock()
	defer p.heads.mu.Unlock()
	p.heads.note(h)
}

// note is for a head that goes on after the newest one that is known, or comes before it.
func (h *heads) note(head budget.Head) {
	if h.byDataset == nil {
		h.byDataset = map[string]budget.Head{}
	}
	if head.Seq > h.byDataset[head.Dataset].Seq {
		h.byDataset[head.Dataset] = head
	}
	h.newest = max(h.newest, head.Seq)
}

// newest is the end of a chain that [Ledger.saw] was told last.
func (p *Ledger) newest(dataset string) budget.Head {
	p.heads.mu.Lock()
	defer p.heads.mu.Unlock()
	return p.heads.byDataset[dataset]
}

// follows compares the ledger that is locked now with the newest head that this process had seen before: a server that lost commits, or a
// standby that lagged when it took over, gives budget back. What other gateways wrote since does not hide it. Nor does it go on where
// another gateway found that, or may still find it.
func (p *Ledger) follows(s *transaction) error {
	if s.overrules {
		return nil
	}
	lost := s.lacks || !goesOn(s.head, s.kept, s.seen)
	held := heldFor(s.dataset, s.seen.Seq, s.confirmed, lost)
	p.heads.mu.Lock()
	defer p.heads.mu.Unlock()
	if held == nil {
		delete(p.heads.held, s.dataset)
		return nil
	}
	p.heads.holds(held)
	return held
}

// holds notes that nothing is written to a dataset.
func (h *heads) holds(held *journal.BrokenError) {
	if h.held == nil {
		h.held = map[string]*journal.BrokenError{}
	}
	h.held[held.Dataset] = held
}

// breaks stops a dataset: it takes no operation until the gateway is started again, and then only if it verifies.
func (h *heads) breaks(broken *journal.BrokenError) error {
	if h.broken == nil {
		h.broken = map[string]*journal.BrokenError{}
	}
	h.broken[broken.Dataset] = broken
	return broken
}

// answered is how long ago [Ledger.Attend] may have had an answer for the ledger to count as one that answers: a gateway attends each
// second.
const answered = 1500 * time.Millisecond

// Check implements [budget.Ledger], on a separate connection: it waits for no charge.
func (p *Ledger) Check(ctx context.Context) error {
	if !p.attendedWithin(answered) {
		conn, err := p.health.Acquire(ctx) // which pings
		if err != nil {
			return fault.DataUnavailable(err)
		}
		conn.Release()
	}
	p.heads.mu.Lock()
	defer p.heads.mu.Unlock()
	for _, broken := range []map[string]*journal.BrokenError{p.heads.broken, p.heads.held} {
		for _, b := range broken {
			return fault.DataUnavailable(b)
		}
	}
	return nil
}

// Broken are the datasets whose ledger is known to be broken, or is held, sorted, and why.
func (p *Ledger) Broken() map[string]*journal.BrokenError {
	p.heads.mu.Lock()
	defer p.heads.mu.Unlock()
	all := maps.Clone(p.heads.held)
	if all == nil {
		all = map[string]*journal.BrokenError{}
	}
	maps.Copy(all, p.heads.broken)
	return all
}

// Heads are the newest ends that this process knows to be committed.
func (p *Ledger) Heads() []budget.Head {
	p.heads.mu.Lock()
	defer p.heads.mu.Unlock()
	return slices.Collect(maps.Values(p.heads.byDataset))
}

// Head implements [budget.Ledger].
func (p *Ledger) Head(ctx context.Context, dataset string) (budget.Head, error) {
	p.heads.mu.Lock()
	head, known := p.heads.byDataset[dataset]
	p.heads.mu.Unlock()
	if known {
		return head, nil
	}
	return p.lookAtHead(ctx, dataset)
}

// lookAtHead reads where a chain ends, which must go on after what was known of it.
func (p *Ledger) lookAtHead(ctx context.Context, dataset string) (budget.Head, error) {
	seen := p.newest(dataset)
	seen.Dataset = dataset
	head, kept, err := readHead(ctx, p.pool, seen)
	if err != nil {
		return budget.Head{}, fault.DataUnavailable(err)
	}
	if err := p.goesOnAt(head, kept, seen); err != nil {
		return budget.Head{}, err
	}
	return head, nil
}

// goesOnAt notes where a chain was found to end, or refuses one that does not go on after what was seen of it.
func (p *Ledger) goesOnAt(head budget.Head, kept []byte, seen budget.Head) error {
	if !goesOn(head, kept, seen) {
		return fault.DataUnavailable(heldFor(seen.Dataset, seen.Seq, true, true))
	}
	p.saw(head)
	return nil
}

// querier is the pool, or a transaction.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// readHead reads where a chain ends, and the hash of the entry with the number of one that was seen before, if there are more.
func readHead(ctx context.Context, q querier, seen budget.Head) (head budget.Head, kept []byte, err error) {
	head = budget.Head{Dataset: seen.Dataset}
	var hash []byte
	err = q.QueryRow(ctx, sqlHead, seen.Dataset, seen.Seq).Scan(&head.Seq, &hash, &kept)
	copy(head.Hash[:], hash)
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return head, kept, err
}

// snapshot is a transaction that sees one committed state.
var snapshot = pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}

// Verify implements [budget.Ledger]. It sees one committed state; charges go on meanwhile.
func (p *Ledger) Verify(ctx context.Context, from budget.Head) (budget.Verified, error) {
	if from.Seq > 0 {
		return p.verify(ctx, from, nil)
	}
	err := pgx.BeginTxFunc(ctx, p.pool, snapshot, func(tx pgx.Tx) error { return migrations.Unchanged(ctx, tx) })
	if errors.Is(err, migrations.ErrEdited) {
		p.heads.mu.Lock()
		defer p.heads.mu.Unlock()
		return budget.Verified{}, p.heads.breaks(&journal.BrokenError{Dataset: from.Dataset, What: err.Error()})
	} else if err != nil {
		return budget.Verified{}, fault.DataUnavailable(err)
	}
	further := journal.NewReplayed(from.Dataset)
	return p.verify(ctx, from, &further)
}

// verify goes on from a head. With a replayed state, to which it adds the entries, it also compares accounts, open charges and plans.
func (p *Ledger) verify(ctx context.Context, from budget.Head, further *journal.Replayed) (verified budget.Verified, err error) {
	seen := p.newest(from.Dataset)
	err = pgx.BeginTxFunc(ctx, p.pool, snapshot, func(tx pgx.Tx) error {
		if seen.Seq > 0 {
			head, kept, err := readHead(ctx, tx, seen)
			if err != nil {
				return err
			}
			if !goesOn(head, kept, seen) {
				return heldFor(seen.Dataset, seen.Seq, true, true)
			}
		}
		verified, err = verify(ctx, tx, from, further)
		return err
	})
	var broken *journal.BrokenError
	switch {
	case err == nil:
	case errors.As(err, &broken) && broken.Held:
		p.heads.mu.Lock()
		defer p.heads.mu.Unlock()
		p.heads.holds(broken)
	case errors.As(err, &broken):
		p.heads.mu.Lock()
		defer p.heads.mu.Unlock()
		err = p.heads.breaks(broken)
	default:
		err = fault.DataUnavailable(err)
	}
	return verified, err
}

func verify(ctx context.Context, tx pgx.Tx, from budget.Head, further *journal.Replayed) (budget.Verified, error) {
	// The pool's settings suit statements that touch a few rows.
	if _, err := tx.Exec(ctx, "SET LOCAL statement_timeout = 0; SET LOCAL enable_hashjoin = on; SET LOCAL enable_seqscan = on"); err != nil {
		return budget.Verified{}, err
	}
	whole := from.Seq == 0
	base, err := newestArchive(ctx, tx, from.Dataset)
	if err != nil {
		return budget.Verified{}, err
	}
	if base != nil && from.Seq < base.Seq { // what is older is in files, and goes on from there
		whole, from = true, base.Head()
		if further != nil {
			*further = base.state.Clone()
		}
	} else if !whole {
		base = nil // the chain was followed beyond its entry
	}
	chain := journal.NewChain(from)
	if from.Seq > 0 {
		if err := verifyFrom(ctx, tx, from); err != nil {
			return chain.Verified, err
		}
	}
	if err := follow(ctx, tx, chain, further, base); err != nil {
		return chain.Verified, err
	}
	head, _, err := readHead(ctx, tx, budget.Head{Dataset: from.Dataset})
	if err != nil {
		return chain.Verified, err
	}
	if err := chain.EndsAt(head); err != nil || further == nil {
		return chain.Verified, err
	}
	broken := &journal.BrokenError{Dataset: from.Dataset}
	if whole {
		if err := base.compareKept(ctx, tx); err != nil {
			return chain.Verified, err
		}
		seq, until := base.end()
		switch err := tx.QueryRow(ctx, sqlCompareSums, from.Dataset, seq, until).Scan(&broken.Seq, &broken.What); {
		case err == nil:
			return chain.Verified, broken
		case !errors.Is(err, pgx.ErrNoRows):
			return chain.Verified, err
		}
	}
	tables, err := readTables(ctx, tx, from.Dataset)
	if err != nil {
		return chain.Verified, err
	}
	policies, err := queried(ctx, tx, scanPolicy, sqlPolicies, from.Dataset)
	if err != nil {
		return chain.Verified, err
	}
	if broken.What = cmp.Or(further.Compare(tables), journal.ComparePolicies(further.Policies, policies)); broken.What != "" {
		return chain.Verified, broken
	}
	return chain.Verified, nil
}

// follow reads the entries after a chain's head.
func follow(ctx context.Context, tx pgx.Tx, chain *journal.Chain, further *journal.Replayed, base *archive) error {
	rows, err := tx.Query(ctx, sqlChain, chain.Head.Dataset, chain.Head.Seq)
	if err != nil {
		return err
	}
	defer rows.Close()
	said := base == nil
	for rows.Next() {
		e, err := scanChained(rows)
		if err != nil {
			return err
		}
		if err := chain.Add(e); err != nil {
			return err
		}
		said = said || base.said(e)
		if further == nil {
			continue
		}
		if what := further.Add(e); what != "" {
			return &journal.BrokenError{Dataset: e.Dataset, Seq: e.Seq, What: what}
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if !said {
		return &journal.BrokenError{Dataset: base.Dataset, Seq: base.Seq, What: "no entry says that what came before it was archived"}
	}
	return nil
}

// verifyFrom makes sure that the ledger still has the entry that a head was taken from.
func verifyFrom(ctx context.Context, tx pgx.Tx, from budget.Head) error {
	var hash []byte
	err := tx.QueryRow(ctx, sqlHashOf, from.Dataset, from.Seq).Scan(&hash)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return &journal.BrokenError{Dataset: from.Dataset, Seq: from.Seq,
			What: "it is missing: the ledger is older than it was, or it was archived"}
	case err != nil:
		return err
	case string(hash) != string(from.Hash[:]):
		return &journal.BrokenError{Dataset: from.Dataset, Seq: from.Seq, What: "it is another entry than it was"}
	}
	return nil
}

// scanChained reads what is hashed of an entry.
func scanChained(row pgx.CollectableRow) (e budget.Entry, err error) {
	var hash []byte
	var shared []int64
	err = row.Scan(&e.Seq, &e.At, &e.Kind, &e.Dataset, &e.Analyst, &e.Reservation, &e.AccountIDs, &e.Loss.Epsilon, &e.Loss.Unbounded,
		&e.Loss.Rho, &e.Loss.Delta, &e.Loss.Tail, &shared, &e.Digest, &e.MechanismText, &e.AccountText, &hash)
	e.Shared = sharedOf(shared)
	copy(e.Hash[:], hash)
	return e, err
}
