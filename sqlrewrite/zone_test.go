package sqlrewrite

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/pgtest"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/rewritetest"
)

var zoneExpressions = flag.Int("zone-expressions", 400, "how many expressions TestZoneIsRefusedWhereItCounts asks")

const zonePolicy = `version: 1
dataset: test
neighbours: add-remove
tables:
  people: {unit: {row: id}, columns: {d: {bounds: [2010-01-01, 2030-01-01]}}}
  moments: {public: true}
budgets:
  - {dataset: true, form: approx, epsilon: 10, delta: 1e-6}
`

// zoneColumns are a date, a time without and two times with time zone.
const zoneColumns = "\n  id integer not null unique\n  d date not null\n  t timestamp not null\n" +
	"  z timestamptz not null\n  y timestamptz\n"

// zones have hours that are left out or come twice, half hours, a day that is left out, and an offset of none in winter.
var zones = []string{"America/New_York", "Asia/Kolkata", "Pacific/Apia", "Australia/Lord_Howe", "Europe/London", "America/Sao_Paulo"}

// zoneRows are moments around changes of these zones, each beside the local times that look like it.
const zoneRows = `INSERT INTO moments SELECT row_number() OVER (), (u + s * interval '1 hour')::date, u + s * interval '1 hour',
	(u AT TIME ZONE 'UTC') + s * interval '1 hour', nullif((u AT TIME ZONE 'UTC') + s * interval '30 minutes', '2018-11-04 06:00:00+00')
	FROM unnest(ARRAY['2018-11-04 00:00', '2018-11-04 06:30', '2018-03-11 07:00', '2011-12-30 10:00', '2018-04-07 15:00', '2018-10-28 01:00',
		'2019-01-01 00:00', '2018-06-15 12:34:56']::timestamp[]) u, generate_series(-26, 26, 13) s`

// zoneMaker makes expressions over the columns of zoneColumns.
type zoneMaker struct{ *rand.Rand }

func (m zoneMaker) one(of ...func() string) string { return of[m.IntN(len(of))]() }

func (m zoneMaker) text(of ...string) func() string {
	return func() string { return of[m.IntN(len(of))] }
}

func (m zoneMaker) format(format string, parts ...func() string) func() string {
	return func() string {
		made := make([]any, len(parts))
		for i, part := range parts {
			made[i] = part()
		}
		return fmt.Sprintf(format, made...)
	}
}

