package gateway

import (
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/budget/journal"
	"noisegate.example/internal/fault"
)

// Stewards are the keys of a dataset's stewards, which may be replaced while questions are answered. Nil, and the zero value, are no keys.
type Stewards struct {
	keys atomic.Pointer[journal.StewardKeys]
}

// Keys are those that count now; nil for none.
func (s *Stewards) Keys() journal.StewardKeys {
	if s == nil {
		return nil
	}
	if keys := s.keys.Load(); keys != nil {
		return *keys
	}
	return nil
}

// Set replaces them.
func (s *Stewards) Set(keys journal.StewardKeys) { s.keys.Store(&keys) }

// Stewards are the keys of the stewards of a dataset.
func (s *Service) Stewards(dataset string) journal.StewardKeys {
	return s.datasets[dataset].Stewards.Keys()
}

// TakesTwo reports whether a kind of changes takes two stewards by the newest entry of a dataset's policy.
func (s *Service) TakesTwo(ctx context.Context, dataset, kind string) (bool, error) {
	kinds, err := s.chain.TwoFor(ctx, dataset)
	return slices.Contains(kinds, kind), err
}

// ApprovalOf reads a second steward's signature as it goes over the wire.
func ApprovalOf(a api.Approval) (*budget.Approval, error) {
	read := &budget.Approval{Pair: budget.Pair{Proposer: a.Proposer, Approver: a.Approver}, At: a.SignedAt.UTC().Truncate(time.Second),
		Key: a.Key, ProposerKey: a.ProposerKey, Ledger: a.Ledger}
	var err1, err2 error
	read.Signature, err1 = base64.StdEncoding.DecodeString(a.Signature)
	read.ProposerSignature, err2 = base64.StdEncoding.DecodeString(a.ProposerSignature)
	if errors.Join(err1, err2) != nil {
		return nil, fault.PolicySignature("the signature cannot be read")
	}
	return read, nil
}
