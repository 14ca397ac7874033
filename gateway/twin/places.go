package twin

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// places bound the backends of a twin's server that work for this gateway. A place is taken from the connection's opening until the server
// has closed it: a client that only hangs up leaves a backend behind that computes on, since PostgreSQL looks for cancellations between two
// operations. So whatever a query does, no more backends than places are busy.
type places chan struct{}

// placed is a connection with a place.
type placed struct {
	net.Conn
	places  places
	closing atomic.Bool
	once    sync.Once
	gone    chan struct{} // closed when the server has closed the connection
}

// take waits for a place; it is pgconn's AfterNetConnect.
func (p places) take(ctx context.Context, _ *pgconn.Config, conn net.Conn) (net.Conn, error) {
	select {
	case p <- struct{}{}:
		return &placed{Conn: conn, places: p, gone: make(chan struct{})}, nil
	case <-ctx.Done():
		_ = conn.Close()
		return nil, ctx.Err()
	}
}

// Close ends the sending side. It frees the place once the server has closed the connection on its side, or is gone (TCP keep-alives find
// out).
func (p *placed) Close() error {
	p.once.Do(func() {
		p.closing.Store(true)
		_ = p.Conn.SetDeadline(time.Time{})
		go func() {
			if half, ok := p.Conn.(interface{ CloseWrite() error }); ok {
				_ = half.CloseWrite()
				_, _ = io.Copy(io.Discard, p.Conn)
			}
			_ = p.Conn.Close()
			<-p.places
			close(p.gone)
		}()
	})
	return nil
}

// SetDeadline implements [net.Conn]; no deadline ends the wait for the server.
func (p *placed) SetDeadline(t time.Time) error { return p.unlessClosing(t, p.Conn.SetDeadline) }

// SetReadDeadline implements [net.Conn].
func (p *placed) SetReadDeadline(t time.Time) error {
	return p.unlessClosing(t, p.Conn.SetReadDeadline)
}

// SetWriteDeadline implements [net.Conn].
func (p *placed) SetWriteDeadline(t time.Time) error {
	return p.unlessClosing(t, p.Conn.SetWriteDeadline)
}

func (p *placed) unlessClosing(t time.Time, set func(time.Time) error) error {
	if p.closing.Load() {
		return net.ErrClosed
	}
	return set(t)
}
