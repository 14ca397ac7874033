package budget

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"noisegate/internal/fault"
	"noisegate/mechanisms"
)

// check refuses charges that only a defect of the caller can produce, and callers without any account.
func (c Charge) check() error {
	switch {
	case c.ID == "" || c.Dataset == "" || c.Analyst == "":
		return fault.Internal(errors.New("budget: a charge needs an id, a dataset and an analyst"))
	case len(c.Accounts) == 0:
		return fault.BudgetNoAccount(c.Dataset)
	}
	if err := checkLoss(c.Loss); err != nil {
		return err
	}
	if c.Levels < 0 || c.Levels > maxLevels {
		return fault.Internal(fmt.Errorf("budget: a charge has %d levels", c.Levels))
	}
	if err := c.checkPlan(); err != nil {
		return err
	}
	for i, a := range c.Accounts {
		if a.ID.Dataset != c.Dataset {
			return fault.Internal(fmt.Errorf("budget: a charge on dataset %s names an account of %s", c.Dataset, a.ID.Dataset))
		}
		a.Origin = FromPolicy
		if err := a.check(byPolicy); err != nil {
			return err
		}
		if slices.ContainsFunc(c.Accounts[:i], func(b Account) bool { return b.ID == a.ID }) {
			return fault.Internal(errors.New("budget: a charge names an account twice"))
		}
	}
	return nil
}

// mechanismText is what the journal keeps of the charge's releases, as JSON.
func (c Charge) mechanismText() []byte {
	r := releaseRecord{Mechanisms: append([]mechanisms.Parameters{}, c.Mechanisms...)}
	if len(c.Registers) > 0 {
		epsilon, rho := c.registering()
		r.Registers = &slotsRecord{epsilon, rho}
	}
	if d := c.Draws; d != nil {
		r.Draws = &drawRecord{d.Plan, d.From, d.Count}
	}
	return r.text()
}

func checkLoss(l mechanisms.Loss) error {
	if l.Epsilon < 0 || l.Rho < 0 || l.Delta < 0 || l.Tail != 0 {
		return fault.Internal(errors.New("budget: a loss is negative, or has a tail already"))
	}
	return nil
}

// byPolicy is who set the limit of an account that a charge opened.
const byPolicy = "policy"

// check refuses limits that [NewLimit] cannot have made.
func (a Account) check(by string) error {
	l := a.Limit
	switch {
	case a.Origin != FromPolicy && a.Origin != FromSteward:
		return fault.Internal(fmt.Errorf("budget: a limit has the origin %q", string(a.Origin)))
	case l.Form != Pure && l.Form != ZCDP && l.Form != Approx,
		l.Epsilon < Never, l.Rho < Never, l.Delta < 0, l.TotalDelta < l.Delta, l.PerQuery < 0, l.PerQueryRho < 0,
		l.Tranche.check() != nil, l.Rate.check() != nil:
		return fault.Internal(fmt.Errorf("budget: a limit is out of range: %+v", l))
	}
	return a.ID.checkedBy(by)
}

// inLedger is the charge as the ledger keeps it; its accounts are in lock order.
func (c Charge) inLedger() Charge {
	c.Accounts = slices.SortedFunc(slices.Values(c.Accounts), func(a, b Account) int { return a.ID.compare(b.ID) })
	c.Loss = inLedger(c.Loss)
	c.Loss.Tail *= mechanisms.AttoDelta(max(c.Levels, 1))
	if len(c.Request) == 0 {
		c.Request = json.RawMessage("null")
	}
	return c
}

// inLedger is the loss as the ledger keeps it. What has no pure ε, and is ρ-zCDP, is kept as the (ε, δ′)-DP that
// follows, with a [tailEach] as δ′; so no release closes the ε clause of an account for good. Where ρ is beyond every
// budget there is no ε, and one without meaning is not added up.
func inLedger(l mechanisms.Loss) mechanisms.Loss {
	if !l.Unbounded {
		return l
	}
	l.Epsilon = 0
	if epsilon, ok := EpsilonFor(l.Rho, tailEach); ok {
		l.Epsilon, l.Unbounded, l.Tail = epsilon, false, tailEach
	}
	return l
}

// maxLevels bounds [Charge.Levels], so that tails do not overflow.
const maxLevels = 1_000_000_000

// tailEach is the δ′ of a release that has a ρ and no pure ε: the smallest that the ledger counts. It is the same for
// all accounts of a charge, whatever is left of them, so that nobody can choose it for another, and so small that an
// approx account of δ has room for δ/32 of them, at 10⁻⁶ more than 3·10¹⁰. As ε grows with the square root of ln(1/δ′)
// only, a δ′ of 10⁻⁹ would make it smaller by less than a third.
const tailEach mechanisms.AttoDelta = 1

// settledAs is what a release counts as whose reservation is held: one that was reserved before there were tails has
// none. It keeps the whole tail, one for each of the levels that it might have settled at: see [Charge.Levels].
func settledAs(released, held mechanisms.Loss) mechanisms.Loss {
	if !released.Unbounded || held.Unbounded {
		return released
	}
	released = inLedger(released)
	released.Tail = max(released.Tail, held.Tail)
	released.Epsilon = min(released.Epsilon, held.Epsilon) // ε(ρ) rises with ρ, its computed bound nearly so
	return released
}

// within reports whether a release cost no more than was reserved for it, in every currency.
func within(released, reserved mechanisms.Loss) bool {
	return released.Epsilon <= reserved.Epsilon && released.Rho <= reserved.Rho && released.Delta <= reserved.Delta &&
		released.Tail <= reserved.Tail &&
		(reserved.Unbounded || !released.Unbounded)
}

