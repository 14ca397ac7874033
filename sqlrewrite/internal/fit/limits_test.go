package fit_test

import (
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"strings"
	"testing"
	"time"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/pgtest"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/fit"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/internal/sqlprint"
)

const (
	seriesTables = `events
  unit integer not null
  n integer not null
  y integer not null`
	seriesPolicy = `version: 1
dataset: test
neighbours: add-remove
tables:
  events:
    unit: {column: unit}
    max_rows: 15
    columns:
      n: {bounds: [0, 100]}
      y: {bounds: [0, 1]}
budgets:
  - {dataset: true, form: approx, epsilon: 100, delta: 1e-5}
`
)

// wideFit is a fit to the first of many columns by the others.
func wideFit(t *testing.T, columns int, table string) (*fit.Plan, error) {
	t.Helper()
	tables := "wide\n  id integer not null unique\n  unit integer not null"
	policy := "version: 1\ndataset: test\nneighbours: add-remove\n" + table
	q := fit.Question{From: "wide", Target: "c0", Model: fit.Linear}
	for i := range columns + 1 {
		tables += fmt.Sprintf("\n  c%d integer not null", i)
		policy += fmt.Sprintf("      c%d: {bounds: [0, 10]}\n", i)
		if i > 0 {
			q.Features = append(q.Features, fit.Feature{Expr: fmt.Sprintf("c%d", i)})
		}
	}
	policy += "budgets:\n  - {dataset: true, form: approx, epsilon: 100, delta: 1e-5}\n"
	return fit.NewPlan(q, rewritetest.ParseSnapshot(t, tables, policy), fit.Options{Rho: mechanisms.RhoUnit, Confidence: 0.95})
}

// A fit whose statement PostgreSQL refuses is refused before it is paid for; the largest one that is not, runs. It is tried whether or not
// it computes anything of a column.
func TestFitsHaveNoMoreOutputsThanPostgreSQLTakes(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	db := pgtest.New(t)
	conn := db.Conn(t, db.DSN)
	for name, table := range map[string]string{
		"a row each":   "tables:\n  wide:\n    unit: {row: id}\n    columns:\n",
		"several rows": "tables:\n  wide:\n    unit: {column: unit}\n    max_rows: 2\n    columns:\n",
	} {
		for columns := 54; columns <= 57; columns++ {
			p, err := wideFit(t, columns, table)
			if columns > 55 {
				var refusal *fault.Error
				if !errors.As(err, &refusal) || refusal.Code != fault.CodeFit || !strings.Contains(refusal.Hint, "55 numeric columns fit") {
					t.Errorf("%s, %d columns: %v", name, columns, err)
				}
				continue
			}
			if err != nil {
				t.Fatalf("%s, %d columns: %v", name, columns, err)
			}
			dry := p.DryRun()
			sql, args := dry.Text()
			if _, err := conn.Exec(t.Context(), sql, args...); err != nil || dry.Plain {
				t.Errorf("%s, %d columns: %v, %v", name, columns, err, dry.Plain)
			}
		}
	}
}

// Too many features are refused before any of them is bound, and what is bound is bound a few times, however many there are.
func TestTooManyFeaturesAreRefusedAtOnce(t *testing.T) {
	q := fit.Question{From: "people", Target: "age", Model: fit.Linear, Where: "age > 0" + strings.Repeat(" AND age + 1 > 0", 600)}
	for range 300 { // of which a body of 64 KiB holds 1,500
		q.Features = append(q.Features, fit.Feature{Expr: "sex", OneHot: true})
	}
	for _, n := range []int{300, 64} { // counted, and bound all at once
		q.Features = q.Features[:n]
		began := time.Now()
		_, err := fit.NewPlan(q, rewritetest.ParseSnapshot(t, fitTables, fitPolicy), fit.Options{Rho: mechanisms.RhoUnit, Confidence: 0.95})
		if took := time.Since(began); fault.CodeOf(err) != fault.CodeFit || took > time.Second {
			t.Errorf("%d features: %v after %v", n, err, took)
		}
	}
	q.Features = q.Features[:1]
	q.Where += strings.Repeat(" ", 64<<10)
	if _, err := fit.NewPlan(q, rewritetest.ParseSnapshot(t, fitTables, fitPolicy), fit.Options{Rho: mechanisms.RhoUnit,
		Confidence: 0.95}); fault.CodeOf(err) !=
		fault.CodeTooComplex {
		t.Errorf("a long text: %v", err)
	}
}

