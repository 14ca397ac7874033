package budget

import (
	"math/big"
	"time"

	"noisegate.example/budget/accounting"
	"noisegate.example/internal/exact"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

// LimitSpec is a budget as people write it: in the policy file, or in a steward's request.
type LimitSpec struct {
	Form               Form     // may be empty when ReplayOnly is set and no amount is
	Epsilon            *big.Rat // pure, approx
	Rho                *big.Rat // zcdp
	Delta              *big.Rat // nil: 0
	MaxEpsilonPerQuery *big.Rat // nil: no cap on a single query
	ReplayOnly         bool
	Tranche            TrancheSpec // the zero value: none
	Rate               RateSpec    // the zero value: none
}

// TrancheSpec is a [Tranche] as people write it.
type TrancheSpec struct {
	Every   time.Duration // at least a minute
	Epsilon *big.Rat      // pure, approx
	Rho     *big.Rat      // zcdp
}

// RateSpec is a [Rate] as people write it.
type RateSpec struct {
	Epsilon *big.Rat
	Per     time.Duration // from a second to a day
}

// DisplayDelta is the δ at which the ρ of a zcdp account is shown as an ε, and compared with a cap on one query.
const DisplayDelta mechanisms.AttoDelta = 1_000_000_000 // 10⁻⁹

// NewLimit fills in the caps of the three forms. Amounts are grants: they are rounded down.
//
//	form    promise        Epsilon   Rho             Delta
//	pure    (E, δ)-DP      E         Never           δ
//	zcdp    δ-approx. R    Never     R               δ
//	approx  (E, δ)-DP      E         RhoFor(E, δz)   δa       with δa = ⌊δ/2⌋ and δz = δ - δa
//
// An approx budget without δ is pure. Its promise when δ > 0, for an analyst who chooses each query in the light of earlier answers:
//
// A release with loss (ε, ρ, δi, τi) has, for each neighbour, the form (1-δi)·M + δi·(anything), where M is ρ-zCDP and, unless
// unbounded, (ε, τi)-DP: with p and q the densities of M's answer, p' = min(p, e^ε·q) has a mass of at least 1-τi. What an answer
// depends on, and its loss, are fixed before it is drawn. Mark answers, at random:
//
//   - with probability δi, when the coin falls badly; this depends on no data;
//   - else, if the sums with this release satisfy the ε clause, with probability 1 - p'/p of the answer that was drawn.
//
// Given what came before, the answer of release i is marked with probability at most δi, plus τi as long as the ε clause holds. Sums only
// grow, so the τi of the second kind are those of a prefix that satisfies the ε clause: on every path they sum to at most min(Στ, T),
// and all together to at most δa, by admission. So anything is marked with probability at most δa.
//
// Of transcripts without a mark, split those in A, whose final sums satisfy the ε clause, from B, the others, which
// satisfy the ρ clause. All prefixes of a transcript in A satisfy the ε clause, so that its unmarked density is
// Π(1-δi)·p'i <= e^E·Π(1-δi)·qi, which is e^E times a part of its density under the neighbour. That of a transcript in
// B is at most Π(1-δi)·pi, as an analyst would have produced it who stops before breaking the ρ clause: by the ρ-zCDP
// filter (Feldman and Zrnic 2021; Whitehouse et al. 2023) with R = RhoFor(E, δz), its probability is at most e^E·Q(S∩B) +
// δz for every event S. Adding up: P(S) <= δa + e^E·Q(S∩A) + e^E·Q(S∩B) + δz = e^E·Q(S) + δ.
//
// Tails count in both clauses, though only A needs them: who may go on in B after the tails of A failed, and only then, would otherwise
// spend δa twice. T bounds what they can take from B.
func NewLimit(spec LimitSpec) (Limit, error) {
	if spec.Form == "" && spec.ReplayOnly && spec.Epsilon == nil && spec.Rho == nil && spec.Delta == nil {
		return Limit{Form: Pure, Rho: Never, ReplayOnly: true}, nil
	}
	limit := Limit{Form: spec.Form, Epsilon: Never, Rho: Never, ReplayOnly: spec.ReplayOnly}
	delta, err := deltaGrant(spec.Delta)
	if err != nil {
		return Limit{}, err
	}
	limit.Delta, limit.TotalDelta = delta, delta
	switch spec.Form {
	case Pure, Approx:
		if spec.Rho != nil {
			return Limit{}, fault.RequestBudget("form " + string(spec.Form) + " takes epsilon, not rho")
		}
		epsilon, err := grant("epsilon", spec.Epsilon)
		if err != nil {
			return Limit{}, err
		}
		limit.Epsilon = mechanisms.PicoEpsilon(epsilon)
	case ZCDP:
		if spec.Epsilon != nil {
			return Limit{}, fault.RequestBudget("form zcdp takes rho, not epsilon")
		}
		rho, err := grant("rho", spec.Rho)
		if err != nil {
			return Limit{}, err
		}
		limit.Rho = mechanisms.PicoRho(rho)
	default:
		return Limit{}, fault.RequestBudget("form must be pure, zcdp or approx")
	}
	limit = limit.derived()
	if spec.MaxEpsilonPerQuery != nil {
		most, err := grant("max_epsilon_per_query", spec.MaxEpsilonPerQuery)
		if err != nil {
			return Limit{}, err
		}
		if most == 0 {
			return Limit{}, fault.RequestBudget("max_epsilon_per_query must be more than 0; replay_only allows no query at all")
		}
		limit.PerQuery = mechanisms.PicoEpsilon(most)
		limit.PerQueryRho = accounting.RhoFor(limit.PerQuery, limit.ConversionDelta())
	}
	if limit.Tranche, err = spec.Tranche.of(limit); err != nil {
		return Limit{}, err
	}
	limit.Rate, err = spec.Rate.of(limit)
	return limit, err
}

// derived fills in what follows of the declared amounts: of approx, the share of δ that may be spent and the cap of ρ.
func (l Limit) derived() Limit {
	if l.Form != Approx {
		l.Delta = l.TotalDelta
		return l
	}
	l.Delta, l.Rho = l.TotalDelta/2, Never
	if l.Delta > 0 {
		l.Rho = accounting.RhoFor(l.Epsilon, l.ConversionDelta())
	}
	return l
}

// ConversionDelta is the δ at which this account turns ρ into ε.
func (l Limit) ConversionDelta() mechanisms.AttoDelta {
	switch l.Form {
	case Approx:
		return l.TotalDelta - l.Delta
	case ZCDP:
		return DisplayDelta
	default:
		return 0 // pure accounts know no ρ
	}
}

// grant reads an amount of ε or ρ, rounded down to pico units.
func grant(name string, amount *big.Rat) (int64, error) {
	switch {
	case amount == nil:
		return 0, fault.RequestBudget(name + " is missing")
	case amount.Sign() < 0:
		return 0, fault.RequestBudget(name + " must not be negative")
	case amount.Cmp(big.NewRat(accounting.MaxAmount, 1)) > 0:
		return 0, fault.RequestBudget(name + " must be at most 1000000")
	}
	return exact.FloorUnits(amount, int64(mechanisms.EpsilonUnit)), nil
}

// deltaGrant reads a δ, rounded down to atto units.
func deltaGrant(amount *big.Rat) (mechanisms.AttoDelta, error) {
	switch {
	case amount == nil:
		return 0, nil
	case amount.Sign() < 0 || amount.Cmp(big.NewRat(1, 1)) >= 0:
		return 0, fault.RequestBudget("delta must be at least 0 and less than 1")
	}
	return mechanisms.AttoDelta(exact.FloorUnits(amount, int64(mechanisms.DeltaUnit))), nil
}
