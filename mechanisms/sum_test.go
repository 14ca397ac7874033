package mechanisms

import (
	"errors"
	"math"
	"math/big"
	"testing"

	"noisegate.example/internal/exact"
)

func laplaceTerm(t *testing.T, scale, weight float64) Term {
	t.Helper()
	m, err := NewLaplace(LaplaceParameters{L1: big.NewInt(1), Scale: new(big.Rat).SetFloat64(scale)})
	if err != nil {
		t.Fatal(err)
	}
	return Term{Noise: m, Weight: new(big.Rat).SetFloat64(weight)}
}

func gaussianTerm(t *testing.T, variance, weight float64) Term {
	t.Helper()
	m, err := NewGaussian(GaussianParameters{L2Squared: big.NewInt(1), Variance: new(big.Rat).SetFloat64(variance)})
	if err != nil {
		t.Fatal(err)
	}
	return Term{Noise: m, Weight: new(big.Rat).SetFloat64(weight)}
}

// TestGoldenSumOfLaplace: the vectors are continuous; on a grid of 10⁻⁶ the widths are theirs, to a point of it below (one term's own
// half width counts the points that are left out) and a millionth above.
func TestGoldenSumOfLaplace(t *testing.T) {
	const grid = 1_000_000
	golden(t, "ci_sum_of_laplace", func(t *testing.T, v vector) {
		var terms []Term
		for range int(v.input(t, "terms")) {
			terms = append(terms, laplaceTerm(t, v.input(t, "scale")*grid, 1))
		}
		got := SumHalfWidth(terms, Confidence(1-v.input(t, "alpha"))) / grid
		want := v.output(t, "half_width")
		if got < want-1./grid || got > want+1e-6*want {
			t.Errorf("half width %.12g, want %.12g", got, want)
		}
	})
}

// TestSumHalfWidthCovers draws sums of unequal, weighted, mixed, small and many terms: the half width holds its level, and would not if it
// were 15 % smaller. Both are told from 40,000 draws by five standard deviations (false alarm below 1e-6).
func TestSumHalfWidthCovers(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	var many []Term
	for range 50 {
		many = append(many, laplaceTerm(t, 2, 1))
	}
	for name, terms := range map[string][]Term{
		"equal":    {laplaceTerm(t, 3, 1), laplaceTerm(t, 3, 1), laplaceTerm(t, 3, -1), laplaceTerm(t, 3, 1)},
		"weighted": {laplaceTerm(t, 10, 1), laplaceTerm(t, 2, -3), laplaceTerm(t, 40, 0.5)},
		"mixed":    {laplaceTerm(t, 10, 1), gaussianTerm(t, 400, 1), gaussianTerm(t, 25, 4)},
		"gaussian": {gaussianTerm(t, 100, 1), gaussianTerm(t, 100, 1), gaussianTerm(t, 0.5, 10)},
		"many":     many,
		"fifty":    {Term{Noise: many[0].Noise, Weight: many[0].Weight, Times: 50}},
		"shares":   {Term{Noise: many[0].Noise, Weight: big.NewRat(-1, 5), Times: 12}, laplaceTerm(t, 2, 0.8)},
		"one":      {laplaceTerm(t, 10, 2.5), laplaceTerm(t, 1000, 0)},
	} {
		t.Run(name, func(t *testing.T) {
			const draws, level = 40_000, 0.95
			width := SumHalfWidth(terms, level)
			s, outside, tooWide := fixedSampler(t), 0, 0
			for range draws {
				sum := 0.0
				for _, term := range terms {
					for range max(term.Times, 1) {
						sum += exact.Float(term.Weight) * noiseFloat(term.Noise.Draw(s))
					}
				}
				if math.Abs(sum) > width {
					outside++
				}
				if math.Abs(sum) > width/1.15 {
					tooWide++
				}
			}
			expected, spread := draws*(1-level), math.Sqrt(draws*level*(1-level))
			if float64(outside) > expected+5*spread {
				t.Errorf("half width %g: %d of %d outside", width, outside, draws)
			}
			if float64(tooWide) < expected-5*spread {
				t.Errorf("half width %g is more than 15 %% too wide: %d of %d outside %g", width, tooWide, draws, width/1.15)
			}
		})
	}
}

// The sum of small noise of both kinds, by its exact law: on whole numbers a width is near the limits of [TestSumHalfWidthCovers], where
// samples would decide by chance.
func TestSumHalfWidthOfSmallNoise(t *testing.T) {
	const most, level = 60, 0.95
	law := []float64{1} // of the sum so far, from its least value on
	add := func(mass func(x float64) float64) {
		sum, total := make([]float64, len(law)+2*most), 0.0
		for x := -most; x <= most; x++ {
			total += mass(float64(x))
			for i, p := range law {
				sum[i+x+most] += p * mass(float64(x))
			}
		}
		for i := range sum {
			sum[i] /= total
		}
		law = sum
	}
	var terms []Term
	for _, scale := range []float64{0.4, 1.5, 1} {
		add(func(x float64) float64 { return math.Exp(-math.Abs(x) / scale) })
		terms = append(terms, laplaceTerm(t, scale, 1))
	}
	const variance = 0.7
	add(func(x float64) float64 { return math.Exp(-x * x / (2 * variance)) })
	width := SumHalfWidth(append(terms, gaussianTerm(t, variance, 1)), level)
	beyond := func(limit float64) (p float64) {
		for i := range law {
			if math.Abs(float64(i-len(law)/2)) > limit {
				p += law[i]
			}
		}
		return p
	}
	if p := beyond(width); p > 1-level {
		t.Errorf("half width %g: %g outside", width, p)
	}
	if p := beyond(width / 1.15); p < 0.04455 { // as little as 40,000 samples are taken for 1-level
		t.Errorf("half width %g is more than 15 %% too wide: %g outside %g", width, p, width/1.15)
	}
}

