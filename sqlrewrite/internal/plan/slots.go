package plan

import (
	"fmt"
	"slices"

	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite/internal/sqlprint"
)

// Slots is how many slots of a registered plan the query needs: one for each release.
func (p *Plan) Slots() int { return len(p.Releases) }

// WithNoise is sqlrewrite.Plan.WithSlots.
func (p *Plan) WithNoise(next []mechanisms.Slot) (*Plan, error) {
	switch {
	case p.Several != nil:
		return nil, fault.SlotMismatch("a query with several releases is priced by their shares, which a registered plan does not have",
			"ask one release after the other, or ask without the plan")
	case p.Query.Private():
		return nil, fault.SlotMismatch("private keys are selected at a price of their own, which a registered plan does not have",
			"group by public keys, or ask without the plan")
	case slices.ContainsFunc(p.Releases, func(r Release) bool { return r.Selection != nil }):
		return nil, fault.SlotMismatch("a selection is no noise, which is what a registered plan has",
			"leave quantiles, min, max and mode out, or ask without the plan")
	case len(p.Releases) > len(next):
		return nil, fault.PlanExhausted(len(p.Releases), len(next))
	}
	fixed := *p
	fixed.Releases, fixed.noise = make([]Release, len(p.Releases)), make([]keptLaw, len(p.Releases))
	for i, r := range p.Releases {
		slot := next[i]
		if asked, ok := p.Options.Mechanism.fixed(); ok && asked != slot.Name() {
			return nil, fault.SlotMismatch(fmt.Sprintf("the plan's next slot for %s is %s noise, and the query asks for %s",
				sqlprint.DescribeStatistic(r.Statistic), slot.Name(), asked), `leave "mechanism" out, or ask another query first`)
		}
		l1, l2Squared := p.Bounding.Norms(r.Statistic)
		var err error
		if r.Mechanism, err = slot.Noise(l1, l2Squared); err != nil {
			return nil, internal(err)
		}
		fixed.Releases[i], fixed.noise[i] = r, keptLaw{Epsilon: slot.Epsilon, Rho: slot.Rho}
	}
	fixed.Weights = nil
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
