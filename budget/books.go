package budget

import (
	"encoding/json"

	"noisegate/mechanisms"
)

// Books are a dataset's accounts and charges as its entries tell of them. Where [Chain] says that nothing was changed
// afterwards, they say that what was written kept the rules: that each charge was one that its accounts admitted at
// that time (caps, tranches, rates, freezes, as [Limit] has them), ended at most once, and never counted for more than
// it reserved; that the slots of plans were drawn in order, each once, by who had paid for them; that a cap rose by no
// more than its refill, and, once a refill of it was signed, by signed refills only. They are fed in order, from the
// first entry on.
type Books struct {
	// Signed is how many refills had a steward's signature, Unsigned how many had none.
	Signed, Unsigned int

	dataset  string
	stewards StewardKeys
	accounts map[int64]*bookedAccount
	charges  map[ReservationID]*bookedCharge
}

// bookedAccount is an account as its entries tell of it.
type bookedAccount struct {
	tally
	mandated bool // a refill of it was signed: from then on nothing else may raise its cap
}

// bookedCharge is a charge as its entries tell of it.
type bookedCharge struct {
	heldCharge
	chained bool // it was reserved since there is a chain
}

// NewBooks are the books of a dataset before its first entry. Signatures of refills are checked with the stewards'
// keys; without keys they are only counted.
func NewBooks(dataset string, stewards StewardKeys) *Books {
	return &Books{dataset: dataset, stewards: stewards, accounts: map[int64]*bookedAccount{}, charges: map[ReservationID]*bookedCharge{}}
}

// Add takes the next entry; a [*BrokenError] when it could not follow.
func (b *Books) Add(e Entry) error {
	what := ""
	switch e.Kind {
	case EntryReserve:
		what = b.reserved(e)
	case EntrySettle, EntryVoid, EntryExpire, EntryFail:
		what = b.ended(e)
	case EntryLimit, EntryRefill, EntryFreeze, EntryThaw:
		what = b.defined(e)
	case EntryReset:
		if _, ok := resetOf(e); !ok {
			what = notAReset
		}
	case EntryImport:
		if _, ok := importOf(e); !ok {
			what = notAnImport
		}
	default:
		what = "nobody knows its kind"
	}
	if what != "" {
		return &BrokenError{Dataset: b.dataset, Seq: e.Seq, What: what}
	}
	return nil
}

func (b *Books) reserved(e Entry) (what string) {
	if b.charges[e.Reservation] != nil {
		return "its charge was reserved before"
	}
	// Before there was a chain, entries of charges that ran at once did not stand in the order in which they were decided.
	chained := e.Hash != [32]byte{}
	charge := &bookedCharge{chained: chained}
	charge.Charge, charge.state, charge.held = Charge{Dataset: e.Dataset, Analyst: e.Analyst}, open, e.Loss
	charge.opened = e.At
	for _, number := range e.AccountIDs {
		a := b.accounts[number]
		if a == nil {
			return "it charges an account that was never opened"
		}
		charge.accounts = append(charge.accounts, &a.tally)
	}
	if err := refusal(balances(charge.accounts), Charge{Analyst: e.Analyst, Loss: e.Loss}, e.At); err != nil && chained {
		return "its accounts did not admit it"
	}
	if what := b.planned(charge, e); what != "" {
		return what
	}
	b.charges[e.Reservation] = charge
	for _, a := range charge.accounts {
		a.used.add(sumOf(e.Loss))
		a.busy = a.Limit.Rate.after(a.busy, e.At, e.Loss)
	}
	return ""
}

// planned follows the slots that a charge pays for or uses.
func (b *Books) planned(charge *bookedCharge, e Entry) (what string) {
	r, err := readReleases(e.MechanismText)
	if err != nil {
		return "what it releases cannot be read"
	}
	if r.Registers != nil {
		charge.Registers = slotsOf(r.Registers.Epsilon, r.Registers.Rho)
	}
	if r.Draws == nil {
		return ""
	}
	const unowned = "it draws slots that are not its to draw"
	paid := b.charges[r.Draws.Plan]
	switch {
	case paid == nil:
		return unowned
	case !paid.chained:
		return "" // its slots are not known
	}
	plan, err := paid.plan(e.Analyst)
	if err != nil || plan.Next != r.Draws.From || r.Draws.Count < 0 || r.Draws.Count > len(plan.Left()) || !e.Loss.IsZero() {
		return unowned
	}
	paid.drawn += r.Draws.Count
	return ""
}

