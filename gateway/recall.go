package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"noisegate/api"
	"noisegate/budget"
	"noisegate/internal/fault"
	"noisegate/sqlrewrite"
)

// What a question releases is known by less than its text: its outer layers are computed from released values, and so is its answer where
// another question has released them before. docs/decisions/0032 says why, and what is kept.

// released is what a question releases, as the store of released values knows it.
type released struct {
	forms      []sqlrewrite.Form
	identities [][32]byte // by form
}

// releases finds out what a question releases, before the slots of a registered plan take the place of its price. What draws from a plan is
// known by that plan.
func releases(plan *sqlrewrite.Plan, draws string) released {
	r := released{forms: plan.Forms()}
	for _, form := range r.forms {
		identity := form.Identity()
		if draws != "" {
			identity = sha256.Sum256(append([]byte("drawing from "+draws+" "), identity[:]...))
		}
		r.identities = append(r.identities, identity)
	}
	return r
}

// recall answers a question from what was released before, and charges nothing: a replay, or no receipt where there is no such release.
// Then the question is the one of its analyst's that releases this until leave is called, and others that would release the same wait
// for it.
func (s *Service) recall(ctx context.Context, q *prepared, tick *Schedule) (paid Receipt, leave func(), err error) {
	if s.values == nil || !q.plan.NeedsData() {
		return Receipt{}, func() {}, nil
	}
	name := flight{q.charge.Dataset, q.charge.Analyst, q.released.identities[0]}
	for {
		var running <-chan struct{}
		if leave, running = s.flights.enter(name, q.charge.Fingerprint); running == nil {
			break
		}
		if err := tick.await(ctx, running); err != nil {
			return Receipt{}, leave, err
		}
	}
	defer func() {
		if p := recover(); p != nil { // or others would wait for ever
			leave()
			panic(p)
		}
	}()
	// Whose client is gone is told so where the question would be charged.
	found, err := within(context.WithoutCancel(ctx), func(ctx context.Context) (*budget.Found, error) {
		return s.values.FindReleased(ctx, budget.Earlier{Dataset: q.charge.Dataset, Analyst: q.charge.Analyst, Identities: q.released.identities,
			Shared: q.charge.Shared})
	})
	if err != nil || found == nil {
		return Receipt{}, leave, err
	}
	values, err := q.released.forms[slices.Index(q.released.identities, found.Identity)].Recall(found.Values)
	if err != nil {
		s.log.ErrorContext(ctx, "an earlier release cannot be read", "reservation", string(found.Charge), "code", string(fault.CodeOf(err)))
		return Receipt{}, leave, nil // it is asked anew, at the whole price
	}
	leave()
	paid, err = s.reshaped(ctx, q, tick, found, values)
	return paid, leave, err
}

// reshaped is the answer that a question was given before, or that of the release that is found. An answer that was lost with its gateway
// after its values were kept is made of these.
func (s *Service) reshaped(ctx context.Context, q *prepared, tick *Schedule, found *budget.Found,
	values *sqlrewrite.Released) (Receipt, error) {
	stored, err := s.Replay(ctx, q.charge)
	switch {
	case fault.CodeOf(err) == fault.CodeBudgetLostAnswer:
	case err != nil:
		return Receipt{}, err
	case stored != nil && (stored.Analyst == q.charge.Analyst || stored.ID == found.Charge): // no other draw than the one that was found
		return replayOf(stored), nil
	}
	answer, err := s.uncharged(ctx, tick, func(ctx context.Context) (*api.Result, error) { return s.finish(ctx, q.data, values) })
	if err != nil {
		return Receipt{}, err
	}
	return Receipt{ID: found.Charge, Answer: answer, Replayed: true, At: found.At, reshaped: true}, nil
}

// uncharged runs what reads nothing private. It leaves at a boundary as others do: it runs where they run, so that the time that it takes
// would tell when they end.
func (s *Service) uncharged(ctx context.Context, tick *Schedule, work func(context.Context) (*api.Result, error)) (json.RawMessage, error) {
	encoded, err := Pace(ctx, tick, func(ctx context.Context) (json.RawMessage, error) {
		result, err := work(ctx)
		if err != nil {
			return nil, err
		}
		encoded, err := json.Marshal(result)
		if err != nil {
			return nil, fault.Internal(err)
		}
		return encoded, nil
	})
	switch {
	case errors.Is(err, errCancelled):
		return nil, fault.BudgetCancelled(false)
	case errors.Is(err, errTimeout):
		return nil, fault.DataUnavailable(err)
	}
	return encoded, err
}

// keepReleased stores what was released, after the boundary at which it may be seen and before the charge is settled. If the gateway dies
// in between, the charge expires and counts as spent, so that what it bought may be used. If it cannot be stored, the next question about
// it is charged, and this answer is not lost for it.
func (s *Service) keepReleased(ctx context.Context, q *prepared, values *sqlrewrite.Released) {
	if s.values == nil || !q.plan.NeedsData() {
		return
	}
	text, err := values.Kept()
	if err == nil && len(text) > budget.MaxReleased {
		return
	}
	if err == nil {
		_, err = within(ctx, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, s.values.KeepReleased(ctx, budget.Released{Charge: q.charge.ID, Dataset: q.charge.Dataset,
				Analyst: q.charge.Analyst, Shared: q.shares, Identity: q.released.identities[0], Values: text})
		})
	}
	if err != nil {
		s.log.ErrorContext(ctx, "keeping a release failed", "reservation", string(q.charge.ID), "code", string(fault.CodeOf(err)))
	}
}

// flight names what a running question releases.
type flight struct {
	dataset, analyst string
	release          [32]byte
}

// flights are the questions of this process that may release something. A dashboard asks for several views of one release at once: the
// first pays for it, and the others are answered from it. The zero value is ready; it is safe for concurrent use.
type flights struct {
	mu      sync.Mutex
	running map[flight]*runningRelease
}

type runningRelease struct {
	question [32]byte
	done     chan struct{}
}

// enter makes a question the one that releases something, or gives the channel that is closed when the one that does has left. The same
// question is neither: the ledger says that it is in flight.
func (f *flights) enter(name flight, question [32]byte) (leave func(), running <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch r := f.running[name]; {
	case r == nil:
	case r.question == question:
		return func() {}, nil
	default:
		return func() {}, r.done
	}
	if f.running == nil {
		f.running = map[flight]*runningRelease{}
	}
	own := &runningRelease{question: question, done: make(chan struct{})}
	f.running[name] = own
	return sync.OnceFunc(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.running, name)
		close(own.done)
	}), nil
}
