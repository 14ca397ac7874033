// Package httpapi is Noisegate over HTTP: it decodes requests strictly, finds out who asks and whether the route is theirs,
// calls the service, and encodes answers and problem documents.
//
// It knows HTTP, JSON and roles. It does not know SQL, budgets' arithmetic, noise or databases. What it refuses costs nothing, since it has
// not asked the service yet. It logs one line for each request, without SQL, literals or durations.
package httpapi

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"noisegate.example/api"
	"noisegate.example/gateway"
	"noisegate.example/gateway/auth"
	"noisegate.example/gateway/collect"
	"noisegate.example/gateway/fit"
	"noisegate.example/gateway/internal/held"
	"noisegate.example/gateway/labels"
	"noisegate.example/internal/fault"
)

// Verifier says who the bearer of a token is; its errors are auth/*.
type Verifier interface {
	Verify(ctx context.Context, token string) (auth.Principal, error)
}

// Config is what the HTTP side is made of.
type Config struct {
	Service      *gateway.Service
	Labels       *labels.Service
	Fit          *fit.Service     // nil: there are no fits and no clusters, no routes of them, and no SQL for them
	Collect      *collect.Service // nil: there are no collections, and no routes of them
	Verifier     Verifier
	Codes        *auth.Codes    // nil: nobody logs in with a code, and there is no route for it
	Provider     *auth.Provider // nil: nobody logs in at an identity provider, and there is no route for it
	Log          *slog.Logger
	NewRequestID func() string // nil: random
	// Observe is called after each answered request with its route, as [Routes] names it, its status, and the time since its headers were
	// read; nil: it is not. It must show times to others than the request's sender more coarsely.
	Observe func(route string, status int, took time.Duration)
}

// questions are what is asked in SQL.
type questions interface {
	Query(context.Context, auth.Principal, gateway.Request) (*gateway.Answer, error)
	Estimate(context.Context, auth.Principal, api.QueryRequest) (*api.EstimateResponse, error)
}

// server handles requests.
type server struct {
	service      *gateway.Service
	questions    questions
	labels       *labels.Service
	fit          *fit.Service
	collect      *collect.Service
	verifier     Verifier
	codes        *auth.Codes
	provider     *auth.Provider
	logins       attempts
	log          *slog.Logger
	newRequestID func() string
	observe      func(route string, status int, took time.Duration)
	open         openRequests
	bodies       bodyBudget
}

// New returns the handler of all routes.
func New(c Config) (http.Handler, error) {
	if c.Service == nil || c.Labels == nil || c.Verifier == nil {
		return nil, errors.New("httpapi: a part of the server is missing")
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.NewRequestID == nil {
		c.NewRequestID = rand.Text
	}
	s := &server{service: c.Service, questions: c.Service, labels: c.Labels, fit: c.Fit, collect: c.Collect, verifier: c.Verifier,
		codes: c.Codes, provider: c.Provider, log: c.Log,
		newRequestID: c.NewRequestID, observe: c.Observe, open: openRequests{of: map[string]int{}}}
	table := routes()
	if c.Collect == nil {
		table = slices.DeleteFunc(table, func(r route) bool { return strings.HasPrefix(r.pattern, "/v1/collect/") })
	}
	table = slices.DeleteFunc(table, func(r route) bool {
		return c.Codes == nil && r.pattern == loginPattern && r.method == http.MethodPost || c.Provider == nil && r.pattern == providerPattern
	})
	if c.Fit != nil {
		s.questions = c.Fit.Questions()
	} else {
		table = slices.DeleteFunc(table, func(r route) bool {
			return strings.HasPrefix(r.pattern, "/v1/fit") || strings.HasPrefix(r.pattern, "/v1/cluster")
		})
	}
	return s.router(table), nil
}

// router mounts the table. Every route goes through [server.endpoint], which demands the roles that the table gives it.
func (s *server) router(table []route) chi.Router {
	router := chi.NewRouter()
	for _, r := range table {
		router.Method(r.method, r.pattern, s.endpoint(r))
	}
	router.NotFound(s.endpoint(route{pattern: noRoute, public: true, handle: func(*server, *exchange) error {
		return fault.RequestNotFound("such path")
	}}))
	router.MethodNotAllowed(s.endpoint(route{pattern: noRoute, public: true, handle: func(_ *server, x *exchange) error {
		x.w.Header().Set("Allow", strings.Join(methodsOf(router, table, x.r.URL), ", "))
		return fault.RequestMethod()
	}}))
	return router
}

// methodsOf lists what a path answers to: RFC 9110, section 15.5.6 wants it in every 405.
func methodsOf(router chi.Router, table []route, path *url.URL) []string {
	text := path.RawPath // what chi matches
	if text == "" {
		text = path.Path
	}
	var methods []string
	for _, r := range table {
		if !slices.Contains(methods, r.method) && router.Match(chi.NewRouteContext(), r.method, text) {
			methods = append(methods, r.method)
		}
	}
	return methods
}

// exchange is one request and its answer.
type exchange struct {
	w     http.ResponseWriter
	r     *http.Request
	id    string         // of the request
	route string         // pattern
	who   auth.Principal // zero on public routes
	// bodies is what all requests in flight share; taken is what this one has of it.
	bodies *bodyBudget
	taken  int64
	cut    bool // the answer ended with an error after its beginning was sent
	memory func() *held.Budget
}

// status remembers what was sent, for the log.
type status struct {
	http.ResponseWriter
	code int
}

// WriteHeader implements [http.ResponseWriter].
func (s *status) WriteHeader(code int) {
	s.code = code
	s.ResponseWriter.WriteHeader(code)
}

// Unwrap lets [http.ResponseController] find the connection.
func (s *status) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// endpoint is the border: identifier, headers, authentication, the route's handler, errors and panics to problem documents,
// one line of log.
func (s *server) endpoint(r route) http.HandlerFunc {
	name := r.name()
	return func(w http.ResponseWriter, request *http.Request) {
		began := time.Now()
		sent := &status{ResponseWriter: w, code: http.StatusOK}
		x := &exchange{w: sent, r: request, id: s.newRequestID(), route: r.pattern, bodies: &s.bodies,
			memory: s.service.Memory}
		secure(w.Header(), x.id)
		// The server's own write timeout does not fit: a query may take long before the first byte.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
		err := s.serve(x, r) //nolint:contextcheck // the exchange carries the request and its context
		if r.reads() && errors.Is(err, context.Canceled) && request.Context().Err() != nil {
			err = fault.RequestGone(err) // who types on breaks off the estimate: no database failed
		}
		if err != nil && !x.cut {
			x.problem(err)
		}
		if s.observe != nil {
			s.observe(name, sent.code, time.Since(began))
		}
		s.logLine(x, sent.code, err) //nolint:contextcheck // the exchange carries the request and its context
		if x.cut {
			panic(http.ErrAbortHandler) // the client must not take it for the whole
		}
	}
}

// serve authenticates, checks query parameters and runs the handler; a panic becomes an internal error.
func (s *server) serve(x *exchange, r route) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fault.Panicked(p)
		}
	}()
	if !r.public {
		if x.who, err = s.authenticate(x.r); err != nil {
			return err
		}
		if !r.allows(x.who) {
			return fault.AuthForbidden(r.roleText())
		}
		leave, err := s.open.enter(x.who.Subject)
		if err != nil {
			return err
		}
		defer leave()
	}
	defer func() { x.bodies.give(x.who.Subject, x.taken) }()
	busy(x.r.Context())
	if err := checkQuery(x.r, r.query); err != nil {
		return err
	}
	if r.before != nil {
		if err := r.before(s, x); err != nil {
			return err
		}
	}
	return r.handle(s, x)
}

