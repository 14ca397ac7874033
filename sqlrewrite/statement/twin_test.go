package statement

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	pg "github.com/pganalyze/pg_query_go/v6"

	"noisegate.example/catalog"
	"noisegate.example/internal/pgtest"
)

// twinPolicy exposes the tables of `noisegate demo`, as far as the corpus names them.
const twinPolicy = `version: 1
dataset: census
neighbours: add-remove
tables:
  people:
    unit: {row: person_id}
    columns: {person_id: {expose: false}, age: {bounds: [17, 90]}}
  visits:
    unit: {column: person_id}
    max_rows: 5
    max_groups: 3
    columns: {day: {bounds: [2025-01-01, 2025-12-31]}, region: {domain: {table: regions, column: name}}}
  regions: {public: true}
budgets:
  - {dataset: true, form: approx, epsilon: 20, delta: 1e-6}
`

const twinSource = `CREATE TABLE regions (name text PRIMARY KEY, inhabitants int);
CREATE TABLE people (person_id int PRIMARY KEY, age smallint);
CREATE TABLE visits (visit_id bigint PRIMARY KEY, person_id int NOT NULL REFERENCES people, day date, region text REFERENCES regions);
INSERT INTO regions VALUES ('north', 1)`

// canary is a name of the twin's server that belongs to nobody who asks: of a role, a database and a comment.
const canary = "canary_of_the_server"

// twin is a catalog twin of the demo's tables, and a session on it.
type twin struct {
	conn     *pgx.Conn
	snapshot *catalog.Snapshot
	view     View
}

