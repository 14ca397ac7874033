package accounting

import "math"

// lossGrid is a law of privacy losses on multiples of h that dominates the true one: wherever the true law puts mass, the grid's
// δ(ε) is at least as large, at every ε.
//
// The mass of losses in (h·i, h·(i+1)] goes to the two ends such that both laws keep their total: P's mass p, and Q's mass, the
// expectation of e^-L. As a function of e^ε, δ is convex, and the grid's δ joins its values at the multiples of h by
// straight lines: it lies above (Doroshenko, Ghazi, Kamath, Kumar, Manurangsi 2022, arXiv 2207.04380, "Connect the Dots").
type lossGrid struct {
	h        float64
	lo       int       // mass[k] belongs to the loss h·(lo+k)
	mass     []float64 // P's
	infinite float64   // P's mass of losses above the grid
	drift    float64   // bounds rounding: of a mass relatively, of a loss absolutely
}

// newLossGrid makes an empty grid that covers [lo, hi].
func newLossGrid(h, lo, hi float64) *lossGrid {
	first := math.Floor(lo / h)
	return &lossGrid{h: h, lo: int(first), mass: make([]float64, int(math.Floor(hi/h)-first)+2),
		drift: 64 * unitRoundoff * (1 + math.Max(math.Abs(lo), math.Abs(hi)))}
}

// buckets is the number of intervals between neighbouring multiples of h.
func (g *lossGrid) buckets() int { return len(g.mass) - 1 }

// at is the loss at the lower end of bucket i.
func (g *lossGrid) at(i int) float64 { return g.h * float64(g.lo+i) }

// add puts mass on the lower end of bucket i.
func (g *lossGrid) add(i int, p float64) { g.mass[i] += p }

// split puts P's mass p of losses in bucket i on its two ends, given s = E[e^(at(i)-L)] over it.
func (g *lossGrid) split(i int, p, s float64) {
	upper := min(p, max(0, (p-s)/-math.Expm1(-g.h)))
	g.mass[i] += p - upper
	g.mass[i+1] += upper
}

// atom puts P's mass p of one loss on the grid.
func (g *lossGrid) atom(loss, p float64) {
	i := min(g.buckets()-1, max(0, int(math.Floor(loss/g.h))-g.lo))
	upper := min(1, max(0, math.Expm1(g.at(i)-loss)/math.Expm1(-g.h)))
	g.mass[i] += p * (1 - upper)
	g.mass[i+1] += p * upper
}

// scale makes the law conditional on an event of probability f.
func (g *lossGrid) scale(f float64) {
	for i := range g.mass {
		g.mass[i] *= f
	}
	g.infinite *= f
}
