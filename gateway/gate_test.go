package gateway

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"noisegate.example/gateway/auth"
	"noisegate.example/internal/fault"
)

// gateDeadline is how long a test waits for what must happen at once.
const gateDeadline = 20 * time.Second

func testGate(t *testing.T, f Fairness) *gate {
	t.Helper()
	f, err := f.Complete()
	if err != nil {
		t.Fatal(err)
	}
	return newGate(f)
}

// entering is an attempt to enter.
type entering struct {
	who     string
	entered chan func()
	refused chan error
}

// knock tries to enter, and returns once the request has entered, waits, or was refused.
func knock(t *testing.T, ctx context.Context, g *gate, who string) *entering {
	t.Helper()
	before := g.atTheGate(who)
	e := &entering{who, make(chan func(), 1), make(chan error, 1)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		release, err := g.Enter(ctx, who)
		if err != nil {
			e.refused <- err
			return
		}
		e.entered <- release
	}()
	for deadline := time.Now().Add(gateDeadline); g.atTheGate(who) == before; {
		select {
		case <-done:
			return e
		default:
		}
		if time.Now().After(deadline) {
			t.Fatal("a request neither entered nor waits nor was refused")
		}
		time.Sleep(50 * time.Microsecond)
	}
	return e
}

// atTheGate is how many requests of an analyst run or wait.
func (g *gate) atTheGate(who string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if l := g.lines[who]; l != nil {
		return l.running + len(l.waiting)
	}
	return 0
}

func (e *entering) release(t *testing.T) func() {
	t.Helper()
	select {
	case release := <-e.entered:
		return release
	case err := <-e.refused:
		t.Fatalf("a request of %s was refused: %v", e.who, err)
	case <-time.After(gateDeadline):
		t.Fatalf("a request of %s does not enter", e.who)
	}
	return nil
}

func (e *entering) waits() bool { return len(e.entered) == 0 && len(e.refused) == 0 }

func (e *entering) refusal(t *testing.T) error {
	t.Helper()
	select {
	case err := <-e.refused:
		return err
	case <-time.After(gateDeadline):
		t.Fatalf("a request of %s is not refused", e.who)
		return nil
	}
}

// An analyst reads one list at a time, and nobody else waits for that, nor does what takes longer.
func TestOneListAtATime(t *testing.T) {
	r := newRig(t)
	ana, eve := auth.Principal{Subject: "ana"}, auth.Principal{Subject: "eve"}
	leave, err := r.EnterList(t.Context(), eve)
	if err != nil {
		t.Fatal(err)
	}
	impatient, hangUp := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer hangUp()
	if _, err := r.EnterList(impatient, eve); fault.CodeOf(err) != fault.CodeRequestGone {
		t.Errorf("a second list of one analyst: %v", err)
	}
	other, err := r.EnterList(t.Context(), ana)
	if err != nil {
		t.Fatal(err)
	}
	other()
	if _, err := r.Verify(t.Context(), eve, "d"); err != nil {
		t.Errorf("the ledger is verified beside a list: %v", err)
	}
	leave()
	if leave, err = r.EnterList(t.Context(), eve); err != nil {
		t.Fatal(err)
	}
	leave()
}

// covers: C2 W.8
//
// One analyst has a few places, waits with a few requests more, and is refused beyond; another finds a place.
func TestGateBoundsOneAnalyst(t *testing.T) {
	g := testGate(t, Fairness{Places: 8, PerAnalyst: 2, Queue: 3})
	var eve []*entering
	for range 5 {
		eve = append(eve, knock(t, t.Context(), g, "eve"))
	}
	first, second := eve[0].release(t), eve[1].release(t)
	if !eve[2].waits() || !eve[3].waits() || !eve[4].waits() {
		t.Error("more than two of one analyst's requests run")
	}
	if err := knock(t, t.Context(), g, "eve").refusal(t); fault.CodeOf(err) != fault.CodeRequestTooMany {
		t.Errorf("beyond the queue: %v", err)
	}
	knock(t, t.Context(), g, "ana").release(t)()
	first()
	first() // once is all that counts
	third := eve[2].release(t)
	if !eve[3].waits() {
		t.Error("a place that was released twice is two places")
	}
	second()
	fourth := eve[3].release(t)
	third()
	fourth()
	eve[4].release(t)()
	if len(g.lines) != 0 || g.free != 8 || len(g.turns) != 0 {
		t.Errorf("after all are gone: %d analysts, %d places free, %d turns", len(g.lines), g.free, len(g.turns))
	}
}

