package mechanisms

import (
	"errors"
	"math/big"
	"slices"
)

// SelectionParameters are the parameters of mechanisms that choose the best of some public candidates by sealed scores.
type SelectionParameters struct {
	// Sensitivity is how much any one score can move when one unit is added or removed. Positive.
	Sensitivity *big.Int
	// Monotone says that one unit moves all scores in the same direction (counts of units): half the noise is then enough.
	Monotone bool
	// Epsilon is the price. Positive.
	Epsilon PicoEpsilon
}

// Selector chooses one of some public candidates, a good one if it can, by their sealed scores. Candidates come from public
// knowledge, never from the data: who is on the list would otherwise be told for free.
type Selector interface {
	Name() Name
	// Loss is the privacy loss of one selection.
	Loss() Loss
	// Select returns the index of the chosen candidate. There must be at least one.
	Select(s *Sampler, scores []Exact) int
	// Shortfall is how far below the best score that of the chosen one of so many candidates is at most, with a probability of level,
	// whatever the scores are.
	Shortfall(candidates int, level Confidence) *big.Int
	// Parameters are the exact parameters, for the ledger.
	Parameters() Parameters
}

// NewSelector makes the selector with a name: [ExponentialMechanism], [PermuteAndFlipMechanism] or [ReportNoisyMax]. It returns an error if
// a parameter is out of its range, or for another name.
func NewSelector(name Name, p SelectionParameters) (Selector, error) {
	common, err := newSelection(p)
	if err != nil {
		return nil, err
	}
	return common.by(name)
}

// IsSelector reports whether [NewSelector] knows a name.
func IsSelector(name Name) bool {
	return name == ExponentialMechanism || name == PermuteAndFlipMechanism || name == ReportNoisyMax
}

// SelectionEpsilon is the largest ε at which the selector with a name costs at most ρ; 0 if there is none. The exponential mechanism has a
// range of ε and costs ε²/8 where that is less than the ε·tanh(ε/2) of the others.
func SelectionEpsilon(name Name, rho PicoRho) PicoEpsilon {
	if name == ExponentialMechanism {
		return boundedRangeEpsilon(rho)
	}
	return pureEpsilon(rho)
}

var errSelector = errors.New("mechanisms: no selector has this name")

// selector is a [Selector] whose shortfall is known at any probability.
type selector interface {
	Selector
	shortfall(candidates int, miss float64) *big.Int
}

// selection is what selectors have in common.
type selection struct {
	parameters SelectionParameters
	rate       *big.Rat // of the decay in the score: ε/2Δ, or ε/Δ for monotone scores
}

func newSelection(p SelectionParameters) (selection, error) {
	switch {
	case p.Sensitivity == nil || p.Sensitivity.Sign() <= 0:
		return selection{}, errSensitivity
	case p.Epsilon <= 0:
		return selection{}, errPrice
	}
	p.Sensitivity = new(big.Int).Set(p.Sensitivity)
	span := new(big.Rat).SetInt(p.Sensitivity)
	if !p.Monotone {
		span.Add(span, span)
	}
	return selection{parameters: p, rate: span.Quo(p.Epsilon.Rat(), span)}, nil
}

// by makes the selector with a name.
func (m selection) by(name Name) (selector, error) {
	switch name {
	case ExponentialMechanism:
		return &Exponential{selection: m, decay: newDecay(m.rate)}, nil
	case PermuteAndFlipMechanism:
		return &PermuteAndFlip{selection: m, decay: newDecay(m.rate)}, nil
	case ReportNoisyMax:
		return &NoisyMax{selection: m}, nil
	default:
		return nil, errSelector
	}
}

func (m selection) describe(name Name) Parameters {
	return Parameters{
		Mechanism:   name,
		Sensitivity: m.parameters.Sensitivity.String(),
		Scale:       new(big.Rat).Inv(m.rate).RatString(),
		Epsilon:     m.parameters.Epsilon.String(),
	}
}

