package cost

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"noisegate.example/internal/pgtest"
	"noisegate.example/sqlrewrite/internal/domain"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/internal/stability"
	"noisegate.example/sqlrewrite/proofs/gen"
)

// measured is how a price is measured: an expression over the worst row of its operands, and its size where the price grows with one.
func measured() map[string]string {
	all := map[string]string{
		"test": "(b AND NOT (i IS NULL))", "in list": "i IN (" + strings.Trim(strings.Repeat("7, ", 999), ", ") + ", 8)", "||  text": "",
		"= integer": "i8 = j8", "= float": "f = g", "= numeric": "n = m", "= text": "t = u", "= time": "ts = ts2", "= interval": "v = v2",
		"= other":   "id = id2",
		"< integer": "i8 < j8", "< float": "f < g", "< numeric": "n < m", "< text": `t < u COLLATE "collation"`, "< time": "ts < ts2", "< interval": "v < v2", "< other": "id < id2",
		"+ time": "ts + v", "|| text": "s || s",
		"LIKE": "t LIKE '%a%b%c%d%e%f%g%h%'", "ILIKE": "t ILIKE '%a%b%c%d%e%f%g%h%'",
		"~":          `t ~ '(a|b|c|d){1,3}[e-z]+(x|y).*(\d|\s)+zz$'`,
		"lower text": `lower(s COLLATE "collation")`, "upper text": `upper(s COLLATE "collation")`, "initcap text": `initcap(s COLLATE "collation")`,
		"btrim text": "btrim(s)", "ltrim text": "ltrim(s)", "rtrim text": "rtrim(s)", `"left" text`: `"left"(s, 199)`, `"right" text`: `"right"(s, 199)`,
		"substr text": "substr(s, 2, 198)", "strpos text": "strpos(s, 'zq')", "length text": "length(s)", "char_length text": "char_length(s)",
		"starts_with text": "starts_with(s, 'abc')", "concat text": "concat(s, s)", "coalesce text": "coalesce(s, t)",
		"nullif text":   "nullif(t, u)",
		"greatest text": `greatest(t COLLATE "collation", u)`, "least text": `least(t COLLATE "collation", u)`,
		"date_part time": "date_part('week', ts)", "extract time": "extract(week FROM ts)", "date_trunc time": "date_trunc('quarter', tz)",
		"to_char time":  "to_char(tz, 'IWIWIWIWIWIWIWIWIWIWIWIWIWIWIWIWIWIWIWIW')",
		"coalesce time": "coalesce(ts, ts2)", "nullif time": "nullif(ts, ts2)", "greatest time": "greatest(ts, ts2)",
		"least time":     "least(ts, ts2)",
		"coalesce other": "coalesce(id, id2)", "nullif other": "nullif(id, id2)",
		"cast integer text": "i8::text", "cast other text": "id::text", "cast time text": "d::text", "cast text text": "s::text",
		"cast other integer": "b::int",
		"cast time time":     "ts::date", "cast interval interval": "v::interval", "cast numeric text": "n::text", "cast float text": "f::text",
		"date_smaller time": "date_smaller(d, d)", "date_larger time": "date_larger(d, d)", "timestamp_smaller time": "timestamp_smaller(ts, ts)",
		"timestamp_larger time": "timestamp_larger(ts, ts)", "timestamptz_smaller time": "timestamptz_smaller(tz, tz)",
		"timestamptz_larger time": "timestamptz_larger(tz, tz)",
		"trim_scale numeric":      "trim_scale(n)", "numeric_smaller numeric": "numeric_smaller(n, m)",
		"numeric_larger numeric": "numeric_larger(n, m)",
		"float8smaller float":    "float8smaller(f, g)", "float8larger float": "float8larger(f, g)",
		"float4smaller float": "float4smaller(f::real, g::real)", "float4larger float": "float4larger(f::real, g::real)",
		"int2smaller integer": "int2smaller(i2, i2)", "int2larger integer": "int2larger(i2, i2)", "int4smaller integer": "int4smaller(i, i)",
		"int4larger integer":  "int4larger(i, i)",
		"int8smaller integer": "int8smaller(i8, j8)", "int8larger integer": "int8larger(i8, j8)", "- interval": "-v",
		"div numeric": "div(n, small)", "mod numeric": "mod(n, small)", "mod integer": "mod(i8, 7)", "div integer": "div(i8, 7)",
		"width_bucket float": "width_bucket(f, 0, 1, 1000)", "width_bucket numeric": "width_bucket(n, 0, m, 1000)",
		"width_bucket integer": "width_bucket(i8, 0, 100000000, 1000)",
		"power numeric":        "power(n, 2)", "clamp integer": "int8larger(int8smaller(i8, j8), 7)",
		"clamp float":   "float8larger(float8smaller(f, g), 0.1)",
		"clamp numeric": "numeric_larger(numeric_smaller(n, m), 7)", "clamp time": "timestamp_larger(timestamp_smaller(ts, ts2), ts)",
		"clamp interval": "interval_larger(interval_smaller(v, v2), v)", "make_interval numeric": "make_interval(0, i2, 0, i2, i2, i2, f)",
		"make_interval integer": "make_interval(0, i2, 0, i2, i2, i2, f)",
		"cast interval text":    "v::text",
	}
	delete(all, "||  text")
	for kind, operands := range map[string][2]string{"integer": {"i8", "7::bigint"}, "float": {"f", "g"}, "numeric": {"n", "m"}} {
		for _, op := range []string{"+", "-", "*", "/"} {
			all[op+" "+kind] = operands[0] + " " + op + " " + operands[1]
		}
		for _, name := range []string{"abs", "sign", "trunc", "floor", "ceil", "ceiling", "round"} {
			all[name+" "+kind] = name + "(" + operands[0] + ")"
		}
		for _, name := range []string{"coalesce", "nullif", "greatest", "least"} {
			all[name+" "+kind] = name + "(" + operands[0] + ", " + operands[1] + ")"
		}
		for to, name := range map[string]string{"integer": "bigint", "float": "float8", "numeric": "numeric"} {
			all["cast "+kind+" "+to] = "(" + map[string]string{"integer": "i", "float": "f", "numeric": "short"}[kind] + ")::" + name
		}
	}
	all["* integer"] = "i::bigint * 7"
	all["% integer"], all["% numeric"], all["cast numeric float"] = "i8 % 7", "n % small", "n::float8"
	for _, name := range []string{"sqrt", "ln", "log", "log10", "exp", "power"} {
		all[name+" float"] = map[bool]string{true: name + "(f)", false: "power(f, 3)"}[name != "power"]
	}
	return all
}

