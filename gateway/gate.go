package gateway

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"noisegate.example/internal/fault"
)

// Fairness says how analysts share what a gateway can do at a time. The zero value of a field stands for its default.
type Fairness struct {
	Places     int           // in all; 16
	PerAnalyst int           // of them, for one analyst: never all, where there are more than one; 2
	Queue      int           // requests of one analyst that wait for a place; 64
	Wait       time.Duration // the longest that one of them waits; 30 s
}

// The defaults of [Fairness]. A thread pool of a notebook or of a driver fits into the queue; a wait and the longest
// statement together end within a minute, which is how long proxies wait for an answer.
const (
	DefaultPlaces     = 16
	DefaultPerAnalyst = 2
	DefaultQueue      = 64
	DefaultWait       = 30 * time.Second
)

// Complete fills in what is not given.
func (f Fairness) Complete() (Fairness, error) {
	for _, field := range []struct {
		value    *int
		standard int
	}{{&f.Places, DefaultPlaces}, {&f.PerAnalyst, DefaultPerAnalyst}, {&f.Queue, DefaultQueue}} {
		if *field.value == 0 {
			*field.value = field.standard
		}
		if *field.value < 0 {
			return f, errors.New("gateway: places and queues have a positive size")
		}
	}
	if f.Wait == 0 {
		f.Wait = DefaultWait
	}
	if f.Wait < 0 {
		return f, errors.New("gateway: the longest wait for a place must be positive")
	}
	f.PerAnalyst = min(f.PerAnalyst, max(f.Places-1, 1)) // or one analyst could hold them all
	return f, nil
}

// catalogWait is the longest wait for a place of [Service.EnterCatalog].
const catalogWait = 5 * time.Second

// within are the same shares with no longer a wait than one given.
func (f Fairness) within(wait time.Duration) Fairness {
	f.Wait = min(f.Wait, wait)
	return f
}

// one gives an analyst one place: for work of milliseconds, which an analyst with two places could flood without boundaries.
func (f Fairness) one() Fairness {
	f.PerAnalyst = 1
	return f
}

// gate limits the requests that run at a time: whatever costs work enters it before the ledger is asked. One analyst has a few of its
// places at most; analysts who wait take turns, and the requests of one come in their order. So one analyst's flood delays another by one
// place's work at most.
//
// Who waits learns when places become free, and nothing else. That is no channel as long as a place becomes free when
// the work's outcome leaves, at a boundary of [Schedule], and not when the work ends: callers defer the release before they begin the
// schedule. A schedule begins once its request has entered, so that no wait moves a boundary.
//
// A gate is safe for concurrent use.
type gate struct {
	Fairness

	mu    sync.Mutex
	free  int
	lines map[string]*waitingLine // of analysts with a place or a request that waits
	turns []*waitingLine          // those who may have another place and wait for one; the next first
	// How many requests were refused so far.
	tooMany, tooLong int64
}

// GateState is what a gate shows to the operator. It depends on when requests came and when they left, as their senders see it.
type GateState struct {
	Name    string // "questions", "lists" or "catalogs"
	Places  int    // in all
	Running int    // requests that have a place
	Waiting int    // requests that wait for one, of all analysts
	Longest int    // of them, those of the analyst with most
	Queue   int    // how many of one analyst may wait
	// TooMany and TooLong are how many were refused since the start: their analyst's queue was full, or they waited for too long.
	TooMany, TooLong int64
}

// Gates are the states of all gates. It waits for no request.
func (s *Service) Gates() []GateState {
	return []GateState{s.questions.state("questions"), s.lists.state("lists"), s.catalogs.state("catalogs")}
}

func (g *gate) state(name string) GateState {
	g.mu.Lock()
	defer g.mu.Unlock()
	state := GateState{Name: name, Places: g.Places, Running: g.Places - g.free, Queue: g.Queue, TooMany: g.tooMany, TooLong: g.tooLong}
	for _, l := range g.lines {
		state.Waiting += len(l.waiting)
		state.Longest = max(state.Longest, len(l.waiting))
	}
	return state
}

