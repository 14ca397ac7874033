package oracle

import (
	"errors"
	"flag"
	"fmt"
	"math/big"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/pgtest"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/sqlprint"
	"noisegate.example/sqlrewrite/proofs/gen"
)

var numericTypes = flag.Int("numeric-types", 12, "random numeric(p, s) that TestNumericColumns asks about")

// numericUses are questions about a column c; %[1]s is a value that it may have.
var numericUses = []string{
	"SELECT count(*) FROM t WHERE c > %[1]s",
	"SELECT count(*) FROM t WHERE c = %[1]s OR c IN (1, 2, %[1]s)",
	"SELECT count(*) FROM t WHERE c BETWEEN 0 AND %[1]s AND c::text LIKE '%%0'",
	"SELECT count(c) FILTER (WHERE c * c > c), count(*) FILTER (WHERE c + 1 > 1 - c) FROM t",
	"SELECT count(*) FROM t WHERE c / 3 > 1 OR c %% 7 = 1 OR div(c, 3) = 2",
	"SELECT count(*) FROM t WHERE c / nullif(d, 0) < 1 OR c * d > %[1]s OR c = d",
	"SELECT count(*) FROM t WHERE c::float8 > 0.5 OR c < ratio OR sqrt(abs(c)) > 2",
	"SELECT count(*) FROM t WHERE greatest(c, 1) = least(c, 2) OR coalesce(c, 0) = %[1]s OR -c > 0",
	"SELECT count(*) FROM t WHERE round(c, 2) > 0 OR floor(c) = ceil(c) OR trunc(c, -1) = 10 OR sign(c) = 1",
	"SELECT count(*) FROM t WHERE c::numeric(10, 2) > 0.5 OR c::int = 1 OR c::bigint > 2",
	"SELECT count(*) FROM t WHERE width_bucket(c, 0, 10, 5) = 2 OR CASE WHEN c > 0 THEN c ELSE d END > 1",
	"SELECT sum(c), avg(c) FROM t",
	"SELECT sum(c * 2), sum(c::float8), sum(-c) FROM t",
	"SELECT min(c), max(c), percentile_disc(0.5) WITHIN GROUP (ORDER BY c) FROM t",
	"SELECT c, count(*) FROM t GROUP BY c",
	"SELECT c::text, count(*) FROM t GROUP BY 1",
	"SELECT round(c, 1), count(*) FROM t GROUP BY 1",
	"SELECT count(DISTINCT c) FROM t",
	"SELECT stddev(c), corr(c, ratio) FROM t",
	"SELECT count(*) FROM t JOIN kinds k ON k.c = t.c",
	"SELECT count(*) FROM (SELECT c + c AS x FROM t) s WHERE x > %[1]s",
	"SELECT c, d, count(*) FROM t GROUP BY ROLLUP (c, d)",
}

// numericType draws p and s of numeric(p, s): from all that a version of PostgreSQL takes, and as often near a place where
// something changes.
func numericType(r *rand.Rand, major int) (p, s int) {
	p, s = 1+r.IntN(1000), r.IntN(2001)-1000
	if r.IntN(2) == 0 {
		p = []int{1, 2, 3, 5, 18, 38, 250, 251, 299, 300, 301, 1000}[r.IntN(12)]
	}
	if r.IntN(3) > 0 {
		s = []int{-1000, -300, -5, -1, 0, 1, 2, p - 1, p, p + 1, p + 2, p + 20, 251, 299, 301, 308, 323, 324, 400, 1000}[r.IntN(20)]
	}
	if major < 15 {
		return p, max(0, min(s, p))
	}
	return p, max(-1000, min(s, 1000))
}

