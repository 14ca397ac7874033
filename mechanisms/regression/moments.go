package regression

import (
	"errors"
	"math"

	"gonum.org/v1/gonum/mat"
)

// Moments are noisy second moments of features z and a target t, in units where no row's z is longer than 1 and |t| is at most 1.
type Moments struct {
	// A is Σ zzᵀ, symmetric: the noise of a diagonal place has the standard deviation Sigma, that of another place Sigma/√2, but for those of
	// Fixed.
	A [][]float64
	// B is Σ t·z, with noise of the standard deviation Sigma.
	B []float64
	// Sigma is the noise's standard deviation; 0 for none.
	Sigma float64
	// Fixed are places of A, i < j, that are known to be 0, without noise.
	Fixed [][2]int
}

// Ridge chooses what is added to the diagonal of A.
type Ridge int

// The choices.
const (
	// Adaptive adds what the noise could take from the smallest eigenvalue, less what is seen of that: nothing where there are many rows.
	// Source: Wang 2018 (arXiv 1803.02596), Algorithm 2, with the smallest eigenvalue of the released matrix in place of a bought one.
	Adaptive Ridge = iota
	// Whole adds as much as the noise is large, whatever the eigenvalues are.
	Whole
)

// Solution are coefficients of z.
type Solution struct {
	Coefficients []float64
	// Ridge is what was added to the diagonal.
	Ridge float64
	// Weak says that the noise is not small compared with the moments: there are too few rows for it.
	Weak bool

	covariance *mat.SymDense // that the noise gives the coefficients, to first order; nil where it says nothing
}

// Deviation is the standard deviation that the noise gives a weighted sum of the coefficients, to first order. It is false where the noise
// is not small compared with the moments, so that it says nothing.
func (s Solution) Deviation(weights []float64) (float64, bool) {
	if s.covariance == nil || len(weights) != len(s.Coefficients) {
		return 0, false
	}
	w := mat.NewVecDense(len(weights), weights)
	return math.Sqrt(max(0, mat.Inner(w, s.covariance, w))), true
}

var errMoments = errors.New("regression: moments of another shape")

// relativeRank is below which part of the largest eigenvalue one counts as 0, where there is no noise: A is then a sum of whole numbers
// that was scaled by floats.
const relativeRank = 1e-12

// WeakBelow is how many times the largest eigenvalue of the noise the smallest one of the moments must be.
const WeakBelow = 3

// Solve gives (A + ridge)⁻¹·B; without noise the shortest solution of A·x = B.
func (m Moments) Solve(r Ridge) (Solution, error) {
	d := len(m.A)
	if d == 0 || len(m.B) != d || m.Sigma < 0 {
		return Solution{}, errMoments
	}
	a := mat.NewSymDense(d, nil)
	for i, row := range m.A {
		if len(row) != d {
			return Solution{}, errMoments
		}
		for j := i; j < d; j++ {
			a.SetSym(i, j, row[j])
		}
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(a, true) {
		return Solution{}, errMoments
	}
	values := eigen.Values(nil) // ascending
	var vectors mat.Dense
	eigen.VectorsTo(&vectors)
	// The largest eigenvalue of symmetric Gaussian noise with the variance s² off the diagonal is about 2s√d.
	noise := m.Sigma * math.Sqrt(2*float64(d))
	s := Solution{Weak: values[0] < WeakBelow*noise}
	switch {
	case m.Sigma == 0:
	case r == Whole:
		s.Ridge = noise
	default:
		s.Ridge = max(0, noise-values[0])
	}
	least := relativeRank * values[d-1]
	inverse := make([]float64, d)
	for i, v := range values {
		if v += s.Ridge; v > least {
			inverse[i] = 1 / v
		}
	}
	apply := func(x []float64) []float64 {
		out := make([]float64, d)
		for k := range d {
			along := 0.0
			for i := range d {
				along += vectors.At(i, k) * x[i]
			}
			along *= inverse[k]
			for i := range d {
				out[i] += along * vectors.At(i, k)
			}
		}
		return out
	}
	s.Coefficients = apply(m.B)
	if !s.Weak {
		s.covariance = m.covariance(s.Coefficients, apply)
	}
	return s, nil
}

// covariance is A⁻¹·C·A⁻¹, C being the covariance of e - E·x for the noise e of B and E of A: Σ² on the diagonal for e; for E·x, whose
// place i is Σⱼ Eᵢⱼxⱼ, the variances of its row's entries times their xⱼ², and between i and j the variance of their common entry times
// xᵢxⱼ.
func (m Moments) covariance(x []float64, solve func([]float64) []float64) *mat.SymDense {
	d := len(x)
	variance := func(i, j int) float64 {
		if i == j {
			return m.Sigma * m.Sigma
		}
		return m.Sigma * m.Sigma / 2
	}
	fixed := make(map[[2]int]bool)
	for _, f := range m.Fixed {
		fixed[f] = true
		fixed[[2]int{f[1], f[0]}] = true
	}
	c, inverse := mat.NewSymDense(d, nil), mat.NewDense(d, d, nil)
	for i := range d {
		own := m.Sigma * m.Sigma
		for j := range d {
			if fixed[[2]int{i, j}] {
				continue
			}
			own += variance(i, j) * x[j] * x[j]
			if i < j {
				c.SetSym(i, j, variance(i, j)*x[i]*x[j])
			}
		}
		c.SetSym(i, i, own)
		unit := make([]float64, d)
		unit[i] = 1
		inverse.SetRow(i, solve(unit))
	}
	var half, whole mat.Dense
	half.Mul(inverse, c)
	whole.Mul(&half, inverse)
	out := mat.NewSymDense(d, nil)
	for i := range d {
		for j := i; j < d; j++ {
			out.SetSym(i, j, (whole.At(i, j)+whole.At(j, i))/2)
		}
	}
	return out
}
