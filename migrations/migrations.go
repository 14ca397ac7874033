// Package migrations brings the schema of the control database up to date.
//
// It knows the embedded files NNN_name.sql, which of them a database has had, and that they are never edited once
// released. It does not know what the tables are for: the packages that own them do (catalog, budget).
//
// Migrations go forward only. Each runs in one transaction together with the line that records it, under one advisory lock, so that any
// number of processes may start at once.
package migrations

import (
	"cmp"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

//go:embed *.sql
var embedded embed.FS

// lockKey is the advisory lock of migrations: "noisegat" in ASCII, so that an operator recognises it in pg_locks.
const lockKey int64 = 0x6e6f697365676174

// ErrOlder, ErrNewer and ErrEdited are the ways in which [Check] finds a schema that this binary must not run on.
var (
	ErrOlder  = errors.New("the control database's schema is older than this noisegate")
	ErrNewer  = errors.New("the control database's schema is newer than this noisegate")
	ErrEdited = errors.New("the control database's schema was made by other migrations than this noisegate's")
)

// migration is one file, or one line of the table that records them.
type migration struct {
	number   int
	name     string // the file's name
	checksum string // SHA-256 of the text, in hexadecimal
	sql      string // files only
}

// Newest is the number of the last migration of this binary. A ledger compares it, whenever it writes, with that of the
// schema, so that a gateway which is still running when the schema changes writes nothing that the new rules do not
// count.
func Newest() int {
	names, err := fs.Glob(embedded, "*.sql")
	if err != nil {
		return 0 // the pattern is right
	}
	return len(names) // they are numbered without gaps
}

// Apply runs every migration that the database has not had, and says which. The connection's role may create in the database. It refuses
// with [ErrNewer] or [ErrEdited], without changing anything, a database whose history is not a prefix of the embedded one.
func Apply(ctx context.Context, conn *pgx.Conn) (applied []string, err error) {
	return apply(ctx, conn, embedded)
}

// Check returns nil when the database has had exactly the migrations of this binary. It needs to read
// noisegate.schema_migration and changes nothing.
func Check(ctx context.Context, conn *pgx.Conn) error {
	return check(ctx, conn, embedded)
}

// Unchanged is [Check] within a transaction, which reads one state: a newer program may migrate meanwhile, and is then [ErrNewer].
//
// [ErrEdited] is also a function or a trigger that is not as the migrations made it. These are the ledger's guards against a defect of
// the gateway, and the database's owner can replace them.
func Unchanged(ctx context.Context, q querier) error {
	known, err := load(embedded)
	if err != nil {
		return err
	}
	return unchanged(ctx, q, known)
}

// Statements that make and drop what guards the tables. A body ends where it says $$ again.
var (
	functionMade = regexp.MustCompile(`(?s)CREATE (?:OR REPLACE )?FUNCTION noisegate\.(\w+)\(.*?\sAS\s+\$\$(.*?)\$\$`)
	triggerMade  = regexp.MustCompile(`(?s)(?:CREATE(?: CONSTRAINT)?|(DROP)) TRIGGER (\w+)\s[^;]*?\bON noisegate\.(\w+)` +
		`(?:[^;]*?EXECUTE FUNCTION (noisegate\.\w+))?`)
)

func unchanged(ctx context.Context, q querier, known []migration) error {
	recorded, err := record(ctx, q)
	if err != nil {
		return err
	}
	if err := compare(known, recorded); err != nil {
		return err
	}
	type guard struct{ text, file string }
	made := map[string]guard{}
	for _, m := range known {
		for _, f := range functionMade.FindAllStringSubmatch(m.sql, -1) {
			made["function noisegate."+f[1]] = guard{f[2], m.name}
		}
		for _, t := range triggerMade.FindAllStringSubmatch(m.sql, -1) {
			if name := "trigger " + t[2] + " of noisegate." + t[3]; t[1] == "" {
				made[name] = guard{t[4], m.name}
			} else {
				delete(made, name)
			}
		}
	}
	rows, err := q.Query(ctx, guardsSQL)
	if err != nil {
		return fmt.Errorf("migrations: cannot read functions and triggers: %w", err)
	}
	there := map[string]bool{} // and as they were made
	var name, text string
	_, err = pgx.ForEachRow(rows, []any{&name, &text}, func() error {
		before, twice := there[name]
		there[name] = text == made[name].text && (before || !twice)
		return nil
	})
	if err != nil {
		return fmt.Errorf("migrations: cannot read functions and triggers: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(made)) {
		if !there[name] {
			return fmt.Errorf("%w: the %s is not as %s made it; make it so again, and find out who changed it", ErrEdited, name, made[name].file)
		}
	}
	return nil
}

// guardsSQL reads functions with their bodies, and triggers with the functions that they call; "" for one that is off, or fires on a
// replica alone.
const guardsSQL = `
SELECT 'function noisegate.' || proname, prosrc FROM pg_catalog.pg_proc WHERE pronamespace = 'noisegate'::regnamespace
UNION ALL
SELECT 'trigger ' || t.tgname || ' of noisegate.' || c.relname, CASE WHEN t.tgenabled IN ('O', 'A') THEN n.nspname || '.' || f.proname ELSE '' END
FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid JOIN pg_catalog.pg_proc f ON f.oid = t.tgfoid
	JOIN pg_catalog.pg_namespace n ON n.oid = f.pronamespace
WHERE c.relnamespace = 'noisegate'::regnamespace AND NOT t.tgisinternal`

func apply(ctx context.Context, conn *pgx.Conn, files fs.FS) (applied []string, err error) {
	known, err := load(files)
	if err != nil {
		return nil, err
	}
	for {
		name, err := applyNext(ctx, conn, known)
		if err != nil || name == "" {
			return applied, err
		}
		applied = append(applied, name)
	}
}

// applyNext runs the first migration that is missing and returns its name; "" when none is.
func applyNext(ctx context.Context, conn *pgx.Conn, known []migration) (name string, err error) {
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_catalog.pg_advisory_xact_lock($1)", lockKey); err != nil {
			return explain(err)
		}
		if err := createRecord(ctx, tx); err != nil {
			return explain(err)
		}
		// Before any table that it changes: who writes to the ledger reads this one first, and waits here for the end
		// of the migration, or the migration for theirs.
		if _, err := tx.Exec(ctx, "LOCK TABLE noisegate.schema_migration IN ACCESS EXCLUSIVE MODE"); err != nil {
			return explain(err)
		}
		recorded, err := record(ctx, tx)
		if err != nil {
			return err
		}
		if err := compare(known, recorded); !errors.Is(err, ErrOlder) {
			return err
		}
		next := known[len(recorded)]
		if _, err := tx.Exec(ctx, next.sql); err != nil {
			return fmt.Errorf("migrations: %s: %w", next.name, explain(err))
		}
		name = next.name
		_, err = tx.Exec(ctx, "INSERT INTO noisegate.schema_migration (number, name, checksum) VALUES ($1, $2, $3)",
			next.number, next.name, next.checksum)
		return err
	})
	return name, err
}

