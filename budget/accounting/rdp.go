package accounting

import (
	"math"

	"noisegate.example/mechanisms"
)

// Rényi accounting of a fixed list of releases: at each order the divergences add up (Mironov 2017, arXiv 1702.07476), and the
// best order gives ε. For lists that adapt to earlier answers this is no filter, because the order is chosen at the end; a
// filter would have to fix the order at the start. Reports and registered plans only.

// RDPEpsilon is the smallest ε that Rényi accounting gives the list at δ, rounded up. It returns false when there is none.
func RDPEpsilon(list []Repeated, delta mechanisms.AttoDelta) (mechanisms.PicoEpsilon, bool) {
	eps, _ := rdpEpsilon(list, attoFloat(delta))
	return picoUp(eps)
}

// renyiOf is the list's divergence of order 1+x.
func renyiOf(list []Repeated, x float64) float64 {
	sum := 0.0
	for _, r := range list {
		sum += float64(r.Times) * r.Event.model.renyi(1+x)
	}
	return sum * (1 + float64(len(list)+4)*unitRoundoff)
}

// lostOf bounds the probability that one of the list's releases loses everything.
func lostOf(list []Repeated) float64 {
	logKept := 0.0
	for _, r := range list {
		logKept += float64(r.Times) * math.Log1p(-r.Event.model.delta())
	}
	return -math.Expm1(logKept) * (1 + reportSlack)
}

// rdpEpsilon is ε at δ, by the conversion of Canonne, Kamath and Steinke 2020 (see zcdp.go), and 1+x, the order that gave it.
func rdpEpsilon(list []Repeated, delta float64) (eps, x float64) {
	delta -= lostOf(list)
	if !(delta > 0) || delta >= 1 {
		return math.Inf(1), 1
	}
	lnDelta := math.Log(delta)
	at := func(x float64) float64 {
		d, tail := renyiOf(list, x), -(lnDelta+math.Log1p(x))/x
		ratio := -math.Log1p(1 / x)
		return d + ratio + tail + 16*unitRoundoff*(d-ratio+(math.Abs(lnDelta)+math.Log1p(x))/x)
	}
	x = minimise(at)
	return max(0, at(x)), x
}

// minimise finds a good order less 1 between 10⁻⁶ and 10¹². Any order is sound, so that it may miss the best one.
func minimise(f func(float64) float64) float64 {
	const steps = 180
	of := func(t float64) float64 { return f(math.Exp(t)) }
	from, step := math.Log(1e-6), math.Log(1e18)/steps
	best, least := 0, math.Inf(1)
	for i := range steps + 1 {
		if v := of(from + step*float64(i)); v < least {
			best, least = i, v
		}
	}
	// Golden section around the best of the grid.
	const golden = 0.6180339887498949
	lo, hi := from+step*float64(best-1), from+step*float64(best+1)
	a, b := hi-golden*(hi-lo), lo+golden*(hi-lo)
	fa, fb := of(a), of(b)
	for range 48 {
		if fa < fb {
			hi, b, fb = b, a, fa
			a = hi - golden*(hi-lo)
			fa = of(a)
		} else {
			lo, a, fa = a, b, fb
			b = lo + golden*(hi-lo)
			fb = of(b)
		}
	}
	return math.Exp((lo + hi) / 2)
}

// attoFloat is δ as a float64, rounded down.
func attoFloat(delta mechanisms.AttoDelta) float64 {
	return float64(delta) / float64(mechanisms.DeltaUnit) * (1 - 4*unitRoundoff)
}

// MaxAmount is the largest ε or ρ of a budget or a charge: 10⁶, so that a sum of two fits an int64 of pico units.
const MaxAmount = 1_000_000

// picoUp rounds an upper bound of ε up, and returns false if it is beyond any budget.
func picoUp(eps float64) (mechanisms.PicoEpsilon, bool) {
	if !(eps <= MaxAmount) {
		return 0, false
	}
	return mechanisms.PicoEpsilon(math.Ceil(eps * (1 + 4*unitRoundoff) * float64(mechanisms.EpsilonUnit))), true
}
