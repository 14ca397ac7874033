package gatewaytest

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"

	"noisegate.example/budget"
	"noisegate.example/budget/journal"
	"noisegate.example/mechanisms"
)

// Audit makes sure that the ledger verifies, and that the books, which are kept by its entries alone, admit each of
// them.
func (g *Gateway) Audit(t testing.TB) {
	t.Helper()
	if err := g.Ledger.VerifyAll(t.Context()); err != nil {
		t.Error(err)
	}
	books := journal.NewAuditor(Dataset, nil)
	var all []budget.Entry
	for page := (budget.Page{Limit: 1000, Dataset: Dataset}); ; page.Before = all[len(all)-1].Seq {
		some, err := g.Ledger.Entries(t.Context(), page)
		if err != nil {
			t.Fatal(err)
		}
		if all = append(all, some...); len(some) < page.Limit {
			break
		}
	}
	for _, e := range slices.Backward(all) {
		if err := books.Add(e); err != nil {
			t.Fatal(err)
		}
	}
}

// FailingLedger is a ledger that fails at a step.
type FailingLedger struct {
	budget.Ledger
	failure error
	at      atomic.Pointer[string]
}

// NewFailingLedger is one that does not fail yet.
func NewFailingLedger(l budget.Ledger, failure error) *FailingLedger {
	f := &FailingLedger{Ledger: l, failure: failure}
	f.FailAt("")
	return f
}

// FailAt lets it fail from now on: "before settle" or "after settle". "" lets it work again.
func (l *FailingLedger) FailAt(step string) { l.at.Store(&step) }

func (l *FailingLedger) settles(do func() error) error {
	at := *l.at.Load()
	if at == "before settle" {
		return l.failure
	}
	if err := do(); err != nil || at != "after settle" {
		return err
	}
	return l.failure
}

// Settle implements [budget.Ledger].
func (l *FailingLedger) Settle(ctx context.Context, id budget.ReservationID, released mechanisms.Loss, answer []byte) error {
	return l.settles(func() error { return l.Ledger.Settle(ctx, id, released, answer) })
}

// SettleApart implements [budget.Ledger].
func (l *FailingLedger) SettleApart(ctx context.Context, id budget.ReservationID, released budget.Apart, answer []byte) error {
	return l.settles(func() error { return l.Ledger.SettleApart(ctx, id, released, answer) })
}
