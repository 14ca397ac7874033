package pgexec

import (
	"context"
	"reflect"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

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
	conn, pins, err := d.acquired(ctx, statement)
	if err != nil {
		return fault.Untouched(err)
	}
	defer conn.Release()
	if err := d.open(ctx, conn.Conn(), pins, settingsOf([]sqlrewrite.Statement{statement})); err != nil {
		return fault.Untouched(err)
	}
	var x exchange
	err = x.zones(d.Distributed(), statement)
	if err == nil && len(x.texts) > 0 {
		err = d.send(ctx, conn.Conn(), pins, &x)
	}
	if err != nil {
		return fault.Untouched(err)
	}
	zones := statement.Zones
	for first := true; more; statement, more = s.Next() {
		if !slices.Equal(statement.Zones, zones) {
			return fault.Excused(fault.Internal(errZones))
		}
		if err := d.one(ctx, conn.Conn(), pins, statement, first, s.Release); err != nil {
			return err
		}
		first = false
	}
	return d.close(ctx, conn.Conn(), pins, new(exchange))
}

// one runs a statement of a series, which has one row; before the first one no row was read.
func (d *Database) one(ctx context.Context, conn *pgx.Conn, pins []sqlrewrite.Precondition, statement sqlrewrite.Statement, first bool,
	take func(sqlrewrite.ExactRow) error) error {
	if !reflect.DeepEqual(statement.Preconditions, pins) || statement.Ranges != nil {
		return fault.Excused(fault.Internal(errPins)) // of another table than those that are locked
	}
	if err := d.prove(statement); err != nil { // the very bytes that are sent
		return fault.Excused(err)
	}
	var x exchange
	var rows []sqlrewrite.ExactRow
	x.statement(statement.SQL, statement.Args, func(_ *pgtype.Map, r *pgconn.ResultReader) error {
		return read(r, statement, func(row sqlrewrite.ExactRow) bool {
			rows = append(rows, row)
			return len(rows) < 2
		})
	})
	known, err := x.prepare(ctx, conn)
	if err != nil && first {
		return fault.Untouched(fault.DataUnavailable(quiet(err)))
	}
	if err == nil {
		err = x.run(ctx, conn, known)
	}
	if err != nil {
		return d.failed(ctx, conn, err)
	}
	if len(rows) != 1 {
		return fault.Internal(errShape)
	}
	return take(rows[0])
}
