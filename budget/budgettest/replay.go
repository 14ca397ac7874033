package budgettest

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"noisegate.example/budget"
	"noisegate.example/internal/fault"
)

// sameQuestion is a new request for what c asked.
func (f *fixture) sameQuestion(c budget.Charge) budget.Charge {
	again := f.charge(c.Loss, c.Accounts...)
	again.Analyst, again.Fingerprint = c.Analyst, c.Fingerprint
	return again
}

// withKey is the request under an Idempotency-Key; body stands for what the client sent.
func withKey(c budget.Charge, key, body string) budget.Charge {
	c.IdempotencyKey, c.RequestDigest = key, sha256.Sum256([]byte(body))
	return c
}

func testReplay(f *fixture) {
	own := analystAccount("ana", f.limit(budget.Pure, "1", ""))
	c := f.charge(pure(1000), own)
	answer := f.settle(f.reserve(c), pure(1000))
	f.refused(f.charge(pure(1), own), fault.CodeBudgetExhausted)
	for range 3 { // free, also when nothing is left
		if got := f.replayed(f.sameQuestion(c)); !bytes.Equal(got.Answer, answer) || got.ID != c.ID || got.Loss != c.Loss ||
			!bytes.Equal(got.Request, c.Request) {
			f.Fatalf("replayed %+v", got)
		}
	}
	bob := f.sameQuestion(c)
	bob.Analyst, bob.Accounts = "bob", []budget.Account{analystAccount("bob", f.limit(budget.Pure, "1", ""))}
	f.reserve(bob) // answers are not shared between analysts
}

// again asks for the answer of a charge that is known.
func (f *fixture) again(c budget.Charge, id budget.ReservationID) ([]budget.Balance, *budget.Stored) {
	f.Helper()
	a := budget.Again{Dataset: c.Dataset, Analyst: c.Analyst, Charge: id}
	for _, account := range c.Accounts {
		a.Accounts = append(a.Accounts, account.ID)
	}
	balances, stored, err := f.ledger.Again(f.Context(), a)
	if err != nil {
		f.Fatal(err)
	}
	return balances, stored
}

func testAgain(f *fixture) {
	limit := f.limit(budget.Pure, "2", "")
	own, bobs := analystAccount("ana", limit), analystAccount("bob", limit)
	c := f.charge(pure(1000), own, bobs)
	if balances, stored := f.again(c, c.ID); len(balances) != 0 || stored != nil {
		f.Errorf("before there is anything: %v, %v", balances, stored)
	}
	id := f.reserve(c)
	if balances, stored := f.again(c, id); len(balances) != 2 || balances[0].Reserved != pure(1000) || stored != nil {
		f.Errorf("of an open charge: %v, %v", balances, stored)
	}
	answer := f.settle(id, pure(1000))
	balances, stored := f.again(c, id)
	if stored == nil || !bytes.Equal(stored.Answer, answer) || stored.ID != id || stored.Analyst != c.Analyst || stored.Loss != pure(1000) ||
		!bytes.Equal(stored.Request, c.Request) || stored.SettledAt.IsZero() {
		f.Fatalf("of a settled charge: %+v", stored)
	}
	if known, err := f.ledger.Balances(f.Context(), []budget.AccountID{own.ID, bobs.ID}); err != nil || !slices.Equal(balances, known) {
		f.Errorf("balances are %+v, want %+v, %v", balances, known, err)
	}
	for what, other := range map[string]budget.Charge{
		"another analyst": {Dataset: c.Dataset, Analyst: "bob"}, "another dataset": {Dataset: "other", Analyst: c.Analyst},
	} {
		if _, stored := f.again(other, id); stored != nil {
			f.Errorf("%s is given %+v", what, stored)
		}
	}
	failed := f.charge(pure(1), own)
	if err := f.ledger.Expire(f.Context(), f.reserve(failed)); err != nil {
		f.Fatal(err)
	}
	if _, stored := f.again(failed, failed.ID); stored != nil {
		f.Errorf("of an expired charge: %+v", stored)
	}
}

