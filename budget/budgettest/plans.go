package budgettest

import (
	"errors"
	"slices"
	"sync"

	"noisegate.example/budget"
	"noisegate.example/budget/accounting"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

// slots returns n different slots.
func slots(n int) []mechanisms.Slot {
	all := make([]mechanisms.Slot, n)
	for i := range all {
		if i%3 == 2 {
			all[i].Rho = mechanisms.PicoRho(i + 1)
		} else {
			all[i].Epsilon = mechanisms.PicoEpsilon(i + 1)
		}
	}
	return all
}

// registering is a charge that pays for a plan of n slots.
func (f *fixture) registering(n int, accounts ...budget.Account) budget.Charge {
	c := f.charge(withDelta(pure(100), 1000), accounts...)
	c.Registers = slots(n)
	return c
}

// registered is a plan that is paid for.
func (f *fixture) registered(n int, accounts ...budget.Account) budget.ReservationID {
	f.Helper()
	c := f.registering(n, accounts...)
	id := f.reserve(c)
	f.settle(id, c.Loss)
	return id
}

// drawing is a question that takes slots out of a plan.
func (f *fixture) drawing(d budget.Draw, accounts ...budget.Account) budget.Charge {
	c := f.charge(mechanisms.Loss{}, accounts...)
	c.Draws = &d
	return c
}

// next is the plan's next slot.
func (f *fixture) next(id budget.ReservationID) int {
	f.Helper()
	p, err := f.ledger.Plan(f.Context(), "ana", id)
	if err != nil {
		f.Fatal(err)
	}
	return p.Next
}

// taken wants a draw to be refused and nothing changed.
func (f *fixture) taken(c budget.Charge) {
	f.Helper()
	before := f.everything()
	if got, err := f.ledger.Reserve(f.Context(), c); !errors.Is(err, budget.ErrSlotTaken) || got != (budget.Outcome{}) {
		f.Fatalf("Reserve gave %+v, %v; want %v", got, err, budget.ErrSlotTaken)
	}
	f.unchanged(before)
}

func (f *fixture) planAccounts() (whole, own budget.Account) {
	limit := f.limit(budget.Approx, "10", "1e-6")
	return datasetAccount(limit), analystAccount("ana", limit)
}

// A plan is what was registered, for its owner, from the moment that it is paid for; it is no release.
func testPlans(f *fixture) {
	whole, own := f.planAccounts()
	c := withKey(f.registering(5, whole, own), "k", "plan")
	unknown := func(analyst string, id budget.ReservationID) {
		f.Helper()
		if p, err := f.ledger.Plan(f.Context(), analyst, id); fault.CodeOf(err) != fault.CodePlanUnknown || p != nil {
			f.Errorf("%s sees %+v, %v", analyst, p, err)
		}
	}
	f.reserve(c)
	unknown("ana", c.ID) // not yet
	f.settle(c.ID, c.Loss)
	unknown("bob", c.ID)
	unknown("ana", "no such plan")
	p, err := f.ledger.Plan(f.Context(), "ana", c.ID)
	if err != nil || p.ID != c.ID || p.Dataset != dataset || p.Loss != c.Loss || p.Next != 0 || !slices.Equal(p.Slots, slots(5)) ||
		len(p.Left()) != 5 || p.RegisteredAt.IsZero() {
		f.Errorf("%+v, %v", p, err)
	}
	f.wantBalance(own, c.Loss, mechanisms.Loss{})
	f.wantBalance(whole, c.Loss, mechanisms.Loss{})
	if again := f.replayed(c); again.ID != c.ID {
		f.Errorf("registering again under the key gave %s", again.ID)
	}
	releases := f.everything().Releases
	_, err = f.ledger.Release(f.Context(), "ana", c.ID)
	if len(releases) != 0 || fault.CodeOf(err) != fault.CodeBudgetUnknownRelease {
		f.Errorf("the plan is a release: %+v, %v", releases, err)
	}
	plain := f.charge(pure(1), own)
	f.reserve(plain)
	f.settle(plain.ID, pure(1))
	unknown("ana", plain.ID)
	for _, end := range []func() error{
		func() error { return f.ledger.Void(f.Context(), c.ID) }, func() error { return f.ledger.Expire(f.Context(), c.ID) },
	} {
		c = f.registering(2, own)
		f.reserve(c)
		if err := end(); err != nil {
			f.Fatal(err)
		}
		unknown("ana", c.ID)
		f.taken(f.drawing(budget.Draw{Plan: c.ID, Count: 1}, own))
	}
}

// Slots go in order, once, to their owner and their dataset, and cost nothing more.
func testDraws(f *fixture) {
	whole, own := f.planAccounts()
	plan := f.registered(5, whole, own)
	paid := f.balance(own.ID)
	first := withKey(f.drawing(budget.Draw{Plan: plan, From: 0, Count: 2}, whole, own), "k", "first")
	if stored, err := f.ledger.Replay(f.Context(), first); err != nil || stored != nil {
		f.Fatalf("replay before: %+v, %v", stored, err)
	}
	f.reserve(first)
	if _, err := f.ledger.Replay(f.Context(), first); fault.CodeOf(err) != fault.CodeRequestInFlight {
		f.Errorf("in flight: %v", err)
	}
	answer := f.settle(first.ID, mechanisms.Loss{})
	settled, err := f.ledger.Settlement(f.Context(), first.ID)
	if err != nil || settled.Charged.Plan == nil || *settled.Charged.Plan.Draw() != *first.Draws ||
		settled.Charged.Plan.Loss != withDelta(pure(100), 1000) || !slices.Equal(settled.Charged.Plan.Accounts, settled.Charged.Accounts) {
		f.Errorf("what a receipt of a draw says of its plan: %+v, %v", settled.Charged, err)
	}
	if paid, err := f.ledger.Settlement(f.Context(), plan); err != nil || paid.Charged.Plan != nil {
		f.Errorf("what a receipt of a plan says: %+v, %v", paid.Charged, err)
	}
	for _, d := range []budget.Draw{{From: 0, Count: 1}, {From: 1, Count: 1}, {From: 3, Count: 1}, {From: 2, Count: 4}, {From: 5, Count: 0}} {
		d.Plan = plan
		f.taken(f.drawing(d, whole, own))
	}
	stranger := f.drawing(budget.Draw{Plan: plan, From: 2, Count: 1}, whole, analystAccount("bob", own.Limit))
	stranger.Analyst = "bob"
	f.taken(stranger)
	f.taken(f.drawing(budget.Draw{Plan: "no such plan", Count: 1}, whole, own))
	elsewhere := f.drawing(budget.Draw{Plan: plan, From: 2, Count: 1})
	elsewhere.Dataset = "other"
	elsewhere.Accounts = []budget.Account{{ID: budget.AccountID{Dataset: "other", Scope: budget.DatasetScope}, Limit: own.Limit}}
	f.taken(elsewhere)
	if got := f.next(plan); got != 2 {
		f.Errorf("the next slot is %d, want 2", got)
	}
	f.reserve(f.drawing(budget.Draw{Plan: plan, From: 2, Count: 0}, whole, own)) // a question without releases
	f.reserve(f.drawing(budget.Draw{Plan: plan, From: 2, Count: 3}, whole, own))
	f.taken(f.drawing(budget.Draw{Plan: plan, From: 5, Count: 1}, whole, own))
	// The same question is replayed, whatever is left of the plan.
	for _, again := range []budget.Charge{withID(first, "again"), withKey(withID(first, "other"), "k2", "first")} {
		again.Draws = &budget.Draw{Plan: plan, From: 5, Count: 2}
		stored, err := f.ledger.Replay(f.Context(), again)
		if err != nil || stored == nil || stored.ID != first.ID || !slices.Equal(stored.Answer, answer) {
			f.Errorf("Replay gave %+v, %v", stored, err)
		}
		if stored := f.replayed(again); stored.ID != first.ID {
			f.Errorf("Reserve replays %s", stored.ID)
		}
	}
	if _, err := f.ledger.Replay(f.Context(), withKey(f.charge(pure(1), own), "k2",
		"another")); fault.CodeOf(err) != fault.CodeBudgetReplayMismatch {
		f.Errorf("a key of another request: %v", err)
	}
	if got := f.balance(own.ID); got != paid {
		f.Errorf("draws changed the balance from %+v to %+v", paid, got)
	}
	if releases := f.everything().Releases; len(releases) != 1 || releases[0].ID != first.ID {
		f.Errorf("releases %+v", releases)
	}
}

func withID(c budget.Charge, id budget.ReservationID) budget.Charge {
	c.ID = id
	return c
}

// A drawn slot is gone, however its question ends; a question that ended without an answer draws the next.
func testDrawnSlotsAreGone(f *fixture) {
	_, own := f.planAccounts()
	plan := f.registered(4, own)
	crashed := f.drawing(budget.Draw{Plan: plan, From: 0, Count: 1}, own)
	f.reserve(crashed)
	if n, err := f.ledger.ExpireOlder(f.Context(), -1); err != nil || n != 1 { // the gateway died between draw and answer
		f.Fatal(n, err)
	}
	failed := f.drawing(budget.Draw{Plan: plan, From: 1, Count: 1}, own)
	f.reserve(failed)
	if err := f.ledger.Void(f.Context(), failed.ID); err != nil {
		f.Fatal(err)
	}
	if got := f.next(plan); got != 2 {
		f.Fatalf("the next slot is %d, want 2", got)
	}
	crashed.Draws = &budget.Draw{Plan: plan, From: 2, Count: 1}
	f.reserve(withID(crashed, "asked again"))
	if got := f.next(plan); got != 3 {
		f.Errorf("the next slot is %d, want 3", got)
	}
	// A limit that was lowered below what is spent blocks plans too, as a steward would expect.
	lower := own
	lower.Origin, lower.Limit = budget.FromSteward, f.limit(budget.Pure, "0.001", "")
	if err := f.ledger.SetLimit(f.Context(), "stella", lower); err != nil {
		f.Fatal(err)
	}
	f.refused(f.drawing(budget.Draw{Plan: plan, From: 3, Count: 1}, own), fault.CodeBudgetExhausted)
}

// Charges that mix up plans and payment are defects of the caller.
func testDefectivePlans(f *fixture) {
	_, own := f.planAccounts()
	for name, change := range map[string]func(*budget.Charge){
		"a slot without noise":  func(c *budget.Charge) { c.Registers = []mechanisms.Slot{{}} },
		"too many slots":        func(c *budget.Charge) { c.Registers = slots(accounting.MaxSlots + 1) },
		"registers and draws":   func(c *budget.Charge) { c.Registers, c.Draws = slots(1), &budget.Draw{Plan: "p"} },
		"draws from nothing":    func(c *budget.Charge) { c.Draws = &budget.Draw{Count: 1} },
		"draws a negative slot": func(c *budget.Charge) { c.Draws = &budget.Draw{Plan: "p", From: -1, Count: 1} },
		"gives slots back":      func(c *budget.Charge) { c.Draws = &budget.Draw{Plan: "p", From: 1, Count: -1} },
		"draws and costs":       func(c *budget.Charge) { c.Draws, c.Loss = &budget.Draw{Plan: "p"}, pure(1) },
	} {
		c := f.charge(mechanisms.Loss{}, own)
		change(&c)
		f.Logf("%s", name)
		f.refused(c, fault.CodeInternal)
	}
}

// 64 questions for 10 slots: each slot has one noise, and exactly ten questions are answered.
func testTenSlotsForSixtyFour(f *fixture) {
	const n = 10
	whole, own := f.planAccounts()
	plan := f.registered(n, whole, own)
	ctx := patiently(f)
	var mu sync.Mutex
	var drawn []int
	together(clients, func(int) {
		for c := f.drawing(budget.Draw{Plan: plan, Count: 1}, whole, own); ; {
			p, err := f.ledger.Plan(ctx, "ana", plan)
			if err != nil || len(p.Left()) == 0 {
				if err != nil {
					f.Error(err)
				}
				return
			}
			c.Draws.From = p.Next
			got, err := f.ledger.Reserve(ctx, c)
			if errors.Is(err, budget.ErrSlotTaken) {
				continue
			}
			if err == nil && got.Reserved != nil {
				f.took(c)
				err = f.ledger.Settle(ctx, c.ID, mechanisms.Loss{}, []byte("x"))
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				f.Error(err)
			}
			drawn = append(drawn, c.Draws.From)
			return
		}
	})
	slices.Sort(drawn)
	if !slices.Equal(drawn, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}) || f.next(plan) != n {
		f.Errorf("drawn %v, next %d", drawn, f.next(plan))
	}
}

// The same question from 64 clients at once draws one slot.
func testOneQuestionDrawsOnce(f *fixture) {
	_, own := f.planAccounts()
	plan := f.registered(64, own)
	question := f.drawing(budget.Draw{Plan: plan, Count: 1}, own)
	ctx := patiently(f)
	var mu sync.Mutex
	taken := 0
	together(clients, func(i int) {
		c := withID(question, question.ID+budget.ReservationID(rune('A'+i)))
		for {
			p, err := f.ledger.Plan(ctx, "ana", plan)
			if err != nil {
				f.Error(err)
				return
			}
			c.Draws = &budget.Draw{Plan: plan, From: p.Next, Count: 1}
			got, err := f.ledger.Reserve(ctx, c)
			switch {
			case errors.Is(err, budget.ErrSlotTaken):
				continue
			case err == nil && got.Reserved != nil:
				mu.Lock()
				taken++
				mu.Unlock()
				f.took(c)
			case fault.CodeOf(err) != fault.CodeRequestInFlight:
				f.Errorf("got %+v, %v", got, err)
			}
			return
		}
	})
	if taken != 1 || f.next(plan) != 1 {
		f.Errorf("%d reservations, next slot %d", taken, f.next(plan))
	}
}
