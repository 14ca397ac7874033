package mechanisms

import (
	"errors"
	"math"
	"math/big"
	"testing"
)

// TestLaplaceRhoBoundsEveryRenyiOrder: D_α <= α·ρ for the exact law, on a grid of orders from near 1 to 1000, of scales and shifts;
// and ρ is tight at orders near 1.
func TestLaplaceRhoBoundsEveryRenyiOrder(t *testing.T) {
	for _, scale := range []float64{0.2, 0.5, 1, 3, 10, 40} {
		for _, shift := range []int64{1, 2, 3, 7, 30} {
			epsilon := float64(shift) / scale
			if epsilon > 40 {
				continue
			}
			rho := float64(rhoOfLaplace(big.NewInt(shift), new(big.Rat).SetFloat64(scale))) * unit
			for _, alpha := range []float64{1.0001, 1.01, 1.1, 1.5, 2, 3, 5, 10, 30, 100, 1000} {
				if d := laplaceRenyi(scale, shift, alpha); d > alpha*rho*(1+1e-9)+1e-11 {
					t.Errorf("b = %g, Δ = %d: D_%g = %g > α·ρ = %g", scale, shift, alpha, d, alpha*rho)
				}
			}
			if d := laplaceRenyi(scale, shift, 1.0001); rho > d*1.001+1e-9 {
				t.Errorf("b = %g, Δ = %d: ρ = %g is not tight, KL is about %g", scale, shift, rho, d)
			}
		}
	}
}

// laplaceRenyi is the Rényi divergence of the discrete Laplace law from its shift, by the three pieces of its likelihood ratio.
func laplaceRenyi(scale float64, shift int64, alpha float64) float64 {
	a, q := 1/scale, math.Exp(-1/scale)
	epsilon := a * float64(shift)
	mass := (1 - q) / (1 + q)
	// x <= 0: ratio e^ε; x >= Δ: e^-ε; between: e^(a(Δ-2x)). Factored by e^((α-1)ε) against overflow.
	sum := 1/(1+q) + math.Exp(-2*(alpha-1)*epsilon-epsilon)/(1+q)
	for x := int64(1); x < shift; x++ {
		sum += mass * math.Exp(-a*float64(x)-2*(alpha-1)*a*float64(x))
	}
	return epsilon + math.Log(sum)/(alpha-1)
}

// TestLaplaceRhoOfSpreadShifts: a shift spread over coordinates costs no more than all of it in one, so that L1 is all that matters.
func TestLaplaceRhoOfSpreadShifts(t *testing.T) {
	random := seeded()
	for range 300 {
		scale := big.NewRat(1+random.Int64N(1000), 1+random.Int64N(100))
		d, e := big.NewInt(1+random.Int64N(50)), big.NewInt(1+random.Int64N(50))
		whole := rhoOfLaplace(new(big.Int).Add(d, e), scale)
		if parts := rhoOfLaplace(d, scale) + rhoOfLaplace(e, scale); parts > whole+1 { // each part is rounded up
			t.Errorf("b = %s: ρ(%s) + ρ(%s) = %d > ρ(sum) = %d", scale, d, e, parts, whole)
		}
	}
}

// TestChargesRoundUp over sizes of ε from a pico unit to the largest: never below the closed form, never a unit above its
// neighbourhood, never above pure DP's worst case.
func TestChargesRoundUp(t *testing.T) {
	random := seeded()
	for range 2000 {
		epsilon := PicoEpsilon(math.Exp(random.Float64() * math.Log(float64(MaxEpsilon))))
		l1 := big.NewInt(1 + random.Int64N(1<<uint(1+random.IntN(40))))
		m, err := NewLaplace(LaplaceParameters{L1: l1, Epsilon: epsilon})
		if err != nil {
			t.Fatal(err)
		}
		loss := m.Loss()
		pure := rhoOfPure(epsilon.Rat())
		if loss.Epsilon != epsilon || loss.Rho > pure || loss.Rho < 1 {
			t.Fatalf("ε = %s, Δ = %s: %+v, pure worst case %d", epsilon, l1, loss, pure)
		}
		e := float64(epsilon) * unit
		continuous := e + math.Expm1(-e)
		if e > 1e-4 && float64(loss.Rho)*unit < continuous*(1-1e-10) {
			t.Fatalf("ε = %s, Δ = %s: ρ = %s is below that of continuous noise, %g", epsilon, l1, loss.Rho, continuous)
		}
		if exact := e * math.Tanh(e/2); math.Abs(float64(pure)*unit-exact) > unit+1e-14*exact {
			t.Fatalf("ε = %s: pure ρ = %s, exact %g", epsilon, pure, exact)
		}
	}
}

