package pgwire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"noisegate.example/api"
	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/gateway/httpapi"
	"noisegate.example/internal/pgtest"
)

// overHTTP is the other door of the same gateway.
func (d *door) overHTTP(t testing.TB) *api.Client {
	t.Helper()
	handler, err := httpapi.New(httpapi.Config{Service: d.Service, Labels: d.Labels, Fit: d.Fit, Verifier: d.tokens})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	if _, err := http.Get(server.URL + "/healthz"); err != nil {
		t.Fatal(err)
	}
	return api.NewClient(server.URL, "ana:analyst")
}

// table asks and gives all rows as text, whatever their types.
func table(t *testing.T, conn *pgx.Conn, sql string, args ...any) [][]string {
	t.Helper()
	rows, err := conn.Query(t.Context(), sql, args...)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	defer rows.Close()
	var all [][]string
	for rows.Next() {
		values, err := rows.Values()
		if err != nil {
			t.Fatal(err)
		}
		line := make([]string, len(values))
		for i, v := range values {
			text, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			line[i] = string(bytes.Trim(text, `"`))
		}
		all = append(all, line)
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return all
}

// TestMoney: only the first Execute of a question is charged. Parse, Bind, Describe and EXPLAIN are not, and every other form of the
// question, over both doors, replays its release.
//
// covers: A68
func TestMoney(t *testing.T) {
	d := opened(t, gatewaytest.Options{}, nil)
	client := d.overHTTP(t)
	conn := d.connect(t, priced, nil)
	empty := d.Entries(t)
	if _, err := conn.Prepare(t.Context(), "q",
		"SELECT region, count(*) AS n FROM people WHERE age > $1 GROUP BY region ORDER BY 1"); err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{"EXPLAIN SELECT region, count(*) AS n FROM people WHERE age > 30 GROUP BY region ORDER BY 1",
		"SELECT region FROM people LIMIT 0", "SHOW noisegate.budget"} {
		table(t, conn, sql)
	}
	if _, err := conn.Exec(t.Context(), "SELECT * FROM people"); err == nil {
		t.Error("rows of people were shown")
	}
	if n := d.Entries(t); n != empty {
		t.Fatalf("%d entries of the ledger, want %d: something was charged before Execute", n, empty)
	}
	first := table(t, conn, "q", 30)
	once := d.Entries(t)
	if once == empty {
		t.Fatal("the question was not charged")
	}
	literal := "SELECT region, count(*) AS n FROM people WHERE age > 30 GROUP BY region ORDER BY 1"
	for _, again := range []func() [][]string{
		func() [][]string { return table(t, conn, "q", 30) },
		func() [][]string { return table(t, conn, literal) },
		func() [][]string { return table(t, conn, literal, pgx.QueryExecModeSimpleProtocol) },
		func() [][]string {
			return table(t, conn, "/* other words */ "+strings.ToLower(literal), pgx.QueryExecModeExec)
		},
		func() [][]string { return table(t, d.connect(t, priced, nil), literal) },
	} {
		if diff := cmp.Diff(first, again()); diff != "" {
			t.Error(diff)
		}
	}
	answer, err := client.Query(t.Context(), api.QueryRequest{Dataset: gatewaytest.Dataset, SQL: literal, Epsilon: "0.1"}, "")
	if err != nil || !answer.Replayed {
		t.Fatalf("over HTTP: %+v, %v", answer, err)
	}
	for i, row := range answer.Rows {
		if row[0].String() != first[i][0] || row[1].String() != first[i][1] {
			t.Errorf("over HTTP %v, over the wire %v", row, first[i])
		}
	}
	if n := d.Entries(t); n != once {
		t.Errorf("%d entries of the ledger, want %d: a replay was charged", n, once)
	}
	bought, err := client.Query(t.Context(), api.QueryRequest{Dataset: gatewaytest.Dataset, SQL: "SELECT avg(age) AS a FROM people",
		Epsilon: "0.1"}, "")
	if err != nil {
		t.Fatal(err)
	}
	many := d.Entries(t)
	if got := table(t, conn, "SELECT avg(age) AS a FROM people",
		pgx.QueryExecModeSimpleProtocol); got[0][0] != bought.Rows[0][0].String() {
		t.Errorf("over HTTP %v, over the wire %v", bought.Rows, got)
	}
	if n := d.Entries(t); n != many {
		t.Error("what was bought over HTTP was charged over the wire")
	}
}

// TestWhatCannotBeSentIsNotCharged: formats of more columns than there are, and a column of COPY that is none.
func TestWhatCannotBeSentIsNotCharged(t *testing.T) {
	d := opened(t, gatewaytest.Options{}, nil)
	conn := d.connect(t, priced, nil).PgConn()
	before := d.Entries(t)
	for name, ask := range map[string]func() error{
		"formats": func() error {
			return conn.ExecParams(t.Context(), counted, nil, nil, nil, []int16{0, 1, 0}).Read().Err
		},
		"formats of EXECUTE": func() error {
			if _, err := conn.Exec(t.Context(), "PREPARE q AS "+counted).ReadAll(); err != nil {
				t.Fatal(err)
			}
			return conn.ExecParams(t.Context(), "EXECUTE q", nil, nil, nil, []int16{0, 1, 0}).Read().Err
		},
		"a format": func() error { return conn.ExecParams(t.Context(), counted, nil, nil, nil, []int16{7}).Read().Err },
		"COPY": func() error {
			_, err := conn.CopyTo(t.Context(), io.Discard, "COPY ("+counted+") TO STDOUT (FORMAT csv, FORCE_QUOTE (none))")
			return err
		},
	} {
		var refused *pgconn.PgError
		if err := ask(); !errors.As(err, &refused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := d.Entries(t); n != before {
		t.Errorf("%d entries of the ledger, want %d: what could not be sent was charged", n, before)
	}
}

// TestExplainOfSeveralBlocks: the estimate of a statement that releases twice has both releases, is free, and is what the statement costs.
func TestExplainOfSeveralBlocks(t *testing.T) {
	d := opened(t, gatewaytest.Options{}, nil)
	conn := d.connect(t, priced, nil)
	const sql = "SELECT a.n AS people, b.s AS income, b.s / a.n AS each FROM (SELECT count(*) AS n FROM people) a, " +
		"(SELECT sum(income) AS s FROM people WHERE age > 30) b"
	before := d.Entries(t)
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeSimpleProtocol} {
		text := ""
		for _, line := range table(t, conn, "EXPLAIN "+sql, mode) {
			text += line[0] + "\n"
		}
		for _, want := range []string{"cost=0.00..0.1 ", "price: ε 0.1\n", "people", "income"} {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in\n%s", want, text)
			}
		}
	}
	if n := d.Entries(t); n != before {
		t.Error("EXPLAIN was charged")
	}
	if rows := table(t, conn, sql); len(rows) != 1 || len(rows[0]) != 3 {
		t.Error(rows)
	}
	if left := table(t, conn, "SHOW noisegate.budget")[0][0]; !strings.HasPrefix(left, "ε 9.9 left") {
		t.Error(left)
	}
}

// TestNoPriceNoQuery: a question without a price is refused and says how to give one.
func TestNoPriceNoQuery(t *testing.T) {
	d := opened(t, gatewaytest.Options{}, nil)
	conn := d.connect(t, "", nil)
	before := d.Entries(t)
	for _, sql := range []string{counted, "EXPLAIN " + counted} {
		_, err := conn.Exec(t.Context(), sql)
		if refused := refusedWith(t, err, stateValue); refused.Hint != priceHint || refused.Detail != "request/no-price" {
			t.Errorf("%+v", refused)
		}
	}
	if n := d.Entries(t); n != before {
		t.Error("a refusal changed the ledger")
	}
	for _, set := range []string{"SET noisegate.epsilon = 0.05", "RESET noisegate.epsilon; SET noisegate.rho = '0.001'",
		"RESET ALL; SET noisegate.max_error = 'n:25'"} {
		if _, err := conn.Exec(t.Context(), set, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatal(err)
		}
		table(t, conn, counted)
	}
}

// TestErrors: an error has its place in the client's own text, a hint, and its code.
func TestErrors(t *testing.T) {
	d := opened(t, gatewaytest.Options{}, nil)
	r := d.session(t)
	for _, c := range []struct{ sql, state, detail, near string }{
		{"SHOW work_mem;\n /* é */ SELECT count(*),\n nothing FROM people", stateNoColumn, "sql/unknown-column", "nothing"},
		{"SELECT income FROM people", stateNotAllowed, "policy/not-aggregate", "income"},
		{"EXPLAIN SELECT sum(nothing) FROM people", stateNoColumn, "sql/unknown-column", "nothing"},
		{"COPY (SELECT sum(nothing) FROM people) TO STDOUT", stateNoColumn, "sql/unknown-column", "nothing"},
	} {
		result := r.query(c.sql)
		if result == nil {
			t.Fatalf("%s: no error", c.sql)
		}
		want := len([]rune(c.sql[:strings.Index(c.sql, c.near)])) + 1
		if result.Code != c.state || result.Detail != c.detail || int(result.Position) != want {
			t.Errorf("%q: %s %s at %d, want %s %s at %d", c.sql, result.Code, result.Detail, result.Position, c.state, c.detail, want)
		}
	}
	if refused := r.query("SELECT regio, count(*) FROM people GROUP BY regio"); refused == nil || !strings.Contains(refused.Hint,
		"region") {
		t.Errorf("no hint: %+v", refused)
	}
	conn := d.connect(t, priced, nil)
	_, err := conn.Exec(t.Context(), "SELECT count(nothing) FROM people WHERE age > $1", 5)
	if refused := refusedWith(t, err, stateNoColumn); refused.Position != 0 || strings.Contains(refused.Message, "5") {
		t.Errorf("parameters have no place in the client's text: %+v", refused)
	}
	if log := d.log.String(); strings.Contains(log, "nothing") || strings.Contains(log, "people") {
		t.Errorf("the log has a text: %s", log)
	}
}

// TestNotices: a charge and a replay tell error bars, what was spent and what is left; a free answer does where it is asked to.
func TestNotices(t *testing.T) {
	const noise = "this is mostly noise; "
	d := opened(t, gatewaytest.Options{}, nil)
	var notices []*pgconn.Notice
	conn := d.connect(t, priced, &notices)
	released := regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:]+Z`)
	told := func(set, sql string) string {
		t.Helper()
		if set != "" {
			if _, err := conn.Exec(t.Context(), set); err != nil {
				t.Fatal(err)
			}
		}
		notices = nil
		table(t, conn, sql)
		if len(notices) == 0 {
			return ""
		}
		text := notices[0].Severity + ": " + notices[0].Message
		if at := released.FindString(text); at != "" { // a replay says when its values were released
			if moment, err := time.Parse(time.RFC3339, at); err != nil || time.Since(moment) > time.Hour {
				t.Errorf("%s: %v", text, err)
			}
		}
		return released.ReplaceAllString(text, "TIME")
	}
	for _, c := range []struct{ set, sql, want string }{
		{"", counted, "NOTICE: n ± 30 (95 %); spent ε 0.1; ε 9.9 left"},
		{"", counted, "NOTICE: n ± 30 (95 %); a replay of TIME, spent nothing; ε 9.9 left"},
		{"", "SELECT 1", ""},
		{"SET noisegate.notices = always", counted, "NOTICE: n ± 30 (95 %); a replay of TIME, spent nothing; ε 9.9 left"},
		{"SET client_min_messages = warning", counted, ""},
		{"RESET client_min_messages", "SELECT 1", "NOTICE: exact and free; ε 9.9 left"},
		{"SET noisegate.notices = off", "SELECT count(*) FROM people WHERE age > 25", ""},
		{"", counted, ""},
		{"RESET noisegate.notices", counted, "NOTICE: n ± 30 (95 %); a replay of TIME, spent nothing; ε 9.8 left"},
		{"SET client_min_messages = warning", counted, ""},
	} {
		if got := strings.Replace(told(c.set, c.sql), noise, "", 1); got != c.want { // so few people are often noise, and not always
			t.Errorf("%s %s: %q, want %q", c.set, c.sql, got, c.want)
		}
	}
	// A noise of four times this half-width, 646, comes once in e^64 draws.
	for _, set := range []string{"RESET client_min_messages", "SET noisegate.confidence = 0.9999999"} {
		if got := told(set, counted); set != "RESET client_min_messages" && !strings.HasPrefix(got, "NOTICE: "+noise+"n ± ") {
			t.Errorf("what is noise does not say so first: %q", got)
		}
	}
	last := table(t, conn, "SHOW noisegate.last_release")[0][0]
	if _, err := d.overHTTP(t).Release(t.Context(), last); err != nil {
		t.Errorf("release %q: %v", last, err)
	}
}

// TestIntervalsAsColumns: the ends of intervals follow each number that noise is in, are described before they are bought, and
// are no part of the question.
func TestIntervalsAsColumns(t *testing.T) {
	d := opened(t, gatewaytest.Options{}, nil)
	conn := d.connect(t, priced, nil)
	plain := table(t, conn, grouped)
	entries := d.Entries(t)
	if _, err := conn.Exec(t.Context(), "SET noisegate.intervals = columns"); err != nil {
		t.Fatal(err)
	}
	described, err := conn.Prepare(t.Context(), "i", grouped)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range described.Fields {
		names = append(names, f.Name)
	}
	if diff := cmp.Diff([]string{"region", "n", "n_low", "n_high"}, names); diff != "" {
		t.Error(diff)
	}
	for i, row := range table(t, conn, "i") {
		var n, low, high int
		if _, err := fmt.Sscan(row[1]+" "+row[2]+" "+row[3], &n, &low, &high); err != nil || low >= n || high <= n ||
			row[1] != plain[i][1] {
			t.Errorf("%v, before %v: %v", row, plain[i], err)
		}
	}
	if n := d.Entries(t); n != entries {
		t.Error("intervals were charged")
	}
}

// TestOuterQueryFailsAfterTheCharge: where what is computed of released values fails, a client that was told no columns gets the values,
// without the ends that it asked for; one that was told others gets an error that says where they are. Neither pays twice, and no session
// ends.
func TestOuterQueryFailsAfterTheCharge(t *testing.T) {
	d := opened(t, gatewaytest.Options{}, nil)
	conn := d.connect(t, priced, nil)
	entries := 0
	for _, sql := range []string{
		"SELECT count(*) AS n, noise_interval_low(m), sqrt(count(*) - 1000000) AS m FROM people",
		"SELECT noise_interval_low(m), noise_interval_high(n), count(*) AS n, sqrt(count(*) - 1000000) AS m FROM people",
		"SELECT count(*) AS n, sqrt(count(*) - 1000000) AS m, noise_interval_low(m) FROM people",
	} {
		if rows := table(t, conn, sql, pgx.QueryExecModeSimpleProtocol); len(rows) != 1 || len(rows[0]) != 1 {
			t.Errorf("%s: %v", sql, rows)
		}
		if entries == 0 {
			entries = d.Entries(t)
		}
		described, err := conn.Query(t.Context(), sql, pgx.QueryExecModeDescribeExec)
		if err != nil {
			t.Fatal(err)
		}
		described.Close()
		refused := refusedWith(t, described.Err(), stateData)
		last := table(t, conn, "SHOW noisegate.last_release")[0][0]
		if !strings.Contains(refused.Hint, "/v1/releases/"+last) {
			t.Errorf("%s: hint %q, release %s", sql, refused.Hint, last)
		}
		if _, err := d.overHTTP(t).Release(t.Context(), last); err != nil {
			t.Errorf("release %q: %v", last, err)
		}
	}
	if n := d.Entries(t); n != entries {
		t.Errorf("%d entries, want %d: one question is asked", n, entries)
	}
}

// TestIntervalsAsFunctions: the ends of intervals are outputs where the client writes them, in every protocol and command; they are
// described before they are bought, and are no part of the question. NULL where there is no noise.
func TestIntervalsAsFunctions(t *testing.T) {
	d := opened(t, gatewaytest.Options{}, nil)
	conn := d.connect(t, priced, nil)
	plain := table(t, conn, grouped)
	entries := d.Entries(t)
	const sql = "SELECT noise_interval_low(n) AS low, region, count(*) AS n, dp_interval_high(count(*)), " +
		"noise_interval_high(region) AS nothing FROM people GROUP BY 2 ORDER BY 2"
	described, err := conn.Prepare(t.Context(), "f", sql)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range described.Fields {
		names = append(names, fmt.Sprint(f.Name, " ", f.DataTypeOID))
	}
	if diff := cmp.Diff([]string{"low 1700", "region 25", "n 20", "dp_interval_high 1700", "nothing 1700"}, names); diff != "" {
		t.Error(diff)
	}
	for _, rows := range [][][]string{table(t, conn, "f"), table(t, conn, sql, pgx.QueryExecModeSimpleProtocol),
		table(t, conn, sql+" OFFSET 0", pgx.QueryExecModeExec)} {
		if len(rows) != len(plain) || len(rows) == 0 {
			t.Fatalf("%v, before %v", rows, plain)
		}
		for i, row := range rows {
			var low, n, high int
			if _, err := fmt.Sscan(row[0]+" "+row[2]+" "+row[3], &low, &n, &high); err != nil || low >= n || high <= n ||
				row[1] != plain[i][0] || row[2] != plain[i][1] || row[4] != "null" {
				t.Errorf("%v, before %v: %v", row, plain[i], err)
			}
		}
	}
	var copied bytes.Buffer
	if _, err := conn.PgConn().CopyTo(t.Context(), &copied, "COPY ("+sql+") TO STDOUT CSV"); err != nil {
		t.Error(err)
	}
	if lines := strings.Split(copied.String(), "\n"); len(lines) != len(plain)+1 || strings.Count(lines[0], ",") != 4 {
		t.Errorf("%q", copied.String())
	}
	if _, err := conn.Exec(t.Context(), "SET noisegate.intervals = columns"); err != nil {
		t.Fatal(err)
	}
	rows := table(t, conn, "SELECT region, count(*) AS n, noise_interval_low(n) FROM people GROUP BY region ORDER BY 1",
		pgx.QueryExecModeSimpleProtocol)
	if len(rows[0]) != 5 || rows[0][2] != rows[0][4] {
		t.Errorf("both ways: %v", rows)
	}
	if n := d.Entries(t); n != entries {
		t.Error("intervals were charged")
	}
	for _, c := range []struct {
		sql, state string
		position   int32
	}{
		{"SELECT count(*) AS n, noise_interval_low(n), age FROM people", stateNotAllowed, 46},
		{"SELECT noise_interval_low(n), count(*) AS n FROM people WHERE x > 1", "42703", 63},
		{"SELECT count(*) AS n FROM people HAVING noise_interval_low(n) > 3", stateUnsupported, 41},
	} {
		_, err := conn.Exec(t.Context(), c.sql, pgx.QueryExecModeSimpleProtocol)
		if refused := refusedWith(t, err, c.state); refused.Position != c.position {
			t.Errorf("%s: position %d, want %d", c.sql, refused.Position, c.position)
		}
	}
	_, err = conn.Exec(t.Context(), "SET search_path = information_schema; SELECT count(*) AS n, noise_interval_low(n) FROM tables")
	_ = refusedWith(t, err, stateUnsupported)
}

// TestPreview: rows of people look empty where a session asks for that, and are refused elsewhere.
func TestPreview(t *testing.T) {
	d := opened(t, gatewaytest.Options{}, nil)
	var notices []*pgconn.Notice
	conn := d.connect(t, priced, &notices)
	_, err := conn.Exec(t.Context(), "SELECT * FROM people LIMIT 2000")
	_ = refusedWith(t, err, stateNotAllowed)
	if _, err := conn.Exec(t.Context(), "SET noisegate.preview = empty"); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeSimpleProtocol} {
		notices = nil
		rows, err := conn.Query(t.Context(), "SELECT * FROM people LIMIT 2000", mode)
		if err != nil {
			t.Fatal(err)
		}
		n := len(rows.FieldDescriptions())
		rows.Close()
		if n != 4 || rows.CommandTag().String() != "SELECT 0" || rows.Err() != nil || len(notices) != 1 ||
			notices[0].Severity != "WARNING" {
			t.Errorf("%v: %d columns, %s, %v, %v", mode, n, rows.CommandTag(), rows.Err(), notices)
		}
	}
	_, err = conn.Exec(t.Context(), "SELECT secret FROM people")
	_ = refusedWith(t, err, stateNoColumn)
}

// typesDDL has a row of each type that a column can have, as a public table and as a private one.
const typesDDL = `
CREATE TYPE mood AS ENUM ('sad', 'fine');
CREATE TABLE things (id int PRIMARY KEY, a smallint, b int, c bigint, d numeric(10,2), e real, f double precision, g text,
	h char(3), i bool,
	j date, k timestamp, l timestamptz, m uuid, n mood);
INSERT INTO things VALUES (1, 1, -2, 9007199254740993, 12.50, 1.5, -2.25, E'a\tb\\"c', 'x', true, '2020-02-29', '2020-02-29 01:02:03.5',
	'2020-02-29 01:02:03+02', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'fine'),
	(2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);`

const typesPolicy = `version: 1
dataset: census
neighbours: add-remove
tables:
  things: {public: true}
budgets:
  - {dataset: true, form: approx, epsilon: 100, delta: 1e-6}
  - {group: analysts, per: analyst, form: approx, epsilon: 10, delta: 1e-7}
`

// TestTypes: values are the same in text and in binary, in rows and in COPY, as PostgreSQL itself sends them, and what is
// described before a question is what it gives.
func TestTypes(t *testing.T) {
	protected := pgtest.Protected(t, typesDDL)
	d := openedOver(t, protected, typesPolicy)
	conn := d.connect(t, "", nil)
	server, err := pgx.Connect(t.Context(), protected.ReaderDSN)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close(t.Context())
	if _, err := server.Exec(t.Context(), "SET TIME ZONE 'UTC'; SET search_path = public"); err != nil {
		t.Fatal(err)
	}
	const sql = "SELECT a, b, c, d, e, f, g, h, i, j, k, l, m FROM things ORDER BY id"
	raw := func(c *pgx.Conn, format int16) [][][]byte {
		t.Helper()
		r := c.PgConn().ExecParams(t.Context(), sql, nil, nil, nil, []int16{format}).Read()
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		return r.Rows
	}
	for _, format := range []int16{textFormat, binaryFormat} {
		if diff := cmp.Diff(raw(server, format), raw(conn, format)); diff != "" {
			t.Errorf("format %d: %s", format, diff)
		}
	}
	described, err := conn.Prepare(t.Context(), "", sql)
	if err != nil {
		t.Fatal(err)
	}
	original, err := server.Prepare(t.Context(), "", sql)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range described.Fields {
		if want := original.Fields[i]; f.Name != want.Name || f.DataTypeOID != want.DataTypeOID || f.DataTypeSize != want.DataTypeSize {
			t.Errorf("column %d is described as %+v, want %+v", i, f, want)
		}
	}
	for _, options := range []string{"", " (FORMAT csv)", " (FORMAT csv, HEADER, FORCE_QUOTE *, NULL 'none')",
		" (FORMAT csv, DELIMITER ';', QUOTE '''')",
		" (DELIMITER '|', NULL '')", " (FORMAT binary)"} {
		var ours, theirs bytes.Buffer
		for c, w := range map[*pgx.Conn]*bytes.Buffer{conn: &ours, server: &theirs} {
			if _, err := c.PgConn().CopyTo(t.Context(), w, "COPY ("+sql+") TO STDOUT"+options); err != nil {
				t.Fatal(options, err)
			}
		}
		if diff := cmp.Diff(theirs.Bytes(), ours.Bytes()); diff != "" {
			t.Errorf("COPY%s: %s", options, diff)
		}
	}
	if got := table(t, conn, "SELECT n FROM things ORDER BY id"); got[0][0] != "fine" || got[1][0] != "null" {
		t.Errorf("an enum: %v", got)
	}
}

// TestParameters: of each type, in both formats; each finds the one row that its constant finds.
func TestParameters(t *testing.T) {
	d := openedOver(t, pgtest.Protected(t, typesDDL), typesPolicy)
	conn := d.connect(t, "", nil)
	day := time.Date(2020, 2, 29, 0, 0, 0, 0, time.UTC)
	for column, v := range map[string]any{"a": int16(1), "b": int32(-2), "c": int64(9007199254740993), "d": "12.5",
		"e": float32(1.5), "f": -2.25,
		"g": "a\tb\\\"c", "i": true, "j": day, "k": time.Date(2020, 2, 29, 1, 2, 3, 5e8, time.UTC), "l": time.Date(2020, 2, 28, 23,
			2, 3, 0, time.UTC),
		"m": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"} {
		sql := "SELECT id FROM things WHERE " + column + " = $1"
		for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeExec} {
			if mode == pgx.QueryExecModeExec && column == "d" {
				continue // the client says that it is a text, and PostgreSQL compares no numeric with one
			}
			if got := table(t, conn, sql, mode, v); len(got) != 1 || got[0][0] != "1" {
				t.Errorf("%s = %v, mode %v: %v", column, v, mode, got)
			}
		}
	}
	var numeric pgtype.Numeric
	if err := numeric.Scan("12.50"); err != nil {
		t.Fatal(err)
	}
	for sql, args := range map[string][]any{
		"SELECT id FROM things WHERE d = $1":                           {numeric},
		"SELECT id FROM things WHERE b BETWEEN $1 AND $2":              {-3, -1},
		"SELECT id FROM things WHERE b IN ($1, $2)":                    {-2, 7},
		"SELECT id FROM things WHERE j >= $1::date AND b < $2":         {day, 0},
		"SELECT id FROM things WHERE b + $1 = 0":                       {2},
		"SELECT id FROM things WHERE g LIKE $1":                        {"a%"},
		"SELECT id FROM things WHERE id = 1 ORDER BY id LIMIT $1":      {5},
		"SELECT id FROM things WHERE b - $1 < 0 AND a > $2 AND c > $2": {-1, 0},
	} {
		if got := table(t, conn, sql, args...); len(got) != 1 || got[0][0] != "1" {
			t.Errorf("%s %v: %v", sql, args, got)
		}
	}
	minusOne := int32(-1)
	for column, v := range map[string]any{"a": []int16{7, 1}, "b": []int32{-2}, "c": []int64{9007199254740993},
		"e": []float32{1.5}, "f": []float64{-2.25}, "d": []pgtype.Numeric{numeric}, "g": []string{`a"\`, "a\tb\\\"c"}, "i": []bool{true}, "j": []time.Time{day},
		"n::text": []string{"fine", "NULL"},
		"m":       []string{"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"}, "b + 1": []*int32{nil, &minusOne}} {
		constants := table(t, conn, "SELECT id FROM things WHERE id = 1 AND "+column+" IS NOT NULL")
		for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeExec} {
			if mode == pgx.QueryExecModeExec && (column == "d" || column == "m") {
				continue // the client says that they are texts
			}
			if got := table(t, conn, "SELECT id FROM things WHERE "+column+" = ANY($1)", mode, v); !cmp.Equal(got, constants) {
				t.Errorf("%s = ANY(%v), mode %v: %v", column, v, mode, got)
			}
		}
	}
	_, err := conn.Exec(t.Context(), "SELECT id FROM things WHERE b = ANY($1)", []int32{})
	if refused := refusedWith(t, err, stateUnsupported); !strings.Contains(refused.Message, "without elements") {
		t.Errorf("%+v", refused)
	}
	if got := table(t, conn, "SELECT id FROM things WHERE b = $1", nil); len(got) != 0 {
		t.Errorf("NULL: %v", got)
	}
}

