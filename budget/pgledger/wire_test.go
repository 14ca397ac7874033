package pgledger_test

import (
	"net"
	"net/url"
	"os"
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
	// Where a client is cut off: before its first request is handed on (1), before the answer to it is (2), and so on. 0: nowhere.
	point int64
	atCut func() // before the client notices
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
	dir, err := os.MkdirTemp("", "wire") // a socket's path is short, and a test's name may be long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
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
	var points atomic.Int64
	cut := func() bool {
		if points.Add(1) != w.point {
			return false
		}
		w.atCut()
		return true
	}
	go func() {
		defer server.Close()
		defer client.Close()
		buffer := make([]byte, 1<<16)
		for {
			n, err := client.Read(buffer)
			if err != nil {
				return
			}
			if points.Load()%2 == 0 && cut() { // a request begins
				return
			}
			if _, err := server.Write(buffer[:n]); err != nil {
				return
			}
		}
	}()
	buffer, end := make([]byte, 1<<16), []byte{}
	for {
		n, err := server.Read(buffer)
		if err != nil {
			return
		}
		// An answer ends with ReadyForQuery: 'Z', length 5, state. When it comes the server has committed.
		end = append(end, buffer[:n]...)
		end = end[max(0, len(end)-6):]
		if len(end) == 6 && end[0] == 'Z' && end[4] == 5 {
			if w.armed.CompareAndSwap(true, false) {
				w.lost.Add(1)
				return
			}
			if points.Load()%2 == 1 && cut() {
				return
			}
		}
		if _, err := client.Write(buffer[:n]); err != nil {
			return
		}
	}
}
