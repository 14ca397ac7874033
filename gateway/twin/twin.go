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

	"noisegate/catalog"
	"noisegate/gateway/pgwire"
	"noisegate/internal/fault"
	"noisegate/sqlrewrite/statement"
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
)

// Catalogs are the twins of all datasets that have one. They are safe for concurrent use.
type Catalogs struct {
	policies Policies
	log      *slog.Logger
	twins    map[string]*twin
}

// twin is one of them.
type twin struct {
	pool *pgxpool.Pool
	seen atomic.Pointer[catalog.Snapshot] // of which the twin was, when this gateway looked last

	mu    sync.Mutex
	facts *pgwire.CatalogFacts // nil until a server answered
	types map[uint32]bool      // that parameters may have, by OID; with the facts
}

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
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.facts != nil {
		return w.facts, nil
	}
	conn, err := w.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Release()
	look, err := catalog.LookAtTwin(ctx, conn.Conn(), replaced(), named(statement.TwinTypes()))
	if err != nil {
		return nil, err
	}
	facts := &pgwire.CatalogFacts{Version: conn.Conn().PgConn().ParameterStatus("server_version"), Owner: look.Owner,
		Columns: map[statement.TableName][]statement.Column{}}
	for name, columns := range look.Columns {
		for _, column := range columns {
			key := statement.TableName(name)
			facts.Columns[key] = append(facts.Columns[key], statement.Column(column))
		}
	}
	w.facts, w.types = facts, look.Types
	return facts, nil
}

// patience bounds the wait for a connection: others' queries end after five seconds.
const patience = 10 * time.Second

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
	err = c.within(ctx, q, func(conn *pgconn.PgConn) error {
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
		bytes := 0
		for reader.NextRow() {
			row := make([][]byte, len(reader.Values()))
			for i, v := range reader.Values() {
				if bytes += len(v); v != nil {
					row[i] = append([]byte{}, v...)
				}
			}
			if answer.Rows = append(answer.Rows, row); len(answer.Rows) > maxRows || bytes > maxBytes {
				_, _ = reader.Close()
				return fault.TooComplex(fault.Position{}, fmt.Sprintf("the answer has more than %d rows or %d bytes", maxRows, maxBytes))
			}
		}
		_, err := reader.Close()
		return err
	})
	return answer, err
}

// Describe implements [pgwire.Catalog].
func (c *Catalogs) Describe(ctx context.Context, q pgwire.CatalogQuery) (types []uint32, fields []pgwire.CatalogField, err error) {
	err = c.within(ctx, q, func(conn *pgconn.PgConn) error {
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
	if _, err := c.Facts(ctx, q.Dataset); err != nil {
		return nil, err
	}
	allowed := c.twins[q.Dataset].types
	if err := checkTypes(q.Types, allowed); err != nil {
		return nil, err
	}
	described, err := conn.Prepare(ctx, "", q.Text, q.Types)
	if err == nil {
		err = checkTypes(described.ParamOIDs, allowed)
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
func (c *Catalogs) within(ctx context.Context, q pgwire.CatalogQuery, work func(*pgconn.PgConn) error) error {
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
	defer conn.Release()
	tx, err := c.begin(ctx, conn.Conn(), revision, q)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	return work(conn.Conn().PgConn())
}

// begin starts the transaction. The twin is built before, unless this gateway saw that it is that of the revision; somebody else may
// have made it another since.
func (c *Catalogs) begin(ctx context.Context, conn *pgx.Conn, revision *catalog.Revision, q pgwire.CatalogQuery) (pgx.Tx, error) {
	session := catalog.TwinSession{Snapshot: revision.Snapshot, SearchPath: q.SearchPath, TimeZone: q.TimeZone}
	w := c.twins[q.Dataset]
	for range attempts {
		if w.seen.Load() != revision.Snapshot {
			built, err := catalog.Twin{Revision: revision, Hidden: replaced()}.Build(ctx, conn)
			if err != nil {
				return nil, err
			}
			w.seen.Store(revision.Snapshot)
			c.log.InfoContext(ctx, "a catalog twin was looked at", "dataset", q.Dataset, "version", revision.Snapshot.Version,
				"built", built)
		}
		tx, state, err := session.Begin(ctx, conn)
		if err != nil || state == catalog.TwinCurrent {
			return tx, err
		}
		w.seen.Store(nil)
		_ = tx.Rollback(ctx)
	}
	return nil, fault.DataUnavailable(errors.New("twin: it is not that of the policy which this gateway holds"))
}

// attempts are one more than building needs where nobody else builds.
const attempts = 2