// TestPriceAndNoiseAgree: a mechanism made from its price and one made from the noise that this price buys are the same.
func TestPriceAndNoiseAgree(t *testing.T) {
	priced, err := NewLaplace(LaplaceParameters{L1: big.NewInt(3), Epsilon: EpsilonUnit / 7})
	if err != nil {
		t.Fatal(err)
	}
	named, err := NewLaplace(LaplaceParameters{L1: big.NewInt(3), Scale: priced.scale})
	if err != nil {
		t.Fatal(err)
	}
	if priced.Loss() != named.Loss() || priced.Parameters() != named.Parameters() {
		t.Errorf("%+v %+v != %+v %+v", priced.Loss(), priced.Parameters(), named.Loss(), named.Parameters())
	}
	gaussian, err := NewGaussian(GaussianParameters{L2Squared: big.NewInt(3), Rho: RhoUnit / 7})
	if err != nil {
		t.Fatal(err)
	}
	byNoise, err := NewGaussian(GaussianParameters{L2Squared: big.NewInt(3), Variance: gaussian.variance})
	if err != nil {
		t.Fatal(err)
	}
	if gaussian.Loss() != byNoise.Loss() || gaussian.Parameters().Sensitivity != "sqrt(3)" {
		t.Errorf("%+v != %+v, %+v", gaussian.Loss(), byNoise.Loss(), gaussian.Parameters())
	}
	if !gaussian.Loss().Unbounded || priced.Loss().Unbounded {
		t.Error("Gaussian noise has no pure ε; Laplace noise has")
	}
}

// TestChargesSaturate: a price beyond the ledger's range is the largest one, which no budget admits, not a small one.
func TestChargesSaturate(t *testing.T) {
	m, err := NewGaussian(GaussianParameters{L2Squared: one(80), Variance: big.NewRat(1, 1)})
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Loss().Rho; got != math.MaxInt64 {
		t.Errorf("ρ = %d", got)
	}
	all := m.Loss().Plus(m.Loss())
	if all.Rho != math.MaxInt64 || !all.Unbounded {
		t.Errorf("sum %+v", all)
	}
}

func TestNoiseRefusesBadParameters(t *testing.T) {
	one, negative, half := big.NewInt(1), big.NewInt(-1), big.NewRat(1, 2)
	for name, c := range map[string]struct {
		err  error
		want error
	}{
		"laplace without sensitivity":  {errOf(NewLaplace(LaplaceParameters{Epsilon: 1})), errSensitivity},
		"laplace negative sensitivity": {errOf(NewLaplace(LaplaceParameters{L1: negative, Epsilon: 1})), errSensitivity},
		"laplace zero sensitivity":     {errOf(NewLaplace(LaplaceParameters{L1: new(big.Int), Epsilon: 1})), errSensitivity},
		"laplace without price":        {errOf(NewLaplace(LaplaceParameters{L1: one})), errPrice},
		"laplace negative price":       {errOf(NewLaplace(LaplaceParameters{L1: one, Epsilon: -1})), errPrice},
		"laplace price and noise":      {errOf(NewLaplace(LaplaceParameters{L1: one, Epsilon: 1, Scale: half})), errPrice},
		"laplace zero noise":           {errOf(NewLaplace(LaplaceParameters{L1: one, Scale: new(big.Rat)})), errPrice},
		"gaussian without sensitivity": {errOf(NewGaussian(GaussianParameters{Rho: 1})), errSensitivity},
		"gaussian without price":       {errOf(NewGaussian(GaussianParameters{L2Squared: one})), errPrice},
		"gaussian price and noise":     {errOf(NewGaussian(GaussianParameters{L2Squared: one, Rho: 1, Variance: half})), errPrice},
		"gaussian negative noise":      {errOf(NewGaussian(GaussianParameters{L2Squared: one, Variance: big.NewRat(-1, 2)})), errPrice},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v, want %v", name, c.err, c.want)
		}
	}
}

func errOf[T any](_ T, err error) error { return err }