// Every numeric(p, s) that PostgreSQL takes is answered as PostgreSQL answers, or refused with words that name the column, or as
// numeric(10,2) is refused.
//
// needs: postgres
func TestNumericColumns(t *testing.T) {
	db := pgtest.New(t)
	plain, private := db.Conn(t, db.DSN), db.Conn(t, db.DSN)
	rewritetest.MustExec(t, private, "SET search_path = ''")
	r := rand.New(rand.NewPCG(1, *gen.ProofSeed))
	answered, refused, major := 0, map[string]int{}, pgtest.Major(t)
	for range *numericTypes {
		p, s := numericType(r, major)
		// few digits, times 10^-s
		value := func() string {
			v := new(big.Rat).SetInt64(r.Int64N(pow10(min(p, 4))))
			v.Mul(v, scalar.StepOf(s))
			return scalar.DecimalText(v)
		}
		other, d := "numeric(10,2)", "1.25"
		if r.IntN(2) == 0 {
			a, b := numericType(r, major)
			if other, d = fmt.Sprintf("numeric(%d,%d)", a, b), "NULL"; b >= 0 {
				d = fmt.Sprintf("1e-%d", b)
			}
		}
		of := fmt.Sprintf("numeric(%d,%d)", p, s)
		setting := "{keys: private}"
		if exponent := min(p, 4) - s; r.IntN(3) > 0 && -99 <= exponent && exponent <= 99 { // a policy has no others
			top := fmt.Sprintf("1e%d", exponent)
			setting = fmt.Sprintf("{bounds: [%s, %s]}", []string{"0", "-" + top}[r.IntN(2)], top)
			if s >= 0 {
				setting = strings.Replace(setting, "}", ", keys: private}", 1)
			}
		} else if s < 0 {
			setting = "{}"
		}
		var rows []string
		for i := range 40 {
			rows = append(rows, fmt.Sprintf("(%d, %s, %d.25, %s)", i, value(), i%3, []string{d, "NULL"}[i%2]))
		}
		snapshot := numericSnapshot(t, of, other, setting)
		rewritetest.MustExec(t, plain, fmt.Sprintf(`DROP TABLE IF EXISTS t, kinds;
			CREATE TABLE t (id int PRIMARY KEY, c %s, ratio float8, d %s); CREATE TABLE kinds (c %[1]s);
			INSERT INTO t VALUES %[3]s; INSERT INTO kinds SELECT DISTINCT c FROM t LIMIT 3;`, of, other, strings.Join(rows, ", ")))
		for _, use := range numericUses {
			sql := fmt.Sprintf(use+"%[2]s", value(), "")
			label := fmt.Sprintf("%s beside %s %s: %s", of, other, setting, sql)
			made, err := pipeline.Rewrite(sql, snapshot, numericOptions)
			if err != nil {
				var f *fault.Error
				refused[string(fault.CodeOf(err))]++
				switch {
				case !errors.As(err, &f) || strings.HasPrefix(string(f.Code), "internal/"):
					t.Errorf("%s\n%v: %v", label, err, errors.Unwrap(err))
				case !namesColumn.MatchString(f.Msg + " " + f.Hint):
					usual := numericSnapshot(t, "numeric(10,2)", "numeric(10,2)", setting)
					if _, other := pipeline.Rewrite(sql, usual, numericOptions); other == nil || fault.CodeOf(other) != f.Code {
						t.Errorf("%s\n%v (%s); of numeric(10,2): %v", label, err, f.Hint, other)
					}
				}
				continue
			}
			if _, err := plain.Exec(t.Context(), sql); err != nil || s < -36 {
				continue // PostgreSQL has no answer to compare with, or values count as 10^40 where the type fixes no digits after the point
			}
			answered++
			for _, conn := range []*pgx.Conn{plain, private} {
				if err := conn.DeallocateAll(t.Context()); err != nil { // they are of the table before
					t.Fatal(err)
				}
			}
			want, got := numericRows(gen.PlainAnswer(t, plain, sql), use), numericRows(gen.NoiselessAnswer(t, private, made), use)
			places := int64(1_000_000)
			if strings.Contains(use, "min(") {
				places = 1 // what is chosen is chosen on a grid
			}
			if !slices.EqualFunc(want, got, func(a, b []string) bool { return sameNumbers(a, b, places) }) {
				t.Errorf("%s\n%v\nPostgreSQL has\n%v", label, got, want)
			}
		}
	}
	t.Log(answered, refused)
}

func pow10(n int) int64 { return scalar.Power10(n).Int64() }

var (
	namesColumn    = regexp.MustCompile(`(?:^|[^\pL])[cd](?:[^\pL]|$)`)
	numericOptions = plan.Options{Epsilon: mechanisms.EpsilonUnit, Delta: maxOracleBlocks, Mechanism: plan.MechanismAuto,
		Currency: catalog.Approx, Confidence: 0.95}
)

func numericSnapshot(t *testing.T, c, d, setting string) *catalog.Snapshot {
	tables := fmt.Sprintf("t\n  id integer not null unique\n  c %s\n  ratio double\n  d %s\nkinds\n  c %[1]s\n", c, d)
	return rewritetest.ParseSnapshot(t, tables, fmt.Sprintf(`version: 1
dataset: test
neighbours: add-remove
tables:
  t: {unit: {row: id}, columns: {c: %s, ratio: {bounds: [0, 3]}, d: {bounds: [0, 5]}}}
  kinds: {public: true}
budgets:
  - {dataset: true, form: approx, epsilon: 10, delta: 1e-6}
`, setting))
}

