package gateway

import (
	"context"
	"slices"
	"sync"

	"noisegate.example/budget"
	"noisegate.example/catalog"
	"noisegate.example/gateway/auth"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

// Accounts is what a caller's queries on one dataset are charged to: all its accounts together, or none.
type Accounts struct {
	balances []budget.Balance // in lock order; of accounts that are not open yet, with nothing spent
	due      []budget.Account // those of balances whose limit the ledger does not have yet
	failures int64            // that the policy tolerates
	failed   int64            // that the caller had of late
	own      int              // index of the account that is the caller's own, or the group's when the caller has none
	floor    floor            // what a release costs at least
	defaults defaults         // what a request costs that names no price
	refuses  []restriction
	standing []standing // by which the rest was found
	policy   budget.Policy
}

// standing is what of an account decides what a question is, and whose answers it may be given: all but what is spent.
type standing struct {
	account budget.Account
	frozen  bool
}

func standingsOf(balances []budget.Balance) []standing {
	all := make([]standing, len(balances))
	for i, b := range balances {
		all[i] = standing{b.Account, b.Frozen}
	}
	return all
}

// restriction is that an account takes one family of mechanisms only.
type restriction struct {
	scope budget.Scope
	takes catalog.Noise
}

// restrictions are those of an account by its line of the policy, nil for none.
func restrictions(scope budget.Scope, line *catalog.Budget) []restriction {
	if line == nil || len(line.Mechanisms) != 1 {
		return nil
	}
	return []restriction{{scope, line.Mechanisms[0]}}
}

// Takes refuses a loss of a mechanism that one of the accounts is kept from: one with a pure ε is of the family of
// Laplace noise, one without of Gaussian noise.
func (p Accounts) Takes(losses ...mechanisms.Loss) error {
	for _, r := range p.refuses {
		for _, l := range losses {
			if !l.IsZero() && l.Pure() != (r.takes == catalog.LaplaceNoise) {
				return fault.BudgetMechanism(string(r.scope), string(r.takes))
			}
		}
	}
	return nil
}

func (p Accounts) All() []budget.Account {
	accounts := make([]budget.Account, len(p.balances))
	for i, b := range p.balances {
		accounts[i] = b.Account
	}
	return accounts
}

// Own is the one account whose figures the caller may see.
func (p Accounts) Own() budget.Balance { return p.balances[p.own] }

// With adds an account that is charged too, whose figures the caller may not see.
func (p Accounts) With(shared budget.Balance) Accounts {
	p.balances = append(slices.Clip(p.balances), shared)
	return p
}

// CheckFloor refuses a release that costs less than the policy's floor; what names it.
func (p Accounts) CheckFloor(what string, l mechanisms.Loss) error { return p.floor.check(what, l) }

func (p Accounts) bill(charge budget.Charge) bill {
	charge.Policy, charge.Least = p.policy, p.floor.epsilon
	return bill{charge, p.failures, p.failed, p.due, p.balances}
}

// policyOf names the policy of a snapshot for the ledger.
func policyOf(s *catalog.Snapshot) budget.Policy {
	return budget.Policy{Version: s.Version, Digest: s.Digest}
}

// held reports whether nothing is run for a caller: an account of theirs is frozen, or so many of their questions failed.
func (p Accounts) held() bool {
	return p.failed >= p.failures || slices.ContainsFunc(p.balances, func(b budget.Balance) bool { return b.Frozen })
}

// tolerated is how many failures of an analyst within a day a policy puts up with.
func tolerated(snapshot *catalog.Snapshot) int64 {
	if snapshot.MaxFailures > 0 {
		return snapshot.MaxFailures
	}
	return catalog.DefaultMaxFailures
}

func (p Accounts) limit() budget.Limit { return p.Own().Limit }

// AccountsOf finds the accounts of a caller:
//
//   - the dataset's cap; without one there is no budget at all;
//   - the shared account of each of the caller's groups that has one;
//   - the caller's own account: by a line of the policy that names the caller, else by the first line that gives each
//     member of one of the caller's groups an account.
//
// A limit that a steward set counts instead of the policy's, also where the policy has no line. A caller with neither a
// group's account nor an own one has no budget. It changes nothing: limits of the policy that changed since an account was
// opened are due, and written by [meter.enforce] before anything is charged.
func (s *Service) AccountsOf(ctx context.Context, who auth.Principal, snapshot *catalog.Snapshot) (Accounts, error) {
	return s.accountsOf(ctx, who, snapshot, accountIDs(who, snapshot.Dataset))
}

// DatasetAccounts is the dataset's cap alone: for what stewards buy, who have no account.
func (s *Service) DatasetAccounts(ctx context.Context, who auth.Principal, snapshot *catalog.Snapshot) (Accounts, error) {
	return s.accountsOf(ctx, who, snapshot, accountIDs(who, snapshot.Dataset)[:1])
}

func (s *Service) accountsOf(ctx context.Context, who auth.Principal, snapshot *catalog.Snapshot,
	ids []budget.AccountID) (Accounts, error) {
	known, failed, err := s.ledger.Caller(ctx, ids, snapshot.Dataset, who.Subject, budget.FailurePeriod)
	if err != nil {
		return Accounts{}, err
	}
	return s.accountsAmong(who, snapshot, ids, known, failed)
}

// accountsAmong is [Service.AccountsOf] of those ids that the ledger knows, for a caller with so many failures.
func (s *Service) accountsAmong(who auth.Principal, snapshot *catalog.Snapshot, ids []budget.AccountID, known []budget.Balance,
	failed int64) (p Accounts, err error) {
	open := make(map[budget.AccountID]budget.Balance, len(known))
	for _, b := range known {
		open[b.ID] = b
	}
	p = Accounts{standing: standingsOf(known), policy: policyOf(snapshot), failures: tolerated(snapshot), failed: failed}
	var lines []*catalog.Budget
	for _, id := range ids {
		line := lineFor(snapshot, who, id)
		lines = append(lines, line)
		p.refuses = append(p.refuses, restrictions(id.Scope, line)...)
		balance, isOpen := open[id]
		now, ok, err := s.inForce(balance, isOpen, line, snapshot.Version)
		if err != nil {
			return Accounts{}, err
		}
		if now.ID = id; ok && isOpen && now.Account != balance.Account {
			p.due = append(p.due, now.Account)
		}
		if !ok && id.Scope == budget.DatasetScope {
			return Accounts{}, fault.BudgetNoAccount(snapshot.Dataset)
		}
		if ok {
			p.balances = append(p.balances, now)
		}
	}
	if len(p.balances) < min(len(ids), 2) {
		return Accounts{}, fault.BudgetNoAccount(snapshot.Dataset)
	}
	// The analyst's account comes last if there is one; else the last one is a group's.
	p.own = len(p.balances) - 1
	if p.defaults, err = defaultsOf(lines); err != nil {
		return Accounts{}, err
	}
	p.floor, err = floorOf(lines)
	return p, err
}

// accountIDs are the accounts that may be a caller's.
func accountIDs(who auth.Principal, dataset string) []budget.AccountID {
	ids := []budget.AccountID{{Dataset: dataset, Scope: budget.DatasetScope}}
	for _, group := range who.Groups {
		ids = append(ids, budget.AccountID{Dataset: dataset, Scope: budget.GroupScope, Name: group})
	}
	return append(ids, budget.AccountID{Dataset: dataset, Scope: budget.AnalystScope, Name: who.Subject})
}

// lineFor is the policy's line for an account; nil when it has none.
func lineFor(snapshot *catalog.Snapshot, who auth.Principal, id budget.AccountID) *catalog.Budget {
	var general *catalog.Budget
	for i := range snapshot.Budgets {
		line := &snapshot.Budgets[i]
		switch {
		case line.PerAnalyst:
			if id.Scope == budget.AnalystScope && general == nil && who.In(line.Name) {
				general = line
			}
		case string(line.Scope) == string(id.Scope) && line.Name == id.Name:
			return line
		}
	}
	return general
}

// inForce is an account as it counts now: ok is false when neither policy nor steward gave it a limit.
func (s *Service) inForce(balance budget.Balance, isOpen bool, line *catalog.Budget, version int64) (now budget.Balance, ok bool,
	err error) {
	if isOpen && balance.Origin == budget.FromSteward {
		return balance, true, nil
	}
	if line == nil {
		// Never opened, or the policy took its line away; unless a policy newer than version has the line.
		return balance, isOpen && balance.Version > version, nil
	}
	limit, err := s.limits.of(line)
	if err != nil {
		return budget.Balance{}, false, fault.Internal(err) // the policy was checked when it was applied
	}
	if isOpen && (balance.Version > version || balance.Version == version && balance.Limit == limit) {
		return balance, true, nil // this policy, or a newer one, already sets the limit
	}
	balance.Account = budget.Account{ID: balance.ID, Limit: limit, Origin: budget.FromPolicy, Version: version}
	return balance, true, nil
}

// limits are those that lines of policies give. A line never changes, and deriving its limit (the ρ of an ε and a δ)
// takes longer than asking the ledger. Lines of policies that were replaced stay: a few for each version that this
// process has seen.
type limits struct{ byLine sync.Map } // *catalog.Budget to budget.Limit

func (l *limits) of(line *catalog.Budget) (budget.Limit, error) {
	if known, ok := l.byLine.Load(line); ok {
		return known.(budget.Limit), nil
	}
	limit, err := limitOf(*line)
	if err == nil {
		l.byLine.Store(line, limit)
	}
	return limit, err
}

// limitOf turns a line of a policy into a limit.
func limitOf(line catalog.Budget) (budget.Limit, error) {
	spec := budget.LimitSpec{
		Form: budget.Form(line.Form), Epsilon: line.Epsilon, Rho: line.Rho, Delta: line.Delta,
		MaxEpsilonPerQuery: line.MaxEpsilonPerQuery, ReplayOnly: line.ReplayOnly,
	}
	if t := line.Tranche; t != nil {
		spec.Tranche = budget.TrancheSpec{Every: t.Every, Epsilon: t.Epsilon, Rho: t.Rho}
	}
	if r := line.Rate; r != nil {
		spec.Rate = budget.RateSpec{Epsilon: r.Epsilon, Per: r.Per}
	}
	return budget.NewLimit(spec)
}

// lastAccounts remembers the accounts of a caller on each dataset. The zero value is ready; it is safe for concurrent use.
type lastAccounts struct {
	mu sync.Mutex
	of map[string]accountsThen
}

// accountsThen are the accounts that there were among ids, under a policy.
type accountsThen struct {
	on  *catalog.Snapshot
	ids []budget.AccountID
	Accounts
}

// find gives what is remembered of the accounts among ids under a policy.
func (l *lastAccounts) find(on *catalog.Snapshot, ids []budget.AccountID) (Accounts, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	then := l.of[on.Dataset]
	return then.Accounts, then.on == on && slices.Equal(then.ids, ids)
}

// keep remembers accounts, where the ledger has all of them, with their limits: then nothing that others ask changes what planning needs of
// them, and so nobody sees in the time of a question that others asked.
func (l *lastAccounts) keep(on *catalog.Snapshot, ids []budget.AccountID, p Accounts) {
	open := func(b budget.Balance) bool { return slices.Contains(p.standing, standing{b.Account, b.Frozen}) }
	if slices.ContainsFunc(p.balances, func(b budget.Balance) bool { return !open(b) }) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of = map[string]accountsThen{}
	}
	l.of[on.Dataset] = accountsThen{on, ids, p}
}
