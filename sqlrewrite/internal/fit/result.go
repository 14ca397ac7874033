package fit

import (
	"math"
	"math/big"

	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/mechanisms/regression"
	"noisegate.example/sqlrewrite/internal/algebra"
	"noisegate.example/sqlrewrite/internal/sqlprint"
)

// Coefficient is one number of a model.
type Coefficient struct {
	Name string
	// Value is what one unit of the feature adds to the prediction: to the target, or to the logarithm of its odds.
	Value float64
	// Scaled is what half of the feature's range adds; of a column of a one-hot feature, its value.
	Scaled float64
	// Interval is that of Value, for the noise alone, at the requested confidence; nil where the noise is not small beside the moments.
	Interval *[2]float64
}

// Fitted is a model.
type Fitted struct {
	Coefficients []Coefficient
	Intercept    Coefficient // of which Scaled is the prediction in the middle of all ranges
	Notes        []algebra.Note
}

// sigma is the standard deviation of the noise of a released place in units where |z| and |t| are at most 1.
func (p *Plan) sigma() float64 {
	l2, _ := p.l2Squared(&p.sums).Float64()
	return math.Sqrt(l2 / (2 * float64(p.options.Rho) / float64(mechanisms.RhoUnit)))
}

// weakGradient reports whether a released gradient of the first pass could be noise alone, or is not large beside the noise of the whole
// price: of d places with the standard deviation s its squared length is ds² on average, with a standard deviation of s²√(2d).
func (p *Plan) weakGradient(released []*big.Int) bool {
	length := 0.0
	for i, n := range released {
		place := float(n) / sqlprint.ResidualSteps * p.unit(i)
		length += place * place
	}
	d, whole := float64(len(released)), p.sigma()*p.sigma()
	pass := whole * float64(p.passes)
	return length < pass*(d+regression.WeakBelow*math.Sqrt(2*d))+regression.WeakBelow*regression.WeakBelow*d*whole
}

// Expected is what noise a fit is expected to have.
type Expected struct {
	// People is from how many people on the noise is small beside the moments, where features spread evenly over their ranges, and each value
	// of a one-hot feature is as frequent as the others.
	People int64
	// Deviations are the standard deviations of the intercept and of the coefficients among so many people, in the unit of their values.
	Deviations []Deviation
}

// Deviation is the noise of one coefficient.
type Deviation struct {
	Name      string
	Deviation float64
}

// Expected needs no data: of a feature that spreads evenly over its range the mean of z² is a third of the largest.
func (p *Plan) Expected() Expected {
	d := len(p.columns) + 1
	norm, _ := p.norm.Float64()
	spread := func(factor int) float64 { // the mean of a factor's squared z
		weight, _ := p.weight(factor).Float64()
		share := 1.0
		if factor > 0 {
			if share = 3; p.columns[factor-1].oneHot {
				share = float64(p.groupSize(p.columns[factor-1].group))
			}
		}
		return weight / norm / share
	}
	least := math.Inf(1)
	for i := range d {
		least = min(least, spread(i))
	}
	curvature := 1.0
	if p.Method() == Gradient {
		curvature = 8 // the second derivative of the loss is between 1/4, where both outcomes are as probable, and 1/11, where one has 9 of 10
	}
	people := max(1, math.Ceil(regression.WeakBelow*p.sigma()*curvature*math.Sqrt(2*float64(d))/least))
	e := Expected{People: int64(min(people, 1<<53))}
	for i := range d {
		name, unit := "intercept", p.targetHalf()*p.unit(i)
		if i > 0 {
			c := p.columns[i-1]
			if name = c.name; !c.oneHot {
				fine, _ := c.factor.Grid.Step.Float64()
				unit *= 2 / fine
			}
		}
		e.Deviations = append(e.Deviations, Deviation{name, unit * p.sigma() * curvature / (people * spread(i))})
	}
	return e
}

// groupSize is how many columns a one-hot feature has.
func (p *Plan) groupSize(group int) int {
	n := 0
	for _, c := range p.columns {
		if c.group == group {
			n++
		}
	}
	return n
}

// targetHalf is what 1 of the scaled target is in the unit of predictions: half of its range; of a logistic model by moments 2, and by
// gradients, which are those of predictions, 1.
func (p *Plan) targetHalf() float64 {
	switch {
	case p.Method() == Gradient:
		return 1
	case p.Question.Model == Logistic:
		return 2
	}
	step, _ := p.target.factor.Grid.Step.Float64()
	return float(p.target.factor.Most()) * step / 2
}

// Model is the model that is fitted.
func (p *Plan) Model() Model { return p.Question.Model }

