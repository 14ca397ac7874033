package sqlrewrite

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"noisegate.example/internal/fault"
	"noisegate.example/internal/pgtest"
	"noisegate.example/internal/randomtest"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/internal/steps"
	"noisegate.example/sqlrewrite/internal/suggest"
)

const suggestionTables = `people
  id      integer not null unique
  sex     text not null
  city    text
  age     integer
  income  integer not null
  height  double
  born    date not null
  seen    timestamptz not null
visits
  visit   integer not null unique
  id      integer not null
  ward    integer not null
  region  text not null
  minutes integer not null
  at      timestamptz not null
items
  visit   integer not null references visits(visit)
  id      integer not null
  price   integer not null
bills
  visit   integer not null references visits(visit)
  cost    integer not null
rides
  ride    integer not null
  id      integer not null
  bike    integer not null
  km      integer not null`

const suggestionPolicy = `version: 1
dataset: test
neighbours: add-remove
tables:
  people:
    unit: {row: id}
    columns:
      sex:    {domain: [F, M]}
      city:   {keys: private}
      age:    {bounds: [0, 120]}
      income: {bounds: [0, 900000]}
      height: {bounds: [0.5, 2.5], step: 0.01}
      born:   {bounds: [1900-01-01, 2024-12-31]}
      seen:   {bounds: [2020-01-01, 2024-12-31]}
  visits:
    unit: {column: id, of: people}
    max_rows: 5
    max_groups: 2
    columns: {ward: {domain: [1, 2, 3]}, region: {domain: [north, south]}, minutes: {bounds: [0, 240]}}
  items: {unit: {column: id, of: people}, max_rows: 5, max_groups: 2, columns: {price: {bounds: [0, 90]}}}
  bills: {unit: {via: visit, to: visits}, max_rows: 5, max_groups: 2, columns: {cost: {bounds: [0, 90]}}}
  rides: {unit: {column: id, of: people}, max_rows: 5, max_groups: 2, columns: {km: {bounds: [0, 50]}}}
budgets:
  - {dataset: true, form: approx, epsilon: 10, delta: 1e-6}
`

// suggestionRows are random; each visit, item and ride is somebody's, and each bike has one rider. The functions are those of other systems
// for which suggestions say how they are written here.
func suggestionRows(seed float64) []string {
	return []string{
		"CREATE TABLE people (id int PRIMARY KEY, sex text NOT NULL, city text, age int, income int NOT NULL, height float8, " +
			"born date NOT NULL, seen timestamptz NOT NULL)",
		"CREATE TABLE visits (visit int PRIMARY KEY, id int NOT NULL, ward int NOT NULL, region text NOT NULL, minutes int NOT NULL, " +
			"at timestamptz NOT NULL)",
		"CREATE TABLE items (visit int NOT NULL, id int NOT NULL, price int NOT NULL)",
		"CREATE TABLE bills (visit int NOT NULL, cost int NOT NULL)",
		"CREATE TABLE rides (ride int NOT NULL, id int NOT NULL, bike int NOT NULL, km int NOT NULL)",
		fmt.Sprintf("SELECT setseed(%v)", seed),
		"INSERT INTO people SELECT g, CASE WHEN random() < 0.4 THEN 'F' ELSE 'M' END, nullif(chr(97 + (random() * 4)::int), 'c'), " +
			"nullif((random() * 90)::int, 30), (random() * 900000)::int, 0.5 + (random() * 200)::int / 100.0, " +
			"date '1930-01-01' + (random() * 30000)::int, timestamptz '2020-01-01 00:00+00' + random() * interval '1700 days' " +
			"FROM generate_series(1, 60) g",
		"INSERT INTO visits SELECT g, 1 + (random() * 49)::int, 1 + (random() * 2)::int, CASE WHEN random() < 0.5 THEN 'north' " +
			"ELSE 'south' END, (random() * 240)::int, timestamptz '2020-01-01 00:00+00' + random() * interval '1700 days' " +
			"FROM generate_series(1, 90) g",
		"INSERT INTO items SELECT v.visit, v.id, (random() * 90)::int FROM visits v, generate_series(1, 3) WHERE random() < 0.6",
		"INSERT INTO bills SELECT visit, price FROM items WHERE price > 10",
		"INSERT INTO rides SELECT g, id, 10 * id + (g % 2), (random() * 50)::int FROM (SELECT g, 1 + (random() * 49)::int AS id " +
			"FROM generate_series(1, 80) g) r",
		"CREATE FUNCTION ifnull(int, int) RETURNS int LANGUAGE sql AS 'SELECT coalesce($1, $2)'",
		"CREATE FUNCTION iff(bool, int, int) RETURNS int LANGUAGE sql AS 'SELECT CASE WHEN $1 THEN $2 ELSE $3 END'",
		"CREATE FUNCTION isnull(bool) RETURNS bool LANGUAGE sql AS 'SELECT $1 IS NULL'",
		"CREATE FUNCTION year(date) RETURNS numeric LANGUAGE sql AS 'SELECT extract(year FROM $1)'",
		"CREATE FUNCTION square(int) RETURNS float8 LANGUAGE sql AS 'SELECT power($1, 2)'",
		"CREATE FUNCTION div0null(int, int) RETURNS int LANGUAGE sql AS 'SELECT $1 / nullif($2, 0)'",
		"CREATE FUNCTION datediff(text, date, timestamptz) RETURNS int LANGUAGE sql AS 'SELECT $3::date - $2'",
		"CREATE FUNCTION countif_next(bigint, bool) RETURNS bigint LANGUAGE sql AS 'SELECT $1 + coalesce($2::int, 0)'",
		"CREATE AGGREGATE countif(bool) (sfunc = countif_next, stype = bigint, initcond = 0)",
	}
}

