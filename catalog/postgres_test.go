package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"noisegate.example/internal/fault"
	"noisegate.example/internal/pgtest"
	"noisegate.example/internal/testfiles"
)

const adultTable = `CREATE TABLE people (person_id int PRIMARY KEY, age int, workclass text, fnlwgt int, education text, education_num int,
	marital_status text, occupation text, relationship text, race text, sex text, capital_gain int, capital_loss int, hours_per_week int,
	native_country text, income text)`

// apply inspects a database and applies a policy, both as the gateway's roles.
func apply(t *testing.T, p *pgtest.ProtectedDatabase, store *Store, document string) (*Revision, bool, error) {
	t.Helper()
	policy, problems := Parse(document)
	if len(problems) > 0 {
		t.Fatal(errors.Join(problems...))
	}
	schema, err := Inspect(t.Context(), pgtest.PoolOf(t, p.ReaderDSN), policy)
	if err != nil {
		t.Fatal(err)
	}
	return store.Apply(t.Context(), Application{Policy: policy, Schema: schema, By: "stella", Replaces: AnyVersion})
}

// tables is a [Chain] that stores versions and keeps no chain: what an entry is, this package does not know.
type tables struct {
	pool      *pgxpool.Pool
	protected sync.Map // OIDs by name
	stewards  []string
}

func (*tables) TwoFor(context.Context, string) ([]string, error) { return nil, nil }

func (*tables) LedgerName(context.Context, string) (string, error) { return "none", nil }

func (c *tables) Stewards(string) []string { return c.stewards }

func (*tables) Approve(a Addition) error {
	if a.Approval != "signed" {
		return fault.PolicySignature("it does not hold")
	}
	return nil
}

func writing(pool *pgxpool.Pool) *Store { return NewStore(pool, &tables{pool: pool}) }

func (c *tables) EverProtected(context.Context, string) (map[string][]uint32, error) {
	ever := map[string][]uint32{}
	c.protected.Range(func(name, oid any) bool {
		ever[name.(string)] = []uint32{oid.(uint32)}
		return true
	})
	return ever, nil
}

func (c *tables) Record(ctx context.Context, a Addition) (at time.Time, taken bool, err error) {
	err = c.pool.QueryRow(ctx, `INSERT INTO noisegate.policy (dataset, version, document, digest, metadata, applied_by, entry)
		VALUES ($1, $2, $3, $4, $5::text::jsonb, $6, $2) ON CONFLICT DO NOTHING RETURNING applied_at`,
		a.Dataset, a.Version, a.Text, a.Digest[:], string(a.Facts), a.By).Scan(&at)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return at, true, nil
	case err != nil:
		return at, false, unavailable("cannot store a policy", err)
	}
	for name, oid := range a.Protected {
		c.protected.Store(name, oid)
	}
	return at, false, nil
}

func (*tables) Enter(context.Context, string, []Addition) (taken bool, err error) { return false, nil }

func newStore(t *testing.T) *Store {
	t.Helper()
	return writing(pgtest.PoolOf(t, pgtest.Control(t).LedgerDSN))
}

