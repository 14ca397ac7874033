package httpapi

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net"
	"net/http"

	"noisegate/gateway"
)

// adminConnections is how many connections whoever watches a gateway may have.
const adminConnections = 32

// Admin returns the handler of what is for whoever runs a gateway: /healthz and /readyz, as [New] has them, and /metrics. Nobody needs a
// token there, so that it listens where analysts do not come. Requests are not counted, and not logged.
func Admin(service *gateway.Service, metrics http.Handler) http.Handler {
	s := &server{service: service, log: slog.New(slog.DiscardHandler), newRequestID: rand.Text}
	return s.router([]route{
		{method: http.MethodGet, pattern: "/healthz", public: true, handle: getHealth},
		{method: http.MethodGet, pattern: "/readyz", public: true, handle: (*server).getReady},
		{method: http.MethodGet, pattern: "/metrics", public: true, handle: func(_ *server, x *exchange) error {
			metrics.ServeHTTP(x.w, x.r)
			return nil
		}},
	})
}

// ServeAdmin answers on the listener, whose connections are none of [Bounded]'s, until the context ends.
func ServeAdmin(ctx context.Context, listener net.Listener, handler http.Handler, log *slog.Logger) error {
	return Serve(ctx, Bounded(listener, adminConnections), handler, log)
}
