package integration

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"noisegate.example/api"
)

// padded has people with texts that are equal and can be told apart: each has 'ab' with and without blanks at its end,
// in an order of rows that a sort may change as a whole when one person's rows leave.
func padded() dataset {
	return dataset{name: "padded", policy: `version: 1
dataset: padded
neighbours: add-remove
tables:
  visits:
    unit: {column: person}
    max_rows: 2
    max_groups: 1
    columns:
      visit: {bounds: [0, 200000]}
budgets:
` + ampleBudget, load: func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.PgConn().Exec(ctx, `
			CREATE TABLE visits (visit int PRIMARY KEY, person int, free bpchar, five character(5), three character(3));
			INSERT INTO visits SELECT i, i % 10000, 'ab' || repeat(' ', i / 10000), 'ab', 'ab' FROM generate_series(0, 29999) i ORDER BY md5(i::text);
			INSERT INTO visits SELECT 100000 + i, 50000, 'ab', 'ab', 'ab' FROM generate_series(0, 6) i;
			ANALYZE visits`).ReadAll()
		return err
	}}
}

// One person's rows leave, and no answer moves by more than one person may move it, though each of the other 10,000 has
// rows among which PostgreSQL picks one of several equal texts. One person moves an answer by 4 at most, the noise of
// each answer has at most the scale 4/20, and 10 is let pass: the noise of two answers makes that up with a probability
// below (1 + 30)·e^-30, for all of them below 10^-10.
//
// needs: postgres
// covers: A89 B5
func TestEqualTextsAreIdentical(t *testing.T) {
	t.Parallel()
	s := newStack(t, padded())
	client := s.analyst(t, "ana")
	// Of the rows of one person that are equal, each of these keeps one. Twice the same rows are more than one row of each person, which
	// PostgreSQL adds up by sorting.
	twice := func(rows, pattern string) string {
		return fmt.Sprintf("SELECT count(*) FROM (%[1]s UNION ALL %[1]s) t WHERE c LIKE '%[2]s'", rows, pattern)
	}
	const both = "(SELECT person, five AS c FROM visits UNION ALL SELECT person, three FROM visits) u"
	queries := []string{
		twice("SELECT person, max(free) AS c FROM visits GROUP BY person", "ab_"),
		twice("SELECT person, min(free) AS c FROM visits GROUP BY person", "ab"),
		twice("SELECT DISTINCT person, free AS c FROM visits", "ab_"),
		twice("SELECT person, free AS c FROM visits GROUP BY person, free", "ab__"),
		twice("SELECT DISTINCT person, c FROM "+both, "ab___"),
		twice("SELECT person, max(c) AS c FROM "+both+" GROUP BY person", "ab_"),
		twice("SELECT person, first_value(free) OVER (PARTITION BY person ORDER BY free) AS c FROM visits", "ab_"),
		twice("SELECT DISTINCT person, c FROM (SELECT person, lag(five, 1, 'ab') OVER (PARTITION BY person ORDER BY visit) AS c FROM "+
			"visits) w", "ab___"),
	}
	ask := func(epsilon api.Decimal) (all []float64) {
		for _, sql := range queries {
			answer, err := client.Query(t.Context(), api.QueryRequest{Dataset: "padded", SQL: sql, Epsilon: epsilon}, "")
			if err != nil {
				t.Fatalf("%s: %v", sql, err)
			}
			n, err := strconv.ParseFloat(fmt.Sprint(answer.Rows[0][0]), 64)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, n)
		}
		return all
	}
	with := ask("20")
	s.exec(t, "padded", "DELETE FROM visits WHERE person = 50000; ANALYZE visits")
	without := ask("20.5")
	for i, sql := range queries {
		if moved := math.Abs(with[i] - without[i]); moved > 10 {
			t.Errorf("%s: one person moved the answer by %v, from %v to %v", sql, moved, with[i], without[i])
		}
	}
}

// long has one person with a text that takes 64 MB, stored apart from the row.
func long() dataset {
	return dataset{name: "long", policy: `version: 1
dataset: long
neighbours: add-remove
tables:
  people:
    unit: {row: id}
    columns:
      name: {keys: private}
      age:  {bounds: [0, 100]}
budgets:
` + ampleBudget, load: func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.PgConn().Exec(ctx, `
			CREATE TABLE people (id int PRIMARY KEY, age int NOT NULL, name text, code bpchar);
			ALTER TABLE people ALTER name SET STORAGE EXTERNAL, ALTER code SET STORAGE EXTERNAL;
			INSERT INTO people SELECT i, i % 90, 'name' || i % 5, 'c' FROM generate_series(1, 1000) AS i;
			INSERT INTO people VALUES (4711, 97, repeat('long', 16 << 20), repeat('long', 4 << 20));
			ANALYZE people`).ReadAll()
		return err
	}}
}

