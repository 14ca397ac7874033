package budget

import (
	"crypto/sha256"
	"encoding/json"
	"slices"
	"time"

	"noisegate/internal/fault"
	"noisegate/mechanisms"
)

// desk is where a ledger decides. It holds accounts, charges and keys, takes operations one after another, and collects
// what they change. [Memory] is a desk that is kept; [Postgres] lays out a new one for each transaction, with what its operations
// may look at, and writes down what changed. So there is one rule of admission, and one of everything else.
//
// An operation that is refused changes nothing.
type desk struct {
	now      time.Time // the dataset's time
	accounts map[AccountID]*tally
	charges  map[ReservationID]*heldCharge
	asked    map[question]*heldCharge // the newest charge of each question
	keys     map[keyName]*boundKey
	journal  []line // what happened, to be sealed into the chain
}

func newDesk() *desk {
	return &desk{
		accounts: map[AccountID]*tally{}, charges: map[ReservationID]*heldCharge{}, asked: map[question]*heldCharge{},
		keys: map[keyName]*boundKey{},
	}
}

// tally is an account and its sums.
type tally struct {
	Account
	number         int64 // in the ledger; 0: not opened yet
	frozen         bool
	opened, busy   time.Time
	refills        int64
	used, reserved sums // reserved is part of used
	// ceiling is the cap, or what was used when it was set below that; only set where defined is.
	ceiling mechanisms.Loss

	defined bool // to be written: the account itself
	moved   bool // to be written: its sums
}

func (a *tally) balance() Balance {
	spent := a.used
	spent.subtract(a.reserved)
	return Balance{Account: a.Account, Spent: spent.loss(), Reserved: a.reserved.loss(), Frozen: a.frozen, Opened: a.opened,
		Busy: a.busy, Refills: a.refills}
}

func balances(accounts []*tally) []Balance {
	all := make([]Balance, len(accounts))
	for i, a := range accounts {
		all[i] = a.balance()
	}
	return all
}

// line is an entry and the accounts that it is about.
type line struct {
	Entry
	about []*tally
}

// sums are losses added up. Losses without a finite ε are counted, so that voiding the last one opens the ε clause again.
type sums struct {
	added     mechanisms.Loss // Unbounded is not used
	unbounded int64
}

func sumOf(l mechanisms.Loss) sums {
	s := sums{added: l}
	if s.added.Unbounded = false; l.Unbounded {
		s.unbounded = 1
	}
	return s
}

func (s *sums) add(t sums) {
	s.unbounded += t.unbounded
	s.added.Epsilon, s.added.Rho, s.added.Delta = s.added.Epsilon+t.added.Epsilon, s.added.Rho+t.added.Rho, s.added.Delta+t.added.Delta
	s.added.Tail += t.added.Tail
}

func (s *sums) subtract(t sums) {
	s.unbounded -= t.unbounded
	s.added.Epsilon, s.added.Rho, s.added.Delta = s.added.Epsilon-t.added.Epsilon, s.added.Rho-t.added.Rho, s.added.Delta-t.added.Delta
	s.added.Tail -= t.added.Tail
}

