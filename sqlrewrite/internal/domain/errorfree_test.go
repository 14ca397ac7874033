package domain_test

import (
	"math/big"
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

// A18, A20, A29: random expressions over everything that columns can hold, on PostgreSQL. The printed form raises no error on any row; its
// values lie where the bounds say; and where all values of a row lie within their bounds and PostgreSQL itself computes the analyst's text
// without an error, both give the same value.
//
// needs: postgres
// covers: A18 A20 A29 E.1
func TestExpressionsAreErrorFree(t *testing.T) {
	t.Parallel()
	conn, snapshot, r := gen.ErrorFreeRows(t, 3, 4, 40, "")
	w := gen.ExpressionWriter{Rand: r}
	evaluations, compared, different, taken := 0, 0, 0, 0
	for i := range 1500 / rewritetest.OneIn(5) {
		text := w.Number(1 + i%3)
		switch i % 7 {
		case 4:
			text = w.Condition(1 + i%3)
		case 5:
			text = w.Text(1 + i%3)
		case 6:
			text = w.Time(1 + i%3)
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
	rows, err := conn.Query(t.Context(), "SELECT id, ("+text+")::text FROM public.t", p.Args()...)
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
	w := gen.ExpressionWriter{Rand: r}
	public, private := 0, 0
	for i := range 600 {
		text := []func(int) string{w.Number, w.Condition, w.Text, w.Time, w.Number}[i%5](1 + i%2)
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
