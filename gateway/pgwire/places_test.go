package pgwire

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"noisegate.example/gateway/gatewaytest"
)

// slowCatalog is a catalog whose answers take until their context ends.
type slowCatalog struct {
	Catalog
	running, most atomic.Int64
	asked         chan struct{} // one for each query that began
}

func (*slowCatalog) Facts(context.Context, string) (*CatalogFacts, error) {
	return &CatalogFacts{Version: "15.0"}, nil
}

func (s *slowCatalog) Ask(ctx context.Context, q CatalogQuery) (*CatalogAnswer, error) {
	defer q.Leave()
	n := s.running.Add(1)
	defer s.running.Add(-1)
	for most := s.most.Load(); n > most && !s.most.CompareAndSwap(most, n); most = s.most.Load() {
	}
	s.asked <- struct{}{}
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestCatalogPlaces: an analyst's sessions share two places at the catalog; another analyst has places of their own; and to cancel ends a
// query that runs, and one that waits.
func TestCatalogPlaces(t *testing.T) {
	slow := &slowCatalog{asked: make(chan struct{}, 100)}
	d := opened(t, gatewaytest.Options{}, func(c *Config) { c.Catalog = slow })
	outcomes := make(chan error, 100)
	ask := func(subject string) *pgx.Conn {
		conn, err := pgx.Connect(t.Context(), d.url(subject, "sslmode=disable"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
		go func() {
			_, err := conn.Exec(t.Context(), "SELECT relname FROM pg_class", pgx.QueryExecModeSimpleProtocol)
			outcomes <- err
		}()
		return conn
	}
	await := func(what string) {
		select {
		case <-slow.asked:
		case <-time.After(20 * time.Second):
			t.Fatalf("%s did not come to the catalog within 20 s", what)
		}
	}
	cancels := func(conn *pgx.Conn) {
		for range 200 { // it may not have arrived yet
			if err := conn.PgConn().CancelRequest(t.Context()); err != nil {
				t.Fatal(err)
			}
			select {
			case err := <-outcomes:
				_ = refusedWith(t, err, stateCancelled)
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
		t.Fatal("the query did not end within 20 s")
	}
	first, second := ask("ana"), ask("ana")
	await("the first")
	await("the second")
	third := ask("ana")
	bob := ask("bob")
	await("another analyst's")
	cancels(third)
	cancels(first)
	cancels(bob)
	fourth := ask("ana")
	await("the fourth")
	cancels(second)
	cancels(fourth)
	if most := slow.most.Load(); most != 3 {
		t.Errorf("%d queries at a time, want 3: two of ana's and one of bob's", most)
	}
}
