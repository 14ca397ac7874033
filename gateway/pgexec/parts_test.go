package pgexec_test

import (
	"slices"
	"testing"

	"noisegate.example/internal/fault"
	"noisegate.example/internal/pgtest"
	"noisegate.example/sqlrewrite"
)

// TestStatementsOfAPlan: the statements run one after another on one snapshot; a row says which of them gave it.
func TestStatementsOfAPlan(t *testing.T) {
	p := pgtest.Protected(t, ddl)
	d := open(t, p, nil)
	good := pins(t, d, "people", "id")
	snapshot := sqlrewrite.Statement{SQL: "SELECT pg_catalog.pg_current_snapshot()::text, count(*)::text FROM public.people", Keys: 1,
		Values: 1, Preconditions: good}
	keys := sqlrewrite.Statement{SQL: "SELECT i::text, '1' FROM generate_series(1, 3) i", Keys: 1, Values: 1, Preconditions: good}
	var parts []int
	var seen []string
	for row, err := range d.Run(t.Context(), snapshot, keys, snapshot) {
		if err != nil {
			t.Fatal(err)
		}
		if len(parts) == 0 {
			p.Exec(t, "DELETE FROM people") // between two statements
		}
		parts = append(parts, row.Part)
		seen = append(seen, row.Keys[0].Text)
	}
	if want := []int{0, 1, 1, 1, 2}; !slices.Equal(parts, want) || seen[0] != seen[4] {
		t.Errorf("parts %v of snapshots %s and %s", parts, seen[0], seen[4])
	}
}

// TestLaterStatementFails: rows of the first were read, so the charge stands, and the error says nothing.
func TestLaterStatementFails(t *testing.T) {
	p := pgtest.Protected(t, ddl)
	d := open(t, p, nil)
	good := pins(t, d, "people", "id")
	var last error
	for _, err := range d.Run(t.Context(), sqlrewrite.Statement{SQL: "SELECT '1'", Values: 1, Preconditions: good},
		sqlrewrite.Statement{SQL: "SELECT (1 / 0)::text", Values: 1, Preconditions: good}) {
		last = err
	}
	if fault.CodeOf(last) != fault.CodeDataUnavailable || fault.IsUntouched(last) {
		t.Errorf("got %v (untouched %v)", last, fault.IsUntouched(last))
	}
}
