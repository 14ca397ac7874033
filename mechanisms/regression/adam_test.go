package regression

import (
	"math"
	"testing"
)

// Gradients of a quadratic lead to its least point, to one part in a hundred within 200 steps, and it does not matter by what they are
// multiplied.
func TestAdamFindsTheLeastPoint(t *testing.T) {
	want := []float64{3, -0.5, 0}
	walk := func(factor float64) []float64 {
		a := NewAdam(len(want), 200)
		for range 200 {
			g := make([]float64, len(want))
			for i, x := range a.Point() {
				g[i] = factor * (1 + float64(i)) * (x - want[i])
			}
			a.Step(g)
		}
		return a.Mean()
	}
	first, scaled := walk(1), walk(1<<20)
	for i, x := range first {
		if math.Abs(x-want[i]) > 0.01*math.Max(1, math.Abs(want[i])) {
			t.Errorf("place %d is %v, want %v", i, x, want[i])
		}
		if x != scaled[i] {
			t.Errorf("place %d is %v by larger gradients", i, scaled[i])
		}
	}
}

// A walk of any length ends with the mean of the second half of its points: of one pass with the point itself. Gradients of 0 lead nowhere.
func TestAdamOfFewPasses(t *testing.T) {
	for passes := 1; passes < 6; passes++ {
		a, sum := NewAdam(2, passes), 0.0
		for i := range passes {
			a.Step([]float64{1, 0})
			if 2*(i+1) > passes {
				sum += a.Point()[0]
			}
		}
		if mean := a.Mean(); math.Abs(mean[0]-sum/float64(passes-passes/2)) > 1e-12 || mean[0] >= 0 || mean[1] != 0 {
			t.Errorf("%d passes: %v", passes, mean)
		}
	}
}
