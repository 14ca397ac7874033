package integration

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"noisegate.example/api"
)

// viewed has public tables, views of them, and people. The words of its tables are those of a policy.
func viewed(tables string) dataset {
	return dataset{name: "viewed", policy: `version: 1
dataset: viewed
tables:
  people: {unit: {row: id}, columns: {age: {bounds: [0, 100]}}}
  cities: {public: true}
  countries: {public: true}
` + tables + `budgets:
` + ampleBudget, load: func(ctx context.Context, conn *pgx.Conn) error {
		return execAll(ctx, conn, `
			CREATE TABLE countries (country int PRIMARY KEY, name text NOT NULL, area numeric(8,1));
			CREATE TABLE cities (city int PRIMARY KEY, name varchar(20) NOT NULL, country int NOT NULL, founded date, kind char(3));
			CREATE TABLE people (id int PRIMARY KEY, city int NOT NULL, age int NOT NULL);
			CREATE TABLE secrets (city int, said text);
			CREATE SEQUENCE numbers;
			CREATE FUNCTION told(int) RETURNS text LANGUAGE sql AS 'SELECT said FROM secrets WHERE city = $1';
			INSERT INTO countries SELECT i, 'c' || i, i * 10.5 FROM generate_series(1, 4) i;
			INSERT INTO cities SELECT i, (ARRAY['Aby', 'Bo', 'Ca'])[1 + i % 3] || i, 1 + i % 4, date '1900-01-01' + i * 400, 'k' || i % 2
				FROM generate_series(1, 40) i;
			INSERT INTO people SELECT i, 1 + i % 45, i % 90 FROM generate_series(1, 3000) i;
			CREATE VIEW places AS SELECT c.city, c.name AS place, n.name AS country, n.area, extract(year FROM c.founded) AS year
				FROM cities c JOIN countries n USING (country) WHERE c.name LIKE 'A%' OR NOT c.kind IN ('k0', 'kx');
			CREATE VIEW sizes AS SELECT country, count(*) AS places, max(place) AS last, sum(area) AS area FROM places
				GROUP BY country;
			CREATE VIEW known AS WITH places AS (SELECT city FROM cities WHERE founded >= '1910-01-01'::date)
				SELECT city, coalesce(upper(name), '-') AS name, CASE WHEN country > 2 THEN 'east' ELSE 'west' END AS side
				FROM cities WHERE city IN (SELECT city FROM places) AND founded + 1 < '1935-01-01';
			CREATE VIEW secret AS SELECT s.said FROM secrets s JOIN cities USING (city);
			CREATE VIEW deeper AS SELECT said FROM secret;
			CREATE VIEW calls AS SELECT told(city) AS said FROM cities;
			CREATE VIEW counts AS SELECT nextval('numbers') AS n FROM cities;
			CREATE VIEW slow AS SELECT pg_sleep(1)::text AS x, city FROM cities;
			CREATE VIEW grown AS SELECT array_agg(city) AS x FROM cities;
			CREATE MATERIALIZED VIEW kept AS SELECT city FROM cities;
			ANALYZE`)
	}}
}

const publicViews = "  places: {public: true}\n  sizes: {public: true}\n  known: {public: true}\n"

