// Package pgexec runs the SQL that sqlrewrite printed: statements on a protected database, and outer layers over released
// values in the control database.
//
// It knows PostgreSQL's protocol and transactions. It does not know SQL text of analysts, privacy or budgets. True values
// are sealed as they leave the wire buffer; nothing here looks at them, counts them, times them or logs them.
//
//	BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY ┐
//	LOCK TABLE ... IN ACCESS SHARE MODE             │ what the server refuses up to here has read no protected row
//	do the pins still hold?                         │
//	the statement                                   │ a failure from here on is one opaque error, and the charge stays
//	is any partition a foreign table by now?        │
//	COMMIT                                          ┘ one round trip
//
// Where preconditions of public tables, shards or ranges are looked at first, the first three are a round trip of their own.
package pgexec

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"noisegate.example/internal/pgversion"
)

// Config is how to reach a database.
type Config struct {
	DSN              string
	Connections      int              // at most that many at a time, at least 1
	StatementTimeout time.Duration    // for one statement; positive
	AcquireTimeout   time.Duration    // how long a query waits for a connection; 0: 5 s
	Versions         pgversion.Policy // which servers are connected to
	TrialTime        time.Duration    // of the server's, for trials of one analyst within a minute; 0: 2 s

	pings bool // before a connection is given out, each time
}

const (
	defaultAcquireTimeout = 5 * time.Second
	lockTimeout           = 5 * time.Second
	idleTimeout           = time.Minute // of an open transaction
	grace                 = 5 * time.Second
)

// open makes a pool of connections to a server of an accepted version that accept, unless it is nil, has nothing
// against. It does not connect yet: a database that is down at start is reported by Ping and by each query.
func open(ctx context.Context, c Config, accept func(context.Context, *pgx.Conn) error) (*pgxpool.Pool, error) {
	if c.Connections < 1 || c.StatementTimeout <= 0 {
		return nil, errors.New("pgexec: connections and statement timeout must be positive")
	}
	config, err := pgxpool.ParseConfig(c.DSN)
	if err != nil {
		return nil, errors.New("pgexec: the DSN cannot be read") // without its text: it may hold a password
	}
	config.MaxConns = int32(min(c.Connections, 1<<15))
	config.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
		c.RuntimeParams["parallel_setup_cost"] = drawnSetupCost()
		return nil
	}
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		if c.Versions.Refuse(serverVersion(conn)) != nil {
			return errVersion
		}
		if accept == nil {
			return nil
		}
		return accept(ctx, conn)
	}
	if c.pings {
		config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return true }
	}
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheStatement
	config.ConnConfig.OnNotice = farewell
	for name, value := range settings(c.StatementTimeout) {
		config.ConnConfig.RuntimeParams[name] = value
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("pgexec: %w", err)
	}
	return pool, nil
}

// settings are the session's: fixed, so that no default of server, role or database changes what a statement means, how
// its values are written or how it is planned.
func settings(statementTimeout time.Duration) map[string]string {
	ms := func(d time.Duration) string { return strconv.FormatInt(max(d.Milliseconds(), 1), 10) }
	return map[string]string{
		"application_name":                    "noisegate",
		"client_encoding":                     "UTF8", // see inUTF8
		"search_path":                         "",     // every name that is not of pg_catalog is qualified
		"default_transaction_read_only":       "on",
		"statement_timeout":                   ms(statementTimeout),
		"lock_timeout":                        ms(lockTimeout),
		"idle_in_transaction_session_timeout": ms(idleTimeout),
		"plan_cache_mode":                     "force_generic_plan", // for our own fixed texts; statements see planCustom
		"jit":                                 "off",
		"enable_sort":                         "off", // what can be hashed is: a sort takes another time where one row is out of order
		"enable_incremental_sort":             "off",
		"enable_hashagg":                      "on",
		"min_parallel_table_scan_size":        "0", // see drawnSetupCost
		"min_parallel_index_scan_size":        "0",
		"client_min_messages":                 "warning", // see farewell
		"timezone":                            "UTC",
		"datestyle":                           "ISO, YMD",
		"extra_float_digits":                  "1",
		"standard_conforming_strings":         "on",
	}
}

// The errors of this package's own: constant texts, which may be logged.
var (
	errShape       = errors.New("pgexec: the result does not have the columns that were planned")
	errPins        = errors.New("pgexec: a table is pinned by no column")
	errZones       = errors.New("pgexec: a statement of a series names another time zone than the first one")
	errType        = errors.New("pgexec: an output has a type that answers do not have")
	errVersionGone = errors.New("pgexec: rows were appended to a prepared copy since the question was planned")
	errTooLarge    = errors.New("pgexec: the result is too large")
	errVersion     = errors.New("pgexec: the server is of a version that Noisegate was not tested with")
	errUTF8        = errors.New("pgexec: the encoding of the protected database is not UTF8")
)

// serverVersion is the server's version in its own words, as it told them when the connection began.
func serverVersion(conn *pgx.Conn) string { return conn.PgConn().ParameterStatus("server_version") }

// quiet keeps of an error what may be logged: PostgreSQL's five-letter code, one of a few constant texts, or the kind of
// error. Message, detail and context of an error that was raised while protected rows were read can quote them.
func quiet(err error) error {
	var server *pgconn.PgError
	if errors.As(err, &server) {
		return fmt.Errorf("pgexec: SQLSTATE %s", server.Code)
	}
	for _, known := range []error{errShape, errType, errVersion, errUTF8, context.DeadlineExceeded, context.Canceled} {
		if errors.Is(err, known) {
			return known
		}
	}
	return fmt.Errorf("pgexec: %T", err)
}

// firstError is the first error that is one.
func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
