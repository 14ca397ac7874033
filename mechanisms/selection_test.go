package mechanisms

import (
	"errors"
	"math"
	"math/big"
	"strconv"
	"testing"

	"noisegate.example/internal/exact"
)

// scoresOf seals scores.
func scoresOf(scores []float64) []Exact {
	sealed := make([]Exact, len(scores))
	for i, x := range scores {
		sealed[i] = SealInt64(int64(x))
	}
	return sealed
}

// selectionOf reads the inputs that the select_* vectors share.
func (v vector) selectionOf(t *testing.T) (SelectionParameters, []Exact) {
	t.Helper()
	epsilon, err := ParseEpsilon(v.text("eps"))
	if err != nil {
		t.Fatal(err)
	}
	monotone, _ := v.Inputs["monotonic"].(bool)
	p := SelectionParameters{Sensitivity: v.rat(t, "sensitivity").Num(), Monotone: monotone, Epsilon: epsilon}
	return p, scoresOf(v.inputs(t, "scores"))
}

// drawn counts which candidate a selector chooses.
func drawn(t *testing.T, m Selector, scores []Exact, draws int) []int64 {
	s, counts := fixedSampler(t), make([]int64, len(scores))
	for range draws {
		counts[m.Select(s, scores)]++
	}
	return counts
}

// selectorOf makes a selector of a type.
func selectorOf[S Selector](t testing.TB, p SelectionParameters) S {
	t.Helper()
	var typed S
	m, err := NewSelector(typed.Name(), p)
	if err != nil {
		t.Fatal(err)
	}
	return m.(S)
}

// TestGoldenExponential: the weights are the vector's probabilities, and so are the draws (false alarm 1e-6 each).
func TestGoldenExponential(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	golden(t, "select_exponential", func(t *testing.T, v vector) {
		p, scores := v.selectionOf(t)
		m := selectorOf[*Exponential](t, p)
		want := v.outputs(t, "probabilities")
		weights, total := make([]float64, len(scores)), 0.0
		for i, gap := range gaps(scores) {
			lo, _ := m.decay.exact(gap)(192)
			weights[i] = exact.Float(new(big.Rat).SetFrac(lo, one(192)))
			total += weights[i]
		}
		for i, w := range weights {
			v.close(t, "probability", w/total, want[i])
		}
		fits(t, drawn(t, m, scores, 40_000), want)
	})
}

// TestGoldenPermuteAndFlip: probabilities by walking every order that can arise, and by drawing (false alarm 1e-6 each).
func TestGoldenPermuteAndFlip(t *testing.T) {
	golden(t, "select_permute_and_flip", func(t *testing.T, v vector) {
		p, scores := v.selectionOf(t)
		m := selectorOf[*PermuteAndFlip](t, p)
		want := v.outputs(t, "probabilities")
		got := make([]float64, len(scores))
		flips := make([]float64, len(scores))
		for i, gap := range gaps(scores) {
			lo, _ := m.decay.exact(gap)(192)
			flips[i] = exact.Float(new(big.Rat).SetFrac(lo, one(192)))
		}
		var walk func(left []int, weight float64)
		walk = func(left []int, weight float64) {
			for j, candidate := range left {
				each := weight / float64(len(left))
				got[candidate] += each * flips[candidate]
				rest := append(append([]int{}, left[:j]...), left[j+1:]...)
				if flips[candidate] < 1 {
					walk(rest, each*(1-flips[candidate]))
				}
			}
		}
		order := make([]int, len(scores))
		for i := range order {
			order[i] = i
		}
		walk(order, 1)
		for i := range got {
			v.close(t, "probability", got[i], want[i])
		}
		fits(t, drawn(t, m, scores, 40_000), want)
	})
}

