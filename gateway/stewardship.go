package gateway

import (
	"context"
	"slices"
	"strings"
	"time"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/catalog"
	"noisegate.example/catalog/draft"
	"noisegate.example/gateway/auth"
	"noisegate.example/gateway/internal/amounts"
	"noisegate.example/internal/fault"
)

// Policies are the policies of the datasets. Implementations are safe for concurrent use.
type Policies interface {
	// Current is the snapshot that queries are rewritten against. Its errors are policy/unknown-dataset, while there is
	// none, and policy/stale, while the live schema contradicts it.
	Current(dataset string) (*catalog.Snapshot, error)
	// Document is the policy file in force.
	Document(ctx context.Context, dataset string) (PolicyDocument, error)
	// Review checks a policy file against the live schema and says what applying it would do. It changes nothing.
	Review(ctx context.Context, dataset string, text []byte) (*catalog.Review, error)
	// Schema is the live schema, for a policy that there is none of yet. It reads no row.
	Schema(ctx context.Context, dataset string) (*catalog.Schema, error)
	// Apply checks a policy file against the live schema and puts it in force; policy/conflict when another version is, policy/signature
	// when a second steward's signature is wanted, or given and does not hold.
	Apply(context.Context, PolicyChange) (*catalog.Snapshot, error)
}

// PolicyDocument is a policy file and its version.
type PolicyDocument struct {
	Text    []byte
	Version int64
}

// PolicyChange replaces a policy.
type PolicyChange struct {
	Dataset  string
	By       string      // the steward's subject
	Roles    []auth.Role // of the steward's token
	Groups   []string    // of the steward's token
	Text     []byte
	Replaces int64         // the version that the change is based on; 0: there is none yet
	Approval *api.Approval // a second steward's signature; nil: none
}

// Policy gives a dataset's policy file.
func (s *Service) Policy(ctx context.Context, dataset string) (PolicyDocument, error) {
	if _, ok := s.datasets[dataset]; !ok {
		return PolicyDocument{}, fault.UnknownDataset(dataset)
	}
	return s.policies.Document(ctx, dataset)
}

// DraftPolicy drafts a policy from what the schema of a protected database says: it reads no row. A schema does not say which column
// identifies a person: without a unit it returns a draft only if exactly one column can be it, else the columns that can.
func (s *Service) DraftPolicy(ctx context.Context, dataset, unit string) (*api.PolicyDraft, error) {
	schema, err := s.policies.Schema(ctx, dataset)
	if err != nil {
		return nil, err
	}
	d := &api.PolicyDraft{Dataset: dataset, Candidates: []string{}}
	for _, u := range draft.Candidates(schema) {
		d.Candidates = append(d.Candidates, u.String())
	}
	if unit == "" && len(d.Candidates) == 1 {
		unit = d.Candidates[0]
	}
	if d.Unit = unit; unit == "" {
		return d, nil
	}
	u, ok := draft.ParseUnit(unit)
	if !ok {
		return nil, fault.PolicyInvalid(fault.Position{}, "the unit is table.column or schema.table.column", "")
	}
	if d.Text, err = draft.FromSchema(schema, dataset, u); err != nil {
		return nil, fault.PolicyInvalid(fault.Position{}, err.Error(), "")
	}
	d.Blanks = draft.Blanks(d.Text)
	return d, nil
}

// SetPolicy puts a policy file in force. Who may spend alone changes no line of it that gives them more: auth/forbidden.
func (s *Service) SetPolicy(ctx context.Context, change PolicyChange) (*api.PolicyApplied, error) {
	if _, ok := s.datasets[change.Dataset]; !ok {
		return nil, fault.UnknownDataset(change.Dataset)
	}
	if change.Approval == nil { // else Apply checks that somebody else signed it
		if err := s.raisesNoneOfTheirs(ctx, change); err != nil {
			return nil, err
		}
	}
	snapshot, err := s.policies.Apply(ctx, change)
	if err != nil {
		return nil, err
	}
	return &api.PolicyApplied{Dataset: snapshot.Dataset, Version: snapshot.Version, Digest: hexText(snapshot.Digest)}, nil
}

