package pgledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// connection is a connection on which transactions go behind each other without waiting for answers: PostgreSQL's pipeline
// mode. What is sent up to a Sync is one transaction, and the answer to the Sync says that it is committed.
type connection struct {
	conn       *pgxpool.Conn
	pipeline   *pgconn.Pipeline
	statements map[string]*pgconn.StatementDescription // by SQL text
	builders   []pgx.ExtendedQueryBuilder
	patience   *time.Timer // ends the connection when an answer takes too long
	cancel     context.CancelFunc
	opened     time.Time
	lost       error // why there are no more answers
}

// openConnection takes a connection out of the pool.
func openConnection(pool *pgxpool.Pool) (*connection, error) {
	ctx, cancel := context.WithCancel(context.Background())
	s := &connection{opened: time.Now(), cancel: cancel, patience: time.AfterFunc(transactionPatience, cancel),
		statements: map[string]*pgconn.StatementDescription{}}
	var err error
	if s.conn, err = pool.Acquire(ctx); err != nil {
		s.close()
		return nil, err
	}
	for _, sql := range []string{sqlAdvance, sqlOpen, sqlRegister, sqlEnd, sqlKeepReleased, sqlBind, sqlRebind, sqlMove, sqlWrite} {
		if s.statements[sql], err = s.conn.Conn().Prepare(ctx, sql, sql); err != nil { // known already, but for a new connection
			s.close()
			return nil, err
		}
	}
	s.pipeline = s.conn.Conn().PgConn().StartPipeline(ctx)
	return s, nil
}

// send sends a transaction. It reports false when nothing was sent; if sending fails half-way, receive will say so.
func (s *connection) send(of *transaction) bool {
	queries := of.changes().QueuedQueries
	if len(s.builders) < len(queries) {
		s.builders = make([]pgx.ExtendedQueryBuilder, len(queries))
	}
	types := s.conn.Conn().TypeMap()
	for i, q := range queries { // before the first is sent: then all must be
		statement := s.statements[q.SQL]
		if statement == nil || s.builders[i].Build(types, statement, q.Arguments) != nil {
			return false
		}
	}
	for i, q := range queries {
		b := &s.builders[i]
		s.pipeline.SendQueryStatement(s.statements[q.SQL], b.ParamValues, b.ParamFormats, slices.Clone(b.ResultFormats))
	}
	s.patience.Reset(transactionPatience)
	_ = s.pipeline.Sync() // the connection is closed if it fails
	return true
}

// receive waits for the answer to the transaction that was sent first of those that have none. Without an error it is
// committed; with one for which outcomeUnknown it may be. After such a one there are no more answers.
func (s *connection) receive(of *transaction) error {
	if s.lost != nil {
		return s.lost
	}
	var refused error
	for {
		results, err := s.pipeline.GetResults()
		switch r := results.(type) {
		case *pgconn.ResultReader:
			err = s.read(r, of)
		case *pgconn.PipelineSync:
			of.readAt = time.Now()
			return refused
		}
		var pg *pgconn.PgError
		switch {
		case errors.As(err, &pg) && !outcomeUnknown(err):
			refused = err
		case err != nil || results == nil:
			s.lost = fmt.Errorf("%w: %s", errUnanswered, fmt.Sprint(err)) // not the error itself: it may say that nothing was sent
			return s.lost
		}
	}
}

// read takes what sql/advance.sql gives; the others give nothing.
func (s *connection) read(r *pgconn.ResultReader, of *transaction) error {
	types := s.conn.Conn().TypeMap()
	for r.NextRow() {
		for i, into := range []any{new(int), &of.next, &of.clock, &of.postmaster} {
			field := r.FieldDescriptions()[i]
			if err := types.Scan(field.DataTypeOID, field.Format, r.Values()[i], into); err != nil {
				return err
			}
		}
	}
	_, err := r.Close()
	return err
}

// since reports whether it has been open for so long.
func (s *connection) since(d time.Duration) bool { return time.Since(s.opened) > d }

// close gives the connection back. Nothing may be in flight.
func (s *connection) close() {
	if s == nil {
		return
	}
	s.patience.Stop()
	if s.lost != nil {
		s.cancel() // closes the connection
	}
	if s.pipeline != nil {
		_ = s.pipeline.Close() // the pool takes no connection that failed
	}
	if s.conn != nil {
		s.conn.Release()
	}
	s.cancel()
}
