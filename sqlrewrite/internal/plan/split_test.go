package plan_test

import (
	"math/big"
	"slices"
	"strings"
	"testing"

	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/explain"
	"noisegate.example/sqlrewrite/internal/pipeline"
	"noisegate.example/sqlrewrite/internal/plan"
	"noisegate.example/sqlrewrite/internal/rewritetest"
)

func weights(t testing.TB, pairs ...string) map[string]*big.Rat {
	t.Helper()
	w := map[string]*big.Rat{}
	for pair := range slices.Chunk(pairs, 2) {
		number, err := mechanisms.ParseDecimal(pair[1])
		if err != nil {
			t.Fatal(err)
		}
		w[pair[0]] = number
	}
	return w
}

// In the town a person has one row, so that count moves by 1, sum(age) by 100 and the centred sum of avg(age) by 50.
func TestWeightedSplit(t *testing.T) {
	const unit = 1_000_000_000
	for _, c := range []struct {
		name, sql   string
		weights     map[string]*big.Rat
		epsilon     mechanisms.PicoEpsilon // one of the prices
		rho         mechanisms.PicoRho
		want        []int64 // of the releases
		wantWeights []string
	}{
		{"none: even", "SELECT count(*) AS n, sum(age) AS s FROM people", nil, 0, 101 * unit, []int64{50.5 * unit, 50.5 * unit}, nil},
		{"rho goes with the sensitivity", "SELECT count(*) AS n, sum(age) AS s FROM people", weights(t, "n", "1"), 0, 101 * unit,
			[]int64{unit, 100 * unit}, []string{"1", "1"}},
		{"rho goes with the root of the weight", "SELECT count(*) AS n, sum(age) AS s FROM people", weights(t, "n", "250000"), 0, 6 * unit,
			[]int64{5 * unit, unit}, []string{"250000", "1"}},
		{"epsilon goes with the cube root of weight and square of sensitivity", "SELECT count(*) AS n, sum(age) AS s FROM people",
			weights(t, "n", "270000"), 4 * unit, 0, []int64{3 * unit, unit}, []string{"270000", "1"}},
		{"a shared count weighs both", "SELECT avg(age) AS m, count(*) AS n FROM people", weights(t, "m", "0.04", "n", "24.96"), 0, 3 * unit,
			[]int64{2 * unit, unit}, []string{"1/25", "25"}},
		{"what HAVING alone reads weighs 1", "SELECT count(*) AS n FROM people GROUP BY sex HAVING sum(age) > 10", weights(t, "n", "10000"), 0,
			2 * unit, []int64{unit, unit}, []string{"10000", "1"}},
		{"two outputs of one name", "SELECT count(*) AS n, count(*) AS n FROM people", weights(t, "n", "3"), 0, unit, []int64{unit},
			[]string{"6"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := plan.Options{Epsilon: c.epsilon, Rho: c.rho, Mechanism: plan.MechanismGaussian, Currency: catalog.Approx, Confidence: 0.95,
				Weights: c.weights}
			if c.epsilon > 0 {
				o.Mechanism = plan.MechanismLaplace
			}
			p := rewritetest.TownPlan(t, c.sql, o)
			var got []int64
			for _, r := range p.Releases {
				l := r.Mechanism.Loss()
				if c.epsilon > 0 {
					got = append(got, int64(l.Epsilon))
				} else {
					got = append(got, int64(l.Rho))
				}
			}
			// Claims are floating point: a share may be a unit short.
			if !slices.EqualFunc(got, c.want, func(a, b int64) bool { return a <= b && b <= a+1 }) {
				t.Errorf("shares %d, want %d", got, c.want)
			}
			for i, out := range explain.Explain(p).Outputs {
				if (out.Weight == nil) != (c.wantWeights == nil) || out.Weight != nil && out.Weight.RatString() != c.wantWeights[i] {
					t.Errorf("%s weighs %v, want %v", out.Name, out.Weight, c.wantWeights)
				}
			}
		})
	}
}

// The selection of private keys keeps the portion that it has without weights.
func TestWeightedSelectionKeepsItsShare(t *testing.T) {
	const sql = "SELECT country, count(*) AS n, sum(age) AS s FROM people GROUP BY country"
	o := plan.Options{Epsilon: mechanisms.EpsilonUnit, Delta: 1_000_000_000, Mechanism: plan.MechanismLaplace, Currency: catalog.Approx,
		Confidence: 0.95}
	even := rewritetest.TownPlan(t, sql, o).PartitionSelection.Mechanism.Loss()
	o.Weights = weights(t, "s", "1000000")
	p := rewritetest.TownPlan(t, sql, o)
	if got := p.PartitionSelection.Mechanism.Loss(); got != even {
		t.Errorf("the selection costs %+v, without weights %+v", got, even)
	}
	if n, s := p.Releases[0].Mechanism.Loss(), p.Releases[1].Mechanism.Loss(); s.Epsilon < 1000*n.Epsilon {
		t.Errorf("the sum gets %v and the count %v", s.Epsilon, n.Epsilon)
	}
}

