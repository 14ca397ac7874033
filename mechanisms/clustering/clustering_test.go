package clustering

import (
	"math"
	"math/rand/v2"
	"testing"
)

// momentsOf are the moments of rows, with noise.
func momentsOf(r *rand.Rand, rows [][]float64, sigma float64) Moments {
	d := len(rows[0])
	m := Moments{Rows: float64(len(rows)) + sigma*r.NormFloat64(), Sums: make([]float64, d), Second: make([][]float64, d), Sigma: sigma}
	for i := range d {
		m.Second[i] = make([]float64, d)
	}
	for _, z := range rows {
		for i := range z {
			m.Sums[i] += z[i]
			for j := range z {
				m.Second[i][j] += z[i] * z[j]
			}
		}
	}
	for i := range d {
		m.Sums[i] += sigma * r.NormFloat64()
		m.Second[i][i] += sigma * r.NormFloat64()
		for j := range i {
			m.Second[i][j] += sigma / math.Sqrt2 * r.NormFloat64()
			m.Second[j][i] = m.Second[i][j]
		}
	}
	return m
}

// wideRows spread by 0.2 along (3, 4)/5 around (0.1, -0.1), and by 0.05 across.
func wideRows(r *rand.Rand) (rows [][]float64) {
	for range 20_000 {
		a, b := 0.2*r.NormFloat64(), 0.05*r.NormFloat64()
		rows = append(rows, []float64{0.1 + 0.6*a - 0.8*b, -0.1 + 0.8*a + 0.6*b})
	}
	return rows
}

// Directions, spreads and mean are those of the rows: without noise to a hundredth, with noise to a tenth.
func TestSpaceIsThatOfTheRows(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	rows := wideRows(r)
	for sigma, within := range map[float64]float64{0: 0.01, 5: 0.1} {
		s, err := momentsOf(r, rows, sigma).Space(2)
		if err != nil {
			t.Fatal(err)
		}
		along := math.Abs(0.6*s.Directions[0][0] + 0.8*s.Directions[0][1])
		for what, x := range map[string][2]float64{"the first direction": {along, 1}, "its spread": {s.Spread[0] / 0.2, 1},
			"the other spread": {s.Spread[1] / 0.05, 1}, "the mean": {s.Mean[0] * 10, 1}} {
			if math.Abs(x[0]-x[1]) > within {
				t.Errorf("noise %v: %s is %v, want %v", sigma, what, x[0], x[1])
			}
		}
		at := s.Point([]float64{1, 0})
		for i := range at {
			if want := s.Mean[i] + Reach*s.Spread[0]*s.Directions[0][i]; math.Abs(at[i]-want) > 1e-12 {
				t.Errorf("the point at the reach is %v, want %v", at[i], want)
			}
		}
	}
}

// Whatever noise has made of moments, a space has finite numbers in its range, and centres to begin with.
func TestSpaceOfNoiseAlone(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for try := range 40 {
		d := 1 + r.IntN(20)
		m := momentsOf(r, [][]float64{make([]float64, d)}, math.Pow(10, float64(try%8)))
		p := 1 + r.IntN(min(d, 16))
		s, err := m.Space(p)
		if err != nil {
			t.Fatal(err)
		}
		for j := range p {
			if w := s.Weights()[j]; !(s.Spread[j] >= leastSpread) || math.IsInf(s.Spread[j], 0) || !(w > 0 && w <= 1) {
				t.Errorf("spread %v, weight %v", s.Spread[j], w)
			}
		}
		for _, c := range s.Start(2 + r.IntN(5)) {
			for _, y := range append(c, s.Point(c)...) {
				if math.IsNaN(y) || math.IsInf(y, 0) {
					t.Errorf("a centre at %v", y)
				}
			}
		}
	}
	if _, err := (Moments{Sums: []float64{1}, Second: [][]float64{{1, 2}}}).Space(1); err == nil {
		t.Error("moments of another shape are taken")
	}
	if _, err := (Moments{Sums: []float64{1}, Second: [][]float64{{1}}}).Space(2); err == nil {
		t.Error("more directions than columns are taken")
	}
}

// Two centres of a normal distribution are ±√(2/π) standard deviations from its mean (to 3 % of one by 2,000 points), and they are where
// they were when asked again.
func TestStartIsSpreadOut(t *testing.T) {
	s := Space{Mean: []float64{0}, Directions: [][]float64{{1}}, Spread: []float64{0.1}}
	first, again := s.Start(2), s.Start(2)
	low, high := min(first[0][0], first[1][0]), max(first[0][0], first[1][0])
	want := math.Sqrt(2/math.Pi) / Reach
	if math.Abs(high-want) > 0.03/Reach || math.Abs(low+want) > 0.03/Reach {
		t.Errorf("centres at %v, want ±%v", first, want)
	}
	if first[0][0] != again[0][0] || first[1][0] != again[1][0] {
		t.Errorf("%v, and then %v", first, again)
	}
}

