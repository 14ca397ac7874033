package catalog

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"noisegate.example/internal/pgtest"
)

// twinSource is a schema with what a twin must not show: hidden columns and tables, comments, defaults, checks, labels of an enum.
const twinSource = `
CREATE TYPE mood AS ENUM ('sad', 'secret_label', 'happy');
CREATE TABLE regions (name text PRIMARY KEY, inhabitants int DEFAULT 17);
CREATE TABLE people (person_id int PRIMARY KEY, age smallint NOT NULL CHECK (age < 130), income numeric(10,2), nick varchar(12), mood mood,
	hidden_column text);
CREATE TABLE visits (visit_id bigint PRIMARY KEY, person_id int NOT NULL REFERENCES people, day date, region text REFERENCES regions,
	at timestamptz, UNIQUE (region, day));
CREATE TABLE hidden_table (a int);
COMMENT ON TABLE people IS 'a comment of the source';
COMMENT ON COLUMN people.age IS 'a comment of the source';
INSERT INTO regions VALUES ('a secret region')`

const twinPolicy = `version: 1
dataset: census
neighbours: add-remove
tables:
  people:
    unit: {row: person_id}
    columns:
      person_id: {expose: false}
      age: {bounds: [17, 90]}
      income: {bounds: [0, 1000], step: 0.25}
      nick: {keys: private}
      mood: {domain: [happy, sad]}
      hidden_column: {expose: false}
  visits:
    unit: {column: person_id}
    max_rows: 5
    max_groups: 3
    columns:
      day: {bounds: [2025-01-01, 2025-12-31]}
      region: {domain: {table: regions, column: name}}
  regions: {public: true}
budgets:
  - {dataset: true, form: approx, epsilon: 20, delta: 1e-6}
`

// twinRevision applies a policy to the source.
func twinRevision(t *testing.T, source *pgtest.ProtectedDatabase, document string, version int64) *Revision {
	t.Helper()
	policy, problems := Parse(document)
	if len(problems) > 0 {
		t.Fatal(errors.Join(problems...))
	}
	schema, err := Inspect(t.Context(), pgtest.PoolOf(t, source.ReaderDSN), policy)
	if err != nil {
		t.Fatal(err)
	}
	snapshot, problems := Check(policy, schema)
	if len(problems) > 0 {
		t.Fatal(errors.Join(problems...))
	}
	snapshot.Version = version
	return &Revision{Snapshot: snapshot, Policy: policy, Pinned: schema.For(policy)}
}

