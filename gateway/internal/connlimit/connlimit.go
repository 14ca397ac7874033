// Package connlimit bounds how many connections a server holds, so that clients who say nothing keep nobody out.
//
// It knows who of them waits for its client, how long, and from which addresses they come. It does not know protocols.
package connlimit

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// Grace is how long a client may be silent at least, unless others of its address are too. It is enough to say what one wants.
const Grace = 500 * time.Millisecond

// prefixes are what counts as one address: an IPv6 client has a network of 2⁶⁴ of them for itself.
const (
	prefix4 = 32
	prefix6 = 64
)

// Limit holds connections. It is safe for concurrent use.
type Limit struct {
	most  int
	freed chan struct{}

	mu   sync.Mutex
	open map[net.Conn]*member
}

type member struct {
	address netip.Prefix // the zero value for what has none, such as a unix socket
	busy    bool
	since   time.Time // it is idle
}

// New makes a limit of n connections, at least one.
func New(n int) *Limit {
	return &Limit{most: max(n, 1), freed: make(chan struct{}, 1), open: map[net.Conn]*member{}}
}

// Take gives a connection a place; it is idle. When all are taken, one of the address that has most idle connections is closed, the one
// that is idle longest: after [Grace], or at once where the address has more of them than the newcomer's. So a flood from one
// address closes its own. It reports false when nobody is to give way.
func (l *Limit) Take(conn net.Conn) bool {
	inPlaceOf, taken := l.take(conn)
	if inPlaceOf != nil {
		_ = inPlaceOf.Close()
	}
	return taken
}

func (l *Limit) take(conn net.Conn) (inPlaceOf net.Conn, taken bool) {
	newcomer := &member{address: addressOf(conn), since: time.Now()}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) >= l.most {
		if inPlaceOf = l.longestIdle(newcomer); inPlaceOf == nil {
			return nil, false
		}
		delete(l.open, inPlaceOf)
	}
	l.open[conn] = newcomer
	return inPlaceOf, true
}

// longestIdle is the connection that gives way to a newcomer; nil: none. The lock is held.
func (l *Limit) longestIdle(newcomer *member) net.Conn {
	idle := map[netip.Prefix]int{newcomer.address: 1}
	for _, m := range l.open {
		if !m.busy {
			idle[m.address]++
		}
	}
	var longest net.Conn
	for conn, m := range l.open {
		if m.busy || newcomer.since.Sub(m.since) < Grace && idle[m.address] <= idle[newcomer.address] {
			continue
		}
		if longest != nil {
			other := l.open[longest]
			if here, there := idle[m.address], idle[other.address]; here < there || here == there && !m.since.Before(other.since) {
				continue
			}
		}
		longest = conn
	}
	return longest
}

// Busy keeps a connection until it is idle again: its client said what it wants.
func (l *Limit) Busy(conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m := l.open[conn]; m != nil { // else it gave way just now
		m.busy = true
	}
}

// Idle says that a connection waits for its client.
func (l *Limit) Idle(conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m := l.open[conn]; m != nil && m.busy {
		m.busy, m.since = false, time.Now()
		l.signal()
	}
}

// Free gives a connection's place back; one that has none is left alone.
func (l *Limit) Free(conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, there := l.open[conn]; there {
		delete(l.open, conn)
		l.signal()
	}
}

func (l *Limit) signal() {
	select {
	case l.freed <- struct{}{}:
	default:
	}
}

// Freed has a value when a connection went or became idle, so that [Limit.Take] may succeed again. It has one reader.
func (l *Limit) Freed() <-chan struct{} { return l.freed }

// Count is how many connections there are.
func (l *Limit) Count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open)
}

func addressOf(conn net.Conn) netip.Prefix {
	tcp, ok := conn.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	address, _ := netip.AddrFromSlice(tcp.IP)
	return prefixOf(address)
}

// Client is what counts as one address of an address and port as text; the zero value for what has none.
func Client(address string) netip.Prefix {
	parsed, err := netip.ParseAddrPort(address)
	if err != nil {
		return netip.Prefix{}
	}
	return prefixOf(parsed.Addr().WithZone(""))
}

func prefixOf(address netip.Addr) netip.Prefix {
	address = address.Unmap()
	bits := prefix6
	if address.Is4() {
		bits = prefix4
	}
	prefix, _ := address.Prefix(bits)
	return prefix
}
