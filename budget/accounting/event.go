package accounting

import (
	"errors"
	"fmt"
	"math"
	"math/big"

	"noisegate.example/internal/exact"
	"noisegate.example/mechanisms"
)

// Event is one release as the accountants of fixed lists see it: the law of its privacy loss, at the worst pair of neighbours.
//
// Every event here is symmetric: its two neighbours may be exchanged without changing the law, so that adding a unit and removing one
// cost the same. Parameters are converted to float64; results are rounded up by far more than that loses.
type Event struct {
	name  string
	loss  mechanisms.Loss // rounded up, as the ledger would charge it
	model model
}

// Repeated is an event that happens several times, with fresh noise each time.
type Repeated struct {
	Event Event
	Times int64
}

// String names the event and its parameters.
func (e Event) String() string { return e.name }

// model is the privacy loss L = ln(P(x)/Q(x)), x drawn from P.
type model interface {
	// renyi bounds the Rényi divergence of order α > 1: ln E[e^((α-1)L)]/(α-1), outside an event of probability delta.
	renyi(alpha float64) float64
	// rho is the zCDP of the release, outside an event of probability delta.
	rho() float64
	// epsilon is the largest loss, +Inf if there is none, outside an event of probability delta.
	epsilon() float64
	// delta is the probability of losing everything.
	delta() float64
	// reach is the largest loss that discretise puts on the grid.
	reach() float64
	// discretise puts the law on the multiples of h, pessimistically. It is nil if the law is not known.
	discretise(h float64) *lossGrid
}

var errEvent = errors.New("budget: the parameter of an event is not positive, or too large")

// maxParameter bounds parameters, and their inverses, to what float64 computes with comfortably.
const maxParameter = 1e15

// positive converts a parameter.
func positive(x *big.Rat) (float64, error) {
	if x == nil || x.Sign() <= 0 {
		return 0, errEvent
	}
	f, _ := x.Float64()
	if !(f >= 1/maxParameter && f <= maxParameter) {
		return 0, errEvent
	}
	return f, nil
}

// newEvent makes an event whose only parameter is positive. exact gives what is known of ε and ρ exactly, or nil.
func newEvent(name string, parameter *big.Rat, make func(float64) model, exact func(x *big.Rat) (epsilon, rho *big.Rat)) (Event, error) {
	x, err := positive(parameter)
	if err != nil {
		return Event{}, fmt.Errorf("%w: %s", err, name)
	}
	m := make(x)
	epsilon, rho := exact(parameter)
	return Event{name: name + " " + parameter.RatString(), loss: lossOf(m, epsilon, rho), model: m}, nil
}

// lossOf is a model's loss, rounded up: from the exact values where there are any, else from the model's.
func lossOf(m model, epsilon, rho *big.Rat) mechanisms.Loss {
	if epsilon == nil {
		epsilon = roundedUp(m.epsilon())
	}
	if rho == nil {
		rho = roundedUp(m.rho())
	}
	loss := mechanisms.Loss{Unbounded: epsilon == nil, Rho: mechanisms.PicoRho(saturatedUnits(rho))}
	if epsilon != nil {
		loss.Epsilon = mechanisms.PicoEpsilon(saturatedUnits(epsilon))
	}
	return loss
}

// roundedUp is a rational above the real number that x approximates, or nil if it is infinite.
func roundedUp(x float64) *big.Rat { return new(big.Rat).SetFloat64(x * (1 + reportSlack)) }

// saturatedUnits is ⌈x·10¹²⌉, or the largest value, which no budget admits.
func saturatedUnits(x *big.Rat) int64 {
	units, _ := exact.CeilUnits(x, int64(mechanisms.EpsilonUnit))
	return units
}

func squareOver(x *big.Rat, n int64) *big.Rat {
	square := new(big.Rat).Mul(x, x)
	return square.Quo(square, big.NewRat(n, 1))
}

