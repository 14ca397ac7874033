package mechanisms

import (
	"math"
	"math/big"

	"noisegate.example/internal/exact"
)

// ShownCountParameters are the parameters of [ShownCount].
type ShownCountParameters struct {
	Epsilon  PicoEpsilon // price for all the groups of one unit together; either Epsilon or Rho is positive, the other 0
	Rho      PicoRho     // the price in ρ: the largest ε with ε·tanh(ε/2) <= ρ
	Delta    AttoDelta   // likewise; in (0, 1)
	PerGroup *big.Int    // m: by how much one unit moves the count of one group at most; positive
	Total    *big.Int    // N: by how much it moves all counts together at most; at least m
}

// ShownCount releases the counts of groups of a private key, and decides by the same noise which of them are shown: Z is discrete Laplace
// noise of scale N/ε, truncated to [-k, k], and a group is shown iff its noisy count is above k. So a group without rows never is.
//
// Guarantee: (ε, δ)-DP for the groups that are shown with their noisy counts; outside an event of probability δ it is ε-DP, hence
// ε·tanh(ε/2)-zCDP (truncated noise has not the ρ of Laplace noise). k is the least threshold with
//
//	⌊N/m⌋·P(Z > k-m) + P(Z > k-(N mod m)) <= δ.
//
// Proof: where a count moves by d, a noisy value is at most e^(εd/N) times as likely, but for the d values at one end that the noise
// cannot reach from the other count: they have the probability P(Z > k-d). The sum over groups, with d <= m each and N together, is
// largest for ⌊N/m⌋ groups at m and the rest in one, as the tail is convex. To show only what is above k is post-processing.
//
// Domain: non-negative counts. Sampler: exact; draws of discrete Laplace noise until one is in [-k, k]. Source: for one group that one unit
// moves by 1, the k-TSGD of Desfontaines, Voss, Gipson, Mandayam 2022 (arXiv 2006.03684).
type ShownCount struct {
	parameters ShownCountParameters
	scale      *big.Rat // N/ε
	q          *big.Int // e^(-1/scale) from below, of shownBits
	threshold  int64    // k
	law        lazyLaw[laplaceLaw]
}

// maxShown is the largest threshold.
const maxShown = 1 << 50

