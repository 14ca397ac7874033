package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"noisegate.example/internal/fault"
	"noisegate.example/internal/pgserver"
	"noisegate.example/internal/pgtest"
)

// A policy is accepted only where the schema proves what it says. Each case is one schema with two policies: one that is refused, and one
// that adds what the schema does not say.
//
// needs: postgres
// covers: P1 P2 P3 P4 R1
func TestSchemaProvesThePolicy(t *testing.T) {
	const staff = "CREATE TABLE staff (id int PRIMARY KEY, wage int); CREATE TABLE people (id int PRIMARY KEY, seller int REFERENCES staff)"
	for _, c := range []struct{ name, ddl, refused, why, accepted string }{
		{
			"P1 row level security", "CREATE TABLE people (id int PRIMARY KEY); ALTER TABLE people ENABLE ROW LEVEL SECURITY",
			"people: {unit: {row: id}}", "people has row level security",
			"people: {unit: {row: id}, row_security: per-row}",
		},
		{
			"P1 row level security of a public table", "CREATE TABLE people (id int PRIMARY KEY); CREATE TABLE zones (id int); ALTER TABLE " +
				"zones ENABLE ROW LEVEL SECURITY",
			"{people: {unit: {row: id}}, zones: {public: true}}", "zones has row level security",
			"{people: {unit: {row: id}}, zones: {public: true, row_security: per-row}}",
		},
		{
			"P2 a row below a person", "CREATE TABLE people (id int PRIMARY KEY); CREATE TABLE orders (id int PRIMARY KEY, buyer int " +
				"REFERENCES people)",
			"{people: {unit: {row: id}}, orders: {unit: {row: id}}}",
			`a foreign key leads from orders, whose units are of the kind "orders", to people`,
			"{people: {unit: {row: id}}, orders: {unit: {column: buyer}, max_rows: 3, max_groups: 1}}",
		},
		{
			"P2 units of another kind", staff,
			"{people: {unit: {row: id}}, staff: {unit: {row: id}}}", `would not be protected`,
			"{people: {unit: {row: id}, not_covered: [staff]}, staff: {unit: {row: id}}}",
		},
		{
			"P2 the same people under two names", staff,
			"{people: {unit: {row: id}}, staff: {unit: {row: id}}}", `would not be protected`,
			"{people: {unit: {row: id, of: person}}, staff: {unit: {row: id, of: person}}}",
		},
		{
			"P2 a kind that no foreign key leads to", staff,
			"{people: {unit: {row: id}, not_covered: [staff, dogs]}, staff: {unit: {row: id}}}", `not_covered names the kind "dogs"`,
			"{people: {unit: {row: id}, not_covered: [staff]}, staff: {unit: {row: id}}}",
		},
		{
			"P2 through a table that the policy does not name",
			"CREATE TABLE staff (id int PRIMARY KEY); CREATE TABLE tills (id int PRIMARY KEY, who int REFERENCES staff); CREATE TABLE people " +
				"(id int PRIMARY KEY, till int REFERENCES tills)",
			"{people: {unit: {row: id}}, staff: {unit: {row: id}}}", `to staff, whose units are of the kind "staff"`,
			"{people: {unit: {row: id}, not_covered: [staff]}, staff: {unit: {row: id}}}",
		},
		{
			"P3 a public table of people", "CREATE TABLE people (id int PRIMARY KEY); CREATE TABLE notes (who int REFERENCES people, said text)",
			"{people: {unit: {row: id}}, notes: {public: true}}", "table notes is public, and a foreign key leads from it to people",
			"{people: {unit: {row: id}}, notes: {public: declassified}}",
		},
		{
			"P3 by a key of two columns, not validated",
			"CREATE TABLE people (id int PRIMARY KEY, v int, UNIQUE (id, v)); CREATE TABLE notes (who int, v int); ALTER TABLE notes ADD " +
				"FOREIGN KEY (who, v) REFERENCES people (id, v) NOT VALID",
			"{people: {unit: {row: id}}, notes: {public: true}}", "table notes is public, and a foreign key leads from it to people",
			"{people: {unit: {row: id}}, notes: {unit: {column: who, of: people}, max_rows: 2, max_groups: 2}}",
		},
		{
			"P3 through a public table and one that the policy does not name",
			`CREATE TABLE people (id int PRIMARY KEY); CREATE TABLE a (id int PRIMARY KEY, p int REFERENCES people); CREATE TABLE b (id int PRIMARY KEY, a int REFERENCES a);
			CREATE TABLE c (id int PRIMARY KEY, b int REFERENCES b)`,
			"{people: {unit: {row: id}}, b: {public: declassified}, c: {public: true}}", "table c is public",
			"{people: {unit: {row: id}}, b: {public: declassified}, c: {public: declassified}}",
		},
		{
			"P3 by a partition's key into a partition",
			`CREATE TABLE people (id int PRIMARY KEY) PARTITION BY RANGE (id); CREATE TABLE people_1 PARTITION OF people FOR VALUES FROM (0) TO (9);
			CREATE TABLE notes (who int) PARTITION BY RANGE (who); CREATE TABLE notes_1 PARTITION OF notes FOR VALUES FROM (0) TO (9); ALTER TABLE notes_1 ADD FOREIGN KEY (who) REFERENCES people_1`,
			"{people: {unit: {row: id}}, notes: {public: true}}", "table notes is public",
			"{people: {unit: {row: id}}, notes: {public: declassified}}",
		},
		{
			"P4 a foreign table among partitions",
			`CREATE FOREIGN DATA WRAPPER nowhere; CREATE SERVER away FOREIGN DATA WRAPPER nowhere; CREATE TABLE visits (who int, day int) PARTITION BY RANGE (day);
			CREATE TABLE near PARTITION OF visits FOR VALUES FROM (0) TO (9); CREATE FOREIGN TABLE far PARTITION OF visits FOR VALUES FROM (9) TO (99) SERVER away`,
			"visits: {unit: {column: who}, max_rows: 2, max_groups: 2}", "partitions of visits are foreign tables",
			"near: {unit: {column: who}, max_rows: 2, max_groups: 2}",
		},
		{
			"P4 a collation that takes different texts for equal", "CREATE TABLE people (id text COLLATE blind PRIMARY KEY, nr int UNIQUE NOT NULL)",
			"people: {unit: {row: id}}", "which cannot identify a privacy unit",
			"people: {unit: {row: nr}}",
		},
		{
			"R1 inheriting tables", "CREATE TABLE people (id int PRIMARY KEY); CREATE TABLE more () INHERITS (people)",
			"people: {unit: {row: id}}", "other tables inherit from people",
			"more: {unit: {column: id}, max_rows: 2, max_groups: 2}",
		},
		{
			"a type with casts of its own",
			`CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE FUNCTION tell(mood) RETURNS text LANGUAGE sql AS $$ SELECT 1 / 0 || 'x' $$; CREATE CAST (mood AS text) WITH FUNCTION tell(mood);
			CREATE TABLE people (id int PRIMARY KEY, mood mood)`,
			"people: {unit: {row: id}, columns: {mood: {domain: [sad, ok]}}}", "mood (with casts of its own), which is not supported",
			"people: {unit: {row: id}}",
		},
		{
			"a domain that NULL may not pass", "CREATE DOMAIN sure AS int NOT NULL; CREATE DOMAIN surer AS sure; CREATE TABLE people (id int " +
				"PRIMARY KEY, a surer)",
			"people: {unit: {row: id}, columns: {a: {bounds: [0, 9]}}}", "surer (a domain that NULL may not pass), which is not supported",
			"people: {unit: {row: id}}",
		},
		{
			"a domain that asks somebody's function, or for NULL", `CREATE FUNCTION fine(int) RETURNS boolean LANGUAGE sql AS $$ SELECT $1 / 0 > 1 $$; CREATE DOMAIN asks AS int CHECK (fine(VALUE));
			CREATE DOMAIN there AS text CHECK (VALUE IS NOT NULL); CREATE DOMAIN plain AS int CHECK (VALUE >= 0 AND VALUE < 9 OR VALUE IN (77, 78)); CREATE TABLE people (id int PRIMARY KEY, a asks, b there, c plain)`,
			"people: {unit: {row: id}, columns: {a: {bounds: [0, 9]}, b: {keys: private}}}", "there (a domain that NULL may not pass)",
			"people: {unit: {row: id}, columns: {c: {bounds: [0, 9]}}}",
		},
		{
			"a path by a foreign key that was not validated",
			"CREATE TABLE people (id int PRIMARY KEY); CREATE TABLE visits (who int); ALTER TABLE visits ADD FOREIGN KEY (who) REFERENCES " +
				"people NOT VALID",
			"{people: {unit: {row: id}}, visits: {unit: {via: who, to: people}, max_rows: 2, max_groups: 2}}",
			"column who of table visits has no foreign key to people",
			"{people: {unit: {row: id}}, visits: {unit: {column: who, of: people}, max_rows: 2, max_groups: 2}}",
		},
		{
			"what only is called like a type of PostgreSQL's", `CREATE DOMAIN public.uuid AS int CHECK (VALUE > 0); CREATE TYPE public.text AS ENUM ('x'); CREATE TABLE people (id int PRIMARY KEY, a public.uuid, b public.text)`,
			"people: {unit: {row: id}, columns: {b: {domain: [y]}}}", "has no such value",
			"people: {unit: {row: id}, columns: {a: {bounds: [0, 9]}, b: {domain: [x]}}}",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := pgtest.Protected(t, blindCollation, c.ddl)
			pool := pgtest.PoolOf(t, p.ReaderDSN)
			if _, problems := checkTables(t, pool, c.refused); !strings.Contains(fmt.Sprint(problems), c.why) {
				t.Errorf("%s: got %v, want a refusal because %s", c.refused, problems, c.why)
			}
			if _, problems := checkTables(t, pool, c.accepted); len(problems) > 0 {
				t.Errorf("%s: got %v, want it accepted", c.accepted, problems)
			}
		})
	}
}

