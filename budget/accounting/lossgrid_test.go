package accounting

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// deltaOf sums δ(ε) over a list of losses and their probabilities.
func deltaOf(losses map[float64]float64, eps float64) float64 {
	sum := 0.0
	for loss, p := range losses {
		sum += p * max(0, -math.Expm1(eps-loss))
	}
	return sum
}

// noiseLosses is the law of the loss of integer noise with a given weight function, under shifts of its coordinates, by enumeration.
func noiseLosses(weight func(x float64) float64, far int, shifts ...int) map[float64]float64 {
	total := 0.0
	for x := -far; x <= far; x++ {
		total += weight(float64(x))
	}
	law := map[float64]float64{0: 1}
	for _, d := range shifts {
		next := map[float64]float64{}
		for x := -far; x <= far; x++ {
			p := weight(float64(x)) / total
			loss := math.Log(weight(float64(x)) / weight(float64(x-d)))
			for before, q := range law {
				next[math.Round((before+loss)*1e12)/1e12] += p * q
			}
		}
		law = next
	}
	return law
}

// The claim of DiscreteLaplaceEvent: spreading the sensitivity over coordinates never costs more than all of it in one.
func TestOneCoordinateIsTheWorstOfLaplace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.Float64Range(0.05, 1.5).Draw(t, "a")
		shifts := rapid.SliceOfN(rapid.IntRange(1, 4), 2, 3).Draw(t, "shifts")
		sum := 0
		for _, d := range shifts {
			sum += d
		}
		weight := func(x float64) float64 { return math.Exp(-a * math.Abs(x)) }
		far := int(36/a) + 10
		spread, whole := noiseLosses(weight, far, shifts...), noiseLosses(weight, far, sum)
		for i := range 21 {
			eps := a * float64(sum) * float64(i-10) / 10
			if s, w := deltaOf(spread, eps), deltaOf(whole, eps); s > w+1e-12 {
				t.Fatalf("δ(%g) is %g spread over %v, %g in one", eps, s, shifts, w)
			}
		}
	})
}

// The grid's δ(ε) is never below the true one, and near it.
func TestGridsDominate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shift := rapid.IntRange(1, 6).Draw(t, "shift")
		scale := rapid.Float64Range(1, 30).Draw(t, "scale")
		var m model = discreteLaplaceModel{float64(shift), 1 / scale}
		weight, far := func(x float64) float64 { return math.Exp(-math.Abs(x) / scale) }, int(36*scale)+10
		if rapid.Bool().Draw(t, "gaussian") {
			m = discreteGaussianModel{float64(shift), scale * scale}
			weight, far = func(x float64) float64 { return math.Exp(-x * x / (2 * scale * scale)) }, int(12*scale)+10
		}
		h := rapid.Float64Range(1e-4, 0.05).Draw(t, "h")
		g, law := m.discretise(h), noiseLosses(weight, far, shift)
		mass := g.infinite
		grid := map[float64]float64{}
		for k, p := range g.mass {
			if p < 0 {
				t.Fatalf("mass %g", p)
			}
			mass += p
			grid[g.at(k)] += p
		}
		if math.Abs(mass-1) > 1e-9 {
			t.Fatalf("the masses sum to %.17g", mass)
		}
		for range 10 {
			eps := rapid.Float64Range(-1, 1).Draw(t, "eps")
			got, want := deltaOf(grid, eps)+g.infinite, deltaOf(law, eps)
			// A chord over a kink of slope 1 is at most h/4 too high, where a single loss has all the mass.
			if got < want-1e-12 || got > want+h/4*math.Exp(h) {
				t.Fatalf("δ(%g) = %.12g on a grid of %g, exactly %.12g", eps, got, h, want)
			}
		}
	})
}

