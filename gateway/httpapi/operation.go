package httpapi

import (
	"context"
	"net/http"
	"net/url"

	"github.com/go-chi/chi/v5"

	"noisegate.example/gateway"
	"noisegate.example/gateway/auth"
	"noisegate.example/gateway/collect"
	"noisegate.example/gateway/fit"
	"noisegate.example/gateway/labels"
	"noisegate.example/internal/fault"
)

// handler answers one request.
type handler func(*server, *exchange) error

// reader takes one part of a request: of the path, the query string, the headers or the body.
type reader[T any] func(*exchange) (T, error)

// operation is the handler of nearly every route: it reads the request, asks the service and sends the answer.
// The first error ends it.
func operation[Q, A any](read reader[Q], ask asking[Q, A], send func(*exchange, A) error) handler {
	return func(s *server, x *exchange) error {
		request, err := read(x)
		if err != nil {
			return err
		}
		answer, err := ask(s, x, request)
		if err != nil {
			return err
		}
		return send(x, answer)
	}
}

// asking is the middle of an operation: a method of a service, called for the caller of the request.
type asking[Q, A any] func(*server, *exchange, Q) (A, error)

// ask calls a method about what was read.
func ask[S, Q, A any](of func(*server) S, method func(S, context.Context, auth.Principal, Q) (A, error)) asking[Q, A] {
	return func(s *server, x *exchange, r Q) (A, error) { return method(of(s), x.r.Context(), x.who, r) }
}

// askFor calls a method with a body.
func askFor[S, Q, A any](of func(*server) S, method func(S, context.Context, auth.Principal, Q) (A, error)) asking[*Q, A] {
	return func(s *server, x *exchange, r *Q) (A, error) { return method(of(s), x.r.Context(), x.who, *r) }
}

// askAbout calls a method with a name and a body.
func askAbout[S, Q, A any](of func(*server) S,
	method func(S, context.Context, auth.Principal, string, Q) (A, error)) asking[pair[string, *Q], A] {
	return func(s *server, x *exchange, r pair[string, *Q]) (A, error) {
		return method(of(s), x.r.Context(), x.who, r.first, *r.second)
	}
}

func service(s *server) *gateway.Service    { return s.service }
func labelling(s *server) *labels.Service   { return s.labels }
func models(s *server) *fit.Service         { return s.fit }
func collecting(s *server) *collect.Service { return s.collect }

// asJSON sends an answer as JSON.
func asJSON[A any](x *exchange, answer A) error { return x.json(http.StatusOK, answer) }

func created[A any](x *exchange, answer A) error { return x.json(http.StatusCreated, answer) }

func accepted[A any](x *exchange, answer A) error { return x.json(http.StatusAccepted, answer) }

// nothing reads nothing.
func nothing(*exchange) (struct{}, error) { return struct{}{}, nil }

// pair is two parts of a request.
type pair[A, B any] struct {
	first  A
	second B
}

// both reads two parts in this order, which decides which of two errors a client sees.
func both[A, B any](first reader[A], second reader[B]) reader[pair[A, B]] {
	return func(x *exchange) (p pair[A, B], err error) {
		if p.first, err = first(x); err != nil {
			return p, err
		}
		p.second, err = second(x)
		return p, err
	}
}

// part reads a part of the path.
func part(name string) reader[string] {
	return func(x *exchange) (string, error) { return x.parameter(name) }
}

// argument reads a parameter of the query string, "" for none.
func argument(name string) reader[string] {
	return func(x *exchange) (string, error) { return x.r.URL.Query().Get(name), nil }
}

// object reads a body that is one JSON object.
func object[T any](limit int64) reader[*T] {
	return func(x *exchange) (*T, error) {
		text, _, err := body(x, limit, "application/json")
		if err != nil {
			return nil, err
		}
		return decode[T](text)
	}
}

// parameter is a part of the path, decoded.
func (x *exchange) parameter(name string) (string, error) {
	text := chi.URLParam(x.r, name)
	if x.r.URL.RawPath == "" {
		return text, nil // chi matched the decoded path
	}
	decoded, err := url.PathUnescape(text)
	if err != nil {
		return "", fault.RequestNotFound("such path")
	}
	return decoded, nil
}

// json sends a value as JSON.
func (x *exchange) json(status int, value any) error {
	text, err := compact(value)
	if err != nil {
		return fault.Internal(err)
	}
	if x.who.Subject != "" { // as answers, it takes memory until its client has read it
		memory := x.memory().Open(x.who.Subject)
		defer memory.Close()
		switch size := int64(len(text)); {
		case x.r.Method != http.MethodGet:
			memory.Resize(size)
		case !memory.Fit(size):
			return fault.RequestMemory()
		}
	}
	x.send(payload{status: status, kind: "application/json; charset=utf-8", body: text})
	return nil
}
