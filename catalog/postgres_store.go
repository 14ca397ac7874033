package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"noisegate.example/internal/fault"
)

// Store keeps policies in the control database: every version that was ever in force. It is safe for concurrent use.
type Store struct {
	pool  *pgxpool.Pool
	chain Chain
}

// Chain writes versions of policies down, each together with an entry of the dataset's chain.
type Chain interface {
	// Record stores the next version and says when; taken is true when another one has its number.
	Record(context.Context, Addition) (at time.Time, taken bool, err error)
	// Enter writes entries of versions that are stored and older than such entries, unless that was done; taken is true
	// when these are not all.
	Enter(ctx context.Context, dataset string, stored []Addition) (taken bool, err error)
	// EverProtected are the tables that have, or had, a privacy unit by the entries: their names, with the OIDs that they had.
	EverProtected(ctx context.Context, dataset string) (map[string][]uint32, error)
	// TwoFor are the kinds of changes that take two stewards by the newest entry of a policy.
	TwoFor(ctx context.Context, dataset string) ([]string, error)
	// LedgerName is what signatures name of the dataset's ledger.
	LedgerName(ctx context.Context, dataset string) (string, error)
	// Stewards are those whose keys are known, each once.
	Stewards(dataset string) []string
	// Approve refuses an addition whose Approval does not hold (policy/signature).
	Approve(Addition) error
}

// Addition is a version of a policy for the chain.
type Addition struct {
	Dataset     string
	Version     int64
	Text        string   // of the file
	Facts       []byte   // JSON that it was checked against
	Digest      [32]byte // see [Snapshot.Digest]
	DataVersion string
	Protected   map[string]uint32 // the tables with a privacy unit, and their OIDs
	By          string
	TwoFor      []string // kinds of changes that take two stewards from here on
	Needed      []string // why it takes two itself
	Raises      bool     // it gives an account more than the version before, or opens one
	Approval    any      // a second steward's signature, as the chain knows it; nil: none
}

// NewStore makes a store on a pool of connections to the control database, as the gateway's role. Without a chain (nil)
// it only reads.
func NewStore(pool *pgxpool.Pool, chain Chain) *Store { return &Store{pool, chain} }

// Revision is one version of a dataset's policy, with all that it was checked against.
type Revision struct {
	Snapshot  *Snapshot
	Policy    *Policy
	Pinned    *Schema // what the policy relies on
	AppliedBy string
	AppliedAt time.Time
}

// Application asks for a policy to take force.
type Application struct {
	Policy *Policy
	Schema *Schema // the live schema, inspected for this policy
	By     string  // who applies it
	// Replaces is the version that the change is based on: 0 for none at all, [AnyVersion] when it does not matter.
	Replaces int64
	// Approval is a second steward's signature, as the [Chain] takes it; nil: none. It is checked, wanted or not.
	Approval any

	raises bool // it gives an account more than the version before, or opens one
}

// AnyVersion lets an [Application] replace whatever is there.
const AnyVersion = -1

// Apply checks a policy and stores it as the next version, or finds that it is in force already: changed is false then. Its
// errors are policy/invalid (joined, one for each thing that is wrong), policy/conflict, policy/signature, and data/unavailable.
func (s *Store) Apply(ctx context.Context, a Application) (revision *Revision, changed bool, err error) {
	snapshot, problems := Check(a.Policy, a.Schema)
	if len(problems) > 0 {
		return nil, false, errors.Join(problems...)
	}
	pinned := a.Schema.For(a.Policy)
	for {
		current, version, err := s.latest(ctx, a.Policy.Dataset)
		if err != nil {
			return nil, false, err
		}
		if a.Replaces != AnyVersion && a.Replaces != version {
			return nil, false, fault.PolicyConflict(a.Policy.Dataset, version)
		}
		if current != nil {
			same, err := current.approves(snapshot.Digest, pinned)
			if err != nil {
				return nil, false, err
			}
			if same {
				revision, err := current.revision()
				return revision, false, err
			}
		}
		if problems := strangers(a.Policy, current.policy()); len(problems) > 0 {
			return nil, false, errors.Join(problems...)
		}
		if err := s.Enter(ctx, a.Policy.Dataset); err != nil {
			return nil, false, err
		}
		wanted, err := s.wanted(ctx, current, a.Policy, a.Schema)
		if err != nil {
			return nil, false, err
		}
		a.raises = current != nil && current.policy().raisedBy(a.Policy)
		snapshot.Version, snapshot.EarlierReleases = version+1, current != nil && current.everEarlier
		snapshot.WideReleases = current != nil && current.everWide
		at, inserted, err := s.insert(ctx, snapshot, pinned, a, wanted)
		if err != nil {
			return nil, false, err
		}
		if inserted {
			return &Revision{Snapshot: snapshot, Policy: a.Policy, Pinned: pinned, AppliedBy: a.By, AppliedAt: at}, true, nil
		}
		// Somebody else took the number: look again.
	}
}