func newTwin(t testing.TB) *twin {
	t.Helper()
	source, target := pgtest.Protected(t, twinSource), pgtest.New(t)
	policy, problems := catalog.Parse(twinPolicy)
	if len(problems) > 0 {
		t.Fatal(errors.Join(problems...))
	}
	schema, err := catalog.Inspect(t.Context(), pgtest.PoolOf(t, source.ReaderDSN), policy)
	if err != nil {
		t.Fatal(err)
	}
	snapshot, problems := catalog.Check(policy, schema)
	if len(problems) > 0 {
		t.Fatal(errors.Join(problems...))
	}
	snapshot.Version = 1
	w := &twin{conn: target.Conn(t, target.DSN), snapshot: snapshot, view: demoView()}
	var hidden []catalog.TableName
	for _, name := range Replaced() {
		hidden = append(hidden, catalog.TableName{Schema: name.Schema, Name: name.Name})
	}
	revision := &catalog.Revision{Snapshot: snapshot, Policy: policy, Pinned: schema.For(policy)}
	if _, err := (catalog.Twin{Revision: revision, Hidden: hidden}).Build(t.Context(), w.conn); err != nil {
		t.Fatal(errors.Unwrap(err))
	}
	facts, err := catalog.LookAtTwin(t.Context(), w.conn, hidden, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.view.Owner = facts.Owner
	w.view.Columns = map[TableName][]Column{}
	for name, columns := range facts.Columns {
		for _, c := range columns {
			key := TableName{name.Schema, name.Name}
			w.view.Columns[key] = append(w.view.Columns[key], Column(c))
		}
	}
	return w
}

// demoView is what a session of the demo sees, but for the columns of its twin.
func demoView() View {
	text := func(s string) *string { return &s }
	return View{Names: demo(), User: "ana", PID: 7, Version: "PostgreSQL 15.0 (Noisegate)", Owner: 10,
		Parameters: []Parameter{{"server_version", "15.0", ""}, {"server_version_num", "150000", ""}, {"search_path", `"$user", public`, ""},
			{"TimeZone", "UTC", "the zone's name"}, {"bytea_output", "hex", ""}, {"transaction_isolation", "read committed", ""},
			{"max_index_keys", "32", ""}, {"noisegate.epsilon", "0.05", "the price"}},
		Sessions: []Activity{{PID: 7, Application: "psql", State: "active", Started: time.Unix(1795000000, 0)}},
		Own: map[string]Rows{
			"budget":   {Columns: []Column{{"epsilon", "numeric"}, {"left", "numeric"}}, Values: [][]*string{{text("3"), text("2.9")}}},
			"releases": {Columns: []Column{{"sql", "text"}}, Values: [][]*string{{text(`SELECT 'it''s \' FROM people`)}, {nil}}},
			"columns":  {Columns: []Column{{"column_name", "text"}}},
		}}
}

// ask runs a text as the twin's role, by the extended protocol with NULL for each parameter. It gives columns and rows.
func (w *twin) ask(t testing.TB, text string, parameters int, path string) (columns []string, rows [][]any, err error) {
	t.Helper()
	tx, state, err := catalog.TwinSession{Snapshot: w.snapshot, SearchPath: []string{path}}.Begin(t.Context(), w.conn)
	if err != nil || state != catalog.TwinCurrent {
		t.Fatal(state, errors.Unwrap(err))
	}
	defer func() { _ = tx.Rollback(t.Context()) }() // what it did is over
	return w.rows(t, text, parameters)
}

// askBare runs a client's own text on the twin as it would be without [twinOperations].
func (w *twin) askBare(t testing.TB, text string, parameters int) (columns []string, rows [][]any, err error) {
	t.Helper()
	tx, err := w.conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if _, err := tx.Exec(t.Context(), "DROP SCHEMA "+twinOperations+" CASCADE; SET LOCAL search_path = public; SET LOCAL timezone = 'UTC';"+
		"SET LOCAL jit = off; SET LOCAL ROLE "+catalog.TwinRole); err != nil {
		t.Fatal(err)
	}
	return w.rows(t, text, parameters)
}

func (w *twin) rows(t testing.TB, text string, parameters int) (columns []string, rows [][]any, err error) {
	t.Helper()
	result := w.conn.PgConn().ExecParams(t.Context(), text, make([][]byte, parameters), nil, nil, nil)
	for _, field := range result.FieldDescriptions() {
		columns = append(columns, field.Name)
	}
	for result.NextRow() {
		var row []any
		for _, value := range result.Values() {
			row = append(row, string(value))
		}
		rows = append(rows, row)
	}
	_, err = result.Close()
	return columns, rows, err
}

// withOIDs puts the twin's OIDs into a recorded message.
func (w *twin) withOIDs(t testing.TB, text string) string {
	t.Helper()
	return regexp.MustCompile(`\{oid:(\w+)\}`).ReplaceAllStringFunc(text, func(place string) string {
		var oid uint32
		name := strings.TrimSuffix(strings.TrimPrefix(place, "{oid:"), "}")
		if err := w.conn.QueryRow(t.Context(), "SELECT pg_catalog.to_regclass('public.' || $1)::oid", name).Scan(&oid); err != nil {
			t.Fatal(name, err)
		}
		return fmt.Sprint(oid)
	})
}

// TestCorpusOnTheTwin: each recorded message about catalogs is answered, by simple and by extended protocol, and the canary of the twin's
// server is in no answer.
func TestCorpusOnTheTwin(t *testing.T) {
	messages := corpus(t)
	w := newTwin(t)
	w.plantCanary(t)
	if testing.Short() { // one of ten
		messages = slices.DeleteFunc(messages, func(m message) bool { return !strings.HasSuffix(m.id, "3") })
	}
	for _, m := range messages {
		all, err := Split(w.withOIDs(t, m.raw), w.view.Names)
		if err != nil {
			t.Errorf("%s: %v", m.id, err)
			continue
		}
		for _, s := range all {
			if s.Kind != Catalog {
				continue
			}
			text, err := Rewrite(s, w.view)
			if err != nil {
				t.Errorf("%s: %v", m.id, err)
				continue
			}
			_, rows, err := w.ask(t, text, s.Parameters, "public")
			if err != nil && w.isOfAnotherVersion(t, s, err) {
				continue
			}
			if err != nil {
				t.Errorf("%s: %v\n%s", m.id, err, text)
			}
			for _, hidden := range []string{canary, twinOperations} {
				if strings.Contains(fmt.Sprint(rows), hidden) {
					t.Errorf("%s shows %s", m.id, hidden)
				}
			}
			if s.Parameters == 0 {
				if _, err := w.conn.PgConn().Exec(t.Context(), "SET search_path = public; "+text).ReadAll(); err != nil {
					t.Errorf("%s, by the simple protocol: %v", m.id, err)
				}
			}
		}
	}
}

// isOfAnotherVersion reports whether a message, which was recorded from a client of PostgreSQL 15, fails on this version by itself: the
// client would send another one.
func (w *twin) isOfAnotherVersion(t testing.TB, s Statement, err error) bool {
	t.Helper()
	if pgtest.Major(t) == 15 {
		return false
	}
	_, own := w.conn.Prepare(t.Context(), "", s.Text) // by the owner, who may read everything
	return own != nil && sqlState(own) == sqlState(err)
}

// plantCanary gives the twin's server a role, a comment, a setting and a database of the name that must not be seen.
func (w *twin) plantCanary(t testing.TB) {
	t.Helper()
	for _, sql := range []string{"CREATE ROLE " + canary, "COMMENT ON ROLE " + canary + " IS '" + canary + "'",
		"SET application_name = '" + canary + "'", "CREATE DATABASE " + canary} {
		if _, err := w.conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for _, sql := range []string{"DROP DATABASE " + canary, "DROP ROLE " + canary} {
			if _, err := w.conn.Exec(context.WithoutCancel(t.Context()), sql); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestSameAnswers: a message that names nothing replaced gives byte for byte what the twin gives for the client's own text: columns, types
// and rows.
func TestSameAnswers(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	messages := corpus(t)
	w := newTwin(t)
	compared := 0
	for _, m := range messages {
		all, err := Split(w.withOIDs(t, m.raw), w.view.Names)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range all {
			if s.Kind != Catalog {
				continue
			}
			text, err := Rewrite(s, w.view)
			if err != nil {
				t.Fatal(m.id, err)
			}
			columns, rows, err := w.ask(t, text, s.Parameters, "public")
			own, ownRows, ownErr := w.askBare(t, s.Text, s.Parameters)
			if err != nil && w.isOfAnotherVersion(t, s, err) {
				continue
			}
			if err != nil || ownErr != nil && !isDenied(ownErr) {
				t.Errorf("%s: %v, %v", m.id, err, ownErr)
			}
			if ownErr != nil {
				continue // reads what is hidden from the role
			}
			if fmt.Sprint(columns) != fmt.Sprint(own) {
				t.Errorf("%s: columns %q, the client's text gives %q", m.id, columns, own)
			}
			if c := (&rewriter{view: &w.view}); !c.replaces(t, s.Text) {
				compared++
				if fmt.Sprint(rows) != fmt.Sprint(ownRows) {
					t.Errorf("%s: other rows than the client's text", m.id)
				}
			}
		}
	}
	if compared < 150 {
		t.Errorf("%d messages compared", compared)
	}
}

// replaces reports whether rewriting a query puts anything in place of a node.
func (w *rewriter) replaces(t testing.TB, text string) bool {
	t.Helper()
	tree, err := pg.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	w.message(tree.Stmts[0].Stmt.ProtoReflect(), nil)
	return w.replaced > 0
}

func isDenied(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.Code == "42501"
}

// TestCatalogGolden reads testdata/catalog: queries with the text that runs on the twin, and its columns and rows; -rewrite fills it in.
func TestCatalogGolden(t *testing.T) {
	w := newTwin(t)
	datadriven.RunTest(t, "testdata/catalog", func(t *testing.T, d *datadriven.TestData) string {
		all, err := Split(d.Input, w.view.Names)
		if err != nil || len(all) != 1 || all[0].Kind != Catalog {
			d.Fatalf(t, "no query about catalogs: %v", show(all, err))
		}
		text, err := Rewrite(all[0], w.view)
		var b strings.Builder
		if err != nil {
			showRefusal(&b, err)
			return b.String()
		}
		if !d.HasArg("quiet") {
			b.WriteString(text + "\n")
		}
		columns, rows, err := w.ask(t, text, all[0].Parameters, "public")
		if err != nil {
			fmt.Fprintf(&b, "%v\n", err)
			return b.String()
		}
		fmt.Fprintf(&b, "columns: %s\n", strings.Join(columns, ", "))
		for _, row := range rows {
			fmt.Fprintf(&b, "%q\n", row)
		}
		if !d.HasArg("apart") && !(&rewriter{view: &w.view}).replaces(t, d.Input) {
			own, ownRows, err := w.askBare(t, d.Input, all[0].Parameters)
			if err != nil || fmt.Sprint(own, ownRows) != fmt.Sprint(columns, rows) {
				d.Fatalf(t, "the client's own text gives %v, %v", ownRows, err)
			}
		}
		return b.String()
	})
}

// recordedColumns are those of PostgreSQL 15, so that golden files do not depend on the server.
func recordedColumns(t testing.TB) map[TableName][]Column {
	t.Helper()
	text, err := os.ReadFile("testdata/columns")
	if err != nil {
		t.Fatal(err)
	}
	all := map[TableName][]Column{}
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSpace(line), " ", 3)
		schema, name, _ := strings.Cut(fields[0], ".")
		all[TableName{schema, name}] = append(all[TableName{schema, name}], Column{fields[1], fields[2]})
	}
	return all
}

// TestRecordedColumns: testdata/columns is what PostgreSQL 15 has.
func TestRecordedColumns(t *testing.T) {
	if pgtest.Major(t) != 15 {
		return
	}
	w := newTwin(t)
	var b strings.Builder
	for _, name := range Replaced() {
		for _, c := range w.view.Columns[name] {
			fmt.Fprintf(&b, "%s.%s %s %s\n", name.Schema, name.Name, c.Name, c.Type)
		}
	}
	golden(t, "testdata/columns", b.String())
}

// golden compares a text with a file, or writes it under -rewrite.
func golden(t testing.TB, file, text string) {
	t.Helper()
	if flag.Lookup("rewrite").Value.String() == "true" {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		got, expected := strings.Split(text, "\n"), strings.Split(string(want), "\n")
		for i := range min(len(got), len(expected)) {
			if got[i] != expected[i] {
				t.Errorf("%s:%d: got\n%s\nwant\n%s", file, i+1, got[i], expected[i])
				break
			}
		}
		t.Errorf("%s: run with -rewrite, and read the difference", file)
	}
}

// TestCorpusGolden compares what becomes of each message of the corpus with testdata/corpus: kind and printed text.
func TestCorpusGolden(t *testing.T) {
	view := demoView()
	view.Columns = recordedColumns(t)
	var b strings.Builder
	for _, m := range corpus(t) {
		all, err := Split(m.text, view.Names)
		if err != nil {
			t.Fatal(m.id, err)
		}
		fmt.Fprintf(&b, "# %s, %s\n", m.id, m.client)
		for _, s := range all {
			text := fmt.Sprintf("%v %T", s.Kind, s.Command)
			if s.Kind == Catalog {
				if text, err = Rewrite(s, view); err != nil {
					t.Fatal(m.id, err)
				}
				fixpoint(t, text)
			}
			fmt.Fprintf(&b, "%s\n", text)
		}
	}
	golden(t, "testdata/corpus", b.String())
}

// fixpoint makes sure that printing what PostgreSQL reads in a printed text gives the same text.
func fixpoint(t testing.TB, text string) {
	t.Helper()
	tree, err := pg.Parse(text)
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	again, err := pg.Deparse(tree)
	if err != nil || again != text {
		t.Errorf("printed again, %s\nis\n%s\n%v", text, again, err)
	}
}

// TestCorpusColumns compares the columns of each answer with testdata/columns_of_answers, on PostgreSQL 15.
func TestCorpusColumns(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	messages := corpus(t)
	if pgtest.Major(t) != 15 {
		return
	}
	w := newTwin(t)
	var b strings.Builder
	for _, m := range messages {
		all, err := Split(w.withOIDs(t, m.raw), w.view.Names)
		if err != nil {
			t.Fatal(m.id, err)
		}
		for _, s := range all {
			if s.Kind != Catalog {
				continue
			}
			text, err := Rewrite(s, w.view)
			if err != nil {
				t.Fatal(m.id, err)
			}
			columns, _, err := w.ask(t, text, s.Parameters, "public")
			if err != nil {
				t.Error(m.id, err)
			}
			fmt.Fprintf(&b, "%s: %s\n", m.id, strings.Join(columns, ", "))
		}
	}
	golden(t, "testdata/answers", b.String())
}

// TestHostileGolden reads testdata/refused: statements that try to see what is not the analyst's. Each is refused with its SQLSTATE, by
// this package or by the twin, or answered with nothing of the server in it; -rewrite fills it in.
//
// covers: A51 A52 A53 A54
func TestHostileGolden(t *testing.T) {
	w := newTwin(t)
	w.plantCanary(t)
	datadriven.RunTest(t, "testdata/refused", func(t *testing.T, d *datadriven.TestData) string {
		all, err := Split(d.Input, w.view.Names)
		if err != nil {
			return "message: " + sqlState(err) + "\n"
		}
		var b strings.Builder
		for _, s := range all {
			switch s.Kind {
			case Refused:
				b.WriteString(sqlState(s.Refusal) + "\n")
			case Catalog:
				text, err := Rewrite(s, w.view)
				if err != nil {
					b.WriteString(sqlState(err) + "\n")
					continue
				}
				_, rows, err := w.ask(t, text, s.Parameters, "public")
				if err != nil {
					b.WriteString("the twin: " + sqlState(err) + "\n")
					continue
				}
				answer := fmt.Sprint(rows)
				for _, secret := range []string{canary, catalog.TwinRole, w.conn.Config().Database, "postgres"} {
					if strings.Contains(answer, secret) && !d.HasArg("shows") {
						t.Errorf("%s: %s shows %s: %s", d.Pos, s.Text, secret, answer)
					}
				}
				b.WriteString("answered: " + answer[:min(len(answer), 120)] + "\n")
			default:
				fmt.Fprintf(&b, "%v\n", s.Kind)
			}
		}
		return b.String()
	})
}

// TestRightsTellNoRoles: wherever a literal would be read as an access right, nobody learns whether a role is there: the outcome is the
// same for one that is and one that is not.
//
// covers: A54
func TestRightsTellNoRoles(t *testing.T) {
	w := newTwin(t)
	w.plantCanary(t)
	const absent = "nobody_of_the_server"
	outcome := func(sql, role string) string {
		all, err := Split(strings.ReplaceAll(sql, "ROLE", role), w.view.Names)
		if err != nil || len(all) != 1 || all[0].Kind != Catalog {
			t.Fatalf("%s: %v", sql, show(all, err))
		}
		text, err := Rewrite(all[0], w.view)
		if err != nil {
			return sqlState(err)
		}
		_, rows, err := w.ask(t, text, 0, "public")
		if err != nil {
			return strings.ReplaceAll(sqlState(err), role, "ROLE")
		}
		return strings.ReplaceAll(fmt.Sprint(rows), role, "ROLE")
	}
	for _, sql := range []string{
		"SELECT relacl @> 'ROLE=r/postgres' FROM pg_class",
		"SELECT relacl @> '=r/ROLE' FROM pg_class",
		`SELECT relacl @> E'ROLE\x3dr/postgres' FROM pg_class`,
		`SELECT relacl @> U&'ROLE\003dr/postgres' FROM pg_class`,
		"SELECT relacl @> $$ROLE=r/postgres$$ FROM pg_class",
		"SELECT relacl[1] = 'ROLE=r/postgres' FROM pg_class",
		"SELECT 'ROLE=r/postgres' = ANY (relacl) FROM pg_class",
		"SELECT relacl = '{ROLE=r/postgres}' FROM pg_class",
		"SELECT relacl IN ('{ROLE=r/postgres}') FROM pg_class",
		"SELECT relacl IS DISTINCT FROM '{ROLE=r/postgres}' FROM pg_class",
		"SELECT relacl || '{ROLE=r/postgres}' FROM pg_class",
		"SELECT relacl && '{ROLE=r/postgres}' FROM pg_class",
		"SELECT ARRAY[relacl[1], 'ROLE=r/postgres'] FROM pg_class",
		"SELECT array_append(relacl, 'ROLE=r/postgres') FROM pg_class",
		"SELECT array_position(relacl, 'ROLE=r/postgres') FROM pg_class",
		"SELECT coalesce(relacl, '{ROLE=r/postgres}') FROM pg_class",
		"SELECT nullif(relacl, '{ROLE=r/postgres}') FROM pg_class",
		"SELECT CASE WHEN true THEN relacl ELSE '{ROLE=r/postgres}' END FROM pg_class",
		"SELECT CASE relacl WHEN '{ROLE=r/postgres}' THEN 1 END FROM pg_class",
		"SELECT relacl FROM pg_class UNION SELECT '{ROLE=r/postgres}'",
		"VALUES ('{ROLE=r/postgres}') UNION SELECT relacl FROM pg_class",
		"SELECT (relacl, 1) = ('{ROLE=r/postgres}', 1) FROM pg_class",
		"SELECT a @> 'ROLE=r/postgres' FROM (SELECT relacl FROM pg_class) c (a)",
		"SELECT lag(relacl, 1, '{ROLE=r/postgres}') OVER () FROM pg_class",
		"SELECT coalesce(s, '(ROLE,,,,)') FROM pg_init_privs s",
		"SELECT coalesce(n, '(1,a,10,{ROLE=U/postgres})') FROM pg_namespace n",
		"SELECT aclexplode('{ROLE=r/postgres}')",
		"SELECT * FROM aclexplode('{ROLE=r/postgres}')",
		"SELECT datacl @> 'ROLE=r/postgres' FROM pg_database",
	} {
		there, absentOne := outcome(sql, canary), outcome(sql, absent)
		if there != absentOne {
			t.Errorf("%s: %s for a role that is there, %s for one that is not", sql, there, absentOne)
		}
		if strings.HasPrefix(there, "42704") || strings.HasPrefix(there, "XX000") {
			t.Errorf("%s: %s", sql, there)
		}
	}
}

// TestOnlyRightsNameRoles: what else reads or writes names of roles is nothing that a query may use: no catalog has a column of type
// regrole, no listed function takes or gives one, and only aclexplode takes rights.
func TestOnlyRightsNameRoles(t *testing.T) {
	w := newTwin(t)
	var names []string
	for name := range passes {
		names = append(names, name)
	}
	var found []string
	if err := w.conn.QueryRow(t.Context(), `WITH roles AS (SELECT oid FROM pg_type WHERE typname ~ '^_?(regrole|regdatabase)$')
		SELECT coalesce(array_agg(name), '{}') FROM (
			SELECT attrelid::regclass || '.' || attname FROM pg_attribute WHERE atttypid IN (SELECT oid FROM roles)
			UNION SELECT proname FROM pg_proc WHERE proname = ANY ($1) AND pronamespace = 'pg_catalog'::regnamespace
				AND (prorettype IN (SELECT oid FROM roles) OR proargtypes::oid[] && ARRAY(SELECT oid FROM roles)
				OR proname <> 'aclexplode' AND proargtypes::oid[] && '{1033,1034}')) f (name)`, names).Scan(&found); err != nil {
		t.Fatal(err)
	}
	if len(found) > 0 {
		t.Errorf("%q name roles", found)
	}
}

// TestFieldsAreNoCalls: a field of a listed function's row that is no function or type which a query may not use itself.
func TestFieldsAreNoCalls(t *testing.T) {
	w := newTwin(t)
	var names, fields, found []string
	for name := range outputFields {
		if names = append(names, name); !passes[name] && !types[name] {
			fields = append(fields, name)
		}
	}
	if err := w.conn.QueryRow(t.Context(), `SELECT coalesce(array_agg(name), '{}') FROM (SELECT proname FROM pg_proc
		UNION SELECT typname FROM pg_type) f (name) WHERE name = ANY ($1)`, fields).Scan(&found); err != nil {
		t.Fatal(err)
	}
	if len(found) != 1 || found[0] != "abbrev" { // of a network's address
		t.Errorf("%q are functions or types", found)
	}
	var given int
	if err := w.conn.QueryRow(t.Context(), `SELECT count(DISTINCT a) FROM pg_proc, unnest(proargnames, proargmodes) u(a, m)
		WHERE m IN ('o', 't') AND a = ANY ($1)`, names).Scan(&given); err != nil || pgtest.Major(t) >= 15 && given != len(names) {
		t.Errorf("%d of %d fields are given by functions, %v", given, len(names), err)
	}
}

func sqlState(err error) string {
	var r *Refusal
	var e *pgconn.PgError
	switch {
	case errors.As(err, &r):
		return r.SQLState + " " + r.Message
	case errors.As(err, &e):
		return e.Code + " " + e.Message
	default:
		return err.Error()
	}
}

// TestRewritingIsBounded: what is put into a statement is bounded before it is parsed, whatever a client repeats.
func TestRewritingIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	view := demoView()
	view.Columns = recordedColumns(t)
	long := strings.Repeat("x", 1<<20)
	view.Own["releases"] = Rows{Columns: []Column{{"sql", "text"}}, Values: [][]*string{{&long}}}
	list := func(of string, n int) string { return strings.TrimSuffix(strings.Repeat(of+", ", n), ", ") }
	from := func(name string, n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf("%s t%d", name, i))
		}
		return "SELECT 1 FROM " + strings.Join(all, ", ")
	}
	for _, c := range []struct{ what, sql, state string }{
		{"relations", from("pg_settings", maxReplaced), ""},
		{"too many relations", from("pg_roles", maxReplaced+1), stateTooMany},
		{"far too many relations", from("pg_settings", 5000), stateTooMany},
		{"too many empty relations", from("pg_locks", 5000), stateTooMany},
		{"relations in subqueries", "SELECT " + list("(SELECT count(*) FROM pg_roles)", 1000), stateTooMany},
		{"long rows", from("noisegate.releases", 3), ""},
		{"too long rows", from("noisegate.releases", 4), stateTooMany},
		{"settings", "SELECT " + list("current_setting(relname)", 20) + " FROM pg_class", ""},
		{"too many settings", "SELECT " + list("current_setting(relname)", 2500) + " FROM pg_class", stateTooMany},
		{"too many descriptions", "SELECT " + list("pg_describe_object(1, 1, 1)", 1800), stateTooMany},
		{"arguments", "SELECT pg_get_userbyid(" + list("oid", 7000) + ") FROM pg_class", stateNoFunction},
		{"literals", "SELECT " + list("'a=b'", 1000), ""},
	} {
		all, err := Split(c.sql, view.Names)
		if err != nil || all[0].Kind != Catalog {
			t.Fatalf("%s: %.200v", c.what, show(all, err))
		}
		_, err = Rewrite(all[0], view)
		var r *Refusal
		if errors.As(err, &r); err == nil && c.state != "" || err != nil && r.SQLState != c.state {
			t.Errorf("%s: %v, want %q", c.what, err, c.state)
		}
	}
}

