package stability_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"noisegate.example/internal/fault"
	"noisegate.example/internal/pgtest"
	"noisegate.example/sqlrewrite/internal/parsetest"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/proofs/gen"
)

// costlyArguments are, for every function and operator that may stand below the aggregates, the arguments on which it takes longest: the
// column worst of texts is as long and wide as texts come, big holds numbers with as many digits as there are.
var costlyArguments = []string{
	"length(worst)", "upper(worst)", "lower(worst)", "initcap(worst)", "trim(worst)", "trim('aéxyzabcd' FROM worst)", "ltrim(worst, 'é')",
	"rtrim(worst, 'é')",
	"left(worst, 190)", "right(worst, 190)", "substring(worst, 190, 50)", "substring(worst FROM -5 FOR 2000)", "position('ééb' IN worst)",
	"starts_with(worst, 'éa')", "split_part(worst, 'é', 180)", "split_part(worst, 'é', -180)", "replace(worst, 'é', 'xyz')",
	"regexp_replace(worst, 'é', 'xyz', 'g')", "regexp_replace(worst, '[^a-z]*x|é$', '', 'gi')", "regexp_replace(worst, 'é*', 'a', 'g')",
	"worst ~ '(a|é)*é(a|é){12}x'", "worst ~* '(é?.?){15}x'", "worst ~ '(.{1,10}é)*[^é]{8}$'", `worst ~ '(\w+\s?)+\d{3}-\d{4}$'`, "worst SIMILAR TO '%é%é%é%é%a%'",
	"worst || worst", "concat(worst, small)", "nullif(worst, 'x')", "coalesce(worst, 'x')", "greatest(worst, 'x')",
	"abs(big)", "sign(big)", "round(big, 3)", "trunc(big)", "floor(big)", "ceil(big)", "sqrt(abs(big))", "ln(abs(big))", "log(abs(big))",
	"exp(big)", "power(big, 6)", "mod(big, 7.3)", "div(big, 7.3)",
	"big + big", "big * big * big", "big / 7.3", "width_bucket(big, 0, 1000, 100000)", "big::numeric(90,10)", "big::float8", "big::bigint",
	"least(big, 3)", "CASE WHEN big > 3 THEN big * big END",
	"sqrt(abs(f8))", "ln(abs(f8))", "exp(f8)", "power(f8, 2)", "f8::numeric", "f8 * f8 / 3", "round(f8)", "width_bucket(f8, 0, 1, 100000)",
	"small * small % 7", "small / nullif(small, 0)",
	"extract(year FROM day)", "extract(epoch FROM at)", "extract(week FROM day)", "date_part('doy', day)", "date_trunc('quarter', at)",
	"day + 30", "day - DATE '2020-01-01'", "at - day", "extract(day FROM age(at, day))",
	"at + INTERVAL '3 months'", "at::date", "day::text", "small::text",
}

// A32: a question cannot have the tables read without end. What reads them once counts once, however much is asked of it.
//
// covers: A32
func TestScansAreCapped(t *testing.T) {
	snapshot := rewritetest.TownSnapshot(t)
	medians := func(n int) string {
		outputs := []string{"count(*)", "avg(age)"} // one scan
		for i := range n {
			above := fmt.Sprintf(" FILTER (WHERE age > %d)", i)
			outputs = append(outputs, "median(age)"+above, "percentile_cont(0.9) WITHIN GROUP (ORDER BY age)"+above)
		}
		return "SELECT " + strings.Join(outputs, ", ") + " FROM people"
	}
	if p, err := pipeline.Rewrite(medians(plan.MaxParts-1), snapshot, rewritetest.Sharp()); err != nil || len(p.Parts) != plan.MaxParts {
		t.Errorf("%d scans: %v", plan.MaxParts, err)
	}
	if _, err := pipeline.Rewrite(medians(plan.MaxParts), snapshot, rewritetest.Sharp()); fault.CodeOf(err) != fault.CodeTooManyScans {
		t.Errorf("%d scans: %v, want %s", plan.MaxParts+1, err, fault.CodeTooManyScans)
	}
}

// A32: no function that is allowed takes longer on one row's value than an answer's time could hide. The limit is 5 µs a row; the test
// allows eight times that before it fails, as it shares its machine with others, and takes the fastest of five runs, or of 60 where these
// were too slow: what takes too long does so each time.
//
// covers: A32
func TestAllowedFunctionsAreCheap(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	const rows, limit = 2000, 40 * time.Microsecond
	db := pgtest.New(t)
	db.Exec(t, `CREATE TABLE public.t (id integer PRIMARY KEY, worst text, big numeric, f8 double precision, small integer, day date, at timestamp)`,
		fmt.Sprintf(`INSERT INTO public.t SELECT i, pg_catalog.repeat('é', 1000 + i %% 2 * 4000), ('0.' || pg_catalog.repeat('7', 16000))::numeric * 1e39, 0.123456789 * (i %% 9),
		  i, DATE '2024-02-29' - i, TIMESTAMP '2024-02-29 12:34:56.789' FROM generate_series(1, %d) i`, rows), "VACUUM ANALYZE public.t")
	conn := db.Conn(t, db.DSN)
	rewritetest.MustExec(t, conn, "SET jit = off; SET max_parallel_workers_per_gather = 0; SET search_path = ''; SET timezone = 'UTC'")
	snapshot := rewritetest.ParseSnapshot(t, "t\n  id integer not null unique\n  worst text\n  big numeric\n  f8 double\n  small integer\n  day date\n  at timestamp", `version: 1
dataset: test
neighbours: add-remove
tables:
  t: {unit: {row: id}}
budgets:
  - {dataset: true, form: approx, epsilon: 10, delta: 1e-6}
`)
	took := func(sql string, most time.Duration) time.Duration {
		p, err := pipeline.Rewrite("SELECT count("+sql+") FROM t", snapshot, rewritetest.Sharp())
		if err != nil {
			t.Fatalf("%s: %s", sql, parsetest.ShowFault(err))
		}
		best := time.Hour
		for i := 0; i < 5 || i < 60 && best > most; i++ {
			start := processorTime(t, conn)
			if _, err := gen.ExactRows(t, conn, p.Statements(&plan.Draws{})[0]); err != nil {
				t.Fatalf("%s: %v", sql, err)
			}
			best = min(best, processorTime(t, conn)-start)
		}
		return best
	}
	base := took("nullif(small, 0)", 0)
	slowest, most := "", time.Duration(0)
	for _, sql := range costlyArguments {
		perRow := (took(sql, base+rows*limit) - base) / rows
		if perRow > most {
			slowest, most = sql, perRow
		}
		if perRow > limit {
			t.Errorf("%s takes %v a row", sql, perRow)
		}
		t.Logf("%-50s %v", sql, perRow)
	}
	t.Logf("slowest: %s, %v a row", slowest, most)
}

