package budget

import (
	"errors"
	"math"
	"math/bits"
	"strings"
	"time"

	"noisegate.example/budget/accounting"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

// Bounds of what people may write.
const (
	minTranche = time.Minute
	maxTranche = 10 * 366 * 24 * time.Hour
	minRate    = time.Second
	maxRate    = 24 * time.Hour
)

// of checks a tranche against the limit that it is part of.
func (s TrancheSpec) of(l Limit) (Tranche, error) {
	if s == (TrancheSpec{}) {
		return Tranche{}, nil
	}
	if s.Every < minTranche || s.Every > maxTranche || s.Every%time.Microsecond != 0 {
		return Tranche{}, fault.RequestBudget("a tranche opens every minute at most, every ten years at least")
	}
	t := Tranche{Every: s.Every}
	amount, other, name := s.Epsilon, s.Rho, "tranche.epsilon"
	if l.Form == ZCDP {
		amount, other, name = s.Rho, s.Epsilon, "tranche.rho"
	}
	if other != nil {
		return Tranche{}, fault.RequestBudget("a tranche is in the currency of its form: " + name)
	}
	n, err := grant(name, amount)
	if err != nil {
		return Tranche{}, err
	}
	if n == 0 {
		return Tranche{}, fault.RequestBudget(name + " must be more than 0")
	}
	if l.Form == ZCDP {
		t.Rho = mechanisms.PicoRho(n)
	} else {
		t.Epsilon = mechanisms.PicoEpsilon(n)
	}
	return t, nil
}

// of checks a rate.
func (s RateSpec) of(l Limit) (Rate, error) {
	if s == (RateSpec{}) {
		return Rate{}, nil
	}
	if s.Per < minRate || s.Per > maxRate || s.Per%time.Microsecond != 0 {
		return Rate{}, fault.RequestBudget("rate.per must be from a second to a day")
	}
	n, err := grant("rate.epsilon", s.Epsilon)
	if err != nil {
		return Rate{}, err
	}
	if n == 0 {
		return Rate{}, fault.RequestBudget("rate.epsilon must be more than 0; replay_only allows no query at all")
	}
	r := Rate{Per: s.Per, Epsilon: mechanisms.PicoEpsilon(n)}
	r.Rho = accounting.RhoFor(r.Epsilon, l.ConversionDelta())
	return r, nil
}

var errOutOfRange = errors.New("out of range")

// check refuses what [TrancheSpec.of] cannot have made.
func (t Tranche) check() error {
	if t.Every < 0 || t.Every%time.Microsecond != 0 || t.Epsilon < 0 || t.Rho < 0 || t.Every == 0 && t != (Tranche{}) {
		return errOutOfRange
	}
	return nil
}

func (r Rate) check() error {
	if r.Per < 0 || r.Per%time.Microsecond != 0 || r.Epsilon < 0 || r.Rho < 0 || r.Per == 0 && r != (Rate{}) {
		return errOutOfRange
	}
	return nil
}

// Released is the limit with its cap lowered to what tranches have released until now; the same limit without tranches.
//
// What is admitted by it keeps the promise of the released cap: at every time, all charges so far satisfy the rule of a limit
// that was at most today's, because caps only rise with time and the ρ of an ε rises with it.
func (l Limit) Released(opened, now time.Time) Limit {
	if l.Tranche.Every == 0 {
		return l
	}
	parts := l.Tranche.opened(opened, now)
	if l.Form == ZCDP {
		l.Rho = min(l.Rho, mechanisms.PicoRho(multiple(parts, int64(l.Tranche.Rho))))
		return l
	}
	if epsilon := mechanisms.PicoEpsilon(multiple(parts, int64(l.Tranche.Epsilon))); epsilon < l.Epsilon {
		l.Epsilon = epsilon
		l = l.derived()
	}
	return l
}

// NextTranche is when the cap's next part is released; false when all of it is.
func (l Limit) NextTranche(opened, now time.Time) (time.Time, bool) {
	released := l.Released(opened, now)
	if l.Tranche.Every == 0 || released.Epsilon == l.Epsilon && released.Rho == l.Rho {
		return time.Time{}, false
	}
	return opened.Add(time.Duration(multiple(l.Tranche.opened(opened, now), int64(l.Tranche.Every)))), true
}

// opened is how many tranches are open: at least the first, and no other before the account is.
func (t Tranche) opened(since, now time.Time) int64 {
	if since.IsZero() {
		return 1
	}
	return 1 + max(0, int64(now.Sub(since)/t.Every))
}

// multiple multiplies two non-negative numbers; a product that does not fit is the largest there is.
func multiple(n, each int64) int64 {
	high, low := bits.Mul64(uint64(n), uint64(each))
	if high > 0 || low > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(low)
}

// cost is how long a charge keeps the account busy, in whole microseconds, rounded up. A charge of the whole rate takes Per.
func (r Rate) cost(charge mechanisms.Loss) time.Duration {
	amount, whole := int64(charge.Epsilon), int64(r.Epsilon)
	if !charge.Pure() {
		amount, whole = int64(charge.Rho), int64(r.Rho)
	}
	switch {
	case amount == 0:
		return 0
	case whole <= 0 || amount > whole: // more than the rate lets through at once
		return math.MaxInt64
	}
	high, low := bits.Mul64(uint64(r.Per.Microseconds()), uint64(amount))
	quotient, rest := bits.Div64(high, low, uint64(whole))
	if rest > 0 {
		quotient++
	}
	return time.Duration(quotient) * time.Microsecond
}

// wait is how long until the charge may come; at most 0 when it may come now.
func (r Rate) wait(busy, now time.Time, charge mechanisms.Loss) time.Duration {
	if r.Per == 0 {
		return 0
	}
	cost := r.cost(charge)
	if cost > r.Per {
		return r.Per
	}
	return max(busy.Sub(now), 0) + cost - r.Per
}

// After is until when the account is busy once the charge is taken.
func (r Rate) After(busy, now time.Time, charge mechanisms.Loss) time.Time {
	if r.Per == 0 {
		return busy
	}
	if busy.Before(now) {
		busy = now
	}
	return busy.Add(r.cost(charge))
}

// Back is until when the account is busy once a charge, taken at a time, counts as what was spent of it. What it
// reserved and did not spend is given back as far as it has not worn off.
//
// Busy times follow busy' = max(busy, t) + cost for each charge at t. Given back is at most what is left of the charge,
// opened + cost - now; until now the account cannot have been idle if the charge had cost that much less. So what is
// left is the busy time of the same charges with this one at some cost between what it spent and what it reserved, and
// a rate lets through no more than if it had been that from the first.
func (r Rate) Back(busy, opened, now time.Time, reserved, spent mechanisms.Loss) time.Time {
	if r.Per == 0 {
		return busy
	}
	cost, kept := r.cost(reserved), r.cost(spent)
	if cost > r.Per || kept >= cost {
		return busy // the rate is another than it was, or nothing is given back
	}
	return busy.Add(-max(0, min(cost-kept, opened.Add(cost).Sub(now))))
}

// Plus is the limit after a refill.
func (l Limit) Plus(r Refill) (Limit, error) {
	switch {
	case r.Epsilon < 0 || r.Rho < 0 || r.Delta < 0 || r.Epsilon == 0 && r.Rho == 0 && r.Delta == 0:
		return Limit{}, fault.RequestBudget("a refill adds something")
	case l.Form == ZCDP && r.Epsilon != 0:
		return Limit{}, fault.RequestBudget("form zcdp takes rho, not epsilon")
	case l.Form != ZCDP && r.Rho != 0:
		return Limit{}, fault.RequestBudget("form " + string(l.Form) + " takes epsilon, not rho")
	case int64(l.Epsilon)+int64(r.Epsilon) > accounting.MaxAmount*int64(mechanisms.EpsilonUnit),
		int64(l.Rho)+int64(r.Rho) > accounting.MaxAmount*int64(mechanisms.RhoUnit):
		return Limit{}, fault.RequestBudget("a budget is at most 1000000")
	case l.TotalDelta+r.Delta >= mechanisms.DeltaUnit:
		return Limit{}, fault.RequestBudget("delta must be less than 1")
	case len(r.Reason) > maxReason || strings.ContainsRune(r.Reason, 0):
		return Limit{}, fault.RequestBudget("the reason is too long")
	}
	if l.Form == ZCDP {
		l.Rho += r.Rho
	} else {
		l.Epsilon += r.Epsilon
	}
	l.TotalDelta += r.Delta
	return l.derived(), nil
}

// maxReason bounds the reason of a refill, in bytes.
const maxReason = 1000

// Promise is what an account may lose, as (ε, δ). Bounded is false when no finite ε is known.
type Promise struct {
	Epsilon mechanisms.PicoEpsilon
	Delta   mechanisms.AttoDelta
	Bounded bool
}

// Promise is what the cap promises. Of form zcdp it is the ε of its ρ at [DisplayDelta].
func (l Limit) Promise() Promise {
	if l.Form != ZCDP {
		return Promise{Epsilon: max(l.Epsilon, 0), Delta: l.TotalDelta, Bounded: true}
	}
	epsilon, ok := accounting.EpsilonFor(max(l.Rho, 0), DisplayDelta)
	return Promise{Epsilon: epsilon, Delta: DisplayDelta + l.TotalDelta, Bounded: ok}
}

// Counts is how many more counts at an ε the account admits now, apart from its rate: each ε-DP with the ρ that every
// such release has at most.
func (b Balance) Counts(epsilon mechanisms.PicoEpsilon, now time.Time) int64 {
	if b.Frozen || epsilon <= 0 {
		return 0
	}
	e := float64(epsilon) / float64(mechanisms.EpsilonUnit)
	rho := math.Ceil(e * math.Tanh(e/2) * (1 + 1e-9) * float64(mechanisms.RhoUnit))
	return Times(b.Limit.Released(b.Opened, now), b.Used(), mechanisms.Loss{Epsilon: epsilon, Rho: mechanisms.PicoRho(rho)})
}
