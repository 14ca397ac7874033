package budget_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"noisegate/budget"
	"noisegate/internal/fault"
	"noisegate/internal/pgtest"
	"noisegate/mechanisms"
)

// Batches that go behind each other, each on the assumption that the one before it is committed: many clients of one gateway at once, so many that batches overlap,
// and now and then one that cannot be written from memory, and takes the one behind it along. There is one connection: nobody holds it and waits for another.
func testOverlap(t *testing.T, d *pgtest.ControlDatabase) {
	const clients, each = 32, 60
	l, err := budget.OpenPostgres(t.Context(), d.LedgerDSN+"&pool_max_conns=1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	own := account(budget.AnalystScope, "ana", clients*each)
	reserve(t, l, charge("first", mechanisms.Loss{}, own))
	var all sync.WaitGroup
	for i := range clients {
		random := rand.New(rand.NewPCG(uint64(i), 11))
		all.Go(func() {
			for n := range each {
				c := charge(fmt.Sprint(i, "-", n), mechanisms.Loss{Epsilon: 1}, own)
				if got, err := l.Reserve(t.Context(), c); err != nil || got.Reserved == nil {
					t.Errorf("%+v, %v", got, err)
				}
				if err := l.Settle(t.Context(), c.ID, c.Loss, []byte(c.ID)); err != nil {
					t.Error(err)
				}
				switch random.IntN(20) {
				case 0:
					again := c
					again.ID += "again"
					if got, err := l.Reserve(t.Context(), again); err != nil || got.Replay == nil || string(got.Replay.Answer) != string(c.ID) {
						t.Errorf("%+v, %v", got, err)
					}
				case 1:
					dear := charge(string(c.ID)+"dear", mechanisms.Loss{Epsilon: clients*each + 1}, own)
					if got, err := l.Reserve(t.Context(), dear); fault.CodeOf(err) != fault.CodeBudgetExhausted {
						t.Errorf("%+v, %v", got, err)
					}
				}
			}
		})
	}
	all.Wait()
	b, err := l.Balances(t.Context(), []budget.AccountID{own.ID})
	if err != nil || b[0].Spent != (mechanisms.Loss{Epsilon: clients * each}) || b[0].Reserved != (mechanisms.Loss{}) {
		t.Errorf("%+v, %v", b, err)
	}
	if err := l.VerifyAll(t.Context()); err != nil {
		t.Error(err)
	}
}

// Answers are lost while batches are on their way, at most two at once. What became of each is found out: nobody is left without an answer, and everybody has what
// he was told of, once.
func testOverlapAnswersLost(t *testing.T, d *pgtest.ControlDatabase) {
	const clients, each, losses = 32, 100, 12
	wire := newWire(t, d.LedgerDSN)
	l, err := budget.OpenPostgres(t.Context(), wire.dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	own := account(budget.AnalystScope, "ana", clients*each)
	reserve(t, l, charge("first", mechanisms.Loss{}, own))
	var done atomic.Int64
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			for n := range each {
				c := charge(fmt.Sprint(i, "-", n), mechanisms.Loss{Epsilon: 1}, own)
				if got, err := l.Reserve(t.Context(), c); err != nil || got.Reserved == nil {
					t.Errorf("%+v, %v", got, err)
				}
				if err := l.Settle(t.Context(), c.ID, c.Loss, []byte(c.ID)); err != nil {
					t.Error(err)
				}
				if done.Add(1)%(clients*each/losses) == 0 { // often enough, and seldom enough for batches to overlap again
					wire.loseNextAnswer()
				}
			}
		})
	}
	all.Wait()
	if lost := wire.lost.Load(); lost < losses/2 {
		t.Errorf("only %d answers were lost", lost)
	}
	b, err := l.Balances(t.Context(), []budget.AccountID{own.ID})
	if err != nil || b[0].Spent != (mechanisms.Loss{Epsilon: clients * each}) || b[0].Reserved != (mechanisms.Loss{}) {
		t.Errorf("%+v, %v", b, err)
	}
	if err := l.VerifyAll(t.Context()); err != nil {
		t.Error(err)
	}
}
