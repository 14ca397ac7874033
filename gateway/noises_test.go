package gateway

import (
	"reflect"
	"testing"
)

// TestNoisesAreRemembered: the noise of a question is found again by the next one of its analyst at the same price, and by nobody else's.
func TestNoisesAreRemembered(t *testing.T) {
	r := newRig(t, line("dataset", "", 10), perAnalyst("analysts", 5))
	remembered := func(subject string) int {
		return reflect.ValueOf(r.noises.Of(subject)).Elem().FieldByName("known").Len()
	}
	if _, err := r.Query(t.Context(), principal(t, "ana", "analysts"), count("0.5")); err != nil {
		t.Fatal(err)
	}
	if ana, bob := remembered("ana"), remembered("bob"); ana != 1 || bob != 0 {
		t.Errorf("%d noises of the analyst who asked are remembered, %d of another, want 1 and 0", ana, bob)
	}
}
