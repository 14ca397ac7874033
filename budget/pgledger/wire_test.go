package pgledger_test

import (
	"io"
	"net"
	"net/url"
	"path/filepath"
	"sync/atomic"
	"testing"
)

// wire stands between a client and a PostgreSQL server on a unix socket, and loses answers when told to.
type wire struct {
	dsn    string // through the wire
	server string // the server's socket
	armed  atomic.Bool
	lost   atomic.Int64
}

func newWire(t *testing.T, dsn string) *wire {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	const socket = "/.s.PGSQL.5432"
	query := u.Query()
	w := &wire{server: query.Get("host") + socket}
	dir := t.TempDir()
	query.Set("host", dir)
	u.RawQuery = query.Encode()
	w.dsn = u.String()
	listener, err := net.Listen("unix", filepath.Join(dir, socket))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go w.relay(client)
		}
	}()
	return w
}

// loseNextAnswer lets the next request through, waits for the server's answer to it, and hangs up instead of handing it on.
func (w *wire) loseNextAnswer() { w.armed.Store(true) }

func (w *wire) relay(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("unix", w.server)
	if err != nil {
		return
	}
	defer server.Close()
	go func() { _, _ = io.Copy(server, client) }()
	buffer := make([]byte, 1<<16)
	for {
		n, err := server.Read(buffer)
		if err != nil {
			return
		}
		// An answer ends with ReadyForQuery: 'Z', length 5, state. By then the server has committed.
		complete := n >= 6 && buffer[n-6] == 'Z' && buffer[n-2] == 5
		if complete && w.armed.CompareAndSwap(true, false) {
			w.lost.Add(1)
			return
		}
		if _, err := client.Write(buffer[:n]); err != nil {
			return
		}
	}
}
