package mechanisms

import (
	"errors"
	"math"
	"math/big"

	"noisegate/internal/exact"
)

// RandomizedResponseParameters are the parameters of [RandomizedResponse].
type RandomizedResponseParameters struct {
	Classes uint64      // number of possible answers, k; 2 to 2⁵³
	Epsilon PicoEpsilon // price of one report; positive
}

// RandomizedResponse reports one of k classes: the true one with probability p = e^ε/(e^ε+k-1), each other with q = 1/(e^ε+k-1).
//
// Guarantee: ε-DP for the one who reports, even against whoever collects the reports (replacing the truth by any other), and
// ε·tanh(ε/2)-zCDP. Domain: classes 0 to k-1; any other truth is answered uniformly, which keeps the guarantee. Sampler: exact.
// Estimate: unbiased. Source: Warner 1965; Kairouz, Oh, Viswanath 2016; Wang et al. 2017.
type RandomizedResponse struct {
	parameters RandomizedResponseParameters
	uniform    enclosure // probability of a uniform answer, k·q
	first      uint64
}

var errClasses = errors.New("mechanisms: the number of classes is not in [2, 2⁵³]")

// NewRandomizedResponse makes the mechanism. It returns an error if a parameter is out of its range.
func NewRandomizedResponse(p RandomizedResponseParameters) (*RandomizedResponse, error) {
	switch {
	case p.Classes < 2 || p.Classes > 1<<53:
		return nil, errClasses
	case p.Epsilon <= 0:
		return nil, errPrice
	}
	// k·q = k·x/(1+(k-1)·x) with x = e^-ε; it rises with x.
	k := new(big.Int).SetUint64(p.Classes)
	uniform := func(n uint) (lo, hi *big.Int) {
		const guard = 64 // the numerator grows by k < 2⁵⁴
		xLo, xHi := expNegBounds(p.Epsilon.Rat(), n+guard)
		bound := func(x *big.Int, quo rounding) *big.Int {
			denominator := new(big.Int).Mul(x, new(big.Int).Sub(k, bigOne))
			numerator := new(big.Int).Mul(x, k)
			return quo(numerator.Lsh(numerator, n), denominator.Add(denominator, one(n+guard)))
		}
		return bound(xLo, exact.FloorQuo), bound(xHi, exact.CeilQuo)
	}
	return &RandomizedResponse{parameters: p, uniform: uniform, first: first64(uniform)}, nil
}

// Name is [RandomizedResponses].
func (m *RandomizedResponse) Name() Name { return RandomizedResponses }

// Loss is ε and ε·tanh(ε/2), per report.
func (m *RandomizedResponse) Loss() Loss {
	return Loss{Epsilon: m.parameters.Epsilon, Rho: rhoOfPure(m.parameters.Epsilon.Rat())}
}

// Report answers for one sealed truth: with probability k·q a uniform class, else the truth.
func (m *RandomizedResponse) Report(s *Sampler, truth Exact) uint64 {
	w, random := s.word(), s.Uniform(m.parameters.Classes)
	switch value := truth.open(); {
	case !value.IsUint64() || value.Uint64() >= m.parameters.Classes:
		return random
	case w < m.first || w == m.first && s.decide(w, m.uniform):
		return random
	default:
		return value.Uint64()
	}
}

// Parameters are ε and k.
func (m *RandomizedResponse) Parameters() Parameters {
	return Parameters{
		Mechanism:   RandomizedResponses,
		Sensitivity: "1",
		Epsilon:     m.parameters.Epsilon.String(),
		Count:       int64(m.parameters.Classes),
	}
}

// chances are p and q in floating point, for estimates.
func (m *RandomizedResponse) chances() (p, q float64) {
	x := math.Exp(-exact.Float(m.parameters.Epsilon.Rat()))
	others := float64(m.parameters.Classes-1) * x
	return 1 / (1 + others), x / (1 + others)
}

// Estimate is how often a class is true, estimated without bias from how often it was reported among n reports: (c-n·q)/(p-q).
func (m *RandomizedResponse) Estimate(reported, reports int64) float64 {
	p, q := m.chances()
	return (float64(reported) - float64(reports)*q) / (p - q)
}

// Variance is the variance of [RandomizedResponse.Estimate] for a class that is true of a fraction of n reporters.
func (m *RandomizedResponse) Variance(fraction float64, reports int64) float64 {
	p, q := m.chances()
	n := float64(reports)
	return (n*fraction*p*(1-p) + n*(1-fraction)*q*(1-q)) / ((p - q) * (p - q))
}
