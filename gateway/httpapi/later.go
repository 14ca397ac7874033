package httpapi

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"noisegate.example/api"
	"noisegate.example/gateway"
	"noisegate.example/internal/fault"
)

// maxWait is how many seconds a request waits for an answer at most: proxies wait for a minute.
const maxWait = 60

func patienceOf(seconds int64) (time.Duration, error) {
	if seconds < 0 || seconds > maxWait {
		return 0, fault.RequestWait(maxWait)
	}
	return time.Duration(seconds) * time.Second, nil
}

// queryLater asks a question for a client that waits so long, and then comes back for the answer.
func (s *server) queryLater(x *exchange, r gateway.Request, in format) error {
	patience, err := patienceOf(*r.Wait)
	if err != nil {
		return err
	}
	job, err := s.service.Begin(x.r.Context(), x.who, r.IdempotencyKey, func(ctx context.Context, name string) (*gateway.Answer, error) {
		r.Name = name
		return s.questions.Query(ctx, x.who, r)
	})
	if err != nil {
		return err
	}
	if patience == 0 { // so that what a client has to be ready for is one thing
		return x.goesOn(job.ID)
	}
	answer, ended, err := job.Wait(x.r.Context(), patience)
	if !ended {
		return x.goesOn(job.ID)
	}
	s.service.Forget(x.who, job)
	if err != nil {
		return err
	}
	defer answer.Release()
	return x.answer(answer, in)
}

// getJob gives the answer of a question that was not waited for, in whatever format, as often as it is asked for.
func (s *server) getJob(x *exchange) error {
	in, err := formatFor(x.r.Header)
	if err != nil {
		return err
	}
	patience := time.Duration(0)
	if text := x.r.URL.Query().Get("wait"); text != "" {
		seconds, wrong := strconv.ParseInt(text, 10, 64)
		if wrong != nil {
			return fault.RequestWait(maxWait)
		}
		if patience, err = patienceOf(seconds); err != nil {
			return err
		}
	}
	id, err := x.parameter("job")
	if err != nil {
		return err
	}
	job, err := s.service.Job(x.who, id)
	if err != nil {
		return err
	}
	answer, ended, err := job.Wait(x.r.Context(), patience)
	switch {
	case !ended:
		return x.goesOn(id)
	case err != nil:
		return err
	}
	return x.answer(answer, in)
}

// goesOn says where the answer of a question will be.
func (x *exchange) goesOn(id string) error {
	x.w.Header().Set("Location", "/v1/query/"+id)
	x.w.Header().Set("Retry-After", "1")
	return x.json(http.StatusAccepted, api.QueryJob{JobID: id, State: "running"})
}