// What PostgreSQL's answers to a refused query and to its suggestion have in common.
const (
	allOfIt  = "SELECT * FROM (%s) q"
	counted  = "SELECT sum(n) FROM (%s) q"
	notNulls = "SELECT * FROM (%s) q WHERE q IS NOT NULL"
)

// refusedForm makes queries that are refused. Its suggestion is equal, differs and says so (agrees is what is equal then), or there is
// none.
type refusedForm struct {
	name    string
	text    func(one func(...string) string) string
	suggest string // equal, differs or none
	agrees  string
}

func refusedForms() []refusedForm {
	where := func(one func(...string) string) string {
		return one("", " WHERE age > 30", " WHERE age > 30 OR sex = 'F'", " WHERE sex = 'F' AND income < 500000")
	}
	return []refusedForm{
		{"computed keys of fields", func(one func(...string) string) string {
			key := one("floor(extract(epoch FROM seen) / 3600) * 3600", "(1 + floor(extract(epoch FROM seen) / 3600))::bigint * 3600")
			return "SELECT " + key + " AS k, count(*) AS n FROM people p WHERE seen >= '2021-01-01' AND seen < '2022-09-01' GROUP BY " +
				one("k", "1", key)
		}, "differs", allOfIt},
		{"keys of cast columns", func(one func(...string) string) string {
			key := one("date_trunc('month', CAST(seen AS timestamp))", "date_trunc('month', seen::timestamp)")
			return one("SELECT "+key+" AS k, count(*) AS n FROM people p GROUP BY k", "SELECT "+key+", count(*) AS n FROM people p GROUP BY "+key)
		}, "differs", "SELECT n FROM (%s) q"},
		{"shares among people", func(one func(...string) string) string {
			return "SELECT count(*) AS n FROM (SELECT " + one("ntile(4)", "percent_rank()", "cume_dist()") + " OVER (" +
				one("", "PARTITION BY sex ") + "ORDER BY income) AS q FROM people) t WHERE q > 0.5"
		}, "none", ""},
		{"ranks among people", func(one func(...string) string) string {
			return "SELECT count(*) AS n FROM (SELECT " + one("rank()", "row_number()") + " OVER (ORDER BY income) AS q FROM people) t WHERE q < 5"
		}, "none", ""},
		{"windows over visits", func(one func(...string) string) string {
			return "SELECT count(*) AS n FROM (SELECT " + one("rank()", "row_number()", "lag(minutes)") + " OVER (" +
				one("", "PARTITION BY region ") + "ORDER BY at) AS q FROM visits) t WHERE q < 9"
		}, "differs", ""},
		{"a key of one person's", func(one func(...string) string) string {
			return "SELECT " + one("count(*)", "sum(s)") + " AS n FROM (SELECT bike, " + one("count(*)", "sum(km)") + " AS s FROM rides" +
				one("", " WHERE km > 10") + " GROUP BY bike" + one("", " HAVING count(*) > 1") + ") t" + one("", " WHERE s > 1")
		}, "differs", allOfIt},
		{"computed keys", func(one func(...string) string) string {
			key := one("income", "income / 2", "height", "height * 10", "p.income - 7", "round(height::numeric, 1)",
				"extract(epoch FROM seen)", "seen - born", "seen - interval '1 hour'")
			return one("SELECT "+key+" AS k, count(*) AS n FROM people p GROUP BY k", "SELECT "+key+", count(*) AS n FROM people p GROUP BY 1",
				"SELECT "+key+", count(*) AS n FROM people p GROUP BY "+key, "SELECT count(*) AS n FROM people p GROUP BY "+key+
					one("", " HAVING count(*) > 0"))
		}, "differs", counted},
		{"whole fields as keys", func(one func(...string) string) string {
			return "SELECT extract(" + one("dow", "hour", "minute") + " FROM at) AS k, count(*) AS n FROM visits" + one("", " WHERE ward > 1") +
				" GROUP BY " + one("k", "1")
		}, "differs", allOfIt},
		{"mode of private keys", func(one func(...string) string) string {
			return "SELECT mode() WITHIN GROUP (ORDER BY city" + one("", " DESC", " ASC") + ")" + one("", " FILTER (WHERE age > 20 OR sex = 'F')") +
				one("", " AS m", " m") + " FROM people" + where(one)
		}, "differs", notNulls},
		{"mode beside others", func(one func(...string) string) string {
			return "SELECT " + one("sex, mode() WITHIN GROUP (ORDER BY city) FROM people GROUP BY sex",
				"mode() WITHIN GROUP (ORDER BY city), count(*) FROM people")
		}, "none", ""},
		{"averages of times", func(one func(...string) string) string {
			return "SELECT " + one("avg(seen)", "stddev(p.seen)", "sum(born)", "avg(seen) FILTER (WHERE age > 3)") + " FROM people p" + where(one)
		}, "equal", allOfIt},
		{"any and all", func(one func(...string) string) string {
			test := one("bool_or(age > 80)", "bool_and(income > 1000)", "every(age < 90 OR sex = 'F')")
			return "SELECT " + one("", "sex, ") + one(test, "NOT "+test, "CASE WHEN "+test+" THEN 1 ELSE 0 END") + " AS b FROM people" + where(one) +
				" GROUP BY sex"
		}, "differs", notNulls},
		{"other systems' functions", func(one func(...string) string) string {
			test := one("100 - ifnull(age, 3) > 50", "2 * iff(income > 5000, 1, 0) = 2", "NOT isnull(age = 3 OR age > 20)", "isnull(age > 3)",
				"year(born) > 1980", "10000 - square(income / 10000) > 9", "90 / div0null(income, 30000) > 4", "DATEDIFF('day', born, seen) > 9000")
			return "SELECT " + one("count(*) FILTER (WHERE "+test+")", "2 * countif("+test+")", "COUNTIF("+test+" AND age > 20) - 1") +
				" AS n FROM people"
		}, "equal", allOfIt},
		{"a value of another query", func(one func(...string) string) string {
			return "SELECT count(*) AS n FROM (SELECT * FROM people WHERE " + one("age > ", "2 * age < 3 + ", "NOT age < ") + "(SELECT " +
				one("avg(age)", "max(age) - 10", "count(*)") + " FROM people" + where(one) + ")) t"
		}, "equal", allOfIt},
		{"clauses that change nothing", func(one func(...string) string) string {
			return "SELECT count(*) AS n FROM (SELECT * FROM visits ORDER BY " + one("minutes", "ward, at DESC") + ") t" + one("", " WHERE ward > 1")
		}, "equal", allOfIt},
		{"times of the day", func(one func(...string) string) string {
			return "SELECT count(*) AS n FROM people WHERE seen < " + one("now()", "current_timestamp") + one("", " - interval '1 day'")
		}, "differs", ""},
		{"pairs of people", func(one func(...string) string) string {
			return "SELECT count(*) AS n FROM people p " + one("JOIN visits v ON p.age < v.minutes", "JOIN visits v ON p.age < 30 OR v.ward = 1",
				"CROSS JOIN visits v", "LEFT JOIN visits v ON v.minutes > 10")
		}, "differs", ""},
		{"rows", func(one func(...string) string) string {
			return "SELECT " + one("*", "sex", "sex, age", "age + 1, age") + " FROM people" + where(one)
		}, "any", ""},
		{"unions", func(one func(...string) string) string {
			return "SELECT count(*) AS n FROM (SELECT ward FROM visits UNION SELECT " + one("age", "income") + " FROM people) t"
		}, "differs", ""},
		{"names and keys", func(one func(...string) string) string {
			return one("SELECT sex, avg(agee) FROM people GROUP BY sex", "SELECT sex, avg(age) FROM poeple GROUP BY sex",
				"SELECT sex, avg(age) FROM people",
				"SELECT sex, sum(age) - 3 AS s FROM people GROUP BY sex HAVING 2 * s > 5", "SELECT count(*) FROM people WHERE sex = M",
				"SELECT sex, count(*) FROM people GROUP BY sex HAVING age > 30",
				"SELECT sex, percentile_cont(0.5) WITHIN GROUP (ORDER BY age), age FROM people GROUP BY sex",
				"SELECT sex, count(*) FROM people WHERE count(*) > 3 AND age IS DISTINCT FROM 4 GROUP BY sex")
		}, "any", ""},
	}
}

