package integration

import (
	"maps"
	"sync"
	"testing"

	"noisegate.example/internal/pgserver"
	"noisegate.example/internal/pgtest"
)

// common is the server that stacks share unless they ask for their own: see [newOwnStack].
var common commonServer

// commonServer is a PostgreSQL that tests share: each makes its own databases, and none changes the server. It runs from the first test
// that asks for it to the end of TestMain.
type commonServer struct {
	mu     sync.Mutex
	server *pgserver.Server
}

// running gives the server.
func (c *commonServer) running(t testing.TB) *pgserver.Server {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server == nil {
		// Enough for the gateways of all parallel tests.
		settings := map[string]string{"max_connections": "1000", "shared_buffers": "256MB"}
		c.server = startServer(t, pgserver.Options{Memory: true, Settings: settings})
	}
	return c.server
}

// stop ends the server, if it runs.
func (c *commonServer) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server != nil {
		_ = c.server.Stop()
	}
}

// ownServer starts a server for one test, and stops it when the test ends. Benchmarks pay for fsync as well, and have the buffers that
// PostgreSQL's manual advises on a server of 8 GB.
func ownServer(t testing.TB, settings map[string]string) *pgserver.Server {
	t.Helper()
	o := pgserver.Options{Settings: maps.Clone(settings)}
	if _, o.Memory = t.(*testing.T); !o.Memory {
		o.Settings = map[string]string{"shared_buffers": "2GB"}
	}
	server := startServer(t, o)
	t.Cleanup(func() { _ = server.Stop() })
	return server
}

// startServer starts a durable server: the gateway refuses a ledger that a power failure could take back.
func startServer(t testing.TB, o pgserver.Options) *pgserver.Server {
	t.Helper()
	programs, err := pgtest.Programs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	durable := map[string]string{"fsync": "on", "full_page_writes": "on"}
	maps.Copy(durable, o.Settings)
	o.Programs, o.Cached, o.Settings = programs, true, durable
	server, err := pgserver.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return server
}
