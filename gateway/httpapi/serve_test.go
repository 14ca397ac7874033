package httpapi

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// serving starts a server on a free port; end stops it, and done gives what it returned.
func serving(t *testing.T, handler http.HandlerFunc) (address string, end context.CancelFunc, done <-chan error) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	t.Cleanup(end)
	finished := make(chan error, 1)
	go func() { finished <- Serve(ctx, listener, handler, slog.New(slog.DiscardHandler)) }()
	return listener.Addr().String(), end, finished
}

// TestShutdownDrains: told to stop, the server finishes what runs, takes nothing new, and then returns.
//
// covers: F20
func TestShutdownDrains(t *testing.T) {
	begun, proceed := make(chan struct{}), make(chan struct{})
	address, end, done := serving(t, func(w http.ResponseWriter, _ *http.Request) {
		close(begun)
		<-proceed
		_, _ = io.WriteString(w, "answer")
	})
	answers := make(chan string, 1)
	go func() {
		response, err := http.Get("http://" + address)
		if err != nil {
			answers <- err.Error()
			return
		}
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body)
		answers <- string(text)
	}()
	<-begun
	end()
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			break
		}
		_ = conn.Close()
		if time.Now().After(deadline) {
			t.Fatal("the server still takes connections")
		}
	}
	select {
	case err := <-done:
		t.Fatalf("returned while a request runs: %v", err)
	default:
	}
	close(proceed)
	if text := <-answers; text != "answer" {
		t.Errorf("got %q", text)
	}
	if err := <-done; err != nil {
		t.Errorf("%v", err)
	}
}

// TestHeaderBombsAndSlowHeaders: a header bomb is refused, and a client that never finishes its header is cut off.
//
// covers: A85
func TestHeaderBombsAndSlowHeaders(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	address, _, _ := serving(t, func(http.ResponseWriter, *http.Request) {})
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X", strings.Repeat("x", 32<<10))
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a header of 32 KiB: %d", response.StatusCode)
	}
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	began := time.Now()
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\nX: ")
	_ = conn.SetReadDeadline(began.Add(4 * readHeaderTimeout))
	if _, err := io.ReadAll(conn); err != nil {
		t.Errorf("a slow header was not cut off: %v after %v", err, time.Since(began))
	}
}
