package accounting

import "math"

// This file holds the laws of the privacy loss of additive noise.

// discreteLaplaceModel is discrete Laplace noise of rate a = 1/b under a shift by d: with q = e^-a, L = a(d-2x) with
// probability tanh(a/2)·q^|x| for 0 < x < d; x <= 0 together is L = ad, x >= d is L = -ad.
type discreteLaplaceModel struct{ shift, rate float64 }

func (m discreteLaplaceModel) epsilon() float64 { return m.shift * m.rate }
func (m discreteLaplaceModel) delta() float64   { return 0 }
func (m discreteLaplaceModel) reach() float64   { return m.epsilon() }

func (m discreteLaplaceModel) rho() float64 {
	overSinh := 1.0
	if m.rate > 1e-8 {
		overSinh = m.rate / math.Sinh(m.rate)
	}
	eps := m.epsilon()
	return min(pureModel{eps}.rho(), eps+math.Expm1(-eps)*overSinh+4*unitRoundoff*eps)
}

func (m discreteLaplaceModel) renyi(alpha float64) float64 {
	eps, q := m.epsilon(), math.Exp(-m.rate)
	// E[e^((α-1)(L-ε))], whose middle part is a geometric sum with the ratio e^(-a(2α-1)).
	w := m.rate * (2*alpha - 1)
	sum := (1 + math.Exp(-(2*alpha-1)*eps)) / (1 + q)
	if m.shift > 1 {
		middle := math.Exp(-w) * math.Expm1(-w*(m.shift-1)) / math.Expm1(-w)
		sum += math.Tanh(m.rate/2) * middle
	}
	exact := eps + (math.Log(sum)+8*unitRoundoff)/(alpha-1)
	// The cancellation above is worst for small ε; the Rényi divergence never exceeds αρ.
	return min(eps, exact, alpha*m.rho())
}

// listed is up to how many different losses are put on the grid one by one.
const listed = 1 << 12

func (m discreteLaplaceModel) discretise(h float64) *lossGrid {
	eps := m.epsilon()
	g := newLossGrid(h, -eps, eps)
	top := 1 / (1 + math.Exp(-m.rate))
	g.atom(eps, top)
	g.atom(-eps, math.Exp(-eps)*top)
	if m.shift <= listed {
		tau := math.Tanh(m.rate / 2)
		for x := 1.0; x < m.shift; x++ {
			g.atom(m.rate*(m.shift-2*x), tau*math.Exp(-m.rate*x))
		}
		return g
	}
	for i := range g.buckets() {
		// The x with losses in (h·i, h·(i+1)]; geometric sums.
		first := max(1, math.Ceil((m.shift-g.at(i+1)/m.rate)/2))
		last := min(m.shift-1, math.Ceil((m.shift-g.at(i)/m.rate)/2)-1)
		if n := last - first + 1; n > 0 {
			sum := -math.Expm1(-m.rate*n) * top
			p := math.Exp(-m.rate*first) * sum
			// E[e^(h·i-L)]: the neighbour's mass, e^(-a(d-x)) in place of e^(-ax).
			g.split(i, p, math.Exp(g.at(i)-m.rate*(m.shift-last))*sum)
		}
	}
	return g
}

// gaussianReach is how many standard deviations of a Gaussian loss lie on the grid; beyond are 10⁻²⁶.
const gaussianReach = 10.5

// discreteGaussianModel is discrete Gaussian noise under a shift by d: L = d(d-2x)/2σ².
type discreteGaussianModel struct{ shift, variance float64 }

func (m discreteGaussianModel) epsilon() float64            { return math.Inf(1) }
func (m discreteGaussianModel) delta() float64              { return 0 }
func (m discreteGaussianModel) reach() float64              { return m.lossAt(-m.far()) }
func (m discreteGaussianModel) rho() float64                { return m.shift * m.shift / (2 * m.variance) }
func (m discreteGaussianModel) renyi(alpha float64) float64 { return alpha * m.rho() }

// lossAt is the loss of a noise value.
func (m discreteGaussianModel) lossAt(x float64) float64 {
	return m.shift * (m.shift - 2*x) / (2 * m.variance)
}

// far is the largest noise value whose loss is put on the grid.
func (m discreteGaussianModel) far() float64 {
	return math.Ceil(gaussianReach*math.Sqrt(m.variance)) + 1
}

func (m discreteGaussianModel) discretise(h float64) *lossGrid {
	sigma, far := math.Sqrt(m.variance), m.far()
	g := newLossGrid(h, m.lossAt(far), m.lossAt(-far))
	// P(X > far), integers above far, is at most the normal tail beyond far: the density falls, and its normaliser is at least the integral.
	g.infinite = normalBetween(far/sigma, math.Inf(1))
	if sigma <= listed {
		m.list(g, far)
	} else {
		m.integrate(g, sigma, far)
	}
	return g
}

// list puts every noise value from -far to far on the grid; those above far keep the loss of far.
func (m discreteGaussianModel) list(g *lossGrid, far float64) {
	total := 1.0
	for x := far; x >= 1; x-- {
		total += 2 * math.Exp(-x*x/(2*m.variance))
	}
	for x := -far; x <= far; x++ {
		g.atom(m.lossAt(x), math.Exp(-x*x/(2*m.variance))/total)
	}
	g.atom(m.lossAt(far), g.infinite)
}

// integrate replaces sums of the density f over consecutive integers by integrals from half a unit below to half a unit above. By the
// midpoint rule the two differ by at most 1/24 of the integral of |f”|, relatively |z²-1|/24σ², to which the part of z inside the range
// adds little: (z+1)²/24σ² bounds it for z = max|x|/σ. P's masses are raised and Q's lowered by that much.
func (m discreteGaussianModel) integrate(g *lossGrid, sigma, far float64) {
	g.add(0, g.infinite)
	for i := range g.buckets() {
		first := max(-far, math.Ceil((m.shift-2*m.variance*g.at(i+1)/m.shift)/2))
		last := min(far, math.Ceil((m.shift-2*m.variance*g.at(i)/m.shift)/2)-1)
		if last < first {
			continue
		}
		a, b := (first-0.5)/sigma, (last+0.5)/sigma
		z := max(math.Abs(a), math.Abs(b)) + 1
		err := z * z / (24 * m.variance)
		// Losses fall with x, so that the normal variable of the loss is -x/σ; its tilt ends at the bucket's lower end.
		edge := g.at(i)
		low := m.lossAt(last + 0.5) // the loss at the range's lower end
		q := tiltedBetween(-b, -a, m.shift/sigma) * math.Exp(edge-low)
		g.split(i, normalBetween(a, b)*(1+err), q*(1-err))
	}
	g.drift += 8 * unitRoundoff * m.shift / (sigma * g.h)
}
