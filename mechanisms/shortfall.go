package mechanisms

import (
	"math"
	"math/big"

	"noisegate.example/internal/exact"
)

// This file bounds how much worse than the best a chosen candidate can be. The bounds depend on no score: they hold for all data.

// shortfall is the largest whole g for which a score g+1 or more below the best may be chosen with a probability of at most miss, where
// each candidate so far below is chosen with at most weight·e^(-rate·gap), and there are others of them.
func shortfall(rate *big.Rat, others, weight, miss float64) *big.Int {
	if others*weight <= miss {
		return new(big.Int)
	}
	gap := math.Log(others*weight/miss) / exact.Float(rate)
	least := ceilFloat(gap * (1 + 1e-12)) // from here on it is rare enough
	return least.Sub(least, bigOne)
}

// odds is the weight that all bad candidates together may have against the best one's, to be chosen with a probability of miss.
func odds(miss float64) float64 { return miss / (1 - miss) }

// Shortfall is how far below the best score that of the chosen candidate is at most, with the probability level: the weights of the
// others, relative to the best one's, add up to no more than odds (McSherry, Talwar 2007, Lemma 7).
func (m *Exponential) Shortfall(candidates int, level Confidence) *big.Int {
	return m.shortfall(candidates, 1-float64(level))
}

func (m *Exponential) shortfall(candidates int, miss float64) *big.Int {
	return shortfall(m.rate, float64(candidates-1), 1, odds(miss))
}

// Shortfall is how far below the best score that of the chosen candidate is at most, with the probability level. A candidate is chosen
// only if it comes before the best one, which ends the search, and its coin shows true: with half of e^(-rate·gap) at most.
func (m *PermuteAndFlip) Shortfall(candidates int, level Confidence) *big.Int {
	return m.shortfall(candidates, 1-float64(level))
}

func (m *PermuteAndFlip) shortfall(candidates int, miss float64) *big.Int {
	return shortfall(m.rate, float64(candidates-1), 0.5, miss)
}

// Shortfall is how far below the best score that of the chosen candidate is at most, with the probability level: if none of the
// candidates has noise beyond half of it on the wrong side.
func (m *NoisyMax) Shortfall(candidates int, level Confidence) *big.Int {
	return m.shortfall(candidates, 1-float64(level))
}

func (m *NoisyMax) shortfall(candidates int, miss float64) *big.Int {
	half := shortfall(m.rate, float64(candidates), 1, miss)
	return half.Lsh(half, 1)
}

// Shortfall is how far below any candidate that was passed over each chosen one is at most, all of them with the probability level: each
// pick fails with a k-th of what is left to 1.
func (m *TopK) Shortfall(candidates int, level Confidence) *big.Int {
	return m.each.shortfall(candidates, (1-float64(level))/float64(m.picks.K))
}

// RankError is how many rows the rank of the chosen point is at most away from the rank that was looked for, with the
// probability level. There always is a point of that rank: each point's ranks begin where those of the last one end,
// from 0 to the number of rows.
func (m *Quantile) RankError(level Confidence) *big.Rat {
	return new(big.Rat).SetFrac(m.each.Shortfall(int(m.parameters.Grid), level), m.scale)
}
