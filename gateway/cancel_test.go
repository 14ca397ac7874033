package gateway

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite"
)

// latest is a source of randomness whose words are all 1: no boundary is moved.
type latest struct{}

func (latest) Read(p []byte) (int, error) {
	for i := 0; i+8 <= len(p); i += 8 {
		binary.LittleEndian.PutUint64(p[i:], 1)
	}
	return len(p), nil
}

// counting is a source whose words are 1, 2, 3 ... times a large odd number.
type counting struct{ next uint64 }

func (c *counting) Read(p []byte) (int, error) {
	for i := 0; i+8 <= len(p); i += 8 {
		c.next++
		binary.LittleEndian.PutUint64(p[i:], c.next*0x9e3779b97f4a7c15)
	}
	return len(p), nil
}

// cancelled asks a question whose work takes so long, and cancels it at a time. It says when it left and as what.
func cancelled(t *testing.T, r *rig, work, at time.Duration) string {
	t.Helper()
	ana, request := principal(t, "ana"), count("0.5")
	request.IdempotencyKey = "key"
	r.works(work, nil)
	r.clock.AfterFunc(at, func() {
		if done, err := r.Cancel(context.Background(), ana, "key"); err != nil || done.Status != "stopping" {
			t.Errorf("%+v, %v", done, err)
		}
	})
	began := r.clock.Now()
	answer, err := r.Query(t.Context(), ana, request)
	return fmt.Sprintf("%v %v %v", r.clock.Now().Sub(began), answer, err)
}

// TestCancelTellsNothing: when and as what a cancelled question leaves does not depend on whether, or when, its work ended.
//
// needs: postgres
// covers: W.7 A36
func TestCancelTellsNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	for seed := range uint64(50) {
		for _, at := range []time.Duration{1, 20, 44, 47, 49, 70, 88, 93, 99, 150} {
			left := map[string]bool{}
			for _, work := range []time.Duration{1, 10, 60, 75, 150, 190, 1000, 3_600_000} {
				at, work := at*time.Millisecond, work*time.Millisecond
				r := scheduled(t, 30*time.Second)
				r.sampler = func() *mechanisms.Sampler { return mechanisms.NewSamplerFrom(&counting{next: seed << 20}) }
				if h := r.Schedule("d"); h.after(work) <= at {
					continue // it has left before
				}
				left[cancelled(t, r, work, at)] = true
				if got := r.spentEpsilon(t); got != "0.5" {
					t.Errorf("spent %s", got)
				}
			}
			if len(left) != 1 {
				t.Fatalf("cancelled at %d ms: %v", at, left)
			}
		}
	}
}

