package pate

import (
	"cmp"
	"math"
	"slices"
)

// This file computes what one query really costs: the law of its outcome, and the largest Rényi divergence, in both directions, to the law
// on any table in which one teacher votes otherwise. No bound is involved, but the quadrature's error, about 10⁻¹⁴ on
// probabilities. The laws are those of continuous noise.

// group is a number of classes with the same count.
type group struct{ count, size float64 }

// groupsOf are the distinct counts, largest first.
func groupsOf(counts []uint32) []group {
	sorted := slices.Clone(counts)
	slices.SortFunc(sorted, func(a, b uint32) int { return cmp.Compare(b, a) })
	var groups []group
	for i, n := range sorted {
		if i > 0 && n == sorted[i-1] {
			groups[len(groups)-1].size++
		} else {
			groups = append(groups, group{float64(n), 1})
		}
	}
	return groups
}

// outcomeLaw is the law of the label. Classes with equal counts are equally likely.
type outcomeLaw interface {
	// now is the probability of one class of each group.
	now() []float64
	// after is the law after a vote moved from a class of group a to a class of group b: the probability of each group's
	// other classes, of the class that lost and of the class that won a vote. What it returns is valid until the next call.
	after(a, b int) (others []float64, lost, won float64)
}

// softmaxLaw is the law of the exponential mechanism: p ∝ e^(γ·count).
type softmaxLaw struct {
	groups []group
	gamma  float64
	weight []float64
	total  float64
	others []float64
}

func newSoftmaxLaw(groups []group, gamma float64) *softmaxLaw {
	l := &softmaxLaw{groups: groups, gamma: gamma, weight: make([]float64, len(groups)), others: make([]float64, len(groups))}
	for i, g := range groups {
		l.weight[i] = math.Exp(gamma * (g.count - groups[0].count))
		l.total += g.size * l.weight[i]
	}
	return l
}

func (l *softmaxLaw) now() []float64 {
	p := make([]float64, len(l.weight))
	for i, w := range l.weight {
		p[i] = w / l.total
	}
	return p
}

func (l *softmaxLaw) after(a, b int) (others []float64, lost, won float64) {
	lost, won = l.weight[a]*math.Exp(-l.gamma), l.weight[b]*math.Exp(l.gamma)
	total := l.total + l.weight[a]*math.Expm1(-l.gamma) + l.weight[b]*math.Expm1(l.gamma)
	for i, w := range l.weight {
		l.others[i] = w / total
	}
	return l.others, lost / total, won / total
}

// noise is a continuous law, symmetric about 0.
type noiseLaw interface {
	logDensity(x float64) float64
	logBelow(x float64) float64 // ln P(noise <= x)
	// rule gives nodes and weights that integrate products of densities and distribution functions, shifted by the counts and by
	// one vote more or less.
	rule(groups []group) (nodes, weights []float64)
}

// gaussianNoise has the standard deviation sigma.
type gaussianNoise struct{ sigma float64 }

func (n gaussianNoise) logDensity(x float64) float64 {
	return -x*x/(2*n.sigma*n.sigma) - math.Log(n.sigma*math.Sqrt2*sqrtPi)
}
func (n gaussianNoise) logBelow(x float64) float64 { return logTail(-x / n.sigma) }

// rule is the trapezoidal rule, whose error on such integrands falls as e^(-2π²·(width/step)²). A class that is d votes behind wins
// near d/2 below the first; beyond 2·28σ it does so less often than once in 10³⁰⁰.
func (n gaussianNoise) rule(groups []group) (nodes, weights []float64) {
	top, step := groups[0].count, n.sigma/6
	for i := -28 * 6; i <= 11*6; i++ {
		nodes, weights = append(nodes, top+float64(i)*step), append(weights, step)
	}
	return nodes, weights
}

// laplaceNoise has the scale b.
type laplaceNoise struct{ scale float64 }

func (n laplaceNoise) logDensity(x float64) float64 {
	return -math.Abs(x)/n.scale - math.Log(2*n.scale)
}

func (n laplaceNoise) logBelow(x float64) float64 {
	if x < 0 {
		return x/n.scale - math.Ln2
	}
	return math.Log1p(-math.Exp(-x/n.scale) / 2)
}

// rule is Gauss-Legendre between the kinks, on pieces of at most two scales.
func (n laplaceNoise) rule(groups []group) (nodes, weights []float64) {
	kinks := []float64{groups[0].count - 60*n.scale, groups[0].count + 42*n.scale}
	for _, g := range groups {
		for _, x := range []float64{g.count - 1, g.count, g.count + 1} {
			if x > kinks[0] {
				kinks = append(kinks, x)
			}
		}
	}
	slices.Sort(kinks)
	for i, lo := range kinks[:len(kinks)-1] {
		width := kinks[i+1] - lo
		pieces := math.Ceil(width / (2 * n.scale))
		for p := range int(pieces) {
			half := width / pieces / 2
			middle := lo + (2*float64(p)+1)*half
			for _, g := range gaussLegendre {
				nodes = append(nodes, middle-half*g.node, middle+half*g.node)
				weights = append(weights, half*g.weight, half*g.weight)
			}
		}
	}
	return nodes, weights
}