// The rows that a cap keeps are chosen by a seed that is drawn for each release, and is one in all of its passes.
func TestFitsDrawTheSeedOfTheirCaps(t *testing.T) {
	q := fit.Question{From: "events AS a JOIN events AS b ON b.unit = a.unit", Target: "a.y", Model: fit.Logistic, Features: features("b.n")}
	p, err := fit.NewPlan(q, rewritetest.ParseSnapshot(t, seriesTables, seriesPolicy),
		fit.Options{Passes: 2, Rho: mechanisms.RhoUnit, Confidence: 0.95})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(p.Statement().SQL, "hash") {
		t.Fatal("nothing is capped")
	}
	seedOf := func(s sqlprint.Statement) any { return s.Args[p.Statement().Unseeded-1] }
	seeds, sampler := map[any]bool{}, rewritetest.FixedSampler(t)
	for range 2 {
		run := p.Start(sampler)
		first, _ := run.Next()
		for statement, more := first, true; more; statement, more = run.Next() {
			if err := statement.Prove(new(sqlprint.Proofs)); err != nil || seedOf(statement) != seedOf(first) {
				t.Errorf("%v, seeds %v and %v", err, seedOf(first), seedOf(statement))
			}
			row := plan.ExactRow{}
			for range statement.Values {
				row.Values = append(row.Values, mechanisms.Seal(new(big.Int)))
			}
			if err := run.Release(row); err != nil {
				t.Fatal(err)
			}
		}
		seeds[seedOf(first)] = true
	}
	if len(seeds) != 2 {
		t.Errorf("two releases choose by one seed: %v", seeds)
	}
	if err := p.Statement().Prove(new(sqlprint.Proofs)); fault.CodeOf(err) != fault.CodeUnverified {
		t.Errorf("a statement without a seed: %v", err)
	}
}

// What a row costs in all passes together is what a row may cost, and what the rows of one unit cost is what they may.
func TestPassesCountAsWork(t *testing.T) {
	events := fit.Question{From: "events", Target: "y", Model: fit.Logistic, Features: features("n", "ln(1 + n)", "sqrt(n)")}
	people := fit.Question{From: "people", Target: rich, Model: fit.Logistic, Features: thirteen()}
	withDays := func(rows int) (tables, policy string) {
		return seriesTables + fmt.Sprintf("\ndays\n  n integer not null\n  kind integer not null\n  unique n\n  rows %d\n", rows),
			strings.Replace(seriesPolicy, "budgets:", "  days:\n    public: true\nbudgets:", 1)
	}
	few, fewDays := withDays(100)
	some, someDays := withDays(1000)
	many, manyDays := withDays(2000)
	joined := fit.Question{From: "events JOIN days ON days.n = events.n", Target: "y", Model: fit.Logistic, Features: features("events.n")}
	exists := events
	exists.Features, exists.Where = features("n"), "EXISTS (SELECT 1 FROM days WHERE days.n = events.n)"
	in := exists
	in.Where = "n IN (SELECT n FROM days)"
	for _, c := range []struct {
		q              fit.Question
		tables, policy string
		passes         int
		refused        bool
	}{
		{events, seriesTables, seriesPolicy, 1, false},
		{events, seriesTables, seriesPolicy, 6, false},
		{events, seriesTables, seriesPolicy, 7, true},
		{events, seriesTables, seriesPolicy, 100, true},
		{people, fitTables, fitPolicy, 100, false},
		{people, fitTables, fitPolicy, 1000, true},
		{joined, few, fewDays, 3, false}, // small public tables are read as PostgreSQL likes: for 500 µs in all passes
		{joined, some, someDays, 1, false},
		{joined, some, someDays, 3, true},
		{joined, many, manyDays, 3, false}, // a large one is read whatever the rows of people are
		{exists, few, fewDays, 3, false},
		{exists, some, someDays, 3, true},
		{in, few, fewDays, 3, false},
		{in, some, someDays, 3, true},
	} {
		_, err := fit.NewPlan(c.q, rewritetest.ParseSnapshot(t, c.tables, c.policy), fit.Options{Passes: c.passes, Rho: mechanisms.RhoUnit,
			Confidence: 0.95})
		var refusal *fault.Error
		if c.refused != (err != nil) || c.refused && (!errors.As(err, &refusal) || refusal.Code != fault.CodeFanOut ||
			!strings.Contains(refusal.Msg, fmt.Sprintf("%d passes", c.passes)) || !strings.Contains(refusal.Hint, "iterations")) {
			t.Errorf("%s, %d passes: %v", c.q.From, c.passes, err)
		}
	}
}

