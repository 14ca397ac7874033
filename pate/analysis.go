package pate

import (
	"cmp"
	"fmt"
	"math"
	"math/big"

	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

// Method is a way of accounting for a list of labelled queries.
type Method string

// The methods. Those that depend on votes are secret: their ε, and so anything computed from it, says something about the votes.
const (
	PureComposition    Method = "pure_composition"      // ε adds up
	StrongComposition  Method = "strong_composition"    // closed form of the 2017 paper
	MomentsIndependent Method = "moments_independent"   // moments accountant, without the votes
	ClassicIndependent Method = "rdp_independent"       // Rényi, conversion of Mironov 2017
	TightIndependent   Method = "rdp_independent_tight" // Rényi, conversion of 2020: what ρ of the ledger is worth
	ExactGaussian      Method = "gaussian_exact"        // Gaussian differential privacy, without any loss; continuous noise only
	LatticePLD         Method = "pld"                   // the law of the losses of integer noise; one teacher per person
	MomentsDependent   Method = "moments"               // secret: moments accountant of the 2017 paper
	ClassicDependent   Method = "rdp"                   // secret: Theorem 6 of the 2018 paper, or Theorem 3 of 2017, Mironov's conversion
	TightDependent     Method = "rdp_tight"             // secret: the same, converted as in 2020
	ExactLocal         Method = "exact_local_tight"     // secret: the true divergence to every neighbour, converted as in 2020
)

// Secret says whether the method's results depend on votes.
func (m Method) Secret() bool {
	switch m {
	case PureComposition, StrongComposition, MomentsIndependent, ClassicIndependent, TightIndependent, ExactGaussian, LatticePLD:
		return false
	default: // the four that look at votes, and whatever comes to be added
		return true
	}
}

// AnalysisParameters say how a table of votes is analysed.
type AnalysisParameters struct {
	Delta    float64   // in (0, 1)
	Noise    Noise     // empty stands for Discrete, the noise that this package draws
	Orders   []float64 // Rényi orders, finite and above 1; nil stands for Orders()
	Moments  int       // lnmax: the largest moment; 0 stands for 64
	Students []Student // interactive: one for each query
	Outcomes []Status  // confident, interactive: what became of each query; nil stands for the expectation over the check
	Exact    bool      // also [ExactLocal], which takes milliseconds a query and needs one teacher per person
	Points   int       // on how many points of the way ε is given; 0 stands for 100
}

// Line is ε by one method.
type Line struct {
	Method  Method    `json:"method"`
	Secret  bool      `json:"secret"`          // depends on votes: not to be published (see [Method.Secret] and [AnalysisParameters.Outcomes])
	Order   float64   `json:"order,omitempty"` // the Rényi order behind the last ε
	Epsilon []float64 `json:"epsilon"`         // at each of [Analysis.Points]
}

// Total is ε after all queries.
func (l Line) Total() float64 { return l.Epsilon[len(l.Epsilon)-1] }

// Analysis is what labelling a table costs, by all methods that apply, side by side. It is as secret as its most secret line.
type Analysis struct {
	Mode     Description `json:"mode"`
	Delta    float64     `json:"delta"`
	Noise    Noise       `json:"noise"`
	Answered float64     `json:"answered"` // secret unless it was given: expected number of queries that the teachers answer
	Points   []int       `json:"points"`   // numbers of queries
	Lines    []Line      `json:"lines"`
}

// Analyse accounts for labelling every query of the table once, in order. It returns a [fault.Error] for parameters out of range.
//
// Confident and Interactive cost their check for every query and the answer for those that are answered: those of Outcomes, or, for the
// expectation that the papers print, each by its probability. An expectation is no guarantee, and depends on votes by every method.
func (m *Mode) Analyse(t *Table, p AnalysisParameters) (*Analysis, error) {
	if err := m.defaults(t, &p); err != nil {
		return nil, err
	}
	meter := m.newMeter(p)
	a := &Analysis{Mode: m.Describe(), Delta: p.Delta, Noise: p.Noise}
	lines := meter.lines()
	next := 1
	for q := range t.Queries() {
		meter.add(t.row(q), q)
		if (q+1)*p.Points < next*t.Queries() && q+1 < t.Queries() {
			continue
		}
		for ; next*t.Queries() <= (q+1)*p.Points; next++ { // points between two queries fall together
		}
		a.Points = append(a.Points, q+1)
		meter.mark()
		for i := range lines {
			epsilon, order := lines[i].epsilon()
			lines[i].Epsilon, lines[i].Order = append(lines[i].Epsilon, epsilon), order
		}
	}
	for _, l := range lines {
		a.Lines = append(a.Lines, l.Line)
		if l.Method == TightIndependent && meter.onLattice() {
			a.Lines = append(a.Lines, Line{Method: LatticePLD, Secret: l.Secret, Epsilon: meter.lattice(l.Epsilon)})
		}
	}
	a.Answered = meter.answered
	return a, nil
}

// Independent is what numbers of queries cost by each method that looks at no vote, if all of them are answered: it holds for all votes.
func (m *Mode) Independent(queries []int64, delta float64) []Line {
	meter := m.newMeter(AnalysisParameters{Delta: delta, Noise: Discrete, Orders: Orders(), Moments: 64, Outcomes: []Status{}})
	var lines []meterLine
	for _, l := range meter.lines() {
		if !l.Secret {
			lines = append(lines, l)
		}
	}
	for _, n := range queries {
		meter.queries, meter.rho = float64(n), float64(m.WorstCase(n).Rho)/float64(mechanisms.RhoUnit)
		for i := range lines {
			epsilon, order := lines[i].epsilon()
			lines[i].Epsilon, lines[i].Order = append(lines[i].Epsilon, epsilon), order
		}
	}
	all := make([]Line, len(lines))
	for i, l := range lines {
		all[i] = l.Line
	}
	return all
}

// defaults checks parameters and fills in what was left out.
func (m *Mode) defaults(t *Table, p *AnalysisParameters) error {
	p.Noise, p.Moments, p.Points = cmp.Or(p.Noise, Discrete), cmp.Or(p.Moments, 64), cmp.Or(p.Points, 100)
	if p.Orders == nil {
		p.Orders = Orders()
	}
	for _, order := range p.Orders {
		if !(order > 1) || math.IsInf(order, 1) {
			return fault.PateParameters("orders are finite and above 1")
		}
	}
	switch {
	case t.Queries() == 0 || t.ensemble.ClassCount() != m.ensemble.ClassCount() || t.ensemble.teachers != m.ensemble.teachers:
		return fault.PateParameters("the analysis needs at least one query, of the same teachers and classes")
	case !(p.Delta > 0 && p.Delta < 1):
		return fault.PateParameters("delta is above 0 and below 1")
	case p.Noise != Continuous && p.Noise != Discrete:
		return fault.PateParameters("noise is continuous or discrete")
	case p.Moments < 1 || p.Moments > 10_000 || p.Points < 1 || len(p.Orders) == 0:
		return fault.PateParameters("there must be a positive number of moments, orders and points, and at most 10000 moments")
	case p.Exact && m.ensemble.perPerson > 1:
		return fault.PateParameters("exact divergences are known for one teacher per person only")
	case m.NeedsStudent() && len(p.Students) != t.Queries():
		return fault.PateStudent(fmt.Sprintf("the analysis of %s needs a student's probabilities for each query", m.Name()))
	case p.Outcomes != nil && len(p.Outcomes) != t.Queries():
		return fault.PateParameters("there must be one outcome for each query")
	}
	for _, s := range p.Students {
		if len(s.offsets) != m.ensemble.ClassCount() {
			return fault.PateStudent("a student needs one probability for each class")
		}
	}
	return nil
}

// noisyCheck is the check under a law of noise. What is an integer reaches a threshold if it reaches the next integer.
func (m *Mode) noisyCheck(noise Noise) check {
	f := m.floats()
	c := check{threshold: f.threshold, sigma: f.check, noise: noise}
	if noise == Discrete && m.threshold != nil {
		c.threshold, _ = m.threshold.Float64()
	}
	return c
}

// floats are the mode's numbers for analysis; those that it does not have are 0.
type floats struct{ scale, sigma, check, threshold, gamma, perPerson float64 }

func (m *Mode) floats() floats {
	number := func(text string) float64 {
		x, ok := new(big.Rat).SetString(text)
		if !ok {
			return 0
		}
		f, _ := x.Float64()
		return f
	}
	s := m.settings
	f := floats{
		scale: number(s.NoiseScale), sigma: number(s.Sigma), check: number(s.Sigma1), threshold: number(s.Threshold),
		gamma: number(s.Gamma), perPerson: float64(m.ensemble.perPerson),
	}
	if f.sigma == 0 {
		f.sigma = number(s.Sigma2)
	}
	return f
}
