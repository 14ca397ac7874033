package gateway

import (
	"context"
	"sync"
	"time"

	"noisegate.example/api"
	"noisegate.example/gateway/auth"
	"noisegate.example/internal/fault"
)

// asked names a running question, as its analyst does.
type asked struct{ analyst, key string }

// running are the questions that this process is answering and that have an Idempotency-Key. A question is among them from its beginning
// until its answer leaves, which is at a boundary. The zero value is ready; it is safe for concurrent use.
type running struct {
	mu    sync.Mutex
	asked map[asked]map[*Schedule]bool // several may have one key until the ledger has refused all but one
}

// enter adds a question, and leave takes it out. One without a key has no name to be cancelled by.
func (r *running) enter(name asked, h *Schedule) (leave func()) {
	if name.key == "" {
		return func() {}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked == nil {
		r.asked = map[asked]map[*Schedule]bool{}
	}
	if r.asked[name] == nil {
		r.asked[name] = map[*Schedule]bool{}
	}
	r.asked[name][h] = true
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if delete(r.asked[name], h); len(r.asked[name]) == 0 {
			delete(r.asked, name)
		}
	}
}

// cancel cancels the questions of a name and reports whether there was one.
func (r *running) cancel(name asked) (found bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for h := range r.asked[name] {
		found = h.cancel() || found
	}
	return found
}

// Cancellable lets the caller cancel, by its Idempotency-Key, what goes by a schedule, until it leaves.
func (s *Service) Cancellable(who auth.Principal, key string, h *Schedule) (leave func()) {
	return s.running.enter(asked{who.Subject, key}, h)
}

// Cancel stops one of the caller's own running questions at the next boundary of its schedule, by its Idempotency-Key.
// Its charge stands: rows may have been read, and time was seen to pass. Whether there was such a question changes at
// boundaries only. Those of others do not exist.
func (s *Service) Cancel(_ context.Context, who auth.Principal, key string) (*api.Cancellation, error) {
	if key == "" {
		return nil, fault.RequestIdempotencyKey("given: it names the question to cancel")
	}
	if err := CheckIdempotencyKey(key); err != nil {
		return nil, err
	}
	if !s.running.cancel(asked{who.Subject, key}) {
		return nil, fault.RequestNotFound("question with this Idempotency-Key that this gateway is answering for you")
	}
	return &api.Cancellation{IdempotencyKey: key, Status: stopping, Text: whatBecomes}, nil
}

// CancelJob is Cancel for a question that nobody waits for, by its job.
func (s *Service) CancelJob(ctx context.Context, who auth.Principal, id string) (*api.Cancellation, error) {
	job, err := s.Job(who, id)
	if err != nil {
		return nil, err
	}
	for !s.running.cancel(asked{who.Subject, job.name}) { // it begins just now, or its answer leaves
		if _, ended, _ := job.Wait(ctx, time.Millisecond); ended || ctx.Err() != nil {
			return nil, fault.RequestNotFound("job of this name that still runs: it has ended")
		}
	}
	return &api.Cancellation{JobID: id, Status: stopping, Text: whatBecomes}, nil
}

// What is said of a question that was cancelled.
const (
	stopping    = "stopping"
	whatBecomes = "the question stops at the next boundary; if it was charged, the charge stands, and asking again is a new charge"
)
