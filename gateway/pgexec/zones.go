package pgexec

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite"
)

// A process of PostgreSQL reads the file of a time zone when it needs it first, which takes some 100 microseconds, and raises an error
// where there is no such file. At the first row that reaches an expression both would tell that there is one. So a transaction reads the
// file of each zone that its statements name, of a constant, before it reads a row of people, and has no other process read rows: see
// [sqlrewrite.Statement.Planning].

// zoneText reads the file of a zone. It holds no value of an analyst: statements name zones of a list, and are proven to.
func zoneText(zone string) string {
	return "SELECT pg_catalog.timezone('" + zone + "', pg_catalog.now())"
}

// zones has the files of the zones of statements read, as the last part of the opening. Other servers, on which tables may lie, would read
// them for themselves.
func (x *exchange) zones(distributed bool, statements ...sqlrewrite.Statement) error {
	for _, s := range statements {
		if len(s.Zones) > 0 && distributed {
			return fault.Distributed()
		}
		for _, zone := range s.Zones {
			x.commands(forgotten, zoneText(zone)) // a connection remembers none: it would show what others asked
			x.opening = len(x.texts)
		}
	}
	return nil
}

// unknownZone is the SQLSTATE of a time zone that a server has no file of.
const unknownZone = "22023"

// hasZone asks whether the server has the file of a zone.
func hasZone(ctx context.Context, conn *pgx.Conn, zone string) (result error, sure bool) {
	var server *pgconn.PgError
	switch _, err := conn.Exec(ctx, zoneText(zone), pgx.QueryExecModeDescribeExec); {
	case err == nil:
		return nil, true
	case errors.As(err, &server) && server.Code == unknownZone:
		return fault.UnknownZone(zone), true
	default:
		return nil, false
	}
}