// processorTime is how long the process behind a connection has had a processor, which other processes do not change as they change how
// long a statement takes; where the system does not say it as Linux does, it is the clock.
func processorTime(t *testing.T, conn *pgx.Conn) time.Duration {
	t.Helper()
	if err := conn.Ping(t.Context()); err != nil { // the process has waited since its last statement: all of that is counted
		t.Fatal(err)
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", conn.PgConn().PID()))
	if spent, _, ok := strings.Cut(string(text), " "); err == nil && ok {
		if ns, err := strconv.ParseInt(spent, 10, 64); err == nil {
			return time.Duration(ns)
		}
	}
	return time.Duration(time.Now().UnixNano())
}

// What LATERAL computes of a row is charged as what WHERE computes of it: rows that may cost too much are capped.
//
// needs: postgres
// covers: B4 C1
func TestLateralIsCharged(t *testing.T) {
	_, snapshot := rewritetest.SteadyWorld(t, "")
	var costly []string
	for i := range 30 {
		costly = append(costly, fmt.Sprintf("(CASE WHEN v.paid::text ~ '(a|b)*c%d' THEN 1 ELSE 0 END)", i))
	}
	x := strings.Join(costly, " + ")
	for sql, capped := range map[string]bool{
		"SELECT count(*) FROM visits v WHERE " + x + " > 0":                                        true,
		"SELECT count(*) FROM visits v CROSS JOIN LATERAL (SELECT " + x + " AS x) d WHERE d.x > 0": true,
		"SELECT count(*) FROM visits v CROSS JOIN LATERAL (SELECT v.paid AS x) d WHERE d.x > 0":    false,
		"SELECT count(*) FROM (SELECT visit_id, paid FROM visits) v WHERE " + x + " > 0":           true,
	} {
		p, err := pipeline.Rewrite(sql, snapshot, rewritetest.SteadyOptions)
		if err != nil {
			t.Fatalf("%s: %s", sql, parsetest.ShowFault(err))
		}
		for _, s := range p.Statements(p.Draw(rewritetest.FixedSampler(t))) {
			if strings.Contains(s.SQL, "pg_catalog.row_number()") != capped {
				t.Errorf("capped %v is wanted\n%s", capped, s.SQL)
			}
		}
	}
}

// EXISTS in ON that reads the left side of an outer join is a query for each row, and is charged for all rows of its table.
//
// needs: postgres
// covers: B4 C1
func TestExistsInOnIsCharged(t *testing.T) {
	_, snapshot := rewritetest.SteadyWorld(t, "")
	for on, pairs := range map[string]int64{
		"EXISTS (SELECT 1 FROM lines z WHERE z.line = p.age)":                      1 + 512,
		"EXISTS (SELECT 1 FROM lines z WHERE z.line = l.kind)":                     1 + 1,
		"(EXISTS (SELECT 1 FROM lines z WHERE z.line = l.kind) OR l.kind IS NULL)": 1 + 512,
	} {
		p, err := pipeline.Rewrite("SELECT count(l.kind) FROM people p LEFT JOIN lines l ON l.line = p.age AND "+on, snapshot,
			rewritetest.SteadyOptions)
		if err != nil {
			t.Fatalf("%s: %s", on, parsetest.ShowFault(err))
		}
		if got := p.Query.Pairs; got.Int64() != pairs {
			t.Errorf("%s: a row meets %v rows, want %d", on, got, pairs)
		}
	}
}

// IN over times of two kinds goes along all rows of the query, as PostgreSQL has no hash for their equality, and is charged for them.
//
// needs: postgres
// covers: B4 C1
func TestInWithoutHashIsCharged(t *testing.T) {
	_, snapshot := rewritetest.SteadyWorld(t, "; ALTER TABLE visits ADD day date; ALTER TABLE lines ADD at timestamp, ADD day date")
	for column, all := range map[string]bool{"day": false, "at": true} {
		p, err := pipeline.Rewrite("SELECT count(*) FROM visits v WHERE v.day NOT IN (SELECT "+column+" FROM lines)", snapshot,
			rewritetest.SteadyOptions)
		if err != nil {
			t.Fatalf("%s: %s", column, parsetest.ShowFault(err))
		}
		if pairs := p.Query.Pairs.Int64(); pairs > rewritetest.SteadyPublic != all {
			t.Errorf("%s: one row meets %d", column, pairs)
		}
	}
}
