package rewritetest

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"noisegate.example/catalog"
	"noisegate.example/internal/pgtest"
	"noisegate.example/sqlrewrite/internal/plan"
)

const steadyPolicy = `version: 1
dataset: d
neighbours: add-remove
tables:
  people: {unit: {row: person_id, of: person}, columns: {age: {bounds: [0, 120]}}}
  visits: {unit: {column: person_id, of: person}, max_rows: 4, max_groups: 2, columns: {paid: {bounds: [0, 100]}, place: {domain: [1, 2, 3, 4]}}}
  receipts: {unit: {via: visit_id, to: visits}, max_rows: 4, max_groups: 2, columns: {total: {bounds: [0, 100]}}}
  lines: {public: true}
  streets: {public: true}
budgets:
  - {dataset: true, form: approx, epsilon: 10, delta: 1e-6}
`

// steadyTarget is one person, the only one of 111 years, and the one with the largest number; steadyOthers are all else.
const (
	steadyOthers = `CREATE TABLE people (person_id int PRIMARY KEY, age int NOT NULL);
		CREATE TYPE mood AS ENUM ('low', 'high');
		CREATE TABLE visits (visit_id int PRIMARY KEY, person_id int, age int, paid int, place int, mood mood DEFAULT 'low');
		CREATE TABLE receipts (receipt_id int PRIMARY KEY, visit_id int REFERENCES visits, total int);
		CREATE TABLE lines (line int PRIMARY KEY, kind int NOT NULL);
		CREATE TABLE streets (street int PRIMARY KEY, kind int NOT NULL, zone int);
		INSERT INTO people SELECT i, i % 100 FROM generate_series(1, 2000) i;
		INSERT INTO visits SELECT i, i % 2000 + 1, i % 100, i % 90, i % 4 + 1 FROM generate_series(1, 8000) i;
		INSERT INTO receipts SELECT i, i, i % 90 FROM generate_series(1, 8000) i;
		INSERT INTO lines SELECT i, i % 50 FROM generate_series(1, 200) i;
		INSERT INTO streets SELECT i, i % 9000, NULLIF(i % 7000, 0) FROM generate_series(1, 20000) i;`
	steadyTarget = `INSERT INTO people VALUES (9999, 111); INSERT INTO visits SELECT 100000 + i, 9999, 111, i, i % 4 + 1 FROM generate_series(1, 12) i;
		INSERT INTO receipts SELECT 100000 + i, 100000 + i, 99 FROM generate_series(1, 12) i;`
	SteadyWithout = `DELETE FROM receipts WHERE receipt_id > 100000; DELETE FROM visits WHERE visit_id > 100000; DELETE FROM people WHERE person_id = 9999`
	SteadyMore    = `INSERT INTO visits SELECT 200000 + i, 9999, 111, 99, i % 4 + 1 FROM generate_series(1, 1000) i`
	SteadyRows    = 25
	SteadyPublic  = 200
)

// SteadyWorld is a database of steadyOthers and the target, after some changes, with its snapshot.
func SteadyWorld(t *testing.T, changes string) (*pgx.Conn, *catalog.Snapshot) {
	t.Helper()
	db := pgtest.New(t)
	db.Exec(t, steadyOthers+steadyTarget+changes+"; ANALYZE;")
	policy, problems := catalog.Parse(steadyPolicy)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	schema, err := catalog.Inspect(t.Context(), db.Pool(t), policy)
	if err != nil {
		t.Fatal(err)
	}
	snapshot, problems := catalog.Check(policy, schema)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	conn := db.Conn(t, db.DSN)
	MustExec(t, conn, "SET jit = off; SET plan_cache_mode = force_custom_plan; SET search_path = ''")
	return conn, snapshot
}

// SteadyOptions are those of questions about that world.
var SteadyOptions = plan.Options{Epsilon: 1_000_000_000_000, Mechanism: plan.MechanismAuto, Delta: 1, Currency: catalog.Approx,
	Confidence: 0.95}