// TestCancel: the work is stopped in time to leave at the next boundary, the charge stands, and the question can be
// asked, and charged, again, but not under its key.
//
// covers: W.7
func TestCancel(t *testing.T) {
	r, ana := scheduled(t, 30*time.Second), principal(t, "ana")
	r.sampler = func() *mechanisms.Sampler { return mechanisms.NewSamplerFrom(latest{}) }
	var stopped time.Duration
	began := r.clock.Now()
	r.data.takes = func(ctx context.Context) ([]sqlrewrite.ExactRow, error) {
		r.clock.Sleep(ctx, time.Hour)
		stopped = r.clock.Now().Sub(began)
		return nil, fault.DataUnavailable(ctx.Err())
	}
	request := count("0.5")
	request.IdempotencyKey = "key"
	r.clock.AfterFunc(70*time.Millisecond, func() {
		for range 2 { // a second time changes nothing
			if _, err := r.Cancel(context.Background(), ana, "key"); err != nil {
				t.Error(err)
			}
		}
		for name, c := range map[string]struct{ who, key string }{"another's": {"bob", "key"}, "another key": {"ana", "key2"}} {
			if _, err := r.Cancel(context.Background(), principal(t, c.who), c.key); fault.CodeOf(err) != fault.CodeRequestNotFound {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := r.Cancel(context.Background(), ana, ""); fault.CodeOf(err) != fault.CodeRequestIdempotencyKey {
			t.Errorf("no key: %v", err)
		}
	})
	_, err := r.Query(t.Context(), ana, request)
	if took := r.clock.Now().Sub(began); fault.CodeOf(err) != fault.CodeBudgetCancelled || took != 100*time.Millisecond ||
		stopped != 95*time.Millisecond {
		t.Errorf("stopped after %v, left after %v: %v", stopped, took, err)
	}
	if _, err := r.Cancel(t.Context(), ana, "key"); fault.CodeOf(err) != fault.CodeRequestNotFound {
		t.Errorf("it has left: %v", err)
	}
	if got := r.spentEpsilon(t); got != "0.5" {
		t.Errorf("spent %s", got)
	}
	r.data.takes = nil
	if _, err := r.Query(t.Context(), ana, request); fault.CodeOf(err) != fault.CodeBudgetLostAnswer {
		t.Errorf("again under the key: %v", err)
	}
	if again := r.ask(t, ana, count("0.5")); again.Replayed || again.Spent.Epsilon != "0.5" {
		t.Errorf("again: %+v", again)
	}
}

// TestCancelByName: a name cancels a running question as a key does, and is forgotten with it: asking again under it is a new charge.
func TestCancelByName(t *testing.T) {
	r, ana := scheduled(t, 30*time.Second), principal(t, "ana")
	r.data.takes = func(ctx context.Context) ([]sqlrewrite.ExactRow, error) {
		r.clock.Sleep(ctx, time.Hour)
		return nil, fault.DataUnavailable(ctx.Err())
	}
	request := count("0.5")
	request.Name = "name"
	r.clock.AfterFunc(70*time.Millisecond, func() {
		if _, err := r.Cancel(context.Background(), principal(t, "bob"), "name"); fault.CodeOf(err) != fault.CodeRequestNotFound {
			t.Errorf("another's: %v", err)
		}
		if _, err := r.Cancel(context.Background(), ana, "name"); err != nil {
			t.Error(err)
		}
	})
	if _, err := r.Query(t.Context(), ana, request); fault.CodeOf(err) != fault.CodeBudgetCancelled {
		t.Errorf("got %v", err)
	}
	r.data.takes = nil
	if again := r.ask(t, ana, request); again.Replayed || again.Spent.Epsilon != "0.5" {
		t.Errorf("again: %+v", again)
	}
}

// TestCancelBeforeTheCharge: a question that is cancelled before it was charged is not. Once it was, the charge stands,
// also where nothing had been read when it was stopped, such as of one that waited for a connection. Without a quantum
// it stops at once.
//
// covers: W.7
func TestCancelBeforeTheCharge(t *testing.T) {
	request := count("0.5")
	request.IdempotencyKey = "key"
	for name, c := range map[string]struct {
		prepare func(*rig)
		leaves  time.Duration
		spent   string
	}{
		"not charged": {func(r *rig) {
			r.Service.policies = cancelling{r.policies, func() { _, _ = r.Cancel(context.Background(), principal(t, "ana"), "key") }}
		}, 0, "0"},
		"nothing read": {func(r *rig) {
			r.sampler = func() *mechanisms.Sampler { return mechanisms.NewSamplerFrom(latest{}) }
			r.data.takes = func(ctx context.Context) ([]sqlrewrite.ExactRow, error) {
				r.clock.Sleep(ctx, time.Hour)
				return nil, fault.Untouched(fault.DataUnavailable(ctx.Err()))
			}
			r.clock.AfterFunc(20*time.Millisecond, func() { _, _ = r.Cancel(context.Background(), principal(t, "ana"), "key") })
		}, testQuantum, "0.5"},
		"no quantum": {func(r *rig) {
			r.datasets["d"] = Dataset{Data: r.data}
			r.data.takes = func(ctx context.Context) ([]sqlrewrite.ExactRow, error) {
				r.clock.Sleep(ctx, time.Hour)
				return nil, fault.Untouched(fault.DataUnavailable(ctx.Err()))
			}
			r.clock.AfterFunc(20*time.Millisecond, func() { _, _ = r.Cancel(context.Background(), principal(t, "ana"), "key") })
		}, 20 * time.Millisecond, "0.5"},
	} {
		t.Run(name, func(t *testing.T) {
			r := scheduled(t, 30*time.Second)
			c.prepare(r)
			began := r.clock.Now()
			_, err := r.Query(t.Context(), principal(t, "ana"), request)
			if took := r.clock.Now().Sub(began); took != c.leaves || fault.CodeOf(err) != fault.CodeBudgetCancelled ||
				err.Error() != fault.BudgetCancelled(c.spent != "0").Error() {
				t.Errorf("left after %v: %v", took, err)
			}
			if got := r.spentEpsilon(t); got != c.spent {
				t.Errorf("spent %s", got)
			}
			if len(r.running.asked) != 0 {
				t.Errorf("%d are running", len(r.running.asked))
			}
		})
	}
}

// TestCancelInTheQueue: a question that waits for a place leaves the queue when it is cancelled, uncharged, and its
// place goes to the next. The test waits for the queue to have it, 10 s at most.
//
// covers: W.7
func TestCancelInTheQueue(t *testing.T) {
	r, ana := scheduled(t, 30*time.Second), principal(t, "ana")
	var held []func()
	for range r.questions.PerAnalyst {
		release, err := r.questions.Enter(t.Context(), "ana")
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, release)
	}
	request := count("0.5")
	request.IdempotencyKey = "key"
	asked := make(chan error, 1)
	go func() {
		_, err := r.Query(t.Context(), ana, request)
		asked <- err
	}()
	waits := func() bool {
		r.questions.mu.Lock()
		defer r.questions.mu.Unlock()
		return len(r.questions.lines["ana"].waiting) == 1
	}
	for deadline := time.Now().Add(10 * time.Second); !waits(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the question does not wait for a place")
		}
	}
	if _, err := r.Cancel(t.Context(), ana, "key"); err != nil {
		t.Error(err)
	}
	select {
	case err := <-asked:
		if fault.CodeOf(err) != fault.CodeBudgetCancelled || r.data.runs != 0 {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the question still waits")
	}
	for _, release := range held {
		release()
	}
	if got := r.spentEpsilon(t); got != "0" || r.questions.free != r.questions.Places {
		t.Errorf("spent %s, %d places free", got, r.questions.free)
	}
}

// cancelling does something when a policy is looked up.
type cancelling struct {
	*fakePolicies
	now func()
}

func (c cancelling) Current(dataset string) (*catalog.Snapshot, error) {
	c.now()
	return c.fakePolicies.Current(dataset)
}
