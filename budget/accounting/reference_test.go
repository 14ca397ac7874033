package accounting

import (
	"fmt"
	"math"
	"math/big"
	"strings"

	"noisegate.example/mechanisms"
)

// This file holds releases that Noisegate does not make, or does not compose: published figures are about them, so that the
// accountants are compared with other implementations at these.

// continuousLaplaceEvent is real-valued Laplace noise of scale Δ/ε.
func continuousLaplaceEvent(epsilon *big.Rat) (Event, error) {
	return newEvent("laplace", epsilon, func(e float64) model { return laplaceModel{e} },
		func(e *big.Rat) (*big.Rat, *big.Rat) { return e, nil })
}

// continuousGaussianEvent is real-valued Gaussian noise of standard deviation σ = multiplier·Δ.
func continuousGaussianEvent(multiplier *big.Rat) (Event, error) {
	return newEvent("gaussian", multiplier, func(sigma float64) model { return gaussianModel{1 / sigma} },
		func(sigma *big.Rat) (*big.Rat, *big.Rat) { return nil, squareOver(new(big.Rat).Inv(sigma), 2) })
}

// laplaceModel is continuous Laplace noise: L = ε with probability 1/2, -ε with e^-ε/2, and density e^((l-ε)/2)/4 between.
type laplaceModel struct{ eps float64 }

func (m laplaceModel) epsilon() float64 { return m.eps }
func (m laplaceModel) delta() float64   { return 0 }
func (m laplaceModel) reach() float64   { return m.eps }

// rho is the Kullback-Leibler divergence (Harrison, Manurangsi, arXiv 2510.25746).
func (m laplaceModel) rho() float64 {
	if m.eps < 1e-4 {
		return m.eps * m.eps / 2
	}
	return m.eps + math.Expm1(-m.eps)
}

// renyi is Mironov 2017 (arXiv 1702.07476), Proposition 6.
func (m laplaceModel) renyi(alpha float64) float64 {
	w := 2*alpha - 1
	if (alpha-1)*m.eps > 30 {
		return min(m.eps, m.eps+math.Log((alpha+(alpha-1)*math.Exp(-w*m.eps))/w)/(alpha-1))
	}
	exact := math.Log1p((alpha*math.Expm1((alpha-1)*m.eps)+(alpha-1)*math.Expm1(-alpha*m.eps))/w) / (alpha - 1)
	return min(m.eps, exact+16*unitRoundoff*m.eps) // the first order cancels; that much of it may be left
}

func (m laplaceModel) discretise(h float64) *lossGrid {
	g := newLossGrid(h, -m.eps, m.eps)
	g.atom(m.eps, 0.5)
	g.atom(-m.eps, math.Exp(-m.eps)/2)
	for i := range g.buckets() {
		a, b := max(g.at(i), -m.eps), min(g.at(i+1), m.eps)
		if a >= b {
			continue
		}
		density := math.Exp((a-m.eps)/2) / 2
		g.split(i, density*math.Expm1((b-a)/2), density*-math.Expm1((a-b)/2)*math.Exp(g.at(i)-a))
	}
	return g
}

// gaussianModel is continuous Gaussian noise with μ = Δ/σ: L is normal with mean μ²/2 and standard deviation μ.
type gaussianModel struct{ mu float64 }

func (m gaussianModel) epsilon() float64            { return math.Inf(1) }
func (m gaussianModel) delta() float64              { return 0 }
func (m gaussianModel) reach() float64              { return m.rho() + gaussianReach*m.mu }
func (m gaussianModel) rho() float64                { return m.mu * m.mu / 2 }
func (m gaussianModel) renyi(alpha float64) float64 { return alpha * m.rho() }

func (m gaussianModel) discretise(h float64) *lossGrid {
	mean := m.rho()
	g := newLossGrid(h, 2*mean-m.reach(), m.reach())
	// s is e^(h·i) times the neighbour's mass: a normal law with mean -μ²/2.
	standard := func(x float64) float64 { return (x - mean) / m.mu }
	g.add(0, normalBetween(math.Inf(-1), standard(g.at(0))))
	for i := range g.buckets() {
		a, b := standard(g.at(i)), standard(g.at(i+1))
		g.split(i, normalBetween(a, b), tiltedBetween(a, b, m.mu))
	}
	g.infinite = normalBetween(standard(g.at(g.buckets())), math.Inf(1))
	g.drift += 8 * unitRoundoff * m.mu / h
	return g
}

