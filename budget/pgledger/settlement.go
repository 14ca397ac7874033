package pgledger

import (
	"context"
	_ "embed"
	"errors"
	"sync"

	"github.com/jackc/pgx/v5"

	"noisegate.example/budget"
	"noisegate.example/internal/fault"
)

//go:embed sql/settlement.sql
var sqlSettlement string

// settlements remembers the newest of this process, so that the receipt of an answer costs no exchange.
type settlements struct {
	mu    sync.Mutex
	known map[budget.ReservationID]budget.Settlement
	order []budget.ReservationID // a ring
	next  int
}

// rememberedSettlements is how many are remembered.
const rememberedSettlements = 4096

func (s *settlements) remember(e *budget.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known, s.order = map[budget.ReservationID]budget.Settlement{}, make([]budget.ReservationID, rememberedSettlements)
	}
	delete(s.known, s.order[s.next])
	s.known[e.Reservation] = budget.Settlement{Head: budget.Head{Dataset: e.Dataset, Seq: e.Seq, Hash: e.Hash}, At: e.At.UTC()}
	s.order[s.next] = e.Reservation
	s.next = (s.next + 1) % rememberedSettlements
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
	err = p.pool.QueryRow(ctx, sqlSettlement, id).Scan(&s.Dataset, &s.Seq, &hash, &s.At)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return budget.Settlement{}, fault.BudgetUnknownRelease()
	case err != nil:
		return budget.Settlement{}, fault.DataUnavailable(err)
	}
	copy(s.Hash[:], hash)
	s.At = s.At.UTC()
	return s, nil
}
