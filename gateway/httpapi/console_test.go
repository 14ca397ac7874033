package httpapi

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"noisegate.example/api"
	"noisegate.example/gateway/auth"
	"noisegate.example/gateway/console"
	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/internal/fault"
)

// TestConsole: the console is read without a token, under its policy, compressed or not, and is not sent again where it did not change.
//
// covers: A77
func TestConsole(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 1)
	for path, kind := range map[string]string{
		"/": "text/html; charset=utf-8", "/console/console.js": "text/javascript; charset=utf-8",
		"/console/console.css": "text/css; charset=utf-8", "/console/icon.svg": "image/svg+xml",
		"/console/licences.txt": "text/plain; charset=utf-8",
	} {
		texts, tags := []string{}, []string{}
		for _, coding := range []string{"identity", "gzip", "br, gzip;q=0.5"} {
			ask := http.Header{"Accept-Encoding": {coding}}
			response, text := f.do(t, call{method: "GET", path: path, header: ask})
			h := response.Header
			if response.StatusCode != 200 || h.Get("Content-Type") != kind || h.Get("Content-Security-Policy") != console.Policy ||
				h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Vary") != "Accept-Encoding" || h.Get("Cache-Control") != "no-cache" {
				t.Errorf("%s: %d %v", path, response.StatusCode, h)
			}
			if packed := h.Get("Content-Encoding") == "gzip"; packed != strings.Contains(coding, "gzip") {
				t.Errorf("%s as %s: %v", path, coding, h)
			} else if packed {
				text = unpacked(t, text)
			}
			texts, tags = append(texts, text), append(tags, h.Get("Etag"))
			ask["If-None-Match"] = h["Etag"]
			again, nothing := f.do(t, call{method: "GET", path: path, header: ask})
			if again.StatusCode != 304 || nothing != "" {
				t.Errorf("%s again: %d", path, again.StatusCode)
			}
			head, nothing := f.do(t, call{method: "HEAD", path: path, header: http.Header{"Accept-Encoding": {coding}}})
			if head.StatusCode != 200 || nothing != "" || head.Header.Get("Etag") != h.Get("Etag") {
				t.Errorf("HEAD %s: %d %v", path, head.StatusCode, head.Header)
			}
		}
		if texts[0] != texts[1] || texts[1] != texts[2] || len(texts[0]) < 50 || tags[0] == tags[1] {
			t.Errorf("%s has texts of %d, %d and %d bytes, with the tags %v", path, len(texts[0]), len(texts[1]), len(texts[2]), tags)
		}
	}
	for _, path := range []string{"/console", "/console/", "/console/nowhere", "/console/..%2Fconsole.go", "/console.js", "/index.html"} {
		response, text := f.do(t, call{method: "GET", path: path})
		if response.StatusCode != 404 || codeOf(t, text) != fault.CodeRequestNotFound {
			t.Errorf("%s: %d", path, response.StatusCode)
		}
	}
	response, _ := f.do(t, call{method: "POST", path: "/"})
	if response.StatusCode != 405 || response.Header.Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: %d %v", response.StatusCode, response.Header)
	}
}

func unpacked(t *testing.T, text string) string {
	t.Helper()
	reader, err := gzip.NewReader(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return string(plain)
}

func TestTakesGzip(t *testing.T) {
	for accepted, want := range map[string]bool{"": false, "gzip": true, "GZIP": true, "br,gzip": true, "gzip;q=0": false,
		"gzip; q=0.000": false, "gzip; q=0.1": true, "gzip;q=1": true, "deflate": false, "x-gzip": false, "*": false} {
		if got := takesGzip(http.Header{"Accept-Encoding": {accepted}}); got != want {
			t.Errorf("%q: %t", accepted, got)
		}
	}
}

// TestPrincipal: everybody with a role is told who they are, and nobody else is.
func TestPrincipal(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 1)
	response, text := f.do(t, call{method: "GET", path: "/v1/principal", token: "ana:analyst,steward"})
	var who api.Principal
	if err := json.Unmarshal([]byte(text), &who); err != nil || response.StatusCode != 200 || who.Subject != "ana" ||
		!slices.Equal(who.Roles, []string{"analyst", "steward"}) || !slices.Equal(who.Groups, []string{"analysts", "role:analysts"}) {
		t.Errorf("%d %s, %v", response.StatusCode, text, err)
	}
	if response, text = f.do(t, call{method: "GET", path: "/v1/principal", token: "sam:steward"}); !strings.Contains(text, `"groups":[]`) {
		t.Errorf("%d %s", response.StatusCode, text)
	}
	if response, _ = f.do(t, call{method: "GET", path: "/v1/principal"}); response.StatusCode != 401 {
		t.Errorf("without a token: %d", response.StatusCode)
	}
}

// TestLogin: a code is exchanged once, in a body, and nowhere but where there are codes.
func TestLogin(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 1)
	request := call{method: "POST", path: loginPattern, kind: "application/json", body: `{"code": "x"}`}
	if response, _ := f.do(t, request); response.StatusCode != 405 {
		t.Errorf("without codes: %d", response.StatusCode)
	}
	if response, text := f.do(t, call{method: "GET", path: loginPattern}); response.StatusCode != 200 || text != "{}" {
		t.Errorf("without a provider: %d %s", response.StatusCode, text)
	}
	codes := auth.NewCodes(nil)
	var log bytes.Buffer
	handler, err := New(Config{Service: f.Service, Labels: f.Labels, Verifier: new(gatewaytest.Names), Codes: codes,
		Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	code := codes.Issue("the token", time.Minute)
	for i, want := range []int{200, 401} {
		w := httptest.NewRecorder()
		request := httptest.NewRequest(http.MethodPost, loginPattern, strings.NewReader(`{"code": "`+code+`"}`))
		request.Header.Set("Content-Type", "application/json")
		handler.ServeHTTP(w, request)
		told := strings.Contains(w.Body.String(), `"token":"the token"`)
		if w.Code != want || told != (want == 200) ||
			w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("call %d: %d %s %v", i, w.Code, w.Body, w.Header())
		}
	}
	if strings.Contains(log.String(), code) || strings.Contains(log.String(), "the token") {
		t.Errorf("the log tells: %s", &log)
	}
}

// TestBrokenOffReads: an estimate whose client typed on is no failure of a database, in the log; a question may be one, and be charged.
func TestBrokenOffReads(t *testing.T) {
	var log bytes.Buffer
	s := &server{log: slog.New(slog.NewTextHandler(&log, nil)), newRequestID: func() string { return "id" }}
	for pattern, want := range map[string]int{"/v1/query/estimate": statusGone, "/v1/query": 503} {
		ctx, cancel := context.WithCancel(t.Context())
		broken := route{method: http.MethodPost, pattern: pattern, public: true, handle: func(*server, *exchange) error {
			cancel()
			return fault.DataUnavailable(fmt.Errorf("a look-up: %w", ctx.Err()))
		}}
		log.Reset()
		w := httptest.NewRecorder()
		s.endpoint(broken)(w, httptest.NewRequestWithContext(ctx, http.MethodPost, pattern, nil))
		if isError := strings.Contains(log.String(), "level=ERROR"); w.Code != want || isError != (want == 503) {
			t.Errorf("%s: %d, %s", pattern, w.Code, &log)
		}
	}
}
