package budget

import (
	"context"
	"errors"
	"time"

	"noisegate.example/internal/fault"
)

// PolicyRow is a version of a dataset's policy as the control database keeps it. What it says is not the ledger's
// business: it has digests of it.
type PolicyRow struct {
	Version   int64
	Document  [32]byte // SHA-256 of the text
	Facts     [32]byte // SHA-256 of what the text was checked against, as PostgreSQL writes jsonb
	Digest    [32]byte // what the policy is known by
	AppliedBy string
	AppliedAt time.Time
	Entry     int64 // with which it was written; 0: it is older than such entries
	// RaisedBy is who raised caps last, alone, of the versions until this one; "": nobody did, or another one signed a version since.
	RaisedBy string
}

// PolicyVersion is a version of a dataset's policy for the chain.
type PolicyVersion struct {
	PolicyRow
	Dataset     string
	DataVersion string
	// Protected are the tables with a privacy unit, by OID. A table that was ever among them is one whatever comes later.
	Protected map[string]uint32
	// TwoFor are the kinds of changes that take two stewards while this version is in force, sorted.
	TwoFor []string
	// Raises says that it gives an account more, or opens one, compared with the version before. The first version raises nothing.
	Raises bool
	// Needed are those kinds of changes, among others by which this version differs from the one before, for which two were needed.
	Needed   []string
	Approval *Approval // the second steward's; nil: nobody signed
}

// NewPolicy is a version that is to be stored.
type NewPolicy struct {
	PolicyVersion        // but for its digests of text and facts, its time and its entry
	Text          string // of the policy's file
	Checked       []byte // JSON that the text was checked against
}

// Check refuses a version that nobody could have applied.
func (p PolicyVersion) Check() error {
	if p.Dataset == "" || p.Version < 1 || p.AppliedBy == "" {
		return fault.Internal(errors.New("budget: a version of a policy names a dataset, a number from 1 on and who applied it"))
	}
	return nil
}

// ErrPolicyTaken says that the version is not the next one.
var ErrPolicyTaken = errors.New("budget: this version of the policy is not the next one")

// FreeReads says that an analyst may read public tables so many times more on a day, under one version of the policy. It
// is written before the first of them: of one day and version the sum is never less than what was read, and less than
// twice as much for each start of a gateway.
type FreeReads struct {
	Dataset, Analyst string
	Day              string // as [time.DateOnly], UTC
	Version          int64  // of the policy
	Reads            int64
}

// Check refuses what says nothing.
func (r FreeReads) Check() error {
	if _, err := time.Parse(time.DateOnly, r.Day); err != nil || r.Dataset == "" || r.Analyst == "" || r.Version < 1 || r.Reads < 1 {
		return fault.Internal(errors.New("budget: free reads name a dataset, an analyst, a day, a policy and a number"))
	}
	return nil
}

// SigningKeys are the public keys that count for a dataset, by what they are known by (journal.KeyID).
type SigningKeys struct {
	Dataset  string
	Stewards []string // sorted; those of named stewards as "name=key"
	Receipts string   // of the gateway; "" for none
}

// InForce is the part of a ledger that says what is in force: policies, and whose signatures count.
type InForce interface {
	// RecordPolicy stores a version of a policy together with its entry, or neither. It gives when it was applied;
	// [ErrPolicyTaken] when it is not the next version, policy/signature when it takes a second steward's signature and has none of now.
	// That the signature holds is for the caller to check, with journal.StewardKeys.
	RecordPolicy(context.Context, NewPolicy) (time.Time, error)
	// EnterPolicies writes entries for versions that are stored and older than such entries. Once a dataset has one of
	// these it changes nothing: a version that came in another way is not made good.
	EnterPolicies(ctx context.Context, dataset string, versions []PolicyVersion) error
	// EverProtected are the tables that entries of a dataset's policies say have, or had, a privacy unit: their names, with the
	// OIDs that they had.
	EverProtected(ctx context.Context, dataset string) (map[string][]uint32, error)
	// TwoFor are the kinds of changes that take two stewards by the newest entry of a dataset's policy.
	TwoFor(ctx context.Context, dataset string) ([]string, error)
	// LedgerName is what signatures of stewards name of a dataset's ledger: see [LedgerName], and [NoLedger].
	LedgerName(ctx context.Context, dataset string) (string, error)
	// PolicyRows are all versions of a dataset's policy as they are stored now, oldest first.
	PolicyRows(ctx context.Context, dataset string) ([]PolicyRow, error)
	// RecordFreeReads writes an entry.
	RecordFreeReads(context.Context, FreeReads) error
	// RecordKeys writes an entry, unless the newest of its kind says the same.
	RecordKeys(context.Context, SigningKeys) error
}

// ByGateway is who did what nobody asked for.
const ByGateway = "gateway"
