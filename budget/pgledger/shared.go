package pgledger

import (
	"context"
	_ "embed"
	"errors"

	"github.com/jackc/pgx/v5"

	"noisegate.example/budget"
	"noisegate.example/internal/fault"
)

var (
	//go:embed sql/keep.sql
	sqlKeep string
	//go:embed sql/best.sql
	sqlBest string
)

// Keep implements [budget.Shares].
func (p *Ledger) Keep(ctx context.Context, v budget.Shared) error {
	if err := v.Check(); err != nil {
		return err
	}
	if _, err := p.pool.Exec(ctx, sqlKeep, v.Charge, v.Dataset, v.Question[:], v.Rho, string(v.Vector)); err != nil {
		return fault.DataUnavailable(err)
	}
	return nil
}

// Best implements [budget.Shares].
func (p *Ledger) Best(ctx context.Context, dataset string, question ...[32]byte) (*budget.Shared, error) {
	if err := p.intact(dataset); err != nil {
		return nil, err
	}
	v := &budget.Shared{}
	var text string
	var asked []byte
	err := p.pool.QueryRow(ctx, sqlBest, dataset, hashes(question)).Scan(&v.Charge, &v.Dataset, &asked, &v.Rho, &text)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, fault.DataUnavailable(err)
	}
	copy(v.Question[:], asked)
	v.Vector = []byte(text)
	return v, nil
}