// randomizedResponseEvent answers truthfully with probability 1-lie, and otherwise with one of k classes uniformly. Neighbours differ
// in one unit's class.
func randomizedResponseEvent(lie *big.Rat, classes int64) (Event, error) {
	p, err := positive(lie)
	if err != nil || lie.Cmp(big.NewRat(1, 1)) >= 0 || classes < 2 {
		return Event{}, errEvent
	}
	k := float64(classes)
	honest := float(new(big.Rat).Sub(big.NewRat(1, 1), lie)) // 1-p would lose what is left of p near 1
	m := responseModel{eps: math.Log1p(honest * k / p), truth: honest + p/k, other: p / k, classes: k}
	return Event{name: fmt.Sprintf("randomized_response %s of %d", lie.RatString(), classes), loss: lossOf(m, nil, nil), model: m}, nil
}

// responseModel is k-ary randomized response.
type responseModel struct{ eps, truth, other, classes float64 }

func (m responseModel) epsilon() float64 { return m.eps }
func (m responseModel) delta() float64   { return 0 }
func (m responseModel) reach() float64   { return m.epsilon() }

// rho is that of the worst ε-DP release; truth-other is the probability of a loss that is not 0, halved for k = 2.
func (m responseModel) rho() float64 { return pureModel{m.epsilon()}.rho() }

func (m responseModel) renyi(alpha float64) float64 {
	eps := m.epsilon()
	x := (alpha - 1) * eps
	if x > 30 {
		return min(eps, eps+(math.Log(m.truth)+math.Exp(-x)*m.classes)/(alpha-1))
	}
	return min(eps, math.Log1p(m.truth*math.Expm1(x)*-math.Expm1(-x-eps))/(alpha-1)) // as for pureModel
}

func (m responseModel) discretise(h float64) *lossGrid {
	eps := m.epsilon()
	g := newLossGrid(h, -eps, eps)
	g.atom(eps, m.truth)
	g.atom(0, (m.classes-2)*m.other)
	g.atom(-eps, m.other)
	return g
}

// eventOf is the event behind a mechanism's recorded parameters, such as the ledger keeps. Gaussian noise comes
// as what is known of any vector with its L2 sensitivity, its ρ; who knows how many integers it hides uses [DiscreteGaussianEvent].
func eventOf(p mechanisms.Parameters) (Event, error) {
	text := func(s string) *big.Rat { r, _ := new(big.Rat).SetString(s); return r }
	switch p.Mechanism {
	case mechanisms.DiscreteLaplace:
		l1, ok := new(big.Int).SetString(p.Sensitivity, 10)
		if !ok {
			return Event{}, errEvent
		}
		return DiscreteLaplaceEvent(l1, text(p.Scale))
	case mechanisms.DiscreteGaussian:
		squared := text(strings.TrimSuffix(strings.TrimPrefix(p.Sensitivity, "sqrt("), ")"))
		variance := text(p.Variance)
		if squared == nil || variance == nil || variance.Sign() <= 0 {
			return Event{}, errEvent
		}
		if !strings.HasPrefix(p.Sensitivity, "sqrt(") {
			squared.Mul(squared, squared)
		}
		return ZCDPEvent(squared.Quo(squared, variance.Add(variance, variance)))
	case mechanisms.ExponentialMechanism, mechanisms.QuantileSelection:
		if p.Selection != "" && p.Selection != mechanisms.ExponentialMechanism {
			return PureEvent(text(p.Epsilon)) // the other selectors have no bounded range
		}
		return RangeEvent(text(p.Epsilon))
	case mechanisms.PermuteAndFlipMechanism, mechanisms.ReportNoisyMax, mechanisms.TopKSelection:
		return PureEvent(text(p.Epsilon))
	case mechanisms.PartitionSelection, mechanisms.ShownCounts, mechanisms.RandomDelay:
		return ApproxEvent(text(p.Epsilon), text(p.Delta))
	case mechanisms.GaussianThresholding:
		groups, variance, delta := text(p.Sensitivity), text(p.Variance), text(p.Delta)
		if groups == nil || variance == nil || delta == nil || variance.Sign() <= 0 || delta.Sign() < 0 || delta.Cmp(big.NewRat(1, 1)) >= 0 {
			return Event{}, errEvent
		}
		e, err := ZCDPEvent(groups.Quo(groups, variance.Add(variance, variance)))
		if err != nil {
			return Event{}, err
		}
		return e.outside(delta), nil
	default:
		return Event{}, fmt.Errorf("budget: no accountant knows the mechanism %q", p.Mechanism)
	}
}

// float is the nearest float64.
func float(x *big.Rat) float64 {
	f, _ := x.Float64()
	return f
}