// existsSQL looks for the schema and the record in it, which needs no right on either.
const existsSQL = `
SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = 'noisegate'),
	EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = 'noisegate' AND c.relname = 'schema_migration')`

// createRecord makes the place where migrations are recorded. An existing schema is left as it is: creating it would need
// a right on the database that its owner may lack.
func createRecord(ctx context.Context, tx pgx.Tx) error {
	var schema, table bool
	if err := tx.QueryRow(ctx, existsSQL).Scan(&schema, &table); err != nil || table {
		return err
	}
	if !schema {
		if _, err := tx.Exec(ctx, "CREATE SCHEMA noisegate"); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, `CREATE TABLE noisegate.schema_migration (
		number     int PRIMARY KEY,
		name       text NOT NULL,
		checksum   text NOT NULL,
		applied_at timestamptz NOT NULL DEFAULT now()
	)`)
	return err
}

func check(ctx context.Context, conn *pgx.Conn, files fs.FS) error {
	known, err := load(files)
	if err != nil {
		return err
	}
	var schema, table bool
	if err := conn.QueryRow(ctx, existsSQL).Scan(&schema, &table); err != nil {
		return fmt.Errorf("migrations: cannot look for the schema: %w", err)
	}
	if !table {
		return fmt.Errorf("%w: it has none at all; run noisegate migrate", ErrOlder)
	}
	return unchanged(ctx, conn, known)
}

// querier is a connection or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

func record(ctx context.Context, q querier) ([]migration, error) {
	rows, err := q.Query(ctx, "SELECT number, name, checksum FROM noisegate.schema_migration ORDER BY number")
	if err != nil {
		return nil, fmt.Errorf("migrations: cannot read noisegate.schema_migration: %w", err)
	}
	recorded, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (m migration, err error) {
		err = row.Scan(&m.number, &m.name, &m.checksum)
		return m, err
	})
	if err != nil {
		return nil, fmt.Errorf("migrations: cannot read noisegate.schema_migration: %w", err)
	}
	return recorded, nil
}

// compare finds the first difference between the files and the record.
func compare(known, recorded []migration) error {
	for i, had := range recorded {
		switch {
		case i >= len(known):
			return fmt.Errorf("%w: it has had %s; use a newer noisegate", ErrNewer, had.name)
		case had.number != known[i].number || had.checksum != known[i].checksum:
			return fmt.Errorf("%w: it has had %s with checksum %.12s, this one has %s with %.12s",
				ErrEdited, had.name, had.checksum, known[i].name, known[i].checksum)
		}
	}
	if len(recorded) < len(known) {
		return fmt.Errorf("%w: it lacks %s; run noisegate migrate", ErrOlder, known[len(recorded)].name)
	}
	return nil
}

// load reads the files in their order. Their numbers are 1, 2, 3, ...: a gap means that a file was lost or that two
// branches took the same number.
func load(files fs.FS) ([]migration, error) {
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return nil, err
	}
	pattern := regexp.MustCompile(`^([0-9]{3})_[a-z0-9_]+\.sql$`)
	var all []migration
	for _, name := range names {
		match := pattern.FindStringSubmatch(name)
		if match == nil {
			return nil, fmt.Errorf("migrations: %s is not named NNN_name.sql", name)
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		number, _ := strconv.Atoi(match[1]) // three digits
		sum := sha256.Sum256(text)
		all = append(all, migration{number: number, name: name, checksum: hex.EncodeToString(sum[:]), sql: string(text)})
	}
	slices.SortFunc(all, func(a, b migration) int { return cmp.Compare(a.number, b.number) })
	for i, m := range all {
		if m.number != i+1 {
			return nil, fmt.Errorf("migrations: %s should have the number %03d", m.name, i+1)
		}
	}
	return all, nil
}

// explain adds what to do to the refusals that a database prepared in the wrong way gives.
func explain(err error) error {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && (pg.Code == "42704" || pg.Code == "42501") { // undefined_object, insufficient_privilege
		return fmt.Errorf("%w (run deploy/roles.sql and deploy/control.sql first, and migrate as noisegate_owner)", err)
	}
	return err
}
