package pgledger

import (
	"context"
	_ "embed"
	"time"

	"github.com/jackc/pgx/v5"

	"noisegate.example/budget"
	"noisegate.example/budget/internal/machine"
	"noisegate.example/internal/fault"
)

var (
	//go:embed sql/archived_until.sql
	sqlArchivedUntil string
	//go:embed sql/charged_since.sql
	sqlChargedSince string
	//go:embed sql/set_back.sql
	sqlSetBack string
)

// SetBack implements [budget.Ledger].
func (p *Ledger) SetBack(ctx context.Context, by string, c budget.SetBack) error {
	if err := c.Check(by); err != nil {
		return err
	}
	if err := p.intact(c.Dataset); err != nil {
		return err
	}
	var archived time.Time // charges that were opened until then are those of archives
	s := &transaction{batch: []*operation{{dataset: c.Dataset, inForce: &inForce{caps: true}, decide: func(m *machine.Machine) error {
		if !c.To.After(archived) {
			return fault.LedgerSetBack("entries until " + archived.UTC().Format(time.RFC3339) + " are archived")
		}
		return m.SetBack(by, c)
	}}}}
	s.first = func(ctx context.Context) error {
		err := s.conn.QueryRow(ctx, sqlArchivedUntil, c.Dataset).Scan(&archived)
		var rows pgx.Rows
		if err == nil {
			rows, err = s.conn.Query(ctx, sqlAllAccounts, c.Dataset)
		}
		if err == nil {
			err = s.loadAccounts(rows)
		}
		if err == nil {
			rows, err = s.conn.Query(ctx, sqlChargedSince, c.Dataset, c.To)
		}
		if err == nil {
			err = s.loadChargedSince(rows)
		}
		return err
	}
	return p.alone(ctx, s)
}

func (s *transaction) loadChargedSince(rows pgx.Rows) error {
	defer rows.Close()
	for rows.Next() {
		c := &machine.Charge{Charge: budget.Charge{Dataset: s.dataset}}
		var numbers, shared []int64
		if err := rows.Scan(&c.ID, &numbers, &c.Held.Epsilon, &c.Held.Unbounded, &c.Held.Rho, &c.Held.Delta, &c.Held.Tail, &shared,
			&c.Opened); err != nil {
			return err
		}
		c.SharedHeld = sharedOf(shared)
		for _, n := range numbers {
			c.Accounts = append(c.Accounts, s.numbers[n])
		}
		s.machine.Charges[c.ID] = c
	}
	return rows.Err()
}

// queueBack writes accounts that count what happened as happened earlier.
func (s *transaction) queueBack(b *pgx.Batch) {
	var numbers []int64
	var opened, busy []time.Time
	for _, a := range s.inOrder(func(a *machine.Account) bool { return a.Back }) {
		numbers, opened, busy = append(numbers, a.Number), append(opened, a.Opened), append(busy, busyStored(a.Busy))
	}
	if len(numbers) > 0 {
		b.Queue(sqlSetBack, numbers, opened, busy)
	}
}
