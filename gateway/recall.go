package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/gateway/released"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite"
)

// What a question releases is known by less than its text: its outer layers are computed from released values, and so is its answer where
// another question has released them before. docs/decisions/0032 says why, and what is kept.

// recall answers a question from what was released before, and charges nothing: a replay, or no receipt where that is not all that it
// releases. Then it pays for the rest alone, and the question is the one of its analyst's that releases this until it leaves, and others
// that would release the same wait for it.
func (s *Service) recall(ctx context.Context, q *prepared, tick *Schedule) (paid Receipt, err error) {
	if !s.recalls(q) {
		return Receipt{}, nil
	}
	if q.found == nil {
		if _, err := s.lookBack(ctx, q, tick, nil); err != nil {
			return Receipt{}, err
		}
	}
	found := *q.found
	if q.sharing.best, q.sharing.under = found.Best, found.Under; found.Rest != nil {
		s.chargeRest(q, found.Rest)
	}
	if found.Whole == nil {
		return Receipt{}, nil
	}
	q.leave()
	if paid, err = s.reshaped(ctx, q, tick, found); paid.reshaped {
		paid.of = found.Version
	}
	return paid, err
}

// recalls reports whether earlier releases may answer a question.
func (s *Service) recalls(q *prepared) bool { return s.values != nil && q.plan.NeedsData() && !q.fresh }

// lookBack makes a question the one that releases what it does, and looks up what of it was released before. In the same exchange it reads
// the balances of its analyst's accounts, where such are given.
func (s *Service) lookBack(ctx context.Context, q *prepared, tick *Schedule, accounts []budget.AccountID) (*budget.Earlier, error) {
	var err error
	if q.leave, err = s.enterAll(ctx, q, tick); err != nil {
		return nil, err
	}
	q.sharing.questions = q.atAnyPrice()
	found, earlier, err := s.find(ctx, q, accounts)
	q.found = &found
	return earlier, err
}

// bought reports whether all that a question releases was paid for by its analyst, so that it is answered free. What others bought is not
// looked at, even where a policy shares it: an estimate is free, and would tell who asked what.
func (s *Service) bought(ctx context.Context, q *prepared) (bool, error) {
	own := *q
	own.Charge.Shared = false
	if stored, err := s.isStored(ctx, own.Charge, q.earlier); stored || err != nil {
		return stored, err
	}
	if s.recalls(&own) {
		if found, _, err := s.find(ctx, &own, nil); err != nil || found.Whole != nil {
			return err == nil, err
		}
	}
	if q.unlisted == nil {
		return false, nil
	}
	return s.isStored(ctx, own.Charge, q.unlisted)
}

// isStored reports whether the answer of a charge is there, under its name or another.
func (s *Service) isStored(ctx context.Context, charge budget.Charge, names [][32]byte) (bool, error) {
	if err := s.Named(ctx, &charge, names...); err != nil {
		return false, err
	}
	stored, err := s.Replay(ctx, charge)
	if code := fault.CodeOf(err); code == fault.CodeRequestInFlight || code == fault.CodeBudgetLostAnswer { // it is not there, or not yet
		return false, nil
	}
	return stored != nil, err
}

// enterAll enters the flights of all that a question releases, in one certain order, so that no two questions wait for each other.
func (s *Service) enterAll(ctx context.Context, q *prepared, tick *Schedule) (leave func(), err error) {
	var leaves []func()
	leave = func() {
		for _, one := range leaves {
			one()
		}
	}
	for _, name := range flightsOf(q) {
		for {
			one, running := s.flights.enter(name, q.Charge.Fingerprint)
			if running == nil {
				leaves = append(leaves, one)
				break
			}
			if err := tick.await(ctx, running); err != nil {
				leave()
				return func() {}, err
			}
		}
	}
	return leave, nil
}

// flightsOf are the flights of all that a question releases, in order.
func flightsOf(q *prepared) []flight {
	var names []flight
	for _, r := range q.released {
		if len(r.Names) > 0 {
			names = append(names, flight{q.Charge.Dataset, q.Charge.Analyst, r.Names[0]})
		}
	}
	slices.SortFunc(names, func(a, b flight) int { return bytes.Compare(a.release[:], b.release[:]) })
	return names
}

