package gateway

import (
	"context"
	"math/big"
	"testing"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/catalog"
	"noisegate.example/gateway/auth"
	"noisegate.example/gateway/released"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite"
)

// boughtWide buys what a request asks for as versions before migration 027 did: within the bounds of the policy, and under that name.
func (r *rig) boughtWide(t *testing.T, who auth.Principal, request Request) budget.ReservationID {
	t.Helper()
	q, err := r.prepare(t.Context(), who, request)
	if err != nil {
		t.Fatal(err)
	}
	wide := q.plan.WideUnder([32]byte{})
	if wide == nil {
		t.Fatal("no condition narrows bounds")
	}
	q.plan, q.Charge.Fingerprint, q.sharing.questions = wide, wide.Fingerprint(), nil
	if q.Charge.Shared && wide.Reusable() {
		q.sharing.questions = wide.BlockQuestions()
	}
	if r.values != nil {
		q.released = released.Of(wide, "")
	}
	paid, err := Sell(t.Context(), r.Service, r.Schedule("d"), Sale[*api.Result]{Order: &q.Order, Data: q.data,
		Work: func(ctx context.Context) (Finish[*api.Result], error) { return r.run(ctx, q) }})
	if err != nil {
		t.Fatal(err)
	}
	return paid.ID
}

func summed(epsilon, where string) Request {
	request := count(epsilon)
	request.SQL = "SELECT sum(age) FROM people WHERE " + where
	return request
}

// What was bought before conditions narrowed bounds is given again free, by its answer or by its release, to its buyer, and to others where
// the policy shares it. A new question is bought within narrowed bounds, and found by that.
func TestAnswersWithinThePolicysBounds(t *testing.T) {
	const narrowing = "age BETWEEN 20 AND 25"
	for _, shared := range []bool{false, true} {
		for _, released := range []bool{false, true} {
			r := newRig(t, line(catalog.DatasetScope, "", 10), perAnalyst("analysts", 5))
			ana, bob := principal(t, "ana", "analysts"), principal(t, "bob", "analysts")
			on := r.policies.snapshot
			on.WideReleases, on.WideQuestions, on.ShareReleases = true, true, shared
			if !released {
				r.values = nil // it is found by its answer alone
			}
			id := r.boughtWide(t, ana, summed("1", narrowing))
			on.WideQuestions = !released // as under a later policy: then it is found by its release alone
			if e, err := r.Estimate(t.Context(), ana, summed("1", narrowing).QueryRequest); err != nil || !e.Replayed {
				t.Errorf("estimate: %+v, %v", e, err)
			}
			if got := r.ask(t, ana, summed("1", narrowing)); !got.Replayed || got.ID != id {
				t.Errorf("asked again, releases %t: %+v, bought as %s", released, got, id)
			}
			if e, err := r.Estimate(t.Context(), bob, summed("1", narrowing).QueryRequest); err != nil || e.Replayed {
				t.Errorf("another's estimate: %+v, %v", e, err)
			}
			if got := r.ask(t, bob, summed("1", narrowing)); got.Replayed != shared || shared != (got.ID == id) {
				t.Errorf("asked by another, shared %t: %+v", shared, got)
			}
			fresh := r.ask(t, ana, summed("2", narrowing))
			if got := r.ask(t, ana, summed("2", narrowing)); fresh.Replayed || !got.Replayed || got.ID != fresh.ID {
				t.Errorf("a new question: %+v, again %+v", fresh, got)
			}
			on.WideReleases, on.WideQuestions = false, false
			if got := r.ask(t, ana, summed("2", narrowing)); !got.Replayed || got.ID != fresh.ID {
				t.Errorf("it is not stored under the name of now: %+v", got)
			}
		}
	}
}

