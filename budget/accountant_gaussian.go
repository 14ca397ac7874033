package budget

import (
	"math"
	"math/big"
)

// The exact privacy profile of continuous Gaussian noise, for reports and comparisons. Noisegate's own noise is discrete: it has
// the same ρ, but not this profile, which therefore is no price.

// unitRoundoff is the relative error of one floating-point operation.
const unitRoundoff = 0x1p-53

// reportSlack raises floating-point results of short formulas by more than all their rounding errors together.
const reportSlack = 2e-12

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

// normalBetween is the standard normal probability of (a, b], from whichever tail is smaller.
func normalBetween(a, b float64) float64 {
	if a+b < 0 {
		a, b = -b, -a
	}
	return (math.Erfc(a/math.Sqrt2) - math.Erfc(b/math.Sqrt2)) / 2
}

// tiltedBetween is E[e^(-μ(Z-a)); a < Z <= b] for a standard normal Z: with a loss μZ+μ²/2, what the neighbour's law gives the same
// losses, times e^(loss at a).
func tiltedBetween(a, b, mu float64) float64 {
	if a+mu > -1 {
		// e^(μa+μ²/2)·Q(a+μ) = e^(-a²/2)·erfcx((a+μ)/√2)/2, likewise at b.
		at := math.Exp(-a*a/2) * scaledErfc((a+mu)/math.Sqrt2)
		end := math.Exp(-b*b/2-mu*(b-a)) * scaledErfc((b+mu)/math.Sqrt2)
		return (at - end) / 2
	}
	return math.Exp(mu*a+mu*mu/2) * normalBetween(a+mu, b+mu)
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

// scaledErfc is e^(x²)·erfc(x), for x >= -20.
func scaledErfc(x float64) float64 {
	if x < 25 {
		// x² in two parts, since e^ multiplies its rounding error.
		square := x * x
		return math.Exp(square) * (1 + math.FMA(x, x, -square)) * math.Erfc(x)
	}
	// The asymptotic series 1-1/2x²+3/4x⁴-15/8x⁶+...; what is left out is below 10⁻¹⁶.
	y := 1 / (2 * x * x)
	return (1 - y*(1-3*y*(1-5*y*(1-7*y*(1-9*y*(1-11*y)))))) / (x * math.SqrtPi)
}

// GroupLoss is what an (ε, δ)-DP release promises to a group of people together, for instance a household: (size·ε,
// δ·(e^(size·ε)-1)/(e^ε-1)), rounded up (Vadhan 2017, Lemma 2.2). ρ grows by size² (Bun, Steinke 2016, Proposition 1.9).
func GroupLoss(epsilon, delta float64, size int64) (groupEpsilon, groupDelta float64) {
	k := float64(size)
	if delta > 0 { // 0 stays 0, however large the factor
		factor := k
		if epsilon > 0 {
			factor = math.Exp((k-1)*epsilon) * math.Expm1(-k*epsilon) / math.Expm1(-epsilon)
		}
		delta = min(1, delta*factor*(1+reportSlack))
	}
	return k * epsilon * (1 + reportSlack), delta
}

// SampledLoss is the loss towards a population of which the protected table is a secret sample that took each person with
// probability rate independently: (ln(1+rate·(e^ε-1)), rate·δ), rounded up (Balle, Barthe, Gaboardi 2018, arXiv 1807.01647, Theorem 8).
func SampledLoss(epsilon, delta, rate float64) (sampledEpsilon, sampledDelta float64) {
	sampled := epsilon + math.Log(rate+(1-rate)*math.Exp(-epsilon))
	if epsilon < 30 {
		sampled = math.Log1p(rate * math.Expm1(epsilon))
	}
	return min(epsilon, sampled*(1+reportSlack)), min(1, delta*rate*(1+reportSlack))
}

// float is the nearest float64.
func float(x *big.Rat) float64 {
	f, _ := x.Float64()
	return f
}
