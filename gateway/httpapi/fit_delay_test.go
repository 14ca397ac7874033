package httpapi

import (
	"errors"
	"strings"
	"testing"

	"noisegate.example/api"
	"noisegate.example/gateway"
	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/internal/fault"
)

// Where the guarantee covers time, a fit by many passes is refused: one unit changes the time of each, and the delay is made for one.
func TestDelayCoversAllPasses(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	text := strings.Replace(gatewaytest.Policy, "tables:\n", "timing: {unit_ms: 5, epsilon: 0.5, delta: 1e-9}\ntables:\n", 1)
	if _, err := f.SetPolicy(t.Context(), gateway.PolicyChange{Dataset: "census", By: "sam", Replaces: 1, Text: []byte(text)}); err != nil {
		t.Fatal(err)
	}
	ana := f.client("ana:analyst")
	estimate := func(passes int64) (*api.FitEstimate, error) {
		return ana.EstimateFit(t.Context(), api.FitRequest{Dataset: "census", From: "visits", Target: "CASE WHEN amount > 5 THEN 1 ELSE 0 END",
			Model: "logistic", Rho: "0.01", Features: []api.FitFeature{{Column: "amount"}}, Iterations: &passes})
	}
	if one, err := estimate(1); err != nil || one.Notes[len(one.Notes)-1].Code != "timing" {
		t.Errorf("one pass: %+v, %v", one, err)
	}
	var p *api.Problem
	if _, err := estimate(2); !errors.As(err, &p) || p.Code != string(fault.CodeFit) || !strings.Contains(p.Detail, "delay") {
		t.Errorf("two passes: %v", err)
	}
}