// Accounts lists the accounts of a dataset for its stewards.
func (s *Service) Accounts(ctx context.Context, who auth.Principal, dataset string) (*api.AccountList, error) {
	release, err := s.EnterList(ctx, who)
	if err != nil {
		return nil, err
	}
	defer release()
	if _, ok := s.datasets[dataset]; !ok {
		return nil, fault.UnknownDataset(dataset)
	}
	balances, err := s.ledger.DatasetBalances(ctx, dataset)
	if err != nil {
		return nil, err
	}
	list := &api.AccountList{Accounts: make([]api.Account, len(balances))}
	for i, b := range balances {
		list.Accounts[i] = s.accountInForce(b)
	}
	return list, nil
}

// Account gives one account to a steward. An account that nobody has drawn on yet exists once a steward has set it.
func (s *Service) Account(ctx context.Context, dataset, name string) (*api.Account, error) {
	id, err := s.accountID(dataset, name)
	if err != nil {
		return nil, err
	}
	balances, err := s.ledger.Balances(ctx, []budget.AccountID{id})
	if err != nil {
		return nil, err
	}
	if len(balances) == 0 {
		return nil, fault.RequestNotFound("account " + fault.Quote(name) + " yet: it opens when it is first charged, or when a steward sets it")
	}
	account := s.accountInForce(balances[0])
	return &account, nil
}

// SetAccount opens an account or changes its limit. The steward's limit stays in force whatever policy comes next.
func (s *Service) SetAccount(ctx context.Context, who auth.Principal, dataset, name string, change api.LimitChange) (*api.Account, error) {
	id, err := s.accountID(dataset, name)
	if err != nil {
		return nil, err
	}
	parsed, err := amounts.ParseLimit(change.BudgetLimit)
	if err != nil {
		return nil, err
	}
	if err := s.writeDue(ctx, id); err != nil {
		return nil, err
	}
	account := budget.Account{ID: id, Limit: parsed, Origin: budget.FromSteward}
	if change.Signature == nil {
		err = s.SetLimit(ctx, who, account)
	} else {
		err = s.changeLimit(ctx, who, account, change.Signature)
	}
	if err != nil {
		return nil, err
	}
	return s.Account(ctx, dataset, name)
}

// SetLimit opens an account or changes its limit. Where the dataset has keys of stewards it raises none: only signed refills, and changes
// that a second steward signed, do.
func (s *Service) SetLimit(ctx context.Context, who auth.Principal, account budget.Account) error {
	if owns(who, account.ID) {
		return fault.AuthOwnAccount()
	}
	if s.Stewards(account.ID.Dataset) != nil {
		return s.ledger.LowerLimit(ctx, who.Subject, account)
	}
	return s.ledger.SetLimit(ctx, who.Subject, account)
}

// changeLimit is SetLimit with a second steward's signature, also of an account of the caller's own.
func (s *Service) changeLimit(ctx context.Context, who auth.Principal, account budget.Account, signature *api.RefillSignature) error {
	mandate, err := mandateOf(signature)
	if err != nil {
		return err
	}
	if err := mandate.ByTwo(who.Subject); err != nil {
		return err
	}
	balances, err := s.ledger.Balances(ctx, []budget.AccountID{account.ID})
	if err != nil {
		return err
	}
	change := budget.LimitChange{Account: account, Mandate: *mandate}
	if len(balances) > 0 {
		if _, _, known, err := s.inPolicy(balances[0]); err != nil {
			return err
		} else if known {
			change.Before = &balances[0].Limit
		}
	}
	if err := s.Stewards(account.ID.Dataset).CheckLimit(change); err != nil {
		return err
	}
	return s.ledger.ChangeLimit(ctx, who.Subject, change)
}

// accountID reads "dataset", "group:x", "analyst:x" or "ensemble:x".
func (s *Service) accountID(dataset, name string) (budget.AccountID, error) {
	if _, ok := s.datasets[dataset]; !ok {
		return budget.AccountID{}, fault.UnknownDataset(dataset)
	}
	if name == string(budget.DatasetScope) {
		return budget.AccountID{Dataset: dataset, Scope: budget.DatasetScope}, nil
	}
	scope, owner, found := strings.Cut(name, ":")
	id := budget.AccountID{Dataset: dataset, Scope: budget.Scope(scope), Name: owner}
	valid := auth.ValidName
	if id.Scope == budget.GroupScope {
		valid = auth.ValidGroup
	}
	if !found || !valid(owner) || id.Scope != budget.GroupScope && id.Scope != budget.AnalystScope &&
		id.Scope != budget.EnsembleScope {
		return budget.AccountID{}, fault.RequestAccount()
	}
	return id, nil
}

