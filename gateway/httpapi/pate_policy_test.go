package httpapi

import (
	"testing"

	"noisegate.example/api"
	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/internal/fault"
)

// TestPolicyFixesSanitisedEpsilon: what the policy says of a sanitised ε goes into every definition; a definition
// cannot say otherwise, and a policy that comes to say otherwise stops what was defined before.
func TestPolicyFixesSanitisedEpsilon(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	sam, mel := f.client("sam:steward"), f.client("mel:ml")
	policy := func(pate string) {
		t.Helper()
		_, version, err := sam.Policy(t.Context(), gatewaytest.Dataset)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := sam.SetPolicy(t.Context(), gatewaytest.Dataset, []byte(gatewaytest.Policy+pate), version); err != nil {
			t.Fatal(err)
		}
	}
	const fixed = "\npate:\n  sanitise: {order: 8, sigma_ss: 8, delta: 1e-7}\n  ensembles: {faces: {sanitise: never}}\n"
	policy(fixed)
	define := func(name string, p *api.SanitiseParameters) (*api.Ensemble, error) {
		return sam.DefineEnsemble(t.Context(), name, api.EnsembleDefinition{Dataset: gatewaytest.Dataset, Teachers: 100, Classes: digits(),
			Budget: &api.BudgetLimit{Form: "approx", Epsilon: "50", Delta: "1e-4"}, Sanitise: p})
	}
	same := api.SanitiseParameters{Order: "8", SigmaSS: "8", Delta: "1e-7"}
	for name, c := range map[string]struct {
		ensemble string
		given    *api.SanitiseParameters
		refused  bool
	}{
		"inherited":           {"pets", nil, false},
		"repeated":            {"pets", &same, false},
		"in another spelling": {"pets", &api.SanitiseParameters{Order: "8.0", Beta: "0.05", SigmaSS: "80e-1", Delta: "0.0000001"}, false},
		"another order":       {"pets", &api.SanitiseParameters{Order: "9", SigmaSS: "8", Delta: "1e-7"}, true},
		"another beta":        {"pets", &api.SanitiseParameters{Order: "8", Beta: "0.04", SigmaSS: "8", Delta: "1e-7"}, true},
		"another noise":       {"pets", &api.SanitiseParameters{Order: "8", SigmaSS: "7", Delta: "1e-7"}, true},
		"another delta":       {"pets", &api.SanitiseParameters{Order: "8", SigmaSS: "8", Delta: "1e-6"}, true},
		"no numbers":          {"pets", &api.SanitiseParameters{}, true},
		"never, left out":     {"faces", nil, false},
		"never, and given":    {"faces", &same, true},
	} {
		e, err := define(c.ensemble, c.given)
		switch {
		case c.refused && codeOfError(err) != fault.CodePateEnsemble:
			t.Errorf("%s: %v, %v", name, e, err)
		case !c.refused && err != nil:
			t.Errorf("%s: %v", name, err)
		case !c.refused && c.ensemble == "faces" && e.Sanitise != nil, !c.refused && c.ensemble != "faces" && e.Sanitise == nil:
			t.Errorf("%s: %+v", name, e.Sanitise)
		}
	}
	sealedForEpsilon(t, f, "digits", 30) // of fewer the free epsilon is smaller than any sanitised one
	if _, err := mel.Labels(t.Context(), "digits", api.LabelRequest{Queries: queries(0, 30), Mechanism: "gnmax", Sigma: "15"},
		""); err != nil {
		t.Fatal(err)
	}
	ask := api.AnalysisRequest{Mechanism: "gnmax", Sigma: "15"}
	for _, changed := range []string{
		"\npate: {sanitise: {order: 8, sigma_ss: 8, delta: 1e-8}}\n",
		"\npate: {sanitise: never}\n",
		"\npate: {sanitise: {order: 8, sigma_ss: 8, delta: 1e-7}, ensembles: {digits: {sanitise: never}}}\n",
	} {
		policy(changed)
		if _, err := sam.SanitisedEpsilon(t.Context(), "digits", ask); codeOfError(err) != fault.CodePateParameters {
			t.Errorf("%s: %v", changed, err)
		}
	}
	policy(fixed)
	if e, err := sam.SanitisedEpsilon(t.Context(), "digits", ask); err != nil || e.Replayed || e.Order != 8 || e.SigmaSS != 8 {
		t.Errorf("%+v, %v", e, err)
	}
	policy("") // leaves it to definitions, again
	if e, err := sam.SanitisedEpsilon(t.Context(), "digits", ask); err != nil || !e.Replayed {
		t.Errorf("%+v, %v", e, err)
	}
}
