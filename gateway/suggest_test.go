package gateway

import (
	"errors"
	"slices"
	"testing"

	"noisegate.example/api"
	"noisegate.example/internal/fault"
)

// A refused text comes with the query that would be accepted, with or without a price, and nothing is charged for looking.
func TestRefusalsSuggest(t *testing.T) {
	for name, request := range map[string]api.QueryRequest{
		"priced":    {Dataset: "d", SQL: "SELECT avg(agee) FROM people", Epsilon: "0.5"},
		"max error": {Dataset: "d", SQL: "SELECT avg(agee) FROM people", MaxError: map[string]api.Decimal{"avg": "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			_, err := r.Estimate(t.Context(), principal(t, "ana"), request)
			var refusal *fault.Error
			if !errors.As(err, &refusal) || refusal.Code != fault.CodeUnknownColumn {
				t.Fatal(err)
			}
			for _, want := range []fault.Detail{{Name: "near", Value: "agee"}, {Name: "suggestion", Value: "SELECT avg(age) FROM people"}} {
				if !slices.Contains(refusal.Details, want) {
					t.Errorf("%v lacks %v", refusal.Details, want)
				}
			}
		})
	}
}
