package pgexec_test

import (
	"fmt"
	"slices"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/gateway/pgexec"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/pgtest"
	"noisegate.example/sqlrewrite"
)

const provenDDL = `CREATE COLLATION blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE COLLATION other (provider = icu, locale = 'sv');
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TABLE people (id int PRIMARY KEY, name text, mood mood, code text COLLATE "C");
CREATE TABLE visits (who int, day int, CONSTRAINT u UNIQUE (who, day)) PARTITION BY RANGE (day);
CREATE TABLE visits_1 PARTITION OF visits FOR VALUES FROM (0) TO (9);
CREATE TABLE calls (who int, day int) PARTITION BY RANGE (day);
CREATE TABLE shops (id int PRIMARY KEY, boss int, name text);
CREATE FOREIGN DATA WRAPPER nowhere; CREATE SERVER away FOREIGN DATA WRAPPER nowhere`

const provenPolicy = `version: 1
dataset: d
tables:
  people: {unit: {row: id}, columns: {mood: {domain: [sad, ok]}, code: {keys: private}, name: {keys: private}}}
  visits: {unit: {column: who, of: people}, max_rows: 3, max_groups: 1}
  calls: {unit: {column: who, of: people}, max_rows: 3, max_groups: 1}
  shops: {public: true}
budgets:
  - {dataset: true, form: approx, epsilon: 10, delta: 1e-6}
`

// provenSnapshot is a policy that is in force.
func provenSnapshot(t *testing.T, d *pgexec.Database, document string) *catalog.Snapshot {
	t.Helper()
	policy, problems := catalog.Parse(document)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	schema, err := d.Inspect(t.Context(), policy)
	if err != nil {
		t.Fatal(err)
	}
	snapshot, problems := catalog.Check(policy, schema)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return snapshot
}

// provenPin pins all columns of a table, as a statement does that names them.
func provenPin(t *testing.T, s *catalog.Snapshot, table string) sqlrewrite.Precondition {
	t.Helper()
	of, ok := s.Table("", table)
	if !ok {
		t.Fatal(table)
	}
	pin := sqlrewrite.Precondition{Schema: of.Schema, Table: of.Name, OID: of.OID, RowSecurity: of.RowSecurity, Partitioned: of.Partitioned,
		Apart: of.Apart(), Keys: of.Unique}
	for _, c := range of.Columns {
		pin.Columns = append(pin.Columns, sqlrewrite.PreconditionColumn{Name: c.Name, AttNum: c.AttNum, TypeOID: c.TypeOID, TypMod: c.TypMod,
			Collation: c.Collation,
			NotNull:   of.Unit.Kind == catalog.RowUnit && c.Name == of.Unit.Column})
	}
	return pin
}

