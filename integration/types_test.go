package integration

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"noisegate.example/api"
)

var typesAll = flag.Bool("types", false, "ask every type in every shape and use in TestTypesMatrix, instead of all pairs of them")

// typed is a type of a column.
type typed struct {
	name, ddl string
	value     string // of a row whose number v is from 0 to 4, as SQL
	setting   string // of the column in a policy; "": none
	public    bool   // a public table has it too; generated columns and identities are of tables of people
}

// one is the value whose number is 1.
func (c typed) one() string {
	for value, one := range map[string]string{"'k' || v": "'k1'", "('k' || v)::mood": "'k1'::mood", "('k' || v)::bytea": "'k1'",
		"date ": "date '2020-01-02'", "timestamp ": "timestamp '2020-01-02'",
		"timestamptz ": "timestamptz '2020-01-02 00:00:00+00'", "('00000": "'00000000-0000-0000-0000-000000000001'", "v = 1": "true"} {
		if strings.HasPrefix(c.value, value) {
			return one
		}
	}
	if c.value == "" {
		return "2"
	}
	return strings.NewReplacer("(v", "(1", "[v", "[1", " v ", " 1 ", "v *", "1 *", "v::", "1::").Replace(c.value + " ")
}

// private is one setting of columns that are grouped by; others have a domain.
const private = "keys: private"

func domainOf(keys ...string) string { return "domain: [" + strings.Join(keys, ", ") + "]" }

func allTyped(citext bool) []typed {
	words := domainOf("k0", "k1", "k2", "k3", "k4")
	all := []typed{
		{"small", "smallint", "v", private + ", bounds: [0, 5]", true},
		{"plain", "int", "v", domainOf("0", "1", "2", "3", "4") + ", bounds: [0, 5]", true},
		{"big", "bigint", "v", private + ", bounds: [0, 5]", true},
		{"fixed", "numeric(8,2)", "v * 1.25", private + ", bounds: [0, 5]", true},
		{"free", "numeric", "v * 1.25", "bounds: [0, 5]", true},
		{"single", "real", "v * 1.25", "bounds: [0, 5]", true},
		{"double", "double precision", "v * 1.25", "bounds: [0, 5]", true},
		{"word", "text", "'k' || v", words, true},
		{"wordp", "text", "'k' || v", private, true},
		{"long", "varchar", "'k' || v", words, true},
		{"longp", "varchar", "'k' || v", private, true},
		{"limited", "varchar(12)", "'k' || v", words, true},
		{"limitedp", "varchar(12)", "'k' || v", private, true},
		{"wide", "varchar(3000)", "'k' || v", private, true},
		{"blank", "bpchar", "'k' || v", words, true},
		{"padded", "character(5)", "'k' || v", private, true},
		{"collated", `varchar(9) COLLATE "C"`, "'k' || v", private, true},
		{"truth", "boolean", "v = 1", private, true},
		{"day", "date", "date '2020-01-01' + v", private + `, bounds: [2020-01-01, 2020-01-06]`, true},
		{"moment", "timestamp", "timestamp '2020-01-01' + v * interval '1 day'", private + `, bounds: [2020-01-01, 2020-01-06]`, true},
		{"instant", "timestamptz", "timestamptz '2020-01-01 00:00:00+00' + v * interval '1 day'", private + `, bounds: [2020-01-01, 2020-01-06]`, true},
		{"code", "uuid", "('00000000-0000-0000-0000-00000000000' || v)::uuid", private, true},
		{"label", "mood", "('k' || v)::mood", words, true},
		{"labelp", "mood", "('k' || v)::mood", private, true},
		{"over_text", "over_text", "'k' || v", private, true},
		{"over_varchar", "over_varchar", "'k' || v", words, true},
		{"over_int", "over_int", "v", private + ", bounds: [0, 5]", true},
		{"over_label", "over_label", "('k' || v)::mood::over_label", private, true},
		{"made", "varchar GENERATED ALWAYS AS ('k' || plain) STORED", "", private, false},
		{"counted", "int GENERATED ALWAYS AS (plain + 1) STORED", "", private + ", bounds: [0, 6]", false},
		{"list", "int[]", "ARRAY[v]", "", true},
		{"span", "int4range", "int4range(v, v + 1)", "", true},
		{"money", "money", "v::money", "", true},
		{"bytes", "bytea", "('k' || v)::bytea", "", true},
		{"document", "json", "to_json(v)", "", true},
		{"documents", "jsonb", "to_jsonb(v)", "", true},
		{"address", "inet", "('10.0.0.' || v)::inet", "", true},
		{"bits", "bit(4)", "v::bit(4)", "", true},
		{"markup", "xml", "('<a>' || v || '</a>')::xml", "", true},
		{"clock", "time", "time '10:00' + v * interval '1 hour'", "", true},
		{"zoned", "timetz", "timetz '10:00+00' + v * interval '1 hour'", "", true},
		{"duration", "interval", "v * interval '1 day'", "", true},
		{"called", "name", "('k' || v)::name", "", true},
		{"letter", `"char"`, "v::text::\"char\"", "", true},
	}
	if citext {
		all = append(all, typed{"folded", "citext", "'k' || v", "", true})
	}
	return all
}