// ask gives the rows of a query as lines, in a transaction of the twin's role.
func ask(t *testing.T, conn *pgx.Conn, of *Snapshot, sql string) (string, error) {
	t.Helper()
	tx, state, err := TwinSession{Snapshot: of, SearchPath: []string{"public"}}.Begin(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	if state != TwinCurrent {
		t.Errorf("the state of the twin is %d", state)
	}
	rows, _ := tx.Query(t.Context(), sql) // its error is among the rows'
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n"), err
}

func makeTwin(t *testing.T, conn *pgx.Conn, r *Revision, wantBuilt bool) {
	t.Helper()
	hidden := []TableName{{"pg_catalog", "pg_roles"}, {"pg_catalog", "pg_database"}, {"pg_catalog", "pg_shdescription"},
		{"pg_catalog", "pg_none"}}
	built, err := Twin{Revision: r, Hidden: hidden}.Build(t.Context(), conn)
	if err != nil {
		t.Fatal(errors.Unwrap(err))
	}
	if built != wantBuilt {
		t.Fatalf("built: %v, want %v", built, wantBuilt)
	}
}

// TestTwinShowsThePolicy: a twin has the exposed tables and columns with their types and keys, explains the policy in comments, and holds
// nothing else of its source.
func TestTwinShowsThePolicy(t *testing.T) {
	source, target := pgtest.Protected(t, twinSource), pgtest.New(t)
	r := twinRevision(t, source, twinPolicy, 1)
	conn := target.Conn(t, target.DSN)
	makeTwin(t, conn, twinRevision(t, source, strings.Replace(twinPolicy, "[17, 90]", "[17, 91]", 1), 0), true)
	target.Exec(t, "CREATE TABLE public.left_over (a int)")
	makeTwin(t, conn, r, true)
	for _, c := range []struct{ what, sql, want string }{
		{"columns", `SELECT a.attrelid::regclass || '.' || attname || ' ' || format_type(atttypid, atttypmod)
				|| CASE WHEN attnotnull THEN ' not null' ELSE '' END
			FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND attnum > 0
			ORDER BY relname, attnum`,
			`people.age smallint not null
people.income numeric(10,2)
people.nick character varying(12)
people.mood mood
regions.name text not null
regions.inhabitants integer
visits.visit_id bigint not null
visits.person_id integer not null
visits.day date
visits.region text
visits.at timestamp with time zone`},
		{"labels", "SELECT enumlabel FROM pg_enum ORDER BY enumsortorder", "sad\nhappy"},
		{"keys", `SELECT conrelid::regclass || ': ' || pg_get_constraintdef(oid) FROM pg_constraint
			WHERE connamespace = 'public'::regnamespace AND contype IN ('p', 'u', 'f') ORDER BY 1`, `regions: PRIMARY KEY (name)
visits: FOREIGN KEY (region) REFERENCES regions(name)
visits: PRIMARY KEY (visit_id)
visits: UNIQUE (day, region)`},
		{"comments", `SELECT objoid::regclass || '.' || objsubid || ' ' || description FROM pg_description WHERE classoid = 'pg_class'::regclass
			AND objoid::regclass::text IN ('people', 'visits', 'regions') ORDER BY objoid::regclass::text, objsubid`,
			`people.0 Private: each row is one privacy unit.
people.1 Bounds 17 to 90, step 1.
people.2 Bounds 0 to 1000, step 0.25.
people.3 Group keys are private: a key is shown where enough units have it.
people.4 Public group keys: 2.
regions.0 Public: answers are exact and free.
visits.0 Private: rows belong to privacy units by person_id. At most 5 rows of a unit count in one group. At most 3 groups of a unit count.
visits.1 Tells one unit: may be counted.
visits.2 Tells one unit: may be counted.
visits.3 Bounds 2025-01-01 to 2025-12-31.
visits.4 Public group keys: 1.`},
		{"nothing else", `SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND relname LIKE '%left%'
			UNION ALL SELECT adrelid::regclass::text FROM pg_attrdef UNION ALL SELECT conname FROM pg_constraint WHERE contype = 'c'
			AND connamespace = 'public'::regnamespace`, ""},
		{"information_schema", `SELECT table_name || '.' || count(*) FROM information_schema.columns WHERE table_schema = 'public'
			GROUP BY table_name ORDER BY 1`,
			"people.4\nregions.2\nvisits.5"},
	} {
		if got, err := ask(t, conn, r.Snapshot, c.sql); err != nil || got != c.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", c.what, err, got, c.want)
		}
	}
}

// TestOtherDatabasesAreLeftAlone: a database that holds something and was never a twin is not made one.
func TestOtherDatabasesAreLeftAlone(t *testing.T) {
	source, target := pgtest.Protected(t, twinSource), pgtest.New(t)
	conn := target.Conn(t, target.DSN)
	target.Exec(t, "CREATE TABLE somebodys (a int)", "COMMENT ON DATABASE "+identifier(target.Name)+" IS 'mine'")
	if built, err := (Twin{Revision: twinRevision(t, source, twinPolicy, 1)}).Build(t.Context(), conn); err == nil || built {
		t.Fatal("a database that holds a table became a twin")
	}
	target.Exec(t, "SELECT a FROM somebodys")
}

