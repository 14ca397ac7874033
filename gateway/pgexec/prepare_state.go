package pgexec

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite"
)

// What the role that prepares can say of copies, and how it removes them. Nothing here reads a row of a source or of a copy.

// Held is a version that the database holds.
type Held struct {
	Number  int64
	AsOf    time.Time
	Current bool // it was made by what the policy asks for today
}

// Prepared is how far the copies of a table are.
type Prepared struct {
	Table    catalog.TableName
	Versions []Held // newest first
	Wanted   bool   // the policy asks for a copy
	// Problem is why the next run would fail: policy/stale, or a missing right or role. Nil does not say that it will not: whether there is
	// space, whether locks are free, and what rows and numbers of units are like, a run finds out.
	Problem error
}

// Serving is the version that questions are answered from, the newest that is what the policy asks for; nil: there is none.
func (p Prepared) Serving() *Held {
	for i, v := range p.Versions {
		if v.Current {
			return &p.Versions[i]
		}
	}
	return nil
}

// State says of each table of a snapshot that the policy wants prepared, and of each of the dataset that there is a copy of, which versions
// there are, by name.
func (c PrepareConfig) State(ctx context.Context, on *catalog.Snapshot) (all []Prepared, err error) {
	conn, err := c.connect(ctx, 0)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	at := map[catalog.TableName]int{}
	add := func(name catalog.TableName) *Prepared {
		i, known := at[name]
		if !known {
			i, at[name] = len(all), len(all)
			all = append(all, Prepared{Table: name})
		}
		return &all[i]
	}
	for _, t := range on.Tables {
		if t.Prepare > 0 {
			p := add(catalog.TableName{Schema: t.Schema, Name: t.Name})
			p.Wanted = true
			p.Problem = c.problem(ctx, conn, on, t)
		}
	}
	held, err := listed(ctx, conn, on.Dataset)
	if err != nil {
		return nil, unprepared(err)
	}
	citus, err := onCitus(ctx, conn)
	if err != nil {
		return nil, unprepared(err)
	}
	for _, v := range held {
		current := sqlrewrite.Serving(on, v) != nil
		if current && citus {
			t, _ := on.Table(v.Table.Schema, v.Table.Name)
			err := holdOnShards(ctx, conn, shardPinOf(on.CopyOf(t, v)))
			if current = err == nil; !current && fault.CodeOf(err) != fault.CodePolicyStale {
				return nil, err
			}
		}
		p := add(v.Table)
		p.Versions = append(p.Versions, Held{Number: v.Number, AsOf: v.AsOf, Current: current})
	}
	return all, nil
}

// problem is why a run would not make a copy, as far as that is seen without a row.
func (c PrepareConfig) problem(ctx context.Context, conn *pgx.Conn, on *catalog.Snapshot, t *catalog.Table) error {
	citus, err := onCitus(ctx, conn)
	if err == nil && citus && t.Append.Column != "" {
		err = errAppend
	}
	if err != nil {
		return unprepared(err)
	}
	build, err := sqlrewrite.Prepare(on, t, catalog.Version{Number: 1})
	if err != nil {
		return unprepared(err)
	}
	var may, reader bool
	if err := conn.QueryRow(ctx, `SELECT coalesce(bool_and(pg_catalog.has_table_privilege(c.oid, 'SELECT') AND
			pg_catalog.has_schema_privilege(c.relnamespace, 'USAGE')), true)
			AND coalesce(pg_catalog.has_schema_privilege(pg_catalog.to_regnamespace('noisegate_prepared'), 'CREATE'), false)
			AND NOT EXISTS (SELECT FROM pg_catalog.pg_class kept WHERE kept.relnamespace = pg_catalog.to_regnamespace('noisegate_prepared')
				AND kept.relname IN ('versions', 'seeds', $2) AND NOT pg_catalog.pg_has_role(kept.relowner, 'USAGE')),
			EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = $3)
		FROM pg_catalog.pg_class c WHERE c.oid = $1`, t.OID, build.Units, c.Reader).Scan(&may, &reader); err != nil {
		return unprepared(err)
	}
	switch {
	case !may:
		return errNoRight
	case !reader:
		return errNoReader
	}
	if err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return stillHolds(ctx, tx, citus, build.Conditions) }); err != nil {
		return unprepared(err)
	}
	return nil
}

// Compare reads the rows of a table, and of the newest version of its copy that the policy asks for, to which rows were appended: its error
// is [ErrChanged] where that is not what a full run would make of the rows up to its time. It is nil where no rows are appended, or no
// version serves. It tells nothing else of a row.
func (c PrepareConfig) Compare(ctx context.Context, on *catalog.Snapshot, t *catalog.Table) error {
	if t.Append.Column == "" {
		return nil
	}
	conn, err := c.connect(ctx, 0)
	if err != nil {
		return err
	}
	defer leave(ctx, conn)
	if there, err := list(ctx, conn, false); err != nil || !there {
		return err
	}
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		return undone(err, errCompare)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // it gives numbers to units, for itself alone
	r := run{PrepareConfig: c, on: on, t: t}
	same, err := r.same(ctx, tx)
	switch {
	case err != nil:
		return undone(err, errCompare)
	case !same:
		return ErrChanged
	default:
		return nil
	}
}

// same reports whether the version that rows are appended to is what a full run would make of the rows up to its time.
func (r *run) same(ctx context.Context, tx pgx.Tx) (same bool, err error) {
	if err := r.lock(ctx, tx); err != nil {
		return false, err
	}
	v, seed, err := r.before(ctx, tx)
	if err != nil || v == nil {
		return v == nil, err
	}
	build, err := sqlrewrite.Prepare(r.on, r.t, *v)
	if err != nil {
		return false, err
	}
	if err := stillHolds(ctx, tx, false, build.Conditions); err != nil {
		return false, err
	}
	if _, err := tx.Exec(ctx, build.AddUnits, always, v.AsOf); err != nil {
		return false, err
	}
	err = tx.QueryRow(ctx, build.Same, seed, always, v.AsOf).Scan(&same)
	return same, err
}

// Drop removes all copies of some tables of a dataset, and the numbers of units that no copy has any more. A copy that a question reads
// stays, which the error says; another call removes it.
func (c PrepareConfig) Drop(ctx context.Context, dataset string, tables ...catalog.TableName) error {
	conn, err := c.connect(ctx, 0)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if there, err := list(ctx, conn, false); err != nil || !there {
		return err
	}
	for _, t := range tables {
		if _, failed := dropVersions(ctx, conn, dataset, t, math.MaxInt64); failed != nil {
			err = errors.Join(err, fmt.Errorf("%s: not all copies could be dropped: %w", t, undone(failed, errDrop)))
		}
	}
	if failed := forget(ctx, conn); failed != nil {
		err = errors.Join(err, fmt.Errorf("numbers of units that no copy has are left: %w", undone(failed, errDrop)))
	}
	return err
}

// listed are the versions of a dataset's tables, newest first, whose copies are there; none where nothing was ever prepared.
func listed(ctx context.Context, on interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}, dataset string) ([]catalog.Version, error) {
	rows, err := on.Query(ctx, versionsText, dataset)
	var all []catalog.Version
	if err == nil { // else it was not even prepared
		all, err = pgx.CollectRows(rows, versionOf)
	}
	if server := new(pgconn.PgError); errors.As(err, &server) && server.Code == "42P01" {
		return nil, nil
	}
	return all, err
}
