package journal

import (
	"encoding/json"
	"slices"
	"time"

	"noisegate.example/budget"
	"noisegate.example/budget/internal/machine"
	"noisegate.example/mechanisms"
)

// Auditor replays a dataset's entries. Where [Chain] says that nothing was changed afterwards, it says that what was
// written kept the rules: each charge was one that its accounts admitted at that time (caps, tranches, rates, freezes,
// as [budget.Limit] has them), ended at most once, and never counted for more than it reserved; the slots of plans were
// drawn in order, each once, by who had paid for them; a cap rose by no more than its refill, and, once a refill of it
// was signed, by signed refills only; what took two stewards by the policy in force has a second one's signature. It takes entries in
// order, from the first on.
type Auditor struct {
	// Signed is how many refills had a steward's signature, Unsigned how many had none.
	Signed, Unsigned int
	// Approved is how many versions of the policy, and limits, had a second steward's signature.
	Approved int

	dataset  string
	stewards StewardKeys
	accounts map[int64]*auditedAccount
	charges  map[budget.ReservationID]*auditedCharge
	plans    map[budget.ReservationID]*auditedCharge // those of charges that registered one
	policies []budget.PolicyRow
	twoFor   []string  // what takes two stewards by the newest of them
	ledger   string    // that signatures name
	named    bool      // one did: from then on each does
	raised   string    // who raised the caps of the policy last, alone
	raises   bool      // an entry said who raised something: from then on each does
	at       time.Time // of the newest entry that is chained
}

// auditedAccount is an account as its entries have it.
type auditedAccount struct {
	machine.Account
	mandated bool // a refill of it was signed: from then on nothing else may raise its cap
}

// auditedCharge is a charge as its entries have it.
type auditedCharge struct {
	machine.Charge
	chained bool // it was reserved since there is a chain
}

// NewAuditor begins before a dataset's first entry. Signatures of refills are checked with the stewards' keys; without
// keys they are only counted.
func NewAuditor(dataset string, stewards StewardKeys) *Auditor {
	return &Auditor{dataset: dataset, stewards: stewards, ledger: budget.NoLedger, accounts: map[int64]*auditedAccount{},
		charges: map[budget.ReservationID]*auditedCharge{}, plans: map[budget.ReservationID]*auditedCharge{}}
}

// Add takes the next entry; a [*BrokenError] when it could not follow.
func (b *Auditor) Add(e budget.Entry) error {
	what := passes(&b.at, e)
	if what != "" {
		return &BrokenError{Dataset: b.dataset, Seq: e.Seq, What: what}
	}
	switch e.Kind {
	case budget.EntryReserve:
		what = b.reserved(e)
	case budget.EntrySettle, budget.EntryVoid, budget.EntryExpire, budget.EntryFail:
		what = b.ended(e)
	case budget.EntryLimit, budget.EntryRefill, budget.EntryFreeze, budget.EntryThaw:
		what = b.defined(e)
	case budget.EntryReset:
		if _, ok := machine.ResetOf(e); !ok {
			what = notAReset
		}
	case budget.EntryImport:
		if _, ok := machine.ImportOf(e); !ok {
			what = notAnImport
		}
	case budget.EntryPolicy:
		what = b.applied(e)
	case budget.EntryFree, budget.EntryKeys:
		what = followPolicy(&b.policies, e)
	case budget.EntryRecharge:
		what = b.recharged(e)
	case budget.EntryResume:
		drawn, ok := machine.ResumeOf(e)
		if !ok {
			what = notAResume
			break
		}
		b.drawn(drawn)
	case budget.EntryArchive:
		if _, ok := ArchiveOf(e); !ok {
			what = notAnArchive
		}
	case budget.EntryClock:
		what = b.setBack(e)
	default:
		what = "nobody knows its kind"
	}
	if what != "" {
		return &BrokenError{Dataset: b.dataset, Seq: e.Seq, What: what}
	}
	if name := budget.LedgerName(e); name != "" && b.ledger == budget.NoLedger {
		b.ledger = name
	}
	return nil
}

// AccountsOf names the accounts that an entry is about; false where one of them was not opened by the entries so far.
func (b *Auditor) AccountsOf(e budget.Entry) (ids []budget.AccountID, known bool) {
	for _, number := range e.AccountIDs {
		a := b.accounts[number]
		if a == nil {
			return nil, false
		}
		ids = append(ids, a.ID)
	}
	return ids, true
}

// elsewhere reports whether a signature is for another ledger than this one. Those that are older than names have none.
func (b *Auditor) elsewhere(named string) bool {
	if named == "" && !b.named {
		return false
	}
	b.named = true
	return named != b.ledger
}