// expression makes one of a kind: z, t and d are times, i intervals, n numbers, s texts, b conditions.
func (m zoneMaker) expression(kind string, depth int) string {
	of := func(kinds ...string) func() string {
		return func() string { return m.expression(kinds[m.IntN(len(kinds))], depth-1) }
	}
	time := of("z", "z", "t", "d")
	unit := m.text("hour", "day", "week", "month", "quarter", "year")
	plus := m.text("+", "-")
	span := m.text("interval '1 hour'", "interval '26 hours'", "interval '1 day'", "interval '1 month'", "interval '1 day 1 hour'")
	literal := m.text("'2018-11-04'", "'2018-11-04 05:00:00'", "'2018-11-04 05:00:00+00'", "'2018-11-03 22:00:00-07'")
	field := m.text("epoch", "hour", "day", "dow", "month", "year", "week")
	switch kind {
	case "z":
		if depth <= 0 {
			return m.one(m.text("z", "z", "y"), m.format("%s::timestamptz", literal))
		}
		return m.one(m.format("%s::timestamptz", of("d", "t", "z")), m.format("(%s %s %s)", of("z"), plus, span),
			m.format("date_bin('%s', %s, %s)", m.text("7 days", "90 minutes"), of("z", "d"), literal),
			m.format("date_trunc('%s', %s)", unit, of("z", "d")), m.format("coalesce(%s, %s)", of("z"), of("z")),
			m.format("(%s AT TIME ZONE '%s')", of("t"), m.text(zones...)), m.format("greatest(%s, %s)", of("z"), of("z")),
			m.format("nullif(%s, %s)", of("z"), of("z")),
			m.format("CASE WHEN %s THEN %s ELSE %s END", of("b"), of("z"), of("z")))
	case "t":
		if depth <= 0 {
			return m.one(m.text("t"), m.format("%s::timestamp", literal))
		}
		return m.one(m.format("%s::timestamp", time), m.format("(%s %s %s)", of("t", "d"), plus, span),
			m.format("date_trunc('%s', %s)", unit, of("t")), m.format("(%s AT TIME ZONE '%s')", of("z"), m.text(zones...)),
			m.format("date_bin('%s', %s, timestamp %s)", m.text("7 days", "90 minutes"), of("t", "d"), literal))
	case "d":
		if depth <= 0 {
			return m.one(m.text("d"), m.format("%s::date", m.text("'2018-11-04'", "'2019-01-01'")))
		}
		return m.one(m.format("%s::date", time), m.format("date(%s)", of("z", "t")), m.format("(%s + 3)", of("d")))
	case "i":
		return m.one(m.format("(%s - %s)", of("z"), of("z")), m.format("(%s - %s)", of("t"), of("t")), m.format("(%s - %s)", of("z"), of("t")))
	case "n":
		return m.one(m.format("extract(%s FROM %s)", field, of("z", "t")), m.format("date_part('%s', %s)", field, of("z", "t")),
			m.format("extract(epoch FROM %s)", of("i", "d")), m.format("(%s - %s)", of("d"), of("d")))
	case "s":
		return m.one(m.format("to_char(%s, '%s')", time, m.text("YYYY-MM-DD", "YYYY-MM-DD HH24:MI", "Mon")),
			m.format("(%s)::text", time), m.format("('at ' || %s)", time))
	default:
		return m.one(m.format("(%s %s %s)", time, m.text("<", ">=", "=", "<>"), time), m.format("(%s >= %s)", of("z"), literal),
			m.format("(%s BETWEEN %s AND %s)", of("z"), literal, time), m.format("(%s IN (%s, %s))", of("z"), literal, of("z")),
			m.format("(%s IS DISTINCT FROM %s)", of("z"), of("z", "d")), m.format("(%s IS NULL)", of("z")),
			m.format("(%s = %s)", of("s"), of("s")), m.format("(%s < %s)", of("n"), of("n")))
	}
}

// TestZoneIsRefusedWhereItCounts: what is answered in a session with another time zone than UTC is what PostgreSQL answers there. An
// expression is refused, sql/time-zone, where its values on any of the rows depend on the zone; a moment is the same however it is written.
//
// needs: postgres
func TestZoneIsRefusedWhereItCounts(t *testing.T) {
	snapshot := rewritetest.ParseSnapshot(t, "people"+zoneColumns+"moments"+zoneColumns, zonePolicy)
	db := pgtest.New(t)
	db.Exec(t, "CREATE TABLE moments (id bigint, d date, t timestamp, z timestamptz, y timestamptz)", zoneRows)
	conn := db.Conn(t, db.DSN)
	m := zoneMaker{rand.New(rand.NewPCG(11, 28))}
	asked, dependent, refused := 0, 0, 0
	for asked < *zoneExpressions {
		kind := []string{"z", "t", "d", "i", "n", "s", "b", "b", "b"}[m.IntN(9)]
		e := m.expression(kind, m.IntN(3))
		if ask(snapshot, e, "") != nil { // it is taken in no zone
			continue
		}
		asked++
		zone := zones[asked%len(zones)]
		depends := valuesIn(t, conn, e, "UTC") != valuesIn(t, conn, e, zone)
		err := ask(snapshot, e, zone)
		switch {
		case err != nil && fault.CodeOf(err) != fault.CodeTimeZone:
			t.Errorf("%s in %s: %v", e, zone, err)
		case err == nil && depends:
			t.Errorf("%s is answered in %s, and depends on it", e, zone)
		}
		if depends {
			dependent++
		}
		if err != nil {
			refused++
		}
	}
	t.Logf("%d expressions: %d depend on the zone on these rows, %d are refused", asked, dependent, refused)
	if dependent < asked/6 || refused > asked*9/10 {
		t.Errorf("of %d expressions %d depend on the zone and %d are refused: that tests little", asked, dependent, refused)
	}
}

