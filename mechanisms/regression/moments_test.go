package regression

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// world is made-up moments of n rows in d features, the first of them 1, and the coefficients that made the target.
func world(r *rand.Rand, n, d int) (m Moments, want []float64) {
	want = make([]float64, d)
	for i := range want {
		want[i] = r.Float64() - 0.5
	}
	m = Moments{A: make([][]float64, d), B: make([]float64, d)}
	for i := range m.A {
		m.A[i] = make([]float64, d)
	}
	for range n {
		z, t := make([]float64, d), 0.0
		for i := range z {
			if z[i] = (2*r.Float64() - 1) / math.Sqrt(float64(d)); i == 0 {
				z[i] = 1 / math.Sqrt(float64(d))
			}
			t += want[i] * z[i]
		}
		for i := range z {
			m.B[i] += t * z[i]
			for j := range z {
				m.A[i][j] += z[i] * z[j]
			}
		}
	}
	return m, want
}

// noisy adds the noise that the moments say they have.
func noisy(r *rand.Rand, m Moments) Moments {
	d := len(m.A)
	out := Moments{A: make([][]float64, d), B: make([]float64, d), Sigma: m.Sigma, Fixed: m.Fixed}
	for i := range d {
		out.A[i] = make([]float64, d)
	}
	for i := range d {
		out.B[i] = m.B[i] + m.Sigma*r.NormFloat64()
		for j := i; j < d; j++ {
			s := m.Sigma
			if i < j {
				s /= math.Sqrt2
			}
			out.A[i][j] = m.A[i][j] + s*r.NormFloat64()
			out.A[j][i] = out.A[i][j]
		}
	}
	return out
}

func TestSolveWithoutNoiseIsExact(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		m, want := world(r, 500, 1+r.IntN(8))
		s, err := m.Solve(Adaptive)
		if err != nil {
			t.Fatal(err)
		}
		if s.Ridge != 0 || s.Weak {
			t.Fatalf("%+v", s)
		}
		for i, c := range s.Coefficients {
			if math.Abs(c-want[i]) > 1e-9 {
				t.Errorf("coefficient %d is %v, want %v", i, c, want[i])
			}
		}
	}
	// A column that is the sum of two others leaves the coefficients open: the shortest are taken, and predict the same.
	m := Moments{A: [][]float64{{1, 0, 1}, {0, 1, 1}, {1, 1, 2}}, B: []float64{1, 2, 3}}
	s, err := m.Solve(Adaptive)
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range m.A {
		if got := row[0]*s.Coefficients[0] + row[1]*s.Coefficients[1] + row[2]*s.Coefficients[2]; math.Abs(got-m.B[i]) > 1e-9 {
			t.Errorf("place %d is %v, want %v", i, got, m.B[i])
		}
	}
}

// The deviation of a coefficient is that of many noisy fits, to 10 % of it: with 2,000 of them the standard error is 1.6 %.
func TestDeviationIsThatOfNoisyFits(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	m, _ := world(r, 20_000, 5)
	m.Sigma = 5
	exact := m
	exact.Sigma = 0
	truth, err := exact.Solve(Adaptive)
	if err != nil {
		t.Fatal(err)
	}
	first, err := m.Solve(Adaptive)
	if err != nil {
		t.Fatal(err)
	}
	weights := []float64{1, -2, 0.5, 0, 3}
	value := func(s Solution) (sum float64) {
		for i, c := range s.Coefficients {
			sum += weights[i] * c
		}
		return sum
	}
	want, ok := first.Deviation(weights)
	if !ok {
		t.Fatal("no deviation")
	}
	const fits = 2000
	squares := 0.0
	for range fits {
		s, err := noisy(r, m).Solve(Adaptive)
		if err != nil {
			t.Fatal(err)
		}
		off := value(s) - value(truth)
		squares += off * off / fits
	}
	if got := math.Sqrt(squares); math.Abs(got-want) > 0.1*want {
		t.Errorf("the deviation of noisy fits is %v, said to be %v", got, want)
	}
	if _, ok := first.Deviation(weights[:2]); ok {
		t.Error("a deviation of other coefficients")
	}
}

// Where the noise is as large as the moments, coefficients stay finite, and nothing is said of their deviation.
func TestSolveOfNoiseAlone(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		m, _ := world(r, 10, 6)
		m.Sigma = 50
		for _, ridge := range []Ridge{Adaptive, Whole} {
			s, err := noisy(r, m).Solve(ridge)
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := s.Deviation(make([]float64, 6)); ok || !s.Weak {
				t.Errorf("%v: not weak", ridge)
			}
			for _, c := range s.Coefficients {
				if math.IsNaN(c) || math.IsInf(c, 0) {
					t.Fatalf("%v: %v", ridge, s.Coefficients)
				}
			}
		}
	}
}

// The largest eigenvalue of the noise is about what the ridge is made of: of 300 draws for 20 features at most one in ten is above it by a
// tenth.
func TestNoiseIsAsLargeAsTheRidge(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	const d = 20
	above := 0
	for range 300 {
		zero := Moments{A: make([][]float64, d), B: make([]float64, d), Sigma: 1}
		for i := range zero.A {
			zero.A[i] = make([]float64, d)
		}
		drawn := noisy(r, zero)
		a := mat.NewSymDense(d, nil)
		for i := range d {
			for j := i; j < d; j++ {
				a.SetSym(i, j, drawn.A[i][j])
			}
		}
		var eigen mat.EigenSym
		eigen.Factorize(a, false)
		if values := eigen.Values(nil); values[d-1] > 1.1*math.Sqrt(2*d) {
			above++
		}
	}
	if above > 30 {
		t.Errorf("the noise is larger in %d of 300 draws", above)
	}
}

func TestSolveRefusesOtherShapes(t *testing.T) {
	for name, m := range map[string]Moments{
		"nothing":     {},
		"no target":   {A: [][]float64{{1}}},
		"a short row": {A: [][]float64{{1, 0}, {0}}, B: []float64{1, 1}},
		"no variance": {A: [][]float64{{1}}, B: []float64{1}, Sigma: -1},
	} {
		if _, err := m.Solve(Adaptive); err == nil {
			t.Errorf("%s is solved", name)
		}
	}
}