// numericRows are the rows of an answer, of a question without an order by their values. A sum over no rows is 0, as documented.
func numericRows(a gen.AnswerText, sql string) [][]string {
	for _, row := range a.Rows {
		for i, cell := range row {
			if strings.Contains(sql, "sum(") && cell == "NULL" {
				row[i] = "0"
			}
		}
	}
	slices.SortFunc(a.Rows, func(x, y []string) int { return strings.Compare(numericOrder(x), numericOrder(y)) })
	return a.Rows
}

func numericOrder(row []string) (order string) {
	for _, cell := range row {
		if v, ok := new(big.Rat).SetString(cell); ok {
			cell = new(big.Float).SetRat(v).Text('e', 6)
		}
		order += cell + "|"
	}
	return order
}

// sameNumbers compares rows by the values of their numbers: they may differ by one in so many.
func sameNumbers(a, b []string, places int64) bool {
	return slices.EqualFunc(a, b, func(a, b string) bool {
		x, okX := new(big.Rat).SetString(a)
		y, okY := new(big.Rat).SetString(b)
		if !okX || !okY {
			return a == b
		}
		off := new(big.Rat).Sub(x, y)
		return off.Mul(off.Abs(off), big.NewRat(places, 1)).Cmp(x.Abs(x)) <= 0
	})
}