// Two spellings of one fit are one, and a fence that PostgreSQL needs is no part of it; what changes the answer is.
func TestFitsAreKnownByWhatTheyAsk(t *testing.T) {
	all := known{}
	fingerprint := func(change func(*fit.Question), o fit.Options) string {
		q := fit.Question{From: "people", Where: "age > 30 AND sex = 'Male'", Target: "hours_per_week", Model: fit.Linear,
			Features: features("age", "education_num")}
		change(&q)
		o.Confidence = 0.95
		p, err := fit.NewPlan(q, rewritetest.ParseSnapshot(t, fitTables, fitPolicy), o)
		if err != nil {
			t.Fatal(err)
		}
		sum := all.name(t, p)
		return string(sum[:])
	}
	rho := fit.Options{Rho: mechanisms.RhoUnit}
	first := fingerprint(func(*fit.Question) {}, rho)
	for where, same := range map[string]bool{"sex='Male' and (age) > 30.0": true, "age > 31 AND sex = 'Male'": false, "": false} {
		if got := fingerprint(func(q *fit.Question) { q.Where = where }, rho); (got == first) != same {
			t.Errorf("%q: the same is %v", where, got == first)
		}
	}
	seen := map[string]bool{first: true}
	for i, change := range []func(*fit.Question){
		func(q *fit.Question) { q.Features[1].Weight = big.NewRat(2, 1) },
		func(q *fit.Question) { q.Features[1].Expr = "capital_gain" },
		func(q *fit.Question) { q.Target = "capital_gain" },
		func(q *fit.Question) { q.Model = fit.Ridge },
	} {
		got := fingerprint(change, rho)
		if seen[got] {
			t.Errorf("change %d changes nothing", i)
		}
		seen[got] = true
	}
	if seen[fingerprint(func(*fit.Question) {}, fit.Options{Rho: 2 * mechanisms.RhoUnit})] {
		t.Error("another price changes nothing")
	}
}

// Models that were sold by earlier versions are known by the same fingerprints, and so given again free, however statements are printed.
func TestModelsOfEarlierVersionsAreKnown(t *testing.T) {
	people, events := rewritetest.ParseSnapshot(t, fitTables, fitPolicy), rewritetest.ParseSnapshot(t, seriesTables, seriesPolicy)
	fitted := func(on *catalog.Snapshot, q fit.Question, o fit.Options) ([32]byte, error) {
		o.Rho, o.Confidence = mechanisms.RhoUnit, 0.95
		p, err := fit.NewPlan(q, on, o)
		if err != nil {
			return [32]byte{}, err
		}
		return p.EarlierFingerprint(), nil
	}
	where := "age > 30 AND sex = 'Male'"
	for name, c := range map[string]struct {
		of   func() ([32]byte, error)
		want string
	}{
		"moments": {func() ([32]byte, error) {
			return fitted(people, fit.Question{From: "people", Where: where, Target: rich, Model: fit.Ridge, Features: thirteen()},
				fit.Options{})
		}, "1bc3e0be81aa9946"},
		"gradients": {func() ([32]byte, error) {
			return fitted(people, fit.Question{From: "people", Target: rich, Model: fit.Logistic, Features: thirteen()}, fit.Options{Passes: 30})
		}, "3de762ca0bf7903c"},
		"several rows": {func() ([32]byte, error) {
			return fitted(events, fit.Question{From: "events", Target: "y", Model: fit.Logistic, Features: features("n")}, fit.Options{Passes: 2})
		}, "90a3d068c15d3e6c"},
		"clusters": {func() ([32]byte, error) {
			p, err := fit.NewClustering(fit.ClusterQuestion{From: "people", Where: where, Columns: features("age", "ln(1 + capital_gain)"),
				Centres: 3},
				people, fit.ClusterOptions{Passes: 2, Rho: mechanisms.RhoUnit})
			if err != nil {
				return [32]byte{}, err
			}
			return p.EarlierFingerprint(), nil
		}, "47835f07f22dd30e"},
		"scores": {func() ([32]byte, error) {
			p, err := fit.NewScoring(fit.ScoreQuestion{From: "events", Columns: features("n"), Centres: [][]float64{{10}, {90}},
				CalinskiHarabasz: true, Silhouette: true}, events, fit.ScoreOptions{Rho: mechanisms.RhoUnit, Confidence: 0.95})
			if err != nil {
				return [32]byte{}, err
			}
			return p.EarlierFingerprint(), nil
		}, "137bf8df31c52ddb"},
	} {
		got, err := c.of()
		if err != nil {
			t.Fatal(err, errors.Unwrap(err))
		}
		if text := fmt.Sprintf("%x", got[:8]); text != c.want {
			t.Errorf("%s: %s, want %s", name, text, c.want)
		}
	}
}

