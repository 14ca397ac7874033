package gateway

import (
	"context"
	"errors"
	"sync"
	"time"

	"noisegate.example/api"
	"noisegate.example/catalog"
	"noisegate.example/sqlrewrite"
)

// Which keys a question has may be for public tables to say: planning then ends with what is to be asked of them
// ([sqlrewrite.NeedLists]). It is asked here, as the reader, of the server that the tables lie in, before anything is charged: text, result
// and time are functions of public facts. What an analyst asked is remembered for that analyst alone, so that its time does not tell what
// others asked. A list that is not to be had narrows nothing: the question then has the keys that the policy gives it.

const (
	listRounds  = 3               // how often one question waits for lists
	listTime    = 2 * time.Second // of one list
	listMinute  = 6 * time.Second // of the lists of one analyst within a minute
	listMinutes = time.Minute
	mostListed  = 100_000 // keys that are remembered of the lists of one analyst
)

// keyLists are what one analyst knows of lists. Its zero value is ready; it is safe for concurrent use.
type keyLists struct {
	asking sync.Mutex // one list at a time
	mu     sync.Mutex
	of     map[string]*listsOf // by dataset
	kept   int                 // keys in all of them
	since  time.Time           // when the minute began
	taken  time.Duration       // in it
}

// listsOf are the lists of one snapshot.
type listsOf struct {
	on    *catalog.Snapshot
	known map[sqlrewrite.ListName]sqlrewrite.Tuples
}

// known gives the lists of a snapshot that there are. Those of an earlier one are forgotten.
func (k *keyLists) known(on *catalog.Snapshot) *sqlrewrite.Lists {
	k.mu.Lock()
	defer k.mu.Unlock()
	lists := &sqlrewrite.Lists{Known: make(map[sqlrewrite.ListName]sqlrewrite.Tuples)}
	if of := k.of[on.Dataset]; of != nil && of.on.Version == on.Version && of.on.Digest == on.Digest {
		for name, tuples := range of.known {
			lists.Known[name] = tuples
		}
	}
	return lists
}

// keep remembers a list. What is remembered is forgotten when it has grown too large.
func (k *keyLists) keep(on *catalog.Snapshot, name sqlrewrite.ListName, tuples sqlrewrite.Tuples) {
	k.mu.Lock()
	defer k.mu.Unlock()
	size := 1
	for _, t := range tuples {
		size += len(t)
	}
	if k.kept+size > mostListed {
		k.of, k.kept = nil, 0
	}
	if k.of == nil {
		k.of = make(map[string]*listsOf)
	}
	of := k.of[on.Dataset]
	if of == nil || of.on.Version != on.Version || of.on.Digest != on.Digest {
		of = &listsOf{on, make(map[sqlrewrite.ListName]sqlrewrite.Tuples)}
		k.of[on.Dataset] = of
	}
	of.known[name] = tuples
	k.kept += size
}

// spent adds to the time of the minute that runs, and reports whether there is some left.
func (k *keyLists) spent(now time.Time, d time.Duration) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now.Sub(k.since) >= listMinutes || now.Before(k.since) {
		k.since, k.taken = now, 0
	}
	k.taken += d
	return k.taken < listMinute
}

// withLists plans a request, with the lists of keys that it needs; it asks for none unless it may, and ends with
// [sqlrewrite.NeedLists].
func (s *Service) withLists(ctx context.Context, r api.QueryRequest, o *Order, who reader, known sqlrewrite.Options,
	asks bool) (*sqlrewrite.Plan, *sqlrewrite.PublicPlan, error) {
	own, accounts := s.keyLists.Of(who.analyst), o.Delay.leftOf(o.Accounts)
	known.Lists = own.known(o.On)
	for round := 1; ; round++ {
		private, public, err := planFor(ctx, r, o.On, accounts, known)
		var needed *sqlrewrite.NeedLists
		if !asks || !errors.As(err, &needed) {
			return private, public, err
		}
		if known.Lists.Settled = round == listRounds; known.Lists.Settled {
			continue
		}
		for _, q := range needed.Questions {
			known.Lists.Known[q.Name] = s.keyList(ctx, own, o, who, q)
		}
	}
}

// keyList asks for a list; nil where it is not to be had.
func (s *Service) keyList(ctx context.Context, own *keyLists, o *Order, who reader, q sqlrewrite.ListQuestion) sqlrewrite.Tuples {
	own.asking.Lock()
	defer own.asking.Unlock()
	if o.Accounts.held() || !own.spent(s.clock.Now(), 0) {
		return nil
	}
	if post := q.Post(); len(post.Preconditions()) > 0 && s.countRead(ctx, who) != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	began := s.clock.Now()
	rows, _, err := s.datasets[who.dataset].Data.Read(ctx, q.Post())
	now := s.clock.Now()
	own.spent(now, now.Sub(began))
	switch {
	case err != nil && ctx.Err() == nil || errors.Is(ctx.Err(), context.Canceled): // another time it may be there
		return nil
	case err != nil || len(rows) > sqlrewrite.MostTuples:
		own.keep(o.On, q.Name, nil)
		return nil
	}
	tuples := make(sqlrewrite.Tuples, len(rows))
	for i, row := range rows {
		tuples[i] = row.Values
	}
	own.keep(o.On, q.Name, tuples)
	return tuples
}
