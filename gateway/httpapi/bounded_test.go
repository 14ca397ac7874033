package httpapi

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"noisegate.example/gateway/gatewaytest"
)

// waitPatience bounds what these tests wait for.
const waitPatience = 20 * time.Second

// boundedServer serves on a listener of n connections.
func boundedServer(t *testing.T, n int, handler http.HandlerFunc) (address string) {
	t.Helper()
	inner, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, Bounded(inner, n), handler, slog.New(slog.DiscardHandler)) }()
	t.Cleanup(func() {
		end()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return inner.Addr().String()
}

// get asks once, by a new connection.
func get(t *testing.T, address string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitPatience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}

// TestSilentConnectionsKeepNobodyOut: those that say nothing, and those that say their headers letter by letter, give way.
//
// covers: A85
func TestSilentConnectionsKeepNobodyOut(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	address := boundedServer(t, 4, func(w http.ResponseWriter, r *http.Request) {
		busy(r.Context())
		_, _ = io.WriteString(w, "answer")
	})
	for i := range 12 {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if i%2 == 1 {
			_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\nX: ")
		}
	}
	for range 6 {
		if text, err := get(t, address); text != "answer" {
			t.Fatalf("%q, %v", text, err)
		}
	}
}

// TestAnswersAreNotCutOff: a request that is worked on keeps its connection; who comes meanwhile waits.
func TestAnswersAreNotCutOff(t *testing.T) {
	begun, proceed := make(chan struct{}, 3), make(chan struct{})
	address := boundedServer(t, 1, func(w http.ResponseWriter, r *http.Request) {
		busy(r.Context())
		begun <- struct{}{}
		<-proceed
		_, _ = io.WriteString(w, "answer")
	})
	answers := make(chan string, 3)
	ask := func() {
		text, err := get(t, address)
		if err != nil {
			text = err.Error()
		}
		answers <- text
	}
	go ask()
	<-begun
	go ask()
	go ask()
	select {
	case <-begun:
		t.Fatal("two connections at a time")
	case text := <-answers:
		t.Fatalf("%q before its time", text)
	case <-time.After(50 * time.Millisecond):
	}
	close(proceed)
	for range 3 {
		if text := <-answers; text != "answer" {
			t.Errorf("%q", text)
		}
	}
}

// TestBoundedListenerCloses: it lets nobody wait.
func TestBoundedListenerCloses(t *testing.T) {
	inner, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener := Bounded(inner, 1)
	accepted := make(chan error, 2)
	go func() {
		for range 2 {
			conn, err := listener.Accept()
			if err == nil {
				busy(withConn(t.Context(), conn)) // for ever
			}
			accepted <- err
		}
	}()
	for range 2 {
		conn, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	if err := <-accepted; err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-accepted:
		if !errors.Is(err, net.ErrClosed) {
			t.Errorf("a closed listener gives %v", err)
		}
	case <-time.After(waitPatience):
		t.Fatalf("Accept does not return within %s of Close", waitPatience)
	}
}

// TestTricklingBodiesTakeOneCallersShare: who has many requests open is refused more of them before their bodies are read, and nobody
// else is.
//
// covers: A85
func TestTricklingBodiesTakeOneCallersShare(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 2)
	address := strings.TrimPrefix(f.url, "http://")
	var conns []net.Conn
	trickle := func() {
		t.Helper()
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		_, _ = io.WriteString(conn, "POST /v1/query HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ana:analyst\r\n"+
			"Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{")
		conns = append(conns, conn)
	}
	for range maxOpenRequests {
		trickle()
	}
	datasets := func(token string) int {
		response, _ := f.do(t, call{method: http.MethodGet, path: "/v1/datasets", token: token})
		return response.StatusCode
	}
	await := func(status int, what string, meanwhile func()) {
		for deadline := time.Now().Add(waitPatience); datasets("ana:analyst") != status; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: no status %d within %s", what, status, waitPatience)
			}
			meanwhile()
		}
	}
	await(http.StatusTooManyRequests, "with all of hers open", func() {
		if len(conns) < 2*maxOpenRequests { // a busy server may have lost patience with one of them before it read its header
			trickle()
		}
	})
	if status := datasets("bob:analyst"); status != http.StatusOK {
		t.Errorf("another caller gets %d", status)
	}
	for _, conn := range conns {
		_ = conn.Close()
	}
	await(http.StatusOK, "after they ended", func() {})
}
