// Package twin answers queries about names and types on catalog twins: databases without a row, each made from the policy of a dataset.
//
// It knows twins, their servers and connections. It does not know messages, what a query means, or protected databases: the text that it
// runs was printed by sqlrewrite/statement, and holds no relation of a person.
package twin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/singleflight"

	"noisegate.example/catalog"
	"noisegate.example/gateway/pgwire"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/statement"
)

// Policies give the revision in force of a dataset; its errors are policy/*.
type Policies interface {
	Revision(dataset string) (*catalog.Revision, error)
}

// Config is what twins are made of.
type Config struct {
	DSNs     map[string]string // by dataset: the twin's database, as the owner of its tables
	Policies Policies
	Log      *slog.Logger // nil: discarded
}

// The limits of a twin's answers and connections.
const (
	connections = 8
	maxRows     = 100_000
	maxBytes    = 64 << 20
	valueBytes  = 24 // what a value takes besides its own bytes, and a row besides its values: the headers of slices
	rowBytes    = 24
	roomStep    = 64 << 10 // how much more memory is asked for at a time
)

// Catalogs are the twins of all datasets that have one. They are safe for concurrent use.
type Catalogs struct {
	policies Policies
	log      *slog.Logger
	twins    map[string]*twin
}

type twin struct {
	pool *pgxpool.Pool
	seen atomic.Pointer[catalog.Snapshot] // the twin's snapshot when this gateway looked last

	facts atomic.Pointer[facts] // nil until a server answered
	looks singleflight.Group
	mu    sync.Mutex // of what follows
	again time.Time  // when the server is looked at again, after it did not answer
	fault error      // of the last look
}

// facts are what the twin's server said of itself.
type facts struct {
	shown *pgwire.CatalogFacts
	types map[uint32]bool // that parameters may have, by OID
}

// How long a part of the work may last on a server that does not answer. Nobody who has no use for the twin waits for longer than a look.
const (
	lookPatience  = 3 * time.Second  // for the facts, connecting among it
	lookRest      = 5 * time.Second  // after a look that failed
	patience      = 10 * time.Second // for a connection: others' queries end after five seconds
	buildPatience = time.Minute      // 500 tables take seconds; so may another gateway that builds
	beginPatience = 5 * time.Second
	askPatience   = 20 * time.Second // the server's own limit is five seconds for a statement
)

// Open makes the pools; no server has to answer yet.
func Open(ctx context.Context, c Config) (*Catalogs, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	all := &Catalogs{policies: c.Policies, log: c.Log, twins: map[string]*twin{}}
	for dataset, dsn := range c.DSNs {
		parsed, err := pgxpool.ParseConfig(dsn)
		if err != nil {
			all.Close()
			return nil, errors.New("twin: a connection string cannot be read") // the cause may quote a password
		}
		parsed.MaxConns = connections
		parsed.ConnConfig.AfterNetConnect = make(places, connections).take
		if limit := parsed.ConnConfig.ConnectTimeout; limit == 0 || limit > patience { // who asked may be gone, and the place is taken
			parsed.ConnConfig.ConnectTimeout = patience
		}
		pool, err := pgxpool.NewWithConfig(ctx, parsed)
		if err != nil {
			all.Close()
			return nil, err
		}
		all.twins[dataset] = &twin{pool: pool}
	}
	return all, nil
}

// Close ends all connections.
func (c *Catalogs) Close() {
	for _, w := range c.twins {
		w.pool.Close()
	}
}

// Facts implements [pgwire.Catalog].
func (c *Catalogs) Facts(ctx context.Context, dataset string) (*pgwire.CatalogFacts, error) {
	w := c.twins[dataset]
	if w == nil {
		return nil, fault.DataUnavailable(errNoTwin)
	}
	known, err := w.known(ctx)
	if err != nil {
		return nil, err
	}
	return known.shown, nil
}

