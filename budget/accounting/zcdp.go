package accounting

import (
	"math"
	"math/big"

	"noisegate.example/internal/exact"
	"noisegate.example/mechanisms"
)

// The conversion between ρ-zCDP and (ε, δ)-DP is that of Canonne, Kamath and Steinke 2020 (arXiv 2004.00010, Proposition 12 and
// Corollary 13): ρ-zCDP implies (ε, δ)-DP whenever for some real α > 1
//
//	ε >= ρα + ln(1 - 1/α) - ln(δα)/(α-1)                                             (1)
//
// It holds for *every* α > 1, so the choice of α cannot make a result unsound, only loose. Therefore floating point chooses α,
// and exact rational arithmetic with bounded logarithms evaluates (1) once, rounded towards caution: ε up, ρ down.
// No rounding error of the first step and none of the second can give away budget.
//
// The best α has no closed form, but (1) has the derivative ρ + ln(δα)/(α-1)² in α, whose sign changes once.
// Below, x = α-1.

// EpsilonFor returns the smallest known ε, rounded up, such that every ρ-zCDP mechanism is (ε, δ)-DP. It returns false when
// there is none (δ is not in (0, 1) and ρ > 0) or it is above 9·10⁶.
func EpsilonFor(rho mechanisms.PicoRho, delta mechanisms.AttoDelta) (mechanisms.PicoEpsilon, bool) {
	switch {
	case rho < 0 || delta < 0 || delta >= mechanisms.DeltaUnit:
		return 0, false
	case rho == 0:
		return 0, true
	case delta == 0:
		return 0, false
	}
	r := float64(rho) / float64(mechanisms.RhoUnit)
	lnDelta := math.Log(float64(delta) / float64(mechanisms.DeltaUnit))
	x := bisect(math.Sqrt(-lnDelta/r), func(x float64) bool {
		return r*x*x+lnDelta+math.Log1p(x) < 0
	})
	lnRatio, lnDeltaAlpha := logarithms(x, delta)
	// ε = ρ(1+x) + ln(x/(1+x)) - ln(δ(1+x))/x, with the first logarithm's upper bound and the second's lower.
	eps := new(big.Rat).Mul(big.NewRat(int64(rho), int64(mechanisms.RhoUnit)), onePlus(x))
	eps.Add(eps, lnRatio.hi)
	eps.Sub(eps, new(big.Rat).Quo(lnDeltaAlpha.lo, exactly(x)))
	pico, ok := exact.CeilUnits(eps, int64(mechanisms.EpsilonUnit))
	return mechanisms.PicoEpsilon(max(pico, 0)), ok
}

// RhoFor returns the largest known ρ, rounded down, such that every ρ-zCDP mechanism is (ε, δ)-DP. It is 0 when there
// is none but ρ = 0.
func RhoFor(eps mechanisms.PicoEpsilon, delta mechanisms.AttoDelta) mechanisms.PicoRho {
	if eps <= 0 || delta <= 0 || delta >= mechanisms.DeltaUnit {
		return 0
	}
	e := float64(eps) / float64(mechanisms.EpsilonUnit)
	d := float64(delta) / float64(mechanisms.DeltaUnit)
	// At the best α, ρ = -ln(δα)/(α-1)², which put into (1) leaves one equation for x whose left side falls
	// from +∞ at 0 to below 0 at 1/δ - 1. Small x matter as much as large ones: search in ln x.
	lnX := bisectBetween(math.Log(1e-15), math.Log(1/d), func(lnX float64) bool {
		x := math.Exp(lnX)
		return -(math.Log(d)+math.Log1p(x))*(1+2*x)/(x*x)+math.Log(x/(1+x)) > e
	})
	x := math.Exp(lnX)
	lnRatio, lnDeltaAlpha := logarithms(x, delta)
	// (1) solved for ρ = (ε - ln(x/(1+x)) + ln(δ(1+x))/x) / (1+x), rounded down throughout.
	rho := big.NewRat(int64(eps), int64(mechanisms.EpsilonUnit))
	rho.Sub(rho, lnRatio.hi)
	rho.Add(rho, new(big.Rat).Quo(lnDeltaAlpha.lo, exactly(x)))
	rho.Quo(rho, onePlus(x))
	return mechanisms.PicoRho(max(exact.FloorUnits(rho, int64(mechanisms.RhoUnit)), 0))
}

// PureEpsilonFor is the largest ε with ε·tanh(ε/2) <= ρ, less a part in 10⁹ for floating point.
func PureEpsilonFor(rho mechanisms.PicoRho) mechanisms.PicoEpsilon {
	if rho <= 0 {
		return 0
	}
	r := float64(rho) / float64(mechanisms.RhoUnit)
	eps := bisectBetween(0, r+2*math.Sqrt(r)+1, func(e float64) bool { return e*math.Tanh(e/2) < r })
	return mechanisms.PicoEpsilon(eps * (1 - 1e-9) * float64(mechanisms.EpsilonUnit))
}

// interval encloses a real number.
type interval struct{ lo, hi *big.Rat }

// logarithms encloses ln(1 - 1/α) = ln(x/(1+x)) and ln(δα) = ln(δ(1+x)).
func logarithms(x float64, delta mechanisms.AttoDelta) (ratio, deltaAlpha interval) {
	ratio.lo, ratio.hi = lnBounds(new(big.Rat).Quo(exactly(x), onePlus(x)))
	d := big.NewRat(int64(delta), int64(mechanisms.DeltaUnit))
	deltaAlpha.lo, deltaAlpha.hi = lnBounds(d.Mul(d, onePlus(x)))
	return ratio, deltaAlpha
}

// exactly is the rational that a positive finite float64 is.
func exactly(x float64) *big.Rat { return new(big.Rat).SetFloat64(x) }

func onePlus(x float64) *big.Rat { return new(big.Rat).Add(exactly(x), big.NewRat(1, 1)) }

// bisect returns a positive x near the place in (0, hi] where below turns from true to false.
func bisect(hi float64, below func(float64) bool) float64 {
	return max(bisectBetween(0, hi, below), math.SmallestNonzeroFloat64)
}

func bisectBetween(lo, hi float64, below func(float64) bool) float64 {
	for range 48 {
		if mid := lo + (hi-lo)/2; below(mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}
