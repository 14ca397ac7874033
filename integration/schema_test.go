package integration

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"noisegate.example/api"
)

// proven is a dataset whose schema proves all that its policy says, with everything that a query could compare with a unit's id: public
// numbers from 1 to 1000, references to it, and unique columns.
func proven() dataset {
	return dataset{name: "proven", policy: `version: 1
dataset: proven
tables:
  people:
    unit: {row: id}
    columns: {age: {bounds: [0, 100]}, club: {domain: [red, green]}}
  visits:
    unit: {column: who}
    max_rows: 5
    max_groups: 2
    columns: {day: {bounds: [0, 400]}}
  items:
    unit: {via: visit, to: visits}
    max_rows: 5
    max_groups: 2
    columns: {price: {bounds: [0, 100]}}
  clerks: {unit: {row: id}, columns: {wage: {bounds: [0, 9]}}}
  numbers: {public: true}
budgets:
` + ampleBudget, load: func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.PgConn().Exec(ctx, `
			CREATE TABLE people (id int PRIMARY KEY, age int NOT NULL, club text, mail text UNIQUE);
			CREATE TABLE visits (nr int PRIMARY KEY, who int REFERENCES people, day int);
			CREATE TABLE items (visit int REFERENCES visits, price int);
			CREATE TABLE clerks (id int PRIMARY KEY, wage int);
			CREATE TABLE numbers (n int PRIMARY KEY, id int, who int, half float8);
			INSERT INTO people SELECT i, i % 90, (ARRAY['red', 'green'])[1 + i % 2], 'm' || i FROM generate_series(1, 500) i;
			INSERT INTO visits SELECT i, i % 500 + 1, i % 365 FROM generate_series(1, 2000) i;
			INSERT INTO items SELECT i, i % 100 FROM generate_series(1, 2000) i;
			INSERT INTO clerks SELECT i, i % 9 FROM generate_series(1, 50) i;
			INSERT INTO numbers SELECT i, i, i, i FROM generate_series(1, 1000) i;
			ANALYZE`).ReadAll()
		return err
	}}
}

