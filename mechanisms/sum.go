package mechanisms

import (
	"math"
	"math/big"

	"noisegate.example/internal/exact"
)

// Term is one release in a weighted sum of releases with independent noise.
type Term struct {
	Noise  Additive
	Weight *big.Rat
	Times  int // so many releases with this law and this weight; 0 stands for 1
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
			moving = append(moving, weightedTerm{noise: t.Noise, weight: w, times: float64(max(t.Times, 1))})
			grid = commonStep(grid, t.Weight)
		}
	}
	if len(moving) == 0 {
		return 0
	}
	if len(moving) == 1 && moving[0].times == 1 {
		return boole(moving, alpha)
	}
	hi := sumWidth(moving, alpha)
	// The sum is a multiple of the grid. Half a step of what is beyond t may lie on the point below t: then that point is too little.
	step := exact.Float(grid)
	return max(hi, math.Ceil(hi/step-0.5)*step)
}

// sumWidth inverts the law of a sum of several noises; where that cannot be, it is Boole's bound.
func sumWidth(terms []weightedTerm, alpha float64) float64 {
	hi := boole(terms, alpha)
	law, ok := newSumLaw(terms, alpha)
	if !ok {
		return hi
	}
	inside := min(hi, law.reach)
	if law.tail(inside) > alpha {
		return hi
	}
	return reaches(law.tail, alpha, inside)
}

// commonStep is the largest number that divides both.
func commonStep(a, b *big.Rat) *big.Rat {
	x, y := new(big.Int).Mul(a.Num(), b.Denom()), new(big.Int).Mul(b.Num(), a.Denom())
	return new(big.Rat).SetFrac(x.GCD(nil, nil, x.Abs(x), y.Abs(y)), new(big.Int).Mul(a.Denom(), b.Denom()))
}

type weightedTerm struct {
	noise         Additive
	weight, times float64
}

// boole bounds the sum by the sum of bounds, each failing with probability alpha/n.
func boole(terms []weightedTerm, alpha float64) float64 {
	n, sum := 0.0, 0.0
	for _, t := range terms {
		n += t.times
	}
	each := Confidence(1 - alpha/n)
	for _, t := range terms {
		sum += t.times * t.weight * exact.Float(new(big.Rat).SetInt(t.noise.HalfWidth(each)))
	}
	return sum
}

// chernoff bounds what the sum of continuous noises with their uniform variables is beyond with probability alpha:
// (ln(2/alpha) + ln M(s))/s for each s at which the moment generating function M exists. That of a uniform variable as wide as w is at most
// exp(s²w²/24).
func chernoff(terms []weightedTerm, laws []continuousLaw, alpha float64) float64 {
	const steps = 24
	fastest, variance := 0.0, 0.0 // Laplace noise has moments up to the inverse of its scale
	for i, t := range terms {
		fastest = max(fastest, laws[i].scale*t.weight)
		variance += t.times * t.weight * t.weight * (laws[i].variance + 2*laws[i].scale*laws[i].scale + 1./12)
	}
	best := math.Inf(1)
	for k := range steps {
		s := math.Sqrt(2*math.Log(2/alpha)/variance) * math.Exp2(float64(4-k)/4)
		if s*fastest >= 1 {
			continue
		}
		sum := math.Log(2 / alpha)
		for i, t := range terms {
			x := s * t.weight
			sum += t.times * (x*x*(laws[i].variance/2+1./24) - math.Log1p(-laws[i].scale*laws[i].scale*x*x))
		}
		best = min(best, sum/s)
	}
	return best
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
	laws, ok := lawsOf(terms)
	if !ok {
		return sumLaw{}, false
	}
	outside := math.Max(alpha*1e-6, 1e-14) // left out by wrapping
	law.reach, law.unresolved = min(boole(terms, outside), chernoff(terms, laws, outside)), outside
	for j := 1; j <= maxCoefficients; j++ {
		theta := float64(j) * math.Pi / law.reach
		envelope, grid := 1.0, 1.0
		for i, t := range terms {
			x := theta * t.weight
			noise, uniform := laws[i].characteristic(x), 1.0
			if x > 1e-8 {
				uniform = math.Sin(x/2) / (x / 2)
			}
			if t.times > 1 {
				noise, uniform = math.Pow(noise, t.times), math.Copysign(math.Pow(math.Abs(uniform), t.times), signOf(uniform, t.times))
			}
			envelope, grid = envelope*noise, grid*uniform
		}
		law.coefficients = append(law.coefficients, envelope*grid/float64(j))
		if envelope < outside || j == maxCoefficients {
			law.unresolved += envelope // from here on falling at least as 1/j², the rest adds up to less
			break
		}
	}
	return law, true
}

// signOf is the sign of a power with a whole exponent.
func signOf(x, times float64) float64 {
	if x < 0 && math.Mod(times, 2) == 1 {
		return -1
	}
	return 1
}

// lawsOf are the continuous laws of noises; ok is false for noise of unknown kind.
func lawsOf(terms []weightedTerm) (laws []continuousLaw, ok bool) {
	laws = make([]continuousLaw, len(terms))
	for i, t := range terms {
		switch m := t.noise.(type) {
		case *Laplace:
			laws[i].scale = exact.Float(m.scale)
		case *Gaussian:
			laws[i].variance = exact.Float(m.variance)
		default:
			return nil, false
		}
	}
	return laws, true
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

// reaches is the place below hi where a tail falls to alpha, to ten digits and from above. Tails are about
// exponential, so that their logarithm is cut by secants (Illinois), and by halves where that moves too little.
func reaches(tail func(float64) float64, alpha, hi float64) float64 {
	excess := func(t float64) float64 { return math.Log(math.Max(tail(t), 1e-300) / alpha) }
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
