package pgrole_test

import (
	"strings"
	"testing"

	"noisegate.example/internal/pgrole"
	"noisegate.example/internal/pgtest"
)

// check makes a role of the given name, lets the test spoil it, and checks it. The role and what it owns go with the test.
func check(t *testing.T, d *pgtest.Database, want pgrole.Expectation, spoil string) error {
	t.Helper()
	const role = "ngtest_role"
	d.Exec(t, "DROP ROLE IF EXISTS "+role, "CREATE ROLE "+role+" LOGIN")
	t.Cleanup(func() {
		d.Exec(t, "REASSIGN OWNED BY "+role+" TO noisegate_owner", "DROP OWNED BY "+role, "DROP ROLE "+role)
	})
	d.Exec(t, strings.ReplaceAll(spoil, "ROLE_", role))
	return pgrole.Check(t.Context(), d.Conn(t, d.As(role)), want)
}

// expect wants an error that names the danger, or none when danger is "".
func expect(t *testing.T, err error, danger string) {
	t.Helper()
	switch {
	case danger == "" && err != nil:
		t.Errorf("got %v, want a harmless role", err)
	case danger != "" && (err == nil || !strings.Contains(err.Error(), danger)):
		t.Errorf("got %v, want an error that says %q", err, danger)
	}
}

// TestDangerousReadersAreRefused spoils a reader in each way that is refused.
//
// covers: A58
func TestDangerousReadersAreRefused(t *testing.T) {
	d := pgtest.Protected(t)
	for _, c := range []struct{ name, spoil, danger string }{
		{"harmless", "GRANT SELECT ON public.people TO ROLE_", ""},
		{"superuser", "ALTER ROLE ROLE_ SUPERUSER", "has the attribute SUPERUSER"},
		{"bypassrls", "ALTER ROLE ROLE_ BYPASSRLS", "has the attribute BYPASSRLS"},
		{"createrole", "ALTER ROLE ROLE_ CREATEROLE", "has the attribute CREATEROLE"},
		{"createdb", "ALTER ROLE ROLE_ CREATEDB", "has the attribute CREATEDB"},
		{"replication", "ALTER ROLE ROLE_ REPLICATION", "has the attribute REPLICATION"},
		{"A52 files", "GRANT pg_read_server_files TO ROLE_", "is a member of pg_read_server_files"},
		{"A52 programs", "GRANT pg_execute_server_program TO ROLE_", "is a member of pg_execute_server_program"},
		{"A54 monitor", "GRANT pg_monitor TO ROLE_", "is a member of pg_monitor"},
		{"writes all", "GRANT pg_write_all_data TO ROLE_", "is a member of pg_write_all_data"},
		{"reads all", "GRANT pg_read_all_data TO ROLE_", "is a member of pg_read_all_data"},
		{"database owner", "DO $$BEGIN EXECUTE format('ALTER DATABASE %I OWNER TO ROLE_', current_database()); END$$",
			"is a member of pg_database_owner"},
		{"table owner", "ALTER TABLE public.people OWNER TO ROLE_", "table public.people than read it (owner"},
		{"insert", "GRANT INSERT ON public.people TO ROLE_", "(INSERT)"},
		{"insert a column", "GRANT INSERT (age) ON public.people TO ROLE_", "(INSERT)"},
		{"update", "GRANT UPDATE ON public.people TO ROLE_", "(UPDATE)"},
		{"update a column", "GRANT UPDATE (age) ON public.people TO ROLE_", "(UPDATE)"},
		{"delete", "GRANT DELETE ON public.people TO ROLE_", "(DELETE)"},
		{"truncate", "GRANT TRUNCATE ON public.people TO ROLE_", "(TRUNCATE)"},
		{"trigger", "GRANT TRIGGER ON public.people TO ROLE_", "(TRIGGER)"},
		{"everyone may write", "GRANT UPDATE ON public.people TO PUBLIC", "(UPDATE)"},
		{"A57 creates", "GRANT CREATE ON SCHEMA public TO ROLE_", "may create objects in schema public"},
		{"A57 temporary", "DO $$BEGIN EXECUTE format('GRANT TEMPORARY ON DATABASE %I TO ROLE_', current_database()); END$$",
			"TEMPORARY on the database"},
		{"A53 large objects", "GRANT EXECUTE ON FUNCTION lo_create(oid) TO ROLE_", "may create large objects"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d.Exec(t, "DROP TABLE IF EXISTS public.people", "CREATE TABLE public.people (id int PRIMARY KEY, age int)")
			expect(t, check(t, d.Database, pgrole.Expectation{Task: pgrole.Reader}, c.spoil), c.danger)
		})
	}
}