// Of several releases those that were bought before cost nothing.
func TestReleasesWithinThePolicysBounds(t *testing.T) {
	r := newRig(t, line(catalog.DatasetScope, "", 10), perAnalyst("analysts", 5))
	r.policies.snapshot.WideReleases = true
	ana := principal(t, "ana", "analysts")
	both := count("2")
	both.SQL = "SELECT (SELECT sum(age) FROM people WHERE age < 30), (SELECT sum(age) FROM people WHERE age > 60)"
	r.boughtWide(t, ana, summed("1", "age < 30"))
	if got := r.ask(t, ana, both); got.Replayed || !closeTo(string(got.Spent.Epsilon), "1") {
		t.Errorf("one of two is there: %+v", got)
	}
	other := both
	other.SQL = "SELECT (SELECT sum(age) FROM people WHERE age > 60) - (SELECT sum(age) FROM people WHERE age < 30) AS difference"
	if got := r.ask(t, ana, other); !got.Replayed {
		t.Errorf("both are there: %+v", got)
	}
}

// What was kept of a question at any price goes on to answer it at others.
func TestVectorsWithinThePolicysBounds(t *testing.T) {
	r := sharingRig(t)
	r.policies.snapshot.WideReleases = true
	ana := principal(t, "ana", "analysts")
	asked := func(rho string) Request {
		request := gaussianCount(rho)
		request.SQL = "SELECT sum(age) FROM people WHERE age < 30"
		return request
	}
	r.boughtWide(t, ana, asked("0.01"))
	for _, c := range [][2]string{{"0.004", "0"}, {"0.02", "0.01"}, {"0.03", "0.01"}, {"0.02", "0"}} {
		if got := r.ask(t, ana, asked(c[0])); !closeTo(string(got.Spent.Rho), c[1]) && string(got.Spent.Rho) != c[1] {
			t.Errorf("at %s it cost %s, want %s: %s", c[0], got.Spent.Rho, c[1], got.Result)
		}
	}
}

// What was kept within the policy's bounds and does not help changes neither what a question releases nor what it costs: the split of its
// price by weights, and so its ρ, is that of the narrowed bounds.
func TestVectorsThatDoNotHelpChangeNothing(t *testing.T) {
	r := sharingRig(t)
	r.policies.snapshot.WideReleases = true
	r.data.do = func() ([]sqlrewrite.ExactRow, error) {
		return []sqlrewrite.ExactRow{{Values: []mechanisms.Exact{mechanisms.SealInt64(10), mechanisms.SealInt64(20)}}}, nil
	}
	ana := principal(t, "ana", "analysts")
	asked := func(sums, rows api.Decimal) Request {
		request := count("1")
		request.SQL = "SELECT sum(age) AS s, count(*) AS n FROM people WHERE age BETWEEN 0 AND 1"
		request.Weights = map[string]api.Decimal{"s": sums, "n": rows}
		return request
	}
	r.boughtWide(t, ana, asked("0.000001", "1"))
	q, err := r.prepare(t.Context(), ana, asked("1", "1"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.recall(t.Context(), q, r.Schedule("d")); err != nil {
		t.Fatal(err)
	}
	priced := q.plan.Loss()
	if wide := q.plan.WideUnder(q.sharing.under); q.sharing.best == nil || wide == nil || wide.Loss() == priced {
		t.Fatal("there is no vector within the policy's bounds, or it costs the same")
	}
	if err := q.reuse(); err != nil || q.sharing.reuse != nil {
		t.Fatalf("it helps: %v", err)
	}
	if got := q.plan.Loss(); got != priced || q.Charge.Loss != priced {
		t.Errorf("it releases what costs %+v for %+v, and was priced %+v", got, q.Charge.Loss, priced)
	}
}

// What was kept within the policy's bounds answers no question that bounds its error: its noise is larger.
func TestMaxErrorIsKeptWithinNarrowedBounds(t *testing.T) {
	r := sharingRig(t)
	r.policies.snapshot.WideReleases = true
	ana := principal(t, "ana", "analysts")
	request := gaussianCount("0.001")
	request.SQL = "SELECT sum(age) AS s FROM people WHERE age < 3"
	r.boughtWide(t, ana, request)
	request.Rho, request.MaxError = "", map[string]api.Decimal{"s": "50"}
	q, err := r.prepare(t.Context(), ana, request)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.recall(t.Context(), q, r.Schedule("d")); err != nil {
		t.Fatal(err)
	}
	if err := q.reuse(); err != nil {
		t.Fatal(err)
	}
	if !keeps(q.plan, map[string]*big.Rat{"s": big.NewRat(50, 1)}) {
		t.Error("the error is larger than the question allows")
	}
}
