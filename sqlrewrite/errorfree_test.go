package sqlrewrite

import (
	"math/big"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/bind"
	"noisegate.example/sqlrewrite/internal/parse"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/sqlprint"
	"noisegate.example/sqlrewrite/proofs/gen"
)

// The random expressions of the test, by the type that they have.
type expressionWriter struct{ r *rand.Rand }

func (w expressionWriter) pick(all ...string) string { return all[w.r.IntN(len(all))] }

func (w expressionWriter) number(depth int) string {
	if depth == 0 {
		return w.pick("n2", "n4", "n8", "wide", "small", "money", "free", "f4", "f8", "speed", "n4", "money", "small", "f8", "grade", "0", "1",
			"-3", "0.5", "2.25", "1e3", "100000")
	}
	x, y := w.number(depth-1), w.number(w.r.IntN(depth))
	return w.pick(
		"("+x+" + "+y+")", "("+x+" - "+y+")", "("+x+" * "+y+")", "("+x+" / "+y+")", "(- "+x+")",
		"("+w.whole(depth-1)+" % "+w.whole(0)+")", "mod("+w.whole(depth-1)+", "+w.whole(0)+")", "("+w.whole(depth-1)+" / "+w.whole(0)+")",
		"abs("+x+")", "sign("+x+")", "floor("+x+")", "ceil("+x+")", "round("+x+")", "trunc("+x+")",
		"round("+w.decimal(depth-1)+", "+w.pick("0", "1", "-1", "3")+")",
		"trunc("+w.decimal(depth-1)+", 1)", "sqrt(abs("+x+"))", "sqrt("+x+")", "ln("+x+")", "log("+x+")", "exp("+x+")",
		"power("+x+", "+w.pick("0", "1", "2", "3", "-1", "-2")+")",
		"greatest("+x+", "+y+")", "least("+x+", "+y+")", "coalesce("+x+", "+y+")", "nullif("+x+", "+w.whole(0)+")", "greatest("+x+", 1)",
		"least("+x+", 5, "+y+")",
		"CASE WHEN "+w.condition(depth-1)+" THEN "+x+" ELSE "+y+" END", "CASE "+w.whole(0)+" WHEN 0 THEN "+x+" WHEN 5 THEN 1 END",
		"width_bucket("+x+", 0, 10, 5)", "width_bucket("+x+", 5.5, -1, 3)", "("+x+")::numeric", "("+x+")::float8", "("+x+")::int",
		"("+x+")::bigint", "("+x+")::numeric(6,2)",
		"("+w.condition(depth-1)+")::int", "length("+w.text(depth-1)+")", "strpos("+w.text(depth-1)+", "+w.text(0)+")",
		"position('b' IN "+w.text(0)+")",
		"extract("+w.pick("year", "month", "day", "dow", "isodow", "doy", "week", "isoyear", "quarter", "epoch", "decade", "century",
			"millennium")+" FROM "+w.time(depth-1)+")",
		"extract("+w.pick("hour", "minute", "second", "epoch")+" FROM "+w.moment(depth-1)+")", "date_part('month', "+w.time(depth-1)+")",
		"("+w.day(depth-1)+" - "+w.day(0)+")", "extract(epoch FROM "+w.interval(depth-1)+")", "div("+w.decimal(depth-1)+", "+w.decimal(0)+")",
	)
}

func (w expressionWriter) whole(depth int) string {
	if depth == 0 {
		return w.pick("n2", "n4", "n8", "wide", "small", "grade", "7", "-1", "0", "small", "3000000000")
	}
	return w.pick("("+w.whole(depth-1)+" + "+w.whole(0)+")", "("+w.whole(depth-1)+" * "+w.whole(0)+")",
		"("+w.whole(depth-1)+" - "+w.whole(0)+")", "abs("+w.whole(depth-1)+")")
}

func (w expressionWriter) decimal(depth int) string {
	if depth == 0 {
		return w.pick("money", "free", "2.5", "money * 1.0", "small::numeric")
	}
	return w.pick("("+w.decimal(depth-1)+" + "+w.decimal(0)+")", "("+w.decimal(depth-1)+" * "+w.decimal(0)+")",
		"("+w.decimal(depth-1)+" / "+w.decimal(0)+")")
}

func (w expressionWriter) text(depth int) string {
	if depth <= 0 {
		return w.pick("word", "other", "letter", "letter", "'b'", "''")
	}
	x := w.text(depth - 1)
	return w.pick("upper("+x+")", "lower("+x+")", "("+x+" || "+w.text(0)+")", "concat("+x+", small, "+w.text(0)+")", "trim("+x+")",
		"ltrim("+x+", 'ab')", "rtrim("+x+")",
		"substring("+x+", 2)", "substring("+x+" FROM "+w.pick("-1", "1", "3")+" FOR 2)", "left("+x+", "+w.pick("2", "-1")+")", "right("+x+", 2)",
		"coalesce("+x+", 'none')", "nullif("+x+", 'x')",
		"CASE WHEN "+w.condition(depth-1)+" THEN "+x+" ELSE 'b' END", "small::text", "greatest("+x+", 'k')", "initcap("+x+")", "day::text")
}

