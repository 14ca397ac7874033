package faults

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"

	"noisegate.example/api"
	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/internal/pgtest"
)

// make soak gives more.
var (
	soakFor     = flag.Duration("soak", 3*time.Second, "how long TestSoak goes on")
	soakClients = flag.Int("soak-clients", 64, "how many clients ask, an eighth of them what analysts and stewards look at")
)

// mostGrowth is how many MiB an hour the memory of a gateway may grow by, in a soak that is long enough to tell.
const (
	mostGrowth = 5
	longSoak   = 30 * time.Minute
	warmUp     = 10 * time.Minute // which a gateway is given to fill its caches
)

// soak is two gateways on one site: one that is killed now and then, and one that must live through everything, whose connections to its
// databases can be damaged.
type soak struct {
	*site
	n      *numbers
	steady *child
	ledger *toxiproxy.Proxy // on the way of the steady one
	data   *toxiproxy.Proxy
	mortal *child
	reborn orders // with which the mortal one is started again
}

func newSoak(t *testing.T) *soak {
	t.Helper()
	s := &soak{site: ownSite(t), n: &numbers{}}
	s.reborn = orders{Databases: s.databases, Address: pgtest.FreeAddress(t)}
	through := orders{Address: pgtest.FreeAddress(t)}
	through.Databases.Ledger, s.ledger = network(t, s.databases.Ledger)
	through.Databases.Reader, s.data = network(t, s.databases.Reader)
	s.steady, _ = startChild(t, through)
	s.mortal, _ = startChild(t, s.reborn)
	return s
}

