package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"noisegate.example/api"
)

// TestFunctionsByName names every function of PostgreSQL once. Only those that the gateway knows itself may be priced:
// a list of dangerous ones could not work, there are some 3,000 and a role without any grant may call most of them.
//
// covers: A51 A52
func TestFunctionsByName(t *testing.T) {
	t.Parallel()
	s := newStack(t, people(ampleBudget))
	client := s.analyst(t, "ana")
	known := strings.Fields(`abs ceil ceiling coalesce floor greatest least lower nullif round sign trunc upper count sum avg length
		btrim ltrim rtrim concat mod sqrt exp ln log log10 min max variance var_pop var_samp stddev stddev_pop stddev_samp`)
	var priced []string
	for _, row := range s.plain(t, "people", "SELECT DISTINCT proname FROM pg_catalog.pg_proc ORDER BY 1") {
		name := row[0]
		for _, form := range []string{`SELECT count(*) FROM people WHERE "%s"(age) IS NOT NULL`, `SELECT "%s"(age) FROM people`} {
			_, err := client.Estimate(t.Context(), api.QueryRequest{Dataset: "people", SQL: fmt.Sprintf(form, name), Epsilon: "1"})
			if err == nil {
				priced = append(priced, name)
			} else if p := problemOf(t, err); p.Status != http.StatusUnprocessableEntity {
				t.Errorf("%s: %v", name, p)
			}
		}
	}
	for _, name := range priced {
		if !strings.Contains(" "+strings.Join(known, " ")+" ", " "+name+" ") {
			t.Errorf("the function %s can be called", name)
		}
	}
	if len(priced) == 0 {
		t.Error("not even sum can be called: the test asks wrongly")
	}
	s.alive(t)
}

// TestCatalogueByName names every relation that PostgreSQL brings along, and one without a policy: none exists for analysts.
//
// covers: A54
func TestCatalogueByName(t *testing.T) {
	t.Parallel()
	s := newStack(t, people(ampleBudget))
	client := s.analyst(t, "ana")
	s.exec(t, "people", "CREATE TABLE unregistered (id int); GRANT SELECT ON unregistered TO noisegate_reader")
	relations := s.plain(t, "people", `SELECT n.nspname, c.relname FROM pg_catalog.pg_class c
		JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname IN ('pg_catalog', 'information_schema') OR c.relname = 'unregistered'`)
	for _, r := range relations {
		for _, name := range []string{fmt.Sprintf(`"%s"."%s"`, r[0], r[1]), fmt.Sprintf(`"%s"`, r[1])} {
			_, err := client.Estimate(t.Context(), api.QueryRequest{Dataset: "people", SQL: "SELECT count(*) FROM " + name, Epsilon: "1"})
			if p := problemOf(t, err); p.Code != "sql/unknown-table" {
				t.Errorf("%s: %v, want sql/unknown-table", name, p)
			}
		}
	}
}

