package mechanisms

import (
	"errors"
	"math/big"
)

// Slot is the noise of one release of a registered plan. It is fixed before the plan's first answer; what the release is about, and
// with it the sensitivity, may be chosen later. Exactly one member is positive.
type Slot struct {
	Epsilon PicoEpsilon // Laplace noise with this ε
	Rho     PicoRho     // Gaussian noise with this ρ
}

var errSlot = errors.New("mechanisms: a slot has neither one ε nor one ρ, or one out of range")

// Check refuses slots that no noise can be made of.
func (s Slot) Check() error {
	if s.Epsilon < 0 || s.Rho < 0 || s.Epsilon > MaxEpsilon || s.Rho > MaxRho || (s.Epsilon > 0) == (s.Rho > 0) {
		return errSlot
	}
	return nil
}

// Name is the mechanism's.
func (s Slot) Name() Name {
	if s.Rho > 0 {
		return DiscreteGaussian
	}
	return DiscreteLaplace
}

// Noise makes the slot's noise for a release with these sensitivities.
func (s Slot) Noise(l1, l2Squared *big.Int) (Additive, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	if s.Rho > 0 {
		return NewGaussian(GaussianParameters{L2Squared: l2Squared, Rho: s.Rho})
	}
	return NewLaplace(LaplaceParameters{L1: l1, Epsilon: s.Epsilon})
}

// Loss bounds the loss of the slot's noise for every sensitivity. Laplace noise is worst for a sensitivity of 1, where it is
// binary randomized response; the loss of Gaussian noise does not depend on it.
func (s Slot) Loss() (Loss, error) {
	unit, err := s.Noise(big.NewInt(1), big.NewInt(1))
	if err != nil {
		return Loss{}, err
	}
	return unit.Loss(), nil
}
