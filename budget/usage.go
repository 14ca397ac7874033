package budget

import (
	"math/big"
	"math/bits"

	"noisegate.example/mechanisms"
)

// Rule names a clause of a [Limit], by what it adds up.
type Rule string

// The rules.
const (
	EpsilonRule Rule = "epsilon"
	RhoRule     Rule = "rho"
	DeltaRule   Rule = "delta"
)

// Usage gives the used part of a limit, under the rule that binds. One of the rules for ε and ρ must hold, so of these the less used one
// counts; the rule for δ binds where it is used more.
type Usage struct {
	Rule     Rule
	Permille int64 // rounded up; 1000: used up, or overdrawn by a cap that was lowered
}

// UsageOf says how much of a limit is used when used is spent or reserved.
func UsageOf(limit Limit, used mechanisms.Loss) Usage {
	usage := Usage{EpsilonRule, permille(int64(used.Epsilon), int64(limit.Epsilon))}
	if !limit.countsEpsilon(used) {
		usage.Permille = usedUp
	}
	if rho := permille(int64(used.Rho), int64(limit.Rho)); limit.Epsilon == Never || limit.Rho != Never && rho < usage.Permille {
		usage = Usage{RhoRule, rho}
	}
	if delta := limit.deltaOf(used); delta > 0 {
		if share := permille(int64(delta), int64(limit.Delta)); share > usage.Permille {
			usage = Usage{DeltaRule, share}
		}
	}
	return usage
}

const usedUp = 1000

// permille is the share of a cap that is used.
func permille(used, most int64) int64 {
	if used >= most {
		return usedUp
	}
	hi, lo := bits.Mul64(uint64(used), usedUp) // 0 <= used < most, so that the quotient is below usedUp
	share, rest := bits.Div64(hi, lo, uint64(most))
	if rest > 0 {
		share++
	}
	return int64(share)
}

// countsEpsilon reports whether the rule for ε is open to losses with an ε.
func (l Limit) countsEpsilon(used mechanisms.Loss) bool {
	return l.Epsilon != Never && !used.Unbounded && used.Tail <= l.tails()
}

// nearerByRho reports whether a charge that neither rule admits exceeds the cap of ρ by less than that of ε, each in
// proportion.
func (l Limit) nearerByRho(used, charge mechanisms.Loss) bool {
	after := used.Plus(charge)
	switch {
	case l.Rho == Never:
		return false
	case !l.countsEpsilon(after) || l.Epsilon == 0:
		return true
	case l.Rho == 0:
		return false
	}
	return big.NewRat(int64(after.Rho), int64(l.Rho)).Cmp(big.NewRat(int64(after.Epsilon), int64(l.Epsilon))) < 0
}