// EnsembleScope is the account of an ensemble of teachers, locked last: what all analysts together spend on its votes.
const EnsembleScope Scope = "ensemble"

func (id AccountID) check() error {
	named := id.Scope == GroupScope || id.Scope == AnalystScope || id.Scope == EnsembleScope
	if id.Dataset == "" || !named && id.Scope != DatasetScope || named != (id.Name != "") {
		return fault.Internal(fmt.Errorf("budget: %+v names no account", id))
	}
	return nil
}

// checkedBy is check, for what somebody does to the account.
func (id AccountID) checkedBy(by string) error {
	if by == "" {
		return fault.Internal(errors.New("budget: nobody changes an account"))
	}
	return id.check()
}

func (r Refill) check(by string) error { return r.Account.checkedBy(by) }

// compare is the order in which accounts are locked: by scope, then by name.
// String is "dataset", "group:x", "analyst:x" or "ensemble:x", as people name accounts.
func (id AccountID) String() string {
	if id.Scope == DatasetScope {
		return string(id.Scope)
	}
	return string(id.Scope) + ":" + id.Name
}

func (id AccountID) compare(other AccountID) int {
	return cmp.Or(cmp.Compare(id.Scope.rank(), other.Scope.rank()), cmp.Compare(id.Name, other.Name))
}

func (s Scope) rank() int {
	switch s {
	case DatasetScope:
		return 0
	case GroupScope:
		return 1
	case EnsembleScope:
		return 3
	default:
		return 2
	}
}

// The states of a charge; see the picture in the package comment.
type state string

const (
	open    state = "open"
	settled state = "settled"
	voided  state = "voided"
	expired state = "expired"
)

// ending is one of the ways in which an open charge ends.
type ending struct {
	to     state
	kind   EntryKind
	loss   *mechanisms.Loss // what the charge counts as from then on; nil: all that was reserved
	shared *mechanisms.Loss // what it counts as for shared accounts; nil: the same
	answer []byte           // settled only
}

func settling(released mechanisms.Loss, answer []byte) (ending, error) {
	if err := checkLoss(released); err != nil {
		return ending{}, err
	}
	if released.Unbounded {
		released.Epsilon = 0
	}
	return ending{to: settled, kind: EntrySettle, loss: &released, answer: append([]byte{}, answer...)}, nil
}

func settlingApart(released Apart, answer []byte) (ending, error) {
	e, err := settling(released.Own, answer)
	if err != nil {
		return ending{}, err
	}
	shared, err := settling(released.Shared, nil)
	e.shared = shared.loss
	return e, err
}

// settles gives what a charge counts as from now on, for its own accounts and, where that is less, for the shared ones;
// false if it is more than was held.
func (e ending) settles(held mechanisms.Loss) (own mechanisms.Loss, shared *mechanisms.Loss, ok bool) {
	own = held
	if e.loss != nil {
		own = settledAs(*e.loss, held)
	}
	if e.shared != nil {
		if less := settledAs(*e.shared, own); less != own {
			shared = &less
		}
	}
	return own, shared, within(own, held) && (shared == nil || within(*shared, own))
}

// counts is what a charge counts as in accounts of a scope.
func (s Scope) counts(own mechanisms.Loss, shared *mechanisms.Loss) mechanisms.Loss {
	if shared != nil && (s == DatasetScope || s == EnsembleScope) {
		return *shared
	}
	return own
}

func voiding() ending  { return ending{to: voided, kind: EntryVoid, loss: &mechanisms.Loss{}} }
func expiring() ending { return ending{to: expired, kind: EntryExpire} }

// again decides about ending a charge that is not open. The same ending once more is no error: its caller could not know
// that the first was committed.
func (e ending) again(id ReservationID, is state, answer []byte) error {
	if is == e.to && bytes.Equal(answer, e.answer) {
		return nil
	}
	return fault.Internal(fmt.Errorf("budget: charge %s is %s and cannot become %s", id, is, e.to))
}

// past is an earlier charge of the same analyst under the same Idempotency-Key (byKey) or with the same fingerprint.
type past struct {
	byKey  bool
	digest [32]byte // byKey: of the request that the key named
	state  state
	stored *Stored // when settled
}

// resolve decides about a request from what came before it, the charge under its key first: the stored answer, a refusal, or
// (nil) that the request is a new one. A voided charge is as if it had never been.
func resolve(c Charge, before []past) (*past, error) {
	for _, p := range before {
		switch {
		case p.state == voided:
		case p.byKey && p.digest != c.RequestDigest:
			return nil, fault.BudgetReplayMismatch()
		case p.state == settled:
			return &p, nil
		case p.state == open:
			return nil, fault.RequestInFlight()
		case p.state == expired && p.byKey:
			return nil, fault.BudgetLostAnswer()
		case p.state == expired: // the question may be asked, and charged, again
		default:
			return nil, fault.Internal(fmt.Errorf("budget: a charge has the state %q", string(p.state)))
		}
	}
	return nil, nil
}

func usedID(id ReservationID) error {
	return fault.Internal(fmt.Errorf("budget: the reservation id %s was used before", id))
}

func overReserved(id ReservationID) error {
	return fault.Internal(fmt.Errorf("budget: charge %s released more than it reserved", id))
}

func unknownCharge(id ReservationID) error {
	return fault.Internal(fmt.Errorf("budget: there is no charge %s", id))
}

// defaultPage and maxPage bound the lines of one list.
const (
	defaultPage = 50
	maxPage     = 1000
)

// lines is how many lines a page has.
func (p Page) lines() int {
	if p.Limit <= 0 {
		return defaultPage
	}
	return min(p.Limit, maxPage)
}