// A unit's id, and whatever else identifies one unit, is counted, grouped by within one unit's rows, and joined with the id of the same
// kind of unit. No road leads from it to a constant, or to a public table of numbers, which is a constant in disguise.
//
// needs: postgres
// covers: D1 P2
func TestNobodyIsChosenByTheirID(t *testing.T) {
	t.Parallel()
	s := newStack(t, proven())
	client := s.analyst(t, "ana")
	before := s.entries(t)
	for road, texts := range map[string][]string{
		"constants": {"id = 42", "id IN (41, 42)", "id BETWEEN 42 AND 42", "NOT id <> 42", "id IS NOT DISTINCT FROM 42", "id + 0 = 42",
			"id % 500 = 42", "id::text = '42'", "coalesce(id, 0) = 42",
			"nullif(id, 42) IS NULL", "greatest(id, 42) = 42", "CASE id WHEN 42 THEN true END", "CASE WHEN id = 42 THEN true END",
			"width_bucket(id, 42, 43, 1) = 1", "mail = 'm42'", "mail LIKE 'm42%'",
			"lower(mail) = 'm42'", "concat(id, 'x') = '42x'"},
		"subqueries in conditions": {"id IN (SELECT 42)", "42 IN (SELECT who FROM visits)", "(id, 42) IN (SELECT who, who FROM visits)",
			"(id, 42) IN (SELECT who, nr FROM visits)", "id IN (SELECT n FROM numbers WHERE n = 42)",
			"(id, age) IN (SELECT who, n FROM numbers)", "EXISTS (SELECT 1 FROM numbers WHERE n = people.id AND n = 42)",
			"EXISTS (SELECT 1 FROM visits v WHERE v.who = people.id AND v.who = 42)",
			"EXISTS (SELECT 1 FROM visits v, numbers m WHERE v.who = people.id AND v.who = m.n AND m.n = 42)",
			"id = (SELECT max(n) FROM numbers WHERE n < 43)", "mail IN (SELECT 'm42')",
			"EXISTS (SELECT 1 FROM visits v WHERE v.who = people.id AND v.nr = 42)"},
	} {
		for _, condition := range texts {
			refusesIDs(t, client, road, "SELECT count(*) FROM people WHERE "+condition)
			refusesIDs(t, client, road, "SELECT count(*) FILTER (WHERE "+condition+") FROM people")
			refusesIDs(t, client, road, "SELECT sum(CASE WHEN "+condition+" THEN age ELSE 0 END) FROM people")
		}
	}
	for road, texts := range map[string][]string{
		"joins": {"people p JOIN (SELECT 42 AS k) c ON p.id = c.k", "people p, (SELECT 42 AS k) c WHERE p.id = c.k",
			"people p LEFT JOIN (SELECT 42 AS k) c ON p.id = c.k WHERE c.k IS NOT NULL",
			"people p JOIN numbers m ON m.n = p.id WHERE m.n = 42", "numbers m RIGHT JOIN people p ON m.n = p.id WHERE m.n = 42",
			"people p FULL JOIN numbers m ON m.n = p.id WHERE m.n = 42",
			"people NATURAL JOIN (SELECT 42 AS id) c", "people JOIN numbers USING (id) WHERE n = 42",
			"people p JOIN numbers m ON p.id = m.half", "visits JOIN numbers USING (who) WHERE n = 42",
			"visits v JOIN people p ON p.id = v.who JOIN numbers m ON m.n = v.who", "items i JOIN numbers m ON m.n = i.visit",
			"people p JOIN (SELECT 'm42' AS k) c ON p.mail = c.k",
			"people p JOIN (SELECT n AS id FROM numbers WHERE n = 42) c USING (id)"},
		"outputs": {"(SELECT id AS k, age FROM people) t WHERE k = 42", "(SELECT id + 0 AS k, age FROM people) t WHERE k = 42",
			"(SELECT CASE WHEN age > 3 THEN id END AS k FROM people) t WHERE k = 42",
			"(SELECT k FROM (SELECT id AS k FROM people) t) u WHERE k = 42",
			"(SELECT nr AS k FROM visits UNION ALL SELECT age FROM people) t WHERE k = 42",
			"(SELECT age AS k FROM people UNION ALL SELECT nr FROM visits) t WHERE k = 42",
			"(SELECT id, age AS k FROM people UNION ALL SELECT who, who FROM visits) t WHERE k = 42",
			"people p, LATERAL (SELECT p.id AS k) l WHERE l.k = 42", "people p, LATERAL (SELECT p.id + 0 AS k) l WHERE l.k = 42",
			"visits v, LATERAL (SELECT v.nr AS k) l WHERE l.k = 42"},
		"statistics of one person": {"(SELECT id, min(id) AS m FROM people GROUP BY id) t WHERE m = 42",
			"(SELECT id, max(id + 0) AS m FROM people GROUP BY id) t WHERE m = 42", "(SELECT id FROM people GROUP BY id HAVING id = 42) t",
			"(SELECT who, sum(nr) AS m FROM visits GROUP BY who) t WHERE m = 42",
			"(SELECT who, min(nr) AS m FROM visits GROUP BY who) t WHERE m = 42",
			"(SELECT who, count(*) FILTER (WHERE who = 42) AS m FROM visits GROUP BY who) t WHERE m > 0",
			"(SELECT who, bool_or(nr = 42) AS m FROM visits GROUP BY who) t WHERE m"},
		"windows": {"(SELECT who, lag(who) OVER (PARTITION BY who ORDER BY day) AS m FROM visits) t WHERE m = 42",
			"(SELECT who, first_value(nr) OVER (PARTITION BY who ORDER BY day) AS m FROM visits) t WHERE m = 42",
			"(SELECT who, max(who) OVER (PARTITION BY who) AS m FROM visits) t WHERE m = 42",
			"(SELECT who, sum(nr) OVER (PARTITION BY who) AS m FROM visits) t WHERE m = 42"},
		"paths": {"items WHERE visit = 42", "items i JOIN visits v ON v.nr = i.visit WHERE v.who = 42",
			"items i JOIN visits v ON v.nr = i.visit WHERE i.visit + 0 = 42", "visits WHERE nr = 42",
			"items i JOIN visits v ON v.nr = i.visit JOIN numbers m ON m.n = v.nr WHERE m.n = 42"},
		"units of other kinds": {"people p JOIN clerks c ON c.id = p.id", "people p WHERE id IN (SELECT id FROM clerks)",
			"people p WHERE EXISTS (SELECT 1 FROM clerks c WHERE c.id = p.id AND c.wage > 3)",
			"people JOIN clerks USING (id)", "(SELECT id FROM people UNION ALL SELECT id FROM clerks) t"},
	} {
		for _, from := range texts {
			refusesIDs(t, client, road, "SELECT count(*) FROM "+from)
		}
	}
	for _, sql := range []string{"SELECT id, count(*) FROM people GROUP BY id", "SELECT nr, count(*) FROM visits GROUP BY nr",
		"SELECT DISTINCT id FROM people", "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY nr) FROM visits",
		"SELECT sum(nr) FROM visits", "SELECT max(id) FROM people", "SELECT mode() WITHIN GROUP (ORDER BY mail) FROM people"} {
		refusesIDs(t, client, "keys and aggregates", sql)
	}
	if after := s.entries(t); after != before {
		t.Errorf("refused queries wrote %d entries", after-before)
	}
	for _, sql := range []string{
		"SELECT count(DISTINCT id), count(mail) FROM people", "SELECT count(*), count(DISTINCT p.id) FROM people p JOIN visits v ON v.who " +
			"= p.id", "SELECT count(*) FROM people p LEFT JOIN visits v ON v.who = p.id WHERE v.nr IS NULL",
		"SELECT count(*) FROM people WHERE id IN (SELECT who FROM visits WHERE day > 9)",
		"SELECT count(*) FROM people p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.who = p.id)",
		"SELECT avg(n) FROM (SELECT who, count(*) AS n, count(DISTINCT nr) AS m FROM visits GROUP BY who) t",
		"SELECT count(*) FROM items i JOIN visits v ON v.nr = i.visit JOIN people p ON p.id = v.who",
		"SELECT count(*) FROM items JOIN (SELECT nr AS visit, who FROM visits) v USING (visit)",
		"SELECT count(*) FROM (SELECT who, row_number() OVER (PARTITION BY who ORDER BY day, nr) AS r FROM visits) t WHERE r = 1",
		"SELECT count(*) FROM (SELECT id FROM people UNION ALL SELECT who FROM visits) t",
		"SELECT count(*) FROM visits v JOIN numbers m ON m.n = v.day WHERE m.n < 42",
	} {
		if _, err := client.Query(t.Context(), api.QueryRequest{Dataset: "proven", SQL: sql, Epsilon: "1"}, ""); err != nil {
			t.Errorf("%s: %v", sql, err)
		}
	}
}

