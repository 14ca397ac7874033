package mechanisms

import (
	"math"
	"math/big"

	"noisegate.example/internal/exact"
)

// GaussianParameters are the parameters of discrete Gaussian noise.
type GaussianParameters struct {
	// L2Squared is the square of the sensitivity: how much the vector of sealed integers that is released together can move, in
	// sum of squared differences, when one unit is added or removed. Positive.
	L2Squared *big.Int
	// Rho is the price. The noise has σ² = L2Squared/2ρ exactly. Either Rho or Variance is set, not both.
	Rho PicoRho
	// Variance is σ² itself, positive, for mechanisms that are named by their noise.
	Variance *big.Rat
}

// Gaussian adds discrete Gaussian noise, P(X=x) ∝ e^(-x²/2σ²), x an integer.
//
// Guarantee: with ρ = Δ²/2σ², ρ-zCDP for a vector of L2 sensitivity Δ; no finite pure ε. Domain: integers of any size. Sampler:
// exact, for any rational σ² (sample_gaussian.go). Source: Canonne, Kamath, Steinke 2020 (arXiv 2004.00010), Theorem 4, composed over
// the coordinates: Σ dᵢ²/2σ².
type Gaussian struct {
	l2Squared *big.Int
	variance  *big.Rat
	loss      Loss
	law       lazyLaw[gaussianLaw]
}

// NewGaussian makes the mechanism. It returns an error if a parameter is out of its range.
func NewGaussian(p GaussianParameters) (*Gaussian, error) {
	if p.L2Squared == nil || p.L2Squared.Sign() <= 0 {
		return nil, errSensitivity
	}
	m := &Gaussian{l2Squared: new(big.Int).Set(p.L2Squared), loss: Loss{Unbounded: true}}
	switch {
	case p.Variance == nil && p.Rho > 0:
		twice := new(big.Int).Lsh(big.NewInt(int64(p.Rho)), 1)
		m.variance = new(big.Rat).SetFrac(new(big.Int).Mul(p.L2Squared, big.NewInt(int64(RhoUnit))), twice)
		m.loss.Rho = p.Rho
	case p.Variance != nil && p.Variance.Sign() > 0 && p.Rho == 0:
		m.variance = new(big.Rat).Set(p.Variance)
		rho := new(big.Rat).SetInt(p.L2Squared)
		rho.Quo(rho, new(big.Rat).Add(p.Variance, p.Variance))
		m.loss.Rho = PicoRho(ceilUnits(rho, int64(RhoUnit)))
	default:
		return nil, errPrice
	}
	return m, nil
}

// Name is [DiscreteGaussian].
func (m *Gaussian) Name() Name { return DiscreteGaussian }

// Loss is ρ = Δ²/2σ², rounded up; ε is unbounded, δ is 0.
func (m *Gaussian) Loss() Loss { return m.loss }

// Draw samples one noise value.
func (m *Gaussian) Draw(s *Sampler) Noise {
	return m.law.get(func() *gaussianLaw { return newGaussianLaw(m.variance) }).draw(s)
}

// HalfWidth is the smallest integer t with P(|X| > t) <= 1-level, in floating point and rounded up: it is one too large where the
// probability meets the level within nine digits, or within three to five if σ > 16.
func (m *Gaussian) HalfWidth(level Confidence) *big.Int {
	t := gaussianTailPoint(exact.Float(m.variance), (1-float64(level))/2)
	return t.Sub(t, bigOne)
}

// Parameters are σ² and Δ.
func (m *Gaussian) Parameters() Parameters {
	return Parameters{Mechanism: DiscreteGaussian, Sensitivity: rootString(m.l2Squared), Variance: m.variance.RatString()}
}

// rootString is the square root of n, as an integer where it is one.
func rootString(n *big.Int) string {
	root := new(big.Int).Sqrt(n)
	if new(big.Int).Mul(root, root).Cmp(n) == 0 {
		return root.String()
	}
	return "sqrt(" + n.String() + ")"
}

// summedVariance is up to where tails are summed term by term.
const summedVariance = 1 << 8

// tailMargin is what tail points keep from the probability they are asked for, relatively: far more than the error of sums of
// some thousand terms and of math.Erfc.
const tailMargin = 1e-9

// gaussianTailPoint is the smallest integer m >= 1 with P(X >= m) <= p for the discrete Gaussian law and p < 1/2, rounded up.
//
// Small variances: the tail is summed from far out, where terms vanish, inwards. Large ones: P(X >= m) <= Q((m-1/2)/σ), Q being the
// normal tail, because the density f is convex on [m-1/2, ∞) once m-1/2 >= σ, so that f(x) is at most its integral over [x-1/2,
// x+1/2], and the normaliser Σf is at least that of the integral (Poisson summation). Nearer to 0 (p > Q(1)) the two differ by less than
// 10⁻³ relatively, which matters to half widths only, and those are for display.
func gaussianTailPoint(variance, p float64) *big.Int {
	p *= 1 - tailMargin
	sigma := math.Sqrt(variance)
	if variance > summedVariance {
		return new(big.Int).Add(bigOne, ceilFloat(normalTailPoint(p)*sigma-0.5))
	}
	mass := func(x float64) float64 { return math.Exp(-x * x / (2 * variance)) }
	far := math.Ceil(40*sigma) + 1
	total := 0.0 // of the positive half
	for x := far; x >= 1; x-- {
		total += mass(x)
	}
	limit, tail := p*(1+2*total), 0.0
	for x := far; x >= 1; x-- {
		if tail += mass(x); tail > limit {
			return big.NewInt(int64(x) + 1)
		}
	}
	return big.NewInt(1)
}

// normalTailPoint is z with Q(z) = p for the normal tail Q, p < 1/2, rounded up. (math.Erfcinv loses small p.)
func normalTailPoint(p float64) float64 {
	lo, hi := 0.0, 39.0 // Q(39) is below the smallest float64
	for range 64 {
		if z := (lo + hi) / 2; math.Erfc(z/math.Sqrt2)/2 > p {
			lo = z
		} else {
			hi = z
		}
	}
	return hi
}