// testAgainInACrowd: clients that ask at once get what they asked for, and nothing older.
func testAgainInACrowd(f *fixture) {
	const clients, turns = 16, 40
	limit := f.limit(budget.Pure, "1000", "")
	var group sync.WaitGroup
	for i := range clients {
		group.Go(func() {
			analyst := fmt.Sprint("analyst ", i)
			for turn := range turns {
				c := f.charge(pure(1), analystAccount(analyst, limit))
				c.Analyst = analyst
				answer := f.settle(f.reserve(c), pure(1))
				balances, stored := f.again(c, c.ID)
				if stored == nil || stored.Analyst != analyst || !bytes.Equal(stored.Answer, answer) || len(balances) != 1 ||
					balances[0].ID.Name != analyst || balances[0].Spent.Epsilon != pure(int64(turn+1)).Epsilon {
					f.Errorf("%s, turn %d: %+v, %+v", analyst, turn, balances, stored)
					return
				}
			}
		})
	}
	group.Wait()
}

func testIdempotencyKeys(f *fixture) {
	own := analystAccount("ana", f.limit(budget.Pure, "1000", ""))
	bobs := analystAccount("bob", f.limit(budget.Pure, "1000", ""))
	first := withKey(f.charge(pure(1), own), "k1", "first")
	answer := f.settle(f.reserve(first), pure(1))

	// The same key and body: the same answer, even where the question's identity has changed (a new policy).
	if got := f.replayed(withKey(f.charge(pure(1), own), "k1", "first")); !bytes.Equal(got.Answer, answer) {
		f.Fatalf("replayed %q", got.Answer)
	}
	f.refused(withKey(f.charge(pure(1), own), "k1", "second"), fault.CodeBudgetReplayMismatch)
	f.refused(withKey(f.sameQuestion(first), "k1", "second"), fault.CodeBudgetReplayMismatch)

	// A key belongs to its analyst.
	bob := withKey(f.charge(pure(1), bobs), "k1", "second")
	bob.Analyst = "bob"
	f.reserve(bob)

	// A replay binds its key as well.
	f.replayed(withKey(f.sameQuestion(first), "k2", "first again"))
	f.refused(withKey(f.charge(pure(1), own), "k2", "other"), fault.CodeBudgetReplayMismatch)
	f.replayed(withKey(f.charge(pure(1), own), "k2", "first again"))

	// A voided charge is as if it had never been: its key is free for any body.
	voided := withKey(f.charge(pure(1), own), "k3", "body")
	if err := f.ledger.Void(f.Context(), f.reserve(voided)); err != nil {
		f.Fatal(err)
	}
	retried := withKey(f.charge(pure(1), own), "k3", "another body")
	f.settle(f.reserve(retried), pure(1))
	f.refused(withKey(f.charge(pure(1), own), "k3", "body"), fault.CodeBudgetReplayMismatch)

	// A key whose charge was spent without an answer is never charged again.
	lost := withKey(f.charge(pure(1), own), "k4", "body")
	if err := f.ledger.Expire(f.Context(), f.reserve(lost)); err != nil {
		f.Fatal(err)
	}
	f.refused(withKey(f.sameQuestion(lost), "k4", "body"), fault.CodeBudgetLostAnswer)
	f.refused(withKey(f.charge(pure(1), own), "k4", "other"), fault.CodeBudgetReplayMismatch)
	f.reserve(withKey(f.sameQuestion(lost), "k5", "body"))

	// A refused request does not take its key.
	f.refused(withKey(f.charge(pure(1_000_000), own), "k6", "too much"), fault.CodeBudgetExhausted)
	f.reserve(withKey(f.charge(pure(1), own), "k6", "less"))
}