// refusesIDs wants a query to be refused for what it does with an id, which its text decides.
func refusesIDs(t *testing.T, client *api.Client, road, sql string) {
	t.Helper()
	_, err := client.Query(t.Context(), api.QueryRequest{Dataset: "proven", SQL: sql, Epsilon: "1", Delta: "1e-9"}, "")
	if err == nil {
		t.Errorf("%s: answered: %s", road, sql)
	} else if p := problemOf(t, err); p.Status != http.StatusUnprocessableEntity || p.Code == "sql/syntax" || p.Code == "sql/unknown-column" {
		t.Errorf("%s: %s: %v", road, sql, p)
	}
}

// What the schema does not prove is refused when a policy is checked and when it is applied.
//
// needs: postgres
// covers: P1 P2 P3 P4 R1
func TestPoliciesThatTheSchemaDoesNotProve(t *testing.T) {
	t.Parallel()
	s := newStack(t, proven())
	for name, c := range map[string]struct{ ddl, tables, why string }{
		"P1": {"CREATE TABLE p1 (id int PRIMARY KEY); ALTER TABLE p1 ENABLE ROW LEVEL SECURITY", "p1: {unit: {row: id}}",
			"p1 has row level security"},
		"P2": {"CREATE TABLE p2 (id int PRIMARY KEY, who int REFERENCES people)", "{people: {unit: {row: id}}, p2: {unit: {row: id}}}",
			"would not be protected"},
		"P3": {"CREATE TABLE p3 (id int PRIMARY KEY, who int REFERENCES people)", "{people: {unit: {row: id}}, p3: {public: true}}",
			"p3 is public, and a foreign key leads from it to people"},
		"P4": {`CREATE FOREIGN DATA WRAPPER nowhere; CREATE SERVER away FOREIGN DATA WRAPPER nowhere; CREATE TABLE p4 (who int) PARTITION BY LIST (who);
			CREATE FOREIGN TABLE p4_1 PARTITION OF p4 DEFAULT SERVER away`, "p4: {unit: {column: who}, max_rows: 1, max_groups: 1}", "partitions of p4 are foreign tables"},
		"R1": {"CREATE TABLE r1 (id int PRIMARY KEY); CREATE TABLE r1_more () INHERITS (r1)", "r1: {unit: {row: id}}",
			"other tables inherit from r1"},
	} {
		s.exec(t, "proven", c.ddl+"; GRANT SELECT ON ALL TABLES IN SCHEMA public TO noisegate_reader")
		if !strings.HasPrefix(c.tables, "{") {
			c.tables = "{" + c.tables + "}"
		}
		file := filepath.Join(s.dir, name+".yaml")
		write(t, file, "version: 1\ndataset: proven\ntables: "+c.tables+"\nbudgets:\n"+ampleBudget)
		for _, command := range []string{"check", "apply"} {
			cmd := s.command("policy", command, "--config", s.config, file)
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 4 || !strings.Contains(string(out), c.why) ||
				!strings.Contains(string(out), name+".yaml:3:") || !strings.Contains(string(out), "hint: ") {
				t.Errorf("%s, %s: %v, %s", name, command, err, out)
			}
		}
	}
	file := filepath.Join(s.dir, "two.yaml")
	write(t, file, "version: 1\ndataset: proven\ntables:\n  people: {unit: {row: id}}\n  p2: {unit: {row: id}, not_covered: "+
		"[people]}\n  p3: {unit: {row: id, of: people}}\nbudgets:\n"+ampleBudget)
	out := s.run(t, "policy", "check", "--config", s.config, file)
	for _, want := range []string{"units of the kind p2: p2\n", "units of the kind people: p3, people\n", "two.yaml:6:",
		"warning: a foreign key leads from p3 to people"} {
		if !strings.Contains(out, want) {
			t.Errorf("policy check lacks %q:\n%s", want, out)
		}
	}
}

