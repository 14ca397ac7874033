package fit_test

import (
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"noisegate.example/internal/randomtest"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/fit"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/internal/sqlprint"
)

// factorRows are a logistic fit's rows as its statement computes them: the factors, and the target, -1 or 1, in the last place.
type factorRows [][]int64

// rowsOf runs the statement of a fit with its rows in place of their sums.
func rowsOf(t *testing.T, conn *pgx.Conn, p *fit.Plan) factorRows {
	t.Helper()
	s := p.Statement()
	from := strings.Index(s.SQL, "\nFROM ")
	columns := "r.e"
	for i := range s.Values {
		columns += ", r.k" + big.NewInt(int64(i)).String()
	}
	rows, err := conn.Query(t.Context(), "SELECT "+columns+s.SQL[from:], s.Args...)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) ([]int64, error) {
		values, err := row.Values()
		out := make([]int64, len(values))
		for i, v := range values {
			out[(i+len(values)-1)%len(values)] = v.(int64)
		}
		out[len(out)-1] /= -1 << 15 // at coefficients of 0 the probability is a half: 2¹⁵·(1-t) - 2¹⁵
		return out, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// sums are those of the statement at other coefficients, computed here.
func (rows factorRows) sums(coefficients []any) []*big.Int {
	totals := make([]int64, len(coefficients))
	for _, row := range rows {
		logit := int64(0)
		for i, c := range coefficients {
			logit += row[i] * c.(int64)
		}
		logit = max(-30<<40, min(30<<40, logit))
		residual := 1<<15 - row[len(row)-1]<<15 - int64(math.RoundToEven((1<<16)/(1+math.Exp(float64(logit)/(1<<40)))))
		for i := range totals {
			totals[i] += residual * row[i]
		}
	}
	out := make([]*big.Int, len(totals))
	for i, n := range totals {
		out[i] = big.NewInt(n)
	}
	return out
}

// coefficientsOf are the arguments of a statement that change from pass to pass.
func coefficientsOf(s sqlprint.Statement) (all []any) {
	for _, a := range s.Args {
		if _, changes := a.(int64); changes {
			all = append(all, a)
		}
	}
	return all
}

// gradientFit is a fit whose sums are computed here, with noise.
func gradientFit(t *testing.T, p *fit.Plan, s *mechanisms.Sampler, rows factorRows) *fit.Fitted {
	t.Helper()
	run := p.Start(s)
	for statement, more := run.Next(); more; statement, more = run.Next() {
		row := plan.ExactRow{}
		for _, n := range rows.sums(coefficientsOf(statement)) {
			row.Values = append(row.Values, mechanisms.Seal(n))
		}
		if err := run.Release(row); err != nil {
			t.Fatal(err)
		}
	}
	return finished(t, run)
}

// exactGradientFit is a fit whose sums are computed here, without noise.
func exactGradientFit(t *testing.T, p *fit.Plan, rows factorRows) *fit.Fitted {
	t.Helper()
	run := p.Start(nil)
	for statement, more := run.Next(); more; statement, more = run.Next() {
		if err := run.Advance(rows.sums(coefficientsOf(statement))); err != nil {
			t.Fatal(err)
		}
	}
	return finished(t, run)
}

// identified is a model in the terms that rows decide: the columns of a one-hot feature add up to the intercept, which therefore takes the
// first of them, and the others are differences from that.
func identified(m *fit.Fitted, feature string) *fit.Fitted {
	out, first := &fit.Fitted{Intercept: m.Intercept}, math.NaN()
	for _, c := range m.Coefficients {
		switch {
		case !strings.HasPrefix(c.Name, feature+"="):
		case math.IsNaN(first):
			first = c.Value
			out.Intercept.Value += first
			continue
		default:
			c.Value -= first
		}
		out.Coefficients = append(out.Coefficients, c)
	}
	return out
}

// Without noise 180 gradients of Adult, of which more would be too much work, come to where scikit-learn does, in all that rows decide:
// coefficients to 1e-3, and the logarithm of anybody's odds to 1e-2. The sums are those of the statement (TestGradientsAreThoseOfTheLoss).
func TestGradientsWithoutNoise(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	db, all := fitPeople(t)
	fold(t, db, all, 0)
	p, err := fit.NewPlan(fit.Question{From: "people", Target: rich, Model: fit.Logistic, Features: thirteen()},
		rewritetest.ParseSnapshot(t, fitTables, fitPolicy), fit.Options{Passes: 180, Rho: mechanisms.RhoUnit, Confidence: 0.95})
	if err != nil {
		t.Fatal(err)
	}
	got := identified(exactGradientFit(t, p, rowsOf(t, db.Conn(t, db.DSN), p)), "marital_status")
	want := referenceModels(t)["rich"]
	want.near(t, "rich", got, 1e-3)
	people, theirs := newFrame(all), &fit.Fitted{Intercept: fit.Coefficient{Value: want.Intercept}}
	for name, value := range want.Coefficients {
		theirs.Coefficients = append(theirs.Coefficients, fit.Coefficient{Name: name, Value: value})
	}
	most, scikit := 0.0, people.predicted(theirs)
	for i, odds := range people.predicted(got) {
		most = max(most, math.Abs(odds-scikit[i]))
	}
	t.Logf("logarithms of odds differ by %.5f at most", most)
	if most > 1e-2 {
		t.Errorf("logarithms of odds differ by %.5f", most)
	}
}

// areaUnderCurve is the probability that somebody rich is predicted to be richer than somebody who is not.
func (f frame) areaUnderCurve(m *fit.Fitted) float64 {
	predicted := f.predicted(m)
	order := make([]int, len(predicted))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		switch {
		case predicted[a] < predicted[b]:
			return -1
		case predicted[a] > predicted[b]:
			return 1
		}
		return 0
	})
	above, poor, richer := 0.0, 0.0, 0.0
	for _, i := range order {
		if f[rich][i] == 1 {
			above += poor
			richer++
		} else {
			poor++
		}
	}
	return above / poor / richer
}