func (s *server) authenticate(r *http.Request) (auth.Principal, error) {
	token, err := bearer(r.Header)
	if err != nil {
		return auth.Principal{}, err
	}
	return s.verifier.Verify(r.Context(), token)
}

// logLine writes what happened. Causes are logged for failures only: a refusal says all in its code.
func (s *server) logLine(x *exchange, code int, err error) {
	attrs := []slog.Attr{
		slog.String("request_id", x.id), slog.String("method", x.r.Method), slog.String("route", x.route),
		slog.Int("status", code), slog.String("subject", x.who.Subject),
	}
	if trace, span, ok := traceOf(x.r.Header); ok {
		attrs = append(attrs, slog.String("trace_id", trace), slog.String("parent_id", span))
	}
	level := slog.LevelInfo
	if err != nil {
		attrs = append(attrs, slog.String("code", string(fault.CodeOf(err))))
		if code >= http.StatusInternalServerError {
			level = slog.LevelError
			attrs = append(attrs, slog.String("cause", fault.Cause(err)))
		}
	}
	s.log.LogAttrs(x.r.Context(), level, "request", attrs...)
}

// parentPattern is traceparent of W3C Trace Context, of its first version or the beginning of a later one.
var parentPattern = regexp.MustCompile(`^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?$`)

// traceOf is the trace that a request belongs to, and its caller's span, by W3C Trace Context. There is none where the header is missing,
// there twice, or of another form: the standard treats all three the same (section 3.2).
func traceOf(h http.Header) (trace, span string, ok bool) {
	values := h.Values("Traceparent")
	if len(values) != 1 {
		return "", "", false
	}
	m := parentPattern.FindStringSubmatch(values[0])
	if m == nil || m[1] == "ff" || m[1] == "00" && m[4] != "" || strings.Trim(m[2], "0") == "" || strings.Trim(m[3], "0") == "" {
		return "", "", false
	}
	return m[2], m[3], true
}

// secure sets the headers that every response carries: answers are not kept, sniffed, framed or read by other origins.
func secure(h http.Header, requestID string) {
	h.Set("Noisegate-Request-Id", requestID)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Strict-Transport-Security", "max-age=31536000; includeSubDomains")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 30 * time.Second // bodies are small
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 16 << 10
	maxStreams        = 64               // of one HTTP/2 connection
	drain             = 30 * time.Second // for requests that run when the server is told to stop
)

// Serve answers on the listener until the context ends, then lets running requests finish, for 30 s at most.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler, log *slog.Logger) error {
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeaderBytes, HTTP2: &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug), ConnContext: withConn,
		ConnState: rests,
	}
	stopped := make(chan error, 1)
	go func() {
		<-ctx.Done()
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
		defer cancel()
		stopped <- server.Shutdown(limit)
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}