// attacks are forms of attack over the table people, by their names in the threat model.
func attacks() map[string][]string {
	return map[string][]string{
		"A12": {"SELECT count(*) FROM (SELECT * FROM people LIMIT 5) x", "SELECT DISTINCT ON (club) club, age FROM people",
			"SELECT count(*) FROM (SELECT row_number() OVER (ORDER BY age) AS r FROM people) x WHERE r < 3"},
		"A13": {"SELECT count(*) FROM people p WHERE age > (SELECT avg(q.age) FROM people q WHERE q.city = p.city)",
			"SELECT count(*) FROM people WHERE age > (SELECT age FROM people ORDER BY age DESC LIMIT 1)"},
		"A14": {"SELECT count(*) FROM people, generate_series(1, 100)", "SELECT count(*) FROM people CROSS JOIN (VALUES (1), (age)) v"},
		"A15": {"SELECT count(*) FROM people a JOIN people b ON a.age = b.age", "SELECT count(*) FROM people a, people b"},
		"A16": {"SELECT sum(DISTINCT age) FROM people"},
		"A32": {"SELECT count(*) FROM people WHERE length(repeat(city, 100000000)) > 3",
			"SELECT count(*) FROM people WHERE city ~ '(a+)\\1+b'", "SELECT count(*) FROM people WHERE city ~ '((a{1,9}){1,9}){1,9}'",
			"SELECT count(*) FROM people WHERE regexp_replace(city, '(a+)+\\1b', '') = 'x'",
			"SELECT count(*) FROM people WHERE lpad(city, 1000000) = 'x'",
			"SELECT sum(age ^ age) FROM people", "SELECT count(*) FROM people WHERE factorial(age) > 3"},
		"A40": {"SELECT count(set_config('search_path', 'x', false)) FROM people",
			"SELECT count(*) FROM people WHERE pg_advisory_lock(age) IS NULL",
			"SELECT nextval('s') FROM people", "CREATE TEMP TABLE x AS SELECT * FROM people", "PREPARE p AS SELECT 1", "LISTEN x",
			"SET x.y = 1", "DISCARD ALL"},
		"A52": {"COPY people TO PROGRAM 'cat'", "SELECT count(pg_read_file('/etc/passwd')) FROM people", "DO $$ BEGIN END $$"},
		"A53": {"SELECT count(lo_create(0)) FROM people", "SELECT count(lo_import('/etc/passwd')) FROM people"},
		"A55": {"SELECT ctid, count(*) FROM people GROUP BY ctid", "SELECT count(*) FROM people WHERE xmin::text = '7'",
			"SELECT count(*) FROM people WHERE tableoid = 1", "SELECT count(people) FROM people", "SELECT people.*::text FROM people",
			"SELECT count(*) FROM people WHERE people::text LIKE '%zwq%'", "SELECT row_to_json(people) FROM people"},
		"A60": {"SELECT count(*) FROM people WHERE city COLLATE \"C\" = 'x'", "SELECT count(*) FROM people WHERE age OPERATOR(public.=) 1",
			"SELECT count(*) FROM people WHERE age = 1::public.money", "SELECT count(*) FROM people WHERE public.f(age)"},
		"A61": {"SELECT count(*) FROM people TABLESAMPLE SYSTEM (1)", "SELECT count(*) FROM people WHERE random() < 0.5",
			"SELECT count(*) FROM people WHERE now() > '2020-01-01'", "SELECT count(*) FROM people WHERE clock_timestamp() IS NULL"},
		"A62": {"SELECT age FROM people UNION SELECT age FROM people", "WITH x AS (DELETE FROM people RETURNING *) SELECT count(*) FROM x",
			"SELECT count(*) FROM people FOR UPDATE", "SELECT age INTO x FROM people", "TABLE people", "VALUES (1)"},
		"A63": {"EXPLAIN ANALYZE SELECT count(*) FROM people", "EXPLAIN SELECT count(*) FROM people", "SHOW all", "ANALYZE people"},
		"A64": {"SELECT count(*) FROM people WHERE age = $1", "SELECT count(*) FROM people WHERE city = $1::regclass::text"},
	}
}

// TestAttacksAreRefused sends forms of attack that must not even be priced.
func TestAttacksAreRefused(t *testing.T) {
	t.Parallel()
	s := newStack(t, people(ampleBudget))
	client := s.analyst(t, "ana")
	before := s.entries(t)
	for id, texts := range attacks() {
		for _, sql := range texts {
			_, err := client.Query(t.Context(), api.QueryRequest{Dataset: "people", SQL: sql, Epsilon: "1", Delta: "1e-9"}, "")
			if err == nil {
				t.Errorf("%s: answered: %s", id, sql)
			} else if p := problemOf(t, err); p.Status != http.StatusUnprocessableEntity && p.Code != "sql/syntax" {
				t.Errorf("%s: %s: %v", id, sql, p)
			}
		}
	}
	if after := s.entries(t); after != before {
		t.Errorf("refused queries wrote %d entries", after-before)
	}
}

