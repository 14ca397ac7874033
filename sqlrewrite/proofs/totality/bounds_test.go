package totality

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"noisegate.example/catalog"
	"noisegate.example/internal/randomtest"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/bind"
	"noisegate.example/sqlrewrite/internal/parse"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/internal/sqlprint"
	"noisegate.example/sqlrewrite/proofs/gen"
)

// manyRows are rows with values at and beyond the bounds of most columns, and at small distances from each other.
const manyRows = `INSERT INTO public.t (id, n2, n4, n8, small, money, free, f4, f8, grade, flag, day, at, atz)
	SELECT 1000 + g, g * 37 % 130 - 110, (g::bigint * 7919 % 70021 - 50010)::int, g::bigint * 99991 * 7919 % 14000000000 - 4500000000,
		g * 7 % 12 - 1, (g * 131 % 1600) / 100.0 - 2, (g * 17 % 231) / 100.0 - 1.15, (g % 15) * 0.25 - 0.75, (g * 29 % 113) / 100.0 - 0.05,
		g % 11, g % 3 = 0, date '2019-12-01' + g * 13 % 1900, timestamp '2021-12-15' + g * 11173 % 33000 * interval '1 hour',
		timestamptz '2021-12-15+00' + g * 7919 % 396000 * interval '5 minutes'
	FROM generate_series(1, 300) g; `

// boundsWriter writes random conditions, and what is added up on the rows that meet them.
type boundsWriter struct {
	*rand.Rand
	most int // the column that most of a question is about
}

func (w boundsWriter) pick(all ...string) string { return all[w.IntN(len(all))] }

// limited is a column, and constants near its values.
func (w boundsWriter) limited() (column string, constants []string) {
	of := w.most
	if w.IntN(4) == 0 {
		of = w.IntN(6)
	}
	switch of {
	case 0:
		return "n2", []string{"0", "-50", "5", "9.5", "-99", "20", "-200", "3e0", "'7'"}
	case 1:
		return "n4", []string{"0", "-20000", "15", "-49999.5", "10.0::float8"}
	case 2:
		return "money", []string{"0", "5", "3.33", "-1.49", "11.999", "20", "2.5::float8", "1 + 1"}
	case 3:
		return "free", []string{"0", "0.5", "-0.25", "0.123456", "0.1::real"}
	case 4:
		return "f4", []string{"0", "0.25", "1.1", "2.5", "-0.5", "0.3::real", "'0.7'"}
	default:
		return "f8", []string{"0.1", "0.5", "0.25", "1", "0", "-1", "0.3::real", "0.7::numeric(3,1)"}
	}
}

// rising is a column, or what is computed of it, which an inverse may know.
func (w boundsWriter) rising(x string, depth int) string {
	if depth == 0 {
		return x
	}
	c := w.pick("1", "2", "-3", "0.5", "2.25", "7", "0.1::float8", "100")
	return w.rising(w.pick("("+x+" + "+c+")", "("+c+" - "+x+")", "("+x+" - "+c+")", "("+x+" * "+c+")", "("+x+" / "+c+")", "(- "+x+")",
		"floor("+x+")", "ceil("+x+")", "round("+x+")", "trunc("+x+")", "round(("+x+")::numeric, 1)", "trunc(("+x+")::numeric, -1)", "abs("+x+")",
		"coalesce("+x+", "+c+")", "("+x+")::int", "("+x+")::numeric(6,1)", "("+x+")::float8", "("+x+")::real", "("+x+")::smallint"), depth-1)
}

