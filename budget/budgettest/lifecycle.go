package budgettest

import (
	"bytes"
	"slices"
	"time"

	"noisegate.example/budget"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

func testLifecycle(f *fixture) {
	whole, own := datasetAccount(f.limit(budget.Approx, "20", "1e-6")), analystAccount("ana", f.limit(budget.Approx, "3", "1e-7"))
	loss := withDelta(pure(500), 10)
	c := f.charge(loss, whole, own)
	id := f.reserve(c)
	for _, a := range c.Accounts {
		f.wantBalance(a, mechanisms.Loss{}, loss)
		if got := f.balance(a.ID); got.Account != a {
			f.Fatalf("opened %+v, want %+v", got.Account, a)
		}
	}
	answer := f.settle(id, loss)
	for _, a := range c.Accounts {
		f.wantBalance(a, loss, mechanisms.Loss{})
	}
	stored, err := f.ledger.Release(f.Context(), "ana", id)
	if err != nil {
		f.Fatal(err)
	}
	if stored.ID != id || stored.Dataset != dataset || stored.Analyst != "ana" || stored.Loss != loss || stored.SettledAt.IsZero() ||
		!bytes.Equal(stored.Answer, answer) || !bytes.Equal(stored.Request, c.Request) {
		f.Fatalf("stored %+v", stored)
	}
}

func testSettleLess(f *fixture) {
	own := analystAccount("ana", f.limit(budget.Approx, "1", "1e-6"))
	id := f.reserve(f.charge(withDelta(pure(400), 7), own))
	for _, more := range []mechanisms.Loss{withDelta(pure(401), 7), withDelta(pure(400), 8), gaussian(1), {Rho: -1}} {
		if err := f.ledger.Settle(f.Context(), id, more, []byte("x")); err == nil {
			f.Fatalf("released %+v for less", more)
		}
		f.wantBalance(own, mechanisms.Loss{}, withDelta(pure(400), 7))
	}
	f.settle(id, pure(100))
	f.wantBalance(own, pure(100), mechanisms.Loss{})
	f.reserve(f.charge(pure(900), own)) // the difference may be spent again
	f.refused(f.charge(pure(1), own), fault.CodeBudgetExhausted)
}

// What costs the dataset and the ensemble less is spent so; all is reserved on all, and the history shows what the
// analyst paid.
func testSettleApart(f *fixture) {
	limit := f.limit(budget.Approx, "30", "1e-6")
	whole, group, own, votes := datasetAccount(limit), groupAccount("ml", limit), analystAccount("ana", limit),
		ensembleAccount("digits", limit)
	reserved := withDelta(gaussian(100), 7)
	c := f.charge(reserved, own, votes, whole, group)
	id := f.reserve(c)
	for _, a := range c.Accounts {
		f.wantBalance(a, mechanisms.Loss{}, kept(reserved))
	}
	for _, more := range []budget.Apart{
		{Own: gaussian(50), Shared: gaussian(51)}, {Own: gaussian(101)}, {Own: gaussian(50), Shared: withDelta(mechanisms.Loss{}, 1)},
		{Own: gaussian(50), Shared: mechanisms.Loss{Rho: -1}}, {Own: withDelta(gaussian(50), 8), Shared: gaussian(1)},
	} {
		if err := f.ledger.SettleApart(f.Context(), id, more, []byte("x")); err == nil {
			f.Fatalf("released %+v for %+v", more, reserved)
		}
		for _, a := range c.Accounts {
			f.wantBalance(a, mechanisms.Loss{}, kept(reserved))
		}
	}
	f.settleApart(id, budget.Apart{Own: withDelta(gaussian(50), 7), Shared: gaussian(20)})
	for _, a := range []budget.Account{group, own} {
		f.wantBalance(a, kept(withDelta(gaussian(50), 7)), mechanisms.Loss{})
	}
	for _, a := range []budget.Account{whole, votes} {
		f.wantBalance(a, kept(gaussian(20)), mechanisms.Loss{})
	}
	stored, err := f.ledger.Release(f.Context(), "ana", id)
	if err != nil || stored.Loss != kept(withDelta(gaussian(50), 7)) {
		f.Fatalf("%+v, %v", stored, err)
	}
	e := f.entries()[0]
	if e.Kind != budget.EntrySettle || e.Loss != stored.Loss || e.Shared == nil || *e.Shared != kept(gaussian(20)) {
		f.Fatalf("%+v", e)
	}
	// Nothing at all, and the same for all: this is an entry as Settle writes it.
	id = f.reserve(f.charge(reserved, own, whole))
	f.settleApart(id, budget.Apart{Own: gaussian(100)})
	f.wantBalance(whole, kept(gaussian(20)), mechanisms.Loss{})
	id = f.reserve(f.charge(reserved, own, whole))
	f.settleApart(id, budget.Apart{Own: gaussian(10), Shared: gaussian(10)})
	if e := f.entries()[0]; e.Shared != nil {
		f.Fatalf("%+v", e)
	}
}

// A charge that may settle at several levels has a tail for each, and keeps them.
func testLevels(f *fixture) {
	own, whole := analystAccount("ana", f.limit(budget.Approx, "30", "1e-15")), datasetAccount(f.limit(budget.Approx, "30", "1e-15"))
	levels := func(n int64) budget.Charge {
		c := f.charge(gaussian(10), own, whole)
		c.Levels = n
		return c
	}
	tailed := func(rho, tails int64) mechanisms.Loss {
		l := kept(gaussian(rho))
		l.Tail *= mechanisms.AttoDelta(tails)
		return l
	}
	id := f.reserve(levels(11))
	f.wantBalance(own, mechanisms.Loss{}, tailed(10, 11))
	f.settleApart(id, budget.Apart{Own: gaussian(5), Shared: gaussian(2)})
	f.wantBalance(own, tailed(5, 11), mechanisms.Loss{})
	f.wantBalance(whole, tailed(2, 11), mechanisms.Loss{})
	f.settleApart(f.reserve(levels(11)), budget.Apart{Own: gaussian(5)})
	f.wantBalance(whole, tailed(2, 11), mechanisms.Loss{}) // what is released to nobody has no tail
	// There is room for 31 tails (a 32nd of δ) in the ε clause, which this ρ needs.
	low := own
	low.Limit.Rho, low.Origin = 1, budget.FromSteward
	if err := f.ledger.SetLimit(f.Context(), "stella", low); err != nil {
		f.Fatal(err)
	}
	f.refused(levels(10), fault.CodeBudgetExhausted)
	f.settle(f.reserve(levels(9)), gaussian(5))
	for _, n := range []int64{-1, 2_000_000_000} {
		if _, err := f.ledger.Reserve(f.Context(), levels(n)); fault.CodeOf(err) != fault.CodeInternal {
			f.Fatalf("%d levels: %v", n, err)
		}
	}
}

func testVoidGivesBack(f *fixture) {
	own := analystAccount("ana", f.limit(budget.Pure, "1", ""))
	c := f.charge(pure(1000), own)
	id := f.reserve(c)
	f.refused(f.charge(pure(1), own), fault.CodeBudgetExhausted)
	if err := f.ledger.Void(f.Context(), id); err != nil {
		f.Fatal(err)
	}
	f.wantBalance(own, mechanisms.Loss{}, mechanisms.Loss{})
	again := f.charge(pure(1000), own)
	again.Fingerprint = c.Fingerprint // the question may be asked again
	f.reserve(again)
}

func testExpireKeeps(f *fixture) {
	own := analystAccount("ana", f.limit(budget.Pure, "1", ""))
	c := f.charge(pure(700), own)
	id := f.reserve(c)
	if err := f.ledger.Expire(f.Context(), id); err != nil {
		f.Fatal(err)
	}
	f.wantBalance(own, pure(700), mechanisms.Loss{})
	if _, err := f.ledger.Release(f.Context(), "ana", id); fault.CodeOf(err) != fault.CodeBudgetUnknownRelease {
		f.Fatalf("an expired charge has a release: %v", err)
	}
	again := f.charge(pure(300), own)
	again.Fingerprint = c.Fingerprint // there is no answer to replay: it is charged again
	f.reserve(again)
}

// Every pair of endings: the first one counts, the same once more is no error, another is.
func testTransitions(f *fixture) {
	own := analystAccount("ana", f.limit(budget.Pure, "1000", ""))
	endings := map[string]func(budget.ReservationID) error{
		"settle":              func(id budget.ReservationID) error { return f.ledger.Settle(f.Context(), id, pure(1), []byte("a")) },
		"settle with another": func(id budget.ReservationID) error { return f.ledger.Settle(f.Context(), id, pure(1), []byte("b")) },
		"void":                func(id budget.ReservationID) error { return f.ledger.Void(f.Context(), id) },
		"expire":              func(id budget.ReservationID) error { return f.ledger.Expire(f.Context(), id) },
	}
	for first, end := range endings {
		for second, endAgain := range endings {
			id := f.reserve(f.charge(pure(1), own))
			if err := end(id); err != nil {
				f.Fatalf("%s: %v", first, err)
			}
			before := f.everything()
			if err := endAgain(id); (err == nil) != (first == second) {
				f.Fatalf("%s, then %s: %v", first, second, err)
			}
			f.unchanged(before)
		}
	}
	for name, end := range endings {
		if err := end("01JNOSUCH"); fault.CodeOf(err) != fault.CodeInternal {
			f.Fatalf("%s of no charge: %v", name, err)
		}
	}
}

// A gateway that died leaves open charges behind. They count as spent once they are old enough, and no later.
func testCrash(f *fixture) {
	own := analystAccount("ana", f.limit(budget.Pure, "1000", ""))
	lost := []budget.ReservationID{f.reserve(f.charge(pure(1), own)), f.reserve(f.charge(pure(1), own)), f.reserve(f.charge(pure(1), own))}
	f.settle(lost[2], pure(1))
	if n, err := f.ledger.ExpireOlder(f.Context(), time.Hour); n != 0 || err != nil {
		f.Fatalf("expired %d, %v; none is an hour old", n, err)
	}
	old, spent, young := 2, pure(1), budget.ReservationID("")
	for age := 20 * time.Millisecond; ; age *= 4 {
		time.Sleep(age + 10*time.Millisecond)
		began := time.Now()
		young = f.reserve(f.charge(pure(1), own))
		n, err := f.ledger.ExpireOlder(f.Context(), age)
		if err != nil {
			f.Fatal(err)
		}
		for range n {
			spent = spent.Plus(pure(1))
		}
		if time.Since(began) < age {
			if n != old {
				f.Fatalf("expired %d; want the %d old ones", n, old)
			}
			break
		}
		old += 1 - n // the machine is too busy: the young one may have grown old meanwhile
	}
	f.wantBalance(own, spent, pure(1))
	for _, id := range lost[:2] {
		if err := f.ledger.Settle(f.Context(), id, pure(1), []byte("late")); err == nil {
			f.Fatal("an expired charge was settled: its answer would be released though its question may be asked again")
		}
	}
	f.settle(young, pure(1))
}

func testJournal(f *fixture) {
	whole, own := datasetAccount(f.limit(budget.ZCDP, "1", "1e-9")), analystAccount("ana", f.limit(budget.Approx, "3", "1e-7"))
	loss := withDelta(gaussian(10), 5)
	settled, voided, expired := f.charge(loss, whole, own), f.charge(loss, whole, own), f.charge(loss, whole, own)
	for _, c := range []budget.Charge{settled, voided, expired} {
		f.reserve(c)
	}
	less := gaussian(4)
	f.settle(settled.ID, less)
	if err := f.ledger.Void(f.Context(), voided.ID); err != nil {
		f.Fatal(err)
	}
	if err := f.ledger.Expire(f.Context(), expired.ID); err != nil {
		f.Fatal(err)
	}
	entries := f.entries()
	slices.Reverse(entries)
	want := []struct {
		kind    budget.EntryKind
		charge  budget.ReservationID
		loss    mechanisms.Loss
		account *budget.Account
	}{
		{kind: budget.EntryLimit, account: &whole},
		{kind: budget.EntryLimit, account: &own},
		{kind: budget.EntryReserve, charge: settled.ID, loss: kept(loss)},
		{kind: budget.EntryReserve, charge: voided.ID, loss: kept(loss)},
		{kind: budget.EntryReserve, charge: expired.ID, loss: kept(loss)},
		{kind: budget.EntrySettle, charge: settled.ID, loss: kept(less)},
		{kind: budget.EntryVoid, charge: voided.ID},
		{kind: budget.EntryExpire, charge: expired.ID, loss: kept(loss)},
	}
	if len(entries) != len(want) {
		f.Fatalf("%d entries, want %d", len(entries), len(want))
	}
	for i, w := range want {
		e := entries[i]
		if e.Kind != w.kind || e.Reservation != w.charge || e.Loss != w.loss || e.Dataset != dataset || e.At.IsZero() {
			f.Errorf("entry %d: got %+v, want %+v", i, e, w)
		}
		if i > 0 && e.Seq <= entries[i-1].Seq {
			f.Errorf("entry %d: number %d does not rise", i, e.Seq)
		}
		if (w.account != nil) != (e.Account != nil && e.Limit != nil) ||
			w.account != nil && (*e.Account != w.account.ID || *e.Limit != w.account.Limit) {
			f.Errorf("entry %d: account %+v, limit %+v", i, e.Account, e.Limit)
		}
		if (w.kind == budget.EntryReserve) != slices.Equal(e.Mechanisms, settled.Mechanisms) {
			f.Errorf("entry %d: mechanisms %+v", i, e.Mechanisms)
		}
	}
	page, err := f.ledger.Entries(f.Context(), budget.Page{Before: entries[5].Seq, Limit: 2})
	if err != nil || len(page) != 2 || page[0].Seq != entries[4].Seq || page[1].Seq != entries[3].Seq {
		f.Errorf("a page gave %+v, %v", page, err)
	}
}
