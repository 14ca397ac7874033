package mechanisms

import (
	"errors"
	"math"
	"math/big"
	"strconv"
	"sync/atomic"

	"noisegate.example/internal/exact"
)

// GroupSelectionParameters are the parameters of private selection of groups.
type GroupSelectionParameters struct {
	Epsilon PicoEpsilon // price for all the groups of one unit together; either Epsilon or Rho is positive, the other 0
	Rho     PicoRho     // the price in ρ: the largest whole ε whose ρ keeps to it (to about nine digits)
	Delta   AttoDelta   // likewise; in (0, 1)
	L0      int64       // groups that one unit may influence; positive
}

// GroupSelection decides which groups of a private key are shown, from the number of units in each.
//
// Guarantee: one unit in at most L0 groups: (ε, δ)-DP for the set of groups that are shown; groups without units never are.
// Domain: non-negative counts in which each unit counts once. A group of n units is shown with the largest probability π(n)
// that any (a, d)-DP rule allows, a = ε/L0, d = δ/L0: π(0) = 0,
//
//	π(n+1) = min{ e^a·π(n) + d,  1 - e^-a·(1-π(n)-d),  1 }
//
// (Desfontaines, Voss, Gipson, Mandayam 2022, arXiv 2006.03684, Theorem 1). Sampler: a uniform real is compared with an
// enclosure of π(n) that is tightened until there is no doubt, so that π(n) is met exactly.
type GroupSelection struct {
	parameters  GroupSelectionParameters
	rate        *big.Rat // a
	tail        *big.Rat // d
	crossover   int64    // last n of the first branch of the minimum
	atCrossover float64  // π there
	certain     int64    // π(n) = 1 from here on at the latest
	// first[n] is the first word of π(n), or 0 where it was not needed yet, for n < min(certain, maxFirst).
	first []atomic.Uint64
}

var (
	errDelta     = errors.New("mechanisms: δ is not in (0, 1)")
	errUnsizable = errors.New("mechanisms: ε and δ are so small that no group could ever be shown")
)

// maxFirst bounds the memory for first words.
const maxFirst = 1 << 12

// maxCertain is the largest number of units that a group may need to be shown for sure.
const maxCertain = 1 << 50

// NewPartitionSelection makes the mechanism. It returns an error if a parameter is out of its range.
func NewPartitionSelection(p GroupSelectionParameters) (*GroupSelection, error) {
	switch {
	case p.Epsilon < 0 || p.Rho < 0 || !exactlyOne(p.Epsilon > 0, p.Rho > 0):
		return nil, errPrice
	case p.Delta <= 0 || p.Delta >= DeltaUnit:
		return nil, errDelta
	case p.L0 <= 0:
		return nil, errSensitivity
	}
	if p.Rho > 0 {
		groups := float64(p.L0)
		p.Epsilon = epsilonFor(p.Rho,
			func(e float64) float64 { return e * math.Tanh(e/(2*groups)) },
			func(e PicoEpsilon) PicoRho { return rhoOfShares(e.Rat(), p.L0) })
		if p.Epsilon == 0 {
			return nil, ErrTooSmall
		}
	}
	share := big.NewRat(1, p.L0)
	g := &GroupSelection{
		parameters: p,
		rate:       new(big.Rat).Mul(p.Epsilon.Rat(), share),
		tail:       new(big.Rat).Mul(p.Delta.Rat(), share),
	}
	a, d := exact.Float(g.rate), exact.Float(g.tail)
	// The theorem's closed form, ln((e^a+2d-1)/((e^a+1)·d))/a, written so that a may be large or small; then corrected exactly.
	crossover := 1 + math.Floor((math.Log((2*d*math.Exp(-a)-math.Expm1(-a))/(1+math.Exp(-a)))-math.Log(d))/a)
	if !(crossover < maxCertain/4) {
		return nil, errUnsizable
	}
	g.crossover = max(1, int64(crossover))
	firstBranchAfter := g.firstBranchAfter()
	for g.crossover > 1 && !firstBranchAfter(g.crossover-1) {
		g.crossover--
	}
	for firstBranchAfter(g.crossover) {
		g.crossover++
	}
	g.atCrossover = g.pi(g.crossover)
	// Beyond the last n with π(n) < 1, by a margin that floating-point error cannot eat: too late is only slower.
	g.certain = g.unitsFor(1)
	g.certain += g.certain/(1<<20) + 2
	g.first = make([]atomic.Uint64, min(g.certain, maxFirst))
	return g, nil
}