// TestGoldenNoisyMax: the vectors are for continuous noise; on a grid of 10⁻⁶ the discrete law is within 10⁻⁵ of it, which 40,000 draws
// cannot see (false alarm 1e-6 each).
func TestGoldenNoisyMax(t *testing.T) {
	const grid = 1_000_000
	golden(t, "select_report_noisy_max_laplace", func(t *testing.T, v vector) {
		p, _ := v.selectionOf(t)
		p.Sensitivity = new(big.Int).Mul(p.Sensitivity, big.NewInt(grid))
		m := selectorOf[*NoisyMax](t, p)
		if want := v.rat(t, "noise_scale"); new(big.Rat).Inv(m.rate).Cmp(want.Mul(want, big.NewRat(grid, 1))) != 0 {
			t.Errorf("rate %s, want 1/%s", m.rate, want)
		}
		fine := v.inputs(t, "scores")
		for i := range fine {
			fine[i] *= grid
		}
		fits(t, drawn(t, m, scoresOf(fine), 40_000), v.outputs(t, "probabilities"))
	})
}

// TestNoisyMaxIsPrivate computes the exact law of the winner for two candidates and small scales, for every pair of neighbouring
// scores, ties included: the ratio keeps to e^ε, and is not much smaller (the noise is not too large).
func TestNoisyMaxIsPrivate(t *testing.T) {
	const scale, reach = 1.5, 60
	mass := func(x int64) float64 { return laplaceMass(scale, x) }
	firstWins := func(lead int64) float64 { // P(X + lead >= Y)
		sum := 0.0
		for x := int64(-reach); x <= reach; x++ {
			for y := int64(-reach); y <= min(reach, x+lead); y++ {
				sum += mass(x) * mass(y)
			}
		}
		return sum
	}
	epsilon := 2 / scale // scores of sensitivity 1, not monotone: their difference moves by 2
	worst := 0.0
	for lead := int64(-4); lead <= 4; lead++ {
		for _, moved := range []int64{-2, -1, 1, 2} {
			p, q := firstWins(lead), firstWins(lead+moved)
			worst = math.Max(worst, math.Max(math.Log(p/q), math.Log((1-p)/(1-q))))
		}
	}
	if worst > epsilon+1e-9 || worst < epsilon*0.7 {
		t.Errorf("worst loss %g, claim %g", worst, epsilon)
	}
}

// TestGoldenTopK: ordered picks (false alarm 1e-6 each), and the price of all of them.
func TestGoldenTopK(t *testing.T) {
	golden(t, "select_topk_gumbel", func(t *testing.T, v vector) {
		perPick, err := ParseEpsilon(v.text("eps_per_pick"))
		if err != nil {
			t.Fatal(err)
		}
		k := int(v.input(t, "k"))
		m, err := NewTopK(TopKParameters{K: k, SelectionParameters: SelectionParameters{
			Sensitivity: v.rat(t, "sensitivity").Num(), Epsilon: perPick * PicoEpsilon(k)}})
		if err != nil {
			t.Fatal(err)
		}
		v.charged(t, m.Loss().Rho, v.output(t, "rho_total"))
		if got := float64(m.Loss().Epsilon) * unit; got != v.output(t, "eps_total_basic") {
			t.Errorf("ε = %g, want %g", got, v.output(t, "eps_total_basic"))
		}
		law, _ := v.Outputs["ordered_probabilities"].(map[string]any)
		var probabilities []float64
		cell := map[string]int{}
		for order, p := range law {
			cell[order] = len(probabilities)
			probabilities = append(probabilities, p.(float64))
		}
		counts := make([]int64, len(probabilities))
		s, scores := fixedSampler(t), scoresOf(v.inputs(t, "scores"))
		for range 40_000 {
			order := ""
			for i, pick := range m.Select(s, scores) {
				if i > 0 {
					order += "-"
				}
				order += strconv.Itoa(pick)
			}
			counts[cell[order]]++
		}
		fits(t, counts, probabilities)
	})
}