// PureEvent is any ε-DP release: the worst is binary randomized response (Kairouz, Oh, Viswanath 2015).
func PureEvent(epsilon *big.Rat) (Event, error) {
	return newEvent("pure", epsilon, func(e float64) model { return pureModel{e} },
		func(e *big.Rat) (*big.Rat, *big.Rat) { return e, nil })
}

// RangeEvent is an ε-bounded-range release: the exponential mechanism (Dong, Durfee, Rogers 2020).
func RangeEvent(epsilon *big.Rat) (Event, error) {
	return newEvent("exponential", epsilon, func(e float64) model { return rangeModel{pureModel{e}} },
		func(e *big.Rat) (*big.Rat, *big.Rat) { return e, squareOver(e, 8) })
}

// ZCDPEvent is any ρ-zCDP release. Its law is not known: RDP composes it, PLD refuses.
func ZCDPEvent(rho *big.Rat) (Event, error) {
	return newEvent("zcdp", rho, func(r float64) model { return zcdpModel{r} },
		func(r *big.Rat) (*big.Rat, *big.Rat) { return nil, r })
}

// ApproxEvent is any release that is ε-DP outside an event of probability δ.
func ApproxEvent(epsilon, delta *big.Rat) (Event, error) {
	if delta == nil || delta.Sign() < 0 || delta.Cmp(big.NewRat(1, 1)) >= 0 {
		return Event{}, errEvent
	}
	e, err := PureEvent(epsilon)
	if err != nil {
		return e, err
	}
	return e.outside(delta), nil
}

// outside is an event that keeps its promise but for another one of probability δ in [0, 1).
func (e Event) outside(delta *big.Rat) Event {
	if delta.Sign() == 0 {
		return e
	}
	d, _ := delta.Float64()
	e.name += " outside " + delta.RatString()
	units, _ := exact.CeilUnits(delta, int64(mechanisms.DeltaUnit))
	e.loss.Delta = mechanisms.AttoDelta(units)
	e.model = approxModel{e.model, d}
	return e
}

// DiscreteLaplaceEvent is the noise of [mechanisms.Laplace] for an L1 sensitivity.
//
// The worst case is all of the sensitivity in one coordinate. With H_d(γ) = sup_S P(S)-γ·Q(S) for a shift by d, and a = 1/scale:
// at the losses that occur, γ = e^(am), m ≡ d (mod 2), |m| <= d, H_d = 1 - e^(a(m-d)/2), and between them H_d is linear in γ. For two
// coordinates d1 >= d2, d1+d2 = Δ, and t = m-d1, summing over the second coordinate's losses gives with τ = tanh(a/2)
//
//	H(e^(am)) = 1 - e^(a(m-Δ)/2)·(1+τ·d2) + τ·e^(a(t-d2)/2)·max(0, t+d2)/2  <=  1 - e^(a(m-Δ)/2) = H_Δ(e^(am)),
//
// because m-Δ = t-d2 and t <= d2. The case m < 0 follows by symmetry, more coordinates by induction, and a
// sum below Δ by adding a coordinate.
func DiscreteLaplaceEvent(l1 *big.Int, scale *big.Rat) (Event, error) {
	b, err := positive(scale)
	if err != nil || l1 == nil || l1.Sign() <= 0 || l1.BitLen() > 50 {
		return Event{}, errEvent
	}
	noise, err := mechanisms.NewLaplace(mechanisms.LaplaceParameters{L1: l1, Scale: scale})
	if err != nil {
		return Event{}, err
	}
	return Event{name: fmt.Sprintf("discrete_laplace %s/(%s)", l1, scale.RatString()), loss: noise.Loss(),
		model: discreteLaplaceModel{float64(l1.Int64()), 1 / b}}, nil
}

