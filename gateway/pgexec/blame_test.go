package pgexec_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"noisegate.example/gateway/pgexec"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/pgserver"
	"noisegate.example/internal/pgtest"
	"noisegate.example/sqlrewrite"
)

// blameDeadline is how long these tests wait for a server or a statement.
const blameDeadline = 30 * time.Second

// sleeping runs a statement that does not end by itself, and gives its process and what becomes of it. It waits until the statement sleeps:
// while its text is parsed, the session is active too, and then it has read nothing and nobody is to blame.
func sleeping(t *testing.T, d *pgexec.Database, admin *pgx.Conn, tag string) (process int, outcome chan error) {
	t.Helper()
	outcome = make(chan error, 1)
	go func() {
		for _, err := range d.Run(t.Context(), sqlrewrite.Statement{SQL: "SELECT pg_catalog.pg_sleep(600)::text, '" + tag + "'", Keys: 2}) {
			if err != nil {
				outcome <- err
				return
			}
		}
		outcome <- nil
	}()
	for deadline := time.Now().Add(blameDeadline); process == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the statement does not begin")
		}
		err := admin.QueryRow(t.Context(), "SELECT coalesce(max(pid), 0) FROM pg_catalog.pg_stat_activity "+
			"WHERE wait_event = 'PgSleep' AND query LIKE $1",
			"%pg_sleep%"+tag+"%").Scan(&process)
		if err != nil {
			t.Fatal(err)
		}
	}
	return process, outcome
}

func wantBlame(t *testing.T, name string, outcome chan error, excused bool) {
	t.Helper()
	select {
	case err := <-outcome:
		if fault.CodeOf(err) != fault.CodeDataUnavailable || fault.IsUntouched(err) || fault.IsExcused(err) != excused {
			t.Errorf("%s: %v (%v), excused %v, untouched %v; want excused %v", name, err, errors.Unwrap(err), fault.IsExcused(err),
				fault.IsUntouched(err), excused)
		}
	case <-time.After(blameDeadline):
		t.Fatalf("%s: the statement does not end", name)
	}
}

// covers: W.5 A36
//
// A statement that failed after it began counts, whatever ended it, unless the server was down for everybody.
//
// needs: postgres
func TestFailuresThatCount(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	server := pgtest.Server(t)
	dsn := server.DSN(pgserver.Superuser, "postgres")
	connect := func() *pgx.Conn {
		conn, err := pgx.Connect(t.Context(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
	d, err := pgexec.Open(t.Context(), pgexec.Config{DSN: dsn, Connections: 4, StatementTimeout: 10 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Unproven().Close()
	admin := connect()
	run := func(d *pgexec.Database, sql string) chan error {
		outcome := make(chan error, 1)
		_, err := collect(t, d, sqlrewrite.Statement{SQL: sql, Keys: 1})
		outcome <- err
		return outcome
	}
	process, outcome := sleeping(t, d, admin, "late") // as statement_timeout does, which could end the texts before it too
	if _, err := admin.Exec(t.Context(), "SELECT pg_catalog.pg_cancel_backend($1)", process); err != nil {
		t.Fatal(err)
	}
	wantBlame(t, "time", outcome, false)
	wantBlame(t, "an error of a row", run(d, "SELECT (1 / (g - 5))::text FROM pg_catalog.generate_series(1, 10) g"), false)
	confined, err := pgexec.Open(t.Context(), pgexec.Config{DSN: dsn + "&options=-c%20temp_file_limit%3D64", Connections: 1,
		StatementTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer confined.Unproven().Close()
	wantBlame(t, "temporary files", run(confined, "SELECT count(*)::text FROM (SELECT g FROM pg_catalog.generate_series(1, 1000000) g "+
		"ORDER BY g DESC OFFSET 1) x"), false)

	process, outcome = sleeping(t, d, admin, "ended")
	if _, err := admin.Exec(t.Context(), "SELECT pg_catalog.pg_terminate_backend($1)", process); err != nil {
		t.Fatal(err)
	}
	wantBlame(t, "this session alone was ended", outcome, false)

	// A process that crashes takes all others along: its own statement counts, those of others do not.
	culprit, crashed := sleeping(t, d, admin, "culprit")
	_, bystander := sleeping(t, d, admin, "bystander")
	kill(t, culprit)
	wantBlame(t, "its process crashed", crashed, false)
	wantBlame(t, "another process crashed", bystander, true)
	await(t, dsn)

	for _, c := range []struct {
		name string
		end  func()
	}{
		{"a server that is stopped at once", server.StopImmediate},
		{"a server that is killed", server.Kill},
		{"a server that is stopped", func() { _ = server.Stop() }}, // for good
	} {
		_, outcome := sleeping(t, d, connect(), "down")
		c.end()
		wantBlame(t, c.name, outcome, true)
		if c.name == "a server that is stopped" {
			return
		}
		if err := server.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		await(t, dsn)
	}
}

// await waits until a server takes connections.
func await(t *testing.T, dsn string) {
	t.Helper()
	var last error
	for deadline := time.Now().Add(blameDeadline); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		conn, err := pgx.Connect(t.Context(), dsn)
		if err == nil {
			_ = conn.Close(t.Context())
			return
		}
		last = err
	}
	t.Fatal(fmt.Errorf("the server does not come back: %w", last))
}
