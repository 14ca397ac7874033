package clustering

import (
	"math"
	"slices"
)

// Groups are noisy sums over rows z, none longer than 1, by the centre that each is closest to.
type Groups struct {
	Sizes   []float64
	Sums    [][]float64 // by centre: Σ z
	Squares float64     // Σ |z|² over all rows
	Sigma   float64     // the standard deviation of the noise of each number; 0 for none
}

// Score is a score of a grouping and its interval for the noise alone.
type Score struct {
	Value    float64
	Interval [2]float64
}

// UnresolvedAbove is up to which part of a spread its noise is small enough for a score.
const UnresolvedAbove = 0.2

// scoreDraws is the number of draws for an interval: its level is right to 0.5 %.
const scoreDraws = 2000

// MostConfidence is up to which level the draws make an interval: ten of them are beyond each of its ends.
const MostConfidence = 0.99

// CalinskiHarabasz is the spread between groups over that within them, each over its degrees of freedom, with an interval at a confidence
// in (0, MostConfidence]; false where the noise of a spread is over UnresolvedAbove of it, or that of a size is as large as the size. The
// square of the noise is taken off squares of sums. The interval is by simulation: the noise, whose law is known, is drawn anew around the
// released numbers, and what this does to the score is what the noise is taken to have done. Source: Calinski and Harabasz 1974; Efron and
// Tibshirani 1993, chapter 13.
func (g Groups) CalinskiHarabasz(confidence float64) (Score, bool) {
	between, within, ok := g.spreads(g.Sigma * g.Sigma)
	score := g.score(between, within)
	if !ok || !(between > 0 && within > 0 && score > 0) || math.IsInf(score, 1) {
		return Score{}, false
	}
	if g.Sigma == 0 {
		return Score{score, [2]float64{score, score}}, true
	}
	rawBetween, rawWithin, _ := g.spreads(0)
	raw := g.score(rawBetween, rawWithin)
	source := new(normals)
	var ratios []float64
	var squares [2]float64 // of the spreads' errors
	for range scoreDraws {
		b, w, ok := g.again(source).spreads(g.Sigma * g.Sigma)
		if !ok {
			return Score{}, false
		}
		squares[0] += (b - rawBetween) * (b - rawBetween)
		squares[1] += (w - rawWithin) * (w - rawWithin)
		ratios = append(ratios, g.score(b, w)/raw)
	}
	if math.Sqrt(squares[0]/scoreDraws) > UnresolvedAbove*between || math.Sqrt(squares[1]/scoreDraws) > UnresolvedAbove*within {
		return Score{}, false
	}
	slices.Sort(ratios)
	tail := int((1 - confidence) / 2 * scoreDraws)
	low, high := ratios[tail], ratios[scoreDraws-1-tail]
	if !(low > 0) {
		return Score{}, false
	}
	return Score{score, [2]float64{score / high, score / low}}, true
}

// spreads are those between groups and within them; square is that of the noise, which is taken off squares of sums. It is false where a
// group has no rows.
func (g Groups) spreads(square float64) (between, within float64, ok bool) {
	d := float64(len(g.Sums[0]))
	total, rows := make([]float64, len(g.Sums[0])), 0.0
	for i, n := range g.Sizes {
		if !(n > g.Sigma) {
			return 0, 0, false
		}
		rows += n
		length := 0.0
		for j, s := range g.Sums[i] {
			length += s * s
			total[j] += s
		}
		between += (length - d*square) / n
	}
	within = g.Squares - between
	length := 0.0
	for _, s := range total {
		length += s * s
	}
	return between - (length-float64(len(g.Sizes))*d*square)/rows, within, true
}

// score is Calinski-Harabasz of spreads.
func (g Groups) score(between, within float64) float64 {
	rows := 0.0
	for _, n := range g.Sizes {
		rows += n
	}
	groups := float64(len(g.Sizes))
	return between / (groups - 1) / (within / (rows - groups))
}

// again are the groups with noise drawn anew.
func (g Groups) again(source *normals) Groups {
	next := Groups{Squares: g.Squares + g.Sigma*source.draw(), Sigma: g.Sigma}
	for i, n := range g.Sizes {
		next.Sizes = append(next.Sizes, n+g.Sigma*source.draw())
		sums := slices.Clone(g.Sums[i])
		for j := range sums {
			sums[j] += g.Sigma * source.draw()
		}
		next.Sums = append(next.Sums, sums)
	}
	return next
}

// Silhouette is 1/2 - excess/2rows. This is the mean simplified silhouette 1 - a/b of so many rows, with noise of the standard deviation
// rowsSigma; excess is their sum of 2a/b - 1, with noise of sigma. The interval is by the propagation of both; false where the noise of
// rows is over UnresolvedAbove of them.
func Silhouette(rows, rowsSigma, excess, sigma, confidence float64) (Score, bool) {
	if !(rows > 0) || rowsSigma > UnresolvedAbove*rows {
		return Score{}, false
	}
	mean := max(-1, min(1, excess/rows))
	reach := math.Sqrt2 * math.Erfinv(confidence) * math.Hypot(sigma, mean*rowsSigma) / 2 / rows
	value := (1 - mean) / 2
	return Score{value, [2]float64{max(0, value-reach), min(1, value+reach)}}, true
}

// normals are numbers that spread like those of a normal distribution, the same in each run: of a counter (Steele, Lea, Flood 2014,
// SplitMix64). They are independent of all noise, and no noise is made of them.
type normals struct{ counter uint64 }

func (s *normals) draw() float64 {
	s.counter += 0x9E3779B97F4A7C15
	z := s.counter
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	z ^= z >> 31
	return math.Sqrt2 * math.Erfinv((float64(z>>11)+0.5)/(1<<52)-1)
}
