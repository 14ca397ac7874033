package catalog

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"noisegate.example/internal/pgtest"
)

// Each policy is accepted; a warning says what its author should know, at its place, and the corrected line next to it has none.
func TestWarnings(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	p := pgtest.Protected(t, `CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')`,
		`CREATE TABLE people (id int PRIMARY KEY, age int CHECK (age BETWEEN 0 AND 120), mood mood NOT NULL,
			sex text CHECK (sex IN ('f', 'm')), born date CHECK (born >= '1900-01-01'))`,
		`CREATE TABLE visits (visit int PRIMARY KEY, id int REFERENCES people, day date)`)
	for name, c := range map[string]struct {
		column, bad, warning, good string
	}{
		"bounds above":      {"age", "{bounds: [0, 200]}", "end above 120", "{bounds: [0, 120]}"},
		"bounds below":      {"age", "{bounds: [-1, 99]}", "begin below 0", "{bounds: [18, 99]}"},
		"bounds beyond":     {"age", "{bounds: [121, 150]}", "every value is moved", "{bounds: [119, 120]}"},
		"bounds before":     {"born", "{bounds: [1800-01-01, 1850-01-01]}", "every value is moved", "{bounds: [1900-01-01, 2000-01-01]}"},
		"enum lacks":        {"mood", "{domain: [sad, ok]}", `lacks "happy"`, "{domain: [sad, happy, ok]}"},
		"check lacks":       {"sex", "{domain: [f]}", `lacks "m"`, "{domain: [f, m]}"},
		"check has no such": {"sex", "{domain: [f, m, x]}", `has "x"`, "{domain: [f, m, null]}"},
	} {
		warnedOf(t, p, name, "{people: {unit: {row: id}, columns: {"+c.column+": ", c.bad, c.good, "}}}",
			"[{dataset: true, form: pure, epsilon: 1}]", c.warning)
	}
	for name, c := range map[string]struct{ bad, warning, good string }{
		"no max_rows": {"max_groups: 2", "no max_rows", "max_groups: 2, max_rows: 1"},
		"a copy of more than all": {"max_rows: 2, max_groups: 3, max_rows_total: 4, prepare: {max_rows: 5}", "more than max_rows_total, 4",
			"max_rows: 2, max_groups: 3, max_rows_total: 4, prepare: {max_rows: 4}"},
		"a copy of more than counts": {"max_rows: 2, max_groups: 3, prepare: {max_rows: 7}", "more than max_rows x max_groups, 6",
			"max_rows: 2, max_groups: 3, prepare: {max_rows: 6}"},
		"a copy of less": {"max_rows: 3, max_groups: 3, prepare: {max_rows: 2}", "fewer than max_rows, 3",
			"max_rows: 3, max_groups: 3, prepare: {max_rows: 3}, require_prepared: true"},
		"no max_groups": {"max_rows: 2", "no max_groups", "max_groups: 2, max_rows: 1"},
	} {
		warnedOf(t, p, name, "{people: {unit: {row: id}}, visits: {unit: {column: id}, ", c.bad, c.good, "}}",
			"[{dataset: true, form: pure, epsilon: 1}]", c.warning)
	}
	for name, c := range map[string]struct{ bad, warning, good string }{
		"weak": {"[{dataset: true, form: pure, epsilon: 10.5}]", "22,026 times", "[{dataset: true, form: pure, epsilon: 10}]"},
		"above": {"[{dataset: true, form: pure, epsilon: 2}, {group: a, form: pure, epsilon: 3}]", "larger than the dataset's",
			"[{dataset: true, form: pure, epsilon: 2}, {group: a, form: pure, epsilon: 2}]"},
		"above, rho": {"[{dataset: true, form: zcdp, rho: 2}, {group: a, form: zcdp, rho: 3}]", "larger than the dataset's",
			"[{dataset: true, form: zcdp, rho: 2}, {group: a, form: zcdp, rho: 1}]"},
	} {
		warned(t, p, name, "{people: {unit: {row: id}}}", c.bad, c.warning)
		warned(t, p, name+", not", "{people: {unit: {row: id}}}", c.good, "")
	}
}

func warnedOf(t *testing.T, p *pgtest.ProtectedDatabase, name, before, bad, good, after, budgets, warning string) {
	t.Helper()
	warned(t, p, name, before+bad+after, budgets, warning)
	warned(t, p, name+", not", before+good+after, budgets, "")
}

