package gateway

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"sync"
	"time"

	"noisegate.example/gateway/auth"
	"noisegate.example/internal/fault"
)

// A client that does not wait for an answer asks for it later, by the name of a job. A job is a question that goes on without its client,
// as any does whose client hangs up: it takes the caller's places, is charged once, and ends when its answer leaves, which is at a
// boundary. The answer is in the ledger as any other: what a gateway forgets of a job, at the latest when it ends, is asked again free.

const (
	// mostJobs is how many of one caller's run, or have ended and are kept.
	mostJobs = 16
	// jobKept is how long an answer is kept for its caller to fetch.
	jobKept = 10 * time.Minute
	// mostKept is how many bytes of answers are kept of one caller: the newest, which is kept whatever its size, and those before it.
	mostKept = 4 << 20
	// jobsDrain is how long a gateway that ends waits for those that run.
	jobsDrain = 30 * time.Second
)

var errJobsEnd = errors.New("gateway: the gateway ends, and begins no question")

// jobs are those of this gateway. The zero value is ready; it is safe for concurrent use.
type jobs struct {
	mu      sync.Mutex
	running sync.WaitGroup
	ends    bool
	of      map[string][]*Job // by subject, the newest first
}

// Job is a question whose client does not wait for it.
type Job struct {
	ID   string // nobody guesses it
	name string // by which the question is cancelled while it runs
	done chan struct{}

	// From the end on:
	ended  time.Time
	answer *Answer
	err    error
}

// Begin asks a question, with an Idempotency-Key or without one (""), for a client that may not wait for it: under a name, by which it can
// be cancelled. Its errors are request/too-many, and data/unavailable while the gateway ends.
func (s *Service) Begin(ctx context.Context, who auth.Principal, key string, ask func(ctx context.Context, name string) (*Answer, error)) (
	*Job, error) {
	id := rand.Text()
	job := &Job{ID: id, name: cmp.Or(key, id), done: make(chan struct{})}
	if err := s.jobs.begin(who.Subject, job, s.clock.Now()); err != nil {
		return nil, err
	}
	ctx = context.WithoutCancel(ctx) // it goes on when the request has its answer
	go func() {
		defer s.jobs.running.Done()
		answer, err := shielded(ctx, func(ctx context.Context) (*Answer, error) { return ask(ctx, job.name) })
		s.jobs.end(job, answer, err, s.clock.Now())
	}()
	return job, nil
}

func (j *jobs) begin(subject string, job *Job, now time.Time) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.ends {
		return fault.DataUnavailable(errJobsEnd)
	}
	for name := range j.of {
		j.tidy(name, now)
	}
	all := j.of[subject]
	if len(all) >= mostJobs { // the oldest that has ended gives way
		i := len(all) - 1
		for i >= 0 && all[i].ended.IsZero() {
			i--
		}
		if i < 0 {
			return fault.RequestTooManyJobs(mostJobs)
		}
		all = slices.Delete(all, i, i+1)
	}
	if j.of == nil {
		j.of = map[string][]*Job{}
	}
	j.of[subject] = append([]*Job{job}, all...)
	j.running.Add(1)
	return nil
}

// tidy forgets a caller's answers that nobody came for.
func (j *jobs) tidy(subject string, now time.Time) {
	bytes, ended := 0, 0
	kept := slices.DeleteFunc(j.of[subject], func(job *Job) bool {
		if job.ended.IsZero() {
			return false
		}
		if ended++; job.answer != nil {
			bytes += len(job.answer.Result)
		}
		return now.Sub(job.ended) > jobKept || bytes > mostKept && ended > 1
	})
	if len(kept) == 0 {
		delete(j.of, subject)
		return
	}
	j.of[subject] = kept
}

func (j *jobs) end(job *Job, answer *Answer, err error, now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	job.answer, job.err, job.ended = answer, err, now
	close(job.done)
}

// Job finds one of the caller's own jobs. Those of others do not exist: request/not-found.
func (s *Service) Job(who auth.Principal, id string) (*Job, error) {
	s.jobs.mu.Lock()
	defer s.jobs.mu.Unlock()
	s.jobs.tidy(who.Subject, s.clock.Now())
	for _, job := range s.jobs.of[who.Subject] {
		if job.ID == id {
			return job, nil
		}
	}
	return nil, fault.RequestUnknownJob()
}

// Wait waits so long for the end of a job, and reports whether it came; then it gives what the question was answered with.
func (job *Job) Wait(ctx context.Context, patience time.Duration) (answer *Answer, ended bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-job.done:
		return job.answer, true, job.err
	case <-ctx.Done():
	}
	select { // of both, the end counts
	case <-job.done:
		return job.answer, true, job.err
	default:
		return nil, false, nil
	}
}

// Forget takes away a job that has ended, and whose client has its answer.
func (s *Service) Forget(who auth.Principal, job *Job) {
	s.jobs.mu.Lock()
	defer s.jobs.mu.Unlock()
	s.jobs.of[who.Subject] = slices.DeleteFunc(s.jobs.of[who.Subject], func(other *Job) bool { return other == job })
	s.jobs.tidy(who.Subject, s.clock.Now())
}

// KeepJobs lets jobs begin until the context ends, and waits then for those that run, as long as a server waits for requests.
func (s *Service) KeepJobs(ctx context.Context) {
	<-ctx.Done()
	s.jobs.mu.Lock()
	s.jobs.ends = true
	s.jobs.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		s.jobs.running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(jobsDrain):
	}
}
