package mechanisms

import (
	"math/big"
	"math/bits"

	"noisegate.example/internal/exact"
)

// laplaceLaw samples the discrete Laplace law P(X=x) ∝ e^(-|x|/b) for any rational scale b > 0, exactly.
//
// With q = e^(-1/b): X is 0 with probability (1-q)/(1+q) = tanh(1/2b). Otherwise it has a fair sign and |X|-1 is
// geometric with ratio q, whose binary digits are independent: digit i is 1 with probability q^2ⁱ/(1+q^2ⁱ) = 1/(1+e^(2ⁱ/b)),
// because P(G = Σ dᵢ2ⁱ) ∝ Π (q^2ⁱ)^dᵢ (used for noise by Dwork, Kenthapadi, McSherry, Mironov, Naor 2006).
// Digits above the lowest `width` form a geometric number of their own with ratio e^(-2^width/b), almost always 0.
//
// Nothing is rejected and drawn again, so that the time hardly depends on the value, and a coin is an integer comparison:
// the first byte of each probability is compared with a random byte, eight coins at once; one coin in 256 needs the next 56
// bits, one in 2⁶⁴ an enclosure of the probability to more digits ([Sampler.decide]). All parameters are prepared
// once; a draw allocates nothing unless the noise does not fit a machine word.
type laplaceLaw struct {
	scale *big.Rat
	zero  coin     // X = 0
	carry coin     // |X|-1 >= 2^width, given X != 0
	digit []coin   // digit i of |X|-1 is 1, given X != 0; len(digit) is width, a multiple of 8
	lead  []uint64 // the digits' first bytes, eight to a word
}

// coin shows true with the law's probability at 2^power/b; first is the first word of that.
type coin struct {
	first uint64
	law   law
	power int
}

// carryAt bounds the ratio 2^width/b from below: a carry has a probability of at most e^-11.
const carryAt = 11

// smallWidth is the largest width whose values, with up to 63 carries, fit int64.
const smallWidth = 56

func newLaplaceLaw(scale *big.Rat) *laplaceLaw {
	reach := fixed(new(big.Rat).Mul(scale, big.NewRat(carryAt, 1)), 0, exact.CeilQuo)
	width := max(1, (reach.BitLen()+7)/8) * 8 // 2^width > 11b
	l := &laplaceLaw{scale: scale, digit: make([]coin, width), lead: make([]uint64, width/8)}
	// All coins follow from one enclosure of q; q^2ⁱ by repeated squaring, which doubles its relative width, so width bits more.
	n := uint(192 + width)
	lo, hi := exact.ExpNeg(l.exponent(0), n)
	l.zero = l.coinBetween(lawTanhHalf, 0, tanhHalfOf(hi, n, exact.FloorQuo), tanhHalfOf(lo, n, exact.CeilQuo), n)
	for i := range l.digit {
		l.digit[i] = l.coinBetween(lawLogistic, i, logisticOf(lo, n, exact.FloorQuo), logisticOf(hi, n, exact.CeilQuo), n)
		l.lead[i/8] |= l.digit[i].first >> 56 << (8 * (i % 8))
		lo.Rsh(lo.Mul(lo, lo), n)
		hi.Add(hi.Rsh(hi.Mul(hi, hi), n), bigOne)
	}
	l.carry = l.coinBetween(lawExp, width, lo, hi, n)
	return l
}

// coinBetween is a coin whose probability is in [lo, hi]/2ⁿ. Where that leaves its first word open it is computed by itself.
func (l *laplaceLaw) coinBetween(law law, power int, lo, hi *big.Int, n uint) coin {
	if first, ok := commonFirst64(lo, hi, n); ok {
		return coin{first: first, law: law, power: power}
	}
	return l.newCoin(law, power)
}

func (l *laplaceLaw) newCoin(law law, power int) coin {
	return coin{first: first64(law.at(l.exponent(power))), law: law, power: power}
}

// exponent is 2^power/b.
func (l *laplaceLaw) exponent(power int) *big.Rat {
	x := new(big.Rat).SetInt(one(uint(power)))
	return x.Quo(x, l.scale)
}

