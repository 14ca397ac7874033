package pgledger

import (
	"context"
	_ "embed"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"noisegate.example/budget"
	"noisegate.example/internal/fault"
)

var (
	//go:embed sql/keep_released.sql
	sqlKeepReleased string
	//go:embed sql/find_released.sql
	sqlFindReleased string
	//go:embed sql/find_latest.sql
	sqlFindLatest string
)

// KeepReleased implements [budget.ReleasedValues]. The values of a charge that this process reserved are written by the transaction that
// ends the charge, without another round trip: if the process dies first, they are lost. Where they cannot be written, the charge ends
// without them.
func (p *Ledger) KeepReleased(ctx context.Context, v budget.Released) error {
	if err := v.Check(); err != nil {
		return err
	}
	if known, ok := p.open.Load(v.Charge); ok {
		return known.(*openCharge).keep(v)
	}
	if _, err := p.pool.Exec(ctx, sqlKeepReleased, releasedColumns([]budget.Released{v})...); err != nil {
		return fault.DataUnavailable(err)
	}
	return nil
}

// releasedColumns are the parameters of sql/keep_released.sql.
func releasedColumns(all []budget.Released) []any {
	n := len(all)
	charges, datasets, analysts, shared := make([]string, n), make([]string, n), make([]string, n), make([]bool, n)
	identities, values, series := make([][]byte, n), make([]string, n), make([][]byte, n)
	asOf, names := make([]*time.Time, n), make([]*string, n)
	for i, v := range all {
		charges[i], datasets[i], analysts[i], shared[i] = string(v.Charge), v.Dataset, v.Analyst, v.Shared
		identities[i], values[i] = v.Identity[:], string(v.Values)
		if of := v.Version; of != nil {
			series[i], asOf[i], names[i] = of.Series[:], &of.AsOf, &of.Name
		}
	}
	return []any{charges, datasets, analysts, shared, identities, values, series, asOf, names}
}

// FindReleased implements [budget.ReleasedValues].
func (p *Ledger) FindReleased(ctx context.Context, e budget.Earlier) (*budget.Found, error) {
	return p.findReleased(ctx, sqlFindReleased, nil, e)
}

// FindLatest implements [budget.ReleasedValues].
func (p *Ledger) FindLatest(ctx context.Context, e budget.Earlier, until time.Time) (*budget.Found, error) {
	var series []byte
	of := &budget.Version{}
	var limit *time.Time
	if !until.IsZero() {
		limit = &until
	}
	found, err := p.findReleased(ctx, sqlFindLatest, []any{&series, &of.AsOf, &of.Name}, e, limit)
	if found != nil {
		copy(of.Series[:], series)
		found.Version = of
	}
	return found, err
}

// findReleased runs one of the queries for released values, whose further columns and parameters are the caller's.
func (p *Ledger) findReleased(ctx context.Context, sql string, columns []any, e budget.Earlier, args ...any) (*budget.Found, error) {
	if err := p.intact(e.Dataset); err != nil {
		return nil, err
	}
	v := &budget.Found{Released: budget.Released{Dataset: e.Dataset}}
	var identity []byte
	var text string
	missing := false
	if err := p.lookUp(ctx, func(b *pgx.Batch) {
		b.Queue(sql, append([]any{e.Dataset, hashes(e.Identities), e.Analyst, e.Shared}, args...)...).QueryRow(func(row pgx.Row) error {
			err := row.Scan(append([]any{&v.Charge, &identity, &v.Analyst, &v.Shared, &text, &v.At}, columns...)...)
			if missing = errors.Is(err, pgx.ErrNoRows); missing {
				return nil
			}
			return err
		})
	}); err != nil || missing {
		return nil, err
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
