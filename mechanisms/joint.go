package mechanisms

import (
	"errors"
	"math"
	"math/big"

	"noisegate.example/internal/exact"
)

// JointGaussianParameters are the parameters of discrete Gaussian noise on a vector whose coordinates have units of their own.
type JointGaussianParameters struct {
	// Scales say of each coordinate by what σ² is multiplied there; all positive.
	Scales []*big.Rat
	// L2Squared is how far the vector moves at most when one unit is added or removed: the largest Σ dᵢ²/Scales[i]. Positive.
	L2Squared *big.Rat
	// Rho is the price, positive. σ² = L2Squared/2ρ exactly.
	Rho PicoRho
}

// JointGaussian adds discrete Gaussian noise of variance σ²·Scales[i] to coordinate i of a vector.
//
// Guarantee: with ρ = L2Squared/2σ², ρ-zCDP for a vector that moves by no more than L2Squared says; no finite pure ε. Domain: vectors of
// integers of any size. Sampler: exact, for any rational variance (sample_gaussian.go). Source: Canonne, Kamath, Steinke 2020
// (arXiv 2004.00010), Theorem 4, composed over independent coordinates: Σ dᵢ²/2σᵢ².
type JointGaussian struct {
	l2Squared *big.Rat
	variance  *big.Rat // σ²
	each      []*Gaussian
	loss      Loss
}

var errScales = errors.New("mechanisms: a joint release needs a positive scale for each of its coordinates")

// NewJointGaussian makes the mechanism. It returns an error if a parameter is out of its range.
func NewJointGaussian(p JointGaussianParameters) (*JointGaussian, error) {
	if p.L2Squared == nil || p.L2Squared.Sign() <= 0 {
		return nil, errSensitivity
	}
	if p.Rho <= 0 {
		return nil, errPrice
	}
	if len(p.Scales) == 0 {
		return nil, errScales
	}
	half := new(big.Rat).SetFrac(big.NewInt(int64(RhoUnit)), new(big.Int).Lsh(big.NewInt(int64(p.Rho)), 1)) // 1/2ρ
	m := &JointGaussian{l2Squared: new(big.Rat).Set(p.L2Squared), loss: Loss{Unbounded: true, Rho: p.Rho}}
	m.variance = half.Mul(half, p.L2Squared)
	for _, s := range p.Scales {
		if s == nil || s.Sign() <= 0 {
			return nil, errScales
		}
		// What one coordinate would cost alone is of no interest: the loss is that of all.
		g, err := NewGaussian(GaussianParameters{L2Squared: bigOne, Variance: new(big.Rat).Mul(m.variance, s)})
		if err != nil {
			return nil, err
		}
		m.each = append(m.each, g)
	}
	return m, nil
}

// Name is [DiscreteGaussian].
func (m *JointGaussian) Name() Name { return DiscreteGaussian }

// Loss is ρ, of the whole vector; ε is unbounded, δ is 0.
func (m *JointGaussian) Loss() Loss { return m.loss }

// Draw samples the noise of a whole vector. It needs no data.
func (m *JointGaussian) Draw(s *Sampler) []Noise {
	all := make([]Noise, len(m.each))
	for i, g := range m.each {
		all[i] = g.Draw(s)
	}
	return all
}

// Deviation is the standard deviation of the noise of a coordinate, in its integers.
func (m *JointGaussian) Deviation(coordinate int) float64 {
	return math.Sqrt(exact.Float(m.each[coordinate].variance))
}

// Parameters are σ² and the root of L2Squared, of the vector in units of its scales.
func (m *JointGaussian) Parameters() Parameters {
	p := Parameters{Mechanism: DiscreteGaussian, Sensitivity: "sqrt(" + m.l2Squared.RatString() + ")", Variance: m.variance.RatString()}
	if m.l2Squared.IsInt() {
		p.Sensitivity = rootString(m.l2Squared.Num())
	}
	return p
}