// NewShownCount makes the mechanism. It returns an error if a parameter is out of its range.
func NewShownCount(p ShownCountParameters) (*ShownCount, error) {
	switch {
	case p.Epsilon < 0 || p.Rho < 0 || !exactlyOne(p.Epsilon > 0, p.Rho > 0):
		return nil, errPrice
	case p.Delta <= 0 || p.Delta >= DeltaUnit:
		return nil, errDelta
	case p.PerGroup == nil || p.PerGroup.Sign() <= 0 || p.Total == nil || p.Total.Cmp(p.PerGroup) < 0:
		return nil, errSensitivity
	}
	if p.Rho > 0 {
		if p.Epsilon = SelectionEpsilon(PermuteAndFlipMechanism, p.Rho); p.Epsilon == 0 {
			return nil, ErrTooSmall
		}
	}
	p.PerGroup, p.Total = new(big.Int).Set(p.PerGroup), new(big.Int).Set(p.Total)
	m := &ShownCount{parameters: p, scale: scaleFor(p.Total, p.Epsilon)}
	m.q, _ = m.power(big.NewInt(1))
	if !p.PerGroup.IsInt64() || p.PerGroup.Int64() > maxShown {
		return nil, errUnsizable
	}
	low := p.PerGroup.Int64() - 1 // too low: a tail from below 0 is at least a half
	high := max(low+1, m.guess())
	for step := int64(1); !m.keeps(high); step *= 2 {
		if high > maxShown {
			return nil, errUnsizable
		}
		low, high = high, high+step
	}
	for step := int64(1); high-step > low; step *= 2 {
		if !m.keeps(high - step) {
			low = high - step
			break
		}
		high -= step
	}
	for high-low > 1 {
		if middle := low + (high-low)/2; m.keeps(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	m.threshold = high
	return m, nil
}

// guess is about the least threshold that keeps to δ, solved in floating point: q^(k+1)·(Σ (q^-d - 1) + 2δ) <= δ·(1+q), for the d as in
// keeps.
func (m *ShownCount) guess() int64 {
	p, rate, delta := m.parameters, 1/exact.Float(m.scale), exact.Float(m.parameters.Delta.Rat())
	whole, rest := new(big.Int).QuoRem(p.Total, p.PerGroup, new(big.Int))
	float := func(v *big.Int) float64 { return exact.Float(new(big.Rat).SetInt(v)) }
	sum := float(whole)*math.Expm1(rate*float(p.PerGroup)) + math.Expm1(rate*float(rest))
	k := math.Log((sum+2*delta)/(delta*(1+math.Exp(-rate)))) / rate
	if !(k < maxShown) { // also if it is not a number
		return maxShown
	}
	return int64(k)
}

// shownBits is the precision at which thresholds are compared with δ: δ is at least 10⁻¹⁸, and 1-e^(-1/b) at least 2⁻¹⁷⁰ or so.
const shownBits = 384

// keeps reports whether a threshold k >= m keeps to δ; a threshold that keeps to it by less than the enclosures' width does not.
func (m *ShownCount) keeps(k int64) bool {
	p := m.parameters
	whole, rest := new(big.Int).QuoRem(p.Total, p.PerGroup, new(big.Int))
	endLo, endHi := m.power(big.NewInt(k + 1))
	sum := new(big.Int) // of the tails, times 1+q-2q^(k+1)
	for _, tail := range []struct{ times, d *big.Int }{{whole, p.PerGroup}, {big.NewInt(1), rest}} {
		if tail.d.Sign() == 0 {
			continue
		}
		from := new(big.Int).Sub(big.NewInt(k+1), tail.d) // q^(k-d+1) - q^(k+1)
		_, hi := m.power(from)
		sum.Add(sum, hi.Mul(hi.Sub(hi, endLo), tail.times))
	}
	below := new(big.Int).Add(one(shownBits), m.q)
	below.Sub(below, endHi.Lsh(endHi, 1))
	delta := p.Delta.Rat()
	return new(big.Int).Mul(sum, delta.Denom()).Cmp(below.Mul(below, delta.Num())) <= 0
}

// power encloses e^(-n/b).
func (m *ShownCount) power(n *big.Int) (lo, hi *big.Int) {
	x := new(big.Rat).SetInt(n)
	return exact.ExpNeg(x.Quo(x, m.scale), shownBits)
}

// Name is [ShownCounts].
func (m *ShownCount) Name() Name { return ShownCounts }

// Loss is (ε, δ) and ε·tanh(ε/2).
func (m *ShownCount) Loss() Loss {
	p := m.parameters
	return Loss{Epsilon: p.Epsilon, Rho: rhoOfPure(p.Epsilon.Rat()), Delta: p.Delta}
}

// Threshold is k.
func (m *ShownCount) Threshold() int64 { return m.threshold }

// Release opens the sealed count, adds noise, and returns the sum if it is shown.
func (m *ShownCount) Release(s *Sampler, count Exact) (noisy *big.Int, shown bool) {
	law, most := m.law.get(func() *laplaceLaw { return newLaplaceLaw(m.scale) }), big.NewInt(m.threshold)
	var z *big.Int
	for z = law.draw(s).Release(Exact{}); z.CmpAbs(most) > 0; {
		z = law.draw(s).Release(Exact{})
	}
	if z.Add(z, count.open()); z.Cmp(most) <= 0 {
		return nil, false
	}
	return z, true
}

// ShownAt is the smallest count at which a group is shown with at least this probability, in (0, 1].
func (m *ShownCount) ShownAt(probability float64) int64 {
	return least(1, 2*m.threshold+1, func(n int64) bool { return m.beyond(m.threshold-n) >= probability })
}

// HalfWidth is the smallest t with P(|Z| > t) <= 1-level: that of the interval of a group so large that it is shown for sure.
func (m *ShownCount) HalfWidth(level Confidence) *big.Int {
	return big.NewInt(least(0, m.threshold, func(t int64) bool { return 2*m.beyond(t) <= 1-float64(level) }))
}

// Interval is the confidence interval of a shown group's count, given its noisy count and that it is shown: the counts under which, of all
// draws that show the group, at least (1-level)/2 are as large, and as many as small. Among shown groups it holds with the probability
// level at least. (Given that it is shown, the noisy count is stochastically larger for a larger count: the law is log-concave.)
func (m *ShownCount) Interval(noisy *big.Int, level Confidence) (lo, hi *big.Int) {
	if !noisy.IsInt64() || noisy.Int64() > math.MaxInt64/4 || noisy.Int64() <= m.threshold {
		w := m.HalfWidth(level)
		return new(big.Int).Sub(noisy, w), new(big.Int).Add(noisy, w)
	}
	y, k, side := noisy.Int64(), m.threshold, (1-float64(level))/2
	first, last := max(1, y-k), y+k
	low := least(first, last, func(n int64) bool { return m.beyond(y-n-1) > side*m.beyond(k-n) })
	// P(Y > y | n, shown) >= 1-side: n is too large.
	high := least(first, last+1, func(n int64) bool { return m.beyond(k-n)-m.beyond(y-n) <= side*m.beyond(k-n) })
	return big.NewInt(low), big.NewInt(max(low, high-1))
}

// beyond is P(Z > j), in floating point.
func (m *ShownCount) beyond(j int64) float64 {
	k, rate := m.threshold, 1/exact.Float(m.scale)
	switch {
	case j >= k:
		return 0
	case j < -k:
		return 1
	case j < 0:
		return 1 - m.beyond(-j-1)
	}
	// (q^(j+1) - q^(k+1)) / (1 + q - 2q^(k+1)) without differences of near numbers.
	numerator := math.Exp(-rate*float64(j+1)) * -math.Expm1(-rate*float64(k-j))
	return numerator / (-math.Expm1(-rate*float64(k+1)) + math.Exp(-rate)*-math.Expm1(-rate*float64(k)))
}

// least is the smallest n in [lo, hi] with a property that all larger ones have, if it holds of hi.
func least(lo, hi int64, holds func(int64) bool) int64 {
	for lo < hi {
		if middle := lo + (hi-lo)/2; holds(middle) {
			hi = middle
		} else {
			lo = middle + 1
		}
	}
	return lo
}

// Parameters are ε, δ, N, m, the scale N/ε and the threshold.
func (m *ShownCount) Parameters() Parameters {
	p := m.parameters
	return Parameters{Mechanism: ShownCounts, Sensitivity: p.Total.String(), PerGroup: p.PerGroup.String(), Scale: m.scale.RatString(),
		Epsilon: p.Epsilon.String(), Delta: p.Delta.String(), Count: m.threshold}
}
