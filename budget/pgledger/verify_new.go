package pgledger

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"noisegate.example/budget"
	"noisegate.example/budget/journal"
	"noisegate.example/internal/fault"
)

// readTables reads what lies next to a dataset's entries.
func readTables(ctx context.Context, tx pgx.Tx, dataset string) (journal.Replayed, error) {
	t := journal.NewReplayed(dataset)
	accounts, err := queried(ctx, tx, scanTally, sqlAllAccounts, dataset)
	if err != nil {
		return t, err
	}
	for _, a := range accounts {
		number := a.Number
		for _, twice := t.Accounts[number]; twice; _, twice = t.Accounts[number] {
			number = ^number // no entry has one
		}
		if t.Accounts[number], err = journal.AccountOf(a); err != nil {
			return t, err
		}
	}
	_, err = queried(ctx, tx, func(row pgx.CollectableRow) (none struct{}, err error) {
		var id budget.ReservationID
		var c journal.ReplayedCharge
		err = row.Scan(&id, &c.Accounts, &c.Loss.Epsilon, &c.Loss.Unbounded, &c.Loss.Rho, &c.Loss.Delta, &c.Loss.Tail)
		t.Open[id] = c
		return none, err
	}, sqlOpenCharges, dataset)
	if err != nil {
		return t, err
	}
	_, err = queried(ctx, tx, func(row pgx.CollectableRow) (none struct{}, err error) {
		var id budget.ReservationID
		var p journal.ReplayedPlan
		err = row.Scan(&id, &p.Slots.Epsilon, &p.Slots.Rho, &p.Drawn)
		t.Plans[id] = p
		return none, err
	}, sqlAllPlans, dataset)
	return t, err
}

// Tables implements [budget.Ledger].
func (p *Ledger) Tables(ctx context.Context, dataset string) (s budget.Tables, err error) {
	known := p.newest(dataset)
	err = pgx.BeginTxFunc(ctx, p.pool, snapshot, func(tx pgx.Tx) error {
		if s.Head, _, err = readHead(ctx, tx, budget.Head{Dataset: dataset}); err != nil {
			return err
		}
		entries, err := queried(ctx, tx, func(row pgx.CollectableRow) (h budget.Head, err error) {
			var hash []byte
			h.Dataset = dataset
			err = row.Scan(&h.Seq, &hash)
			copy(h.Hash[:], hash)
			return h, err
		}, "SELECT seq, hash FROM noisegate.entry WHERE dataset = $1 ORDER BY seq DESC LIMIT 1", dataset)
		for _, h := range append(entries, known) {
			if h.Seq > s.Head.Seq {
				s.Head = h
			}
		}
		if err == nil {
			s.Policies, err = queried(ctx, tx, scanPolicy, sqlPolicies, dataset)
		}
		if err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, sqlArchive, dataset).Scan(nil, nil, (*[]byte)(&s.Archived)); err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		tables, err := readTables(ctx, tx, dataset)
		if err == nil {
			s.State, err = json.Marshal(tables)
		}
		return err
	})
	if err != nil {
		err = fault.DataUnavailable(err)
	}
	return s, err
}

func queried[T any](ctx context.Context, tx pgx.Tx, scan pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scan)
}

// VerifyAll verifies every dataset from its first entry, charges and accounts as well. It goes on after a dataset whose
// ledger is broken, and gives the first error.
func (p *Ledger) VerifyAll(ctx context.Context) error {
	return p.verifyEach(ctx, true, func(dataset string) journal.Checkpoint {
		return journal.Checkpoint{State: journal.NewReplayed(dataset)}
	})
}

// VerifyNew is VerifyAll of the entries alone that came to each chain since it was last verified, and of accounts, open charges and plans.
func (p *Ledger) VerifyNew(ctx context.Context) error {
	return p.verifyEach(ctx, false, p.lastVerified)
}

func (p *Ledger) lastVerified(dataset string) journal.Checkpoint {
	p.heads.mu.Lock()
	defer p.heads.mu.Unlock()
	if from, known := p.heads.verified[dataset]; known {
		return from
	}
	return journal.Checkpoint{State: journal.NewReplayed(dataset)}
}

// VerifyAtStart makes sure that the chains go on from the heads that an anchor remembers, and then is VerifyNew, from
// what was verified before the process began. A dataset with a missing entry is held, one whose ledger was changed is broken, and the error
// is the first of theirs: others can be answered. A gateway calls it at its start, before the first answer, and [Ledger.VerifyAll] soon
// after if there were checkpoints.
func (p *Ledger) VerifyAtStart(ctx context.Context, anchored journal.Anchored, before []journal.Checkpoint) error {
	p.heads.mu.Lock()
	p.heads.server.Server = anchored.Server
	p.heads.mu.Unlock()
	for _, head := range anchored.Heads {
		p.saw(head)
	}
	for _, c := range before {
		p.saw(c.Head())
		p.reached(c)
	}
	if err := p.Attend(ctx); err != nil {
		return err
	}
	return p.verifyEach(ctx, len(before) == 0, p.lastVerified)
}

// Checkpoints are how far each dataset's ledger was verified.
func (p *Ledger) Checkpoints() []journal.Checkpoint {
	p.heads.mu.Lock()
	defer p.heads.mu.Unlock()
	var all []journal.Checkpoint
	for dataset, c := range p.heads.verified {
		if p.heads.broken[dataset] == nil && p.heads.held[dataset] == nil {
			all = append(all, c)
		}
	}
	return all
}

func (p *Ledger) reached(c journal.Checkpoint) {
	p.heads.mu.Lock()
	defer p.heads.mu.Unlock()
	if p.heads.verified == nil {
		p.heads.verified = map[string]journal.Checkpoint{}
	}
	p.heads.verified[c.State.Head.Dataset] = c
}

func (p *Ledger) verifyEach(ctx context.Context, whole bool, from func(dataset string) journal.Checkpoint) (failure error) {
	names, err := collect(ctx, p.pool, pgx.RowTo[string], sqlDatasets, whole)
	if err != nil {
		return err
	}
	for _, c := range p.Checkpoints() {
		names = append(names, c.Head().Dataset) // also if there is nothing left of it
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if err := p.verifyFurther(ctx, from(name)); err != nil && failure == nil {
			failure = err
		}
	}
	return failure
}

func (p *Ledger) verifyFurther(ctx context.Context, from journal.Checkpoint) error {
	began, further := time.Now(), from.State.Clone()
	if _, err := p.verify(ctx, from.Head(), &further); err != nil {
		return err
	}
	if from.Head().Seq == 0 {
		from.Whole = began
	}
	p.saw(further.Head)
	p.known.verified(further)
	p.reached(journal.Checkpoint{Whole: from.Whole, State: further})
	return nil
}
