package accounting

import "math"

// The exact privacy profile of continuous Gaussian noise, with which accountants are compared. Noisegate's own noise is
// discrete: it has the same ρ, but not this profile, which therefore is no price.

// GaussianDelta is δ(ε) of Gaussian noise with standard deviation σ = multiplier·Δ, rounded up: with μ = 1/multiplier,
//
//	δ = Φ(μ/2-ε/μ) - e^ε·Φ(-μ/2-ε/μ)
//
// (Balle, Wang 2018, arXiv 1805.06530, Theorem 8). multiplier must be positive, ε at least 0. Several releases together
// are one with μ² = Σμi², also when each is chosen in the light of the others (Smith, Thakurta 2022, arXiv 2210.17520).
func GaussianDelta(multiplier, epsilon float64) float64 {
	mu := 1 / multiplier
	// Written with u = ε/μ-μ/2, v = u+μ and e^ε = e^((v²-u²)/2), so that nothing large cancels.
	return min(1, max(0, tiltedDifference(epsilon/mu-mu/2, mu))*(1+reportSlack))
}

// GaussianEpsilon is the smallest ε with GaussianDelta(multiplier, ε) <= δ, rounded up; 0 < δ < 1.
func GaussianEpsilon(multiplier, delta float64) float64 {
	if GaussianDelta(multiplier, 0) <= delta {
		return 0
	}
	hi := 1.0
	for GaussianDelta(multiplier, hi) > delta {
		hi *= 2
	}
	return bisectUp(hi, func(eps float64) bool { return GaussianDelta(multiplier, eps) > delta })
}

// GaussianMultiplier is the smallest σ/Δ with which Gaussian noise is (ε, δ)-DP, rounded up; ε > 0 and 0 < δ < 1.
func GaussianMultiplier(epsilon, delta float64) float64 {
	hi := 1.0
	for GaussianDelta(hi, epsilon) > delta {
		hi *= 2
	}
	return bisectUp(hi, func(multiplier float64) bool { return multiplier == 0 || GaussianDelta(multiplier, epsilon) > delta })
}

// bisectUp is the upper end of the place in (0, hi] where above turns from true to false, to the last bit or nearly so.
func bisectUp(hi float64, above func(float64) bool) float64 {
	lo := 0.0
	for range 120 {
		mid := lo + (hi-lo)/2
		if mid == lo || mid == hi {
			break
		}
		if above(mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}

// tiltedDifference is Q(u) - e^((v²-u²)/2)·Q(v) for the normal tail Q and v = u+μ >= 0, rounded up: the two terms nearly cancel for small
// μ, so that what rounding may cost either of them is added. In the second, e^ is merged with the tail, so that it cannot overflow.
func tiltedDifference(u, mu float64) float64 {
	scale := math.Exp(-u*u/2) / 2
	first, second := math.Erfc(u/math.Sqrt2)/2, scale*scaledErfc((u+mu)/math.Sqrt2)
	if u >= -1 {
		first = scale * scaledErfc(u/math.Sqrt2) // the same factor as in the second: its error does not count twice
	}
	return first - second + 16*unitRoundoff*(first+second)
}
