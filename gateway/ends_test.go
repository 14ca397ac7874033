package gateway

import (
	"context"
	"errors"
	"math/big"
	"testing"
	"time"

	"noisegate.example/budget"
	"noisegate.example/catalog"
	"noisegate.example/gateway/auth"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite"
)

// ending is a request of ana's with the key "key", and what ends it.
type ending struct {
	*rig
	ctx    context.Context
	hangUp func()
}

// cancels is the caller's own DELETE.
func (e *ending) cancels() { _, _ = e.Cancel(context.Background(), ana(), "key") }

// reserving is a ledger in which something happens after a charge was admitted and before its client is told.
type reserving struct {
	budget.Ledger
	now func()
}

func (r reserving) Reserve(ctx context.Context, c budget.Charge) (budget.Outcome, error) {
	outcome, err := r.Ledger.Reserve(ctx, c)
	if err == nil {
		r.now()
	}
	return outcome, err
}

// waits lets the data take until the request is stopped, before a row is read or after.
func (e *ending) waits(untouched bool) {
	e.data.takes = func(ctx context.Context) ([]sqlrewrite.ExactRow, error) {
		e.clock.Sleep(ctx, time.Hour)
		if untouched {
			return nil, fault.Untouched(fault.DataUnavailable(ctx.Err()))
		}
		return nil, fault.DataUnavailable(ctx.Err())
	}
}

// fullHouse leaves no place for another request of ana's.
func (e *ending) fullHouse(t *testing.T) {
	for range e.questions.PerAnalyst {
		if _, err := e.questions.Enter(t.Context(), "ana"); err != nil {
			t.Fatal(err)
		}
	}
}

// whenQueued does something when ana's request waits for a place.
func (e *ending) whenQueued(do func()) {
	go func() {
		for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			e.questions.mu.Lock()
			queued := len(e.questions.lines["ana"].waiting) == 1
			e.questions.mu.Unlock()
			if queued {
				do()
				return
			}
		}
	}()
}

