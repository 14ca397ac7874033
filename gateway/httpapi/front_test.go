package httpapi

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"noisegate.example/api"
	"noisegate.example/gateway"
	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/pgserver"
)

// durable is the server of all control databases of this package's tests.
var durable *pgserver.Server

func TestMain(m *testing.M) { os.Exit(gatewaytest.Main(m, &durable)) }

// front is an HTTP server over a whole gateway.
type front struct {
	*gatewaytest.Gateway
	url string
	log *gatewaytest.Log
}

// newFront lets so many requests of one caller run at a time.
func newFront(t testing.TB, o gatewaytest.Options, perAnalyst int) *front {
	t.Helper()
	o.Fairness.Places, o.Fairness.PerAnalyst = max(gateway.DefaultPlaces, perAnalyst), perAnalyst
	f := &front{log: new(gatewaytest.Log)}
	o.Log = slog.New(slog.NewTextHandler(f.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	f.Gateway = gatewaytest.New(t, durable, o)
	handler, err := New(Config{Service: f.Service, Labels: f.Labels, Fit: f.Fit, Collect: f.Collect, Verifier: new(gatewaytest.Names),
		Log: o.Log})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	f.url = server.URL
	return f
}

func (f *front) client(token string) *api.Client { return api.NewClient(f.url, token) }

// call is one request by hand.
type call struct {
	method, path, token, kind, body string
	header                          http.Header
}

func (f *front) do(t *testing.T, c call) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), c.method, f.url+c.path, strings.NewReader(c.body))
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range c.header {
		request.Header[name] = values
	}
	if c.kind != "" {
		request.Header.Set("Content-Type", c.kind)
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(text)
}

func codeOf(t *testing.T, text string) fault.Code {
	t.Helper()
	var p api.Problem
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return ""
	}
	return fault.Code(p.Code)
}

func codeOfError(err error) fault.Code {
	var p *api.Problem
	if errors.As(err, &p) {
		return fault.Code(p.Code)
	}
	return ""
}