// TestCorpusPolicies applies the policies of the real datasets to their real schemas, and loads them again.
func TestCorpusPolicies(t *testing.T) {
	for _, c := range []struct {
		name   string
		schema func(t *testing.T, p *pgtest.ProtectedDatabase)
		want   []string
	}{
		{"census", func(t *testing.T, p *pgtest.ProtectedDatabase) {
			p.Exec(t, adultTable)
		}, []string{"people.age integer [17, 90] step 1", "people.person_id hidden unit", "people.income keys <=50K >50K",
			"people.workclass private"}},
		{"pums", func(t *testing.T, p *pgtest.ProtectedDatabase) {
			for _, table := range []string{"pums", "pums_null"} {
				p.Exec(t, "CREATE TABLE "+table+" (age int, sex int, educ int, race int, income int, married int, pid int)")
			}
		}, []string{"pums.income integer [0, 500000] step 1", "pums_null.pid unit", "pums.sex keys 0 1"}},
		{"pagila", func(t *testing.T, p *pgtest.ProtectedDatabase) {
			p.LoadDump(t, testfiles.FetchedOr(t, "data/pagila/pagila-schema.sql.gz"))
			p.Exec(t, "SET session_replication_role = replica; INSERT INTO store VALUES (1, 1, 1), (10, 2, 1), (2, 3, 1);"+
				"INSERT INTO staff (staff_id, first_name, last_name, address_id, store_id, username) VALUES (7, 'a', 'b', 1, 1, 'c')")
		}, []string{"customer.store_id keys 1 2 10", "rental.staff_id keys 7", "payment.rental_id unit",
			"payment.amount numeric [0, 12] step 1/100", "payment.payment_date timestamp with time zone [1640995200000000, 1672444800000000]",
			"customer.create_date date [18993, 19358]", "film.fulltext hidden"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			document := testfiles.Own(t, "corpus/"+c.name+".policy.yaml")
			p := pgtest.Protected(t)
			c.schema(t, p)
			p.Grant(t)
			store := newStore(t)
			applied, changed, err := apply(t, p, store, document)
			if err != nil || !changed || applied.Snapshot.Version != 1 {
				t.Fatalf("apply: %v, changed %v", err, changed)
			}
			loaded, err := store.Load(t.Context(), c.name)
			if err != nil {
				t.Fatal(err)
			}
			text := describe(loaded.Snapshot)
			if text != describe(applied.Snapshot) || loaded.Snapshot.Digest != applied.Snapshot.Digest {
				t.Errorf("loaded:\n%s\napplied:\n%s", text, describe(applied.Snapshot))
			}
			for _, line := range c.want {
				if !strings.Contains(text, line) {
					t.Errorf("the snapshot lacks %q:\n%s", line, text)
				}
			}
			if err := NewWatch(pgtest.PoolOf(t, p.ReaderDSN)).Recheck(t.Context(), loaded); err != nil {
				t.Error(err, errors.Unwrap(err))
			}
			again, changed, err := apply(t, p, store, document)
			if err != nil || changed || again.Snapshot.Version != 1 {
				t.Errorf("applying again: version %d, changed %v, %v; want nothing to change", again.Snapshot.Version, changed, err)
			}
		})
	}
}

