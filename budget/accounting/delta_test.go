package accounting

import (
	"math"

	"noisegate.example/mechanisms"
)

// δ at ε: the same curves as those of ε at δ, which is what the product reports, read the other way.

// RDPDelta is the smallest δ that Rényi accounting gives the list at ε, rounded up; at most 1.
func RDPDelta(list []Repeated, epsilon mechanisms.PicoEpsilon) mechanisms.AttoDelta {
	delta, _ := rdpDelta(list, float64(epsilon)/float64(mechanisms.EpsilonUnit))
	return attoUp(delta)
}

// rdpDelta is δ at ε, and the order less 1 that gave it: δ = e^((α-1)(D-ε))·(1-1/α)^α/(α-1).
func rdpDelta(list []Repeated, eps float64) (delta, x float64) {
	at := func(x float64) float64 {
		d := renyiOf(list, x)
		return x*(d-eps+16*unitRoundoff*(d+eps)) - math.Log(x) - (1+x)*math.Log1p(1/x) // x may be 10¹²: it multiplies what rounding costs d
	}
	x = minimise(at)
	return min(1, lostOf(list)+math.Exp(at(x))*(1+1e-11)), x
}

// attoUp rounds an upper bound of δ up.
func attoUp(delta float64) mechanisms.AttoDelta {
	return mechanisms.AttoDelta(math.Ceil(min(1, delta*(1+4*unitRoundoff)) * float64(mechanisms.DeltaUnit)))
}

func (p *PLD) delta(eps float64) float64 {
	best, x := rdpDelta(p.list, eps)
	if eps >= p.pure() {
		best = min(best, lostOf(p.list))
	}
	curve, err := p.compose(x)
	if err != nil {
		return best
	}
	return min(best, curve.delta(eps-p.drift))
}

// delta is δ at ε: linear in e^ε between the multiples of h, where it is known.
func (f *profile) delta(eps float64) float64 {
	k := int(math.Floor(eps/f.h)) - int(f.base)
	switch {
	case k < 0:
		return 1
	case k >= len(f.deltas)-1:
		return f.above
	}
	lo := f.h * float64(f.base+int64(k))
	share := min(1, max(0, math.Expm1(eps-lo)/math.Expm1(f.h)))
	return f.deltas[k] + share*(f.deltas[k+1]-f.deltas[k])
}