// TestDangerousLedgersAreRefused spoils a ledger's role.
//
// covers: A58
func TestDangerousLedgersAreRefused(t *testing.T) {
	d := pgtest.Control(t)
	want := pgrole.Expectation{Task: pgrole.Ledger, AppendOnly: []string{"noisegate.policy"}}
	for _, c := range []struct{ name, spoil, danger string }{
		{"harmless", "GRANT INSERT, SELECT ON noisegate.policy TO ROLE_", ""},
		{"superuser", "ALTER ROLE ROLE_ SUPERUSER", "has the attribute SUPERUSER"},
		{"update", "GRANT UPDATE ON noisegate.policy TO ROLE_", "right UPDATE on the append-only table noisegate.policy"},
		{"update a column", "GRANT UPDATE (document) ON noisegate.policy TO ROLE_", "right UPDATE on"},
		{"delete", "GRANT DELETE ON noisegate.policy TO ROLE_", "right DELETE on"},
		{"truncate", "GRANT TRUNCATE ON noisegate.policy TO ROLE_", "right TRUNCATE on"},
		{"owner of a table", "ALTER TABLE noisegate.schema_migration OWNER TO ROLE_", "owns table noisegate.schema_migration"},
		{"owner of the schema", "ALTER SCHEMA noisegate OWNER TO ROLE_", "owns schema noisegate"},
		{"owner by membership", "GRANT noisegate_owner TO ROLE_", "owns schema noisegate"},
	} {
		t.Run(c.name, func(t *testing.T) {
			expect(t, check(t, d.Database, want, "GRANT USAGE ON SCHEMA noisegate TO ROLE_; "+c.spoil), c.danger)
		})
	}
	t.Run("no table", func(t *testing.T) {
		absent := pgrole.Expectation{Task: pgrole.Ledger, AppendOnly: []string{"noisegate.absent"}}
		expect(t, check(t, d.Database, absent, "GRANT USAGE ON SCHEMA noisegate TO ROLE_"), "noisegate.absent, which does not exist")
	})
}

// TestDangerousPreparersAreRefused: the role that prepares may do what it likes in its schema, and nothing that a reader may not elsewhere.
//
// covers: A58
func TestDangerousPreparersAreRefused(t *testing.T) {
	d := pgtest.Protected(t)
	want := pgrole.Expectation{Task: pgrole.Preparer, Schema: "noisegate_prepared"}
	for _, c := range []struct{ name, spoil, danger string }{
		{"harmless", "GRANT SELECT ON public.people TO ROLE_", ""},
		{"its schema", "GRANT ALL ON SCHEMA noisegate_prepared TO ROLE_; CREATE TABLE noisegate_prepared.made (id int); " +
			"ALTER TABLE noisegate_prepared.made OWNER TO ROLE_", ""},
		{"superuser", "ALTER ROLE ROLE_ SUPERUSER", "has the attribute SUPERUSER"},
		{"bypassrls", "ALTER ROLE ROLE_ BYPASSRLS", "has the attribute BYPASSRLS"},
		{"reads all", "GRANT pg_read_all_data TO ROLE_", "is a member of pg_read_all_data"},
		{"owner of the source", "ALTER TABLE public.people OWNER TO ROLE_", "table public.people than read it (owner"},
		{"writes the source", "GRANT UPDATE (age) ON public.people TO ROLE_", "(UPDATE)"},
		{"another schema", "GRANT CREATE ON SCHEMA public TO ROLE_", "may create objects in schema public"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d.Exec(t, "DROP TABLE IF EXISTS public.people", "CREATE TABLE public.people (id int PRIMARY KEY, age int)")
			expect(t, check(t, d.Database, want, c.spoil), c.danger)
		})
	}
}

// TestOwnRolesAreHarmless: the roles that deploy/roles.sql makes are harmless.
//
// covers: A58
func TestOwnRolesAreHarmless(t *testing.T) {
	p := pgtest.Protected(t, "CREATE TABLE public.people (id int PRIMARY KEY)")
	expect(t, pgrole.Check(t.Context(), p.Conn(t, p.ReaderDSN), pgrole.Expectation{Task: pgrole.Reader}), "")
	expect(t, pgrole.Check(t.Context(), p.Conn(t, p.As("noisegate_prepare")),
		pgrole.Expectation{Task: pgrole.Preparer, Schema: "noisegate_prepared"}), "")
	c := pgtest.Control(t)
	expect(t, pgrole.Check(t.Context(), c.Conn(t, c.LedgerDSN),
		pgrole.Expectation{Task: pgrole.Ledger, AppendOnly: []string{"noisegate.policy"}}), "")
}

// TestAssumedRolesAreSeen: SET ROLE is no way to look harmless.
//
// covers: A58
func TestAssumedRolesAreSeen(t *testing.T) {
	p := pgtest.Protected(t)
	conn := p.Conn(t, p.DSN)
	if _, err := conn.Exec(t.Context(), "SET ROLE noisegate_reader"); err != nil {
		t.Fatal(err)
	}
	expect(t, pgrole.Check(t.Context(), conn, pgrole.Expectation{Task: pgrole.Reader}), "which could turn back")
}

func TestCheckNeedsATask(t *testing.T) {
	p := pgtest.Protected(t)
	expect(t, pgrole.Check(t.Context(), p.Conn(t, p.ReaderDSN), pgrole.Expectation{}), "no task")
}
