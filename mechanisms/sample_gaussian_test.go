package mechanisms

import (
	"math"
	"math/big"
	"testing"

	"noisegate.example/internal/exact"
	"noisegate.example/internal/stattest"
)

// TestGaussianErrorBound holds the proof of errorBound against the exact probability: on random variances over the whole fast
// range and magnitudes over the whole range that proposals have, the fixed-point probability is well within it.
func TestGaussianErrorBound(t *testing.T) {
	random := seeded()
	worst := new(big.Int)
	for range 3000 {
		variance := big.NewRat(1+random.Int64N(1<<62), 1+random.Int64N(1<<uint(1+random.IntN(62))))
		variance.Mul(variance, big.NewRat(1, 1<<uint(random.IntN(20))))
		if random.IntN(4) == 0 {
			variance.Mul(variance, big.NewRat(1<<uint(random.IntN(48)), 1))
		}
		g := newGaussianLaw(variance)
		if !g.fast {
			continue
		}
		for range 8 {
			reach := 1 + int64(math.Min(exact.Float(new(big.Rat).SetInt(g.t))*math.Exp2(random.Float64()*14-7), 1<<61))
			magnitude := random.Int64N(reach + 1)
			lo, hi := lawExp.bounds(g.exactExponent(Noise{small: magnitude}), 64)
			got := new(big.Int).SetUint64(expNeg(g.exponent(uint64(magnitude))))
			for _, end := range []*big.Int{lo, hi} {
				if distance := new(big.Int).Sub(got, end); distance.CmpAbs(worst) > 0 {
					worst.Abs(distance)
				}
			}
		}
	}
	if worst.Cmp(big.NewInt(errorBound/4)) > 0 {
		t.Errorf("the fixed-point probability is off by %s units of 2⁻⁶⁴; the proof allows %d", worst, errorBound/4)
	}
	t.Logf("worst error: %s units of 2⁻⁶⁴", worst)
}

// TestExpNegErrorBound compares the fixed-point exponential with its enclosure over its whole domain.
func TestExpNegErrorBound(t *testing.T) {
	random := seeded()
	const allowed = 1 << 10 // 2⁻⁵⁴
	for i := range 20_000 {
		x := random.Uint64() >> uint(random.IntN(64))
		if i < 64 {
			x = 1 << i
		}
		lo, hi := lawExp.bounds(new(big.Rat).SetFrac(new(big.Int).SetUint64(x), one(57)), 64)
		got := new(big.Int).SetUint64(expNeg(x))
		if new(big.Int).Sub(got, lo).CmpAbs(big.NewInt(allowed)) > 0 || new(big.Int).Sub(got, hi).CmpAbs(big.NewInt(allowed)) > 0 {
			t.Fatalf("e^-%d/2⁵⁷ = %s, enclosure [%s, %s]", x, got, lo, hi)
		}
	}
}

// TestLn2Powers recomputes the constants from exact arithmetic: ln(2) = -ln(1-1/2) = Σ 1/(j·2ʲ).
func TestLn2Powers(t *testing.T) {
	const precision = 300
	ln2 := new(big.Int)
	for j := int64(1); j < precision; j++ {
		ln2.Add(ln2, new(big.Int).Quo(one(uint(precision-j)), big.NewInt(j)))
	}
	power := one(precision)
	for i, got := range ln2Powers {
		power.Mul(power, ln2)
		power.Rsh(power, precision)
		power.Quo(power, big.NewInt(int64(i+1)))
		if want := new(big.Int).Rsh(power, precision-64).Uint64(); got != want {
			t.Errorf("ln(2)^%d/%d! = %x, want %x", i+1, i+1, got, want)
		}
	}
}

