package budget

import (
	"context"
	_ "embed"
	"time"

	"noisegate/internal/fault"
)

//go:embed sql/failures.sql
var sqlFailures string

// Fail implements [Ledger].
func (p *Postgres) Fail(ctx context.Context, id ReservationID) error {
	return p.close(ctx, id, failing())
}

// Failures implements [Ledger].
func (p *Postgres) Failures(ctx context.Context, dataset, analyst string, within time.Duration) (count int64, err error) {
	if err := p.intact(dataset); err != nil {
		return 0, err
	}
	if err := p.pool.QueryRow(ctx, sqlFailures, dataset, analyst, within).Scan(&count); err != nil {
		return 0, fault.DataUnavailable(err)
	}
	return count, nil
}

// ResetFailures implements [Ledger].
func (p *Postgres) ResetFailures(ctx context.Context, by string, r Reset) error {
	if err := r.check(by); err != nil {
		return err
	}
	if n, err := p.Failures(ctx, r.Dataset, r.Analyst, FailurePeriod); n == 0 || err != nil {
		return err
	}
	return p.do(ctx, &operation{dataset: r.Dataset, decide: func(d *desk) error {
		d.resetFailures(by, r)
		return nil
	}})
}

// RecordImport implements [Ledger].
func (p *Postgres) RecordImport(ctx context.Context, by string, i Import) error {
	if err := i.check(by); err != nil {
		return err
	}
	return p.do(ctx, &operation{dataset: i.Dataset, decide: func(d *desk) error {
		d.recordImport(by, i)
		return nil
	}})
}
