package pgledger

import (
	"context"
	_ "embed"

	"github.com/jackc/pgx/v5"

	"noisegate.example/budget"
)

//go:embed sql/again.sql
var sqlAgain string

// repeat is one look-up of an answer that is to be given again.
type repeat struct {
	budget.Again
	balances []budget.Balance
	stored   *budget.Stored
	err      error
}

// Again implements [budget.Ledger].
func (p *Ledger) Again(ctx context.Context, a budget.Again) ([]budget.Balance, *budget.Stored, error) {
	if err := p.whole(a.Dataset); err != nil {
		return nil, nil, err
	}
	r := &repeat{Again: a}
	if err := p.repeats.do(ctx, r, p.exchange); err != nil {
		return nil, nil, err
	}
	return r.balances, r.stored, r.err
}

// exchange asks for what a batch wants: accounts first, then answers, and where the journals end last, as a replay does that
// looks for its charge. It asks for each charge and each account once.
func (p *Ledger) exchange(ctx context.Context, batch []*repeat) error {
	balances, stored := map[budget.AccountID]*budget.Balance{}, map[budget.ReservationID]*budget.Stored{}
	lost := map[string]error{}
	b := &pgx.Batch{}
	p.queueBalances(b, batch, balances)
	queueStored(b, batch, stored)
	for _, r := range batch {
		if _, asked := lost[r.Dataset]; !asked {
			lost[r.Dataset] = nil
			p.queueHead(b, r.Dataset, lost)
		}
	}
	if err := p.pool.SendBatch(ctx, b).Close(); err != nil {
		return err
	}
	for _, r := range batch {
		if r.err = lost[r.Dataset]; r.err != nil {
			continue
		}
		for _, id := range r.Accounts {
			if found := balances[id]; found != nil {
				r.balances = append(r.balances, *found)
			}
		}
		if s := stored[r.Charge]; s != nil && s.Dataset == r.Dataset && s.Analyst == r.Analyst {
			r.stored = s
		}
	}
	return nil
}

func (p *Ledger) queueBalances(b *pgx.Batch, batch []*repeat, found map[budget.AccountID]*budget.Balance) {
	var datasets, scopes, names []string
	for _, r := range batch {
		for _, id := range r.Accounts {
			if _, asked := found[id]; !asked {
				found[id] = nil
				datasets, scopes, names = append(datasets, id.Dataset), append(scopes, string(id.Scope)), append(names, id.Name)
			}
		}
	}
	b.Queue(sqlBalances, datasets, scopes, names, nil, nil).Query(func(rows pgx.Rows) error {
		all, err := pgx.CollectRows(rows, balanceAnd(nil))
		for i := range all {
			found[all[i].ID] = &all[i]
		}
		return err
	})
}

func queueStored(b *pgx.Batch, batch []*repeat, found map[budget.ReservationID]*budget.Stored) {
	var charges []string
	for _, r := range batch {
		if _, asked := found[r.Charge]; !asked {
			found[r.Charge] = nil
			charges = append(charges, string(r.Charge))
		}
	}
	b.Queue(sqlAgain, charges).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			s := &budget.Stored{}
			if err := rows.Scan(&s.ID, &s.Dataset, &s.Analyst, (*[]byte)(&s.Request), &s.Answer, &s.Loss.Epsilon, &s.Loss.Unbounded,
				&s.Loss.Rho, &s.Loss.Delta, &s.Loss.Tail, &s.SettledAt); err != nil {
				return err
			}
			found[s.ID] = s
		}
		return rows.Err()
	})
}

// queueHead looks where a chain ends, which must go on after what was known of it.
func (p *Ledger) queueHead(b *pgx.Batch, dataset string, lost map[string]error) {
	seen := p.newest(dataset)
	seen.Dataset = dataset
	b.Queue(sqlHead, dataset, seen.Seq).Query(func(rows pgx.Rows) error {
		head, kept := budget.Head{Dataset: dataset}, []byte(nil)
		for rows.Next() {
			var hash []byte
			if err := rows.Scan(&head.Seq, &hash, &kept); err != nil {
				return err
			}
			copy(head.Hash[:], hash)
		}
		if err := rows.Err(); err != nil {
			return err
		}
		lost[dataset] = p.goesOnAt(head, kept, seen)
		return nil
	})
}
