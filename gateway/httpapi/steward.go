package httpapi

import (
	"net/http"
	"net/url"
	"time"

	"noisegate.example/api"
	"noisegate.example/gateway"
	"noisegate.example/internal/fault"
)

// accountPath is an account in a route's path.
type accountPath = pair[string, string]

func account() reader[accountPath] { return both(part("dataset"), part("account")) }

func (s *server) account(x *exchange, at accountPath) (*api.Account, error) {
	return s.service.Account(x.r.Context(), at.first, at.second)
}

func (s *server) setAccount(x *exchange, r pair[accountPath, *api.LimitChange]) (*api.Account, error) {
	return s.service.SetAccount(x.r.Context(), x.who, r.first.first, r.first.second, *r.second)
}

func (s *server) refill(x *exchange, r pair[accountPath, *api.Refill]) (*api.Account, error) {
	return s.service.Refill(x.r.Context(), x.who, r.first.first, r.first.second, *r.second)
}

func (s *server) freeze(x *exchange, at accountPath) (*api.Account, error) {
	return s.service.Freeze(x.r.Context(), x.who, at.first, at.second, true)
}

func (s *server) thaw(x *exchange, at accountPath) (*api.Account, error) {
	return s.service.Freeze(x.r.Context(), x.who, at.first, at.second, false)
}

func (s *server) resetFailures(x *exchange, at accountPath) (*api.Failures, error) {
	return s.service.ResetFailures(x.r.Context(), x.who, at.first, at.second)
}

// journalPage reads which page of the journal is meant.
func journalPage(x *exchange) (gateway.JournalPage, error) {
	query := x.r.URL.Query()
	page := gateway.JournalPage{Dataset: query.Get("dataset"), Cursor: query.Get("cursor")}
	switch query.Get("requests") {
	case "true":
		page.Requests = true
	case "", "false":
	default:
		return page, fault.RequestParameter("requests", "true or false")
	}
	return page, nil
}

// export sends the journal as it is read.
func (s *server) export(x *exchange) error {
	x.w.Header().Set("Content-Type", "application/x-ndjson")
	sent, whole := &streamed{ResponseWriter: x.w}, false
	defer func() { x.cut = sent.begun && !whole }() // also after a panic
	err := s.service.Export(x.r.Context(), x.who, x.r.URL.Query().Get("dataset"), sent)
	whole = err == nil
	return err
}

// streamed is a response that is sent before it is complete; each part within [writeTimeout].
type streamed struct {
	http.ResponseWriter
	begun bool
}

// Write implements [io.Writer].
func (w *streamed) Write(text []byte) (int, error) {
	w.begun = true
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(writeTimeout))
	return w.ResponseWriter.Write(text)
}

func (s *server) refusals(_ *exchange, dataset string) (*api.RefusalList, error) {
	return s.service.Refusals(dataset)
}

func (s *server) preparedCopies(_ *exchange, dataset string) (*api.PreparedList, error) {
	return s.service.PreparedCopies(dataset)
}

// sendBegun answers the request that began a run with the address of its state. The run goes on.
func sendBegun(x *exchange, job *api.PrepareJob) error {
	x.w.Header().Set("Location", "/v1/datasets/"+url.PathEscape(job.Dataset)+"/prepare/"+job.JobID)
	return accepted(x, job)
}

func (s *server) prepareJob(_ *exchange, r pair[string, string]) (*api.PrepareJob, error) {
	return s.service.PrepareJob(r.first, r.second)
}

func (s *server) cancelPrepare(_ *exchange, r pair[string, string]) (*api.PrepareJob, error) {
	return s.service.CancelPrepare(r.first, r.second)
}
