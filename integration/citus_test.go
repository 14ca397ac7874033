//go:build citus

// The build takes minutes, so these tests are no part of the others: make citus runs them.

package integration

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"noisegate.example/api"
	"noisegate.example/internal/pgserver"
	"noisegate.example/internal/pgtest"
)

// cluster is a coordinator and two workers of Citus. They reach each other over their sockets.
type cluster struct {
	coordinator *pgserver.Server
	workers     []*pgserver.Server
}

// newCluster starts the servers; they go when the test ends.
func newCluster(t testing.TB) *cluster {
	t.Helper()
	needShared(t)
	programs := pgtest.Citus(t, filepath.Join(shared, "engines"))
	start := func() *pgserver.Server {
		// The control database is on the coordinator as well: the gateway refuses a ledger that a power failure could take back.
		server, err := pgserver.Start(t.Context(), pgserver.Options{Programs: programs, Settings: map[string]string{
			"shared_preload_libraries": "citus", "wal_level": "logical", "max_wal_senders": "10", "fsync": "on", "full_page_writes": "on",
			"citus.enable_statistics_collection": "off"}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = server.Stop() })
		return server
	}
	return &cluster{coordinator: start(), workers: []*pgserver.Server{start(), start()}}
}

// host is where a server's socket is.
func host(t testing.TB, server *pgserver.Server) string {
	t.Helper()
	dsn, err := url.Parse(server.DSN(pgserver.Superuser, "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	return dsn.Query().Get("host")
}

// spread is a dataset whose tables lie on the workers: what distribute says is run by the coordinator after the tables
// were made and filled.
func (c *cluster) spread(t testing.TB, d dataset, distribute string) dataset {
	t.Helper()
	load := d.load
	d.load = func(ctx context.Context, conn *pgx.Conn) error {
		nodes := fmt.Sprintf("SET citus.local_hostname = '%s'; SELECT citus_set_coordinator_host('%[1]s', 5432);"+
			"SELECT citus_set_node_property('%[1]s', 5432, 'shouldhaveshards', false);", host(t, c.coordinator))
		for _, worker := range c.workers {
			if err := execAt(ctx, worker, "postgres", "CREATE DATABASE "+d.name); err != nil {
				return err
			}
			if err := execAt(ctx, worker, d.name, read(t, "../deploy/roles.sql")); err != nil {
				return err
			}
			if err := execAt(ctx, worker, d.name, "CREATE EXTENSION citus; ALTER DATABASE "+d.name+" SET citus.local_hostname = '"+host(t,
				worker)+"'"); err != nil {
				return err
			}
			nodes += fmt.Sprintf("SELECT citus_add_node('%s', 5432);", host(t, worker))
		}
		if err := execAll(ctx, conn, "CREATE EXTENSION citus; ALTER DATABASE "+d.name+" SET citus.local_hostname = '"+host(t,
			c.coordinator)+"'"); err != nil {
			return err
		}
		if err := execAll(ctx, conn, nodes); err != nil {
			return err
		}
		if err := load(ctx, conn); err != nil {
			return err
		}
		return execAll(ctx, conn, distribute)
	}
	return d
}

// onShards runs a statement on each shard of a table, on the workers alone: theirs are matters that the coordinator does not know.
func (c *cluster) onShards(t testing.TB, database, table, statement string) {
	t.Helper()
	for _, worker := range c.workers {
		if err := execAt(t.Context(), worker, database, fmt.Sprintf(`SET citus.show_shards_for_app_name_prefixes = '*'; SET citus.enable_manual_changes_to_shards = on;
			DO $$ DECLARE shard regclass; BEGIN
				FOR shard IN SELECT c.oid FROM pg_class c WHERE c.relname ~ '^%s_[0-9]+$' LOOP
					EXECUTE format('%s', shard);
				END LOOP;
				IF NOT FOUND THEN RAISE 'no shard'; END IF;
			END $$`, table, statement)); err != nil {
			t.Fatal(err)
		}
	}
}

// newStackOn is [newStack] on a server that is running.
func newStackOn(t testing.TB, server *pgserver.Server, sets ...dataset) *stack {
	t.Helper()
	return prepareStackOn(t, server, sets...).started(t, sets)
}

// execAt runs statements on another server than a stack's.
func execAt(ctx context.Context, server *pgserver.Server, database, statements string) error {
	conn, err := pgx.Connect(ctx, server.DSN(pgserver.Superuser, database))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	return execAll(ctx, conn, statements)
}

// town is a dataset of people, who are a row each, and their visits, both distributed by the person, and a reference table.
func (c *cluster) town(t testing.TB) dataset {
	t.Helper()
	return c.spread(t, dataset{name: "town", policy: `version: 1
dataset: town
neighbours: add-remove
tables:
  people:
    unit: {row: person}
    columns:
      age:  {bounds: [0, 120]}
      born: {bounds: [1900-01-01, 2025-12-31]}
      city: {keys: private}
      club: {domain: [red, green, blue]}
      paid: {bounds: [0, 1000], step: 0.01}
  visits:
    unit: {column: person}
    max_rows: 8
    max_groups: 3
    columns:
      day:    {bounds: [2025-01-01, 2025-12-31]}
      amount: {bounds: [0, 100]}
      region: {domain: {table: regions, column: name}}
  regions: {public: true}
budgets:
` + strings.Replace(ampleBudget, "epsilon: 1000,", "epsilon: 90000,", 1), load: func(ctx context.Context, conn *pgx.Conn) error {
		return execAll(ctx, conn, `
			CREATE TABLE people (person int PRIMARY KEY, age int NOT NULL, born date NOT NULL, city text, club text, paid numeric(8, 2));
			CREATE TABLE visits (visit int, person int, day date, amount int, region text);
			CREATE TABLE regions (name text PRIMARY KEY, area text NOT NULL);
			INSERT INTO regions VALUES ('north', 'cold'), ('south', 'warm'), ('west', 'warm');
			INSERT INTO people SELECT i, i % 90, date '1930-01-01' + 365 * (i % 90), 'city' || i % 5, (ARRAY['red','green'])[1 + i % 2], i % 500 + 0.25
				FROM generate_series(1, 3000) AS i;
			INSERT INTO visits SELECT i, 1 + i % 3000, date '2025-01-01' + i % 365, i % 100, (ARRAY['north','south','west'])[1 + i % 3]
				FROM generate_series(1, 9000) AS i`)
	}}, `SELECT create_distributed_table('people', 'person'), create_distributed_table('visits', 'person'), create_reference_table('regions')`)
}

// citusKinds are the kinds of queries of docs/sql, over tables that lie on workers.
var citusKinds = []struct {
	kind, sql string
	// plain is the text for PostgreSQL where a bound of the policy binds, or a function is another one there; empty: the same.
	plain string
}{
	{"count", "SELECT count(*) FROM people", ""},
	{"sum and average", "SELECT sum(age), avg(age), sum(paid), avg(paid) FROM people", ""},
	{"filtered", "SELECT count(*) FILTER (WHERE club = 'red'), sum(age) FILTER (WHERE paid > 100) FROM people", ""},
	{"moments", "SELECT stddev_pop(age), corr(age, paid) FROM people", ""},
	{"public key", "SELECT club, count(*) FROM people WHERE club <> 'blue' GROUP BY club", ""},
	{"public key of a reference table", "SELECT region, count(*), sum(amount) FROM visits GROUP BY region", ""},
	{"private key", "SELECT city, count(*) FROM people GROUP BY city", ""},
	{"private and public key", "SELECT city, region, count(*) FROM people JOIN visits USING (person) GROUP BY city, region", ""},
	{"part of a date as a key", "SELECT extract(year FROM born), count(*) FROM people WHERE born < '1932-01-01' GROUP BY extract(year " +
		"FROM born)", ""},
	{"part of a date as a key of visits", "SELECT extract(month FROM day), count(*), sum(amount) FROM visits GROUP BY 1", ""},
	{"months", "SELECT date_trunc('month', day), count(*) FROM visits GROUP BY 1", ""},
	{"computed key", "SELECT age / 30 * 30, count(*), sum(paid) FROM people GROUP BY 1", ""},
	{"classes", "SELECT width_bucket(age, 0, 90, 3), count(*) FROM people GROUP BY 1", ""},
	{"cases", "SELECT CASE WHEN age < 25 THEN 'young' WHEN age < 60 THEN 'grown' ELSE 'old' END, count(*), avg(paid) FROM people GROUP " +
		"BY 1", ""},
	{"condition as a key", "SELECT age > 30, count(*) FROM people GROUP BY 1", "SELECT (age > 30)::text, count(*) FROM people GROUP BY 1"},
	{"different units", "SELECT count(DISTINCT person) FROM visits", ""},
	{"different values", "SELECT count(DISTINCT region) FROM visits", ""},
	{"different units of groups", "SELECT region, count(DISTINCT person) FROM visits GROUP BY region", ""},
	{"quantiles", "SELECT median(age), percentile_disc(0.9) WITHIN GROUP (ORDER BY age) FROM people",
		"SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY age), percentile_disc(0.9) WITHIN GROUP (ORDER BY age) FROM people"},
	{"quantiles of groups", "SELECT club, median(age) FROM people WHERE club <> 'blue' GROUP BY club",
		"SELECT club, percentile_disc(0.5) WITHIN GROUP (ORDER BY age) FROM people GROUP BY club"},
	{"join by the unit", "SELECT count(*), sum(v.amount) FROM people p JOIN visits v ON v.person = p.person", ""},
	{"join by the unit, public key", "SELECT p.club, count(*), sum(v.amount) FROM people p JOIN visits v USING (person) WHERE p.club " +
		"<> 'blue' GROUP BY p.club", ""},
	{"join with a reference table", "SELECT r.area, count(*), sum(v.amount) FROM visits v JOIN regions r ON r.name = v.region GROUP BY " +
		"r.area", ""},
	{"of the unit's own rows", "SELECT count(*) FROM visits a JOIN visits b ON a.person = b.person AND a.day < b.day", ""},
	{"per person", "SELECT avg(n), sum(s) FROM (SELECT person, count(*) AS n, sum(amount) AS s FROM visits GROUP BY person) u", ""},
	{"persons by a condition on their rows",
		"SELECT count(*) FROM (SELECT person FROM visits GROUP BY person HAVING sum(amount) > 100) u", ""},
	{"per person and area", "SELECT area, avg(n) FROM (SELECT v.person, r.area, count(*) AS n FROM visits v JOIN regions r ON r.name = " +
		"v.region GROUP BY v.person, r.area) u GROUP BY area", ""},
	{"window of a person's rows", "SELECT count(*), sum(amount) FROM (SELECT person, amount, row_number() OVER (PARTITION BY person " +
		"ORDER BY day) AS k FROM visits) w WHERE k = 1", ""},
	{"rows that exist", "SELECT count(*) FROM people p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.person = p.person AND v.amount > 50)", ""},
	{"persons of a query", "SELECT count(*) FROM people WHERE person IN (SELECT person FROM visits WHERE amount > 50)", ""},
	{"values of a reference table", "SELECT count(*) FROM visits WHERE region IN (SELECT name FROM regions WHERE area = 'warm')", ""},
	{"different rows", "SELECT region, count(*) FROM (SELECT DISTINCT person, region FROM visits) d GROUP BY region", ""},
	{"union", "SELECT club, count(*) FROM (SELECT person, club FROM people WHERE club = 'red' UNION ALL SELECT person, 'red' FROM " +
		"visits) u WHERE club = 'red' GROUP BY club", ""},
	{"first two",
		"SELECT region, count(*) AS n FROM visits WHERE amount < 50 OR region = 'north' GROUP BY region ORDER BY n DESC LIMIT 1", ""},
	{"computed above the noise", "SELECT club, 2 * count(*) AS n FROM people WHERE club <> 'blue' GROUP BY club HAVING count(*) > 10 " +
		"ORDER BY n", ""},
	{"joined above the noise", "SELECT r.area, w.n FROM (SELECT region, count(*) AS n FROM visits GROUP BY region) w JOIN regions r ON " +
		"r.name = w.region", ""},
	{"public", "SELECT area, count(*) FROM regions GROUP BY area ORDER BY area", ""},
}

// TestCitusAnswersEveryKindOfQuery asks them, and holds each answer against the cluster's own for the same text.
//
// covers: E.3 W7
func TestCitusAnswersEveryKindOfQuery(t *testing.T) {
	c := newCluster(t)
	s := newStackOn(t, c.coordinator, c.town(t))
	for i, k := range citusKinds {
		t.Run(k.kind, func(t *testing.T) {
			answer, err := s.analyst(t, fmt.Sprint("citus-", i)).Query(t.Context(),
				api.QueryRequest{Dataset: "town", SQL: k.sql, Epsilon: "100", Delta: "1e-6", Confidence: api.Level(confidence)}, "")
			if err != nil {
				t.Fatalf("%s\n%v", k.sql, err)
			}
			q := corpusQuery{dataset: "town", sql: cmp.Or(k.plain, k.sql)}
			if answer.Columns[0].Kind == "public" {
				s.compareExactly(t, q, answer)
				return
			}
			s.compare(t, q, answer)
		})
	}
}

// TestCitusAnswersTheCorpus asks the queries of the corpus whose tables one column distributes.
//
// covers: E.3
func TestCitusAnswersTheCorpus(t *testing.T) {
	c := newCluster(t)
	s := newStackOn(t, c.coordinator,
		c.spread(t, census(t), "SELECT create_distributed_table('people', 'person_id')"),
		c.spread(t, pums(t), "SELECT create_distributed_table('pums', 'pid')")) // pums_null has rows without a person, which Citus places nowhere
	other := verdicts(t)
	for _, q := range corpus(t, "queries.sql") {
		if q.dataset == "pagila" {
			continue // its payments lead to a customer through rentals
		}
		if strings.Contains(q.sql, "ROLLUP") {
			continue // the gateway adds up what it released, but Citus cannot compute what the answer is compared with
		}
		t.Run(q.id, func(t *testing.T) {
			s.ask(t, q, cmp.Or(other[q.id], q.verdict))
		})
	}
}

// TestCitusRefusesFreeWhatItCannotCompute: what the coordinator cannot plan, and what only a worker cannot, whose error
// Citus keeps to itself.
//
// covers: E.3 W7
func TestCitusRefusesFreeWhatItCannotCompute(t *testing.T) {
	c := newCluster(t)
	town := c.town(t)
	load := town.load
	town.policy = strings.Replace(town.policy, "  regions: {public: true}", `  calls: {unit: {column: person}, max_rows: 2, max_groups: 2, columns: {length: {bounds: [0, 60]}}}
  letters: {unit: {column: person}, max_rows: 2, max_groups: 2, columns: {pages: {bounds: [0, 60]}}}
  regions: {public: true}`, 1)
	town.load = func(ctx context.Context, conn *pgx.Conn) error {
		if err := load(ctx, conn); err != nil {
			return err
		}
		return execAll(ctx, conn, `CREATE TABLE calls (call int PRIMARY KEY, person int, length int); CREATE TABLE letters (letter int, person int, pages int);
			SELECT create_distributed_table('calls', 'call'), create_distributed_table('letters', 'person')`)
	}
	s := newStackOn(t, c.coordinator, town)
	c.onShards(t, "town", "letters", "ALTER TABLE %s RENAME COLUMN pages TO sheets")
	client := s.analyst(t, "ana")
	for _, sql := range []string{
		"SELECT count(*) FROM people p JOIN calls c ON c.person = p.person",            // they lie apart
		"SELECT sum(sqrt(c.length)) FROM people p JOIN calls c ON c.person = p.person", // the same, of what is tried over made-up rows as well
		"SELECT sum(pages) FROM letters",
	} {
		before := s.entries(t)
		answer, err := client.Query(t.Context(), api.QueryRequest{Dataset: "town", SQL: sql, Epsilon: "1"}, "")
		if err == nil {
			t.Errorf("%s\nanswered %v", sql, answer.Rows)
			continue
		}
		if p := problemOf(t, err); p.Code != "plan/dry-run" || s.entries(t) != before {
			t.Errorf("%s\n%v, %d entries; want plan/dry-run and none", sql, err, s.entries(t)-before)
		}
	}
	// What a worker had against it is not remembered: it can change.
	c.onShards(t, "town", "letters", "ALTER TABLE %s RENAME COLUMN sheets TO pages")
	if _, err := client.Query(t.Context(), api.QueryRequest{Dataset: "town", SQL: "SELECT sum(pages) FROM letters", Epsilon: "1"},
		""); err != nil {
		t.Error(err)
	}
}

// TestCitusTablesAreNotPrepared: a run says so, makes nothing, and questions read the tables.
func TestCitusTablesAreNotPrepared(t *testing.T) {
	c := newCluster(t)
	town := c.town(t)
	load := town.load
	town.prepares = true
	town.policy = strings.Replace(town.policy, "    max_groups: 3\n", "    max_groups: 3\n    prepare: {max_rows: 8}\n", 1)
	town.load = func(ctx context.Context, conn *pgx.Conn) error {
		if err := load(ctx, conn); err != nil {
			return err
		}
		return execAll(ctx, conn, "ALTER TABLE visits ADD PRIMARY KEY (person, visit); GRANT USAGE ON SCHEMA public TO noisegate_prepare; "+
			"GRANT SELECT ON visits TO noisegate_prepare")
	}
	s := newStackOn(t, c.coordinator, town)
	for _, more := range [][]string{nil, {"--check"}} {
		out, err := s.command(append([]string{"prepare", "--config", s.config, "--dataset", "town"}, more...)...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "the database has Citus, whose tables are not prepared") {
			t.Errorf("%v: %q, %v", more, out, err)
		}
	}
	answer, err := s.analyst(t, "ana").Query(t.Context(), api.QueryRequest{Dataset: "town", SQL: "SELECT count(*) FROM visits",
		Epsilon: "100"}, "")
	if err != nil || answer.AsOf != nil {
		t.Errorf("%+v, %v", answer, err)
	}
}