// shape is the way in which a table names its rows' unit.
type shape struct{ name, from string }

// shapes are the tables of [typedRows]; t is that whose columns are asked for, and t.id identifies its rows.
var shapes = []shape{
	{"row", "rows1 t"},
	{"parts", "parts t"},
	{"column", "visits t"},
	{"via", "items t"},
	{"copy", "calls t"},
	{"ranked", "trips t"},
	{"public", "(SELECT p.id, k.* FROM links p JOIN kinds k ON k.kind = p.link) t"},
}

// use is a question; %[1]s is a column, %[2]s what FROM has, %[3]s the value of v = 1.
type use struct{ name, sql string }

var uses = []use{
	{"key", "SELECT %[1]s, count(*) FROM %[2]s GROUP BY 1"},
	{"cast key", "SELECT %[1]s::text, count(*) FROM %[2]s GROUP BY 1 HAVING count(*) > 3"},
	{"sum", "SELECT sum(%[1]s) FROM %[2]s"},
	{"filter", "SELECT count(*) FROM %[2]s WHERE %[1]s = %[3]s"},
	{"join", "SELECT count(*) FROM %[2]s JOIN kinds o ON o.%[4]s = %[1]s"},
	{"count distinct", "SELECT count(DISTINCT %[1]s) FROM %[2]s"},
	{"median", "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY %[1]s) FROM %[2]s"},
	{"mode", "SELECT mode() WITHIN GROUP (ORDER BY %[1]s) FROM %[2]s"},
	{"rollup", "SELECT %[1]s, count(*) FROM %[2]s GROUP BY ROLLUP (1)"},
	{"outer", "SELECT o.kind, count(t.plain) FROM kinds o LEFT JOIN %[2]s ON o.%[4]s = %[1]s GROUP BY 1"},
}

// typedEpsilon makes the noise of a question less than [typedNoise] with a probability above 1 - 10⁻¹²: one person moves a sum by 2 rows of
// at most 6, counts by 4. A budget holds 2,500 such questions.
const (
	typedEpsilon = 400
	typedNoise   = 0.9
)