func (w expressionWriter) day(depth int) string {
	if depth <= 0 {
		return w.pick("day", "day", "DATE '2022-06-01'", "at::date")
	}
	return w.pick("("+w.day(depth-1)+" + "+w.pick("n4", "small", "7", "(- n2)")+")", "("+w.day(depth-1)+" - small)",
		"coalesce("+w.day(depth-1)+", day)")
}

func (w expressionWriter) moment(depth int) string {
	if depth <= 0 {
		return w.pick("at", "atz", "far", "TIMESTAMP '2022-06-01 12:00:00'", "day::timestamp")
	}
	return w.pick("("+w.moment(depth-1)+" + INTERVAL '"+w.pick("1 day", "-3 months", "36 hours 5 minutes", "1 year 2 days")+"')",
		"("+w.day(depth-1)+" - INTERVAL '1 hour')",
		"date_trunc('"+w.pick("second", "minute", "hour", "day", "week", "month", "quarter", "year")+"', "+w.time(depth-1)+")")
}

func (w expressionWriter) time(depth int) string {
	if w.r.IntN(2) == 0 {
		return w.day(depth)
	}
	return w.moment(depth)
}

func (w expressionWriter) interval(depth int) string {
	return w.pick("("+w.moment(depth)+" - "+w.moment(0)+")", "("+w.moment(depth)+" - day)", "INTERVAL '2 days'",
		"(at - far + INTERVAL '1 month')")
}

func (w expressionWriter) condition(depth int) string {
	if depth <= 0 {
		return w.pick("flag", "n4 > 3", "f8 < 0.5", "word LIKE 'a%'", "NOT flag")
	}
	return w.pick("("+w.number(depth-1)+" "+w.pick("<", ">=", "=", "<>")+" "+w.number(0)+")", "("+w.number(depth-1)+" IN (0, 1, 2.5))",
		"("+w.number(depth-1)+" IS NULL)",
		"("+w.text(depth-1)+" "+w.pick("=", "<")+" "+w.text(0)+")", "("+w.text(depth-1)+" LIKE '%b%')",
		"("+w.time(depth-1)+" > DATE '2022-03-01')",
		"("+w.interval(depth-1)+" > INTERVAL '10 days')", "("+w.number(depth-1)+" IS DISTINCT FROM "+w.number(0)+")",
		"("+w.number(depth-1)+" BETWEEN 0 AND 5)", "starts_with("+w.text(depth-1)+", 'a')")
}

// A18, A20, A29: random expressions over everything that columns can hold, on PostgreSQL. The printed form raises no error on any row; its
// values lie where the bounds say; and where all values of a row lie within their bounds and PostgreSQL itself computes the analyst's text
// without an error, both give the same value.
//
// covers: A18 A20 A29 E.1
func TestExpressionsAreErrorFree(t *testing.T) {
	t.Parallel()
	conn, snapshot, r := gen.ErrorFreeRows(t, 3, 4, 40, "")
	w := expressionWriter{r}
	evaluations, compared, different, taken := 0, 0, 0, 0
	for i := range 1500 / rewritetest.OneIn(5) {
		text := w.number(1 + i%3)
		switch i % 7 {
		case 4:
			text = w.condition(1 + i%3)
		case 5:
			text = w.text(1 + i%3)
		case 6:
			text = w.time(1 + i%3)
		}
		query, err := parse.Parse("SELECT count("+text+") FROM t", "")
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		bound, err := bind.Releasing(algebra.NewOpened("", query, snapshot))
		if err != nil {
			if !strings.Contains(err.Error(), "this large or this small") && !strings.Contains(err.Error(), "sql/type-mismatch") &&
				!strings.Contains(err.Error(), "this far from now") && !strings.Contains(err.Error(), "sql/unsupported") {
				t.Errorf("%s: %v", text, err)
			}
			continue
		}
		x := bound.Statistics[0].X
		if x == nil || algebra.PlainField(x) != nil {
			continue
		}
		taken++
		printed, values := errorFreeValues(t, conn, x)
		evaluations += len(values)
		checkRange(t, text, printed, x, values)
		same, other := comparePlain(t, conn, text, printed, values)
		compared, different = compared+same, different+other
	}
	t.Logf("%d expressions taken, %d evaluations, %d equal to PostgreSQL's own, %d of inexact ones not", taken, evaluations, compared,
		different)
	if enough := 20_000 / rewritetest.OneIn(5); evaluations < enough || compared < enough || different*1000 > compared {
		t.Error("too few evaluations, or too many differences")
	}
}

