package catalog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"noisegate.example/internal/fault"
)

// Store keeps policies in the control database: every version that was ever in force. It is safe for concurrent use.
type Store struct {
	pool *pgxpool.Pool
}

// NewStore makes a store on a pool of connections to the control database, as the gateway's role.
func NewStore(pool *pgxpool.Pool) *Store { return &Store{pool: pool} }

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
}

// AnyVersion lets an [Application] replace whatever is there.
const AnyVersion = -1

// Apply checks a policy and stores it as the next version, or finds that it is in force already: changed is false then. Its
// errors are policy/invalid (joined, one for each thing that is wrong), policy/conflict, and data/unavailable.
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
		snapshot.Version = version + 1
		at, inserted, err := s.insert(ctx, snapshot, pinned, a)
		if err != nil {
			return nil, false, err
		}
		if inserted {
			return &Revision{Snapshot: snapshot, Policy: a.Policy, Pinned: pinned, AppliedBy: a.By, AppliedAt: at}, true, nil
		}
		// Somebody else took the number: look again.
	}
}

func (s *Store) insert(ctx context.Context, n *Snapshot, pinned *Schema, a Application) (at time.Time, inserted bool, err error) {
	err = s.pool.QueryRow(ctx, `INSERT INTO noisegate.policy (dataset, version, document, digest, metadata, applied_by)
		VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING RETURNING applied_at`,
		n.Dataset, n.Version, a.Policy.Document, n.Digest[:], pinned.encode(), a.By).Scan(&at)
	if errors.Is(err, pgx.ErrNoRows) {
		return at, false, nil
	}
	if err != nil {
		return at, false, unavailable("cannot store a policy", err)
	}
	return at, true, nil
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

// Versions are those of the policies in force, by dataset.
func (s *Store) Versions(ctx context.Context) (map[string]int64, error) {
	rows, err := s.pool.Query(ctx, `SELECT dataset, max(version) FROM noisegate.policy GROUP BY dataset`)
	if err != nil {
		return nil, unavailable("cannot read the versions of policies", err)
	}
	versions := map[string]int64{}
	var dataset string
	var version int64
	if _, err := pgx.ForEachRow(rows, []any{&dataset, &version}, func() error { versions[dataset] = version; return nil }); err != nil {
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

// History lists all versions of a dataset's policy, newest first.
func (s *Store) History(ctx context.Context, dataset string) ([]Applied, error) {
	rows, err := s.pool.Query(ctx, `SELECT version, digest, applied_by, applied_at FROM noisegate.policy
		WHERE dataset = $1 ORDER BY version DESC`, dataset)
	if err != nil {
		return nil, unavailable("cannot list policies", err)
	}
	history, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (a Applied, err error) {
		var sum []byte
		err = row.Scan(&a.Version, &sum, &a.By, &a.At)
		copy(a.Digest[:], sum)
		return a, err
	})
	if err != nil {
		return nil, unavailable("cannot list policies", err)
	}
	return history, nil
}

// storedPolicy is a row of noisegate.policy.
type storedPolicy struct {
	version            int64
	document           string
	digest, metadata   []byte
	appliedBy, dataset string
	appliedAt          time.Time
}

// latest reads the version in force; nil and 0 when there is none.
func (s *Store) latest(ctx context.Context, dataset string) (*storedPolicy, int64, error) {
	r := storedPolicy{dataset: dataset}
	err := s.pool.QueryRow(ctx, `SELECT version, document, digest, metadata, applied_by, applied_at FROM noisegate.policy
		WHERE dataset = $1 ORDER BY version DESC LIMIT 1`, dataset).
		Scan(&r.version, &r.document, &r.digest, &r.metadata, &r.appliedBy, &r.appliedAt)
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
	return &Revision{Snapshot: snapshot, Policy: p, Pinned: pinned, AppliedBy: r.appliedBy, AppliedAt: r.appliedAt}, nil
}

func unavailable(what string, err error) error {
	return fault.DataUnavailable(fmt.Errorf("catalog: %s: %w", what, err))
}