// condition is one on a column, or several.
func (w boundsWriter) condition(depth int) string {
	if depth > 0 {
		a, b := w.condition(depth-1), w.condition(w.IntN(depth))
		return w.pick("("+a+" AND "+b+")", "("+a+" AND "+b+")", "("+a+" OR "+b+")", "(NOT "+a+")", "("+a+" IS TRUE)", "(("+a+") IS NOT FALSE)",
			"("+a+" AND "+gen.ExpressionWriter{Rand: w.Rand}.Condition(1)+")")
	}
	if w.IntN(5) == 0 {
		at, c := w.pick("at", "atz", "day"), w.pick("'2022-03-01'", "'2022-12-31'", "'2021-06-30'", "'2023-05-05'")
		x := w.pick(at, at, at+"::date", "date_trunc('"+w.pick("hour", "day", "week", "month", "quarter", "year")+"', "+at+")",
			"date_bin('"+w.pick("7 days", "90 minutes")+"', "+at+", '"+w.pick("2020-02-02 00:00+00", "2023-03-03 03:00+00")+"')",
			"("+w.pick("at", "atz")+" AT TIME ZONE '"+w.pick("America/New_York", "Pacific/Apia")+"')")
		year := w.pick("2021", "2022", "2023")
		return w.pick("("+x+" "+w.pick("<", "<=", ">", ">=", "=")+" date "+c+")", "(extract(year FROM "+at+") = "+year+")",
			"(extract(year FROM "+at+") >= "+year+")", "(extract(epoch FROM "+at+") < 1660000000)")
	}
	column, constants := w.limited()
	x, c, d := w.rising(column, w.IntN(3)), w.pick(constants...), w.pick(constants...)
	return w.pick("("+x+" "+w.pick("<", "<=", ">", ">=", "=", "<>")+" "+c+")", "("+c+" "+w.pick("<", ">=")+" "+x+")",
		"("+x+" BETWEEN "+c+" AND "+d+")", "("+x+" NOT BETWEEN "+c+" AND "+d+")", "("+x+" IN ("+c+", "+d+"))", "("+x+" NOT IN ("+c+", NULL))",
		"("+x+" BETWEEN SYMMETRIC "+c+" AND "+d+")", "("+x+" IS NOT DISTINCT FROM "+c+")", "("+x+" IS DISTINCT FROM "+c+")")
}

// question adds up something on the rows that meet conditions.
func (w boundsWriter) question() string {
	column, _ := w.limited()
	x := column
	switch w.IntN(5) {
	case 0:
		x = w.rising(column, 1+w.IntN(2))
	case 1:
		other, _ := w.limited()
		x = column + w.pick(" + ", " * ", " - ") + other
	case 2:
		x = "CASE WHEN " + w.condition(w.IntN(2)) + " THEN " + column + w.pick("", " ELSE 0", " WHEN "+w.condition(0)+" THEN 2 * "+column,
			" ELSE "+column+" + 1") + " END"
	case 3:
		x = w.pick("extract(epoch FROM atz)", "extract(epoch FROM at)", "extract(year FROM day)", "(day - date '2022-01-01')",
			gen.ExpressionWriter{Rand: w.Rand}.Number(1))
	}
	q := w.pick("sum", "avg", "median") + "(" + x + ")"
	if w.IntN(3) == 0 {
		q += " FILTER (WHERE " + w.condition(w.IntN(2)) + ")"
	}
	q = "SELECT " + q + " FROM t"
	if w.IntN(4) > 0 {
		q += " WHERE " + w.condition(w.IntN(3))
	}
	return q
}

// A condition narrows bounds so that no row that meets it lies outside: on each, the value within the bounds of the policy is within the
// narrowed ones. Rows hold what columns can hold at worst, and values beyond the bounds.
//
// needs: postgres
func TestNoRowLiesOutsideOfItsBounds(t *testing.T) {
	conn, snapshot, r := gen.ErrorFreeRows(t, 81+*gen.ProofSeed, 1, 20, manyRows)
	w := boundsWriter{Rand: r}
	asked, taken, narrowed, met := randomtest.Part(3_000, 60_000), 0, 0, 0
	var batch outsideBatch
	for range asked {
		w.most = r.IntN(6)
		text := w.question()
		bound := boundGrid(t, text, snapshot)
		if bound == nil {
			continue
		}
		taken++
		if !bound.Statistics[0].Grid.Narrowed {
			continue
		}
		narrowed++
		if batch.add(text, bound); len(batch.texts) == 40 {
			met += batch.flush(t, conn)
		}
	}
	met += batch.flush(t, conn)
	t.Logf("%d questions, %d taken, %d with narrowed bounds, %d of these of some rows", asked, taken, narrowed, met)
	if narrowed*6 < asked || met*2 < narrowed {
		t.Error("too few bounds are narrowed, or of rows that there are")
	}
}

