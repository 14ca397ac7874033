package integration

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// readRows is how many rows the tables of [readData] that take long have.
const readRows = 50_000

// readData is a dataset with a large table of people's rows and a large public one, with one chosen person or without:
// nobody else is 111 years old.
func readData(name string, target bool) dataset {
	return dataset{name: name, policy: fmt.Sprintf(`version: 1
dataset: %s
neighbours: add-remove
tables:
  people: {unit: {row: person_id}, columns: {age: {bounds: [0, 120]}}}
  visits: {unit: {column: person_id}, max_rows: 4, max_groups: 2, columns: {paid: {bounds: [0, 100]}}}
  streets: {public: true}
budgets:
  - {dataset: true, form: approx, epsilon: 1000, delta: 1e-3}
  - {group: analysts, per: analyst, form: approx, epsilon: 900, delta: 1e-4, max_epsilon_per_query: 1}
`, name), load: func(ctx context.Context, conn *pgx.Conn) error {
		sql := fmt.Sprintf(`CREATE TABLE people (person_id int PRIMARY KEY, age int NOT NULL);
			CREATE TABLE visits (visit_id int PRIMARY KEY, person_id int, paid int, age int);
			CREATE TABLE streets (street int PRIMARY KEY, kind int NOT NULL, zone int);
			INSERT INTO people SELECT i, i %% 100 FROM generate_series(1, 5000) i;
			INSERT INTO visits SELECT i, i %% 5000 + 1, i %% 90, i %% 100 FROM generate_series(1, %[1]d) i;
			INSERT INTO streets SELECT i, i %% 20000, NULLIF(i %% 15000, 0) FROM generate_series(1, %[1]d) i;`, readRows)
		if target {
			sql += `INSERT INTO people VALUES (9999, 111); INSERT INTO visits SELECT 1000000 + i, 9999, i, 111 FROM generate_series(1, 4) i;`
		}
		_, err := conn.Exec(ctx, sql+"ANALYZE;")
		return err
	}}
}

// PostgreSQL read the other table of these questions, 50,000 rows, only if the one person of 111 was there: one exact bit by
// time. The gateway's
// statements read it in any case; PostgreSQL's own counters of rows read say so, and no clock.
//
// needs: postgres
// covers: C1
func TestTheOtherTableIsReadOverHTTP(t *testing.T) {
	t.Parallel()
	const few = "(SELECT * FROM people WHERE age = 111)"
	questions := []struct {
		name, sql string
		times     int64 // so often the large table is read
	}{
		{"A1 left join of few", "SELECT count(v.paid) FROM " + few + " p LEFT JOIN visits v ON v.person_id = p.person_id", 1},
		{"A1 right join of few", "SELECT count(*) FROM visits v RIGHT JOIN " + few + " p ON v.person_id = p.person_id AND v.paid > 3", 1},
		{"A2 exists by less than", "SELECT count(*) FROM people p " +
			"WHERE p.age = 111 AND EXISTS (SELECT 1 FROM visits e WHERE e.person_id = p.person_id AND e.paid < p.age)", 1},
		{"A2 exists in filter", "SELECT count(*) FILTER (WHERE EXISTS (SELECT 1 FROM visits e " +
			"WHERE e.person_id = p.person_id AND e.paid < p.age)) FROM people p WHERE p.age = 111", 1},
		{"A3 in below or", "SELECT count(*) FROM visits p " +
			"WHERE p.age = 111 AND (p.paid < 0 OR (p.person_id, p.paid) IN (SELECT person_id, paid FROM visits))", 2},
		{"A3 in below not", "SELECT count(*) FROM visits p " +
			"WHERE p.age = 111 AND (p.person_id, p.paid) NOT IN (SELECT person_id, paid FROM visits)", 2},
		{"A4 exists public", "SELECT count(*) FROM people p WHERE p.age = 111 AND EXISTS (SELECT 1 FROM streets s WHERE s.street = p.age)", 1},
		{"A4 not in public", "SELECT count(*) FROM people p WHERE p.age = 111 AND p.age NOT IN (SELECT zone FROM streets)", 1},
		{"A5 left join public", "SELECT count(s.kind) FROM people p LEFT JOIN streets s ON s.street = p.age WHERE p.age = 111", 1},
		{"A5 join public", "SELECT count(*) FROM " + few + " p JOIN streets s ON s.street = p.age", 1},
		{"A5 value of public", "SELECT count(*) FROM " + few + " p WHERE p.age < (SELECT max(kind) FROM streets)", 1},
	}
	s := newStack(t, readData("present", true), readData("absent", false))
	token := s.token(t, "ana", "analyst")
	if testing.Short() {
		questions = questions[:2]
	}
	for _, q := range questions {
		for _, name := range []string{"present", "absent"} {
			if read := s.rowsReadFor(t, token, name, q.sql, q.times*readRows); read < q.times*readRows {
				t.Errorf("%s, %s: %d rows of the large tables were read, want at least %d\n%s", q.name, name, read, q.times*readRows, q.sql)
			}
		}
	}
}

// rowsReadFor counts the rows of the large tables that PostgreSQL read for a question. A connection that ends reports its counters
// at once. Version 14 sends them in datagrams, which may be lost: if fewer rows are reported than wanted, the question is asked again.
func (s *stack) rowsReadFor(t *testing.T, token, dataset, sql string, want int64) (read int64) {
	t.Helper()
	for range 4 {
		before := s.rowsRead(t, dataset)
		status, p := s.send(t, raw{token: token, body: body(t, sql, "dataset", `"`+dataset+`"`, "version", `"latest"`)})
		if status == http.StatusServiceUnavailable {
			continue // over a connection that was ended
		}
		if status != http.StatusOK {
			t.Fatalf("%s: %d %s %s", sql, status, p.Code, p.Detail)
		}
		s.exec(t, dataset, `SELECT pg_terminate_backend(pid, 20000) FROM pg_stat_activity
			WHERE datname = current_database() AND usename LIKE 'noisegate%' AND state = 'idle'`)
		for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
			if read = s.rowsRead(t, dataset) - before; read >= want {
				return read
			}
		}
	}
	return read
}

// rowsRead is how many rows of the large tables of a dataset PostgreSQL has read so far.
func (s *stack) rowsRead(t *testing.T, database string) int64 {
	t.Helper()
	conn := s.superuser(t, database)
	defer conn.Close(context.Background())
	var n int64
	if err := conn.QueryRow(t.Context(), `SELECT (SELECT sum(seq_tup_read) FROM pg_stat_user_tables WHERE relname IN ('visits', 'streets'))::bigint
		+ (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname IN ('visits', 'streets'))::bigint`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
