package budget

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// readTables reads what lies beside the entries, as far as a standing speaks of it.
func readTables(ctx context.Context, tx pgx.Tx, s standing) (t tables, err error) {
	if t.accounts, err = queried(ctx, tx, scanTally, sqlAllAccounts, s.Head.Dataset); err != nil {
		return t, err
	}
	t.open, t.plans = map[ReservationID]standingCharge{}, map[ReservationID]standingPlan{}
	_, err = queried(ctx, tx, func(row pgx.CollectableRow) (none struct{}, err error) {
		var id ReservationID
		var is state
		var c standingCharge
		err = row.Scan(&id, nil, nil, nil, &c.Accounts, &is, &c.Loss.Epsilon, &c.Loss.Unbounded, &c.Loss.Rho, &c.Loss.Delta, &c.Loss.Tail,
			nil, nil, nil)
		if is == open {
			t.open[id] = c
		}
		return none, err
	}, sqlLayCharges, slices.Collect(maps.Keys(s.Open)))
	if err != nil {
		return t, err
	}
	_, err = queried(ctx, tx, func(row pgx.CollectableRow) (none struct{}, err error) {
		var id ReservationID
		var p standingPlan
		err = row.Scan(&id, &p.Slots.Epsilon, &p.Slots.Rho, &p.Drawn)
		t.plans[id] = p
		return none, err
	}, sqlLayPlans, slices.Collect(maps.Keys(s.Plans)))
	return t, err
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
func (p *Postgres) VerifyAll(ctx context.Context) error {
	return p.verifyEach(ctx, true, func(dataset string) Checkpoint { return Checkpoint{standing: newStanding(dataset)} })
}

// VerifyNew is VerifyAll of the entries alone that came to each chain since it was last verified, and of accounts, open charges and plans.
func (p *Postgres) VerifyNew(ctx context.Context) error {
	return p.verifyEach(ctx, false, p.lastVerified)
}

func (p *Postgres) lastVerified(dataset string) Checkpoint {
	p.heads.mu.Lock()
	defer p.heads.mu.Unlock()
	if from, known := p.heads.verified[dataset]; known {
		return from
	}
	return Checkpoint{standing: newStanding(dataset)}
}

// VerifyAtStart makes sure that the chains go on from the heads that an anchor remembers, and then is VerifyNew, from
// what was verified before the process began. Whoever starts a gateway calls it before the first answer, and
// [Postgres.VerifyAll] soon after if there were checkpoints.
func (p *Postgres) VerifyAtStart(ctx context.Context, anchored []Head, before []Checkpoint) error {
	for _, head := range anchored {
		if err := pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error { return verifyFrom(ctx, tx, head) }); err != nil {
			return err
		}
		p.saw(head)
	}
	for _, c := range before {
		p.reached(c)
	}
	return p.verifyEach(ctx, len(before) == 0, p.lastVerified)
}

// Checkpoints are how far each dataset's ledger was verified.
func (p *Postgres) Checkpoints() []Checkpoint {
	p.heads.mu.Lock()
	defer p.heads.mu.Unlock()
	var all []Checkpoint
	for dataset, c := range p.heads.verified {
		if p.heads.broken[dataset] == nil {
			all = append(all, c)
		}
	}
	return all
}

func (p *Postgres) reached(c Checkpoint) {
	p.heads.mu.Lock()
	defer p.heads.mu.Unlock()
	if p.heads.verified == nil {
		p.heads.verified = map[string]Checkpoint{}
	}
	p.heads.verified[c.standing.Head.Dataset] = c
}

func (p *Postgres) verifyEach(ctx context.Context, whole bool, from func(dataset string) Checkpoint) (failure error) {
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

func (p *Postgres) verifyFurther(ctx context.Context, from Checkpoint) error {
	began, further := time.Now(), from.standing.clone()
	if _, err := p.verify(ctx, from.Head(), &further); err != nil {
		return err
	}
	if from.Head().Seq == 0 {
		from.Whole = began
	}
	p.saw(further.Head)
	p.reached(Checkpoint{from.Whole, further})
	return nil
}
