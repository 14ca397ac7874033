package mechanisms

import (
	"errors"
	"math"
	"math/big"

	"noisegate.example/internal/exact"
)

// LaplaceParameters are the parameters of discrete Laplace noise.
type LaplaceParameters struct {
	// L1 is the sensitivity: how much the vector of sealed integers that is released together can move, in sum of absolute
	// differences, when one unit is added or removed. Positive.
	L1 *big.Int
	// Epsilon is the price. The noise has scale b = L1/ε exactly. Exactly one of Epsilon, Rho and Scale is set.
	Epsilon PicoEpsilon
	// Rho is the price in ρ: the noise is that of the largest whole ε whose ρ keeps to it (to about nine digits).
	Rho PicoRho
	// Scale is the noise scale b itself, positive, for mechanisms that are named by their noise.
	Scale *big.Rat
}

// Laplace adds discrete Laplace noise, P(X=x) ∝ e^(-|x|/b), x an integer.
//
// Guarantee: with b = Δ/ε, pure ε-DP, and ρ-zCDP for the ρ of [Laplace.Loss], for a vector of L1 sensitivity Δ. Domain: integers
// of any size. Sampler: exact, for any rational b (sample_laplace.go). Source: Ghosh, Roughgarden, Sundararajan 2009.
type Laplace struct {
	l1    *big.Int
	scale *big.Rat
	loss  Loss
	law   lazyLaw[laplaceLaw]
}

var (
	errSensitivity = errors.New("mechanisms: the sensitivity is not positive")
	errPrice       = errors.New("mechanisms: exactly one of price and noise must be given, and be positive")
)

// NewLaplace makes the mechanism. It returns an error if a parameter is out of its range.
func NewLaplace(p LaplaceParameters) (*Laplace, error) {
	if p.L1 == nil || p.L1.Sign() <= 0 {
		return nil, errSensitivity
	}
	m := &Laplace{l1: new(big.Int).Set(p.L1)}
	switch {
	case p.Epsilon < 0 || p.Rho < 0 || !exactlyOne(p.Epsilon > 0, p.Rho > 0, p.Scale != nil):
		return nil, errPrice
	case p.Scale != nil:
		if p.Scale.Sign() <= 0 {
			return nil, errPrice
		}
		m.scale = new(big.Rat).Set(p.Scale)
		epsilon := new(big.Rat).SetInt(p.L1)
		m.loss.Epsilon = PicoEpsilon(ceilUnits(epsilon.Quo(epsilon, p.Scale), int64(EpsilonUnit)))
	default:
		m.loss.Epsilon = p.Epsilon
		if p.Rho > 0 {
			m.loss.Epsilon = epsilonFor(p.Rho, approximateRhoOfLaplace(p.L1), func(e PicoEpsilon) PicoRho {
				return rhoOfLaplace(p.L1, scaleFor(p.L1, e))
			})
		}
		if m.loss.Epsilon == 0 {
			return nil, ErrTooSmall
		}
		m.scale = scaleFor(p.L1, m.loss.Epsilon)
	}
	m.loss.Rho = rhoOfLaplace(m.l1, m.scale)
	return m, nil
}

// scaleFor is Δ/ε.
func scaleFor(l1 *big.Int, epsilon PicoEpsilon) *big.Rat {
	return new(big.Rat).Quo(new(big.Rat).SetInt(l1), epsilon.Rat())
}

func exactlyOne(conditions ...bool) bool {
	n := 0
	for _, c := range conditions {
		if c {
			n++
		}
	}
	return n == 1
}

// Name is [DiscreteLaplace].
func (m *Laplace) Name() Name { return DiscreteLaplace }

// Loss is ε = Δ/b and ρ = ε - (1-e^-ε)·a/sinh(a), a = 1/b, both rounded up; δ is 0.
func (m *Laplace) Loss() Loss { return m.loss }

// Draw samples one noise value.
func (m *Laplace) Draw(s *Sampler) Noise {
	return m.law.get(func() *laplaceLaw { return newLaplaceLaw(m.scale) }).draw(s)
}

// HalfWidth is the smallest integer t with P(|X| > t) = 2q^(t+1)/(1+q) <= 1-level, q = e^(-1/b). It is computed in floating
// point and rounded up: it is one too large where the probability meets the level within 14 digits.
func (m *Laplace) HalfWidth(level Confidence) *big.Int {
	rate := 1 / exact.Float(m.scale)
	logs := math.Log(2/(1-float64(level))) - math.Log1p(math.Exp(-rate))
	return ceilFloat(exact.Float(m.scale)*logs*(1+1e-15) - 1)
}

// Parameters are b and Δ.
func (m *Laplace) Parameters() Parameters {
	return Parameters{Mechanism: DiscreteLaplace, Sensitivity: m.l1.String(), Scale: m.scale.RatString()}
}

// ceilFloat is the smallest non-negative integer that is at least x.
func ceilFloat(x float64) *big.Int {
	if !(x > 0) {
		return new(big.Int)
	}
	n, _ := new(big.Float).SetFloat64(math.Ceil(x)).Int(nil)
	return n
}
