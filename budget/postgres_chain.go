package budget

import (
	"context"
	"errors"
	"sync"

	"github.com/jackc/pgx/v5"

	"noisegate/internal/fault"
)

// heads are the newest ends of chains that this process knows to be committed.
type heads struct {
	mu        sync.Mutex
	byDataset map[string]Head
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
	if err != nil && !errors.As(err, &broken) {
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
	if err := chain.EndsAt(head); err != nil {
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
