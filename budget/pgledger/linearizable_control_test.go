package pgledger_test

import (
	"context"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"noisegate.example/budget"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/pgtest"
	"noisegate.example/mechanisms"
)

// readThenUpdate is the vulnerable twin of the ledger: it reads what is used, decides, and then writes what it computed, at READ
// COMMITTED. What two clients do at once can be lost.
type readThenUpdate struct {
	pool *pgxpool.Pool

	mu     sync.Mutex
	amount map[budget.ReservationID]mechanisms.PicoEpsilon
	made   []change // in the order of the table's own count
}

func newReadThenUpdate(t *testing.T, d *pgtest.ControlDatabase) *readThenUpdate {
	t.Helper()
	d.Exec(t, "CREATE TABLE twin (dataset text PRIMARY KEY, cap bigint NOT NULL, used bigint NOT NULL DEFAULT 0, changes bigint NOT "+
		"NULL DEFAULT 0)")
	return &readThenUpdate{pool: pgtest.PoolOf(t, d.DSN),
		amount: map[budget.ReservationID]mechanisms.PicoEpsilon{}}
}

func (l *readThenUpdate) journal(*testing.T) []change { return l.made }

func (l *readThenUpdate) SetLimit(ctx context.Context, _ string, a budget.Account) error {
	if a.Limit.PerQuery == 0 { // the first one is the beginning
		_, err := l.pool.Exec(ctx, "INSERT INTO twin (dataset, cap) VALUES ($1, $2)", a.ID.Dataset, a.Limit.Epsilon)
		return err
	}
	return l.write(ctx, change{charge: changeOf(a.Limit), verb: limits},
		"UPDATE twin SET cap = $2, changes = changes + 1 WHERE dataset = $1 RETURNING changes, used",
		a.ID.Dataset, a.Limit.Epsilon)
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
	return budget.Outcome{Reserved: &budget.Reservation{ID: c.ID}},
		l.use(ctx, change{charge: c.ID, verb: reserves}, c.Dataset, used+c.Loss.Epsilon)
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
	return l.use(ctx, change{charge: id, verb: gives}, dataset, used-amount+kept.Epsilon)
}

func (l *readThenUpdate) read(ctx context.Context, dataset string) (used, most mechanisms.PicoEpsilon, err error) {
	err = l.pool.QueryRow(ctx, "SELECT used, cap FROM twin WHERE dataset = $1", dataset).Scan(&used, &most)
	return used, most, err
}

// use writes what the caller computed.
func (l *readThenUpdate) use(ctx context.Context, made change, dataset string, used mechanisms.PicoEpsilon) error {
	return l.write(ctx, made, "UPDATE twin SET used = $2, changes = changes + 1 WHERE dataset = $1 RETURNING changes, used", dataset, used)
}

func (l *readThenUpdate) write(ctx context.Context, made change, sql string, args ...any) error {
	var nth int
	err := l.pool.QueryRow(ctx, sql, args...).Scan(&nth, &made.used)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.made = append(l.made, make([]change, max(0, nth-len(l.made)))...)
	l.made[nth-1] = made
	return err
}
