package cost

import (
	"testing"
	"time"

	"noisegate.example/internal/pgtest"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/internal/stability"
	"noisegate.example/sqlrewrite/proofs/gen"
)

// costMargin is by how much what a row does may be dearer than its price, on a slower machine or in another version: the limits that
// prices add up to say how far one unit may move a boundary, which changes as much as they do and no more.
const costMargin = 2

// structures are statements whose work is of one kind, each with how often it is done, beside a statement without it.
func structures() map[string]struct {
	with, without string
	times         float64
	allowed       int64
} {
	type s = struct {
		with, without string
		times         float64
		allowed       int64
	}
	const capped = "SELECT count(*) FROM (SELECT v.c0, v.c1 FROM (SELECT unit AS c0, k AS c1, row_number() OVER (PARTITION BY unit ORDER BY " +
		"hashtextextended(COALESCE(k::text, ''), hashtextextended(COALESCE(unit::text, ''), 5)), unit, k) AS place FROM rows) v WHERE v.place " +
		"<= 4) w"
	return map[string]s{
		"pairRow + flatRow, nested": {"SELECT count(*), sum(k) FROM few CROSS JOIN tens", "SELECT 1", 1e6, stability.PairRow + stability.FlatRow},
		"pairRow + flatRow, hashed": {"SELECT count(*), sum(r.k) FROM rows r JOIN tens USING (g)", "SELECT count(*), sum(k) FROM rows", 1e6,
			stability.PairRow + stability.FlatRow},
		"pairRow + groupedRow": {"SELECT sum(n) FROM (SELECT count(*) AS n, sum(k) FROM rows r JOIN tens USING (g) GROUP BY r.unit) u",
			"SELECT count(*), sum(k) FROM rows", 1e6, stability.PairRow + stability.GroupedRow},
		"cappedRow": {capped, "SELECT count(*) FROM rows", 1e5, stability.CappedRow},
		"windowRow": {"SELECT sum(s) FROM (SELECT sum(k) OVER (PARTITION BY unit ORDER BY k) AS s FROM rows) w",
			"SELECT count(*) FROM rows", 1e5, stability.WindowRow},
		"windowRow, of a frame": {"SELECT max(s) FROM (SELECT min(k) OVER (PARTITION BY unit ORDER BY k ROWS 9 PRECEDING) AS s FROM rows) w",
			"SELECT count(*) FROM rows", 1e6, stability.WindowRow},
		"scanRow": {"SELECT count(*), sum(k) FROM rows WHERE k >= 0", "SELECT 1", 1e5, stability.ScanRow},
		"lookupRow": {"SELECT count(*) FROM rows WHERE k IN (SELECT k2 FROM tens) OR k < 0", "SELECT count(*) FROM rows", 1e5,
			stability.LookupRow},
	}
}

// What rows cost beside what is computed of them is at most what the planner takes for it.
func TestRowCostsAreMeasured(t *testing.T) {
	if !*gen.MeasureCosts {
		return // make timing measures
	}
	db := pgtest.New(t)
	conn := db.Conn(t, db.DSN)
	rewritetest.MustExec(t, conn, `SET jit = off; SET max_parallel_workers_per_gather = 0; SET enable_hashagg = off; SET work_mem = '64MB';
		CREATE TABLE rows AS SELECT i AS k, i / 100 AS unit, i % 1000 AS g FROM generate_series(1, 100000) i; CREATE TABLE few AS SELECT * FROM rows LIMIT 100;
		CREATE TABLE tens AS SELECT i % 1000 AS g, i AS t FROM generate_series(1, 10000) i; ALTER TABLE tens RENAME t TO k2; ANALYZE`)
	timed := func(sql string) time.Duration {
		best := time.Hour
		for range 5 {
			began := time.Now()
			rewritetest.MustExec(t, conn, sql)
			best = min(best, time.Since(began))
		}
		return best
	}
	for name, s := range structures() {
		ns := float64(timed(s.with)-timed(s.without)) / s.times
		t.Logf("%s: %.0f ns, the planner takes %d", name, ns, s.allowed)
		for tries := 0; tries < 3 && ns > float64(s.allowed)*costMargin; tries++ {
			ns = min(ns, float64(timed(s.with)-timed(s.without))/s.times)
		}
		if ns > float64(s.allowed)*costMargin {
			t.Errorf("%s: %.0f ns, the planner takes %d", name, ns, s.allowed)
		}
	}
}