// A public view answers as PostgreSQL does: free if alone, and also joined with rows of people. One that is replaced is not read: until the
// policy is applied anew its query is the one that was checked, or the policy is stale.
//
// needs: postgres
func TestPublicViews(t *testing.T) {
	t.Parallel()
	s := newStack(t, viewed(publicViews))
	client := s.analyst(t, "ana")
	ask := func(sql string) ([]string, error) {
		answer, err := client.Query(t.Context(), api.QueryRequest{Dataset: "viewed", SQL: sql, Epsilon: "150"}, "")
		if err != nil {
			return nil, err
		}
		var rows []string
		for _, row := range answer.Rows {
			rows = append(rows, strings.Join(texts(row), "|"))
		}
		return rows, nil
	}
	agrees := func(sql string) {
		t.Helper()
		var wanted []string
		for _, row := range s.plain(t, "viewed", sql) {
			wanted = append(wanted, strings.Join(row, "|"))
		}
		if got, err := ask(sql); err != nil || strings.Join(got, "\n") != strings.Join(wanted, "\n") || len(wanted) == 0 {
			t.Errorf("%s:\n%v\n%v, %v", sql, got, wanted, err)
		}
	}
	before := charges(t, s)
	for _, sql := range []string{
		"SELECT * FROM places ORDER BY city", "SELECT * FROM public.sizes s ORDER BY 1", "SELECT * FROM known ORDER BY 1 DESC LIMIT 3",
		"SELECT side, count(*) FROM known k JOIN places p USING (city) GROUP BY side ORDER BY 1",
		"WITH places AS (SELECT country FROM places) SELECT count(*) FROM places",
		"WITH sizes AS (SELECT 1 AS x) SELECT x, places FROM sizes, public.sizes AS s ORDER BY 2, s.country LIMIT 1",
	} {
		agrees(sql)
	}
	if after := charges(t, s); after != before {
		t.Errorf("questions over public views: %d charges", after-before)
	}
	for _, sql := range []string{
		"SELECT count(*) FROM people JOIN places USING (city)",
		"SELECT country, count(*) FROM people p JOIN places ON places.city = p.city GROUP BY country ORDER BY country",
		"SELECT side, count(*) FILTER (WHERE age < 30) FROM people JOIN known k USING (city) GROUP BY 1 ORDER BY 1",
		"SELECT count(*) FROM people WHERE city IN (SELECT city FROM known)",
		"SELECT count(*) FROM people p WHERE EXISTS (SELECT 1 FROM places x WHERE x.city = p.city AND x.area > 20)",
		"SELECT count(*) FROM people JOIN places x USING (city) JOIN sizes s ON s.country = x.country WHERE s.places > 5",
	} {
		agrees(sql)
	}

	was, err := ask("SELECT count(*) FROM places")
	if err != nil {
		t.Fatal(err)
	}
	s.exec(t, "viewed", `CREATE OR REPLACE VIEW places AS SELECT s.city, s.said::varchar(20) AS place, s.said AS country, 1::numeric(8,1) AS area,
		1::numeric AS year FROM secrets s`)
	file := filepath.Join(s.dir, "viewed.policy.yaml")
	for _, command := range []string{"check", "apply"} {
		out, err := s.command("policy", command, "--config", s.config, file).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "view places reads secrets") {
			t.Errorf("policy %s after a view was replaced: %v, %s", command, err, out)
		}
	}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		got, err := ask("SELECT count(*) FROM places")
		if err != nil {
			if code := problemOf(t, err).Code; code != "policy/stale" {
				t.Errorf("a view was replaced: %s", code)
			}
			break
		}
		if fmt.Sprint(got) != fmt.Sprint(was) {
			t.Fatalf("a view that was replaced is read: %v, before %v", got, was)
		}
		if time.Now().After(deadline) {
			t.Fatal("two minutes after a view was replaced its policy is not stale")
		}
	}
	s.exec(t, "viewed", "CREATE OR REPLACE VIEW places AS SELECT city, name AS place, kind::text AS country, 1::numeric(8,1) AS area, "+
		"2::numeric AS year FROM cities")
	s.run(t, "policy", "apply", "--config", s.config, file)
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if got, err := ask("SELECT count(*) FROM places"); err == nil && fmt.Sprint(got) == "[40]" {
			return
		} else if time.Now().After(deadline) {
			t.Fatalf("two minutes after the policy was applied with another query of a view: %v, %v", got, err)
		}
	}
}

// A view that may show more than public tables is refused when the policy is applied, with the reason.
//
// needs: postgres
func TestViewsThatAreNotPublic(t *testing.T) {
	t.Parallel()
	s := newStack(t, viewed(publicViews))
	for tables, why := range map[string]string{
		"  secret: {public: true}\n":                                    "view secret reads secrets, which is no public table",
		"  deeper: {public: true}\n":                                    "view deeper reads secret, which is no public table",
		"  secret: {public: true}\n  deeper: {public: true}\n":          "view secret reads secrets",
		"  sizes: {public: true}\n":                                     "view sizes reads places",
		"  calls: {public: true}\n":                                     "view calls uses the function",
		"  counts: {public: true}\n":                                    "view counts uses the sequence",
		"  slow: {public: true}\n":                                      `view "slow" cannot be asked: there is no function`,
		"  kept: {public: true}\n":                                      "kept is a materialized view",
		"  places: {unit: {column: city}, max_rows: 1}\n":               "places is a view",
		"  places: {public: true, columns: {area: {bounds: [0, 1]}}}\n": "a view has no columns",
	} {
		file := filepath.Join(s.dir, "refused.policy.yaml")
		write(t, file, viewed(tables).policy)
		for _, command := range []string{"check", "apply"} {
			out, err := s.command("policy", command, "--config", s.config, file).CombinedOutput()
			if err == nil || !strings.Contains(string(out), why) || !strings.Contains(string(out), "refused.policy.yaml:7:") {
				t.Errorf("policy %s with %s: %v, %s", command, tables, err, out)
			}
		}
	}
	s.exec(t, "viewed", "CREATE FOREIGN DATA WRAPPER none; CREATE SERVER away FOREIGN DATA WRAPPER none; "+
		"CREATE FOREIGN TABLE far (x int) SERVER away; CREATE VIEW afar AS SELECT x FROM far")
	file := filepath.Join(s.dir, "far.policy.yaml")
	for tables, why := range map[string]string{"  afar: {public: true}\n": "view afar reads far",
		"  afar: {public: true}\n  far: {public: true}\n": "far is a foreign table"} {
		write(t, file, viewed(tables).policy)
		out, err := s.command("policy", "check", "--config", s.config, file).CombinedOutput()
		if err == nil || !strings.Contains(string(out), why) {
			t.Errorf("policy check with %s: %v, %s", tables, err, out)
		}
	}
}