// TestDescriptionsHold: what is described of a question without running it, PostgreSQL gives when it computes the answer.
func TestDescriptionsHold(t *testing.T) {
	d := opened(t, gatewaytest.Options{}, nil)
	conn := d.connect(t, "options=-c%20noisegate.epsilon%3D0.01", nil)
	for _, sql := range []string{
		"SELECT count(*), sum(age), sum(income), avg(age), avg(income) FROM people",
		"SELECT region, count(*) AS n FROM people GROUP BY region HAVING count(*) > 10 ORDER BY n DESC LIMIT 2",
		"SELECT count(*) * 2, count(*) / 2, count(*) / 2.0, count(*) + 0.5, -count(*), count(*) % 7 FROM people",
		"SELECT sum(age) / count(*), sum(income) / count(*), sum(age)::float8 / count(*), round(avg(age), 1) FROM people",
		"SELECT upper(region), length(region), region || '!', count(*) FROM people GROUP BY region",
		"SELECT CASE WHEN count(*) > 50 THEN 'many' ELSE 'few' END, count(*) > 50, coalesce(sum(age), 0) FROM people",
		"SELECT age / 10, count(*) FROM people WHERE age < 40 GROUP BY age / 10",
		"SELECT n, n + 1 AS m, NULL AS z, 'x' AS w, 1.5 AS v, true AS u FROM (SELECT count(*) AS n FROM people) s",
		"SELECT avg(n), max(n), sum(n), count(*) FROM (SELECT region, count(*) AS n FROM people GROUP BY region) s",
		"SELECT region, n, rank() OVER (ORDER BY n), n / sum(n) OVER () FROM (SELECT region, count(*) AS n FROM people GROUP BY region) s",
		"SELECT min(age), max(age), median(age), percentile_cont(0.5) WITHIN GROUP (ORDER BY age) FROM people",
		"SELECT stddev(age), var_pop(age), sqrt(count(*)), abs(count(*) - 5), greatest(count(*), 1), floor(avg(age)) FROM people",
	} {
		described, err := conn.Prepare(t.Context(), "", sql)
		if err != nil {
			t.Errorf("%s: %v", sql, err)
			continue
		}
		rows, err := conn.Query(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
		if err != nil {
			t.Errorf("%s: %v", sql, err)
			continue
		}
		given := rows.FieldDescriptions()
		for i, f := range described.Fields {
			if i >= len(given) || f.Name != given[i].Name || f.DataTypeOID != given[i].DataTypeOID {
				t.Errorf("%s: column %d is described as %s %d, and given as %s %d", sql, i+1, f.Name, f.DataTypeOID, given[i].Name,
					given[i].DataTypeOID)
			}
		}
		rows.Close()
		if err := rows.Err(); err != nil {
			t.Errorf("%s: %v", sql, err)
		}
		table(t, conn, sql) // in binary, as described
	}
}
