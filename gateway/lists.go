package gateway

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"noisegate.example/api"
	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite"
)

// Public tables can decide which keys a question has. Planning then ends with questions for lists of keys ([sqlrewrite.NeedLists]). They
// are asked here, as the reader, of the dataset's server, before anything is charged: text, result and time depend on public facts alone.
// Analysts never share a cache of lists, so timing reveals nothing about what others asked. A list that is unavailable narrows nothing: the
// question then has the keys of its policy.

const (
	listRounds  = 3               // the round of planning that asks for no more lists
	listTime    = 2 * time.Second // timeout of one list, unless its dataset sets another
	listsTimed  = 3               // lists of one analyst that may take all their time within listMinutes
	listMinutes = time.Minute
	mostListed  = 8 << 20 // bytes in the cache of one analyst
)

// keyLists caches the lists of one analyst. Its zero value is ready; it is safe for concurrent use.
type keyLists struct {
	asking sync.Mutex // held while a list is asked for: one at a time
	mu     sync.Mutex
	of     map[string]*listsOf // by dataset
	kept   int                 // bytes of all of them
	since  time.Time           // when the current minute began
	taken  time.Duration       // by lists in this minute
}

// listsOf are the lists of one snapshot.
type listsOf struct {
	on    *catalog.Snapshot
	known map[sqlrewrite.ListName]sqlrewrite.Tuples
}

// known returns the cached lists of a snapshot.
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

// keep caches a list, in place of those of other versions of the dataset. A full cache is emptied first. A list that would fill it alone is
// not cached: each question that needs it asks for it.
func (k *keyLists) keep(on *catalog.Snapshot, name sqlrewrite.ListName, tuples sqlrewrite.Tuples) {
	k.mu.Lock()
	defer k.mu.Unlock()
	size := bytesOf(tuples)
	switch {
	case size > mostListed:
		return
	case k.kept+size > mostListed:
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

// bytesOf is about how much memory a list takes in a cache.
func bytesOf(tuples sqlrewrite.Tuples) int {
	const list, tuple, key = 256, 24, 24
	size := list
	for _, t := range tuples {
		size += tuple
		for _, k := range t {
			size += key + len(k.Text)
		}
	}
	return size
}

// spend adds to the time taken in the current minute, and returns how long it is until another list, of a dataset whose lists may take
// timeout, may be asked for.
func (k *keyLists) spend(now time.Time, d, timeout time.Duration) (wait time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now.Sub(k.since) >= listMinutes || now.Before(k.since) {
		k.since, k.taken = now, 0
	}
	k.taken += d
	if k.taken < listsTimed*timeout {
		return 0
	}
	return k.since.Add(listMinutes).Sub(now)
}

// withLists plans a request, with the lists of keys that it needs. If asks is false, it asks for no list, and returns
// [sqlrewrite.NeedLists] where one is not cached. Its other errors are those of planning, and request/too-many.
func (s *Service) withLists(ctx context.Context, r api.QueryRequest, o *Order, who reader, known sqlrewrite.Options,
	asks bool) (*sqlrewrite.Plan, *sqlrewrite.PublicPlan, error) {
	own, accounts := s.keyLists.Of(who.analyst), o.Delay.leftOf(o.Accounts)
	known.Lists = own.known(o.On)
	var wait time.Duration // until a list may be asked for that was not
	for round := 1; ; round++ {
		private, public, err := planFor(ctx, r, o.On, accounts, known)
		var needed *sqlrewrite.NeedLists
		switch {
		case asks && errors.As(err, &needed):
		case wait > 0 && mayLackLists(err):
			return nil, nil, fault.RequestServerTime("lists of keys", 1+int(wait.Seconds()))
		default:
			return private, public, err
		}
		if known.Lists.Settled = round == listRounds; known.Lists.Settled {
			continue
		}
		for _, q := range needed.Questions {
			tuples, later := s.keyList(ctx, own, o, who, q)
			known.Lists.Known[q.Name], wait = tuples, max(wait, later)
		}
	}
}

// mayLackLists reports whether a refusal may be for a list that was not asked for: such a question lacks nothing in its policy.
func mayLackLists(err error) bool {
	switch fault.CodeOf(err) {
	case fault.CodeMissingKeys, fault.CodeMissingBounds, fault.CodeTooManyKeys:
		return true
	default:
		return false
	}
}

// keyList asks for a list; nil: it is unavailable. It asks for none where an account is held, or where the analyst has no time left, and
// then returns how long it is until there is some. A read of public tables is counted first. Lists that time out or are too long are cached
// as unavailable; those that fail otherwise are asked for again by a later question.
func (s *Service) keyList(ctx context.Context, own *keyLists, o *Order, who reader, q sqlrewrite.ListQuestion) (sqlrewrite.Tuples,
	time.Duration) {
	own.asking.Lock()
	defer own.asking.Unlock()
	if o.Accounts.held() {
		return nil, 0
	}
	timeout := cmp.Or(s.datasets[who.dataset].ListTime, listTime)
	if wait := own.spend(s.clock.Now(), 0, timeout); wait > 0 {
		return nil, wait
	}
	if post := q.Post(); len(post.Preconditions()) > 0 && s.countRead(ctx, who) != nil {
		return nil, 0
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	began := s.clock.Now()
	rows, _, err := s.datasets[who.dataset].Data.Read(ctx, q.Post())
	now := s.clock.Now()
	own.spend(now, now.Sub(began), timeout)
	switch {
	case err != nil && ctx.Err() == nil || errors.Is(ctx.Err(), context.Canceled):
		return nil, 0
	case err != nil || len(rows) > sqlrewrite.MostTuples:
		own.keep(o.On, q.Name, nil)
		return nil, 0
	}
	tuples := make(sqlrewrite.Tuples, len(rows))
	for i, row := range rows {
		tuples[i] = row.Values
	}
	own.keep(o.On, q.Name, tuples)
	return tuples, 0
}
