package machine

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"noisegate.example/budget"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

// Machine is the state machine of a ledger. It holds accounts, charges and keys, takes operations one after another, and
// collects what they change. budgettest.Memory keeps one; pgledger makes a new one for each transaction, loads what its
// operations may look at, and writes what changed. So there is one rule of admission, and one of everything else.
//
// An operation that is refused changes nothing.
type Machine struct {
	Now    time.Time // the dataset's time
	Clocks Clocks    // that it was made of
	// LastClock is the number of the dataset's newest entry that set its time back; 0: there is none, or nobody asks.
	LastClock int64
	Accounts  map[budget.AccountID]*Account
	Charges   map[budget.ReservationID]*Charge
	Asked     map[Question]*Charge // the newest charge of each question
	Keys      map[KeyName]*Key
	InForce   InForce
	Newest    budget.Policy // that is stored; zero: none
	Raised    string        // as budget.PolicyRow.RaisedBy of that version
	Written   []Line        // what happened, to be sealed into the chain
}

// New returns a machine without accounts.
func New() *Machine {
	return &Machine{
		Accounts: map[budget.AccountID]*Account{}, Charges: map[budget.ReservationID]*Charge{}, Asked: map[Question]*Charge{},
		Keys: map[KeyName]*Key{},
	}
}

// Account is an account and its sums.
type Account struct {
	budget.Account
	Number         int64 // in the ledger; 0: not opened yet
	Frozen         bool
	Opened, Busy   time.Time
	Refills        int64
	RaisedBy       string // see budget.Balance
	Used, Reserved Sums   // Reserved is part of Used
	// Ceiling is the cap, or what was used when it was set below that; only set where Defined is.
	Ceiling mechanisms.Loss

	Defined bool // to be written: the account itself
	Moved   bool // to be written: its sums
	Back    bool // to be written: when it was opened, and until when it is busy
}

// Balance is the account as readers see it.
func (a *Account) Balance() budget.Balance {
	spent := a.Used
	spent.Subtract(a.Reserved)
	return budget.Balance{Account: a.Account, Spent: spent.Loss(), Reserved: a.Reserved.Loss(), Frozen: a.Frozen, Opened: a.Opened,
		Busy: a.Busy, Refills: a.Refills, RaisedBy: a.RaisedBy}
}

// Balances are the accounts as [budget.Refusal] takes them.
func Balances(accounts []*Account) []budget.Balance {
	all := make([]budget.Balance, len(accounts))
	for i, a := range accounts {
		all[i] = a.Balance()
	}
	return all
}

// Line is an entry and the accounts that it is about.
type Line struct {
	budget.Entry
	About []*Account
}

// Sums are losses added up. Losses without a finite ε are counted, so that voiding the last one opens the ε clause again.
type Sums struct {
	Added     mechanisms.Loss // Unbounded is not used
	Unbounded int64
}

// SumOf is the sum of one loss.
func SumOf(l mechanisms.Loss) Sums {
	s := Sums{Added: l}
	if s.Added.Unbounded = false; l.Unbounded {
		s.Unbounded = 1
	}
	return s
}

// Add adds other sums.
func (s *Sums) Add(t Sums) {
	s.Unbounded += t.Unbounded
	s.Added.Epsilon, s.Added.Rho, s.Added.Delta = s.Added.Epsilon+t.Added.Epsilon, s.Added.Rho+t.Added.Rho, s.Added.Delta+t.Added.Delta
	s.Added.Tail += t.Added.Tail
}

// Subtract takes other sums away.
func (s *Sums) Subtract(t Sums) {
	s.Unbounded -= t.Unbounded
	s.Added.Epsilon, s.Added.Rho, s.Added.Delta = s.Added.Epsilon-t.Added.Epsilon, s.Added.Rho-t.Added.Rho, s.Added.Delta-t.Added.Delta
	s.Added.Tail -= t.Added.Tail
}

