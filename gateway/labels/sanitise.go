package labels

import (
	"encoding/json"
	"math/big"

	"noisegate.example/api"
	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/pate"
)

// sanitiseOf are the parameters of the sanitised ε that a definition gets; nil for none. What the policy fixes is
// inherited: a definition may repeat it and cannot change it. Where the policy fixes nothing, the definition does,
// before votes are loaded.
func sanitiseOf(given *api.SanitiseParameters, fixed *catalog.SanitisePolicy) (json.RawMessage, error) {
	if given != nil {
		if err := checkSanitise(*given); err != nil {
			return nil, err
		}
	}
	switch {
	case fixed == nil && given == nil:
		return nil, nil
	case fixed != nil && fixed.Never && given != nil:
		return nil, fault.PateEnsemble("sanitise", "left out: the policy lets no epsilon be published that was computed from votes")
	case fixed != nil && fixed.Never:
		return nil, nil
	case fixed != nil && given != nil && !sameSanitise(*given, fixedSanitise(fixed)):
		return nil, fault.PateEnsemble("sanitise", "left out, or what the policy fixes: "+sanitiseText(fixed))
	case fixed != nil:
		inherited := fixedSanitise(fixed)
		given = &inherited
	}
	stored, err := json.Marshal(given)
	if err != nil {
		return nil, fault.Internal(err)
	}
	return stored, nil
}

// checkSanitise looks at the numbers one by one. Whether the theorem holds for them depends on the mechanism, and is
// looked at when an ε is bought.
func checkSanitise(p api.SanitiseParameters) error {
	for name, text := range map[string]api.Decimal{"order": p.Order, "beta": p.Beta, "sigma_ss": p.SigmaSS, "delta": p.Delta} {
		if name == "beta" && text == "" {
			continue
		}
		if n, err := mechanisms.ParseDecimal(string(text)); err != nil || n.Sign() <= 0 {
			return fault.PateEnsemble("sanitise."+name, "a positive decimal number")
		}
	}
	return nil
}

// sanitiseFor are the parameters at which the ε of a version may be bought now: those that it was defined with, unless
// the policy has come to say otherwise. Votes were loaded since, so that nothing is inherited any more.
func sanitiseFor(v *pate.Version, fixed *catalog.SanitisePolicy) (api.SanitiseParameters, error) {
	var p api.SanitiseParameters
	if fixed != nil && fixed.Never {
		return p, fault.PateParameters("the policy lets no epsilon be published that was computed from votes")
	}
	if v.Sanitise == nil {
		return p, fault.PateParameters("the ensemble was defined without the parameters of a sanitised epsilon (sanitise)")
	}
	if err := json.Unmarshal(v.Sanitise, &p); err != nil {
		return p, fault.Internal(err)
	}
	if fixed != nil && !sameSanitise(p, fixedSanitise(fixed)) {
		return p, fault.PateParameters("this version was defined with other parameters of a sanitised epsilon than the policy fixes now: " +
			sanitiseText(fixed))
	}
	return p, nil
}

func fixedSanitise(p *catalog.SanitisePolicy) api.SanitiseParameters {
	return api.SanitiseParameters{Order: api.Decimal(p.Order), Beta: api.Decimal(p.Beta), SigmaSS: api.Decimal(p.SigmaSS),
		Delta: api.Decimal(p.Delta)}
}

// sanitiseText shows what a policy fixes, which every steward may read.
func sanitiseText(p *catalog.SanitisePolicy) string {
	text := "order " + p.Order
	if p.Beta != "" {
		text += ", beta " + p.Beta
	}
	return text + ", sigma_ss " + p.SigmaSS + ", delta " + p.Delta
}

// sameSanitise compares numbers, not spellings. A β that is left out is 0.4/λ.
func sameSanitise(a, b api.SanitiseParameters) bool {
	same := func(x, y *big.Rat) bool { return x != nil && y != nil && x.Cmp(y) == 0 }
	return same(ratOf(a.Order), ratOf(b.Order)) && same(betaOf(a), betaOf(b)) && same(ratOf(a.SigmaSS), ratOf(b.SigmaSS)) &&
		same(ratOf(a.Delta), ratOf(b.Delta))
}

func betaOf(p api.SanitiseParameters) *big.Rat {
	if order := ratOf(p.Order); p.Beta == "" && order != nil && order.Sign() > 0 {
		return order.Quo(big.NewRat(2, 5), order)
	}
	return ratOf(p.Beta)
}

// ratOf is nil for what is no decimal number.
func ratOf(d api.Decimal) *big.Rat {
	r, err := mechanisms.ParseDecimal(string(d))
	if err != nil {
		return nil
	}
	return r
}
