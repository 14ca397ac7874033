package pate

import "math"

// This file holds logarithms of probabilities that are too small, or too near to 1, for float64.

// log1mexp is ln(1-e^x) for x <= 0.
func log1mexp(x float64) float64 {
	if x < -1 {
		return math.Log1p(-math.Exp(x))
	}
	return math.Log(-math.Expm1(x))
}

// logAddExp is ln(e^a+e^b).
func logAddExp(a, b float64) float64 {
	if a < b {
		a, b = b, a
	}
	if math.IsInf(a, -1) {
		return a
	}
	return a + math.Log1p(math.Exp(b-a))
}

// logSumExp is ln Σe^x.
func logSumExp(xs []float64) float64 {
	top := math.Inf(-1)
	for _, x := range xs {
		top = max(top, x)
	}
	if math.IsInf(top, -1) {
		return top
	}
	total := 0.0
	for _, x := range xs {
		total += math.Exp(x - top)
	}
	return top + math.Log(total)
}

const sqrtPi = 1.77245385090551602729816748334114518279754945612238712821380779

// asymptoticFrom is where erfc's asymptotic series, cut after nine terms, is exact to float64: its tenth is below 10⁻¹⁷.
const asymptoticFrom = 20

// logErfc is ln erfc(x), with a relative error of a few units in the last place.
func logErfc(x float64) float64 {
	switch {
	case x < 0:
		return math.Ln2 + math.Log1p(-math.Erfc(-x)/2)
	case x < asymptoticFrom:
		return math.Log(math.Erfc(x))
	}
	// erfc(x) = e^-x²/(x·√π)·(1 - 1/2x² + 3/(2x²)² - ...)
	u := 1 / (2 * x * x)
	series := 0.0
	for k := 9; k >= 1; k-- {
		series = -float64(2*k-1) * u * (1 + series)
	}
	return -x*x - math.Log(x*sqrtPi) + math.Log1p(series)
}

// logTail is ln P(Z >= z) for a standard normal Z.
func logTail(z float64) float64 { return logErfc(z/math.Sqrt2) - math.Ln2 }

// logErfcInverse is x with ln erfc(x) = y, for y < ln 2, by Halley's method. It begins on the right: erfc(x) <= e^-x².
func logErfcInverse(y float64) float64 {
	x := math.Sqrt(max(0, -y))
	for range 60 {
		at := logErfc(x)
		hazard := 2 / sqrtPi * math.Exp(-x*x-at) // minus the derivative; its own is hazard·(hazard-2x)
		newton := (at - y) / hazard
		step := newton / (1 - newton*(hazard-2*x)/2)
		x += step
		if math.Abs(step) <= 1e-8*math.Abs(x) { // the next error is the cube of this one
			break
		}
	}
	return x
}