// Whatever the weights, the portions keep to the price, and lose less than a unit each.
func TestWeightsKeepToThePrice(t *testing.T) {
	const sql = "SELECT avg(age) AS a, count(*) AS b, sum(age) + count(grade) AS c FROM people GROUP BY sex HAVING count(country) > 1"
	texts := []string{"1e-30", "0.1", "1", "3", "99999.99999", "1e30", "9999999999999999999999999999999999999999"}
	for _, price := range []int64{1, 97, 1_000_003, 123_456_789_012_345, 1_000_000_000_000_000_000} {
		for _, a := range texts {
			for _, c := range texts {
				for _, o := range []plan.Options{
					{Epsilon: mechanisms.PicoEpsilon(price), Mechanism: plan.MechanismLaplace, Currency: catalog.Approx},
					{Rho: mechanisms.PicoRho(price), Mechanism: plan.MechanismGaussian, Currency: catalog.ZCDP},
				} {
					o.Confidence, o.Weights = 0.95, weights(t, "a", a, "c", c)
					p, err := pipeline.Rewrite(sql, rewritetest.TownSnapshot(t), o)
					if fault.CodeOf(err) == fault.CodePriceTooSmall {
						continue
					}
					if err != nil {
						t.Fatal(price, a, c, err)
					}
					_, portions, err := p.Split()
					if err != nil {
						t.Fatal(err)
					}
					left := price
					for _, part := range portions {
						left -= int64(part.Epsilon) + int64(part.Rho)
					}
					l := p.Loss()
					if left < 0 || left >= int64(len(portions)) || l.Epsilon > o.Epsilon && !l.Unbounded || o.Rho > 0 && l.Rho > o.Rho {
						t.Fatalf("price %d, weights %s and %s: %d left, loss %+v", price, a, c, left, l)
					}
				}
			}
		}
	}
}

// The split is the best one: no other gives a smaller weighted sum of variances.
func TestWeightedSplitIsBest(t *testing.T) {
	const sql = "SELECT count(*) AS n, sum(age) AS s FROM people"
	cost := func(p *plan.Plan, w int64) *big.Rat {
		total := new(big.Rat)
		for i, r := range p.Releases {
			variance, ok := new(big.Rat).SetString(r.Mechanism.Parameters().Variance)
			if !ok {
				t.Fatal("no variance")
			}
			if i == 0 {
				variance.Mul(variance, big.NewRat(w, 1))
			}
			total.Add(total, variance)
		}
		return total
	}
	o := plan.Options{Rho: mechanisms.RhoUnit, Mechanism: plan.MechanismGaussian, Currency: catalog.ZCDP, Confidence: 0.95}
	for _, w := range []int64{1, 40, 10_000, 3_000_000} {
		o.Weights = map[string]*big.Rat{"n": big.NewRat(w, 1)}
		best := cost(rewritetest.TownPlan(t, sql, o), w)
		for _, other := range []int64{w - w/10 - 1, w + w/10 + 1, 100 * w} {
			if other < 1 {
				continue
			}
			o.Weights = map[string]*big.Rat{"n": big.NewRat(other, 1)}
			if cost(rewritetest.TownPlan(t, sql, o), w).Cmp(best) <= 0 {
				t.Errorf("weight %d: the split for weight %d costs no more", w, other)
			}
		}
	}
}

func TestWeightsNameOutputs(t *testing.T) {
	for name, c := range map[string]struct{ sql, output string }{
		"unknown":             {"SELECT count(*) AS n FROM people", "m"},
		"letters count":       {"SELECT count(*) AS n FROM people", "N"},
		"a key":               {"SELECT sex, count(*) AS n FROM people GROUP BY sex", "sex"},
		"computed from a key": {"SELECT upper(sex) AS u, count(*) AS n FROM people GROUP BY sex", "u"},
		"no aggregate at all": {"SELECT DISTINCT sex FROM people", "sex"},
	} {
		t.Run(name, func(t *testing.T) {
			o := rewritetest.Sharp()
			o.Weights = weights(t, c.output, "2")
			_, err := pipeline.Rewrite(c.sql, rewritetest.TownSnapshot(t), o)
			if fault.CodeOf(err) != fault.CodeRequestWeights || !strings.Contains(err.Error(), "and "+fault.Quote(c.output)+" is none") {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestFingerprintHoldsWeights(t *testing.T) {
	const sql = "SELECT count(*) AS n, sum(age) AS s FROM people"
	seen := map[[32]byte]int{}
	for i, w := range []map[string]*big.Rat{
		nil, weights(t, "n", "1"), weights(t, "s", "1"), weights(t, "n", "1", "s", "1"), weights(t, "n", "2", "s", "1"),
		weights(t, "n", "1", "s", "2"),
	} {
		o := rewritetest.Sharp()
		o.Weights = w
		id := rewritetest.TownPlan(t, sql, o).Fingerprint()
		if other, taken := seen[id]; taken {
			t.Errorf("weights %d have the fingerprint of weights %d", i, other)
		}
		seen[id] = i
	}
	o := rewritetest.Sharp()
	o.Weights = map[string]*big.Rat{}
	if seen[rewritetest.TownPlan(t, sql, o).Fingerprint()] != 0 {
		t.Error("no weights differ from none")
	}
	o.Weights = weights(t, "s", "1.0", "n", "2e0")
	if seen[rewritetest.TownPlan(t, sql, o).Fingerprint()] != 4 {
		t.Error("the spelling of a weight counts")
	}
}