// warned wants one warning with a place, or none.
func warned(t *testing.T, p *pgtest.ProtectedDatabase, name, tables, budgets, want string) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		policy, problems := Parse("version: 1\ndataset: d\ntables: " + tables + "\nbudgets: " + budgets + "\n")
		if len(problems) > 0 {
			t.Fatal(errors.Join(problems...))
		}
		schema, err := Inspect(t.Context(), p.Pool(t), policy)
		if err != nil {
			t.Fatal(err)
		}
		snapshot, problems := Check(policy, schema)
		if len(problems) > 0 {
			t.Fatal(errors.Join(problems...))
		}
		if want == "" {
			if len(snapshot.Warnings) > 0 {
				t.Errorf("warned of %v", snapshot.Warnings)
			}
			return
		}
		if len(snapshot.Warnings) != 1 || !strings.Contains(snapshot.Warnings[0].Text, want) || snapshot.Warnings[0].Pos.Line < 3 {
			t.Errorf("%v, want %q", snapshot.Warnings, want)
		}
	})
}

// A column that analysts do not see because of its type is named to the policy's author, with the type, until the policy says so.
func TestUnsupportedTypesAreWarnedOf(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	p := pgtest.Protected(t, "CREATE TYPE pair AS (a int, b int)", "CREATE DOMAIN filled AS text NOT NULL")
	types := []string{"bytea", "inet", "json", "jsonb", "integer[]", "text[]", "money", "bit(3)", "interval", "time without time zone",
		"time with time zone", "point", "tsvector", "int4range", "oid", "macaddr", "name", "pair", "filled"}
	var citext bool
	const asks = "SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'citext')"
	if err := p.Pool(t).QueryRow(t.Context(), asks).Scan(&citext); err != nil {
		t.Fatal(err)
	}
	if citext {
		p.Exec(t, "CREATE EXTENSION citext")
		types = append(types, "citext")
	}
	for i, kind := range types {
		table := fmt.Sprintf("t%d", i)
		p.Exec(t, "CREATE TABLE "+table+" (id int PRIMARY KEY, odd "+kind+")")
		const budgets = "[{dataset: true, form: pure, epsilon: 1}]"
		warned(t, p, kind, "{"+table+": {unit: {row: id}}}", budgets, `"odd" (`+kind)
		warned(t, p, kind+", said", "{"+table+": {unit: {row: id}, columns: {odd: {expose: false}}}}", budgets, "")
	}
}

// What the schema says beyond what policies rely upon is no part of a policy's identity.
func TestFactsChangeNoDigest(t *testing.T) {
	p := pgtest.Protected(t, "CREATE TABLE people (id int PRIMARY KEY, age int)")
	digestNow := func() [32]byte {
		policy, _ := Parse("version: 1\ndataset: d\ntables: {people: {unit: {row: id}}}\nbudgets: [{dataset: true, form: pure, epsilon: 1}]\n")
		schema, err := Inspect(t.Context(), p.Pool(t), policy)
		if err != nil {
			t.Fatal(err)
		}
		return digest(policy, schema.For(policy))
	}
	before := digestNow()
	p.Exec(t, "COMMENT ON TABLE people IS 'people'", "COMMENT ON COLUMN people.age IS 'years'", "ALTER TABLE people ADD CHECK (age < 150)")
	if digestNow() != before {
		t.Error("a comment or a CHECK makes another policy")
	}
}

// The figure of noise is what the mechanism's half-width is.
func TestNoiseText(t *testing.T) {
	for _, c := range []struct {
		rows, groups, total int64
		want                string
	}{{1, 1, 0, "± 30"}, {30, 6, 0, "± 5,392"}, {30, 12, 0, "± 10,785"}, {30, 100, 0, "± 10,785"}, {0, 6, 0, ""}, {5, 0, 0, ""},
		{30, 6, 46, "± 1,378"}, {30, 6, 180, "± 5,392"}, {30, 6, 500, "± 5,392"}} {
		if got := NoiseText(c.rows, c.groups, c.total); got != "" && !strings.HasSuffix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%d rows in %d groups: %q, want %q", c.rows, c.groups, got, c.want)
		}
	}
}