// A fit is the same under another version of the policy, and another one where what it rests on has changed.
func TestFitsRestOnFacts(t *testing.T) {
	all := known{}
	fingerprint := func(policy string, change func(*catalog.Snapshot)) [32]byte {
		on := rewritetest.ParseSnapshot(t, fitTables, policy)
		change(on)
		p, err := fit.NewPlan(fit.Question{From: "people", Target: "hours_per_week", Model: fit.Linear, Features: features("age")}, on,
			fit.Options{Rho: mechanisms.RhoUnit, Confidence: 0.95})
		if err != nil {
			t.Fatal(err)
		}
		return all.name(t, p)
	}
	same := func(*catalog.Snapshot) {}
	first := fingerprint(fitPolicy, same)
	for name, c := range map[string]struct {
		from, to string
		change   func(*catalog.Snapshot)
		same     bool
	}{
		"a version":      {change: func(on *catalog.Snapshot) { on.Version, on.Digest[0] = on.Version+1, on.Digest[0]+1 }, same: true},
		"a budget":       {from: "epsilon: 100,", to: "epsilon: 90,", change: same, same: true},
		"another column": {from: "{bounds: [1, 16]}", to: "{bounds: [1, 17]}", change: same, same: true},
		"bounds":         {from: "{bounds: [17, 90]}", to: "{bounds: [17, 91]}", change: same},
		"data":           {change: func(on *catalog.Snapshot) { on.DataVersion = "new" }},
		"a type":         {change: func(on *catalog.Snapshot) { on.Tables[0].Columns[1].TypMod++ }},
		"a table":        {change: func(on *catalog.Snapshot) { on.Tables[0].OID++ }},
	} {
		policy := strings.Replace(fitPolicy, c.from, c.to, 1)
		if c.from != "" && policy == fitPolicy {
			t.Fatalf("the policy has no %q", c.from)
		}
		if got := fingerprint(policy, c.change); (got == first) != c.same {
			t.Errorf("%s: the same is %t, want %t", name, got == first, c.same)
		}
	}
}

// The statement of a fit claims what its rows take: a text that takes them longer is not run.
//
// covers: B4 C1
func TestFitsClaimWhatRowsTake(t *testing.T) {
	t.Parallel()
	p, err := fit.NewPlan(fit.Question{From: "people", Where: "age > 20", Target: "capital_gain", Model: fit.Linear,
		Features: features("education_num")},
		rewritetest.ParseSnapshot(t, fitTables, fitPolicy), fit.Options{Rho: mechanisms.RhoUnit, Confidence: 0.95})
	if err != nil {
		t.Fatal(err)
	}
	s := p.Statement().WithSeed(0)
	if err := s.Prove(new(sqlprint.Proofs)); err != nil {
		t.Fatal(err)
	}
	condition := regexp.MustCompile(`\("age" > \$\d+::integer\)`)
	longer := condition.ReplaceAllString(s.SQL, "("+strings.Repeat("$0 AND ", 20)+"$0)")
	if longer == s.SQL {
		t.Fatal(s.SQL)
	}
	s.SQL = longer
	if err := s.Prove(new(sqlprint.Proofs)); fault.CodeOf(err) != fault.CodeUnverified {
		t.Errorf("%v, of 20 conditions more", err)
	}
}
