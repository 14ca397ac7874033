package integration

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"noisegate.example/api"
)

// aimed is a dataset with 50 people, and on request with one more, whose values are the ones that the tests below aim at.
func aimed(name string, with bool) dataset {
	return dataset{name: name, policy: fmt.Sprintf(`version: 1
dataset: %s
neighbours: add-remove
tables:
  people:
    unit: {row: id}
    columns:
      id: {expose: false}
      age: {bounds: [0, 100]}
      maybe: {bounds: [0, 5]}
      x: {bounds: [-1000, 1000]}
      free: {}
      at: {bounds: [2000-01-01, 2030-12-31]}
      far: {}
      born: {bounds: [1900-01-01, 2030-12-31]}
      code: {keys: private}
      one: {domain: [a, b]}
      two: {domain: [b, c]}
      "(age + 1)": {bounds: [0, 1000]}
budgets:
  - {dataset: true, form: approx, epsilon: 100000, delta: 1e-3}
  - {group: analysts, per: analyst, form: approx, epsilon: 100000, delta: 1e-4}
`, name), load: func(ctx context.Context, conn *pgx.Conn) error {
		text := `
			CREATE TYPE first_of AS ENUM ('a', 'b'); CREATE TYPE second_of AS ENUM ('b', 'c');
			CREATE TABLE people (id int PRIMARY KEY, age int NOT NULL, maybe int, x float8, free float8, at timestamp, far timestamp, born date, code char(5), one first_of, two second_of, "(age + 1)" int);
			INSERT INTO people SELECT i, i % 90, NULLIF(i % 4, 0), i, i, '2020-01-01', '2020-01-01', '1980-01-01', (ARRAY['a', 'ab'])[1 + i % 2], 'a', 'b', 1000 FROM generate_series(1, 50) AS i;`
		if with {
			text += `INSERT INTO people VALUES (4711, 97, NULL, 'NaN', 1.7e308, 'infinity', '294276-12-31', '5874897-12-31', '~ab', 'b', 'c', -2147483648);`
		}
		_, err := conn.PgConn().Exec(ctx, text).ReadAll()
		return err
	}}
}

// sum writes n terms so that the tree is flat enough.
func sum(term string, n int) string {
	if n == 1 {
		return term
	}
	return "(" + sum(term, n/2) + " + " + sum(term, n-n/2) + ")"
}

// statuses asks every text of both datasets, and requires each to have one status and code on both.
func statuses(t *testing.T, s *stack, texts []string) map[string]string {
	t.Helper()
	client := s.analyst(t, "ana")
	all := make(map[string]string)
	for _, sql := range texts {
		var seen []string
		for _, name := range []string{"present", "absent"} {
			before := s.entries(t)
			_, err := client.Query(t.Context(), api.QueryRequest{Dataset: name, SQL: sql, Epsilon: "1", Delta: "1e-9"}, "")
			status := "200"
			if err != nil {
				p := problemOf(t, err)
				status = fmt.Sprint(p.Status, " ", p.Code)
				if p.Status >= http.StatusInternalServerError {
					t.Errorf("%s: %s: %v", name, sql, p)
				}
				if after := s.entries(t); after != before {
					t.Errorf("%s: refused, and charged", sql)
				}
			}
			seen = append(seen, status)
		}
		if seen[0] != seen[1] {
			t.Errorf("%s: %s with a person, %s without", sql, seen[0], seen[1])
		}
		all[sql] = seen[0]
	}
	return all
}