// wanted is why a policy takes two stewards as the next version, if they can be had.
func (s *Store) wanted(ctx context.Context, current *storedPolicy, p *Policy, live *Schema) ([]string, error) {
	if err := s.checkStewards(p); err != nil {
		return nil, err
	}
	kinds, err := s.chain.TwoFor(ctx, p.Dataset)
	if err != nil {
		return nil, err
	}
	shown, err := s.keepsProtection(ctx, Application{Policy: p, Schema: live}, current.public())
	if err != nil {
		return nil, err
	}
	if len(shown) > 0 && len(s.chain.Stewards(p.Dataset)) < 2 {
		return nil, errors.Join(inOrder(shown)...)
	}
	return s.wantsTwo(kinds, current, p, live.For(p), len(shown) > 0)
}

// insert stores the next version, with the signature that it takes.
func (s *Store) insert(ctx context.Context, n *Snapshot, pinned *Schema, a Application, wanted []string) (at time.Time, inserted bool,
	err error) {
	addition := Addition{Dataset: n.Dataset, Version: n.Version, Text: a.Policy.Document, Facts: pinned.encode(), Digest: n.Digest,
		DataVersion: n.DataVersion, Protected: n.protected(), By: a.By, TwoFor: a.Policy.twoFor(), Needed: wanted, Raises: a.raises,
		Approval: a.Approval}
	if a.Approval != nil {
		if err := s.chain.Approve(addition); err != nil {
			return at, false, err
		}
	} else if len(wanted) > 0 {
		return at, false, fault.PolicySecondSteward(wanted)
	}
	at, taken, err := s.chain.Record(ctx, addition)
	return at, !taken && err == nil, err
}

// protected are the tables with a privacy unit.
func (s *Snapshot) protected() map[string]uint32 {
	tables := map[string]uint32{}
	for _, t := range s.Tables {
		if !t.Public {
			tables[TableName{t.Schema, t.Name}.String()] = t.OID
		}
	}
	return tables
}

// keepsProtection lists the tables that a policy makes public although the chain says that their rows were protected. The holder of a
// steward's token could read them, and set it back. It takes two stewards. What the policy in force has as public (given by name) stays
// public.
func (s *Store) keepsProtection(ctx context.Context, a Application, public []TableName) (problems []error, err error) {
	ever, err := s.chain.EverProtected(ctx, a.Policy.Dataset)
	if err != nil {
		return nil, err
	}
	shown, was := a.Schema.showing(ever), byName(public)
	for _, t := range a.Policy.Tables {
		if _, ok := was[t.TableName]; ok || !t.Public {
			continue
		}
		was, protected := shown(t.TableName)
		if !protected {
			continue
		}
		what, hint := "table "+fault.Quote(t.String())+" was protected", ""
		if was != t.String() {
			what = "table " + fault.Quote(t.String()) + " shows rows of " + fault.Quote(was) + ", which was protected"
			hint = "; so is one that got the OID of the other when the database was restored, made anew"
		}
		problems = append(problems, fault.PolicyInvalid(t.pos, what+" by an earlier version of the policy, and one person alone does not "+
			"make it public", namesTwo(a.Policy.Dataset)+", and the second one signs it; or whoever owns the database makes a copy or a view of "+
			"what may be public, under another name"+hint))
	}
	return problems, nil
}

// showing finds the table that was once protected (its names and OIDs are given) whose rows a table of a live schema shows: it has its name
// or its OID (one that was renamed), is a part of it, or has it as a part, as partition or by inheritance. OIDs alone do not tell: a
// database that was restored has others.
func (s *Schema) showing(ever map[string][]uint32) func(TableName) (was string, protected bool) {
	tables := map[uint32]string{} // that were once protected
	for _, name := range slices.Sorted(maps.Keys(ever)) {
		for _, oid := range ever[name] {
			tables[oid] = name
		}
	}
	for _, t := range s.Tables { // a name that is there is better than an OID of that time
		if _, ok := ever[t.String()]; ok {
			tables[t.OID] = t.String()
		}
	}
	wholes := map[uint32]string{} // tables that show rows of those
	for _, oid := range slices.Sorted(maps.Keys(tables)) {
		for _, whole := range s.above(oid) {
			wholes[whole] = tables[oid]
		}
	}
	infos := byName(s.Tables)
	return func(name TableName) (string, bool) {
		if _, ok := ever[name.String()]; ok {
			return name.String(), true
		}
		t, ok := infos[name]
		if !ok {
			return "", false // Check says so
		}
		for _, oid := range append([]uint32{t.OID}, s.above(t.OID)...) {
			if was, ok := tables[oid]; ok {
				return was, true
			}
		}
		was, ok := wholes[t.OID]
		return was, ok
	}
}