func TestTopKOfFewCandidates(t *testing.T) {
	m, err := NewTopK(TopKParameters{K: 5, SelectionParameters: SelectionParameters{Sensitivity: big.NewInt(1), Epsilon: EpsilonUnit}})
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Select(fixedSampler(t), scoresOf([]float64{3, 1})); len(got) != 2 || got[0] == got[1] {
		t.Errorf("chose %v of two", got)
	}
}

// TestGoldenQuantileGrid: scores and probabilities of every grid point, and draws (false alarm 1e-6 each).
func TestGoldenQuantileGrid(t *testing.T) {
	golden(t, "quantile_exponential_grid", func(t *testing.T, v vector) {
		fraction := v.rat(t, "alpha")
		// The vector divides by a sensitivity of 1; ours is max(α, 1-α), so the same weights cost less.
		share := new(big.Rat).Sub(big.NewRat(1, 1), fraction)
		if share.Cmp(fraction) < 0 {
			share = fraction
		}
		epsilon := new(big.Rat).Mul(v.rat(t, "eps"), share)
		grid := len(v.inputs(t, "candidates"))
		m, err := NewQuantile(QuantileParameters{Fraction: fraction, Grid: uint64(grid), Rows: big.NewInt(1),
			Epsilon: PicoEpsilon(ceilUnits(epsilon, int64(EpsilonUnit)))})
		if err != nil {
			t.Fatal(err)
		}
		var tallies []Tally
		for _, x := range v.inputs(t, "data") {
			tallies = append(tallies, Tally{Point: SealInt64(int64(x)), Rows: SealInt64(1)})
		}
		scores := v.outputs(t, "scores")
		denominator := exact.Float(new(big.Rat).SetInt(m.scale))
		for _, r := range m.runs(m.sorted(tallies)) {
			for x := r.start; x < r.start+r.count; x++ {
				if got := -exact.Float(new(big.Rat).SetInt(r.distance)) / denominator; got != scores[x] {
					t.Errorf("score of %d = %g, want %g", x, got, scores[x])
				}
			}
		}
		s, counts := fixedSampler(t), make([]int64, grid)
		for range 40_000 {
			counts[m.Select(s, tallies)]++
		}
		fits(t, counts, v.outputs(t, "probabilities"))
	})
}

// TestQuantileSensitivity: over random data, fractions and neighbours, no grid point's score moves by more than is charged for, and
// some move by exactly that.
func TestQuantileSensitivity(t *testing.T) {
	random := seeded()
	const grid = 12
	for _, c := range []struct{ fraction, offset *big.Rat }{
		{new(big.Rat), nil}, {big.NewRat(1, 4), nil}, {big.NewRat(1, 2), nil}, {big.NewRat(9, 10), nil}, {big.NewRat(1, 1), nil},
		{big.NewRat(1, 4), big.NewRat(-1, 8)}, {big.NewRat(2, 3), big.NewRat(5, 7)},
		{new(big.Rat), big.NewRat(1, 2)}, {new(big.Rat), big.NewRat(4, 1)}, {big.NewRat(1, 1), big.NewRat(-1, 2)},
		{big.NewRat(1, 1), big.NewRat(-7, 2)},
	} {
		m, err := NewQuantile(QuantileParameters{Fraction: c.fraction, Offset: c.offset, Grid: grid, Rows: big.NewInt(3), Epsilon: EpsilonUnit})
		if err != nil {
			t.Fatal(err)
		}
		claim, worst := sensitivityOfRank(m.parameters), new(big.Int)
		scoresAt := func(tallies []Tally) []*big.Int {
			scores := make([]*big.Int, grid)
			for _, r := range m.runs(m.sorted(tallies)) {
				for x := r.start; x < r.start+r.count; x++ {
					scores[x] = r.distance
				}
			}
			return scores
		}
		for range 2000 {
			var tallies []Tally
			for range random.IntN(8) {
				tallies = append(tallies, Tally{Point: SealInt64(random.Int64N(grid)), Rows: SealInt64(random.Int64N(4))})
			}
			unit := append([]Tally{}, tallies...)
			for range 3 { // one unit's rows, anywhere
				unit = append(unit, Tally{Point: SealInt64(random.Int64N(grid)), Rows: SealInt64(1)})
			}
			before, after := scoresAt(tallies), scoresAt(unit)
			for x := range before {
				if moved := new(big.Int).Sub(before[x], after[x]); moved.CmpAbs(worst) > 0 {
					worst.Abs(moved)
				}
			}
		}
		if worst.Cmp(claim) != 0 {
			t.Errorf("α = %s, offset %v: scores moved by up to %s, claim %s", c.fraction, c.offset, worst, claim)
		}
	}
}

