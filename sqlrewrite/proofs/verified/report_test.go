package verified

import (
	"testing"

	"noisegate.example/sqlrewrite/internal/parsetest"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/proofs/gen"
)

// What is reported beside an answer counts rows alone, and meets fewer others than the answer does: where caps are lowered, the claim about
// the answer's own statement stays.
//
// needs: postgres
func TestReportsKeepTheClaims(t *testing.T) {
	world := gen.NewWorld(t, 1, gen.Wild, 4)
	o := rewritetest.Sharp()
	o.Report = plan.ReportKept
	if _, err := pipeline.Rewrite(`SELECT avg(o.n8), count(DISTINCT o.buyer) FILTER (WHERE EXISTS (SELECT * FROM events ee WHERE ee.unit = o.buyer
		AND ee.f8 = o.n2 AND NOT EXISTS (SELECT 1 FROM orders ff WHERE ff.buyer = ee.unit AND ff.n4 > o.n2)))
		FROM orders o LEFT JOIN items i ON i.order_id = o.order_id WHERE NOT EXISTS (SELECT 1 FROM events ee JOIN zones zz ON zz.k_num = ee.k_num
		WHERE ee.unit = o.buyer AND ee.n4 < o.odd)`, world.Snapshot, o); err != nil {
		t.Fatal(parsetest.ShowFault(err))
	}
}
