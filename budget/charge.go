package budget

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"noisegate.example/budget/accounting"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

// Check refuses charges that only a defect of the caller can produce, and callers without any account.
func (c Charge) Check() error {
	switch {
	case c.ID == "" || c.Dataset == "" || c.Analyst == "":
		return fault.Internal(errors.New("budget: a charge needs an id, a dataset and an analyst"))
	case len(c.Accounts) == 0:
		return fault.BudgetNoAccount(c.Dataset)
	}
	if err := CheckLoss(c.Loss); err != nil {
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
		if err := a.Check(ByPolicy); err != nil {
			return err
		}
		if slices.ContainsFunc(c.Accounts[:i], func(b Account) bool { return b.ID == a.ID }) {
			return fault.Internal(errors.New("budget: a charge names an account twice"))
		}
	}
	return nil
}

// CheckLoss refuses what is no loss of a release.
func CheckLoss(l mechanisms.Loss) error {
	if l.Epsilon < 0 || l.Rho < 0 || l.Delta < 0 || l.Tail != 0 {
		return fault.Internal(errors.New("budget: a loss is negative, or has a tail already"))
	}
	return nil
}

// ByPolicy is who set the limit of an account that a charge opened.
const ByPolicy = "policy"

// Check refuses limits that [NewLimit] cannot have made.
func (a Account) Check(by string) error {
	l := a.Limit
	switch {
	case a.Origin != FromPolicy && a.Origin != FromSteward:
		return fault.Internal(fmt.Errorf("budget: a limit has the origin %q", string(a.Origin)))
	case l.Form != Pure && l.Form != ZCDP && l.Form != Approx,
		l.Epsilon < Never, l.Rho < Never, l.Delta < 0, l.TotalDelta < l.Delta, l.PerQuery < 0, l.PerQueryRho < 0,
		l.Tranche.check() != nil, l.Rate.check() != nil:
		return fault.Internal(fmt.Errorf("budget: a limit is out of range: %+v", l))
	}
	return a.ID.CheckedBy(by)
}

// InLedger is the charge as the ledger keeps it; its accounts are in lock order.
func (c Charge) InLedger() Charge {
	c.Accounts = slices.SortedFunc(slices.Values(c.Accounts), func(a, b Account) int { return a.ID.Compare(b.ID) })
	c.Loss = InLedger(c.Loss)
	c.Loss.Tail *= mechanisms.AttoDelta(max(c.Levels, 1))
	if len(c.Request) == 0 {
		c.Request = json.RawMessage("null")
	}
	return c
}

// InLedger is the loss as the ledger keeps it. What has no pure ε, and is ρ-zCDP, is kept as the (ε, δ′)-DP that
// follows, with a [tailEach] as δ′; so no release closes the ε clause of an account for good. Where ρ is beyond every
// budget there is no ε, and one without meaning is not added up.
func InLedger(l mechanisms.Loss) mechanisms.Loss {
	if !l.Unbounded {
		return l
	}
	l.Epsilon = 0
	if epsilon, ok := accounting.EpsilonFor(l.Rho, tailEach); ok {
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

// EnsembleScope is the account of an ensemble of teachers, locked last: what all analysts together spend on its votes.
const EnsembleScope Scope = "ensemble"

func (id AccountID) check() error {
	named := id.Scope == GroupScope || id.Scope == AnalystScope || id.Scope == EnsembleScope
	if id.Dataset == "" || !named && id.Scope != DatasetScope || named != (id.Name != "") {
		return fault.Internal(fmt.Errorf("budget: %+v names no account", id))
	}
	return nil
}

// CheckedBy is check, for what somebody does to the account.
func (id AccountID) CheckedBy(by string) error {
	if by == "" {
		return fault.Internal(errors.New("budget: nobody changes an account"))
	}
	return id.check()
}

// Check refuses a refill of no account.
func (r Refill) Check(by string) error { return r.Account.CheckedBy(by) }

// String is "dataset", "group:x", "analyst:x" or "ensemble:x", as people name accounts.
func (id AccountID) String() string {
	if id.Scope == DatasetScope {
		return string(id.Scope)
	}
	return string(id.Scope) + ":" + id.Name
}

// Compare is the order in which accounts are locked: by scope, then by name.
func (id AccountID) Compare(other AccountID) int {
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

// defaultPage and maxPage bound the lines of one list.
const (
	defaultPage = 50
	maxPage     = 1000
)

// Lines is how many lines a page has.
func (p Page) Lines() int {
	if p.Limit <= 0 {
		return defaultPage
	}
	return min(p.Limit, maxPage)
}
