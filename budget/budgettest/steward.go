package budgettest

import (
	"crypto/sha256"
	"math/big"

	"noisegate.example/budget"
	"noisegate.example/budget/accounting"
	"noisegate.example/budget/journal"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

// A frozen account takes no charge, whatever its limit says next; what was asked before is still answered.
func testFreeze(f *fixture) {
	whole, own := datasetAccount(f.limit(budget.Pure, "10", "")), analystAccount("ana", f.limit(budget.Pure, "1", ""))
	freeze := func(id budget.AccountID, frozen bool) {
		f.Helper()
		if err := f.ledger.Freeze(f.Context(), "stella", id, frozen); err != nil {
			f.Fatal(err)
		}
	}
	if err := f.ledger.Freeze(f.Context(), "stella", whole.ID, true); fault.CodeOf(err) != fault.CodeRequestNotFound {
		f.Errorf("an account that does not exist: %v", err)
	}
	asked := f.charge(pure(1), whole, own)
	f.settle(f.reserve(asked), pure(1))
	running := f.reserve(f.charge(pure(1), whole, own))
	for _, id := range []budget.AccountID{whole.ID, own.ID} {
		freeze(id, true)
		if e := f.refused(f.charge(pure(1), whole, own), fault.CodeBudgetFrozen); len(e.Details) != 0 {
			f.Errorf("details %v", e.Details)
		}
		f.replayed(f.sameQuestion(asked))
		if b := f.balance(id); !b.Frozen || b.Origin != budget.FromPolicy {
			f.Errorf("%+v", b)
		}
		before := f.everything()
		freeze(id, true)
		f.unchanged(before)
		freeze(id, false)
	}
	freeze(own.ID, true)
	raised := analystAccount("ana", f.limit(budget.Pure, "5", ""))
	raised.Version = 7
	if err := f.ledger.SetLimit(f.Context(), "policy", raised); err != nil {
		f.Fatal(err)
	}
	f.refused(f.charge(pure(1), whole, own), fault.CodeBudgetFrozen) // a policy thaws nothing
	f.settle(running, pure(1))                                       // what runs may finish
	freeze(own.ID, false)
	f.reserve(f.charge(pure(1000), whole, own))
	kinds := map[budget.EntryKind]int{}
	for _, e := range f.entries() {
		if e.Kind == budget.EntryFreeze || e.Kind == budget.EntryThaw {
			kinds[e.Kind]++
			if e.Analyst != "stella" || e.Account == nil {
				f.Errorf("entry %+v", e)
			}
		}
	}
	if kinds[budget.EntryFreeze] != 3 || kinds[budget.EntryThaw] != 3 {
		f.Errorf("%v", kinds)
	}
}

// A refill adds to a cap, is a line of the journal, and shows in what the account may lose in a lifetime.
func testRefill(f *fixture) {
	own := analystAccount("ana", f.limit(budget.Approx, "1", "1e-6"))
	other := analystAccount("bob", f.limit(budget.ZCDP, "0.1", "1e-9"))
	f.reserve(f.charge(pure(1000), own))
	f.reserve(f.charge(gaussian(100), other))
	f.refused(f.charge(pure(1), own), fault.CodeBudgetExhausted)
	refill := func(r budget.Refill) {
		f.Helper()
		if err := f.ledger.Refill(f.Context(), "stella", r); err != nil {
			f.Fatal(err)
		}
	}
	refill(budget.Refill{Account: own.ID, Epsilon: mechanisms.EpsilonUnit / 2, Delta: 1_000_000_000_000, Reason: "the survey's second wave"})
	e := f.entries()[0]
	if e.Kind != budget.EntryRefill || e.Analyst != "stella" || *e.Account != own.ID || e.Limit.Epsilon != mechanisms.EpsilonUnit*3/2 ||
		e.Loss != (mechanisms.Loss{Epsilon: mechanisms.EpsilonUnit / 2, Delta: 1_000_000_000_000}) || e.Loss.Delta*2 != e.Limit.TotalDelta {
		f.Errorf("entry %+v", e)
	}
	// The limit is the one that would have been given at once.
	want, err := budget.NewLimit(budget.LimitSpec{Form: budget.Approx, Epsilon: big.NewRat(3, 2), Delta: f.number("2e-6")})
	if got := f.balance(own.ID); err != nil || got.Limit != want || got.Origin != budget.FromSteward ||
		got.Lifetime() != (budget.Promise{Epsilon: mechanisms.EpsilonUnit * 3 / 2, Delta: 2_000_000_000_000, Bounded: true}) {
		f.Errorf("%+v, %v; want %+v", got, err, want)
	}
	f.reserve(f.charge(pure(500), own))
	refill(budget.Refill{Account: other.ID, Rho: 10 * milli})
	f.reserve(f.charge(gaussian(10), other))
	f.refused(f.charge(gaussian(1), other), fault.CodeBudgetExhausted)

	for name, r := range map[string]budget.Refill{
		"nothing":            {Account: own.ID},
		"negative":           {Account: own.ID, Epsilon: -1, Delta: 2},
		"another currency":   {Account: own.ID, Rho: 1},
		"another currency 2": {Account: other.ID, Epsilon: 1},
		"too much":           {Account: own.ID, Epsilon: accounting.MaxAmount * mechanisms.EpsilonUnit},
		"all of δ":           {Account: own.ID, Delta: mechanisms.DeltaUnit - 1},
	} {
		before := f.everything()
		if err := f.ledger.Refill(f.Context(), "stella", r); fault.CodeOf(err) != fault.CodeRequestBudget {
			f.Errorf("%s: %v", name, err)
		}
		f.unchanged(before)
	}
	nobody := budget.AccountID{Dataset: dataset, Scope: budget.AnalystScope, Name: "eve"}
	if err := f.ledger.Refill(f.Context(), "stella", budget.Refill{Account: nobody,
		Epsilon: 1}); fault.CodeOf(err) != fault.CodeRequestNotFound {
		f.Errorf("an account that does not exist: %v", err)
	}
}

// The chain covers every entry, and its digests are those of the question and the answer.
func testChain(f *fixture) {
	own := analystAccount("ana", f.limit(budget.Pure, "10", ""))
	empty, err := f.ledger.Head(f.Context(), dataset)
	if err != nil || empty != (budget.Head{Dataset: dataset}) {
		f.Fatalf("%+v, %v", empty, err)
	}
	c := f.charge(pure(1), own)
	answer := f.settle(f.reserve(c), pure(1))
	f.checkChain()
	middle, err := f.ledger.Head(f.Context(), dataset)
	if err != nil {
		f.Fatal(err)
	}
	elsewhere := f.charge(pure(1), budget.Account{ID: budget.AccountID{Dataset: "other", Scope: budget.DatasetScope}, Limit: own.Limit})
	elsewhere.Dataset = "other"
	if _, err := f.ledger.Reserve(f.Context(), elsewhere); err != nil { // another dataset, another chain
		f.Fatal(err)
	}
	f.took(elsewhere)
	f.reserve(f.charge(pure(1), own))
	entries := f.entries()
	question, stored := sha256.New(), sha256.Sum256(answer)
	question.Write(c.Fingerprint[:])
	question.Write(c.Request)
	for _, e := range entries {
		if e.Reservation == c.ID && (e.Kind == budget.EntryReserve && string(e.Digest) != string(question.Sum(nil)) ||
			e.Kind == budget.EntrySettle && string(e.Digest) != string(stored[:])) {
			f.Errorf("entry %+v", e)
		}
	}
	after, err := f.ledger.Verify(f.Context(), middle)
	if err != nil || after.Entries != 1 {
		f.Errorf("%+v, %v; want the one entry after the head", after, err)
	}
}

// checkChain verifies the journal as the ledger does, and again from its entries alone (I5).
func (f *fixture) checkChain() {
	f.Helper()
	head, err := f.ledger.Head(f.Context(), dataset)
	if err != nil {
		f.Fatal(err)
	}
	verified, err := f.ledger.Verify(f.Context(), budget.Head{Dataset: dataset})
	if err != nil || verified.Head != head || verified.Unchained != 0 {
		f.Errorf("%+v, %v; want an end at %+v", verified, err, head)
	}
	chain, auditor, entries := journal.NewChain(budget.Head{Dataset: dataset}), journal.NewAuditor(dataset, nil), f.entries()
	for i := len(entries) - 1; i >= 0; i-- {
		if entries[i].Dataset != dataset {
			continue
		}
		if err := chain.Add(entries[i]); err != nil {
			f.Error(err)
		}
		if err := auditor.Add(entries[i]); err != nil && !f.rewound {
			f.Error(err)
		}
	}
	if err := chain.EndsAt(head); err != nil || chain.Entries != verified.Entries {
		f.Errorf("%v; %d entries, the ledger says %d", err, chain.Entries, verified.Entries)
	}
}