// Name is [PartitionSelection].
func (g *GroupSelection) Name() Name { return PartitionSelection }

// Loss is (ε, δ), and ρ for L0 selections of ε/L0 each: outside an event of probability δ (Kairouz, Oh, Viswanath 2015)
// each is a pure mechanism, hence ε/L0·tanh(ε/2L0)-zCDP.
func (g *GroupSelection) Loss() Loss {
	p := g.parameters
	return Loss{Epsilon: p.Epsilon, Rho: rhoOfShares(p.Epsilon.Rat(), p.L0), Delta: p.Delta}
}

// Keep decides whether a group with the sealed number of units is shown.
func (g *GroupSelection) Keep(s *Sampler, units Exact) bool {
	n := units.open()
	w := s.word() // always, so that the randomness used does not depend on the data
	switch {
	case n.Sign() <= 0:
		return false
	case n.Cmp(big.NewInt(g.certain)) >= 0:
		return true
	}
	if first := g.firstWord(n.Int64()); w != first {
		return w < first
	}
	return s.decide(w, g.probability(n.Int64()))
}

func (g *GroupSelection) firstWord(n int64) uint64 {
	if n >= int64(len(g.first)) {
		return first64(g.probability(n))
	}
	first := g.first[n].Load()
	if first == 0 {
		first = first64(g.probability(n))
		g.first[n].Store(first)
	}
	return first
}

// KeepProbability is π(n), for estimates.
func (g *GroupSelection) KeepProbability(n int64) float64 {
	switch {
	case n <= 0:
		return 0
	case n >= g.certain:
		return 1
	}
	return g.pi(n)
}

func (g *GroupSelection) pi(n int64) float64 {
	const precision = 192
	lo, _ := g.probability(n)(precision)
	f, _ := new(big.Rat).SetFrac(lo, one(precision)).Float64()
	return math.Min(f, 1)
}

// ShownAt is the smallest number of units at which a group is shown with at least this probability, in (0, 1].
func (g *GroupSelection) ShownAt(probability float64) int64 {
	return min(g.unitsFor(probability), g.certain)
}

// Parameters are ε, δ and L0.
func (g *GroupSelection) Parameters() Parameters {
	return Parameters{
		Mechanism:   PartitionSelection,
		Sensitivity: strconv.FormatInt(g.parameters.L0, 10),
		Epsilon:     g.parameters.Epsilon.String(),
		Delta:       g.parameters.Delta.String(),
	}
}

// unitsFor inverts the closed forms of π in floating point.
func (g *GroupSelection) unitsFor(probability float64) int64 {
	a, d := exact.Float(g.rate), exact.Float(g.tail)
	if probability <= g.atCrossover {
		// π(n) = d·(e^an-1)/(e^a-1), with the division by e^a done in the exponent.
		return max(1, int64(math.Ceil((a+math.Log(math.Exp(-a)+probability/d*-math.Expm1(-a)))/a-1e-9)))
	}
	excess := d * math.Exp(-a) / -math.Expm1(-a) // d/(e^a-1)
	gap := (1 - probability) + excess            // in this order: excess may be far below 1
	if gap <= 0 {
		return g.crossover + 2 // e^-a underflowed: 1-π(c+1) <= e^-a is below d, and nothing is left of it a step later
	}
	return g.crossover + max(1, int64(math.Ceil(math.Log((1-g.atCrossover+excess)/gap)/a-1e-9)))
}

// guardBits cover what the enclosures of π lose to their divisors, 1-e^-a and, in the first branch, e^-an. The former is at
// least a/2 (or 1/2). The latter is at least 2d³ for 2 <= n <= c: there π(n-1) < 1/2, hence e^-a(n-1) > 2d·e^-a, and d < e^-a,
// because π(1) = d is still in the first branch. (Beyond the crossover e^-an only multiplies.)
func (g *GroupSelection) guardBits() uint {
	bitsOf := func(x *big.Rat) uint { return uint(max(1, x.Denom().BitLen()-x.Num().BitLen()+1)) }
	return 3*bitsOf(g.tail) + bitsOf(g.rate) + 16
}

