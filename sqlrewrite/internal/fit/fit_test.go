package fit_test

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"

	"noisegate.example/budget/accounting"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/pgtest"
	"noisegate.example/internal/testfiles"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/fit"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/internal/sqlprint"
	"noisegate.example/sqlrewrite/proofs/gen"
)

const (
	fitTables = `people
  person_id integer not null unique
  age integer not null
  education_num integer not null
  hours_per_week integer not null
  capital_gain integer not null
  capital_loss integer not null
  sex text not null
  marital_status text not null
  workclass text
  fnlwgt integer
  income text not null`
	fitPolicy = `version: 1
dataset: test
neighbours: add-remove
tables:
  people:
    unit: {row: person_id}
    columns:
      age:            {bounds: [17, 90]}
      education_num:  {bounds: [1, 16]}
      hours_per_week: {bounds: [1, 99]}
      capital_gain:   {bounds: [0, 99999]}
      capital_loss:   {bounds: [0, 4356]}
      sex:            {domain: [Female, Male]}
      marital_status: {domain: [Divorced, Married-AF-spouse, Married-civ-spouse, Married-spouse-absent, Never-married, Separated, Widowed]}
      workclass:      {keys: private}
      income:         {domain: ["<=50K", ">50K"]}
budgets:
  - {dataset: true, form: approx, epsilon: 100, delta: 1e-5}
`
	penguinTables = `penguins
  id integer not null unique
  flipper_length_mm integer
  bill_length_mm numeric
  body_mass_g integer`
	penguinPolicy = `version: 1
dataset: test
neighbours: add-remove
tables:
  penguins:
    unit: {row: id}
    columns:
      flipper_length_mm: {bounds: [170, 235]}
      bill_length_mm:    {bounds: [30, 60], step: 0.1}
      body_mass_g:       {bounds: [2500, 6500]}
budgets:
  - {dataset: true, form: approx, epsilon: 100, delta: 1e-4}
`
	rich    = "CASE WHEN income = '>50K' THEN 1 ELSE 0 END"
	male    = "CASE WHEN sex = 'Male' THEN 1 ELSE 0 END"
	married = "CASE WHEN marital_status = 'Married-civ-spouse' THEN 1 ELSE 0 END"
)

// folds are how many parts the people of Adult are divided into: each is predicted by fits to the others.
const folds = 5

// fitPeople is a database with the 32,561 people of Adult's first file in everybody, and none in people.
func fitPeople(t testing.TB) (*pgtest.Database, []map[string]string) {
	t.Helper()
	path := testfiles.Fetched(t, "data/adult/adult.csv")
	db := pgtest.New(t)
	const columns = `(person_id int NOT NULL UNIQUE, age int NOT NULL, workclass text, fnlwgt int, education text,
		education_num int NOT NULL, marital_status text NOT NULL, occupation text, relationship text, race text, sex text NOT NULL,
		capital_gain int NOT NULL, capital_loss int NOT NULL, hours_per_week int NOT NULL, native_country text, income text NOT NULL)`
	db.Exec(t, "CREATE TABLE public.people "+columns+"; CREATE TABLE public.everybody "+columns)
	db.LoadCSV(t, "public.everybody", path)
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var all []map[string]string
	for _, row := range rows[1:] {
		one := make(map[string]string)
		for i, name := range rows[0] {
			one[name] = row[i]
		}
		all = append(all, one)
	}
	if len(all) != 32_561 {
		t.Fatalf("%d people", len(all))
	}
	return db, all
}

// fold puts all people but those of one part into people, and gives these.
func fold(t testing.TB, db *pgtest.Database, all []map[string]string, part int) (rest []map[string]string) {
	t.Helper()
	db.Exec(t, fmt.Sprintf(`TRUNCATE public.people; INSERT INTO public.people SELECT * FROM public.everybody WHERE person_id %% %d <> %d;
		ANALYZE public.people`, folds, part))
	for _, row := range all {
		if id, _ := strconv.Atoi(row["person_id"]); id%folds == part {
			rest = append(rest, row)
		}
	}
	return rest
}

