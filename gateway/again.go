package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/catalog"
	"noisegate.example/gateway/auth"
	"noisegate.example/gateway/internal/amounts"
)

// A request that was answered before is answered again without being planned: docs/decisions/0052 says why that is the answer
// that planning would find. What is remembered is the charge whose answer that is, and by what it was found: the ledger is asked for
// the answer each time. Where anything differs, or the ledger does not have it, the request is prepared as any other.

// digest names a request, with who asks it: all that a caller says.
type digest [32]byte

// digestOf is over the request as it was decoded, so that it does not matter how it was written. It is zero where nothing is remembered:
// of a request under an Idempotency-Key, which the ledger keeps with the answer, and of one that is refused before it is read.
func digestOf(who auth.Principal, r Request) digest {
	r.Wait = nil // it says nothing of the answer
	text, err := json.Marshal(struct {
		Who     auth.Principal
		Request api.QueryRequest
		Zone    string // which requests do not write
	}{who, r.QueryRequest, r.TimeZone})
	if err != nil || r.IdempotencyKey != "" || !utf8.ValidString(r.SQL) {
		return digest{}
	}
	return sha256.Sum256(text)
}

// answeredBy is the charge whose answer a request was given, and what else that answer depended on. This is the policy with its pins and
// the state of the data that it names, the day, the copies that there were, and the caller's accounts.
type answeredBy struct {
	charge   budget.ReservationID
	on       *catalog.Snapshot
	day      string
	copies   []catalog.Version
	standing []standing
	own      budget.Account
	data     string // what replays say of the data that they are of
	asOf     time.Time
	latest   fresh // what a fresh answer costs
}

// mostAnswered limits how many requests of one caller are remembered, the newest ones: at most some 25 MB for all callers.
const mostAnswered = 256

// answered remembers the requests of a caller. The zero value is ready; it is safe for concurrent use.
type answered struct {
	mu    sync.Mutex
	of    map[digest]answeredBy
	order []digest // a ring
	next  int
}

// find gives what is remembered of a request.
func (a *answered) find(name digest) (answeredBy, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	by, ok := a.of[name]
	return by, ok
}

// keep remembers a request, in place of what was known of it.
func (a *answered) keep(name digest, by answeredBy) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of == nil {
		a.of = map[digest]answeredBy{}
	}
	if _, known := a.of[name]; !known {
		if len(a.order) < mostAnswered {
			a.order = append(a.order, name)
		} else {
			delete(a.of, a.order[a.next])
			a.order[a.next] = name
			a.next = (a.next + 1) % mostAnswered
		}
	}
	a.of[name] = by
}

// again answers a request as it was answered before; nil where that is not known, or not so any more.
func (s *Service) again(ctx context.Context, who auth.Principal, r Request, name digest) *Answer {
	by, ok := s.answered.Of(who.Subject).find(name)
	if !ok {
		return nil
	}
	snapshot, err := s.Snapshot(r.Dataset)
	if err != nil || snapshot != by.on || by.day != dayOf(s.clock.Now()) || !slices.Equal(by.copies, s.copies(snapshot)) {
		return nil
	}
	asked := budget.Again{Dataset: r.Dataset, Analyst: who.Subject, Charge: by.charge, Accounts: accountIDs(who, r.Dataset)}
	var balances []budget.Balance
	stored, err := within(context.WithoutCancel(ctx), func(ctx context.Context) (stored *budget.Stored, err error) {
		balances, stored, err = s.ledger.Again(ctx, asked)
		return stored, err
	})
	if err != nil || stored == nil || !slices.Equal(by.standing, standingsOf(balances)) {
		return nil
	}
	i := slices.IndexFunc(balances, func(b budget.Balance) bool { return b.ID == by.own.ID })
	if i < 0 {
		return nil
	}
	own := balances[i]
	own.Account = by.own
	return s.stored(ctx, r.Dataset, stored, own, by)
}

// stored makes the answer of a request of a charge that was found, for the owner of an account.
func (s *Service) stored(ctx context.Context, dataset string, found *budget.Stored, own budget.Balance, by answeredBy) *Answer {
	paid := replayOf(found)
	answer := &Answer{ID: paid.ID, Dataset: dataset, Replayed: true, At: paid.At.UTC(), Data: by.data, AsOf: by.asOf, Result: paid.Answer,
		Spent: amounts.Of(paid.Spent), Remaining: s.headroom(own), Receipt: s.Sign(ctx, dataset, paid)}
	answer.replay(s.clock.Now(), by.latest)
	return answer
}

// remember keeps how a request was answered, where it would be answered so again: with the stored answer of a charge of the caller's own.
// What draws from a registered plan is left out: the ledger is asked for the plan first.
func (s *Service) remember(who auth.Principal, r Request, name digest, q *prepared, paid Receipt) {
	own := !paid.Replayed || paid.buyer == who.Subject
	if q.public != nil || q.fresh || r.Plan != "" || paid.ID == "" || !own || name == (digest{}) {
		return
	}
	s.answered.Of(who.Subject).keep(name, answeredBy{charge: paid.ID, on: q.On, day: q.day, copies: q.copies, standing: q.Accounts.standing,
		own: q.Accounts.Own().Account, data: q.dataVersion, asOf: q.asOf(), latest: q.latestCosts})
}
