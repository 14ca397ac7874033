package deploy_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"noisegate.example/deploy"
	"noisegate.example/internal/pgtest"
)

const people = "CREATE TABLE people (id int PRIMARY KEY); INSERT INTO people VALUES (1); CREATE TABLE secret (id int)"

// refused wants each statement to fail for want of rights (or, for writes, because the session is read-only).
func refused(t *testing.T, conn *pgx.Conn, statements ...string) {
	t.Helper()
	for _, sql := range statements {
		_, err := conn.Exec(t.Context(), sql)
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || pg.Code != "42501" && pg.Code != "25006" {
			t.Errorf("%s: got %v, want insufficient_privilege", sql, err)
		}
	}
}

// TestReaderCanOnlyRead: A51 to A54 and A57 as the reader meets them, should anything ever get past the SQL guard.
func TestReaderCanOnlyRead(t *testing.T) {
	p := pgtest.Protected(t, people)
	p.Exec(t, "REVOKE SELECT ON secret FROM noisegate_reader")
	conn := p.Conn(t, p.ReaderDSN)
	var n int
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM public.people").Scan(&n); err != nil || n != 1 {
		t.Errorf("the reader cannot read: %d, %v", n, err)
	}
	refused(t, conn, "SELECT * FROM public.secret", "INSERT INTO public.people VALUES (2)", "CREATE TABLE public.mine (n int)",
		"CREATE TEMP TABLE mine (n int)")
	if _, err := conn.Exec(t.Context(), "SET default_transaction_read_only = off"); err != nil {
		t.Fatal(err)
	}
	refused(t, conn,
		"INSERT INTO public.people VALUES (2)", "DELETE FROM public.people", "TRUNCATE public.people", "CREATE TABLE public.mine (n int)",
		"CREATE TEMP TABLE mine (n int)", "CREATE SCHEMA mine", "CREATE FUNCTION public.f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
		// A51: SQL in a string.
		"SELECT query_to_xml('SELECT 1', true, true, '')", "SELECT table_to_xml('public.people', true, true, '')",
		"SELECT database_to_xml(true, true, '')", "SELECT ts_stat('SELECT NULL::tsvector')",
		// A52: files, programs, other sessions.
		"SELECT pg_read_file('/etc/passwd')", "SELECT lo_import('/etc/passwd')", "COPY public.people TO PROGRAM 'cat'",
		"COPY public.people TO '/tmp/x'",
		"SELECT pg_terminate_backend(1)", "SELECT pg_ls_dir('/')",
		// A53: large objects.
		"SELECT lo_create(0)", "SELECT lo_creat(-1)", "SELECT lo_from_bytea(0, '')",
		// Waiting, locking, telling.
		"SELECT pg_sleep(0)", "SELECT pg_sleep_for('0')", "SELECT pg_advisory_lock(1)", "SELECT pg_try_advisory_xact_lock(1)",
		"SELECT pg_notify('a', 'b')",
		"SELECT set_config('search_path', 'public', false)")
}

// TestSettingsOfRoles: the server sets what security relies on for every session of the role.
func TestSettingsOfRoles(t *testing.T) {
	p, c := pgtest.Protected(t), pgtest.Control(t)
	for _, want := range []struct{ dsn, setting, value string }{
		{p.ReaderDSN, "default_transaction_read_only", "on"},
		{p.ReaderDSN, "search_path", `""`},
		{p.ReaderDSN, "statement_timeout", "1min"},
		{p.ReaderDSN, "lock_timeout", "5s"},
		{p.ReaderDSN, "idle_in_transaction_session_timeout", "1min"},
		{p.ReaderDSN, "temp_file_limit", "8GB"},
		{p.ReaderDSN, "work_mem", "16MB"},
		{p.ReaderDSN, "log_min_error_statement", "panic"},
		{p.ReaderDSN, "log_parameter_max_length", "0"},
		{p.As("noisegate_prepare"), "log_parameter_max_length", "0"},
		{p.ReaderDSN, "jit", "off"},
		{c.LedgerDSN, "search_path", `""`},
		{c.LedgerDSN, "synchronous_commit", "on"},
		{c.OwnerDSN, "search_path", `""`},
	} {
		var got string
		if err := p.Conn(t, want.dsn).QueryRow(t.Context(), "SHOW "+want.setting).Scan(&got); err != nil || got != want.value {
			t.Errorf("%s is %q, %v; want %q", want.setting, got, err, want.value)
		}
	}
}

// TestFilesRunTwice: operators run them again, after changes and by mistake, and dangerous attributes are taken back.
func TestFilesRunTwice(t *testing.T) {
	c := pgtest.Control(t)
	c.Exec(t, deploy.Roles(), deploy.Control(), "DROP SCHEMA public", deploy.Roles())
	refused(t, c.Conn(t, c.LedgerDSN), "UPDATE noisegate.policy SET version = 1", "DROP TABLE noisegate.policy",
		"CREATE TABLE noisegate.mine (n int)")
}