// What gradients buy on Adult, with noise that is the same in each run: each fifth is predicted by 4 fits to the others at
// each price. The statement's own sums are those that are computed here, at the point where a noisy walk ends.
func TestAccuracyOfGradients(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	db, all := fitPeople(t)
	conn, s := db.Conn(t, db.DSN), rewritetest.FixedSampler(t)
	right, area := map[float64][]float64{}, []float64{}
	for part := range randomtest.Part(2, folds) {
		rest := newFrame(fold(t, db, all, part))
		for _, epsilon := range []float64{1, 0.1} {
			p := newFitBy(t, fit.Auto, fit.Question{From: "people", Target: rich, Model: fit.Logistic, Features: thirteen()}, fitTables, fitPolicy,
				epsilon, 1e-6)
			rows := rowsOf(t, conn, p)
			for range 4 {
				fitted := gradientFit(t, p, s, rows)
				right[epsilon] = append(right[epsilon], rest.accuracy(fitted))
				if saysTooFew(fitted) {
					t.Errorf("ε %v: too few people", epsilon)
				}
				if epsilon == 1 {
					area = append(area, rest.areaUnderCurve(fitted))
				}
			}
		}
	}
	t.Logf("ε 1: %.4f (least %.4f), area %.4f; ε 0.1: %.4f (least %.4f)", mean(right[1]), slices.Min(right[1]), mean(area), mean(right[0.1]),
		slices.Min(right[0.1]))
	if mean(right[1]) < 0.830 || slices.Min(right[1]) < 0.827 || mean(area) < 0.882 || mean(right[0.1]) < 0.825 {
		t.Error("less than the bars: 0.830 (least 0.827), area 0.882, and 0.825 at ε 0.1")
	}
}

// The sums of the statement are, but for the rounding of exp, those of its formula, at any coefficients, also such as the text clamps.
func TestGradientsAreThoseOfTheLoss(t *testing.T) {
	db := fitPenguins(t)
	conn := db.Conn(t, db.DSN)
	p := newFitBy(t, fit.Gradient, fit.Question{From: "penguins", Target: "CASE WHEN body_mass_g > 4000 THEN 1 ELSE 0 END",
		Model:    fit.Logistic,
		Features: features("flipper_length_mm", "bill_length_mm")}, penguinTables, penguinPolicy, 1, 1e-5)
	rows := rowsOf(t, conn, p)
	run := p.Start(rewritetest.FixedSampler(t))
	for statement, more := run.Next(); more; statement, more = run.Next() {
		got, want := trueSums(t, conn, statement), rows.sums(coefficientsOf(statement))
		row := plan.ExactRow{}
		for i, n := range got {
			if off := new(big.Int).Sub(n, want[i]); off.CmpAbs(new(big.Int).Rsh(statement.Claim.PerGroup[i], 12)) > 0 {
				t.Errorf("column %d is %s, want %s", i, n, want[i])
			}
			row.Values = append(row.Values, mechanisms.Seal(n))
		}
		if err := run.Release(row); err != nil {
			t.Fatal(err)
		}
	}
}

