package connlimit

import (
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

// fakeConn is a connection from an address that knows whether it was closed.
type fakeConn struct {
	net.Conn
	from   string
	closed bool
}

func (c *fakeConn) RemoteAddr() net.Addr {
	if c.from == "" {
		return &net.UnixAddr{Net: "unix"}
	}
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(c.from), 1))
}

func (c *fakeConn) Close() error {
	c.closed = true
	return nil
}

// TestLongestIdleOfTheLargestCrowdGivesWay: to every newcomer.
func TestLongestIdleOfTheLargestCrowdGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(4)
		conns := map[string]*fakeConn{}
		for _, c := range []struct {
			after        time.Duration
			name, from   string
			refused      bool
			inTheirPlace string
		}{
			{Grace, "quiet", "192.0.2.1", false, ""},
			{Grace, "flood 1", "2001:db8::1", false, ""},
			{Grace, "local", "", false, ""},
			{1, "flood 2", "2001:db8::ffff:0:0:2", false, ""},               // an IPv6 client's network is one address
			{1, "newcomer", "192.0.2.2", false, "flood 1"},                  // at once: two are more than one
			{Grace, "second of quiet", "192.0.2.1", false, "quiet"},         // its own address has two then
			{1, "third of quiet", "::ffff:192.0.2.1", false, "local"},       // the one that is idle longest, of one each
			{1, "from elsewhere", "198.51.100.7", false, "second of quiet"}, // two again, and at once
			{1, "flood 3", "2001:db8::3", false, "flood 2"},                 // its own, after its grace
			{1, "flood 4", "2001:db8::4", false, "newcomer"},                // which had its grace
			{1, "flood 5", "2001:db8::5", true, ""},                         // all others are young
			{1, "a client", "192.0.2.99", false, "flood 3"},                 // but two are more than one
			{Grace, "another client", "192.0.2.99", false, "a client"},
		} {
			time.Sleep(c.after)
			conns[c.name] = &fakeConn{from: c.from}
			if taken := l.Take(conns[c.name]); taken == c.refused {
				t.Fatalf("%s is taken: %t", c.name, taken)
			}
			if c.refused {
				delete(conns, c.name)
			}
			for name, conn := range conns {
				if conn.closed != (name == c.inTheirPlace) {
					t.Errorf("%s: %s is closed: %t", c.name, name, conn.closed)
				}
				if conn.closed {
					delete(conns, name)
				}
			}
		}
	})
}

// TestBusyConnectionsStay: who is worked for does not give way, and who ends makes room; who was worked for last gives way last.
func TestBusyConnectionsStay(t *testing.T) {
	synctest.Test(t, busyConnectionsStay)
}

func busyConnectionsStay(t *testing.T) {
	l := New(2)
	first, second, third := &fakeConn{from: "192.0.2.1"}, &fakeConn{from: "192.0.2.1"}, &fakeConn{from: "192.0.2.2"}
	for _, conn := range []*fakeConn{first, second} {
		if !l.Take(conn) {
			t.Fatal("there is no place")
		}
		l.Busy(conn)
	}
	freed := func() bool {
		select {
		case <-l.Freed():
			return true
		default:
			return false
		}
	}
	if l.Take(third) || first.closed || second.closed || freed() {
		t.Fatal("a busy connection gave way")
	}
	l.Idle(second)
	if !freed() {
		t.Error("nobody is told that a connection is idle")
	}
	time.Sleep(time.Nanosecond)
	l.Idle(first)
	time.Sleep(Grace)
	if !l.Take(third) || first.closed || !second.closed {
		t.Fatal("not the connection that is idle longest gave way")
	}
	l.Busy(second) // it has no place any more
	l.Idle(second)
	l.Free(second)
	if n := l.Count(); n != 2 {
		t.Errorf("%d connections", n)
	}
	freed()
	l.Free(first)
	l.Free(third)
	if n := l.Count(); n != 0 || !freed() {
		t.Errorf("%d connections are left, or nobody is told", n)
	}
}
