package httpapi

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"noisegate.example/gateway/gatewaytest"
)

// A page whose name was made to resolve to the admin listener's address reads nothing there: it is asked by an address, by localhost, or by
// the name that it listens at.
func TestAdminIsAskedByItsOwnName(t *testing.T) {
	g := gatewaytest.New(t, durable, gatewaytest.Options{})
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "noisegate_build_info") })
	for _, c := range []struct {
		name   string // that admin.listen has
		host   string
		misled bool
	}{
		{host: "127.0.0.1:9464"}, {host: "127.0.0.1"}, {host: "10.1.2.3:9464"}, {host: "[::1]:9464"}, {host: "[::1]"},
		{host: "localhost:9464"}, {host: "localhost"}, {host: "LocalHost:80"},
		{name: "127.0.0.1", host: "localhost:9464"},
		{name: "gateway.internal", host: "gateway.internal:9464"}, {name: "gateway.internal", host: "Gateway.Internal"},
		{name: "gateway.internal", host: "10.1.2.3:9464"},
		{host: "", misled: true}, {host: ":9464", misled: true}, {host: "rebound.example:9464", misled: true},
		{host: "rebound.example", misled: true}, {host: "127.0.0.1.rebound.example:9464", misled: true},
		{host: "localhost.rebound.example", misled: true}, {host: "127.0.0.1:9464:80", misled: true}, {host: "127.1", misled: true},
		{name: "gateway.internal", host: "gateway.internal.rebound.example:9464", misled: true},
		{name: "gateway.internal", host: "internal:9464", misled: true},
	} {
		for _, path := range []string{"/metrics", "/healthz", "/readyz", "/none"} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
			r.Host = c.host
			w := httptest.NewRecorder()
			Admin(g.Service, metrics, c.name).ServeHTTP(w, r)
			if got := w.Code == http.StatusMisdirectedRequest; got != c.misled {
				t.Errorf("%s of %q, where admin.listen has the name %q: %d", path, c.host, c.name, w.Code)
			}
			if shown := w.Body.String() == "noisegate_build_info"; shown != (path == "/metrics" && !c.misled) {
				t.Errorf("%s of %q, where admin.listen has the name %q: %s", path, c.host, c.name, w.Body)
			}
		}
	}
}
