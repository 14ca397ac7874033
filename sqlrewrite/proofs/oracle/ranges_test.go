package oracle

import (
	"fmt"
	"testing"

	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/proofs/gen"
)

// A public column without bounds has those of its values on the public rows that meet the conditions, where a question would be refused
// without bounds.
//
// needs: postgres
func TestRangesOfPublicColumns(t *testing.T) {
	t.Parallel()
	w := gen.NewWorld(t, 31, gen.Wild, 20)
	w.Fill(t, true)
	lists := gen.NewLists(w.Conn)
	const joined = "events e JOIN zones z ON z.k_num = e.k_num"
	for sql, want := range map[string]string{
		"SELECT sum(z.weight) FROM " + joined:                                                                   "-3 to 10",
		"SELECT sum(z.weight) FROM " + joined + " WHERE z.zone = 'inner'":                                       "7 to 10",
		"SELECT sum(z.weight) FROM " + joined + " AND z.opened > DATE '2024-02-01' AND e.n4 > 0":                "-3 to 7",
		"SELECT sum(z.weight) FROM " + joined + " WHERE z.zone = 'inner' OR e.n4 > 3":                           "-3 to 10",
		"SELECT sum(z.weight) FROM " + joined + " WHERE z.zone = 'nowhere'":                                     "0 to 0",
		"SELECT sum(z.cost) FROM events e LEFT JOIN zones z ON z.k_num = e.k_num AND z.weight < 0":              "-9/4 to -9/4",
		"SELECT avg(z.rate) FROM " + joined:                                                                     "-1/4 to 29/4",
		"SELECT max(z.cost) FROM " + joined + " WHERE z.weight <> 0":                                            "-9/4 to 3/2",
		"SELECT zone, sum(c) FROM (SELECT zone, z.cost * 2 - e.nn AS c FROM " + joined + ") q GROUP BY 1":       "-27/2 to 9849/50",
		"SELECT sum(cost) FROM (SELECT * FROM events JOIN zones USING (k_num) WHERE zone = 'outer') q":          "-9/4 to -9/4",
		"SELECT sum(m) FROM events e JOIN (SELECT k_num, max(cost) AS m FROM zones GROUP BY 1) g USING (k_num)": "-9/4 to 9999/100",
		"SELECT sum(s) FROM (SELECT unit, max(z.weight + e.nn) AS s FROM " + joined + " GROUP BY unit) g":       "0 to 19",
		"SELECT sum(z.weight + t.rate) FROM " + joined + " JOIN zones t ON t.k_num = e.nn":                      "-13/4 to 69/4",
		"SELECT sum(weight) FROM (SELECT * FROM zones WHERE weight > 0) z JOIN events e USING (k_num)":          "7 to 10",
	} {
		if _, err := pipeline.Rewrite(sql, w.Snapshot, rewritetest.Sharp()); fault.CodeOf(err) != fault.CodeMissingBounds {
			t.Errorf("%s: without lists: %v", sql, err)
		}
		p, err := lists.Plan(sql, w.Snapshot, rewritetest.Sharp())
		if err != nil {
			t.Errorf("%s: %v", sql, err)
			continue
		}
		for _, m := range p.Query.Statistics {
			if m.Grid == nil {
				continue
			}
			if got := fmt.Sprintf("%s to %s", m.Grid.Value(m.Grid.Lo).RatString(), m.Grid.Value(m.Grid.Hi).RatString()); got != want {
				t.Errorf("%s: %s, want %s", sql, got, want)
			}
		}
	}
}
