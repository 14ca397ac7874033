package budget

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"noisegate/mechanisms"
)

// Journals that no gateway writes, whatever their hashes. The same entries without the last are fine.
func TestBooksFindWhatBreaksTheRules(t *testing.T) {
	begin := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	limit := func(kind EntryKind, epsilon, tranche, rate mechanisms.PicoEpsilon, frozen bool) Entry {
		l := Limit{Form: Pure, Epsilon: epsilon, Rho: Never}
		if tranche > 0 {
			l.Tranche = Tranche{Every: time.Hour, Epsilon: tranche}
		}
		if rate > 0 {
			l.Rate = Rate{Per: time.Minute, Epsilon: rate}
		}
		a := &tally{Account: Account{ID: AccountID{"d", AnalystScope, "ana"}, Limit: l, Origin: FromSteward}, frozen: frozen}
		return Entry{Kind: kind, AccountIDs: []int64{1}, AccountText: recordOf(a, Refill{}).text()}
	}
	charge := func(kind EntryKind, id ReservationID, epsilon mechanisms.PicoEpsilon) Entry {
		e := Entry{Kind: kind, Analyst: "ana", Reservation: id, AccountIDs: []int64{1}, Loss: mechanisms.Loss{Epsilon: epsilon}}
		if kind == EntryReserve {
			e.MechanismText = []byte("[]")
		}
		return e
	}
	apart := func(kind EntryKind, epsilon, shared mechanisms.PicoEpsilon) Entry {
		e := charge(kind, "a", epsilon)
		e.Shared = &mechanisms.Loss{Epsilon: shared}
		return e
	}
	tailed := func(e Entry, own, shared mechanisms.AttoDelta) Entry {
		if e.Loss.Tail = own; e.Shared != nil {
			e.Shared.Tail = shared
		}
		return e
	}
	wide := func() Entry { // with room for tails
		a := &tally{Account: Account{ID: AccountID{"d", AnalystScope, "ana"},
			Limit: Limit{Form: Approx, Epsilon: 100, Delta: 5000, TotalDelta: 10_000}, Origin: FromSteward}}
		return Entry{Kind: EntryLimit, AccountIDs: []int64{1}, AccountText: recordOf(a, Refill{}).text()}
	}
	planned := func(e Entry, text string) Entry { e.MechanismText = []byte(text); return e }
	open100, plan := limit(EntryLimit, 100, 0, 0, false), planned(charge(EntryReserve, "p", 50),
		`{"mechanisms":[],"registers":{"epsilon_pico":[30,30],"rho_pico":[0,0]}}`)
	draw := func(id ReservationID, text string) Entry {
		return planned(charge(EntryReserve, id, 0), `{"mechanisms":[],"draws":`+text+`}`)
	}
	paid := charge(EntrySettle, "p", 50)
	later := func(by time.Duration, e Entry) Entry { e.At = begin.Add(by); return e }
	refill := func(e Entry, by mechanisms.PicoEpsilon) Entry { e.Loss.Epsilon = by; return e }
	// again is the nth refill, of 10, or what the account is after it; signed or not, and then so much off the lifetime that it should have.
	again := func(e Entry, nth int64, signed bool, off ...mechanisms.PicoEpsilon) Entry {
		var r limitRecord
		if err := json.Unmarshal(e.AccountText, &r); err != nil {
			t.Fatal(err)
		}
		if r.Refills = nth; e.Kind == EntryRefill {
			e.Loss.Epsilon = 10
		}
		if signed {
			lifetime := r.Epsilon
			for _, o := range off {
				lifetime += o
			}
			r.Mandate = &mandateRecord{LifetimeEpsilon: &lifetime, At: begin.Unix()}
		}
		e.AccountText = r.text()
		return e
	}
	for name, journal := range map[string][]Entry{
		"more than the cap": {limit(EntryLimit, 100, 0, 0, false), charge(EntryReserve, "a", 60),
			charge(EntrySettle, "a", 60), charge(EntryReserve, "b", 41)},
		"more than the cap with what is open": {limit(EntryLimit, 100, 0, 0, false), charge(EntryReserve, "a", 60),
			charge(EntryReserve, "b", 41)},
		"a charge after the cap was lowered": {limit(EntryLimit, 100, 0, 0, false), charge(EntryReserve, "a", 60), charge(EntryExpire, "a", 60),
			limit(EntryLimit, 50, 0, 0, false), charge(EntryReserve, "b", 1)},
		"before a tranche opens": {limit(EntryLimit, 100, 50, 0, false), charge(EntryReserve, "a", 50),
			later(59*time.Minute, charge(EntryReserve, "b", 1))},
		"faster than the rate": {limit(EntryLimit, 100, 0, 10, false), charge(EntryReserve, "a", 10),
			later(59*time.Second, charge(EntryReserve, "b", 10))},
		"of a frozen account": {limit(EntryLimit, 100, 0, 0, false), limit(EntryFreeze, 100, 0, 0, true),
			charge(EntryReserve, "a", 1)},
		"of an account that is none": {charge(EntryReserve, "a", 1)},
		"a charge twice":             {limit(EntryLimit, 100, 0, 0, false), charge(EntryReserve, "a", 1), charge(EntryReserve, "a", 1)},
		"an end without a beginning": {limit(EntryLimit, 100, 0, 0, false), charge(EntrySettle, "a", 1)},
		"an end after the end": {limit(EntryLimit, 100, 0, 0, false), charge(EntryReserve, "a", 1),
			charge(EntrySettle, "a", 1), charge(EntryVoid, "a", 0)},
		"more than was reserved":     {limit(EntryLimit, 100, 0, 0, false), charge(EntryReserve, "a", 1), charge(EntrySettle, "a", 2)},
		"more for shared accounts":   {open100, charge(EntryReserve, "a", 3), apart(EntrySettle, 1, 2)},
		"less than nothing for them": {open100, charge(EntryReserve, "a", 3), apart(EntrySettle, 1, -1)},
		"expired for less for them":  {open100, charge(EntryReserve, "a", 3), apart(EntryExpire, 3, 2)},
		"an own account that pays as a shared": {open100, charge(EntryReserve, "a", 60), apart(EntrySettle, 60, 0),
			charge(EntryReserve, "b", 41)},
		"tails given back":                     {wide(), tailed(charge(EntryReserve, "a", 3), 9, 0), tailed(charge(EntrySettle, "a", 1), 8, 0)},
		"tails given back to some":             {wide(), tailed(charge(EntryReserve, "a", 3), 9, 0), tailed(apart(EntrySettle, 2, 1), 9, 8)},
		"void and paid":                        {limit(EntryLimit, 100, 0, 0, false), charge(EntryReserve, "a", 2), charge(EntryVoid, "a", 1)},
		"expired for less":                     {limit(EntryLimit, 100, 0, 0, false), charge(EntryReserve, "a", 2), charge(EntryExpire, "a", 1)},
		"a refill that adds more than it says": {limit(EntryLimit, 100, 0, 0, false), refill(limit(EntryRefill, 120, 0, 0, false), 10)},
		"a thaw that raises the cap":           {limit(EntryLimit, 100, 0, 0, false), limit(EntryThaw, 120, 0, 0, false)},
		"an account that becomes another": {limit(EntryLimit, 100, 0, 0, false),
			{Kind: EntryLimit, AccountIDs: []int64{1}, AccountText: []byte(`{"scope":"dataset"}`)}},
		"no account":      {{Kind: EntryLimit, AccountIDs: []int64{1}, AccountText: []byte(`nothing`)}},
		"no kind":         {{Kind: "gift"}},
		"failed for less": {limit(EntryLimit, 100, 0, 0, false), charge(EntryReserve, "a", 2), charge(EntryFail, "a", 1)},
		"an end after a failure": {limit(EntryLimit, 100, 0, 0, false), charge(EntryReserve, "a", 2), charge(EntryFail, "a", 2),
			{Kind: EntryReset, Analyst: "sam", AccountText: resetText(Reset{"d", "ana"})},
			{Kind: EntryImport, Analyst: "sam", AccountText: importText(Import{"d", "digits", 1, "a file"})}, charge(EntrySettle, "a", 2)},
		"a reset of nobody's failures": {{Kind: EntryReset, AccountText: []byte(`{}`)}},
		"an import of no votes":        {{Kind: EntryImport, AccountText: []byte(`{}`)}},
		"an import of an account": {limit(EntryLimit, 100, 0, 0, false),
			{Kind: EntryImport, AccountIDs: []int64{1}, AccountText: importText(Import{"d", "digits", 1, "a file"})}},
		"a reset of an account": {limit(EntryLimit, 100, 0, 0, false),
			{Kind: EntryReset, AccountIDs: []int64{1}, AccountText: resetText(Reset{"d", "ana"})}},
		"a plan that is not paid yet": {open100, plan, draw("a", `{"plan":"p","from":0,"count":1}`)},
		"a plan that is none":         {open100, charge(EntryReserve, "p", 50), paid, draw("a", `{"plan":"p","from":0,"count":1}`)},
		"a slot again": {open100, plan, paid, draw("a", `{"plan":"p","from":0,"count":1}`), draw("b", `{"plan":"p","from":1,"count":1}`),
			draw("c", `{"plan":"p","from":1,"count":1}`)},
		"more slots than there are": {open100, plan, paid, draw("a", `{"plan":"p","from":0,"count":3}`)},
		"slots given back": {open100, plan, paid, draw("a", `{"plan":"p","from":0,"count":2}`),
			draw("b", `{"plan":"p","from":2,"count":-1}`)},
		"somebody else's plan": {open100, plan, paid,
			func() Entry { e := draw("a", `{"plan":"p","from":0,"count":1}`); e.Analyst = "bob"; return e }()},
		"a draw that is paid for": {open100, plan, paid,
			planned(charge(EntryReserve, "a", 1), `{"mechanisms":[],"draws":{"plan":"p","from":0,"count":1}}`)},
		"refills that skip a number": {open100, again(limit(EntryRefill, 110, 0, 0, false), 1, false),
			again(limit(EntryRefill, 120, 0, 0, false), 3, false)},
		"an unsigned refill after a signed one": {open100, again(limit(EntryRefill, 110, 0, 0, false), 1, true),
			again(limit(EntryRefill, 120, 0, 0, false), 2, false)},
		"a cap that is raised after a signed refill": {open100, again(limit(EntryRefill, 110, 0, 0, false), 1, true),
			again(limit(EntryLimit, 90, 0, 0, false), 1, false),
			again(limit(EntryLimit, 91, 0, 0, false), 1, false)},
		"a refill that was signed as another": {open100, again(limit(EntryRefill, 110, 0, 0, false), 1, true),
			again(limit(EntryRefill, 120, 0, 0, false), 2, true, 1)},
		"a refill that was signed for another day": {open100, later(25*time.Hour, again(limit(EntryRefill, 110, 0, 0, false), 1, true))},
		"releases that are no text":                {open100, planned(charge(EntryReserve, "a", 1), `x`)},
	} {
		b := NewBooks("d", nil)
		for i, e := range journal {
			e.Seq, e.Hash = int64(i+1), [32]byte{1}
			if e.At.IsZero() {
				e.At = begin
			}
			err := b.Add(e)
			var broken *BrokenError
			switch last := i == len(journal)-1; {
			case last && (!errors.As(err, &broken) || broken.Seq != e.Seq):
				t.Errorf("%s: %v", name, err)
			case !last && err != nil:
				t.Errorf("%s: entry %d is fine, and is said to be broken: %v", name, e.Seq, err)
			}
		}
	}
}
