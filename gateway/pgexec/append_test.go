package pgexec_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"noisegate.example/catalog"
	"noisegate.example/gateway/pgexec"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/pgtest"
	"noisegate.example/internal/randomtest"
	"noisegate.example/sqlrewrite"
)

// appendedDDL is visits with the time when each row was inserted, which no question sees.
const appendedDDL = `CREATE TABLE visits (id bigint PRIMARY KEY, person int, ward int, minutes int, kind text, "new" int, secret int,
	created timestamptz NOT NULL DEFAULT clock_timestamp());
GRANT USAGE ON SCHEMA public TO noisegate_prepare; GRANT SELECT ON visits TO noisegate_prepare`

const appendedPolicy = `version: 1
dataset: d
tables:
  visits:
    unit: {column: person}
    max_rows: 4
    max_groups: 4
    prepare: {max_rows: 4, refresh: {append: created, settle: %s}}
    columns:
      ward: {domain: [1, 2, 3, 4, 5, 6]}
      minutes: {bounds: [-10, 50]}
      kind: {domain: [a, b], max_length: 3}
      secret: {expose: false}
budgets:
  - {dataset: true, form: approx, epsilon: 10, delta: 1e-6}
`

// appending is a source that grows, and what is made of it.
type appending struct {
	*pgtest.ProtectedDatabase
	conn *pgx.Conn // reads copies: a connection for each time would be more than the server has
	d    *pgexec.Database
	on   *catalog.Snapshot
	id   int
}

func newAppending(t *testing.T, settle string) *appending {
	t.Helper()
	p := pgtest.Protected(t, appendedDDL)
	d := open(t, p, nil)
	return &appending{ProtectedDatabase: p, conn: p.Conn(t, p.DSN), d: d, on: provenSnapshot(t, d, fmt.Sprintf(appendedPolicy, settle))}
}

// run is a run with a seed, which is used where it makes a copy anew.
func (a *appending) run(ctx context.Context, seed int64, full bool) (*catalog.Version, error) {
	table, _ := a.on.Table("", "visits")
	return prepareConfig(a.ProtectedDatabase, seed).Prepare(ctx, a.on, table, full, nil)
}

// compare compares the copy with its table.
func (a *appending) compare(t *testing.T) error {
	t.Helper()
	table, _ := a.on.Table("", "visits")
	return prepareConfig(a.ProtectedDatabase, 1).Compare(t.Context(), a.on, table)
}

// rows has n people of some get rows, that long ago.
func (a *appending) rows(t *testing.T, r *rand.Rand, n int, ago string) {
	t.Helper()
	if n == 0 {
		return
	}
	var rows []string
	for range n {
		a.id++
		person := "NULL"
		if p := r.IntN(25) * r.IntN(25) / 25; p > 0 {
			person = fmt.Sprint(p)
		}
		rows = append(rows, fmt.Sprintf("(%d, %s, %d, %d, %s, %d, %d, now() - interval '%s')", a.id, person, 1+r.IntN(7), r.IntN(100)-20,
			[]string{"'a'", "'b'", "'longer'", "NULL"}[r.IntN(4)], r.IntN(3), r.IntN(3), ago))
	}
	a.Exec(t, "INSERT INTO visits VALUES "+strings.Join(rows, ", "))
}

// serving is the snapshot that the newest version serves in.
func (a *appending) serving(t *testing.T) *catalog.Snapshot {
	t.Helper()
	versions, err := a.d.Versions(t.Context(), "d")
	if err != nil || len(versions) == 0 {
		t.Fatal(versions, err)
	}
	on := sqlrewrite.Serving(a.on, versions[0])
	if on == nil {
		t.Fatalf("version %d does not serve", versions[0].Number)
	}
	return on
}

// copied is what the newest version holds, in the names of its units' ids.
func (a *appending) copied(t *testing.T) string {
	t.Helper()
	table, _ := a.on.Table("", "visits")
	units, _ := a.on.UnitsOf(table)
	made, _ := a.serving(t).Named("", "visits")
	var all string
	if err := a.conn.QueryRow(t.Context(), fmt.Sprintf(`SELECT coalesce(string_agg((u.id, to_jsonb(c) - 'person')::text, e'\n'
		ORDER BY u.id, c.noisegate_rn), '') FROM noisegate_prepared.%s c JOIN noisegate_prepared.%s u ON u.unit = c.person`, made.Name, units)).
		Scan(&all); err != nil {
		t.Fatal(err)
	}
	return all
}