// DiscreteGaussianEvent is the noise of [mechanisms.Gaussian] on one integer that moves by at most shift.
//
// For a vector of k integers that move by at most shift each, it happens k times: a smaller move is never worse, because the
// noise's density is log-concave. Nothing better is known for vectors with only an L2 sensitivity.
func DiscreteGaussianEvent(shift *big.Int, variance *big.Rat) (Event, error) {
	v, err := positive(variance)
	if err != nil || shift == nil || shift.Sign() <= 0 || shift.BitLen() > 50 {
		return Event{}, errEvent
	}
	noise, err := mechanisms.NewGaussian(mechanisms.GaussianParameters{L2Squared: new(big.Int).Mul(shift, shift), Variance: variance})
	if err != nil {
		return Event{}, err
	}
	return Event{name: fmt.Sprintf("discrete_gaussian %s/sqrt(%s)", shift, variance.RatString()), loss: noise.Loss(),
		model: discreteGaussianModel{float64(shift.Int64()), v}}, nil
}

// pureModel is binary randomized response: loss ε with probability e^ε/(1+e^ε), else -ε.
type pureModel struct{ eps float64 }

func (m pureModel) epsilon() float64 { return m.eps }
func (m pureModel) delta() float64   { return 0 }
func (m pureModel) reach() float64   { return m.eps }
func (m pureModel) rho() float64     { return m.eps * math.Tanh(m.eps/2) }

func (m pureModel) renyi(alpha float64) float64 {
	p := 1 / (1 + math.Exp(-m.eps))
	x := (alpha - 1) * m.eps
	if x > 30 {
		return min(m.eps, m.eps+math.Log(p)/(alpha-1)+math.Exp(-2*x))
	}
	// p·(e^x-1) + (1-p)·(e^-x-1), in which the first order cancels, without that difference.
	return min(m.eps, math.Log1p(p*math.Expm1(x)*-math.Expm1(-x-m.eps))/(alpha-1))
}

func (m pureModel) discretise(h float64) *lossGrid {
	g := newLossGrid(h, -m.eps, m.eps)
	g.atom(m.eps, 1/(1+math.Exp(-m.eps)))
	g.atom(-m.eps, 1/(1+math.Exp(m.eps)))
	return g
}

// approxModel is another release with probability 1-δ, and no privacy otherwise.
type approxModel struct {
	model
	lost float64
}

func (m approxModel) delta() float64 { return m.lost }

func (m approxModel) discretise(h float64) *lossGrid {
	g := m.model.discretise(h)
	if g == nil {
		return nil
	}
	g.scale(1 - m.lost)
	g.infinite += m.lost
	return g
}

// rangeModel is a bounded-range release. Its law depends on where in the range the losses lie; PLD takes the pure one.
type rangeModel struct{ pureModel }

func (m rangeModel) rho() float64 { return min(m.eps*m.eps/8, m.pureModel.rho()) }

// renyi is that of Cesar and Rogers 2021 (arXiv 2004.07223), section 3: the largest Kullback-Leibler divergence of a range ε,
// x-1-ln x with x = ε/(1-e^-ε), and ε²/8 for each order above 1; at most ε.
func (m rangeModel) renyi(alpha float64) float64 {
	square := m.eps * m.eps / 8
	kl := square
	if m.eps > 1e-4 {
		y := (m.eps + math.Expm1(-m.eps)) / -math.Expm1(-m.eps)
		kl = min(kl, y-math.Log1p(y))
	}
	return min(m.eps, kl+(alpha-1)*square)
}

// zcdpModel is known by its ρ only.
type zcdpModel struct{ r float64 }

func (m zcdpModel) epsilon() float64             { return math.Inf(1) }
func (m zcdpModel) delta() float64               { return 0 }
func (m zcdpModel) reach() float64               { return 0 }
func (m zcdpModel) rho() float64                 { return m.r }
func (m zcdpModel) renyi(alpha float64) float64  { return alpha * m.r }
func (m zcdpModel) discretise(float64) *lossGrid { return nil }
