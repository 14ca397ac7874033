package gateway

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"noisegate.example/budget"
	"noisegate.example/budget/journal"
	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite"
)

// Schemas reads the schema of one protected database.
type Schemas interface {
	// Inspect gives the live schema, with the values of the public tables that are domains of the policy.
	Inspect(context.Context, *catalog.Policy) (*catalog.Schema, error)
	// Recheck is policy/stale when the live schema is no longer what the revision was checked against.
	Recheck(context.Context, *catalog.Revision) error
	// Counted is the revision with its public tables counted, if it was applied before that was done.
	Counted(context.Context, *catalog.Revision) (*catalog.Revision, error)
}

// PolicyStore keeps every version of every policy; [catalog.Store] is one.
type PolicyStore interface {
	Apply(context.Context, catalog.Application) (revision *catalog.Revision, changed bool, err error)
	Load(ctx context.Context, dataset string) (*catalog.Revision, error)
	// Versions are those in force, by dataset, with their digests.
	Versions(context.Context) (map[string]catalog.Applied, error)
	Review(context.Context, *catalog.Policy, *catalog.Schema) (*catalog.Review, error)
	// Enter writes entries of the chain for versions that are older than such entries.
	Enter(ctx context.Context, dataset string) error
}

// PolicyChain is the chain of a ledger, as [catalog.NewStore] takes it; stewards are the keys of a dataset's.
func PolicyChain(ledger budget.InForce, stewards func(dataset string) journal.StewardKeys) catalog.Chain {
	return policyChain{ledger, stewards}
}

type policyChain struct {
	ledger   budget.InForce
	stewards func(dataset string) journal.StewardKeys
}

func (c policyChain) Record(ctx context.Context, a catalog.Addition) (at time.Time, taken bool, err error) {
	at, err = c.ledger.RecordPolicy(ctx, budget.NewPolicy{PolicyVersion: inChain(a), Text: a.Text, Checked: a.Facts})
	if errors.Is(err, budget.ErrPolicyTaken) {
		return at, true, nil
	}
	return at, false, err
}

func (c policyChain) Enter(ctx context.Context, dataset string, stored []catalog.Addition) (taken bool, err error) {
	versions := make([]budget.PolicyVersion, len(stored))
	for i, a := range stored {
		versions[i] = inChain(a)
	}
	err = c.ledger.EnterPolicies(ctx, dataset, versions)
	if errors.Is(err, budget.ErrPolicyTaken) {
		return true, nil
	}
	return false, err
}

func (c policyChain) EverProtected(ctx context.Context, dataset string) (map[string][]uint32, error) {
	return c.ledger.EverProtected(ctx, dataset)
}

func (c policyChain) TwoFor(ctx context.Context, dataset string) ([]string, error) {
	return c.ledger.TwoFor(ctx, dataset)
}

func (c policyChain) LedgerName(ctx context.Context, dataset string) (string, error) {
	return c.ledger.LedgerName(ctx, dataset)
}

func (c policyChain) Stewards(dataset string) []string { return c.stewards(dataset).Stewards() }

func (c policyChain) Approve(a catalog.Addition) error {
	approval := approvalOf(a)
	if approval == nil {
		return fault.PolicySignature("nobody signed it")
	}
	return c.stewards(a.Dataset).CheckPolicy(budget.PolicyChange{Dataset: a.Dataset, Replaces: a.Version - 1,
		Document: sha256.Sum256([]byte(a.Text)), Approval: approval}, a.By)
}

// approvalOf is the signature of an addition; nil for none.
func approvalOf(a catalog.Addition) *budget.Approval {
	approval, _ := a.Approval.(*budget.Approval)
	return approval
}

func inChain(a catalog.Addition) budget.PolicyVersion {
	return budget.PolicyVersion{Dataset: a.Dataset, DataVersion: a.DataVersion, Protected: a.Protected, TwoFor: a.TwoFor, Needed: a.Needed,
		Raises:    a.Raises,
		Approval:  approvalOf(a),
		PolicyRow: budget.PolicyRow{Version: a.Version, Digest: a.Digest, AppliedBy: a.By}}
}

// LivePolicies are [Policies] that are stored in the control database, held in memory, and compared with the live schemas.
// It is safe for concurrent use.
type LivePolicies struct {
	store   PolicyStore
	schemas map[string]Schemas
	log     *slog.Logger
	cache   catalog.Cache

	refreshes atomic.Int64
	checking  chan struct{} // holds the check that is running
}

