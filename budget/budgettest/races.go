package budgettest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"noisegate.example/budget"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

// clients is how many goroutines race.
const clients = 64

// 64 clients against caps that fit 10: exactly 10 are answered.
func testExactlyTen(f *fixture) {
	whole, own := datasetAccount(f.limit(budget.Approx, "1", "1e-6")), analystAccount("ana", f.limit(budget.Pure, "100", ""))
	charges := make([]budget.Charge, clients)
	for i := range charges {
		charges[i] = f.charge(pure(100), whole, own)
	}
	taken, err := Rush(patiently(f), f.ledger, charges)
	if err != nil || len(taken) != 10 {
		f.Errorf("%d of %d were answered (%v), want 10", len(taken), clients, err)
	}
	for _, c := range taken {
		f.took(c)
	}
	if b := f.balance(whole.ID); b.Spent.Epsilon != mechanisms.EpsilonUnit || b.Reserved != (mechanisms.Loss{}) {
		f.Errorf("balance %+v", b)
	}
}

// Rush reserves all charges at the same time, settles those that are taken and lists them. It reports errors other than
// budget/exhausted.
func Rush(ctx context.Context, ledger budget.Ledger, charges []budget.Charge) (taken []budget.Charge, err error) {
	var mu sync.Mutex
	together(len(charges), func(i int) {
		got, failure := ledger.Reserve(ctx, charges[i])
		if failure == nil {
			failure = ledger.Settle(ctx, charges[i].ID, charges[i].Loss, []byte("x"))
		}
		mu.Lock()
		defer mu.Unlock()
		switch {
		case failure == nil && got.Reserved != nil:
			taken = append(taken, charges[i])
		case fault.CodeOf(failure) != fault.CodeBudgetExhausted:
			err = errors.Join(err, failure)
		}
	})
	return taken, err
}

// The same question from 64 clients at once is charged once.
func testOneQuestionAtOnce(f *fixture) {
	own := analystAccount("ana", f.limit(budget.Pure, "100", ""))
	f.race(func(int) budget.Charge { return f.charge(pure(1), own) }, func(c budget.Charge, _ int) budget.Charge {
		c.Fingerprint = [32]byte{1}
		return c
	})
	f.wantBalance(own, mechanisms.Loss{}, pure(1))
}

// One key for 64 requests, of two kinds that touch different accounts, is charged once.
func testOneKeyAtOnce(f *fixture) {
	limit := f.limit(budget.Pure, "100", "")
	sides := []budget.Account{groupAccount("g0", limit), groupAccount("g1", limit)}
	f.race(func(i int) budget.Charge { return f.charge(pure(1), sides[i%2]) }, func(c budget.Charge, i int) budget.Charge {
		return withKey(c, "k", []string{"even", "odd"}[i%2])
	})
	var reserved mechanisms.Loss
	for _, b := range f.everything().Balances {
		reserved = reserved.Plus(b.Reserved)
	}
	if reserved != pure(1) {
		f.Errorf("reserved %+v", reserved)
	}
}

// race sends variants of a charge at the same time and wants one reservation; all others meet it in flight, or as
// another request under its key.
func (f *fixture) race(base func(i int) budget.Charge, vary func(c budget.Charge, i int) budget.Charge) {
	f.Helper()
	charges := make([]budget.Charge, clients)
	for i := range charges {
		charges[i] = vary(base(i), i)
	}
	var taken atomic.Int64
	ctx := patiently(f)
	together(clients, func(i int) {
		got, err := f.ledger.Reserve(ctx, charges[i])
		code := fault.CodeOf(err)
		switch {
		case err == nil && got.Reserved != nil:
			f.took(charges[i])
			taken.Add(1)
		case code != fault.CodeRequestInFlight && code != fault.CodeBudgetReplayMismatch:
			f.Errorf("got %+v, %v", got, err)
		}
	})
	if taken.Load() != 1 {
		f.Errorf("%d reservations, want 1", taken.Load())
	}
}

// Reservations, endings and limits on accounts that overlap in every way neither deadlock nor lose a sum.
func testOverlappingAccounts(f *fixture) {
	limit := f.limit(budget.ZCDP, "1000", "")
	whole := datasetAccount(limit)
	ctx := patiently(f)
	together(16, func(i int) {
		accounts := []budget.Account{whole, groupAccount(string(rune('a'+i%2)), limit), analystAccount(string(rune('a'+i%3)), limit)}
		if i%4 == 3 {
			accounts = accounts[1:]
		}
		for n := range 12 {
			c := f.charge(gaussian(1), accounts...)
			if _, err := f.ledger.Reserve(ctx, c); err != nil {
				f.Error(err)
				return
			}
			f.took(c)
			var err error
			switch n % 4 {
			case 0:
				err = f.ledger.Settle(ctx, c.ID, gaussian(1), []byte("x"))
			case 1:
				err = f.ledger.Void(ctx, c.ID)
			case 2:
				err = f.ledger.Expire(ctx, c.ID)
			case 3:
				a := accounts[i%len(accounts)]
				a.Origin, a.Limit.PerQuery, a.Limit.PerQueryRho = budget.FromSteward, mechanisms.EpsilonUnit, mechanisms.PicoRho(milli*int64(n+1))
				err = f.ledger.SetLimit(ctx, "stella", a)
			}
			if err != nil {
				f.Error(err)
				return
			}
		}
	})
}