// covers: C2 W.8
//
// Analysts take turns, however many requests one of them has waiting.
func TestGateGoesRound(t *testing.T) {
	g := testGate(t, Fairness{Places: 1, PerAnalyst: 1, Queue: 100})
	release := knock(t, t.Context(), g, "eve").release(t)
	waiting := map[string][]*entering{}
	for _, who := range []string{"eve", "eve", "eve", "eve", "ana", "ana", "bob"} {
		waiting[who] = append(waiting[who], knock(t, t.Context(), g, who))
	}
	// eve has the place, so that she may not have another before it is released: then she is behind those who came meanwhile.
	for i, who := range []string{"ana", "bob", "eve", "ana", "eve", "eve", "eve"} {
		release()
		next := waiting[who][0]
		waiting[who] = waiting[who][1:]
		select {
		case release = <-next.entered:
		case <-time.After(gateDeadline):
			t.Fatalf("turn %d is not %s's", i, who)
		}
	}
	release()
}

// covers: W.7 W.8
//
// Who hangs up while waiting leaves the queue, and nobody waits for them; who hangs up with a place keeps it.
func TestGateHangingUp(t *testing.T) {
	g := testGate(t, Fairness{Places: 1, PerAnalyst: 1, Queue: 2})
	ctx, hangUp := context.WithCancel(t.Context())
	holding := knock(t, ctx, g, "eve")
	release := holding.release(t)
	gone, other := knock(t, ctx, g, "eve"), knock(t, t.Context(), g, "ana")
	hangUp()
	if err := gone.refusal(t); !errors.Is(err, context.Canceled) {
		t.Errorf("who hung up: %v", err)
	}
	if !other.waits() {
		t.Error("a client that hung up gave its place away before its work ended")
	}
	if err := knock(t, ctx, g, "bob").refusal(t); !errors.Is(err, context.Canceled) {
		t.Errorf("who is gone already: %v", err)
	}
	release()
	other.release(t)()
	if len(g.lines) != 0 || g.free != 1 {
		t.Error("the gate does not forget")
	}
}

// A request does not wait for ever.
func TestGateLosesPatience(t *testing.T) {
	g := testGate(t, Fairness{Places: 1, Wait: 20 * time.Millisecond})
	release := knock(t, t.Context(), g, "eve").release(t)
	if err := knock(t, t.Context(), g, "ana").refusal(t); fault.CodeOf(err) != fault.CodeRequestTooMany {
		t.Errorf("got %v", err)
	}
	release()
	knock(t, t.Context(), g, "ana").release(t)()
}

// Whatever analysts do at once, no bound is passed, and in the end all is as in the beginning.
func TestGateUnderLoad(t *testing.T) {
	const each = 2
	g := testGate(t, Fairness{Places: 5, PerAnalyst: each, Queue: 4, Wait: time.Millisecond})
	var mu sync.Mutex
	running, most, mostOfOne := map[string]int{}, 0, 0
	count := func(who string, change int) {
		mu.Lock()
		defer mu.Unlock()
		running[who] += change
		all := 0
		for _, n := range running {
			all, mostOfOne = all+n, max(mostOfOne, n)
		}
		most = max(most, all)
	}
	var all sync.WaitGroup
	for i := range 60 {
		all.Go(func() {
			who, random := fmt.Sprint("analyst ", i%6), rand.New(rand.NewPCG(1, uint64(i)))
			for range 50 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(2000))*time.Microsecond)
				if release, err := g.Enter(ctx, who); err == nil {
					count(who, 1)
					time.Sleep(time.Duration(random.IntN(100)) * time.Microsecond)
					count(who, -1)
					release()
				}
				cancel()
			}
		})
	}
	all.Wait()
	if most > 5 || mostOfOne > each {
		t.Errorf("%d ran at once, %d of one analyst", most, mostOfOne)
	}
	if len(g.lines) != 0 || g.free != 5 || len(g.turns) != 0 {
		t.Errorf("after all are gone: %d analysts, %d places free, %d turns", len(g.lines), g.free, len(g.turns))
	}
}

