package answer_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"noisegate.example/catalog"
	"noisegate.example/internal/pgtest"
	"noisegate.example/internal/randomtest"
	"noisegate.example/internal/stattest"
	"noisegate.example/internal/testfiles"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/answer"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/proofs/gen"
)

const (
	eventTables = `events
  event_id integer not null unique
  uid      integer not null
  g2       integer not null
  g40      integer not null
  value    integer not null`
	eventPolicy = `version: 1
dataset: test
neighbours: add-remove
tables:
  events:
    unit: {column: uid}
    max_rows: 20
    max_rows_total: 80
    columns:
      g2:    {domain: [0, 1]}
      g40:   {domain: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39]}
      value: {bounds: [0, 100]}
budgets:
  - {dataset: true, form: approx, epsilon: 100, delta: 1e-6}
`
)

// events is a database with events of ../shared/data: 20,000 people with 1 to 198 rows.
func events(t *testing.T) *pgx.Conn {
	t.Helper()
	packed, err := os.Open(testfiles.Fetched(t, "data/events/events.csv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	plain, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(plain)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "events.csv")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	db := pgtest.New(t)
	db.Exec(t, "CREATE TABLE public.events (event_id int NOT NULL UNIQUE, uid int NOT NULL, g2 int NOT NULL, g40 int NOT NULL, value int "+
		"NOT NULL)")
	db.LoadCSV(t, "public.events", path)
	return db.Conn(t, db.DSN)
}

// rootMeanSquare is the error of the last column of an answer over its groups, at most: what contribution bounding leaves out, which is
// computed from the statement's true integers, and the variance of the noise. Nothing is drawn.
func rootMeanSquare(t *testing.T, conn *pgx.Conn, p *plan.Plan, sql string) float64 {
	t.Helper()
	got, want := gen.NoiselessAnswer(t, conn, p), gen.PlainAnswer(t, conn, sql)
	if len(got.Rows) != len(want.Rows) {
		t.Fatalf("%s: %d groups, of %d", sql, len(got.Rows), len(want.Rows))
	}
	squares := 0.0
	for i, row := range want.Rows {
		last := len(row) - 1
		if strings.Join(row[:last], "\x00") != strings.Join(got.Rows[i][:last], "\x00") {
			t.Fatalf("%s: group %v instead of %v", sql, got.Rows[i], row)
		}
		off := new(big.Rat).Sub(rewritetest.Number(t, got.Rows[i][last]), rewritetest.Number(t, row[last]))
		f, _ := off.Float64()
		squares += f * f
	}
	r := p.Releases[len(p.Releases)-1]
	unit, _ := r.Unit.Float64()
	variance := 0.0
	if parameters := r.Law().Parameters(); parameters.Variance != "" {
		variance, _ = rewritetest.Number(t, parameters.Variance).Float64()
	} else {
		scale, _ := rewritetest.Number(t, parameters.Scale).Float64()
		variance = 2 * scale * scale // of discrete Laplace noise a little less
	}
	return math.Sqrt(squares/float64(len(want.Rows)) + variance*unit*unit)
}

const (
	adultTables = `people
  person_id      integer not null unique
  native_country text`
	adultPolicy = `version: 1
dataset: test
neighbours: add-remove
tables:
  people:
    unit: {row: person_id}
    columns:
      native_country: {keys: private}
budgets:
  - {dataset: true, form: approx, epsilon: 100, delta: 1e-5}
`
)

// adult is a database with the 48,842 people of ../shared/data.
func adult(t *testing.T) *pgx.Conn {
	t.Helper()
	path := testfiles.FetchedOr(t, "data/adult/adult.csv")
	db := pgtest.New(t)
	db.Exec(t, `CREATE TABLE public.people (person_id int NOT NULL UNIQUE, age int, workclass text, fnlwgt int, education text,
		education_num int, marital_status text, occupation text, relationship text, race text, sex text, capital_gain int, capital_loss int, hours_per_week int,
		native_country text, income text)`)
	db.LoadCSV(t, "public.people", path)
	return db.Conn(t, db.DSN)
}

// What (ε, δ) buys of the counts of private keys: 200 answers to the same statement, with noise that is the same in each run.
func TestAccuracyOfPrivateKeys(t *testing.T) {
	t.Parallel()
	const sql, answers = "SELECT native_country, count(*) FROM people GROUP BY native_country", 200
	conn := adult(t)
	p, err := pipeline.Rewrite(sql, rewritetest.ParseSnapshot(t, adultTables, adultPolicy), plan.Options{Epsilon: mechanisms.EpsilonUnit,
		Delta: mechanisms.DeltaUnit / 1_000_000, Mechanism: plan.MechanismAuto, Currency: catalog.Approx, Confidence: 0.95})
	if err != nil {
		t.Fatal(err)
	}
	if loss := p.Loss(); loss.Epsilon != mechanisms.EpsilonUnit || loss.Delta != mechanisms.DeltaUnit/1_000_000 {
		t.Fatalf("charged %+v", loss)
	}
	truth := make(map[string]*big.Rat)
	for _, row := range gen.PlainAnswer(t, conn, sql).Rows {
		truth[row[0]] = rewritetest.Number(t, row[1])
	}
	exact := rewritetest.Sealed(t, conn, p.Statements(&plan.Draws{}))
	var shown, held, squares float64
	s := rewritetest.FixedSampler(t)
	for range answers {
		a := rewritetest.AnswerFrom(t, s, p, exact...)
		for i, row := range a.Rows {
			n := truth[gen.NullText(row[0])]
			off, _ := new(big.Rat).Sub(rewritetest.Number(t, row[1].Text), n).Float64()
			squares += off * off
			shown++
			if in := a.Intervals[i][1]; rewritetest.Number(t, in.Lo).Cmp(n) <= 0 && n.Cmp(rewritetest.Number(t, in.Hi)) <= 0 {
				held++
			}
		}
	}
	off := math.Sqrt(squares / shown)
	t.Logf("root mean square error %.2f over %.1f of %d groups, %.1f %% of intervals hold", off, shown/answers, len(truth), 100*held/shown)
	if off > 1.6 || shown < 36*answers || held < 0.95*shown || len(truth) != 42 {
		t.Errorf("root mean square error %.2f over %.1f of %d groups, %.1f %% of intervals hold", off, shown/answers, len(truth), 100*held/shown)
	}
}

// What a price buys on a table with many rows a person, bias included.
func TestAccuracyOfEvents(t *testing.T) {
	conn := events(t)
	snapshot := rewritetest.ParseSnapshot(t, eventTables, eventPolicy)
	for _, test := range []struct {
		sql     string
		epsilon mechanisms.PicoEpsilon
		total   int64 // max_rows_total
		most    float64
	}{
		{"SELECT sum(value) FROM events", mechanisms.EpsilonUnit, 0, 8000},
		{"SELECT g40, count(*) FROM events GROUP BY g40 ORDER BY g40", mechanisms.EpsilonUnit / 10, 28, 640},
	} {
		p, err := pipeline.Rewrite(test.sql, snapshot, plan.Options{Epsilon: test.epsilon, MaxTotal: test.total, Mechanism: plan.MechanismAuto,
			Currency: catalog.Approx, Confidence: 0.95})
		if err != nil {
			t.Fatal(err)
		}
		off := rootMeanSquare(t, conn, p, test.sql)
		t.Logf("%s: root mean square error %.0f", test.sql, off)
		if off > test.most {
			t.Errorf("%s: root mean square error %.0f, at most %.0f", test.sql, off, test.most)
		}
	}
}

const (
	rentalTables = `rental
  rental_id    integer not null unique
  rental_date  timestamptz not null
  inventory_id integer not null
  customer_id  integer not null
inventory
  inventory_id integer not null unique
  film_id      integer not null
film_category
  film_id     integer not null
  category_id integer not null
  equal film_id 3
category
  category_id integer not null unique
  name        text not null
  values name Action Animation Children Classics Comedy Documentary Drama Family Foreign Games Horror Music New Sci-Fi Sports Travel`
	rentalPolicy = `version: 1
dataset: test
neighbours: add-remove
tables:
  rental:        {unit: {column: customer_id}, %s}
  inventory:     {public: true}
  film_category: {public: true}
  category:      {public: true}
budgets:
  - {dataset: true, form: approx, epsilon: 100, delta: 1e-6}
`
)

const (
	momentTables = "visits\n  visit_id integer not null unique\n  season integer not null\n  x integer not null\n  y integer not null\n"
	momentPolicy = `version: 1
dataset: test
neighbours: add-remove
tables:
  visits: {unit: {row: visit_id}, columns: {season: {domain: [1, 2, 3]}, x: {bounds: [0, 40]}, y: {bounds: [0, 100]}}}
budgets:
  - {dataset: true, form: approx, epsilon: 10, delta: 1e-6}
`
)

// Intervals of spreads, correlations and regressions over 400 rows a group hold as often as they say. The randomness is fixed.
func TestMomentIntervalsCover(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	const groups = 3
	answers := randomtest.Times(50, 500)
	db := pgtest.New(t)
	conn := db.Conn(t, db.DSN)
	rewritetest.MustExec(t, conn, `CREATE TABLE public.visits (visit_id int NOT NULL UNIQUE, season int NOT NULL, x int NOT NULL, y int NOT NULL);
		INSERT INTO public.visits SELECT i, i % 3 + 1, i * 7919 % 41, i * 7919 % 41 + i * 613 % 59 FROM generate_series(1, 1200) i`)
	for _, text := range []string{
		"var_pop(x)", "var_samp(y)", "stddev_pop(x)", "stddev(y)", "covar_pop(y, x)", "covar_samp(y, x)", "corr(y, x)", "regr_slope(y, x)",
		"regr_intercept(y, x)", "regr_r2(y, x)", "regr_sxx(y, x)", "regr_sxy(y, x)", "avg(x)",
	} {
		sql := "SELECT season, " + text + " FROM visits GROUP BY season"
		truth := truthOf(t, conn, sql)
		for _, level := range []mechanisms.Confidence{0.8, 0.95} {
			o := plan.Options{Epsilon: 4 * mechanisms.EpsilonUnit, Mechanism: plan.MechanismLaplace, Currency: catalog.Pure, Confidence: level}
			if level == 0.95 {
				o.Epsilon, o.Rho, o.Mechanism, o.Currency = 0, mechanisms.RhoUnit, plan.MechanismGaussian, catalog.ZCDP
			}
			p, err := pipeline.Rewrite(sql, rewritetest.ParseSnapshot(t, momentTables, momentPolicy), o)
			if err != nil {
				t.Fatal(err)
			}
			bars, _ := barsHeld(t, conn, p, answers, truth)
			if rewritetest.Beyond(answers*groups-bars, answers*groups, float64(level)) {
				t.Errorf("%s at %g: %d of %d intervals hold", text, float64(level), bars, answers*groups)
			}
		}
	}
}

// pagila is a database with Pagila of ../shared/data, which says the time in UTC as the reader does.
func pagila(t *testing.T) *pgx.Conn {
	t.Helper()
	db := pgtest.New(t)
	db.LoadDump(t, testfiles.FetchedOr(t, "data/pagila/pagila-schema.sql.gz"))
	db.LoadDump(t, testfiles.FetchedOr(t, "data/pagila/pagila-data.sql.gz"))
	conn := db.Conn(t, db.DSN)
	rewritetest.MustExec(t, conn, "SET TIME ZONE 'UTC'")
	return conn
}

// barsHeld draws answers to a plan, of which one choice of groups is made where some are left out, and counts the intervals of the second
// column that hold the truth of their group, and the answers in which all do. A group that is not in the truth has none. Noise is the same
// in each run.
func barsHeld(t *testing.T, conn *pgx.Conn, p *plan.Plan, answers int, truth map[string]*big.Rat) (bars, whole int) {
	t.Helper()
	s := rewritetest.FixedSampler(t)
	exact := rewritetest.Sealed(t, conn, p.Statements(p.Draw(s)))
	for range answers {
		a := rewritetest.AnswerFrom(t, s, p, exact...)
		before := bars
		for i, row := range a.Rows {
			n, in := truth[row[0].Text], a.Intervals[i][1]
			if n == nil {
				n = new(big.Rat)
			}
			if in == nil {
				t.Fatalf("%v has no interval", row)
			}
			if rewritetest.Number(t, in.Lo).Cmp(n) <= 0 && n.Cmp(rewritetest.Number(t, in.Hi)) <= 0 {
				bars++
			}
		}
		if bars == before+len(a.Rows) {
			whole++
		}
	}
	return bars, whole
}

// truthOf is the answer to an analyst's text by its first column.
func truthOf(t *testing.T, conn *pgx.Conn, sql string) map[string]*big.Rat {
	t.Helper()
	truth := make(map[string]*big.Rat)
	for _, row := range gen.PlainAnswer(t, conn, sql).Rows {
		truth[row[0]] = rewritetest.Number(t, row[1])
	}
	return truth
}

// Rentals by month on an account in ρ, at the charge of ε 0.5: nobody has more than 30 in a month, in more than six months, or more than 46
// in all, so that nothing is left out, and of the answers to 12 bars at 95 % as many hold as the level says, whatever the noise.
func TestBarsOfMonths(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	const months = 12
	answers := randomtest.Times(100, 200)
	const sql = "SELECT date_trunc('month', rental_date), count(*) FROM rental GROUP BY 1"
	conn := pagila(t)
	truth := truthOf(t, conn, sql)
	for _, test := range []struct {
		mechanism plan.MechanismChoice
		total     int64 // max_rows_total
		half      int64 // ± as docs/performance.md has it
	}{
		{plan.MechanismLaplace, 0, 1078}, {plan.MechanismAuto, 0, 312}, {plan.MechanismLaplace, 46, 276}, {plan.MechanismAuto, 46, 144},
	} {
		bounds := "max_rows: 30, max_groups: 6, columns: {rental_date: {bounds: [2022-01-01, 2022-12-31]}}"
		p, err := pipeline.Rewrite(sql, rewritetest.ParseSnapshot(t, rentalTables, fmt.Sprintf(rentalPolicy, bounds)), plan.Options{
			Epsilon: mechanisms.EpsilonUnit / 2, MaxTotal: test.total, Mechanism: test.mechanism, Currency: catalog.ZCDP, Confidence: 0.95})
		if err != nil {
			t.Fatal(err)
		}
		if half := answer.Columns(p)[1].HalfWidth; half.Cmp(big.NewRat(test.half, 1)) != 0 {
			t.Errorf("%s, %d in all: ± %s, not %d", test.mechanism, test.total, half.RatString(), test.half)
		}
		bars, _ := barsHeld(t, conn, p, answers, truth)
		_, most := stattest.Trials{Hits: int64(bars), Draws: int64(answers * months)}.Between(1e-9)
		t.Logf("%s, %d in all: %d of %d bars hold", test.mechanism, test.total, bars, answers*months)
		if most < 0.95 {
			t.Errorf("%s, %d in all: only %d of %d bars hold", test.mechanism, test.total, bars, answers*months)
		}
	}
}

// Rentals by film category at ε 2, each rental in up to three categories. Where a bound leaves out much, the column is marked as too
// low and no bar holds: with six of 16 categories a customer, and with 46 rows in all, which is as many as anybody has before the
// join. After it that is 107: then nothing is left out, and of 200 answers to 16 bars at 95 % at least 93 % hold, and all 16 together
// in at least 173 where that is asked for. The mark stands all the same: what a bound left out is not told. Noise is the same in each
// run.
func TestBarsOfCategories(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	const answers = 200
	const sql = "SELECT c.name, count(*) FROM rental r JOIN inventory i ON i.inventory_id = r.inventory_id " +
		"JOIN film_category f ON f.film_id = i.film_id JOIN category c ON c.category_id = f.category_id GROUP BY c.name"
	conn := pagila(t)
	truth := truthOf(t, conn, sql)
	o := plan.Options{Epsilon: 2 * mechanisms.EpsilonUnit, Mechanism: plan.MechanismAuto, Currency: catalog.Approx, Confidence: 0.95}
	held := func(bounds string, together bool, answers int) (bars, whole int) {
		o.Simultaneous = together
		p, err := pipeline.Rewrite(sql, rewritetest.ParseSnapshot(t, rentalTables, fmt.Sprintf(rentalPolicy, bounds)), o)
		if err != nil {
			t.Fatal(err)
		}
		if c := answer.Columns(p)[1]; c.Bias != plan.LowBias {
			t.Errorf("%s: %s is biased %q", bounds, c.Name, c.Bias)
		}
		return barsHeld(t, conn, p, answers, truth)
	}
	for _, bounds := range []string{"max_rows: 50, max_groups: 6", "max_rows_total: 46"} {
		if bars, _ := held(bounds, false, randomtest.Times(20, answers)); bars != 0 {
			t.Errorf("%s: %d bars hold, so that little is left out", bounds, bars)
		}
	}
	bars, _ := held("max_rows_total: 107", false, answers)
	_, whole := held("max_rows_total: 107", true, answers)
	t.Logf("%d of %d bars hold, and all together in %d of %d answers", bars, answers*len(truth), whole, answers)
	if all := answers * len(truth); 100*bars < 93*all || whole < 173 || len(truth) != 16 {
		t.Errorf("%d of %d bars hold, and all together in %d of %d answers", bars, all, whole, answers)
	}
}
