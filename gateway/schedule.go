package gateway

import (
	"context"
	"errors"
	"math"
	"math/bits"
	"sync"
	"time"

	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

// Clock is time: to read it, to let it pass, and to be called when it has.
type Clock interface {
	Now() time.Time
	// Sleep returns after d, or earlier when the context ends.
	Sleep(ctx context.Context, d time.Duration)
	// AfterFunc calls f in a new goroutine after d, unless stop was called before.
	AfterFunc(d time.Duration, f func()) (stop func())
}

// SystemClock is the clock of the machine.
type SystemClock struct{}

// Now implements [Clock].
func (SystemClock) Now() time.Time { return time.Now() }

// Sleep implements [Clock].
func (SystemClock) Sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// AfterFunc implements [Clock].
func (SystemClock) AfterFunc(d time.Duration, f func()) (stop func()) {
	timer := time.AfterFunc(d, f)
	return func() { timer.Stop() }
}

// moves is the share of a boundary by which it may be moved, and of the quantum that stopping work may take: a tenth.
const moves = 10

// EffectiveTimeout is the largest boundary, quantum·2ᵏ, at or below a timeout. Work that is not done at that time fails, so that a failure
// reveals no more than the boundary at which it leaves. It is the timeout itself where the quantum is 0, and 0 where no boundary is so
// early.
func EffectiveTimeout(quantum, timeout time.Duration) time.Duration {
	if quantum <= 0 {
		return timeout
	}
	if timeout < quantum {
		return 0
	}
	return quantum << last(quantum, timeout)
}

// last is the largest k with quantum·2ᵏ <= timeout, which is at least the quantum.
func last(quantum, timeout time.Duration) int {
	return bits.Len64(uint64(timeout/quantum)) - 1
}

// Schedule lets what a request has done be seen at boundaries only: about quantum·2ᵏ after its beginning. Of the time that work took, an
// observer then sees k. What becomes visible when work has ended (the answer or failure, the charge's end in balances, history and journal,
// the end of "in flight", labels for others, the caller's place) waits for the boundary in [Pace], and comes after it.
//
// Each boundary is moved, to an earlier time by a random share of a tenth of it, anew for each request and each k. Were it fixed, one unit
// that makes work a millisecond longer would move the answer of a question that ends close to it by a whole boundary: a step, seen in one
// try. Moved, it changes the chance of a later boundary by its share of the tenth, within which one unit's work is
// bounded: a slope. The objection to jitter, that an observer averages it away, does not hold: the same question again is a
// replay, which leaves at once and shows no boundary; each new sight of one is a new charge. docs/guarantees.md has the numbers.
//
// A quantum of 0 switches boundaries off. The schedule belongs to one request.
type Schedule struct {
	clock   Clock
	quantum time.Duration
	timeout time.Duration // 0: work may take as long as it takes
	sampler *mechanisms.Sampler
	began   time.Time
	delay   *time.Duration // nil: the dataset's guarantee does not cover time

	mu        sync.Mutex
	moved     []time.Duration // the boundaries as they were drawn
	stop      context.CancelFunc
	wake      context.CancelFunc // of who waits for a boundary
	cancelled bool
	leaves    time.Duration // cancelled: when
	left      bool
}

// Schedule begins one. What it needs of randomness in its usual course is drawn now: if there is none, nothing was charged yet.
func (s *Service) Schedule(dataset string) *Schedule {
	d := s.datasets[dataset]
	h := &Schedule{clock: s.clock, quantum: d.Quantum, timeout: d.Timeout, sampler: s.sampler(), began: s.clock.Now()}
	if h.quantum > 0 && h.timeout > 0 {
		h.boundary(last(h.quantum, h.timeout) + 1)
	}
	return h
}

// enter waits for a place.
func (h *Schedule) enter(ctx context.Context, g *gate, subject string) (release func(), err error) {
	err = h.waiting(ctx, func(ctx context.Context) (err error) {
		release, err = g.Enter(ctx, subject)
		return err
	})
	return release, err
}

// await waits for a channel to be closed.
func (h *Schedule) await(ctx context.Context, closed <-chan struct{}) error {
	return h.waiting(ctx, func(ctx context.Context) error {
		select {
		case <-closed:
			return nil
		case <-ctx.Done():
			return fault.RequestGone(ctx.Err())
		}
	})
}

// waiting is a wait before the work, from whose end on the schedule counts: no wait moves a boundary. A request that is cancelled
// meanwhile waits no longer.
func (h *Schedule) waiting(ctx context.Context, wait func(context.Context) error) error {
	ctx, giveUp := context.WithCancel(ctx)
	defer giveUp()
	h.mu.Lock()
	if h.wake = giveUp; h.cancelled {
		giveUp()
	}
	h.mu.Unlock()
	err := wait(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wake, h.began = nil, h.clock.Now()
	if h.cancelled {
		h.leaves = 0
		if err != nil {
			err = fault.BudgetCancelled(false)
		}
	}
	return err
}

// unscheduled is the schedule of what has nothing to do with protected data.
func (s *Service) unscheduled() *Schedule { return &Schedule{clock: s.clock, began: s.clock.Now()} }

func (h *Schedule) elapsed() time.Duration { return h.clock.Now().Sub(h.began) }

// boundary is the k-th. The caller holds the lock, or is alone with the schedule.
func (h *Schedule) boundary(k int) time.Duration {
	for len(h.moved) <= k {
		at := h.quantum << len(h.moved)
		if at <= 0 || at>>len(h.moved) != h.quantum {
			return math.MaxInt64 // in some centuries
		}
		if room := uint64(at / moves); room > 0 {
			at -= time.Duration(h.sampler.Uniform(room))
		}
		h.moved = append(h.moved, at)
	}
	return h.moved[k]
}

// after is the first boundary after a time since the beginning.
func (h *Schedule) after(t time.Duration) time.Duration {
	for k := 0; ; k++ {
		if at := h.boundary(k); at > t {
			return at
		}
	}
}

// slack is how long before a boundary work is stopped that is not to go on after it: stopping takes a moment, which must not show.
func (h *Schedule) slack() time.Duration { return h.quantum / moves }

// limit is when work is stopped that has not ended, and the boundary at which that shows; false: never.
func (h *Schedule) limit() (stops, shows time.Duration, ok bool) {
	switch {
	case h.timeout <= 0 || h.quantum <= 0 && h.delay == nil:
		return 0, 0, false // the server's own timeout ends it
	case h.quantum <= 0:
		return h.timeout, h.timeout, true
	default:
		shows = h.boundary(last(h.quantum, h.timeout))
		return shows - h.slack(), shows, true
	}
}

// The errors that take the place of what work gave.
var (
	errTimeout   = errors.New("gateway: the work was not done by the last boundary")
	errCancelled = errors.New("gateway: the work was cancelled")
)

// Pace runs work and comes back at a boundary, whatever became of it. Result, error and panic all wait for it, also when the client is
// gone. Work that is not done by the last boundary (errTimeout), or that its analyst cancelled (errCancelled), is stopped by the end of its
// context, and what it gave counts for nothing.
func Pace[T any](ctx context.Context, h *Schedule, work func(context.Context) (T, error)) (T, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	disarm := h.begin(stop)
	result, err := shielded(ctx, work)
	stopped := ctx.Err() != nil
	disarm()
	instead := h.hold(ctx)
	if instead == nil && stopped && fault.IsUntouched(err) {
		instead = errTimeout // it failed because it was stopped
	}
	if instead != nil {
		if fault.IsUntouched(err) { // so that it is no failure: the charge stands
			instead = fault.Untouched(instead)
		}
		err = instead
	}
	if err != nil {
		var none T
		return none, err
	}
	return result, nil
}

// begin lets stop end the work at its limit, or when it is cancelled.
func (h *Schedule) begin(stop context.CancelFunc) (disarm func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stop = stop
	now := h.elapsed()
	if h.cancelled && now >= h.leaves-h.slack() {
		stop()
	}
	stops, _, ok := h.limit()
	if !ok {
		return func() {}
	}
	return h.clock.AfterFunc(stops-now, stop)
}

// hold waits for the boundary that follows the end of the work, which is now, and gives the error that takes the place
// of its result, if one does.
func (h *Schedule) hold(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	ended, due, late := h.ended()
	for {
		awake, wake := context.WithCancel(ctx)
		rest, instead := h.wait(ended, due, wake)
		if rest > 0 {
			h.clock.Sleep(awake, rest)
		}
		wake()
		switch {
		case rest > 0:
		case instead == nil && late:
			return errTimeout
		default:
			return instead
		}
	}
}

// ended says when the work ended, when that shows, and whether it is too late.
func (h *Schedule) ended() (at, due time.Duration, late bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at = h.elapsed()
	counts := h.delayed(at)
	stops, shows, limited := h.limit()
	switch late = limited && counts > stops; {
	case late && at <= shows:
		return at, shows, true
	case late: // it did not stop at once
		counts = at
	}
	if h.quantum > 0 {
		return at, h.after(counts), late
	}
	return at, counts, late
}

// wait says how long there is to wait yet, until due or, for a cancelled request, until that shows. At 0 the request has left.
func (h *Schedule) wait(ended, due time.Duration, wake context.CancelFunc) (rest time.Duration, instead error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wake = wake
	if h.cancelled { // what the work did, and when, does not show any more
		instead, due = errCancelled, max(h.leaves, ended)
		if h.quantum > 0 && ended > h.leaves { // it did not stop at once
			due = h.after(ended)
		}
	}
	if rest = due - h.elapsed(); rest <= 0 {
		h.left = true
	}
	return rest, instead
}

// cancel stops the work at the next boundary, and what it gave counts for nothing. It reports false when the request has left. When and as
// what a cancelled request leaves does not depend on how far its work was.
func (h *Schedule) cancel() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.left || h.cancelled {
		return h.cancelled
	}
	now := h.elapsed()
	h.cancelled, h.leaves = true, now
	if h.quantum > 0 {
		h.leaves = h.after(now + h.slack())
	}
	if wait := h.leaves - h.slack() - now; wait > 0 {
		h.clock.AfterFunc(wait, h.end)
	} else if h.stop != nil {
		h.stop()
	}
	if h.wake != nil {
		h.wake()
	}
	return true
}

// end stops the work, if it has begun.
func (h *Schedule) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stop != nil {
		h.stop()
	}
}

// Unlimited lets work take as long as it takes. Work that is not charged uses it, so that no failure shows how long it took.
func (h *Schedule) Unlimited() *Schedule {
	h.timeout = 0
	return h
}

// Storing runs what stores the outcome of work, after the boundary, where its time depends on others. It comes back at a separate boundary,
// in steps of the time that stopping work may take.
func (h *Schedule) Storing(ctx context.Context, store func(context.Context) error) error {
	after := &Schedule{clock: h.clock, quantum: h.slack(), sampler: h.sampler, began: h.clock.Now()}
	if err := store(ctx); err != nil {
		return err
	}
	return after.hold(ctx)
}

// isCancelled reports whether somebody cancelled the request.
func (h *Schedule) isCancelled() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.cancelled
}

// delayed is the time at which work that took so long counts as done. In a guarantee that covers time, it is the whole
// microseconds that the work took, and noise ([mechanisms.Delay]); what an observer sees of the time is computed from
// that and from nothing else.
func (h *Schedule) delayed(took time.Duration) time.Duration {
	if h.delay == nil {
		return took
	}
	const step = time.Microsecond
	return (took+step-1)/step*step + *h.delay
}