// owns reports whether a caller's questions may be charged to an account, the dataset's apart: the one of the caller's
// name, and those of the groups of a token that may spend.
func owns(who auth.Principal, id budget.AccountID) bool {
	switch id.Scope {
	case budget.AnalystScope:
		return id.Name == who.Subject
	case budget.GroupScope:
		return spends(who) && who.In(id.Name)
	default:
		return false
	}
}

// raisesNoneOfTheirs refuses a change of lines by which the caller's questions are charged, unless it lowers amounts only:
// to the account of their name, and, with a token that may spend, to those of its groups and to the dataset's. A line that
// comes or goes is refused too: one gives an account, the other lifts a cap. The first policy of a dataset changes none.
func (s *Service) raisesNoneOfTheirs(ctx context.Context, change PolicyChange) error {
	new, problems := catalog.Parse(string(change.Text))
	if len(problems) > 0 {
		return nil // Apply says what is wrong
	}
	inForce, err := s.policies.Document(ctx, change.Dataset)
	if fault.CodeOf(err) == fault.CodeUnknownDataset {
		if change.Replaces != 0 { // what is compared is what is replaced
			return fault.PolicyConflict(change.Dataset, 0)
		}
		return nil
	}
	if fault.CodeOf(err) == fault.CodeDataUnavailable {
		return err
	}
	var old *catalog.Policy
	if err == nil {
		if inForce.Version != change.Replaces {
			return fault.PolicyConflict(change.Dataset, inForce.Version)
		}
		old, problems = catalog.Parse(string(inForce.Text))
	}
	who := auth.Principal{Subject: change.By}
	ids := []budget.AccountID{{Dataset: change.Dataset, Scope: budget.AnalystScope, Name: change.By}}
	if token := (auth.Principal{Subject: change.By, Roles: change.Roles, Groups: change.Groups}); spends(token) {
		who = token
		ids = append(ids, budget.AccountID{Dataset: change.Dataset, Scope: budget.DatasetScope})
		for _, group := range who.Groups {
			ids = append(ids, budget.AccountID{Dataset: change.Dataset, Scope: budget.GroupScope, Name: group})
		}
	}
	for _, id := range ids {
		after := lineFor(&catalog.Snapshot{Budgets: new.Budgets}, who, id)
		var before *catalog.Budget
		if old != nil && len(problems) == 0 {
			before = lineFor(&catalog.Snapshot{Budgets: old.Budgets}, who, id)
		} else if after == nil && spends(who) { // the line in force cannot be read: it may be one that goes
			return fault.AuthOwnAccount()
		}
		if lowers, err := lowersOnly(before, after); err != nil || !lowers {
			return fault.AuthOwnAccount()
		}
	}
	return nil
}

// lowersOnly reports whether an account gets at most what it had, and everything but its amounts is as it was.
func lowersOnly(before, after *catalog.Budget) (bool, error) {
	if before == nil || after == nil {
		return before == after, nil
	}
	had, err := limitOf(*before)
	if err != nil {
		return false, err
	}
	gets, err := limitOf(*after)
	if err != nil || gets.Raises(had) {
		return false, err
	}
	gets.Epsilon, gets.Rho, gets.Delta, gets.TotalDelta = had.Epsilon, had.Rho, had.Delta, had.TotalDelta
	if had.PerQuery == gets.PerQuery { // the ρ of the same ε follows from δ
		gets.PerQueryRho = had.PerQueryRho
	}
	return gets == had && slices.Equal(before.Mechanisms, after.Mechanisms), nil
}

// spends reports whether questions of a token can be charged.
func spends(who auth.Principal) bool { return who.Has(auth.Analyst) || who.Has(auth.ML) }