// probability encloses π(n) for n >= 1 by its closed forms, with c the crossover, m = n-c and excess = d/(e^a-1):
//
//	n <= c:  d·(e^an-1)/(e^a-1)
//	n >  c:  min{1, 1 + excess - e^-am·(1 + excess - π(c))}
func (g *GroupSelection) probability(n int64) enclosure {
	return func(bits uint) (lo, hi *big.Int) {
		extra := g.guardBits()
		p := bits + extra
		q := enclosedExp(g.rate, p)
		if n <= g.crossover {
			lo, hi = g.firstBranch(n, q, p)
		} else {
			lo, hi = g.secondBranch(n, q, p)
		}
		hi.Add(hi.Rsh(hi, extra), bigOne)
		return minInt(lo.Rsh(lo, extra), one(bits)), minInt(hi, one(bits))
	}
}

// enclosed are bounds of one real number.
type enclosed struct{ lo, hi *big.Int }

// enclosedExp encloses e^-x at precision p.
func enclosedExp(x *big.Rat, p uint) enclosed {
	lo, hi := exact.ExpNeg(x, p)
	return enclosed{lo, hi}
}

// firstBranch encloses d·(e^an-1)/(e^a-1) = d·q·(1-e^-an)/(e^-an·(1-q)) at precision p, with q = e^-a.
func (g *GroupSelection) firstBranch(n int64, q enclosed, p uint) (lo, hi *big.Int) {
	if n == 1 { // d itself, also where e^-a is too small to divide by
		return fixed(g.tail, p, exact.FloorQuo), fixed(g.tail, p, exact.CeilQuo)
	}
	power := enclosedExp(g.times(n), p)
	bound := func(q, power *big.Int, quo rounding) *big.Int {
		numerator := new(big.Int).Sub(one(p), power)
		numerator.Mul(numerator.Mul(numerator, q), g.tail.Num())
		denominator := new(big.Int).Sub(one(p), q)
		denominator.Mul(denominator.Mul(denominator, power), g.tail.Denom())
		return quo(numerator.Lsh(numerator, p), denominator)
	}
	// The expression rises with e^-a and falls with e^-an, each taken alone.
	return bound(q.lo, power.hi, exact.FloorQuo), bound(q.hi, power.lo, exact.CeilQuo)
}

// secondBranch encloses 1 + excess - e^-am·(1 + excess - π(c)) at precision p; it may exceed 1.
func (g *GroupSelection) secondBranch(n int64, q enclosed, p uint) (lo, hi *big.Int) {
	piLo, piHi := g.firstBranch(g.crossover, q, p)
	power := enclosedExp(g.times(n-g.crossover), p)
	topLo := new(big.Int).Add(one(p), g.excess(q.lo, p, exact.FloorQuo))
	topHi := new(big.Int).Add(one(p), g.excess(q.hi, p, exact.CeilQuo))
	// top·(1-power) + power·π(c): rises with top and π(c), and falls with power, because π(c) < top.
	bound := func(top, power, pi *big.Int) *big.Int {
		sum := new(big.Int).Mul(top, new(big.Int).Sub(one(p), power))
		return sum.Add(sum, new(big.Int).Mul(power, pi))
	}
	lo, hi = bound(topLo, power.hi, piLo), bound(topHi, power.lo, piHi)
	return lo.Rsh(lo, p), hi.Add(hi.Rsh(hi, p), bigOne)
}

// excess is d/(e^a-1) = d·q/(1-q) at precision p, which rises with q.
func (g *GroupSelection) excess(q *big.Int, p uint, quo rounding) *big.Int {
	numerator := new(big.Int).Mul(q, g.tail.Num())
	denominator := new(big.Int).Sub(one(p), q)
	return quo(numerator.Lsh(numerator, p), denominator.Mul(denominator, g.tail.Denom()))
}

// firstBranchAfter returns what says whether π(n+1) comes from the first branch, given that π(n) does: whether the first of the two
// terms is the smaller, which simplifies to π(n) <= (1-d)/(1+e^a). A tie within 2⁻²⁵⁶ is harmless: there the terms are equal.
func (g *GroupSelection) firstBranchAfter() func(n int64) bool {
	p := 256 + g.guardBits()
	q := enclosedExp(g.rate, p)
	limit := logisticOf(q.lo, p, exact.FloorQuo)
	limit.Mul(limit, new(big.Int).Sub(g.tail.Denom(), g.tail.Num()))
	limit.Quo(limit, g.tail.Denom())
	return func(n int64) bool {
		_, hi := g.firstBranch(n, q, p)
		return hi.Cmp(limit) <= 0
	}
}

func (g *GroupSelection) times(n int64) *big.Rat {
	return new(big.Rat).Mul(g.rate, big.NewRat(n, 1))
}
