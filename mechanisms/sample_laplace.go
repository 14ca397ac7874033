package mechanisms

import (
	"math/big"
	"math/bits"
)

// laplaceLaw samples the discrete Laplace law P(X=x) ∝ e^(-|x|/b) for any rational scale b > 0, exactly.
//
// With q = e^(-1/b): X is 0 with probability (1-q)/(1+q) = tanh(1/2b). Otherwise it has a fair sign and |X|-1 is
// geometric with ratio q, whose binary digits are independent: digit i is 1 with probability q^2ⁱ/(1+q^2ⁱ) = 1/(1+e^(2ⁱ/b)),
// because P(G = Σ dᵢ2ⁱ) ∝ Π (q^2ⁱ)^dᵢ (used for noise by Dwork, Kenthapadi, McSherry, Mironov, Naor 2006, section 5).
// Digits above the lowest `width` form a geometric number of their own with ratio e^(-2^width/b), almost always 0.
//
// Nothing is rejected and drawn again, so that the time hardly depends on the value, and a coin is an integer comparison:
// the first byte of each probability is compared with a random byte, eight coins at once; one coin in 256 needs the next 56
// bits, one in 2⁶⁴ an enclosure of the probability to more digits ([Sampler.decide]). All parameters are prepared
// once; a draw allocates nothing unless the noise does not fit a machine word.
type laplaceLaw struct {
	scale *big.Rat
	zero  uint64   // first64 of P(X=0)
	carry uint64   // first64 of P(|X|-1 >= 2^width | X≠0)
	digit []uint64 // first64 of P(digit i = 1 | X≠0); len(digit) is width, a multiple of 8
	lead  []uint64 // the first bytes of digit, eight to a word
}

// carryAt bounds the ratio 2^width/b from below: a carry has a probability of at most e^-11.
const carryAt = 11

// smallWidth is the largest width whose values, with up to 63 carries, fit int64.
const smallWidth = 56

func newLaplaceLaw(scale *big.Rat) *laplaceLaw {
	reach := fixed(new(big.Rat).Mul(scale, big.NewRat(carryAt, 1)), 0, ceilQuo)
	width := max(1, (reach.BitLen()+7)/8) * 8 // 2^width > 11b
	rate := new(big.Rat).Inv(scale)
	l := &laplaceLaw{
		scale: scale,
		zero:  first64(lawTanhHalf.at(rate)),
		digit: make([]uint64, width),
		lead:  make([]uint64, width/8),
	}
	l.carry = first64(lawExp.at(l.exponent(width)))

	// q^2ⁱ by repeated squaring of one enclosure of q; each squaring doubles its relative width, so width bits more.
	n := uint(192 + width)
	lo, hi := expNegBounds(rate, n)
	for i := range l.digit {
		first, ok := commonFirst64(logisticOf(lo, n, floorQuo), logisticOf(hi, n, ceilQuo), n)
		if !ok {
			first = first64(lawLogistic.at(l.exponent(i)))
		}
		l.digit[i] = first
		l.lead[i/8] |= first >> 56 << (8 * (i % 8))
		lo.Rsh(lo.Mul(lo, lo), n)
		hi.Add(hi.Rsh(hi.Mul(hi, hi), n), big.NewInt(1))
	}
	return l
}

// exponent is 2ⁱ/b.
func (l *laplaceLaw) exponent(i int) *big.Rat {
	x := new(big.Rat).SetFrac(one(uint(i)), big.NewInt(1))
	return x.Quo(x, l.scale)
}

// draw samples the law.
func (l *laplaceLaw) draw(s *Sampler) Noise {
	if len(l.digit) > smallWidth {
		return l.drawBig(s)
	}
	head := s.word() // bytes: 7 decides zero, 6 decides the carry, the lowest bit is the sign
	isZero := s.settle(byte(head>>56), l.zero, lawTanhHalf, l.scale, -1)
	carry := s.settle(byte(head>>48), l.carry, lawExp, l.scale, len(l.digit))
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
	return Noise{small: value}
}

// drawBig is draw for scales whose noise does not fit a machine word.
func (l *laplaceLaw) drawBig(s *Sampler) Noise {
	head := s.word()
	isZero := s.settle(byte(head>>56), l.zero, lawTanhHalf, l.scale, -1)
	carry := s.settle(byte(head>>48), l.carry, lawExp, l.scale, len(l.digit))
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
	for s.flip(l.carry, lawExp, l.exponent(len(l.digit))) {
		magnitude.Add(magnitude, step)
	}
	return signed(magnitude, isZero, negative)
}

// signed is the noise ±(magnitude+1), or 0.
func signed(magnitude *big.Int, isZero, negative bool) Noise {
	if isZero {
		return Noise{}
	}
	magnitude.Add(magnitude, big.NewInt(1))
	if negative {
		magnitude.Neg(magnitude)
	}
	if magnitude.IsInt64() {
		return Noise{small: magnitude.Int64()}
	}
	return Noise{big: magnitude}
}

// eight tosses the coins of digits 8i to 8i+7 at once.
func (l *laplaceLaw) eight(s *Sampler, i int) byte {
	below, ties := compareBytes(s.word(), l.lead[i])
	for ; ties != 0; ties &= ties - 1 {
		at := bits.TrailingZeros64(ties)
		digit := 8*i + at/8
		if s.settleRest(l.digit[digit], lawLogistic, l.scale, digit) {
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

// settle decides a coin whose first random byte is given. i names the exponent of the coin's law: 2ⁱ/b, or 1/b for -1.
func (s *Sampler) settle(b byte, first uint64, l law, scale *big.Rat, i int) bool {
	if lead := byte(first >> 56); b != lead {
		return b < lead
	}
	return s.settleRest(first, l, scale, i)
}

// settleRest decides a coin whose first random byte equals that of its probability.
func (s *Sampler) settleRest(first uint64, l law, scale *big.Rat, i int) bool {
	const rest = 1<<56 - 1
	if w := s.word() & rest; w != first&rest {
		return w < first&rest
	}
	x := new(big.Rat).SetFrac(one(uint(max(i, 0))), big.NewInt(1))
	return s.decide(first, l.at(x.Quo(x, scale)))
}