// TestSuggestionsEqualTheOriginal: each suggestion for a generated query that is refused is accepted. PostgreSQL gives the same answer to
// both over random rows, unless the suggestion says how it differs; then they agree as far as they can.
//
// needs: postgres
func TestSuggestionsEqualTheOriginal(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	snapshot := rewritetest.ParseSnapshot(t, suggestionTables, suggestionPolicy)
	db := pgtest.New(t)
	db.Exec(t, suggestionRows(0.15)...)
	conn := db.Conn(t, db.DSN)
	random := rand.New(rand.NewPCG(15, 28))
	one := func(of ...string) string { return of[random.IntN(len(of))] }
	answer := func(sql, agrees string) (rows string, err error) {
		err = conn.QueryRow(t.Context(), "SELECT coalesce(string_agg(q::text, ',' ORDER BY q::text), '') FROM ("+
			fmt.Sprintf(agrees, sql)+") q").Scan(&rows)
		return rows, err
	}
	ctx := steps.WithoutClock(t.Context())
	o := rewritetest.Sharp()
	o.Delta, o.Now = 1, rewritetest.GoldenNow()
	for _, form := range refusedForms() {
		compared, texts := 0, map[string]bool{}
		for range randomtest.Part(8, 20) {
			texts[form.text(one)] = true
		}
		for _, text := range slices.Sorted(maps.Keys(texts)) {
			_, _, err := Read(ctx, text, snapshot, o)
			if err == nil {
				t.Errorf("%s: %s is accepted", form.name, text)
				continue
			}
			told := map[string]string{}
			var refusal *fault.Error
			if !errors.As(Suggest(ctx, err, text, snapshot, o), &refusal) {
				t.Fatal(err)
			}
			for _, d := range refusal.Details {
				told[d.Name] = d.Value
			}
			suggested := told["suggestion"]
			given := "equal"
			if suggested == "" {
				given = "none"
			} else if told["differs"] != "" {
				given = "differs"
			}
			if form.suggest != "any" && given != form.suggest {
				t.Errorf("%s: %s\n%v\n suggests %q, which differs: %q; want %s", form.name, text, refusal, suggested, told["differs"], form.suggest)
			}
			if suggested == "" {
				continue
			}
			if _, _, err := Read(ctx, suggested, snapshot, o); err != nil {
				t.Errorf("%s suggests %s: %v", text, suggested, err)
			}
			agrees := form.agrees
			if told["differs"] == "" && agrees == "" {
				agrees = allOfIt
			}
			if agrees == "" {
				continue
			}
			want, err := answer(text, agrees)
			if err != nil || want == "" && told["differs"] != "" {
				continue // PostgreSQL refuses it too, or there is nothing to compare
			}
			if then := told["then"]; then != "" {
				var value string
				if err := conn.QueryRow(t.Context(), "SELECT ("+suggested+")::text").Scan(&value); err != nil {
					t.Fatal(suggested, err)
				}
				suggested = strings.ReplaceAll(then, suggest.AnswerMark, value)
			}
			got, err := answer(suggested, agrees)
			if err != nil || got != want {
				t.Errorf("%s is %s, and what is suggested, %s, is %s %v", text, want, suggested, got, err)
			}
			compared++
		}
		if compared == 0 && form.agrees != "" && form.name != "averages of times" { // which PostgreSQL has none of
			t.Errorf("%s: nothing was compared", form.name)
		}
	}
}