// No question reads a text that is too long to count: nothing is fetched of where PostgreSQL stores long texts, which
// would take time and memory.
//
// needs: postgres
// covers: A89 H1
func TestLongTextsAreNotRead(t *testing.T) {
	t.Parallel()
	s := newStack(t, long())
	client := s.analyst(t, "ana")
	fetched := func() string {
		return s.plain(t, "long", "SELECT toast_blks_hit + toast_blks_read FROM pg_catalog.pg_statio_user_tables WHERE relname = 'people'")[0][0]
	}
	before := fetched()
	for _, sql := range []string{
		"SELECT name, count(*) FROM people GROUP BY name",
		"SELECT count(DISTINCT name), count(name) FROM people",
		"SELECT count(DISTINCT code) FROM people",
		"SELECT count(*) FROM people WHERE name LIKE '%x%y%z%'",
		"SELECT count(*) FROM people WHERE code LIKE '%x%'",
		"SELECT count(*) FROM people WHERE name ~ 'x+y'",
		"SELECT count(*) FROM people WHERE upper(name) = 'X' OR name < 'b' OR length(code) > 3",
		"SELECT count(*) FROM people WHERE EXISTS (SELECT 1 FROM people p WHERE p.id = people.id AND p.name = people.code)",
		"SELECT count(*) FROM (SELECT id, max(name) AS m, min(code) AS n FROM people GROUP BY id) t WHERE m < n",
		"SELECT count(*) FROM (SELECT DISTINCT id, name, code FROM people) t WHERE name <> code",
		"SELECT count(*) FROM (SELECT id, lag(name) OVER (PARTITION BY id ORDER BY name) AS m FROM people) t WHERE m = 'x'",
	} {
		if _, err := client.Query(t.Context(), api.QueryRequest{Dataset: "long", SQL: sql, Epsilon: "1", Delta: "1e-9"}, ""); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	s.kill() // whose sessions report what they fetched when they end
	deadline := time.Now().Add(30 * time.Second)
	for s.plain(t, "long", "SELECT count(*) FROM pg_catalog.pg_stat_activity "+
		"WHERE datname = current_database() AND usename = 'noisegate_reader'")[0][0] != "0" {
		if time.Now().After(deadline) {
			t.Fatal("the reader's sessions did not end within 30 s")
		}
		time.Sleep(20 * time.Millisecond)
	}
	if after := fetched(); after != before {
		t.Errorf("blocks of long texts fetched: %s before, %s after", before, after)
	}
}

// A server that lacks what a question needs refuses it before the charge, and goes on answering others: here one that
// has lost a function, as older versions lack newer ones, and then one whose function fails. The first is noticed when the
// statement is parsed, the second in the dry run. What was answered before is given again.
//
// needs: postgres
// covers: A89 E.3
func TestDryRunRefusesFree(t *testing.T) {
	t.Parallel()
	s := newStack(t, people(ampleBudget))
	client := s.analyst(t, "ana")
	ask := func(sql string) (*api.QueryResponse, error) {
		return client.Query(t.Context(), api.QueryRequest{Dataset: "people", SQL: sql, Epsilon: "1"}, "")
	}
	const answered = "SELECT count(*) FROM people WHERE initcap(city) = 'City1'"
	if _, err := ask(answered); err != nil {
		t.Fatal(err)
	}
	before := s.entries(t)
	for _, lacks := range []struct {
		sql, code string
		status    int
	}{
		// A type that is printed wrongly has the same SQLSTATE (42883): both are for the operator to look at.
		{"ALTER FUNCTION pg_catalog.initcap(text) RENAME TO initcap_of_another_version", "internal/unprintable", 500},
		{"CREATE FUNCTION pg_catalog.initcap(text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS " +
			"'BEGIN RAISE EXCEPTION division_by_zero; END'", "plan/dry-run", 422},
	} {
		s.exec(t, "people", lacks.sql)
		for _, sql := range []string{
			"SELECT count(*) FROM people WHERE initcap(club) = 'Red'",
			"SELECT sum(length(initcap(club))) FROM people",
			"SELECT club, count(*) FROM people WHERE age > 3 AND initcap(city) IS NOT NULL GROUP BY club",
		} {
			for range 2 { // a dry run the second time from memory
				_, err := ask(sql)
				if err == nil {
					t.Fatalf("%s: answered", sql)
				}
				if p := problemOf(t, err); p.Code != lacks.code || p.Status != lacks.status {
					t.Errorf("%s: %v, want %s", sql, p, lacks.code)
				}
			}
		}
	}
	if after := s.entries(t); after != before {
		t.Errorf("the ledger has %d entries, %d before: a refused request was charged", after, before)
	}
	if replay, err := ask(answered); err != nil || !replay.Replayed {
		t.Errorf("what was answered before is not given again: %v", err)
	}
	if _, err := ask("SELECT count(*) FROM people WHERE city = 'city1'"); err != nil {
		t.Error(err)
	}
	if after := s.entries(t); after == before {
		t.Error("an answer was not charged")
	}
}
