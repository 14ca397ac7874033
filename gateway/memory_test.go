package gateway

import (
	"testing"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/internal/fault"
)

// TestMemoryIsReservedBeforeTheCharge: while an analyst's answers take what the analyst may have, a question is refused and not charged,
// whatever it is; another analyst is answered; and an answer that is released makes room.
func TestMemoryIsReservedBeforeTheCharge(t *testing.T) {
	r := newRig(t, line("dataset", "", 10), perAnalyst("analysts", 5))
	ana, bob := principal(t, "ana", "analysts"), principal(t, "bob", "analysts")
	first, err := r.Query(t.Context(), ana, count("0.5"))
	if err != nil {
		t.Fatal(err)
	}
	if taken, want := r.Memory().Taken(), int64(len(first.Result)); taken != want {
		t.Errorf("an answer of %d bytes takes %d", want, taken)
	}
	first.Release()
	first.Release()
	if taken := r.Memory().Taken(); taken != 0 {
		t.Errorf("an answer that was released takes %d bytes", taken)
	}
	before, err := r.ledger.Entries(t.Context(), budget.Page{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	cursor, small := r.Memory().Open("ana"), r.Memory().Open("ana")
	cursor.Resize(r.Memory().Bytes() / 2)
	small.Fit(1 << 20) // of the reserve
	free := Request{QueryRequest: api.QueryRequest{Dataset: "d", SQL: "SELECT age FROM people LIMIT 0"}}
	for name, q := range map[string]Request{"charged": count("0.25"), "a replay": count("0.5"), "free": free} {
		if _, err := r.Query(t.Context(), ana, q); fault.CodeOf(err) != fault.CodeRequestMemory {
			t.Errorf("%s: got %v, want %s", name, err, fault.CodeRequestMemory)
		}
	}
	if after, err := r.ledger.Entries(t.Context(), budget.Page{Limit: 100}); err != nil || len(after) != len(before) {
		t.Errorf("what was refused left %d entries in the ledger, %v", len(after)-len(before), err)
	}
	for name, q := range map[string]Request{"charged": count("0.125"), "free": free} {
		answer, err := r.Query(t.Context(), bob, q)
		if err != nil {
			t.Fatalf("another analyst, %s: %v", name, err)
		}
		answer.Release()
	}
	small.Close()
	cursor.Close()
	if answer, err := r.Query(t.Context(), ana, count("0.25")); err != nil || answer.Replayed {
		t.Errorf("once there is room: %+v, %v", answer, err)
	}
}