// typedRows has people whose rows have a column of each type: so that 0 is as rare as 2, 3 and 4, and 1 is the most frequent value and the
// median of each.
func typedRows(types []typed, citext bool) dataset {
	var columns, kinds, values, names, publicValues, publicNames []string
	settings := []string{}
	for _, c := range types {
		columns = append(columns, c.name+" "+c.ddl)
		if c.value != "" {
			names, values = append(names, c.name), append(values, c.value)
		}
		if c.public {
			kinds = append(kinds, c.name+" "+c.ddl)
			publicNames, publicValues = append(publicNames, c.name), append(publicValues, c.value)
		}
		if c.setting != "" {
			settings = append(settings, "      "+c.name+": {"+c.setting+"}")
		}
	}
	list := strings.Join(settings, "\n") + "\n"
	owned := func(name, unit string) string { return "  " + name + ":\n    " + unit + "\n    columns:\n" + list }
	const bounds = "\n    max_rows: 2\n    max_groups: 2\n    max_values: 2"
	const some = "unit: {column: person}" + bounds
	policy := "version: 1\ndataset: typed\ntables:\n" + owned("rows1", "unit: {row: id}") + owned("parts", "unit: {row: id}") +
		owned("visits", some) + owned("calls", some+"\n    prepare: {max_rows: 2}") +
		owned("trips", some+"\n    prepare: {max_rows: 2, ranks: [[longp], [limited], [plain], [truth]]}") +
		owned("items", "unit: {via: visit, to: visits}"+bounds) +
		"  links: {unit: {row: id}, columns: {link: {domain: [0, 1, 2, 3, 4]}}}\n  kinds: {public: true}\nbudgets:\n" +
		"  - {dataset: true, form: approx, epsilon: 1000000, delta: 1e-3}\n" +
		"  - {group: analysts, per: analyst, form: approx, epsilon: 1000000, delta: 1e-4}\n"
	return dataset{name: "typed", prepares: true, policy: policy, load: func(ctx context.Context, conn *pgx.Conn) error {
		wide := strings.Join(columns, ", ")
		fill := func(table, extra, from string) string {
			return fmt.Sprintf(`INSERT INTO %s (id%s, %s) SELECT i%[2]s, %[4]s
				FROM (SELECT i, CASE WHEN i %% 3 = 0 THEN 1 ELSE i %% 5 END AS v%[5]s FROM generate_series(1, 60) i) s;
				`, table, extra, strings.Join(names, ", "), strings.Join(values, ", "), from)
		}
		sql := `CREATE TYPE mood AS ENUM ('k0', 'k1', 'k2', 'k3', 'k4');
			CREATE DOMAIN over_text AS text; CREATE DOMAIN over_varchar AS varchar(9); CREATE DOMAIN over_int AS int CHECK (VALUE >= 0);
			CREATE DOMAIN over_label AS mood;
			CREATE TABLE rows1 (id int PRIMARY KEY, ` + wide + `);
			CREATE TABLE parts (id int PRIMARY KEY, ` + wide + `) PARTITION BY RANGE (id);
			CREATE TABLE parts1 PARTITION OF parts FOR VALUES FROM (0) TO (30);
			CREATE TABLE parts2 PARTITION OF parts FOR VALUES FROM (30) TO (100);
			CREATE TABLE visits (id int PRIMARY KEY, person int NOT NULL, ` + wide + `);
			CREATE TABLE calls (LIKE visits INCLUDING ALL); CREATE TABLE trips (LIKE visits INCLUDING ALL);
			CREATE TABLE items (id int PRIMARY KEY, visit int NOT NULL REFERENCES visits, ` + wide + `);
			CREATE TABLE links (id int PRIMARY KEY, link int NOT NULL);
			CREATE TABLE kinds (kind int PRIMARY KEY, ` + strings.Join(kinds, ", ") + `);
			INSERT INTO kinds (kind, ` + strings.Join(publicNames, ", ") + `) SELECT v, ` + strings.Join(publicValues, ", ") + `
			FROM generate_series(0, 4) v;
			INSERT INTO links SELECT i, CASE WHEN i % 3 = 0 THEN 1 ELSE i % 5 END FROM generate_series(1, 60) i;
			` + fill("rows1", "", "") + fill("parts", "", "")
		for _, table := range []string{"visits", "calls", "trips"} {
			sql += fill(table, ", person", ", (i + 1) / 2 AS person")
		}
		sql += fill("items", ", visit", ", i AS visit") + `GRANT USAGE ON SCHEMA public TO noisegate_prepare;
			GRANT SELECT ON calls, trips TO noisegate_prepare; ANALYZE;`
		if citext {
			sql = "CREATE EXTENSION citext;\n" + sql
		}
		return execAll(ctx, conn, sql)
	}}
}

// A question about a column of any type is refused before it is charged, or answered as PostgreSQL answers it: of each shape of table and
// in each use. A refusal is no defect of the gateway's, and nothing fails after its charge. Five questions that PostgreSQL did not take, as
// their key was a varchar, once stopped an analyst.
//
// needs: postgres
func TestTypesMatrix(t *testing.T) {
	t.Parallel()
	citext := hasCitext(t)
	types := allTyped(citext)
	s := newStack(t, typedRows(types, citext))
	s.run(t, "prepare", "--config", s.config, "--dataset", "typed")
	client, plain := s.analyst(t, "ana"), s.superuser(t, "typed")
	answered := map[string]int{}
	for i, c := range types {
		for k, u := range uses {
			for at := range shapes {
				if !*typesAll && at != (i+k)%len(shapes) {
					continue // each two of type, shape and use are asked together
				}
				f := shapes[at]
				if f.name == "public" && !c.public || c.name == "truth" && strings.Contains(u.sql, " JOIN ") {
					continue // it is not there, or a row meets several, and bounds leave out some
				}
				partner := c.name
				if !c.public {
					partner = "longp"
				}
				sql := fmt.Sprintf(u.sql, "t."+c.name, f.from, c.one(), partner)
				if s.likePostgres(t, client, plain, sql) {
					answered[u.name]++
					answered[f.name]++
					answered[c.name]++
				}
			}
		}
	}
	for _, name := range slices.Concat(strings.Fields("row parts column via copy ranked public longp limited over_varchar label fixed made"),
		[]string{"key", "cast key", "sum", "filter", "join", "count distinct", "median", "mode", "rollup", "outer"}) {
		if answered[name] == 0 {
			t.Errorf("no question about %s is answered", name)
		}
	}
	t.Log(answered)
	conn := s.superuser(t, control)
	var charged, settled, other int
	if err := conn.QueryRow(t.Context(), `SELECT count(*) FILTER (WHERE kind = 'reserve'), count(*) FILTER (WHERE kind = 'settle'),
		count(*) FILTER (WHERE kind IN ('void', 'expire', 'fail')) FROM noisegate.entry`).Scan(&charged, &settled, &other); err != nil {
		t.Fatal(err)
	}
	if charged != settled || other > 0 {
		t.Errorf("%d questions were charged, %d answered, and %d ended otherwise", charged, settled, other)
	}
}

