//go:build citus

// The build takes minutes, so these tests are no part of the others: make citus runs them.

package integration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"noisegate.example/api"
	"noisegate.example/internal/pgserver"
	"noisegate.example/internal/pgtest"
	"noisegate.example/internal/testfiles"
)

// cluster is what datasets are spread over.
type cluster struct{ *pgtest.Cluster }

// newCluster starts the servers; they go when the test ends.
func newCluster(t testing.TB) *cluster {
	t.Helper()
	return &cluster{pgtest.NewCluster(t, testfiles.Fetched(t, "engines"))}
}

// spread is a dataset whose tables lie on the workers: what distribute says is run by the coordinator after the tables
// were made and filled.
func (c *cluster) spread(d dataset, distribute string) dataset {
	load := d.load
	d.load = func(ctx context.Context, conn *pgx.Conn) error {
		if err := c.Join(ctx, d.name); err != nil {
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
	for _, worker := range c.Workers {
		if err := c.At(t.Context(), worker, database, fmt.Sprintf(`SET citus.show_shards_for_app_name_prefixes = '*'; SET citus.enable_manual_changes_to_shards = on;
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

// town is a dataset of people, who are a row each, and their visits, both distributed by the person, and a reference table.
func (c *cluster) town() dataset {
	return c.spread(dataset{name: "town", policy: `version: 1
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
	s := newStackOn(t, c.Coordinator, c.town())
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
	s := newStackOn(t, c.Coordinator,
		c.spread(census(t), "SELECT create_distributed_table('people', 'person_id')"),
		c.spread(pums(t), "SELECT create_distributed_table('pums', 'pid')")) // pums_null has rows without a person, which Citus places nowhere
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
	town := c.town()
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
	s := newStackOn(t, c.Coordinator, town)
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

// preparedTown is [cluster.town] with visits to be prepared. No person has more visits than a copy keeps.
func (c *cluster) preparedTown() dataset {
	town := c.town()
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
	return town
}

// TestCitusPreparedTables makes copies that lie on workers, with the command and over HTTP, and asks the kinds of questions of
// [BenchmarkPrepared] of them.
func TestCitusPreparedTables(t *testing.T) {
	c := newCluster(t)
	s := newStackOn(t, c.Coordinator, c.preparedTown())
	client := s.analyst(t, "ana")
	prepare := []string{"prepare", "--config", s.config, "--dataset", "town"}
	s.run(t, prepare...)
	s.run(t, append(prepare, "--check")...)
	if out, err := s.command("doctor", "--config", s.config).CombinedOutput(); !strings.Contains(string(out),
		"its shards are what the policy was checked against, and lie by people") || !strings.Contains(string(out), "a copy of visits serves") {
		t.Errorf("doctor says %q, %v", out, err)
	}
	const count = "SELECT count(*) FROM visits"
	const inTable = "SELECT region, count(DISTINCT person) FROM visits GROUP BY region" // which cuts no rows there, for the same noise
	s.seesVersion(t, client, "town", count, 1)
	for _, sql := range []string{
		count,
		"SELECT sum(amount) FROM visits",
		"SELECT count(*), sum(amount), avg(amount), var_pop(amount), count(amount) FROM visits",
		"SELECT region, count(*), sum(amount) FROM visits GROUP BY region",
		"SELECT day, count(*) FROM visits GROUP BY day",
		"SELECT count(*), sum(amount) FROM visits WHERE amount < 10",
		"SELECT r.area, count(*), sum(v.amount) FROM visits v JOIN regions r ON r.name = v.region GROUP BY r.area",
		"SELECT count(DISTINCT person) FROM visits",
		inTable,
	} {
		answer, err := client.Query(t.Context(), api.QueryRequest{Dataset: "town", SQL: sql, Epsilon: "100", Delta: "1e-6",
			Confidence: api.Level(confidence)}, "")
		if err != nil || (answer.AsOf == nil) != (sql == inTable) {
			t.Errorf("%s\n%+v, %v", sql, answer, err)
			continue
		}
		s.compare(t, corpusQuery{dataset: "town", sql: sql}, answer)
	}
	s.exec(t, "town", "INSERT INTO visits SELECT i, 1, date '2025-01-01', 1, 'north' FROM generate_series(10001, 10005) AS i")
	steward := api.NewClient(s.url, s.token(t, "sam", "steward"))
	job, err := steward.Prepare(t.Context(), "town", api.PrepareRequest{})
	if err != nil {
		t.Fatal(err)
	}
	s.eventually(t, func() bool {
		if job, err = steward.PrepareJob(t.Context(), "town", job.JobID); err != nil {
			t.Fatal(err)
		}
		return job.Ended != nil
	})
	if job.State != "done" || job.Tables[0].Version != 2 {
		t.Fatalf("%+v", job)
	}
	s.seesVersion(t, client, "town", count, 2)
	answer, err := client.Query(t.Context(), api.QueryRequest{Dataset: "town", SQL: count, Epsilon: "100", Version: "latest",
		Confidence: api.Level(confidence)}, "")
	if err != nil || answer.Replayed || !strings.HasPrefix(answer.DataVersion, "visits prepared 2 as of ") {
		t.Fatalf("%+v, %v", answer, err)
	}
	s.compare(t, corpusQuery{dataset: "town", sql: count}, answer)
	s.run(t, prepare...)
	if copies, shards := c.copies(t, s); copies != 2 || shards != 2*32 {
		t.Errorf("%d copies in %d shards, want two in 64", copies, shards)
	}
	s.run(t, append(prepare, "--drop")...)
	if copies, shards := c.copies(t, s); copies != 0 || shards != 0 {
		t.Errorf("%d copies in %d shards are left", copies, shards)
	}
}

// copies are how many copies the coordinator of a town has, and how many shards of copies its workers have.
func (c *cluster) copies(t *testing.T, s *stack) (copies, all int) {
	t.Helper()
	const text = `SELECT count(*) FROM pg_class WHERE relnamespace = 'noisegate_prepared'::regnamespace AND relkind = 'r'
		AND relname LIKE 'visits\_%'`
	if err := s.superuser(t, "town").QueryRow(t.Context(), text).Scan(&copies); err != nil {
		t.Fatal(err)
	}
	for _, worker := range c.Workers {
		conn, err := pgx.Connect(t.Context(), worker.DSN(pgserver.Superuser, "town"))
		if err != nil {
			t.Fatal(err)
		}
		var tables int // which are the coordinator's, whose metadata workers have, and shards
		if _, err = conn.Exec(t.Context(), "SET citus.show_shards_for_app_name_prefixes = '*'"); err == nil {
			err = conn.QueryRow(t.Context(), text).Scan(&tables)
		}
		if err != nil {
			t.Fatal(err)
		}
		all += tables - copies
		_ = conn.Close(context.Background())
	}
	return copies, all
}

// TestCitusWorkerKilled kills a worker under a question over a copy, and under a run: the question is refused and its charge stands, since
// rows may have been read; the version before serves when the worker is back, and nothing is left of the run.
func TestCitusWorkerKilled(t *testing.T) {
	c := newCluster(t)
	s := newStackOn(t, c.Coordinator, c.preparedTown())
	client := s.analyst(t, "ana")
	prepare := []string{"prepare", "--config", s.config, "--dataset", "town"}
	s.run(t, prepare...)
	const count = "SELECT count(*) FROM visits"
	s.seesVersion(t, client, "town", count, 1)
	ask := func(i int) error {
		answer, err := client.Query(t.Context(), api.QueryRequest{Dataset: "town", Epsilon: "10",
			SQL: fmt.Sprintf("SELECT count(*) FROM visits WHERE amount <> %d", i)}, "")
		if err == nil && (answer.AsOf == nil || !strings.HasPrefix(answer.DataVersion, "visits prepared 1 as of ")) {
			return fmt.Errorf("an answer of %q", answer.DataVersion)
		}
		return err
	}
	spent := func() string {
		budget, err := client.Budget(t.Context(), "town")
		if err != nil {
			t.Fatal(err)
		}
		return string(budget.Budgets[0].Spent.Epsilon)
	}
	if err := ask(1); err != nil || spent() != "10" {
		t.Fatalf("%v, spent %s", err, spent())
	}
	back := func() {
		if err := c.Workers[1].Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		asked := 100
		s.eventually(t, func() bool { asked++; return ask(asked) == nil })
	}
	outcome, unlock, before := make(chan error, 1), c.lockOneShard(t, "^visits_[0-9a-f]{8}_1_[0-9]+$"), s.entries(t)
	go func() { outcome <- ask(2) }()
	s.eventually(t, func() bool { return s.entries(t) > before }) // it is paid for
	c.waits(t, s)
	c.Workers[1].Kill()
	unlock()
	if p := problemOf(t, <-outcome); p.Code != "data/unavailable" || p.Status != http.StatusServiceUnavailable || spent() != "20" {
		t.Errorf("%+v, spent %s: want 503, and the charge to stand", p, spent())
	}
	if err := ask(3); !isProblem(err, "data/unavailable") && !isProblem(err, "plan/dry-run") || spent() != "20" {
		t.Errorf("without a worker: %v, spent %s", err, spent())
	}
	back()
	printed := make(chan string, 1)
	unlock = c.lockOneShard(t, "^visits_[0-9]+$")
	go func() {
		out, err := s.command(prepare...).CombinedOutput()
		printed <- fmt.Sprint(string(out), err)
	}()
	c.waits(t, s)
	c.Workers[1].Kill()
	unlock()
	if out := <-printed; !strings.Contains(out, "the version before stays") || !strings.Contains(out, "exit status") {
		t.Errorf("a run without a worker says %q", out)
	}
	back()
	s.run(t, prepare...)
	if copies, shards := c.copies(t, s); copies != 2 || shards != 2*32 {
		t.Errorf("%d copies in %d shards, want two in 64", copies, shards)
	}
}

// lockOneShard keeps everybody from the last shard of the second worker's, of those whose names match, until it is called back. Plans are
// tried on the first one, before a charge.
func (c *cluster) lockOneShard(t *testing.T, names string) (unlock func()) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), c.Workers[1].DSN(pgserver.Superuser, "town"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), fmt.Sprintf(`BEGIN; SET citus.enable_manual_changes_to_shards = on; SET citus.show_shards_for_app_name_prefixes = '*';
		DO $$ DECLARE shard regclass; BEGIN
			SELECT oid INTO STRICT shard FROM pg_class WHERE relname ~ '%s' AND relkind = 'r' ORDER BY relname DESC LIMIT 1;
			EXECUTE format('LOCK TABLE %%s IN ACCESS EXCLUSIVE MODE', shard);
		END $$`, names)); err != nil {
		t.Fatal(err)
	}
	return func() { _ = conn.Close(context.Background()) }
}

// waits returns when somebody waits for a lock of the second worker's.
func (c *cluster) waits(t *testing.T, s *stack) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), c.Workers[1].DSN(pgserver.Superuser, "town"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	s.eventually(t, func() (waits bool) {
		if err := conn.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)").Scan(&waits); err != nil {
			t.Fatal(err)
		}
		return waits
	})
}