// FuzzRewrite: whatever is rewritten passes the check again when PostgreSQL's printer has printed it once more, and nothing panics.
func FuzzRewrite(f *testing.F) {
	for _, text := range []string{"SELECT current_user, pg_get_userbyid($1) FROM pg_database d, LATERAL (SELECT version()) v",
		"WITH a AS (SELECT * FROM pg_roles) SELECT array(SELECT rolname FROM a WHERE oid = ANY ('{1}'::oid[])) COLLATE \"C\"",
		"SELECT has_table_privilege('x', c.oid, 'SELECT'), c.oid::regclass FROM pg_catalog.pg_class c ORDER BY 1",
		"SELECT pg_describe_object(1260, 10, 0), current_setting('TimeZone'), x[1:2].a FROM current_database() x",
		"SELECT 'a' LIKE 'b' ESCAPE 'c', NOT 1 BETWEEN 2 AND 3, EXTRACT(year FROM now()), CAST(NULL AS int[])",
		"SELECT (0 = 0) BETWEEN 0 AND 0"} {
		f.Add(text)
	}
	for _, file := range []string{"testdata/catalog", "testdata/refused"} {
		content, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?ms)^(?:twin|hostile)[a-z ]*\n(.*?)\n----$`).FindAllStringSubmatch(string(content), -1) {
			f.Add(m[1])
		}
	}
	view := demoView()
	view.Columns = recordedColumns(f)
	f.Fuzz(func(t *testing.T, message string) {
		all, err := Split(message, view.Names)
		if err != nil {
			return
		}
		for _, s := range all {
			if s.Kind != Catalog {
				continue
			}
			text, err := Rewrite(s, view)
			var r *Refusal
			if err != nil && (!errors.As(err, &r) || r.SQLState == stateInternal) {
				t.Fatalf("%q: %v", s.Text, err)
			}
			if err != nil {
				continue
			}
			fixpoint(t, text)
			if refusal := guarded(text, func() {
				tree, err := pg.Parse(text)
				if err != nil {
					t.Fatal(err)
				}
				(&checker{view: &view, final: true}).node(tree.Stmts[0].Stmt.ProtoReflect(), nil)
			}); refusal != nil {
				t.Fatalf("%q became %q: %v", s.Text, text, refusal)
			}
		}
	})
}

// BenchmarkRewrite rewrites the statements of the corpus, one after the other.
func BenchmarkRewrite(b *testing.B) {
	view := demoView()
	view.Columns = recordedColumns(b)
	var texts []string
	for _, m := range corpus(b) {
		texts = append(texts, m.text)
	}
	b.ResetTimer()
	for i := range b.N {
		all, err := Split(texts[i%len(texts)], view.Names)
		if err != nil {
			b.Fatal(err)
		}
		for _, s := range all {
			if s.Kind == Catalog {
				if _, err := Rewrite(s, view); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
}
