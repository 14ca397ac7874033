package sqlrewrite

import (
	"fmt"
	"math/big"
	"slices"

	"noisegate/internal/fault"
	"noisegate/mechanisms"
)

// Slots is how many slots of a registered plan the query needs: one for each release.
func (p *pricedPlan) Slots() int { return len(p.releases) }

// withNoise is the plan with other noise: release i has the noise of next[i], the slots that a registered plan has left, in order. The
// slots alone decide ε and ρ, whatever price the plan was made for; the text decides the sensitivity. Its fingerprint is p's.
//
// It refuses private keys and quantiles (a selection is no slot), more releases than there are slots, and a slot whose mechanism is not
// the one that the options ask for: plan/slot-mismatch, plan/exhausted.
func (p *pricedPlan) withNoise(next []mechanisms.Slot) (*pricedPlan, error) {
	switch {
	case p.query.private():
		return nil, fault.SlotMismatch("private keys are selected at a price of their own, which a registered plan does not have",
			"group by public keys, or ask without the plan")
	case slices.ContainsFunc(p.releases, func(r release) bool { return r.pick != nil }):
		return nil, fault.SlotMismatch("a selection is no noise, which is what a registered plan has",
			"leave quantiles, min, max and mode out, or ask without the plan")
	case len(p.releases) > len(next):
		return nil, fault.PlanExhausted(len(p.releases), len(next))
	}
	fixed := *p
	fixed.releases = make([]release, len(p.releases))
	for i, r := range p.releases {
		slot := next[i]
		if asked, ok := p.options.Mechanism.fixed(); ok && asked != slot.Name() {
			return nil, fault.SlotMismatch(fmt.Sprintf("the plan's next slot for %s is %s noise, and the query asks for %s",
				r.measure.describe(), slot.Name(), asked), `leave "mechanism" out, or ask another query first`)
		}
		l1, l2Squared := p.norms(r.perGroup)
		var err error
		if r.mechanism, err = slot.Noise(l1, l2Squared); err != nil {
			return nil, internal(err)
		}
		fixed.releases[i] = r
	}
	fixed.weights = nil
	return &fixed, nil
}

// fixed is the mechanism that a choice stands for, if it is one.
func (c MechanismChoice) fixed() (mechanisms.Name, bool) {
	switch c {
	case MechanismLaplace:
		return mechanisms.DiscreteLaplace, true
	case MechanismGaussian:
		return mechanisms.DiscreteGaussian, true
	default:
		return "", false
	}
}

// norms are the sensitivities of a release: one unit moves at most L0 groups by at most Linf, hence L1 = L0·Linf and L2² = L0·Linf².
func (p *pricedPlan) norms(perGroup *big.Int) (l1, l2Squared *big.Int) {
	l1 = new(big.Int).Mul(big.NewInt(p.shape.maxGroups), perGroup)
	return l1, new(big.Int).Mul(l1, perGroup)
}