// A step moves a centre to the mean of its rows, within the range; one of few rows stays.
func TestLloydStep(t *testing.T) {
	l := Lloyd{Centres: [][]float64{{0.5}, {-0.5}, {0.1}}, Sigma: 3}
	l.Step([]float64{10, 2, 4}, [][]float64{{2}, {-2}, {100}})
	for i, want := range []float64{0.2, -0.5, 1} {
		if l.Centres[i][0] != want {
			t.Errorf("centre %d is at %v, want %v", i, l.Centres[i][0], want)
		}
	}
	if n := Rows(15, 4, 3); math.Abs(Noise(15, n, 4, 3)-WeakAbove) > 1e-12 {
		t.Errorf("of %v rows the noise is %v", n, Noise(15, n, 4, 3))
	}
}

// Without noise a score is that of the definition; with noise its interval holds the truth; where the noise is large there is none.
func TestScoresOfGroups(t *testing.T) {
	// Rows ±0.1 around 0.5 and around -0.5, 1,000 each: between 500, within 20, of 2,000 rows.
	g := Groups{Sizes: []float64{1000, 1000}, Sums: [][]float64{{500}, {-500}}, Squares: 520}
	want := 500 / (20 / 1998.0)
	score, ok := g.CalinskiHarabasz(0.95)
	if !ok || math.Abs(score.Value/want-1) > 1e-12 || score.Interval != [2]float64{score.Value, score.Value} {
		t.Errorf("%+v %v, want %v", score, ok, want)
	}
	g.Sigma = 1
	if score, ok = g.CalinskiHarabasz(0.95); !ok || score.Interval[0] > want || score.Interval[1] < want ||
		score.Interval[1] > 1.5*score.Interval[0] {
		t.Errorf("%+v %v, want %v", score, ok, want)
	}
	for name, g := range map[string]Groups{
		"a spread in the noise":  {Sizes: g.Sizes, Sums: g.Sums, Squares: 520, Sigma: 10},
		"a group in the noise":   {Sizes: []float64{1000, 2}, Sums: g.Sums, Squares: 520, Sigma: 3},
		"an empty group":         {Sizes: []float64{1000, 0}, Sums: g.Sums, Squares: 520},
		"no spread within":       {Sizes: g.Sizes, Sums: g.Sums, Squares: 500},
		"as many groups as rows": {Sizes: []float64{1, 1}, Sums: [][]float64{{1}, {-1}}, Squares: 3},
	} {
		if score, ok := g.CalinskiHarabasz(0.95); ok {
			t.Errorf("%s: %+v", name, score)
		}
	}
}

// A silhouette is 1 - a/b, its interval has the errors of both sums, and there is none of rows in the noise.
func TestSilhouettes(t *testing.T) {
	got, ok := Silhouette(1000, 6, -200, 8, 0.6826894921370859) // one standard deviation
	reach := math.Hypot(8, 0.2*6) / 2000
	if !ok || math.Abs(got.Value-0.6) > 1e-12 || math.Abs(got.Interval[0]-0.6+reach) > 1e-9 || math.Abs(got.Interval[1]-0.6-reach) > 1e-9 {
		t.Errorf("%+v %v", got, ok)
	}
	if got, _ = Silhouette(100, 1, -150, 50, 0.95); got.Value != 1 || got.Interval[1] != 1 {
		t.Errorf("%+v", got)
	}
	for _, rows := range []float64{29, -4} {
		if got, ok := Silhouette(rows, 6, 0, 6, 0.95); ok {
			t.Errorf("of %v rows: %+v", rows, got)
		}
	}
}

// The draws of a simulation have the mean, the variance and the tails of a normal distribution; they are the same in each run.
func TestNormals(t *testing.T) {
	const n = 200_000
	source, sum, square, beyond := new(normals), 0.0, 0.0, 0.0
	for range n {
		x := source.draw()
		sum, square = sum+x, square+x*x
		if math.Abs(x) > 2 {
			beyond++
		}
	}
	if math.Abs(sum/n) > 0.01 || math.Abs(square/n-1) > 0.02 || math.Abs(beyond/n-math.Erfc(math.Sqrt2)) > 0.003 {
		t.Errorf("mean %v, variance %v, %v beyond 2", sum/n, square/n, beyond/n)
	}
}
