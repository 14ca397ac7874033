package clustering

import (
	"errors"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// Moments are noisy moments of rows z, none longer than 1.
type Moments struct {
	// Rows are how many there are, Sums is Σ z, Second is Σ zzᵀ, symmetric: of noise with the standard deviation Sigma, that of another
	// place of Second than the diagonal Sigma/√2.
	Rows   float64
	Sums   []float64
	Second [][]float64
	// Sigma is the noise's standard deviation; 0 for none.
	Sigma float64
}

// Space are the directions in which rows spread most. A row's coordinates are its projections less those of the mean, each divided by
// Reach.
type Space struct {
	Mean       []float64
	Directions [][]float64 // of length 1, orthogonal, the widest first
	Spread     []float64   // the standard deviation along each, as far as the noise lets it be known
}

// Reach is how many standard deviations coordinates go from the mean, beyond which rows are moved to it; measured on the data of
// docs/cluster.md, together with the share of the moments.
const Reach = 2

// leastSpread is that of a direction, of rows of length 1.
const leastSpread = 1.0 / 1024

var errMoments = errors.New("clustering: moments of another shape")

// Space finds the directions. Eigenvalues that are large compared with the noise are shrunk by what the noise adds to them (Benaych-Georges
// and Nadakuditi 2011, arXiv 0910.2120, Theorem 2.1 with the semicircle law: an eigenvalue θ shows at θ + s²d/θ where θ > s√d, for noise of
// the standard deviation s off the diagonal); of others no more is known than that they are at most s√d.
func (m Moments) Space(directions int) (Space, error) {
	d := len(m.Sums)
	if directions < 1 || directions > d || len(m.Second) != d || m.Sigma < 0 {
		return Space{}, errMoments
	}
	rows := max(1, m.Rows)
	s := Space{Mean: make([]float64, d)}
	for i, sum := range m.Sums {
		s.Mean[i] = max(-1, min(1, sum/rows))
	}
	c := mat.NewSymDense(d, nil)
	total := 0.0
	for i, row := range m.Second {
		if len(row) != d {
			return Space{}, errMoments
		}
		for j := i; j < d; j++ {
			c.SetSym(i, j, row[j]/rows-s.Mean[i]*s.Mean[j])
		}
		total += c.At(i, i)
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(c, true) {
		return Space{}, errMoments
	}
	values := eigen.Values(nil) // ascending
	var vectors mat.Dense
	eigen.VectorsTo(&vectors)
	edge := m.Sigma / math.Sqrt2 / rows * math.Sqrt(float64(d))
	shrunk, all := make([]float64, directions), 0.0
	total = max(total, leastSpread*leastSpread)
	for j := range directions {
		at := d - 1 - j
		shrunk[j] = edge
		if v := values[at]; v > 2*edge {
			shrunk[j] = (v + math.Sqrt(v*v-4*edge*edge)) / 2
		}
		shrunk[j] = min(shrunk[j], total)
		all += shrunk[j]
		s.Directions = append(s.Directions, mat.Col(nil, at, &vectors))
	}
	for _, v := range shrunk {
		if all > total { // the trace is known better than its parts are
			v *= total / all
		}
		s.Spread = append(s.Spread, max(leastSpread, math.Sqrt(v)))
	}
	return s, nil
}

// Point is a row at coordinates.
func (s Space) Point(coordinates []float64) []float64 {
	point := slices.Clone(s.Mean)
	for j, y := range coordinates {
		for i, v := range s.Directions[j] {
			point[i] += y * Reach * s.Spread[j] * v
		}
	}
	return point
}

// Weights are what squared coordinates count in distances: 1 for the widest direction.
func (s Space) Weights() []float64 {
	widest := slices.Max(s.Spread)
	weights := make([]float64, len(s.Spread))
	for j, w := range s.Spread {
		weights[j] = w / widest * (w / widest)
	}
	return weights
}