// draw samples the law.
func (l *laplaceLaw) draw(s *Sampler) Noise {
	if len(l.digit) > smallWidth {
		return l.drawBig(s)
	}
	head := s.word() // bytes: 7 decides zero, 6 decides the carry, the lowest bit is the sign
	isZero := l.toss(s, byte(head>>56), l.zero)
	carry := l.toss(s, byte(head>>48), l.carry)
	var magnitude uint64
	for i := range l.lead {
		magnitude |= uint64(l.eight(s, i)) << (8 * i)
	}
	if carry {
		return l.carried(s, new(big.Int).SetUint64(magnitude), isZero, head&1 == 1)
	}
	value := int64(magnitude) + 1
	if isZero {
		value = 0
	}
	if head&1 == 1 {
		value = -value
	}
	return Noise{small: value, drawn: true}
}

// drawBig is draw for scales whose noise does not fit a machine word.
func (l *laplaceLaw) drawBig(s *Sampler) Noise {
	head := s.word()
	isZero := l.toss(s, byte(head>>56), l.zero)
	carry := l.toss(s, byte(head>>48), l.carry)
	magnitude := new(big.Int)
	for i := len(l.lead) - 1; i >= 0; i-- {
		magnitude.Or(magnitude.Lsh(magnitude, 8), big.NewInt(int64(l.eight(s, i))))
	}
	if carry {
		return l.carried(s, magnitude, isZero, head&1 == 1)
	}
	return signed(magnitude, isZero, head&1 == 1)
}

// carried finishes a draw whose magnitude exceeds the digits: by memorylessness, further carries are independent coins.
func (l *laplaceLaw) carried(s *Sampler, magnitude *big.Int, isZero, negative bool) Noise {
	step := one(uint(len(l.digit)))
	magnitude.Add(magnitude, step)
	for s.flip(l.carry.first, l.carry.law.at(l.exponent(l.carry.power))) {
		magnitude.Add(magnitude, step)
	}
	return signed(magnitude, isZero, negative)
}

// signed is the noise ±(magnitude+1), or 0.
func signed(magnitude *big.Int, isZero, negative bool) Noise {
	if isZero {
		return Noise{drawn: true}
	}
	magnitude.Add(magnitude, big.NewInt(1))
	if negative {
		magnitude.Neg(magnitude)
	}
	if magnitude.IsInt64() {
		return Noise{small: magnitude.Int64(), drawn: true}
	}
	return Noise{big: magnitude, drawn: true}
}

// eight tosses the coins of digits 8i to 8i+7 at once.
func (l *laplaceLaw) eight(s *Sampler, i int) byte {
	below, ties := compareBytes(s.word(), l.lead[i])
	for ; ties != 0; ties &= ties - 1 {
		at := bits.TrailingZeros64(ties)
		digit := 8*i + at/8
		if l.tossRest(s, l.digit[digit]) {
			below |= 1 << at
		}
	}
	return byte((below >> 7) * 0x0102040810204080 >> 56) // gathers the eight flags into a byte
}

// compareBytes compares two words byte by byte: the top bit of a byte is set in below where w's byte is smaller, in ties
// where they are equal.
func compareBytes(w, t uint64) (below, ties uint64) {
	const high = 0x8080808080808080
	// Smaller: the top bit decides, or the top bits agree and the lower seven do (no borrow crosses bytes).
	below = ((^w & t) | (^(w ^ t) & ^((w | high) - (t &^ high)))) & high
	// Equal: no bit differs. The sum carries into the top bit of every byte that has a lower bit set.
	differ := w ^ t
	ties = ^(((differ &^ high) + ^uint64(high)) | differ) & high
	return below, ties
}

// toss decides a coin by a random byte and, if that does not suffice, more.
func (l *laplaceLaw) toss(s *Sampler, b byte, c coin) bool {
	if lead := byte(c.first >> 56); b != lead {
		return b < lead
	}
	return l.tossRest(s, c)
}

// tossRest decides a coin whose first random byte equals that of its probability.
func (l *laplaceLaw) tossRest(s *Sampler, c coin) bool {
	const rest = 1<<56 - 1
	if w := s.word() & rest; w != c.first&rest {
		return w < c.first&rest
	}
	return s.decide(c.first, c.law.at(l.exponent(c.power)))
}