// checkTables holds a policy of these tables against a live schema.
func checkTables(t *testing.T, pool *pgxpool.Pool, tables string) (*Snapshot, []error) {
	t.Helper()
	policy, problems := parseTables(tables)
	if len(problems) > 0 {
		return nil, problems
	}
	schema, err := Inspect(t.Context(), pool, policy)
	if err != nil {
		t.Fatal(err, errors.Unwrap(err))
	}
	return checkPolicy(t, policy, schema)
}

func parseTables(tables string) (*Policy, []error) {
	if !strings.HasPrefix(tables, "{") {
		tables = "{" + tables + "}"
	}
	return Parse("version: 1\ndataset: small\ntables: " + tables + "\nbudgets: [{dataset: true, form: pure, epsilon: 20}]\n")
}

// checkPolicy holds a policy against a schema, as it was read and as it is stored.
func checkPolicy(t *testing.T, policy *Policy, schema *Schema) (*Snapshot, []error) {
	t.Helper()
	snapshot, problems := Check(policy, schema)
	if len(problems) > 0 {
		return nil, problems
	}
	if stored, again := Check(policy, storedSchema(t, schema.For(policy))); len(again) > 0 || stored.Digest != snapshot.Digest {
		t.Errorf("%v: what was stored is another policy: %v", policy.Tables, again)
	}
	return snapshot, nil
}

