package mechanisms

import "math/big"

// NoisyMax adds discrete Laplace noise of scale 2Δ/ε to every score (Δ/ε for monotone scores) and reports which is largest; of
// equal ones, the first.
//
// Guarantee: ε-DP, hence ε·tanh(ε/2)-zCDP. Proof for integers: fix the noise of all candidates but i. There is a smallest integer r*
// such that i wins iff its noise is at least r* (ties go by place, which is public), and on a neighbour r* moves by at most
// 2Δ, or Δ if all scores move together; P(noise >= r+s) >= e^(-s/b)·P(noise >= r). Domain: integer scores of any size. Source:
// Dwork, Roth 2014, Claim 3.9, for continuous noise.
type NoisyMax struct {
	selection
	law lazyLaw[laplaceLaw]
}

// Name is [ReportNoisyMax].
func (m *NoisyMax) Name() Name { return ReportNoisyMax }

// Loss is ε and ε·tanh(ε/2).
func (m *NoisyMax) Loss() Loss {
	return Loss{Epsilon: m.parameters.Epsilon, Rho: rhoOfPure(m.parameters.Epsilon.Rat())}
}

// Select chooses a candidate.
func (m *NoisyMax) Select(s *Sampler, scores []Exact) int {
	law := m.law.get(func() *laplaceLaw { return newLaplaceLaw(new(big.Rat).Inv(m.rate)) })
	best, winner := new(big.Int), -1
	for i, score := range scores {
		if noisy := law.draw(s).Release(score); winner < 0 || noisy.Cmp(best) > 0 {
			best, winner = noisy, i
		}
	}
	return winner
}

// Parameters are ε, Δ and the scale of the noise.
func (m *NoisyMax) Parameters() Parameters { return m.describe(ReportNoisyMax) }