// settled is how long ago a row has to be of for a run to take it up: as old as settle, and of after the run before.
const settled = "1 minute"

// Whatever rows came when, a copy to which rows were appended is the one that is made anew of the same rows with the same seed.
func TestAppendedIsMadeAnew(t *testing.T) {
	t.Parallel()
	a := newAppending(t, "1m")
	r := rand.New(rand.NewPCG(16, 20))
	histories := randomtest.Part(2, 20)
	if testing.Short() {
		histories = 1
	}
	for range histories {
		a.Exec(t, "TRUNCATE visits")
		a.rows(t, r, r.IntN(80), "1 hour")
		seed := r.Int64()
		if _, err := a.run(t.Context(), seed, true); err != nil {
			t.Fatal(err)
		}
		for range 1 + r.IntN(6) {
			a.rows(t, r, r.IntN(1+r.IntN(60)), settled)
			a.rows(t, r, 1, "1 second") // which is for nobody to see
			if _, err := a.run(t.Context(), r.Int64(), false); err != nil {
				t.Fatal(err)
			}
		}
		merged := a.copied(t)
		if err := a.compare(t); err != nil {
			t.Error(err)
		}
		if _, err := a.run(t.Context(), seed, true); err != nil {
			t.Fatal(err)
		}
		if whole := a.copied(t); merged != whole {
			t.Fatalf("appended:\n%s\nmade anew:\n%s", merged, whole)
		}
	}
}

// A run that appends gives the copy that is there the next number and a later time, and reads no row that it has read before.
func TestAppend(t *testing.T) {
	t.Parallel()
	a := newAppending(t, "1m")
	r := rand.New(rand.NewPCG(16, 21))
	a.rows(t, r, 60, "1 hour")
	first, err := a.run(t.Context(), 1, false)
	if err != nil {
		t.Fatal(err)
	}
	before := a.copied(t)
	plan := planned(t, a.serving(t), "SELECT count(*), sum(minutes) FROM visits", 0)
	a.Exec(t, "UPDATE visits SET minutes = minutes + 1, ward = 1", "DELETE FROM visits WHERE id % 2 = 0")
	second, err := a.run(t.Context(), 2, false)
	if err != nil || second.Number != first.Number+1 || !second.AsOf.After(first.AsOf) || second.Base() != first.Number ||
		second.Digest != first.Digest {
		t.Fatalf("%+v, %v, after %+v", second, err, first)
	}
	if now := a.copied(t); now != before {
		t.Errorf("rows of before were read again:\n%s\nthey were\n%s", now, before)
	}
	if _, err := collect(t, a.d, statementsOf(t, plan)[0]); !fault.IsUntouched(err) {
		t.Errorf("a question that was planned on the version before: %v", err)
	}
	if _, err := collect(t, a.d, statementsOf(t, planned(t, a.serving(t), "SELECT count(*), sum(minutes) FROM visits", 0))[0]); err != nil {
		t.Error(err)
	}
	if tables := copiesOf(t, a.ProtectedDatabase); len(tables) != 1 {
		t.Errorf("copies are %v", tables)
	}
	a.rows(t, r, 30, settled)
	third, err := a.run(t.Context(), 3, false)
	if err != nil || third.Number != first.Number+2 || third.Base() != first.Number || a.copied(t) == before {
		t.Errorf("%+v, %v", third, err)
	}
	fourth, err := a.run(t.Context(), 4, true)
	if err != nil || fourth.Number != third.Number+1 || fourth.Base() != fourth.Number {
		t.Errorf("%+v, %v", fourth, err)
	}
	states, err := prepareConfig(a.ProtectedDatabase, 1).State(t.Context(), a.on)
	if err != nil || len(states) != 1 || states[0].Problem != nil || states[0].Serving() == nil ||
		states[0].Serving().Number != fourth.Number {
		t.Errorf("%+v, %v", states, err)
	}
	for _, text := range []string{"SELECT FROM noisegate_prepared.seeds", "INSERT INTO noisegate_prepared.versions DEFAULT VALUES"} {
		if _, err := a.Conn(t, a.As("noisegate_reader")).Exec(t.Context(), text); err == nil {
			t.Errorf("the gateway's role may %s", text)
		}
	}
	dropCopies(t, a.ProtectedDatabase) // and its list, but not the seeds
	if _, err := a.run(t.Context(), 5, false); err != nil {
		t.Error(err)
	}
}