// MarshalJSON implements json.Marshaler.
func (s sums) MarshalJSON() ([]byte, error) {
	return json.Marshal([]int64{int64(s.added.Epsilon), s.unbounded, int64(s.added.Rho), int64(s.added.Delta), int64(s.added.Tail)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *sums) UnmarshalJSON(data []byte) error {
	var n [5]int64 // older texts have four
	err := json.Unmarshal(data, &n)
	*s = sums{unbounded: n[1], added: mechanisms.Loss{Epsilon: mechanisms.PicoEpsilon(n[0]), Rho: mechanisms.PicoRho(n[2]),
		Delta: mechanisms.AttoDelta(n[3]), Tail: mechanisms.AttoDelta(n[4])}}
	return err
}

func (s sums) loss() mechanisms.Loss {
	l := s.added
	l.Unbounded = s.unbounded > 0
	return l
}

// heldCharge is a charge that the ledger has. Of its Charge a desk needs id, dataset, analyst, fingerprint, request and slots.
type heldCharge struct {
	Charge
	accounts       []*tally
	state          state
	held           mechanisms.Loss  // what it counts as: what was reserved, then what was released
	shared         *mechanisms.Loss // what it counts as for shared accounts; nil: the same
	answer         []byte
	opened, closed time.Time
	attempt        int // which time the question is charged
	drawn          int // of its slots

	fresh, ended, drew bool // to be written
}

func (c *heldCharge) stored() *Stored {
	return &Stored{ID: c.ID, Dataset: c.Dataset, Analyst: c.Analyst, Request: slices.Clone(c.Request),
		Answer: slices.Clone(c.answer), Loss: c.held, SettledAt: c.closed}
}

func (c *heldCharge) past() past {
	p := past{state: c.state}
	if c.state == settled {
		p.stored = c.stored()
	}
	return p
}

func (c *heldCharge) numbers() []int64 {
	numbers := make([]int64, len(c.accounts))
	for i, a := range c.accounts {
		numbers[i] = a.number
	}
	return numbers
}

// plan is what the charge registered; plan/unknown when it is no plan of the analyst, or is not paid for yet.
func (c *heldCharge) plan(analyst string) (*Plan, error) {
	if c == nil || c.state != settled || c.Analyst != analyst || len(c.Registers) == 0 {
		return nil, fault.PlanUnknown()
	}
	return &Plan{ID: c.ID, Dataset: c.Dataset, Loss: c.held, Slots: slices.Clone(c.Registers), Next: c.drawn, RegisteredAt: c.closed}, nil
}

type keyName struct{ analyst, key string }

// boundKey is an Idempotency-Key and what it stands for.
type boundKey struct {
	digest [32]byte
	charge *heldCharge

	known, moved bool // the ledger has it; to be written
}

type question struct {
	dataset, analyst string
	fingerprint      [32]byte
}

func questionOf(c Charge) question { return question{c.Dataset, c.Analyst, c.Fingerprint} }

// reserve decides about a charge that is as [Charge.inLedger] makes it.
func (d *desk) reserve(c Charge) (Outcome, error) {
	earlier, err := resolve(c, d.before(c))
	if err != nil {
		return Outcome{}, err
	}
	if earlier != nil {
		d.bindKey(c, d.charges[earlier.stored.ID])
		return Outcome{Replay: earlier.stored}, nil
	}
	if d.charges[c.ID] != nil {
		return Outcome{}, usedID(c.ID)
	}
	accounts := d.find(c.Accounts)
	if err := refusal(balances(accounts), c, d.now); err != nil {
		return Outcome{}, err
	}
	if err := d.draw(c); err != nil {
		return Outcome{}, err
	}
	charge := &heldCharge{Charge: c, accounts: accounts, state: open, held: c.Loss, opened: d.now, attempt: 1, fresh: true}
	if before := d.asked[questionOf(c)]; before != nil {
		charge.attempt = before.attempt + 1
	}
	used := make([]mechanisms.Loss, len(accounts))
	for i, a := range accounts {
		if d.accounts[a.ID] == nil {
			d.define(byPolicy, a, EntryLimit, Refill{})
		}
		a.used.add(sumOf(c.Loss))
		a.reserved.add(sumOf(c.Loss))
		a.busy, a.moved = a.Limit.Rate.after(a.busy, d.now, c.Loss), true
		used[i] = a.used.loss()
	}
	d.charges[c.ID] = charge
	d.asked[questionOf(c)] = charge
	d.bindKey(c, charge)
	d.write(Entry{Kind: EntryReserve, Reservation: c.ID, Loss: c.Loss, Digest: digestOf(c.Fingerprint[:], c.Request),
		MechanismText: mechanismText(c), Mechanisms: slices.Clone(c.Mechanisms)}, c.Dataset, c.Analyst, accounts)
	return Outcome{Reserved: &Reservation{ID: c.ID, Used: used}}, nil
}

// before finds the earlier charges that decide about a request.
func (d *desk) before(c Charge) []past {
	var all []past
	if named := d.keys[keyName{c.Analyst, c.IdempotencyKey}]; named != nil {
		p := named.charge.past()
		p.byKey, p.digest = true, named.digest
		all = append(all, p)
	}
	if asked := d.asked[questionOf(c)]; asked != nil {
		all = append(all, asked.past())
	}
	return all
}

// others finds, for a shared question, the first answer that another analyst was given to it.
func (d *desk) others(c Charge) []past {
	var first *heldCharge
	for _, other := range d.charges {
		if c.Shared && other.state == settled && other.Dataset == c.Dataset && other.Fingerprint == c.Fingerprint && other.Analyst != c.Analyst &&
			(first == nil || other.closed.Before(first.closed) || other.closed.Equal(first.closed) && other.ID < first.ID) {
			first = other
		}
	}
	if first == nil {
		return nil
	}
	return []past{first.past()}
}

// bindKey makes the request's key, if it has one, stand for the charge.
func (d *desk) bindKey(c Charge, charge *heldCharge) {
	if c.IdempotencyKey == "" {
		return
	}
	name := keyName{c.Analyst, c.IdempotencyKey}
	k := d.keys[name]
	if k == nil {
		k = &boundKey{}
		d.keys[name] = k
	}
	if k.charge != charge || k.digest != c.RequestDigest {
		k.digest, k.charge, k.moved = c.RequestDigest, charge, true
	}
}

// find gives the accounts that a charge names; those that do not exist yet are not opened by that.
func (d *desk) find(named []Account) []*tally {
	accounts := make([]*tally, len(named))
	for i, n := range named {
		if accounts[i] = d.accounts[n.ID]; accounts[i] == nil {
			n.Origin = FromPolicy
			accounts[i] = &tally{Account: n, opened: d.now}
		}
	}
	return accounts
}

// draw takes the slots of a plan that a charge uses.
func (d *desk) draw(c Charge) error {
	if c.Draws == nil {
		return nil
	}
	paid := d.charges[c.Draws.Plan]
	plan, err := paid.plan(c.Analyst)
	if err != nil || plan.Dataset != c.Dataset || plan.Next != c.Draws.From || c.Draws.From+c.Draws.Count > len(plan.Slots) {
		return ErrSlotTaken
	}
	paid.drawn, paid.drew = paid.drawn+c.Draws.Count, true
	return nil
}

// close ends an open charge and reports whether it was this operation that did.
func (d *desk) close(id ReservationID, end ending) (bool, error) {
	c := d.charges[id]
	switch {
	case c == nil:
		return false, unknownCharge(id)
	case c.state != open:
		return false, end.again(id, c.state, c.answer)
	}
	own, shared, ok := end.settles(c.held)
	if !ok {
		return false, overReserved(id)
	}
	for _, a := range c.accounts {
		loss := counts(a.ID.Scope, own, shared)
		a.reserved.subtract(sumOf(c.held))
		a.used.subtract(sumOf(c.held))
		a.used.add(sumOf(loss))
		a.busy = a.Limit.Rate.back(a.busy, c.opened, d.now, c.held, loss)
		a.moved = true
	}
	c.state, c.held, c.shared, c.answer, c.closed, c.ended = end.to, own, shared, end.answer, d.now, true
	e := Entry{Kind: end.kind, Reservation: id, Loss: own, Shared: shared}
	if end.kind == EntrySettle {
		e.Digest = digestOf(end.answer)
	}
	d.write(e, c.Dataset, c.Analyst, c.accounts)
	return true, nil
}

// setLimit opens an account or changes its limit.
func (d *desk) setLimit(by string, account Account) {
	a := d.accounts[account.ID]
	switch {
	case a == nil:
		d.define(by, &tally{Account: account, opened: d.now}, EntryLimit, Refill{})
	case account.Origin == FromPolicy && (a.Origin == FromSteward || account.Version < a.Version):
	case a.Account == account:
	default:
		a.Account = account
		d.define(by, a, EntryLimit, Refill{})
	}
}

// lowerLimit is setLimit unless it raises.
func (d *desk) lowerLimit(by string, account Account) error {
	if a := d.accounts[account.ID]; a != nil && account.Limit.raises(a.Limit) {
		return fault.BudgetSignature("this dataset's caps are raised by signed refills only, and keep their form")
	}
	d.setLimit(by, account)
	return nil
}

// refill adds to the cap of an account.
func (d *desk) refill(by string, r Refill) error {
	a := d.accounts[r.Account]
	if a == nil {
		return fault.RequestNotFound("such account yet")
	}
	limit, err := a.Limit.plus(r)
	if err != nil {
		return err
	}
	if r.Mandate != nil {
		if err := r.Mandate.holds(a.refills+1, limit, d.now); err != nil {
			return err
		}
	}
	a.Account = Account{ID: a.ID, Limit: limit, Origin: FromSteward}
	a.refills++
	d.define(by, a, EntryRefill, r)
	return nil
}

// freeze stops the charges on an account, or lets them go on.
func (d *desk) freeze(by string, id AccountID, frozen bool) error {
	a := d.accounts[id]
	switch {
	case a == nil:
		return fault.RequestNotFound("such account yet")
	case a.frozen == frozen:
		return nil
	}
	a.frozen = frozen
	kind := EntryThaw
	if frozen {
		kind = EntryFreeze
	}
	d.define(by, a, kind, Refill{})
	return nil
}

// define writes down what an account is from now on, and what was added by a refill.
func (d *desk) define(by string, a *tally, kind EntryKind, refill Refill) {
	d.accounts[a.ID], a.defined = a, true
	a.ceiling = a.Limit.ceiling(a.used.loss())
	id, limit := a.ID, a.Limit
	added := mechanisms.Loss{Epsilon: refill.Epsilon, Rho: refill.Rho, Delta: refill.Delta}
	d.write(Entry{Kind: kind, Loss: added, Account: &id, Limit: &limit, AccountText: recordOf(a, refill).text()}, id.Dataset, by, []*tally{a})
}

// write adds an entry. [seal] completes it: accounts may have no number yet.
func (d *desk) write(e Entry, dataset, by string, about []*tally) {
	e.At, e.Dataset, e.Analyst = d.now, dataset, by
	d.journal = append(d.journal, line{e, about})
}

func digestOf(parts ...[]byte) []byte {
	h := sha256.New()
	for _, p := range parts {
		h.Write(p)
	}
	return h.Sum(nil)
}

// recordImport writes down that votes are about to be read.
func (d *desk) recordImport(by string, i Import) {
	d.write(Entry{Kind: EntryImport, AccountText: importText(i), Account: importAccount(i)}, i.Dataset, by, nil)
}

// resetFailures writes down that an analyst's failures count no more.
func (d *desk) resetFailures(by string, r Reset) {
	d.write(Entry{Kind: EntryReset, AccountText: resetText(r), Account: resetAccount(r)}, r.Dataset, by, nil)
}