// costRows is how many evaluations are timed at once.
const costRows = 50_000

// costsWorld is one row of the largest operands, for so many digits of numerics and letters of texts. A computed text has letters of 4
// bytes, which have two cases; a column has 5 bytes for each of these.
func costsWorld(t *testing.T, conn *pgx.Conn, digits, letters int) {
	t.Helper()
	rewritetest.MustExec(t, conn, fmt.Sprintf(`DROP TABLE IF EXISTS pg_temp.worst; CREATE TEMP TABLE worst AS SELECT true AS b, 7::smallint AS i2, 2147483646 AS i, 4611686018427387904::bigint AS i8,
		3611686018427387904::bigint AS j8, 0.7::float8 AS f, 0.3::float8 AS g, (repeat('7', %[1]d) || '.' || repeat('3', %[1]d))::numeric AS n,
		(repeat('7', %[1]d) || '.' || repeat('3', %[1]d - 1) || '1')::numeric AS m, 12345.678 AS short, 3.7 AS small, repeat('a', 5 * %[2]d) || 'x' AS t, repeat('a', 5 * %[2]d) || 'y' AS u,
		repeat('𐐨', %[2]d) AS s, date '2024-02-29' AS d, timestamp '2024-02-29 12:34:56.789' AS ts, timestamp '2024-02-29 12:34:56.788' AS ts2,
		timestamptz '2024-02-29 12:34:56.789+00' AS tz, interval '1 month 3 days 04:05:06' AS v, interval '1 month 3 days 04:05:07' AS v2,
		'9d5b1e0c-0000-4000-8000-000000000001'::uuid AS id, '9d5b1e0c-0000-4000-8000-000000000002'::uuid AS id2`, digits, letters))
}

