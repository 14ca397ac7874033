package gateway

import (
	"context"
	"errors"
	"testing"
	"time"

	"noisegate.example/budget"
	"noisegate.example/internal/fault"
)

// checkedLedger answers [budget.Ledger.Check] as a test says.
type checkedLedger struct {
	budget.Ledger
	check func(context.Context) error
}

func (l checkedLedger) Check(ctx context.Context) error { return l.check(ctx) }

// A broken ledger is not ready, and is again once it is well; what the last look found is believed for 10 s.
//
// covers: F13
func TestReadyIsWhatTheLastLookFound(t *testing.T) {
	r := newRig(t)
	var broken error
	r.Service.ledger = checkedLedger{r.ledger, func(context.Context) error { return broken }}
	if ready := r.Ready(); ready["checks"] == nil {
		t.Errorf("before the first look: %v", ready)
	}
	r.CheckReady(t.Context())
	broken = fault.DataUnavailable(errors.New("is broken at entry 7"))
	if ready := r.Ready(); len(ready) != 2 || ready["ledger"] != nil || ready["datasets"] != nil {
		t.Errorf("all is well: %v", ready)
	}
	r.CheckReady(t.Context())
	if ready := r.Ready(); !errors.Is(ready["ledger"], broken) || ready["datasets"] != nil {
		t.Errorf("a broken ledger: %v", ready)
	}
	broken = nil
	r.CheckReady(t.Context())
	r.clock.Sleep(t.Context(), readyBelieved)
	if ready := r.Ready(); ready["ledger"] != nil || ready["checks"] != nil {
		t.Errorf("after 10 s: %v", ready)
	}
	r.clock.Sleep(t.Context(), time.Millisecond)
	if ready := r.Ready(); ready["checks"] == nil {
		t.Errorf("after more than 10 s: %v", ready)
	}
}

// While a database does not answer, Ready answers; and a gateway that is told to stop does not take what it did not wait for as lost.
func TestReadyWaitsForNothing(t *testing.T) {
	r := newRig(t)
	r.CheckReady(t.Context())
	asked := make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	r.Service.ledger = checkedLedger{r.ledger, func(ctx context.Context) error {
		close(asked)
		<-ctx.Done()
		return fault.DataUnavailable(ctx.Err())
	}}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.KeepReady(ctx)
	}()
	<-asked
	if ready := r.Ready(); len(ready) != 2 || ready["ledger"] != nil {
		t.Errorf("while the ledger is asked: %v", ready)
	}
	stop()
	<-ended
	if ready := r.Ready(); ready["ledger"] != nil {
		t.Errorf("after the end: %v", ready)
	}
}