// A number of more than 100 digits before or after its point counts as NULL, or leaves its row out where the column has no NULL, and so
// does one that PostgreSQL writes in few bytes but not in few digits. No other value is changed. The longest one lies in other pages, and
// no form reads more pages with it than with a short one.
//
// needs: postgres
// covers: C1
func TestLongNumericsAreNotRead(t *testing.T) {
	db := pgtest.New(t)
	conn := db.Conn(t, db.DSN)
	rewritetest.MustExec(t, conn, "SET search_path = ''")
	snapshot := rewritetest.ParseSnapshot(t, `t
  id integer not null unique
  k integer not null
  free numeric
  solid numeric not null
visits
  t integer
  free numeric
kinds
  kind numeric not null unique
  free numeric
`, `version: 1
dataset: test
neighbours: add-remove
tables:
  t: {unit: {row: id}, columns: {k: {bounds: [0, 100]}, free: {bounds: [0, 10]}, solid: {bounds: [5, 10]}}}
  visits: {unit: {column: t, of: t}, max_rows: 4, columns: {free: {bounds: [0, 10]}}}
  kinds: {public: true}
budgets:
  - {dataset: true, form: approx, epsilon: 10, delta: 1e-6}
`)
	fill := func(value, kind string) {
		rewritetest.MustExec(t, conn, fmt.Sprintf(`DROP TABLE IF EXISTS public.t, public.visits, public.kinds;
			CREATE TABLE public.t (id int NOT NULL UNIQUE, k int NOT NULL, free numeric, solid numeric NOT NULL);
			CREATE TABLE public.visits (t int, free numeric); CREATE TABLE public.kinds (kind numeric NOT NULL UNIQUE, free numeric);
			ALTER TABLE public.t ALTER free SET STORAGE EXTERNAL, ALTER solid SET STORAGE EXTERNAL;
			ALTER TABLE public.visits ALTER free SET STORAGE EXTERNAL; ALTER TABLE public.kinds ALTER free SET STORAGE EXTERNAL;
			INSERT INTO public.t SELECT i, i, i %% 10, i %% 10 FROM pg_catalog.generate_series(1, 40) i;
			INSERT INTO public.kinds SELECT i, i FROM pg_catalog.generate_series(1, 40) i;
			INSERT INTO public.visits SELECT i, i %% 7 FROM pg_catalog.generate_series(1, 40) i;
			INSERT INTO public.t VALUES (99, 77, %[1]s, %[1]s); INSERT INTO public.visits VALUES (99, %[1]s);
			INSERT INTO public.kinds VALUES (%[2]s, %[1]s)`,
			value, kind))
		if err := conn.DeallocateAll(t.Context()); err != nil { // they are of the tables before
			t.Fatal(err)
		}
	}
	made := func(sql string) *plan.Plan {
		t.Helper()
		made, err := pipeline.Rewrite(sql, snapshot, numericOptions)
		if err != nil {
			t.Fatalf("%s: %v: %v", sql, err, errors.Unwrap(err))
		}
		return made
	}
	count := func(sql string) string { return gen.NoiselessAnswer(t, conn, made(sql)).Rows[0][0] }

	const longest = "('0.' || repeat('7', 16383))::numeric + repeat('37', 65536)::numeric"
	for value, counts := range map[string]bool{"1": true, "1.50": true, "'NaN'": true, "'Infinity'": true, "'-Infinity'": true,
		"-9.9e99": true, "1e-100": true, "repeat('37', 50)::numeric": true, "('0.' || repeat('73', 50))::numeric": true,
		"(repeat('3', 100) || '.' || repeat('7', 100))::numeric": true, "('1.' || repeat('0', 9000))::numeric": true, "1e100": false,
		"-1e100": false, "1e131071": false, "1e-101": false, "1e-16383": false, "(repeat('37', 50) || '5')::numeric": false, longest: false} {
		fill(value, "99")
		want := map[bool]string{true: "41", false: "40"}[counts]
		for _, sql := range []string{"SELECT count(free) FROM t", "SELECT count(*) FROM t WHERE free IS NOT NULL",
			"SELECT count(*) FROM t WHERE solid IS NOT NULL OR k < 0", "SELECT count(*) FROM t WHERE free < 99 OR free >= 99"} {
			if got := count(sql); got != want {
				t.Errorf("%s with %s: %s, want %s", sql, value, got, want)
			}
		}
	}
	uses := []string{
		"SELECT count(*) FROM t WHERE free > 5 AND solid > 5",
		"SELECT sum(free), avg(free), avg(solid), stddev(solid), max(solid), corr(free, solid) FROM t",
		"SELECT count(*) FROM t WHERE coalesce(free, solid) = greatest(solid, 3) OR free * solid > 3 OR free IN (1, 2, 3)",
		"SELECT width_bucket(solid, 0, 10, 5), count(*) FROM t GROUP BY 1", "SELECT count(DISTINCT free) FROM t",
		"SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY solid) FROM t",
		"SELECT count(*) FROM t JOIN kinds s ON s.kind > 0 WHERE t.free > s.kind AND t.solid > s.kind AND t.free < s.free",
		"SELECT count(*) FROM t JOIN kinds s ON s.kind = t.free", "SELECT count(*) FROM t LEFT JOIN kinds s ON s.free = t.solid AND s.kind = t.k",
		"SELECT count(*) FROM t WHERE free IN (SELECT free FROM kinds)", "SELECT sum(v.free) FROM visits v",
		"SELECT count(*) FROM t JOIN visits v ON v.t = t.id WHERE v.free > t.free",
		"SELECT count(*) FROM t WHERE EXISTS (SELECT 1 FROM visits v WHERE v.t = t.id AND v.free = t.free)",
		"SELECT count(*) FROM (SELECT t, free, row_number() OVER (PARTITION BY t ORDER BY free) AS n FROM visits) v WHERE n = 1 AND free > 2",
		"SELECT count(*) FROM (SELECT free FROM t UNION ALL SELECT solid FROM t) u WHERE free > 2",
	}
	pages := func(s sqlprint.Statement) int {
		tx, err := conn.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		text, err := gen.Explained(t.Context(), tx, s, "ANALYZE, BUFFERS, TIMING OFF, COSTS OFF, FORMAT JSON")
		if err = errors.Join(err, tx.Rollback(t.Context())); err != nil {
			t.Fatalf("%s\n%v", s.SQL, err)
		}
		total := 0
		for _, m := range sharedPages.FindAllStringSubmatch(text, 2) { // of the whole plan
			n, err := strconv.Atoi(m[1])
			if err != nil {
				t.Fatal(err)
			}
			total += n
		}
		return total
	}
	var statements []sqlprint.Statement
	var answers []string
	for _, sql := range uses {
		p, err := pipeline.Rewrite(sql, snapshot, numericOptions)
		if err != nil {
			t.Logf("refused: %s: %v: %v", sql, err, errors.Unwrap(err))
			continue
		}
		for _, part := range p.Parts {
			statements, answers = append(statements, part.Statement), append(answers, sql)
		}
	}
	statements = append(statements, sqlprint.Statement{SQL: `SELECT count(*) FROM public.t WHERE free > 5`})
	read := make([][]int, 2)
	for i, value := range []string{"8", longest} {
		fill(value, "99")
		for _, s := range statements {
			pages(s) // what is read first fills caches, and sets bits in pages
			read[i] = append(read[i], pages(s))
		}
	}
	last := len(statements) - 1
	if read[1][last] < read[0][last]+8 {
		t.Errorf("a plain comparison reads %d pages for the longest numeric, and %d for a short one", read[1][last], read[0][last])
	}
	for i, sql := range answers {
		if read[1][i] > read[0][i]+3 {
			t.Errorf("%s reads %d pages beside the longest numeric, and %d beside a short one\n%s", sql, read[1][i], read[0][i], statements[i].SQL)
		}
	}
	if len(answers) < len(uses)-2 {
		t.Errorf("%d of %d questions are answered", len(answers), len(uses))
	}
	fill("8", longest)
	if got := count("SELECT count(*) FROM t JOIN kinds s ON s.kind = t.k"); got != "40" {
		t.Errorf("%s rows meet a key, where one key is too long, want 40", got)
	}
}

var sharedPages = regexp.MustCompile(`"Shared (?:Hit|Read) Blocks": (\d+)`)
