package mechanisms

import (
	"errors"
	"math"
	"math/big"
	"testing"

	"noisegate.example/internal/exact"
)

// The noise of each coordinate has the variance that its scale and the price say, and ρ is that of the whole vector.
func TestJointGaussianIsOneReleaseOfItsVector(t *testing.T) {
	scales := []*big.Rat{big.NewRat(1, 1), big.NewRat(1, 2), big.NewRat(900, 7)}
	const rho = RhoUnit / 100
	m, err := NewJointGaussian(JointGaussianParameters{Scales: scales, L2Squared: big.NewRat(18, 1), Rho: rho})
	if err != nil {
		t.Fatal(err)
	}
	if m.Loss() != (Loss{Unbounded: true, Rho: rho}) {
		t.Errorf("%+v", m.Loss())
	}
	// A vector whose squared moves over its scales add up to 18 costs Σ d²/2σ²: exactly the price.
	cost := new(big.Rat)
	for i, d := range []*big.Rat{big.NewRat(9, 1), big.NewRat(3, 1), big.NewRat(900*3, 7)} { // d²: 9, 6 and 3 of a scale
		g := m.each[i]
		cost.Add(cost, new(big.Rat).Quo(d, new(big.Rat).Add(g.variance, g.variance)))
	}
	if want := big.NewRat(int64(rho), int64(RhoUnit)); cost.Cmp(want) != 0 {
		t.Errorf("costs %s, want %s", cost, want)
	}
	if p := m.Parameters(); p.Mechanism != DiscreteGaussian || p.Sensitivity != "sqrt(18)" || p.Variance != "900" {
		t.Errorf("%+v", p)
	}
	for i, s := range scales {
		if got, want := m.Deviation(i), 30*math.Sqrt(exact.Float(s)); math.Abs(got-want) > 1e-9*want {
			t.Errorf("deviation %d is %v, want %v", i, got, want)
		}
	}
	// Draws are those of Gaussian noise of that variance: the mean square of 20,000 is within 10 standard errors of it (a false alarm is far
	// below 1e-9).
	const draws = 20_000
	s := fixedSampler(t)
	squares := make([]float64, len(scales))
	for range draws {
		for i, n := range m.Draw(s) {
			x := exact.Float(new(big.Rat).SetInt(n.Release(Exact{})))
			squares[i] += x * x / draws
		}
	}
	for i := range scales {
		want := m.Deviation(i) * m.Deviation(i)
		if math.Abs(squares[i]-want) > 10*want*math.Sqrt(2.0/draws) {
			t.Errorf("variance %d is %v, want %v", i, squares[i], want)
		}
	}
}

func TestJointGaussianRefusesWhatIsNoVector(t *testing.T) {
	one := []*big.Rat{big.NewRat(1, 1)}
	for name, c := range map[string]struct {
		p    JointGaussianParameters
		want error
	}{
		"no coordinates": {JointGaussianParameters{L2Squared: one[0], Rho: 1}, errScales},
		"no scale":       {JointGaussianParameters{Scales: []*big.Rat{nil}, L2Squared: one[0], Rho: 1}, errScales},
		"a scale of 0":   {JointGaussianParameters{Scales: []*big.Rat{new(big.Rat)}, L2Squared: one[0], Rho: 1}, errScales},
		"no sensitivity": {JointGaussianParameters{Scales: one, Rho: 1}, errSensitivity},
		"sensitivity 0":  {JointGaussianParameters{Scales: one, L2Squared: new(big.Rat), Rho: 1}, errSensitivity},
		"no price":       {JointGaussianParameters{Scales: one, L2Squared: one[0]}, errPrice},
	} {
		if _, err := NewJointGaussian(c.p); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}