func (b *Books) ended(e Entry) (what string) {
	charge := b.charges[e.Reservation]
	switch {
	case charge == nil || charge.state != open:
		return "its charge is not open"
	case e.Kind == EntryVoid && e.Loss != mechanisms.Loss{}, (e.Kind == EntryExpire || e.Kind == EntryFail) && e.Loss != charge.held,
		!within(e.Loss, charge.held),
		e.Shared != nil && (e.Kind != EntrySettle || !sharesLess(e)), !keepsTails(e, charge.held):
		return "its charge counts as something else than it may"
	}
	for _, a := range charge.accounts {
		loss := counts(a.ID.Scope, e.Loss, e.Shared)
		a.used.subtract(sumOf(charge.held))
		a.used.add(sumOf(loss))
		a.busy = a.Limit.Rate.back(a.busy, charge.opened, e.At, charge.held, loss)
	}
	if charge.state = expired; e.Kind == EntrySettle { // voided is as final
		charge.state = settled
	}
	return ""
}

// keepsTails reports whether an entry that ends a charge has all of its tails, where it has any.
func keepsTails(e Entry, held mechanisms.Loss) bool {
	kept := func(l mechanisms.Loss) bool { return l.Tail == 0 || l.Tail == held.Tail }
	return kept(e.Loss) && (e.Shared == nil || kept(*e.Shared))
}

// sharesLess reports whether what an entry counts as for shared accounts is a loss, and no more than it counts as for
// the others.
func sharesLess(e Entry) bool {
	l := *e.Shared
	return min(int64(l.Epsilon), int64(l.Rho), int64(l.Delta), int64(l.Tail)) >= 0 && within(l, e.Loss)
}

func (b *Books) defined(e Entry) (what string) {
	var r limitRecord
	if len(e.AccountIDs) != 1 || json.Unmarshal(e.AccountText, &r) != nil {
		return "it says nothing of one account"
	}
	id, limit := r.account(b.dataset)
	a := b.accounts[e.AccountIDs[0]]
	switch {
	case a == nil && e.Kind != EntryLimit, a != nil && a.ID != *id:
		return "it is about another account"
	case a == nil:
		a = &bookedAccount{tally: tally{Account: Account{ID: *id}, opened: e.At}}
		b.accounts[e.AccountIDs[0]] = a
	case e.Kind == EntryRefill:
		if what := b.refilled(a, r, e); what != "" {
			return what
		}
	case e.Kind != EntryLimit && a.Limit != *limit:
		return "it changes a limit that it should not"
	case a.mandated && limit.raises(a.Limit):
		return "it raises a cap that only signed refills raise"
	}
	if r.Refills != a.refills {
		return "it is not the refill that it says"
	}
	a.Limit, a.frozen = *limit, r.Frozen
	return ""
}

// refilled follows a refill, and checks its signature.
func (b *Books) refilled(a *bookedAccount, r limitRecord, e Entry) (what string) {
	refill := r.refill(e)
	_, limit := r.account(b.dataset)
	if sum, err := a.Limit.plus(refill); err != nil || sum != *limit {
		return "its cap is not what it was and the refill"
	}
	if r.Refills > 0 || a.refills > 0 { // before, nobody counted
		a.refills++
	}
	switch {
	case refill.Mandate == nil && a.mandated:
		return "it raises a cap that only signed refills raise"
	case refill.Mandate == nil:
		b.Unsigned++
		return ""
	case refill.Mandate.holds(a.refills, *limit, e.At) != nil:
		return "it is not the refill that was signed"
	case b.stewards != nil && b.stewards.Check(refill) != nil:
		return "none of the stewards' keys signed it"
	}
	a.mandated = true
	b.Signed++
	return ""
}

// What is wrong with entries that say nothing of one analyst's failures, and nothing of votes.
const (
	notAReset   = "it does not say whose failures count no more"
	notAnImport = "it does not say which votes were imported"
)
