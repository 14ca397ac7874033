package pgwire

import (
	"testing"
	"time"

	"noisegate.example/gateway/gatewaytest"
)

// TestIdleSessionsEnd: a session whose client says nothing for too long is told so, and one whose client speaks is not.
func TestIdleSessionsEnd(t *testing.T) {
	d := opened(t, gatewaytest.Options{}, func(c *Config) { c.Idle = 300 * time.Millisecond })
	r := d.hello(t, map[string]string{"options": "-c noisegate.epsilon=0.01"})
	for range 5 {
		time.Sleep(100 * time.Millisecond)
		if refused := r.query("SELECT count(*) FROM people"); refused != nil {
			t.Fatal(refused.Message)
		}
	}
	if words := r.until("ErrorResponse"); words[0] != "ErrorResponse FATAL "+stateIdle {
		t.Error(words)
	}
	await(t, "the session is gone", func() bool { return d.logged() == 0 })
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
