package gateway

import (
	"context"
	"testing"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/catalog"
	"noisegate.example/gateway/auth"
	"noisegate.example/internal/fault"
)

// boughtEarlier buys what a request asks for as versions before migration 026 did, under the name that they gave it.
func (r *rig) boughtEarlier(t *testing.T, who auth.Principal, request Request) budget.ReservationID {
	t.Helper()
	q, err := r.prepare(t.Context(), who, request)
	if err != nil {
		t.Fatal(err)
	}
	q.Charge.Fingerprint = q.earlier[0]
	paid, err := Sell(t.Context(), r.Service, r.Schedule("d"), Sale[*api.Result]{Order: &q.Order, Data: q.data,
		Work: func(ctx context.Context) (Finish[*api.Result], error) { return r.run(ctx, q) }})
	if err != nil {
		t.Fatal(err)
	}
	return paid.ID
}

// What was bought under an earlier name is given again free as long as the policy is in force under which it was bought, to its buyer,
// and to others where the policy shares it. Nothing is stored under such names any more.
func TestAnswersOfEarlierVersions(t *testing.T) {
	for _, shared := range []bool{false, true} {
		r := newRig(t, line(catalog.DatasetScope, "", 10), perAnalyst("analysts", 5))
		r.values = nil // what was released of it is not found either
		ana, bob := principal(t, "ana", "analysts"), principal(t, "bob", "analysts")
		on := r.policies.snapshot
		on.EarlierReleases, on.EarlierQuestions, on.ShareReleases = true, true, shared
		id := r.boughtEarlier(t, ana, count("1"))
		if e, err := r.Estimate(t.Context(), ana, count("1").QueryRequest); err != nil || !e.Replayed {
			t.Errorf("estimate: %+v, %v", e, err)
		}
		if got := r.ask(t, ana, count("1")); !got.Replayed || got.ID != id {
			t.Errorf("asked again: %+v, bought as %s", got, id)
		}
		if e, err := r.Estimate(t.Context(), bob, count("1").QueryRequest); err != nil || e.Replayed {
			t.Errorf("another's estimate: %+v, %v", e, err)
		}
		if got := r.ask(t, bob, count("1")); got.Replayed != shared || shared != (got.ID == id) {
			t.Errorf("asked by another, shared %t: %+v", shared, got)
		}
		drawn := count("2")
		fresh := r.ask(t, ana, drawn)
		if got := r.ask(t, ana, drawn); fresh.Replayed || !got.Replayed || got.ID != fresh.ID {
			t.Errorf("a new question: %+v, again %+v", fresh, got)
		}
		later := *on
		later.EarlierQuestions = false
		r.policies.snapshot = &later // stored under the name of now, and the other one is not looked for
		if got := r.ask(t, ana, drawn); !got.Replayed || got.ID != fresh.ID {
			t.Errorf("it is not stored under the name of now: %+v", got)
		}
		if got := r.ask(t, ana, count("1")); got.Replayed {
			t.Errorf("it was not bought under an earlier name: %+v", got)
		}
	}
}

// A question that an earlier version still runs is in flight.
func TestEarlierVersionsRunQuestions(t *testing.T) {
	r := newRig(t, line(catalog.DatasetScope, "", 10), perAnalyst("analysts", 5))
	r.policies.snapshot.EarlierQuestions = true
	ana := principal(t, "ana", "analysts")
	q, err := r.prepare(t.Context(), ana, count("1"))
	if err != nil {
		t.Fatal(err)
	}
	q.Charge.Fingerprint = q.earlier[0]
	if got, err := r.ledger.Reserve(t.Context(), q.Charge); err != nil || got.Reserved == nil {
		t.Fatal(got, err)
	}
	if _, err := r.Query(t.Context(), ana, count("1")); fault.CodeOf(err) != fault.CodeRequestInFlight {
		t.Errorf("asked meanwhile: %v", err)
	}
}
