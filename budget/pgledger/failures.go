package pgledger

import (
	"context"
	_ "embed"
	"time"

	"github.com/jackc/pgx/v5"

	"noisegate.example/budget"
	"noisegate.example/budget/internal/machine"
)

var (
	//go:embed sql/failures.sql
	sqlFailures string
	//go:embed sql/failed.sql
	sqlFailed string
)

// Fail implements [budget.Ledger].
func (p *Ledger) Fail(ctx context.Context, id budget.ReservationID) error {
	return p.close(ctx, id, machine.Failing())
}

// Failures implements [budget.Ledger].
func (p *Ledger) Failures(ctx context.Context, dataset, analyst string, within time.Duration) (count int64, err error) {
	if err := p.intact(dataset); err != nil {
		return 0, err
	}
	failed, err := lookUp(ctx, p, func(b *pgx.Batch, failed *bool) {
		b.Queue(sqlFailed, dataset, analyst).QueryRow(func(row pgx.Row) error { return row.Scan(failed) })
	})
	if err != nil || !failed {
		return 0, err
	}
	return p.countFailures(ctx, dataset, analyst, within)
}

// countFailures is [Ledger.Failures] for an analyst some of whose charges failed at some time.
func (p *Ledger) countFailures(ctx context.Context, dataset, analyst string, within time.Duration) (int64, error) {
	return lookUp(ctx, p, func(b *pgx.Batch, count *int64) {
		b.Queue(sqlFailures, dataset, analyst, within).QueryRow(func(row pgx.Row) error { return row.Scan(count) })
	})
}

// ResetFailures implements [budget.Ledger].
func (p *Ledger) ResetFailures(ctx context.Context, by string, r budget.Reset) error {
	if err := r.Check(by); err != nil {
		return err
	}
	if n, err := p.Failures(ctx, r.Dataset, r.Analyst, budget.FailurePeriod); n == 0 || err != nil {
		return err
	}
	return p.do(ctx, &operation{dataset: r.Dataset, decide: func(s *machine.Machine) error {
		s.ResetFailures(by, r)
		return nil
	}})
}

// RecordImport implements [budget.Ledger].
func (p *Ledger) RecordImport(ctx context.Context, by string, i budget.Import) error {
	if err := i.Check(by); err != nil {
		return err
	}
	return p.do(ctx, &operation{dataset: i.Dataset, decide: func(s *machine.Machine) error {
		s.RecordImport(by, i)
		return nil
	}})
}