// solve makes a model of released moments.
func (p *Plan) solve(sums []*big.Int, noiseless bool) (*Fitted, error) {
	d := len(p.columns) + 1
	m := regression.Moments{A: make([][]float64, d), B: make([]float64, d), Sigma: p.sigma()}
	if noiseless {
		m.Sigma = 0
	}
	for i := range d {
		m.A[i] = make([]float64, d)
	}
	for at, c := range p.sums.vector.Columns {
		i, j := c[0], c[1]
		v := float(sums[at]) * p.unit(i)
		if j == d {
			m.B[i] = v / float(p.sums.vector.Factors[j].Most())
			continue
		}
		v *= p.unit(j)
		m.A[i][j], m.A[j][i] = v, v
	}
	for i := range d {
		for j := i + 1; j < d; j++ {
			if p.exclude(i, j) {
				m.Fixed = append(m.Fixed, [2]int{i, j})
			}
		}
	}
	ridge := regression.Adaptive
	if p.Question.Model == Ridge {
		ridge = regression.Whole
	}
	solved, err := m.Solve(ridge)
	if err != nil {
		return nil, fault.Internal(err)
	}
	return p.inColumns(solved), nil
}

// unit is what a factor is multiplied by: the root of its weight over its range's end and K.
func (p *Plan) unit(factor int) float64 {
	weight, _ := p.weight(factor).Float64()
	norm, _ := p.norm.Float64()
	return math.Sqrt(weight/norm) / float(p.sums.vector.Factors[factor].Most())
}

func float(n *big.Int) float64 {
	f, _ := new(big.Float).SetInt(n).Float64()
	return f
}

// inColumns gives coefficients the units of the columns.
//
// With u a factor's multiplier, z = u·k and, of a numeric feature, k = 2x/step - (lo+hi): the prediction t = Σ β·z is linear in x. The
// target y is (t·D + lo+hi)·step/2 for its own grid; of a logistic model the logarithm of the odds is 2t, to second order, whose loss is
// that of least squares with a fourth of the moments (Zhang et al. 2012, functional mechanism).
func (p *Plan) inColumns(s regression.Solution) *Fitted {
	d := len(s.Coefficients)
	g := p.target.factor.Grid
	step, _ := g.Step.Float64()
	half, middle := p.targetHalf(), float(new(big.Int).Add(g.Lo, g.Hi))*step/2
	if p.Question.Model == Logistic {
		middle = 0
	}
	out := &Fitted{}
	base := make([]float64, d) // what the intercept is, as weights of coefficients
	base[0] = half * p.unit(0)
	centre := half * p.unit(0) * s.Coefficients[0]
	for i, c := range p.columns {
		w := half * p.unit(i+1)
		k := Coefficient{Name: c.name}
		k.Scaled = w * float(c.factor.Most()) * s.Coefficients[i+1]
		if !c.oneHot {
			fine, _ := c.factor.Grid.Step.Float64()
			base[i+1] = -w * float(new(big.Int).Add(c.factor.Grid.Lo, c.factor.Grid.Hi))
			w *= 2 / fine
		}
		weights := make([]float64, d)
		weights[i+1] = w
		k.Value = w * s.Coefficients[i+1]
		k.Interval = p.interval(s, k.Value, weights)
		out.Coefficients = append(out.Coefficients, k)
	}
	value := middle
	for i, w := range base {
		value += w * s.Coefficients[i]
	}
	out.Intercept = Coefficient{Name: "intercept", Value: value, Scaled: middle + centre, Interval: p.interval(s, value, base)}
	out.Notes = p.notes(s)
	return out
}

// interval is that of a weighted sum of coefficients; nil where there is none.
func (p *Plan) interval(s regression.Solution, value float64, weights []float64) *[2]float64 {
	deviation, ok := s.Deviation(weights)
	if !ok {
		return nil
	}
	reach := deviation * math.Sqrt2 * math.Erfinv(float64(p.options.Confidence))
	return &[2]float64{value - reach, value + reach}
}

func (p *Plan) notes(s regression.Solution) []algebra.Note {
	notes := p.Notes()
	switch {
	case s.Weak && p.Method() == Gradient:
		notes = append(notes, algebra.Note{Code: "too-few-people", Text: "there are too few people for this price, or the features say too " +
			"little of the target: the first gradient is not large beside the noise; pay more, or use fewer features or iterations"})
	case s.Weak:
		notes = append(notes, algebra.Note{Code: "too-few-people", Text: "there are too few people for this price: the noise is not small " +
			"beside the moments of the features, so that coefficients have no intervals; pay more, or use fewer features"})
	case p.Question.Model == Ridge:
		notes = append(notes, algebra.Note{Code: "ridge", Text: "a ridge as large as the noise pulls all coefficients towards 0; intervals do " +
			"not include that"})
	}
	return notes
}

// Notes are what is known before there is data.
func (p *Plan) Notes() []algebra.Note {
	notes := p.knownNotes("the target or of a feature")
	if p.Method() == Gradient {
		return append(notes, algebra.Note{Code: "no-intervals", Text: "coefficients by noisy gradients have no intervals: what the noise does " +
			"to them depends on the rows"})
	}
	if p.Question.Model == Logistic {
		notes = append(notes, algebra.Note{Code: "second-order", Text: "the logistic loss is replaced by its Taylor polynomial of order 2: " +
			"coefficients are smaller than those of the loss itself, and classify nearly as well"})
	}
	return append(notes, algebra.Note{Code: "noise-only", Text: "intervals are about the noise alone: where rows are a sample of a " +
		"population, its error comes on top"})
}