// cost is how many ns one evaluation takes, the least of a few timings: what others do on the machine is no cost.
func cost(t *testing.T, conn *pgx.Conn, expression string) float64 {
	t.Helper()
	time1 := func(e string) time.Duration {
		best := time.Hour
		for range 4 {
			began := time.Now()
			rewritetest.MustExec(t, conn, fmt.Sprintf("SELECT count(%s) FROM worst CROSS JOIN generate_series(1, %d)", e, costRows))
			best = min(best, time.Since(began))
		}
		return best
	}
	return float64(time1(expression)-time1("b")) / costRows
}

// costMargin is by how much a builtin may be dearer than its price, on a slower machine or in another version: the limits that prices add
// up to say how far one unit may move a boundary, which changes as much as they do and no more.
const costMargin = 2

// Every price of the table is at least what its builtin costs here at its largest operands, but for costMargin, and the table has no price
// that is not measured. It runs with make timing: on a machine that others use it says little, so that what seems too dear is measured
// again, up to three times.
func TestCostsAreMeasured(t *testing.T) {
	if !*gen.MeasureCosts {
		return // make timing measures
	}
	db := pgtest.New(t)
	conn := db.Conn(t, db.DSN)
	rewritetest.MustExec(t, conn, "SET jit = off; SET max_parallel_workers_per_gather = 0")
	collation := "C"
	if err := conn.QueryRow(t.Context(), "SELECT COALESCE((SELECT collname FROM pg_collation WHERE collname = 'en-x-icu'), 'C')").Scan(
		&collation); err != nil {
		t.Fatal(err)
	}
	all := measured()
	const letters, digits = 200, 300 // before and after the point
	var lines, dearer []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		sql := strings.ReplaceAll(all[key], `"collation"`, `"`+collation+`"`)
		costsWorld(t, conn, 1, 1)
		least := max(cost(t, conn, sql), 1)
		costsWorld(t, conn, digits, letters)
		most := max(cost(t, conn, sql), least)
		again := func() { most = min(most, max(cost(t, conn, sql), 1)) }
		operands := []domain.Size{{}, {}}
		switch kind := key[strings.LastIndex(key, " ")+1:]; {
		case strings.Contains(key, "text") || kind == "LIKE" || kind == "ILIKE" || kind == "~":
			operands[0].Bytes = 4 * letters
			if strings.Contains(all[key], "t ") || strings.Contains(all[key], "t,") {
				operands[0].Bytes = 5 * letters
			}
			if _, constant, ok := strings.Cut(sql, "'"); ok {
				constant = constant[:strings.LastIndexByte(constant, '\'')]
				operands[1] = domain.Size{Bytes: int64(len(constant)), Text: &constant}
			}
		case strings.Contains(key, "numeric"):
			operands = []domain.Size{{Whole: digits, Scale: digits}, {Whole: digits, Scale: digits}}
		}
		p, ok := domain.PriceNamed(key)
		allowed := float64(p.Of(operands))
		lines = append(lines, fmt.Sprintf("%-28s least %8.0f ns, largest %8.0f ns; the table has %.0f", key, least, most, allowed))
		for tries := 0; tries < 3 && allowed*costMargin < most; tries++ {
			again()
		}
		switch {
		case !ok || allowed*costMargin < most:
			t.Errorf("%s costs %.0f to %.0f ns, the table has %.0f", key, least, most, allowed)
		case allowed < most:
			dearer = append(dearer, fmt.Sprintf("%s by %.1f", key, most/allowed))
		}
	}
	t.Log("\n" + strings.Join(lines, "\n"))
	t.Logf("dearer than their price, within the margin: %v", dearer)
}

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
