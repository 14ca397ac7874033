package clustering

import (
	"math"
	"testing"
)

// What the noise adds to the spreads on average is taken off, that of the total's square too: over many draws of noise around groups at
// one point both are those without noise.
func TestNoiseIsTakenOffSpreads(t *testing.T) {
	const groups, columns, size, draws = 64, 24, 100, 2000
	g := Groups{Sigma: 1, Squares: 5000}
	for range groups {
		g.Sizes, g.Sums = append(g.Sizes, size), append(g.Sums, make([]float64, columns))
	}
	source, sum, square := new(normals), 0.0, 0.0
	for range draws {
		between, _, ok := g.again(source).spreads(1)
		if !ok {
			t.Fatal("a group is as small as its noise")
		}
		sum, square = sum+between, square+between*between
	}
	mean := sum / draws
	if deviation := math.Sqrt((square/draws - mean*mean) / draws); math.Abs(mean) > 5*deviation || 5*deviation > columns/float64(size)/2 {
		t.Errorf("the spread is %.4f on average, of a standard error of %.4f; want 0", mean, deviation)
	}
}
