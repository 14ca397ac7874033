package pgwire

import (
	"context"
	"errors"
	"net"
	"os"
	"time"
)

// maxAhead is how many bytes are read of a client that waits for an answer. One that sends more is not seen to hang up.
const maxAhead = 16 << 10

// ahead is a client's connection that is also read while the client waits for an answer, so that it is seen to hang up. What was read so
// is read again. Only one goroutine reads at a time: that of the session, or that of [ahead.watch].
type ahead struct {
	net.Conn
	kept []byte
	gone error // how the client hung up
}

// Read implements [net.Conn].
func (a *ahead) Read(b []byte) (int, error) {
	switch {
	case len(a.kept) > 0:
		n := copy(b, a.kept)
		a.kept = a.kept[n:]
		return n, nil
	case a.gone != nil:
		return 0, a.gone
	default:
		return a.Conn.Read(b)
	}
}

// watch reads until the client hangs up, which it reports, or until there is a deadline that is over. The channel is closed then.
func (a *ahead) watch(hungUp func()) <-chan struct{} {
	done := make(chan struct{})
	if a.gone != nil {
		hungUp()
		close(done)
		return done
	}
	go func() {
		defer close(done)
		buffer := make([]byte, 512)
		for len(a.kept) < maxAhead {
			n, err := a.Conn.Read(buffer)
			a.kept = append(a.kept, buffer[:n]...)
			switch {
			case errors.Is(err, os.ErrDeadlineExceeded):
				return
			case err != nil:
				a.gone = err
				hungUp()
				return
			}
		}
	}()
	return done
}

// watched is a context that ends when the client hangs up. The session reads nothing until release is called.
func (c *session) watched(ctx context.Context) (watched context.Context, release func()) {
	watched, hungUp := context.WithCancel(ctx)
	done := c.conn.watch(hungUp)
	return watched, func() {
		_ = c.conn.SetReadDeadline(time.Unix(1, 0))
		<-done
		hungUp()
		c.unhurried()
	}
}
