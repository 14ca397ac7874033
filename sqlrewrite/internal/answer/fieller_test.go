package answer_test

import (
	"math"
	"math/big"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/internal/randomtest"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/answer"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
	"noisegate.example/sqlrewrite/internal/scalar"
)

// ratioExpressions are outputs whose intervals are those of a fraction, from means to rates whose two sums share a release.
var ratioExpressions = []string{
	"avg(age)", "round(avg(age), 1)", "2 * avg(age) - 1.5", "sum(age)::numeric / count(*)", "sum(age) / nullif(count(*), 0)",
	"100.0 * count(*) FILTER (WHERE age > 40) / count(*)", "1 - count(*) FILTER (WHERE age > 40)::float8 / count(*)",
	"sum(age)::float8 / (count(*) + sum(age))", "avg(age) / 2 + avg(age)", "30 / avg(age)", "1000.0 / count(*)",
}

// tooMany reports whether k of n events of probability p are so many that chance alone makes as many with less than 1e-8, by Chernoff's
// bound. With p as the share of misses allowed it refuses intervals that miss more; a hundred such verdicts raise a false alarm with less
// than 1e-6.
func tooMany(k, n int, p float64) bool {
	q := float64(k) / float64(n)
	if q <= p {
		return false
	}
	entropy := q * math.Log(q/p)
	if q < 1 {
		entropy += (1 - q) * math.Log((1-q)/(1-p))
	}
	return float64(n)*entropy > 8*math.Ln10
}

// Intervals of fractions hold the true value as often as they say, whatever it is and whatever the noise, also where the divisor is small
// against its noise; intervals that are unbounded hold it too. False alarms: tooMany.
func TestRatioIntervalsCover(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	draws := randomtest.Times(1000, 2500)
	s := rewritetest.FixedSampler(t)
	laplace, gaussian := rewritetest.Sharp(), rewritetest.Sharp()
	laplace.Epsilon = mechanisms.EpsilonUnit
	gaussian.Epsilon, gaussian.Rho, gaussian.Mechanism, gaussian.Currency = 0, mechanisms.RhoUnit/20, plan.MechanismGaussian, catalog.ZCDP
	for _, text := range ratioExpressions {
		for law, o := range map[string]plan.Options{"laplace": laplace, "gaussian": gaussian, "next to none": rewritetest.Sharp()} {
			p := rewritetest.TownPlan(t, "SELECT "+text+" FROM people", o)
			if p.Outputs[0].Ratio == nil {
				t.Fatalf("%s is no fraction", text)
			}
			for _, rows := range []int64{20, 500} {
				truth := trueRow(p, rows)
				missed, unbounded := 0, 0
				intervals := answer.NewBox(p)
				for range draws {
					noisy := plan.ReleasedRow{}
					for i, r := range p.Releases {
						noisy.Noisy = append(noisy.Noisy, r.Mechanism.Draw(s).Release(mechanisms.Seal(truth.Noisy[i])))
					}
					switch holds, known := holds(p, intervals, noisy, truth); {
					case !known:
						unbounded++
					case !holds:
						missed++
					}
				}
				if tooMany(missed, draws, 0.05) {
					t.Errorf("%s, %s, %d rows: %d of %d intervals miss", text, law, rows, missed, draws)
				}
				if rows == 500 && unbounded > draws/10 {
					t.Errorf("%s, %s: %d of %d intervals are unbounded", text, law, unbounded, draws)
				}
			}
		}
	}
}

// trueRow is a row of true integers: rows rows, a third of which pass filters, whose values add up to some of the most that they can.
func trueRow(p *plan.Plan, rows int64) plan.ReleasedRow {
	row := plan.ReleasedRow{}
	for i, r := range p.Releases {
		v := rows
		switch {
		case r.Statistic.Kind == algebra.SumSteps || r.Statistic.Kind == algebra.SumCentred:
			v = rows * (3 + int64(i)) * r.Statistic.PerRow().Int64() / 10
		case r.Statistic.Filter != nil:
			v = rows / 3
		}
		row.Noisy = append(row.Noisy, big.NewInt(v))
	}
	return row
}

// holds reports whether the interval of the only output in a noisy row holds its true value.
func holds(p *plan.Plan, b *answer.Box, noisy, truth plan.ReleasedRow) (holds, known bool) {
	c := p.Outputs[0].Ratio
	b.Inner = b.OfRatio(c, noisy)
	if b.Inner == nil {
		return true, false
	}
	got := b.Eval(c.Context, 1, noisy)
	b.Inner = plan.ClampSpan(scalar.Point(new(big.Rat).Quo(c.Of.Over.At(truth.Noisy), c.Of.Under.At(truth.Noisy))), c.Of.Within)
	want := b.Eval(c.Context, 1, truth)
	return got.Lo.Cmp(want.Lo) <= 0 && got.Hi.Cmp(want.Hi) >= 0, true
}

// The interval of a fraction is never wider than the box of interval arithmetic, where that has one, and much narrower where both sums
// have noise that matters.
func TestRatioIntervalsWithinTheirBox(t *testing.T) {
	o := rewritetest.Sharp()
	o.Epsilon = mechanisms.EpsilonUnit
	for _, text := range []string{"avg(age)", "sum(age)::float8 / count(*)", "count(*) FILTER (WHERE age > 40)::float8 / count(*)",
		"-avg(age)"} {
		p := rewritetest.TownPlan(t, "SELECT "+text+" FROM people", o)
		form := p.Outputs[0]
		for _, rows := range []int64{1, 10, 20, 50, 100, 1000, 1_000_000} {
			row := trueRow(p, rows)
			exact, wide := answer.NewBox(p), answer.NewBox(p)
			fine, coarse := exact.OfRatio(form.Ratio, row), wide.Eval(p.Query.Outputs[0].Expr, form.Releases, row)
			if fine == nil && coarse != nil {
				t.Errorf("%s of %d rows: the box has an interval, the fraction has none", text, rows)
			}
			if fine == nil || coarse == nil {
				continue
			}
			width := func(s *scalar.Span) float64 { return answer.FloatOf(new(big.Rat).Sub(s.Hi, s.Lo)) }
			if width(fine) > width(coarse)*(1+1e-6) {
				t.Errorf("%s of %d rows: [%s] is wider than its box [%s]", text, rows, answer.Outward(fine.Lo, -1)+", "+answer.Outward(fine.Hi, 1),
					answer.Outward(coarse.Lo, -1)+", "+answer.Outward(coarse.Hi, 1))
			}
			if rows == 1000 && width(fine) > 0.85*width(coarse) {
				t.Errorf("%s of %d rows: %g is not much narrower than %g", text, rows, width(fine), width(coarse))
			}
		}
	}
}

// Cells cover the line without a gap, and each point is in the cell that it is said to be in.
func TestFiellerCells(t *testing.T) {
	m := &answer.Fieller{Ratio: 3}
	for cell := -700; cell < 700; cell++ {
		lo, hi := m.Edges(cell)
		if above, _ := m.Edges(cell + 1); !(lo < hi) || above != hi {
			t.Fatalf("cell %d is [%g, %g], the next begins at %g", cell, lo, hi, above)
		}
		for _, x := range []float64{lo, (lo + hi) / 2, hi} {
			at := m.CellOf(x)
			if lo, hi := m.Edges(at); x < lo || x > hi {
				t.Errorf("%g is not in cell %d", x, at)
			}
		}
	}
}