// TestEveryEndIsPaidOrTellsNothing walks the ways in which a request ends, where the account that all share affords it
// and where it does not. An end that looks different in the two reveals what others spent. It is charged where it is the caller's doing, so
// that none is free; the others are failures of servers, which a caller cannot cause, before anything was read.
//
// covers: W.7 L1
func TestEveryEndIsPaidOrTellsNothing(t *testing.T) {
	unread := fault.Untouched(fault.DataUnavailable(errors.New("no connection")))
	for name, c := range map[string]struct {
		end     func(*testing.T, *ending)
		code    fault.Code // where the shared account affords it
		charged bool
		tells   bool // whether it does
		servers bool // it is no doing of the caller's
	}{
		"answered": {func(*testing.T, *ending) {}, "", true, true, false},
		"cancelled before it reserves": {func(_ *testing.T, e *ending) { e.Service.policies = cancelling{e.policies, e.cancels} },
			fault.CodeBudgetCancelled, false, false, false},
		"cancelled in the queue": {func(t *testing.T, e *ending) { e.fullHouse(t); e.whenQueued(e.cancels) },
			fault.CodeBudgetCancelled, false, false, false},
		"cancelled while it reserves": {func(_ *testing.T, e *ending) { e.meter.ledger = reserving{e.ledger, e.cancels}; e.waits(true) },
			fault.CodeBudgetCancelled, true, true, false},
		"cancelled before it reads": {func(_ *testing.T, e *ending) { e.waits(true); e.clock.AfterFunc(time.Millisecond, e.cancels) },
			fault.CodeBudgetCancelled, true, true, false},
		"cancelled while it reads": {func(_ *testing.T, e *ending) { e.waits(false); e.clock.AfterFunc(time.Millisecond, e.cancels) },
			fault.CodeBudgetCancelled, true, true, false},
		"cancelled when it has ended": {func(_ *testing.T, e *ending) { e.clock.AfterFunc(time.Millisecond, e.cancels) },
			fault.CodeBudgetCancelled, true, true, false},
		"hung up before it begins": {func(_ *testing.T, e *ending) { e.hangUp() }, fault.CodeRequestGone, false, false, false},
		"hung up in the queue": {func(t *testing.T, e *ending) { e.fullHouse(t); e.whenQueued(e.hangUp) }, fault.CodeRequestGone,
			false, false, false},
		"hung up while it reserves": {func(_ *testing.T, e *ending) { e.meter.ledger = reserving{e.ledger, e.hangUp} }, "", true, true, false},
		"hung up while it reads": {func(_ *testing.T, e *ending) {
			e.clock.AfterFunc(time.Millisecond, e.hangUp)
			e.works(10*time.Millisecond, nil)
		}, "", true, true, false},
		"no place": {func(t *testing.T, e *ending) { e.fullHouse(t); e.questions.Wait = time.Millisecond },
			fault.CodeRequestTooMany, false, false, false},
		"a dry run that fails": {func(_ *testing.T, e *ending) { e.data.dry = fault.DryRun("22012") }, fault.CodeDryRun, false,
			false, false},
		"a timeout before it reads": {func(_ *testing.T, e *ending) { e.waits(true) }, fault.CodeDataUnavailable, true, true, false},
		"a timeout while it reads":  {func(_ *testing.T, e *ending) { e.waits(false) }, fault.CodeDataUnavailable, true, true, false},
		"a dry run as long as it may be": {func(_ *testing.T, e *ending) {
			e.data.dries = func() { e.clock.Sleep(context.Background(), time.Minute) }
			e.waits(true)
		}, fault.CodeDataUnavailable, true, true, false},
		"a statement that fails": {func(_ *testing.T, e *ending) { e.data.do = fails(fault.DataUnavailable(nil)) },
			fault.CodeDataUnavailable, true, true, false},
		"a schema that changed behind it": {func(_ *testing.T, e *ending) { e.data.do = fails(fault.Excused(fault.PolicyStale())) },
			fault.CodePolicyStale, true, true, true},
		"a schema that changed before it": {func(_ *testing.T, e *ending) { e.data.do = fails(fault.Untouched(fault.PolicyStale())) },
			fault.CodePolicyStale, false, true, true},
		"a database that cannot be reached": {func(_ *testing.T, e *ending) { e.data.do = fails(unread) }, fault.CodeDataUnavailable, false,
			true, true},
		"a policy that is stale": {func(_ *testing.T, e *ending) { e.policies.stale = fault.PolicyStale() },
			fault.CodePolicyStale, false, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			ask := func(shared int64) (code fault.Code, spent string) {
				cap := catalog.Budget{Scope: catalog.DatasetScope, Form: catalog.Approx, Epsilon: big.NewRat(shared, 10),
					Delta: big.NewRat(1, 1_000_000)}
				r := newRig(t, cap, testSnapshot().Budgets[1])
				r.datasets["d"] = Dataset{Data: r.data, Quantum: testQuantum, Timeout: 30 * time.Second}
				e := &ending{rig: r}
				e.ctx, e.hangUp = context.WithCancel(t.Context())
				defer e.hangUp()
				c.end(t, e)
				request := count("0.5")
				request.IdempotencyKey = "key"
				_, err := e.Query(e.ctx, ana(), request)
				r.policies.stale = nil
				return fault.CodeOf(err), r.spentEpsilon(t)
			}
			code, spent := ask(100)
			tight, nothing := ask(1)
			if want := map[bool]string{true: "0.5", false: "0"}[c.charged]; code != c.code || spent != want {
				t.Errorf("%q, spent %s, want %q and %s", code, spent, c.code, want)
			}
			if (tight != code) != c.tells || nothing != "0" {
				t.Errorf("where the shared account does not afford it: %q, spent %s", tight, nothing)
			}
			if c.tells && !c.charged && !c.servers {
				t.Error("it tells for nothing what others spent")
			}
		})
	}
}

func fails(err error) func() ([]sqlrewrite.ExactRow, error) {
	return func() ([]sqlrewrite.ExactRow, error) { return nil, err }
}

func ana() auth.Principal {
	p, ok := auth.NewPrincipal("ana", []string{"analyst"}, []string{"analysts"})
	if !ok {
		panic("no principal")
	}
	return p
}

// TestOwnAccountsSpeakFirst: a request that the caller's own account does not take, be it for a rate or a tranche,
// looks the same whatever is left of the accounts that all share: nobody can ask these for nothing behind a limit of
// their own.
//
// covers: L1
func TestOwnAccountsSpeakFirst(t *testing.T) {
	for name, limit := range map[string]func(*catalog.Budget){
		"rate": func(b *catalog.Budget) { b.Rate = &catalog.Rate{Epsilon: big.NewRat(1, 10), Per: time.Hour} },
		"tranche": func(b *catalog.Budget) {
			b.Tranche = &catalog.Tranche{Every: 24 * time.Hour, Epsilon: big.NewRat(1, 10)}
		},
		"cap": func(b *catalog.Budget) { b.Epsilon = big.NewRat(1, 10) },
	} {
		seen := map[fault.Code]bool{}
		for _, shared := range []int64{1, 100} {
			own := testSnapshot().Budgets[1]
			limit(&own)
			r := newRig(t, catalog.Budget{Scope: catalog.DatasetScope, Form: catalog.Approx, Epsilon: big.NewRat(shared, 10),
				Delta: big.NewRat(1, 1_000_000)}, own)
			_, err := r.Query(t.Context(), ana(), count("0.5"))
			seen[fault.CodeOf(err)] = true
		}
		if len(seen) != 1 || seen[""] {
			t.Errorf("%s: %v", name, seen)
		}
	}
}
