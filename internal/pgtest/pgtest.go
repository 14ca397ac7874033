// Package pgtest gives each test a separate PostgreSQL database.
//
// It knows how to find a server (or start a private one), and how Noisegate's roles and schema get into a database. It does
// not know what the tests are about. A test that needs PostgreSQL fails without one; it is skipped under -short only.
package pgtest

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"noisegate.example/internal/pgserver"
)

// patience limits each step of preparing a database. The longest writes a million rows: half a minute while CI installs clients.
const patience = 3 * time.Minute

// Database is a database that exists for one test.
type Database struct {
	Name string
	DSN  string // connects as superuser

	server *server

	working sync.Mutex // somebody uses superuser
	super   *pgx.Conn  // of Exec; nil: none yet
}

// New creates an empty database and drops it when the test ends.
func New(t testing.TB) *Database {
	t.Helper()
	return shared(t, empty)
}

// shared creates a database of a stage on the server that tests share, and drops it when the test ends.
func shared(t testing.TB, st stage) *Database {
	t.Helper()
	NeedServer(t)
	s, err := sharedServer()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	name, drop, err := s.makeDatabase(ctx, st)
	if err != nil {
		t.Fatal("pgtest: cannot create a database: ", err)
	}
	d := &Database{Name: name, DSN: s.dsn("", name), server: s}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		d.leave(ctx)
		if err := drop(ctx); err != nil {
			t.Error("pgtest: cannot drop the test's database: ", err)
		}
	})
	return d
}

// As is the DSN of the database for another role.
func (d *Database) As(role string) string { return d.server.dsn(role, d.Name) }

// Exec runs SQL text of any number of statements as superuser, in a session that is as a fresh one. It works in a test's cleanup as well.
func (d *Database) Exec(t testing.TB, sql ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	conn, done, err := d.superuser(ctx)
	if err != nil {
		t.Fatal("pgtest: ", err)
	}
	defer done()
	for _, text := range sql {
		if _, err := conn.Exec(ctx, text); err != nil {
			t.Fatalf("pgtest: %v in %.300s", err, text)
		}
	}
}

// superuser is a connection for one call of Exec: the one of the call before, as connecting costs the server more than most statements, or
// a new one while another call runs. After done, nothing is left of the call in its session.
func (d *Database) superuser(ctx context.Context) (_ *pgx.Conn, done func(), err error) {
	if !d.working.TryLock() {
		conn, err := pgx.Connect(ctx, d.DSN)
		return conn, func() { _ = conn.Close(ctx) }, err
	}
	if d.super == nil || d.super.Ping(ctx) != nil { // a test may have ended it, or its server
		if d.super, err = pgx.Connect(ctx, d.DSN); err != nil {
			d.super = nil
			d.working.Unlock()
			return nil, nil, err
		}
	}
	return d.super, func() {
		defer d.working.Unlock()
		if _, err := d.super.Exec(ctx, "DISCARD ALL"); err != nil {
			_ = d.super.Close(ctx)
			d.super = nil
		}
	}, nil
}

// leave ends the connection of Exec.
func (d *Database) leave(ctx context.Context) {
	if d.super != nil {
		_ = d.super.Close(ctx)
	}
}

// Conn connects with a DSN of the database and disconnects when the test ends.
func (d *Database) Conn(t testing.TB, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal("pgtest: ", err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) }) // the database may be gone already
	return conn
}

// Pool opens a pool of superuser connections and closes it when the test ends.
func (d *Database) Pool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return PoolOf(t, d.DSN)
}

