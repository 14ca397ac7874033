package budgettest

import (
	"slices"
	"time"

	"noisegate.example/budget"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

// testFailures: a charge that failed counts as spent and as a failure of its analyst on its dataset, for a while or
// until a steward says otherwise.
func testFailures(f *fixture) {
	own := analystAccount("ana", f.limit(budget.Pure, "1", ""))
	bobs := analystAccount("bob", f.limit(budget.Pure, "1", ""))
	counted := func(want int64, whose string, within time.Duration) {
		f.Helper()
		if n, err := f.ledger.Failures(f.Context(), dataset, whose, within); err != nil || n != want {
			f.Fatalf("%s has %d failures, %v; want %d", whose, n, err, want)
		}
		for _, account := range []budget.AccountID{own.ID, {Dataset: dataset, Scope: own.ID.Scope, Name: "new"}} { // a policy may name others
			if _, n, err := f.ledger.Caller(f.Context(), []budget.AccountID{account}, dataset, whose, within); err != nil || n != want {
				f.Fatalf("%s, who asks with account %s, has %d failures, %v; want %d", whose, account.Name, n, err, want)
			}
		}
		if within == budget.FailurePeriod {
			f.wantCaller(whose, own.ID, want)
			f.wantCaller(whose, budget.AccountID{Dataset: dataset, Scope: own.ID.Scope, Name: "new"}, want)
		}
	}
	reset := func(whose string) {
		f.Helper()
		if err := f.ledger.ResetFailures(f.Context(), "stella", budget.Reset{Dataset: dataset, Analyst: whose}); err != nil {
			f.Fatal(err)
		}
	}
	counted(0, "ana", budget.FailurePeriod)
	before := f.everything()
	reset("ana") // nothing to forget
	f.unchanged(before)

	var failed []budget.ReservationID
	for range 3 {
		c := f.charge(pure(100), own)
		failed = append(failed, f.reserve(c))
		if err := f.ledger.Fail(f.Context(), c.ID); err != nil {
			f.Fatal(err)
		}
	}
	c := f.charge(pure(100), bobs)
	c.Analyst = "bob"
	f.reserve(c)
	if err := f.ledger.Fail(f.Context(), c.ID); err != nil {
		f.Fatal(err)
	}
	for _, end := range []func(budget.ReservationID) error{ // none of these is a failure
		func(id budget.ReservationID) error { return f.ledger.Expire(f.Context(), id) },
		func(id budget.ReservationID) error { return f.ledger.Void(f.Context(), id) },
		func(id budget.ReservationID) error { return f.ledger.Settle(f.Context(), id, pure(1), []byte("a")) },
	} {
		if err := end(f.reserve(f.charge(pure(1), own))); err != nil {
			f.Fatal(err)
		}
	}
	counted(3, "ana", budget.FailurePeriod)
	counted(1, "bob", budget.FailurePeriod)
	counted(0, "ana", 0)
	f.wantBalance(own, pure(100).Plus(pure(100)).Plus(pure(100)).Plus(pure(1)).Plus(pure(1)), mechanisms.Loss{})
	if n, err := f.ledger.Failures(f.Context(), "elsewhere", "ana", budget.FailurePeriod); n != 0 || err != nil {
		f.Fatalf("on another dataset: %d, %v", n, err)
	}

	before = f.everything()
	for _, again := range []func() error{ // it has ended so already
		func() error { return f.ledger.Fail(f.Context(), failed[0]) },
		func() error { return f.ledger.Expire(f.Context(), failed[0]) },
	} {
		if err := again(); err != nil {
			f.Fatal(err)
		}
	}
	if err := f.ledger.Settle(f.Context(), failed[0], pure(1), []byte("late")); fault.CodeOf(err) != fault.CodeInternal {
		f.Fatalf("a failed charge was settled: %v", err)
	}
	f.unchanged(before)

	reset("ana")
	counted(0, "ana", budget.FailurePeriod)
	counted(1, "bob", budget.FailurePeriod)
	e := f.entries()[0]
	if e.Kind != budget.EntryReset || e.Analyst != "stella" || e.Account == nil || *e.Account != own.ID || e.Reservation != "" {
		f.Fatalf("the journal says %+v", e)
	}
	if err := f.ledger.Fail(f.Context(), f.reserve(f.charge(pure(1), own))); err != nil {
		f.Fatal(err)
	}
	counted(1, "ana", budget.FailurePeriod)
	for _, bad := range []budget.Reset{{Dataset: dataset}, {Analyst: "ana"}} {
		if err := f.ledger.ResetFailures(f.Context(), "stella", bad); fault.CodeOf(err) != fault.CodeInternal {
			f.Fatalf("%+v: %v", bad, err)
		}
	}
}

// wantCaller has a look-up of releases find an account as it is, and so many failures, with the releases.
func (f *fixture) wantCaller(whose string, account budget.AccountID, failures int64) {
	f.Helper()
	ids := []budget.AccountID{account}
	balances, err := f.ledger.Balances(f.Context(), ids)
	if err != nil {
		f.Fatal(err)
	}
	l := budget.Lookup{Dataset: dataset, Analyst: whose, Identities: [][][32]byte{{{9}}}, Accounts: ids}
	found, err := f.ledger.(budget.ReleasedValues).Find(f.Context(), l)
	if err != nil || found.Failures != failures || !slices.Equal(found.Balances, balances) || len(found.Exact) != 1 {
		f.Fatalf("%s finds %+v, %v with a release; want %d failures and %+v", whose, found, err, failures, balances)
	}
}
