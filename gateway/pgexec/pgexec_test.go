package pgexec_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"noisegate.example/catalog"
	"noisegate.example/gateway/pgexec"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/pgtest"
	"noisegate.example/internal/pgversion"
	"noisegate.example/internal/randomtest"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite"
)

const ddl = `CREATE TABLE people (id int PRIMARY KEY, region text, age int, score float8);
INSERT INTO people SELECT g, CASE WHEN g % 5 = 0 THEN NULL ELSE 'r' || g % 3 END, g % 90, g FROM generate_series(1, 100) g`

func open(t *testing.T, p *pgtest.ProtectedDatabase, edit func(*pgexec.Config)) *pgexec.Database {
	t.Helper()
	config := pgexec.Config{DSN: p.ReaderDSN, Connections: 4, StatementTimeout: 20 * time.Second}
	if edit != nil {
		edit(&config)
	}
	d, err := pgexec.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d.Unproven()
}

// pins reads what a policy would have pinned.
func pins(t testing.TB, d *pgexec.Database, table string, columns ...string) []sqlrewrite.Precondition {
	t.Helper()
	schema, err := d.Inspect(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	info, ok := schema.Table(catalog.TableName{Schema: "public", Name: table})
	if !ok {
		t.Fatalf("no table %s", table)
	}
	pin := sqlrewrite.Precondition{Schema: "public", Table: table, OID: info.OID}
	for _, name := range columns {
		c, ok := info.Column(name)
		if !ok {
			t.Fatalf("no column %s", name)
		}
		pin.Columns = append(pin.Columns, sqlrewrite.PreconditionColumn{Name: name, AttNum: c.AttNum, TypeOID: c.TypeOID, TypMod: c.TypMod,
			NotNull: name == "id"})
		if name == "id" {
			pin.Keys = append(pin.Keys, []string{name})
		}
	}
	return []sqlrewrite.Precondition{pin}
}

// revealed opens a sealed value the only way there is: with noise, here of scale 10⁻⁶, which is 0 but for a chance of e^-10⁶.
func revealed(t *testing.T, e mechanisms.Exact) string {
	t.Helper()
	m, err := mechanisms.NewLaplace(mechanisms.LaplaceParameters{L1: big.NewInt(1), Epsilon: mechanisms.MaxEpsilon})
	if err != nil {
		t.Fatal(err)
	}
	return m.Draw(mechanisms.NewSamplerFrom(randomtest.Source(t.Name()))).Release(e).String()
}

// collect runs a statement to its end.
func collect(t *testing.T, d *pgexec.Database, statement sqlrewrite.Statement) ([]sqlrewrite.ExactRow, error) {
	var all []sqlrewrite.ExactRow
	for row, err := range d.Run(t.Context(), statement) {
		if err != nil {
			return nil, err
		}
		all = append(all, row)
	}
	return all, nil
}

// A08: the number of private groups is itself private, so no number of them makes a statement fail; and whoever has seen enough
// leaves the connection usable.
//
// covers: A08
func TestAnyNumberOfGroups(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	p := pgtest.Protected(t, ddl)
	d := open(t, p, func(c *pgexec.Config) { c.Connections = 1 })
	statement := sqlrewrite.Statement{SQL: "SELECT g::text, '1' FROM generate_series(1, 300000) g", Keys: 1, Values: 1,
		Preconditions: pins(t, d, "people", "age")}
	rows, err := collect(t, d, statement)
	if err != nil || len(rows) != 300_000 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for _, err := range d.Run(t.Context(), statement) {
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	if rows, err := collect(t, d, statement); err != nil || len(rows) != 300_000 {
		t.Fatalf("after breaking off: %d rows, %v", len(rows), err)
	}
}

func TestRunSealsAggregates(t *testing.T) {
	p := pgtest.Protected(t, ddl)
	d := open(t, p, nil)
	rows, err := collect(t, d, sqlrewrite.Statement{
		SQL: `SELECT region::text, count(*)::text, sum(age)::text, (sum(age) FILTER (WHERE age < $1::int4))::text
			FROM public.people WHERE region IS NULL OR region = ANY($2::text[]) GROUP BY region ORDER BY region`,
		Args: []any{int64(-1), []string{"r1", "r2"}}, Keys: 1, Values: 3, Preconditions: pins(t, d, "people", "region", "age"),
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, row := range rows {
		got = append(got, fmt.Sprint(row.Keys, revealed(t, row.Values[0]), " ", revealed(t, row.Values[1]), " ", revealed(t, row.Values[2])))
	}
	// The last aggregate is over no rows: SQL's NULL, sealed as 0.
	want := []string{"[{r1 false}]27 1062 0", "[{r2 false}]26 1120 0", "[{ true}]20 780 0"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, text := range []string{fmt.Sprintf("%v %+v %#v", rows, rows, rows), encodeError(rows)} {
		if strings.Contains(text, "1062") || strings.Contains(text, "27") {
			t.Errorf("a sealed value shows: %s", text)
		}
	}
}

func encodeError(v any) string {
	text, err := json.Marshal(v)
	return string(text) + fmt.Sprint(err)
}

// TestUntouchedOnlyBeforeTheStatement: a failure before the server had parsed the statement may be voided; one after it may not, and it
// says nothing of what happened.
func TestUntouchedOnlyBeforeTheStatement(t *testing.T) {
	p := pgtest.Protected(t, ddl)
	d := open(t, p, func(c *pgexec.Config) { c.StatementTimeout = 300 * time.Millisecond })
	good := pins(t, d, "people", "age")
	gone := append([]sqlrewrite.Precondition{}, good...)
	gone[0].Table = "nobody"
	cases := map[string]struct {
		statement sqlrewrite.Statement
		untouched bool
		code      fault.Code
	}{
		"table is gone": {sqlrewrite.Statement{SQL: "SELECT 1", Values: 1, Preconditions: gone}, true, fault.CodeDataUnavailable},
		"A29 division by zero": {sqlrewrite.Statement{SQL: "SELECT sum(1/(age-42)) FROM public.people", Values: 1, Preconditions: good}, false,
			fault.CodeDataUnavailable},
		"A30 cast shows a value": {sqlrewrite.Statement{SQL: "SELECT sum(region::int) FROM public.people", Values: 1, Preconditions: good}, false,
			fault.CodeDataUnavailable},
		"A36 statement timeout": {sqlrewrite.Statement{SQL: "SELECT count(*) FROM generate_series(1, 1000000000)", Values: 1,
			Preconditions: good}, false, fault.CodeDataUnavailable},
		"statement is not SQL": {sqlrewrite.Statement{SQL: "SELEC", Values: 1, Preconditions: good}, true, fault.CodeDataUnavailable},
		"A49 second statement": {sqlrewrite.Statement{SQL: "SELECT 1; SELECT 2", Values: 1, Preconditions: good}, true,
			fault.CodeDataUnavailable},
		"no right to read": {sqlrewrite.Statement{SQL: "SELECT count(*) FROM pg_catalog.pg_authid", Values: 1, Preconditions: good}, false,
			fault.CodeDataUnavailable},
		"aggregate is no integer": {sqlrewrite.Statement{SQL: "SELECT avg(age) FROM public.people", Values: 1, Preconditions: good}, false,
			fault.CodeDataUnavailable},
		"more columns than planned": {sqlrewrite.Statement{SQL: "SELECT 1, 2", Values: 1, Preconditions: good}, false, fault.CodeDataUnavailable},
		"writing": {sqlrewrite.Statement{SQL: "WITH x AS (INSERT INTO public.people VALUES (-1) RETURNING 1) SELECT 1 FROM x", Values: 1,
			Preconditions: good},
			false, fault.CodeDataUnavailable},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			rows, err := collect(t, d, c.statement)
			if rows != nil || fault.CodeOf(err) != c.code || fault.IsUntouched(err) != c.untouched {
				t.Fatalf("got %v rows, %v (untouched %v)", len(rows), err, fault.IsUntouched(err))
			}
			if err.Error() != fault.DataUnavailable(nil).Error() {
				t.Errorf("the text says more than it should: %v", err)
			}
			if cause := errors.Unwrap(unwrapFault(err)); cause == nil || strings.Contains(cause.Error(), "r1") ||
				strings.Contains(cause.Error(), "zero") {
				t.Errorf("the cause for the log is %v", cause)
			}
			// The connection is usable again, or replaced.
			if _, err := collect(t, d, sqlrewrite.Statement{SQL: "SELECT '1'", Values: 1, Preconditions: good}); err != nil {
				t.Errorf("the next statement: %v", err)
			}
		})
	}
}

func unwrapFault(err error) error {
	var f *fault.Error
	if errors.As(err, &f) {
		return f
	}
	return nil
}

// TestChangedTables: a statement does not run against a table that is not the one its policy was checked against.
//
// covers: A59
func TestChangedTables(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	for name, change := range map[string]string{
		"type":              "ALTER TABLE people ALTER age TYPE bigint",
		"column dropped":    "ALTER TABLE people DROP COLUMN age",
		"column renamed":    "ALTER TABLE people RENAME age TO years",
		"column made again": "ALTER TABLE people DROP COLUMN age; ALTER TABLE people ADD age int",
		"column swapped":    "ALTER TABLE people RENAME age TO x; ALTER TABLE people RENAME id TO age",
		"table replaced": "ALTER TABLE people RENAME TO old; CREATE TABLE people (id int, region text, age int, score float8); GRANT " +
			"SELECT ON people TO noisegate_reader",
		"view instead": "ALTER TABLE people RENAME TO old; CREATE VIEW people AS SELECT * FROM old; GRANT SELECT ON people TO " +
			"noisegate_reader",
		"other schema":    "CREATE SCHEMA s; ALTER TABLE people SET SCHEMA s",
		"table dropped":   "DROP TABLE people",
		"key dropped":     "ALTER TABLE people DROP CONSTRAINT people_pkey",
		"key may be NULL": "ALTER TABLE people DROP CONSTRAINT people_pkey, ALTER id DROP NOT NULL; ALTER TABLE people ADD UNIQUE (id)",
		"key of two":      "ALTER TABLE people DROP CONSTRAINT people_pkey, ADD PRIMARY KEY (id, age)",
		"key with more":   "ALTER TABLE people DROP CONSTRAINT people_pkey; CREATE UNIQUE INDEX ON people (id, lower(region))",
		"key of some":     "ALTER TABLE people DROP CONSTRAINT people_pkey; CREATE UNIQUE INDEX ON people (id) WHERE age > 0",
		"children":        "CREATE TABLE more () INHERITS (people); GRANT SELECT ON more TO noisegate_reader",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := pgtest.Protected(t, ddl)
			d := open(t, p, nil)
			statement := sqlrewrite.Statement{SQL: "SELECT count(*)::text FROM public.people", Values: 1,
				Preconditions: pins(t, d, "people", "id", "age")}
			if _, err := collect(t, d, statement); err != nil {
				t.Fatalf("before the change: %v", err)
			}
			p.Exec(t, change)
			_, err := collect(t, d, statement)
			if !fault.IsUntouched(err) {
				t.Errorf("got %v", err)
			}
			if code := fault.CodeOf(err); code != fault.CodePolicyStale && code != fault.CodeDataUnavailable {
				t.Errorf("got %s", code)
			}
		})
	}
}

// TestPinWithoutColumns: a pin that nothing could contradict is not taken for one that holds.
func TestPinWithoutColumns(t *testing.T) {
	p := pgtest.Protected(t, ddl)
	d := open(t, p, nil)
	bare := pins(t, d, "people")
	if _, err := collect(t, d, sqlrewrite.Statement{SQL: "SELECT '1'", Values: 1,
		Preconditions: bare}); fault.CodeOf(err) != fault.CodeInternal || !fault.IsUntouched(err) {
		t.Errorf("got %v", err)
	}
}

// TestNoFreeConnection: a query that finds no connection in time has read nothing.
//
// covers: A86
func TestNoFreeConnection(t *testing.T) {
	p := pgtest.Protected(t, ddl)
	d := open(t, p, func(c *pgexec.Config) { c.Connections, c.AcquireTimeout = 1, 100*time.Millisecond })
	good := pins(t, d, "people", "age")
	p.Exec(t, "CREATE TABLE held (); GRANT SELECT ON held TO PUBLIC")
	lock := p.Conn(t, p.DSN)
	if _, err := lock.Exec(t.Context(), "BEGIN; LOCK TABLE held"); err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	wait.Go(func() {
		_, _ = collect(t, d, sqlrewrite.Statement{SQL: "SELECT count(*)::text FROM public.held", Values: 1, Preconditions: good})
	})
	const patience = 20 * time.Second
	for deadline, waits := time.Now().Add(patience), false; !waits; time.Sleep(time.Millisecond) {
		if err := lock.QueryRow(t.Context(), "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted").Scan(&waits); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(deadline) {
			t.Fatalf("the only connection is not taken within %s", patience)
		}
	}
	if _, err := collect(t, d, sqlrewrite.Statement{SQL: "SELECT '1'", Values: 1,
		Preconditions: good}); fault.CodeOf(err) != fault.CodeDataUnavailable || !fault.IsUntouched(err) {
		t.Errorf("got %v", err)
	}
	if err := d.Ping(t.Context()); err != nil { // or who looks whether it answers would see when the statement ends
		t.Errorf("ping: %v", err)
	}
	if _, err := lock.Exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	wait.Wait()
}

// covers: F03
func TestDatabaseIsDown(t *testing.T) {
	server := pgtest.Server(t)
	d, err := pgexec.Open(t.Context(), pgexec.Config{DSN: server.DSN("postgres", "postgres"), Connections: 1, StatementTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	server.Kill()
	_, err = collect(t, d.Unproven(), sqlrewrite.Statement{SQL: "SELECT '1'", Values: 1})
	if fault.CodeOf(err) != fault.CodeDataUnavailable || !fault.IsUntouched(err) {
		t.Errorf("got %v", err)
	}
	if err := d.Ping(t.Context()); fault.CodeOf(err) != fault.CodeDataUnavailable {
		t.Errorf("ping: %v", err)
	}
}

// TestSessionSettings holds the session against what the package promises, whatever the role's defaults are.
// A server that was replaced by one of a version that was not tested is not asked anything, also while the gateway runs.
func TestUntestedServer(t *testing.T) {
	p := pgtest.Protected(t, ddl)
	posing := pgtest.Pose(t, p.ReaderDSN, 99)
	refused := open(t, p, func(c *pgexec.Config) { c.DSN = posing })
	for _, cause := range []error{refused.Ping(t.Context()), func() error { _, err := refused.Inspect(t.Context(), nil); return err }()} {
		if cause == nil {
			t.Error("a server of version 99 was accepted")
		}
	}
	if err := refused.Ping(t.Context()); !strings.Contains(fmt.Sprint(errors.Unwrap(err)), "not tested with") {
		t.Errorf("got %v: %v, want the version as the cause", err, errors.Unwrap(err))
	}
	accepted := open(t, p, func(c *pgexec.Config) { c.DSN, c.Versions = posing, pgversion.AllowUntested })
	if version, err := accepted.ServerVersion(t.Context()); err != nil || !strings.HasPrefix(version, "99") {
		t.Errorf("got %q, %v", version, err)
	}
}

func TestSessionSettings(t *testing.T) {
	p := pgtest.Protected(t, ddl)
	p.Exec(t, "ALTER DATABASE "+p.Name+" SET search_path = public; ALTER DATABASE "+p.Name+" SET timezone = 'Asia/Tokyo'")
	d := open(t, p, nil)
	for name, want := range map[string]string{
		"search_path": "", "default_transaction_read_only": "on", "transaction_read_only": "on", "transaction_isolation": "repeatable read",
		"statement_timeout": "20s", "jit": "off", "TimeZone": "UTC", "plan_cache_mode": "force_custom_plan", "client_min_messages": "warning",
	} {
		rows, err := collect(t, d, sqlrewrite.Statement{SQL: "SELECT pg_catalog.current_setting($1::text)", Args: []any{name}, Keys: 1})
		if err != nil || rows[0].Keys[0].Text != want {
			t.Errorf("%s is %v, %v; want %q", name, rows, err, want)
		}
	}
}

// How much memory the sorts and hashes of a question have is drawn anew for each: with a fixed limit one row of one person decides whether
// all others' rows go through files. 64 draws that are uniform over a range miss its lower or upper quarter once in 50 million times.
//
// covers: A33
func TestMemoryIsDrawn(t *testing.T) {
	p := pgtest.Protected(t, ddl)
	const most = 16 << 20 // deploy/roles.sql
	d := open(t, p, func(c *pgexec.Config) { c.Connections = 1 })
	size := "SELECT pg_catalog.pg_size_bytes(pg_catalog.current_setting('work_mem'))::text"
	least, greatest := int64(most), int64(0)
	for range 64 {
		rows, err := collect(t, d, sqlrewrite.Statement{SQL: size, Keys: 1, Preconditions: pins(t, d, "people", "id")})
		if err != nil {
			t.Fatal(err, unwrapFault(err))
		}
		n, err := strconv.ParseInt(rows[0].Keys[0].Text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		least, greatest = min(least, n), max(greatest, n)
	}
	if least < most/2 || least > most*5/8 || greatest < most*7/8 || greatest > most {
		t.Errorf("from %d to %d bytes, want draws from the upper half of %d", least, greatest, most)
	}
}

// TestPagesDecideNoWorkers: the row that opens the page from which on PostgreSQL thinks of workers, 8 MB by default, changes no plan, and
// the cost from which on it takes them is another on each connection.
//
// covers: A33, A37
func TestPagesDecideNoWorkers(t *testing.T) {
	const rowsOfPage, least = 226, 1024
	p := pgtest.Protected(t, ddl, fmt.Sprintf(`CREATE TABLE crowd (id int) WITH (autovacuum_enabled = off);
		INSERT INTO crowd SELECT generate_series(1, %d); ANALYZE crowd`, rowsOfPage*(least-1)))
	settings := func() (set string) {
		d := open(t, p, nil)
		for _, name := range []string{"min_parallel_table_scan_size", "min_parallel_index_scan_size", "parallel_setup_cost"} {
			rows, err := collect(t, d, sqlrewrite.Statement{SQL: "SELECT pg_catalog.current_setting('" + name + "')", Keys: 1})
			if err != nil {
				t.Fatal(err, unwrapFault(err))
			}
			set += fmt.Sprintf("SET %s = '%s';", name, rows[0].Keys[0].Text)
		}
		return set
	}
	seen := map[string]bool{}
	for range 4 {
		seen[settings()] = true
	}
	if len(seen) < 3 {
		t.Errorf("four connections have the settings %v", seen)
	}
	conn := p.Conn(t, p.ReaderDSN)
	plan := func() string {
		rows, _ := conn.Query(t.Context(), `EXPLAIN (COSTS OFF) SELECT count(*) FROM public.crowd WHERE id * 2 + 3 > id AND id % 7 <> 3
			AND id + 5 < 200 AND id <> 8`)
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(lines, "\n")
	}
	if _, err := conn.Exec(t.Context(), settings()+"SET parallel_setup_cost = 1000"); err != nil { // not drawn here: it decides, if seldom
		t.Fatal(err)
	}
	before := plan()
	p.Exec(t, "INSERT INTO crowd VALUES (0)")
	if after := plan(); after != before {
		t.Errorf("with one row more the plan is\n%s\nwithout it\n%s", after, before)
	}
}

// TestRanges: the ends of the ranges cut a column's rows into parts of about one size, as PostgreSQL's own statistics have it; before there
// are any, one range has all of them.
func TestRanges(t *testing.T) {
	p := pgtest.Protected(t, "CREATE TABLE visits (person int); INSERT INTO visits SELECT g * g FROM generate_series(1, 1000) g")
	d := open(t, p, nil)
	statement := sqlrewrite.Statement{SQL: "SELECT $1::int::text, $2::int::text, $3::int::text",
		Args: []any{int64(0), int64(0), int64(0)}, Keys: 3,
		Partitioned: true, Ranges: &sqlrewrite.Ranges{Schema: "public", Table: "visits", Column: "person", Args: []int{1, 2, 3}}}
	ends := func() []int {
		rows, err := collect(t, d, statement)
		if err != nil {
			t.Fatal(errors.Unwrap(err))
		}
		var all []int
		for _, key := range rows[0].Keys {
			end, err := strconv.Atoi(key.Text)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, end)
		}
		return all
	}
	if got := ends(); !slices.Equal(got, []int{0, 0, 0}) {
		t.Errorf("without statistics the ranges end at %v", got)
	}
	p.Exec(t, "ANALYZE visits")
	for i, end := range ends() {
		if share := math.Sqrt(float64(end)) / 1000; math.Abs(share-float64(i+1)/4) > 0.05 { // of all rows: they are fewer than a sample
			t.Errorf("range %d ends at %d, below which a part of %.2f lies", i+1, end, share)
		}
	}
}

// A29: no text that a row may hold makes a statement fail, whatever encoding the database's clients have by default.
//
// covers: A29
func TestTextsOutsideTheClientsEncoding(t *testing.T) {
	p := pgtest.Protected(t, ddl, "INSERT INTO people VALUES (101, U&'\\017elu\\0165', 1)")
	p.Exec(t, "ALTER DATABASE "+p.Name+" SET client_encoding = 'LATIN1'")
	d := open(t, p, nil)
	rows, err := collect(t, d, sqlrewrite.Statement{SQL: "SELECT region::text, count(*)::text FROM public.people WHERE id > 100 GROUP " +
		"BY region",
		Keys: 1, Values: 1, Preconditions: pins(t, d, "people", "region")})
	if err != nil || len(rows) != 1 || rows[0].Keys[0].Text != "žluť" {
		t.Errorf("%v, %v", rows, errors.Unwrap(err))
	}
}

// A29: a database in another encoding is refused whatever it holds, before anything is read.
//
// covers: A29
func TestDatabaseInAnotherEncoding(t *testing.T) {
	p := pgtest.New(t)
	ascii := p.Name + "_ascii"
	p.Exec(t, "CREATE DATABASE "+ascii+" TEMPLATE template0 ENCODING 'SQL_ASCII' LOCALE 'C'")
	t.Cleanup(func() { p.Exec(t, "DROP DATABASE "+ascii+" WITH (FORCE)") })
	d, err := pgexec.Open(t.Context(), pgexec.Config{DSN: strings.ReplaceAll(p.DSN, p.Name, ascii), Connections: 1,
		StatementTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	_, err = collect(t, d.Unproven(), sqlrewrite.Statement{SQL: "SELECT '1'", Values: 1})
	if cause := errors.Unwrap(errors.Unwrap(err)); !fault.IsUntouched(err) || !strings.Contains(fmt.Sprint(cause), "not UTF8") {
		t.Errorf("got %v, %v", err, cause)
	}
	if err := d.Ping(t.Context()); fault.CodeOf(err) != fault.CodeDataUnavailable {
		t.Errorf("ping: %v", err)
	}
}

func TestCompute(t *testing.T) {
	c := calculator(t)
	rows, types, err := c.ComputeText(t.Context(),
		`SELECT r.k, r.n, r.n / NULLIF(r.z, 0), r.n > 5, r.n::numeric / 4, r.n::float8, r.d::date, r.i
			FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[], $5::bigint[]) AS r(k, n, z, d, i)
			WHERE r.n > $6::bigint ORDER BY r.n DESC`,
		[]*string{ptr("a"), nil, ptr("c")}, []int64{1, 7, 9}, []int64{0, 0, 3}, []string{"2020-01-01", "2020-01-02", "infinity"},
		[]*int64{nil, count(1), count(2)}, int64(3))
	if err != nil {
		t.Fatal(err)
	}
	wantTypes := []string{"text", "bigint", "bigint", "boolean", "numeric", "double precision", "date"}
	if diff := cmp.Diff(wantTypes, types); diff != "" {
		t.Error(diff)
	}
	text := func(s string) catalog.Key { return catalog.Key{Text: s} }
	null := catalog.Key{Null: true}
	want := []sqlrewrite.PostRow{
		{Values: []catalog.Key{text("c"), text("9"), text("3"), text("true"), text("2.2500000000000000"), text("9"), text("infinity")},
			Ordinal: 2},
		{Values: []catalog.Key{null, text("7"), null, text("true"), text("1.7500000000000000"), text("7"), text("2020-01-02")}, Ordinal: 1},
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Error(diff)
	}
}

func TestComputeFailures(t *testing.T) {
	c := calculator(t)
	for name, sql := range map[string]string{
		"error":          "SELECT 1/0, 1::bigint",
		"no ordinal":     "SELECT 1, 'x'",
		"no column":      "SELECT",
		"type":           `SELECT '\x00'::bytea, 1::bigint`,
		"writing":        "WITH x AS (DELETE FROM noisegate.entry RETURNING 1) SELECT 1, 1 FROM x",
		"not SQL at all": "(",
	} {
		if _, _, err := c.ComputeText(t.Context(), sql); fault.CodeOf(err) != fault.CodeDataUnavailable {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	for name, c := range map[string]pgexec.Config{
		"no connections": {DSN: "postgres://x@/y", StatementTimeout: time.Second},
		"no timeout":     {DSN: "postgres://x@/y", Connections: 1},
		"no DSN":         {DSN: "postgres://u:pw-secret@h:port/", Connections: 1, StatementTimeout: time.Second},
	} {
		_, err := pgexec.Open(context.Background(), c)
		if err == nil || strings.Contains(err.Error(), "pw-secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func calculator(t *testing.T) *pgexec.Calculator {
	t.Helper()
	c, err := pgexec.NewCalculator(t.Context(), pgexec.Config{DSN: pgtest.Control(t).LedgerDSN, Connections: 2,
		StatementTimeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func ptr(s string) *string { return &s }

func count(n int64) *int64 { return &n }

// A connection that forgets texts, as it knows as many as it may, forgets none that it is about to use: neither the one that locks the
// tables nor another statement of the same question. Else each 250th question failed, some of them with their charge.
func TestForgottenTextsAreOthers(t *testing.T) {
	p := pgtest.Protected(t, ddl+"; CREATE TABLE shops (id int PRIMARY KEY, size int)")
	asks := func(pins []sqlrewrite.Precondition, n int) sqlrewrite.Statement {
		return sqlrewrite.Statement{SQL: fmt.Sprintf("SELECT count(*)::text FROM public.people WHERE age <> %d", n), Values: 1,
			Preconditions: pins}
	}
	ask := func(t *testing.T, d *pgexec.Database, what string, statements ...sqlrewrite.Statement) {
		t.Helper()
		for _, err := range d.Run(t.Context(), statements...) {
			if err != nil {
				t.Fatalf("%s: %v, untouched %t", what, err, fault.IsUntouched(err))
			}
		}
	}
	one := func(c *pgexec.Config) { c.Connections = 1 }
	t.Run("statement", func(t *testing.T) {
		d := open(t, p, one)
		people := pins(t, d, "people", "age")
		both := slices.Concat(people, pins(t, d, "shops", "size"))
		for i := range pgexec.MostKept - 1 {
			ask(t, d, fmt.Sprint("question ", i), asks(people, i))
		}
		ask(t, d, "an old statement beside a new one", asks(both, 0), asks(both, -1))
	})
	t.Run("lock", func(t *testing.T) {
		d := open(t, p, one)
		people := pins(t, d, "people", "age")
		var many []sqlrewrite.Statement
		for i := range pgexec.MostKept + 10 {
			ask(t, d, fmt.Sprint("question ", i), asks(people, i))
			many = append(many, asks(people, -i))
		}
		ask(t, d, "more statements than are kept", many...)
	})
}

// Long texts are forgotten sooner: 256 of them, of 44 kB each, took 420 MB of the server for each connection.
func TestKeptTextsAreBounded(t *testing.T) {
	d := open(t, pgtest.Protected(t, ddl), func(c *pgexec.Config) { c.Connections = 1 })
	people := pins(t, d, "people", "age")
	for i := range 3 * pgexec.MostKeptBytes / 40_000 {
		sql := fmt.Sprintf("SELECT count(*)::text FROM public.people WHERE age <> %d%s", i, strings.Repeat(" ", 40_000))
		if _, err := collect(t, d, sqlrewrite.Statement{SQL: sql, Values: 1, Preconditions: people}); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := collect(t, d, sqlrewrite.Statement{Values: 1, Preconditions: people,
		SQL: "SELECT sum(octet_length(statement))::text FROM pg_catalog.pg_prepared_statements"})
	if err != nil {
		t.Fatal(err)
	}
	kept, err := strconv.Atoi(revealed(t, rows[0].Values[0]))
	if err != nil || kept > pgexec.MostKeptBytes+64<<10 || kept < pgexec.MostKeptBytes/2 { // with the fixed texts
		t.Errorf("%d bytes are kept, %v", kept, err)
	}
}
