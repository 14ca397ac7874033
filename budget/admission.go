package budget

import (
	"cmp"
	"math"
	"time"

	"noisegate.example/budget/accounting"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

// Admits reports whether an account with this limit may take the charge; used is what it has spent or reserved. It is the rule of [Limit],
// on exact integers. The only other place that states it is the CHECK constraint within_the_ceiling.
//
// Sums that no longer fit the ledger's integers are refused in every currency, also in one that has no cap.
func (l Limit) Admits(used, charge mechanisms.Loss) bool {
	after := used.Plus(charge)
	if after.Epsilon == math.MaxInt64 || after.Rho == math.MaxInt64 || after.Delta == math.MaxInt64 || after.Tail == math.MaxInt64 {
		return false
	}
	return l.covers(after)
}

// covers reports whether the sums satisfy the rule of [Limit]. Sums are not negative, so a cap of Never covers none.
func (l Limit) covers(sums mechanisms.Loss) bool {
	byEpsilon := !sums.Unbounded && sums.Epsilon <= l.Epsilon && sums.Tail <= l.tails()
	byRho := sums.Rho <= l.Rho
	return l.deltaOf(sums) <= l.Delta && (byEpsilon || byRho)
}

// tails is how much the tails of an ε clause may sum to: a sixteenth of the half of δ that approx accounts may spend,
// nothing for the others.
func (l Limit) tails() mechanisms.AttoDelta {
	if l.Form != Approx {
		return 0
	}
	return l.TotalDelta / 32
}

// deltaOf adds up the δ that the sums take of the cap: that of releases, and tails up to [Limit.tails].
func (l Limit) deltaOf(sums mechanisms.Loss) mechanisms.AttoDelta {
	tail := min(sums.Tail, l.tails())
	if sums.Delta > math.MaxInt64-tail {
		return math.MaxInt64
	}
	return sums.Delta + tail
}

// AdmitsQuery reports whether one query may cost as much as charge, whatever is left. The ε of a charge is its pure ε when
// it has one; else its ρ is compared with the ρ that stands for the cap. More than a [Rate] lets through at once never comes through.
func (l Limit) AdmitsQuery(charge mechanisms.Loss) bool {
	_, ok := l.admitsQuery(charge)
	return ok
}

// admitsQuery gives the cap that is too small as well.
func (l Limit) admitsQuery(charge mechanisms.Loss) (most mechanisms.PicoEpsilon, ok bool) {
	fits := func(epsilon mechanisms.PicoEpsilon, rho mechanisms.PicoRho) bool {
		if !charge.Pure() {
			return charge.Rho <= rho
		}
		return charge.Epsilon <= epsilon
	}
	switch {
	case l.PerQuery > 0 && !fits(l.PerQuery, l.PerQueryRho):
		return l.PerQuery, false
	case l.Rate.Per > 0 && !fits(l.Rate.Epsilon, l.Rate.Rho):
		return l.Rate.Epsilon, false
	default:
		return 0, true
	}
}

// Headroom is what is left of each cap by itself. An amount is Never where the form has no such clause, and 0 where the
// clause is used up or, for ε, closed: by a loss without a finite ε, or by more tails than it takes.
type Headroom struct {
	Epsilon mechanisms.PicoEpsilon
	Rho     mechanisms.PicoRho
	Delta   mechanisms.AttoDelta
}

// Remaining is what a limit leaves when used is spent or reserved.
func Remaining(limit Limit, used mechanisms.Loss) Headroom {
	h := Headroom{Epsilon: Never, Rho: Never, Delta: max(limit.Delta-limit.deltaOf(used), 0)}
	if limit.Epsilon != Never {
		h.Epsilon = max(limit.Epsilon-used.Epsilon, 0)
		if !limit.countsEpsilon(used) {
			h.Epsilon = 0
		}
	}
	if limit.Rho != Never {
		h.Rho = max(limit.Rho-used.Rho, 0)
	}
	return h
}

// Affordable is the largest ε, rounded down, that one further purely ε-private release may have. It counts on the release being
// ε·tanh(ε/2)-zCDP, as every ε-DP mechanism is (docs/accounting.md); a mechanism with a smaller ρ may afford more.
func Affordable(limit Limit, used mechanisms.Loss) mechanisms.PicoEpsilon {
	if limit.ReplayOnly || limit.deltaOf(used) > limit.Delta {
		return 0
	}
	left := Remaining(limit, used)
	most := max(left.Epsilon, accounting.PureEpsilonFor(left.Rho), 0)
	if limit.PerQuery > 0 {
		most = min(most, limit.PerQuery)
	}
	if limit.Rate.Per > 0 {
		most = min(most, limit.Rate.Epsilon)
	}
	return most
}

// Times is how many further charges of the same loss the limit admits, one after another.
func Times(limit Limit, used, charge mechanisms.Loss) int64 {
	if limit.ReplayOnly || !limit.AdmitsQuery(charge) {
		return 0
	}
	charge = InLedger(charge)
	tails := limit.tails()
	byEpsilon := min(howOften(int64(limit.Epsilon-used.Epsilon), int64(charge.Epsilon)), howOften(int64(tails-used.Tail), int64(charge.Tail)))
	if charge.Unbounded || used.Unbounded {
		byEpsilon = 0
	}
	byRho := howOften(int64(limit.Rho-used.Rho), int64(charge.Rho))
	byDelta := max(howOften(int64(limit.Delta-tails-used.Delta), int64(charge.Delta)), // as if all tails counted
		howOften(int64(limit.Delta-used.Delta-used.Tail), int64(charge.Delta+charge.Tail)))
	return min(byDelta, max(byEpsilon, byRho))
}

// howOften each fits into what is left, which is negative for a closed clause and for one that is overdrawn.
func howOften(left, each int64) int64 {
	switch {
	case left < 0:
		return 0
	case each == 0:
		return math.MaxInt64
	default:
		return left / each
	}
}

// Refusal explains why accounts do not take a charge now; nil when they do. The analyst's own account speaks first, by
// all rules: its figures may be told, and who cannot have the charge anyway, be it for a rate, learns nothing of the
// accounts shared with others. What no waiting mends comes first. Of the shared ones nothing is told but that one of them
// refused: which one, and by which rule, would compare the price with the first that does not.
func Refusal(accounts []Balance, c Charge, now time.Time) error {
	for _, a := range accounts {
		switch {
		case a.Frozen:
			return fault.BudgetFrozen()
		case a.Limit.ReplayOnly:
			return fault.BudgetReplayOnly()
		case a.RaisedBy != "" && a.RaisedBy == c.Analyst:
			return fault.BudgetOwnRaise()
		}
	}
	for _, a := range accounts {
		if most, ok := a.Limit.admitsQuery(c.Loss); !ok {
			capped := fault.QueryCap{Needed: costInEpsilon(a.Limit, c.Loss), Most: most.String()}
			if c.Loss.Unbounded {
				capped.Rho, capped.Delta = c.Loss.Rho.String(), a.Limit.ConversionDelta().String()
			}
			return fault.BudgetOverQueryCap(capped)
		}
	}
	shared := false
	for _, a := range accounts {
		refused := cmp.Or(overCap(a, c), overTranche(a, c, now), overRate(a, c.Loss, now))
		if refused == nil {
			continue
		}
		if a.ID.Scope == AnalystScope && a.ID.Name == c.Analyst {
			return refused
		}
		shared = true
	}
	if shared {
		return fault.BudgetRefusedForAll()
	}
	return nil
}

// overCap refuses what the account does not admit in its lifetime.
func overCap(a Balance, c Charge) *fault.Error {
	used := a.Used()
	if a.Limit.Admits(used, c.Loss) {
		return nil
	}
	return fault.BudgetExhausted(shortage(a.Limit, used, c))
}

// overTranche refuses what fits only later.
func overTranche(a Balance, c Charge, now time.Time) *fault.Error {
	if a.Limit.Tranche.Every == 0 {
		return nil
	}
	used, released := a.Used(), a.Limit.Released(a.Opened, now)
	next, more := a.Limit.NextTranche(a.Opened, now)
	if released.Admits(used, c.Loss) || !more {
		return nil
	}
	return fault.BudgetTrancheClosed(shortage(released, used, c), next)
}

// overRate refuses what comes too fast.
func overRate(a Balance, charge mechanisms.Loss, now time.Time) *fault.Error {
	wait := a.Limit.Rate.wait(a.Busy, now, charge)
	if wait <= 0 {
		return nil
	}
	return fault.BudgetRateLimited(wait)
}

// Used is what an account has spent and reserved together.
func (b Balance) Used() mechanisms.Loss { return b.Spent.Plus(b.Reserved) }

// shortage says what is missing under the rule that binds: the one that comes nearest to admitting the charge.
func shortage(limit Limit, used mechanisms.Loss, c Charge) fault.Shortage {
	charge, left, affordable := c.Loss, Remaining(limit, used), Affordable(limit, used)
	if affordable < c.Least {
		affordable = 0
	}
	s := fault.Shortage{AffordableEpsilon: affordable.String()}
	switch {
	case limit.deltaOf(used.Plus(charge)) > limit.Delta:
		s.Currency, s.Needed, s.Remaining = "delta", (charge.Delta + charge.Tail).String(), left.Delta.String()
	case limit.Form == ZCDP || !charge.Pure() || limit.nearerByRho(used, charge):
		s.Currency, s.Needed, s.Remaining = "rho", charge.Rho.String(), max(left.Rho, 0).String()
	default:
		s.Currency, s.Needed, s.Remaining = "epsilon", charge.Epsilon.String(), max(left.Epsilon, 0).String()
	}
	return s
}

// costInEpsilon is what a cap on one query is compared with, for people.
func costInEpsilon(limit Limit, charge mechanisms.Loss) string {
	if charge.Pure() {
		return charge.Epsilon.String()
	}
	eps, ok := accounting.EpsilonFor(charge.Rho, limit.ConversionDelta())
	if !ok {
		return "infinity"
	}
	return eps.String()
}

// Ceiling is the cap, or what was used when it was set below that.
func (l Limit) Ceiling(used mechanisms.Loss) mechanisms.Loss {
	if l.covers(used) {
		return mechanisms.Loss{Epsilon: l.Epsilon, Rho: l.Rho, Delta: l.Delta}
	}
	return mechanisms.Loss{Epsilon: max(l.Epsilon, used.Epsilon), Rho: max(l.Rho, used.Rho), Delta: max(l.Delta, l.deltaOf(used))}
}