// What is switched on after a policy was applied makes the next question stale, and that is free.
//
// needs: postgres
// covers: P1 P3 P4 R1
func TestSchemaThatNoLongerProvesThePolicy(t *testing.T) {
	t.Parallel()
	s := newStack(t, proven())
	s.exec(t, "proven", "CREATE COLLATION blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
	client := s.analyst(t, "ana")
	asked := 0
	ask := func(sql string) error {
		asked++ // another question each time: one that was answered would be given again
		_, err := client.Query(t.Context(), api.QueryRequest{Dataset: "proven", SQL: fmt.Sprintf(sql, asked), Epsilon: "0.01"}, "")
		return err
	}
	for name, c := range map[string]struct{ sql, change, back string }{
		"P1 row level security": {"SELECT count(*) FROM people WHERE age < %d", "ALTER TABLE people ENABLE ROW LEVEL SECURITY",
			"ALTER TABLE people DISABLE ROW LEVEL SECURITY"},
		"P1 of a public table": {"SELECT count(*) FROM visits v JOIN numbers m ON m.n = v.day WHERE m.n < %d",
			"ALTER TABLE numbers ENABLE ROW LEVEL SECURITY", "ALTER TABLE numbers DISABLE ROW LEVEL SECURITY"},
		"P1 of a public table, for free": {"SELECT count(*) FROM numbers WHERE n < %d", "ALTER TABLE numbers ENABLE ROW LEVEL SECURITY",
			"ALTER TABLE numbers DISABLE ROW LEVEL SECURITY"},
		"P3 a public table of people": {"SELECT count(*) FROM visits v JOIN numbers m ON m.n = v.day WHERE m.n < %d",
			"ALTER TABLE numbers ADD CONSTRAINT k FOREIGN KEY (who) REFERENCES people NOT VALID", "ALTER TABLE numbers DROP CONSTRAINT k"},
		"P4 a collation": {"SELECT count(*) FROM people WHERE club = 'red' AND age < %d",
			"ALTER TABLE people ALTER club TYPE text COLLATE blind", `ALTER TABLE people ALTER club TYPE text COLLATE "default"`},
		"R1 a child": {"SELECT count(*) FROM people WHERE age < %d",
			"CREATE TABLE child (LIKE people); ALTER TABLE child INHERIT people", "DROP TABLE child"},
	} {
		s.exec(t, "proven", c.change)
		before := charges(t, s)
		err := ask(c.sql)
		if err == nil {
			t.Errorf("%s: answered", name)
		} else if p := problemOf(t, err); p.Code != "policy/stale" {
			t.Errorf("%s: %v, want policy/stale", name, p)
		}
		if after := charges(t, s); after != before {
			t.Errorf("%s: %d more charges stand", name, after-before)
		}
		s.exec(t, "proven", c.back)
		// The gateway compares schemas every few seconds, and takes a mark back then.
		for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
			if err = ask(c.sql); err == nil || time.Now().After(deadline) {
				break
			}
		}
		if err != nil {
			t.Fatalf("%s: not answered again within two minutes of when the change was taken back: %v", name, err)
		}
	}
}

// charges are the reservations of the ledger that were not given back.
func charges(t *testing.T, s *stack) int {
	t.Helper()
	conn := s.superuser(t, control)
	defer conn.Close(context.Background())
	var n int
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FILTER (WHERE kind = 'reserve') - count(*) FILTER (WHERE kind = 'void') FROM "+
		"noisegate.entry").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
