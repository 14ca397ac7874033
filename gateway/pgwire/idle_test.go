package pgwire

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"noisegate.example/gateway/gatewaytest"
)

// TestIdleSessionsEnd: a session whose client says nothing for too long is told so, and one whose client speaks is not. A client that was
// kept waiting for so long between two questions shows nothing, and the test is done again with twice the limit.
func TestIdleSessionsEnd(t *testing.T) {
	for idle := 300 * time.Millisecond; ; idle *= 2 {
		if idle > time.Minute {
			t.Fatal("five questions within a minute of each other could not be asked")
		}
		d := opened(t, gatewaytest.Options{}, func(c *Config) { c.Idle = idle })
		r := speaks(t, d, idle)
		if r == nil {
			continue
		}
		if words := r.until("ErrorResponse"); words[0] != "ErrorResponse FATAL "+stateIdle {
			t.Error(words)
		}
		await(t, "the session is gone", func() bool { return d.logged() == 0 })
		return
	}
}

// speaks asks five questions in a session, for longer than it may be idle, and fails the test where the session ends before it was idle for
// so long. nil: this client was too slow to say.
func speaks(t *testing.T, d *door, idle time.Duration) *raw {
	t.Helper()
	spoke := time.Now()
	r := d.hello(t, map[string]string{"options": "-c noisegate.epsilon=0.01"})
	for range 5 {
		time.Sleep(idle / 3)
		asked := time.Now()
		r.front.Send(&pgproto3.Query{String: "SELECT count(*) FROM people"})
		err := r.front.Flush()
		for word := ""; err == nil && word != "ReadyForQuery I"; {
			var m pgproto3.BackendMessage
			if m, err = r.front.Receive(); err != nil {
				break
			}
			if word = wordOf(m); strings.HasPrefix(word, "ErrorResponse") {
				err = errors.New(word)
			}
		}
		switch {
		case err == nil:
			spoke = asked
		case time.Since(spoke) < idle:
			t.Fatal(err)
		default:
			return nil
		}
	}
	return r
}

// TestFullDoorEndsTheLongestIdle: where all places are taken, the analyst with most loses the session that is idle longest; the last tenth
// is for who has none; and a session that works stays.
func TestFullDoorEndsTheLongestIdle(t *testing.T) {
	d := opened(t, gatewaytest.Options{}, func(c *Config) { c.Sessions, c.SessionsPerAnalyst = 10, 10 })
	enter := func(subject string) *raw {
		r := d.hello(t, map[string]string{"user": subject})
		await(t, "it waits for its client", func() bool {
			d.server.mu.Lock()
			defer d.server.mu.Unlock()
			for _, c := range d.server.sessions {
				if c.idleSince().IsZero() {
					return false
				}
			}
			return true
		})
		return r
	}
	ended := func(r *raw, what string) {
		t.Helper()
		if words := r.until("ErrorResponse"); words[0] != "ErrorResponse FATAL "+stateIdle {
			t.Errorf("%s: %v", what, words)
		}
	}
	var anas []*raw
	for range 9 {
		anas = append(anas, enter("ana"))
	}
	if refused := anas[0].query("SHOW timezone"); refused != nil { // so that it is not idle longest
		t.Fatal(refused.Message)
	}
	anas = append(anas, enter("ana"))
	ended(anas[1], "a tenth is not for ana, who has nine")
	_ = enter("bob")
	if n := d.logged(); n != 10 {
		t.Errorf("%d sessions beside bob's first, want all ten", n)
	}
	_ = enter("bob")
	ended(anas[2], "bob's second, of ana's nine")
	_ = enter("eve")
	ended(anas[3], "eve's first, of ana's eight")
	if n := d.logged(); n != 10 {
		t.Errorf("%d sessions, want ten", n)
	}
	for _, i := range []int{0, 4, 9} {
		if refused := anas[i].query("SHOW timezone"); refused != nil {
			t.Errorf("session %d of ana's: %s", i, refused.Message)
		}
	}
}
