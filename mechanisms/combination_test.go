package mechanisms

import (
	"math"
	"math/big"
	"testing"

	"noisegate.example/internal/exact"
	"noisegate.example/internal/stattest"
)

// combinationReach is how far the laws of the tests below are enumerated: beyond it is less than 1e-20.
const combinationReach = 120

func combined(t *testing.T, shown PicoRho, parts ...PicoRho) *Combination {
	t.Helper()
	c, err := NewCombination(CombinationParameters{L2Squared: big.NewInt(2), Parts: parts, Rho: shown})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// gaussianMass is the discrete Gaussian law on ±combinationReach.
func gaussianMass(variance float64) []float64 {
	mass, total := make([]float64, 2*combinationReach+1), 0.0
	for i := range mass {
		x := float64(i - combinationReach)
		mass[i] = math.Exp(-x * x / (2 * variance))
		total += mass[i]
	}
	for i := range mass {
		mass[i] /= total
	}
	return mass
}

// errorMass is the law of the error of what a combination of one or two parts shows, by enumeration.
func errorMass(c *Combination) []float64 {
	first, second := gaussianMass(exact.Float(c.parts[0].variance)), []float64{combinationReach: 1}
	rhos := []int64{int64(c.rhos[0]), 0}
	if len(c.parts) == 2 {
		second, rhos[1] = gaussianMass(exact.Float(c.parts[1].variance)), int64(c.rhos[1])
	}
	mean := make([]float64, 2*combinationReach+1)
	for i, p := range first {
		for j, q := range second {
			weighted := int64(i-combinationReach)*rhos[0] + int64(j-combinationReach)*rhos[1]
			at := math.Floor(float64(weighted)/float64(rhos[0]+rhos[1]) + 0.5) // exact: the rhos of the tests are small
			mean[int(at)+combinationReach] += p * q
		}
	}
	if c.extra == nil {
		return mean
	}
	mass := make([]float64, 2*combinationReach+1)
	for i, p := range mean {
		for j, q := range gaussianMass(exact.Float(c.extra.variance)) {
			if at := i + j - combinationReach; at >= 0 && at < len(mass) {
				mass[at] += p * q
			}
		}
	}
	return mass
}

func combinations(t *testing.T) map[string]*Combination {
	const rho = PicoRho(RhoUnit) / 100
	return map[string]*Combination{
		"one":                    combined(t, 5*rho, 5*rho),
		"weaker":                 combined(t, 2*rho, 5*rho),
		"much weaker":            combined(t, rho, 30*rho),
		"stronger":               combined(t, 8*rho, 5*rho, 3*rho),
		"much stronger":          combined(t, 41*rho, rho, 40*rho),
		"stronger, then weaker":  combined(t, 7*rho, 2*rho, 6*rho),
		"noise smaller than one": combined(t, 300*rho, 100*rho, 200*rho),
	}
}

// What is drawn, and what comes of the parts' noise by way of [Combination.Value], has the law that follows from the
// parts' laws. False alarm 1e-6 for each comparison.
func TestCombinationLaw(t *testing.T) {
	for name, c := range combinations(t) {
		t.Run(name, func(t *testing.T) {
			const draws, exact = 20_000, 1234
			s, want := fixedSampler(t), errorMass(c)
			drawn, valued := make([]int64, len(want)), make([]int64, len(want))
			for range draws {
				drawn[int(noiseFloat(c.Draw(s)))+combinationReach]++
				weighted := new(big.Int)
				for i, part := range c.parts {
					released := part.Draw(s).Release(SealInt64(exact))
					weighted.Add(weighted, released.Mul(released, big.NewInt(int64(c.rhos[i]))))
				}
				valued[c.Value(s, weighted).Int64()-exact+combinationReach]++
			}
			fits(t, drawn, want)
			fits(t, valued, want)
		})
	}
}

// The test above can fail: a combination without the noise on top is not the weaker one.
func TestCombinationWithoutExtraNoiseIsCaught(t *testing.T) {
	c := combinations(t)["weaker"]
	want, s := errorMass(c), fixedSampler(t)
	c.extra = nil
	counts := make([]int64, len(want))
	for range 20_000 {
		counts[int(noiseFloat(c.Draw(s)))+combinationReach]++
	}
	fit, err := stattest.ChiSquare(counts, want)
	if err != nil || !fit.Rejects(stattest.PerTest) {
		t.Errorf("%+v, %v", fit, err)
	}
}

// The variance is that of one release of the accuracy shown, but for rounding, and the half width holds its level without being two
// steps too wide: both of the exact law.
func TestCombinationAccuracy(t *testing.T) {
	for name, c := range combinations(t) {
		law := errorMass(c)
		beyond := func(width int) (p float64) {
			for i, mass := range law {
				if x := i - combinationReach; x > width || -x > width {
					p += mass
				}
			}
			return p
		}
		variance, want := 0.0, exact.Float(c.shown.variance)
		for i, mass := range law {
			x := float64(i - combinationReach)
			variance += x * x * mass
		}
		if variance > want+1./4 || variance < want-1./4 {
			t.Errorf("%s: variance %g, want about %g", name, variance, want)
		}
		for _, level := range []Confidence{0.5, 0.9, 0.95, 0.999} {
			width := int(c.HalfWidth(level).Int64())
			if p := beyond(width); p > 1-float64(level) {
				t.Errorf("%s at %g: half width %d fails with %g", name, level, width, p)
			}
			if p := beyond(width - 2); width >= 2 && p <= 1-float64(level) {
				t.Errorf("%s at %g: half width %d is two too wide: %g", name, level, width, p)
			}
		}
	}
}

func TestCombinationParameters(t *testing.T) {
	c := combined(t, 8, 5, 3)
	if got := c.Loss(); got != (Loss{Unbounded: true, Rho: 8}) || c.extra != nil || c.Parameters().Variance != "125000000000" {
		t.Errorf("%+v, %+v", got, c.Parameters())
	}
	if weaker := combined(t, 4, 5, 3); weaker.Loss().Rho != 8 || exact.Float(weaker.extra.variance) != 125e9 {
		t.Errorf("%+v", weaker)
	}
	for name, p := range map[string]CombinationParameters{
		"nothing":          {L2Squared: bigOne, Rho: 1},
		"too accurate":     {L2Squared: bigOne, Parts: []PicoRho{5, 3}, Rho: 9},
		"no accuracy":      {L2Squared: bigOne, Parts: []PicoRho{5, 3}},
		"a part of none":   {L2Squared: bigOne, Parts: []PicoRho{5, 0}, Rho: 1},
		"beyond integers":  {L2Squared: bigOne, Parts: []PicoRho{math.MaxInt64, 1}, Rho: 1},
		"not sensitive":    {L2Squared: new(big.Int), Parts: []PicoRho{5}, Rho: 1},
		"less than nought": {L2Squared: bigOne, Parts: []PicoRho{5}, Rho: -1},
	} {
		if c, err := NewCombination(p); err == nil {
			t.Errorf("%s: %+v", name, c)
		}
	}
	for _, n := range []struct{ a, b, want int64 }{{5, 2, 3}, {-5, 2, -2}, {7, 3, 2}, {-7, 3, -2}, {8, 3, 3}, {-8, 3, -3}, {0, 9, 0}} {
		if got := nearest(big.NewInt(n.a), big.NewInt(n.b)).Int64(); got != n.want {
			t.Errorf("%d/%d: %d", n.a, n.b, got)
		}
	}
}
