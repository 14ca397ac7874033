package pate

import "math"

// This file turns Rényi divergences, and Gaussian noise, into ε at a δ. Results are for display: what is charged is exact.

// ReferenceOrders are the 298 orders of the published analysis: 2 to 100.5 in halves, and a hundred from 100 to 500, evenly spaced in
// their logarithms.
func ReferenceOrders() []float64 {
	var orders []float64
	for x := 2.0; x < 101; x += 0.5 {
		orders = append(orders, x)
	}
	for i := range 100 {
		lo, hi := math.Log10(100), math.Log10(500)
		orders = append(orders, math.Pow(10, lo+float64(i)*(hi-lo)/99))
	}
	return orders
}

// Orders are [ReferenceOrders] and more where budgets are very large (below 2) or very small (above 500).
func Orders() []float64 {
	var orders []float64
	for x := 1.05; x < 1.99; x += 0.05 {
		orders = append(orders, x)
	}
	orders = append(orders, ReferenceOrders()...)
	for x := 512.0; x <= 4096; x *= math.Sqrt2 {
		orders = append(orders, x)
	}
	return orders
}

// conversion turns a divergence at an order into ε at δ.
type conversion func(rdp, order, delta float64) float64

// classic is the conversion of Mironov 2017, Proposition 3.
func classic(rdp, order, delta float64) float64 { return rdp - math.Log(delta)/(order-1) }

// tight is the conversion of Balle et al. 2020 and Canonne, Kamath, Steinke 2020.
func tight(rdp, order, delta float64) float64 {
	return rdp + math.Log1p(-1/order) - (math.Log(delta)+math.Log(order))/(order-1)
}

// best is the smallest ε over the orders, and the order that gives it.
func best(convert conversion, curve, orders []float64, delta float64) (epsilon, order float64) {
	epsilon = math.Inf(1)
	for i, o := range orders {
		if e := convert(curve[i], o, delta); e < epsilon {
			epsilon, order = e, o
		}
	}
	return max(0, epsilon), order
}

// gaussianEpsilon is the exact ε at δ of μ-GDP: a release of sensitivity 1 with Gaussian noise of σ = 1/μ (Balle, Wang 2018):
// δ(ε) = Φ(μ/2-ε/μ) - e^ε·Φ(-μ/2-ε/μ), which falls.
func gaussianEpsilon(mu, delta float64) float64 {
	deltaAt := func(eps float64) float64 {
		first, second := logTail(eps/mu-mu/2), eps+logTail(eps/mu+mu/2)
		return math.Exp(first) * -math.Expm1(second-first)
	}
	if mu == 0 || deltaAt(0) <= delta {
		return 0
	}
	lo, hi := 0.0, 1.0
	for deltaAt(hi) > delta {
		lo, hi = hi, 2*hi
	}
	for range 200 {
		middle := lo + (hi-lo)/2
		if middle == lo || middle == hi {
			break
		}
		if deltaAt(middle) > delta {
			lo = middle
		} else {
			hi = middle
		}
	}
	return hi
}

// strongComposition is the closed form of T releases of LNMax: 4Tγ² + 2γ·√(2T·ln 1/δ) (2017 paper, Theorem 1 in its form for PATE).
func strongComposition(queries, gamma, delta float64) float64 {
	return 4*queries*gamma*gamma + 2*gamma*math.Sqrt(2*queries*math.Log(1/delta))
}