// boundGrid binds a question; nil where it is refused.
func boundGrid(t *testing.T, text string, snapshot *catalog.Snapshot) *algebra.BoundQuery {
	t.Helper()
	query, err := parse.Parse(text, "")
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	bound, err := bind.Releasing(algebra.NewOpened("", query, snapshot))
	if err != nil || len(bound.Statistics) == 0 || bound.Statistics[0].Grid == nil {
		return nil
	}
	return bound
}

// outsideBatch counts, for many questions in one statement, the rows that meet the conditions, and those of them that lie outside.
type outsideBatch struct {
	texts   []string
	outputs []string
	printer *sqlprint.Printer
}

func (b *outsideBatch) add(text string, q *algebra.BoundQuery) {
	if b.printer == nil {
		b.printer = sqlprint.NewRowPrinter()
	}
	m, where := q.Statistics[0], "true"
	for _, c := range []algebra.Expr{q.Where, m.Filter} {
		if c != nil {
			where += " AND (" + b.printer.Text(c) + ")"
		}
	}
	kind := "numeric"
	if scalar.IsFloat(algebra.CarrierOf(m.X)) {
		kind = "float8"
	}
	constant := func(v *big.Rat) string {
		if kind == "float8" {
			f, _ := v.Float64()
			return "'" + scalar.FormatFloat(f, 64) + "'::" + kind
		}
		return "'" + scalar.DecimalText(v) + "'::" + kind
	}
	// At the ends of the policy's bounds a grid begins with the first step within them.
	g, policy := m.Grid, algebra.BoundsOf(m.X)
	lo, hi := g.Value(g.Lo), g.Value(g.Hi)
	if new(big.Rat).Sub(lo, g.Step).Cmp(policy.Lo) < 0 {
		lo = scalar.MinRat(lo, policy.Lo)
	}
	if new(big.Rat).Add(hi, g.Step).Cmp(policy.Hi) > 0 {
		hi = scalar.MaxRat(hi, policy.Hi)
	}
	x := "(" + b.printer.Text(m.X) + ")::" + kind
	clamped := fmt.Sprintf("CASE WHEN %[1]s < %[2]s THEN %[2]s WHEN %[1]s > %[3]s THEN %[3]s ELSE %[1]s END", x, constant(policy.Lo),
		constant(policy.Hi))
	b.texts = append(b.texts, fmt.Sprintf("%s: %s to %s", text, g.Label(g.Lo), g.Label(g.Hi)))
	b.outputs = append(b.outputs, fmt.Sprintf("count(*) FILTER (WHERE %s)", where),
		fmt.Sprintf("count(*) FILTER (WHERE %s AND NOT %s BETWEEN %s AND %s)", where, clamped, constant(lo), constant(hi)))
}

// flush gives the number of questions of which there are rows.
func (b *outsideBatch) flush(t *testing.T, conn *pgx.Conn) (met int) {
	t.Helper()
	if len(b.texts) == 0 {
		return 0
	}
	counts := make([]int64, len(b.outputs))
	into := make([]any, len(counts))
	for i := range counts {
		into[i] = &counts[i]
	}
	sql := "SELECT " + strings.Join(b.outputs, ", ") + " FROM public.t"
	if err := conn.QueryRow(t.Context(), sql, b.printer.Args()...).Scan(into...); err != nil {
		t.Fatalf("%v\n%s", err, strings.Join(b.texts, "\n"))
	}
	for i, text := range b.texts {
		if counts[2*i] > 0 {
			met++
		}
		if out := counts[2*i+1]; out > 0 {
			t.Errorf("%d of %d rows lie outside: %s", out, counts[2*i], text)
		}
	}
	*b = outsideBatch{}
	return met
}