// TestEveryReleaseIsPaidFor asks for one number in many spellings: each answer is a free replay or paid in full, and inside
// one query the same aggregate is one release.
//
// covers: A06 A07
func TestEveryReleaseIsPaidFor(t *testing.T) {
	t.Parallel()
	s := newStack(t, people(ampleBudget))
	client := s.analyst(t, "ana")
	paid := new(big.Rat)
	for _, sql := range []string{
		"SELECT count(*) FROM people", "SELECT count(*) AS n FROM people", "SELECT count(*) FROM people p", "SELECT count(*) FROM public.people",
		"SELECT count(*) FROM people WHERE 1 = 1", "SELECT count(*) FROM people WHERE age IS NOT NULL",
		"SELECT count(*) FROM people WHERE age = age",
		"SELECT count(*) FROM people WHERE age >= 0 AND age <= 100", "SELECT count(*) FROM people WHERE age <= 100 AND age >= 0",
		"SELECT count(*) + 0 FROM people", "SELECT count(*) FROM people ORDER BY 1", "SELECT count(*) FROM people LIMIT 1",
	} {
		answer, err := client.Query(t.Context(), api.QueryRequest{Dataset: "people", SQL: sql, Epsilon: "0.1"}, "")
		if err != nil {
			if problemOf(t, err).Status != http.StatusUnprocessableEntity {
				t.Errorf("%s: %v", sql, err)
			}
			continue // a spelling that is not supported is no way around either
		}
		spent, _ := number(string(answer.Spent.Epsilon))
		if free := spent.Sign() == 0; free != answer.Replayed {
			t.Errorf("%s: replayed %v for %s", sql, answer.Replayed, answer.Spent.Epsilon)
		} else if !free && spent.Cmp(big.NewRat(1, 10)) != 0 {
			t.Errorf("%s: paid %s, want 0.1", sql, answer.Spent.Epsilon)
		}
		paid.Add(paid, spent)
	}
	s.expectSpent(t, "ana", strings.TrimSuffix(paid.FloatString(1), ".0"))

	twice, err := client.Query(t.Context(), api.QueryRequest{Dataset: "people", Epsilon: "0.1",
		SQL: "SELECT count(*), count(*) AS again, count(*) - count(*) AS nothing FROM people WHERE age > 1"}, "")
	if err != nil {
		t.Fatal(err)
	}
	if row := twice.Rows[0]; row[0].String() != row[1].String() || row[2].String() != "0" {
		t.Errorf("the same aggregate twice gives %v: two draws for one charge cancel noise", row)
	}
}

// extremes is a table whose every value is one that escapes naive clamping or breaks naive sums.
func extremes() dataset {
	return dataset{name: "extremes", policy: `version: 1
dataset: extremes
neighbours: add-remove
tables:
  x:
    unit: {row: id}
    columns:
      id: {expose: false}
      f: {bounds: [-10, 10], step: 0.01}
      r: {bounds: [0, 5], step: 0.5}
      n: {bounds: [-10, 10], step: 0.01}
      b: {bounds: [-1000, 1000]}
      i: {bounds: [1, 100]}
      d: {}
      ts: {}
      tz: {}
      s: {keys: private}
      c: {keys: private}
  y:
    unit: {column: who}
    max_rows: 2
    max_groups: 2
    columns:
      f: {bounds: [-10, 10], step: 0.01}
      b: {bounds: [-4000000000000000000, 4000000000000000000]}
budgets:
  - {dataset: true, form: approx, epsilon: 100000, delta: 1e-3}
  - {group: analysts, per: analyst, form: approx, epsilon: 100000, delta: 1e-4}
`, load: func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.PgConn().Exec(ctx, `
			CREATE TABLE x (id serial PRIMARY KEY, f float8, r real, n numeric, b bigint, i int, d date, ts timestamp, tz timestamptz, s text, c char(3));
			INSERT INTO x (f, r, n, b, i, d, ts, tz, s, c) VALUES
				('NaN', 'NaN', 'NaN', 9223372036854775807, 2147483647, 'infinity', 'infinity', '-infinity', '', ''),
				('Infinity', 'Infinity', 'Infinity', -9223372036854775808, -2147483648, '-infinity', '-infinity', 'infinity', repeat('x', 1000000), 'a'),
				('-Infinity', '-Infinity', '-Infinity', 0, 0, '4713-01-01 BC', '4713-01-01 BC', '4713-01-01 BC', E'\\', E'\\'),
				(1e308, 3e38, 1e1000, 9223372036854775807, 42, '5874897-12-31', '294276-12-31', '294276-12-31', '%_', '%_'),
				(-1e308, -3e38, -1e1000, 1, 1, '2024-02-29', '2024-02-29', '2024-02-29', 'é', 'é'),
				(5e-324, 1e-45, 1e-1000, 2, 2, NULL, NULL, NULL, NULL, NULL),
				(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
			CREATE TABLE y (who bigint, f float8, b bigint);
			INSERT INTO y SELECT 1, v.f, v.b FROM generate_series(1, 100), (VALUES ('NaN'::float8, 9223372036854775807), ('-Infinity', -9223372036854775808)) v(f, b);
			INSERT INTO y VALUES (NULL, 1, 1), (9223372036854775807, 1e308, 9223372036854775807)`).ReadAll()
		return err
	}}
}

