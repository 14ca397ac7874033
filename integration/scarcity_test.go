package integration

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

// TestIdleClientsLeaveDescriptors lets idle clients take all the connections that a gateway with few file descriptors
// gives. Clients that are already connected are served, also when the gateway has to connect to its databases again.
//
// covers: F17
func TestIdleClientsLeaveDescriptors(t *testing.T) {
	t.Parallel()
	s := newOwnStack(t, "stopped", people(ampleBudget))
	s.kill()
	s.shell = "ulimit -n 160"
	s.serve(t)
	ana := s.analyst(t, "ana")
	if _, err := ana.Query(t.Context(), question(0), ""); err != nil {
		t.Fatal(err)
	}
	address := strings.TrimPrefix(s.url, "http://")
	for range 300 {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			break // the system's queue is full as well
		}
		defer conn.Close()
		_, _ = fmt.Fprintf(conn, "GET /healthz HTTP/1.1\r\nHost: %s\r\n\r\n", address)
	}
	// The connections to the databases end, and the descriptors they leave go to the first taker.
	s.server.StopImmediate()
	s.eventually(t, func() bool { _, err := ana.Query(t.Context(), question(1), ""); return err != nil })
	time.Sleep(2 * time.Second) // net/http tries to accept every second
	if err := s.server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.eventually(t, func() bool { _, err := ana.Query(t.Context(), question(2), ""); return err == nil })
}