// TestHalfWidthCovers: the half width is the smallest that keeps its level, by the exact tails, over scales and levels.
func TestHalfWidthCovers(t *testing.T) {
	for _, scale := range []float64{0.1, 0.5, 1, 2.5, 10, 1234.5, 1e6} {
		m, err := NewLaplace(LaplaceParameters{L1: big.NewInt(1), Scale: new(big.Rat).SetFloat64(scale)})
		if err != nil {
			t.Fatal(err)
		}
		for _, level := range []Confidence{0.5, 0.9, 0.95, 0.99, 0.999999} {
			width := float64(m.HalfWidth(level).Int64())
			outside := func(w float64) float64 { return 2 * laplaceTail(scale, w+1) }
			if outside(width) > (1-float64(level))*(1+1e-9) {
				t.Errorf("b = %g: P(|X| > %g) = %g at level %g", scale, width, outside(width), level)
			}
			if width > 0 && outside(width-1) <= (1-float64(level))*(1-1e-9) {
				t.Errorf("b = %g: %g would do at level %g", scale, width-1, level)
			}
		}
	}
	for _, variance := range []float64{0.05, 0.5, 3, 100, 256, 257, 4096, 1e5} {
		m, err := NewGaussian(GaussianParameters{L2Squared: big.NewInt(1), Variance: new(big.Rat).SetFloat64(variance)})
		if err != nil {
			t.Fatal(err)
		}
		for _, level := range []Confidence{0.5, 0.9, 0.95, 0.99, 0.999999} {
			if got, want := m.HalfWidth(level).Int64(), slowHalfWidth(variance, level); got != want {
				t.Errorf("σ² = %g, level %g: half width %d, want %d", variance, level, got, want)
			}
		}
	}
}

// slowHalfWidth sums the masses from the middle until the level is reached.
func slowHalfWidth(variance float64, level Confidence) int64 {
	mass := func(x int) float64 { return math.Exp(-float64(x) * float64(x) / (2 * variance)) }
	total := 0.0
	for x := int(60*math.Sqrt(variance)) + 2; x >= 1; x-- {
		total += 2 * mass(x)
	}
	total++
	inside := 0.0
	for x := 0; ; x++ {
		if x == 0 {
			inside = 1
		} else {
			inside += 2 * mass(x)
		}
		if inside >= float64(level)*total {
			return int64(x)
		}
	}
}

// The ε of a price in ρ keeps to the price, and one pico more does not; above a ρ of 8, where floating point is near it, 10⁻¹² more.
func TestBoundedRangeEpsilon(t *testing.T) {
	for _, rho := range []PicoRho{1, 2, 1000, RhoUnit / 7, RhoUnit, 12345 * RhoUnit} {
		e := boundedRangeEpsilon(rho)
		more := e + 1
		if rho > 8*RhoUnit {
			more += e / 1_000_000_000_000
		}
		if rhoOfBoundedRange(e.Rat(), 1) > rho || rhoOfBoundedRange(more.Rat(), 1) <= rho {
			t.Errorf("ρ %v buys ε %v", rho, e)
		}
	}
	if boundedRangeEpsilon(0) != 0 {
		t.Error("nothing buys something")
	}
}

// A selection costs no more ρ than any mechanism of its ε, which is at most ε, so that every ε has a charge that a ledger holds.
func TestSelectionsCostAtMostTheirEpsilon(t *testing.T) {
	for _, epsilon := range []PicoEpsilon{EpsilonUnit, 7_994 * EpsilonUnit / 1000, 7_995 * EpsilonUnit / 1000, 8_588 * EpsilonUnit,
		10_000 * EpsilonUnit, MaxEpsilon} {
		for _, picks := range []int{1, 3} {
			for _, by := range selectors() {
				m, err := NewTopK(TopKParameters{K: picks, By: by,
					SelectionParameters: SelectionParameters{Sensitivity: big.NewInt(1), Epsilon: epsilon}})
				if err != nil {
					t.Fatal(err)
				}
				if loss := m.Loss(); loss.Rho > rhoOfShares(epsilon.Rat(), int64(picks)) || int64(loss.Rho) > int64(epsilon) {
					t.Errorf("%d picks by %s at ε %s cost ρ %s", picks, by, epsilon, loss.Rho)
				}
			}
		}
	}
}

// TestLossTimes: n losses together are n sums, and stop at the largest amount.
func TestLossTimes(t *testing.T) {
	l := Loss{Epsilon: 3, Unbounded: true, Rho: 5, Delta: 7}
	if got := l.Times(3); got != l.Plus(l).Plus(l) {
		t.Errorf("%+v", got)
	}
	if got := l.Times(1 << 62); got.Epsilon != 1<<63-1 || got.Rho != 1<<63-1 {
		t.Errorf("%+v", got)
	}
}
