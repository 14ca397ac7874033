package exact

import "math/big"

// guard is how many bits ExpNeg works with beyond those asked for.
const guard = 48

// ExpNeg encloses e^-x for x >= 0; hi-lo is at most 2.
//
// It works at precision p = n+48 and reduces to r = x/2ᵏ < 2⁻¹⁶. The Taylor sum S of e^r, every step rounded down, misses
// less than 3 units a term (one for the term's own rounding, at most one for that of r, and less than one inherited
// from the term before, shrunk by r) and a tail of less than 8; so e^r lies in [S, S+4·terms+8]. Its reciprocal is then
// squared k times, rounded outwards. Each squaring doubles the relative width. There are at most p/16+2 terms, so that it begins
// below n/4+32 units, and k <= 18+log2(n), because larger x are answered at once: 48 guard bits leave the result at most 2 units
// wide for n up to 2¹⁴. (Beyond, it would be a wider enclosure, still an enclosure.)
func ExpNeg(x *big.Rat, n uint) (lo, hi *big.Int) {
	if x.Sign() == 0 {
		return power(n), power(n)
	}
	if x.Cmp(new(big.Rat).SetInt64(int64(n))) >= 0 { // e^-x < 2⁻ⁿ
		return new(big.Int), big.NewInt(1)
	}
	p := n + guard
	k := uint(max(0, x.Num().BitLen()-x.Denom().BitLen()+17))
	r := new(big.Int).Div(new(big.Int).Lsh(x.Num(), p), new(big.Int).Lsh(x.Denom(), k))

	// Products have a place of their own: big.Int allocates where a factor is overwritten.
	sum, term, count, product := power(p), power(p), new(big.Int), new(big.Int)
	for term.Sign() > 0 {
		count.Add(count, unit)
		term.Quo(term.Rsh(product.Mul(term, r), p), count)
		sum.Add(sum, term)
	}
	one := power(2 * p)
	hi = CeilQuo(one, sum)
	slack := count.Add(count.Lsh(count, 2), big.NewInt(8))
	lo = FloorQuo(one, sum.Add(sum, slack))
	for range k {
		lo.Rsh(product.Mul(lo, lo), p)
		hi.Add(hi.Rsh(product.Mul(hi, hi), p), unit)
	}
	lo.Rsh(lo, guard)
	hi.Add(hi.Rsh(hi, guard), unit)
	return lo, least(hi, power(n))
}

// unit is never written to.
var unit = big.NewInt(1)

func power(n uint) *big.Int { return new(big.Int).Lsh(big.NewInt(1), n) }

func least(a, b *big.Int) *big.Int {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}
