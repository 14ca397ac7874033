package accounting

import "math/big"

// fraction is how many bits after the binary point logarithms are computed with.
const fraction = 128

// lnBounds returns rationals lo <= ln x <= hi, less than 2⁻¹¹⁰ apart for every x between 2⁻²⁰⁰ and 2²⁰⁰. x must be positive.
//
// It writes x = m·2ᵏ with m in [2/3, 4/3], so that ln x = 2·atanh((m-1)/(m+1)) + k·ln 2 with an argument in [-1/5, 1/7], and
// ln 2 = ln(4/3) + ln(3/2) = 2·atanh(1/7) + 2·atanh(1/5). Each atanh is off by less than atanhError units of 2⁻¹²⁸.
func lnBounds(x *big.Rat) (lo, hi *big.Rat) {
	m, k := new(big.Rat).Set(x), x.Num().BitLen()-x.Denom().BitLen()
	scaleByPowerOfTwo(m, -k) // in (1/2, 2)
	if m.Cmp(big.NewRat(4, 3)) > 0 {
		scaleByPowerOfTwo(m, -1)
		k++
	} else if m.Cmp(big.NewRat(2, 3)) < 0 {
		scaleByPowerOfTwo(m, 1)
		k--
	}
	one := big.NewRat(1, 1)
	z := new(big.Rat).Quo(new(big.Rat).Sub(m, one), new(big.Rat).Add(m, one))

	ln2 := new(big.Int).Add(atanhFixed(big.NewRat(1, 7)), atanhFixed(big.NewRat(1, 5)))
	sum := new(big.Int).Mul(ln2, big.NewInt(int64(k)))
	sum.Add(sum, atanhFixed(z))
	sum.Lsh(sum, 1)
	slack := big.NewInt(2 * atanhError * int64(1+2*max(k, -k)))

	unit := new(big.Int).Lsh(big.NewInt(1), fraction)
	lo = new(big.Rat).SetFrac(new(big.Int).Sub(sum, slack), unit)
	hi = new(big.Rat).SetFrac(new(big.Int).Add(sum, slack), unit)
	return lo, hi
}

// atanhError bounds the error of [atanhFixed] in its last place.
//
// With |z| <= 1/5 and all steps rounded down: rounding z costs less than 1/(1-z²) < 1.05. Rounding z² and each power costs
// less than 1 each, and a power's error e follows e' <= e/25 + 1/5 + 1, so it stays below 1.25; divided and rounded down, each term
// is less than 2.25 too small. Terms shrink by 25 or more each, so there are at most 29, and those left out sum to
// less than 1.31. Together less than 1.05 + 29·2.25 + 1.31 < 68.
const atanhError = 68

// atanhFixed is atanh z = Σ z²ʲ⁺¹/(2j+1) in units of 2⁻¹²⁸, for |z| <= 1/5, off by less than atanhError.
func atanhFixed(z *big.Rat) *big.Int {
	power := new(big.Int).Lsh(new(big.Int).Abs(z.Num()), fraction)
	power.Quo(power, z.Denom())
	square := new(big.Int).Mul(power, power)
	square.Rsh(square, fraction)

	sum, term := new(big.Int), new(big.Int)
	for odd := int64(1); power.Sign() > 0; odd += 2 {
		sum.Add(sum, term.Quo(power, big.NewInt(odd)))
		power.Mul(power, square)
		power.Rsh(power, fraction)
	}
	if z.Sign() < 0 {
		sum.Neg(sum)
	}
	return sum
}

func scaleByPowerOfTwo(x *big.Rat, k int) {
	factor := new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), uint(max(k, -k))))
	if k < 0 {
		factor.Inv(factor)
	}
	x.Mul(x, factor)
}