// known gives the facts. One caller looks at the server for all who wait; a look that failed is not tried again for a while.
func (w *twin) known(ctx context.Context) (*facts, error) {
	if known := w.facts.Load(); known != nil {
		return known, nil
	}
	looked := w.looks.DoChan("", func() (any, error) {
		w.mu.Lock()
		rests, failed := time.Now().Before(w.again), w.fault
		w.mu.Unlock()
		if rests {
			return nil, failed
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookPatience)
		defer cancel()
		known, err := w.look(ctx)
		if err == nil {
			w.facts.Store(known)
			return nil, nil
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.again, w.fault = time.Now().Add(lookRest), err
		return nil, err
	})
	select {
	case result := <-looked:
		if result.Err != nil {
			return nil, result.Err
		}
		return w.facts.Load(), nil
	case <-ctx.Done():
		return nil, fault.DataUnavailable(ctx.Err())
	}
}

// look asks the server for the facts.
func (w *twin) look(ctx context.Context) (*facts, error) {
	conn, err := w.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Release()
	look, err := catalog.LookAtTwin(ctx, conn.Conn(), replaced(), named(statement.TwinTypes()))
	if err != nil {
		return nil, err
	}
	shown := &pgwire.CatalogFacts{Version: conn.Conn().PgConn().ParameterStatus("server_version"), Owner: look.Owner,
		Columns: map[statement.TableName][]statement.Column{}}
	for name, columns := range look.Columns {
		for _, column := range columns {
			key := statement.TableName(name)
			shown.Columns[key] = append(shown.Columns[key], statement.Column(column))
		}
	}
	return &facts{shown, look.Types}, nil
}

func (w *twin) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	conn, err := w.pool.Acquire(ctx)
	if err != nil {
		return nil, fault.DataUnavailable(err)
	}
	return conn, nil
}

var errNoTwin = errors.New("twin: the dataset has none")

func replaced() []catalog.TableName { return named(statement.Replaced()) }

func named(names []statement.TableName) []catalog.TableName {
	var list []catalog.TableName
	for _, name := range names {
		list = append(list, catalog.TableName(name))
	}
	return list
}

// Ask implements [pgwire.Catalog].
func (c *Catalogs) Ask(ctx context.Context, q pgwire.CatalogQuery) (answer *pgwire.CatalogAnswer, err error) {
	err = c.within(ctx, q, func(ctx context.Context, conn *pgconn.PgConn) error {
		answer = &pgwire.CatalogAnswer{}
		var reader *pgconn.ResultReader
		if len(q.Types) == 0 && len(q.Values) == 0 {
			reader = conn.ExecParams(ctx, q.Text, nil, nil, nil, q.Formats)
		} else {
			if _, err := c.prepare(ctx, conn, q); err != nil {
				return err
			}
			reader = conn.ExecPrepared(ctx, "", q.Values, q.ValueFormats, q.Formats)
		}
		answer.Fields = append(answer.Fields, fieldsOf(reader.FieldDescriptions())...)
		bytes, room := 0, 0
		for reader.NextRow() {
			row := make([][]byte, len(reader.Values()))
			for i, v := range reader.Values() {
				if bytes += valueBytes + len(v); v != nil {
					row[i] = append([]byte{}, v...)
				}
			}
			bytes += rowBytes
			if answer.Rows = append(answer.Rows, row); len(answer.Rows) > maxRows || bytes > maxBytes {
				_, _ = reader.Close()
				return fault.TooComplex(fault.Position{}, fmt.Sprintf("the answer has more than %d rows or %d bytes", maxRows, maxBytes))
			}
			if bytes > room {
				if room = bytes + roomStep; q.Room != nil && !q.Room(room) {
					_, _ = reader.Close()
					return fault.RequestMemory()
				}
			}
		}
		_, err := reader.Close()
		return err
	})
	return answer, err
}

// Describe implements [pgwire.Catalog].
func (c *Catalogs) Describe(ctx context.Context, q pgwire.CatalogQuery) (types []uint32, fields []pgwire.CatalogField, err error) {
	err = c.within(ctx, q, func(ctx context.Context, conn *pgconn.PgConn) error {
		described, err := c.prepare(ctx, conn, q)
		if err == nil {
			types, fields = described.ParamOIDs, fieldsOf(described.Fields)
		}
		return err
	})
	return types, fields, err
}