// TestGaussianLaw compares draws with the law, for variances on each path: tiny, small, large, rational with long
// numerators, beyond the fixed-point range and beyond machine words. False alarm 1e-6 each.
func TestGaussianLaw(t *testing.T) {
	for _, c := range []struct {
		variance string
		draws    int
		fast     bool
	}{
		{"0.3", 100_000, true},
		{"1/2", 100_000, true},
		{"1", 100_000, true},
		{"25", 100_000, true},
		{"250000000000/8333333333", 100_000, true},
		{"1000000000000", 100_000, true},
		{"2305843009213693952", 100_000, true},
		{"123456789012345678901234567890123", 20_000, true},
		{"1e36", 3_000, false},
		{"1e44", 3_000, false},
	} {
		t.Run(c.variance, func(t *testing.T) {
			law, s := newGaussianLaw(rational(t, c.variance)), fixedSampler(t)
			if law.fast != c.fast {
				t.Fatalf("fast = %v, want %v", law.fast, c.fast)
			}
			probabilities, step := gaussianCells(exact.Float(law.variance))
			half := len(probabilities) / 2
			counts := make([]int64, len(probabilities))
			for range c.draws {
				cell := int(math.Max(float64(-half), math.Min(float64(half), math.Floor(noiseFloat(law.draw(s))/step+0.5))))
				counts[cell+half]++
			}
			fits(t, counts, probabilities)
		})
	}
}

// gaussianCells are the probabilities of 2·16+1 cells of width step, centred on multiples of it. For small variances the step is 1
// and the masses are summed; for large ones the continuous law is within 1/σ² of it.
func gaussianCells(variance float64) (probabilities []float64, step float64) {
	const half = 16
	sigma := math.Sqrt(variance)
	probabilities = make([]float64, 2*half+1)
	if sigma < 1000 {
		step = math.Max(1, 2*math.Floor(sigma/8)+1) // odd: cells are symmetric
		total := 0.0
		for x := -math.Ceil(40*sigma) - 1; x <= 40*sigma+1; x++ {
			mass := math.Exp(-x * x / (2 * variance))
			total += mass
			cell := int(math.Max(-half, math.Min(half, math.Floor(x/step+0.5))))
			probabilities[cell+half] += mass
		}
		for i := range probabilities {
			probabilities[i] /= total
		}
		return probabilities, step
	}
	step = 2*math.Floor(sigma/8) + 1
	upTo := func(cell int) float64 { // P(X < (cell+1/2)·step)
		return 0.5 * math.Erfc(-(float64(cell)+0.5)*step/(sigma*math.Sqrt2))
	}
	for i := range probabilities {
		probabilities[i] = upTo(i-half) - upTo(i-half-1)
	}
	probabilities[0], probabilities[2*half] = upTo(-half), 1-upTo(half-1)
	return probabilities, step
}

// TestGaussianExactPathAgrees draws with the fast path taken away: both paths sample one law. False alarm 1e-6.
func TestGaussianExactPathAgrees(t *testing.T) {
	law, s := newGaussianLaw(big.NewRat(25, 3)), fixedSampler(t)
	law.fast = false
	probabilities, step := gaussianCells(25. / 3)
	counts := make([]int64, len(probabilities))
	for range 20_000 {
		counts[int(math.Max(-16, math.Min(16, math.Floor(noiseFloat(law.draw(s))/step+0.5))))+16]++
	}
	fits(t, counts, probabilities)
}

// TestGaussianHalvedNoiseIsCaught: the test above can fail: noise of half the standard deviation is rejected.
func TestGaussianHalvedNoiseIsCaught(t *testing.T) {
	law, s := newGaussianLaw(big.NewRat(25, 12)), fixedSampler(t)
	probabilities, step := gaussianCells(25. / 3)
	counts := make([]int64, len(probabilities))
	for range 5_000 {
		counts[int(math.Max(-16, math.Min(16, math.Floor(noiseFloat(law.draw(s))/step+0.5))))+16]++
	}
	fit, err := stattest.ChiSquare(counts, probabilities)
	if err != nil || !fit.Rejects(stattest.PerTest) {
		t.Errorf("halved noise was not noticed: %+v, %v", fit, err)
	}
}
