package faults

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"noisegate.example/api"
	"noisegate.example/budget/pgledger"
	"noisegate.example/gateway"
	"noisegate.example/gateway/gatewaytest"
)

// TestClockSteps turns the gateway's clock. What may be spent does not depend on it.
//
// covers: F14
func TestClockSteps(t *testing.T) {
	s := newSite(t)
	clock := &steppingClock{}
	url := s.inProcess(t, never(), func(c *gateway.Config) { c.Clock = clock })
	n := &numbers{}
	ana := api.NewClient(url, "ana0")
	for _, step := range []time.Duration{time.Hour, -time.Hour, 24 * time.Hour, -24 * time.Hour, until(2038), until(2100), until(1999)} {
		s.refill(t, url, 3)
		clock.step.Store(int64(step))
		var given int
		for range 6 {
			answer, err := ana.Query(t.Context(), question(n.next()), "")
			if err == nil {
				given++
				s.judge.Told.Told("", answer)
			}
		}
		if given != 3 {
			t.Errorf("with the clock %v off, %d answers of 0.1 were given for 0.3", step, given)
		}
		s.check(t, "a step of the clock by "+step.String())
	}
}

func until(year int) time.Duration {
	return time.Until(time.Date(year, time.January, 19, 3, 14, 8, 0, time.UTC))
}

// steppingClock is the machine's clock and a step.
type steppingClock struct {
	gateway.SystemClock
	step atomic.Int64
}

func (c *steppingClock) Now() time.Time { return time.Now().Add(time.Duration(c.step.Load())) }

// installClock lets a test turn the clock of the ledger's server, for gateways that connect from now on: PostgreSQL's function gives way to
// one that adds a step.
func (s *site) installClock(t *testing.T) {
	t.Helper()
	s.control.Exec(t,
		"CREATE TABLE public.step AS SELECT interval '0' AS by",
		"ALTER FUNCTION pg_catalog.clock_timestamp() RENAME TO clock_unturned",
		`CREATE FUNCTION pg_catalog.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = '' AS
			'SELECT pg_catalog.clock_unturned() + by FROM public.step'`)
}

// turn puts the clocks of gateways, and then the server's, so long after the time that the dataset's account was opened.
func (s *site) turn(t *testing.T, after time.Duration, gateways ...*steppingClock) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.super)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var opened time.Time
	if err := conn.QueryRow(t.Context(), "SELECT opened_at FROM noisegate.account WHERE scope = 'dataset'").Scan(&opened); err != nil {
		t.Fatal(err)
	}
	by := time.Until(opened.Add(after))
	for _, clock := range gateways {
		clock.step.Store(int64(by))
	}
	s.step(t, by)
}

// ownClock gives a gateway's ledger a clock that can be turned.
func ownClock(clock *steppingClock) func(*gateway.Config) {
	return func(c *gateway.Config) { c.Values.(*pgledger.Ledger).SetClock(clock.Now) }
}

// releaseHourly lets an account spend so many questions in each hour, and so many in all.
func (s *site) releaseHourly(t *testing.T, url, account string, each, all int) {
	t.Helper()
	limit := api.BudgetLimit{Form: "pure", Epsilon: tenths(all), Tranche: &api.Tranche{Every: "1h", Epsilon: tenths(each)}}
	if _, err := api.NewClient(url, "sam").SetAccount(t.Context(), gatewaytest.Dataset, account, limit); err != nil {
		t.Fatal(err)
	}
}

// tenths is what so many questions cost.
func tenths(questions int) api.Decimal {
	return api.Decimal(fmt.Sprintf("%d.%d", questions/10, questions%10))
}