// Equal terms are the same one by one and counted, and a thousand of them are about as wide as normal noise of their variance.
func TestSumHalfWidthCountsEqualTerms(t *testing.T) {
	for _, one := range []Term{laplaceTerm(t, 3, 1), gaussianTerm(t, 50, 2)} {
		var each []Term
		for range 7 {
			each = append(each, one)
		}
		counted := one
		counted.Times = 7
		if a, b := SumHalfWidth(each, 0.9), SumHalfWidth([]Term{counted}, 0.9); math.Abs(a-b) > 1e-6*a {
			t.Errorf("seven terms: %g, counted %g", a, b)
		}
	}
	many := laplaceTerm(t, 3, 1)
	many.Times = 1000
	if got, normal := SumHalfWidth([]Term{many}, 0.95), 1.95996*math.Sqrt(1000*(2*9+1./12)); math.Abs(got-normal) > 0.02*normal {
		t.Errorf("a thousand terms: %g, normal noise %g", got, normal)
	}
}

// Small noise, summed exactly: half widths hold their level on the grid of the sum too, where one point has much of the probability.
func TestSumHalfWidthCoversOnCoarseGrids(t *testing.T) {
	mass := func(b float64, x int) float64 { return math.Tanh(1/(2*b)) * math.Exp(-math.Abs(float64(x))/b) }
	for _, b := range []float64{0.5, 1, 2} {
		for _, weight := range []int{1, 2, 7} {
			terms := []Term{laplaceTerm(t, b, float64(weight)), laplaceTerm(t, 2*b, -1)}
			for _, level := range []Confidence{0.5, 0.9, 0.95, 0.99} {
				width, outside := SumHalfWidth(terms, level), 0.0
				for x := -100; x <= 100; x++ {
					for y := -160; y <= 160; y++ {
						if math.Abs(float64(weight*x-y)) > width {
							outside += mass(b, x) * mass(2*b, y)
						}
					}
				}
				if outside > 1-float64(level)+1e-6 {
					t.Errorf("scales %g·%d and %g: ±%g misses %g, promised %g", b, weight, 2*b, width, outside, 1-level)
				}
			}
		}
	}
}

func TestSumOfNothing(t *testing.T) {
	if got := SumHalfWidth(nil, 0.95); got != 0 {
		t.Errorf("half width of an empty sum: %g", got)
	}
}

func sharesOf(t *testing.T, v vector, sensitivities string) []Share {
	t.Helper()
	weights, sizes := v.inputs(t, "weights"), v.inputs(t, sensitivities)
	shares := make([]Share, len(weights))
	for i := range shares {
		shares[i] = Share{Weight: new(big.Rat).SetFloat64(weights[i]), Sensitivity: new(big.Rat).SetFloat64(sizes[i])}
	}
	return shares
}

func TestGoldenAllocate(t *testing.T) {
	check := func(t *testing.T, name string, total int64, parts []int64, want []float64) {
		t.Helper()
		sum := int64(0)
		for i, p := range parts {
			sum += p
			if math.Abs(float64(p)*unit-want[i]) > unit+1e-12*want[i] {
				t.Errorf("%s[%d] = %g, want %g", name, i, float64(p)*unit, want[i])
			}
		}
		if sum > total || sum < total-int64(len(parts)) {
			t.Errorf("%s adds up to %d of %d units", name, sum, total)
		}
	}
	golden(t, "allocate_rho", func(t *testing.T, v vector) {
		total, err := ParseRho(v.text("rho"))
		if err != nil {
			t.Fatal(err)
		}
		parts, err := AllocateRho(total, sharesOf(t, v, "l2_sensitivities"))
		if err != nil {
			t.Fatal(err)
		}
		check(t, "ρ", int64(total), toInt64(parts), v.outputs(t, "rho_j"))
	})
	golden(t, "allocate_eps", func(t *testing.T, v vector) {
		total, err := ParseEpsilon(v.text("eps"))
		if err != nil {
			t.Fatal(err)
		}
		parts, err := AllocateEpsilon(total, sharesOf(t, v, "l1_sensitivities"))
		if err != nil {
			t.Fatal(err)
		}
		check(t, "ε", int64(total), toInt64(parts), v.outputs(t, "eps_j"))
	})
}

func toInt64[T ~int64](parts []T) []int64 {
	out := make([]int64, len(parts))
	for i, p := range parts {
		out[i] = int64(p)
	}
	return out
}

func TestAllocateRefusesBadShares(t *testing.T) {
	good := Share{Weight: big.NewRat(1, 1), Sensitivity: big.NewRat(1, 1)}
	for name, c := range map[string]struct {
		share Share
		want  error
	}{
		"no weight":       {Share{Sensitivity: big.NewRat(1, 1)}, errShare},
		"zero weight":     {Share{Weight: new(big.Rat), Sensitivity: big.NewRat(1, 1)}, errShare},
		"negative weight": {Share{Weight: big.NewRat(-1, 1), Sensitivity: big.NewRat(1, 1)}, errShare},
		"too light":       {Share{Weight: big.NewRat(1, 1<<62), Sensitivity: big.NewRat(1, 1<<62)}, ErrTooSmall},
	} {
		if _, err := AllocateRho(1000, []Share{good, c.share}); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}
