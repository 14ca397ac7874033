package answer_test

import (
	"strconv"
	"strings"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/answer"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
)

// BenchmarkIntervals is the drawing of the noise of 42 groups, most of them small, and the intervals of their sums and counts, or of their
// means: means have intervals of fractions, which should cost about as little.
func BenchmarkIntervals(b *testing.B) {
	keys := make([]string, 42)
	for i := range keys {
		keys[i] = strconv.Itoa(i)
	}
	snapshot := rewritetest.ParseSnapshot(b, rewritetest.WardTables, strings.Replace(rewritetest.WardPolicy, "[1, 2, 3, 4]",
		"["+strings.Join(keys, ", ")+"]", 1))
	for name, outputs := range map[string]string{"sums": "count(*), sum(minutes)", "means": "avg(minutes)"} {
		b.Run(name, func(b *testing.B) {
			o := rewritetest.Sharp()
			o.Epsilon = mechanisms.EpsilonUnit
			p, err := pipeline.Rewrite("SELECT ward, "+outputs+" FROM visits GROUP BY ward", snapshot, o)
			if err != nil {
				b.Fatal(err)
			}
			s := rewritetest.FixedSampler(b)
			for b.Loop() {
				released := &plan.Released{Plan: p}
				for i := range keys {
					row := trueRow(p, int64(1+i*i*i/40))
					for r := range row.Noisy {
						row.Noisy[r] = p.Releases[r].Mechanism.Draw(s).Release(mechanisms.Seal(row.Noisy[r]))
					}
					row.Keys = []catalog.Key{{Text: keys[i]}}
					released.Rows = append(released.Rows, row)
				}
				if _, err := answer.Complete(released, nil, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