// spentTooSoon gives the reservations that came before the tranche that they are of, by the journal's own time, which
// is the time by which it was decided. Each tranche counts for so much less than it is.
func (s *site) spentTooSoon(t *testing.T, less int64) []string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.super)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	rows, err := conn.Query(t.Context(), `
		SELECT format('%s %s: %s at %s', scope, name, used, at) FROM (
			SELECT a.*, e.at, sum(e.epsilon) OVER (PARTITION BY a.account_id ORDER BY e.seq) AS used,
				1 + floor(extract(epoch FROM e.at - a.opened_at) * 1000000 / a.tranche_every) AS open
			FROM noisegate.account a JOIN noisegate.entry e ON a.account_id = ANY (e.account_ids) WHERE e.kind = 'reserve' AND a.tranche_every > 0
		) e WHERE used > open * (tranche_epsilon - $1::bigint)`, less)
	if err != nil {
		t.Fatal(err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestClientsAcrossTheEdge has 64 clients at two gateways ask while the server's clock passes from one tranche to the
// next, again and again: by the time of each charge no more was charged than was released, and what is released can be
// spent.
//
// covers: F15
func TestClientsAcrossTheEdge(t *testing.T) {
	const each = 8 // questions in a tranche
	s := newSite(t)
	s.installClock(t)
	one, two := &steppingClock{}, &steppingClock{}
	urls := []string{s.inProcess(t, never(), ownClock(one)), s.inProcess(t, never(), ownClock(two))}
	for account, questions := range map[string]int{"dataset": each, "analyst:ana0": each/2 + 1, "analyst:ana1": each/2 + 1} {
		s.releaseHourly(t, urls[0], account, questions, 1_000_000)
	}
	n := &numbers{}
	edges := 10 * *rounds
	var loads []*load
	for _, url := range urls {
		loads = append(loads, s.load(t, n, url, 32))
	}
	for edge := range edges + 1 {
		if edge > 0 {
			// The edge itself is passed by the clock's own running.
			s.turn(t, time.Duration(edge)*time.Hour-time.Duration(rand.IntN(100_000))*time.Microsecond, one, two)
		}
		s.answered(t, each*(edge+1))
	}
	for _, l := range loads {
		l.stop(t, "budget/tranche-closed", "ledger/clock") // the latter where a charge met the clocks while they were turned
	}
	s.check(t, "the edges of tranches")
	if early := s.spentTooSoon(t, 0); len(early) > 0 {
		t.Errorf("%d charges came too soon, the first is %s", len(early), early[0])
	}
	if early := s.spentTooSoon(t, 1); len(early) < edges {
		t.Errorf("%d charges would break a cap that is a little lower: the test does not see charges that come too soon", len(early))
	}
}

// answered waits until clients hold so many releases.
func (s *site) answered(t *testing.T, releases int) {
	t.Helper()
	within(t, fmt.Sprintf("there are not %d releases", releases), func() bool {
		_, got := s.judge.Told.Counts()
		return got >= releases
	})
}

// TestServerClockSteps turns the clocks of the ledger's server and of the gateway to and fro: each tranche opens once, when its time comes
// for the first time, and none opens because a clock was set back.
//
// covers: F14
func TestServerClockSteps(t *testing.T) {
	const each, all = 3, 90
	s := newSite(t)
	s.installClock(t)
	clock := &steppingClock{}
	url := s.inProcess(t, never(), ownClock(clock))
	s.refill(t, url, 1000)
	s.releaseHourly(t, url, "dataset", each, all)
	n := &numbers{}
	const day = 24 * time.Hour
	var latest time.Duration
	given := 0
	for _, at := range []time.Duration{0, time.Hour, 0, -time.Hour, time.Hour, 2 * time.Hour, -day, day, 0, until(2038), until(2100),
		until(1999)} {
		s.turn(t, at.Truncate(time.Hour)+30*time.Minute, clock) // far from any edge, however long the questions take
		latest = max(latest, at)
		open := min(each*(1+int(latest/time.Hour)), all)
		answers := 0
		for range open - given + 2 {
			answer, err := api.NewClient(url, "ana0").Query(t.Context(), question(n.next()), "")
			if err == nil {
				answers++
				s.judge.Told.Told("", answer)
			}
		}
		if answers != open-given {
			t.Errorf("with the server's clock at %v, %d questions were answered, want %d", at, answers, open-given)
		}
		given = open
		s.check(t, "the server's clock at "+at.String())
	}
	if early := s.spentTooSoon(t, 0); len(early) > 0 {
		t.Errorf("%d charges came too soon, the first is %s", len(early), early[0])
	}
}

// TestServerClockAhead turns the clock of the ledger's server alone: nothing is written while it is far ahead, and everything goes on when
// it is right again, as if nothing had been.
//
// covers: F14
func TestServerClockAhead(t *testing.T) {
	s := newSite(t)
	s.installClock(t)
	url := s.inProcess(t, never(), nil)
	s.refill(t, url, 1000)
	n := &numbers{}
	ask := func() error {
		answer, err := api.NewClient(url, "ana0").Query(t.Context(), question(n.next()), "")
		if err == nil {
			s.judge.Told.Told("", answer)
		}
		return err
	}
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	for _, ahead := range []time.Duration{400 * 24 * time.Hour, 2 * time.Minute, time.Hour} {
		before := s.entries(t)
		s.step(t, ahead)
		time.Sleep(1100 * time.Millisecond) // what a gateway knows of the server's clock is at most so old
		var problem *api.Problem
		if err := ask(); !errors.As(err, &problem) || problem.Code != "ledger/clock" || problem.Status != http.StatusServiceUnavailable {
			t.Errorf("with the server's clock %v ahead: %v", ahead, err)
		}
		if after := s.entries(t); after != before {
			t.Errorf("with the server's clock %v ahead, %d entries are written", ahead, after-before)
		}
		s.step(t, 0)
		if err := ask(); err != nil {
			t.Errorf("after the server's clock was %v ahead: %v", ahead, err)
		}
		s.check(t, "the server's clock ahead by "+ahead.String())
	}
	s.step(t, 30*time.Second)
	if err := ask(); err != nil {
		t.Errorf("half a minute is no more than clocks differ by: %v", err)
	}
}

// step puts the server's clock so far ahead.
func (s *site) step(t *testing.T, by time.Duration) {
	t.Helper()
	s.control.Exec(t, fmt.Sprintf("UPDATE public.step SET by = interval '%d us'", by.Microseconds()))
}

// entries counts those of the journal.
func (s *site) entries(t *testing.T) (count int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.super)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM noisegate.entry").Scan(&count); err != nil {
		t.Fatal(err)
	}
	return count
}

