package labels

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"regexp"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/catalog"
	"noisegate.example/gateway"
	"noisegate.example/gateway/auth"
	"noisegate.example/gateway/internal/amounts"
	"noisegate.example/internal/fault"
	"noisegate.example/pate"
)

// ensembleName is what an ensemble may be called: a part of a URL that needs no escapes.
var ensembleName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,62}$`)

// Define begins a version of an ensemble. All versions, and all callers, spend from the one account that its first definition
// gives it; a later definition may change that account's cap. For stewards.
func (s *Service) Define(ctx context.Context, who auth.Principal, name string, d api.EnsembleDefinition) (*api.Ensemble, error) {
	definition, limit, err := s.definitionOf(name, d)
	if err != nil {
		return nil, err
	}
	definition.By = who.Subject
	account := budget.AccountID{Dataset: d.Dataset, Scope: budget.EnsembleScope, Name: name}
	if limit == nil {
		balances, err := s.ledger.Balances(ctx, []budget.AccountID{account})
		if err != nil {
			return nil, err
		}
		if len(balances) == 0 {
			return nil, fault.PateEnsemble("budget", "given with the first version: it caps what all versions together may spend")
		}
	}
	if err := s.lowersNone(ctx, definition); err != nil {
		return nil, err
	}
	if _, err := s.ensembles.Define(ctx, *definition); err != nil {
		return nil, err
	}
	if limit != nil {
		// After the version, which may be refused. Until it is done the version has no account, and no label can be bought.
		if err := s.gateway.SetLimit(ctx, who, budget.Account{ID: account, Limit: *limit, Origin: budget.FromSteward}); err != nil {
			return nil, err
		}
	}
	return s.Ensemble(ctx, who, name)
}

// lowersNone refuses a definition by which a person is in fewer teachers than by the version before, while bounds take two stewards: nobody
// signs definitions.
func (s *Service) lowersNone(ctx context.Context, d *pate.Definition) error {
	two, err := s.gateway.TakesTwo(ctx, d.Dataset, budget.ForBounds)
	if err != nil || !two {
		return err
	}
	before, err := s.ensembles.Latest(ctx, d.Name)
	if fault.CodeOf(err) == fault.CodePateUnknownEnsemble {
		return nil
	}
	if err != nil {
		return err
	}
	if least := before.Ensemble.MaxTeachersPerPerson(); d.Ensemble.MaxTeachersPerPerson() < least {
		return fault.PateEnsemble("max_teachers_per_person", fmt.Sprintf("at least %d, as in the version before, while the policy has bounds "+
			"in two_for", least))
	}
	return nil
}

// definitionOf checks a definition member by member.
func (s *Service) definitionOf(name string, d api.EnsembleDefinition) (*pate.Definition, *budget.Limit, error) {
	if s.ensembles == nil {
		return nil, nil, fault.PateUnknownEnsemble(name)
	}
	if !ensembleName.MatchString(name) {
		return nil, nil, fault.PateEnsemble("its name", "1 to 63 of a-z, 0-9, _ and -, beginning with a letter")
	}
	if d.Dataset == "" {
		return nil, nil, fault.RequestMissingField("dataset")
	}
	snapshot, err := s.gateway.Snapshot(d.Dataset)
	if err != nil {
		return nil, nil, err
	}
	parameters := pate.EnsembleParameters{Classes: d.Classes, Teachers: d.Teachers}
	if d.MaxTeachersPerPerson != nil {
		if parameters.MaxTeachersPerPerson = *d.MaxTeachersPerPerson; parameters.MaxTeachersPerPerson < 1 {
			return nil, nil, fault.PateEnsemble("max_teachers_per_person", "a whole number of at least 1")
		}
	}
	ensemble, err := pate.NewEnsemble(parameters)
	if err != nil {
		return nil, nil, err
	}
	if ensemble.ClassCount() < 2 { // a label of one class says nothing, and is not to be sold
		return nil, nil, fault.PateEnsemble("classes", fmt.Sprintf("from 2 to %d names", pate.MaxClasses))
	}
	definition := &pate.Definition{Name: name, Dataset: d.Dataset, Ensemble: ensemble}
	if d.PartitionSHA256 != "" {
		if definition.Partition, err = hex.DecodeString(d.PartitionSHA256); err != nil || len(definition.Partition) != 32 {
			return nil, nil, fault.PateEnsemble("partition_sha256", "64 hexadecimal digits")
		}
	}
	if definition.Sanitise, err = sanitiseOf(d.Sanitise, snapshot.Pate.SanitiseOf(name)); err != nil {
		return nil, nil, err
	}
	if d.Budget == nil {
		return definition, nil, nil
	}
	limit, err := amounts.ParseLimit(*d.Budget)
	return definition, &limit, err
}

// VoteFile is a file of votes that is being read.
type VoteFile struct {
	Format pate.Format
	Layout pate.Layout
	Body   io.Reader
}

// LoadVotes replaces the votes of the version that is being prepared by those of a file: all of them or none. For stewards.
func (s *Service) LoadVotes(ctx context.Context, who auth.Principal, name string, file VoteFile) (*api.Ensemble, error) {
	return s.load(ctx, who, name, func(version *pate.Version) (votes, error) {
		return votes{"a file", func() (*pate.Ballots, error) { return version.Ensemble.Read(file.Body, file.Format, file.Layout) }}, nil
	})
}

// LoadVoteTable is [Service.LoadVotes] from a table or view of the ensemble's protected database, which the policy
// names with these columns, and its reader role must be able to read. For stewards: nothing is released by it.
func (s *Service) LoadVoteTable(ctx context.Context, who auth.Principal, name string, table api.VoteTable) (*api.Ensemble, error) {
	return s.load(ctx, who, name, func(version *pate.Version) (votes, error) {
		snapshot, err := s.gateway.Snapshot(version.Dataset)
		if err != nil {
			return votes{}, err
		}
		data := s.votes[version.Dataset]
		if named := (catalog.VoteTable{Schema: table.Schema, Table: table.Table, Unit: table.Teacher, Query: table.Query,
			Label: table.Label}); data == nil || !snapshot.Pate.ReadsVotes(named) {
			return votes{}, fault.PateUnknownTable()
		}
		return votes{table.Schema + "." + table.Table, func() (*pate.Ballots, error) {
			return version.Ensemble.Collect(data.Votes(ctx, pate.VoteTable(table)))
		}}, nil
	})
}

// votes are those that a version can take.
type votes struct {
	source string // for the ledger
	read   func() (*pate.Ballots, error)
}

// load puts votes into the version that is being prepared. The ledger says that they are about to be read, also if they
// are refused.
func (s *Service) load(ctx context.Context, who auth.Principal, name string,
	find func(*pate.Version) (votes, error)) (*api.Ensemble, error) {
	release, err := s.gateway.Enter(ctx, who)
	if err != nil {
		return nil, err
	}
	defer release()
	version, err := s.draftEnsemble(ctx, name)
	if err != nil {
		return nil, err
	}
	found, err := find(version)
	if err != nil {
		return nil, err
	}
	if err := s.ledger.RecordImport(ctx, who.Subject, budget.Import{Dataset: version.Dataset, Ensemble: version.Name,
		Version: version.Number, Source: found.source}); err != nil {
		return nil, err
	}
	ballots, err := found.read()
	if err != nil {
		return nil, err
	}
	if _, err := s.ensembles.Load(ctx, name, ballots, who.Subject); err != nil {
		return nil, err
	}
	return s.Ensemble(ctx, who, name)
}

// Seal makes the votes of a version final; labels can be bought from then on. For stewards.
func (s *Service) Seal(ctx context.Context, who auth.Principal, name string) (*api.Ensemble, error) {
	if s.ensembles == nil {
		return nil, fault.PateUnknownEnsemble(name)
	}
	if _, err := s.ensembles.Seal(ctx, name, who.Subject); err != nil {
		return nil, err
	}
	return s.Ensemble(ctx, who, name)
}

// draftEnsemble is the version that takes votes.
func (s *Service) draftEnsemble(ctx context.Context, name string) (*pate.Version, error) {
	if s.ensembles == nil {
		return nil, fault.PateUnknownEnsemble(name)
	}
	version, err := s.ensembles.Latest(ctx, name)
	if err == nil && version.SealedAt != nil {
		return nil, fault.PateSealed(name)
	}
	return version, err
}

// sealedEnsemble is the version that labels come from.
func (s *Service) sealedEnsemble(ctx context.Context, name string) (*pate.Version, error) {
	if s.ensembles == nil {
		return nil, fault.PateUnknownEnsemble(name)
	}
	return s.ensembles.Sealed(ctx, name)
}

// CheckSold refuses what is asked of an ensemble that sells no labels: pate/unknown-ensemble, pate/not-sealed. It is free and does not wait
// for questions: a request is refused by it before its body is read.
func (s *Service) CheckSold(ctx context.Context, who auth.Principal, name string) error {
	release, err := s.gateway.EnterList(ctx, who)
	if err != nil {
		return err
	}
	defer release()
	_, err = s.sealedEnsemble(ctx, name)
	return err
}

// sellable refuses to read votes of a version that another one, which was sealed before, contradicts: they are that
// one's to sell. What was bought stays readable.
func sellable(v *pate.Version) error {
	if v.Contested {
		return fault.PateEnsemble("partition_sha256", "that of no version that was sealed before under another declaration: that one "+
			"sells these people's labels")
	}
	return nil
}

// ensembleAccounts is a caller's accounts and the ensemble's. An ensemble without an account has no budget.
func (s *Service) ensembleAccounts(ctx context.Context, who auth.Principal, version *pate.Version) (gateway.Accounts, error) {
	snapshot, err := s.gateway.Snapshot(version.Dataset)
	if err != nil {
		return gateway.Accounts{}, err
	}
	p, err := s.gateway.AccountsOf(ctx, who, snapshot)
	if err != nil {
		return gateway.Accounts{}, err
	}
	balance, err := s.ensembleBalance(ctx, version)
	if err != nil {
		return gateway.Accounts{}, err
	}
	return p.With(balance), nil // after the caller's own, in lock order
}

func (s *Service) ensembleBalance(ctx context.Context, version *pate.Version) (budget.Balance, error) {
	balances, err := s.ledger.Balances(ctx, []budget.AccountID{{Dataset: version.Dataset, Scope: budget.EnsembleScope, Name: version.Name}})
	if err != nil {
		return budget.Balance{}, err
	}
	if len(balances) == 0 {
		return budget.Balance{}, fault.BudgetNoAccount(version.Dataset)
	}
	return balances[0], nil
}

// Ensembles shows the ensembles that the caller may see, as [Service.Ensemble] does.
func (s *Service) Ensembles(ctx context.Context, who auth.Principal) (*api.EnsembleList, error) {
	list := &api.EnsembleList{Ensembles: []api.Ensemble{}}
	if s.ensembles == nil {
		return list, nil
	}
	names, err := s.ensembles.Names(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		shown, err := s.Ensemble(ctx, who, name)
		switch fault.CodeOf(err) {
		case "":
			list.Ensembles = append(list.Ensembles, *shown)
		case fault.CodeBudgetNoAccount, fault.CodeUnknownDataset, fault.CodePolicyStale: // as if it were not there
		default:
			return nil, err
		}
	}
	return list, nil
}

// Ensemble shows the newest version of an ensemble. What it says was declared or released; nothing depends on a vote. Stewards see what all
// bought and spent; others, who need the accounts that buying needs, what they bought themselves.
func (s *Service) Ensemble(ctx context.Context, who auth.Principal, name string) (*api.Ensemble, error) {
	if s.ensembles == nil {
		return nil, fault.PateUnknownEnsemble(name)
	}
	release, err := s.gateway.EnterList(ctx, who)
	if err != nil {
		return nil, err
	}
	defer release()
	v, err := s.ensembles.Latest(ctx, name)
	if err != nil {
		return nil, err
	}
	var buyer *pate.Buyer // nil: all of them
	if !who.Has(auth.Steward) {
		if _, err := s.ensembleAccounts(ctx, who, v); err != nil {
			return nil, err
		}
		buyer = new(pate.Buyer(who.Subject))
	}
	tally, err := s.ensembles.Tally(ctx, v, buyer)
	if err != nil {
		return nil, err
	}
	shown := &api.Ensemble{
		Ensemble: v.Name, Version: v.Number, State: stateOf(v), Dataset: v.Dataset, Teachers: v.Ensemble.Teachers(),
		Classes:              v.Ensemble.Classes(),
		MaxTeachersPerPerson: v.Ensemble.MaxTeachersPerPerson(), PartitionSHA256: hex.EncodeToString(v.Partition), Queries: v.Queries,
		Answered: tally[pate.Answered], Rejected: tally[pate.Rejected], Reinforced: tally[pate.Reinforced],
		DefinedAt: v.DefinedAt.UTC(), SealedAt: v.SealedAt,
	}
	if v.Sanitise != nil {
		if err := json.Unmarshal(v.Sanitise, &shown.Sanitise); err != nil {
			return nil, fault.Internal(err)
		}
	}
	if buyer != nil {
		return shown, nil
	}
	balance, err := s.ensembleBalance(ctx, v)
	if fault.CodeOf(err) == fault.CodeBudgetNoAccount {
		return shown, nil
	}
	if err != nil {
		return nil, err
	}
	limit := amounts.Limit(balance.Limit)
	usage := amounts.Usage(balance)
	shown.Limit, shown.Usage, shown.Spent, shown.Remaining = &limit, &usage, amounts.Sums(balance.Used()), amounts.Headroom(balance)
	return shown, nil
}

func stateOf(v *pate.Version) string {
	switch {
	case v.SealedAt != nil:
		return "sealed"
	case v.Queries > 0:
		return "loaded"
	default:
		return "defined"
	}
}
