package budgettest_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"testing"
	"time"

	"noisegate.example/budget"
	"noisegate.example/budget/budgettest"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

func TestMemory(t *testing.T) {
	budgettest.Run(t, func(*testing.T) budget.Ledger { return budgettest.NewMemory(time.Now) })
}

func TestOwnRaises(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	budgettest.OwnRaises(t, 4, func() budget.Ledger { return budgettest.NewMemory(time.Now) })
}

// covers: A27 F14 F15
func TestMemoryOverTime(t *testing.T) {
	budgettest.RunTimed(t, func(t *testing.T) budgettest.Timed {
		now := time.Date(2026, 11, 21, 23, 59, 59, 0, time.UTC)
		ledger := budgettest.NewMemory(func() time.Time { return now })
		return budgettest.Timed{
			Ledger:  ledger,
			Advance: func(d time.Duration) { now = now.Add(d) },
			Glimpse: func(d time.Duration) {
				now = now.Add(d)
				_ = ledger.Void(t.Context(), "an operation that finds nothing")
				now = now.Add(-d)
			},
		}
	})
}

// readThenWrite is the ledger that one would write first: it looks whether a charge fits, and then takes it.
type readThenWrite struct {
	*budgettest.Memory
	limit budget.Limit
}

func (l readThenWrite) Reserve(ctx context.Context, c budget.Charge) (budget.Outcome, error) {
	balances, err := l.Balances(ctx, []budget.AccountID{c.Accounts[0].ID})
	if err != nil {
		return budget.Outcome{}, err
	}
	if len(balances) == 1 && !l.limit.Admits(balances[0].Used(), c.Loss) {
		return budget.Outcome{}, fault.BudgetExhausted(fault.Shortage{})
	}
	time.Sleep(time.Millisecond) // a round trip
	return l.Memory.Reserve(ctx, c)
}

// The control of A66 in budgettest: the same rush that no ledger of ours overspends in breaks the one that reads, then writes.
func TestRushBreaksReadThenWrite(t *testing.T) {
	boundless := budget.Account{ID: budget.AccountID{Dataset: "d", Scope: budget.AnalystScope, Name: "ana"},
		Limit: budget.Limit{Form: budget.Pure, Epsilon: math.MaxInt64, Rho: budget.Never}}
	var charges []budget.Charge
	for i := range 64 {
		id := fmt.Sprint(i)
		charges = append(charges, budget.Charge{ID: budget.ReservationID(id), Dataset: "d", Analyst: "ana", Accounts: []budget.Account{boundless},
			Loss: mechanisms.Loss{Epsilon: 1}, Fingerprint: sha256.Sum256([]byte(id))})
	}
	twin := readThenWrite{budgettest.NewMemory(time.Now), budget.Limit{Form: budget.Pure, Epsilon: 10, Rho: budget.Never}}
	taken, err := budgettest.Rush(t.Context(), twin, charges)
	if err != nil || len(taken) <= 10 {
		t.Errorf("%d were answered (%v): the rush would not show an overspending ledger", len(taken), err)
	}
}
