package pgledger_test

import (
	"crypto/rand"
	"testing"

	"noisegate.example/budget"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/pgtest"
	"noisegate.example/mechanisms"
)

// A gateway that decides from memory decides as one that looks: whatever happened through another gateway, on another dataset, or to the
// same question.
func testRecall(t *testing.T, d *pgtest.ControlDatabase) {
	here, there := open(t, d), open(t, d)
	own := account(budget.AnalystScope, "ana", 100)
	loss := mechanisms.Loss{Epsilon: 10}
	remember := func() { // decides from memory from here on
		t.Helper()
		for range 10 {
			reserve(t, here, charge(rand.Text(), mechanisms.Loss{}, own))
		}
	}
	remember()
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	refused := func(c budget.Charge, want fault.Code) {
		t.Helper()
		if got, err := here.Reserve(t.Context(), c); fault.CodeOf(err) != want {
			t.Fatalf("Reserve gave %+v, %v; want %s", got, err, want)
		}
	}

	do(there.Freeze(t.Context(), "stella", own.ID, true))
	refused(charge("frozen", loss, own), fault.CodeBudgetFrozen)
	do(there.Freeze(t.Context(), "stella", own.ID, false))
	reserve(t, here, charge("thawed", loss, own))

	remember()
	reserve(t, there, charge("elsewhere", mechanisms.Loss{Epsilon: 85}, own))
	refused(charge("too much", loss, own), fault.CodeBudgetExhausted)
	do(there.Refill(t.Context(), "stella", budget.Refill{Account: own.ID, Epsilon: 100}))
	reserve(t, here, charge("refilled", loss, own))

	remember()
	reserve(t, here, charge("seventh", loss, own))
	do(here.Void(t.Context(), "seventh"))
	again := charge("seventh again", loss, own)
	again.Fingerprint = charge("seventh", loss, own).Fingerprint
	reserve(t, here, again)
	again.ID = "while it runs"
	refused(again, fault.CodeRequestInFlight)
	do(here.Settle(t.Context(), "seventh again", loss, []byte("answer")))
	remember()
	again.Loss = mechanisms.Loss{Epsilon: 1000} // the question is answered, whatever it would cost now
	if got, err := here.Reserve(t.Context(), again); err != nil || got.Replay == nil || string(got.Replay.Answer) != "answer" {
		t.Errorf("%+v, %v", got, err)
	}
	remember()
	reserve(t, here, charge("twice", loss, own))
	refused(charge("twice", loss, own), fault.CodeRequestInFlight)

	elsewhere := account(budget.AnalystScope, "ana", 100)
	elsewhere.ID.Dataset = "e"
	onE := charge("on e", loss, elsewhere)
	onE.Dataset, onE.IdempotencyKey = "e", "key"
	reserve(t, here, onE)
	remember()
	onD := charge("on d", loss, own)
	onD.IdempotencyKey = "key"
	refused(onD, fault.CodeRequestInFlight)

	b, err := here.Balances(t.Context(), []budget.AccountID{own.ID})
	if err != nil || b[0].Used().Epsilon != 4*10+85 {
		t.Errorf("%+v, %v", b, err)
	}
	do(here.VerifyAll(t.Context()))
}
