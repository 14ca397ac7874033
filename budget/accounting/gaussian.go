package accounting

import (
	"math"
)

// Normal tails without cancellation, and what a release promises to groups and samples of people.

// unitRoundoff is the relative error of one floating-point operation.
const unitRoundoff = 0x1p-53

// reportSlack raises floating-point results of short formulas by more than all their rounding errors together.
const reportSlack = 2e-12

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

// SampledLoss is the loss towards a population if the protected table is a secret sample of it. The sample took each person with
// probability rate independently: (ln(1+rate·(e^ε-1)), rate·δ), rounded up (Balle, Barthe, Gaboardi 2018, arXiv 1807.01647, Theorem 8).
func SampledLoss(epsilon, delta, rate float64) (sampledEpsilon, sampledDelta float64) {
	sampled := epsilon + math.Log(rate+(1-rate)*math.Exp(-epsilon))
	if epsilon < 30 {
		sampled = math.Log1p(rate * math.Expm1(epsilon))
	}
	return min(epsilon, sampled*(1+reportSlack)), min(1, delta*rate*(1+reportSlack))
}
