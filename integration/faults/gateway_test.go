package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"noisegate.example/api"
	"noisegate.example/gateway"
	"noisegate.example/mechanisms"
)

// TestPanicAtEveryPoint lets the gateway panic at each of its steps: an opaque error, the charge stands if there was one, and the
// next question is answered.
//
// covers: F19
func TestPanicAtEveryPoint(t *testing.T) {
	s := newSite(t)
	n := &numbers{}
	for _, p := range points() {
		if p.inDatabase() || p == afterCommit {
			continue
		}
		trapped := newTrap(p, 3, func() { panic("a value of a protected row") })
		url := s.inProcess(t, trapped, nil)
		s.refill(t, url, 30)
		l := s.load(t, n, url, 2)
		for start := time.Now(); trapped.visits.Load() > 0 && time.Since(start) < time.Minute; {
			time.Sleep(time.Millisecond)
		}
		s.heals(t, n, url)
		l.stop(t, "internal")
		if trapped.visits.Load() > 0 {
			t.Errorf("nobody came to %s", p)
		}
		// Before and after sending, the answer is lost with the connection.
		if l.refusals["internal"]+l.refusals[""] == 0 {
			t.Errorf("%s: nobody noticed the panic: %v", p, l.refusals)
		}
		s.check(t, "a panic "+string(p))
	}
}

// TestNoAnswerWithoutRandomness takes the source of randomness away: no answer (I10), and the charges stand.
//
// covers: F18
func TestNoAnswerWithoutRandomness(t *testing.T) {
	s := newSite(t)
	url := s.inProcess(t, never(), nil)
	dry := s.inProcess(t, never(), func(c *gateway.Config) {
		c.Sampler = func() *mechanisms.Sampler { return mechanisms.NewSamplerFrom(drySource{}) }
	})
	n := &numbers{}
	s.refill(t, url, 20**rounds)
	ana, sam := api.NewClient(dry, "ana0"), api.NewClient(dry, "sam")
	for i := range 20 * *rounds {
		if i%5 == 0 { // so many failures a day are tolerated
			if _, err := sam.ResetFailures(t.Context(), "census", "analyst:ana0"); err != nil {
				t.Fatal(err)
			}
		}
		_, err := ana.Query(t.Context(), question(n.next()), "")
		var p *api.Problem
		if !errors.As(err, &p) || p.Code != "internal" {
			t.Fatalf("without randomness: %v, want internal", err)
		}
	}
	s.check(t, "a time without randomness")
	now, err := api.NewClient(url, "ana0").Budget(t.Context(), "census")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := plus(t, string(now.Budgets[0].Spent.Epsilon)), plus(t, fmt.Sprintf("%d/10", 20**rounds)); got != want {
		t.Errorf("spent %s, want %s", got, want)
	}
}

type drySource struct{}

func (drySource) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// TestClientsHangUp lets clients leave before, during and after their answer. Who asks again under the same key gets the same
// bytes; nothing is charged twice.
//
// covers: F06
func TestClientsHangUp(t *testing.T) {
	s := newSite(t)
	url := s.inProcess(t, never(), nil)
	n := &numbers{}
	s.refill(t, url, 100_000)
	ana := api.NewClient(url, "ana0")
	var left, answered int
	for range 100 * *rounds {
		i := n.next()
		key := fmt.Sprint("key-", i)
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(8_000))*time.Microsecond)
		if answer, err := ana.Query(ctx, question(i), key); err == nil {
			s.judge.Told.Told(key, answer)
		} else {
			left++
		}
		cancel()
		for try := range 100 {
			answer, err := ana.Query(t.Context(), question(i), key)
			var p *api.Problem
			if errors.As(err, &p) && p.Code == "request/in-flight" && try < 99 {
				time.Sleep(5 * time.Millisecond)
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			answered++
			s.judge.Told.Told(key, answer)
			break
		}
	}
	s.check(t, "clients that hang up")
	t.Logf("%d clients left, %d were answered under their key", left, answered)
	if left == 0 {
		t.Error("nobody left: the test asked nothing")
	}
	now, err := ana.Budget(t.Context(), "census")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := plus(t, string(now.Budgets[0].Spent.Epsilon)), plus(t, fmt.Sprintf("%d/10", 100**rounds)); got != want {
		t.Errorf("spent %s, want %s: each question once", got, want)
	}
}