// errorFreeValues runs the printed form of an expression on every row. nil is NULL.
func errorFreeValues(t *testing.T, conn *pgx.Conn, x algebra.Expr) (string, map[int]*string) {
	t.Helper()
	p := sqlprint.NewRowPrinter()
	text := p.Text(x)
	rows, err := conn.Query(t.Context(), "SELECT id, ("+text+")::text FROM public.t", p.Args...)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	defer rows.Close()
	values := make(map[int]*string)
	for rows.Next() {
		var id int
		var value *string
		if err := rows.Scan(&id, &value); err != nil {
			t.Fatal(err)
		}
		values[id] = value
	}
	if rows.Err() != nil {
		t.Fatalf("A29: %s\n%v: %v", sqlprint.Describe(x), text, rows.Err())
	}
	return text, values
}

func checkRange(t *testing.T, text, printed string, x algebra.Expr, values map[int]*string) {
	t.Helper()
	c, ok := x.(algebra.Computed)
	if !ok || c.Within == nil || !c.ErrorFree.Typ().IsNumber() {
		return
	}
	for id, value := range values {
		if value == nil {
			continue
		}
		v, ok := scalar.ParseNumber(*value)
		if ok && scalar.IsFloat(c.ErrorFree.Typ()) {
			v = scalar.AsFloat(v) // the shortest text that means it
		}
		if !ok || !c.Within.Holds(v) {
			lo, _ := c.Within.Lo.Float64()
			hi, _ := c.Within.Hi.Float64()
			t.Fatalf("%s\n%s\nrow %d: %s is not in [%v, %v]", text, printed, id, *value, lo, hi)
		}
	}
}

// inexact operations are rounded, or computed in double precision where PostgreSQL uses numeric (docs/sql/error-free.md): a comparison or a
// rounding of what they give may fall on the other side.
var inexact = regexp.MustCompile(`/|exp|power|ln\(|log\(|sqrt|f4|::float8|::numeric\b`)

// comparePlain compares with PostgreSQL's own evaluation of the text, row by row, where that raises no error.
func comparePlain(t *testing.T, conn *pgx.Conn, text, printed string, values map[int]*string) (same, different int) {
	t.Helper()
	rows, err := conn.Query(t.Context(), "SELECT row_id, value FROM public.try($1)", text)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id int
		var plain *string
		if err := rows.Scan(&id, &plain); err != nil {
			t.Fatal(err)
		}
		if plain != nil && strings.HasPrefix(*plain, "error ") {
			continue
		}
		got := values[id]
		switch {
		case (got == nil) == (plain == nil) && (got == nil || nearlyEqual(*got, *plain)):
			same++
		case inexact.MatchString(text):
			different++
		default:
			t.Fatalf("%s\n%s\nrow %d: %s, PostgreSQL has %s", text, printed, id, gen.OrNull(got), gen.OrNull(plain))
		}
	}
	if rows.Err() != nil {
		t.Fatalf("%s: %v", text, rows.Err())
	}
	return same, different
}

// nearlyEqual compares texts; numbers by value, to a millionth, as real is computed in double precision.
func nearlyEqual(a, b string) bool {
	if a == b {
		return true
	}
	x, okX := scalar.ParseNumber(a)
	y, okY := scalar.ParseNumber(b)
	if !okX || !okY {
		return false
	}
	limit := new(big.Rat).Abs(x)
	if limit.Cmp(scalar.One()) < 0 {
		limit = scalar.One()
	}
	limit.Mul(limit, big.NewRat(1, 1_000_000))
	return x.Sub(x, y).Abs(x).Cmp(limit) <= 0
}

// Keys of random expressions, on PostgreSQL: where policy and text bound them, every key of a row whose values lie within their bounds is
// in the domain, in PostgreSQL's own text. Most domains are not much larger than what rows have.
func TestComputedKeysAreInTheirDomain(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	conn, snapshot, r := gen.ErrorFreeRows(t, 5, 6, 300, "DELETE FROM public.t WHERE id <= 0; ")
	w := expressionWriter{r}
	public, private := 0, 0
	for i := range 600 {
		text := []func(int) string{w.number, w.condition, w.text, w.time, w.number}[i%5](1 + i%2)
		query, err := parse.Parse("SELECT count(*) FROM t WHERE small > 1 AND day < DATE '2024-12-31' AND grade <> 2 GROUP BY "+text, "")
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		bound, err := bind.Releasing(algebra.NewOpened("", query, snapshot))
		if err != nil || len(bound.Keys) == 0 {
			continue
		}
		key := bound.Keys[0]
		if key.Private() {
			private++
			continue
		}
		public++
		gen.CheckDomain(t, conn, text, bound)
	}
	t.Logf("%d expressions with public keys, %d with private ones", public, private)
	if public < 150 || private < 30 {
		t.Error("too few to tell")
	}
}