// prepare makes the unnamed statement of a query. No parameter of it has a type that the lists of sqlrewrite/statement do not have: neither
// one that the client named, nor one that the server inferred.
func (c *Catalogs) prepare(ctx context.Context, conn *pgconn.PgConn, q pgwire.CatalogQuery) (*pgconn.StatementDescription, error) {
	known, err := c.twins[q.Dataset].known(ctx)
	if err != nil {
		return nil, err
	}
	if err := checkTypes(q.Types, known.types); err != nil {
		return nil, err
	}
	described, err := conn.Prepare(ctx, "", q.Text, q.Types)
	if err == nil {
		err = checkTypes(described.ParamOIDs, known.types)
	}
	return described, err
}

func checkTypes(oids []uint32, allowed map[uint32]bool) error {
	for i, oid := range oids {
		if oid != 0 && !allowed[oid] {
			return fault.Unsupported(fault.Position{}, fmt.Sprintf("the type of parameter $%d in a query about catalogs", i+1),
				"give it as text")
		}
	}
	return nil
}

func fieldsOf(described []pgconn.FieldDescription) []pgwire.CatalogField {
	fields := make([]pgwire.CatalogField, len(described))
	for i, f := range described {
		fields[i] = pgwire.CatalogField{Name: f.Name, OID: f.DataTypeOID, Size: f.DataTypeSize, Modifier: f.TypeModifier}
	}
	return fields
}

// within runs work in a transaction of the twin's role, on a twin that is of the revision in force. An error of the server is given as it
// is: there is nothing of a person in it.
func (c *Catalogs) within(ctx context.Context, q pgwire.CatalogQuery, work func(context.Context, *pgconn.PgConn) error) error {
	leave := q.Leave
	defer func() { leave() }()
	w := c.twins[q.Dataset]
	if w == nil {
		return fault.DataUnavailable(errNoTwin)
	}
	revision, err := c.policies.Revision(q.Dataset)
	if err != nil {
		return err
	}
	conn, err := w.acquire(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if of, ok := conn.Conn().PgConn().Conn().(*placed); ok && conn.Conn().IsClosed() {
			leave = func() { go func() { <-of.gone; q.Leave() }() } // the server may compute on
		}
		conn.Release()
	}()
	tx, err := c.begin(ctx, conn.Conn(), revision, q)
	if err != nil {
		return err
	}
	defer rollBack(ctx, tx)
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	return work(ctx, conn.Conn().PgConn())
}

// rollBack ends a transaction, also for somebody who waits no longer. Where it fails, the connection ends with it.
func rollBack(ctx context.Context, tx pgx.Tx) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), beginPatience)
	defer cancel()
	_ = tx.Rollback(ctx)
}

// begin starts the transaction. The twin is built before, unless this gateway saw that it is that of the revision; somebody else may
// have made it another since.
func (c *Catalogs) begin(ctx context.Context, conn *pgx.Conn, revision *catalog.Revision, q pgwire.CatalogQuery) (pgx.Tx, error) {
	session := catalog.TwinSession{Snapshot: revision.Snapshot, SearchPath: q.SearchPath}
	w := c.twins[q.Dataset]
	for range attempts {
		if w.seen.Load() != revision.Snapshot {
			patient, cancel := context.WithTimeout(ctx, buildPatience)
			built, err := catalog.Twin{Revision: revision, Hidden: replaced()}.Build(patient, conn)
			if cancel(); err != nil {
				return nil, err
			}
			w.seen.Store(revision.Snapshot)
			c.log.InfoContext(ctx, "a catalog twin was looked at", "dataset", q.Dataset, "version", revision.Snapshot.Version,
				"built", built)
		}
		patient, cancel := context.WithTimeout(ctx, beginPatience)
		tx, state, err := session.Begin(patient, conn)
		if cancel(); err != nil || state == catalog.TwinCurrent {
			return tx, err
		}
		w.seen.Store(nil)
		rollBack(ctx, tx)
	}
	return nil, fault.DataUnavailable(errors.New("twin: it is not that of the policy which this gateway holds"))
}

// attempts are one more than building needs where nobody else builds.
const attempts = 2
