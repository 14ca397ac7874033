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

// hold waits until the next multiple of quantum since began, so that of the time that a query took an observer sees only
// the number of quanta. Callers defer it: answers, refusals, failures and panics leave at the same ticks. It adds no
// randomness, which an observer would average away. A quantum of 0 switches it off.
func (s *Service) hold(ctx context.Context, quantum time.Duration, began time.Time) {
	if quantum <= 0 {
		return
	}
	elapsed := s.clock.Now().Sub(began)
	// The first tick is one quantum after the beginning: nothing leaves at tick 0.
	ticks := elapsed/quantum + 1
	s.clock.Sleep(ctx, ticks*quantum-elapsed)
}