// One analyst never has all places.
func TestFairnessIsCompleted(t *testing.T) {
	for given, want := range map[Fairness]Fairness{
		{}:                                   {16, 2, 64, 30 * time.Second},
		{Places: 2, PerAnalyst: 2}:           {2, 1, 64, 30 * time.Second},
		{Places: 1}:                          {1, 1, 64, 30 * time.Second},
		{3, 9, 1, time.Second}:               {3, 2, 1, time.Second},
		{Places: 4, PerAnalyst: 3, Queue: 7}: {4, 3, 7, 30 * time.Second},
	} {
		if got, err := given.Complete(); err != nil || got != want {
			t.Errorf("%+v: got %+v, %v, want %+v", given, got, err, want)
		}
	}
	for _, bad := range []Fairness{{Places: -1}, {PerAnalyst: -1}, {Queue: -1}, {Wait: -1}} {
		if _, err := bad.Complete(); err == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}

// TestCatalogWait: who waits for a place at the catalogs is refused after 5 s, however long one may wait for a question's.
func TestCatalogWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, err := Fairness{}.Complete()
		if err != nil {
			t.Fatal(err)
		}
		g := newGate(f.within(catalogWait))
		for range f.PerAnalyst {
			if _, err := g.Enter(t.Context(), "ana"); err != nil {
				t.Fatal(err)
			}
		}
		start := time.Now()
		if _, err := g.Enter(t.Context(), "ana"); fault.CodeOf(err) != fault.CodeRequestTooMany || time.Since(start) != catalogWait {
			t.Errorf("%v after %s", err, time.Since(start))
		}
	})
}

// What a gate shows is how many requests have a place and wait, and why others got none: that their clients went away is no refusal.
func TestGateState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := testGate(t, Fairness{Places: 2, PerAnalyst: 1, Queue: 2, Wait: time.Second})
		expect := func(want GateState) {
			t.Helper()
			want.Name, want.Places, want.Queue = "questions", 2, 2
			if got := g.state("questions"); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		}
		expect(GateState{})
		ctx, hangUp := context.WithCancel(t.Context())
		release, err := g.Enter(ctx, "ana")
		if err != nil {
			t.Fatal(err)
		}
		gone := make(chan error)
		go func() { _, err := g.Enter(ctx, "ana"); gone <- err }()
		go func() { _, err := g.Enter(context.Background(), "ana"); gone <- err }()
		synctest.Wait()
		expect(GateState{Running: 1, Waiting: 2, Longest: 2})
		if _, err := g.Enter(ctx, "ana"); fault.CodeOf(err) != fault.CodeRequestTooMany {
			t.Errorf("a third one in the queue: %v", err)
		}
		leave, err := g.Enter(ctx, "bob")
		if err != nil {
			t.Fatal(err)
		}
		expect(GateState{Running: 2, Waiting: 2, Longest: 2, TooMany: 1})
		hangUp()
		if err := <-gone; fault.CodeOf(err) != fault.CodeRequestGone {
			t.Errorf("a client that hung up: %v", err)
		}
		expect(GateState{Running: 2, Waiting: 1, Longest: 1, TooMany: 1})
		if err := <-gone; fault.CodeOf(err) != fault.CodeRequestTooMany {
			t.Errorf("a client that waited for a second: %v", err)
		}
		release()
		leave()
		expect(GateState{TooMany: 1, TooLong: 1})
	})
}
