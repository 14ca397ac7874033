package catalog

import (
	"slices"
	"strings"
	"testing"

	"noisegate.example/internal/pgtest"
)

// A view's query is pinned with the schema of each table, whatever search path the session has; and catalogs of clients show the view as a
// table with its columns.
func TestViewsArePinned(t *testing.T) {
	p := pgtest.Protected(t, `CREATE TABLE cities (city int PRIMARY KEY, name text); CREATE SCHEMA other; CREATE TABLE other.cities (city int);
		GRANT USAGE ON SCHEMA other TO noisegate_reader; GRANT SELECT ON other.cities TO noisegate_reader;
		CREATE VIEW places AS SELECT c.city AS id, upper(c.name) AS name FROM public.cities c JOIN other.cities o USING (city);
		CREATE TABLE people (id int PRIMARY KEY)`)
	policy, problems := Parse(`version: 1
dataset: test
tables:
  people: {unit: {row: id}}
  cities: {public: true}
  other.cities: {public: true}
  places: {public: true}
budgets:
  - {dataset: true, form: approx, epsilon: 10, delta: 1e-6}
`)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	schema, err := Inspect(t.Context(), pgtest.PoolOf(t, p.ReaderDSN+"&search_path=other,public"), policy)
	if err != nil {
		t.Fatal(err)
	}
	snapshot, problems := Check(policy, schema)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	view, ok := snapshot.View("", "places")
	if !ok || !strings.Contains(view.Definition, "public.cities c") || !strings.Contains(view.Definition, "other.cities o") ||
		len(snapshot.Tables) != 3 {
		t.Fatalf("got %+v, %d tables", view, len(snapshot.Tables))
	}
	twin := twinSchema(&Revision{Snapshot: snapshot, Policy: policy, Pinned: schema.For(policy)})
	if !slices.ContainsFunc(twin, func(s string) bool { return strings.Contains(s, `"places"`) && strings.Contains(s, `"id" integer`) }) {
		t.Errorf("catalogs do not show the view:\n%s", strings.Join(twin, "\n"))
	}
}
