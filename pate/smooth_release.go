package pate

import (
	"math"
	"math/big"

	"noisegate.example/internal/exact"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

// SanitiserParameters fix how a data-dependent ε is made publishable. They are decimal text, and policy: chosen with the votes in view
// they would be as secret as the votes.
type SanitiserParameters struct {
	Order   string `json:"order"`    // λ, the Rényi order at which the cost is taken; above 1
	Beta    string `json:"beta"`     // β of the smooth sensitivity, below 1/2λ; empty stands for 0.4/λ
	SigmaSS string `json:"sigma_ss"` // σ of the noise in units of the smooth sensitivity
	Delta   string `json:"delta"`    // δ of the statement, and of the charge for making it
}

// Sanitiser makes the data-dependent ε of labels that were bought publishable, once: Gaussian noise with smooth sensitivity (GNSS,
// 2018 paper, Section 5 and Appendix B).
//
// The theorem needs one teacher per person, σ of at least 1 vote, 1 < λ < 1/2β, and conditions C5 and C6 of the paper for σ, λ
// and the number of classes, which [Mode.NewSanitiser] verifies numerically, as the paper does.
type Sanitiser struct {
	mode               *Mode
	noise              Noise
	order, beta, sigma float64
	delta, cost        float64
	loss               mechanisms.Loss
	answer             gnmaxSensitivity
	parameters         SanitiserParameters
}

// Sanitised is a published ε. Where it has noise, all labels of the run, together with this number, are (Epsilon, Delta)-DP, unless the
// noise took it too low, which it does with probability 1 - Confidence at most. It is never above what holds of the labels whatever the
// votes ([Sanitiser.Independent]): where that is the smaller, it is published, and says that the number with noise was no smaller.
type Sanitised struct {
	Epsilon float64 `json:"epsilon"` // with noise: rounded up to a millionth, and never below what publishing it costs by itself
	// Confidence is 0.95, or 0.5 for parameters under which no higher one can be had, and 1 of what holds whatever the votes; 0, for 0.5, of
	// numbers from before it was said.
	Confidence float64 `json:"confidence,omitempty"`
	Order      float64 `json:"order"`
	Beta       float64 `json:"beta"`
	SigmaSS    float64 `json:"sigma_ss"`
	Delta      float64 `json:"delta"`
	Cost       float64 `json:"cost"` // Rényi divergence of publishing the number, which Epsilon includes
}

// NewSanitiser checks the parameters and the conditions of the theorem. It returns a [fault.Error].
func (m *Mode) NewSanitiser(p SanitiserParameters) (*Sanitiser, error) {
	s := &Sanitiser{mode: m, noise: Discrete}
	if m.Name() == LNMax || m.Name() == Gumbel {
		return nil, fault.PateConditions("it is one about Gaussian noise")
	}
	order, beta, sigma, err := p.parse()
	if err != nil {
		return nil, err
	}
	delta, err := mechanisms.ParseDelta(p.Delta)
	if err != nil || delta == 0 {
		return nil, fault.PateParameters("delta is a decimal above 0 and below 1")
	}
	s.order, s.beta, s.sigma = exact.Float(order), exact.Float(beta), exact.Float(sigma)
	s.delta = exact.Float(delta.Rat())
	s.parameters = SanitiserParameters{Order: order.RatString(), Beta: beta.RatString(), SigmaSS: sigma.RatString(), Delta: delta.String()}
	f := m.floats()
	switch {
	case m.ensemble.perPerson != 1:
		return nil, fault.PateConditions("it is one about one teacher per person")
	case f.sigma < 1 || f.check != 0 && f.check < 1:
		return nil, fault.PateConditions("it needs noise of at least one vote")
	case !(s.order*s.beta < 0.5):
		return nil, fault.PateConditions("beta must be below 1/(2·order)")
	}
	s.answer = newGNMaxSensitivity(f.sigma, s.order, m.ensemble.ClassCount())
	if c5, c6 := s.answer.conditions(); !c5 || !c6 {
		return nil, fault.PateConditions("C5 or C6 fails for this sigma, order and number of classes; a lower order or a larger sigma may do")
	}
	s.cost = gnssCost(s.beta, s.sigma, s.order)
	// Float64 errors are below a part in 10¹⁰; the price is rounded up by more.
	epsilon := max(0, tight(s.cost, s.order, s.delta))*(1+1e-9) + 1e-12
	if !(epsilon < float64(mechanisms.MaxEpsilon/mechanisms.EpsilonUnit)) {
		return nil, fault.PateConditions("publishing the number would cost more than any budget holds")
	}
	s.loss, err = mechanisms.PureLoss(mechanisms.PicoEpsilon(math.Ceil(epsilon*float64(mechanisms.EpsilonUnit))), delta)
	if err != nil {
		return nil, fault.Internal(err)
	}
	return s, nil
}

// parse reads the numbers exactly.
func (p SanitiserParameters) parse() (order, beta, sigma *big.Rat, err error) {
	read := func(name, text string, lo, hi *big.Rat) *big.Rat {
		x, parseErr := mechanisms.ParseDecimal(text)
		if err == nil && (parseErr != nil || x.Cmp(lo) <= 0 || x.Cmp(hi) > 0) {
			err = fault.PateParameters(name + " is a decimal above " + lo.RatString() + ", at most " + hi.RatString())
		}
		return x
	}
	order = read("order", p.Order, big.NewRat(1, 1), big.NewRat(1000, 1))
	sigma = read("sigma_ss", p.SigmaSS, big.NewRat(1, 1000), big.NewRat(1_000_000, 1))
	if err == nil && p.Beta == "" {
		return order, new(big.Rat).Quo(big.NewRat(2, 5), order), sigma, nil
	}
	beta = read("beta", p.Beta, new(big.Rat), big.NewRat(1, 2))
	return order, beta, sigma, err
}

// Parameters are the parameters in canonical form, for the ledger and for the key under which the number is stored.
func (s *Sanitiser) Parameters() SanitiserParameters { return s.parameters }

// Loss is what publishing the number costs, whatever the votes: its Rényi divergence at the order, as (ε, δ).
func (s *Sanitiser) Loss() mechanisms.Loss { return s.loss }

// Release draws the number for a run: the queries of the table in which what became of each is known (for gnmax, all are answered and
// outcomes may be nil). Draw it once for a run, and store it: a second draw would cost again.
func (s *Sanitiser) Release(sampler *mechanisms.Sampler, t *Table, outcomes []Status, students []Student) (Sanitised, error) {
	if outcomes == nil && s.mode.Name() != GNMax {
		return Sanitised{}, fault.PateParameters("a run of " + string(s.mode.Name()) + " needs what became of each query")
	}
	exact, smooth, err := s.measure(t, AnalysisParameters{Delta: s.delta, Noise: s.noise, Outcomes: outcomes, Students: students})
	if err != nil {
		return Sanitised{}, err
	}
	drawn, err := s.draw(sampler, exact, smooth)
	if free := s.Independent(t.Queries(), outcomes); err == nil && free <= drawn.Epsilon {
		drawn.Epsilon, drawn.Confidence = free, 1
	}
	return drawn, err
}

// Independent is the smallest ε at δ that holds of a run's labels whatever the votes, of those that [Mode.Analyse] gives: it is computed
// from how many queries there were, and what became of each (for gnmax, all are answered and outcomes may be nil).
func (s *Sanitiser) Independent(queries int, outcomes []Status) float64 {
	a := s.mode.newMeter(AnalysisParameters{Delta: s.delta, Noise: s.noise, Orders: Orders()})
	for q := range queries {
		a.queries++
		if s.mode.check != nil {
			a.rho += a.rhoOfCheck()
		}
		if outcomes == nil || outcomes[q] == Answered {
			a.answered++
			a.rho += a.rhoOfAnswer()
		}
	}
	a.mark()
	epsilon, _ := a.linear(tight)
	return min(epsilon, a.composed(a.marks[0]))
}

// Least is the smallest number with noise that can be published, whatever the votes: what publishing it costs by itself, rounded up.
func (s *Sanitiser) Least() float64 {
	return math.Ceil(max(tight(s.cost, s.order, s.delta), 0)*1e6) / 1e6
}

// upperQuantile is the standard normal's at 0.95.
const upperQuantile = 1.6448536269514722

// margin is z, how many deviations of its noise the number is raised by, and c, by how much its sensitivity grows for that.
//
// What is published is f + z·σ·c·S + σ·c·S·Z, of the divergence f, its β-smooth sensitivity S, and a standard normal Z.
// It is at least f when Z >= -z. It is the theorem's release, at the same σ and the same cost, of f' = f + z·σ·c·S with
// c·S as its smooth sensitivity: c·S is as smooth as S, and bounds f' from table to neighbouring table, since S changes
// by at most (e^β-1)·S between them, so that f' changes by at most S + z·σ·c·(e^β-1)·S, which is c·S for
//
//	c = 1 / (1 - z·σ·(e^β-1)).
//
// Where that is not positive there is no such c, and the number is published as it comes, as likely too low as too high.
func (s *Sanitiser) margin() (z, c, confidence float64) {
	if slack := 1 - upperQuantile*s.sigma*math.Expm1(s.beta); slack > 0 {
		return upperQuantile, (1 + 1e-12) / slack, 0.95
	}
	return 0, 1, 0.5
}

// draw adds the noise.
func (s *Sanitiser) draw(sampler *mechanisms.Sampler, exact, smooth float64) (Sanitised, error) {
	drawn, err := standardNormal(sampler)
	if err != nil {
		return Sanitised{}, err
	}
	z, c, confidence := s.margin()
	// The noise may take the number below what publishing it costs by itself, which no true value is.
	epsilon := max(tight(exact+c*smooth*s.sigma*(drawn+z)+s.cost, s.order, s.delta), tight(s.cost, s.order, s.delta), 0)
	return Sanitised{
		Epsilon: math.Ceil(epsilon*1e6) / 1e6, Confidence: confidence,
		Order: s.order, Beta: s.beta, SigmaSS: s.sigma, Delta: s.delta, Cost: s.cost,
	}, nil
}

// measure is the divergence of a run at the order, and its smooth sensitivity. Both are secret. The divergence is that whose sensitivity
// is bounded, which is not below that of [Mode.Analyse].
func (s *Sanitiser) measure(t *Table, p AnalysisParameters) (exact, smooth float64, err error) {
	p.Orders = []float64{s.order}
	if err := s.mode.defaults(t, &p); err != nil {
		return 0, 0, err
	}
	teachers := s.mode.ensemble.teachers
	walk := newWalker(s.answer, s.answer.sigma, teachers, p.Noise)
	check := s.mode.noisyCheck(p.Noise)
	var checks checkCosts
	if s.mode.check != nil {
		checks = newCheckCosts(check, teachers, s.order)
	}
	sums := make([]float64, teachers+1) // up to the table in which all vote otherwise
	for q := range t.Queries() {
		counts, answered := t.row(q), 1.0
		if s.mode.check != nil {
			v := largestSum(counts, p.offsets(q))
			exact += checks.addTo(sums, v)
			answered = p.answered(q, check, float64(v))
		}
		if answered > 0 {
			exact += answered * walk.addTo(sums, counts, answered)
		}
	}
	return exact, discountedMax(s.beta, sums), nil
}

// offsets are the student's offsets for a query, or nil.
func (p AnalysisParameters) offsets(query int) []int64 {
	if p.Students == nil {
		return nil
	}
	return p.Students[query].offsets
}

// answered is the probability that a query's check was passed: 0 or 1 where what became of it is known.
func (p AnalysisParameters) answered(query int, c check, v float64) float64 {
	switch {
	case p.Outcomes == nil:
		return math.Exp(c.logAnswered(v))
	case p.Outcomes[query] == Answered:
		return 1
	default:
		return 0
	}
}

// standardNormal draws discrete Gaussian noise of σ = 2⁴⁰ units and divides by that: a standard normal to twelve digits.
func standardNormal(s *mechanisms.Sampler) (float64, error) {
	unit := new(big.Int).Lsh(big.NewInt(1), 40)
	noise, err := mechanisms.NewGaussian(mechanisms.GaussianParameters{
		L2Squared: big.NewInt(1), Variance: new(big.Rat).SetInt(new(big.Int).Mul(unit, unit)),
	})
	if err != nil {
		return 0, fault.Internal(err)
	}
	drawn := noise.Draw(s).Release(mechanisms.SealInt64(0))
	return exact.Float(new(big.Rat).SetFrac(drawn, unit)), nil
}
