package pgledger

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"

	"noisegate.example/budget"
	"noisegate.example/budget/internal/machine"
)

// operation is one change of one dataset's ledger that the state machine has yet to make.
type operation struct {
	dataset string

	// What it may look at.
	accounts []budget.AccountID
	charge   *budget.Charge       // a request: its question, its key, its id and its plan
	ends     budget.ReservationID // a charge that is to end, and its accounts
	books    budget.ReservationID // a charge that is booked again, unless it is there
	draws    *budget.Draw         // what one of them takes out of a plan; nil: nothing
	open     *openCharge          // what is known of it; nil: it must be looked at
	inForce  *inForce             // policies and keys; nil: none of them

	// decide is pure but for its results, which it sets anew each time: a transaction may have to be run again.
	decide func(*machine.Machine) error
	// undo, if not nil, takes back what decide did when nobody waits for it any more.
	undo func(context.Context)

	done      chan error // holds one
	abandoned bool       // guarded by groupCommit.mu
}

// outlet carries the batches of one dataset's writer to the ledger, in order. It gives each operation to [groupCommit.finish].
type outlet interface {
	// send lets a batch go behind those in flight, and does not wait for it. It reports false when that cannot be done with this one: then it
	// was not sent, and is to be run.
	send(batch []*operation) bool
	// land waits for the oldest batch in flight, and says how many operations still are in flight.
	land() (onWay int)
	// run does a batch from beginning to end, while none is in flight.
	run(batch []*operation)
	close()
}

// groupCommit brings operations together. Each dataset has at most one writer, which takes all operations that queued up
// since its last batch and sends them as one, in order of arrival. While one batch is in flight the next is sent behind it, so that the
// ledger has work while clients are answered and come again. No operation waits for a batch to fill. Correctness does not depend on one
// writer: other processes have theirs.
type groupCommit struct {
	open func(dataset string) outlet

	mu     sync.Mutex
	queues map[string][]*operation // by dataset; present while it has a writer
}

// maxBatch bounds a batch, and so how long its first operation waits for its last.
const maxBatch = 256

// do runs an operation and gives its error. When the context ends before it was begun it is never begun; when it ends later,
// what it did is taken back.
func (w *groupCommit) do(ctx context.Context, op *operation) error {
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

func (w *groupCommit) giveUp(ctx context.Context, op *operation) error {
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

// write carries batches until nothing is queued and nothing is in flight. At most two batches are.
func (w *groupCommit) write(dataset string) {
	out := w.open(dataset)
	rhythm := &pace{since: time.Now()}
	for onWay, answered := 0, 0; ; {
		batch := w.take(dataset, out, onWay, answered, rhythm)
		if len(batch) == 0 && onWay == 0 {
			return
		}
		all := onWay + len(batch)
		sent := len(batch) > 0 && out.send(batch)
		switch {
		case onWay > 0:
			onWay = out.land()
		case sent:
			onWay = len(batch)
		}
		if !sent && len(batch) > 0 {
			out.run(batch)
		}
		answered = all - onWay
		rhythm.beat(answered)
	}
}

// take gives the next batch. That is all that is queued, once nothing is in flight; or, if that is faster, so much of it that as many
// operations are in flight before it or are left to go behind it. If there is nothing to do at all it closes the outlet; the next caller
// finds no writer.
func (w *groupCommit) take(dataset string, out outlet, onWay, answered int, rhythm *pace) []*operation {
	queue := w.arrived(dataset, answered)
	defer w.mu.Unlock()
	size, all := min(len(queue), maxBatch), len(queue)+onWay
	switch {
	case all == 0:
		out.close()
		delete(w.queues, dataset)
		return nil
	case rhythm.two() && all >= worthTwo:
		size = min(size, (all+1)/2)
	case onWay > 0:
		return nil
	}
	batch := slices.Clone(queue[:size])
	w.queues[dataset] = slices.Delete(queue, 0, len(batch))
	return batch
}

// pace finds out whether a writer gets on faster with two batches that overlap or with one of all. Two keep the ledger
// busy while clients are answered, come again, and are decided; but they cost two commits. Which weighs more depends on
// the disk and on who else wants the processors, so both are tried now and then.
type pace struct {
	phase      phase
	since      time.Time // the phase began
	batches    int       // in this phase
	operations int
	rates      [2]float64 // operations per second when they were last tried, by phase
}

type phase int

const (
	tryOne phase = iota
	tryTwo
	keepFaster
)

// How many batches a trial takes, and for how many its result is kept.
const trial, kept = 32, 2000

// worthTwo is how many operations are worth two batches.
const worthTwo = 16

func (p *pace) two() bool {
	return p.phase == tryTwo || p.phase == keepFaster && p.rates[tryTwo] > p.rates[tryOne]
}

// beat notes that so many operations more were taken.
func (p *pace) beat(operations int) {
	p.batches++
	p.operations += operations
	switch {
	case p.phase != keepFaster && p.batches == trial:
		p.rates[p.phase] = float64(p.operations) / time.Since(p.since).Seconds()
		p.phase++
	case p.phase == keepFaster && p.batches == kept:
		p.phase = tryOne
	default:
		return
	}
	p.since, p.batches, p.operations = time.Now(), 0, 0
}

// patience is how often a writer lets others run after the last of them came along: a few microseconds where there is
// nobody to run. A client that has more to do comes sooner.
const patience = 100

// arrived gives the queue once as many came along as were answered last, or nobody does any more: clients who were
// answered have more to do, and a batch costs a commit, however small it is. It returns with the lock held.
func (w *groupCommit) arrived(dataset string, answered int) []*operation {
	before := -1
	for yields := 0; ; yields++ {
		w.mu.Lock()
		queue := w.queues[dataset]
		if before < 0 {
			answered += len(queue)
		}
		if len(queue) > before {
			before, yields = len(queue), 0
		}
		if len(queue) >= min(answered, maxBatch) || yields == patience {
			return queue
		}
		w.mu.Unlock()
		runtime.Gosched()
	}
}

// finish gives the caller the result of its operation.
func (w *groupCommit) finish(op *operation, err error) {
	w.mu.Lock()
	abandoned := op.abandoned
	op.done <- err
	w.mu.Unlock()
	if abandoned && err == nil && op.undo != nil {
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), transactionPatience)
			defer cancel()
			op.undo(ctx)
		}()
	}
}
