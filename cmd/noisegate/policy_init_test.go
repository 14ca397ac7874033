package main

import (
	"bytes"
	"strings"
	"testing"

	"noisegate/catalog"
	"noisegate/cmd/noisegate/internal/config"
	"noisegate/internal/pgtest"
)

// runText runs a command line without a gateway.
func runText(t *testing.T, args ...string) (out, errs string, code int) {
	t.Helper()
	var o, e bytes.Buffer
	code = Run(t.Context(), args, Streams{strings.NewReader(""), &o, &e}, config.Environment{})
	return o.String(), e.String(), code
}

// What `policy init` prints is a policy file but for its blanks. Which column tells a person is asked, not guessed, and a password on the
// command line is refused.
func TestPolicyInit(t *testing.T) {
	p := pgtest.Protected(t, "CREATE TABLE people (id int PRIMARY KEY, age int)")
	out, errs, code := runText(t, "policy", "init", "--dsn", p.DSN, "--dataset", "census")
	if code != exitOK || !strings.Contains(out, "dataset: census\n") || !strings.Contains(out, "unit: {row: id}") ||
		!strings.Contains(errs, "2 blanks") {
		t.Fatalf("exit %d\n%s\n%s", code, out, errs)
	}
	if _, problems := catalog.Parse(strings.ReplaceAll(out, "rho: ___", "rho: 0.5")); len(problems) > 0 {
		t.Errorf("%v\n%s", problems, out)
	}
	p.Exec(t, "CREATE TABLE visits (visit int PRIMARY KEY, who int REFERENCES people)")
	if _, errs, code := runText(t, "policy", "init", "--dsn", p.DSN); code != exitUsage || !strings.Contains(errs, "people.id, visits.visit") {
		t.Errorf("exit %d: %s", code, errs)
	}
	if out, errs, code := runText(t, "policy", "init", "--dsn", p.DSN, "--unit", "people.id"); code != exitOK ||
		!strings.Contains(out, "└ visits (foreign key who)") {
		t.Errorf("exit %d: %s\n%s", code, errs, out)
	}
	for unit, want := range map[string]string{"nobody.id": "no table nobody", "people.x": "no column x", "id": "table.column"} {
		if _, errs, code := runText(t, "policy", "init", "--dsn", p.DSN, "--unit", unit); code != exitUsage || !strings.Contains(errs, want) {
			t.Errorf("%s: exit %d: %s", unit, code, errs)
		}
	}
	for _, dsn := range []string{"host=h user=u password=secret", "postgres://u:secret@h/db", "postgresql://u:secret@h:5432/db"} {
		if _, errs, code := runText(t, "policy", "init", "--dsn", dsn); code != exitUsage || !strings.Contains(errs, "PGPASSFILE") ||
			strings.Contains(errs, "secret") {
			t.Errorf("%s: exit %d: %s", dsn, code, errs)
		}
	}
}