func testInFlight(f *fixture) {
	own := analystAccount("ana", f.limit(budget.Pure, "10", ""))
	c := withKey(f.charge(pure(1), own), "k1", "body")
	id := f.reserve(c)
	f.refused(f.sameQuestion(c), fault.CodeRequestInFlight)
	f.refused(withKey(f.sameQuestion(c), "k2", "body"), fault.CodeRequestInFlight)
	f.refused(withKey(f.charge(pure(1), own), "k1", "body"), fault.CodeRequestInFlight)
	f.refused(withKey(f.charge(pure(1), own), "k1", "other"), fault.CodeBudgetReplayMismatch)
	f.settle(id, pure(1))
	f.replayed(withKey(f.sameQuestion(c), "k2", "other")) // k2 was refused above and stood for nothing
}

func testReleases(f *fixture) {
	limit := f.limit(budget.Pure, "1000", "")
	ana, bob := analystAccount("ana", limit), analystAccount("bob", limit)
	var anas []budget.ReservationID
	for i := range 5 {
		c := f.charge(pure(1), ana)
		f.settle(f.reserve(c), pure(1))
		anas = append(anas, c.ID)
		other := f.charge(pure(1), bob)
		other.Analyst = "bob"
		f.reserve(other)
		if i > 2 {
			f.settle(other.ID, pure(1))
		}
	}
	open := f.charge(pure(1), ana) // no release
	f.reserve(open)
	slices.Reverse(anas)

	var got []budget.ReservationID
	for before := budget.ReservationID(""); ; {
		some, err := f.ledger.Releases(f.Context(), "ana", before, 2)
		if err != nil {
			f.Fatal(err)
		}
		for _, r := range some {
			got = append(got, r.ID)
			if r.Dataset != dataset || r.Loss != pure(1) || r.SettledAt.IsZero() || len(r.Request) == 0 {
				f.Errorf("release %+v", r)
			}
			before = r.ID
		}
		if len(some) < 2 {
			break
		}
	}
	if !slices.Equal(got, anas) {
		f.Errorf("listed %v, want %v", got, anas)
	}
	bought := func(b budget.Bought) budget.ReservationID {
		id, err := f.ledger.Bought(f.Context(), b)
		if err != nil {
			f.Fatal(err)
		}
		return id
	}
	asked, err := f.ledger.Requests(f.Context(), anas, 1<<20)
	if err != nil {
		f.Fatal(err)
	}
	for i, request := range asked {
		first := slices.IndexFunc(asked, func(r json.RawMessage) bool { return string(r) == string(request) })
		b := budget.Bought{Dataset: dataset, Analyst: "ana", Request: request}
		if id := bought(b); id != anas[first] {
			f.Errorf("bought %s, want %s, the newest of %s", id, anas[first], anas[i])
		}
		later, spaced, elsewhere, others := b, b, b, b
		later.Since, spaced.Request, elsewhere.Dataset = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC), append(slices.Clone(request), ' '), "other"
		others.Analyst = "eve"
		for _, b := range []budget.Bought{later, spaced, elsewhere, others} {
			if id := bought(b); id != "" {
				f.Errorf("%+v: bought %s", b, id)
			}
		}
	}
	// Stewards read what anybody asked, also what has no answer yet.
	all := append([]budget.ReservationID{open.ID, "01AAAAAAAAAAAAAAAAAAAAAAAA"}, anas...)
	asked, err = f.ledger.Requests(f.Context(), all, 1<<20)
	if err != nil || len(asked) != len(all) || len(asked[0]) == 0 || asked[1] != nil || len(asked[2]) == 0 {
		f.Errorf("asked %s, %v", asked, err)
	}
	for i := 1; i < len(all); i++ { // as many as do not end before
		bytes := 0
		for _, request := range asked[:i] {
			bytes += len(request)
		}
		want := i
		if asked[i-1] == nil { // with the one before they were as many already
			want--
		}
		if some, err := f.ledger.Requests(f.Context(), all, bytes); err != nil || len(some) != want {
			f.Errorf("%d of %d bytes, want %d: %v", len(some), bytes, want, err)
		}
		if some, err := f.ledger.Requests(f.Context(), all, bytes+1); err != nil || len(some) < i+1 {
			f.Errorf("%d of %d bytes, want %d: %v", len(some), bytes+1, i+1, err)
		}
	}
	if some, err := f.ledger.Releases(f.Context(), "bob", anas[0], 2); len(some) != 0 || err != nil {
		f.Errorf("bob goes on from ana's release: %+v, %v", some, err)
	}
	for _, id := range []budget.ReservationID{anas[0], anas[len(anas)-1]} {
		settlement, err := f.ledger.Settlement(f.Context(), id)
		if i := slices.IndexFunc(f.entries(), func(e budget.Entry) bool {
			return e.Kind == budget.EntrySettle &&
				e.Reservation == id
		}); err != nil || i < 0 ||
			settlement.Head != (budget.Head{Dataset: dataset, Seq: f.entries()[i].Seq, Hash: f.entries()[i].Hash}) ||
			settlement.At != f.entries()[i].At || settlement.Charged.Analyst != "ana" || settlement.Charged.Loss != f.entries()[i].Loss ||
			len(settlement.Charged.Accounts) != len(f.entries()[i].AccountIDs) {
			f.Errorf("settlement %+v, %v", settlement, err)
		}
	}
	if s, err := f.ledger.Settlement(f.Context(), "01JNOSUCH"); fault.CodeOf(err) != fault.CodeBudgetUnknownRelease {
		f.Errorf("%+v, %v", s, err)
	}
	for analyst, id := range map[string]budget.ReservationID{"bob": anas[0], "eve": anas[0], "ana": "01JNOSUCH", "": anas[0]} {
		if got, err := f.ledger.Release(f.Context(), analyst, id); got != nil || fault.CodeOf(err) != fault.CodeBudgetUnknownRelease {
			f.Errorf("%q reads %s: %+v, %v", analyst, id, got, err)
		}
	}
}