// MarshalJSON implements json.Marshaler.
func (s Sums) MarshalJSON() ([]byte, error) {
	return json.Marshal([]int64{int64(s.Added.Epsilon), s.Unbounded, int64(s.Added.Rho), int64(s.Added.Delta), int64(s.Added.Tail)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *Sums) UnmarshalJSON(data []byte) error {
	var n [5]int64 // older texts have four
	err := json.Unmarshal(data, &n)
	*s = Sums{Unbounded: n[1], Added: mechanisms.Loss{Epsilon: mechanisms.PicoEpsilon(n[0]), Rho: mechanisms.PicoRho(n[2]),
		Delta: mechanisms.AttoDelta(n[3]), Tail: mechanisms.AttoDelta(n[4])}}
	return err
}

// Loss is the sum as one loss.
func (s Sums) Loss() mechanisms.Loss {
	l := s.Added
	l.Unbounded = s.Unbounded > 0
	return l
}

// Charge is a charge that the ledger has. Of its budget.Charge a machine needs id, dataset, analyst, fingerprint, request and slots.
type Charge struct {
	budget.Charge
	Accounts       []*Account
	State          State
	Held           mechanisms.Loss  // what it counts as: what was reserved, then what was released
	SharedHeld     *mechanisms.Loss // what it counts as for shared accounts; nil: the same
	Answer         []byte
	Opened, Closed time.Time
	Attempt        int // which time the question is charged
	Drawn          int // of its slots

	Fresh, Ended, Drew bool // to be written
}

// Stored is the answer of a settled charge.
func (c *Charge) Stored() *budget.Stored {
	return &budget.Stored{ID: c.ID, Dataset: c.Dataset, Analyst: c.Analyst, Request: slices.Clone(c.Request),
		Answer: slices.Clone(c.Answer), Loss: c.Held, SettledAt: c.Closed}
}

func (c *Charge) past() Past {
	p := Past{State: c.State}
	if c.State == Settled {
		p.Stored = c.Stored()
	}
	return p
}

// Numbers are those of its accounts.
func (c *Charge) Numbers() []int64 {
	numbers := make([]int64, len(c.Accounts))
	for i, a := range c.Accounts {
		numbers[i] = a.Number
	}
	return numbers
}

// Plan is what the charge registered; plan/unknown when it is no plan of the analyst, or is not paid for yet.
func (c *Charge) Plan(analyst string) (*budget.Plan, error) {
	if c == nil || c.State != Settled || c.Analyst != analyst || len(c.Registers) == 0 {
		return nil, fault.PlanUnknown()
	}
	return &budget.Plan{ID: c.ID, Dataset: c.Dataset, Loss: c.Held, Slots: slices.Clone(c.Registers), Next: c.Drawn,
		RegisteredAt: c.Closed}, nil
}

// KeyName is an Idempotency-Key, which belongs to its analyst.
type KeyName struct{ Analyst, Key string }

// Key is an Idempotency-Key and what it stands for.
type Key struct {
	Digest [32]byte
	Charge *Charge

	Known, Moved bool // the ledger has it; to be written
}

// Question is what an analyst asked of a dataset.
type Question struct {
	dataset, analyst string
	fingerprint      [32]byte
}

// QuestionOf is the question of a charge.
func QuestionOf(c budget.Charge) Question { return Question{c.Dataset, c.Analyst, c.Fingerprint} }

// Reserve decides about a charge that is as [budget.Charge.InLedger] makes it.
func (m *Machine) Reserve(c budget.Charge) (budget.Outcome, error) {
	earlier, err := Resolve(c, m.before(c))
	if err != nil {
		return budget.Outcome{}, err
	}
	if earlier != nil {
		m.bindKey(c, m.Charges[earlier.Stored.ID])
		return budget.Outcome{Replay: earlier.Stored}, nil
	}
	if m.Charges[c.ID] != nil {
		return budget.Outcome{}, UsedID(c.ID)
	}
	if err := c.OverCeiling(); err != nil {
		return budget.Outcome{}, err
	}
	if err := m.stored(c.Policy, c.Accounts...); err != nil {
		return budget.Outcome{}, err
	}
	accounts := m.find(c.Accounts)
	if err := budget.Refusal(Balances(accounts), c, m.Now); err != nil {
		return budget.Outcome{}, err
	}
	if err := m.draw(c); err != nil {
		return budget.Outcome{}, err
	}
	charge := &Charge{Charge: c, Accounts: accounts, State: Open, Held: c.Loss, Opened: m.Now, Attempt: 1, Fresh: true}
	if before := m.Asked[QuestionOf(c)]; before != nil {
		charge.Attempt = before.Attempt + 1
	}
	used := make([]mechanisms.Loss, len(accounts))
	for i, a := range accounts {
		if m.Accounts[a.ID] == nil {
			m.define(budget.ByPolicy, a, budget.EntryLimit, budget.Refill{})
		}
		a.Used.Add(SumOf(c.Loss))
		a.Reserved.Add(SumOf(c.Loss))
		a.Busy, a.Moved = a.Limit.Rate.After(a.Busy, m.Now, c.Loss), true
		used[i] = a.Used.Loss()
	}
	m.Charges[c.ID] = charge
	m.Asked[QuestionOf(c)] = charge
	m.bindKey(c, charge)
	m.write(budget.Entry{Kind: budget.EntryReserve, Reservation: c.ID, Loss: c.Loss, Digest: digestOf(c.Fingerprint[:], c.Request),
		MechanismText: mechanismText(c), Mechanisms: slices.Clone(c.Mechanisms)}, c.Dataset, c.Analyst, accounts)
	return budget.Outcome{Reserved: &budget.Reservation{ID: c.ID, Used: used}}, nil
}

// Replay gives the answer that Reserve would replay, or another analyst's where the charge is shared; nil: there is none.
func (m *Machine) Replay(c budget.Charge) (*budget.Stored, error) {
	earlier, err := Resolve(c, append(m.before(c), m.others(c)...))
	if err != nil || earlier == nil {
		return nil, err
	}
	m.bindKey(c, m.Charges[earlier.Stored.ID])
	return earlier.Stored, nil
}

// before finds the earlier charges that decide about a request.
func (m *Machine) before(c budget.Charge) []Past {
	var all []Past
	if named := m.Keys[KeyName{c.Analyst, c.IdempotencyKey}]; named != nil {
		p := named.Charge.past()
		p.ByKey, p.Digest = true, named.Digest
		all = append(all, p)
	}
	if asked := m.Asked[QuestionOf(c)]; asked != nil {
		all = append(all, asked.past())
	}
	return all
}

// others finds, for a shared question, the first answer that another analyst was given to it.
func (m *Machine) others(c budget.Charge) []Past {
	var first *Charge
	for _, other := range m.Charges {
		if c.Shared && other.State == Settled && other.Dataset == c.Dataset && other.Fingerprint == c.Fingerprint && other.Analyst != c.Analyst &&
			(first == nil || other.Closed.Before(first.Closed) || other.Closed.Equal(first.Closed) && other.ID < first.ID) {
			first = other
		}
	}
	if first == nil {
		return nil
	}
	return []Past{first.past()}
}

// bindKey makes the request's key, if it has one, stand for the charge.
func (m *Machine) bindKey(c budget.Charge, charge *Charge) {
	if c.IdempotencyKey == "" {
		return
	}
	name := KeyName{c.Analyst, c.IdempotencyKey}
	k := m.Keys[name]
	if k == nil {
		k = &Key{}
		m.Keys[name] = k
	}
	if k.Charge != charge || k.Digest != c.RequestDigest {
		k.Digest, k.Charge, k.Moved = c.RequestDigest, charge, true
	}
}

// find gives the accounts that a charge names; those that do not exist yet are not opened by that.
func (m *Machine) find(named []budget.Account) []*Account {
	accounts := make([]*Account, len(named))
	for i, n := range named {
		if accounts[i] = m.Accounts[n.ID]; accounts[i] == nil {
			n.Origin = budget.FromPolicy
			accounts[i] = &Account{Account: n, Opened: m.Now, RaisedBy: RaisedBy(nil, n, m.Raised, nil)}
		}
	}
	return accounts
}

// draw takes the slots of a plan that a charge uses.
func (m *Machine) draw(c budget.Charge) error {
	if c.Draws == nil {
		return nil
	}
	paid := m.Charges[c.Draws.Plan]
	plan, err := paid.Plan(c.Analyst)
	if err != nil || plan.Dataset != c.Dataset || plan.Next != c.Draws.From || c.Draws.From+c.Draws.Count > len(plan.Slots) {
		return budget.ErrSlotTaken
	}
	paid.Drawn, paid.Drew = paid.Drawn+c.Draws.Count, true
	return nil
}

// Close ends an open charge and reports whether it was this operation that did.
func (m *Machine) Close(id budget.ReservationID, end Ending) (bool, error) {
	c := m.Charges[id]
	switch {
	case c == nil:
		return false, UnknownCharge(id)
	case c.State != Open:
		return false, end.again(id, c.State, c.Answer)
	}
	own, shared, ok := end.settles(c.Held)
	if !ok {
		return false, overReserved(id)
	}
	for _, a := range c.Accounts {
		loss := Counts(a.ID.Scope, own, shared)
		a.Reserved.Subtract(SumOf(c.Held))
		a.Used.Subtract(SumOf(c.Held))
		a.Used.Add(SumOf(loss))
		a.Busy = a.Limit.Rate.Back(a.Busy, c.Opened, m.Now, c.Held, loss)
		a.Moved = true
	}
	c.State, c.Held, c.SharedHeld, c.Answer, c.Closed, c.Ended = end.to, own, shared, end.answer, m.Now, true
	e := budget.Entry{Kind: end.kind, Reservation: id, Loss: own, Shared: shared}
	if end.kind == budget.EntrySettle {
		e.Digest = digestOf(end.answer)
		if c.Draws != nil { // receipts say so; the entry of the reservation may already be archived
			e.MechanismText = drawText(*c.Draws)
		}
	}
	m.write(e, c.Dataset, c.Analyst, c.Accounts)
	return true, nil
}

// SetLimit opens an account or changes its limit.
func (m *Machine) SetLimit(by string, account budget.Account) error {
	if account.Origin == budget.FromSteward && m.alone(account) {
		return fault.BudgetSecondSteward()
	}
	if err := m.stored(budget.Policy{}, account); err != nil {
		return err
	}
	m.set(by, account, nil)
	return nil
}

// Enforce is SetLimit by a version of the policy.
func (m *Machine) Enforce(policy budget.Policy, account budget.Account) error {
	if err := m.stored(policy, account); err != nil {
		return err
	}
	return m.SetLimit(budget.ByPolicy, account)
}

// errUnstored is of a policy that a gateway still has, though a failover lost it.
var errUnstored = errors.New("budget: the policy is not the one that is stored, or its limits are of a later version than that")

// stored refuses what is done under a version of the policy that is not there: what holds is what the chain has. A version before the
// newest is one that a gateway is about to replace.
func (m *Machine) stored(under budget.Policy, accounts ...budget.Account) error {
	if m.Newest.Version == 0 {
		return nil
	}
	lost := under.Version > m.Newest.Version || under.Version == m.Newest.Version && under.Digest != m.Newest.Digest
	for _, a := range accounts {
		lost = lost || a.Origin == budget.FromPolicy && a.Version > m.Newest.Version
	}
	if lost {
		return fault.DataUnavailable(errUnstored)
	}
	return nil
}

// alone reports whether a limit is one that a steward alone does not set.
func (m *Machine) alone(account budget.Account) bool {
	a := m.Accounts[account.ID]
	return slices.Contains(m.InForce.TwoFor, budget.ForCaps) && (a == nil || m.due(a) || account.Limit.Loosens(a.Limit))
}

func (m *Machine) due(a *Account) bool { return Due(a.Account, m.InForce.Version) }

// Due reports whether an account's limit is of an older policy than the newest (0: there is none), so that it says nothing of what the
// account has: what the newest gives it, if anything, is written when it is next charged.
func Due(a budget.Account, newest int64) bool {
	return a.Origin == budget.FromPolicy && newest != 0 && a.Version != newest
}

func errDue() error {
	return fault.BudgetSignature("the account's limit is of an older policy than the one in force, whose limit is written when the account " +
		"is next charged: until then two stewards set its limit, or the policy names it")
}

func (m *Machine) set(by string, account budget.Account, signed *budget.Mandate) {
	a := m.Accounts[account.ID]
	raisedBy := m.raisedBy(a, account, by, signed)
	switch {
	case a == nil:
		a = &Account{Account: account, Opened: m.Now}
	case account.Origin == budget.FromPolicy && (a.Origin == budget.FromSteward || account.Version < a.Version),
		a.Account == account && signed == nil:
		return
	}
	a.Account, a.RaisedBy = account, raisedBy
	if signed != nil {
		a.Refills++
	}
	m.define(by, a, budget.EntryLimit, budget.Refill{Mandate: signed})
}

// raisedBy is who raised an account last, alone, once it has a limit that somebody sets.
func (m *Machine) raisedBy(a *Account, to budget.Account, by string, signed *budget.Mandate) string {
	if to.Origin == budget.FromPolicy {
		return RaisedBy(a, to, m.Raised, nil)
	}
	if a != nil && m.due(a) {
		a = nil
	}
	return RaisedBy(a, to, by, signed)
}

// RaisedBy is who raised an account last, alone: whose limit gave it more than it had (nil: it had nothing that counts), unless another
// person signed as well; a limit that gives no more leaves it. What the limit of a policy gives was given by who raised the caps of that.
// The first budget of an ensemble, which belongs to its definition, raises nothing, like a first policy.
func RaisedBy(a *Account, to budget.Account, by string, signed *budget.Mandate) string {
	switch {
	case a != nil && !to.Limit.Loosens(a.Limit):
		return a.RaisedBy
	case a == nil && to.ID.Scope == budget.EnsembleScope:
		return ""
	case signed != nil && signed.Pair != (budget.Pair{}):
		return ""
	default:
		return by
	}
}

// ChangeLimit is SetLimit with a second steward's signature.
func (m *Machine) ChangeLimit(by string, c budget.LimitChange) error {
	var before *budget.Limit
	refills := int64(0)
	if a := m.Accounts[c.Account.ID]; a != nil {
		if refills = a.Refills; !m.due(a) {
			before = &a.Limit
		}
	}
	if (before == nil) != (c.Before == nil) || before != nil && *before != *c.Before {
		return fault.BudgetSignature("the account's limit is not what it was when the change was signed")
	}
	if err := m.holds(c.Mandate, refills+1, c.Account.Limit); err != nil {
		return err
	}
	m.set(by, c.Account, &c.Mandate)
	return nil
}

// holds makes sure that a mandate is for an account as it is, of now and for this ledger.
func (m *Machine) holds(mandate budget.Mandate, nth int64, after budget.Limit) error {
	if what := budget.OtherLedger(mandate.Ledger, m.InForce.Ledger); what != "" {
		return fault.BudgetSignature(what)
	}
	return mandate.Holds(nth, after, m.Now)
}

// LowerLimit is SetLimit unless it raises.
func (m *Machine) LowerLimit(by string, account budget.Account) error {
	switch a := m.Accounts[account.ID]; {
	case a == nil || m.alone(account):
	case m.due(a):
		return errDue()
	case account.Limit.Raises(a.Limit):
		return fault.BudgetSignature("this dataset's caps are raised by signed refills only, and keep their form")
	}
	return m.SetLimit(by, account)
}

// Refill adds to the cap of an account.
func (m *Machine) Refill(by string, r budget.Refill) error {
	a := m.Accounts[r.Account]
	if a == nil {
		return fault.RequestNotFound("such account yet")
	}
	limit, err := a.Limit.Plus(r)
	if err != nil {
		return err
	}
	if slices.Contains(m.InForce.TwoFor, budget.ForCaps) {
		if err := r.Mandate.ByTwo(by); err != nil {
			return err
		}
	}
	if r.Mandate != nil {
		if m.due(a) {
			return errDue()
		}
		if err := m.holds(*r.Mandate, a.Refills+1, limit); err != nil {
			return err
		}
	}
	after := budget.Account{ID: a.ID, Limit: limit, Origin: budget.FromSteward}
	a.RaisedBy, a.Account = RaisedBy(a, after, by, r.Mandate), after
	a.Refills++
	m.define(by, a, budget.EntryRefill, r)
	return nil
}

// Freeze stops the charges on an account, or lets them go on.
func (m *Machine) Freeze(by string, id budget.AccountID, frozen bool) error {
	a := m.Accounts[id]
	switch {
	case a == nil:
		return fault.RequestNotFound("such account yet")
	case a.Frozen == frozen:
		return nil
	}
	a.Frozen = frozen
	kind := budget.EntryThaw
	if frozen {
		kind = budget.EntryFreeze
	}
	m.define(by, a, kind, budget.Refill{})
	return nil
}

// define writes down what an account is from now on, and what was added by a refill.
func (m *Machine) define(by string, a *Account, kind budget.EntryKind, refill budget.Refill) {
	m.Accounts[a.ID], a.Defined = a, true
	a.Ceiling = a.Limit.Ceiling(a.Used.Loss())
	id, limit := a.ID, a.Limit
	added := mechanisms.Loss{Epsilon: refill.Epsilon, Rho: refill.Rho, Delta: refill.Delta}
	record := RecordOf(a, refill)
	if a.Origin == budget.FromSteward && (kind == budget.EntryLimit || kind == budget.EntryRefill) {
		record.Under = m.InForce.Version
	}
	m.write(budget.Entry{Kind: kind, Loss: added, Account: &id, Limit: &limit, AccountText: record.Text()},
		id.Dataset, by, []*Account{a})
}

// write adds an entry. [Seal] completes it: accounts may have no number yet.
func (m *Machine) write(e budget.Entry, dataset, by string, about []*Account) {
	e.At, e.Dataset, e.Analyst = m.Now, dataset, by
	if (e.Kind == budget.EntryKeys || e.Kind == budget.EntryPolicy) && m.InForce.Ledger == budget.NoLedger {
		m.InForce.Ledger = "" // it gets its name with this entry's hash
	}
	m.Written = append(m.Written, Line{e, about})
}

func digestOf(parts ...[]byte) []byte {
	h := sha256.New()
	for _, p := range parts {
		h.Write(p)
	}
	return h.Sum(nil)
}

// RecordImport writes down that votes are about to be read.
func (m *Machine) RecordImport(by string, i budget.Import) {
	m.write(budget.Entry{Kind: budget.EntryImport, AccountText: importText(i), Account: importAccount(i)}, i.Dataset, by, nil)
}

// ResetFailures writes down that an analyst's failures count no more.
func (m *Machine) ResetFailures(by string, r budget.Reset) {
	m.write(budget.Entry{Kind: budget.EntryReset, AccountText: resetText(r), Account: resetAccount(r)}, r.Dataset, by, nil)
}