// TestQuantileRanks: with an offset of half a step of ranks the best points are those of percentile_disc, and at the ends the least and the
// greatest value alone; far offsets stop at the middle.
func TestQuantileRanks(t *testing.T) {
	data := []int64{2, 3, 3, 7, 8, 8} // of a grid of 10
	for _, c := range []struct {
		fraction, offset *big.Rat
		want             uint64
	}{
		{big.NewRat(1, 2), big.NewRat(-1, 4), 3}, {big.NewRat(1, 4), big.NewRat(-1, 8), 3}, {big.NewRat(2, 3), big.NewRat(-1, 6), 7},
		{big.NewRat(1, 6), big.NewRat(-1, 12), 2}, {big.NewRat(99, 100), big.NewRat(-1, 200), 8},
		{new(big.Rat), big.NewRat(1, 2), 2}, {big.NewRat(1, 1), big.NewRat(-1, 2), 8}, {new(big.Rat), big.NewRat(3, 2), 3},
	} {
		m, err := NewQuantile(QuantileParameters{Fraction: c.fraction, Offset: c.offset, Grid: 10, Rows: big.NewInt(1), Epsilon: MaxEpsilon})
		if err != nil {
			t.Fatal(err)
		}
		var tallies []Tally
		for _, x := range data {
			tallies = append(tallies, Tally{Point: SealInt64(x), Rows: SealInt64(1)})
		}
		if got := m.Select(fixedSampler(t), tallies); got != c.want {
			t.Errorf("α = %s, offset %s: chose %d, want %d", c.fraction, c.offset, got, c.want)
		}
	}
	far, err := NewQuantile(QuantileParameters{Fraction: new(big.Rat), Offset: big.NewRat(100, 1), Grid: 10, Rows: big.NewInt(1),
		Epsilon: MaxEpsilon})
	if err != nil {
		t.Fatal(err)
	}
	if got := far.rank(big.NewInt(7)); got.Cmp(big.NewInt(7)) != 0 { // twice 7/2
		t.Errorf("rank %s, want the middle", got)
	}
}

// TestQuantileOfHugeGrids: 2⁶¹ points, a million rows at one of them: the answer is there or next to it, and quickly.
func TestQuantileOfHugeGrids(t *testing.T) {
	m, err := NewQuantile(QuantileParameters{Fraction: big.NewRat(1, 2), Grid: maxGrid, Rows: big.NewInt(1), Epsilon: EpsilonUnit})
	if err != nil {
		t.Fatal(err)
	}
	s := fixedSampler(t)
	for range 100 {
		if got := m.Select(s, []Tally{{Point: SealInt64(12345), Rows: SealInt64(1_000_000)}}); got != 12345 {
			t.Fatalf("chose %d", got) // another point has probability below 2⁶¹·e^-250000
		}
	}
	outside := []Tally{{Point: SealInt64(-7), Rows: SealInt64(1_000_000)}, {Point: Seal(one(70)), Rows: SealInt64(10)}}
	if got := m.Select(s, outside); got != 0 {
		t.Errorf("rows below the grid: chose %d, want 0", got)
	}
}