func fitPenguins(t *testing.T) *pgtest.Database {
	t.Helper()
	path := testfiles.Fetched(t, "data/penguins/penguins.csv")
	db := pgtest.New(t)
	db.Exec(t, `CREATE TABLE public.penguins (id int GENERATED ALWAYS AS IDENTITY UNIQUE, species text, island text, bill_length_mm numeric,
		bill_depth_mm numeric, flipper_length_mm int, body_mass_g int, sex text)`)
	db.LoadCSV(t, "public.penguins", path)
	return db
}

// features writes out features without options.
func features(exprs ...string) []fit.Feature {
	var all []fit.Feature
	for _, e := range exprs {
		all = append(all, fit.Feature{Expr: e})
	}
	return all
}

// thirteen are the features of learn's measurements: with the intercept and the status as one, K² is 8.
func thirteen() []fit.Feature {
	return append(features("age", "education_num", "hours_per_week", "ln(1 + capital_gain)", "ln(1 + capital_loss)", male),
		fit.Feature{Expr: "marital_status", OneHot: true})
}

func newFit(t testing.TB, q fit.Question, tables, policy string, epsilon, delta float64) *fit.Plan {
	t.Helper()
	return newFitBy(t, fit.Moments, q, tables, policy, epsilon, delta)
}

func newFitBy(t testing.TB, method fit.Method, q fit.Question, tables, policy string, epsilon, delta float64) *fit.Plan {
	t.Helper()
	o := fit.Options{Method: method, Passes: 30, Rho: rhoFor(epsilon, delta), Confidence: 0.95}
	p, err := fit.NewPlan(q, rewritetest.ParseSnapshot(t, tables, policy), o)
	if err != nil {
		t.Fatal(err, errors.Unwrap(err))
	}
	return p
}

// rhoFor is the ρ that an ε is turned into.
func rhoFor(epsilon, delta float64) mechanisms.PicoRho {
	return accounting.RhoFor(mechanisms.PicoEpsilon(epsilon*float64(mechanisms.EpsilonUnit)),
		mechanisms.AttoDelta(delta*float64(mechanisms.DeltaUnit)))
}

// trueSums are what a fit's statement gives, in clear.
func trueSums(t testing.TB, conn *pgx.Conn, s sqlprint.Statement) []*big.Int {
	t.Helper()
	table, err := gen.ExactRows(t, conn, s)
	if err != nil {
		t.Fatal(err, s.SQL)
	}
	for _, sums := range table {
		return sums
	}
	t.Fatal("no row")
	return nil
}

// noisyFit is a release of true sums, by moments.
func noisyFit(t *testing.T, p *fit.Plan, s *mechanisms.Sampler, sums []*big.Int) *fit.Fitted {
	t.Helper()
	row := plan.ExactRow{}
	for _, n := range sums {
		row.Values = append(row.Values, mechanisms.Seal(n))
	}
	run := p.Start(s)
	if err := run.Release(row); err != nil {
		t.Fatal(err)
	}
	return finished(t, run)
}

// exactFit is the model of true sums, without noise.
func exactFit(t *testing.T, p *fit.Plan, sums []*big.Int) *fit.Fitted {
	t.Helper()
	run := p.Start(nil)
	if err := run.Advance(sums); err != nil {
		t.Fatal(err)
	}
	return finished(t, run)
}

func finished(t testing.TB, run *fit.Run) *fit.Fitted {
	t.Helper()
	if _, more := run.Next(); more {
		t.Fatal("more passes")
	}
	fitted, err := run.Fitted()
	if err != nil {
		t.Fatal(err)
	}
	return fitted
}

// frame are rows by feature, of the texts that these tests use.
type frame map[string][]float64