// testSharedAnswers: where policy shares, an answer that one analyst paid for is another one's for nothing, under the other's keys as well.
func testSharedAnswers(f *fixture) {
	c := f.charge(pure(1000), analystAccount("ana", f.limit(budget.Pure, "1", "")))
	asBob := func(key, body string) budget.Charge {
		bob := withKey(f.sameQuestion(c), key, body)
		bob.Analyst, bob.Accounts, bob.Shared = "bob", []budget.Account{analystAccount("bob", f.limit(budget.Pure, "1", ""))}, true
		return bob
	}
	replay := func(c budget.Charge) *budget.Stored {
		f.Helper()
		stored, err := f.ledger.Replay(f.Context(), c)
		if err != nil {
			f.Fatal(err)
		}
		return stored
	}
	if got := replay(asBob("k1", "b")); got != nil {
		f.Fatalf("before it was asked: %+v", got)
	}
	id := f.reserve(c)
	if got := replay(asBob("k1", "b")); got != nil {
		f.Fatalf("before it was answered: %+v", got)
	}
	answer := f.settle(id, pure(1000))
	before := f.everything()
	if got := replay(asBob("k1", "b")); got == nil || got.ID != c.ID || !bytes.Equal(got.Answer, answer) {
		f.Fatalf("replayed %+v", got)
	}
	f.unchanged(before)
	private := asBob("", "b")
	private.Shared = false
	if got := replay(private); got != nil {
		f.Fatalf("where policy shares nothing: %+v", got)
	}
	// The key stands for the shared answer now, in Replay and in Reserve.
	if got := f.replayed(asBob("k1", "b")); got.ID != c.ID {
		f.Fatalf("replayed %+v", got)
	}
	f.refused(asBob("k1", "another body"), fault.CodeBudgetReplayMismatch)
	if got, err := f.ledger.Replay(f.Context(), asBob("k1", "another body")); fault.CodeOf(err) != fault.CodeBudgetReplayMismatch {
		f.Fatalf("%+v, %v", got, err)
	}
	// An answer of one's own comes first.
	own := asBob("", "b")
	f.settle(f.reserve(own), pure(1000))
	if got := replay(asBob("", "b")); got == nil || got.ID != own.ID {
		f.Fatalf("replayed %+v", got)
	}
}
