package pgexec

import (
	"context"
	"reflect"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite"
)

// Sequence runs a series, all of it on one snapshot. Its errors are those of [Database.Run], and of the series itself.
func (d *Database) Sequence(ctx context.Context, s sqlrewrite.Series) error {
	statement, more := s.Next()
	if !more {
		return nil
	}
	if err := d.prove(statement); err != nil {
		return fault.Untouched(err)
	}
	ctx, cancel := context.WithTimeout(ctx, d.acquire+time.Duration(s.Len())*d.patience)
	defer cancel()
	conn, pins, err := d.opened(ctx, statement)
	if err != nil {
		return fault.Untouched(err)
	}
	defer conn.Release()
	for first := true; more; statement, more = s.Next() {
		if err := d.one(ctx, conn, pins, statement, first, s.Release); err != nil {
			return err
		}
		first = false
	}
	batch := new(pgx.Batch)
	trees := treesOf(pins)
	if trees != nil {
		batch.Queue(treeText, trees)
	}
	batch.Queue("COMMIT")
	results := conn.SendBatch(ctx, batch)
	defer func() { _ = results.Close() }()
	if trees == nil {
		return nil
	}
	return d.sameTrees(ctx, conn.Conn(), results)
}

// one runs a statement of a series, which has one row; before the first one no row was read.
func (d *Database) one(ctx context.Context, conn *pgxpool.Conn, pins []sqlrewrite.Precondition, statement sqlrewrite.Statement, first bool,
	take func(sqlrewrite.ExactRow) error) error {
	if !reflect.DeepEqual(statement.Preconditions, pins) || statement.Ranges != nil {
		return fault.Excused(fault.Internal(errPins)) // of another table than those that are locked
	}
	if err := d.prove(statement); err != nil { // the very bytes that are sent
		return fault.Excused(err)
	}
	batch := new(pgx.Batch)
	batch.Queue(statement.SQL, statement.Args...)
	results := conn.SendBatch(ctx, batch)
	var rows []sqlrewrite.ExactRow
	_, err := read(results, statement, func(row sqlrewrite.ExactRow) bool {
		rows = append(rows, row)
		return len(rows) < 2
	})
	err = firstError(err, results.Close())
	if first && unparsed(err) {
		return fault.Untouched(fault.DataUnavailable(quiet(err)))
	}
	if err != nil {
		return d.failed(ctx, conn.Conn(), err)
	}
	if len(rows) != 1 {
		return fault.Internal(errShape)
	}
	return take(rows[0])
}
