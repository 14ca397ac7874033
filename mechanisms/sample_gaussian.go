package mechanisms

import (
	"math/big"
	"math/bits"

	"noisegate.example/internal/exact"
)

// gaussianLaw samples the discrete Gaussian law P(X=x) ∝ e^(-x²/2σ²) for any rational σ² > 0, exactly: Algorithm 3 of
// Canonne, Kamath, Steinke 2020 (arXiv 2004.00010). With t = floor(σ)+1, a discrete Laplace proposal Y of scale t is accepted
// with probability e^-γ, γ = (|Y| - σ²/t)²/2σ²; about three in four are, and about half for small σ.
//
// e^-γ is first computed in 64-bit fixed point with a proven error bound; a random word within that bound of it (one in 2³⁷) is
// decided exactly from the rational γ by [Sampler.decide], which continues the same random expansion.
type gaussianLaw struct {
	variance *big.Rat
	proposal *laplaceLaw
	t        *big.Int

	// Fixed point: |Y|/t = |Y|·over/2^overShift; centre is σ²/t² (57 fraction bits); t²/2σ² = spread/2^spreadShift.
	fast        bool
	over        uint64
	overShift   uint
	centre      uint64
	spread      uint64
	spreadShift uint
}

// minFastVariance and maxFastScale bound where the error analysis of [gaussianLaw.exponent] holds.
var minFastVariance = big.NewRat(1, 1<<20)

const maxFastScaleBits = 56

func newGaussianLaw(variance *big.Rat) *gaussianLaw {
	floorVariance := new(big.Int).Quo(variance.Num(), variance.Denom())
	t := new(big.Int).Sqrt(floorVariance) // floor(σ) = floor(sqrt(floor(σ²)))
	t.Add(t, big.NewInt(1))
	g := &gaussianLaw{variance: variance, proposal: newLaplaceLaw(new(big.Rat).SetInt(t)), t: t}
	if t.BitLen() > maxFastScaleBits || variance.Cmp(minFastVariance) < 0 {
		return g
	}
	g.fast = true
	tRat := new(big.Rat).SetInt(t)
	g.over, g.overShift = normalised(new(big.Rat).Inv(tRat))
	square := new(big.Rat).Mul(tRat, tRat)
	g.centre = fixed(new(big.Rat).Quo(variance, square), 57, exact.FloorQuo).Uint64()
	g.spread, g.spreadShift = normalised(square.Quo(square, new(big.Rat).Add(variance, variance)))
	return g
}

// normalised is x as m·2^-shift with 2⁶³ <= m < 2⁶⁴, rounded down; x < 2⁶³.
func normalised(x *big.Rat) (m uint64, shift uint) {
	shift = uint(64 - x.Num().BitLen() + x.Denom().BitLen())
	f := fixed(x, shift, exact.FloorQuo)
	if f.BitLen() > 64 {
		shift--
		f = fixed(x, shift, exact.FloorQuo)
	}
	return f.Uint64(), shift
}

// draw samples the law.
func (g *gaussianLaw) draw(s *Sampler) Noise {
	for {
		y := g.proposal.draw(s)
		w := s.word()
		if g.fast && y.big == nil {
			magnitude := uint64(max(y.small, -y.small))
			p := expNeg(g.exponent(magnitude))
			switch {
			case w < p && p-w > errorBound:
				return y
			case w > p && w-p > errorBound:
				continue
			}
		}
		if s.decide(w, lawExp.at(g.exactExponent(y))) {
			return y
		}
	}
}

// errorBound is how far, in units of 2⁻⁶⁴, the fixed-point probability may be from e^-γ: 2⁻³⁸.
//
// With v = |Y|/t, c = σ²/t² and κ = t²/2σ² (1/2 < κ < 2²⁰), in units of 2⁻⁵⁷: v is too small by less than 3 (its product is cut,
// and over is off by one, times |Y|·2^-overShift·2⁵⁷ <= 2), c by less than 1, so that d = |v-c| is off by 3 at most. κd² is then
// off by 6κd, by 2κd for cutting κd, and by less than 3 for the rest. Where e^-γ matters (γ < 64), κd = sqrt(κγ) < 2¹³, so
// that γ is off by less than 2⁻⁴⁰, and e^-γ by no more; beyond, both are below 2⁻⁹¹. expNeg adds less than 2⁻⁵⁴.
const errorBound = 1 << 26