// above are the relations that one is a part of, directly or not.
func (s *Schema) above(oid uint32) (all []uint32) {
	for next := []uint32{oid}; len(next) > 0; next = next[1:] {
		for _, whole := range s.parents[next[0]] {
			if !slices.Contains(all, whole) {
				all, next = append(all, whole), append(next, whole)
			}
		}
	}
	return all
}

// Enter writes entries of the chain for versions of a dataset's policy that are older than such entries. Once there are
// entries of policies it does nothing.
func (s *Store) Enter(ctx context.Context, dataset string) error {
	for {
		stored, err := s.stored(ctx, dataset)
		if err != nil || len(stored) == 0 {
			return err
		}
		if taken, err := s.chain.Enter(ctx, dataset, stored); err != nil || !taken {
			return err
		}
	}
}

// stored reads all versions, oldest first.
func (s *Store) stored(ctx context.Context, dataset string) ([]Addition, error) {
	rows, err := s.pool.Query(ctx, `SELECT version, document, digest, metadata, applied_by FROM noisegate.policy
		WHERE dataset = $1 ORDER BY version`, dataset)
	if err != nil {
		return nil, unavailable("cannot list policies", err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (a Addition, err error) {
		r := storedPolicy{dataset: dataset}
		if err := row.Scan(&r.version, &r.document, &r.digest, &r.metadata, &r.appliedBy); err != nil {
			return a, err
		}
		a = Addition{Dataset: dataset, Version: r.version, Text: r.document, Facts: r.metadata, By: r.appliedBy}
		copy(a.Digest[:], r.digest)
		a.DataVersion, a.Protected, err = r.says()
		return a, err
	})
	if err != nil {
		return nil, unavailable("cannot list policies", err)
	}
	return all, nil
}

// says is the name of the data's state and the tables with a privacy unit. Where this noisegate does not understand the
// version, every table that it was checked against counts as one, except those whose values or counts were read: they were public.
func (r *storedPolicy) says() (dataVersion string, protected map[string]uint32, err error) {
	pinned, err := decodeSchema(r.metadata)
	if err != nil {
		return "", nil, err
	}
	protected = map[string]uint32{}
	for _, t := range pinned.Tables {
		protected[t.String()] = t.OID
	}
	p, problems := Parse(r.document)
	if len(problems) > 0 {
		for _, name := range pinned.read() {
			delete(protected, name.String())
		}
		return "", protected, nil
	}
	for _, t := range p.Tables {
		if t.Public {
			delete(protected, t.String())
		}
	}
	return p.DataVersion, protected, nil
}

// Load gives the version in force; policy/unknown-dataset when there is none.
func (s *Store) Load(ctx context.Context, dataset string) (*Revision, error) {
	row, _, err := s.latest(ctx, dataset)
	if err != nil {
		return nil, err
	}
	if row == nil {
		return nil, fault.UnknownDataset(dataset)
	}
	return row.revision()
}

// Versions are those of the policies in force, by dataset, with their digests.
func (s *Store) Versions(ctx context.Context) (map[string]Applied, error) {
	rows, err := s.pool.Query(ctx, `SELECT DISTINCT ON (dataset) dataset, version, digest FROM noisegate.policy ORDER BY dataset, version DESC`)
	if err != nil {
		return nil, unavailable("cannot read the versions of policies", err)
	}
	versions := map[string]Applied{}
	var dataset string
	var version int64
	var digest []byte
	if _, err := pgx.ForEachRow(rows, []any{&dataset, &version, &digest}, func() error {
		v := Applied{Version: version}
		copy(v.Digest[:], digest)
		versions[dataset] = v
		return nil
	}); err != nil {
		return nil, unavailable("cannot read the versions of policies", err)
	}
	return versions, nil
}

// Applied is a line of a dataset's history.
type Applied struct {
	Version int64
	Digest  [32]byte
	By      string
	At      time.Time
}

// storedPolicy is a row of noisegate.policy.
type storedPolicy struct {
	version            int64
	document           string
	digest, metadata   []byte
	appliedBy, dataset string
	appliedAt          time.Time
	earlier            bool // questions under it may have names of versions of noisegate before migration 026
	everEarlier        bool // those under it, or under a version before it
	wide, everWide     bool // the same of versions of noisegate before migration 027
	strange            bool // the chain has versions of the dataset's policy, and not this one
}

// latest reads the version in force; nil and 0 when there is none.
func (s *Store) latest(ctx context.Context, dataset string) (*storedPolicy, int64, error) {
	r := storedPolicy{dataset: dataset}
	err := s.pool.QueryRow(ctx, `SELECT p.version, p.document, p.digest, p.metadata, p.applied_by, p.applied_at,
			EXISTS (SELECT FROM noisegate.renamed r WHERE r.dataset = p.dataset AND r.version >= p.version),
			EXISTS (SELECT FROM noisegate.renamed r WHERE r.dataset = p.dataset),
			EXISTS (SELECT FROM noisegate.narrowed n WHERE n.dataset = p.dataset AND n.version >= p.version),
			EXISTS (SELECT FROM noisegate.narrowed n WHERE n.dataset = p.dataset),
			EXISTS (SELECT FROM noisegate.entry e WHERE e.dataset = p.dataset AND e.kind = 'policy')
			AND NOT EXISTS (SELECT FROM noisegate.entry e WHERE e.dataset = p.dataset AND e.kind = 'policy'
				AND e.account->>'applies_policy_version' = p.version::text
				AND e.account->>'document_sha256' = encode(sha256(convert_to(p.document, 'UTF8')), 'hex'))
		FROM noisegate.policy p WHERE p.dataset = $1 ORDER BY p.version DESC LIMIT 1`, dataset).
		Scan(&r.version, &r.document, &r.digest, &r.metadata, &r.appliedBy, &r.appliedAt, &r.earlier, &r.everEarlier,
			&r.wide, &r.everWide, &r.strange)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, 0, nil
	case err != nil:
		return nil, 0, unavailable("cannot read a policy", err)
	}
	return &r, r.version, nil
}

