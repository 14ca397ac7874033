package mechanisms

import (
	"errors"
	"math/big"
	"slices"
)

// SoftmaxParameters are the parameters of [Softmax].
type SoftmaxParameters struct {
	// Rate is γ: a candidate that is one ahead is e^γ times as likely. Positive.
	Rate *big.Rat
	// Range is how much the difference of any two values can move when one unit changes. Positive.
	Range *big.Int
}

// Softmax chooses an index with probability proportional to e^(γ·value): the exponential mechanism named by its rate, which is
// adding Gumbel noise of scale 1/γ and taking the largest.
//
// Guarantee: γ·Range bounded range, hence pure ε = γ·Range, and ρ = ε²/8 or ε·tanh(ε/2). Domain: machine integers. Sampler: exact
// (choose.go). Source: Dong, Durfee, Rogers 2020; Cesar, Rogers 2021 (arXiv 2004.07223).
type Softmax struct {
	rate  *big.Rat
	span  *big.Int
	decay decay
	loss  Loss
}

var errRate = errors.New("mechanisms: the rate is not positive")

// NewSoftmax makes the mechanism. It returns an error if a parameter is out of its range.
func NewSoftmax(p SoftmaxParameters) (*Softmax, error) {
	switch {
	case p.Rate == nil || p.Rate.Sign() <= 0:
		return nil, errRate
	case p.Range == nil || p.Range.Sign() <= 0:
		return nil, errSensitivity
	}
	m := &Softmax{rate: new(big.Rat).Set(p.Rate), span: new(big.Int).Set(p.Range)}
	m.decay = newDecay(m.rate)
	epsilon := new(big.Rat).SetInt(m.span)
	epsilon.Mul(epsilon, m.rate)
	m.loss = Loss{Epsilon: PicoEpsilon(ceilUnits(epsilon, int64(EpsilonUnit))), Rho: rhoOfBoundedRange(epsilon, 1)}
	return m, nil
}

// Loss is ε = γ·Range, and ρ the less of ε²/8 and ε·tanh(ε/2), all rounded up; δ is 0.
func (m *Softmax) Loss() Loss { return m.loss }

// Select chooses an index; -1 for an empty vector.
func (m *Softmax) Select(s *Sampler, values ExactVector) int {
	n := values.open()
	if len(n) == 0 {
		return -1
	}
	best := slices.Max(n)
	slots := make([]slot, len(n))
	for i, x := range n {
		slots[i] = slot{count: 1, gap: new(big.Int).Sub(big.NewInt(best), big.NewInt(x))}
	}
	return s.choose(m.decay, slots)
}

// Parameters are the range, and the scale 1/γ by which values are divided.
func (m *Softmax) Parameters() Parameters {
	return Parameters{Mechanism: ExponentialMechanism, Sensitivity: m.span.String(), Scale: new(big.Rat).Inv(m.rate).RatString()}
}
