package httpapi

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"noisegate.example/gateway"
)

// adminConnections is how many connections the operators of a gateway may have.
const adminConnections = 32

// Admin returns the handler for a gateway's operators: /healthz and /readyz, as [New] has them, and /metrics. Nobody needs a token there,
// so that it listens where analysts do not come. It answers 421 unless the request's Host is an IP address, localhost, or host, the name
// that admin.listen has ("" where it has none). Requests are not counted, and not logged.
func Admin(service *gateway.Service, metrics http.Handler, host string) http.Handler {
	s := &server{service: service, log: slog.New(slog.DiscardHandler), newRequestID: rand.Text}
	return hostOnly(host, s.router([]route{
		{method: http.MethodGet, pattern: "/healthz", public: true, handle: getHealth},
		{method: http.MethodGet, pattern: "/readyz", public: true, handle: (*server).getReady},
		{method: http.MethodGet, pattern: "/metrics", public: true, handle: func(_ *server, x *exchange) error {
			metrics.ServeHTTP(x.w, x.r)
			return nil
		}},
	}))
}

// hostOnly lets through what was sent to an address, to localhost, or to the name. A page in a browser on this machine whose own name was
// made to resolve to this address (DNS rebinding) sends that name, and would be let read the answer as its own.
func hostOnly(name string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if without, _, err := net.SplitHostPort(host); err == nil {
			host = without
		}
		_, err := netip.ParseAddr(strings.Trim(host, "[]"))
		if host == "" || err != nil && !strings.EqualFold(host, "localhost") && !strings.EqualFold(host, name) {
			http.Error(w, "this listener is asked by an address, by localhost, or by the name in admin.listen", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// ServeAdmin answers on the listener, whose connections are none of [Bounded]'s, until the context ends.
func ServeAdmin(ctx context.Context, listener net.Listener, handler http.Handler, log *slog.Logger) error {
	return Serve(ctx, Bounded(listener, adminConnections), handler, log)
}
