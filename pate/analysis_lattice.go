package pate

import (
	"math"
	"math/big"

	"noisegate.example/budget/accounting"
	"noisegate.example/mechanisms"
)

// What integer noise costs, from the law of its privacy losses. The formulas for continuous noise are below it where σ is
// small: two integers with σ = 1 have ε 6.7013 at δ 1e-5, and not 6.5730.

// latticePoints is on how many points of the way the law is composed, which takes a fifth of a second each; at a point between two of them
// the next one's ε holds as well.
const latticePoints = 4

// mark is how many checks and answers there were at a point.
type mark struct{ checks, answers int64 }

// mark remembers where the meter stands. What is expected to be answered is rounded up.
func (a *meter) mark() {
	m := mark{answers: int64(math.Ceil(a.answered - 1e-9))}
	if a.mode.check != nil {
		m.checks = int64(a.queries)
	}
	a.marks = append(a.marks, m)
}

// onLattice reports whether the law is known: Gaussian integer noise, and one vote that moves from one class to another. Of several votes
// only the L2 sensitivity is.
func (a *meter) onLattice() bool {
	switch a.mode.Name() {
	case GNMax, Confident, Interactive:
		return a.p.Noise == Discrete && a.f.perPerson == 1
	default:
		return false
	}
}

// lattice is ε at each point, no larger than what Rényi accounting says there.
func (a *meter) lattice(tight []float64) []float64 {
	line := make([]float64, len(tight))
	step := (len(line) + latticePoints - 1) / latticePoints
	next := math.Inf(1)
	for i := len(line) - 1; i >= 0; i-- {
		if (len(line)-1-i)%step == 0 {
			next = a.composed(a.marks[i])
		}
		line[i] = min(next, tight[i])
	}
	return line
}

// composed is ε of so many releases; +Inf where the law cannot be composed.
func (a *meter) composed(m mark) float64 {
	answer := a.mode.settings.Sigma
	if answer == "" {
		answer = a.mode.settings.Sigma2
	}
	var list []accounting.Repeated
	for _, noise := range []struct {
		sigma string
		times int64
	}{{a.mode.settings.Sigma1, m.checks}, {answer, 2 * m.answers}} { // an answer's vote leaves one count and enters another
		if noise.times == 0 {
			continue
		}
		variance, ok := new(big.Rat).SetString(noise.sigma)
		if !ok {
			return math.Inf(1)
		}
		event, err := accounting.DiscreteGaussianEvent(big.NewInt(1), variance.Mul(variance, variance))
		if err != nil {
			return math.Inf(1)
		}
		list = append(list, accounting.Repeated{Event: event, Times: noise.times})
	}
	if len(list) == 0 {
		return 0
	}
	pld, err := accounting.NewPLD(list)
	if err != nil {
		return math.Inf(1)
	}
	epsilon, ok := pld.Epsilon(mechanisms.AttoDelta(a.p.Delta * float64(mechanisms.DeltaUnit)))
	if !ok {
		return math.Inf(1)
	}
	return float64(epsilon) / float64(mechanisms.EpsilonUnit)
}
