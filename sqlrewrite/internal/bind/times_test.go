package bind_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"noisegate.example/internal/pgtest"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/bind"
	"noisegate.example/sqlrewrite/internal/parse"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/syntax"
)

// What the clock says is a constant of its day: the question is that of the literal.
func TestClockIsALiteral(t *testing.T) {
	snapshot := rewritetest.TownSnapshot(t)
	asked := func(condition string) [32]byte {
		t.Helper()
		o := rewritetest.Sharp()
		o.Now = rewritetest.GoldenNow()
		p, err := pipeline.Rewrite("SELECT count(*) FROM people WHERE "+condition, snapshot, o)
		if err != nil {
			t.Fatalf("%s: %v", condition, err)
		}
		return p.Fingerprint()
	}
	for condition, literal := range map[string]string{
		"born < current_date":                                                   "born < DATE '2024-03-15'",
		"born < current_date - 30":                                              "born < DATE '2024-02-14'",
		"born < 1 + current_date":                                               "born < DATE '2024-03-16'",
		"born < now()::date":                                                    "born < DATE '2024-03-15'",
		"born < date(localtimestamp)":                                           "born < DATE '2024-03-15'",
		"born < pg_catalog.now()::timestamp::date":                              "born < DATE '2024-03-15'",
		"born < (now() - interval '14 hours')::date":                            "born < DATE '2024-03-14'",
		"born < date_trunc('month', now())":                                     "born < TIMESTAMPTZ '2024-03-01 00:00:00+00'",
		"born < date_trunc('week', current_date)":                               "born < TIMESTAMPTZ '2024-03-11 00:00:00+00'",
		"born < date_trunc('day', localtimestamp) + interval '1 hour'":          "born < TIMESTAMP '2024-03-15 01:00:00'",
		"born < current_date - interval '1 month'":                              "born < TIMESTAMP '2024-02-15 00:00:00'",
		"extract(dow FROM born) = extract(dow FROM current_date)":               "extract(dow FROM born) = extract(dow FROM DATE '2024-03-15')",
		"born < to_date('2024/02', 'YYYY/MM')":                                  "born < DATE '2024-02-01'",
		"born < to_timestamp('20240229 0102', 'YYYYMMDD HH24MI')":               "born < TIMESTAMPTZ '2024-02-29 01:02:00+00'",
		"born < to_timestamp('20240229 010203.000004', 'YYYYMMDD HH24MISS.US')": "born < TIMESTAMPTZ '2024-02-29 01:02:03.000004+00'",
		"born < to_timestamp('20240229 010203.250', 'yyyymmdd hh24miss.ms')":    "born < TIMESTAMPTZ '2024-02-29 01:02:03.25+00'",
		"born < to_timestamp(86400)":                                            "born < TIMESTAMPTZ '1970-01-02 00:00:00+00'",
	} {
		if asked(condition) != asked(literal) {
			t.Errorf("%s is another question than %s", condition, literal)
		}
	}
	o := rewritetest.Sharp()
	for _, text := range []string{"current_date", "now()::date"} {
		if _, err := pipeline.Rewrite("SELECT count(*) FROM people WHERE born < "+text, snapshot, o); err == nil {
			t.Errorf("%s is taken without a clock", text)
		}
	}
}

// Months are added as PostgreSQL adds them.
func TestMovedClockIsPostgres(t *testing.T) {
	db := pgtest.New(t)
	conn := db.Conn(t, db.DSN)
	rewritetest.MustExec(t, conn, "SET timezone = 'UTC'")
	snapshot := rewritetest.TownSnapshot(t)
	r := rand.New(rand.NewPCG(41, 42)) // reproducible on purpose
	for range 200 {
		now := time.Date(2020+r.IntN(9), time.Month(1+r.IntN(12)), 25+r.IntN(8), r.IntN(24), r.IntN(60), r.IntN(60),
			r.IntN(1000)*1_000_000, time.UTC)
		by := fmt.Sprintf("%s interval '%d months %d days %d minutes'", []string{"+", "-"}[r.IntN(2)], r.IntN(30), r.IntN(40), r.IntN(3000))
		unit := []string{"day", "week", "month", "quarter", "year", "decade", "century", "millennium"}[r.IntN(8)]
		form := "(date_trunc('" + unit + "', %s " + by + ") " + by + ")::text"
		var want string
		literal := "TIMESTAMP '" + now.Format("2006-01-02 15:04:05.999999") + "'"
		if err := conn.QueryRow(t.Context(), "SELECT "+fmt.Sprintf(form, literal)).Scan(&want); err != nil {
			t.Fatal(err)
		}
		text := strings.TrimSuffix(fmt.Sprintf(form, "localtimestamp"), "::text")
		query, err := parse.ParseAt("SELECT count(*) FROM people WHERE born < "+text, "", parse.Clock{Now: now})
		if err != nil {
			t.Fatal(err)
		}
		bound, err := bind.Releasing(algebra.NewOpened("", query, snapshot))
		if err != nil {
			t.Fatal(err)
		}
		if got := bound.Where.(algebra.Binary).R.(algebra.Constant).Text; got != want {
			t.Fatalf("%s at %v is %s, not %s", form, now, got, want)
		}
	}
}

