package httpapi

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"noisegate.example/api"
	"noisegate.example/gateway/gatewaytest"
)

// BenchmarkQuery asks distinct counts over HTTP, so that none is a replay; the ledger commits with fsync. All clients share one
// analyst's account, the worst case for the ledger.
func BenchmarkQuery(b *testing.B) {
	for _, clients := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			f := newFront(b, gatewaytest.Options{Connections: 16}, 2*clients)
			steward := f.client("sam:steward")
			for _, account := range []string{"dataset", "analyst:ana"} {
				if _, err := steward.SetAccount(b.Context(), "census", account, api.BudgetLimit{Form: "pure", Epsilon: "1000000"}); err != nil {
					b.Fatal(err)
				}
			}
			var next atomic.Int64
			b.SetParallelism(max(1, clients/runtime.GOMAXPROCS(0)))
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				ana := f.client("ana:analyst")
				for pb.Next() {
					sql := fmt.Sprintf("SELECT region, count(*) FROM people WHERE age < %d GROUP BY region", next.Add(1))
					if _, err := ana.Query(b.Context(), api.QueryRequest{Dataset: "census", SQL: sql, Epsilon: "0.001"}, ""); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}
