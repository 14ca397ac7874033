package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/cmd/noisegate/internal/config"
	"noisegate.example/internal/pgtest"
)

// runText runs a command line without a gateway.
func runText(t *testing.T, args ...string) (out, errs string, code int) {
	t.Helper()
	var o, e bytes.Buffer
	code = Run(t.Context(), args, Streams{strings.NewReader(""), &o, &e}, config.Environment{})
	return o.String(), e.String(), code
}

// What `policy init` prints is a policy file but for its blanks. It asks which column identifies a person, and does not guess, and a
// password on the command line is refused.
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

// `policy import` drafts a policy file from metadata of SmartNoise SQL and of Lomas, and says where they are wrong.
func TestPolicyImport(t *testing.T) {
	file := filepath.Join(t.TempDir(), "PUMS pid.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const smartNoise = "'': {PUMS: {PUMS: {age: {type: int, lower: 0, upper: 100}, pid: {type: int, private_id: True}}}}"
	const lomas = "{max_ids: 1, rows: 9, row_privacy: true, columns: {sex: {type: string}}}"
	for _, c := range []struct {
		metadata string
		args     []string
		code     int
		want     []string
	}{
		{smartNoise, []string{"smartnoise"}, exitOK, []string{"dataset: pums_pid\n", "  pums.pums:\n", "{column: pid}", "2 blanks"}},
		{smartNoise, []string{"smartnoise", "--schema", "public", "--dataset", "census"}, exitOK, []string{"dataset: census\n", "  pums:\n"}},
		{lomas, []string{"lomas"}, exitOK, []string{"  pums_pid:\n", "{row: ___}", "3 blanks"}},
		{lomas, []string{"lomas", "--table", "people"}, exitOK, []string{"  people:\n"}},
		{smartNoise, []string{"smartnoise", "--table", "people"}, exitUsage, []string{"--table goes with lomas"}},
		{smartNoise, []string{"opendp"}, exitUsage, []string{"smartnoise"}},
		{"a:\n  s: {t: {x: {type: int, lower: few}}}", []string{"smartnoise"}, exitRefused, []string{`PUMS pid.yaml:2:33: "few" is not a number`}},
	} {
		write(c.metadata)
		args := append([]string{"policy", "import", c.args[0], file}, c.args[1:]...)
		out, errs, code := runText(t, args...)
		for _, want := range c.want {
			if code != c.code || !strings.Contains(out+errs, want) {
				t.Errorf("%v: exit %d, no %q in\n%s%s", c.args, code, want, out, errs)
			}
		}
	}
}
