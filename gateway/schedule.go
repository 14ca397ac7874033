package gateway

import (
	"context"
	"time"
)

// Clock is time: to read it and to let it pass.
type Clock interface {
	Now() time.Time
	// Sleep returns after d, or earlier when the context ends.
	Sleep(ctx context.Context, d time.Duration)
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

// schedule makes a request leave at a multiple of the dataset's quantum since its beginning, so that of the time that a query
// took an observer sees only the number of quanta. It adds no randomness, which an observer would average away. A quantum
// of 0 switches it off. It belongs to one request and is not safe for concurrent use.
type schedule struct {
	clock   Clock
	quantum time.Duration
	began   time.Time
	held    bool
}

func (s *Service) schedule(dataset string) *schedule {
	return &schedule{clock: s.clock, quantum: s.datasets[dataset].Quantum, began: s.clock.Now()}
}

// hold waits for the next tick, the first time it is called. Callers defer it: answers, refusals, failures and panics all
// wait. It waits also when the client is gone, or hanging up would show by the place that becomes free when work ended.
func (h *schedule) hold(ctx context.Context) {
	if h.quantum <= 0 || h.held {
		return
	}
	h.held = true
	elapsed := h.clock.Now().Sub(h.began)
	// The first tick is one quantum after the beginning: nothing leaves at tick 0.
	h.clock.Sleep(context.WithoutCancel(ctx), (elapsed/h.quantum+1)*h.quantum-elapsed)
}
