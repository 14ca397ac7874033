package mechanisms

import (
	"math"
	"math/big"
	"strconv"

	"noisegate.example/internal/exact"
)

// GaussianThresholdParameters are the parameters of [GaussianThreshold].
type GaussianThresholdParameters struct {
	Rho   PicoRho   // price for all the groups of one unit together; positive
	Delta AttoDelta // likewise; in (0, 1)
	L0    int64     // groups that one unit may influence; positive
}

// GaussianThreshold decides which groups of a private key are shown: those whose number of units plus discrete Gaussian noise
// reaches a threshold. For units in many groups it shows smaller groups than [GroupSelection] at equal ρ, because its price
// grows with the root of L0.
//
// Guarantee: outside an event of probability δ it is ρ-zCDP: a unit moves L0 counts by one each, σ² = L0/2ρ, and what is
// shown is a function of the noisy counts, except that a group without units never is. Where the unit was the only one of its
// group, that differs when 1+X >= T, with probability δ₀; noise is independent, and 1-(1-δ₀)^L0 <= δ. Domain: non-negative counts in
// which each unit counts once. Source: Google, Delta For Thresholding (2020); Canonne, Kamath, Steinke 2020.
type GaussianThreshold struct {
	parameters GaussianThresholdParameters
	noise      *Gaussian
	threshold  *big.Int
}

// NewGaussianThreshold makes the mechanism. It returns an error if a parameter is out of its range.
func NewGaussianThreshold(p GaussianThresholdParameters) (*GaussianThreshold, error) {
	switch {
	case p.Delta <= 0 || p.Delta >= DeltaUnit:
		return nil, errDelta
	case p.L0 <= 0:
		return nil, errSensitivity
	}
	noise, err := NewGaussian(GaussianParameters{L2Squared: big.NewInt(p.L0), Rho: p.Rho})
	if err != nil {
		return nil, err
	}
	perGroup := -math.Expm1(math.Log1p(-exact.Float(p.Delta.Rat())) / float64(p.L0))
	threshold := gaussianTailPoint(exact.Float(noise.variance), math.Min(perGroup, provenTail))
	return &GaussianThreshold{parameters: p, noise: noise, threshold: threshold.Add(threshold, bigOne)}, nil
}

// provenTail is Q(1), rounded down: up to there gaussianTailPoint is proven to round up.
const provenTail = 0.158

// Name is [GaussianThresholding].
func (g *GaussianThreshold) Name() Name { return GaussianThresholding }

// Loss is (ρ, δ); there is no pure ε.
func (g *GaussianThreshold) Loss() Loss {
	return Loss{Unbounded: true, Rho: g.parameters.Rho, Delta: g.parameters.Delta}
}

// Keep decides whether a group with the sealed number of units is shown.
func (g *GaussianThreshold) Keep(s *Sampler, units Exact) bool {
	noisy := g.noise.Draw(s).Release(units)
	return units.open().Sign() > 0 && noisy.Cmp(g.threshold) >= 0
}

// Threshold is T.
func (g *GaussianThreshold) Threshold() *big.Int { return new(big.Int).Set(g.threshold) }

// ShownAt is the smallest number of units at which a group is shown with at least this probability, in (0, 1).
func (g *GaussianThreshold) ShownAt(probability float64) int64 {
	variance := exact.Float(g.noise.variance)
	n := new(big.Int).Sub(g.threshold, bigOne)
	if probability >= 0.5 {
		// P(X >= T-n) = 1-P(X >= n-T+1): n-T+1 is the tail point of 1-probability.
		n.Add(n, gaussianTailPoint(variance, math.Min(1-probability, 0.499999)))
	} else {
		n.Sub(n, gaussianTailPoint(variance, probability)).Add(n, big.NewInt(2))
	}
	return max(1, saturate(n))
}

// Parameters are σ², L0, δ and the threshold.
func (g *GaussianThreshold) Parameters() Parameters {
	return Parameters{
		Mechanism:   GaussianThresholding,
		Sensitivity: strconv.FormatInt(g.parameters.L0, 10),
		Variance:    g.noise.variance.RatString(),
		Delta:       g.parameters.Delta.String(),
		Count:       saturate(g.threshold),
	}
}
