package accounting

import (
	"fmt"
	"math/big"

	"noisegate.example/mechanisms"
)

// MaxSlots bounds a plan.
const MaxSlots = 1000

// PlanLoss is the price of a list of slots at δ.
//
// Its ε is the smallest that a sound accountant gives the whole list: the sum, which needs no δ; the PLD of the list;
// where there is Gaussian noise, whose law depends on sensitivities that are not known yet, its Rényi curve. Its ρ is
// Σρ, which needs no δ either.
//
// Why it may be charged as one release. Fix two neighbours.
//
//  1. The plan is one interactive mechanism: its k-th message is a query, its k-th answer has the k-th slot's noise. The slots are
//     fixed before the first answer. Whatever the query, the slot's mechanism is dominated by one pair of laws that
//     depends on the slot alone: Laplace noise at ε by binary randomized response, which dominates all that is ε-DP (Kairouz,
//     Oh, Viswanath 2015); of Gaussian noise at ρ the divergence of every order α is at most αρ. If each step is dominated by a
//     fixed pair whatever came before, adaptive composition is dominated by the product of the pairs (Zhu, Dong, Wang 2022, Theorem
//     10), respectively divergences add up at each order (Mironov 2017), and the best order is a constant of the list. So
//     the transcript of all drawn slots is (ε, δ)-DP. Fewer slots are post-processing, and a slot that is drawn without an answer is too.
//     PLD is no filter because parameters chosen late escape the product; here they cannot.
//  2. The analyst may ask other queries, and other plans, in between. Basic composition of (εi, δi)-DP mechanisms holds for
//     interactive mechanisms that run concurrently (Vadhan, Wang 2021; Vadhan, Zhang 2023), also if the mechanisms and
//     their (εi, δi) are chosen adaptively under caps on the sums (Haney et al. 2023). The ε clause of budget.Limit is such a
//     filter; so there a plan counts as (ε, δ) and bounded.
//  3. In the ρ clause it counts Σρ: each slot is ρ-zCDP by itself, so that it is just a list of releases that was paid in advance.
//
// The proof at budget.NewLimit then holds with one change. The plan has no coin that both halves share; its δ is spent in half A, P(S∩A) <=
// e^E·Q(S∩A) + Σδ of plans, and not at all in half B. The sum of all is still at most δa + δz = δ, as admission adds
// the plans' δ to the coins'.
func PlanLoss(slots []mechanisms.Slot, delta mechanisms.AttoDelta) (mechanisms.Loss, error) {
	if len(slots) == 0 || len(slots) > MaxSlots || delta <= 0 || delta > mechanisms.MaxDelta {
		return mechanisms.Loss{}, fmt.Errorf("budget: a plan of %d slots at a δ of %s", len(slots), delta)
	}
	var sum mechanisms.Loss
	list := make([]Repeated, len(slots))
	for i, s := range slots {
		loss, err := s.Loss()
		if err != nil {
			return mechanisms.Loss{}, err
		}
		sum = sum.Plus(loss)
		if list[i], err = slotEvent(s); err != nil {
			return mechanisms.Loss{}, err
		}
	}
	list = merge(list)
	epsilon, finite := RDPEpsilon(list, delta)
	if pld, err := NewPLD(list); err == nil { // refused for Gaussian noise
		if tight, ok := pld.Epsilon(delta); ok && (!finite || tight < epsilon) {
			epsilon, finite = tight, true
		}
	}
	switch {
	case !sum.Unbounded && (!finite || sum.Epsilon <= epsilon):
		return sum, nil
	case !finite:
		return mechanisms.Loss{}, fmt.Errorf("budget: the plan has no finite ε at a δ of %s", delta)
	default:
		return mechanisms.Loss{Epsilon: epsilon, Rho: sum.Rho, Delta: delta}, nil
	}
}

// slotEvent is the worst of all that a slot may be used for.
func slotEvent(s mechanisms.Slot) (Repeated, error) {
	event, amount, unit := PureEvent, int64(s.Epsilon), int64(mechanisms.EpsilonUnit)
	if s.Rho > 0 {
		event, amount, unit = ZCDPEvent, int64(s.Rho), int64(mechanisms.RhoUnit)
	}
	e, err := event(big.NewRat(amount, unit))
	return Repeated{e, 1}, err
}
