package httpapi

import (
	"errors"
	"testing"

	"noisegate.example/api"
	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/internal/fault"
)

// TestNoTextEndsTheProcess estimates texts that a planner could stumble over: each is answered, or refused for what it is, and free.
//
// covers: A44
func TestNoTextEndsTheProcess(t *testing.T) {
	f := newFront(t, gatewaytest.Options{}, 4)
	ana := f.client("ana:analyst")
	for name, sql := range gatewaytest.Endings() {
		_, err := ana.Estimate(t.Context(), api.QueryRequest{Dataset: gatewaytest.Dataset, Epsilon: "0.1", SQL: sql})
		var p *api.Problem
		switch code := codeOfError(err); {
		case err == nil:
		case !errors.As(err, &p) || p.Status < 400 || p.Status >= 500 || code == fault.CodeInternal:
			t.Errorf("%s: %v", name, err)
		}
		t.Logf("%s: %v", name, codeOfError(err))
	}
	plain := api.QueryRequest{Dataset: gatewaytest.Dataset, Epsilon: "0.1", SQL: "SELECT count(*) FROM people"}
	if _, err := ana.Estimate(t.Context(), plain); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	if spent := spentOf(t, f); spent != "nothing" {
		t.Errorf("spent %s", spent)
	}
}