// Where there are too few people for the price a fit by gradients says so: of some hundred penguins at ε 0.1. Of many people it does not
// (TestAccuracyOfGradients). The noise is the same in each run.
func TestGradientsOfFewPeople(t *testing.T) {
	db := fitPenguins(t)
	conn, s := db.Conn(t, db.DSN), rewritetest.FixedSampler(t)
	for _, epsilon := range []float64{0.1, 100} {
		few := epsilon < 1
		p := newFitBy(t, fit.Gradient, fit.Question{From: "penguins", Target: "CASE WHEN body_mass_g > 4000 THEN 1 ELSE 0 END",
			Model: fit.Logistic, Features: features("flipper_length_mm", "bill_length_mm")}, penguinTables, penguinPolicy, epsilon, 1e-5)
		rows, said := rowsOf(t, conn, p), 0
		const fits = 40
		for range fits {
			if saysTooFew(gradientFit(t, p, s, rows)) {
				said++
			}
		}
		t.Logf("ε %v: too few in %d of %d", epsilon, said, fits)
		if few && said < fits*9/10 || !few && said > 0 {
			t.Errorf("ε %v: too few in %d of %d", epsilon, said, fits)
		}
	}
}

// plainGradient is a pass as somebody writes it who may read the rows: the same sums in double precision, at some coefficients.
const plainGradient = `SELECT sum(r), sum(r * x1), sum(r * x2), sum(r * x3), sum(r * x4), sum(r * x5), sum(r * x6), sum(r * x7), sum(r * x8),
	sum(r * x9), sum(r * x10), sum(r * x11), sum(r * x12), sum(r * x13)
FROM (SELECT *, 1 / (1 + exp(-(0.1 + 0.2 * x1 + 0.3 * x2 + 0.1 * x3 + 0.2 * x4 + 0.3 * x5 + 0.1 * x6 + 0.2 * x7 + 0.3 * x8 + 0.1 * x9 +
		0.2 * x10 + 0.3 * x11 + 0.1 * x12 + 0.2 * x13))) - y AS r
	FROM (SELECT (age - 53.5) / 36.5::float8 AS x1, (education_num - 8.5) / 7.5::float8 AS x2, (hours_per_week - 50) / 49::float8 AS x3,
			ln(1 + capital_gain::float8) / 11.6 AS x4, ln(1 + capital_loss::float8) / 8.4 AS x5, (sex = 'Male')::int::float8 AS x6,
			(marital_status = 'Divorced')::int::float8 AS x7, (marital_status = 'Married-AF-spouse')::int::float8 AS x8,
			(marital_status = 'Married-civ-spouse')::int::float8 AS x9, (marital_status = 'Married-spouse-absent')::int::float8 AS x10,
			(marital_status = 'Never-married')::int::float8 AS x11, (marital_status = 'Separated')::int::float8 AS x12,
			(marital_status = 'Widowed')::int::float8 AS x13, (income = '>50K')::int::float8 AS y
		FROM people OFFSET 0) AS f OFFSET 0) AS g`

// BenchmarkGradients fits 13 features of all 32,561 people of Adult by 30 passes, beside 30 passes of plain SQL, and 30 plain sums of a
// column.
func BenchmarkGradients(b *testing.B) {
	db, all := fitPeople(b)
	fold(b, db, all, folds) // nobody is left out
	conn, s := db.Conn(b, db.DSN), rewritetest.FixedSampler(b)
	p := newFitBy(b, fit.Gradient, fit.Question{From: "people", Target: rich, Model: fit.Logistic, Features: thirteen()}, fitTables,
		fitPolicy, 1,
		1e-6)
	var fits, gradients, sums time.Duration
	plain := func(sql string) (took time.Duration) {
		began := time.Now()
		for range p.Passes() {
			rows, err := conn.Query(b.Context(), sql)
			if err != nil {
				b.Fatal(err)
			}
			for rows.Next() {
			}
			if err := rows.Err(); err != nil {
				b.Fatal(err)
			}
		}
		return time.Since(began)
	}
	for b.Loop() {
		began := time.Now()
		walkOf(b, conn, p, s)
		fits += time.Since(began)
		b.StopTimer()
		gradients += plain(plainGradient)
		sums += plain("SELECT sum(hours_per_week::float8) FROM people")
		b.StartTimer()
	}
	b.ReportMetric(float64(fits)/float64(gradients), "x-plain-gradients")
	b.ReportMetric(float64(fits)/float64(sums), "x-plain-sums")
}