// exponent is γ with 57 fraction bits, saturated below 128.
func (g *gaussianLaw) exponent(magnitude uint64) uint64 {
	const saturated = 1<<64 - 1
	hi, lo := bits.Mul64(magnitude, g.over)
	v, ok := shiftRight(hi, lo, g.overShift-57)
	if !ok {
		return saturated
	}
	d := max(v, g.centre) - min(v, g.centre)
	scaled, _ := bits.Mul64(d, g.spread)
	hi, lo = bits.Mul64(scaled, d)
	gamma, ok := shiftRight(hi, lo, g.spreadShift-7)
	if !ok {
		return saturated
	}
	return gamma
}

// shiftRight is (hi·2⁶⁴+lo) >> n for n < 64, if it fits a word.
func shiftRight(hi, lo uint64, n uint) (uint64, bool) {
	if hi>>n != 0 {
		return 0, false
	}
	return hi<<(64-n) | lo>>n, true
}

// exactExponent is γ = (|Y|·t - σ²)²/(2σ²t²).
func (g *gaussianLaw) exactExponent(y Noise) *big.Rat {
	magnitude := y.big
	if magnitude == nil {
		magnitude = big.NewInt(y.small)
	}
	distance := new(big.Rat).SetInt(new(big.Int).Mul(new(big.Int).Abs(magnitude), g.t))
	distance.Sub(distance, g.variance)
	distance.Mul(distance, distance)
	scale := new(big.Rat).SetInt(new(big.Int).Mul(g.t, g.t))
	scale.Mul(scale, new(big.Rat).Add(g.variance, g.variance))
	return distance.Quo(distance, scale)
}

// expNeg is e^-x for x with 57 fraction bits, as a multiple of 2⁻⁶⁴ (2⁶⁴-1 for 1), off by less than 2⁻⁵⁴.
//
// x·log2(e) = k + f, and 2^-f is its Taylor series in f·ln(2) up to degree 17: the tail is below ln(2)¹⁸/18! < 2⁻⁶², the 17
// roundings below 2⁻⁵⁹, and y = k+f is off by less than one unit of 2⁻⁵⁶ and 128 units of 2⁻⁶³.
func expNeg(x uint64) uint64 {
	const log2e = 0xb8aa3b295c17f0bb // log2(e)·2⁶³, rounded down
	y, _ := bits.Mul64(x, log2e)     // 56 fraction bits
	k, f := y>>56, y<<8
	if k >= 64 {
		return 0
	}
	sum := uint64(0)
	for i := len(ln2Powers) - 1; i >= 0; i-- {
		product, _ := bits.Mul64(f, ln2Powers[i]-sum)
		sum = product
	}
	// sum is 1 - 2^-f, alternating series in Horner's form.
	return -max(sum, 1) >> k
}

// ln2Powers are ln(2)ʲ/j!, j = 1, 2, ..., as multiples of 2⁻⁶⁴, rounded down.
var ln2Powers = [...]uint64{
	0xb17217f7d1cf79ab,
	0x3d7f7bff058b1d50,
	0x0e35846b82505fc5,
	0x0276556df749cee5,
	0x005761ff9e299cc4,
	0x000a184897c363c3,
	0x0000ffe5fe2c4586,
	0x0000162c0223a5c8,
	0x000001b5253d395e,
	0x0000001e4cf5158b,
	0x00000001e8cac735,
	0x000000001c3bd650,
	0x0000000001816193,
	0x0000000000131496,
	0x000000000000e1b7,
	0x00000000000009c7,
	0x0000000000000066,
}
