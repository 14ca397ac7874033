package mechanisms

import (
	"errors"
	"math/big"
	"strconv"

	"noisegate.example/internal/exact"
)

// DelayParameters are the parameters of a random delay. Times are whole numbers of steps of some clock.
type DelayParameters struct {
	Unit    int64       // how much one unit can change the time that is to be hidden; positive
	Epsilon PicoEpsilon // the price, positive
	Delta   AttoDelta   // likewise; in (0, 1), and at most ε
}

// Delay is a delay that hides how long something took: s + X for discrete Laplace X, P(X=x) ∝ q^|x| with q =
// e^(-ε/Unit), under the condition |X| <= s, where the shift s is the least, from Unit on, with P(X < Unit-s) <= δ. It
// is never negative.
//
// Guarantee: t + delay is (ε, δ)-DP with respect to t, if one unit changes the whole number t by at most Unit: on the
// common support of two such laws their ratio is within e^±ε, and outside it either has at most δ, at opposite ends. As
// the conditioned laws are mirror images of each other they have the same normalisation, so that outside an event of probability δ this is
// a pure mechanism, hence ε·tanh(ε/2)-zCDP. Sampler: exact; discrete Laplace noise, drawn again while it is beyond s. Source: Ratliff,
// Vadhan 2024 (arXiv 2409.05623), timing-private delay programs. The proof is in docs/guarantees.md.
type Delay struct {
	parameters DelayParameters
	shift      int64
	law        lazyLaw[laplaceLaw]
}

var errDelay = errors.New("mechanisms: no delay of fewer than 2⁵⁰ steps hides that much at this price")

// maxShift keeps delays far from overflow.
const maxShift = 1 << 50

// NewDelay makes the mechanism. It returns an error if a parameter is out of its range.
func NewDelay(p DelayParameters) (*Delay, error) {
	switch {
	case p.Unit <= 0 || p.Unit > maxShift:
		return nil, errSensitivity
	case p.Epsilon <= 0 || p.Epsilon > MaxEpsilon:
		return nil, errPrice
	case p.Delta <= 0 || p.Delta >= DeltaUnit || p.Delta.Rat().Cmp(p.Epsilon.Rat()) > 0: // beyond, X would be cut off far inside its scale
		return nil, errDelta
	}
	d := &Delay{parameters: p}
	high := p.Unit
	for !d.covers(high) {
		if high *= 2; high > maxShift {
			return nil, errDelay
		}
	}
	low := p.Unit - 1 // high covers, low does not or may not be taken
	for high-low > 1 {
		if middle := low + (high-low)/2; d.covers(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	d.shift = high
	return d, nil
}

// covers reports whether P(X < Unit-s) <= δ for a shift of s >= Unit, where the enclosures leave no doubt. With n = Unit the probability is
//
//	Σ_{x=s-n+1..s} q^x / (1 + 2·Σ_{x=1..s} q^x)  =  q^(s-n+1)·(1-qⁿ) / (1 + q - 2·q^(s+1)).
func (d *Delay) covers(s int64) bool {
	const p = 2 * chargeBits
	n := d.parameters.Unit
	power := func(k int64) (lo, hi *big.Int) {
		return exact.ExpNeg(new(big.Rat).Mul(d.parameters.Epsilon.Rat(), big.NewRat(k, n)), p)
	}
	_, tail := power(s - n + 1)
	all, _ := power(n)
	first, _ := power(1)
	_, last := power(s + 1)
	numerator := new(big.Int).Mul(tail, new(big.Int).Sub(one(p), all))
	denominator := new(big.Int).Add(one(p), first)
	denominator.Sub(denominator, last.Lsh(last, 1))
	if denominator.Sign() <= 0 {
		return false
	}
	delta := d.parameters.Delta.Rat()
	// numerator/2ᵖ/denominator <= δ
	left := numerator.Mul(numerator, delta.Denom())
	right := denominator.Mul(denominator, delta.Num())
	return left.Cmp(right.Lsh(right, p)) <= 0
}

// Shift is s: the delay on average, and half of the longest.
func (d *Delay) Shift() int64 { return d.shift }

// Name is [RandomDelay].
func (d *Delay) Name() Name { return RandomDelay }

// Loss is (ε, δ), and ε·tanh(ε/2) outside an event of probability δ.
func (d *Delay) Loss() Loss {
	p := d.parameters
	return Loss{Epsilon: p.Epsilon, Rho: rhoOfPure(p.Epsilon.Rat()), Delta: p.Delta}
}

// Draw samples one delay, from 0 to twice the shift. It needs no data.
func (d *Delay) Draw(s *Sampler) int64 {
	law := d.law.get(func() *laplaceLaw {
		return newLaplaceLaw(scaleFor(big.NewInt(d.parameters.Unit), d.parameters.Epsilon))
	})
	for {
		if x := law.draw(s); x.big == nil && -d.shift <= x.small && x.small <= d.shift {
			return d.shift + x.small
		}
	}
}

// Parameters are Unit as sensitivity, ε and δ.
func (d *Delay) Parameters() Parameters {
	return Parameters{Mechanism: RandomDelay, Sensitivity: strconv.FormatInt(d.parameters.Unit, 10), Epsilon: d.parameters.Epsilon.String(),
		Delta: d.parameters.Delta.String()}
}
