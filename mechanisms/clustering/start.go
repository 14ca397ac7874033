package clustering

import "math"

// Points of a normal distribution, whose clusters give the centres to begin with, and the steps that find these.
const (
	normalPoints = 2000
	normalSteps  = 40
)

// Start are centres that are spread over a normal distribution with the spreads of the space, as coordinates: each is the mean of the
// points that are closest to it, of points of the additive recurrence with the powers of the inverse generalised golden ratio (Roberts
// 2018). They are a function of the space.
func (s Space) Start(centres int) [][]float64 {
	weights := s.Weights()
	points := normal(len(weights))
	chosen := [][]float64{make([]float64, len(weights))} // the mean, and then each time the point that is farthest from all
	for len(chosen) < centres {
		farthest, distance := 0, -1.0
		for i, p := range points {
			if _, d := nearest(p, chosen, weights); d > distance {
				farthest, distance = i, d
			}
		}
		chosen = append(chosen, points[farthest])
	}
	for range normalSteps {
		counts, sums := make([]float64, centres), make([][]float64, centres)
		for i := range sums {
			sums[i] = make([]float64, len(weights))
		}
		for _, p := range points {
			at, _ := nearest(p, chosen, weights)
			counts[at]++
			for j, y := range p {
				sums[at][j] += y
			}
		}
		for i, n := range counts {
			if n > 0 {
				chosen[i] = scaled(sums[i], 1/n)
			}
		}
	}
	return chosen
}

// normal are points of a normal distribution, cut at ±1 with a standard deviation of 1/Reach in each coordinate.
func normal(coordinates int) [][]float64 {
	golden := 2.0 // the root of x^(coordinates+1) = x + 1
	for range 64 {
		golden = math.Pow(1+golden, 1/float64(coordinates+1))
	}
	points := make([][]float64, normalPoints)
	for i := range points {
		points[i] = make([]float64, coordinates)
		step := 1.0
		for j := range coordinates {
			step /= golden
			_, u := math.Modf(0.5 + float64(i+1)*step)
			points[i][j] = max(-1, min(1, math.Sqrt2*math.Erfinv(2*u-1)/Reach))
		}
	}
	return points
}

// nearest is the closest of some centres, and its squared distance.
func nearest(p []float64, centres [][]float64, weights []float64) (at int, distance float64) {
	distance = math.Inf(1)
	for i, c := range centres {
		d := 0.0
		for j, w := range weights {
			d += w * (p[j] - c[j]) * (p[j] - c[j])
		}
		if d < distance {
			at, distance = i, d
		}
	}
	return at, distance
}

func scaled(x []float64, by float64) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = v * by
	}
	return out
}