const signedElsewhere = "it was signed for another ledger"

// applied follows a version of the policy, and checks the second steward's signature.
func (b *Auditor) applied(e budget.Entry) (what string) {
	if what := followPolicy(&b.policies, e); what != "" {
		return what
	}
	v, _ := machine.PolicyOf(e)
	before := b.twoFor
	b.twoFor = v.TwoFor
	if v.RaisedBy != b.raised && v.RaisedBy != "" && v.RaisedBy != v.AppliedBy || v.Approval != nil && v.RaisedBy != "" ||
		v.Approval == nil && v.RaisedBy == "" && b.raised != "" {
		return wrongRaiser
	}
	b.raised, b.raises = v.RaisedBy, b.raises || v.RaisedBy != ""
	if v.Approval == nil {
		if len(machine.WantsTwo(before, v)) > 0 {
			return "it changes what takes two stewards, and one alone applied it"
		}
		return ""
	}
	if b.elsewhere(v.Approval.Ledger) {
		return signedElsewhere
	}
	change := budget.PolicyChange{Dataset: b.dataset, Replaces: v.Version - 1, Document: v.Document, Approval: v.Approval}
	if v.Approval.Holds(e.At) != nil || b.stewards != nil && b.stewards.CheckPolicy(change, v.AppliedBy) != nil {
		return "the stewards who are said to have signed it did not"
	}
	b.Approved++
	return ""
}

func (b *Auditor) reserved(e budget.Entry) (what string) {
	if b.charges[e.Reservation] != nil {
		return "its charge was reserved before"
	}
	// Before there was a chain, entries of charges that ran at once did not stand in the order in which they were decided.
	chained := e.Hash != [32]byte{}
	charge := &auditedCharge{chained: chained}
	charge.Charge.Charge, charge.State, charge.Held = budget.Charge{Dataset: e.Dataset, Analyst: e.Analyst}, machine.Open, e.Loss
	charge.Opened = e.At
	for _, number := range e.AccountIDs {
		a := b.accounts[number]
		if a == nil {
			return "it charges an account that was never opened"
		}
		charge.Accounts = append(charge.Accounts, &a.Account)
	}
	if err := budget.Refusal(machine.Balances(charge.Accounts), budget.Charge{Analyst: e.Analyst, Loss: e.Loss}, e.At); err != nil && chained {
		return "its accounts did not admit it"
	}
	if what := b.planned(charge, e); what != "" {
		return what
	}
	b.charges[e.Reservation] = charge
	for _, a := range charge.Accounts {
		a.Used.Add(machine.SumOf(e.Loss))
		a.Busy = a.Limit.Rate.After(a.Busy, e.At, e.Loss)
	}
	return ""
}

// recharged follows a charge that was lost and is booked again, whatever its accounts would admit.
func (b *Auditor) recharged(e budget.Entry) (what string) {
	if b.charges[e.Reservation] != nil {
		return "its charge was reserved before"
	}
	drawn, ok := machine.RechargeOf(e)
	if !ok {
		return notARecharge
	}
	b.drawn(drawn)
	charge := &auditedCharge{chained: true}
	charge.State = machine.Expired
	b.charges[e.Reservation] = charge
	for _, number := range e.AccountIDs {
		a := b.accounts[number]
		if a == nil {
			return "it charges an account that was never opened"
		}
		a.Used.Add(machine.SumOf(e.Loss))
	}
	return ""
}

// setBack counts what came before as no later than from when time goes on, and checks the second steward's signature.
func (b *Auditor) setBack(e budget.Entry) (what string) {
	c, ok := machine.SetBackOf(e)
	if !ok {
		return notAClock
	}
	if c.Signed(e.Analyst, len(b.twoFor) > 0, b.ledger) != "" || c.Mandate != nil && b.stewards != nil && b.stewards.CheckSetBack(c) != nil {
		return "it sets the time back, and the two stewards whom that takes did not sign it"
	}
	var accounts []*machine.Account
	for _, a := range b.accounts {
		accounts = append(accounts, &a.Account)
	}
	var charges []*machine.Charge
	for _, charge := range b.charges {
		charges = append(charges, &charge.Charge)
	}
	machine.CountBack(accounts, charges, c.To)
	return ""
}

// passes checks the time of a chained entry against that of the newest entry (zero: unknown). Only an entry of kind clock may set it back.
func passes(at *time.Time, e budget.Entry) (what string) {
	if e.Hash == [32]byte{} {
		return ""
	}
	before := *at
	*at = e.At.UTC()
	switch {
	case before.IsZero():
	case e.Kind == budget.EntryClock && !e.At.Before(before):
		return "it sets back the time to one that had not come"
	case e.Kind != budget.EntryClock && e.At.Before(before):
		return "it was written before the entry before it"
	}
	return ""
}

