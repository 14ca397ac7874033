package budget

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"

	"noisegate/internal/fault"
)

// heads are the newest ends of chains that this process knows to be committed, and the datasets whose ledger is known to be broken.
type heads struct {
	mu        sync.Mutex
	byDataset map[string]Head
	verified  map[string]Head // up to where
	broken    map[string]*BrokenError
}

func (p *Postgres) saw(h Head) {
	p.heads.mu.Lock()
	defer p.heads.mu.Unlock()
	if p.heads.byDataset == nil {
		p.heads.byDataset = map[string]Head{}
	}
	if h.Seq > p.heads.byDataset[h.Dataset].Seq {
		p.heads.byDataset[h.Dataset] = h
	}
}

// newest is the end of a chain that [Postgres.saw] was told last.
func (p *Postgres) newest(dataset string) Head {
	p.heads.mu.Lock()
	defer p.heads.mu.Unlock()
	return p.heads.byDataset[dataset]
}

// follows compares the ledger that is locked now with the newest head that this process had seen before: a server that lost commits, or a
// standby that lagged when it took over, gives budget back. What other gateways wrote since does not hide it.
func (p *Postgres) follows(s *session) error {
	seen := s.seen
	if seen.Seq == 0 || s.head == seen || s.head.Seq > seen.Seq && bytes.Equal(s.kept, seen.Hash[:]) {
		return nil
	}
	p.heads.mu.Lock()
	defer p.heads.mu.Unlock()
	return p.heads.breaks(&BrokenError{Dataset: s.dataset, Seq: seen.Seq, What: "it was there and is not any more: the ledger is older than it was"})
}

// breaks stops a dataset: it takes no operation until the gateway is started again, and then only if it verifies.
func (h *heads) breaks(broken *BrokenError) error {
	if h.broken == nil {
		h.broken = map[string]*BrokenError{}
	}
	h.broken[broken.Dataset] = broken
	return broken
}

// Heads are the newest ends that this process knows to be committed, for an [Anchor].
func (p *Postgres) Heads() []Head {
	p.heads.mu.Lock()
	defer p.heads.mu.Unlock()
	return slices.Collect(maps.Values(p.heads.byDataset))
}

// VerifyAll verifies every dataset from its first entry, charges and accounts as well, and that the chains go on from the heads that an anchor
// remembers. Whoever starts a gateway calls it before the first answer. It goes on after a dataset whose ledger is broken, and gives the first error.
func (p *Postgres) VerifyAll(ctx context.Context, anchored []Head) error {
	for _, head := range anchored {
		if err := pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error { return verifyFrom(ctx, tx, head) }); err != nil {
			return err
		}
		p.saw(head)
	}
	return p.verifyEach(ctx, true, func(dataset string) Head { return Head{Dataset: dataset} })
}

// VerifyNew is VerifyAll of the entries alone that came to each chain since it was last verified.
func (p *Postgres) VerifyNew(ctx context.Context) error {
	return p.verifyEach(ctx, false, func(dataset string) Head {
		p.heads.mu.Lock()
		defer p.heads.mu.Unlock()
		if from, known := p.heads.verified[dataset]; known {
			return from
		}
		return Head{Dataset: dataset}
	})
}

func (p *Postgres) verifyEach(ctx context.Context, whole bool, from func(dataset string) Head) (failure error) {
	names, err := collect(ctx, p.pool, pgx.RowTo[string], sqlDatasets, whole)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := p.verifyFurther(ctx, from(name)); err != nil && failure == nil {
			failure = err
		}
	}
	return failure
}

func (p *Postgres) verifyFurther(ctx context.Context, from Head) error {
	verified, err := p.Verify(ctx, from)
	if err != nil {
		return err
	}
	p.saw(verified.Head)
	p.heads.mu.Lock()
	defer p.heads.mu.Unlock()
	if p.heads.verified == nil {
		p.heads.verified = map[string]Head{}
	}
	p.heads.verified[from.Dataset] = verified.Head
	return nil
}

