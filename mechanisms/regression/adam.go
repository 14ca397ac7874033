package regression

import "math"

// Adam walks down a loss by noisy gradients. Source: Kingma and Ba 2015 (arXiv 1412.6980), Algorithm 1, with the constants below. The
// answer is the mean of the second half of its points, which each have independent noise. Steps of one length walk around the least loss,
// and the mean of that round misses it; so from adamLong on steps fall as one over their number, which ends at the least loss. It needs no
// number of rows: multiplying all gradients by one number changes nothing.
type Adam struct {
	point, first, second, total []float64
	steps, passes               int
}

// The constants, measured on the Adult data at ε 0.1 to 4.
const (
	adamStep   = 0.9
	adamFirst  = 0.9
	adamSecond = 0.95
	adamLong   = 30 // steps of the whole length: more passes than these go on from near the least loss
)

// NewAdam begins at 0, for so many features and passes, both positive.
func NewAdam(features, passes int) *Adam {
	return &Adam{point: make([]float64, features), first: make([]float64, features), second: make([]float64, features),
		total: make([]float64, features), passes: passes}
}

// Point is where the next gradient is to be taken. The caller may not change it.
func (a *Adam) Point() []float64 { return a.point }

// Step goes on by the gradient at [Adam.Point].
func (a *Adam) Step(gradient []float64) {
	a.steps++
	t := float64(a.steps)
	step := adamStep * min(1, adamLong/t)
	next := make([]float64, len(a.point))
	for i, g := range gradient {
		a.first[i] = adamFirst*a.first[i] + (1-adamFirst)*g
		a.second[i] = adamSecond*a.second[i] + (1-adamSecond)*g*g
		mean, square := a.first[i]/(1-math.Pow(adamFirst, t)), a.second[i]/(1-math.Pow(adamSecond, t))
		next[i] = a.point[i]
		if square > 0 {
			next[i] -= step * mean / math.Sqrt(square)
		}
		if 2*a.steps > a.passes {
			a.total[i] += next[i]
		}
	}
	a.point = next
}

// Mean is the mean of the points of the second half of all passes, once these are done.
func (a *Adam) Mean() []float64 {
	out := make([]float64, len(a.total))
	for i, sum := range a.total {
		out[i] = sum / float64(a.passes-a.passes/2)
	}
	return out
}