// storedSchema is a schema as it comes back from where policies are kept.
func storedSchema(t *testing.T, s *Schema) *Schema {
	t.Helper()
	again, err := decodeSchema(s.encode())
	if err != nil {
		t.Fatal(err)
	}
	return again
}

// A column of a domain is supported only where PostgreSQL lets NULL pass the domain's checks, and is where the checks are ranges, lists,
// lengths and forms.
//
// needs: postgres
func TestDomainsThatNullPasses(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	usual := map[string][]string{
		"numeric(4,3)": {"VALUE BETWEEN 0 AND 1", "VALUE IN (0, 0.5, 1)", "abs(VALUE) <= 1", "round(VALUE, 1) = VALUE OR VALUE < 0"},
		"integer":      {"VALUE >= 0", "VALUE IN (1, 2)", "VALUE % 2 = 0", "abs(VALUE) < 9", "VALUE::bigint < 9"},
		"text":         {"length(VALUE) < 9", "VALUE = upper(VALUE)", "VALUE ~ '^[a-z]*$'", "substr(VALUE, 1, 1) <> ' '"},
		"varchar(5)":   {"char_length(VALUE) > 0", "VALUE IN ('a', 'b')", "lower(VALUE) = 'a' AND NOT VALUE LIKE '%b'"},
		"date":         {"VALUE >= '2000-01-01'", "date_part('year', VALUE) > 1999"},
	}
	other := []string{"concat(VALUE) <> ''", "coalesce(VALUE::text, '') <> ''", "VALUE IS NOT NULL", "num_nulls(VALUE) = 0", "random() < 0",
		"VALUE IS DISTINCT FROM NULL", "own(VALUE::text)", "ARRAY[VALUE::text] = ARRAY['a']",
		"ARRAY['a'] || VALUE::text = ARRAY['a', 'b']", "ARRAY[array_to_string(ARRAY['b'], ''), VALUE::text] = ARRAY['b', 'a']",
		"ARRAY[repeat('b', cardinality(ARRAY[1])), VALUE::text] = ARRAY['b', 'a']"}
	conn := pgtest.Protected(t, "CREATE FUNCTION own(text) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT $1 IS NOT NULL'")
	type domain struct {
		name, of, check string
		usual           bool
	}
	var domains []domain
	var ddl strings.Builder
	for of, checks := range usual {
		for i, check := range append(slices.Clone(checks), other...) {
			d := domain{fmt.Sprintf("d%d", len(domains)), of, check, i < len(checks)}
			domains = append(domains, d)
			fmt.Fprintf(&ddl, "CREATE DOMAIN %[1]s AS %[2]s CHECK (%[3]s); CREATE TABLE t%[1]s (id int PRIMARY KEY, a %[1]s); ", d.name, of, check)
		}
	}
	conn.Exec(t, ddl.String())
	conn.Grant(t)
	schema, err := Inspect(t.Context(), pgtest.PoolOf(t, conn.ReaderDSN), nil)
	if err != nil {
		t.Fatal(err, errors.Unwrap(err))
	}
	pool := pgtest.PoolOf(t, conn.DSN)
	for _, d := range domains {
		policy, problems := parseTables(fmt.Sprintf("t%s: {unit: {row: id}, columns: {a: {keys: private}}}", d.name))
		if len(problems) == 0 {
			_, problems = checkPolicy(t, policy, schema)
		}
		_, err := pool.Exec(t.Context(), "SELECT NULL::"+d.name)
		switch unsupported := strings.Contains(fmt.Sprint(problems), "NULL may not pass"); {
		case !unsupported && err != nil:
			t.Errorf("%s CHECK (%s) is supported, and refuses NULL: %v", d.of, d.check, err)
		case unsupported && d.usual:
			t.Errorf("%s CHECK (%s) is not supported: %v", d.of, d.check, problems)
		}
	}
}

