package pgexec_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"noisegate.example/catalog"
	"noisegate.example/gateway/pgexec"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/pgtest"
	"noisegate.example/sqlrewrite"
)

const (
	publicDDL = ddl + `;
CREATE TABLE shops (shop int PRIMARY KEY, name text, size int);
INSERT INTO shops VALUES (1, 'b', 10), (2, 'a', -4), (3, NULL, 7)`
	publicPolicy = `version: 1
dataset: d
neighbours: add-remove
tables:
  people: {unit: {row: id}, columns: {age: {bounds: [0, 90]}}}
  shops: {public: true}
budgets:
  - {dataset: true, form: approx, epsilon: 10, delta: 1e-6}
`
)

// publicPost is what runs for a query over public tables.
func publicPost(t *testing.T, d *pgexec.Database, sql string) sqlrewrite.Post {
	t.Helper()
	policy, errs := catalog.Parse(publicPolicy)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	schema, err := d.Inspect(t.Context(), policy)
	if err != nil {
		t.Fatal(err)
	}
	snapshot, errs := catalog.Check(policy, schema)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	plan, err := sqlrewrite.Open(t.Context(), sql, snapshot, sqlrewrite.Options{})
	if err != nil || plan == nil {
		t.Fatal(plan, err)
	}
	post, ok := plan.Post()
	if !ok {
		t.Fatal("nothing to run")
	}
	return post
}

// Public tables are read by the reader's role under the same settings and pins as private ones, and their errors stay as silent.
func TestReadPublicTables(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	p := pgtest.Protected(t, publicDDL)
	d := open(t, p, nil)
	post := publicPost(t, d, "SELECT name, size + 1 FROM shops ORDER BY name NULLS FIRST LIMIT 2")
	rows, types, err := d.Read(t.Context(), post)
	if err != nil {
		t.Fatal(err)
	}
	want := []sqlrewrite.PostRow{{Values: []catalog.Key{{Null: true}, {Text: "8"}}}, {Values: []catalog.Key{{Text: "a"}, {Text: "-3"}}}}
	if diff := cmp.Diff(want, rows); diff != "" || !cmp.Equal(types, []string{"text", "integer"}) {
		t.Error(diff, types)
	}
	_, _, err = d.Read(t.Context(), publicPost(t, d, "SELECT sqrt(size) FROM shops"))
	if fault.CodeOf(err) != fault.CodeDataUnavailable || strings.Contains(err.Error(), "negative") {
		t.Errorf("got %v, want %s without a detail", err, fault.CodeDataUnavailable)
	}
	huge := "SELECT string_agg('" + strings.Repeat("x", 30_000) + "', '') FROM shops a" // 197 MB
	for i := range 7 {
		huge += fmt.Sprintf(", shops b%d", i)
	}
	if _, _, err = d.Read(t.Context(), publicPost(t, d, huge)); fault.CodeOf(err) != fault.CodeTooComplex {
		t.Errorf("A44: got %v, want %s", err, fault.CodeTooComplex)
	}
	if _, _, err := calculator(t).Compute(t.Context(), post); fault.CodeOf(err) != fault.CodeInternal {
		t.Errorf("the control database was asked for a public table: %v", err)
	}
	p.Exec(t, "CREATE TABLE secret () INHERITS (shops); GRANT SELECT ON secret TO noisegate_reader")
	if _, _, err := d.Read(t.Context(), post); fault.CodeOf(err) != fault.CodePolicyStale {
		t.Errorf("with the rows of an inheriting table: got %v, want %s", err, fault.CodePolicyStale)
	}
	p.Exec(t, "DROP TABLE secret; ALTER TABLE shops ALTER size TYPE bigint")
	if _, _, err := d.Read(t.Context(), post); fault.CodeOf(err) != fault.CodePolicyStale {
		t.Errorf("got %v, want %s", err, fault.CodePolicyStale)
	}
}