// TestClockSetBack turns both clocks far ahead, and back: an account that has a rate takes nothing for as long, until a steward sets the
// ledger's time back; then what it took counts as taken at that time.
//
// covers: F14
func TestClockSetBack(t *testing.T) {
	s := newSite(t)
	s.installClock(t)
	clock := &steppingClock{}
	url := s.inProcess(t, never(), ownClock(clock))
	s.refill(t, url, 1000)
	sam, ana, n := api.NewClient(url, "sam"), api.NewClient(url, "ana0"), &numbers{}
	limit := api.BudgetLimit{Form: "pure", Epsilon: "100", Rate: &api.Rate{Epsilon: "0.1", Per: "2s"}}
	if _, err := sam.SetAccount(t.Context(), gatewaytest.Dataset, "analyst:ana0", limit); err != nil {
		t.Fatal(err)
	}
	ask := func() (code string) {
		answer, err := ana.Query(t.Context(), question(n.next()), "")
		var problem *api.Problem
		switch {
		case errors.As(err, &problem):
			return problem.Code
		case err != nil:
			t.Fatal(err)
		}
		s.judge.Told.Told("", answer)
		return ""
	}
	setBack := func(to time.Time) error {
		_, err := sam.SetBack(t.Context(), gatewaytest.Dataset, api.Clock{To: to.Truncate(time.Microsecond), Reason: "a clock was wrong"})
		return err
	}
	const ahead = 400 * 24 * time.Hour
	clock.step.Store(int64(ahead))
	s.step(t, ahead)
	time.Sleep(1100 * time.Millisecond) // what a gateway knows of the server's clock is at most so old
	if code := ask(); code != "" {
		t.Fatalf("with both clocks ahead: %s", code)
	}
	clock.step.Store(0)
	s.step(t, 0)
	time.Sleep(3 * time.Second)
	if code := ask(); code != "budget/rate-limited" {
		t.Errorf("with the clocks right, and the time of the future: %q", code)
	}
	for _, wrong := range []time.Duration{-time.Hour, -2 * time.Minute, 2 * time.Minute, ahead / 2} {
		if err := setBack(time.Now().Add(wrong)); err == nil {
			t.Errorf("the time is set to one that is %v off", wrong)
		}
	}
	at := time.Now()
	if err := setBack(at); err != nil {
		t.Fatal(err)
	}
	if err := setBack(time.Now()); err == nil {
		t.Error("the time is set back that is right")
	}
	within(t, "nothing goes on", func() bool { return ask() == "" })
	if waited := time.Since(at); waited < 2*time.Second {
		t.Errorf("what was taken ahead had worn off after %v", waited)
	}
	s.check(t, "the time was set back")
}
