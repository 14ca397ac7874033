package httpapi

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"

	"noisegate.example/gateway/internal/connlimit"
	"noisegate.example/internal/fault"
)

// Bounded takes at most n connections of a listener at a time. Who comes when there are so many takes the place of one that waits for
// its client (see [connlimit.Limit]), and waits itself, in the system's queue, while all are answered. Clients that keep connections
// and ask nothing then can neither take the descriptors that databases and files need, nor keep others out.
func Bounded(listener net.Listener, n int) net.Listener {
	return &bounded{Listener: listener, limit: connlimit.New(n), closed: make(chan struct{})}
}

type bounded struct {
	net.Listener
	limit  *connlimit.Limit
	closed chan struct{}
	once   sync.Once
}

// Accept implements [net.Listener].
func (b *bounded) Accept() (net.Conn, error) {
	inner, err := b.Listener.Accept()
	if err != nil {
		return nil, err
	}
	conn := &boundedConn{Conn: inner, limit: b.limit}
	for !b.limit.Take(conn) {
		select {
		case <-b.limit.Freed():
		case <-time.After(connlimit.Grace):
		case <-b.closed:
			_ = inner.Close()
			return nil, net.ErrClosed
		}
	}
	return conn, nil
}

// Close implements [net.Listener]. It also ends an Accept that waits for a connection to end.
func (b *bounded) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.Listener.Close()
}

type boundedConn struct {
	net.Conn
	limit *connlimit.Limit
}

// Close implements [net.Conn].
func (c *boundedConn) Close() error {
	err := c.Conn.Close()
	c.limit.Free(c)
	return err
}

type connKey struct{}

// withConn is the context of a connection's requests.
func withConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, boundedOf(conn))
}

// busy keeps a request's connection until its answer is sent.
func busy(ctx context.Context) {
	if conn, _ := ctx.Value(connKey{}).(*boundedConn); conn != nil {
		conn.limit.Busy(conn)
	}
}

// rests notes connections whose answers were sent. A handler's end is too early: what it wrote last is not sent yet.
func rests(conn net.Conn, state http.ConnState) {
	if bounded := boundedOf(conn); bounded != nil && state == http.StateIdle {
		bounded.limit.Idle(bounded)
	}
}

// boundedOf is a connection as [Bounded] gave it; nil: it is another's.
func boundedOf(conn net.Conn) *boundedConn {
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	bounded, _ := conn.(*boundedConn)
	return bounded
}

// maxOpenRequests is how many requests of one caller are open at a time, those whose bodies trickle in among them: more than run and
// wait by the defaults of [gateway.Fairness].
const maxOpenRequests = 128

// openRequests counts requests of each caller.
type openRequests struct {
	mu sync.Mutex
	of map[string]int
}

// enter counts one more request of a caller until leave is called.
func (o *openRequests) enter(caller string) (leave func(), err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.of[caller] >= maxOpenRequests {
		return nil, fault.RequestTooManyOpen(maxOpenRequests)
	}
	o.of[caller]++
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.of[caller]--; o.of[caller] == 0 {
			delete(o.of, caller)
		}
	}, nil
}