// gaussLegendre are the positive nodes of the rule with ten points on [-1, 1].
var gaussLegendre = []struct{ node, weight float64 }{
	{0.1488743389816312108848260011297200, 0.2955242247147528701738929946513383},
	{0.4333953941292471907992659431657842, 0.2692667193099963550912269215694694},
	{0.6794095682990244062343273651148736, 0.2190863625159820439955349342281632},
	{0.8650633666889845107320966884234930, 0.1494513491505805931457763396576973},
	{0.9739065285171717200779640120844521, 0.0666713443086881375935688098933318},
}

// noisyMaxLaw is the law of the argmax of counts with noise: p of a class is ∫ f(y-n)·Π F(y-n') dy over the others' counts n'.
type noisyMaxLaw struct {
	groups   []group
	shifted  [3][][]float64 // ln F of each group at each node, one vote less, as it is, one vote more
	hazard   [3][][]float64 // f/F likewise
	weights  []float64
	logBelow []float64 // ln Π F over all classes
	mass     []float64 // weight·ΠF, of the analysed table
	others   []float64
}

// Places in shifted and hazard.
const (
	less = iota
	same
	more
)

func newNoisyMaxLaw(groups []group, noise noiseLaw) *noisyMaxLaw {
	nodes, weights := noise.rule(groups)
	l := &noisyMaxLaw{
		groups: groups, weights: weights,
		logBelow: make([]float64, len(nodes)), mass: make([]float64, len(nodes)), others: make([]float64, len(groups)),
	}
	for _, g := range groups {
		for place, vote := range []float64{-1, 0, 1} {
			below, hazard := make([]float64, len(nodes)), make([]float64, len(nodes))
			for s, y := range nodes {
				x := y - g.count - vote
				below[s] = noise.logBelow(x)
				hazard[s] = math.Exp(noise.logDensity(x) - below[s])
			}
			l.shifted[place] = append(l.shifted[place], below)
			l.hazard[place] = append(l.hazard[place], hazard)
		}
		for s, below := range l.shifted[same][len(l.shifted[same])-1] {
			l.logBelow[s] += g.size * below
		}
	}
	return l
}

// wins is the probability of a class with these hazards.
func (l *noisyMaxLaw) wins(hazard []float64) float64 {
	p := 0.0
	for s, m := range l.mass {
		p += m * hazard[s]
	}
	return p
}

func (l *noisyMaxLaw) now() []float64 {
	for s, below := range l.logBelow {
		l.mass[s] = l.weights[s] * math.Exp(below)
	}
	p := make([]float64, len(l.groups))
	for g := range p {
		p[g] = l.wins(l.hazard[same][g])
	}
	return p
}

func (l *noisyMaxLaw) after(a, b int) (others []float64, lost, won float64) {
	for s, below := range l.logBelow {
		moved := below - l.shifted[same][a][s] - l.shifted[same][b][s] + l.shifted[less][a][s] + l.shifted[more][b][s]
		l.mass[s] = l.weights[s] * math.Exp(moved)
	}
	for g := range l.others {
		l.others[g] = l.wins(l.hazard[same][g])
	}
	return l.others, l.wins(l.hazard[less][a]), l.wins(l.hazard[more][b])
}

// outcome is a class's probability on the real table and on a neighbour, and how many classes share it.
type outcome struct{ here, there, size float64 }

// localDivergence is the largest Rényi divergence at each order over all one-vote moves: forward from the real table to the neighbour, and
// both over the two directions. Curves have a value for each order.
func localDivergence(groups []group, law outcomeLaw, orders []float64) (forward, both []float64) {
	forward, both = make([]float64, len(orders)), make([]float64, len(orders))
	here := law.now()
	var outcomes []outcome
	for a, from := range groups {
		for b, to := range groups {
			if from.count == 0 || a == b && to.size < 2 {
				continue
			}
			others, lost, won := law.after(a, b)
			outcomes = append(outcomes[:0], outcome{here[a], lost, 1}, outcome{here[b], won, 1})
			for g, rest := range groups {
				size := rest.size
				if g == a {
					size--
				}
				if g == b {
					size--
				}
				if size > 0 {
					outcomes = append(outcomes, outcome{here[g], others[g], size})
				}
			}
			for i, order := range orders {
				to, back := divergence(outcomes, order)
				forward[i], both[i] = max(forward[i], to), max(both[i], to, back)
			}
		}
	}
	return forward, both
}

// divergence is the Rényi divergence in both directions. Probabilities below 10⁻³⁰⁰ are left out: beyond float64, and without weight at
// the orders in use.
func divergence(outcomes []outcome, order float64) (to, back float64) {
	x := order - 1
	for _, o := range outcomes {
		if o.here < 1e-300 || o.there < 1e-300 {
			continue
		}
		ratio := math.Log(o.here / o.there)
		to += o.size * o.here * math.Expm1(x*ratio)
		back += o.size * o.there * math.Expm1(-x*ratio)
	}
	return math.Log1p(to) / x, math.Log1p(back) / x
}

// checkDivergence is the largest Rényi divergence, in both directions, of the check's answer when the largest value moves by one.
func checkDivergence(c check, v, order float64) float64 {
	answer := func(v float64) (yes, no float64) {
		z := (c.threshold - v) / c.sigma
		return math.Exp(logTail(z)), math.Exp(logTail(-z))
	}
	yes, no := answer(v)
	largest := 0.0
	for _, w := range []float64{v - 1, v + 1} {
		otherYes, otherNo := answer(w)
		to, back := divergence([]outcome{{yes, otherYes, 1}, {no, otherNo, 1}}, order)
		largest = max(largest, to, back)
	}
	return largest
}
