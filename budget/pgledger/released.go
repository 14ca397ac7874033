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
	//go:embed sql/find_own.sql
	sqlFindOwn string
	//go:embed sql/find_latest.sql
	sqlFindLatest string
	//go:embed sql/keep.sql
	sqlKeep string
	//go:embed sql/best.sql
	sqlBest string
)

// KeepReleased implements [budget.ReleasedValues]. The values of a charge that this process reserved, but for vectors, are written by the
// transaction that ends the charge, without another round trip: if the process dies first, they are lost. Where they cannot be written,
// the charge ends without them.
func (p *Ledger) KeepReleased(ctx context.Context, v budget.Released) error {
	if err := v.Check(); err != nil {
		return err
	}
	sql, args := sqlKeepReleased, releasedColumns([]budget.Released{v})
	if v.Rho > 0 { // at once: if the answer is lost, its buyer gets it from this row
		sql, args = sqlKeep, []any{v.Charge, v.Dataset, v.Identity[:], v.Rho, string(v.Values)}
	} else if known, ok := p.open.Load(v.Charge); ok {
		return known.(*openCharge).keep(v)
	}
	if _, err := p.pool.Exec(ctx, sql, args...); err != nil {
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

// Find implements [budget.ReleasedValues].
func (p *Ledger) Find(ctx context.Context, l budget.Lookup) (*budget.Earlier, error) {
	if err := p.intact(l.Dataset); err != nil {
		return nil, err
	}
	var until *time.Time
	if !l.Until.IsZero() {
		until = &l.Until
	}
	exact := sqlFindOwn
	if l.Shared {
		exact = sqlFindReleased
	}
	type earlier struct {
		budget.Earlier
		caller
	}
	found, err := lookUp(ctx, p, func(b *pgx.Batch, found *earlier) {
		if l.Accounts != nil {
			queueAccounts(b, l.Accounts, &l.Dataset, &l.Analyst, &found.balances, &found.failed)
		}
		found.Exact, found.Latest = make([]*budget.Found, len(l.Identities)), make([]*budget.Found, len(l.Series))
		for i, names := range l.Identities {
			queueFound(b, &found.Exact[i], names, exact, l.Dataset, hashes(names), l.Analyst)
		}
		for i, names := range l.Series {
			queueFound(b, &found.Latest[i], names, sqlFindLatest, l.Dataset, hashes(names), l.Analyst, l.Shared, until)
		}
		if l.Shared {
			queueFound(b, &found.Best, l.Questions, sqlBest, l.Dataset, hashes(l.Questions))
		}
	})
	if err == nil && l.Accounts != nil {
		found.Balances = found.balances
		found.Failures, err = p.failuresOf(ctx, found.caller, l.Dataset, l.Analyst, budget.FailurePeriod)
	}
	return &found.Earlier, err
}

// queueFound runs one of the queries for released values, unless there are no names to look for.
func queueFound(b *pgx.Batch, into **budget.Found, names [][32]byte, sql string, args ...any) {
	if len(names) == 0 {
		return
	}
	b.Queue(sql, args...).QueryRow(func(row pgx.Row) error {
		v, of := &budget.Found{}, &budget.Version{}
		var identity, series []byte
		var asOf *time.Time
		var name *string
		err := row.Scan(&v.Charge, &v.Dataset, &identity, &v.Analyst, &v.Shared, &v.Values, &v.At, &series, &asOf, &name)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return nil
		case err != nil:
			return err
		}
		copy(v.Identity[:], identity)
		if asOf != nil && name != nil {
			of.AsOf, of.Name = *asOf, *name
			copy(of.Series[:], series)
			v.Version = of
		}
		*into = v
		return nil
	})
}

// hashes are a parameter for an array of bytea.
func hashes(list [][32]byte) [][]byte {
	all := make([][]byte, len(list))
	for i := range list {
		all[i] = list[i][:]
	}
	return all
}