// guardedFailures are questions in which a person's condition guards what PostgreSQL would fail in.
func guardedFailures() []string {
	const aim = "age = 97"
	hours, months := "INTERVAL '9600000 hours'", "INTERVAL '-12903 months 400000 days'"
	return []string{
		// B1: the planner knew another range than PostgreSQL 15's width_bucket has.
		"SELECT count(*) FROM people WHERE CASE WHEN " + aim + " THEN width_bucket(x::float8, -1.7e308, 1.7e308, 10) - 10 > 0 END",
		"SELECT count(*) FROM people WHERE CASE WHEN " + aim + " THEN width_bucket(free, -1e299, 1e299, 10) * 200000000 - 10 > 0 END",
		"SELECT sum(width_bucket(x, -1000, 1000, 10) * 1000000) FROM people",
		// B2: a sum of intervals.
		"SELECT count(*) FROM people WHERE CASE WHEN " + aim + " THEN " + sum(hours, 266) +
			" + INTERVAL '8447788 hours' + (at - TIMESTAMP '1999-12-31 12:00:00') > INTERVAL '1 day' END",
		"SELECT count(*) FROM people WHERE CASE WHEN " + aim + " THEN " + sum(hours, 100) +
			" + (at - TIMESTAMP '1999-12-31 12:00:00') > INTERVAL '1 day' END",
		"SELECT count(*) FROM people WHERE CASE WHEN " + aim + " THEN (far - at) + (at - far) + (far - TIMESTAMP '2000-01-01') - INTERVAL " +
			"'1 month' > INTERVAL '1 day' END",
		// B3: an interval that is short, of parts that are long.
		"SELECT count(*) FROM people WHERE CASE WHEN " + aim + " THEN at + " + sum(months, 8) + " > at END",
		"SELECT count(*) FROM people WHERE CASE WHEN " + aim + " THEN at - " + sum(months, 8) + " > at END",
		"SELECT count(*) FROM people WHERE CASE WHEN " + aim + " THEN at + " + months + " > at END",
		"SELECT count(*) FROM people WHERE CASE WHEN " + aim + " THEN at + (CASE WHEN age > 3 THEN INTERVAL '1 month' ELSE at - far END) " +
			"> at END",
		// The same class: operations whose operands another row could drive out of range.
		"SELECT count(*) FROM people WHERE CASE WHEN " + aim + " THEN exp(free) * exp(free) > 1 END",
		"SELECT count(*) FROM people WHERE CASE WHEN " + aim + " THEN (exp(free) - exp(x)) * 2 > 1 END",
		"SELECT count(*) FROM people WHERE CASE WHEN " + aim + ` THEN "(age + 1)" * "(age + 1)" * 2147483647 > 1 END`,
		"SELECT count(*) FROM people WHERE CASE WHEN " + aim + " THEN born + 2147483647 > born END",
		"SELECT count(*) FROM people WHERE CASE WHEN " + aim + " THEN free::int > 1 END",
		"SELECT count(*) FROM people WHERE CASE WHEN " + aim + " THEN ln(free - x) * 1e-300 > 1 END",
		"SELECT count(*) FROM people WHERE CASE WHEN " + aim + " THEN extract(epoch FROM far)::int + 1 > 1 END",
	}
}

// A person's row decides neither whether a statement fails, nor how: the row's condition guards an operation that PostgreSQL would fail in.
//
// needs: postgres
// covers: A29 A89 B1 B2 B3 E.1
func TestNoRowDecidesWhetherAStatementFails(t *testing.T) {
	t.Parallel()
	s := newStack(t, aimed("present", true), aimed("absent", false))
	seen := statuses(t, s, guardedFailures())
	answered := 0
	for _, status := range seen {
		if status == "200" {
			answered++
		}
	}
	if answered < 11 {
		t.Errorf("only %d of %d are answered: %v", answered, len(seen), seen)
	}
	s.alive(t)
}

