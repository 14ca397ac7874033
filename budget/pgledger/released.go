package pgledger

import (
	"context"
	_ "embed"
	"errors"

	"github.com/jackc/pgx/v5"

	"noisegate/budget"
	"noisegate/internal/fault"
)

var (
	//go:embed sql/keep_released.sql
	sqlKeepReleased string
	//go:embed sql/find_released.sql
	sqlFindReleased string
)

// KeepReleased implements [budget.ReleasedValues]. It does not wait until the values are on disk: the charge is settled next, and what was
// written before a commit that is waited for is on disk with it.
func (p *Ledger) KeepReleased(ctx context.Context, v budget.Released) error {
	if err := v.Check(); err != nil {
		return err
	}
	b := &pgx.Batch{}
	b.Queue("BEGIN")
	b.Queue("SET LOCAL synchronous_commit = off")
	b.Queue(sqlKeepReleased, v.Charge, v.Dataset, v.Analyst, v.Shared, v.Identity[:], string(v.Values))
	b.Queue("COMMIT")
	if err := p.pool.SendBatch(ctx, b).Close(); err != nil {
		return fault.DataUnavailable(err)
	}
	return nil
}

// FindReleased implements [budget.ReleasedValues].
func (p *Ledger) FindReleased(ctx context.Context, e budget.Earlier) (*budget.Found, error) {
	if err := p.intact(e.Dataset); err != nil {
		return nil, err
	}
	v := &budget.Found{Released: budget.Released{Dataset: e.Dataset}}
	var identity []byte
	var text string
	err := p.pool.QueryRow(ctx, sqlFindReleased, e.Dataset, hashes(e.Identities), e.Analyst, e.Shared).Scan(&v.Charge, &identity, &v.Analyst,
		&v.Shared, &text, &v.At)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, fault.DataUnavailable(err)
	}
	copy(v.Identity[:], identity)
	v.Values = []byte(text)
	return v, nil
}

// hashes are a parameter for an array of bytea.
func hashes(list [][32]byte) [][]byte {
	all := make([][]byte, len(list))
	for i := range list {
		all[i] = list[i][:]
	}
	return all
}