// find looks up all that a question releases, and accounts of its analyst, as the first look-up finds them (nil: none); also for a client
// that is gone: its question fails where it would be charged.
func (s *Service) find(ctx context.Context, q *prepared, accounts []budget.AccountID) (found released.Found, first *budget.Earlier,
	err error) {
	ctx = context.WithoutCancel(ctx)
	look := func(ctx context.Context, l budget.Lookup) (*budget.Earlier, error) {
		if first == nil {
			l.Accounts = accounts
		}
		earlier, err := within(ctx, func(ctx context.Context) (*budget.Earlier, error) { return s.values.Find(ctx, l) })
		if first == nil {
			first = earlier
		}
		return earlier, err
	}
	found, err = released.Finder{Look: look, Log: s.log}.Find(ctx, released.Lookup{Plan: q.plan, Releases: q.released, Latest: q.latest,
		Lookup: budget.Lookup{Dataset: q.Charge.Dataset, Analyst: q.Charge.Analyst, Shared: q.Charge.Shared, Questions: q.atAnyPrice()}})
	return found, first, err
}

// lossesOf are the losses of what a plan releases, one by one: of Laplace and Gaussian noise together the sum is neither's.
func lossesOf(plan *sqlrewrite.Plan) []mechanisms.Loss {
	var losses []mechanisms.Loss
	for _, block := range plan.Blocks() {
		losses = append(losses, block.Loss())
	}
	return losses
}

// chargeRest makes the charge of a question that of the releases that were not found.
func (s *Service) chargeRest(q *prepared, rest *sqlrewrite.Plan) {
	q.plan = rest
	q.Price(q.Accounts.floor.charged(rest.Loss()), rest.Mechanisms())
}

// reshaped is the answer that a question was given before, or that of the release that is found. An answer that was lost with its gateway
// after its values were kept is made of these.
func (s *Service) reshaped(ctx context.Context, q *prepared, tick *Schedule, found released.Found) (Receipt, error) {
	stored, err := s.Replay(ctx, q.Charge)
	switch {
	case fault.CodeOf(err) == fault.CodeBudgetLostAnswer:
	case err != nil:
		return Receipt{}, err
	case stored != nil && (stored.Analyst == q.Charge.Analyst || stored.ID == found.Youngest.Charge): // no other draw than the found one
		return replayOf(stored), nil
	}
	answer, err := s.uncharged(ctx, tick, func(ctx context.Context) (*api.Result, error) { return s.finish(ctx, q, found.Whole) })
	if err != nil {
		return Receipt{}, err
	}
	return Receipt{ID: found.Youngest.Charge, Answer: answer, Replayed: true, At: found.Youngest.At, reshaped: true}, nil
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

// toKeep is what a question released, as it is stored, and what the answer says where something of it is not, as it is too long.
func (s *Service) toKeep(ctx context.Context, q *prepared, values *sqlrewrite.Released) (kept []budget.Released, notes []api.Note) {
	if s.values == nil || !q.plan.NeedsData() {
		return nil, nil
	}
	for i, fresh := range values.Fresh() {
		if fresh == nil || len(q.released[i].Names) == 0 {
			continue
		}
		text, err := fresh.Kept()
		switch {
		case err != nil:
			s.notKept(ctx, q, err)
		case len(text) > budget.MaxReleased:
			notes = []api.Note{tooLong}
		default:
			kept = append(kept, budget.Released{Charge: q.Charge.ID, Dataset: q.Charge.Dataset, Analyst: q.Charge.Analyst, Shared: q.shares,
				Identity: q.released[i].Names[0], Values: text, Version: q.versionOf(i)})
		}
	}
	return kept, notes
}

// keepReleased stores what was released, after the boundary at which it may be seen and before the charge is settled. If the gateway dies
// in between, the charge expires and counts as spent, so that what it bought may be used. If it cannot be stored, the next question about
// it is charged, and this answer is not lost for it.
func (s *Service) keepReleased(ctx context.Context, q *prepared, kept []budget.Released) {
	for _, values := range kept {
		if _, err := within(ctx, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, s.values.KeepReleased(ctx, values)
		}); err != nil {
			s.notKept(ctx, q, err)
		}
	}
}

func (s *Service) notKept(ctx context.Context, q *prepared, err error) {
	s.log.ErrorContext(ctx, "keeping a release failed", "reservation", string(q.Charge.ID), "code", string(fault.CodeOf(err)))
}

// tooLong is what an answer says of a release that is not kept. An estimate says it where it is known before.
var tooLong = api.Note{Code: "not-kept", Text: fmt.Sprintf("this release is longer than the %d MiB that are kept of one: as long as "+
	"policy and data stay as they are, the same question is answered again free; other views of it (names, order, limit, outer queries) "+
	"are charged",
	budget.MaxReleased>>20)}

// foretold is [tooLong] where it is sure before anything is released.
func foretold(q *prepared) []api.Note {
	if q.released == nil { // nothing is ever kept
		return nil
	}
	if slices.ContainsFunc(q.plan.Blocks(), func(b *sqlrewrite.Plan) bool { return b.NeedsData() && b.KeptLeast() > budget.MaxReleased }) {
		return []api.Note{tooLong}
	}
	return nil
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
