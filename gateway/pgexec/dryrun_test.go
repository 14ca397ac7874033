package pgexec_test

import (
	"testing"
	"time"

	"noisegate.example/gateway/pgexec"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/pgtest"
	"noisegate.example/sqlrewrite"
)

// parseOnly is the trial of a statement that computes nothing: it is parsed.
func parseOnly(t *testing.T, d *pgexec.Database, sql string) sqlrewrite.DryRun {
	return sqlrewrite.DryRun{Plain: true, For: sqlrewrite.Statement{SQL: sql, Values: 1, Preconditions: pins(t, d, "people", "id", "region")}}
}

// A statement that the server does not take is refused before it is charged, and one that may fail on a row is not. The server is asked
// without a name, so that no connection remembers what somebody asked.
func TestStatementsAreParsed(t *testing.T) {
	p := pgtest.Protected(t, "CREATE TABLE people (id int PRIMARY KEY, region varchar(10))")
	d := open(t, p, func(c *pgexec.Config) { c.Connections = 1 })
	const asked = "SELECT count(*)::text FROM public.people"
	for sql, want := range map[string]fault.Code{
		asked:                                   "",
		"SELECT (1/0)::text FROM public.people": "",
		"SELECT no_such_function(1)":            fault.CodeUnprintable,
		"SELECT (id + region)::text FROM public.people":                                                                    fault.CodeUnprintable,
		"SELECT (region COLLATE \"C\")::text, count(*)::text FROM public.people GROUP BY region COLLATE \"C\"":             fault.CodeUnprintable,
		"SELECT (region::text COLLATE \"C\")::text, count(*)::text FROM public.people GROUP BY region::text COLLATE \"C\"": "",
	} {
		for range 2 {
			if _, err := d.Dry(t.Context(), "ana", parseOnly(t, d, sql)); fault.CodeOf(err) != want {
				t.Errorf("%s\n%v, want %q", sql, err, want)
			}
		}
	}
	rows, err := collect(t, d, sqlrewrite.Statement{SQL: "SELECT count(*)::text FROM pg_catalog.pg_prepared_statements WHERE statement = '" +
		asked + "'", Values: 1, Preconditions: pins(t, d, "people", "id")})
	if err != nil || len(rows) != 1 || revealed(t, rows[0].Values[0]) != "0" {
		t.Errorf("a connection remembers the statement: %v, %v", rows, err)
	}
}

// Where a table is not what the policy was checked against, the statement itself is refused as stale: it is not the gateway's mistake.
func TestStaleStatementsAreNotUnprintable(t *testing.T) {
	p := pgtest.Protected(t, "CREATE TABLE people (id int PRIMARY KEY, region varchar(10))")
	d := open(t, p, nil)
	run := parseOnly(t, d, "SELECT region FROM public.people")
	p.Exec(t, "ALTER TABLE people DROP COLUMN region")
	if _, err := d.Dry(t.Context(), "ana", run); err != nil {
		t.Error(err)
	}
	if _, err := collect(t, d, run.For); fault.CodeOf(err) != fault.CodePolicyStale {
		t.Errorf("%v, want policy/stale", err)
	}
}

// Trials of one analyst take so much of the server's time within a minute, and then they are refused; those of another are not. What was
// tried before takes no time.
func TestTrialsHaveTheirTime(t *testing.T) {
	p := pgtest.Protected(t, "CREATE TABLE people (id int PRIMARY KEY, region varchar(10))")
	d := open(t, p, func(c *pgexec.Config) { c.TrialTime = time.Nanosecond })
	first, second := parseOnly(t, d, "SELECT '1'"), parseOnly(t, d, "SELECT '2'")
	for _, c := range []struct {
		analyst string
		run     sqlrewrite.DryRun
		want    fault.Code
	}{
		{"ana", first, ""}, {"ana", second, fault.CodeRequestTooMany}, {"ana", first, ""}, {"bob", second, ""},
	} {
		if _, err := d.Dry(t.Context(), c.analyst, c.run); fault.CodeOf(err) != c.want {
			t.Errorf("%s, %s: %v, want %q", c.analyst, c.run.For.SQL, err, c.want)
		}
	}
}

// An error before the server has parsed all statements of a question has read no row. One of a text that comes later keeps the charge, but
// is nobody's failure; one of a row is.
func TestErrorsOfTextsBlameNobody(t *testing.T) {
	p := pgtest.Protected(t, ddl)
	d := open(t, p, nil)
	good := sqlrewrite.Statement{SQL: "SELECT '1'", Values: 1, Preconditions: pins(t, d, "people", "id")}
	for _, c := range []struct {
		name, sql          string
		untouched, excused bool
	}{
		{"no such function", "SELECT no_such_function(1)", true, false},
		{"a name that is no name, when it runs", "SELECT pg_catalog.to_regclass('a.b.c.d')::text FROM public.people WHERE id = 1", false, true},
		{"a row", "SELECT (1 / (id - 1))::text FROM public.people", false, false},
	} {
		bad := good
		bad.SQL = c.sql
		for at, statements := range [][]sqlrewrite.Statement{{bad}, {good, bad}, {bad, good}} {
			var failure error
			for _, err := range d.Run(t.Context(), statements...) {
				failure = err
			}
			untouched, excused := fault.IsUntouched(failure), fault.IsExcused(failure)
			if fault.CodeOf(failure) != fault.CodeDataUnavailable || untouched != c.untouched || excused != c.excused {
				t.Errorf("%s, %d: %v, untouched %t, excused %t", c.name, at, failure, untouched, excused)
			}
		}
	}
}

// A table that is being changed holds up nobody's trial: the statement itself waits for it.
func TestTrialsWaitForNoTable(t *testing.T) {
	p := pgtest.Protected(t, ddl)
	d := open(t, p, nil)
	run := parseOnly(t, d, "SELECT count(*)::text FROM public.people")
	tx, err := p.Conn(t, p.DSN).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "LOCK TABLE people IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the first one would have waited for five seconds, and taken the analyst's time
		if _, err := d.Dry(t.Context(), "ana", run); err != nil {
			t.Error(err)
		}
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Dry(t.Context(), "ana", run); err != nil {
		t.Error(err)
	}
}
