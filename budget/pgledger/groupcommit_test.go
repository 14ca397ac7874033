package pgledger

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"noisegate.example/budget/internal/machine"
)

// batches is an outlet that runs operations on its state machine. A test may let batches go behind each other, and hold them back.
type batches struct {
	groupCommit
	streams bool
	hold    chan struct{} // nil: do not

	mu    sync.Mutex
	sent  [][]*operation
	onWay [][]*operation
	most  int // that were on their way at once
}

func newBatches() *batches {
	b := &batches{}
	b.open = func(string) outlet { return b }
	return b
}

func (b *batches) close() {}

func (b *batches) send(batch []*operation) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.streams {
		b.sent, b.onWay = append(b.sent, batch), append(b.onWay, batch)
		b.most = max(b.most, len(b.onWay))
	}
	return b.streams
}

func (b *batches) land() (onWay int) {
	time.Sleep(time.Millisecond) // of the bubble's time, which passes when all other clients wait in the queue
	b.mu.Lock()
	batch := b.onWay[0]
	b.onWay = b.onWay[1:]
	for _, behind := range b.onWay {
		onWay += len(behind)
	}
	b.mu.Unlock()
	b.answer(batch)
	return onWay
}

func (b *batches) run(batch []*operation) {
	b.mu.Lock()
	b.sent = append(b.sent, batch)
	b.mu.Unlock()
	b.answer(batch)
}

func (b *batches) answer(batch []*operation) {
	if b.hold != nil {
		<-b.hold
	}
	for _, op := range batch {
		b.finish(op, op.decide(nil))
	}
}

var errDecided = errors.New("decided")

func operationOn(dataset string) *operation {
	return &operation{dataset: dataset, decide: func(*machine.Machine) error { return errDecided }}
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
		if len(b.sent) != 2 {
			t.Errorf("%d batches run, want one of each dataset", len(b.sent))
		}
		close(b.hold)
		all.Wait()
		synctest.Wait()
		if len(b.sent) != 4 || !slices.Equal(b.sent[0], ops[:1]) || !slices.Equal(b.sent[2], ops[1:1+maxBatch]) ||
			!slices.Equal(b.sent[3], ops[1+maxBatch:][:1]) {
			t.Errorf("%d batches", len(b.sent))
		}
		if len(b.queues) != 0 {
			t.Errorf("%d queues are kept", len(b.queues))
		}
	})
}

// Batches go behind each other, two at most, when that is tried; each client's operations are sent once, and in its order.
func TestWritersOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const clients, each = 2 * worthTwo, 2 * trial
		b := newBatches()
		b.streams = true
		var all sync.WaitGroup
		var ops [clients][]*operation
		for i := range clients {
			all.Go(func() {
				for range each {
					op := operationOn("d")
					ops[i] = append(ops[i], op)
					if err := b.do(t.Context(), op); !errors.Is(err, errDecided) {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		synctest.Wait()
		if b.most != 2 {
			t.Errorf("%d batches at once", b.most)
		}
		sent := slices.Concat(b.sent...)
		if len(sent) != clients*each {
			t.Errorf("%d operations were sent", len(sent))
		}
		place := map[*operation]int{}
		for i, op := range sent {
			place[op] = i
		}
		for _, own := range ops {
			if !slices.IsSortedFunc(own, func(a, b *operation) int { return place[a] - place[b] }) {
				t.Error("a client's operations changed their order")
			}
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
		running := &operation{dataset: "d", decide: func(*machine.Machine) error { return nil }, undo: func(context.Context) { undone++ }}
		waiting := &operation{dataset: "d", decide: func(*machine.Machine) error { t.Error("was run"); return nil },
			undo: func(context.Context) { t.Error("undone") }}
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
