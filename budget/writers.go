package budget

import (
	"context"
	"runtime"
	"slices"
	"sync"
)

// operation is one change of one dataset's ledger, on its way to a desk.
type operation struct {
	dataset string

	// What it may look at.
	accounts []AccountID
	charge   *Charge       // a request: its question, its key, its id and its plan
	ends     ReservationID // a charge that is to end, and its accounts
	open     *openCharge   // what is known of it; nil: it must be looked at

	// decide is pure but for its results, which it sets anew each time: a transaction may have to be run again.
	decide func(*desk) error
	// undo, if not nil, takes back what decide did when nobody waits for it any more.
	undo func(context.Context)

	done      chan error // holds one
	abandoned bool       // guarded by writers.mu
}

// writers bring operations together: each dataset has at most one writer, which takes all that has queued up since it last looked and
// runs it as one batch, in order of arrival. Nobody waits for a batch to fill. What is right does not depend on there
// being one writer: other processes have theirs.
type writers struct {
	run func(dataset string, batch []*operation) // gives each operation to finish

	mu     sync.Mutex
	queues map[string][]*operation // by dataset; present while it has a writer
}

// maxBatch bounds a batch, and so how long its first operation waits for its last.
const maxBatch = 256

// do runs an operation and gives its error. When the context ends before it was begun it is never begun; when it ends later,
// what it did is taken back.
func (w *writers) do(ctx context.Context, op *operation) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	op.done = make(chan error, 1)
	w.mu.Lock()
	if w.queues == nil {
		w.queues = map[string][]*operation{}
	}
	queue, running := w.queues[op.dataset]
	w.queues[op.dataset] = append(queue, op)
	w.mu.Unlock()
	if !running {
		go w.write(op.dataset)
	}
	select {
	case err := <-op.done:
		return err
	case <-ctx.Done():
		return w.giveUp(ctx, op)
	}
}

func (w *writers) giveUp(ctx context.Context, op *operation) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	queue := w.queues[op.dataset]
	if i := slices.Index(queue, op); i >= 0 {
		w.queues[op.dataset] = slices.Delete(queue, i, i+1)
		return ctx.Err()
	}
	select {
	case err := <-op.done:
		return err
	default:
		op.abandoned = true
		return ctx.Err()
	}
}

// write runs batches until nothing is queued.
func (w *writers) write(dataset string) {
	for {
		queue := w.arrived(dataset)
		if len(queue) == 0 {
			delete(w.queues, dataset)
			w.mu.Unlock()
			return
		}
		batch := slices.Clone(queue[:min(len(queue), maxBatch)])
		w.queues[dataset] = slices.Delete(queue, 0, len(batch))
		w.mu.Unlock()
		w.run(dataset, batch)
	}
}

// arrived gives the queue once nobody comes along any more of those who could: the clients whom the last batch answered have more to do. It lets
// others run and waits for none. It returns with the lock held.
func (w *writers) arrived(dataset string) []*operation {
	for before := -1; ; {
		runtime.Gosched()
		w.mu.Lock()
		queue := w.queues[dataset]
		if len(queue) <= before || len(queue) >= maxBatch {
			return queue
		}
		before = len(queue)
		w.mu.Unlock()
	}
}

// finish tells the caller what became of its operation.
func (w *writers) finish(op *operation, err error) {
	w.mu.Lock()
	abandoned := op.abandoned
	op.done <- err
	w.mu.Unlock()
	if abandoned && err == nil && op.undo != nil {
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), sessionPatience)
			defer cancel()
			op.undo(ctx)
		}()
	}
}