func newFrame(rows []map[string]string) frame {
	f := frame{}
	one := func(name string, of func(row map[string]string) float64) {
		for _, row := range rows {
			f[name] = append(f[name], of(row))
		}
	}
	is := func(column, value string) func(map[string]string) float64 {
		return func(row map[string]string) float64 {
			if row[column] == value {
				return 1
			}
			return 0
		}
	}
	for column := range rows[0] {
		number := func(row map[string]string) float64 { x, _ := strconv.ParseFloat(row[column], 64); return x }
		one(column, number)
		one("ln(1 + "+column+")", func(row map[string]string) float64 { return math.Log1p(number(row)) })
	}
	one(rich, is("income", ">50K"))
	one(male, is("sex", "Male"))
	one(married, is("marital_status", "Married-civ-spouse"))
	for _, row := range rows {
		if name := "marital_status=" + row["marital_status"]; f[name] == nil {
			one(name, is("marital_status", row["marital_status"]))
		}
	}
	return f
}

func (f frame) predicted(m *fit.Fitted) []float64 {
	sums := make([]float64, len(f[rich]))
	for i := range sums {
		sums[i] = m.Intercept.Value
	}
	for _, c := range m.Coefficients {
		for i, x := range f[c.Name] {
			sums[i] += c.Value * x
		}
	}
	return sums
}

// determination is R² of a model.
func (f frame) determination(m *fit.Fitted, target string) float64 {
	centre, total, left := mean(f[target]), 0.0, 0.0
	for i, p := range f.predicted(m) {
		y := f[target][i]
		total += (y - centre) * (y - centre)
		left += (y - p) * (y - p)
	}
	return 1 - left/total
}

func (f frame) accuracy(m *fit.Fitted) float64 {
	right := 0.0
	for i, p := range f.predicted(m) {
		if (p > 0) == (f[rich][i] == 1) {
			right++
		}
	}
	return right / float64(len(f[rich]))
}

func mean(list []float64) float64 {
	sum := 0.0
	for _, x := range list {
		sum += x
	}
	return sum / float64(len(list))
}

func median(list []float64) float64 {
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}

// reference is a model of scikit-learn.
type reference struct {
	Intercept    float64
	Coefficients map[string]float64
}

// referenceModels are those of internal/fit/testdata.
func referenceModels(t *testing.T) (models map[string]reference) {
	t.Helper()
	text, err := os.ReadFile("testdata/reference.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &models); err != nil {
		t.Fatal(err)
	}
	return models
}

// near compares a model with that of scikit-learn.
func (want reference) near(t *testing.T, name string, got *fit.Fitted, within float64) {
	t.Helper()
	if len(want.Coefficients) == 0 || len(want.Coefficients) != len(got.Coefficients) {
		t.Fatalf("%s: %d coefficients, want %v", name, len(got.Coefficients), want)
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > within*math.Max(1, math.Abs(want)) {
			t.Errorf("%s: %s is %.12g, want %.12g", name, what, got, want)
		}
	}
	near("the intercept", got.Intercept.Value, want.Intercept)
	for _, c := range got.Coefficients {
		near(c.Name, c.Value, want.Coefficients[c.Name])
	}
}

