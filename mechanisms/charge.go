package mechanisms

import (
	"math"
	"math/big"

	"noisegate.example/internal/exact"
)

// This file turns exact parameters into charges: rounded up, whatever the size of the numbers.

// chargeBits is the working precision of charges: a pico unit is 2⁻⁴⁰, so that an enclosure at 2⁻¹⁹² adds a unit by mistake
// once in 2¹⁵⁰ charges, and never loses one.
const chargeBits = 192

// ceilUnits is ceil(x·unit), saturated at the largest value, which no budget admits.
func ceilUnits(x *big.Rat, unit int64) int64 {
	n, _ := exact.CeilUnits(x, unit)
	return n
}

// ceilFixed is ceil(x·unit) for a fixed-point upper bound x at precision chargeBits.
func ceilFixed(x *big.Int, unit int64) int64 {
	scaled := new(big.Int).Mul(x, big.NewInt(unit))
	return saturate(exact.CeilQuo(scaled, one(chargeBits)))
}

func saturate(n *big.Int) int64 {
	saturated, _ := exact.Int64(n)
	return saturated
}

// rhoOfPure is the ρ of any ε-DP mechanism: ε·tanh(ε/2), the loss of binary randomized response, the worst of them
// (Harrison, Manurangsi, arXiv 2510.25746).
func rhoOfPure(epsilon *big.Rat) PicoRho { return rhoOfShares(epsilon, 1) }

// rhoOfShares is the ρ of n pure mechanisms of ε/n each: ε·tanh(ε/2n).
func rhoOfShares(epsilon *big.Rat, n int64) PicoRho {
	_, hi := lawTanhHalf.bounds(new(big.Rat).Mul(epsilon, big.NewRat(1, n)), chargeBits)
	product := new(big.Int).Mul(hi, epsilon.Num())
	return PicoRho(ceilFixed(exact.CeilQuo(product, epsilon.Denom()), int64(RhoUnit)))
}

// rhoOfBoundedRange is the ρ of n mechanisms of a bounded range of ε/n each: (ε/n)²/8 each (Cesar, Rogers 2021, arXiv 2004.07223), or that
// of any ε/n-DP mechanism, which is less from a range of 7.994 on.
func rhoOfBoundedRange(epsilon *big.Rat, n int64) PicoRho {
	square := new(big.Rat).Mul(epsilon, epsilon)
	square.Quo(square, new(big.Rat).SetInt(new(big.Int).Mul(big.NewInt(8), big.NewInt(n))))
	return min(PicoRho(ceilUnits(square, int64(RhoUnit))), rhoOfShares(epsilon, n))
}

// pureEpsilon is the largest ε at which any ε-DP mechanism costs at most ρ; 0 if there is none.
func pureEpsilon(rho PicoRho) PicoEpsilon {
	return epsilonFor(rho, func(e float64) float64 { return e * math.Tanh(e/2) }, func(e PicoEpsilon) PicoRho { return rhoOfPure(e.Rat()) })
}

// boundedRangeEpsilon is the largest ε whose bounded-range mechanisms (exponential, quantile) cost at most ρ; 0 if there is none.
func boundedRangeEpsilon(rho PicoRho) PicoEpsilon {
	// ε²/8 in pico units is e²/(8·10¹²) for e pico-ε.
	square := new(big.Int).Mul(big.NewInt(int64(rho)), big.NewInt(8*int64(RhoUnit)))
	return max(min(PicoEpsilon(saturate(square.Sqrt(square))), MaxEpsilon), pureEpsilon(rho))
}

