package stattest

import "math"

// The laws of private selections, in floating point: probabilities of the candidates with these scores, where a candidate that is
// one behind has e^-rate of the weight.

// ExponentialLaw is that of the exponential mechanism.
func ExponentialLaw(rate float64, scores []int64) []float64 {
	weights, total := weightsOf(rate, scores), 0.0
	for _, w := range weights {
		total += w
	}
	for i := range weights {
		weights[i] /= total
	}
	return weights
}

// PermuteAndFlipLaw is that of permute-and-flip. With a uniform time of arrival for each candidate, i is chosen at time t if the
// coins of all that came before show false: w_i times the integral over t of the product of 1-t·w_j, a polynomial.
func PermuteAndFlipLaw(rate float64, scores []int64) []float64 {
	weights := weightsOf(rate, scores)
	law := make([]float64, len(scores))
	for i, own := range weights {
		product := []float64{1} // coefficients by power of t
		for j, w := range weights {
			if j == i {
				continue
			}
			product = append(product, 0)
			for power := len(product) - 1; power > 0; power-- {
				product[power] -= w * product[power-1]
			}
		}
		for power, c := range product {
			law[i] += own * c / float64(power+1)
		}
	}
	return law
}

// NoisyMaxLaw is that of report-noisy-max with discrete Laplace noise; of equal ones the first wins.
func NoisyMaxLaw(rate float64, scores []int64) []float64 {
	q := math.Exp(-rate)
	mass := func(x int64) float64 { return (1 - q) / (1 + q) * math.Exp(-rate*math.Abs(float64(x))) }
	upTo := func(x int64) float64 { // P(noise <= x)
		if x < 0 {
			return math.Exp(-rate*float64(-x)) / (1 + q)
		}
		return 1 - math.Exp(-rate*float64(x+1))/(1+q)
	}
	law, reach := make([]float64, len(scores)), int64(math.Ceil(45/rate))
	for i, own := range scores {
		for x := -reach; x <= reach; x++ {
			p := mass(x)
			for j, other := range scores {
				switch lead := own + x - other; {
				case j < i:
					p *= upTo(lead - 1)
				case j > i:
					p *= upTo(lead)
				}
			}
			law[i] += p
		}
	}
	return law
}

func weightsOf(rate float64, scores []int64) []float64 {
	best := scores[0]
	for _, s := range scores {
		best = max(best, s)
	}
	weights := make([]float64, len(scores))
	for i, s := range scores {
		weights[i] = math.Exp(-rate * float64(best-s))
	}
	return weights
}
