package httpapi

import (
	"net/http"
	"strings"
	"testing"

	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/internal/fault"
)

// TestDocs: the documentation is read without a token, loads nothing from elsewhere, and is not sent again where it did not change.
func TestDocs(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 1)
	for _, c := range []struct{ path, kind, says string }{
		{"/docs", "text/html; charset=utf-8", "<h1 id=\"documentation\">"},
		{"/docs/README", "text/html; charset=utf-8", "<h1 id=\"documentation\">"},
		{"/docs/sql", "text/html; charset=utf-8", `href="/docs/sql/contributions`},
		{"/docs/errors", "text/html; charset=utf-8", "<code>sql/syntax</code>"},
		{"/docs/errors.md", "text/html; charset=utf-8", "<code>sql/syntax</code>"},
		{"/docs/sql/price", "text/html; charset=utf-8", "<table>"},
		{"/docs/style.css", "text/css; charset=utf-8", "body {"},
		{"/docs/pate-epsilon.svg", "image/svg+xml", "<svg"},
		{"/docs/api", "application/json; charset=utf-8", `"openapi": "3.1`},
	} {
		response, text := f.do(t, call{method: "GET", path: c.path})
		if response.StatusCode != 200 || response.Header.Get("Content-Type") != c.kind || !strings.Contains(text, c.says) {
			t.Errorf("%s: %d %v", c.path, response.StatusCode, response.Header)
		}
		head, nothing := f.do(t, call{method: "HEAD", path: c.path})
		if head.StatusCode != 200 || nothing != "" || head.ContentLength != int64(len(text)) {
			t.Errorf("HEAD %s: %d, %d of %d bytes", c.path, head.StatusCode, head.ContentLength, len(text))
		}
		if c.path == "/docs/api" {
			continue
		}
		policy := response.Header.Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'none'; style-src 'self'; img-src 'self'; ") || strings.Contains(policy, "unsafe") ||
			response.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", c.path, response.Header)
		}
		again, nothing := f.do(t, call{method: "GET", path: c.path,
			header: http.Header{"If-None-Match": response.Header["Etag"]}})
		if again.StatusCode != 304 || nothing != "" {
			t.Errorf("%s again: %d", c.path, again.StatusCode)
		}
	}
	for _, path := range []string{"/docs/nowhere", "/docs/sql/nowhere", "/docs/..%2Fgo.mod", "/docs/docs.go"} {
		if response, text := f.do(t, call{method: "GET", path: path}); response.StatusCode != 404 ||
			codeOf(t, text) != fault.CodeRequestNotFound {
			t.Errorf("%s: %d", path, response.StatusCode)
		}
	}
	response, _ := f.do(t, call{method: "POST", path: "/docs/fit"})
	if response.StatusCode != 405 || response.Header.Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: %d %v", response.StatusCode, response.Header)
	}
}
