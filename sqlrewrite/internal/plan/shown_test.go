package plan_test

import (
	"math/big"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/internal/stattest"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/answer"
	"noisegate.example/sqlrewrite/internal/earlier"
	"noisegate.example/sqlrewrite/internal/explain"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
)

const shownSQL = "SELECT country, count(*) AS n, round(count(*) / 10.0, 1) AS tens, sum(age) AS s FROM people GROUP BY country"

// shownPlan is a plan whose count decides which countries are shown.
func shownPlan(t *testing.T, change func(*plan.Options)) (*plan.Plan, *mechanisms.ShownCount) {
	t.Helper()
	o := plan.Options{Epsilon: 3 * mechanisms.EpsilonUnit, Delta: mechanisms.DeltaUnit / 1000, Mechanism: plan.MechanismAuto,
		Currency:   catalog.Approx,
		Confidence: 0.9}
	if change != nil {
		change(&o)
	}
	p := rewritetest.TownPlan(t, shownSQL, o)
	if p.PartitionSelection != nil || p.Releases[0].Shown == nil {
		t.Fatalf("the count does not decide:\n%s", explain.Explain(p).Tree)
	}
	return p, p.Releases[0].Shown
}

// The number by which a group is shown is the one in the answer: none is at or below the threshold, a group without rows is never shown,
// and one so large that noise cannot hide it always is. Intervals, of what is computed from the count too, hold among the groups that are
// shown, at counts around the threshold; false alarms at [stattest.PerTest].
func TestShownCountIsTheAnswer(t *testing.T) {
	p, law := shownPlan(t, nil)
	k := law.Threshold()
	counts := map[string]int64{"none": 0, "one": 1, "below": k - 1, "at": k, "above": k + 2, "large": 2*k + 1}
	var rows []plan.ExactRow
	for _, key := range []string{"none", "one", "below", "at", "above", "large"} {
		n := counts[key]
		rows = append(rows, row(key, n, 30*n, n))
	}
	const answers = 3000
	seen, held := map[string]int64{}, [2]map[string]int64{{}, {}}
	s := rewritetest.FixedSampler(t)
	for range answers {
		released, err := pipeline.Release(p, s, p.Draw(s), rewritetest.Streamed(rows))
		if err != nil {
			t.Fatal(err)
		}
		a := answerAsReleased(t, released)
		for i, r := range a.Rows {
			key, noisy := r[0].Text, rewritetest.Number(t, r[1].Text)
			if noisy.Cmp(new(big.Rat).SetInt64(k)) <= 0 {
				t.Fatalf("%s is shown at %s, the threshold is %d", key, noisy.RatString(), k)
			}
			seen[key]++
			truth := []*big.Rat{big.NewRat(counts[key], 1), big.NewRat(counts[key], 10)}
			for j, want := range truth {
				in := a.Intervals[i][1+j]
				if rewritetest.Number(t, in.Lo).Cmp(want) <= 0 && want.Cmp(rewritetest.Number(t, in.Hi)) <= 0 {
					held[j][key]++
				}
			}
		}
	}
	if seen["none"] > 0 || seen["large"] != answers || seen["above"] < answers/2 {
		t.Errorf("shown: %v of %d", seen, answers)
	}
	for j := range held {
		for key, n := range seen {
			if _, most := (stattest.Trials{Hits: held[j][key], Draws: n}).Between(stattest.PerTest); most < 0.9 {
				t.Errorf("output %d of %s: %d of %d intervals hold", 1+j, key, held[j][key], n)
			}
		}
	}
	t.Logf("threshold %d, shown %v, held %v", k, seen, held)
}