// Nothing that is taken fails for a reason that the text decides, and nothing panics: it is answered, or refused at no cost.
//
// needs: postgres
// covers: W1 W2 W3 W4 W5 W6 W7 E.5
func TestWhatIsTakenIsAnswered(t *testing.T) {
	t.Parallel()
	s := newStack(t, aimed("present", true), aimed("absent", false))
	const alike = `SELECT sum(p."(age + 1)"), sum(age + 1) FROM people p`
	for _, c := range []struct {
		name              string
		answered, refused []string
	}{
		{"W1 expressions that read alike", []string{alike, "SELECT sum(age / 2), sum(age / 2.0) FROM people"}, nil},
		{"W2 keys that may be NULL", []string{"SELECT count(*) FROM people GROUP BY nullif(maybe, nullif(maybe, 2))"}, nil},
		{"W3 patterns over characters", []string{
			"SELECT count(*) FROM people WHERE code ~ '^a'",
			"SELECT code, count(*) FROM people WHERE code !~* 'B$' GROUP BY code",
			"SELECT count(*) FROM people WHERE code SIMILAR TO '(a|~)%'",
		}, nil},
		{"W4 nullif of whole numbers and decimals", []string{
			"SELECT count(nullif(age, 2.5)), sum(nullif(age, 2.5)) FROM people",
			"SELECT count(*) FROM people WHERE nullif(age, 1.5) > 3",
		}, nil},
		{"W5 two enums", []string{"SELECT count(*) FROM (SELECT id, one::text AS e FROM people UNION ALL SELECT id, two::text FROM " +
			"people) u WHERE e = 'b'"},
			[]string{"SELECT count(*) FROM (SELECT id, one FROM people UNION ALL SELECT id, two FROM people) u WHERE one = 'b'"}},
		{"W6 constants that no float holds", []string{"SELECT count(*) FROM people WHERE greatest(x, 1e299) > 1"}, []string{
			"SELECT count(sqrt(1e310)) FROM people", "SELECT count(*) FROM people WHERE x > sqrt(1e310)",
			"SELECT count(*) FROM people WHERE x > ln(1e310)",
			"SELECT count(ln(x + 1e310)) FROM people", "SELECT count(exp('1e310'::numeric::float8)) FROM people",
			"SELECT count(*) FROM people WHERE x > 1e310", "SELECT count(coalesce(x, 1e310)) FROM people", "SELECT count(x + 1e-400) FROM people",
		}},
		{"W6 limits that are equal as floats", []string{"SELECT count(width_bucket(x, 1, 1.000000000000001, 5)) FROM people"}, []string{
			"SELECT count(width_bucket(x, 1::float8, 1.00000000000000000001, 5)) FROM people",
			"SELECT count(*) FROM people WHERE width_bucket(x, 1e-400, 2e-400, 5) > 1",
		}},
		{"W7 parts of dates as keys", []string{ // on Citus: TestCitusAnswersEveryKindOfQuery
			"SELECT count(*) FROM people GROUP BY extract(year FROM born)",
			"SELECT extract(month FROM born), count(*) FROM people GROUP BY extract(month FROM born)",
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			seen := statuses(t, s, slices.Concat(c.answered, c.refused))
			for _, sql := range c.answered {
				if seen[sql] != "200" {
					t.Errorf("%s: %s", sql, seen[sql])
				}
			}
			for _, sql := range c.refused {
				if !strings.HasPrefix(seen[sql], "422") {
					t.Errorf("%s: %s", sql, seen[sql])
				}
			}
		})
	}
	// The same words are two releases: 50 people of 1000, and 50 whose ages are some 25.
	answer, err := s.analyst(t, "bo").Query(t.Context(), api.QueryRequest{Dataset: "absent", SQL: alike, Epsilon: "10000"}, "")
	if err != nil {
		t.Fatal(err)
	}
	// The noise of either has a scale of 0.2 at most: it is beyond 100 with a probability below e^-500.
	for i, want := range []string{"50000", "1325"} {
		if got := exactly(answer.Rows[0][i].String()); got.Sub(got, exactly(want)).Abs(got).Cmp(exactly("100")) > 0 {
			t.Errorf("column %d is %s, want about %s", i+1, answer.Rows[0][i], want)
		}
	}
	s.alive(t)
}
