package pgledger_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"noisegate.example/budget"
	"noisegate.example/budget/budgettest"
	"noisegate.example/budget/pgledger"
	"noisegate.example/internal/pgtest"
	"noisegate.example/mechanisms"
)

// BenchmarkLedger measures a charge's whole way, reserve and settle, on a dataset's and an analyst's account that all
// clients share, through one gateway and through three. The server runs with fsync on. On a machine that is shared the
// processor times tell more than the rate: what the ledger's connections took of the server, and what this process
// took, its clients included.
func BenchmarkLedger(b *testing.B) {
	b.Run("memory", func(b *testing.B) {
		benchmark(b, nil, func(*testing.B) []budget.Ledger { return []budget.Ledger{budgettest.NewMemory(time.Now)} })
	})
	d := pgtest.On(b, durableServer(b))
	for _, gateways := range []int{1, 3} {
		b.Run(fmt.Sprintf("postgres/gateways=%d", gateways), func(b *testing.B) {
			benchmark(b, d, func(b *testing.B) []budget.Ledger {
				empty(b, d)
				var ledgers []budget.Ledger
				for range gateways {
					ledgers = append(ledgers, open(b, d))
				}
				return ledgers
			})
		})
	}
}

func benchmark(b *testing.B, d *pgtest.ControlDatabase, open func(*testing.B) []budget.Ledger) {
	for _, clients := range []int{1, 8, 64, 256} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			ledgers := open(b)
			for i, l := range ledgers { // opens the accounts, prepares statements
				if err := spend(b.Context(), l, -1-int64(i)); err != nil {
					b.Fatal(err)
				}
			}
			for _, l := range ledgers { // as a gateway does before it charges
				if l, ok := l.(*pgledger.Ledger); ok {
					if err := l.VerifyAll(b.Context()); err != nil {
						b.Fatal(err)
					}
				}
			}
			took := make([]time.Duration, b.N)
			backends, own := backendTime(b, d), processTime(b)
			var next atomic.Int64
			var all sync.WaitGroup
			b.ResetTimer()
			for i := range clients {
				all.Go(func() {
					for n := next.Add(1) - 1; n < int64(b.N); n = next.Add(1) - 1 {
						begun := time.Now()
						if err := spend(b.Context(), ledgers[i%len(ledgers)], n); err != nil {
							b.Error(err)
						}
						took[n] = time.Since(begun)
					}
				})
			}
			all.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "charges/s")
			b.ReportMetric(float64((processTime(b)-own).Microseconds())/float64(b.N), "go-µs")
			b.ReportMetric(float64((backendTime(b, d)-backends).Microseconds())/float64(b.N), "server-µs")
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
}

// backendTime is the processor time that the ledger's connections have taken of the server so far; 0 without a server,
// or where there is no /proc.
func backendTime(b *testing.B, d *pgtest.ControlDatabase) (total time.Duration) {
	if d == nil {
		return 0
	}
	rows, err := d.Conn(b, d.DSN).Query(b.Context(), "SELECT pid FROM pg_stat_activity WHERE application_name = 'noisegate ledger'")
	if err != nil {
		b.Fatal(err)
	}
	pids, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		b.Fatal(err)
	}
	for _, pid := range pids {
		var nanoseconds time.Duration
		if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid)); err == nil {
			_, _ = fmt.Sscan(string(text), &nanoseconds)
		}
		total += nanoseconds
	}
	return total
}

func processTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func spend(ctx context.Context, l budget.Ledger, n int64) error {
	loss := mechanisms.Loss{Epsilon: 100, Rho: 10}
	c := charge(fmt.Sprintf("01J%+023d", n), loss, account(budget.DatasetScope, "", 1<<60), account(budget.AnalystScope, "ana", 1<<60))
	c.Fingerprint = sha256.Sum256([]byte(c.ID))
	c.Mechanisms = []mechanisms.Parameters{{Mechanism: mechanisms.DiscreteLaplace, Sensitivity: "1", Scale: "10"}}
	c.Request = []byte(`{"sql": "SELECT marital_status, count(*) FROM people GROUP BY 1", "epsilon": "0.1"}`)
	if _, err := l.Reserve(ctx, c); err != nil {
		return err
	}
	return l.Settle(ctx, c.ID, loss, make([]byte, 600))
}