// A column whose type was not supported when the policy was applied, and is by a later version, makes no policy stale; the reverse does.
func TestTypesThatAreSupportedLater(t *testing.T) {
	schema := func(of Type) *Schema {
		return &Schema{Tables: []*TableInfo{{TableName: TableName{"public", "people"}, Readable: true,
			Columns: []*ColumnInfo{{Name: "a", Type: of}}}}}
	}
	if err := schema("").Drift(schema(Numeric)); err != nil {
		t.Error(err)
	}
	if schema(Numeric).Drift(schema("")) == nil {
		t.Error("a type that is no longer supported is no change")
	}
}

// Kinds of units follow foreign keys, then names; what is about two units of one kind is said, and nothing more.
//
// needs: postgres
// covers: P2
func TestKindsOfUnits(t *testing.T) {
	p := pgtest.Protected(t, `CREATE TABLE people (id int PRIMARY KEY, friend int REFERENCES people, mail text UNIQUE); CREATE TABLE details (id int PRIMARY KEY REFERENCES people);
		CREATE TABLE visits (nr int PRIMARY KEY, who int REFERENCES people, at int); CREATE TABLE items (visit int REFERENCES visits, who int REFERENCES people, what text);
		CREATE TABLE calls (who int, length int); CREATE TABLE hens (ring int, who int)`)
	snapshot, problems := checkTables(t, pgtest.PoolOf(t, p.ReaderDSN), `{people: {unit: {row: id}}, details: {unit: {row: id}}, visits: {unit: {column: who}, max_rows: 2, max_groups: 2},
		items: {unit: {via: visit, to: visits}, max_rows: 2, max_groups: 2}, calls: {unit: {column: who}, max_rows: 2, max_groups: 2}, hens: {unit: {column: ring}, max_rows: 2, max_groups: 2}}`)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if got, want := fmt.Sprint(snapshot.Kinds()), "[column ring: hens people: calls, details, items, people, visits]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	var warnings []string
	for _, w := range snapshot.Warnings {
		if text, _, ok := strings.Cut(w.Text, " beside"); ok {
			warnings = append(warnings, text)
		}
	}
	if got, want := fmt.Sprint(warnings), "[a foreign key leads from items to people a foreign key leads from people to people]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	var identities []string
	for _, table := range snapshot.Tables {
		for _, c := range table.Columns {
			if c.Identifies != "" {
				identities = append(identities, table.Name+"."+c.Name)
			}
		}
	}
	if got, want := fmt.Sprint(identities), "[calls.who details.id hens.ring items.visit items.who people.id people.friend people.mail "+
		"visits.nr visits.who]"; got != want {
		t.Errorf("columns that identify a unit: %s, want %s", got, want)
	}
}

