package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"noisegate.example/internal/fault"
)

// finished lets a job come to its end with an answer of so many bytes.
func (r *rig) finished(t *testing.T, subject string, bytes int) *Job {
	t.Helper()
	who := principal(t, subject, "analysts")
	job, err := r.Begin(t.Context(), who, "", func(context.Context, string) (*Answer, error) {
		return &Answer{Result: make(json.RawMessage, bytes)}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, ended, err := job.Wait(t.Context(), time.Minute); !ended || err != nil {
		t.Fatal(ended, err)
	}
	return job
}

func (r *rig) knows(t *testing.T, subject string, job *Job) bool {
	t.Helper()
	found, err := r.Job(principal(t, subject, "analysts"), job.ID)
	if err != nil && fault.CodeOf(err) != fault.CodeRequestNotFound {
		t.Fatal(err)
	}
	return found == job
}

// A job is its caller's alone, is kept for a while, and its place is another's when there are too many; of large answers the newest is
// kept.
func TestJobsAreForgotten(t *testing.T) {
	r := newRig(t)
	first := r.finished(t, "ana", 1)
	if !r.knows(t, "ana", first) || r.knows(t, "bob", first) {
		t.Error("a job is its caller's alone")
	}
	for range 3 * mostJobs {
		r.finished(t, "bob", 1)
	}
	if !r.knows(t, "ana", first) {
		t.Error("bob's jobs took the place of ana's")
	}
	if n := len(r.jobs.of["bob"]); n != mostJobs {
		t.Errorf("%d jobs of bob are kept", n)
	}
	large, newest := r.finished(t, "ana", mostKept+1), r.finished(t, "ana", mostKept+1)
	if r.knows(t, "ana", large) || !r.knows(t, "ana", newest) {
		t.Error("of two answers that are too large the newest is kept")
	}
	r.clock.now = r.clock.now.Add(jobKept + time.Second)
	if r.knows(t, "ana", newest) {
		t.Error("an answer is kept that nobody came for")
	}
	r.finished(t, "eve", 1)
	if len(r.jobs.of) != 1 {
		t.Errorf("of %d callers something is kept", len(r.jobs.of))
	}
}

// So many of a caller's questions run that nobody waits for, and no more; others' are no matter. A panic is an internal error. A gateway
// that ends waits for those that run, and begins none.
func TestJobsAreBounded(t *testing.T) {
	r := newRig(t)
	release := make(chan struct{})
	ana := principal(t, "ana", "analysts")
	var running []*Job
	for range mostJobs {
		job, err := r.Begin(t.Context(), ana, "", func(context.Context, string) (*Answer, error) {
			<-release
			return &Answer{}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		running = append(running, job)
	}
	if _, err := r.Begin(t.Context(), ana, "", nil); fault.CodeOf(err) != fault.CodeRequestTooMany {
		t.Errorf("one more: %v", err)
	}
	r.finished(t, "bob", 1)
	if _, ended, err := running[0].Wait(t.Context(), 0); ended || err != nil {
		t.Errorf("a job that runs: %t, %v", ended, err)
	}
	ctx, end := context.WithCancel(t.Context())
	kept := make(chan struct{})
	go func() {
		r.KeepJobs(ctx)
		close(kept)
	}()
	end()
	close(release)
	select {
	case <-kept:
	case <-time.After(time.Minute):
		t.Fatal("the gateway does not end")
	}
	for _, job := range running {
		if answer, ended, err := job.Wait(t.Context(), 0); !ended || answer == nil || err != nil {
			t.Errorf("a job that ran when the gateway ended: %v, %t, %v", answer, ended, err)
		}
	}
	if _, err := r.Begin(t.Context(), ana, "", nil); fault.CodeOf(err) != fault.CodeDataUnavailable {
		t.Errorf("begun while the gateway ends: %v", err)
	}
}

// What a question is refused with is what its job gives; a panic's text is not.
func TestJobsFail(t *testing.T) {
	r := newRig(t)
	for what, ask := range map[string]func(context.Context, string) (*Answer, error){
		"a refusal": func(context.Context, string) (*Answer, error) { return nil, fault.PlanUnknown() },
		"a panic":   func(context.Context, string) (*Answer, error) { panic("4711 is a person") },
	} {
		job, err := r.Begin(t.Context(), principal(t, "ana", "analysts"), "", ask)
		if err != nil {
			t.Fatal(err)
		}
		_, ended, err := job.Wait(t.Context(), time.Minute)
		if f := new(fault.Error); !ended || !errors.As(err, &f) {
			t.Errorf("%s: %t, %v", what, ended, err)
		}
	}
}