// What the schema proved when the policy was applied holds when a statement runs, by its own transaction; else it does
// not run, and is free.
//
// needs: postgres
// covers: P1 P3 P4 R1 A59
func TestPinsOfWhatTheSchemaProves(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	for name, c := range map[string]struct {
		table, change string
		holds         bool
	}{
		"nothing":                     {"people", "SELECT 1", true},
		"row security":                {"people", "ALTER TABLE people ENABLE ROW LEVEL SECURITY", false},
		"row security, public":        {"shops", "ALTER TABLE shops ENABLE ROW LEVEL SECURITY", false},
		"row security of a partition": {"visits", "ALTER TABLE visits_1 ENABLE ROW LEVEL SECURITY", true}, // is not asked through the whole table
		"inherited":                   {"people", "CREATE TABLE more (LIKE people); ALTER TABLE more INHERIT people", false},
		"a partition more":            {"visits", "CREATE TABLE visits_2 PARTITION OF visits FOR VALUES FROM (9) TO (99)", true},
		"a foreign partition":         {"calls", "CREATE FOREIGN TABLE far PARTITION OF calls DEFAULT SERVER away", false},
		"a foreign partition, deeper": {"calls", "CREATE TABLE calls_2 PARTITION OF calls DEFAULT PARTITION BY RANGE (who); CREATE " +
			"FOREIGN TABLE far PARTITION OF calls_2 DEFAULT SERVER away", false},
		"a blind collation": {"people", "ALTER TABLE people ALTER name TYPE text COLLATE blind", false},
		"another collation": {"people", "ALTER TABLE people ALTER code TYPE text COLLATE other", false},
		// the default was not recorded by earlier versions
		"another deterministic one": {"people", "ALTER TABLE people ALTER name TYPE text COLLATE other", true},
		"casts of an enum": {"people", "CREATE FUNCTION tell(mood) RETURNS text LANGUAGE sql AS $$ SELECT 'x' $$; CREATE CAST " +
			"(mood AS text) WITH FUNCTION tell(mood)", false},
		"a public table of people":    {"shops", "ALTER TABLE shops ADD FOREIGN KEY (boss) REFERENCES people", false},
		"one that is not looked at":   {"shops", "ALTER TABLE shops ADD FOREIGN KEY (boss) REFERENCES people NOT VALID", false},
		"a foreign key to one's kind": {"visits", "ALTER TABLE visits ADD FOREIGN KEY (who) REFERENCES people", true},
		"a foreign key of another's":  {"people", "ALTER TABLE visits ADD FOREIGN KEY (who) REFERENCES people", true},
		"a key that is gone":          {"visits", "ALTER TABLE visits DROP CONSTRAINT u", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := pgtest.Protected(t, provenDDL)
			d := open(t, p, nil)
			statement := sqlrewrite.Statement{SQL: "SELECT '1'", Values: 1,
				Preconditions: []sqlrewrite.Precondition{provenPin(t, provenSnapshot(t, d, provenPolicy), c.table)}}
			if _, err := collect(t, d, statement); err != nil {
				t.Fatalf("before the change: %v", err)
			}
			p.Exec(t, c.change)
			_, err := collect(t, d, statement)
			if c.holds && err != nil || !c.holds && (!fault.IsUntouched(err) || fault.CodeOf(err) != fault.CodePolicyStale) {
				t.Errorf("got %v, want it to hold: %v", err, c.holds)
			}
		})
	}
}

// A steward who speaks for row security, or for a public table of people, is believed.
//
// needs: postgres
// covers: P1 P3
func TestPinsOfWhatTheStewardSays(t *testing.T) {
	p := pgtest.Protected(t, provenDDL, `ALTER TABLE people ENABLE ROW LEVEL SECURITY; CREATE POLICY all_rows ON people USING (true);
		ALTER TABLE shops ADD FOREIGN KEY (boss) REFERENCES people`)
	d := open(t, p, nil)
	s := provenSnapshot(t, d, `version: 1
dataset: d
tables:
  people: {unit: {row: id}, row_security: per-row}
  shops: {public: declassified}
  visits: {unit: {column: who, of: people}, max_rows: 3, max_groups: 1}
budgets:
  - {dataset: true, form: approx, epsilon: 10, delta: 1e-6}
`)
	run := func() []error {
		var all []error
		for _, table := range []string{"people", "shops"} {
			_, err := collect(t, d, sqlrewrite.Statement{SQL: "SELECT '1'", Values: 1,
				Preconditions: []sqlrewrite.Precondition{provenPin(t, s, table)}})
			all = append(all, err)
		}
		return all
	}
	if got := run(); got[0] != nil || got[1] != nil {
		t.Error(got)
	}
	p.Exec(t, "ALTER TABLE shops ADD FOREIGN KEY (id, boss) REFERENCES visits (who, day)") // of which nobody spoke
	if got := run(); got[0] != nil || fault.CodeOf(got[1]) != fault.CodePolicyStale {
		t.Error(got)
	}
}

// Several tables and statements of one question are pinned by one query, whatever their number.
func TestPinsOfManyTables(t *testing.T) {
	p := pgtest.Protected(t, provenDDL)
	d := open(t, p, nil)
	s := provenSnapshot(t, d, provenPolicy)
	var pins []sqlrewrite.Precondition
	for _, table := range []string{"people", "visits", "calls", "shops", "people"} {
		pins = append(pins, provenPin(t, s, table))
	}
	statement := sqlrewrite.Statement{SQL: "SELECT '1'", Values: 1, Preconditions: pins}
	if _, err := collect(t, d, statement); err != nil {
		t.Fatal(err)
	}
	for i := range pins {
		broken := slices.Clone(pins)
		broken[i].OID++
		statement.Preconditions = broken
		if _, err := collect(t, d, statement); fault.CodeOf(err) != fault.CodePolicyStale {
			t.Errorf("pin %d: %v", i, fmt.Sprint(err))
		}
	}
}
