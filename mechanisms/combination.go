package mechanisms

import (
	"errors"
	"math"
	"math/big"
)

// CombinationParameters say which releases of one integer a [Combination] is made of.
type CombinationParameters struct {
	// L2Squared is the square of the sensitivity, the same for all parts: they are of the same integer. Positive.
	L2Squared *big.Int
	// Parts are the ρ of the releases with independent Gaussian noise, at least one; all positive.
	Parts []PicoRho
	// Rho is the accuracy that is shown, at most the parts' sum: positive.
	Rho PicoRho
}

// Combination is the mean of several Gaussian releases of one integer, each weighed by its ρ, to the nearest integer; made less accurate
// again where less than all of their ρ is to be shown.
//
// Guarantee: what it does with noisy integers is post-processing, so that its loss is that of its parts, Σρᵢ, whatever it shows. The
// variance of part i is Δ²/2ρᵢ: weights ρᵢ are inverse variances, and the mean has the variance Δ²/2Σρᵢ, that of one release for
// Σρᵢ. Noise of variance Δ²/2·(1/ρ - 1/Σρᵢ) on top makes that Δ²/2ρ. Rounding moves the result by at most 1/2, always the same way
// for the same error, because weights add up to 1. Domain: integers of any size. Source: Canonne, Kamath, Steinke 2020, Theorem 4.
type Combination struct {
	parts []*Gaussian
	rhos  []PicoRho
	total *big.Int
	shown *Gaussian // one release of the accuracy that is shown
	extra *Gaussian // nil: as accurate as the parts together
}

var errParts = errors.New("mechanisms: a combination needs releases, and shows no more than they have")

// NewCombination makes the mechanism. It returns an error if a parameter is out of its range.
func NewCombination(p CombinationParameters) (*Combination, error) {
	c := &Combination{rhos: append([]PicoRho(nil), p.Parts...), total: new(big.Int)}
	for _, rho := range p.Parts {
		part, err := NewGaussian(GaussianParameters{L2Squared: p.L2Squared, Rho: rho})
		if err != nil {
			return nil, err
		}
		c.parts = append(c.parts, part)
		c.total.Add(c.total, big.NewInt(int64(rho)))
	}
	if len(c.parts) == 0 || !c.total.IsInt64() || int64(p.Rho) > c.total.Int64() {
		return nil, errParts
	}
	var err error
	if c.shown, err = NewGaussian(GaussianParameters{L2Squared: p.L2Squared, Rho: p.Rho}); err != nil {
		return nil, err
	}
	together := new(big.Rat).SetFrac(new(big.Int).Mul(p.L2Squared, big.NewInt(int64(RhoUnit))), new(big.Int).Lsh(c.total, 1))
	if more := together.Sub(c.shown.variance, together); more.Sign() > 0 {
		c.extra, err = NewGaussian(GaussianParameters{L2Squared: p.L2Squared, Variance: more})
	}
	return c, err
}

// Value is what is shown: weighted is Σ ρᵢ·(noisy integer i), in units of 10⁻¹². The sampler draws the noise on top, if there is any.
func (c *Combination) Value(s *Sampler, weighted *big.Int) *big.Int {
	mean := nearest(weighted, c.total)
	if c.extra == nil {
		return mean
	}
	return c.extra.Draw(s).Release(Seal(mean))
}

// nearest is a/b, b positive, to the nearest integer, halves up.
func nearest(a, b *big.Int) *big.Int {
	n := new(big.Int).Lsh(a, 1)
	return n.Add(n, b).Div(n, new(big.Int).Lsh(b, 1)) // Div rounds down
}

// Name is [DiscreteGaussian]: of the noise that it is made of.
func (c *Combination) Name() Name { return DiscreteGaussian }

// Loss is that of all parts together.
func (c *Combination) Loss() Loss { return Loss{Unbounded: true, Rho: PicoRho(c.total.Int64())} }

// Draw samples the whole error of what is shown.
func (c *Combination) Draw(s *Sampler) Noise {
	weighted := new(big.Int)
	for i, part := range c.parts {
		noise := part.Draw(s).Release(Exact{})
		weighted.Add(weighted, noise.Mul(noise, big.NewInt(int64(c.rhos[i]))))
	}
	return Noise{big: c.Value(s, weighted), drawn: true}
}

// HalfWidth is an integer t with P(|error| > t) <= 1-level, by [SumHalfWidth] of the parts. With e the error before rounding, the
// error is beyond t only if |e| >= t+1/2, which is more than that half width.
func (c *Combination) HalfWidth(level Confidence) *big.Int {
	if len(c.parts) == 1 && c.extra == nil {
		return c.parts[0].HalfWidth(level)
	}
	var terms []Term
	for i, part := range c.parts {
		terms = append(terms, Term{Noise: part, Weight: new(big.Rat).SetFrac(big.NewInt(int64(c.rhos[i])), c.total)})
	}
	if c.extra != nil {
		terms = append(terms, Term{Noise: c.extra, Weight: big.NewRat(1, 1)})
	}
	return ceilFloat(math.Floor(SumHalfWidth(terms, level) + 0.5))
}

// Parameters are the σ² that is shown, before rounding, and Δ.
func (c *Combination) Parameters() Parameters { return c.shown.Parameters() }