// What a policy would be refused for when it is applied makes it stale when it comes later.
//
// needs: postgres
// covers: P1 P3 P4 R1
func TestWhatComesLaterMakesAPolicyStale(t *testing.T) {
	for name, c := range map[string]struct{ ddl, change string }{
		"row level security":     {"ALTER TABLE people ENABLE ROW LEVEL SECURITY", "people has row level security"},
		"inherited":              {"CREATE TABLE child (LIKE more_visits); ALTER TABLE child INHERIT more_visits", "inheriting tables"},
		"public table of people": {"ALTER TABLE regions ADD COLUMN who int REFERENCES people", "table regions is public"},
		"collation":              {"ALTER TABLE people ALTER region TYPE text COLLATE blind", "column people.region has another type"},
		"casts": {"CREATE FUNCTION tell(mood) RETURNS text LANGUAGE sql AS $$ SELECT 'x' $$; CREATE CAST (mood AS " +
			"text) WITH FUNCTION tell(mood)", "column people.mood has another type"},
		"path no longer validated": {"ALTER TABLE visits DROP CONSTRAINT visits_person_id_fkey; ALTER TABLE visits_2024 ADD FOREIGN KEY " +
			"(person_id) REFERENCES people NOT VALID", "the foreign key of visits.person_id is gone"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := small(t)
			revision := inForce(t, p)
			pool := pgtest.PoolOf(t, p.ReaderDSN)
			if err := NewWatch(pool).Recheck(t.Context(), revision); err != nil {
				t.Fatalf("before: %v, %v", err, errors.Unwrap(err))
			}
			p.Exec(t, c.ddl)
			err := NewWatch(pool).Recheck(t.Context(), revision)
			if fault.CodeOf(err) != fault.CodePolicyStale || !strings.Contains(errors.Unwrap(err).Error(), c.change) {
				t.Errorf("got %v (%v), want policy/stale because %s", err, errors.Unwrap(err), c.change)
			}
		})
	}
}