// NewLivePolicies holds nothing until [LivePolicies.Refresh].
func NewLivePolicies(store PolicyStore, schemas map[string]Schemas, log *slog.Logger) *LivePolicies {
	return &LivePolicies{store: store, schemas: schemas, log: log, checking: make(chan struct{}, 1)}
}

// Current implements [Policies].
func (l *LivePolicies) Current(dataset string) (*catalog.Snapshot, error) {
	return l.cache.Snapshot(dataset)
}

// Revision is the revision in force of a dataset, with what it was checked against. Its errors are those of [LivePolicies.Current].
func (l *LivePolicies) Revision(dataset string) (*catalog.Revision, error) {
	return l.cache.Revision(dataset)
}

// Document implements [Policies]. Stewards may read a policy that is stale.
func (l *LivePolicies) Document(ctx context.Context, dataset string) (PolicyDocument, error) {
	revision, err := l.store.Load(ctx, dataset)
	if err != nil {
		return PolicyDocument{}, err
	}
	return PolicyDocument{Text: []byte(revision.Policy.Document), Version: revision.Snapshot.Version}, nil
}

// Review implements [Policies]. Checks run one after another: each reads a whole schema.
func (l *LivePolicies) Review(ctx context.Context, dataset string, text []byte) (*catalog.Review, error) {
	select {
	case l.checking <- struct{}{}:
		defer func() { <-l.checking }()
	case <-ctx.Done():
		return nil, fault.RequestGone(ctx.Err())
	}
	policy, schema, err := l.read(ctx, dataset, text)
	if err != nil {
		return nil, err
	}
	return l.store.Review(ctx, policy, schema)
}

// Schema implements [Policies].
func (l *LivePolicies) Schema(ctx context.Context, dataset string) (*catalog.Schema, error) {
	schemas, ok := l.schemas[dataset]
	if !ok {
		return nil, fault.UnknownDataset(dataset)
	}
	return schemas.Inspect(ctx, nil)
}

// read parses a policy file for a dataset and inspects the live schema for it.
func (l *LivePolicies) read(ctx context.Context, dataset string, text []byte) (*catalog.Policy, *catalog.Schema, error) {
	policy, problems := catalog.Parse(string(text))
	if len(problems) > 0 {
		return nil, nil, errors.Join(problems...)
	}
	if policy.Dataset != dataset {
		return nil, nil, fault.PolicyInvalid(fault.Position{}, fmt.Sprintf("the file is for the dataset %s, not for %s",
			fault.Quote(policy.Dataset), fault.Quote(dataset)), "")
	}
	schemas, ok := l.schemas[dataset]
	if !ok {
		return nil, nil, fault.UnknownDataset(dataset)
	}
	schema, err := schemas.Inspect(ctx, policy)
	if err == nil {
		err = ProveViews(ctx, policy, schema)
	}
	return policy, schema, err
}

// ProveViews tries the query of each public view of a policy that fits its schema: policy/invalid, joined, where it is none that can be
// asked, or reads more than public tables.
func ProveViews(ctx context.Context, policy *catalog.Policy, schema *catalog.Schema) error {
	snapshot, problems := catalog.Check(policy, schema)
	if len(problems) > 0 || len(snapshot.Views) == 0 {
		return nil // applying the policy says what is wrong
	}
	for _, v := range snapshot.Views {
		name := strings.NewReplacer(`"`, `""`, "\x00", `"."`).Replace(v.Schema + "\x00" + v.Name)
		public, err := sqlrewrite.Open(ctx, `SELECT * FROM "`+name+`"`, snapshot, sqlrewrite.Options{Now: time.Unix(0, 0)})
		if err == nil && public == nil {
			err = fault.Unsupported(fault.Position{}, "a view of what is not public", "")
		}
		var f *fault.Error
		if errors.As(err, &f) && f.Code != fault.CodeInternal {
			problems = append(problems, fault.PolicyInvalid(v.Pos, "view "+fault.Quote(v.Name)+" cannot be asked: "+f.Msg,
				f.Hint))
		} else if err != nil {
			return err
		}
	}
	return errors.Join(problems...)
}

