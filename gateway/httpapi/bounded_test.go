package httpapi

import (
	"errors"
	"net"
	"testing"
	"time"
)

// TestBounded: who comes beyond the bound waits until another leaves; a listener that is closed lets nobody wait.
func TestBounded(t *testing.T) {
	inner, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener := Bounded(inner, 1)
	type accepted struct {
		conn net.Conn
		err  error
	}
	taken := make(chan accepted)
	go func() {
		for {
			conn, err := listener.Accept()
			taken <- accepted{conn, err}
			if err != nil {
				return
			}
		}
	}()
	for range 3 {
		conn, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	first := <-taken
	select {
	case <-taken:
		t.Fatal("two connections at a time")
	case <-time.After(50 * time.Millisecond):
	}
	for range 2 { // closing twice gives back one place
		_ = first.conn.Close()
	}
	second := <-taken
	select {
	case <-taken:
		t.Fatal("two connections at a time, after one was closed twice")
	case <-time.After(50 * time.Millisecond):
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if last := <-taken; !errors.Is(last.err, net.ErrClosed) {
		t.Errorf("a closed listener gives %v", last.err)
	}
	_ = second.conn.Close()
}