// Head implements [Ledger].
func (p *Postgres) Head(ctx context.Context, dataset string) (Head, error) {
	p.heads.mu.Lock()
	head, known := p.heads.byDataset[dataset]
	p.heads.mu.Unlock()
	if known {
		return head, nil
	}
	head, err := readHead(ctx, p.pool, dataset)
	if err != nil {
		return Head{}, fault.DataUnavailable(err)
	}
	p.saw(head)
	return head, nil
}

// querier is the pool, or a transaction.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

func readHead(ctx context.Context, q querier, dataset string) (Head, error) {
	head := Head{Dataset: dataset}
	var hash []byte
	err := q.QueryRow(ctx, sqlHead, dataset).Scan(&head.Seq, &hash)
	copy(head.Hash[:], hash)
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return head, err
}

// Verify implements [Ledger]. It sees one committed state; charges go on meanwhile.
func (p *Postgres) Verify(ctx context.Context, from Head) (verified Verified, err error) {
	snapshot := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = pgx.BeginTxFunc(ctx, p.pool, snapshot, func(tx pgx.Tx) error {
		verified, err = verify(ctx, tx, from)
		return err
	})
	var broken *BrokenError
	switch {
	case err == nil:
	case errors.As(err, &broken):
		p.heads.mu.Lock()
		defer p.heads.mu.Unlock()
		err = p.heads.breaks(broken)
	default:
		err = fault.DataUnavailable(err)
	}
	return verified, err
}

func verify(ctx context.Context, tx pgx.Tx, from Head) (Verified, error) {
	// The pool's settings suit statements that touch a few rows.
	if _, err := tx.Exec(ctx, "SET LOCAL statement_timeout = 0; SET LOCAL enable_hashjoin = on; SET LOCAL enable_seqscan = on"); err != nil {
		return Verified{}, err
	}
	chain := NewChain(from)
	if from.Seq > 0 {
		if err := verifyFrom(ctx, tx, from); err != nil {
			return chain.Verified, err
		}
	}
	rows, err := tx.Query(ctx, sqlChain, from.Dataset, from.Seq)
	if err != nil {
		return chain.Verified, err
	}
	defer rows.Close()
	for rows.Next() {
		e, err := scanChained(rows)
		if err != nil {
			return chain.Verified, err
		}
		if err := chain.Add(e); err != nil {
			return chain.Verified, err
		}
	}
	if err := rows.Err(); err != nil {
		return chain.Verified, err
	}
	head, err := readHead(ctx, tx, from.Dataset)
	if err != nil {
		return chain.Verified, err
	}
	if err := chain.EndsAt(head); err != nil || from.Seq > 0 {
		return chain.Verified, err
	}
	broken := &BrokenError{Dataset: from.Dataset}
	switch err := tx.QueryRow(ctx, sqlBooks, from.Dataset).Scan(&broken.Seq, &broken.What); {
	case errors.Is(err, pgx.ErrNoRows):
		return chain.Verified, nil
	case err != nil:
		return chain.Verified, err
	default:
		return chain.Verified, broken
	}
}

// verifyFrom makes sure that the ledger still has the entry that a head was taken from.
func verifyFrom(ctx context.Context, tx pgx.Tx, from Head) error {
	var hash []byte
	err := tx.QueryRow(ctx, sqlHashOf, from.Dataset, from.Seq).Scan(&hash)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return &BrokenError{Dataset: from.Dataset, Seq: from.Seq, What: "it is missing: the ledger is older than it was"}
	case err != nil:
		return err
	case string(hash) != string(from.Hash[:]):
		return &BrokenError{Dataset: from.Dataset, Seq: from.Seq, What: "it is another entry than it was"}
	}
	return nil
}

// scanChained reads what is hashed of an entry.
func scanChained(rows pgx.Rows) (e Entry, err error) {
	var hash []byte
	err = rows.Scan(&e.Seq, &e.At, &e.Kind, &e.Dataset, &e.Analyst, &e.Reservation, &e.AccountIDs, &e.Loss.Epsilon, &e.Loss.Unbounded,
		&e.Loss.Rho, &e.Loss.Delta, &e.Digest, &e.MechanismText, &e.AccountText, &hash)
	copy(e.Hash[:], hash)
	return e, err
}
