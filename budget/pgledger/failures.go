package pgledger

import (
	"context"
	_ "embed"
	"time"

	"noisegate.example/budget"
	"noisegate.example/budget/internal/machine"
	"noisegate.example/internal/fault"
)

//go:embed sql/failures.sql
var sqlFailures string

// Fail implements [budget.Ledger].
func (p *Ledger) Fail(ctx context.Context, id budget.ReservationID) error {
	return p.close(ctx, id, machine.Failing())
}

// Failures implements [budget.Ledger].
func (p *Ledger) Failures(ctx context.Context, dataset, analyst string, within time.Duration) (count int64, err error) {
	if err := p.intact(dataset); err != nil {
		return 0, err
	}
	if err := p.pool.QueryRow(ctx, sqlFailures, dataset, analyst, within).Scan(&count); err != nil {
		return 0, fault.DataUnavailable(err)
	}
	return count, nil
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