// TestSpecialValues asks for every aggregate of values that overflow, are no numbers or lie beyond every bound. None may
// raise an error, which a single row could then be found by, and none may count for more than its bounds.
//
// covers: A18 A20 A29
func TestSpecialValues(t *testing.T) {
	t.Parallel()
	s := newStack(t, extremes())
	client := s.analyst(t, "ana")
	for sql, want := range map[string]string{
		// NaN counts as the upper bound, as it does in PostgreSQL's order; NULL does not count.
		"SELECT sum(f) FROM x":                                   "10",   // 10 + 10 - 10 + 10 - 10 + 0
		"SELECT sum(n) FROM x":                                   "10",   // the same
		"SELECT sum(r) FROM x":                                   "15",   // 5 + 5 + 0 + 5 + 0 + 0
		"SELECT sum(b) FROM x":                                   "1003", // 1000 - 1000 + 0 + 1000 + 1 + 2
		"SELECT sum(i) FROM x":                                   "147",  // 100 + 1 + 1 + 42 + 1 + 2
		"SELECT count(f) FROM x":                                 "6",
		"SELECT count(*) FROM x":                                 "7",
		"SELECT count(*) FROM x WHERE f > 0":                     "4", // NaN is larger than every number
		"SELECT count(*) FROM x WHERE b > 9223372036854775806":   "2",
		"SELECT count(*) FROM x WHERE b > 9223372036854775808":   "",
		"SELECT count(*) FROM x WHERE i < 99999999999999999999":  "",
		"SELECT count(*) FROM x WHERE d > DATE '2024-01-01'":     "3",
		"SELECT count(*) FROM x WHERE s LIKE '%\\\\'":            "",
		"SELECT count(*) FROM x WHERE f BETWEEN -1e308 AND 1e-5": "",
		"SELECT avg(f), avg(n), avg(r), avg(b), avg(i) FROM x":   "",
		"SELECT sum(f) FILTER (WHERE f < 0) FROM x":              "",
		"SELECT s, count(*), sum(f) FROM x GROUP BY s":           "",
		"SELECT count(*) FROM y":                                 "3", // 200 rows of one person count 2, the other's 1
		"SELECT sum(f) FROM y":                                   "",
		"SELECT sum(b), avg(b), count(DISTINCT who) FROM y":      "",
	} {
		answer, err := client.Query(t.Context(), api.QueryRequest{Dataset: "extremes", SQL: sql, Epsilon: "1000", Delta: "1e-9",
			Confidence: api.Level(confidence)}, "")
		if err != nil {
			if p := problemOf(t, err); want != "" || p.Status != http.StatusUnprocessableEntity {
				t.Errorf("%s: %v", sql, p)
			}
			continue
		}
		if want == "" {
			continue
		}
		// The interval is some 2 % of a bound wide: a value that counted for more than its bounds would be far outside.
		if lo, hi := ends(t, answer.Intervals[0][0]); exactly(want).Cmp(lo) < 0 || exactly(want).Cmp(hi) > 0 {
			t.Errorf("%s gives %s, interval %v, want %s", sql, answer.Rows[0][0], *answer.Intervals[0][0], want)
		}
	}
}

