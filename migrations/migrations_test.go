package migrations_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"

	"noisegate.example/internal/pgtest"
	"noisegate.example/migrations"
)

func files(pairs ...string) fstest.MapFS {
	fs := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		fs[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return fs
}

const (
	one   = "CREATE TABLE noisegate.one (n int); INSERT INTO noisegate.one VALUES (1)"
	two   = "ALTER TABLE noisegate.one ADD COLUMN m int"
	three = "CREATE TABLE noisegate.three (n int); SELECT 1/0"
)

func owner(t *testing.T) *pgx.Conn {
	t.Helper()
	d := pgtest.Unmigrated(t)
	return d.Conn(t, d.OwnerDSN)
}

// TestRealMigrations: the embedded ones run as the owner, once, and the gateway's role can see that they did.
func TestRealMigrations(t *testing.T) {
	d := pgtest.Unmigrated(t)
	conn, ledger := d.Conn(t, d.OwnerDSN), d.Conn(t, d.LedgerDSN)
	if err := migrations.Check(t.Context(), ledger); !errors.Is(err, migrations.ErrOlder) ||
		!strings.Contains(err.Error(), "noisegate migrate") {
		t.Errorf("before: got %v, want the way out", err)
	}
	applied, err := migrations.Apply(t.Context(), conn)
	if err != nil || len(applied) == 0 || applied[0] != "001_catalog.sql" || !slices.IsSorted(applied) {
		t.Fatalf("applied %v, %v", applied, err)
	}
	if err := migrations.Check(t.Context(), ledger); err != nil {
		t.Errorf("after: %v", err)
	}
	guardsAreCompared(t, d)
	if applied, err = migrations.Apply(t.Context(), conn); err != nil || len(applied) != 0 {
		t.Errorf("again: applied %v, %v", applied, err)
	}
	if _, err := ledger.Exec(t.Context(), "INSERT INTO noisegate.schema_migration VALUES (99, 'x', 'y')"); err == nil {
		t.Error("the gateway's role may write the record of migrations")
	}
}

// TestForwardOnly: a schema that is older, newer or edited is told apart, and only the older one is touched.
func TestForwardOnly(t *testing.T) {
	conn := owner(t)
	base := files("001_one.sql", one, "002_two.sql", two)
	if applied, err := migrations.ApplyFiles(t.Context(), conn, files("001_one.sql", one)); err != nil || len(applied) != 1 {
		t.Fatal(applied, err)
	}
	if err := migrations.CheckFiles(t.Context(), conn, base); !errors.Is(err, migrations.ErrOlder) ||
		!strings.Contains(err.Error(), "002_two.sql") {
		t.Errorf("older: %v", err)
	}
	if applied, err := migrations.ApplyFiles(t.Context(), conn, base); err != nil || fmt.Sprint(applied) != "[002_two.sql]" {
		t.Errorf("applied %v, %v", applied, err)
	}
	for name, c := range map[string]struct {
		files fstest.MapFS
		want  error
	}{
		"newer":           {files("001_one.sql", one), migrations.ErrNewer},
		"edited":          {files("001_one.sql", one+" ", "002_two.sql", two), migrations.ErrEdited},
		"other":           {files("001_one.sql", one, "002_else.sql", three), migrations.ErrEdited},
		"other and older": {files("001_one.sql", two, "002_two.sql", two, "003_three.sql", three), migrations.ErrEdited},
	} {
		if err := migrations.CheckFiles(t.Context(), conn, c.files); !errors.Is(err, c.want) {
			t.Errorf("check, %s: got %v, want %v", name, err, c.want)
		}
		if applied, err := migrations.ApplyFiles(t.Context(), conn, c.files); !errors.Is(err, c.want) || len(applied) != 0 {
			t.Errorf("apply, %s: got %v, %v, want %v", name, applied, err, c.want)
		}
	}
	if err := migrations.CheckFiles(t.Context(), conn, base); err != nil {
		t.Errorf("a refused apply changed something: %v", err)
	}
}

// TestFailedMigrationLeavesNothing: what came before it stays, itself it leaves no trace, and it can be mended.
func TestFailedMigrationLeavesNothing(t *testing.T) {
	conn := owner(t)
	applied, err := migrations.ApplyFiles(t.Context(), conn, files("001_one.sql", one, "002_two.sql", two, "003_three.sql", three))
	if err == nil || !strings.Contains(err.Error(), "003_three.sql") || fmt.Sprint(applied) != "[001_one.sql 002_two.sql]" {
		t.Fatalf("applied %v, %v", applied, err)
	}
	mended := files("001_one.sql", one, "002_two.sql", two, "003_three.sql", strings.Replace(three, "1/0", "1/1", 1))
	if applied, err := migrations.ApplyFiles(t.Context(), conn, mended); err != nil || fmt.Sprint(applied) != "[003_three.sql]" {
		t.Errorf("applied %v, %v", applied, err)
	}
}

// TestManyMigrateAtOnce: each migration runs once, whichever process comes first.
//
// covers: F21
func TestManyMigrateAtOnce(t *testing.T) {
	d := pgtest.Unmigrated(t)
	type result struct {
		applied []string
		err     error
	}
	results := make(chan result)
	for range 4 {
		conn := d.Conn(t, d.OwnerDSN)
		go func() {
			applied, err := migrations.ApplyFiles(t.Context(), conn, files("001_one.sql", one, "002_two.sql", two))
			results <- result{applied, err}
		}()
	}
	var all []string
	for range 4 {
		r := <-results
		if r.err != nil {
			t.Error(r.err)
		}
		all = append(all, r.applied...)
	}
	slices.Sort(all)
	if fmt.Sprint(all) != "[001_one.sql 002_two.sql]" {
		t.Errorf("applied in all: %v", all)
	}
}

// TestBadFiles: a number taken twice is noticed before anything runs.
func TestBadFiles(t *testing.T) {
	conn := owner(t)
	for name, fs := range map[string]fstest.MapFS{
		"twice":  files("001_one.sql", one, "001_two.sql", two),
		"start":  files("000_one.sql", one),
		"naming": files("1-one.sql", one),
	} {
		if applied, err := migrations.ApplyFiles(t.Context(), conn, fs); err == nil || len(applied) != 0 {
			t.Errorf("%s: applied %v, %v", name, applied, err)
		}
	}
}

// TestUnpreparedDatabase: without the roles, or as a role that may not, the error says what to run.
func TestUnpreparedDatabase(t *testing.T) {
	d := pgtest.Unmigrated(t)
	if _, err := migrations.Apply(t.Context(), d.Conn(t, d.LedgerDSN)); err == nil || !strings.Contains(err.Error(), "deploy/control.sql") {
		t.Errorf("as the gateway's role: %v", err)
	}
}

// migratedUpTo is a database as the first n migrations leave it, and its owner's connection.
func migratedUpTo(t *testing.T, n int) (*pgtest.ControlDatabase, *pgx.Conn) {
	t.Helper()
	d := pgtest.Unmigrated(t)
	conn := d.Conn(t, d.OwnerDSN)
	first := fstest.MapFS{}
	for i := range n {
		names, err := filepath.Glob(fmt.Sprintf("%03d_*.sql", i+1))
		if err != nil || len(names) != 1 {
			t.Fatal(names, err)
		}
		text, err := os.ReadFile(names[0])
		if err != nil {
			t.Fatal(err)
		}
		first[names[0]] = &fstest.MapFile{Data: text}
	}
	if _, err := migrations.ApplyFiles(t.Context(), conn, first); err != nil {
		t.Fatal(err)
	}
	return d, conn
}

// guardsAreCompared: each function and each trigger that is changed, switched off, dropped or made twice is found, by its name.
func guardsAreCompared(t *testing.T, d *pgtest.ControlDatabase) {
	t.Helper()
	conn, ledger := d.Conn(t, d.DSN), d.Conn(t, d.LedgerDSN)
	rows, err := conn.Query(t.Context(), `
		SELECT 'the function noisegate.' || proname || ' is', format(e, oid::regprocedure, replace(pg_get_functiondef(oid), prosrc, ' ' || prosrc),
			regexp_replace(pg_get_functiondef(oid), '\(', '(one_more int, '))
		FROM pg_proc, unnest('{"%2$s","ALTER FUNCTION %1$s RENAME TO other"}'::text[] || CASE WHEN pronargs > 0 THEN '{"%2$s; %3$s"}'::text[] END) e
		WHERE pronamespace = 'noisegate'::regnamespace
		UNION ALL SELECT 'the trigger ' || tgname || ' of ' || tgrelid::regclass || ' is', format(e, tgrelid::regclass, tgname)
		FROM pg_trigger, unnest(ARRAY['ALTER TABLE %s DISABLE TRIGGER %I', 'ALTER TABLE %s ENABLE REPLICA TRIGGER %I', 'DROP TRIGGER %2$I ON %1$s'])
			e WHERE NOT tgisinternal AND tgrelid::regclass::text LIKE 'noisegate.%'`)
	if err != nil {
		t.Fatal(err)
	}
	edits, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct{ Says, SQL string }])
	if err != nil || len(edits) < 100 {
		t.Fatalf("%d edits, %v", len(edits), err)
	}
	for _, edit := range edits {
		err := pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
			if _, err := tx.Conn().PgConn().Exec(t.Context(), edit.SQL).ReadAll(); err != nil {
				t.Fatal(edit.SQL, err)
			}
			if err := migrations.Unchanged(t.Context(), tx); !errors.Is(err, migrations.ErrEdited) || !strings.Contains(err.Error(), edit.Says) {
				t.Errorf("%s: %v", edit.SQL, err)
			}
			return pgx.ErrTxCommitRollback
		})
		if !errors.Is(err, pgx.ErrTxCommitRollback) {
			t.Fatal(err)
		}
	}
	if err := migrations.Check(t.Context(), ledger); err != nil {
		t.Error(err)
	}
	if _, err := conn.Exec(t.Context(), "ALTER TABLE noisegate.entry DISABLE TRIGGER append_only"); err != nil {
		t.Fatal(err)
	}
	if err := migrations.Check(t.Context(), ledger); !errors.Is(err, migrations.ErrEdited) {
		t.Errorf("a trigger is off: %v", err)
	}
	if _, err := conn.Exec(t.Context(), "ALTER TABLE noisegate.entry ENABLE TRIGGER append_only"); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d edits", len(edits))
}
