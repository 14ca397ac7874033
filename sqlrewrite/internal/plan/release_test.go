package plan_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/stattest"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/answer"
	"noisegate.example/sqlrewrite/internal/domain"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/internal/scalar"
	"noisegate.example/sqlrewrite/proofs/gen"
)

// Every aggregate of the table of functions has a value once it is released: a formula without
// a way to compute it would be planned, and paid for.
func TestEveryAggregateHasAValue(t *testing.T) {
	arguments := map[int][]string{0: nil, 1: {"age"}, 2: {"age", "100 - age"}}
	for _, f := range domain.Builtins {
		if f.Kind != domain.Aggregate {
			continue
		}
		plain, within := f.Form.Arguments(false)
		args, order := arguments[plain], ""
		if within > 0 {
			order = " WITHIN GROUP (ORDER BY age)"
			args = []string{"0.5"}[:plain]
		}
		call := f.Name + "(" + strings.Join(args, ", ") + ")" + order
		p := rewritetest.TownPlan(t, "SELECT "+call+" FROM people", rewritetest.Sharp())
		var row plan.ReleasedRow
		for range p.Releases {
			row.Noisy = append(row.Noisy, big.NewInt(50)) // rows, steps, or the place of a candidate
		}
		if v := p.ValueText(0, row); v.Null || v.Text == "" {
			t.Errorf("%s has no value", call)
		}
	}
}

// row is a row as pgexec would seal it: keys ("NULL" for NULL), then values.
func row(keys string, values ...int64) plan.ExactRow {
	var r plan.ExactRow
	for _, k := range strings.Fields(keys) {
		r.Keys = append(r.Keys, catalog.Key{Text: strings.TrimSuffix(k, "NULL"), Null: k == "NULL"})
	}
	for _, v := range values {
		r.Values = append(r.Values, mechanisms.SealInt64(v))
	}
	return r
}

func answerOf(t testing.TB, p *plan.Plan, rows ...plan.ExactRow) *answer.Answer {
	t.Helper()
	return rewritetest.AnswerFrom(t, rewritetest.FixedSampler(t), p, rows...)
}

func rowsText(a *answer.Answer) string {
	var lines []string
	for _, r := range a.Rows {
		var texts []string
		for _, k := range r {
			texts = append(texts, gen.NullText(k))
		}
		lines = append(lines, strings.Join(texts, " "))
	}
	return strings.Join(lines, ", ")
}