// newest is a database of the newest PostgreSQL, fetched where it is not installed.
func newest(t *testing.T, ddl ...string) *pgxpool.Pool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // to fetch 15 MB and start a server
	defer cancel()
	programs, err := pgserver.Find(ctx, pgserver.Wanted{Version: 18})
	if err != nil {
		t.Fatal(err)
	}
	server, err := pgserver.Start(ctx, pgserver.Options{Programs: programs, Cached: true, Memory: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	pool := pgtest.PoolOf(t, server.DSN(pgserver.Superuser, "postgres"))
	for _, text := range ddl {
		if _, err := pool.Exec(ctx, text); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
	}
	return pool
}

// What PostgreSQL 18 brought: columns that are computed when they are read, and constraints that nobody looked at or that are not enforced.
//
// covers: P5 P6
func TestSchemaOfPostgreSQL18(t *testing.T) {
	pool := newest(t, `CREATE TABLE people (id int PRIMARY KEY, x int, inv int GENERATED ALWAYS AS (100 / x) VIRTUAL, kept int GENERATED ALWAYS AS (x + 1) STORED);
		CREATE TABLE loose (id int UNIQUE, x int); ALTER TABLE loose ADD CONSTRAINT there NOT NULL id NOT VALID;
		CREATE TABLE visits (who int, x int, CONSTRAINT c CHECK (x > 0) NOT ENFORCED, CONSTRAINT k FOREIGN KEY (who) REFERENCES people NOT ENFORCED)`)
	const path = "visits: {unit: {via: who, to: people}, max_rows: 2, max_groups: 2}"
	for _, c := range []struct{ tables, why string }{
		{"people: {unit: {row: id}, columns: {inv: {bounds: [0, 9]}}}", "column people.inv has the type integer (computed when it is read)"},
		{"people: {unit: {column: inv}, max_rows: 2, max_groups: 2}", "which cannot identify a privacy unit"},
		{"people: {unit: {row: id}, columns: {kept: {bounds: [0, 9]}}}", ""},
		{"loose: {unit: {row: id}}", "column id may be null"},
		{"{people: {unit: {row: id}}, " + path + "}", "column who of table visits has no foreign key to people"},
		{"{people: {unit: {row: id}}, visits: {public: true}}", "table visits is public"},
	} {
		snapshot, problems := checkTables(t, pool, c.tables)
		if (c.why == "") != (len(problems) == 0) || !strings.Contains(fmt.Sprint(problems), c.why) {
			t.Errorf("%s: got %v, want %q", c.tables, problems, c.why)
		}
		if people, ok := lookUp(snapshot, "people"); ok {
			if inv, _ := people.Column("inv"); inv.Exposed {
				t.Errorf("%s: a column that is computed when it is read exists for analysts", c.tables)
			}
		}
	}
	for _, text := range []string{"ALTER TABLE loose VALIDATE CONSTRAINT there", "ALTER TABLE visits ALTER CONSTRAINT k ENFORCED"} {
		if _, err := pool.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	for _, tables := range []string{"loose: {unit: {row: id}}", "{people: {unit: {row: id}}, " + path + "}"} {
		if _, problems := checkTables(t, pool, tables); len(problems) > 0 {
			t.Errorf("%s: %v, once the constraint holds", tables, problems)
		}
	}
}

func lookUp(s *Snapshot, table string) (*Table, bool) {
	if s == nil {
		return nil, false
	}
	return s.Table("", table)
}
