package pate

import (
	"math"

	"noisegate.example/mechanisms"
)

// meter adds up what queries cost, by all methods of a mode at once.
type meter struct {
	mode     *Mode
	p        AnalysisParameters
	f        floats
	check    check
	queries  float64
	answered float64
	rho      float64   // data-independent ρ
	curve    *curve    // data-dependent divergence at the orders
	moments  *curve    // lnmax: the same at the orders of the moments accountant, 2 to Moments+1
	exact    []float64 // exact divergence at the orders, if wanted
	marks    []mark    // at the points
}

func (m *Mode) newMeter(p AnalysisParameters) *meter {
	f := m.floats()
	a := &meter{
		mode: m, p: p, f: f, check: m.noisyCheck(p.Noise),
		curve: newCurve(p.Orders),
	}
	if p.Exact {
		a.exact = make([]float64, len(p.Orders))
	}
	if m.Name() == LNMax {
		var orders []float64
		for l := range p.Moments {
			orders = append(orders, float64(l+2))
		}
		a.moments = newCurve(orders)
	}
	return a
}

// gamma is half of the pure ε of a query: the γ of the papers, for one person's teachers together.
func (a *meter) gamma() float64 {
	if a.mode.Name() == LNMax {
		return a.f.perPerson / a.f.scale
	}
	return a.f.perPerson * a.f.gamma
}

// add accounts for one query.
func (a *meter) add(counts []uint32, query int) {
	a.queries++
	switch a.mode.Name() {
	case LNMax:
		a.addLaplace(counts)
	case Gumbel:
		a.answered++
		a.rho += square(a.gamma()) / 2
		if a.exact != nil {
			groups := groupsOf(counts)
			a.addExact(groups, newSoftmaxLaw(groups, a.f.gamma), 1)
		}
	case GNMax:
		a.addAnswer(counts, 1)
	case Confident, Interactive:
		a.addAnswer(counts, a.addCheck(counts, query))
	}
}

func (a *meter) addLaplace(counts []uint32) {
	a.answered++
	rho := float64(a.mode.answering.Rho) / float64(mechanisms.RhoUnit)
	a.rho += rho
	b := theorem3(logqLaplace(counts, 1/a.f.scale, a.p.Noise), a.gamma())
	a.moments.add(b, 1)
	if a.p.Noise == Discrete {
		b.quadratic = min(b.quadratic, rho) // what is charged is known to suffice, and is less than the papers' 2γ²
	}
	a.curve.add(b, 1)
	if a.exact != nil {
		groups := groupsOf(counts)
		a.addExact(groups, newNoisyMaxLaw(groups, laplaceNoise{a.f.scale}), 1)
	}
}

// rhoOfAnswer and rhoOfCheck are what Gaussian noise costs whatever the votes.
func (a *meter) rhoOfAnswer() float64 { return square(a.f.perPerson / a.f.sigma) }
func (a *meter) rhoOfCheck() float64  { return square(a.f.perPerson/a.f.check) / 2 }

// linear is the smallest ε of ρ over the orders.
func (a *meter) linear(convert conversion) (epsilon, order float64) {
	values := make([]float64, len(a.p.Orders))
	for i, order := range a.p.Orders {
		values[i] = a.rho * order
	}
	return best(convert, values, a.p.Orders, a.p.Delta)
}

// addAnswer accounts for an answer that is given with a probability, or with the probability 0 or 1.
func (a *meter) addAnswer(counts []uint32, probability float64) {
	if probability == 0 {
		return
	}
	a.answered += probability
	a.rho += probability * a.rhoOfAnswer()
	a.curve.add(theorem6(logqGaussian(counts, a.f.sigma, a.p.Noise), a.f.sigma/a.f.perPerson), probability)
	if a.exact != nil {
		groups := groupsOf(counts)
		a.addExact(groups, newNoisyMaxLaw(groups, gaussianNoise{a.f.sigma}), probability)
	}
}

func (a *meter) addExact(groups []group, law outcomeLaw, probability float64) {
	_, both := localDivergence(groups, law, a.p.Orders)
	for i, d := range both {
		a.exact[i] += probability * d
	}
}

// addCheck accounts for the check and gives the probability that it was passed.
func (a *meter) addCheck(counts []uint32, query int) float64 {
	v := float64(largestSum(counts, a.p.offsets(query)))
	a.rho += a.rhoOfCheck()
	a.curve.add(a.check.bound(v, a.f.perPerson), 1)
	if a.exact != nil {
		for i, order := range a.p.Orders {
			a.exact[i] += checkDivergence(a.check, v, order)
		}
	}
	return a.p.answered(query, a.check, v)
}

// largestSum is the largest count, or count plus offset: what the check looks at.
func largestSum(counts []uint32, offsets []int64) int64 {
	largest := int64(math.MinInt64)
	for i, n := range counts {
		v := int64(n)
		if offsets != nil {
			v += offsets[i]
		}
		largest = max(largest, v)
	}
	return largest
}

// meterLine is a line and how its next ε is read off the meter.
type meterLine struct {
	Line
	epsilon func() (epsilon, order float64)
}

// lines are the methods that apply to the mode.
func (a *meter) lines() []meterLine {
	var lines []meterLine
	expected := a.mode.check != nil && a.p.Outcomes == nil // how many queries are answered is then a guess from the votes
	add := func(m Method, epsilon func() (float64, float64)) {
		lines = append(lines, meterLine{Line{Method: m, Secret: m.Secret() || expected}, epsilon})
	}
	read := func(convert conversion, c *curve) func() (float64, float64) {
		return func() (float64, float64) { return best(convert, c.values(), c.orders, a.p.Delta) }
	}
	linear := func(convert conversion) func() (float64, float64) {
		return func() (float64, float64) { return a.linear(convert) }
	}
	if a.mode.Name() == LNMax || a.mode.Name() == Gumbel {
		add(PureComposition, func() (float64, float64) { return 2 * a.gamma() * a.queries, 0 })
	}
	switch a.mode.Name() {
	case LNMax:
		add(StrongComposition, func() (float64, float64) { return strongComposition(a.queries, a.gamma(), a.p.Delta), 0 })
		add(MomentsIndependent, a.momentsIndependent)
		add(TightIndependent, linear(tight))
		add(MomentsDependent, read(classic, a.moments))
	case Gumbel:
		add(ClassicIndependent, linear(classic))
		add(TightIndependent, linear(tight))
	case GNMax, Confident, Interactive:
		add(ClassicIndependent, linear(classic))
		add(TightIndependent, linear(tight))
		if a.p.Noise == Continuous {
			add(ExactGaussian, func() (float64, float64) { return gaussianEpsilon(math.Sqrt(2*a.rho), a.p.Delta), 0 })
		}
	}
	if a.mode.Name() != Gumbel {
		add(ClassicDependent, read(classic, a.curve))
		add(TightDependent, read(tight, a.curve))
	}
	if a.exact != nil {
		add(ExactLocal, func() (float64, float64) { return best(tight, a.exact, a.p.Orders, a.p.Delta) })
	}
	return lines
}

// momentsIndependent is the moments accountant for votes that it does not look at: 2γ²l(l+1), or 2γl, for each query.
func (a *meter) momentsIndependent() (epsilon, order float64) {
	values := make([]float64, len(a.moments.orders))
	for i, order := range a.moments.orders {
		values[i] = a.queries * theorem3(0, a.gamma()).rdp(order)
	}
	return best(classic, values, a.moments.orders, a.p.Delta)
}
