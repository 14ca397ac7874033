package budget

import (
	"context"
	"sync"
)

// turns lets the charges of one dataset reserve one after another within this process, in the order in which they came. All of them
// lock the dataset's account, so that they cannot overlap anyway: waiting here instead of in PostgreSQL keeps the ledger's
// connections free for charges that settle, which lock no account. What is right does not depend on it: other processes take
// their turns in PostgreSQL.
type turns struct {
	mu      sync.Mutex
	waiting map[string]*turn
}

type turn struct {
	free  chan struct{} // holds a token while nobody has the turn
	users int           // who has it or waits for it
}

// take waits for the dataset's turn; the caller gives it back by calling done. It returns the context's error when that ends first.
func (t *turns) take(ctx context.Context, dataset string) (done func(), err error) {
	t.mu.Lock()
	w := t.waiting[dataset]
	if w == nil {
		w = &turn{free: make(chan struct{}, 1)}
		w.free <- struct{}{}
		if t.waiting == nil {
			t.waiting = make(map[string]*turn)
		}
		t.waiting[dataset] = w
	}
	w.users++
	t.mu.Unlock()
	leave := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if w.users--; w.users == 0 {
			delete(t.waiting, dataset)
		}
	}
	select {
	case <-w.free:
		return func() { w.free <- struct{}{}; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}
