package pgledger

import (
	"context"
	_ "embed"
	"errors"
	"sync"

	"github.com/jackc/pgx/v5"

	"noisegate.example/budget"
	"noisegate.example/budget/internal/machine"
	"noisegate.example/internal/fault"
)

//go:embed sql/settlement.sql
var sqlSettlement string

// settlements remembers the newest of this process, so that the receipt of an answer costs no exchange: so many of each analyst, for what
// others are charged takes nothing from an analyst that shows as time.
type settlements struct {
	mu    sync.Mutex
	known map[budget.ReservationID]budget.Settlement
	by    map[string]*settled
	turns int64
}

// settled are those of one analyst.
type settled struct {
	last  int64                  // when the newest came
	order []budget.ReservationID // a ring
	next  int
}

// How many settlements of an analyst are remembered, and of how many analysts, those who were charged last.
const (
	rememberedSettlements = 128
	rememberedAnalysts    = 256
)

// remember leaves draws from plans out: what these cost is asked of the ledger.
func (s *settlements) remember(l *machine.Line) {
	e := &l.Entry
	if len(e.MechanismText) > 0 {
		return
	}
	charged := &budget.Charged{Analyst: e.Analyst, Loss: e.Loss}
	for _, a := range l.About {
		charged.Accounts = append(charged.Accounts, a.ID)
	}
	head := budget.Head{Dataset: e.Dataset, Seq: e.Seq, Hash: e.Hash}
	s.put(e.Reservation, budget.Settlement{Head: head, At: e.At.UTC(), Charged: charged, Shared: e.Shared})
}

func (s *settlements) put(id budget.ReservationID, now budget.Settlement) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.known[id]; known {
		return
	}
	own := s.owned(now.Charged.Analyst)
	if len(own.order) < rememberedSettlements {
		own.order = append(own.order, id)
	} else {
		delete(s.known, own.order[own.next])
		own.order[own.next] = id
		own.next = (own.next + 1) % rememberedSettlements
	}
	s.known[id] = now
}

// owned gives an analyst's settlements. A new analyst replaces the one who was charged longest ago.
func (s *settlements) owned(analyst string) *settled {
	if s.known == nil {
		s.known, s.by = map[budget.ReservationID]budget.Settlement{}, map[string]*settled{}
	}
	s.turns++
	own := s.by[analyst]
	if own == nil && len(s.by) >= rememberedAnalysts {
		longest := ""
		for name, one := range s.by {
			if longest == "" || one.last < s.by[longest].last {
				longest = name
			}
		}
		for _, id := range s.by[longest].order {
			delete(s.known, id)
		}
		delete(s.by, longest)
	}
	if own == nil {
		own = &settled{}
		s.by[analyst] = own
	}
	own.last = s.turns
	return own
}

func (s *settlements) of(id budget.ReservationID) (budget.Settlement, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.known[id]
	return known, ok
}

// Settlement implements [budget.Ledger].
func (p *Ledger) Settlement(ctx context.Context, id budget.ReservationID) (s budget.Settlement, err error) {
	if known, ok := p.settlements.of(id); ok {
		return known, nil
	}
	var hash []byte
	var scopes, names, planScopes, planNames []string
	var shared []int64
	var draw *machine.DrawRecord
	s.Charged = &budget.Charged{}
	l, plan := &s.Charged.Loss, &budget.PaidPlan{}
	err = p.pool.QueryRow(ctx, sqlSettlement, id).Scan(&s.Dataset, &s.Seq, &hash, &s.At, &s.Charged.Analyst, &l.Epsilon, &l.Unbounded, &l.Rho,
		&l.Delta, &l.Tail, &scopes, &names, &draw, &plan.Loss.Epsilon, &plan.Loss.Unbounded, &plan.Loss.Rho, &plan.Loss.Delta, &plan.Loss.Tail,
		&planScopes, &planNames, &shared)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return budget.Settlement{}, fault.BudgetUnknownRelease()
	case err != nil:
		return budget.Settlement{}, fault.DataUnavailable(err)
	}
	copy(s.Hash[:], hash)
	s.Shared = sharedOf(shared)
	s.Charged.Accounts = accountIDs(s.Dataset, scopes, names)
	if draw != nil {
		plan.ID, plan.From, plan.Count, plan.Accounts = draw.Plan, draw.From, draw.Count, accountIDs(s.Dataset, planScopes, planNames)
		s.Charged.Plan = plan
	}
	s.At = s.At.UTC()
	p.settlements.put(id, s)
	return s, nil
}

func accountIDs(dataset string, scopes, names []string) (all []budget.AccountID) {
	for i, scope := range scopes {
		all = append(all, budget.AccountID{Dataset: dataset, Scope: budget.Scope(scope), Name: names[i]})
	}
	return all
}