// BenchmarkCitus compares making a copy, and asking it, on one server and on a cluster on the same machine, whose table lies by the person
// or by something else. -rows and -users set the size.
func BenchmarkCitus(b *testing.B) {
	for _, way := range []struct{ name, distribute string }{
		{"one server", ""},
		{"by person", "ALTER TABLE visits DROP CONSTRAINT visits_pkey, ADD PRIMARY KEY (person, id); " +
			"SELECT create_distributed_table('visits', 'person'), create_reference_table('regions')"},
		{"by row", "SELECT create_distributed_table('visits', 'id'), create_reference_table('regions')"},
	} {
		b.Run(way.name, func(b *testing.B) {
			var s *stack
			if set := clinic(*benchRows, *benchUsers); way.distribute == "" {
				s = newStack(b, set)
			} else {
				c := newCluster(b)
				s = newStackOn(b, c.Coordinator, c.spread(set, way.distribute))
			}
			made := timed(b, func() error {
				s.run(b, "prepare", "--config", s.config, "--dataset", "clinic", "--table", "visits")
				return nil
			})
			b.ReportMetric(made.Seconds(), "prepare-s")
			client := s.analyst(b, "ana")
			s.seesVersion(b, client, "clinic", "SELECT count(*) FROM visits", 1)
			asked := 0
			for name, sql := range map[string]string{
				"count": "SELECT count(*) FROM visits",
				"keys":  "SELECT region, count(*), sum(minutes) FROM visits GROUP BY region",
				"join":  "SELECT r.zone, count(*) FROM visits v JOIN regions r ON r.region = v.region GROUP BY r.zone",
			} {
				var took []time.Duration
				for range b.N {
					asked++
					took = append(took, timed(b, func() error {
						answer, err := client.Query(b.Context(), api.QueryRequest{Dataset: "clinic", SQL: sql, Epsilon: price(10_000 * asked)}, "")
						if err == nil && answer.AsOf == nil {
							err = errors.New("it is not of the copy")
						}
						return err
					}))
				}
				b.ReportMetric(milliseconds(quantile(took, 0.5)), name+"-ms")
			}
		})
	}
}
