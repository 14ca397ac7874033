package pgledger

import (
	"context"
	"sync"

	"github.com/jackc/pgx/v5"

	"noisegate.example/internal/fault"
)

// joined sends look-ups together: one that arrives during a round trip joins the next. So each is answered by reads that began after it
// arrived. Its zero value is ready.
type joined[T any] struct {
	mu      sync.Mutex
	waiting []*joining[T]
	running int
}

type joining[T any] struct {
	of   T
	err  error
	done chan struct{}
}

const (
	// exchanges bounds the round trips under way: one is read while the next is sent.
	exchanges = 2
	// mostJoined bounds the look-ups of one round trip, and so how long the first waits for the last.
	mostJoined = 64
)

// do gives a look-up to an exchange. Its error is data/unavailable. Where too few round trips are under way it makes one itself, which
// costs no switch to another goroutine.
func (j *joined[T]) do(ctx context.Context, of T, exchange func(context.Context, []T) error) error {
	own := &joining[T]{of: of, done: make(chan struct{})}
	j.mu.Lock()
	if j.running < exchanges {
		j.running++
		j.mu.Unlock()
		trip(context.WithoutCancel(ctx), []*joining[T]{own}, exchange)
		if batch := j.take(); batch != nil {
			go j.run(batch, exchange) // it serves many requests: none of them may end it
		}
		return own.err
	}
	j.waiting = append(j.waiting, own)
	j.mu.Unlock()
	select {
	case <-own.done:
		return own.err
	case <-ctx.Done():
		return fault.DataUnavailable(ctx.Err())
	}
}

// take gives the look-ups of the next round trip; nil, and there is one round trip less, where nobody waits.
func (j *joined[T]) take() []*joining[T] {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := min(len(j.waiting), mostJoined)
	if n == 0 {
		j.running--
		return nil
	}
	batch := j.waiting[:n:n]
	j.waiting = j.waiting[n:]
	return batch
}

// run makes round trips until nobody waits.
func (j *joined[T]) run(batch []*joining[T], exchange func(context.Context, []T) error) {
	for ; batch != nil; batch = j.take() {
		trip(context.Background(), batch, exchange)
	}
}

// trip is a round trip.
func trip[T any](ctx context.Context, batch []*joining[T], exchange func(context.Context, []T) error) {
	all := make([]T, len(batch))
	for i, one := range batch {
		all[i] = one.of
	}
	ctx, cancel := context.WithTimeout(ctx, transactionPatience)
	defer cancel()
	err := exchange(ctx, all)
	for i, one := range batch {
		failure := err
		if err != nil && len(batch) > 1 { // one of them may have caused it: the others do not fail for that
			failure = exchange(ctx, all[i:i+1])
		}
		if failure != nil {
			one.err = fault.DataUnavailable(failure)
		}
		close(one.done)
	}
}

// lookup queues its statements, anew for each round trip that it takes part in.
type lookup func(*pgx.Batch)

// lookUp runs a look-up in a round trip with others. What its rows are read into begins empty in each round trip: one that failed leaves
// nothing to the next, and one that ends after its caller gave up has its own.
func lookUp[T any](ctx context.Context, p *Ledger, queue func(*pgx.Batch, *T)) (T, error) {
	var found *T
	err := p.lookups.do(ctx, func(b *pgx.Batch) { found = new(T); queue(b, found) }, func(ctx context.Context, all []lookup) error {
		b := &pgx.Batch{}
		for _, one := range all {
			one(b)
		}
		return p.pool.SendBatch(ctx, b).Close()
	})
	if err != nil {
		return *new(T), err
	}
	return *found, nil
}
