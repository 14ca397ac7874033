package integration

import (
	"maps"
	"sync"
	"testing"

	"noisegate.example/internal/pgserver"
	"noisegate.example/internal/pgtest"
)

// common is the PostgreSQL on which stacks have their databases, unless they say why not: see [newOwnStack].
var common commonServer

// commonServer is a PostgreSQL that tests share: each has databases of its own there, and none changes what belongs to the server. It runs
// from the first test that asks for it to the end of TestMain.
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
		// For the gateways of all tests that run at a time.
		settings := map[string]string{"max_connections": "1000", "shared_buffers": "256MB"}
		server := startServer(t, pgserver.Options{Memory: true, Settings: settings})
		// The templates of databases are made now: roles.sql limits connections, and the limits are those of one gateway.
		pgtest.UnmigratedOn(t, server)
		pgtest.SecuredOn(t, server)
		(&stack{server: server}).exec(t, "postgres", `ALTER ROLE noisegate CONNECTION LIMIT -1;
			ALTER ROLE noisegate_reader CONNECTION LIMIT -1; ALTER ROLE noisegate_prepare CONNECTION LIMIT -1`)
		c.server = server
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

// startServer starts a server that keeps what it wrote: the gateway refuses a ledger that a power failure could take back.
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
