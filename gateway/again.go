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
	}{who, r.QueryRequest})
	if err != nil || r.IdempotencyKey != "" || !utf8.ValidString(r.SQL) {
		return digest{}
	}
	return sha256.Sum256(text)
}

// answeredBy is the charge whose answer a request was given, and all that decided so beside the request: the policy with its pins and the
// state of the data that it names, the day, the copies that there were, and the caller's accounts.
type answeredBy struct {
	charge   budget.ReservationID
	on       *catalog.Snapshot
	day      string
	copies   []catalog.Version
	standing []standing
	own      budget.Account
	data     string // what replays say of the data that they are of
	asOf     time.Time
}

const (
	// mostAnswered is of how many requests of one caller it is remembered, the newest.
	mostAnswered = 256
	// mostCallers is of how many callers, those that asked last: some 25 MB at most.
	mostCallers = 256
)

// answered remembers the requests of each caller by themselves: what others ask takes nothing from a caller that is noticed as time. The
// zero value is ready; it is safe for concurrent use.
type answered struct {
	mu    sync.Mutex
	by    map[string]*answeredTo // by subject
	turns int64
}

type answeredTo struct {
	turn  int64 // when it asked last
	of    map[digest]answeredBy
	order []digest // a ring
	next  int
}

// find gives what is remembered of a request.
func (a *answered) find(subject string, name digest) (answeredBy, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	to := a.by[subject]
	if to == nil {
		return answeredBy{}, false
	}
	a.turns++
	to.turn = a.turns
	by, ok := to.of[name]
	return by, ok
}

// keep remembers a request, in the place of what was known of it.
func (a *answered) keep(subject string, name digest, by answeredBy) {
	a.mu.Lock()
	defer a.mu.Unlock()
	to := a.by[subject]
	if to == nil {
		to = a.enter(subject)
	}
	if _, known := to.of[name]; !known {
		if len(to.order) < mostAnswered {
			to.order = append(to.order, name)
		} else {
			delete(to.of, to.order[to.next])
			to.order[to.next] = name
			to.next = (to.next + 1) % mostAnswered
		}
	}
	to.of[name] = by
}

// enter makes room for a caller.
func (a *answered) enter(subject string) *answeredTo {
	if len(a.by) >= mostCallers {
		longest := ""
		for name, to := range a.by {
			if longest == "" || to.turn < a.by[longest].turn {
				longest = name
			}
		}
		delete(a.by, longest)
	}
	if a.by == nil {
		a.by = map[string]*answeredTo{}
	}
	a.turns++
	to := &answeredTo{turn: a.turns, of: map[digest]answeredBy{}}
	a.by[subject] = to
	return to
}

// again answers a request as it was answered before; nil where that is not known, or not so any more.
func (s *Service) again(ctx context.Context, who auth.Principal, r Request, name digest) *Answer {
	by, ok := s.answered.find(who.Subject, name)
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
	paid := replayOf(stored)
	return &Answer{ID: paid.ID, Dataset: r.Dataset, Replayed: true, At: paid.At.UTC(), Data: by.data, AsOf: by.asOf, Result: paid.Answer,
		Spent: amounts.Of(paid.Spent), Remaining: s.headroom(own), Receipt: s.Sign(ctx, r.Dataset, paid)}
}

// remember keeps how a request was answered, where it would be answered so again: with the stored answer of a charge of the caller's own.
// What draws from a registered plan is left out: the ledger is asked for the plan first.
func (s *Service) remember(who auth.Principal, r Request, name digest, q *prepared, paid Receipt) {
	own := !paid.Replayed || paid.buyer == who.Subject
	if q.public != nil || r.Plan != "" || paid.ID == "" || !own || name == (digest{}) {
		return
	}
	s.answered.keep(who.Subject, name, answeredBy{charge: paid.ID, on: q.on, day: q.day, copies: q.copies, standing: q.accounts.standing,
		own: q.accounts.Own().Account, data: q.dataVersion, asOf: q.asOf()})
}
