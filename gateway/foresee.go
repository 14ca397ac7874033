package gateway

import (
	"context"
	"slices"
	"sync"

	"noisegate.example/budget"
	"noisegate.example/catalog"
	"noisegate.example/gateway/auth"
)

// What a question is depends on its caller's accounts, and what was released before is looked up by what the question is. So that both take
// one exchange with the ledger, a question is planned for the accounts that its caller had last. Nothing is decided by these: the exchange
// says how the accounts are now, and where anything but what is spent differs, the question is planned anew (docs/decisions/0078).

// foresee prepares a question with the accounts as they were, looks up accounts and earlier releases together, and gives the question with
// the accounts as they are; nil where it is to be prepared as any other. Its errors are then those of [Service.prepare], and of waiting for
// questions that release the same.
func (s *Service) foresee(ctx context.Context, who auth.Principal, r Request, tick *Schedule) (*prepared, error) {
	if r.Plan != "" || r.Version != "" || CheckIdempotencyKey(r.IdempotencyKey) != nil {
		return nil, nil
	}
	snapshot, err := s.Snapshot(r.Dataset)
	if err != nil || snapshot.ShareReleases { // what others bought is looked up only for a caller who may be given it
		return nil, nil
	}
	ids := accountIDs(who, r.Dataset)
	before, ok := s.last.Of(who.Subject).find(snapshot, ids)
	if !ok {
		return nil, nil
	}
	o, err := s.OrderOf(who, snapshot, before, r.IdempotencyKey, r.AtMost)
	if err != nil {
		return nil, nil
	}
	q, refusal := s.planned(ctx, who, r, o)
	if refusal != nil {
		q = &prepared{Order: *o, leave: func() {}}
	}
	same := false
	defer func() {
		if !same {
			q.leave()
		}
	}()
	now, err := s.accountsNow(ctx, who, q, tick, ids)
	if err != nil {
		return nil, err
	}
	if same = slices.Equal(now.standing, before.standing); !same {
		return nil, nil
	}
	q.Accounts = now
	return q, refusal
}

// accountsNow gives the accounts of a question's caller, and looks up its earlier releases with them where that takes no other look-up
// first.
func (s *Service) accountsNow(ctx context.Context, who auth.Principal, q *prepared, tick *Schedule, ids []budget.AccountID) (Accounts, error) {
	if q.plan == nil || q.earlier != nil || !s.recalls(q) {
		return s.accountsOf(ctx, who, q.On, ids)
	}
	found, err := s.lookBack(ctx, q, tick, ids)
	if err != nil {
		return Accounts{}, err
	}
	return s.accountsAmong(who, q.On, ids, found.Balances, found.Failures)
}

// lastAccounts remembers the accounts of a caller on each dataset. The zero value is ready; it is safe for concurrent use.
type lastAccounts struct {
	mu sync.Mutex
	of map[string]accountsThen
}

// accountsThen are the accounts that there were among ids, under a policy.
type accountsThen struct {
	on  *catalog.Snapshot
	ids []budget.AccountID
	Accounts
}

// find gives what is remembered of the accounts among ids under a policy.
func (l *lastAccounts) find(on *catalog.Snapshot, ids []budget.AccountID) (Accounts, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	then := l.of[on.Dataset]
	return then.Accounts, then.on == on && slices.Equal(then.ids, ids)
}

// keep remembers the accounts of an order, where the ledger has all of them, with their limits: then nothing that others ask changes
// what planning needs of them, and so nobody sees in the time of a question that others asked.
func (l *lastAccounts) keep(ids []budget.AccountID, o *Order) {
	open := func(b budget.Balance) bool {
		return slices.Contains(o.Accounts.standing, standing{b.Account, b.Frozen})
	}
	if slices.ContainsFunc(o.Accounts.balances, func(b budget.Balance) bool { return !open(b) }) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of = map[string]accountsThen{}
	}
	l.of[o.On.Dataset] = accountsThen{o.On, ids, o.Accounts}
}
