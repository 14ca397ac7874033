package integration

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"noisegate.example/api"
)

var benchRows = flag.Int("rows", 100_000, "rows of the table that BenchmarkAgainstPlainSQL asks about")

// large is a table of the given number of rows with a row unit.
func large(rows int) dataset {
	return dataset{name: "big", policy: `version: 1
dataset: big
neighbours: add-remove
tables:
  big:
    unit: {row: id}
    columns:
      id: {expose: false}
      k:  {domain: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]}
      v:  {bounds: [0, 1000]}
budgets:
  - {dataset: true, form: approx, epsilon: 1000000, delta: 1e-3}
  - {group: analysts, per: analyst, form: approx, epsilon: 1000000, delta: 1e-4}
`, load: func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.PgConn().Exec(ctx, fmt.Sprintf(`
			CREATE TABLE big (id bigint PRIMARY KEY, k int NOT NULL, v int NOT NULL);
			INSERT INTO big SELECT i, i %% 10, (i::bigint * 7919) %% 1001 FROM generate_series(1, %d) AS i`, rows)).ReadAll()
		if err == nil {
			_, err = conn.Exec(ctx, "VACUUM (ANALYZE) big")
		}
		return err
	}}
}

// BenchmarkAgainstPlainSQL compares the gateway's latency with that of the same text sent to PostgreSQL by the same role, in
// turn and in one run. Each question has another ε, so that none is a replay. It reports medians and their ratio; -rows sets
// the size.
func BenchmarkAgainstPlainSQL(b *testing.B) {
	s := newStack(b, large(*benchRows))
	client := s.analyst(b, "ana")
	plain, err := pgx.Connect(b.Context(), s.dsn("noisegate_reader", "big"))
	if err != nil {
		b.Fatal(err)
	}
	defer plain.Close(context.Background())
	asked := 0
	for name, sql := range map[string]string{
		"count": "SELECT count(*) FROM public.big",
		"sum":   "SELECT sum(v) FROM public.big",
		"where": "SELECT count(*), avg(v) FROM public.big WHERE v < 500 AND k IN (1, 2, 3)",
		"group": "SELECT k, count(*), sum(v) FROM public.big GROUP BY k ORDER BY k",
	} {
		b.Run(name, func(b *testing.B) {
			var direct, through []time.Duration
			for b.Loop() {
				asked++
				request := api.QueryRequest{Dataset: "big", SQL: sql, Epsilon: price(asked)}
				through = append(through, timed(b, func() error { _, err := client.Query(b.Context(), request, ""); return err }))
				direct = append(direct, timed(b, func() error { return drain(b.Context(), plain, sql) }))
			}
			report(b, direct, through)
		})
	}
}

// BenchmarkThroughput asks counts by group over 1,001 people with 1, 16 and 64 clients at a time, every question another.
// Generator, gateway and PostgreSQL share the machine. It reports requests per second and the 99th percentile of latency.
func BenchmarkThroughput(b *testing.B) {
	s := newStack(b, people(`  - {dataset: true, form: approx, epsilon: 1000000, delta: 1e-3}
  - {group: analysts, per: analyst, form: approx, epsilon: 1000000, delta: 1e-4}
`))
	client := s.analyst(b, "ana")
	var asked atomic.Int64
	for _, clients := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			latencies := make([]time.Duration, b.N)
			gateway, postgres := s.gateway.Process.Pid, s.postmaster(b)
			inGateway, inPostgres := processorTime(b, gateway), processorTime(b, postgres)
			var next atomic.Int64
			var group sync.WaitGroup
			start := time.Now()
			for range clients {
				group.Go(func() {
					for i := next.Add(1) - 1; i < int64(b.N); i = next.Add(1) - 1 {
						request := api.QueryRequest{Dataset: "people", Epsilon: price(int(asked.Add(1))),
							SQL: "SELECT club, count(*) FROM people GROUP BY club"}
						latencies[i] = timed(b, func() error { _, err := client.Query(b.Context(), request, ""); return err })
					}
				})
			}
			group.Wait()
			b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "req/s")
			b.ReportMetric(microseconds(processorTime(b, gateway)-inGateway)/float64(b.N), "gateway-cpu-µs/op")
			b.ReportMetric(microseconds(processorTime(b, postgres)-inPostgres)/float64(b.N), "postgres-cpu-µs/op")
			b.ReportMetric(milliseconds(quantile(latencies, 0.99)), "p99-ms")
			b.ReportMetric(milliseconds(quantile(latencies, 0.5)), "p50-ms")
		})
	}
}

// price is an ε that no other question of a benchmark has.
func price(i int) api.Decimal { return api.Decimal(fmt.Sprintf("0.001%09d", i)) }

func timed(b testing.TB, what func() error) time.Duration {
	start := time.Now()
	if err := what(); err != nil {
		b.Error(err)
	}
	return time.Since(start)
}

// drain runs a query and reads its rows.
func drain(ctx context.Context, conn *pgx.Conn, sql string) error {
	rows, err := conn.Query(ctx, sql)
	if err != nil {
		return err
	}
	rows.Close()
	return rows.Err()
}

func quantile(all []time.Duration, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// postmaster is the process that all processes of the server are children of.
func (s *stack) postmaster(b *testing.B) int {
	b.Helper()
	var pid int
	const postmaster = "SELECT split_part(pg_read_file('postmaster.pid'), E'\n', 1)::int"
	if err := s.superuser(b, "postgres").QueryRow(b.Context(), postmaster).Scan(&pid); err != nil {
		b.Fatal(err)
	}
	return pid
}

// processorTime is what a process and its children have used, those that ended as well: fields 14 to 17 of /proc/pid/stat.
func processorTime(b *testing.B, pid int) (used time.Duration) {
	b.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		b.Fatal(err)
	}
	for _, file := range stats {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it ended just now
		}
		id, _, _ := strings.Cut(string(text), " ")
		_, rest, _ := strings.Cut(string(text), ") ") // the name may hold anything
		fields := strings.Fields(rest)                // the third field of all is the first of these
		own := id == strconv.Itoa(pid)
		if !own && fields[1] != strconv.Itoa(pid) {
			continue
		}
		counted := fields[11:13]
		if own {
			counted = fields[11:15]
		}
		for _, field := range counted {
			ticks, err := strconv.Atoi(field)
			if err != nil {
				b.Fatal(err)
			}
			used += time.Duration(ticks) * (time.Second / 100) // USER_HZ, which is 100 wherever Go runs
		}
	}
	return used
}
