package pate

import "math"

// This file bounds how much the data-dependent cost of GNMax and of the threshold check can change from one table to a neighbour, near and
// far from the analysed table: the local sensitivity at each distance (2018 paper, Appendix B, Algorithms 3 to 5). It works with ln q
// throughout, so that unanimous ensembles, whose q is far below the smallest float64, are no special case.

// gnmaxSensitivity has what depends on public parameters only.
type gnmaxSensitivity struct {
	sigma, order float64
	classes      int
	logq0        float64 // above, the data-independent bound is taken
	logq1        float64 // logq0, one vote less: between the two the sensitivity is that at logq1
	level        float64 // above, all neighbours cost the same: the data-independent bound
	plateau      float64 // the sensitivity at logq1, the largest there is (condition C6)
}

// newGNMaxSensitivity prepares the bounds for σ (already divided by the teachers per person), order > 1 and at least 2 classes.
func newGNMaxSensitivity(sigma, order float64, classes int) gnmaxSensitivity {
	s := gnmaxSensitivity{sigma: sigma, order: order, classes: classes}
	s.logq0 = s.crossing()
	lower, upper := s.neighbours(s.logq0)
	s.logq1, s.level = lower, upper+1e-9
	// From logq1 the farthest neighbour is at logq0 itself, where the data-independent bound begins, which may lie well above what bound
	// comes to just below: a rounding error must not choose between the two.
	here := s.bound(s.logq1)
	lower, _ = s.neighbours(s.logq1)
	s.plateau = max(order/square(sigma)-here, here-s.cost(lower))
	return s
}

// bound is β of the paper for ln q <= logq0: Theorem 6 without its preconditions, which hold there.
func (s gnmaxSensitivity) bound(logq float64) float64 {
	variance := s.sigma * s.sigma
	mu2 := s.sigma * math.Sqrt(-logq)
	mu1 := mu2 + 1
	log1q := log1mexp(logq)
	logA := log1q - log1mexp((logq+mu2/variance)*(1-1/mu2))
	logB := mu1/variance - logq/(mu1-1)
	x := s.order - 1
	return logAddExp(log1q+x*logA, logq+x*logB) / x
}

// cost is β of the paper for any q.
func (s gnmaxSensitivity) cost(logq float64) float64 {
	if logq >= s.logq0 {
		return s.order / (s.sigma * s.sigma)
	}
	return s.bound(logq)
}

// crossing is ln q0, from where on the data-independent bound is the smaller.
func (s gnmaxSensitivity) crossing() float64 {
	hi := min(-square(1+1/s.sigma), -square((s.order-.99)/s.sigma), -1/square(s.sigma))
	over := func(logq float64) bool { return s.bound(logq) > s.order/square(s.sigma) }
	if !over(hi) {
		return hi
	}
	lo := 2 * hi
	for over(lo) {
		lo *= 1.5
	}
	for range 200 {
		middle := lo + (hi-lo)/2
		if middle == lo || middle == hi {
			break
		}
		if over(middle) {
			hi = middle
		} else {
			lo = middle
		}
	}
	return lo
}

func square(x float64) float64 { return x * x }

// neighbours bound ln q of neighbours from both sides: every gap moves by 2 at most, and q is then extreme where all gaps are equal (B_L
// and B_U of the paper).
func (s gnmaxSensitivity) neighbours(logq float64) (lower, upper float64) {
	half := math.Log(float64(s.classes-1) / 2)
	gap := logErfcInverse(logq - half)
	return half + logErfc(gap+1/s.sigma), min(0, half+logErfc(gap-1/s.sigma))
}

// at is the local sensitivity at ln q.
func (s gnmaxSensitivity) at(logq float64) float64 {
	switch {
	case s.logq1 <= logq && logq <= s.logq0:
		return s.plateau
	case logq > s.level:
		return 0
	}
	here := s.cost(logq)
	lower, upper := s.neighbours(logq)
	return max(s.cost(upper)-here, here-s.cost(lower))
}

// conditions says whether conditions C5 and C6 of the paper hold, on a fine grid of ln q: that β, with the preconditions of Theorem 6,
// rises with q up to q0, and that so does the step from β(q) to β(B_U(q)), up to B_L(q0). The sensitivity at q1 is then the largest.
func (s gnmaxSensitivity) conditions() (c5, c6 bool) {
	step := func(logq float64) float64 {
		_, upper := s.neighbours(logq)
		return s.cost(upper) - s.bound(logq)
	}
	valid := func(logq float64) float64 {
		if b := theorem6(logq, s.sigma); !(s.order-1 < b.until) {
			return math.NaN()
		}
		return s.bound(logq)
	}
	return s.rises(valid, s.logq0), s.rises(step, s.logq1)
}

// gridPoints and gridReach are the grid: -ln q from its least value to gridReach times that, in even ratios.
const (
	gridPoints = 4000
	gridReach  = 1e4
)

// rises says whether f, a function of ln q, is a number and never falls below end, but for rounding.
func (s gnmaxSensitivity) rises(f func(logq float64) float64, end float64) bool {
	ratio := math.Pow(gridReach, 1.0/gridPoints)
	above := f(end)
	for logq, i := end*ratio, 0; i < gridPoints; i++ {
		below := f(logq)
		if !(below <= above*(1+1e-10)) {
			return false
		}
		above, logq = below, logq*ratio
	}
	return true
}