// hasCitext reports whether the server has the extension citext.
func hasCitext(t *testing.T) (there bool) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), common.running(t).DSN("postgres", "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	const asks = "SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'citext')"
	if err := conn.QueryRow(t.Context(), asks).Scan(&there); err != nil {
		t.Fatal(err)
	}
	return there
}

// likePostgres asks both, compares, and reports whether there is an answer.
func (s *stack) likePostgres(t *testing.T, client *api.Client, plain *pgx.Conn, sql string) bool {
	t.Helper()
	request := api.QueryRequest{Dataset: "typed", SQL: sql, Epsilon: api.Decimal(strconv.Itoa(typedEpsilon)), Delta: "1e-9"}
	got, err := client.Query(t.Context(), request, "")
	if err != nil {
		p := problemOf(t, err)
		if area, _, _ := strings.Cut(p.Code, "/"); area == "internal" || area == "data" {
			t.Errorf("%s\n%s: %s\n%s", sql, p.Code, p.Detail, s.log.about(p.RequestID))
		}
		return false
	}
	rows, err := plain.Query(t.Context(), sql, pgx.QueryResultFormats{pgx.TextFormatCode})
	var server *pgconn.PgError
	if errors.As(err, &server) && server.Code == "42883" { // it has no operator for domains over enums, and so nothing to compare with
		return true
	}
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for rows.Next() {
		var cells []string
		for _, raw := range rows.RawValues() {
			cells = append(cells, cell(raw))
		}
		want = append(want, strings.Join(cells, "|"))
	}
	if err := rows.Err(); err != nil {
		t.Errorf("PostgreSQL does not answer what is answered: %v\n%s", err, sql)
		return true
	}
	var have []string
	for _, row := range got.Rows {
		var cells []string
		for _, value := range row {
			cells = append(cells, shownCell(value))
		}
		have = append(have, strings.Join(cells, "|"))
	}
	slices.Sort(want)
	slices.Sort(have)
	if !slices.EqualFunc(have, want, sameRow) {
		t.Errorf("%s\nanswers    %q\nPostgreSQL %q", sql, have, want)
	}
	return true
}

// cell is PostgreSQL's text of a value, without blanks at its end, which characters have.
func cell(raw []byte) string {
	switch {
	case raw == nil:
		return "NULL"
	case string(raw) == "t":
		return "true"
	case string(raw) == "f":
		return "false"
	}
	return strings.TrimRight(string(raw), " ")
}

func shownCell(v api.Value) string {
	if v.IsNull() {
		return "NULL"
	}
	return strings.TrimRight(fmt.Sprint(v), " ")
}

// sameRow compares rows: the last cell, if it is a number, may differ by the noise.
func sameRow(have, want string) bool {
	a, b := strings.Split(have, "|"), strings.Split(want, "|")
	for i := range a {
		if i >= len(b) {
			return false
		}
		x, errX := strconv.ParseFloat(a[i], 64)
		y, errY := strconv.ParseFloat(b[i], 64)
		near := 1e-9
		if i == len(a)-1 {
			near = typedNoise
		}
		if a[i] != b[i] && (errX != nil || errY != nil || math.Abs(x-y) > near) {
			return false
		}
	}
	return len(a) == len(b)
}

// about returns the log's lines on a request.
func (b *logBuffer) about(id string) string {
	var lines []string
	for line := range strings.Lines(b.String()) {
		if strings.Contains(line, id) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}