// Enter makes sure that the chain of each dataset has the versions of its policy that are older than entries of policies.
func (l *LivePolicies) Enter(ctx context.Context) (failed error) {
	for dataset := range l.schemas {
		if err := l.store.Enter(ctx, dataset); err != nil {
			l.log.ErrorContext(ctx, "the policies of a dataset cannot be entered in its chain", "dataset", dataset,
				"code", string(fault.CodeOf(err)))
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// Apply implements [Policies].
func (l *LivePolicies) Apply(ctx context.Context, change PolicyChange) (*catalog.Snapshot, error) {
	policy, schema, err := l.read(ctx, change.Dataset, change.Text)
	if err != nil {
		return nil, err
	}
	application := catalog.Application{Policy: policy, Schema: schema, By: change.By, Replaces: change.Replaces}
	if change.Approval != nil {
		if application.Approval, err = ApprovalOf(*change.Approval); err != nil {
			return nil, err
		}
	}
	held, _ := l.cache.Revision(change.Dataset)
	revision, _, err := l.store.Apply(ctx, application)
	if err != nil {
		return nil, err
	}
	if revision, err = l.schemas[change.Dataset].Counted(ctx, revision); err != nil {
		return nil, err
	}
	l.cache.Replace(change.Dataset, held, revision) // also a later one, which a failover lost
	l.cache.Put(revision)
	return revision.Snapshot, nil
}

// loadsAll is how many refreshes there are to one that also loads policies whose versions are held: a stored policy that
// was edited since then is said to be broken.
const loadsAll = 20

// Refresh takes over what is stored, and compares it with the live schemas. Stored is what other gateways applied, or an earlier version,
// where a failover lost the one that is held. A dataset whose schema cannot be read keeps its policy: each query checks the pins of the
// tables it reads again. So does one whose later policy cannot be had just now. Where the policy that is stored is not understood, or the
// one that is held is lost, there is none. What fails is logged, and the error names its dataset and code; a schema that changed is no
// failure.
func (l *LivePolicies) Refresh(ctx context.Context) (failed error) {
	before := map[string]*catalog.Revision{} // also what is marked stale; read first, since what is applied meanwhile is not in versions
	for dataset := range l.schemas {
		before[dataset], _ = l.cache.Revision(dataset)
	}
	versions, err := l.store.Versions(ctx)
	if err != nil {
		code := string(fault.CodeOf(err))
		l.log.ErrorContext(ctx, "refreshing policies failed", "code", code)
		return errors.New("the versions of policies: " + code)
	}
	loadAll := l.refreshes.Add(1)%loadsAll == 0
	for dataset, schemas := range l.schemas {
		held := before[dataset]
		stored, applied := versions[dataset]
		if !applied {
			l.cache.Replace(dataset, held, nil)
			continue
		}
		revision, err := held, error(nil)
		if held == nil || !is(held, stored) || loadAll {
			revision, err = l.load(ctx, dataset, held, schemas)
			if err != nil && held != nil && !is(held, stored) &&
				(stored.Version <= held.Snapshot.Version || fault.CodeOf(err) != fault.CodeDataUnavailable) {
				l.cache.Mark(held, err) // what is stored cannot be had, and this one is not in force any more
			}
		}
		if err == nil {
			err = schemas.Recheck(ctx, revision)
		}
		switch code := fault.CodeOf(err); code {
		case "":
			l.cache.Mark(revision, nil)
		case fault.CodePolicyStale:
			l.log.WarnContext(ctx, "the tables of a dataset changed since its policy was applied", "dataset", dataset)
			if revision != nil {
				l.cache.Mark(revision, err)
			}
		default:
			l.log.ErrorContext(ctx, "refreshing a policy failed", "dataset", dataset, "code", string(code))
			failed = errors.Join(failed, fmt.Errorf("the policy of %s: %s", dataset, code))
		}
	}
	return failed
}

// is reports whether a revision is a version that is stored.
func is(r *catalog.Revision, stored catalog.Applied) bool {
	return r.Snapshot.Version == stored.Version && r.Snapshot.Digest == stored.Digest
}

// load reads the stored policy of a dataset, and holds it in place of the one that was held before (nil: none), if it is another
// one. It gives the one that is stored.
func (l *LivePolicies) load(ctx context.Context, dataset string, held *catalog.Revision, schemas Schemas) (*catalog.Revision, error) {
	stored, err := l.store.Load(ctx, dataset)
	if err != nil {
		return nil, err
	}
	if held != nil && is(held, catalog.Applied{Version: stored.Snapshot.Version, Digest: stored.Snapshot.Digest}) {
		return held, nil
	}
	if stored, err = schemas.Counted(ctx, stored); err != nil {
		return nil, err
	}
	if held != nil && stored.Snapshot.Version <= held.Snapshot.Version {
		l.log.WarnContext(ctx, "the policy in force is not in the control database any more, and the one that is there takes its place",
			"dataset", dataset, "was", held.Snapshot.Version, "is", stored.Snapshot.Version)
	}
	l.cache.Replace(dataset, held, stored)
	return stored, nil
}