// A08: of a public domain every key appears, in the domain's order, and nothing else does, whatever the rows say.
//
// covers: A08
func TestPublicKeysAllAppear(t *testing.T) {
	p := rewritetest.TownPlan(t, "SELECT sex, grade, count(*) FROM people GROUP BY sex, grade", rewritetest.Sharp())
	a := answerOf(t, p, row("Male 2", 7), row("Unknown 2", 99), row("Male NULL", 3), row("Female 11", 5))
	want := "Female 2 0, Female 10 0, Female NULL 0, Male 2 7, Male 10 0, Male NULL 3"
	if got := rowsText(a); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A11: the order of an answer is a function of its keys, not of the order in which PostgreSQL found the groups.
//
// covers: A11
func TestOrderIsByKey(t *testing.T) {
	rows := []plan.ExactRow{row("b", 9000, 9000), row("NULL", 9000, 9000), row("a", 9000, 9000), row("B", 9000, 9000), row("é", 9000, 9000)}
	p := rewritetest.TownPlan(t, "SELECT country, count(*) FROM people GROUP BY country", rewritetest.Sharp())
	for range 20 {
		rand.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		if got := rowsText(answerOf(t, p, rows...)); got != "B 9000, a 9000, b 9000, é 9000, NULL 9000" {
			t.Fatal(got)
		}
	}
}

// A11: keys that are no numbers to us, NaN and those of more digits than any query may write, are in the order of their texts.
//
// covers: A11
func TestOrderOfHugeNumbers(t *testing.T) {
	keys := []string{"7", "1" + strings.Repeat("0", 900), "2" + strings.Repeat("0", 900), "NaN"}
	for range 20 {
		shuffled := slices.Clone(keys)
		rand.Shuffle(len(keys), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		slices.SortFunc(shuffled, func(a, b string) int {
			return scalar.CompareKey(catalog.Numeric, catalog.Key{Text: a}, catalog.Key{Text: b})
		})
		if !slices.Equal(shuffled, keys) {
			t.Fatalf("%.20q", shuffled)
		}
	}
}

func TestTimeKeysInOrder(t *testing.T) {
	want := []string{"-infinity", "0044-03-15 BC", "0001-01-01", "1999-12-31", "2024-02-29", "10000-01-01", "infinity", "NULL"}
	var rows []plan.ExactRow
	for _, i := range rand.Perm(len(want)) {
		r := plan.ExactRow{Keys: []catalog.Key{{Text: want[i]}}, Values: row("", 9000, 9000).Values}
		if want[i] == "NULL" {
			r.Keys[0] = catalog.Key{Null: true}
		}
		rows = append(rows, r)
	}
	a := answerOf(t, rewritetest.TownPlan(t, "SELECT born, count(*) FROM people GROUP BY born", rewritetest.Sharp()), rows...)
	var got []string
	for _, r := range a.Rows {
		got = append(got, gen.NullText(r[0]))
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

// A group of few units is not shown: at δ = 10^-12 one person is shown once in 10^12 answers. A group of many is.
//
// covers: A08
func TestPrivateKeysAreSelected(t *testing.T) {
	o := rewritetest.Sharp()
	o.Epsilon, o.Delta = mechanisms.EpsilonUnit, mechanisms.DeltaUnit/1_000_000_000_000
	p := rewritetest.TownPlan(t, "SELECT DISTINCT country FROM people", o)
	if got := rowsText(answerOf(t, p, row("one", 1), row("many", 1_000_000), row("none", 0))); got != "many" {
		t.Errorf("shown: %s", got)
	}
}

// Rows that are not of the statement's shape are an internal error that says nothing of them.
func TestShapeIsChecked(t *testing.T) {
	p := rewritetest.TownPlan(t, "SELECT sex, count(*) FROM people GROUP BY sex", rewritetest.Sharp())
	s := rewritetest.FixedSampler(t)
	for name, rows := range map[string][]plan.ExactRow{
		"twice": {row("Male", 1), row("Male", 2)}, "keys": {row("Male 2", 1)}, "values": {row("Male", 1, 2)}, "no values": {row("Male")},
	} {
		_, err := pipeline.Release(p, s, p.Draw(s), rewritetest.Streamed(rows))
		if fault.CodeOf(err) != fault.CodeInternal || strings.Contains(fmt.Sprint(err), "Male") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := pipeline.Release(p, s, &plan.Draws{}, rewritetest.Streamed([]plan.ExactRow{row("Male",
		1)})); fault.CodeOf(err) != fault.CodeInternal {
		t.Errorf("foreign draws: %v", err)
	}
}

// A07: the same aggregate twice is one release, so that both show one number and their difference is 0 for the price of one.
//
// covers: A07
func TestEqualAggregatesAreOneRelease(t *testing.T) {
	o := rewritetest.Sharp()
	o.Epsilon = mechanisms.EpsilonUnit / 1000
	p := rewritetest.TownPlan(t, "SELECT count(*), count(age), count(*), avg(age), sum(age), avg(age) FROM people", o)
	if len(p.Releases) != 3 {
		t.Fatalf("%d releases", len(p.Releases))
	}
	r := answerOf(t, p, row("", 100, 5, 1000)).Rows[0]
	if r[0] != r[1] || r[0] != r[2] || r[3] != r[5] {
		t.Errorf("%v", r)
	}
}

// A noisy number beyond bigint stops at its ends, a mean stays within the bounds and has no value over a count that is not positive.
func TestValuesStayInTheirType(t *testing.T) {
	p := rewritetest.TownPlan(t, "SELECT sum(age), avg(age) FROM people", rewritetest.Sharp())
	huge := new(big.Int).Lsh(big.NewInt(1), 90)
	for _, c := range []struct {
		sum, centred, count *big.Int
		want                string
	}{
		{huge, big.NewInt(0), big.NewInt(4), "9223372036854775807 50.0000000000000000"},
		{new(big.Int).Neg(huge), huge, big.NewInt(4), "-9223372036854775808 100.0000000000000000"},
		{big.NewInt(5), new(big.Int).Neg(huge), big.NewInt(1), "5 0.0000000000000000"},
		{big.NewInt(5), big.NewInt(1), big.NewInt(3), "5 50.3333333333333333"},
		{big.NewInt(5), big.NewInt(1), big.NewInt(0), "5 NULL"},
		{big.NewInt(5), big.NewInt(1), big.NewInt(-3), "5 NULL"},
	} {
		r := &plan.Released{Plan: p, Rows: []plan.ReleasedRow{{Noisy: []*big.Int{c.sum, c.centred, c.count}}}}
		a, err := answer.Complete(r, nil, nil)
		if err != nil || rowsText(a) != c.want {
			t.Errorf("%v %v, want %s", rowsText(a), err, c.want)
		}
	}
}

// Without data there is nothing to pay and nothing to run.
func TestPublicDistinctNeedsNoData(t *testing.T) {
	p := rewritetest.TownPlan(t, "SELECT DISTINCT sex FROM people WHERE sex <> 'Male'", rewritetest.Sharp())
	if p.NeedsData() || !p.Loss().IsZero() || len(p.Mechanisms()) != 0 {
		t.Errorf("needs data: %v, loss %v", p.NeedsData(), p.Loss())
	}
	if got := rowsText(answerOf(t, p)); got != "Female" {
		t.Error(got)
	}
}

// A harmless rewording is the same question, and replays; one that changes what is asked is another.
//
// covers: A06
func TestRewordingsReplay(t *testing.T) {
	const asked = "SELECT sex, count(*) AS n FROM people WHERE age >= 30 AND age < 60 AND (sex = 'Female' OR age > 40) GROUP BY sex"
	want := rewritetest.TownPlan(t, asked, rewritetest.Sharp()).Fingerprint()
	for _, sql := range []string{
		"select sex,COUNT(*) as n from people where age>=30 and age<60 and (sex='Female' or age>40) group by 1 -- case, blanks, comments, " +
			"ordinals",
		"SELECT p.sex, count(*) AS n FROM public.people AS p WHERE p.age >= 30 AND p.age < 60 AND (p.sex = 'Female' OR p.age > 40) GROUP BY " +
			"p.sex",
		"SELECT public.people.sex, count(*) AS n FROM public.people WHERE public.people.age >= 30 AND people.age < 60 AND (public.people.sex = " +
			"'Female' OR age > 40) GROUP BY public.people.sex",
		"SELECT sex, count(*) AS n FROM people WHERE (sex = 'Female' OR age > 40) AND age < 60 AND age >= 30 GROUP BY sex",
		"SELECT sex, count(*) AS n FROM people WHERE age < 60 AND ((age > 40 OR sex = 'Female') AND age >= 30) GROUP BY sex",
		`SELECT "sex", count(*) AS n FROM people WHERE age >= 3e1 AND age < 60.0 AND (sex = 'Female' OR age > +40) GROUP BY sex`,
		"SELECT sex, count(*) AS n FROM people WHERE age >= '30' AND age < 060 AND (sex = 'Female' OR age > 40) GROUP BY sex",
	} {
		if rewritetest.TownPlan(t, sql, rewritetest.Sharp()).Fingerprint() != want {
			t.Errorf("another fingerprint: %s", sql)
		}
	}
	for _, sql := range []string{
		"SELECT sex, count(*) AS n FROM people WHERE age >= 30 OR age < 60 OR (sex = 'Female' AND age > 40) GROUP BY sex",
		"SELECT sex, count(*) AS n FROM people WHERE (age >= 30 AND age < 60 AND sex = 'Female') OR age > 40 GROUP BY sex",
		"SELECT sex, count(*) AS n FROM people WHERE age >= 60 AND age < 30 AND (sex = 'Female' OR age > 40) GROUP BY sex",
		"SELECT sex, count(*) AS n FROM people WHERE NOT (age >= 30 AND age < 60) AND (sex = 'Female' OR age > 40) GROUP BY sex",
		"SELECT sex, count(*) AS m FROM people WHERE age >= 30 AND age < 60 AND (sex = 'Female' OR age > 40) GROUP BY sex",
	} {
		if rewritetest.TownPlan(t, sql, rewritetest.Sharp()).Fingerprint() == want {
			t.Errorf("the same fingerprint: %s", sql)
		}
	}
}

// Spelling does not matter to a fingerprint; everything that decides the answer does.
func TestFingerprint(t *testing.T) {
	base := rewritetest.Sharp()
	same := []string{
		"SELECT sex, count(*) FROM people WHERE age >= 30 GROUP BY sex",
		"select  sex,count(*)\nfrom public.people as p -- comment\nwhere p.age>=30 group by 1;",
		`SELECT "sex", count(*) FROM people WHERE (age >= '30') GROUP BY people."sex"`,
	}
	want := rewritetest.TownPlan(t, same[0], base).Fingerprint()
	for _, sql := range same[:2] {
		if rewritetest.TownPlan(t, sql, base).Fingerprint() != want {
			t.Errorf("another fingerprint: %s", sql)
		}
	}
	seen := map[[32]byte]string{want: same[0]}
	distinct := func(name string, p *plan.Plan) {
		if other, taken := seen[p.Fingerprint()]; taken {
			t.Errorf("%s has the fingerprint of %s", name, other)
		}
		seen[p.Fingerprint()] = name
	}
	for _, sql := range []string{
		"SELECT sex, count(*) FROM people WHERE age >= 31 GROUP BY sex", "SELECT sex, count(*) FROM people WHERE age > 30 GROUP BY sex",
		"SELECT sex, count(*) AS n FROM people WHERE age >= 30 GROUP BY sex", "SELECT count(*), sex FROM people WHERE age >= 30 GROUP BY sex",
		"SELECT sex, count(*) FROM people WHERE age >= 30 GROUP BY sex LIMIT 1",
		"SELECT sex, count(*) FROM people WHERE age >= 30 GROUP BY sex LIMIT 2",
		"SELECT sex, count(*) FROM people WHERE age >= 30 GROUP BY sex ORDER BY 2",
		"SELECT sex, sum(age) FROM people WHERE age >= 30 GROUP BY sex",
		// One statement, and different answers made of it.
		"SELECT percentile_disc(0.25) WITHIN GROUP (ORDER BY age) AS q FROM people",
		"SELECT percentile_disc(0.75) WITHIN GROUP (ORDER BY age) AS q FROM people",
		"SELECT percentile_disc(0.25) WITHIN GROUP (ORDER BY age DESC) AS q FROM people",
		"SELECT percentile_disc(ARRAY[0.25]) WITHIN GROUP (ORDER BY age) AS q FROM people",
		"SELECT percentile_cont(0.25) WITHIN GROUP (ORDER BY age) AS q FROM people", "SELECT min(age) AS q FROM people",
		"SELECT max(age) AS q FROM people",
		"SELECT count(*) AS q FROM people HAVING var_pop(age) > 3", "SELECT count(*) AS q FROM people HAVING var_samp(age) > 3",
		"SELECT count(*) AS q FROM people HAVING stddev_pop(age) > 3", "SELECT count(*) AS q FROM people HAVING min(age) > 3",
		"SELECT count(*) AS q FROM people HAVING max(age) > 3",
		"SELECT sex FROM people GROUP BY sex ORDER BY count(*) DESC LIMIT 1",
		"SELECT sex FROM people GROUP BY sex ORDER BY count(*) DESC LIMIT 1 OFFSET 1",
		"SELECT sex, grade FROM people GROUP BY sex, grade ORDER BY count(*) DESC LIMIT 2",
		"SELECT sex, grade FROM people GROUP BY sex, grade ORDER BY count(*) DESC LIMIT 3",
	} {
		distinct(sql, rewritetest.TownPlan(t, sql, base))
	}
	for name, change := range map[string]func(*plan.Options){
		"epsilon": func(o *plan.Options) { o.Epsilon-- }, "delta": func(o *plan.Options) { o.Delta++ },
		"rho":        func(o *plan.Options) { o.Rho, o.Epsilon = 5_000_000, 0 },
		"confidence": func(o *plan.Options) { o.Confidence = 0.9 }, "mechanism": func(o *plan.Options) { o.Mechanism = plan.MechanismAuto },
		"currency": func(o *plan.Options) { o.Currency = catalog.Pure },
	} {
		o := base
		change(&o)
		distinct(name, rewritetest.TownPlan(t, same[0], o))
	}
	later := *rewritetest.TownSnapshot(t)
	later.Version++
	p, err := pipeline.Rewrite(same[0], &later, base)
	if err != nil {
		t.Fatal(err)
	}
	distinct("version", p)
}

// Intervals hold the truth as often as they say, at least, and those of plain counts not much more often; false alarms at
// [stattest.PerTest].
func TestIntervalsCover(t *testing.T) {
	o := rewritetest.Sharp()
	o.Epsilon, o.Confidence = mechanisms.EpsilonUnit/10, 0.9
	p := rewritetest.TownPlan(t, "SELECT count(*), sum(age), avg(age) FROM people", o)
	answers := 1000 / int64(rewritetest.OneIn(5))
	held := make([]int64, 3)
	truth := []*big.Rat{big.NewRat(1000, 1), big.NewRat(40_123, 1), big.NewRat(40_123, 1000)}
	s := rewritetest.FixedSampler(t)
	for range answers {
		a := rewritetest.AnswerFrom(t, s, p, row("", 1000, 40_123, 40_123-50*1000))
		for i, want := range truth {
			in := a.Intervals[0][i]
			lo, _ := new(big.Rat).SetString(in.Lo)
			hi, _ := new(big.Rat).SetString(in.Hi)
			if lo.Cmp(want) <= 0 && want.Cmp(hi) <= 0 {
				held[i]++
			}
		}
	}
	for i, n := range held {
		if _, most := (stattest.Trials{Hits: n, Draws: answers}).Between(stattest.PerTest); most < float64(o.Confidence) {
			t.Errorf("output %d: %d of %d intervals hold the truth", i, n, answers)
		}
	}
	if least, _ := (stattest.Trials{Hits: held[0], Draws: answers}).Between(stattest.PerTest); least > 0.94 {
		t.Errorf("the count's intervals are too wide: %d of %d hold", held[0], answers)
	}
}

// Rows of several statements meet in their groups: additive ones once each, histograms one row for each candidate; of private keys only
// those that the first statement's rows show.
func TestReleaseOfSeveralStatements(t *testing.T) {
	at := func(part int, r plan.ExactRow) plan.ExactRow { r.Part = part; return r }
	p := rewritetest.TownPlan(t,
		"SELECT sex, count(*), percentile_disc(0.5) WITHIN GROUP (ORDER BY age), count(DISTINCT country) FROM people GROUP BY sex",
		rewritetest.Sharp())
	if got := rowsText(answerOf(t, p, at(0, row("Male", 9)), at(1, row("Male", 33, 4)), at(1, row("Male", 44, 5)),
		at(1, row("Elsewhere", 5, 5)), at(2, row("Male", 7)))); !strings.Contains(got, "Male 9 44 7") {
		t.Error(got)
	}
	hidden := rewritetest.Sharp()
	hidden.Delta = 1
	p = rewritetest.TownPlan(t, "SELECT country, max(age) FROM people GROUP BY country", hidden)
	if got := rowsText(answerOf(t, p, at(0, row("many", 1000)), at(1, row("many", 40, 1000)),
		at(1, row("none", 50, 1000)))); got != "many 40" {
		t.Error(got)
	}
	for name, rows := range map[string][]plan.ExactRow{
		"no such statement":   {at(2, row("many", 1))},
		"before the first":    {at(-1, row("many", 1))},
		"too few of a tally":  {at(0, row("many", 1000)), at(1, row("many", 1))},
		"one group twice":     {at(0, row("many", 1000)), at(0, row("many", 1000))},
		"too many of a count": {at(0, row("many", 1000, 1))},
	} {
		s := rewritetest.FixedSampler(t)
		if _, err := pipeline.Release(p, s, p.Draw(s), rewritetest.Streamed(rows)); fault.CodeOf(err) != fault.CodeInternal {
			t.Errorf("%s: %v", name, err)
		}
	}
}
