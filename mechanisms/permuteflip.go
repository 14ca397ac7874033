package mechanisms

// PermuteAndFlip visits the candidates in random order and chooses each with probability e^(ε·(score-best)/2Δ), until one is chosen
// (Δ instead of 2Δ for monotone scores). The best one always would be, so that it ends.
//
// Guarantee: ε-DP, hence ε·tanh(ε/2)-zCDP (it has no bounded range). Its expected score is never below that of the exponential
// mechanism at equal ε; at equal ρ the latter is better. Domain: integer scores of any size. Sampler: exact coins
// ([Sampler.survives]). Source: McKenna, Sheldon 2020 (arXiv 2010.12603), Algorithm 1.
type PermuteAndFlip struct {
	selection
	decay decay
}

// Name is [PermuteAndFlipMechanism].
func (m *PermuteAndFlip) Name() Name { return PermuteAndFlipMechanism }

// Loss is ε and ε·tanh(ε/2).
func (m *PermuteAndFlip) Loss() Loss {
	return Loss{Epsilon: m.parameters.Epsilon, Rho: rhoOfPure(m.parameters.Epsilon.Rat())}
}

// Select chooses a candidate.
func (m *PermuteAndFlip) Select(s *Sampler, scores []Exact) int {
	distance := gaps(scores)
	order := make([]int, len(scores))
	for i := range order {
		order[i] = i
	}
	for left := len(order); ; left-- { // the next of the random order is drawn when it is needed
		j := int(s.Uniform(uint64(left)))
		candidate := order[j]
		if s.survives(m.decay, distance[candidate]) {
			return candidate
		}
		order[j] = order[left-1]
	}
}

// Parameters are ε, Δ and the scale by which scores are divided.
func (m *PermuteAndFlip) Parameters() Parameters { return m.describe(PermuteAndFlipMechanism) }
