package pgtest

import (
	"fmt"
	"net"
	"sync"
	"testing"
)

// Systems give outgoing connections ports from 32,768 on (Linux) or 49,152 on (others): a port below is never taken by one.
const (
	firstPort = 10_000
	lastPort  = 30_000
)

// portList gives odd ports to the tests of this process. The process listens on the even port before each until it ends, so that no other
// process gives it.
type portList struct {
	mu   sync.Mutex
	next int
	held []net.Listener
}

var ports = sync.OnceValue(func() *portList { return &portList{next: firstPort} })

// FreeAddress returns a loopback address for a server that the test starts. Nobody listens on it, and no other test gets it: neither one of
// this process nor of others that run at the same time.
func FreeAddress(t testing.TB) string {
	t.Helper()
	address, ok := ports().address()
	if !ok {
		t.Fatal("pgtest: all ports are taken")
	}
	return address
}

func (l *portList) address() (string, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for ; l.next < lastPort; l.next += 2 {
		held, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", l.next))
		if err != nil {
			continue
		}
		given, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", l.next+1))
		if err != nil {
			_ = held.Close()
			continue
		}
		_ = given.Close()
		l.held, l.next = append(l.held, held), l.next+2
		return given.Addr().String(), true
	}
	return "", false
}