// The texts of templates are PostgreSQL's, in any locale.
func TestTemplatesArePostgres(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	conn := db.Conn(t, db.DSN)
	rewritetest.MustExec(t, conn, "SET timezone = 'UTC'")
	snapshot := rewritetest.ParseSnapshot(t, "t\n  id integer not null unique\n  at timestamp not null", `version: 1
dataset: test
neighbours: add-remove
tables:
  t:
    unit: {row: id}
    columns:
      at: {bounds: [0001-01-01, 9999-12-30]}
budgets:
  - {dataset: true, form: approx, epsilon: 10, delta: 1e-6}
`)
	words := strings.Fields(`YYYY YY IYYY IW Q MM Month MONTH month Mon MON mon WW W DDD DD D ID Day DAY day Dy DY dy HH24 HH12 HH MI SS AM PM am pm
		yyyy mm dd hh24 mi q iw ddd FMMonth FMDay FMDD FMMM FMHH24 FMYYYY FMDDD fmmi`)
	signs := []string{"", "-", "/", " ", ":", ". ", `"T"`, `" of "`, "'", "()", ", "}
	r := rand.New(rand.NewPCG(43, 44)) // reproducible on purpose
	compared := 0
	for range 1500 {
		var template strings.Builder
		for range 1 + r.IntN(4) {
			template.WriteString(words[r.IntN(len(words))] + signs[r.IntN(len(signs))])
		}
		at := time.Date(1+r.IntN(9998), time.Month(1+r.IntN(12)), 1+r.IntN(31), r.IntN(24), r.IntN(60), r.IntN(60), 0, time.UTC)
		if r.IntN(2) == 0 { // around a new year
			at = time.Date(1990+r.IntN(60), 1, r.IntN(8)-3, 0, 0, 0, 0, time.UTC)
		}
		literal, quoted := "'"+at.Format("2006-01-02 15:04:05")+"'", "'"+strings.ReplaceAll(template.String(), "'", "''")+"'"
		query, err := parse.Parse("SELECT count(*) FROM t WHERE at = "+literal+" GROUP BY to_char(at, "+quoted+")", "")
		if err != nil {
			t.Fatal(err)
		}
		bound, err := bind.Releasing(algebra.NewOpened("", query, snapshot))
		if err != nil { // the words make another one together, or too long a template
			continue
		}
		var want string
		if err := conn.QueryRow(t.Context(), "SELECT to_char(TIMESTAMP "+literal+", "+quoted+")").Scan(&want); err != nil {
			t.Fatal(err)
		}
		compared++
		if keys := bound.Keys[0].Domain; len(keys) != 1 || keys[0].Text != want {
			t.Fatalf("to_char(%s, %s) is %q, not %v", literal, quoted, want, keys)
		}
	}
	if compared < 1000 {
		t.Errorf("only %d templates were compared", compared)
	}
}

// Rows of generate_series are PostgreSQL's, or it is refused because there are none or too many.
func TestSeriesIsPostgres(t *testing.T) {
	db := pgtest.New(t)
	conn := db.Conn(t, db.DSN)
	rewritetest.MustExec(t, conn, "SET timezone = 'UTC'")
	r := rand.New(rand.NewPCG(43, 44)) // reproducible on purpose
	pick := func(all ...string) string { return all[r.IntN(len(all))] }
	taken := 0
	for range 300 {
		at := time.Date(2020+r.IntN(9), time.Month(1+r.IntN(12)), 1+r.IntN(31), r.IntN(24), r.IntN(60), 0, 0, time.UTC)
		last := at.AddDate(0, 0, r.IntN(500)-100)
		end := func(at time.Time) string {
			return pick("DATE '", "TIMESTAMP '", "TIMESTAMPTZ '") + at.Format(pick("2006-01-02", "2006-01-02 15:04:05")) + "'"
		}
		series := fmt.Sprintf("generate_series(%s, %s, INTERVAL '%s')", end(at), end(last),
			pick("1 day", "1 month", "1 week", "-3 days", "7 hours 20 minutes", "1 year", "1 month -2 days", "0 days"))
		if r.IntN(4) == 0 {
			series = fmt.Sprintf("generate_series(%d, %d, %d)", r.IntN(30)-10, r.IntN(900)-200, r.IntN(9)-4)
		}
		var want []string
		var kind *string
		err := conn.QueryRow(t.Context(), "SELECT array_agg(x::text), min(pg_typeof(x)::text) FROM "+series+" AS x").Scan(&want, &kind)
		query, refused := parse.ParseAt("SELECT * FROM "+series+" AS x", "", parse.Clock{})
		if wrong := err != nil || len(want) == 0 || len(want) > 400; wrong != (refused != nil) {
			t.Fatalf("%s: %v, and PostgreSQL gives %d rows, %v", series, refused, len(want), err)
		} else if wrong {
			continue
		}
		taken++
		var got []string
		var rows func(q *syntax.Query)
		rows = func(q *syntax.Query) {
			if q.Set != nil {
				rows(q.Set.Left)
				rows(q.Set.Right)
				return
			}
			e, sign := q.Items[0].Expr, ""
			if negative, ok := e.(*syntax.Unary); ok {
				e, sign = negative.X, "-"
			}
			if cast, ok := e.(*syntax.Cast); ok {
				if e = cast.X; (cast.Type == "timestamp") != (*kind == "timestamp without time zone") {
					t.Fatalf("%s is of type %s, not %s", series, cast.Type, *kind)
				}
			}
			got = append(got, sign+e.(*syntax.Literal).Text)
		}
		rows(query.From[0].(*syntax.Subquery).Query)
		if !slices.Equal(got, want) {
			t.Fatalf("%s is %v, not %v", series, got, want)
		}
	}
	if taken < 100 {
		t.Errorf("%d series were compared", taken)
	}
}
