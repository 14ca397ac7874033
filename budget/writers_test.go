package budget

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

// batches runs operations on a desk of its own, and lets a test hold a batch back.
type batches struct {
	writers
	mu   sync.Mutex
	runs [][]*operation
	hold chan struct{} // nil: do not
}

func newBatches() *batches {
	b := &batches{}
	b.run = func(_ string, batch []*operation) {
		b.mu.Lock()
		b.runs = append(b.runs, batch)
		hold := b.hold
		b.mu.Unlock()
		if hold != nil {
			<-hold
		}
		for _, op := range batch {
			b.finish(op, op.decide(nil))
		}
	}
	return b
}

var errDecided = errors.New("decided")

func operationOn(dataset string) *operation {
	return &operation{dataset: dataset, decide: func(*desk) error { return errDecided }}
}

// What comes while a batch runs makes up the next one, in order of arrival; another dataset does not wait.
func TestWritersBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBatches()
		b.hold = make(chan struct{})
		var all sync.WaitGroup
		var ops []*operation
		do := func(op *operation) {
			ops = append(ops, op)
			all.Go(func() {
				if err := b.do(t.Context(), op); !errors.Is(err, errDecided) {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		for range maxBatch + 2 {
			do(operationOn("d"))
		}
		do(operationOn("another"))
		if len(b.runs) != 2 {
			t.Errorf("%d batches run, want one of each dataset", len(b.runs))
		}
		close(b.hold)
		all.Wait()
		synctest.Wait()
		if len(b.runs) != 4 || !slices.Equal(b.runs[0], ops[:1]) || !slices.Equal(b.runs[2], ops[1:1+maxBatch]) || !slices.Equal(b.runs[3], ops[1+maxBatch:][:1]) {
			t.Errorf("%d batches", len(b.runs))
		}
		if len(b.queues) != 0 {
			t.Errorf("%d queues are kept", len(b.queues))
		}
	})
}

// Who gives up while waiting is never run; what was decided for somebody who gave up later is undone.
func TestWritersGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBatches()
		b.hold = make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		undone := 0
		running := &operation{dataset: "d", decide: func(*desk) error { return nil }, undo: func(context.Context) { undone++ }}
		waiting := &operation{dataset: "d", decide: func(*desk) error { t.Error("was run"); return nil }, undo: func(context.Context) { t.Error("undone") }}
		var all sync.WaitGroup
		for _, op := range []*operation{running, waiting} {
			all.Go(func() {
				if err := b.do(ctx, op); !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		cancel()
		all.Wait()
		if err := b.do(ctx, waiting); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		close(b.hold)
		synctest.Wait()
		if undone != 1 {
			t.Errorf("undone %d times", undone)
		}
	})
}
