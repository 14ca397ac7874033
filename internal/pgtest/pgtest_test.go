package pgtest

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

func count(t *testing.T, d *Database, sql string) (n int) {
	t.Helper()
	if err := d.Pool(t).QueryRow(t.Context(), sql).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestDatabasesAreSeparateAndDropped(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	var names []string
	for range 3 {
		t.Run("", func(t *testing.T) {
			d := New(t)
			d.Exec(t, "CREATE TABLE same (n int); INSERT INTO same VALUES (1)")
			if n := count(t, d, "SELECT count(*) FROM same"); n != 1 {
				t.Errorf("%d rows, want 1", n)
			}
			names = append(names, d.Name)
		})
	}
	last := New(t)
	for _, name := range names {
		if n := count(t, last, "SELECT count(*) FROM pg_database WHERE datname = '"+name+"'"); n != 0 {
			t.Errorf("database %s is still there after its test", name)
		}
	}
}

func TestParallelDatabases(t *testing.T) {
	for range 4 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			d := Control(t)
			conn := d.Conn(t, d.LedgerDSN)
			var user string
			if err := conn.QueryRow(t.Context(), "SELECT current_user").Scan(&user); err != nil || user != "noisegate" {
				t.Errorf("got %q, %v; want the ledger's role", user, err)
			}
		})
	}
}

func TestProtectedIsReadOnlyForTheReader(t *testing.T) {
	d := Protected(t, "CREATE TABLE people (id int PRIMARY KEY)", "INSERT INTO people VALUES (1), (2)")
	conn := d.Conn(t, d.ReaderDSN)
	var n int
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM public.people").Scan(&n); err != nil || n != 2 {
		t.Errorf("got %d, %v; want 2 rows", n, err)
	}
	_, err := conn.Exec(t.Context(), "BEGIN READ WRITE; INSERT INTO public.people VALUES (3)")
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Code != "42501" {
		t.Errorf("got %v, want insufficient_privilege", err)
	}
}

func TestLoadCSV(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.csv")
	if err := os.WriteFile(path, []byte("b,a\nx,1\n,2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := New(t)
	d.Exec(t, "CREATE TABLE rows (a int, b text)")
	d.LoadCSV(t, "rows", path)
	if n := count(t, d, "SELECT sum(a) FROM rows WHERE b IS NULL"); n != 2 {
		t.Errorf("got %d, want the one row without b", n)
	}
}

// TestCopiesAreLikeTheirTemplates compares copies with databases that were made by the statements themselves: rights, settings, objects.
func TestCopiesAreLikeTheirTemplates(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	s, err := ownServers().find(t.Context(), Server(t))
	if err != nil {
		t.Fatal(err)
	}
	const state = `SELECT pg_catalog.concat_ws(E'\n',
		(SELECT (datacl, datdba, encoding, datcollate, datctype, datconnlimit, datallowconn, datistemplate)::text
			FROM pg_catalog.pg_database WHERE datname = current_database()),
		(SELECT count(*)::text FROM pg_catalog.pg_db_role_setting r JOIN pg_catalog.pg_database d ON d.oid = r.setdatabase
			WHERE datname = current_database()),
		(SELECT string_agg((nspname, nspacl)::text, ' ' ORDER BY nspname) FROM pg_catalog.pg_namespace),
		(SELECT string_agg((relname, relkind, relacl)::text, ' ' ORDER BY relnamespace::regnamespace::text, relname)
			FROM pg_catalog.pg_class WHERE relnamespace::regnamespace::text !~ '^pg_toast'),
		(SELECT string_agg((oid::regprocedure, proacl)::text, ' ' ORDER BY oid::regprocedure::text)
			FROM pg_catalog.pg_proc WHERE proacl IS NOT NULL))`
	for _, st := range []stage{secured, unmigrated, migrated} {
		built, _, err := s.buildDatabase(t.Context(), st)
		if err != nil {
			t.Fatal(err)
		}
		copied, _, err := s.makeDatabase(t.Context(), st)
		if err != nil {
			t.Fatal(err)
		}
		var texts [2]string
		for i, name := range []string{built, copied} {
			d := Database{Name: name, DSN: s.dsn("", name), server: s}
			if err := d.Conn(t, d.DSN).QueryRow(t.Context(), state).Scan(&texts[i]); err != nil {
				t.Fatal(err)
			}
		}
		if texts[0] != texts[1] || len(texts[0]) < 1000 {
			t.Errorf("stage %d: built\n%s\ncopied\n%s", st, texts[0], texts[1])
		}
	}
}