// Exponential is the exponential mechanism: a candidate is chosen with probability proportional to e^(ε·score/2Δ), or to
// e^(ε·score/Δ) if scores are monotone.
//
// Guarantee: ε-bounded range, hence ε-DP, ε²/8-zCDP and ε·tanh(ε/2)-zCDP. Domain: integer scores of any size. Sampler: exact (choose.go).
// Source: McSherry, Talwar 2007; Dong, Durfee, Rogers 2020; Cesar, Rogers 2021 (arXiv 2004.07223); Harrison, Manurangsi (arXiv 2510.25746).
type Exponential struct {
	selection
	decay decay
}

// Name is [ExponentialMechanism].
func (m *Exponential) Name() Name { return ExponentialMechanism }

// Loss is ε, and the less of ε²/8 and ε·tanh(ε/2).
func (m *Exponential) Loss() Loss {
	return Loss{Epsilon: m.parameters.Epsilon, Rho: rhoOfBoundedRange(m.parameters.Epsilon.Rat(), 1)}
}

// Select chooses a candidate.
func (m *Exponential) Select(s *Sampler, scores []Exact) int {
	return s.choose(m.decay, eachOnce(gaps(scores)))
}

// Parameters are ε, Δ and the scale by which scores are divided.
func (m *Exponential) Parameters() Parameters { return m.describe(ExponentialMechanism) }

// eachOnce makes one slot of each candidate.
func eachOnce(gaps []*big.Int) []slot {
	slots := make([]slot, len(gaps))
	for i, g := range gaps {
		slots[i] = slot{count: 1, gap: g}
	}
	return slots
}

// TopKParameters are the parameters of [TopK].
type TopKParameters struct {
	SelectionParameters      // Epsilon is the price of all picks together
	K                   int  // how many candidates are chosen; positive
	By                  Name // the selector of each pick; empty: [ExponentialMechanism]
}

// TopK chooses k different candidates, best first: k selections of ε/k each, one after another on the candidates that are left. By the
// exponential mechanism this is the same as adding Gumbel noise once and taking the k largest (Durfee, Rogers 2019, arXiv 1905.04273).
//
// Guarantee: by composition of k selections, ε-DP and ε·tanh(ε/2k)-zCDP, by the exponential mechanism also k·(ε/k)²/8-zCDP.
// Domain and sampler: those of the selector.
type TopK struct {
	picks TopKParameters
	each  selector
}

var errPicks = errors.New("mechanisms: the number of picks is not positive")

// NewTopK makes the mechanism. It returns an error if a parameter is out of its range.
func NewTopK(p TopKParameters) (*TopK, error) {
	if p.K <= 0 {
		return nil, errPicks
	}
	common, err := newSelection(p.SelectionParameters)
	if err != nil {
		return nil, err
	}
	common.rate.Quo(common.rate, new(big.Rat).SetInt64(int64(p.K)))
	p.By = orExponential(p.By)
	each, err := common.by(p.By)
	if err != nil {
		return nil, err
	}
	return &TopK{picks: p, each: each}, nil
}

func orExponential(by Name) Name {
	if by == "" {
		return ExponentialMechanism
	}
	return by
}

// Name is [TopKSelection].
func (m *TopK) Name() Name { return TopKSelection }

// Loss is ε, and ε·tanh(ε/2k); by the exponential mechanism ε²/8k where that is less.
func (m *TopK) Loss() Loss {
	rho := rhoOfShares
	if m.picks.By == ExponentialMechanism {
		rho = rhoOfBoundedRange
	}
	return Loss{Epsilon: m.picks.Epsilon, Rho: rho(m.picks.Epsilon.Rat(), int64(m.picks.K))}
}

// Select returns the indexes of the chosen candidates in the order of choice; all of them if there are fewer than k.
func (m *TopK) Select(s *Sampler, scores []Exact) []int {
	left, indexes := slices.Clone(scores), make([]int, len(scores))
	for i := range indexes {
		indexes[i] = i
	}
	var chosen []int
	for len(chosen) < m.picks.K && len(left) > 0 {
		i := m.each.Select(s, left)
		chosen = append(chosen, indexes[i])
		left, indexes = slices.Delete(left, i, i+1), slices.Delete(indexes, i, i+1)
	}
	return chosen
}

// Parameters are ε, Δ, k, the selector and the scale by which scores are divided.
func (m *TopK) Parameters() Parameters {
	p := m.each.Parameters()
	p.Mechanism, p.Selection, p.Count = TopKSelection, m.picks.By, int64(m.picks.K)
	return p
}
