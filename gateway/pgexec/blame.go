package pgexec

import (
	"context"
	"errors"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"noisegate.example/internal/fault"
)

// A statement that failed after it began counts as a failure of whoever asked, because its failing may depend on a row:
// it took too long, or too much memory, or too much of a disk; or it took its process along. It does not count where
// the server was down for everybody. The server says so itself where it can; where it cannot, a new connection shows it.

// The conditions that a server reports when it ends a session.
const (
	adminShutdown = "57P01" // by an administrator: this session alone, or all of them
	crashShutdown = "57P02" // because another process crashed
	notNow        = "57P03" // it takes no connections: it starts, stops, or recovers from a crash
)

const (
	startedKey  = "noisegate server started" // in a connection's custom data: when its server was started
	farewellKey = "noisegate farewell"       // and with what condition it said, in a notice, that it ends the session
)

// probePatience bounds the looks whether the server is there, with a pause between them.
const (
	probePatience = 10 * time.Second
	probePause    = 20 * time.Millisecond
)

const startedText = "SELECT pg_catalog.pg_postmaster_start_time()"

// remember takes down which server a connection leads to. A server that does not say when it was started is not known.
func remember(ctx context.Context, conn *pgx.Conn) error {
	var started time.Time
	err := conn.QueryRow(ctx, startedText).Scan(&started)
	var refused *pgconn.PgError
	if errors.As(err, &refused) && !conn.IsClosed() {
		return nil
	}
	if err != nil {
		return err
	}
	conn.PgConn().CustomData()[startedKey] = started
	return nil
}

// farewell takes down a notice that ends a session. Other notices are dropped: they are a channel from the database to
// whoever reads the log.
func farewell(conn *pgconn.PgConn, notice *pgconn.Notice) {
	if notice.Code == adminShutdown || notice.Code == crashShutdown {
		conn.CustomData()[farewellKey] = notice.Code
	}
}

// failed is the error of a statement that failed on a connection after it began: excused where the server was down for everybody, and where
// it does not take the text, which is the gateway's own mistake. The charge stands then, too: whether planning gets there depends on
// statistics, and so on rows.
func (d *Database) failed(ctx context.Context, conn *pgx.Conn, err error) error {
	failure := fault.DataUnavailable(quiet(err))
	if notTaken(err) || d.downForAll(ctx, conn, err) {
		return fault.Excused(failure)
	}
	return failure
}

// notTaken reports whether a server refused a text: for its syntax, its names and types (42), or as what it cannot do (0A).
func notTaken(err error) bool {
	var server *pgconn.PgError
	return errors.As(err, &server) && (strings.HasPrefix(server.Code, "42") || strings.HasPrefix(server.Code, "0A"))
}

func (d *Database) downForAll(ctx context.Context, conn *pgx.Conn, err error) bool {
	code := ""
	var server *pgconn.PgError
	if errors.As(err, &server) {
		code = server.Code
		if code != adminShutdown && code != crashShutdown {
			return false // the statement's own failure
		}
	} else if said, ok := conn.PgConn().CustomData()[farewellKey].(string); ok {
		code = said
	}
	if code == crashShutdown {
		return true // another process crashed; the one that did hears nothing
	}
	started, known := conn.PgConn().CustomData()[startedKey].(time.Time)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probePatience)
	defer cancel()
	for {
		now, err := d.probe(ctx)
		var refused *pgconn.PgError
		var lost *net.OpError
		switch {
		case err == nil:
			return known && !now.Equal(started) // it was started anew; else it is there, and only this session was lost
		case errors.As(err, &refused) && refused.Code == notNow:
			return code == adminShutdown // else it recovers from a crash, maybe of this statement's process
		case errors.As(err, &refused) && refused.Code != crashShutdown:
			return false // only the question is refused: the server is there
		case errors.As(err, &lost) && lost.Op == "dial" && !lost.Timeout():
			return true // nobody listens
		}
		// Somebody listens, and the connection broke: a crash, of which the server is about to recover, or the end of the server.
		select {
		case <-ctx.Done():
			return false
		case <-time.After(probePause):
		}
	}
}

// probe connects anew, and says when the server was started.
func (d *Database) probe(ctx context.Context) (started time.Time, err error) {
	conn, err := pgx.ConnectConfig(ctx, d.pool.Config().ConnConfig)
	if err != nil {
		return time.Time{}, err
	}
	defer func() { _ = conn.Close(ctx) }()
	err = conn.QueryRow(ctx, startedText).Scan(&started)
	return started, err
}