// accountOfOthers is accountID of an account on which the caller may act as steward: nobody does on their own.
func (s *Service) accountOfOthers(who auth.Principal, dataset, name string) (budget.AccountID, error) {
	id, err := s.accountID(dataset, name)
	if err == nil && owns(who, id) {
		err = fault.AuthOwnAccount()
	}
	return id, err
}

// inPolicy is a limit as the policy in force has it, where that names the account: who is given one as a member of a group is known when
// they ask. due reports that it is not the one that the ledger has, and known that the policy says which one it is.
func (s *Service) inPolicy(b budget.Balance) (now budget.Balance, due, known bool, err error) {
	snapshot, err := s.policies.Current(b.ID.Dataset)
	if err != nil || b.Origin == budget.FromSteward || b.Version >= snapshot.Version {
		return b, false, true, nil //nolint:nilerr // without a policy nothing is due
	}
	line := lineFor(snapshot, auth.Principal{}, b.ID)
	if line == nil {
		return b, true, false, nil
	}
	now, _, err = s.inForce(b, true, line, snapshot.Version)
	return now, true, true, err
}

// writeDue writes the limit that the policy in force gives an account which it names, as the next charge would.
func (s *Service) writeDue(ctx context.Context, id budget.AccountID) error {
	balances, err := s.ledger.Balances(ctx, []budget.AccountID{id})
	if err != nil || len(balances) == 0 {
		return err
	}
	now, due, known, err := s.inPolicy(balances[0])
	if err != nil || !due || !known {
		return err
	}
	snapshot, err := s.policies.Current(id.Dataset)
	if err != nil || snapshot.Version != now.Version { // it is being replaced
		return err
	}
	return s.ledger.Enforce(ctx, policyOf(snapshot), now.Account)
}

// accountInForce is an account with the limit in force, or marked as one whose limit is not known yet.
func (s *Service) accountInForce(b budget.Balance) api.Account {
	now, _, known, err := s.inPolicy(b)
	a := s.accountOf(now)
	a.Due = err != nil || !known
	return a
}

// aYear is how far ahead stewards are told what can be lost.
const aYear = 365 * 24 * time.Hour

func (s *Service) accountOf(b budget.Balance) api.Account {
	now := s.clock.Now()
	released := amounts.Released(b, now)
	return api.Account{
		Dataset: b.ID.Dataset, Account: b.ID.String(), Origin: string(b.Origin), Limit: amounts.Limit(b.Limit),
		Spent: amounts.Sums(b.Spent), Reserved: amounts.Sums(b.Reserved), Remaining: amounts.Headroom(released),
		Usage:    amounts.Usage(released),
		Lifetime: promiseOf(b.Lifetime()), WorstCase: promiseOf(b.WorstCase(now.Add(aYear))), Frozen: b.Frozen, Refills: b.Refills,
		NextTranche: nextTranche(b, now), Advice: advice(b, now),
	}
}

func nextTranche(b budget.Balance, now time.Time) *time.Time {
	at, ok := b.Limit.NextTranche(b.Opened, now)
	if !ok {
		return nil
	}
	at = at.UTC()
	return &at
}

func promiseOf(p budget.Promise) api.Promise {
	shown := api.Promise{Delta: api.Decimal(p.Delta.String())}
	if p.Bounded {
		shown.Epsilon = api.Decimal(p.Epsilon.String())
	}
	return shown
}

// ExpireAbandoned closes charges of gateways that died; what they reserved counts as spent. It says how many there were.
func (s *Service) ExpireAbandoned(ctx context.Context) (int, error) {
	return s.ledger.ExpireOlder(ctx, s.abandoned)
}

// Sweep expires abandoned charges now and then until the context ends.
func (s *Service) Sweep(ctx context.Context) {
	for ctx.Err() == nil {
		if closed, err := s.ExpireAbandoned(ctx); err != nil && ctx.Err() == nil {
			s.log.ErrorContext(ctx, "closing abandoned charges failed", "code", string(fault.CodeOf(err)))
		} else if closed > 0 {
			s.log.WarnContext(ctx, "closed abandoned charges", "charges", closed)
		}
		s.clock.Sleep(ctx, max(s.abandoned/2, time.Second))
	}
}
