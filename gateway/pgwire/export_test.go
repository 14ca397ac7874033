package pgwire

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"

	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/internal/pgtest"
)

// Door is a door with a catalog, for tests that know how catalogs are made.
type Door struct{ *door }

// OpenedWith makes a gateway, a catalog for its policies, and a door to both.
func OpenedWith(t testing.TB, makes func(*gatewaytest.Gateway) Catalog) Door {
	t.Helper()
	g := gatewaytest.New(t, durable, gatewaytest.Options{})
	made := makes(g)
	return Door{openedOn(t, g, func(c *Config) { c.Catalog = made })}
}

// OpenedOver is [OpenedWith] for tables and a policy of the test's own.
func OpenedOver(t *testing.T, tables, policy string, makes func(*gatewaytest.Gateway) Catalog) Door {
	t.Helper()
	g := assembled(t, pgtest.Protected(t, tables), policy)
	made := makes(g)
	return Door{openedOn(t, g, func(c *Config) { c.Catalog = made })}
}

// Connect is a client of pgx.
func (d Door) Connect(t testing.TB, parameters string) *pgx.Conn {
	t.Helper()
	return d.connect(t, parameters, nil)
}

// Query asks by the simple protocol, in a new session, and gives the error.
func (d Door) Query(t *testing.T, sql string) *pgproto3.ErrorResponse {
	t.Helper()
	return d.hello(t, nil).query(sql)
}

// ApplyPolicy puts a second version of the policy in force.
func (d Door) ApplyPolicy(t *testing.T, text string) {
	t.Helper()
	d.applyPolicy(t, text)
}

// Table asks and gives all rows as text.
func Table(t *testing.T, conn *pgx.Conn, sql string, args ...any) [][]string {
	t.Helper()
	return table(t, conn, sql, args...)
}

// RefusedWith asks for the SQLSTATE of an error of a client.
func RefusedWith(t *testing.T, err error, state string) {
	t.Helper()
	_ = refusedWith(t, err, state)
}

// Log is what the door wrote.
func (d Door) Log() string { return d.log.String() }