// ask plans an expression over private and over public rows; nil where both are answered.
func ask(snapshot *catalog.Snapshot, e, zone string) error {
	o := rewritetest.Sharp()
	o.Zone = zone
	_, _, private := pipeline.Read("SELECT count(*) FILTER (WHERE ("+e+") IS NOT NULL) FROM people", snapshot, o)
	_, _, public := pipeline.Read("SELECT "+e+" AS v FROM moments", snapshot, o)
	if (fault.CodeOf(private) == fault.CodeTimeZone) != (fault.CodeOf(public) == fault.CodeTimeZone) {
		return fmt.Errorf("over private rows: %w; over public ones: %w", private, public)
	}
	if private != nil {
		return private
	}
	return public
}

// valuesIn are an expression's values in a time zone, moments as seconds.
func valuesIn(t *testing.T, conn *pgx.Conn, e, zone string) string {
	t.Helper()
	rewritetest.MustExec(t, conn, "SET timezone = '"+zone+"'")
	var values string
	// Parsed each time: constants are read in the zone of the moment.
	if err := conn.QueryRow(t.Context(), `SELECT string_agg(CASE pg_typeof(v) WHEN 'timestamptz'::regtype THEN coalesce(extract(epoch FROM v::text::timestamptz)::text, '-')
		ELSE coalesce(v::text, '-') END, ',' ORDER BY id) FROM (SELECT id, `+e+` AS v FROM moments) m`, pgx.QueryExecModeExec).Scan(&values); err != nil {
		t.Fatal(e, err)
	}
	return values
}

// What is answered in a zone by its name is PostgreSQL's own answer, as a value of public rows and as a condition on those of people,
// around changes of clocks.
//
// needs: postgres
func TestZonesByName(t *testing.T) {
	db := pgtest.New(t)
	db.Exec(t, "CREATE TABLE moments (id bigint, d date, t timestamp, z timestamptz, y timestamptz)", zoneRows,
		"CREATE TABLE people (LIKE moments)", "INSERT INTO people SELECT * FROM moments")
	snapshot := rewritetest.ParseSnapshot(t, "people"+zoneColumns+"moments"+zoneColumns, zonePolicy)
	conn := db.Conn(t, db.DSN)
	rewritetest.MustExec(t, conn, "SET timezone = 'UTC'")
	m := zoneMaker{rand.New(rand.NewPCG(97, 1))}
	values, conditions := 0, 0
	for range *zoneExpressions {
		condition := m.expression("b", 2+m.IntN(2))
		if !strings.Contains(condition, "AT TIME ZONE") {
			continue
		}
		if plan, err := pipeline.Rewrite("SELECT count(*) FROM people WHERE "+condition, snapshot, rewritetest.Sharp()); err == nil {
			conditions++
			s := plan.Parts[0].Statement
			if len(s.Zones) == 0 {
				t.Errorf("the statement names no zone: %s", s.SQL)
			}
			same(t, conn, condition, "SELECT count(*)::text FROM people WHERE "+condition, s.SQL, s.Args)
		}
		public := "SELECT count(*)::text AS n FROM moments WHERE " + condition
		if opened, err := pipeline.Open(nil, public, snapshot, rewritetest.Sharp()); err == nil {
			if post, ok := opened.Post(); ok {
				values++
				same(t, conn, condition, public, "SELECT c0 FROM ("+post.SQL()+") AS p(c0)", post.Args())
			}
		}
	}
	if t.Logf("%d conditions on people, %d on public rows", conditions, values); conditions < *zoneExpressions/8 {
		t.Error("that tests little")
	}
}

// A zone in what is computed after the noise is refused: it could fail after the charge, on a server that does not know it.
func TestZonesOfReleasedValues(t *testing.T) {
	snapshot := rewritetest.ParseSnapshot(t, "people"+zoneColumns+"moments"+zoneColumns, zonePolicy)
	const text = "SELECT n FROM (SELECT count(*) AS n FROM people) q, moments m WHERE (m.z AT TIME ZONE '%s')::date = '2018-11-04'"
	for zone, want := range map[string]fault.Code{"Asia/Tokyo": fault.CodeUnsupported, "UTC": ""} {
		if _, err := pipeline.Rewrite(fmt.Sprintf(text, zone), snapshot, rewritetest.Sharp()); fault.CodeOf(err) != want {
			t.Errorf("%s: %v, want %q", zone, err, want)
		}
	}
}