// TestTwinRoleReadsNoRows: the twin's role reads no table, no catalog that was hidden, and writes nothing.
func TestTwinRoleReadsNoRows(t *testing.T) {
	source, target := pgtest.Protected(t, twinSource), pgtest.New(t)
	r := twinRevision(t, source, twinPolicy, 1)
	conn := target.Conn(t, target.DSN)
	makeTwin(t, conn, r, true)
	for _, sql := range []string{"SELECT count(*)::text FROM people", "SELECT rolname FROM pg_roles", "SELECT datcollate FROM pg_database",
		"SELECT description FROM pg_shdescription", "SELECT error FROM pg_hba_file_rules", "CREATE TABLE a (b int)"} {
		if got, err := ask(t, conn, r.Snapshot, sql); err == nil {
			t.Errorf("%s gives %q", sql, got)
		}
	}
	if _, err := ask(t, conn, r.Snapshot, "SELECT datname FROM pg_database"); err != nil {
		t.Errorf("information_schema needs the name of the database: %v", err)
	}
	if got, err := ask(t, conn, r.Snapshot, `SELECT concat_ws(' ', current_user, current_setting('temp_file_limit'),
		current_setting('transaction_read_only'), current_setting('statement_timeout'))`); err != nil || got != TwinRole+" 0 on 5s" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestTwinFollowsThePolicy: a twin is built once for a revision, again for a newer one, and never for an older one; a session sees which.
func TestTwinFollowsThePolicy(t *testing.T) {
	source, target := pgtest.Protected(t, twinSource), pgtest.New(t)
	first := twinRevision(t, source, twinPolicy, 1)
	second := twinRevision(t, source, strings.Replace(twinPolicy, "      nick: {keys: private}\n", "      nick: {expose: false}\n", 1), 2)
	conn := target.Conn(t, target.DSN)
	state := func(s *Snapshot) TwinState {
		tx, state, err := TwinSession{Snapshot: s, SearchPath: []string{"public"}}.Begin(t.Context(), conn)
		if err != nil {
			t.Fatal(errors.Unwrap(err))
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		return state
	}
	if got := state(first.Snapshot); got != TwinOlder {
		t.Errorf("before there is a twin: %d", got)
	}
	makeTwin(t, conn, first, true)
	makeTwin(t, conn, first, false)
	if got := state(second.Snapshot); got != TwinOlder {
		t.Errorf("before it is built again: %d", got)
	}
	makeTwin(t, conn, second, true)
	makeTwin(t, conn, first, false)
	if got := state(first.Snapshot); got != TwinNewer {
		t.Errorf("beside the old snapshot: %d", got)
	}
	if got, err := ask(t, conn, second.Snapshot, "SELECT count(*)::text FROM pg_attribute WHERE attname = 'nick'"); err != nil || got != "0" {
		t.Errorf("nick is there %s times, %v", got, err)
	}
}

// TestTwinsAreBuiltOneAfterTheOther: gateways that find a twin old at the same time build it once.
func TestTwinsAreBuiltOneAfterTheOther(t *testing.T) {
	source, target := pgtest.Protected(t, twinSource), pgtest.New(t)
	r := twinRevision(t, source, twinPolicy, 1)
	const gateways = 4
	outcomes := make(chan error, gateways)
	built := make(chan bool, gateways)
	for range gateways {
		conn := target.Conn(t, target.DSN)
		go func() {
			b, err := Twin{Revision: r}.Build(t.Context(), conn)
			built <- b
			outcomes <- err
		}()
	}
	times := 0
	for range gateways {
		if err := <-outcomes; err != nil {
			t.Error(errors.Unwrap(err))
		}
		if <-built {
			times++
		}
	}
	if times != 1 {
		t.Errorf("built %d times", times)
	}
}

// TestLookAtTwin: columns come from the server, in order, with their types; relations and types of other versions are absent.
func TestLookAtTwin(t *testing.T) {
	target := pgtest.New(t)
	facts, err := LookAtTwin(t.Context(), target.Conn(t, target.DSN), []TableName{{"pg_catalog", "pg_user"}, {"pg_catalog", "pg_none"}},
		[]TableName{{"pg_catalog", "text"}, {"pg_catalog", "none"}})
	if err != nil {
		t.Fatal(err)
	}
	columns := facts.Columns[TableName{"pg_catalog", "pg_user"}]
	if len(facts.Types) != 2 || !facts.Types[pgtype.TextOID] || !facts.Types[pgtype.TextArrayOID] {
		t.Errorf("types %v", facts.Types)
	}
	if len(facts.Columns) != 1 || len(columns) != 9 || columns[1] != (TwinColumn{"usesysid", "oid"}) || facts.Owner == 0 {
		t.Errorf("%+v", facts)
	}
}

// TestTwinQuotes: names and labels are quoted wherever they stand.
func TestTwinQuotes(t *testing.T) {
	for name, want := range map[string]string{`public.mood`: "public", `"a.b".mood`: "a.b", `"a""b"."c"`: `a"b`} {
		if got := schemaOf(name); got != want {
			t.Errorf("schemaOf(%s) = %s, want %s", name, got, want)
		}
	}
	if got := identifier(`a"b`) + literal(`it's \`); got != `"a""b"E'it''s \\'` {
		t.Error(got)
	}
}