// Without noise fits are scikit-learn's: linear ones to 1e-9, a logistic one by 400 gradients to 1e-3.
func TestFitWithoutNoise(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	models := referenceModels(t)
	check := func(name string, p *fit.Plan, conn *pgx.Conn) {
		t.Helper()
		within := 1e-9
		if p.Method() == fit.Gradient {
			within = 1e-3
		}
		models[name].near(t, name, walkOf(t, conn, p, nil), within)
	}
	db, all := fitPeople(t)
	fold(t, db, all, 0)
	people := db.Conn(t, db.DSN)
	check("hours", newFit(t, fit.Question{From: "people", Target: "hours_per_week", Model: fit.Linear,
		Features: features("age", "education_num", male, rich, married)}, fitTables, fitPolicy, 1, 1e-6), people)
	check("hours of adults over 30", newFit(t, fit.Question{From: "people", Where: "age > 30", Target: "hours_per_week", Model: fit.Linear,
		Features: features("age", "education_num")}, fitTables, fitPolicy, 1, 1e-6), people)
	birds := fitPenguins(t)
	penguins := birds.Conn(t, birds.DSN)
	check("mass", newFit(t, fit.Question{From: "penguins", Target: "body_mass_g", Model: fit.Linear,
		Features: features("flipper_length_mm")}, penguinTables, penguinPolicy, 1, 1e-5), penguins)
	check("mass of two", newFit(t, fit.Question{From: "penguins", Target: "body_mass_g", Model: fit.Linear,
		Features: features("flipper_length_mm", "bill_length_mm")}, penguinTables, penguinPolicy, 1, 1e-5), penguins)
	heavy, err := fit.NewPlan(fit.Question{From: "penguins", Target: "CASE WHEN body_mass_g > 4000 THEN 1 ELSE 0 END", Model: fit.Logistic,
		Features: features("flipper_length_mm", "bill_length_mm")}, rewritetest.ParseSnapshot(t, penguinTables, penguinPolicy),
		fit.Options{Passes: 400, Rho: mechanisms.RhoUnit, Confidence: 0.95})
	if err != nil {
		t.Fatal(err)
	}
	check("heavy", heavy, penguins)
}

// What a price buys on Adult, with noise that is the same in each run: each fifth is predicted by 40 fits to the others of hours
// worked, and by 4 classifications by second moments.
func TestAccuracyOfFits(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	db, all := fitPeople(t)
	conn, s := db.Conn(t, db.DSN), rewritetest.FixedSampler(t)
	hours := map[float64][]float64{}
	var right []float64
	for part := range folds {
		rest := newFrame(fold(t, db, all, part))
		for _, epsilon := range []float64{1, 0.1} {
			p := newFit(t, fit.Question{From: "people", Target: "hours_per_week", Model: fit.Linear,
				Features: features("age", "education_num", male, rich, married)}, fitTables, fitPolicy, epsilon, 1e-6)
			sums := trueSums(t, conn, p.Statement())
			for range 40 {
				hours[epsilon] = append(hours[epsilon], rest.determination(noisyFit(t, p, s, sums), "hours_per_week"))
			}
		}
		p := newFit(t, fit.Question{From: "people", Target: rich, Model: fit.Logistic, Features: thirteen()}, fitTables, fitPolicy, 1, 1e-6)
		sums := trueSums(t, conn, p.Statement())
		for range 4 {
			right = append(right, rest.accuracy(noisyFit(t, p, s, sums)))
		}
	}
	for epsilon, least := range map[float64]float64{1: 0.095, 0.1: 0.080} {
		t.Logf("hours, ε %v: R² %.4f (least %.4f)", epsilon, median(hours[epsilon]), slices.Min(hours[epsilon]))
		if median(hours[epsilon]) < least {
			t.Errorf("hours, ε %v: R² %.4f, want %v", epsilon, median(hours[epsilon]), least)
		}
	}
	t.Logf("classification by moments: %.4f (least %.4f)", mean(right), slices.Min(right))
	if mean(right) < 0.822 {
		t.Errorf("classification by moments: %.4f, want 0.822", mean(right))
	}
}

func saysTooFew(m *fit.Fitted) bool {
	return slices.ContainsFunc(m.Notes, func(n algebra.Note) bool { return n.Code == "too-few-people" })
}