// same compares the first output of a text with what a statement computes.
func same(t *testing.T, conn *pgx.Conn, what, want, sql string, args []any) {
	t.Helper()
	var wanted, got string
	if err := conn.QueryRow(t.Context(), want, pgx.QueryExecModeExec).Scan(&wanted); err != nil {
		t.Fatalf("%s: %v", want, err)
	}
	if err := conn.QueryRow(t.Context(), sql, append([]any{pgx.QueryExecModeDescribeExec}, args...)...).Scan(&got); err != nil {
		t.Fatalf("%s: %v\n%s", what, err, sql)
	}
	if got != wanted {
		t.Errorf("%s: %s, want %s\n%s", what, got, wanted, sql)
	}
}

// What people and their drivers ask in other zones.
func TestZoneExamples(t *testing.T) {
	snapshot := rewritetest.ParseSnapshot(t, "people"+zoneColumns+"moments"+zoneColumns, zonePolicy)
	for text, answered := range map[string]bool{
		"SELECT count(*) FROM people": true,
		"SELECT count(*) FROM people WHERE t >= '2018-11-04' AND t < '2018-11-05'":                      true,
		"SELECT count(*) FROM people WHERE d = '2018-11-04'":                                            true,
		"SELECT count(*) FROM people WHERE z >= '2018-11-04 00:00:00-04'":                               true,
		"SELECT count(*) FROM people WHERE z >= y AND y IS NOT NULL":                                    true,
		"SELECT count(*) FROM people WHERE z >= timestamp '2018-11-04' AT TIME ZONE 'America/New_York'": true,
		"SELECT count(*) FROM people WHERE (z AT TIME ZONE 'Asia/Tokyo')::date = '2018-11-04'":          true,
		"SELECT count(*) FROM people WHERE z > to_timestamp(1541304000)":                                true,
		"SELECT count(*) FROM people WHERE z > to_timestamp('2018-11-04', 'YYYY-MM-DD')":                false,
		"SELECT count(*) FROM people WHERE extract(epoch FROM z - y) > 60":                              true,
		"SELECT count(*) FROM people WHERE z >= '2018-11-04'":                                           false,
		"SELECT count(*) FROM people WHERE z::date = '2018-11-04'":                                      false,
		"SELECT count(*) FROM people WHERE d < current_date":                                            false,
		"SELECT count(*) FROM people WHERE date_trunc('month', now()) > z":                              false,
		"SELECT count(*) FROM people p JOIN moments m ON p.z = m.d":                                     false,
		"SELECT count(*) FROM people p JOIN (SELECT z AS d FROM moments) m USING (d)":                   false,
		"SELECT count(*) FROM people WHERE z IN (SELECT d FROM moments)":                                false,
		"SELECT count(*) FROM people WHERE z IN (SELECT z FROM moments)":                                true,
		"SELECT max(z) AS v FROM moments":                                                               true,
		"SELECT z FROM moments UNION ALL SELECT d FROM moments":                                         false,
		"SELECT lag(z, 1, d) OVER (ORDER BY z) FROM moments":                                            false,
		"WITH w AS (SELECT z::date AS day FROM moments) SELECT day FROM w":                              false,
		"SELECT count(*) FROM people WHERE EXISTS (SELECT 1 FROM moments m WHERE m.z = people.d)":       false,
		"SELECT (SELECT count(*) FROM people WHERE z::date = '2018-11-04') AS n":                        false,
		"SELECT n FROM (SELECT count(*) AS n FROM people) q, moments m WHERE m.z::date = '2018-11-04'":  false,
	} {
		for _, zone := range []string{"", "America/New_York"} {
			o := rewritetest.Sharp()
			o.Now, o.Zone = rewritetest.GoldenNow(), zone
			_, _, err := pipeline.Read(text, snapshot, o)
			switch refused := fault.CodeOf(err) == fault.CodeTimeZone; {
			case zone == "" && refused, zone != "" && answered && err != nil, zone != "" && !answered && !refused:
				t.Errorf("in %q: %v: %s", zone, err, text)
			}
		}
	}
}
