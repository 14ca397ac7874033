package stability_test

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/parsetest"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/internal/sqlprint"
	"noisegate.example/sqlrewrite/internal/stability"
	"noisegate.example/sqlrewrite/proofs/gen"
)

// Partitions add up to what the unpartitioned statement gives, wherever the ranges end: the ends come from statistics of the data, and
// neither an answer nor a sensitivity may hang on them.
func TestPartitionsAddUp(t *testing.T) {
	w := gen.NewWorld(t, 21, gen.Wild, 4)
	r := rand.New(rand.NewPCG(21, 22)) // reproducible on purpose
	for _, from := range []struct {
		table string
		want  stability.Partitioning
	}{{"events", stability.ByHash}, {"orders", stability.ByRange}} {
		w.Fill(t, true)
		for _, keys := range []string{"", "k_num", "k_bool, k_text"} {
			sql := "SELECT count(*), count(n4) FILTER (WHERE k_bool), sum(money), avg(n8), sum(free) FROM " + from.table
			if keys != "" {
				sql += " GROUP BY " + keys
			}
			p, err := pipeline.Rewrite(sql, w.Snapshot, rewritetest.Sharp())
			if err != nil {
				t.Fatal(parsetest.ShowFault(err))
			}
			if keys == "k_bool, k_text" { // 12 groups, of which a unit may be in 4
				if p.Bounding.Partitioning != stability.Unpartitioned {
					t.Errorf("%s: groups that each unit keeps are not partitioned", sql)
				}
				continue
			}
			if p.Bounding.Partitioning != from.want {
				t.Fatalf("%s: partitioning %v, want %v", sql, p.Bounding.Partitioning, from.want)
			}
			whole := p.Bounding
			whole.Partitioning = stability.Unpartitioned
			want := onePart(t, w, p, whole, nil)
			for range 20 {
				var ends []int
				for range stability.RangePartitions - 1 {
					ends = append(ends, []int{r.IntN(gen.Units + 1), -1, math.MinInt32, math.MaxInt32}[max(0, r.IntN(7)-3)])
				}
				if got := onePart(t, w, p, p.Bounding, ends); !reflect.DeepEqual(got, want) {
					t.Fatalf("%s: partitions give %v, the whole gives %v", sql, got, want)
				}
			}
		}
	}
}

// onePart runs the only statement of a plan, printed with a bounding.
func onePart(t *testing.T, w *gen.World, p *plan.Plan, s stability.Bounding, ends []int) gen.ExactTable {
	t.Helper()
	part := p.Parts[0]
	sqlprint.NewStatementPrinter(p.Query, s, &part, sqlprint.Style{}).Print()
	part.Statement.Args, part.Statement.Ranges = gen.WithEnds(part.Statement, ends...), nil
	tables, err := gen.RunOnAll(t.Context(), w.Conn, part.Statement, []string{"nobody"})
	if err != nil || len(p.Parts) != 1 {
		t.Fatalf("%s\n%v", part.Statement.SQL, err)
	}
	return tables[0]
}

// What is not the sum over all rows of one plain table stays unpartitioned.
func TestPartitioning(t *testing.T) {
	w := gen.NewWorld(t, 22, gen.Calm, 4)
	for sql, want := range map[string]stability.Partitioning{
		"SELECT count(*) FROM events":                                              stability.ByHash,
		"SELECT count(DISTINCT unit), sum(n4) FROM events":                         stability.ByHash,
		"SELECT count(*) FROM orders":                                              stability.ByRange,
		"SELECT k_num, sum(money) FROM orders GROUP BY k_num":                      stability.ByRange,
		"SELECT count(*) FROM people":                                              stability.Unpartitioned,
		"SELECT count(*) FROM items":                                               stability.Unpartitioned,
		"SELECT count(*) FROM orders WHERE n4 > 1":                                 stability.Unpartitioned,
		"SELECT count(DISTINCT n4) FROM orders":                                    stability.Unpartitioned,
		"SELECT count(*), median(n4) FROM orders":                                  stability.Unpartitioned,
		"SELECT secret, count(*) FROM orders GROUP BY secret":                      stability.Unpartitioned,
		"SELECT count(*) FROM orders o JOIN zones z ON z.k_num = o.k_num":          stability.Unpartitioned,
		"SELECT count(*) FROM (SELECT k_num, unit FROM events) e":                  stability.Unpartitioned,
		"SELECT count(*) FROM events e JOIN people p ON p.id = e.unit":             stability.Unpartitioned,
		"SELECT sum(c) FROM (SELECT unit, count(*) c FROM events GROUP BY unit) e": stability.Unpartitioned,
	} {
		o := plan.Options{Epsilon: 1000 * mechanisms.EpsilonUnit, Delta: 1, Mechanism: plan.MechanismAuto, Currency: "approx", Confidence: 0.95}
		p, err := pipeline.Rewrite(sql, w.Snapshot, o)
		if err != nil {
			t.Errorf("%s: %s", sql, parsetest.ShowFault(err))
		} else if p.Bounding.Partitioning != want {
			t.Errorf("%s: partitioning %v, want %v", sql, p.Bounding.Partitioning, want)
		}
	}
}
