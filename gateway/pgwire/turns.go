package pgwire

import (
	"context"
	"sync"
	"time"

	"noisegate/sqlrewrite/statement"
)

// A twin has few connections. No analyst takes more than their share of them, however many sessions they have.
const (
	catalogTurns = 2               // queries about catalogs of one analyst at a time
	turnPatience = 5 * time.Second // for one's turn: the server's limit for a statement
)

// turns give each analyst their turns at the catalogs. The zero value is ready.
type turns struct {
	mu sync.Mutex
	of map[string]*turn // by subject; of those who ask now
}

type turn struct {
	places chan struct{}
	users  int // who wait or have a place
}

// take waits for a turn of an analyst's, which give ends.
func (t *turns) take(ctx context.Context, subject string) (give func(), refused *refusal) {
	t.mu.Lock()
	if t.of == nil {
		t.of = map[string]*turn{}
	}
	own := t.of[subject]
	if own == nil {
		own = &turn{places: make(chan struct{}, catalogTurns)}
		t.of[subject] = own
	}
	own.users++
	t.mu.Unlock()
	leave := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if own.users--; own.users == 0 {
			delete(t.of, subject)
		}
	}
	patience := time.NewTimer(turnPatience)
	defer patience.Stop()
	select {
	case own.places <- struct{}{}:
		return func() { <-own.places; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, cancelled()
	case <-patience.C:
		leave()
		return nil, refusef(stateTooMany, "you have %d queries about catalogs running already", catalogTurns)
	}
}

// inTurn does work on the catalog with a rewritten statement, when it is the analyst's turn, until [session.cancel]. It reports whether
// there is a catalog.
func (c *session) inTurn(ctx context.Context, one statement.Statement, work func(context.Context, *CatalogQuery) error) (bool, *refusal) {
	if c.server.config.Catalog == nil {
		return false, nil
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	c.stops(stop)
	defer c.stops(nil)
	give, refused := c.server.turns.take(ctx, c.who.Subject)
	if refused != nil {
		return true, refused
	}
	defer give()
	q, refused := c.catalogQuery(ctx, one)
	if refused == nil && q != nil {
		if err := work(ctx, q); err != nil && ctx.Err() == nil {
			refused = c.ofCatalog(ctx, err)
		}
	}
	if ctx.Err() != nil {
		return true, cancelled()
	}
	return q != nil, refused
}

// stops notes how the query about catalogs that runs is stopped, for [session.cancel]; nil: there is none.
func (c *session) stops(stop context.CancelFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stop = stop
}
