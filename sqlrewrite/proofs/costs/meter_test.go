package costs

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/sqlprint"
)

// meter measures expressions on one connection, in the time that PostgreSQL's process computes: what others do on the machine does not
// count.
type meter struct {
	conn      *pgx.Conn
	collation string        // whose rules are dearest
	last      time.Duration // of the statement before, as its statistics say
	base      float64       // ns that a row takes without any expression
	used      time.Duration // in all
	times     int           // evaluations that were right for the expression before
}

// usage is a line of PostgreSQL's statistics of a statement.
var usage = regexp.MustCompile(`([0-9.]+) s user, ([0-9.]+) s system`)

func newMeter(t testing.TB, dsn string) *meter {
	t.Helper()
	m := &meter{collation: `pg_catalog."C"`}
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		if found := usage.FindStringSubmatch(n.Detail); found != nil && n.Message == "EXECUTOR STATISTICS" {
			user, _ := strconv.ParseFloat(found[1], 64)
			system, _ := strconv.ParseFloat(found[2], 64)
			m.last = time.Duration((user + system) * 1e9)
		}
	}
	if m.conn, err = pgx.ConnectConfig(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.conn.Close(context.Background()) })
	var icu bool
	if err := m.conn.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM pg_collation WHERE collname = 'en-x-icu')").Scan(&icu); err != nil {
		t.Fatal(err)
	}
	if icu {
		m.collation = `pg_catalog."en-x-icu"`
	}
	// As the reader's sessions are, but for the statistics.
	if _, err := m.conn.Exec(t.Context(), `SET jit = off; SET max_parallel_workers_per_gather = 0; SET timezone = 'UTC';
		SET plan_cache_mode = force_generic_plan; SET statement_timeout = '60s'; SET client_min_messages = log;
		SET log_executor_stats = on`); err != nil {
		t.Fatal(err)
	}
	m.base = math.Inf(1)
	for range 5 {
		took, err := m.run(t.Context(), "1", nil, nil, 20_000)
		if err != nil {
			t.Fatal(err)
		}
		m.base = min(m.base, took)
	}
	return m
}

// leaves give columns the forms in which statements read them (sqlprint/leaf.go), wherever they are named, as PostgreSQL does.
var leaves = strings.NewReplacer(`"k"`, `"k"::pg_catalog.text`, `"l"`, `CASE WHEN (pg_catalog.octet_length("l") <= 1024) THEN "l" END`)

// row is a value of each column, as text.
type row map[string]string

// run is how many ns one of so many evaluations takes.
func (m *meter) run(ctx context.Context, text string, args []any, values row, times int) (float64, error) {
	var list []string
	for _, c := range columns {
		if v, there := values[c.name]; there {
			args = append(args, v)
			list = append(list, fmt.Sprintf(`$%d::%s AS "%s"`, len(args), c.pg, c.name))
		}
	}
	if list == nil {
		list = []string{"1"}
	}
	args = append(args, times)
	// A row that is materialized is no constant, and its values are neither compressed nor elsewhere.
	sql := fmt.Sprintf("WITH t AS MATERIALIZED (SELECT %s) SELECT pg_catalog.count(%s) FROM t CROSS JOIN generate_series(1, $%d::integer)",
		strings.Join(list, ", "), leaves.Replace(strings.ReplaceAll(text, `pg_catalog."default"`, m.collation)), len(args))
	m.last = -1
	rows, err := m.conn.Query(ctx, sql, args...)
	if err != nil {
		return 0, err
	}
	rows.Close()
	if err := rows.Err(); err != nil {
		return 0, fmt.Errorf("%w: %s", err, sql)
	}
	if m.last < 0 {
		return 0, errors.New("PostgreSQL gave no statistics")
	}
	m.used += m.last
	return float64(m.last) / float64(times), nil
}

// expression is how many ns one evaluation of an expression takes: the least of some tries, each of about so long.
func (m *meter) expression(ctx context.Context, e algebra.Expr, values row, tries int, each time.Duration) (float64, error) {
	p := sqlprint.NewRowPrinter()
	text := p.Text(e)
	read := row{}
	for _, x := range within(e) {
		if c, ok := x.(algebra.Column); ok {
			read[c.Of.Name] = values[c.Of.Name]
		}
	}
	best := math.Inf(1)
	for runs, short := 0, 0; runs < tries; {
		m.times = max(m.times, 8)
		took, err := m.run(ctx, text, p.Args(), read, m.times)
		if err != nil {
			return 0, err
		}
		enough := took*float64(m.times) >= float64(each)/3
		if m.times = int(min(max(float64(each)/(took+20), 8), 1e6)); !enough && short < 3 {
			short++ // how many are enough was not known yet
			continue
		}
		best = min(best, took)
		runs++
	}
	return max(0, best-m.base), nil
}