// policy is the policy as its file has it; nil where there is none, or an older noisegate took it.
func (r *storedPolicy) policy() *Policy {
	if r == nil {
		return nil
	}
	p, problems := Parse(r.document)
	if len(problems) > 0 {
		return nil
	}
	return p
}

// public are the tables that everybody may read: by the file, or, where this noisegate does not understand it, by what was read of them. No
// entry of the chain, no public table.
func (r *storedPolicy) public() (names []TableName) {
	if r == nil || r.strange {
		return nil
	}
	if p := r.policy(); p != nil {
		for _, t := range p.Tables {
			if t.Public {
				names = append(names, t.TableName)
			}
		}
		return names
	}
	pinned, err := decodeSchema(r.metadata)
	if err != nil {
		return nil
	}
	return pinned.read()
}

// read are the tables whose values or counts a check of a policy read: those that it had as public.
func (s *Schema) read() (names []TableName) {
	valued := map[TableName]bool{}
	for _, d := range s.Domains {
		valued[d.From.Table] = true
	}
	for _, t := range s.Tables {
		if t.MostRows > 0 || valued[t.TableName] {
			names = append(names, t.TableName)
		}
	}
	return names
}

// approves reports whether it holds the same policy, checked against the same schema, and tables that have not outgrown it.
func (r *storedPolicy) approves(digest [32]byte, pinned *Schema) (bool, error) {
	stored, err := decodeSchema(r.metadata)
	if err != nil {
		return false, err
	}
	return [32]byte(r.digest) == digest && !pinned.outgrows(stored), nil
}

// revision builds the snapshot again from what was stored. A digest that does not come out the same means that the row was
// edited, or that this noisegate understands the file in another way: it does not take force.
func (r *storedPolicy) revision() (*Revision, error) {
	if r.strange {
		return nil, fault.PolicyStale().WithCause(fmt.Errorf("catalog: version %d of the policy of %s was not applied: no entry of the "+
			"dataset's chain says so", r.version, r.dataset))
	}
	p, problems := Parse(r.document)
	if len(problems) > 0 {
		return nil, fault.Internal(fmt.Errorf("catalog: the stored policy of %s does not parse: %w", r.dataset, errors.Join(problems...)))
	}
	pinned, err := decodeSchema(r.metadata)
	if err != nil {
		return nil, err
	}
	snapshot, problems := Check(p, pinned)
	if len(problems) > 0 {
		// It was applied by an earlier noisegate, which took more than this one does.
		return nil, fault.PolicyStale().WithCause(fmt.Errorf("catalog: version %d of the policy of %s is refused: %w", r.version, r.dataset,
			errors.Join(problems...)))
	}
	if snapshot.Digest != [32]byte(r.digest) || snapshot.Dataset != r.dataset {
		return nil, fault.PolicyStale().WithCause(fmt.Errorf("catalog: version %d of the policy of %s has another digest than when it was "+
			"applied", r.version, r.dataset))
	}
	snapshot.Version = r.version
	snapshot.EarlierReleases, snapshot.EarlierQuestions = r.everEarlier, r.earlier
	snapshot.WideReleases, snapshot.WideQuestions = r.everWide, r.wide
	return &Revision{Snapshot: snapshot, Policy: p, Pinned: pinned, AppliedBy: r.appliedBy, AppliedAt: r.appliedAt}, nil
}

func unavailable(what string, err error) error {
	return fault.DataUnavailable(fmt.Errorf("catalog: %s: %w", what, err))
}