// TestGoldenThresholds: integer thresholds of the discrete law; those of the continuous one on a grid.
func TestGoldenThresholds(t *testing.T) {
	golden(t, "threshold_discrete_gaussian", func(t *testing.T, v vector) {
		l0 := int64(v.input(t, "l0"))
		// ρ that buys the vector's σ²: L0/2σ².
		rho := new(big.Rat).Quo(new(big.Rat).SetInt64(l0), new(big.Rat).Mul(big.NewRat(2, 1), v.rat(t, "sigma2")))
		delta, err := ParseDelta(v.text("delta"))
		if err != nil {
			t.Fatal(err)
		}
		g, err := NewGaussianThreshold(GaussianThresholdParameters{Rho: PicoRho(ceilUnits(rho, int64(RhoUnit))), Delta: delta, L0: l0})
		if err != nil {
			t.Fatal(err)
		}
		if g.Threshold().String() != strconv.FormatFloat(v.output(t, "threshold_integer"), 'f', -1, 64) {
			t.Errorf("threshold %s, want %g", g.Threshold(), v.output(t, "threshold_integer"))
		}
	})
	golden(t, "threshold_gaussian", func(t *testing.T, v vector) {
		sigma := v.output(t, "sigma")
		const grid = 1_000_000
		got := gaussianTailPoint(sigma*sigma*grid*grid, v.output(t, "delta_per_partition"))
		if threshold := 1 + exact.Float(new(big.Rat).SetFrac(got, big.NewInt(grid))); math.Abs(threshold-v.output(t, "threshold")) > 3e-6 {
			t.Errorf("threshold %g, want %g", threshold, v.output(t, "threshold"))
		}
	})
}

// TestThresholdKeepsDelta: with δ = 1e-2 over 5 groups, a lone unit shows up in one of 50,000 rounds as often as claimed or
// less; 620 or more of an expected 500 at most has probability below 1e-6.
func TestThresholdKeepsDelta(t *testing.T) {
	g, err := NewGaussianThreshold(GaussianThresholdParameters{Rho: RhoUnit / 2, Delta: DeltaUnit / 100, L0: 5})
	if err != nil {
		t.Fatal(err)
	}
	s, shown := fixedSampler(t), 0
	for range 50_000 {
		any := false
		for range 5 {
			any = g.Keep(s, SealInt64(1)) || any
		}
		if any {
			shown++
		}
		if g.Keep(s, Exact{}) {
			t.Fatal("a group without units was shown")
		}
	}
	if shown > 620 {
		t.Errorf("shown in %d of 50,000 rounds", shown)
	}
	if loss := g.Loss(); !loss.Unbounded || loss.Rho != RhoUnit/2 || loss.Delta != DeltaUnit/100 {
		t.Errorf("loss %+v", loss)
	}
	if half := g.ShownAt(0.5); big.NewInt(half).Cmp(g.threshold) != 0 {
		t.Errorf("shown at 50%% from %d units, threshold %s", half, g.threshold)
	}
	if g.ShownAt(0.99) <= g.ShownAt(0.5) || g.ShownAt(0.1) >= g.ShownAt(0.5) {
		t.Errorf("shown at 10, 50, 99%%: %d, %d, %d", g.ShownAt(0.1), g.ShownAt(0.5), g.ShownAt(0.99))
	}
}

// TestThresholdKeepsSmallDelta: with δ = 1e-3 for one group, a lone unit shows up in a million rounds at most 1,180
// times, but with a probability below 1e-6 (Chernoff: e^-15.3), and does show up: the threshold is not so high that the
// test would see nothing.
func TestThresholdKeepsSmallDelta(t *testing.T) {
	g, err := NewGaussianThreshold(GaussianThresholdParameters{Rho: RhoUnit / 200, Delta: DeltaUnit / 1000, L0: 1}) // σ = 10
	if err != nil {
		t.Fatal(err)
	}
	s, shown := fixedSampler(t), 0
	for range 1_000_000 {
		if g.Keep(s, SealInt64(1)) {
			shown++
		}
	}
	if shown > 1180 || shown < 400 {
		t.Errorf("shown in %d of 1,000,000 rounds", shown)
	}
}