// waitingLine is one analyst at the gate.
type waitingLine struct {
	running int
	waiting []chan struct{} // each is closed when its request enters
	inTurns bool
}

func newGate(f Fairness) *gate {
	return &gate{Fairness: f, free: f.Places, lines: map[string]*waitingLine{}}
}

// Enter waits for a place. The caller releases it; releasing it again does nothing. Its errors are request/too-many, where the analyst's
// queue is full or no place became free for too long, and request/gone where the context ended first: a client that hangs up while it waits
// leaves the queue, and nothing was begun for it. Once it has a place it keeps it until the place is released, whether or not the context
// ends.
func (g *gate) Enter(ctx context.Context, subject string) (release func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, fault.RequestGone(err)
	}
	entered := make(chan struct{})
	if err := g.line(subject, entered); err != nil {
		return nil, err
	}
	release = sync.OnceFunc(func() { g.release(subject) })
	select {
	case <-entered: // at once: most do
		return release, nil
	default:
	}
	patience := time.NewTimer(g.Wait)
	defer patience.Stop()
	select {
	case <-entered:
		return release, nil
	case <-ctx.Done():
		err = fault.RequestGone(ctx.Err())
	case <-patience.C:
		err = fault.RequestNoPlace(g.Wait)
	}
	if g.leave(subject, entered, fault.CodeOf(err) == fault.CodeRequestTooMany) {
		return nil, err
	}
	// It entered just now. Who is gone does not begin; who was impatient does.
	if ctx.Err() != nil {
		release()
		return nil, fault.RequestGone(ctx.Err())
	}
	return release, nil
}

// line lets a request enter, or puts it at the end of its analyst's queue.
func (g *gate) line(subject string, entered chan struct{}) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.lines[subject]
	if l == nil {
		l = &waitingLine{}
		g.lines[subject] = l
	}
	l.waiting = append(l.waiting, entered)
	g.admit(l)
	if len(l.waiting) > g.Queue { // it is the last of them: nobody can have entered
		l.waiting = l.waiting[:len(l.waiting)-1]
		g.tooMany++
		return fault.RequestTooMany(g.PerAnalyst, g.Queue)
	}
	return nil
}

// admit lets requests enter, one analyst after another, as long as places are free; an analyst whose state changed may be one of them.
func (g *gate) admit(changed *waitingLine) {
	g.queueUp(changed)
	for g.free > 0 && len(g.turns) > 0 {
		l := g.turns[0]
		g.turns, l.inTurns = g.turns[1:], false
		entered := l.waiting[0]
		l.waiting = l.waiting[1:]
		l.running, g.free = l.running+1, g.free-1
		close(entered)
		g.queueUp(l)
	}
}

// queueUp puts an analyst who may have another place behind the others.
func (g *gate) queueUp(l *waitingLine) {
	if !l.inTurns && len(l.waiting) > 0 && l.running < g.PerAnalyst {
		g.turns, l.inTurns = append(g.turns, l), true
	}
}

func (g *gate) release(subject string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.lines[subject]
	l.running, g.free = l.running-1, g.free+1
	g.admit(l)
	g.forget(subject, l)
}

// leave takes a request out of its queue, which is refused or whose client is gone; false if it entered.
func (g *gate) leave(subject string, entered chan struct{}, refused bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.lines[subject]
	i := -1
	if l != nil {
		i = slices.Index(l.waiting, entered)
	}
	if i < 0 {
		return false
	}
	l.waiting = slices.Delete(l.waiting, i, i+1)
	if refused {
		g.tooLong++
	}
	if len(l.waiting) == 0 && l.inTurns {
		l.inTurns = false
		g.turns = slices.DeleteFunc(g.turns, func(other *waitingLine) bool { return other == l })
	}
	g.forget(subject, l)
	return true
}

// forget drops an analyst who has nothing at the gate any more.
func (g *gate) forget(subject string, l *waitingLine) {
	if l.running == 0 && len(l.waiting) == 0 {
		delete(g.lines, subject)
	}
}
