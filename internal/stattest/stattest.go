// Package stattest holds the statistical tests of Noisegate: goodness of fit of samplers, and certified lower bounds on the
// privacy loss of a mechanism that is seen only through its outputs.
//
// It knows counts and probabilities. It does not know mechanisms, queries or how the counts were gathered.
//
// Every test names the probability with which it rejects something correct, so that a red build is a finding and not bad luck.
package stattest

import (
	"errors"
	"math"

	"gonum.org/v1/gonum/mathext"
)

// FalseAlarm is the probability with which a test may reject what is correct.
type FalseAlarm float64

// PerTest is the rate of the repository's tests: a thousand verdicts of one run together go wrong once in a million runs.
const PerTest FalseAlarm = 1e-9

// GaussianBeyond bounds the probability that one draw of Gaussian noise, continuous or discrete, lies beyond a margin
// on one side: e^(-margin²/2σ²) (Canonne, Kamath, Steinke 2020, Proposition 25: the discrete law is sub-Gaussian with
// the same σ).
func GaussianBeyond(sigma, margin float64) FalseAlarm {
	return FalseAlarm(math.Exp(-margin * margin / (2 * sigma * sigma)))
}

// Exceeds reports whether a test whose parts go wrong with these probabilities goes wrong more often than [PerTest].
func Exceeds(parts ...FalseAlarm) bool {
	var all FalseAlarm
	for _, p := range parts {
		all += p
	}
	return all > PerTest
}

// minExpected is the smallest expected count of a cell; smaller ones are pooled, so that the chi-square law holds (Cochran 1952 asks
// for 5; far in the tail, more is safer).
const minExpected = 25

var errShape = errors.New("stattest: counts and probabilities differ in number, or are too few to test")

// Fit is the outcome of a goodness-of-fit test.
type Fit struct {
	Statistic float64
	Freedom   int     // degrees of freedom after pooling
	P         float64 // probability of a statistic at least this large if the law is right, for many draws
	// Bound is what a law that is right reaches at most, for every number of draws: the divergence of the counted shares
	// from the law, D = Σ count·ln(count/expected), is that large with a probability of at most e^-D·(e·D/Freedom)^Freedom
	// (Agrawal 2020, Theorem 1.2). P is exact in the limit only, and far in the tail by much too small.
	Bound FalseAlarm
}

// Rejects reports whether the law is rejected at a rate of false alarms.
func (f Fit) Rejects(rate FalseAlarm) bool { return f.Bound < rate }

// divergenceBound is [Fit.Bound] of a divergence D.
func divergenceBound(d float64, freedom int) FalseAlarm {
	f := float64(freedom)
	if d <= f {
		return 1
	}
	return FalseAlarm(math.Exp(-d + f*(1+math.Log(d/f))))
}

// ChiSquare tests whether counts were drawn from the law given by probabilities (Pearson 1900). What the probabilities
// leave to 1 belongs to one more cell, in which nothing was counted: callers who truncate a law append the rest themselves.
// Cells with fewer than 25 expected counts are pooled.
func ChiSquare(counts []int64, probabilities []float64) (Fit, error) {
	if len(counts) != len(probabilities) {
		return Fit{}, errShape
	}
	var draws, mass float64
	for i, c := range counts {
		draws += float64(c)
		mass += probabilities[i]
	}
	var fit Fit
	var pooledCount, pooledMass, divergence float64
	cells := 0
	add := func(count, expected float64) {
		fit.Statistic += (count - expected) * (count - expected) / expected
		if count > 0 {
			divergence += count * math.Log(count/expected)
		}
		cells++
	}
	for i, p := range probabilities {
		if p*draws < minExpected {
			pooledCount += float64(counts[i])
			pooledMass += p
			continue
		}
		add(float64(counts[i]), p*draws)
	}
	pooledMass += math.Max(0, 1-mass)
	switch expected := pooledMass * draws; {
	case expected >= minExpected:
		add(pooledCount, expected)
	case pooledCount > expected+10*math.Sqrt(expected)+20:
		// A Poisson count this far above an expectation below 25 has a probability below 1e-12: impossible values were drawn.
		return Fit{Statistic: math.Inf(1), Freedom: max(1, cells-1)}, nil
	}
	if cells < 2 {
		return Fit{}, errShape
	}
	fit.Freedom = cells - 1
	fit.P = mathext.GammaIncRegComp(float64(fit.Freedom)/2, fit.Statistic/2)
	fit.Bound = divergenceBound(divergence, fit.Freedom)
	return fit, nil
}

// Trials is how often an event was seen.
type Trials struct{ Hits, Draws int64 }

// Between bounds the probability of an event: it lies outside [lo, hi] with a probability of at most 2·side, side on each side (Clopper,
// Pearson 1934; exact for every number of draws).
func (t Trials) Between(side FalseAlarm) (lo, hi float64) {
	hits, draws := float64(t.Hits), float64(t.Draws)
	lo, hi = 0, 1
	if t.Hits > 0 {
		lo = mathext.InvRegIncBeta(hits, draws-hits+1, float64(side))
	}
	if t.Hits < t.Draws {
		hi = mathext.InvRegIncBeta(hits+1, draws-hits, 1-float64(side))
	}
	return lo, hi
}

// Evidence is what was seen of one event on two neighbouring datasets. The event must have been fixed before the draws were
// made: chosen on other draws, or by thought.
type Evidence struct {
	On    Trials  // on the dataset where the event is more frequent
	Off   Trials  // on its neighbour
	Delta float64 // the δ of the claim
}

// EpsilonAtLeast is a certified lower bound on ε: a mechanism that is (ε, Delta)-DP gives a larger one with a probability of at
// most rate. P(On) <= e^ε·P(Off) + δ, with both probabilities at the ends of their intervals (Bichsel, Steffen,
// Bogunovic, Vechev 2021).
func (e Evidence) EpsilonAtLeast(rate FalseAlarm) float64 {
	p, _ := e.On.Between(rate / 2)
	_, q := e.Off.Between(rate / 2)
	if p <= e.Delta {
		return 0
	}
	return math.Max(0, math.Log((p-e.Delta)/q))
}

// RhoAtLeast is a certified lower bound on ρ: a mechanism that is ρ-zCDP gives a larger one with a probability of at most rate.
// Looking at one event only is post-processing, so the Rényi divergence between the two ways it may turn out is at most
// α·ρ, for every order α and in both directions (Bun, Steinke 2016). Delta has no part in it.
func (e Evidence) RhoAtLeast(rate FalseAlarm) float64 {
	p, _ := e.On.Between(rate / 2)
	_, q := e.Off.Between(rate / 2)
	if p <= q {
		return 0
	}
	most := 0.0
	for order := 1.001; order < 1000; order = 1 + (order-1)*1.25 { // any order gives a bound; the best of these is good enough
		most = max(most, renyi(order, p, q)/order, renyi(order, q, p)/order)
	}
	return most
}

// renyi is the Rényi divergence of an order above 1 between two coins, with 0 < q < 1.
func renyi(order, p, q float64) float64 {
	term := func(p, q float64) float64 { return order*math.Log(p) + (1-order)*math.Log(q) }
	a, b := term(p, q), term(1-p, 1-q)
	high, low := max(a, b), min(a, b)
	return (high + math.Log1p(math.Exp(low-high))) / (order - 1)
}
