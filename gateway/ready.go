package gateway

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"
)

const (
	readyInterval = time.Second      // between two looks
	readyPatience = 5 * time.Second  // for one look
	readyBelieved = 10 * time.Second // how old a look may be that is believed
)

// readiness is what the last look at what a service depends on found.
type readiness struct {
	mu     sync.Mutex
	at     time.Time // when the look began
	checks map[string]error
}

var (
	errNotChecked  = errors.New("gateway: nothing was looked at yet")
	errNotFollowed = errors.New("gateway: the last look was too long ago")
)

// KeepReady looks at what the service depends on each second until the context ends, beginning at once.
func (s *Service) KeepReady(ctx context.Context) {
	for ctx.Err() == nil {
		s.CheckReady(ctx)
		s.clock.Sleep(ctx, readyInterval)
	}
}

// CheckReady looks once, for 5 s at most, at what [Service.Ready] reports. Ledger and databases are asked at the same time, on connections
// of their own, so that no charge and no statement shows in what is found or in how long it takes.
func (s *Service) CheckReady(ctx context.Context) {
	began := s.clock.Now()
	limited, cancel := context.WithTimeout(ctx, readyPatience)
	defer cancel()
	var ledger error
	names := slices.Collect(maps.Keys(s.datasets))
	datasets := make([]error, len(names))
	var looks sync.WaitGroup
	looks.Go(func() { ledger = s.ledger.Check(limited) })
	for i, name := range names {
		looks.Go(func() {
			_, err := s.policies.Current(name)
			datasets[i] = cmp.Or(s.datasets[name].Data.Ping(limited), err)
		})
	}
	looks.Wait()
	if ctx.Err() != nil { // the gateway ends: what did not answer may well be there
		return
	}
	s.ready.mu.Lock()
	defer s.ready.mu.Unlock()
	s.ready.at = began
	s.ready.checks = map[string]error{"ledger": ledger, "datasets": cmp.Or(datasets...)}
}

// Ready reports what the last look found of what the service depends on. Its keys are "ledger", which answers and is not broken,
// "datasets", all of them together, since this needs no token, and, if there was no look within the last 10 s, "checks". An error is nil
// where all is well. It waits for nothing.
func (s *Service) Ready() map[string]error {
	s.ready.mu.Lock()
	defer s.ready.mu.Unlock()
	checks := maps.Clone(s.ready.checks)
	if checks == nil {
		return map[string]error{"checks": errNotChecked}
	}
	if s.clock.Now().Sub(s.ready.at) > readyBelieved {
		checks["checks"] = errNotFollowed
	}
	return checks
}
