package integration

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"noisegate.example/internal/pgserver"
)

// idleTime is how long a gateway is watched that nobody asks: five times as long as it waits between two looks at policies.
const idleTime = 15 * time.Second

// TestIdleGatewayDoesLittle watches a gateway with four datasets that nobody asks: it looks for other policies, schemas,
// roles and servers, and that must cost next to nothing.
func TestIdleGatewayDoesLittle(t *testing.T) {
	t.Parallel()
	s := newOwnStack(t, "counted", census(t), pums(t), pagila(t), people(`  - {dataset: true, form: zcdp, rho: 1, delta: 1e-6}`))
	ctx, cancel := context.WithTimeout(t.Context(), 3*idleTime+time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.dsn(pgserver.Superuser, "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	transactions := func() (n int) {
		t.Helper()
		const sql = "SELECT sum(xact_commit + xact_rollback) FROM pg_catalog.pg_stat_database WHERE datname <> 'postgres'"
		if err := conn.QueryRow(ctx, sql).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	// What the start does is over after a while, and backends tell of their transactions within a second or when they next do one: on a
	// busy machine that falls into the first window, or the second.
	time.Sleep(10 * time.Second)
	for window := 1; ; window++ {
		began, before, cpu := time.Now(), transactions(), cpuTime(s.gateway.Process.Pid)
		time.Sleep(idleTime)
		done, took := transactions()-before, time.Since(began)
		cpu = cpuTime(s.gateway.Process.Pid) - cpu
		t.Logf("%d transactions and %v of CPU time in %v", done, cpu, took.Round(time.Second))
		// Every 3 s: the versions of policies, the schema of the control database, and the snapshot of each dataset. Once a
		// minute: the ledger, roles, servers, and the whole schema of each dataset. Every second: which server the control database is
		// on, how far the journals are there, and other gateways, in one transaction; and whether each dataset's database answers. And
		// what PostgreSQL does by itself.
		most := 6*int(took/(3*time.Second)) + 5*int(took/time.Second) + 40
		if done <= most && cpu <= took/20 { // a hundred times what it was when this was written
			return
		}
		if window == 3 {
			t.Fatalf("%d transactions and %v of CPU time in %v, want at most %d and %v", done, cpu, took, most, took/20)
		}
	}
}

// cpuTime is the CPU time that a process used; 0 where the system does not say it as Linux does.
func cpuTime(pid int) time.Duration {
	const tick = 10 * time.Millisecond // USER_HZ is 100 on all of Linux's platforms that Go knows
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(after)
	if len(fields) < 13 {
		return 0
	}
	var sum int
	for _, field := range fields[11:13] { // utime, stime: the 14th and 15th of proc(5)
		n, _ := strconv.Atoi(field)
		sum += n
	}
	return time.Duration(sum) * tick
}