// exactly is the number that a literal of a test stands for.
func exactly(literal string) *big.Rat {
	n, ok := number(literal)
	if !ok {
		panic(literal)
	}
	return n
}

// ends are the numbers that an interval lies between.
func ends(t *testing.T, interval *api.Bounds) (lo, hi *big.Rat) {
	t.Helper()
	if interval == nil {
		t.Fatal("no interval")
	}
	return exactly(interval[0].String()), exactly(interval[1].String())
}

// TestColumnsCompared compares every two columns of special values. A pair is refused, or it is compared without an error, whatever
// the values are: numeric 1e1000 is no float8, and the last date is no timestamp.
//
// covers: A29
func TestColumnsCompared(t *testing.T) {
	t.Parallel()
	s := newStack(t, extremes())
	client := s.analyst(t, "ana")
	columns := []string{"f", "r", "n", "b", "i", "d", "ts", "tz", "s", "c"}
	answered := 0
	for _, left := range columns {
		for _, right := range append(columns, "1e400", "-1e-400", "9223372036854775808", "DATE '5874897-12-31'", "TIMESTAMP 'infinity'",
			"'\\'", "'%'", "1.5") {
			for _, condition := range []string{"%s = %s", "%s < %s", "%s IS DISTINCT FROM %s", "%s IN (%s)", "%s LIKE %s",
				"%s BETWEEN %[2]s AND %[2]s"} {
				sql := "SELECT count(*) FROM x WHERE " + fmt.Sprintf(condition, left, right)
				_, err := client.Query(t.Context(), api.QueryRequest{Dataset: "extremes", SQL: sql, Epsilon: "1"}, "")
				if err == nil {
					answered++
				} else if p := problemOf(t, err); p.Status != http.StatusUnprocessableEntity && p.Code != "sql/syntax" {
					t.Errorf("%s: %v", sql, p)
				}
			}
		}
	}
	if answered < 2*len(columns) {
		t.Errorf("only %d comparisons were answered: the test asks wrongly", answered)
	}
}

// TestPriceIgnoresData prices the same questions on two neighbouring datasets: everything that is said, notes and plan included, is
// the same.
//
// covers: A41
func TestPriceIgnoresData(t *testing.T) {
	t.Parallel()
	s := newStack(t, hollow("somebody", 1), hollow("nobodies", 0))
	client := s.analyst(t, "ana")
	for _, sql := range []string{"SELECT count(*) FROM t", "SELECT k, count(*) FROM t GROUP BY k",
		"SELECT k, count(*) FROM t GROUP BY k HAVING count(*) > 3",
		"SELECT count(*) FROM t WHERE k = 5", "SELECT k, sum(k) FROM t GROUP BY k", "SELECT nothing FROM t"} {
		said := map[string]string{}
		for _, name := range []string{"somebody", "nobodies"} {
			estimate, err := client.Estimate(t.Context(), api.QueryRequest{Dataset: name, SQL: sql, Epsilon: "1"})
			if err != nil {
				p := problemOf(t, err)
				p.RequestID = ""
				said[name] = p.Error()
				continue
			}
			text, err := json.Marshal(estimate)
			if err != nil {
				t.Fatal(err)
			}
			said[name] = strings.ReplaceAll(string(text), name, "NAME")
		}
		if said["somebody"] != said["nobodies"] {
			t.Errorf("%s\n%s\n%s", sql, said["somebody"], said["nobodies"])
		}
	}
}