// PoolOf opens a pool and closes it when the test ends.
func PoolOf(t testing.TB, dsn string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal("pgtest: ", err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// Major is the major version of the server that tests run on.
func Major(t testing.TB) int {
	t.Helper()
	NeedServer(t)
	s, err := sharedServer()
	if err != nil {
		t.Fatal(err)
	}
	return s.major
}

// ControlDatabase is a migrated control database.
type ControlDatabase struct {
	*Database
	OwnerDSN  string // connects as noisegate_owner
	LedgerDSN string // connects as noisegate, the gateway's role
}

// Control creates a control database as an operator would: deploy/roles.sql, deploy/control.sql, migrations.
func Control(t testing.TB) *ControlDatabase {
	t.Helper()
	return shared(t, migrated).control()
}

// Unmigrated is [Control] before its migrations.
func Unmigrated(t testing.TB) *ControlDatabase {
	t.Helper()
	return shared(t, unmigrated).control()
}

func (d *Database) control() *ControlDatabase {
	return &ControlDatabase{Database: d, OwnerDSN: d.As("noisegate_owner"), LedgerDSN: d.As("noisegate")}
}

// ProtectedDatabase is a database with private tables.
type ProtectedDatabase struct {
	*Database
	ReaderDSN string // connects as noisegate_reader, the gateway's role
}

// Protected creates a protected database as an operator would: deploy/roles.sql, then the DDL of the test, then
// [ProtectedDatabase.Grant].
func Protected(t testing.TB, ddl ...string) *ProtectedDatabase {
	t.Helper()
	d := shared(t, secured)
	d.Exec(t, append(slices.Clone(ddl), grant)...)
	return &ProtectedDatabase{Database: d, ReaderDSN: d.As("noisegate_reader")}
}

const grant = "GRANT USAGE ON SCHEMA public TO noisegate_reader; GRANT SELECT ON ALL TABLES IN SCHEMA public TO noisegate_reader"

// Grant lets the reader read all tables that are in the schema public when it is called.
func (p *ProtectedDatabase) Grant(t testing.TB) {
	t.Helper()
	p.Exec(t, grant)
}

// LoadCSV copies a CSV file with a header line, whose names are columns of the table, into it.
func (d *Database) LoadCSV(t testing.TB, table, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal("pgtest: ", err)
	}
	header, _, _ := strings.Cut(string(text), "\n")
	command := fmt.Sprintf("COPY %s (%s) FROM STDIN CSV HEADER", table, strings.TrimSpace(header))
	if _, err := d.Conn(t, d.DSN).PgConn().CopyFrom(t.Context(), bytes.NewReader(text), command); err != nil {
		t.Fatalf("pgtest: %v in %s", err, command)
	}
}

// LoadDump runs a plain dump of pg_dump, compressed with gzip: SQL with COPY ... FROM stdin blocks in between.
func (d *Database) LoadDump(t testing.TB, path string) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal("pgtest: ", err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal("pgtest: ", err)
	}
	conn := d.Conn(t, d.DSN) // one session: dumps begin with SET
	var sql, rows bytes.Buffer
	copying := ""
	lines := bufio.NewScanner(unzipped)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		line := lines.Text()
		switch {
		case copying == "" && strings.HasPrefix(line, "COPY ") && strings.HasSuffix(line, "FROM stdin;"):
			execDump(t, conn, sql.String())
			sql.Reset()
			copying = line
		case copying == "" && !strings.HasPrefix(line, `\`):
			sql.WriteString(line + "\n")
		case copying != "" && line == `\.`:
			if _, err := conn.PgConn().CopyFrom(t.Context(), &rows, copying); err != nil {
				t.Fatalf("pgtest: %v in %s", err, copying)
			}
			rows.Reset()
			copying = ""
		case copying != "":
			rows.WriteString(line + "\n")
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal("pgtest: ", err)
	}
	execDump(t, conn, sql.String())
}

func execDump(t testing.TB, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("pgtest: %v in the dump, before or in %.300s", err, sql)
	}
}

// Server starts a private server, for tests that stop and kill it. It is stopped when the test ends.
func Server(t testing.TB) *pgserver.Server {
	t.Helper()
	NeedServer(t)
	finding, found := context.WithTimeout(t.Context(), fetchPatience)
	defer found()
	programs, err := Programs(finding)
	if err != nil {
		t.Fatal("pgtest: ", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s, err := pgserver.Start(ctx, pgserver.Options{Programs: programs, Cached: true, Memory: true})
	if err != nil {
		t.Fatal("pgtest: ", err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error("pgtest: ", err)
		}
	})
	return s
}

// On is [Control] on a server of the test's own (see [Server]).
func On(t testing.TB, own *pgserver.Server) *ControlDatabase {
	t.Helper()
	return makeOn(t, own, migrated).control()
}

// UnmigratedOn is [Unmigrated] on a server of the test's own.
func UnmigratedOn(t testing.TB, own *pgserver.Server) *ControlDatabase {
	t.Helper()
	return makeOn(t, own, unmigrated).control()
}

// SecuredOn is a database with deploy/roles.sql and no table on a server of the test's own.
func SecuredOn(t testing.TB, own *pgserver.Server) *Database {
	t.Helper()
	return makeOn(t, own, secured)
}

func makeOn(t testing.TB, own *pgserver.Server, st stage) *Database {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s, err := ownServers().find(ctx, own)
	if err != nil {
		t.Fatal("pgtest: ", err)
	}
	name, drop, err := s.makeDatabase(ctx, st)
	if err != nil {
		t.Fatal("pgtest: ", err)
	}
	d := &Database{Name: name, DSN: s.dsn("", name), server: s}
	t.Cleanup(func() { // the server serves other tests too; it may already be down, and then the database goes with it
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		d.leave(ctx)
		_ = drop(ctx)
	})
	return d
}
