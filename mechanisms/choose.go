package mechanisms

import (
	"math/big"
	"math/bits"
	"sort"
)

// This file chooses among candidates with weights e^(-rate·gap), exactly: the common ground of the selection mechanisms.

// decay is the family of probabilities e^(-rate·n) for integers n >= 0.
type decay struct {
	rate *big.Rat
	// rate = m/2^shift in fixed point; steep rates (128 and more) have no fixed point, all of their probabilities but the first
	// being below 2⁻¹⁸⁴.
	m     uint64
	shift uint
	steep bool
}

const steepRate = 128

func newDecay(rate *big.Rat) decay {
	d := decay{rate: rate}
	if d.steep = rate.Cmp(big.NewRat(steepRate, 1)) >= 0; !d.steep {
		d.m, d.shift = normalised(rate)
	}
	return d
}

// decayError is how far, in units of 2⁻⁶⁴, approximate may be from the probability: where rate·n is below 64, it is cut by three units of
// 2⁻⁵⁷ (one each for m and n, whose relative errors are 2⁻⁶³, and one for the product), which is less than 2⁹ units, and expNeg is
// off by less than 2¹⁰.
const decayError = 1 << 11

// approximate is e^(-rate·n) as a multiple of 2⁻⁶⁴.
func (d decay) approximate(n *big.Int) uint64 {
	switch {
	case n.Sign() == 0:
		return 1<<64 - 1
	case d.steep:
		return 0
	}
	top, up := n, 0
	if up = n.BitLen() - 64; up > 0 {
		top = new(big.Int).Rsh(n, uint(up))
	}
	hi, lo := bits.Mul64(top.Uint64(), d.m)
	down := int(d.shift) - 57 - max(up, 0)
	if down < 0 {
		return 0 // the product is at least 2¹²⁶
	}
	if down >= 64 {
		hi, lo, down = 0, hi, down-64
	}
	x, ok := shiftRight(hi, lo, uint(down))
	if !ok {
		return 0
	}
	return expNeg(x)
}

// exact encloses e^(-rate·n).
func (d decay) exact(n *big.Int) enclosure {
	return lawExp.at(new(big.Rat).Mul(d.rate, new(big.Rat).SetInt(n)))
}

// survives is a coin that shows true with probability e^(-rate·n).
func (s *Sampler) survives(d decay, n *big.Int) bool {
	w, p := s.word(), d.approximate(n)
	switch {
	case w < p && p-w > decayError:
		return true
	case w > p && w-p > decayError:
		return false
	}
	return s.decide(w, d.exact(n))
}

// slot is a number of candidates with the same score, which is gap below the best one.
type slot struct {
	count uint64
	gap   *big.Int
}

// choose picks a slot with probability proportional to count·e^(-rate·gap). Counts add up to less than 2⁶².
//
// It inverts the cumulative distribution at a uniform real u. Weights are first enclosed in fixed point; unless u is within
// the enclosures' width of a boundary (about k·2⁻⁵² for k slots), that decides. Otherwise u is continued, and the weights are
// enclosed more tightly, until there is no doubt.
func (s *Sampler) choose(d decay, slots []slot) int {
	w := s.word()
	if i, ok := chooseFast(d, slots, w); ok {
		return i
	}
	u := new(big.Int).SetUint64(w)
	for n := uint(64); ; n += 64 {
		if i, ok := chooseExact(d, slots, u, n); ok {
			return i
		}
		u.Or(u.Lsh(u, 64), new(big.Int).SetUint64(s.word()))
	}
}

// span encloses a sum of weights.
type span struct{ lo, hi *big.Int }

// between says whether every x in [u, u+1)/2ⁿ lies between the boundaries a/w and b/w, a, b and w being sums over the first
// slots, one slot more, and all. As w = a + rest, a/w is largest for the largest a and the smallest rest.
func between(u *big.Int, n uint, a, b, w span) bool {
	compare := func(part, rest, u *big.Int) int { // part/(part+rest) with u/2ⁿ
		whole := new(big.Int).Add(part, rest)
		return new(big.Int).Lsh(part, n).Cmp(whole.Mul(whole, u))
	}
	return compare(a.hi, new(big.Int).Sub(w.lo, a.lo), u) <= 0 &&
		compare(b.lo, new(big.Int).Sub(w.hi, b.hi), new(big.Int).Add(u, bigOne)) >= 0
}

func chooseExact(d decay, slots []slot, u *big.Int, n uint) (int, bool) {
	sums := make([]span, len(slots)+1)
	sums[0] = span{new(big.Int), new(big.Int)}
	for i, c := range slots {
		lo, hi := d.exact(c.gap)(n + 128)
		count := new(big.Int).SetUint64(c.count)
		sums[i+1] = span{lo.Add(lo.Mul(lo, count), sums[i].lo), new(big.Int).Add(new(big.Int).Mul(hi, count), sums[i].hi)}
	}
	for i := range slots {
		if between(u, n, sums[i], sums[i+1], sums[len(slots)]) {
			return i, true
		}
	}
	return 0, false
}

// chooseFast is chooseExact with weights as multiples of 2⁻⁶³ in 128-bit sums: the slot is found by bisection and then checked.
func chooseFast(d decay, slots []slot, w uint64) (int, bool) {
	const slack = decayError/2 + 1
	lo, hi := make([]wide, len(slots)+1), make([]wide, len(slots)+1)
	for i, c := range slots {
		p := d.approximate(c.gap) >> 1
		lo[i+1] = lo[i].plus(c.count, p-min(p, slack))
		hi[i+1] = hi[i].plus(c.count, p+slack)
	}
	total := lo[len(slots)].big()
	target := total.Rsh(new(big.Int).Mul(total, new(big.Int).SetUint64(w)), 64)
	i := sort.Search(len(slots)-1, func(i int) bool { return lo[i+1].big().Cmp(target) > 0 })
	at := func(i int) span { return span{lo[i].big(), hi[i].big()} }
	return i, between(new(big.Int).SetUint64(w), 64, at(i), at(i+1), at(len(slots)))
}

// wide is a 128-bit unsigned integer.
type wide struct{ hi, lo uint64 }

func (a wide) plus(x, y uint64) wide {
	hi, lo := bits.Mul64(x, y)
	lo, carry := bits.Add64(a.lo, lo, 0)
	hi, _ = bits.Add64(a.hi, hi, carry)
	return wide{hi, lo}
}

func (a wide) big() *big.Int {
	n := new(big.Int).SetUint64(a.hi)
	return n.Or(n.Lsh(n, 64), new(big.Int).SetUint64(a.lo))
}

// gaps are the distances of sealed scores from the best of them. There is at least one score.
func gaps(scores []Exact) []*big.Int {
	best := scores[0].open()
	for _, e := range scores[1:] {
		if v := e.open(); v.Cmp(best) > 0 {
			best = v
		}
	}
	out := make([]*big.Int, len(scores))
	for i, e := range scores {
		out[i] = new(big.Int).Sub(best, e.open())
	}
	return out
}
