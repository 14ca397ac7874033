package pate

import (
	"math"
	"slices"
)

// walker walks from one query's votes to the neighbours of its neighbours, one vote a step, along the path on which the local
// sensitivity is largest, and keeps its buffers from query to query. Moving votes between the two largest counts
// changes q most, because erfc is steepest at the smallest gap; with the shift of [Discrete] that still holds, as it is
// symmetric about a gap of one.
type walker struct {
	s     gnmaxSensitivity
	sigma float64 // of the noise
	shift float64
	tail  []float64 // erfc((gap-shift)/2σ) by gap
	votes []int64   // sorted, largest first
	logs  []float64
}

// newWalker prepares walks over votes of so many teachers. sigma is that of the noise; s has it divided by the teachers per person.
func newWalker(s gnmaxSensitivity, sigma float64, teachers int64, noise Noise) *walker {
	w := &walker{s: s, sigma: sigma, shift: noise.shift(), tail: make([]float64, teachers+1)}
	for gap := range w.tail {
		w.tail[gap] = math.Erfc((float64(gap) - w.shift) / (2 * sigma))
	}
	return w
}

// logq is ln q of the current votes.
func (w *walker) logq() float64 {
	total := 0.0
	for _, n := range w.votes[1:] {
		total += w.tail[w.votes[0]-n]
	}
	if total > 1e-280 {
		return capped(math.Log(total)-math.Ln2, len(w.votes))
	}
	w.logs = w.logs[:0]
	for _, n := range w.votes[1:] {
		w.logs = append(w.logs, logErfc((float64(w.votes[0]-n)-w.shift)/(2*w.sigma)))
	}
	return capped(logSumExp(w.logs)-math.Ln2, len(w.votes))
}

// addTo adds the local sensitivity up to distances 0, 1, ... from the query's votes to the sums, weighted, and gives the query's cost.
//
// Up to a distance, and not at it: a table that is d teachers away from another may be nearer in some of its queries, so that sums over
// queries need the largest value on the way. (Conditions C5 and C6 make the values rise; the largest so far is taken all the same.)
func (w *walker) addTo(sums []float64, counts []uint32, weight float64) (cost float64) {
	w.votes = w.votes[:0]
	for _, n := range counts {
		w.votes = append(w.votes, int64(n))
	}
	slices.SortFunc(w.votes, func(a, b int64) int { return int(b - a) })
	logq := w.logq()
	cost = w.s.cost(logq)
	at := 0
	if logq < w.s.logq1 || logq > w.s.logq0 {
		largest := w.s.at(logq)
		sums[0] += weight * largest
		left := logq > w.s.logq0
		for at = 1; at < len(sums) && w.mayStep(left, logq); at++ {
			w.step(left)
			logq = w.logq()
			largest = max(largest, w.s.at(logq))
			sums[at] += weight * largest
		}
	}
	for ; at < len(sums); at++ {
		sums[at] += weight * w.s.plateau
	}
	return cost
}

// mayStep says whether the walk goes on: to the left (a smaller q) until the data-dependent bound takes over or nothing is left to
// move; to the right until the plateau.
func (w *walker) mayStep(left bool, logq float64) bool {
	if left {
		return logq > w.s.logq0 && w.votes[1] > 0
	}
	return logq < w.s.logq1
}

// step moves a vote between the two largest counts, and keeps the counts sorted.
func (w *walker) step(left bool) {
	if !left {
		w.votes[0]--
		w.votes[1]++ // still not above the first: else q would be beyond the plateau
		return
	}
	w.votes[0]++
	w.votes[1]--
	for i := 1; i < len(w.votes)-1 && w.votes[i] < w.votes[i+1]; i++ {
		w.votes[i], w.votes[i+1] = w.votes[i+1], w.votes[i]
	}
}

// checkCosts are the costs of the threshold check for each largest value, and the larger step to an adjacent value.
type checkCosts struct{ cost, step []float64 }

func newCheckCosts(c check, teachers int64, order float64) checkCosts {
	cost, step := make([]float64, teachers+1), make([]float64, teachers+1)
	for v := range cost {
		cost[v] = c.bound(float64(v), 1).rdp(order)
	}
	for v := range cost {
		if v > 0 {
			step[v] = math.Abs(cost[v] - cost[v-1])
		}
		if v < len(cost)-1 {
			step[v] = max(step[v], math.Abs(cost[v+1]-cost[v]))
		}
	}
	return checkCosts{cost, step}
}

// at is the local sensitivity of the check at a distance from a largest value.
func (c checkCosts) at(v, distance int64) float64 {
	largest := 0.0
	for _, w := range []int64{v + distance, v - distance} {
		if w >= 0 && w < int64(len(c.step)) {
			largest = max(largest, c.step[w])
		}
	}
	return largest
}

// addTo adds the local sensitivity up to distances 0, 1, ... from the largest value v to the sums, and gives its cost.
// Here the largest so far is no formality: sensitivities rise and fall, and the published script, which sums over
// queries what is at a distance, is too low where queries have their peaks at different ones.
func (c checkCosts) addTo(sums []float64, v int64) (cost float64) {
	largest := 0.0
	for d := range sums {
		largest = max(largest, c.at(v, int64(d)))
		sums[d] += largest
	}
	return c.cost[v]
}

// discountedMax is max over d of e^-βd·sums[d]: a β-smooth bound on the sensitivity.
func discountedMax(beta float64, sums []float64) float64 {
	largest := 0.0
	for d, s := range sums {
		largest = max(largest, math.Exp(-beta*float64(d))*s)
	}
	return largest
}

// gnssCost is what the release of a value with Gaussian noise of σ·(its β-smooth sensitivity) costs at an order, 1 < λ < 1/2β (2018
// paper, Theorem 23): λe^2β/σ² + (-ln(1-2λβ)/2 + λβ)/(λ-1).
func gnssCost(beta, sigma, order float64) float64 {
	return order*math.Exp(2*beta)/square(sigma) + (-math.Log1p(-2*order*beta)/2+order*beta)/(order-1)
}
