package mechanisms

import (
	"math"
	"math/big"

	"noisegate/internal/exact"
)

// Term is one release in a weighted sum of releases with independent noise.
type Term struct {
	Noise  Additive
	Weight *big.Rat
}

// SumHalfWidth is about the smallest t with P(|Σ weight·noise| > t) <= 1-level, in floating point and rounded up.
//
// For one term it is that term's half width. For more, the law of the sum is inverted numerically from its characteristic function, in
// which each discrete term is replaced by the continuous noise of the same parameter plus a uniform variable as wide as the
// grid: |continuous + uniform| is beyond n+1/2 at least as often as |discrete| is beyond n. Boole's inequality over the terms
// is the limit, and the answer for noise of other kinds and for levels too near 1 to resolve.
func SumHalfWidth(terms []Term, level Confidence) float64 {
	alpha := 1 - float64(level)
	var moving []weightedTerm
	grid := new(big.Rat)
	for _, t := range terms {
		if w := math.Abs(exact.Float(t.Weight)); w > 0 { // noise is symmetric
			moving = append(moving, weightedTerm{noise: t.Noise, weight: w})
			grid = commonStep(grid, t.Weight)
		}
	}
	if len(moving) == 0 {
		return 0
	}
	hi := boole(moving, alpha)
	law, ok := newSumLaw(moving, alpha)
	if len(moving) == 1 || !ok || law.tail(hi) > alpha {
		return hi
	}
	hi = law.reaches(alpha, hi)
	// The sum is a multiple of the grid. Half a step of what is beyond t may lie on the point below t: then that point is too little.
	step := exact.Float(grid)
	return max(hi, math.Ceil(hi/step-0.5)*step)
}

// commonStep is the largest number of which both are multiples.
func commonStep(a, b *big.Rat) *big.Rat {
	x, y := new(big.Int).Mul(a.Num(), b.Denom()), new(big.Int).Mul(b.Num(), a.Denom())
	return new(big.Rat).SetFrac(x.GCD(nil, nil, x.Abs(x), y.Abs(y)), new(big.Int).Mul(a.Denom(), b.Denom()))
}

type weightedTerm struct {
	noise  Additive
	weight float64
}

// boole bounds the sum by the sum of bounds, each failing with probability alpha/n.
func boole(terms []weightedTerm, alpha float64) float64 {
	each, sum := Confidence(1-alpha/float64(len(terms))), 0.0
	for _, t := range terms {
		sum += t.weight * exact.Float(new(big.Rat).SetInt(t.noise.HalfWidth(each)))
	}
	return sum
}

// sumLaw holds the Fourier coefficients of a sum's density, wrapped around an interval of ±reach.
type sumLaw struct {
	reach        float64
	coefficients []float64 // φ(jπ/reach)/j, j = 1, 2, ...
	unresolved   float64   // bounds what wrapping and truncation may hide
}

// maxCoefficients limits the series, for sums in which one term dwarfs the others.
const maxCoefficients = 1 << 12

// newSumLaw prepares the series; ok is false for noise of unknown kind.
func newSumLaw(terms []weightedTerm, alpha float64) (law sumLaw, ok bool) {
	laws := make([]continuousLaw, len(terms))
	for i, t := range terms {
		switch m := t.noise.(type) {
		case *Laplace:
			laws[i].scale = exact.Float(m.scale)
		case *Gaussian:
			laws[i].variance = exact.Float(m.variance)
		default:
			return sumLaw{}, false
		}
	}
	outside := math.Max(alpha*1e-6, 1e-14) // left out by wrapping
	law.reach, law.unresolved = boole(terms, outside), outside
	for j := 1; j <= maxCoefficients; j++ {
		theta := float64(j) * math.Pi / law.reach
		envelope, grid := 1.0, 1.0
		for i, t := range terms {
			x := theta * t.weight
			envelope *= laws[i].characteristic(x)
			if x > 1e-8 {
				grid *= math.Sin(x/2) / (x / 2)
			}
		}
		law.coefficients = append(law.coefficients, envelope*grid/float64(j))
		if envelope < outside || j == maxCoefficients {
			law.unresolved += envelope // falling at least as 1/j² by now, the rest adds up to less
			break
		}
	}
	return law, true
}

// continuousLaw is Laplace noise of a scale, or normal noise of a variance.
type continuousLaw struct{ scale, variance float64 }

func (l continuousLaw) characteristic(x float64) float64 {
	if l.variance > 0 {
		return math.Exp(-l.variance * x * x / 2)
	}
	return 1 / (1 + l.scale*l.scale*x*x)
}

// tail is P(|S| > t), rounded up: the density's series integrated over [-t, t]. Sines of multiples come by rotation, which errs by at
// most a few units of 2⁻⁵³ for each step.
func (l sumLaw) tail(t float64) float64 {
	sum := 0.0
	step := complex(math.Cos(t*math.Pi/l.reach), math.Sin(t*math.Pi/l.reach))
	at := step
	for _, c := range l.coefficients {
		sum += c * imag(at)
		at *= step
	}
	return 1 - t/l.reach - 2/math.Pi*sum + l.unresolved
}

// reaches is the place below hi where the tail falls to alpha, to ten digits and from above. Tails are about
// exponential, so that their logarithm is cut by secants (Illinois), and by halves where that moves too little.
func (l sumLaw) reaches(alpha, hi float64) float64 {
	excess := func(t float64) float64 { return math.Log(math.Max(l.tail(t), 1e-300) / alpha) }
	lo, above, below := 0.0, -math.Log(alpha), excess(hi)
	for i := 0; i < 60 && hi-lo > 1e-10*hi && below < 0; i++ {
		t := lo + (hi-lo)*above/(above-below)
		if i%4 == 3 || t <= lo || t >= hi {
			t = (lo + hi) / 2
		}
		if e := excess(t); e > 0 {
			lo, above, below = t, e, below/2
		} else {
			hi, above, below = t, above/2, e
		}
	}
	return hi
}

// OneSided is the level at which a two-sided interval leaves 1-c on each side: its one end is then a bound at level c. c is
// more than 1/2.
func (c Confidence) OneSided() Confidence { return 2*c - 1 }
