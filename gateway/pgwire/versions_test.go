package pgwire

import (
	"testing"
	"time"

	"noisegate.example/api"
	"noisegate.example/gateway"
)

// The answer from an earlier version of a prepared copy says what the newest one costs, and how to ask for it.
func TestNewerVersionsAreTold(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2026, 11, n, 6, 0, 0, 0, time.UTC) }
	replay := gateway.Answer{ID: "R", Replayed: true, At: day(20), Data: "visits prepared 1"}
	const replayed = `a replay of 2026-11-20T06:00:00Z (data "visits prepared 1"), spent nothing`
	const newest = "2026-11-21T06:00:00Z"
	const buys = "; rows of " + newest + " cost ε 0.5 with SET noisegate.version = latest"
	priced, dear, refused := replay, replay, replay
	priced.Newer = &api.Newer{AsOf: day(21), Price: &api.Amounts{Epsilon: "0.5"}, Affordable: new(true)}
	dear.Newer = &api.Newer{AsOf: day(21), Price: &api.Amounts{Epsilon: "0.5"}, Affordable: new(false)}
	refused.Newer = &api.Newer{AsOf: day(21)}
	for want, answer := range map[string]gateway.Answer{
		"exact and free": {},
		"spent ε 0.1":    {ID: "R", Spent: api.Amounts{Epsilon: "0.1"}},
		replayed:         replay,
		replayed + buys:  priced,
		replayed + buys + ", which is more than is left": dear,
		replayed + "; there are rows of " + newest:       refused,
	} {
		if got := costText(&answer); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// noisegate.version asks as a request over HTTP does.
func TestLatestVersionsAreAsked(t *testing.T) {
	s := newSettings(nil)
	for _, c := range []struct{ value, want string }{{"", ""}, {"LATEST", "latest"}, {"", ""}} {
		value, refused := s.check(setVersion, c.value)
		if refused != nil {
			t.Fatalf("%q is refused", c.value)
		}
		s.put(setVersion, value, false)
		if r, refused := s.request("d", "SELECT 1"); refused != nil || r.Version != c.want {
			t.Errorf("%q asks for %q", c.value, r.Version)
		}
	}
	if _, refused := s.check(setVersion, "7"); refused == nil {
		t.Error("version 7 is taken")
	}
}