// TestPricesInRho: the ε that a ρ buys keeps to it; a millionth more (and 10⁻⁷, a pico unit of ρ being coarse for small ε) does not.
func TestPricesInRho(t *testing.T) {
	random := seeded()
	for range 100 {
		rho := PicoRho(math.Exp(random.Float64()*math.Log(1e15))) + 100
		l1, l0 := big.NewInt(1+random.Int64N(1<<uint(1+random.IntN(30)))), 1+random.Int64N(10)
		m, err := NewLaplace(LaplaceParameters{L1: l1, Rho: rho})
		if err != nil {
			t.Fatal(err)
		}
		more, err := NewLaplace(LaplaceParameters{L1: l1, Epsilon: m.Loss().Epsilon + m.Loss().Epsilon/1_000_000 + 100_000})
		if err != nil {
			t.Fatal(err)
		}
		if m.Loss().Rho > rho || more.Loss().Rho <= rho {
			t.Errorf("Δ = %s, ρ = %s: %+v; with more ε %+v", l1, rho, m.Loss(), more.Loss())
		}
		g, err := NewPartitionSelection(GroupSelectionParameters{Rho: rho, Delta: DeltaUnit / 1_000_000, L0: l0})
		if err != nil {
			t.Fatal(err)
		}
		if e := g.Loss().Epsilon; g.Loss().Rho > rho || rhoOfShares((e+e/1_000_000+PicoEpsilon(100_000*l0)).Rat(), l0) <= rho {
			t.Errorf("L0 = %d, ρ = %s: %+v", l0, rho, g.Loss())
		}
	}
	if _, err := NewLaplace(LaplaceParameters{L1: big.NewInt(1), Epsilon: 1, Rho: 1}); !errors.Is(err, errPrice) {
		t.Errorf("two prices: %v", err)
	}
}

func TestSelectorsRefuseBadParameters(t *testing.T) {
	good := SelectionParameters{Sensitivity: big.NewInt(1), Epsilon: 1}
	half := big.NewRat(1, 2)
	for name, c := range map[string]struct{ err, want error }{
		"exponential without sensitivity": {errOf(NewSelector(ExponentialMechanism, SelectionParameters{Epsilon: 1})), errSensitivity},
		"exponential without price":       {errOf(NewSelector(ExponentialMechanism, SelectionParameters{Sensitivity: big.NewInt(1)})), errPrice},
		"permute-and-flip without price": {errOf(NewSelector(PermuteAndFlipMechanism,
			SelectionParameters{Sensitivity: big.NewInt(1)})), errPrice},
		"noisy max without sensitivity": {errOf(NewSelector(ReportNoisyMax, SelectionParameters{Epsilon: 1})), errSensitivity},
		"no picks":                      {errOf(NewTopK(TopKParameters{SelectionParameters: good})), errPicks},
		"quantile above 1": {errOf(NewQuantile(QuantileParameters{
			Fraction: big.NewRat(3, 2), Grid: 1, Rows: big.NewInt(1), Epsilon: 1})), errFraction},
		"least value outside": {errOf(NewQuantile(QuantileParameters{
			Fraction: new(big.Rat), Offset: big.NewRat(-1, 2), Grid: 1, Rows: big.NewInt(1), Epsilon: 1})), errOffset},
		"quantile without grid": {errOf(NewQuantile(QuantileParameters{Fraction: half, Rows: big.NewInt(1), Epsilon: 1})), errGrid},
		"quantile without rows": {errOf(NewQuantile(QuantileParameters{Fraction: half, Grid: 1, Epsilon: 1})), errSensitivity},
		"threshold without δ":   {errOf(NewGaussianThreshold(GaussianThresholdParameters{Rho: 1, L0: 1})), errDelta},
		"threshold without ρ":   {errOf(NewGaussianThreshold(GaussianThresholdParameters{Delta: 1, L0: 1})), errPrice},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v, want %v", name, c.err, c.want)
		}
	}
}
