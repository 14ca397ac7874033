package mechanisms

import (
	"math"
	"math/big"
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
		if w := math.Abs(ratFloat(t.Weight)); w > 0 { // noise is symmetric
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
	lo := 0.0
	for range 40 {
		if t := (lo + hi) / 2; law.tail(t) > alpha {
			lo = t
		} else {
			hi = t
		}
	}
	// The sum is a multiple of the grid. Half a step of what is beyond t may lie on the point below t: then that point is too little.
	step := ratFloat(grid)
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
		sum += t.weight * ratFloat(new(big.Rat).SetInt(t.noise.HalfWidth(each)))
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
	outside := math.Max(alpha*1e-6, 1e-14) // left out by wrapping
	law.reach, law.unresolved = boole(terms, outside), outside
	for j := 1; j <= maxCoefficients; j++ {
		theta := float64(j) * math.Pi / law.reach
		envelope, grid := 1.0, 1.0
		for _, t := range terms {
			x := theta * t.weight
			switch m := t.noise.(type) {
			case *Laplace:
				b := ratFloat(m.scale)
				envelope /= 1 + b*b*x*x
			case *Gaussian:
				envelope *= math.Exp(-ratFloat(m.variance) * x * x / 2)
			default:
				return sumLaw{}, false
			}
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

// tail is P(|S| > t), rounded up: the density's series integrated over [-t, t].
func (l sumLaw) tail(t float64) float64 {
	inside := t / l.reach
	step := t * math.Pi / l.reach
	for i, c := range l.coefficients {
		inside += 2 / math.Pi * c * math.Sin(float64(i+1)*step)
	}
	return 1 - inside + l.unresolved
}

// OneSided is the level at which a two-sided interval leaves 1-c on each side: its one end is then a bound at level c. c is
// more than 1/2.
func (c Confidence) OneSided() Confidence { return 2*c - 1 }