// describe writes a snapshot as text, one column a line.
func describe(s *Snapshot) string {
	var b strings.Builder
	for _, t := range s.Tables {
		kind := [...]string{"public", "row", "column", "path"}[t.Unit.Kind]
		fmt.Fprintf(&b, "%s.%s %s %s rows %d groups %d\n", t.Schema, t.Name, kind, t.Unit.ToTable, t.MaxRows, t.MaxGroups)
		for _, c := range t.Columns {
			fmt.Fprintf(&b, "  %s.%s", t.Name, c.Name)
			if !c.Exposed {
				b.WriteString(" hidden")
			}
			if t.Unit.Kind != NoUnit && t.Unit.Column == c.Name {
				b.WriteString(" unit")
			}
			if c.Bounds != nil {
				fmt.Fprintf(&b, " %s [%s, %s]", c.Type, c.Bounds.Lo.RatString(), c.Bounds.Hi.RatString())
				if c.Bounds.Step != nil {
					b.WriteString(" step " + c.Bounds.Step.RatString())
				}
			}
			if c.Domain != nil {
				b.WriteString(" keys")
			}
			for _, key := range c.Domain {
				b.WriteString(" " + key.Text)
				if key.Null {
					b.WriteString("null")
				}
			}
			if c.PrivateKeys {
				b.WriteString(" private")
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

const smallPolicy = `version: 1
dataset: small
tables:
  people:
    unit: {row: id}
    columns: {age: {bounds: [0, 120]}, mood: {domain: [sad, ok]}, region: {domain: {table: regions, column: name}}}
  visits: {unit: {via: person_id, to: people}, max_rows: 5, max_groups: 3}
  more_visits: {unit: {column: person_id}}
  regions: {public: true}
budgets:
  - {dataset: true, form: approx, epsilon: 20, delta: 1e-6}
`

const smallTables = `CREATE TYPE mood AS ENUM ('sad', 'ok');
	CREATE DOMAIN years AS smallint CHECK (VALUE >= 0);
	CREATE TABLE regions (name varchar(20) PRIMARY KEY);
	INSERT INTO regions VALUES ('south'), ('north');
	CREATE TABLE people (id int PRIMARY KEY, age years, mood mood, region text, salary numeric(8, 2), photo bytea,
		nick text COLLATE blind, code char(3), born date NOT NULL);
	CREATE TABLE visits (id int, person_id int REFERENCES people, day date) PARTITION BY RANGE (day);
	CREATE TABLE more_visits (id int, person_id int, day date);
	CREATE TABLE visits_2024 PARTITION OF visits FOR VALUES FROM ('2024-01-01') TO ('2025-01-01')`

// blindCollation takes "a" and "A" for equal, where the server was built with ICU; elsewhere it is an ordinary one.
const blindCollation = `DO $$BEGIN CREATE COLLATION blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
	EXCEPTION WHEN feature_not_supported THEN CREATE COLLATION blind (locale = 'C'); END$$`

func small(t *testing.T) *pgtest.ProtectedDatabase {
	t.Helper()
	return pgtest.Protected(t, blindCollation, smallTables)
}

// TestInspect reads one of everything.
func TestInspect(t *testing.T) {
	p := small(t)
	p.Exec(t, `CREATE VIEW a_view AS SELECT 1 AS n; CREATE MATERIALIZED VIEW a_matview AS SELECT 1 AS n; CREATE TABLE parent (id int PRIMARY KEY);
		CREATE TABLE child () INHERITS (parent); CREATE SCHEMA "Odd.Name"; CREATE TABLE "Odd.Name"."a""b" (n int);
		CREATE TABLE keys (a int, b int, c int, d int, e int, f int UNIQUE DEFERRABLE, UNIQUE (a, b));
		CREATE TABLE notes (person int, kind int, at date, said text);
		CREATE INDEX ON notes (person, kind) INCLUDE (at); CREATE INDEX ON notes (person, at);
		CREATE INDEX ON notes ((person + 1)); CREATE INDEX ON notes (kind) WHERE at IS NULL; CREATE INDEX ON notes USING hash (kind);
		CREATE UNIQUE INDEX ON keys (c) WHERE d > 0; CREATE UNIQUE INDEX ON keys ((d + 1)); CREATE UNIQUE INDEX ON keys (e) INCLUDE (a)`)
	policy, problems := Parse(smallPolicy)
	if len(problems) > 0 {
		t.Fatal(errors.Join(problems...))
	}
	schema, err := Inspect(t.Context(), pgtest.PoolOf(t, p.ReaderDSN), policy)
	if err != nil {
		t.Fatal(err, errors.Unwrap(err))
	}
	table := func(schemaName, name string) *TableInfo {
		info, ok := schema.Table(TableName{schemaName, name})
		if !ok {
			t.Fatalf("table %s is missing", name)
		}
		return info
	}
	for name, want := range map[string]Type{"id": Int4, "age": Int2, "mood": Enum, "region": Text, "salary": Numeric, "photo": "",
		"nick": "", "code": Char, "born": Date} {
		c, ok := table("public", "people").Column(name)
		if !ok || c.Type != want {
			t.Errorf("people.%s has the type %q, want %q", name, c.Type, want)
		}
	}
	salary, _ := table("public", "people").Column("salary")
	code, _ := table("public", "people").Column("code")
	mood, _ := table("public", "people").Column("mood")
	born, _ := table("public", "people").Column("born")
	if salary.Scale != 2 || code.MaxLength != 3 || mood.Enum != "public.mood" || fmt.Sprint(mood.EnumValues) != "[sad ok]" ||
		!born.NotNull || salary.NotNull {
		t.Errorf("got %+v, %+v, %+v, %+v", salary, code, mood, born)
	}
	if got := fmt.Sprint(table("public", "keys").Unique); got != "[e f]" {
		t.Errorf("columns that are unique by themselves: %s, want [e f]", got)
	}
	if got := fmt.Sprint(table("public", "keys").Keys); got != "[[a b]]" {
		t.Errorf("columns that are unique together: %s, want [[a b]]", got)
	}
	if got := fmt.Sprint(table("public", "notes").Indexes); got != "[[person at] [person kind at]]" {
		t.Errorf("columns of indexes: %s, want [[person at] [person kind at]]", got)
	}
	if got := fmt.Sprint(table("public", "visits").ForeignKeys); got != "[{person_id people id}]" {
		t.Errorf("foreign keys: %s", got)
	}
	for name, want := range map[string]RelationKind{"a_view": "view", "a_matview": "materialized view", "visits": PartitionedTable,
		"visits_2024": PlainTable} {
		if got := table("public", name).Kind; got != want {
			t.Errorf("%s is a %q, want %q", name, got, want)
		}
	}
	if !table("public", "parent").Inherited || table("public", "child").Inherited || table("public", "visits").Inherited {
		t.Error("inheritance is not seen as it is")
	}
	if got, want := table("public", "visits_2024").PartOf, []uint32{table("public", "visits").OID}; !slices.Equal(got, want) ||
		len(table("public", "child").PartOf) > 0 {
		t.Errorf("visits_2024 is a partition of %d, want %d; child is of %d, want none", got, want, table("public", "child").PartOf)
	}
	if table("Odd.Name", `a"b`).Readable || !table("public", "people").Readable {
		t.Error("rights to read are not seen as they are")
	}
	if got := fmt.Sprint(schema.Domains); got != "[{{regions name} [{north false} {south false}]}]" {
		t.Errorf("domains: %s", got)
	}
}

// TestDriftIsSeen changes a table in each way that a policy relies on it not to.
//
// covers: A59
func TestDriftIsSeen(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	for _, c := range []struct{ name, ddl, change string }{
		{"nothing", "SELECT 1", ""},
		{"new column", "ALTER TABLE people ADD COLUMN more int", ""},
		{"new table", "CREATE TABLE more (n int)", ""},
		{"new index", "CREATE INDEX ON people (age)", ""},
		{"new rows", "INSERT INTO people (id, born) VALUES (1, '2024-01-01')", ""},
		{"new domain value", "INSERT INTO regions VALUES ('east')", ""},
		{"dropped", "DROP TABLE visits", "table visits is gone"},
		{"renamed", "ALTER TABLE visits RENAME TO visitors", "table visits is gone"},
		{"moved", "CREATE SCHEMA other; ALTER TABLE visits SET SCHEMA other", "table visits is gone"},
		{"replaced", "ALTER TABLE visits RENAME TO old; CREATE TABLE visits (id int, person_id int REFERENCES people, day date); GRANT " +
			"SELECT ON visits TO noisegate_reader",
			"table visits was replaced"},
		{"by a view",
			"ALTER TABLE visits RENAME TO old; CREATE VIEW visits AS SELECT * FROM old; GRANT SELECT ON visits TO noisegate_reader",
			"table visits was replaced"},
		{"column dropped", "ALTER TABLE people DROP COLUMN region", "column people.region is gone"},
		{"column renamed", "ALTER TABLE people RENAME COLUMN region TO area", "column people.region is gone"},
		{"column replaced", "ALTER TABLE people DROP COLUMN region; ALTER TABLE people ADD COLUMN region text",
			"column people.region is gone or was replaced"},
		{"columns swapped", "ALTER TABLE people RENAME COLUMN region TO x; ALTER TABLE people RENAME COLUMN nick TO region; ALTER TABLE " +
			"people RENAME COLUMN x TO nick", "column people.region is gone or was replaced"},
		{"type", "ALTER TABLE people ALTER COLUMN region TYPE varchar(9)", "column people.region has another type"},
		{"scale", "ALTER TABLE people ALTER COLUMN salary TYPE numeric(9, 3)", "column people.salary has another type"},
		{"enum value", "ALTER TYPE mood ADD VALUE 'happy'", "column people.mood has another type"},
		{"null", "ALTER TABLE people ALTER COLUMN born DROP NOT NULL", "column people.born may be null now"},
		{"key", "ALTER TABLE people DROP CONSTRAINT people_pkey CASCADE", "column people.id is no longer unique"},
		{"path", "ALTER TABLE visits DROP CONSTRAINT visits_person_id_fkey", "the foreign key of visits.person_id is gone"},
		{"inherited", "CREATE TABLE child () INHERITS (people)", "table people has got inheriting tables"},
		{"partition of a table without policy", "CREATE TABLE world (name varchar(20) NOT NULL) PARTITION BY LIST (name); ALTER TABLE " +
			"world ATTACH PARTITION regions DEFAULT", ""},
		{"partition of a table of the policy", "ALTER TABLE visits ATTACH PARTITION more_visits DEFAULT",
			"table more_visits has become a partition of table visits"},
		{"unreadable", "REVOKE SELECT ON people FROM noisegate_reader", "table people can no longer be read"},
		{"schema closed", "REVOKE USAGE ON SCHEMA public FROM PUBLIC, noisegate_reader", "can no longer be read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := small(t)
			revision := inForce(t, p)
			p.Exec(t, c.ddl)
			err := NewWatch(pgtest.PoolOf(t, p.ReaderDSN)).Recheck(t.Context(), revision)
			switch {
			case c.change == "" && err != nil:
				t.Errorf("got %v (%v), want no drift", err, errors.Unwrap(err))
			case c.change != "" && (fault.CodeOf(err) != fault.CodePolicyStale || !strings.Contains(errors.Unwrap(err).Error(), c.change)):
				t.Errorf("got %v (%v), want policy/stale because %s", err, errors.Unwrap(err), c.change)
			}
			if err != nil && strings.Contains(err.Error(), "people") {
				t.Errorf("%v tells analysts of the schema", err)
			}
		})
	}
}

// inForce gives the small policy as if it had been applied and loaded.
func inForce(t *testing.T, p *pgtest.ProtectedDatabase) *Revision {
	t.Helper()
	policy, problems := Parse(smallPolicy)
	if len(problems) > 0 {
		t.Fatal(errors.Join(problems...))
	}
	schema, err := Inspect(t.Context(), pgtest.PoolOf(t, p.ReaderDSN), policy)
	if err != nil {
		t.Fatal(err, errors.Unwrap(err))
	}
	snapshot, problems := Check(policy, schema)
	if len(problems) > 0 {
		t.Fatal(errors.Join(problems...))
	}
	return &Revision{Snapshot: snapshot, Policy: policy, Pinned: schema.For(policy)}
}

// TestStoreVersions walks through a policy's life.
func TestStoreVersions(t *testing.T) {
	p, store := small(t), newStore(t)
	if _, err := store.Load(t.Context(), "small"); fault.CodeOf(err) != fault.CodeUnknownDataset {
		t.Errorf("loading what is not there: %v", err)
	}
	schema := func() *Schema { return inForce(t, p).Pinned }
	apply := func(document string, replaces int64) (*Revision, bool, error) {
		policy, problems := Parse(document)
		if len(problems) > 0 {
			t.Fatal(errors.Join(problems...))
		}
		return store.Apply(t.Context(), Application{Policy: policy, Schema: schema(), By: "stella", Replaces: replaces})
	}
	changedPolicy := strings.Replace(smallPolicy, "[0, 120]", "[0, 99]", 1)
	for i, c := range []struct {
		document string
		replaces int64
		version  int64 // 0: policy/conflict
		changed  bool
	}{
		{smallPolicy, 1, 0, false},
		{smallPolicy, 0, 1, true},
		{smallPolicy, 0, 0, false},
		{smallPolicy, 1, 1, false},
		{"# a comment\n" + smallPolicy, AnyVersion, 1, false},
		{changedPolicy, 2, 0, false},
		{changedPolicy, 1, 2, true},
		{smallPolicy, AnyVersion, 3, true},
	} {
		r, changed, err := apply(c.document, c.replaces)
		switch {
		case c.version == 0 && fault.CodeOf(err) != fault.CodePolicyConflict:
			t.Errorf("step %d: got %v, want policy/conflict", i, err)
		case c.version != 0 && (err != nil || r.Snapshot.Version != c.version || changed != c.changed):
			t.Errorf("step %d: got %v, changed %v, %v; want version %d, changed %v", i, r, changed, err, c.version, c.changed)
		}
	}
	// The same file on another schema is another version: the snapshot is another.
	p.Exec(t, "INSERT INTO regions VALUES ('east')")
	r, changed, err := apply(smallPolicy, AnyVersion)
	if err != nil || !changed || r.Snapshot.Version != 4 {
		t.Errorf("after the domain grew: %v, changed %v, %v; want version 4", r, changed, err)
	}
	loaded, err := store.Load(t.Context(), "small")
	if err != nil || loaded.Snapshot.Version != 4 || loaded.AppliedBy != "stella" || loaded.Policy.Document != smallPolicy ||
		loaded.AppliedAt.IsZero() {
		t.Errorf("loaded %+v, %v", loaded, err)
	}
	if !strings.Contains(describe(loaded.Snapshot), "people.region keys east north south") {
		t.Errorf("the domain was not frozen:\n%s", describe(loaded.Snapshot))
	}
	history, err := store.History(t.Context(), "small")
	if err != nil || len(history) != 4 || history[0].Version != 4 || history[0].Digest != loaded.Snapshot.Digest ||
		history[1].Digest != history[3].Digest {
		t.Errorf("history %+v, %v", history, err)
	}
	bad, _ := Parse(strings.Replace(smallPolicy, "row: id", "row: age", 1))
	if _, _, err := store.Apply(t.Context(), Application{Policy: bad, Schema: schema(), By: "stella",
		Replaces: AnyVersion}); fault.CodeOf(err) != fault.CodePolicyInvalid {
		t.Errorf("an invalid policy: %v", err)
	}
}

// TestStoreRaces: of many who replace the same version, one wins; of many who replace any, all do, one after another.
func TestStoreRaces(t *testing.T) {
	p, store := small(t), newStore(t)
	schema := inForce(t, p).Pinned
	race := func(replaces int64) (won, conflicts int) {
		errs := make(chan error)
		for i := range 8 {
			document := strings.Replace(smallPolicy, "[0, 120]", fmt.Sprintf("[%d, 120]", i-int(replaces)*100), 1)
			go func() {
				policy, _ := Parse(document)
				_, _, err := store.Apply(t.Context(), Application{Policy: policy, Schema: schema, By: "stella", Replaces: replaces})
				errs <- err
			}()
		}
		for range 8 {
			switch err := <-errs; {
			case err == nil:
				won++
			case fault.CodeOf(err) == fault.CodePolicyConflict:
				conflicts++
			default:
				t.Error(err, errors.Unwrap(err))
			}
		}
		return won, conflicts
	}
	if won, conflicts := race(0); won != 1 || conflicts != 7 {
		t.Errorf("%d won and %d conflicts, want 1 and 7", won, conflicts)
	}
	if won, conflicts := race(AnyVersion); won != 8 || conflicts != 0 {
		t.Errorf("%d won and %d conflicts, want 8 and 0", won, conflicts)
	}
	if history, err := store.History(t.Context(), "small"); err != nil || len(history) != 9 {
		t.Errorf("%d versions, %v; want 9", len(history), err)
	}
}

// TestEditedPolicyDoesNotTakeForce: the table refuses edits, and a row edited in spite of that is noticed.
//
// covers: F13
func TestEditedPolicyDoesNotTakeForce(t *testing.T) {
	p, control := small(t), pgtest.Control(t)
	store := writing(pgtest.PoolOf(t, control.LedgerDSN))
	if _, _, err := apply(t, p, store, smallPolicy); err != nil {
		t.Fatal(err)
	}
	for _, edit := range []string{
		"UPDATE noisegate.policy SET version = 7", "DELETE FROM noisegate.policy", "TRUNCATE noisegate.policy",
	} {
		for _, dsn := range []string{control.LedgerDSN, control.OwnerDSN, control.DSN} {
			if _, err := control.Conn(t, dsn).Exec(t.Context(), edit); err == nil {
				t.Fatalf("%s was let through", edit)
			}
		}
	}
	for _, edit := range []string{
		"document = replace(document, '[0, 120]', '[0, 121]')", "metadata = jsonb_set(metadata, '{Tables,0,OID}', '1')",
		"digest = sha256('')", "document = 'nonsense'", "metadata = '[]'",
	} {
		control.Exec(t, "CREATE TABLE original AS TABLE noisegate.policy",
			"SET session_replication_role = replica; UPDATE noisegate.policy SET "+edit)
		if _, err := store.Load(t.Context(), "small"); err == nil {
			t.Errorf("a policy with %s took force", edit)
		}
		control.Exec(t, "SET session_replication_role = replica; DELETE FROM noisegate.policy; INSERT INTO noisegate.policy TABLE original",
			"DROP TABLE original")
		if _, err := store.Load(t.Context(), "small"); err != nil {
			t.Fatalf("the original does not load: %v", err)
		}
	}
}

// TestUnreachableDatabases: what cannot be reached is data/unavailable, and the text says nothing of it.
//
// covers: F10
func TestUnreachableDatabases(t *testing.T) {
	p, control := small(t), pgtest.Control(t)
	pool, revision := pgtest.PoolOf(t, p.ReaderDSN), inForce(t, p)
	store := writing(pgtest.PoolOf(t, control.LedgerDSN))
	for _, d := range []*pgtest.Database{p.Database, control.Database} {
		pgtest.New(t).Exec(t, "DROP DATABASE "+d.Name+" WITH (FORCE)")
	}
	_, inspect := Inspect(t.Context(), pool, nil)
	_, load := store.Load(t.Context(), "small")
	_, history := store.History(t.Context(), "small")
	_, _, apply := store.Apply(t.Context(), Application{Policy: revision.Policy, Schema: revision.Pinned, By: "stella", Replaces: AnyVersion})
	for name, err := range map[string]error{"inspect": inspect, "recheck": NewWatch(pool).Recheck(t.Context(), revision), "load": load,
		"history": history, "apply": apply} {
		if fault.CodeOf(err) != fault.CodeDataUnavailable || strings.Contains(err.Error(), "noisegate_test") {
			t.Errorf("%s: got %v, want data/unavailable without a name", name, err)
		}
	}
}

// A table that was protected once does not become public, by whichever way of versions; what is public stays so, and what
// never was protected becomes public.
//
// covers: A76
func TestProtectedTablesStayProtected(t *testing.T) {
	p, store := small(t), newStore(t)
	const people, public = "  more_visits: {unit: {column: person_id}}\n", "  more_visits: {public: true}\n"
	with := func(table string) string { return strings.Replace(smallPolicy, people, table, 1) }
	for i, c := range []struct {
		document string
		refused  bool
	}{
		{document: with("")},
		{document: with(public)}, // it never was protected
		{document: with(people)},
		{document: with(public), refused: true},
		{document: with("")},
		{document: with(public), refused: true},
		{document: with(people)},
	} {
		policy, problems := Parse(c.document)
		if len(problems) > 0 {
			t.Fatal(errors.Join(problems...))
		}
		schema, err := Inspect(t.Context(), pgtest.PoolOf(t, p.ReaderDSN), policy)
		if err != nil {
			t.Fatal(err)
		}
		before, err := store.History(t.Context(), "small")
		if err != nil {
			t.Fatal(err)
		}
		_, review := store.Review(t.Context(), policy, schema)
		_, _, err = apply(t, p, store, c.document)
		for name, err := range map[string]error{"review": review, "apply": err} {
			if refused := fault.CodeOf(err) == fault.CodePolicyInvalid && strings.Contains(err.Error(), "more_visits"); refused != c.refused ||
				err != nil && !refused {
				t.Errorf("version %d, %s: %v", i+1, name, err)
			}
		}
		after, err := store.History(t.Context(), "small")
		if err != nil || (len(after) == len(before)) != c.refused {
			t.Errorf("version %d: %d versions after %d, %v", i+1, len(after), len(before), err)
		}
	}
}

// History lists all versions of a dataset's policy, newest first.
func (s *Store) History(ctx context.Context, dataset string) ([]Applied, error) {
	rows, err := s.pool.Query(ctx, `SELECT version, digest, applied_by, applied_at FROM noisegate.policy
		WHERE dataset = $1 ORDER BY version DESC`, dataset)
	if err != nil {
		return nil, unavailable("cannot list policies", err)
	}
	history, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (a Applied, err error) {
		var sum []byte
		err = row.Scan(&a.Version, &sum, &a.By, &a.At)
		copy(a.Digest[:], sum)
		return a, err
	})
	if err != nil {
		return nil, unavailable("cannot list policies", err)
	}
	return history, nil
}
