package budget_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"noisegate/budget"
	"noisegate/internal/pgtest"
	"noisegate/mechanisms"
)

// BenchmarkLedger measures a charge's whole way, reserve and settle, on a dataset's and an analyst's account that all
// clients share, through one gateway and through three. The server runs with fsync on.
func BenchmarkLedger(b *testing.B) {
	b.Run("memory", func(b *testing.B) {
		benchmark(b, func(*testing.B) []budget.Ledger { return []budget.Ledger{budget.NewMemory(time.Now)} })
	})
	d := pgtest.On(b, durableServer(b))
	for _, gateways := range []int{1, 3} {
		b.Run(fmt.Sprintf("postgres/gateways=%d", gateways), func(b *testing.B) {
			benchmark(b, func(b *testing.B) []budget.Ledger {
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

func benchmark(b *testing.B, open func(*testing.B) []budget.Ledger) {
	for _, clients := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			ledgers := open(b)
			for i, l := range ledgers { // opens the accounts, prepares statements
				if err := spend(b.Context(), l, -1-int64(i)); err != nil {
					b.Fatal(err)
				}
			}
			took := make([]time.Duration, b.N)
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
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
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