// A comparison sees what appending cannot.
func TestCompare(t *testing.T) {
	t.Parallel()
	a := newAppending(t, "1m")
	if err := a.compare(t); err != nil {
		t.Errorf("of no copy: %v", err)
	}
	for name, change := range map[string]string{
		"a value":          "UPDATE visits SET minutes = coalesce(minutes, 0) + 1 WHERE id = (SELECT min(id) FROM visits WHERE person = 3)",
		"a person":         "UPDATE visits SET person = 77 WHERE person = 3",
		"a deleted row":    "DELETE FROM visits WHERE id = (SELECT min(id) FROM visits WHERE person = 3)",
		"a deleted person": "DELETE FROM visits WHERE person = 3",
		"a late row":       "INSERT INTO visits (id, person, created) VALUES (10001, 77, now() - interval '1 hour')",
		"":                 "INSERT INTO visits (id, person) VALUES (10002, 78)", // which has not settled
		"a hidden value":   "UPDATE visits SET secret = secret + 1",
	} {
		a.Exec(t, "TRUNCATE visits", "INSERT INTO visits (id, person, minutes, created) SELECT g, g % 9, g % 50, now() - interval '1 hour' "+
			"FROM generate_series(1, 30) g")
		if _, err := a.run(t.Context(), 1, true); err != nil {
			t.Fatal(err)
		}
		if err := a.compare(t); err != nil {
			t.Errorf("before %s: %v", name, err)
		}
		a.Exec(t, change)
		if err := a.compare(t); (err != nil) != (name != "" && name != "a hidden value") || err != nil && !errors.Is(err, pgexec.ErrChanged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Nothing that the policy does not show, and nothing but the hash beside the columns of every copy, is in one that rows are appended to;
// and no question can name that.
func TestAppendedColumns(t *testing.T) {
	t.Parallel()
	a := newAppending(t, "1m")
	a.rows(t, rand.New(rand.NewPCG(16, 22)), 10, "1 hour")
	if _, err := a.run(t.Context(), 1, false); err != nil {
		t.Fatal(err)
	}
	on := a.serving(t)
	table, _ := on.Named("", "visits")
	var columns string
	if err := a.Conn(t, a.DSN).QueryRow(t.Context(), `SELECT string_agg(attname::text, ' ' ORDER BY attnum) FROM pg_attribute
		WHERE attrelid = $1 AND attnum > 0`, table.OID).Scan(&columns); err != nil {
		t.Fatal(err)
	}
	if want := "person noisegate_rn ward minutes kind new created noisegate_hash"; columns != want {
		t.Errorf("columns %s, want %s", columns, want)
	}
	for _, column := range []string{"noisegate_hash", "noisegate_rn", "secret"} {
		if _, err := sqlrewrite.Rewrite(t.Context(), "SELECT count("+column+") FROM visits", on, sqlrewrite.Options{}); err == nil {
			t.Errorf("a question names %s", column)
		}
	}
}

// A row of a transaction that was open while a run appended is found by a later run, as long as it was open for no longer than settle.
func TestOpenTransactionsSettle(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this waits for rows to settle")
	}
	t.Parallel()
	a := newAppending(t, "1s")
	if _, err := a.run(t.Context(), 1, false); err != nil {
		t.Fatal(err)
	}
	writer := a.Conn(t, a.DSN)
	for _, text := range []string{"BEGIN", "INSERT INTO visits (id, person, created) VALUES (1, 1, now())"} {
		if _, err := writer.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.run(t.Context(), 1, false); err != nil {
		t.Fatal(err)
	}
	if _, err := writer.Exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); a.copied(t) == ""; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the row is not in the copy within a minute")
		}
		if _, err := a.run(t.Context(), 1, false); err != nil {
			t.Fatal(err)
		}
	}
}