// Of about 266 penguins a cheap fit says that they are too few; a dearer one is of use: over nine ways to leave two ninths out, the R² on
// these is 0.948 of that without noise, which is the 0.77 of 0.8125 that other splits were measured with.
func TestAccuracyOfFitsToFew(t *testing.T) {
	db := fitPenguins(t)
	db.Exec(t, "CREATE TABLE public.everybody AS SELECT * FROM public.penguins WHERE body_mass_g IS NOT NULL")
	conn, s := db.Conn(t, db.DSN), rewritetest.FixedSampler(t)
	rows := penguinRows(t)
	const fits = 20
	for _, epsilon := range []float64{1, 4} {
		weak, all := 0, 0
		var parts []float64 // of R² without noise
		for part := range 9 {
			out := func(id int) bool { return id%9 == part || id%9 == (part+4)%9 }
			db.Exec(t, fmt.Sprintf(`TRUNCATE public.penguins; INSERT INTO public.penguins OVERRIDING SYSTEM VALUE
				SELECT * FROM public.everybody WHERE id %% 9 NOT IN (%d, %d)`, part, (part+4)%9))
			var rest []map[string]string
			for _, row := range rows {
				if id, _ := strconv.Atoi(row["id"]); out(id) {
					rest = append(rest, row)
				}
			}
			others := newFrame(rest)
			p := newFit(t, fit.Question{From: "penguins", Target: "body_mass_g", Model: fit.Linear, Features: features("flipper_length_mm")},
				penguinTables, penguinPolicy, epsilon, 1e-5)
			sums := trueSums(t, conn, p.Statement())
			exact := exactFit(t, p, sums)
			for range fits {
				all++
				fitted := noisyFit(t, p, s, sums)
				if saysTooFew(fitted) {
					weak++
				}
				parts = append(parts, others.determination(fitted, "body_mass_g")/others.determination(exact, "body_mass_g"))
			}
		}
		t.Logf("penguins, ε %v: R² %.3f of that without noise (least %.3f), too few in %d of %d", epsilon, median(parts), slices.Min(parts),
			weak, all)
		if epsilon == 4 && median(parts) < 0.948 || epsilon == 1 && weak < all*19/20 {
			t.Errorf("penguins, ε %v: R² %.3f of that without noise, too few in %d of %d", epsilon, median(parts), weak, all)
		}
	}
}

