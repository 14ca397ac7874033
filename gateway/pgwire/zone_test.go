package pgwire

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"noisegate.example/internal/pgtest"
)

const (
	zoneTables = `CREATE TABLE purchases (purchase_id int PRIMARY KEY, bought_at timestamptz NOT NULL, on_day date NOT NULL, total int NOT NULL);
		INSERT INTO purchases SELECT g, timestamptz '2018-11-03 00:00+00' + g * interval '1 hour', date '2018-11-03' + g / 24, 1
		FROM generate_series(1, 72) g`
	zonePolicy = `version: 1
dataset: census
neighbours: add-remove
tables:
  purchases: {unit: {row: purchase_id}, columns: {total: {bounds: [0, 2]}}}
budgets:
  - {dataset: true, form: approx, epsilon: 100000, delta: 1e-6}
  - {group: analysts, per: analyst, form: approx, epsilon: 100000, delta: 1e-6}
`
)

// TestZoneOfSession: a session in another time zone than UTC is refused what depends on it, free, on every road; all else is answered
// there, as drivers for Java send a zone when they connect.
func TestZoneOfSession(t *testing.T) {
	d := openedOver(t, pgtest.Protected(t, zoneTables), zonePolicy)
	const price = "options=-c%20noisegate.epsilon%3D1000%20-c%20noisegate.delta%3D1e-8"
	const day = "SELECT count(*) FROM purchases WHERE bought_at >= '2018-11-04' AND bought_at < '2018-11-05'"
	const moments = "SELECT count(*) FROM purchases WHERE bought_at >= '2018-11-04 04:00:00+00' AND bought_at < '2018-11-05T05:00:00Z'"
	in := func(zone string) *pgx.Conn {
		t.Helper()
		return d.connect(t, price+"&timezone="+zone, nil)
	}
	utc := in("UTC")
	table(t, utc, day) // which another session of the same analyst is not given again
	york := in("America%2FNew_York")
	refuse := func(conn *pgx.Conn, ask func(context.Context) error) {
		t.Helper()
		before := d.Entries(t)
		var refused *pgconn.PgError
		if err := ask(t.Context()); !errors.As(err, &refused) || refused.Code != stateUnsupported || refused.Detail != "sql/time-zone" ||
			!strings.Contains(refused.Message, "New_York") || !strings.Contains(refused.Hint, "SET TIME ZONE 'UTC'") {
			t.Errorf("%v", err)
		}
		if d.Entries(t) != before {
			t.Error("the ledger has another entry")
		}
	}
	exec := func(conn *pgx.Conn, sql string, args ...any) func(context.Context) error {
		return func(ctx context.Context) error { _, err := conn.Exec(ctx, sql, args...); return err }
	}
	simple := pgx.QueryExecModeSimpleProtocol
	for _, sql := range []string{day, "EXPLAIN " + day, "COPY (" + day + ") TO STDOUT",
		"SELECT count(*) FROM purchases WHERE on_day < current_date",
		"SELECT linregr(total, ARRAY[1, extract(hour FROM bought_at)]) FROM purchases"} {
		refuse(york, exec(york, sql, simple))
		if !strings.HasPrefix(sql, "COPY") {
			refuse(york, exec(york, sql))
		}
	}
	refuse(york, exec(york, "SELECT count(*) FROM purchases WHERE bought_at < $1", pgx.QueryExecModeExec, "2018-11-04"))
	refuse(york, exec(york, "BEGIN; SET LOCAL noisegate.epsilon = 1; "+day, simple))
	if err := exec(york, "ROLLBACK")(t.Context()); err != nil {
		t.Fatal(err)
	}

	want := table(t, york, moments)[0][0]
	if !strings.HasPrefix(want, "25") { // its hours, and noise of a thousandth
		t.Errorf("%s rows", want)
	}
	for _, sql := range []string{"SELECT sum(total) FROM purchases", "SELECT count(*) FROM purchases WHERE on_day = '2018-11-04'"} {
		table(t, york, sql)
	}
	if got := table(t, york, "SHOW timezone")[0][0]; got != "America/New_York" {
		t.Errorf("the zone is %s", got)
	}
	// Set and taken back within the session, also for one transaction.
	for _, sql := range []string{"SET TIME ZONE 'UTC'", "SET timezone = 'Etc/GMT'", "SET TIME ZONE 0", "SET timezone TO 'zulu'"} {
		if err := exec(york, sql)(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := table(t, york, day)[0][0]; got != table(t, utc, day)[0][0] {
			t.Errorf("%s: %s", sql, got)
		}
	}
	refuse(utc, exec(utc, "BEGIN; SET LOCAL TIME ZONE 'America/New_York'; "+day, simple))
	if err := exec(utc, "ROLLBACK")(t.Context()); err != nil {
		t.Fatal(err)
	}
	table(t, utc, day)
}