// rhoOfLaplace is the ρ of discrete Laplace noise of scale b under a shift by Δ, both exact.
//
// The ρ of this mechanism is its Kullback-Leibler divergence (Harrison, Manurangsi, arXiv 2510.25746). With a = 1/b, ε = Δ·a
// and q = e^-a, E|X| = 2q/(1-q²) = 1/sinh(a) and E|X-Δ| = Δ + q^Δ/sinh(a), hence
//
//	ρ = a·(E|X-Δ| - E|X|) = ε - (1-e^-ε)·a/sinh(a).
//
// For Δ = 1 this is ε·tanh(ε/2); for Δ -> ∞ it is the ε+e^-ε-1 of continuous noise. As a function of Δ it is convex and 0 at
// 0, so that a shift spread over several independent coordinates (Σ|d_i| <= Δ) never costs more than all of it in one.
func rhoOfLaplace(delta *big.Int, scale *big.Rat) PicoRho {
	a := new(big.Rat).Inv(scale)
	epsilon := new(big.Rat).Mul(a, new(big.Rat).SetInt(delta))
	_, expHi := exact.ExpNeg(epsilon, chargeBits)
	gain := new(big.Int).Sub(one(chargeBits), expHi) // 1-e^-ε, rounded down
	gain.Mul(gain, overSinhLower(a))
	gain.Rsh(gain, chargeBits)
	rho := fixed(epsilon, chargeBits, exact.CeilQuo)
	return PicoRho(ceilFixed(rho.Sub(rho, gain), int64(RhoUnit)))
}

// overSinhLower is a lower bound of a/sinh(a) at precision chargeBits.
func overSinhLower(a *big.Rat) *big.Int {
	if a.Cmp(big.NewRat(1, 2)) >= 0 {
		// 2a·q/(1-q²) rises with q.
		q, _ := exact.ExpNeg(a, chargeBits)
		numerator := new(big.Int).Mul(q, a.Num())
		numerator.Lsh(numerator, chargeBits+1)
		denominator := new(big.Int).Sub(one(2*chargeBits), new(big.Int).Mul(q, q))
		denominator.Mul(denominator, a.Denom())
		return exact.FloorQuo(numerator.Lsh(numerator, chargeBits), denominator)
	}
	// sinh(a)/a = Σ a²ⁱ/(2i+1)!, rounded up; below 1/2 each term is less than 1/24 of the one before, so that the tail is
	// less than the last term, and that is at most one unit.
	square := fixed(new(big.Rat).Mul(a, a), chargeBits, exact.CeilQuo)
	sum, term := one(chargeBits), one(chargeBits)
	for i := int64(1); term.Cmp(big.NewInt(1)) > 0; i++ {
		term.Mul(term, square)
		term = exact.CeilQuo(term, new(big.Int).Lsh(big.NewInt(2*i*(2*i+1)), chargeBits))
		sum.Add(sum, term)
	}
	sum.Add(sum, big.NewInt(1))
	return exact.FloorQuo(one(2*chargeBits), sum)
}

// epsilonFor is the ε that a price in ρ buys: near the solution of approximate(ε) = ρ, in floating point, and then lowered until
// the exact charge keeps to the price. 0 if nothing does.
func epsilonFor(rho PicoRho, approximate func(epsilon float64) float64, exact func(PicoEpsilon) PicoRho) PicoEpsilon {
	price, unit := float64(rho)/float64(RhoUnit), float64(EpsilonUnit)
	lo, hi := 0.0, float64(MaxEpsilon)/unit
	for range 80 {
		if middle := lo + (hi-lo)/2; approximate(middle) <= price {
			lo = middle
		} else {
			hi = middle
		}
	}
	epsilon := PicoEpsilon(lo * unit)
	for step := PicoEpsilon(1); epsilon > 0 && exact(epsilon) > rho; step *= 2 {
		epsilon = max(0, epsilon-step)
	}
	return epsilon
}

// approximateRhoOfLaplace is [rhoOfLaplace] in floating point, as a function of ε.
func approximateRhoOfLaplace(delta *big.Int) func(epsilon float64) float64 {
	shift := exact.Float(new(big.Rat).SetInt(delta))
	return func(epsilon float64) float64 {
		a := epsilon / shift
		overSinh := 1.0
		if a > 1e-9 {
			overSinh = a / math.Sinh(a)
		}
		return epsilon + math.Expm1(-epsilon)*overSinh
	}
}