func penguinRows(t *testing.T) (all []map[string]string) {
	t.Helper()
	file, err := os.Open(testfiles.Fetched(t, "data/penguins/penguins.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range rows[1:] {
		if row[5] != "" {
			all = append(all, map[string]string{"id": strconv.Itoa(i + 1), "flipper_length_mm": row[4], "body_mass_g": row[5]})
		}
	}
	return all
}

// Intervals hold the coefficients without noise as often as they say: 400 fits, of each coefficient below the level by at most 5 standard
// errors.
func TestIntervalsOfFits(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	db, all := fitPeople(t)
	fold(t, db, all, 0)
	conn := db.Conn(t, db.DSN)
	p := newFit(t, fit.Question{From: "people", Target: "hours_per_week", Model: fit.Linear,
		Features: features("age", "education_num", male)}, fitTables, fitPolicy, 1, 1e-6)
	sums := trueSums(t, conn, p.Statement())
	want := exactFit(t, p, sums)
	const fits = 400
	held := make([]int, len(want.Coefficients)+1)
	s := rewritetest.FixedSampler(t)
	for range fits {
		got := noisyFit(t, p, s, sums)
		for i, c := range append([]fit.Coefficient{got.Intercept}, got.Coefficients...) {
			true0 := append([]fit.Coefficient{want.Intercept}, want.Coefficients...)[i].Value
			if c.Interval == nil {
				t.Fatal("no interval")
			}
			if c.Interval[0] <= true0 && true0 <= c.Interval[1] {
				held[i]++
			}
		}
	}
	t.Log(held)
	least := fits*0.95 - 5*math.Sqrt(fits*0.95*0.05)
	for i, n := range held {
		if float64(n) < least {
			t.Errorf("coefficient %d: %d of %d intervals hold", i, n, fits)
		}
	}
}

// What is no regression is refused, with a code of its own or that of a query over the same expressions.
func TestFitRefusals(t *testing.T) {
	snapshot := rewritetest.ParseSnapshot(t, fitTables, fitPolicy)
	fine := func() fit.Question {
		return fit.Question{From: "people", Target: "hours_per_week", Model: fit.Linear, Features: features("age")}
	}
	if _, err := fit.NewPlan(fine(), snapshot, fit.Options{Rho: mechanisms.RhoUnit, Confidence: 0.95}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*fit.Question)
		code   fault.Code
	}{
		"no table":                {func(q *fit.Question) { q.From = "people WHERE age > 3" }, fault.CodeFit},
		"a group":                 {func(q *fit.Question) { q.From = "people GROUP BY sex" }, fault.CodeFit},
		"an unknown table":        {func(q *fit.Question) { q.From = "persons" }, fault.CodeUnknownTable},
		"two queries":             {func(q *fit.Question) { q.Where = "true) UNION SELECT (1" }, fault.CodeSyntax},
		"a condition with more":   {func(q *fit.Question) { q.Where = "age > 3 GROUP BY sex" }, fault.CodeFit},
		"a unit picked":           {func(q *fit.Question) { q.Where = "person_id = 7" }, fault.CodeUnitColumn},
		"two expressions":         {func(q *fit.Question) { q.Target = "age, sex" }, fault.CodeFit},
		"an aggregate":            {func(q *fit.Question) { q.Features = features("avg(age)") }, fault.CodeUnsupported},
		"a text":                  {func(q *fit.Question) { q.Features = features("sex") }, fault.CodeTypeMismatch},
		"no bounds":               {func(q *fit.Question) { q.Features = features("fnlwgt") }, fault.CodeMissingBounds},
		"one value":               {func(q *fit.Question) { q.Features = features("0 * age") }, fault.CodeFit},
		"twice":                   {func(q *fit.Question) { q.Features = features("age", " AGE") }, fault.CodeFit},
		"the target":              {func(q *fit.Question) { q.Features = features("hours_per_week") }, fault.CodeFit},
		"private keys":            {func(q *fit.Question) { q.Features = []fit.Feature{{Expr: "workclass", OneHot: true}} }, fault.CodeFit},
		"numbers of a wide range": {func(q *fit.Question) { q.Features = []fit.Feature{{Expr: "capital_gain", OneHot: true}} }, fault.CodeFit},
		"a number to classify":    {func(q *fit.Question) { q.Model = fit.Logistic }, fault.CodeFit},
		"too many features": {func(q *fit.Question) {
			for i := range 65 {
				q.Features = append(q.Features, features("age + "+strconv.Itoa(i+1)+" * education_num")...)
			}
		}, fault.CodeFit},
	} {
		q := fine()
		c.change(&q)
		_, err := fit.NewPlan(q, snapshot, fit.Options{Rho: mechanisms.RhoUnit, Confidence: 0.95})
		var refusal *fault.Error
		if fault.CodeOf(err) != c.code {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		} else if errors.As(err, &refusal) && !refusal.Pos.IsZero() {
			t.Errorf("%s: a place in a text that nobody wrote", name)
		}
	}
}

// walkOf runs all passes of a fit by gradients, each proven as the gateway has it; without a sampler there is no noise.
func walkOf(t testing.TB, conn *pgx.Conn, p *fit.Plan, s *mechanisms.Sampler) *fit.Fitted {
	t.Helper()
	run, proofs := p.Start(s), new(sqlprint.Proofs)
	for statement, more := run.Next(); more; statement, more = run.Next() {
		if err := statement.Prove(proofs); err != nil {
			t.Fatal(err, errors.Unwrap(err))
		}
		sums := trueSums(t, conn, statement)
		var err error
		if s == nil {
			err = run.Advance(sums)
		} else {
			row := plan.ExactRow{}
			for _, n := range sums {
				row.Values = append(row.Values, mechanisms.Seal(n))
			}
			err = run.Release(row)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return finished(t, run)
}