// Whenever a run that appends ends, one version serves, whole: that of before, or that with all new rows.
func TestAppendIsKilled(t *testing.T) {
	t.Parallel()
	a := newAppending(t, "1m")
	r := rand.New(rand.NewPCG(16, 23))
	a.rows(t, r, 3000, "1 hour")
	if _, err := a.run(t.Context(), 1, false); err != nil {
		t.Fatal(err)
	}
	a.rows(t, r, 500, settled)
	begun := time.Now()
	if _, err := a.run(t.Context(), 1, false); err != nil {
		t.Fatal(err)
	}
	whole, rounds, ended := time.Since(begun), randomtest.Part(5, killed), 0
	if testing.Short() {
		rounds = 2
	}
	for range rounds {
		before := a.copied(t)
		a.rows(t, r, 300, settled)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		var run sync.WaitGroup
		run.Go(func() {
			if _, err := a.run(ctx, 2, false); err == nil {
				ended++
			}
		})
		time.Sleep(time.Duration(r.Int64N(int64(whole) * 3 / 2)))
		a.Exec(t, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE datname = current_database() AND application_name = 'noisegate prepare'`)
		run.Wait()
		cancel()
		now := a.copied(t)
		if _, err := a.run(t.Context(), 2, false); err != nil {
			t.Fatal(err)
		}
		if after := a.copied(t); now != before && now != after {
			t.Fatalf("half of the rows are there:\n%s", now)
		}
	}
	merged := a.copied(t)
	if _, err := a.run(t.Context(), 1, true); err != nil {
		t.Fatal(err)
	}
	if merged != a.copied(t) {
		t.Error("rows are missing, or there twice")
	}
	t.Logf("%d of %d runs came to their end", ended, rounds)
}

// Questions are answered while rows are appended, each of one version.
func TestQuestionsWhileAppending(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this appends many times")
	}
	t.Parallel()
	a := newAppending(t, "1m")
	r := rand.New(rand.NewPCG(16, 24))
	a.rows(t, r, 50, "1 hour")
	if _, err := a.run(t.Context(), 1, false); err != nil {
		t.Fatal(err)
	}
	for range randomtest.Part(4, 20) {
		plan := planned(t, a.serving(t), "SELECT count(*) FROM visits", 0)
		a.rows(t, r, 20, settled)
		ended := make(chan error, 1)
		go func() {
			_, err := a.run(t.Context(), 1, false)
			ended <- err
		}()
		first := ""
		for len(ended) == 0 {
			rows, err := collect(t, a.d, statementsOf(t, plan)[0])
			if err != nil && !fault.IsUntouched(err) {
				t.Fatal(err)
			}
			if err != nil {
				break
			}
			if n := revealed(t, rows[0].Values[0]); first == "" {
				first = n
			} else if n != first {
				t.Fatalf("one version has %s rows, and %s", first, n)
			}
		}
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
}

// A table that is filled anew while a run waits for it is read as it is then: not as it was before, where PostgreSQL shows no rows of
// a table that was truncated since.
func TestReloadedSourceIsRead(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this waits for a lock")
	}
	a := newAppending(t, "1m")
	a.rows(t, rand.New(rand.NewPCG(1, 2)), 80, "1 hour")
	if _, err := a.run(t.Context(), 7, true); err != nil {
		t.Fatal(err)
	}
	before := a.copied(t)
	tx, err := a.Conn(t, a.DSN).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "CREATE TEMP TABLE loaded AS SELECT * FROM visits; TRUNCATE visits; "+
		"INSERT INTO visits SELECT * FROM loaded"); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { _, err := a.run(t.Context(), 7, true); ended <- err }()
	runWaits(t, a.ProtectedDatabase, ended)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if after := a.copied(t); before == "" || after != before {
		t.Errorf("the copy has %q, want %q", after, before)
	}
}

// No rows are appended under a number that two people have, or to one of two numbers of a person, whatever keys of the table of numbers let
// pass; a full run sees that of people who have no new rows too.
func TestAppendSeesNumbers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change   string
		appended bool // it is of somebody who has no new row
	}{
		"an id twice":            {"INSERT INTO %s (id) VALUES (1)", false},
		"a number twice":         {"UPDATE %[1]s SET unit = (SELECT unit FROM %[1]s WHERE id = 1) WHERE id = 2", false},
		"another's id twice":     {"INSERT INTO %s (id) VALUES (2)", true},
		"another's number twice": {"UPDATE %[1]s SET unit = (SELECT unit FROM %[1]s WHERE id = 2) WHERE id = 3", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAppending(t, "1m")
			const visit = "INSERT INTO visits VALUES (%d, %d, 1, 1, 'a', 1, 1, now() - interval '%s')"
			for i := range 3 {
				a.Exec(t, fmt.Sprintf(visit, i, i+1, "1 hour"))
			}
			if _, err := a.run(t.Context(), 1, false); err != nil {
				t.Fatal(err)
			}
			table, _ := a.on.Table("", "visits")
			units, _ := a.on.UnitsOf(table)
			units = "noisegate_prepared." + units
			a.Exec(t, fmt.Sprintf("ALTER TABLE %[1]s DROP CONSTRAINT %[2]s_id_key, DROP CONSTRAINT %[2]s_unit_key, "+
				"ALTER unit SET GENERATED BY DEFAULT", units, strings.TrimPrefix(units, "noisegate_prepared.")),
				fmt.Sprintf(c.change, units), fmt.Sprintf(visit, 9, 1, settled))
			if c.appended { // else there is a second number of it in any case
				a.Exec(t, "CREATE UNIQUE INDEX ON "+units+" (id) WHERE id = 1")
			}
			before := a.serving(t)
			_, err := a.run(t.Context(), 2, false)
			if seen := err != nil && strings.Contains(err.Error(), "is there twice"); seen == c.appended {
				t.Errorf("rows were appended: %v, want %t", err, c.appended)
			}
			if c.appended {
				if _, err = a.run(t.Context(), 2, true); err == nil {
					t.Error("a full run made a copy")
				}
			} else if now := a.serving(t); now.DataVersion != before.DataVersion {
				t.Errorf("%s serves, and before %s", now.DataVersion, before.DataVersion)
			}
		})
	}
}

// Numbers of units are integers in a copy until there are too many of them, and then bigints; a copy of integers is made anew before that.
func TestNumbersOutgrowIntegers(t *testing.T) {
	t.Parallel()
	a := newAppending(t, "1m")
	a.rows(t, rand.New(rand.NewPCG(16, 23)), 60, "1 hour")
	table, _ := a.on.Table("", "visits")
	units, _ := a.on.UnitsOf(table)
	id := 10_000
	next := func(number int64) (wide, appended bool) { // after somebody new has got that number
		t.Helper()
		id++
		a.Exec(t, fmt.Sprintf("SELECT setval(pg_get_serial_sequence('noisegate_prepared.%s', 'unit'), %d, false)", units, number),
			fmt.Sprintf("INSERT INTO visits VALUES (%[1]d, %[1]d, 1, 1, 'a', 1, 1, now() - interval '1 minute')", id))
		before := a.copied(t)
		made, err := a.run(t.Context(), 1, false)
		if err != nil {
			t.Fatal(err)
		}
		if now := a.copied(t); !strings.HasPrefix(now, before) || strings.Count(now, "\n") != strings.Count(before, "\n")+1 {
			t.Errorf("the copy is\n%s\nand was\n%s", now, before)
		}
		copied, _ := a.serving(t).Named("", "visits")
		if err := a.Conn(t, a.DSN).QueryRow(t.Context(), `SELECT atttypid = 'bigint'::regtype FROM pg_attribute
			WHERE attrelid = $1 AND attnum = 1`, copied.OID).Scan(&wide); err != nil {
			t.Fatal(err)
		}
		plan := planned(t, a.serving(t), "SELECT count(*), count(DISTINCT person) FROM visits", 0)
		if _, err := collect(t, a.d, statementsOf(t, plan)[0]); err != nil {
			t.Error(err)
		}
		return wide, made.Base() != made.Number
	}
	if _, err := a.run(t.Context(), 1, false); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		number         int64
		wide, appended bool
	}{{500, false, true}, {2_100_000_000, false, true}, {3_000_000_000, true, false}, {4_000_000_000, true, true}} {
		if wide, appended := next(c.number); wide != c.wide || appended != c.appended {
			t.Errorf("with number %d: bigints: %t, want %t; rows were appended: %t, want %t", c.number, wide, c.wide, appended, c.appended)
		}
	}
}

// What appending takes grows with the new rows, also where PostgreSQL knows of none of them: no analysis of the table has seen rows of
// their time. Each with each it would take minutes.
func TestAppendIsLinear(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it prepares 140,000 rows")
	}
	t.Parallel()
	a := newAppending(t, "1m")
	a.Exec(t, `INSERT INTO visits SELECT g, g / 4, 1, 1, 'a', 1, 1, now() - interval '1 hour' - interval '1 second' * g
		FROM generate_series(1, 100000) g`, "ANALYZE visits")
	if _, err := a.run(t.Context(), 1, false); err != nil {
		t.Fatal(err)
	}
	for _, from := range []int{0, 100_000} { // people that there are, and new ones
		a.Exec(t, fmt.Sprintf(`INSERT INTO visits SELECT 200000 + %[1]d + g, %[1]d + g, 1, 1, 'a', 1, 1, now() - interval '1 minute'
			FROM generate_series(1, 20000) g`, from))
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // 0.5 s on a quiet machine
		if _, err := a.run(ctx, 2, false); err != nil {
			t.Errorf("after 20 s: %v", err)
		}
		cancel()
	}
}
