package mechanisms

import (
	"math"
	"math/big"
	"slices"

	"noisegate.example/internal/exact"
)

// Sums finds half-widths of many weighted sums of the same noises, in less time than [SumHalfWidth] of each. It is not safe for concurrent
// use.
type Sums struct {
	level  Confidence
	terms  []weightedTerm
	laws   []continuousLaw
	known  bool
	alone  []float64 // half-widths of each noise by itself
	boole  []float64 // half-widths that hold at once
	active []int
}

// NewSums prepares sums in which noise i stands times[i] times, each with the same weight. Level is in (0, 1).
func NewSums(noises []Additive, times []int, level Confidence) *Sums {
	s := &Sums{level: level}
	n := 0.0
	for i, noise := range noises {
		s.terms = append(s.terms, weightedTerm{noise: noise, times: float64(times[i])})
		n += float64(times[i])
	}
	width := func(noise Additive, level Confidence) float64 {
		return exact.Float(new(big.Rat).SetInt(noise.HalfWidth(level)))
	}
	for _, noise := range noises {
		s.alone = append(s.alone, width(noise, level))
		s.boole = append(s.boole, width(noise, Confidence(1-(1-float64(level))/n)))
	}
	s.laws, s.known = lawsOf(s.terms)
	return s
}

// Boole is a half-width by Boole's inequality: never less than that of [Sums.HalfWidth].
func (s *Sums) Boole(weights []float64) float64 {
	sum := 0.0
	for i, w := range weights {
		sum += s.terms[i].times * math.Abs(w) * s.boole[i]
	}
	return sum
}

// HalfWidth is a half-width of the sum with these weights at the level: that of [SumHalfWidth] on no grid, or a thousandth more.
//
// The tail of two Laplace noises and their uniform variables is known: with the scales a and b of weighted noises and the widths w of
// uniform variables, it is (a²·K(a)·e^(-t/a) - b²·K(b)·e^(-t/b))/(a² - b²) beyond half of the widths, where K(s) is the product of
// sinh(w/2s)/(w/2s). Of normal noises each uniform variable is replaced by a normal one of standard deviation w/√(2π), which is at least as
// often beyond any point, as its density is nowhere above 1/w; so is then the sum, since all are symmetric and unimodal (Birnbaum 1948).
func (s *Sums) HalfWidth(weights []float64) float64 {
	s.active = s.active[:0]
	for i, w := range weights {
		if s.terms[i].weight = math.Abs(w); w != 0 {
			s.active = append(s.active, i)
		}
	}
	hi, alpha := s.Boole(weights), 1-float64(s.level)
	switch {
	case len(s.active) == 0:
		return 0
	case len(s.active) == 1 && s.terms[s.active[0]].times == 1:
		return s.terms[s.active[0]].weight * s.alone[s.active[0]]
	case s.known && s.normal():
		return min(hi, s.normalWidth(alpha))
	case s.known && len(s.active) == 2:
		if w, ok := s.laplacePair(alpha, hi); ok {
			return w
		}
	}
	terms := make([]weightedTerm, len(s.active))
	for i, at := range s.active {
		terms[i] = s.terms[at]
	}
	return sumWidth(terms, alpha)
}

// smoothVariance is the least variance of a noise, in squared steps, at which its uniform part within a step does not matter.
const smoothVariance = 100

func (s *Sums) normal() bool {
	return !slices.ContainsFunc(s.active, func(i int) bool { return s.laws[i].variance < smoothVariance })
}

func (s *Sums) normalWidth(alpha float64) float64 {
	variance := 0.0
	for _, i := range s.active {
		t := s.terms[i]
		variance += t.times * t.weight * t.weight * (s.laws[i].variance + 1/(2*math.Pi))
	}
	return math.Sqrt2 * math.Erfcinv(alpha) * math.Sqrt(variance)
}

// laplacePair is the half-width of two Laplace noises; ok is false where there are others, or the tail is not known so near.
func (s *Sums) laplacePair(alpha, hi float64) (width float64, ok bool) {
	x, y := s.terms[s.active[0]], s.terms[s.active[1]]
	a, b := s.laws[s.active[0]].scale*x.weight, s.laws[s.active[1]].scale*y.weight
	if a < b {
		a, b = b, a
	}
	const apart = 1e-5
	switch {
	case x.times != 1 || y.times != 1 || b == 0:
		return 0, false
	case a-b < apart*a: // a wider one, so that the difference of squares is a number
		a = b * (1 + 2*apart)
	}
	smooth := func(scale float64) float64 { return logSinhc(x.weight/(2*scale)) + logSinhc(y.weight/(2*scale)) }
	over, ka, kb := a*a-b*b, smooth(a), smooth(b)
	tail := func(t float64) float64 { return (a*a*math.Exp(ka-t/a) - b*b*math.Exp(kb-t/b)) / over }
	if tail(hi) > alpha {
		return hi, true
	}
	width = reaches(tail, alpha, hi)
	return width, width >= (x.weight+y.weight)/2
}

// logSinhc is ln(sinh(x)/x) for x of at least 0.
func logSinhc(x float64) float64 {
	if x < 1e-4 {
		return x * x / 6
	}
	return x + math.Log(-math.Expm1(-2*x)/(2*x))
}