// answerAsReleased is the answer with its post-processing done here: round(count(*) / 10.0, 1) is the tenth of the count.
func answerAsReleased(t *testing.T, released *plan.Released) *answer.Answer {
	t.Helper()
	var rows []answer.PostRow
	for i, r := range released.Rows {
		n := new(big.Rat).SetFrac(r.Noisy[0], big.NewInt(10))
		rows = append(rows, answer.PostRow{Ordinal: i + 1, Values: []catalog.Key{r.Keys[0],
			{Text: r.Noisy[0].String()}, {Text: n.FloatString(1)}, {Text: r.Noisy[1].String()}}})
	}
	a, err := answer.Complete(released, rows, []string{"text", "bigint", "numeric", "bigint"})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// The loss is counted once: what the plan charges is what its releases are recorded with, and the selection and the count cost no more
// together than apart in the currency that the account adds up.
func TestShownCountIsChargedOnce(t *testing.T) {
	for name, change := range map[string]func(*plan.Options){
		"pure":   func(o *plan.Options) { o.Currency = catalog.Pure },
		"approx": func(*plan.Options) {},
		"approx, rho": func(o *plan.Options) {
			o.Epsilon, o.Rho, o.Delta = 0, mechanisms.RhoUnit/1000, mechanisms.DeltaUnit/100
		},
		"zcdp": func(o *plan.Options) {
			o.Currency, o.Epsilon, o.Delta = catalog.ZCDP, mechanisms.EpsilonUnit/100, mechanisms.DeltaUnit/100
		},
		"zcdp, rho": func(o *plan.Options) {
			o.Currency, o.Epsilon, o.Rho, o.Delta = catalog.ZCDP, 0, mechanisms.RhoUnit/1000, mechanisms.DeltaUnit/100
		},
		"with weights": func(o *plan.Options) { o.Weights = weights(t, "n", "1000") },
	} {
		t.Run(name, func(t *testing.T) {
			p, law := shownPlan(t, change)
			o := p.Options
			if recorded := p.Mechanisms(); len(recorded) != 2 || recorded[0] != law.Parameters() {
				t.Fatalf("%+v", recorded)
			}
			loss := p.Loss()
			if want := law.Loss().Plus(p.Releases[1].Mechanism.Loss()); loss != want || loss.Delta != o.Delta {
				t.Errorf("loss %+v, want %+v", loss, want)
			}
			if loss.Epsilon > o.Epsilon && o.Epsilon > 0 || loss.Rho > o.Rho && o.Rho > 0 {
				t.Errorf("loss %+v, asked for %v and %v", loss, o.Epsilon, o.Rho)
			}
			if o.Currency == catalog.ZCDP && o.Epsilon > 0 { // the same statement apart, with Laplace noise
				apart := o
				apart.Mechanism = plan.MechanismLaplace
				if most := rewritetest.TownPlan(t, shownSQL, apart).Loss().Rho; loss.Rho > most {
					t.Errorf("ρ %v, apart %v", loss.Rho, most)
				}
			}
		})
	}
}

// With weights the count has the selection's portion besides its own.
func TestShownCountHasBothPortions(t *testing.T) {
	for _, price := range []mechanisms.PicoEpsilon{mechanisms.EpsilonUnit/7 + 1, mechanisms.EpsilonUnit, 3 * mechanisms.EpsilonUnit} {
		p, law := shownPlan(t, func(o *plan.Options) { o.Epsilon, o.Weights = price, weights(t, "n", "1000000", "s", "1") })
		selection, portions, err := p.Split()
		if err != nil {
			t.Fatal(err)
		}
		if want := selection.Epsilon + portions[0].Epsilon; law.Loss().Epsilon != want {
			t.Errorf("ε %v, want %v", law.Loss().Epsilon, want)
		}
		if got, want := p.Releases[1].Mechanism.Loss().Epsilon, portions[1].Epsilon; got != want {
			t.Errorf("the sum has %v, want %v", got, want)
		}
	}
}

// A count that decides which groups are shown has not the law of noise: it is neither a slot of a registered plan nor combined with other
// releases.
func TestShownCountIsNoNoise(t *testing.T) {
	p, law := shownPlan(t, nil)
	if p.Reusable() || p.Releases[0].Mechanism != nil {
		t.Error("it is reused")
	}
	if _, err := pipeline.WithSlots(p, []mechanisms.Slot{{Epsilon: 1}, {Epsilon: 1}}); err == nil {
		t.Error("it is a slot")
	}
	if c := answer.Columns(p)[1]; c.Mechanism != mechanisms.ShownCounts || c.HalfWidth.Cmp(new(big.Rat).SetInt(law.HalfWidth(0.9))) != 0 {
		t.Errorf("%+v", c)
	}
}

// Who names a selection gets it, beside a count that shows groups.
func TestShownCountBesideNamedSelection(t *testing.T) {
	o := plan.Options{Epsilon: 3 * mechanisms.EpsilonUnit, Delta: mechanisms.DeltaUnit / 1000, Mechanism: plan.MechanismAuto,
		Currency:   catalog.Approx,
		Confidence: 0.9}
	for _, by := range []mechanisms.Name{mechanisms.ExponentialMechanism, mechanisms.PermuteAndFlipMechanism, mechanisms.ReportNoisyMax} {
		o.Selection = by
		p := rewritetest.TownPlan(t, "SELECT country, count(*), median(age) FROM people GROUP BY country", o)
		if p.Releases[0].Shown == nil || p.Releases[1].Selection == nil || p.Releases[1].Selection.By != by {
			t.Errorf("%s:\n%s", by, explain.Explain(p).Tree)
		}
	}
}

// The question is the same whichever way its keys are shown: answers that were stored before counts decided are found.
func TestShownCountKeepsTheQuestion(t *testing.T) {
	p, _ := shownPlan(t, nil)
	if at := p.Parts[0]; !at.Units || len(at.Releases) != 2 || at.Statement.Values != 3 {
		t.Errorf("another statement: %+v", at)
	}
	apart := *p
	apart.Releases = append([]plan.Release(nil), p.Releases...)
	apart.Releases[0].Shown = nil
	if earlier.Question(p) != earlier.Question(&apart) {
		t.Error("another question")
	}
}