// damage is what happens in between; each of it is over when it returns.
func (s *soak) damage() map[string]func(*testing.T) {
	return map[string]func(*testing.T){
		"kill of a gateway": func(t *testing.T) {
			s.mortal.kill()
			s.mortal, _ = startChild(t, s.reborn)
		},
		"stop of the server": func(t *testing.T) {
			s.server.StopImmediate()
			if err := s.server.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
		"end of all connections": func(t *testing.T) {
			s.control.Exec(t, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename LIKE 'noisegate%'")
		},
		"locked table": func(t *testing.T) {
			unlock := s.lockPeople(t)
			time.Sleep(200 * time.Millisecond)
			unlock()
		},
		"damaged connection of the ledger": func(t *testing.T) { s.poisonAny(t, s.ledger) },
		"damaged connection of the data":   func(t *testing.T) { s.poisonAny(t, s.data) },
	}
}

func (s *soak) poisonAny(t *testing.T, wire *toxiproxy.Proxy) {
	t.Helper()
	var descriptions []string
	for _, d := range toxics() {
		descriptions = append(descriptions, d)
	}
	heal := poison(t, wire, pick(descriptions), pick([]string{"upstream", "downstream"}))
	time.Sleep(200 * time.Millisecond)
	heal()
}

func pick[T any](from []T) T { return from[rand.IntN(len(from))] }

// TestSoak has 64 clients at two gateways ask, ask again and look around, while all kinds of damage come in turn. After
// each the ledger is judged. The gateway that lives through it all has as many goroutines in the end as at the
// beginning, and in half an hour or more its memory does not grow; how it went, and its answers' times, is told.
//
// covers: F24
func TestSoak(t *testing.T) {
	s := newSoak(t)
	base := s.steady.goroutines(t)
	s.refill(t, s.mortal.url, 300)
	looking := max(1, *soakClients/16)
	asking := max(1, *soakClients/2-looking)
	loads := []*load{s.load(t, s.n, s.steady.url, asking), s.load(t, s.n, s.mortal.url, asking)}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var around sync.WaitGroup
	for _, l := range loads {
		for range looking {
			around.Go(func() { l.lookAround(ctx) })
		}
	}
	var memory []sample
	kinds, done := s.damage(), 0
	start := time.Now()
	for time.Since(start) < *soakFor {
		for _, kind := range shuffled(kinds) {
			time.Sleep(min(*soakFor/60, 30*time.Second))
			if time.Since(start) > *soakFor {
				break
			}
			kinds[kind](t)
			s.heals(t, s.n, s.steady.url)
			s.check(t, kind)
			s.refill(t, s.steady.url, 300)
			s.forgive(t, s.steady.url)
			memory = append(memory, sample{time.Since(start), s.steady.resident()})
			done++
		}
	}
	cancel()
	around.Wait()
	s.heals(t, s.n, s.mortal.url)
	for _, l := range loads {
		l.stop(t, "budget/failures")
	}
	s.check(t, "all of it")
	settled(t, base, func() int { return s.steady.goroutines(t) })
	asked, answered := s.judge.Told.Counts()
	memory = slices.DeleteFunc(memory, func(s sample) bool { return s.at < min(warmUp, *soakFor/3) })
	mean, growth := slope(memory)
	t.Logf("%d faults in %v, %d questions, %d answers; memory of %d looks %.0f MiB in the mean, %+.1f MiB an hour; answers %s", done,
		time.Since(start).Round(time.Second), asked, answered, len(memory), mean, growth, drift(loads[0].waits))
	if *soakFor >= longSoak && growth > mostGrowth {
		t.Errorf("the gateway's memory grew by %.1f MiB an hour, more than %d", growth, mostGrowth)
	}
}

// forgive has a steward reset the failures of the clients and of eve: statements that damage interrupts count as failures.
func (s *soak) forgive(t *testing.T, url string) {
	t.Helper()
	steward := api.NewClient(url, "sam")
	for _, account := range []string{"analyst:ana0", "analyst:ana1", "analyst:eve"} {
		if _, err := steward.ResetFailures(t.Context(), gatewaytest.Dataset, account); err != nil {
			t.Fatal(err)
		}
	}
}

func shuffled(kinds map[string]func(*testing.T)) (names []string) {
	for name := range kinds {
		names = append(names, name)
	}
	slices.Sort(names)
	rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	return names
}

// lookAround reads what analysts and stewards read. Only databases that are not there may keep it from them.
func (l *load) lookAround(ctx context.Context) {
	client := api.NewClient(l.url, "ana1")
	for ctx.Err() == nil {
		for what, read := range map[string]func() error{
			"budget":   func() error { _, err := client.Budget(ctx, gatewaytest.Dataset); return err },
			"releases": func() error { _, err := client.Releases(ctx, ""); return err },
			"accounts": func() error { _, err := client.Accounts(ctx, gatewaytest.Dataset); return err },
			"audit":    func() error { _, err := client.Audit(ctx, gatewaytest.Dataset, ""); return err },
			"estimate": func() error { _, err := client.Estimate(ctx, question(0)); return err },
		} {
			err := read()
			if code := codeOf(err); code != "" && code != "data/unavailable" {
				l.note(fmt.Errorf("%s: %w", what, err))
			}
			if err != nil {
				time.Sleep(10 * time.Millisecond)
			}
		}
	}
}

// sample is a gateway's memory at a time.
type sample struct {
	at  time.Duration
	kiB int
}

// resident is how much memory the child has, in KiB; 0 where the system does not say.
func (c *child) resident() (kiB int) {
	_, _ = fmt.Sscan(strings.TrimSuffix(c.memory("VmRSS"), " kB"), &kiB)
	return kiB
}

// slope is the mean of memory, in MiB, and by how much it grew in an hour: the least squares line. NaN of fewer than two samples.
func slope(samples []sample) (mean, growth float64) {
	var n, x, y, xx, xy float64
	for _, s := range samples {
		n, x, y, xx, xy = n+1, x+s.at.Hours(), y+float64(s.kiB)/1024, xx+s.at.Hours()*s.at.Hours(), xy+s.at.Hours()*float64(s.kiB)/1024
	}
	return y / n, (n*xy - x*y) / (n*xx - x*x)
}

// drift describes how long the first and the second half of the answers took.
func drift(waits []time.Duration) string {
	var halves []string
	for _, half := range [][]time.Duration{waits[:len(waits)/2], waits[len(waits)/2:]} {
		if len(half) == 0 {
			return "too few"
		}
		half = slices.Sorted(slices.Values(half))
		halves = append(halves, fmt.Sprintf("p99 %v", half[len(half)*99/100].Round(time.Millisecond)))
	}
	return strings.Join(halves, ", then ")
}
