package httpapi

import (
	"net"
	"sync"
)

// Bounded takes at most n connections of a listener at a time; who comes when there are so many waits in the system's
// queue until one of them ends. Clients that keep connections and ask nothing then cannot take the descriptors that
// databases and files need.
func Bounded(listener net.Listener, n int) net.Listener {
	return &bounded{Listener: listener, taken: make(chan struct{}, max(n, 1)), closed: make(chan struct{})}
}

type bounded struct {
	net.Listener
	taken  chan struct{} // one for each connection
	closed chan struct{}
	once   sync.Once
}

// Accept implements [net.Listener].
func (b *bounded) Accept() (net.Conn, error) {
	select {
	case b.taken <- struct{}{}:
	case <-b.closed:
		return nil, net.ErrClosed
	}
	conn, err := b.Listener.Accept()
	if err != nil {
		<-b.taken
		return nil, err
	}
	return &boundedConn{Conn: conn, leave: sync.OnceFunc(func() { <-b.taken })}, nil
}

// Close implements [net.Listener]. It also ends an Accept that waits for a connection to end.
func (b *bounded) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.Listener.Close()
}

type boundedConn struct {
	net.Conn
	leave func()
}

// Close implements [net.Conn].
func (c *boundedConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