// drawn follows how far plans are drawn.
func (b *Auditor) drawn(to machine.Drawn) {
	for id, c := range b.plans {
		c.Drawn = to(id, len(c.Registers), c.Drawn)
	}
}

// planned follows the slots that a charge pays for or uses.
func (b *Auditor) planned(charge *auditedCharge, e budget.Entry) (what string) {
	r, err := machine.ReadReleases(e.MechanismText)
	if err != nil {
		return "what it releases cannot be read"
	}
	if r.Registers != nil {
		charge.Registers = machine.SlotsOf(r.Registers.Epsilon, r.Registers.Rho)
		b.plans[e.Reservation] = charge
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
	plan, err := paid.Plan(e.Analyst)
	delayed := slices.ContainsFunc(r.Mechanisms, func(p mechanisms.Parameters) bool { return p.Mechanism == mechanisms.RandomDelay })
	if err != nil || plan.Next != r.Draws.From || r.Draws.Count < 0 || r.Draws.Count > len(plan.Left()) || !e.Loss.IsZero() && !delayed {
		return unowned
	}
	paid.Drawn += r.Draws.Count
	return ""
}

func (b *Auditor) ended(e budget.Entry) (what string) {
	charge := b.charges[e.Reservation]
	switch {
	case charge == nil || charge.State != machine.Open:
		return "its charge is not open"
	case e.Kind == budget.EntryVoid && e.Loss != mechanisms.Loss{},
		(e.Kind == budget.EntryExpire || e.Kind == budget.EntryFail) && e.Loss != charge.Held,
		!machine.Within(e.Loss, charge.Held),
		e.Shared != nil && (e.Kind != budget.EntrySettle || !sharesLess(e)), !keepsTails(e, charge.Held):
		return "its charge counts as something else than it may"
	}
	for _, a := range charge.Accounts {
		loss := machine.Counts(a.ID.Scope, e.Loss, e.Shared)
		a.Used.Subtract(machine.SumOf(charge.Held))
		a.Used.Add(machine.SumOf(loss))
		a.Busy = a.Limit.Rate.Back(a.Busy, charge.Opened, e.At, charge.Held, loss)
	}
	charge.Held, charge.SharedHeld = e.Loss, e.Shared
	if charge.State = machine.Expired; e.Kind == budget.EntrySettle { // Voided is as final
		charge.State = machine.Settled
	}
	return ""
}

// keepsTails reports whether an entry that ends a charge has all of its tails, where it has any.
func keepsTails(e budget.Entry, held mechanisms.Loss) bool {
	kept := func(l mechanisms.Loss) bool { return l.Tail == 0 || l.Tail == held.Tail }
	return kept(e.Loss) && (e.Shared == nil || kept(*e.Shared))
}

// sharesLess reports whether what an entry counts as for shared accounts is a loss, and no more than it counts as for
// the others.
func sharesLess(e budget.Entry) bool {
	l := *e.Shared
	return min(int64(l.Epsilon), int64(l.Rho), int64(l.Delta), int64(l.Tail)) >= 0 && machine.Within(l, e.Loss)
}

func (b *Auditor) defined(e budget.Entry) (what string) {
	var r machine.LimitRecord
	if len(e.AccountIDs) != 1 || json.Unmarshal(e.AccountText, &r) != nil {
		return "it says nothing of one account"
	}
	id, limit := r.AccountOf(b.dataset)
	a, opened := b.accounts[e.AccountIDs[0]], false
	switch {
	case a == nil && e.Kind != budget.EntryLimit, a != nil && a.ID != *id:
		return "it is about another account"
	case a == nil:
		opened = true
		a = &auditedAccount{Account: machine.Account{Account: budget.Account{ID: *id}, Opened: e.At}}
		b.accounts[e.AccountIDs[0]] = a
	case e.Kind == budget.EntryRefill:
		if what := b.refilled(a, r, e); what != "" {
			return what
		}
	case e.Kind != budget.EntryLimit && a.Limit != *limit:
		return "it changes a limit that it should not"
	case a.mandated && r.Mandate == nil && limit.Raises(a.Limit):
		return "it raises a cap that only signed refills raise"
	}
	if e.Kind == budget.EntryLimit {
		if what := b.limited(a, opened, r, e); what != "" {
			return what
		}
	}
	if r.Refills != a.Refills {
		return "it is not the refill that it says"
	}
	if r.RaisedBy != "" || b.raises {
		b.raises = true
		_, due := b.underPolicy(a, r)
		if r.RaisedBy != b.raisedBy(a, opened || due && e.Kind == budget.EntryLimit, r, e) {
			return wrongRaiser
		}
	}
	a.RaisedBy = r.RaisedBy
	a.Limit, a.Frozen, a.Origin, a.Version = *limit, r.Frozen, r.Origin, r.Version
	return ""
}

// raisedBy is who raised an account last, alone, once an entry about it is written; anew: what it had does not count.
func (b *Auditor) raisedBy(a *auditedAccount, anew bool, r machine.LimitRecord, e budget.Entry) string {
	id, limit := r.AccountOf(b.dataset)
	before, by := &a.Account, e.Analyst
	switch {
	case e.Kind == budget.EntryFreeze || e.Kind == budget.EntryThaw:
		return a.RaisedBy
	case r.Origin == budget.FromPolicy:
		by = b.raised
	}
	if anew {
		before = nil
	}
	return machine.RaisedBy(before, budget.Account{ID: *id, Limit: *limit}, by, r.MandateOf())
}

// limited follows a limit, and checks its signature where it has one.
func (b *Auditor) limited(a *auditedAccount, opened bool, r machine.LimitRecord, e budget.Entry) (what string) {
	id, limit := r.AccountOf(b.dataset)
	mandate := r.MandateOf()
	what, due := b.underPolicy(a, r)
	if what != "" {
		return what
	}
	if mandate == nil {
		if r.Origin == budget.FromSteward && slices.Contains(b.twoFor, budget.ForCaps) && (opened || due || limit.Loosens(a.Limit)) {
			return "it opens an account, or gives one more, and one steward alone did it"
		}
		return ""
	}
	change := budget.LimitChange{Account: budget.Account{ID: *id, Limit: *limit}, Before: &a.Limit, Mandate: *mandate}
	if opened || due {
		change.Before = nil
	}
	a.Refills++
	if b.elsewhere(mandate.Ledger) {
		return signedElsewhere
	}
	if mandate.Holds(a.Refills, *limit, e.At) != nil || mandate.ByTwo(e.Analyst) != nil ||
		b.stewards != nil && b.stewards.CheckLimit(change) != nil {
		return notSigned
	}
	a.mandated = true
	b.Approved++
	return ""
}

// underPolicy follows under which policy a steward set or refilled a limit, where the entry says it: entries that are older than that were
// made by a rule that did not look at it. due reports that the limit before was of an older one.
func (b *Auditor) underPolicy(a *auditedAccount, r machine.LimitRecord) (what string, due bool) {
	newest := int64(0)
	if n := len(b.policies); n > 0 {
		newest = b.policies[n-1].Version
	}
	switch r.Under {
	case 0:
		return "", false
	case newest:
		return "", machine.Due(a.Account.Account, newest)
	default:
		return "it was made under another policy than the one in force", false
	}
}

// refilled follows a refill, and checks its signature.
func (b *Auditor) refilled(a *auditedAccount, r machine.LimitRecord, e budget.Entry) (what string) {
	refill := r.RefillOf(e)
	_, limit := r.AccountOf(b.dataset)
	if sum, err := a.Limit.Plus(refill); err != nil || sum != *limit {
		return "its cap is not what it was and the refill"
	}
	what, due := b.underPolicy(a, r)
	switch {
	case what != "":
		return what
	case due && refill.Mandate != nil:
		return "it adds to a limit of an older policy than the one in force"
	}
	if r.Refills > 0 || a.Refills > 0 { // before, nobody counted
		a.Refills++
	}
	switch {
	case slices.Contains(b.twoFor, budget.ForCaps) && refill.Mandate.ByTwo(e.Analyst) != nil:
		return "it gives an account more, and one steward alone did it"
	case refill.Mandate == nil && a.mandated:
		return "it raises a cap that only signed refills raise"
	case refill.Mandate == nil:
		b.Unsigned++
		return ""
	case b.elsewhere(refill.Mandate.Ledger):
		return signedElsewhere
	case refill.Mandate.Holds(a.Refills, *limit, e.At) != nil:
		return "it is not the refill that was signed"
	case b.stewards != nil && b.stewards.Check(refill) != nil:
		return notSigned
	}
	a.mandated = true
	b.Signed++
	return ""
}

// What is wrong with entries that do not say what they are about.
const (
	notSigned    = "none of the stewards' keys signed it"
	notAReset    = "it does not say whose failures count no more"
	notAnImport  = "it does not say which votes were imported"
	notARecharge = "it does not say which receipt it is of"
	notAResume   = "it does not say what is lost"
	notAnArchive = "it does not say which entries were archived"
	notAClock    = "it does not say from when time goes on"
	wrongRaiser  = "it does not say who raised it"
)