// Laws with many losses are put on the grid by sums and integrals: the results are those of the lists, and never below.
func TestLongLawsMatchTheirLists(t *testing.T) {
	t.Run("laplace", func(t *testing.T) {
		const h = 1e-3
		// d shifts at rate a/d tend to continuous noise at ε = a, from above.
		long := discreteLaplaceModel{2*listed + 1, 1.0 / (2*listed + 1)}.discretise(h)
		continuous := laplaceModel{1}.discretise(h)
		compareGrids(t, long, continuous, 1e-4)
	})
	t.Run("gaussian", func(t *testing.T) {
		for _, shift := range []float64{1, 500, 6000} {
			sigma := float64(listed + 1)
			h := shift / sigma / 100
			m := discreteGaussianModel{shift, sigma * sigma}
			long := m.discretise(h)
			list := newLossGrid(h, m.lossAt(m.far()), m.lossAt(-m.far()))
			list.infinite = long.infinite
			m.list(list, m.far())
			// The bound of the midpoint rule, (z+1)²/24σ², moves a loss by some 10⁻⁸.
			compareGrids(t, long, list, 3e-3)
		}
	})
}

// compareGrids holds δ(ε) of one grid against another's: not below, and above by at most the given part.
func compareGrids(t *testing.T, got, want *lossGrid, slack float64) {
	t.Helper()
	delta := func(g *lossGrid, eps float64) float64 {
		sum := g.infinite
		for k, p := range g.mass {
			sum += p * max(0, -math.Expm1(eps-g.at(k)))
		}
		return sum
	}
	for _, z := range []float64{-1, 0, 0.01, 0.3, 0.5, 0.9, 2, 4} {
		eps := z * got.h * 100
		if g, w := delta(got, eps), delta(want, eps); g < w*(1-1e-12)-1e-24 || g > w*(1+slack)+1e-24 {
			t.Errorf("δ(%g) = %.15g, want %.15g", eps, g, w)
		}
	}
}

// The transform against plain convolution of exact laws, with and without tilting far into the tail.
func TestPLDAgainstPlainConvolution(t *testing.T) {
	e, err := randomizedResponseEvent(big.NewRat(1, 2), 3)
	if err != nil {
		t.Fatal(err)
	}
	pure := event(t, PureEvent, big.NewRat(3, 10))
	exact := map[float64]float64{0: 1}
	convolve := func(m map[float64]float64) {
		next := map[float64]float64{}
		for a, p := range exact {
			for b, q := range m {
				next[math.Round((a+b)*1e12)/1e12] += p * q
			}
		}
		exact = next
	}
	r := e.model.(responseModel)
	for range 12 {
		convolve(map[float64]float64{r.epsilon(): r.truth, 0: r.other, -r.epsilon(): r.other})
	}
	for range 20 {
		convolve(map[float64]float64{0.3: 1 / (1 + math.Exp(-0.3)), -0.3: 1 / (1 + math.Exp(0.3))})
	}
	p := newPLD(t, Repeated{e, 12}, Repeated{pure, 20})
	for _, eps := range []float64{0, 1, 3, 6, 10, 14, 18, 20, 22} {
		above(t, "delta", p.delta(eps), deltaOf(exact, eps), max(pldDeltaSlack, 1e-25/deltaOf(exact, eps)))
	}
}

func TestEventsRefuse(t *testing.T) {
	for name, make := range map[string]func(*big.Rat) (Event, error){"pure": PureEvent, "range": RangeEvent, "laplace": continuousLaplaceEvent,
		"gaussian": continuousGaussianEvent, "zcdp": ZCDPEvent} {
		for _, x := range []*big.Rat{nil, new(big.Rat), big.NewRat(-1, 1), rational(t, "1e30"), rational(t, "1e-30")} {
			if e, err := make(x); err == nil {
				t.Errorf("%s accepts %v: %v", name, x, e)
			}
		}
	}
	if _, err := NewPLD(nil); err == nil {
		t.Error("an empty list has a law")
	}
	if _, err := NewPLD([]Repeated{{event(t, PureEvent, big.NewRat(1, 1)), 0}}); err == nil {
		t.Error("nothing has a law")
	}
	// Noise so small that its losses would need terabytes of grid: Rényi accounting answers alone.
	tiny, err := DiscreteGaussianEvent(big.NewInt(1), rational(t, "1e-12"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewPLD([]Repeated{{tiny, 1}}); err == nil {
		t.Error("a grid without bounds")
	}
}
