package journal

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"noisegate.example/budget"
	"noisegate.example/budget/internal/machine"
	"noisegate.example/mechanisms"
)

// Journals that no gateway writes, whatever their hashes. The same entries without the last are fine.
func TestAuditorFindsWhatBreaksTheRules(t *testing.T) {
	ana := budget.AccountID{Dataset: "d", Scope: budget.AnalystScope, Name: "ana"}
	begin := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	limit := func(kind budget.EntryKind, epsilon, tranche, rate mechanisms.PicoEpsilon, frozen bool) budget.Entry {
		l := budget.Limit{Form: budget.Pure, Epsilon: epsilon, Rho: budget.Never}
		if tranche > 0 {
			l.Tranche = budget.Tranche{Every: time.Hour, Epsilon: tranche}
		}
		if rate > 0 {
			l.Rate = budget.Rate{Per: time.Minute, Epsilon: rate}
		}
		a := &machine.Account{Account: budget.Account{ID: ana, Limit: l, Origin: budget.FromSteward}, Frozen: frozen}
		return budget.Entry{Kind: kind, AccountIDs: []int64{1}, AccountText: machine.RecordOf(a, budget.Refill{}).Text()}
	}
	charge := func(kind budget.EntryKind, id budget.ReservationID, epsilon mechanisms.PicoEpsilon) budget.Entry {
		e := budget.Entry{Kind: kind, Analyst: "ana", Reservation: id, AccountIDs: []int64{1}, Loss: mechanisms.Loss{Epsilon: epsilon}}
		if kind == budget.EntryReserve {
			e.MechanismText = []byte("[]")
		}
		return e
	}
	apart := func(kind budget.EntryKind, epsilon, shared mechanisms.PicoEpsilon) budget.Entry {
		e := charge(kind, "a", epsilon)
		e.Shared = &mechanisms.Loss{Epsilon: shared}
		return e
	}
	tailed := func(e budget.Entry, own, shared mechanisms.AttoDelta) budget.Entry {
		if e.Loss.Tail = own; e.Shared != nil {
			e.Shared.Tail = shared
		}
		return e
	}
	wide := func() budget.Entry { // with room for tails
		a := &machine.Account{Account: budget.Account{ID: ana,
			Limit: budget.Limit{Form: budget.Approx, Epsilon: 100, Delta: 5000, TotalDelta: 10_000}, Origin: budget.FromSteward}}
		return budget.Entry{Kind: budget.EntryLimit, AccountIDs: []int64{1}, AccountText: machine.RecordOf(a, budget.Refill{}).Text()}
	}
	planned := func(e budget.Entry, text string) budget.Entry { e.MechanismText = []byte(text); return e }
	open100, plan := limit(budget.EntryLimit, 100, 0, 0, false), planned(charge(budget.EntryReserve, "p", 50),
		`{"mechanisms":[],"registers":{"epsilon_pico":[30,30],"rho_pico":[0,0]}}`)
	digits := []byte(`{"imports_votes_of":"digits","version":1,"source":"a file"}`)
	draw := func(id budget.ReservationID, text string) budget.Entry {
		return planned(charge(budget.EntryReserve, id, 0), `{"mechanisms":[],"draws":`+text+`}`)
	}
	paid := charge(budget.EntrySettle, "p", 50)
	later := func(by time.Duration, e budget.Entry) budget.Entry { e.At = begin.Add(by); return e }
	refill := func(e budget.Entry, by mechanisms.PicoEpsilon) budget.Entry { e.Loss.Epsilon = by; return e }
	// again is the nth refill, of 10, or what the account is after it; signed or not, and then so much off the lifetime that it should have.
	again := func(e budget.Entry, nth int64, signed bool, off ...mechanisms.PicoEpsilon) budget.Entry {
		var r machine.LimitRecord
		if err := json.Unmarshal(e.AccountText, &r); err != nil {
			t.Fatal(err)
		}
		if r.Refills = nth; e.Kind == budget.EntryRefill {
			e.Loss.Epsilon = 10
		}
		if signed {
			lifetime := r.Epsilon
			for _, o := range off {
				lifetime += o
			}
			r.Mandate = &machine.MandateRecord{LifetimeEpsilon: &lifetime, At: begin.Unix()}
		}
		e.AccountText = r.Text()
		return e
	}
	for name, journal := range map[string][]budget.Entry{
		"more than the cap": {open100, charge(budget.EntryReserve, "a", 60),
			charge(budget.EntrySettle, "a", 60), charge(budget.EntryReserve, "b", 41)},
		"more than the cap with what is open": {open100, charge(budget.EntryReserve, "a", 60),
			charge(budget.EntryReserve, "b", 41)},
		"a charge after the cap was lowered": {open100, charge(budget.EntryReserve, "a", 60), charge(budget.EntryExpire, "a", 60),
			limit(budget.EntryLimit, 50, 0, 0, false), charge(budget.EntryReserve, "b", 1)},
		"before a tranche opens": {limit(budget.EntryLimit, 100, 50, 0, false), charge(budget.EntryReserve, "a", 50),
			later(59*time.Minute, charge(budget.EntryReserve, "b", 1))},
		"faster than the rate": {limit(budget.EntryLimit, 100, 0, 10, false), charge(budget.EntryReserve, "a", 10),
			later(59*time.Second, charge(budget.EntryReserve, "b", 10))},
		"of a frozen account": {open100, limit(budget.EntryFreeze, 100, 0, 0, true),
			charge(budget.EntryReserve, "a", 1)},
		"of an account that is none": {charge(budget.EntryReserve, "a", 1)},
		"a charge twice":             {open100, charge(budget.EntryReserve, "a", 1), charge(budget.EntryReserve, "a", 1)},
		"an end without a beginning": {open100, charge(budget.EntrySettle, "a", 1)},
		"an end after the end": {open100, charge(budget.EntryReserve, "a", 1),
			charge(budget.EntrySettle, "a", 1), charge(budget.EntryVoid, "a", 0)},
		"more than was reserved":     {open100, charge(budget.EntryReserve, "a", 1), charge(budget.EntrySettle, "a", 2)},
		"more for shared accounts":   {open100, charge(budget.EntryReserve, "a", 3), apart(budget.EntrySettle, 1, 2)},
		"less than nothing for them": {open100, charge(budget.EntryReserve, "a", 3), apart(budget.EntrySettle, 1, -1)},
		"expired for less for them":  {open100, charge(budget.EntryReserve, "a", 3), apart(budget.EntryExpire, 3, 2)},
		"an own account that pays as a shared": {open100, charge(budget.EntryReserve, "a", 60), apart(budget.EntrySettle, 60, 0),
			charge(budget.EntryReserve, "b", 41)},
		"tails given back": {wide(), tailed(charge(budget.EntryReserve, "a", 3), 9, 0),
			tailed(charge(budget.EntrySettle, "a", 1), 8, 0)},
		"tails given back to some": {wide(), tailed(charge(budget.EntryReserve, "a", 3), 9, 0),
			tailed(apart(budget.EntrySettle, 2, 1), 9, 8)},
		"void and paid":                        {open100, charge(budget.EntryReserve, "a", 2), charge(budget.EntryVoid, "a", 1)},
		"expired for less":                     {open100, charge(budget.EntryReserve, "a", 2), charge(budget.EntryExpire, "a", 1)},
		"a refill that adds more than it says": {open100, refill(limit(budget.EntryRefill, 120, 0, 0, false), 10)},
		"a thaw that raises the cap":           {open100, limit(budget.EntryThaw, 120, 0, 0, false)},
		"an account that becomes another": {open100,
			{Kind: budget.EntryLimit, AccountIDs: []int64{1}, AccountText: []byte(`{"scope":"dataset"}`)}},
		"no account":      {{Kind: budget.EntryLimit, AccountIDs: []int64{1}, AccountText: []byte(`nothing`)}},
		"no kind":         {{Kind: "gift"}},
		"failed for less": {open100, charge(budget.EntryReserve, "a", 2), charge(budget.EntryFail, "a", 1)},
		"an end after a failure": {open100, charge(budget.EntryReserve, "a", 2), charge(budget.EntryFail, "a", 2),
			{Kind: budget.EntryReset, Analyst: "sam", AccountText: []byte(`{"resets_failures_of":"ana"}`)},
			{Kind: budget.EntryImport, Analyst: "sam", AccountText: digits}, charge(budget.EntrySettle, "a", 2)},
		"a reset of nobody's failures": {{Kind: budget.EntryReset, AccountText: []byte(`{}`)}},
		"an import of no votes":        {{Kind: budget.EntryImport, AccountText: []byte(`{}`)}},
		"an import of an account": {open100,
			{Kind: budget.EntryImport, AccountIDs: []int64{1}, AccountText: digits}},
		"a reset of an account": {open100,
			{Kind: budget.EntryReset, AccountIDs: []int64{1}, AccountText: []byte(`{"resets_failures_of":"ana"}`)}},
		"a plan that is not paid yet": {open100, plan, draw("a", `{"plan":"p","from":0,"count":1}`)},
		"a plan that is none":         {open100, charge(budget.EntryReserve, "p", 50), paid, draw("a", `{"plan":"p","from":0,"count":1}`)},
		"a slot again": {open100, plan, paid, draw("a", `{"plan":"p","from":0,"count":1}`), draw("b", `{"plan":"p","from":1,"count":1}`),
			draw("c", `{"plan":"p","from":1,"count":1}`)},
		"more slots than there are": {open100, plan, paid, draw("a", `{"plan":"p","from":0,"count":3}`)},
		"slots given back": {open100, plan, paid, draw("a", `{"plan":"p","from":0,"count":2}`),
			draw("b", `{"plan":"p","from":2,"count":-1}`)},
		"somebody else's plan": {open100, plan, paid,
			func() budget.Entry { e := draw("a", `{"plan":"p","from":0,"count":1}`); e.Analyst = "bob"; return e }()},
		"a draw that is paid for": {open100, plan, paid,
			planned(charge(budget.EntryReserve, "a", 1), `{"mechanisms":[],"draws":{"plan":"p","from":0,"count":1}}`)},
		"refills that skip a number": {open100, again(limit(budget.EntryRefill, 110, 0, 0, false), 1, false),
			again(limit(budget.EntryRefill, 120, 0, 0, false), 3, false)},
		"an unsigned refill after a signed one": {open100, again(limit(budget.EntryRefill, 110, 0, 0, false), 1, true),
			again(limit(budget.EntryRefill, 120, 0, 0, false), 2, false)},
		"a cap that is raised after a signed refill": {open100, again(limit(budget.EntryRefill, 110, 0, 0, false), 1, true),
			again(limit(budget.EntryLimit, 90, 0, 0, false), 1, false),
			again(limit(budget.EntryLimit, 91, 0, 0, false), 1, false)},
		"a refill that was signed as another": {open100, again(limit(budget.EntryRefill, 110, 0, 0, false), 1, true),
			again(limit(budget.EntryRefill, 120, 0, 0, false), 2, true, 1)},
		"a refill that was signed for another day": {open100, later(25*time.Hour, again(limit(budget.EntryRefill, 110, 0, 0, false), 1, true))},
		"releases that are no text":                {open100, planned(charge(budget.EntryReserve, "a", 1), `x`)},
	} {
		b := NewAuditor("d", nil)
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
