package budget_test

import (
	"context"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"noisegate/budget"
	"noisegate/internal/fault"
	"noisegate/internal/pgtest"
	"noisegate/mechanisms"
)

// readThenUpdate is the vulnerable twin of the ledger: it reads what is used, decides, and then writes what it computed, at READ
// COMMITTED. What two clients do at once can be lost.
type readThenUpdate struct {
	pool *pgxpool.Pool

	mu     sync.Mutex
	amount map[budget.ReservationID]mechanisms.PicoEpsilon
	after  map[moment]mechanisms.PicoEpsilon
}

func newReadThenUpdate(t *testing.T, d *pgtest.ControlDatabase) *readThenUpdate {
	t.Helper()
	d.Exec(t, "CREATE TABLE twin (dataset text PRIMARY KEY, used bigint NOT NULL DEFAULT 0, cap bigint NOT NULL)")
	return &readThenUpdate{pool: pgtest.PoolOf(t, d.DSN),
		amount: map[budget.ReservationID]mechanisms.PicoEpsilon{}, after: map[moment]mechanisms.PicoEpsilon{}}
}

func (l *readThenUpdate) usedAfter(*testing.T) map[moment]mechanisms.PicoEpsilon { return l.after }

func (l *readThenUpdate) SetLimit(ctx context.Context, _ string, a budget.Account) error {
	var used mechanisms.PicoEpsilon
	err := l.pool.QueryRow(ctx, `INSERT INTO twin (dataset, cap) VALUES ($1, $2)
		ON CONFLICT (dataset) DO UPDATE SET cap = excluded.cap RETURNING used`, a.ID.Dataset, a.Limit.Epsilon).Scan(&used)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.after[moment{changeOf(a.Limit), limits}] = used
	return err
}

func (l *readThenUpdate) Balances(ctx context.Context, ids []budget.AccountID) ([]budget.Balance, error) {
	used, most, err := l.read(ctx, ids[0].Dataset)
	return []budget.Balance{{Account: budget.Account{ID: ids[0], Limit: budget.Limit{Epsilon: most}},
		Spent: mechanisms.Loss{Epsilon: used}}}, err
}

func (l *readThenUpdate) Reserve(ctx context.Context, c budget.Charge) (budget.Outcome, error) {
	used, most, err := l.read(ctx, c.Dataset)
	if err != nil {
		return budget.Outcome{}, err
	}
	if used+c.Loss.Epsilon > most {
		return budget.Outcome{}, fault.BudgetExhausted(fault.Shortage{Remaining: max(most-used, 0).String()})
	}
	l.mu.Lock()
	l.amount[c.ID] = c.Loss.Epsilon
	l.mu.Unlock()
	return budget.Outcome{Reserved: &budget.Reservation{ID: c.ID}}, l.write(ctx, c.Dataset, used+c.Loss.Epsilon, moment{c.ID, reserves})
}

func (l *readThenUpdate) Void(ctx context.Context, id budget.ReservationID) error {
	return l.Settle(ctx, id, mechanisms.Loss{}, nil)
}

func (l *readThenUpdate) Settle(ctx context.Context, id budget.ReservationID, kept mechanisms.Loss, _ []byte) error {
	const dataset = "d0"
	used, _, err := l.read(ctx, dataset)
	if err != nil {
		return err
	}
	l.mu.Lock()
	amount := l.amount[id]
	l.mu.Unlock()
	return l.write(ctx, dataset, used-amount+kept.Epsilon, moment{id, gives})
}

func (l *readThenUpdate) read(ctx context.Context, dataset string) (used, most mechanisms.PicoEpsilon, err error) {
	err = l.pool.QueryRow(ctx, "SELECT used, cap FROM twin WHERE dataset = $1", dataset).Scan(&used, &most)
	return used, most, err
}

func (l *readThenUpdate) write(ctx context.Context, dataset string, used mechanisms.PicoEpsilon, at moment) error {
	_, err := l.pool.Exec(ctx, "UPDATE twin SET used = $2 WHERE dataset = $1", dataset, used)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.after[at] = used
	return err
}
