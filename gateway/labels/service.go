// Package labels sells private labels: it takes a request for labels of a sealed ensemble from a principal to labels
// that are paid for, and prepares ensembles for it.
//
// It knows ensembles, votes and the prices of labels. It does not know HTTP, SQL, or how a charge is paid: the one road
// to votes that answer somebody is [gateway.Sell]. Stewards, who may see votes, analyse them without a charge.
package labels

import (
	"context"
	"errors"
	"iter"

	"noisegate.example/budget"
	"noisegate.example/gateway"
	"noisegate.example/pate"
)

// Ledger has the operations on a ledger besides charges, which only [gateway.Sell] makes.
type Ledger interface {
	Balances(context.Context, []budget.AccountID) ([]budget.Balance, error)
	RecordImport(ctx context.Context, by string, what budget.Import) error
}

// VoteTables reads votes that lie in a protected database. Its errors are pate/unknown-table and data/unavailable.
type VoteTables interface {
	Votes(context.Context, pate.VoteTable) iter.Seq2[pate.Vote, error]
}

// Config has the parts of a service.
type Config struct {
	Gateway   *gateway.Service
	Ledger    Ledger                // the gateway's
	Ensembles *pate.Store           // nil: there are none
	Votes     map[string]VoteTables // by dataset; nil: no votes are read from its tables
}

// Service sells labels. It is safe for concurrent use.
type Service struct {
	gateway   *gateway.Service
	ledger    Ledger
	ensembles *pate.Store
	votes     map[string]VoteTables
}

// New checks that nothing is missing.
func New(c Config) (*Service, error) {
	if c.Gateway == nil || c.Ledger == nil {
		return nil, errors.New("labels: a part of the service is missing")
	}
	return &Service{c.Gateway, c.Ledger, c.Ensembles, c.Votes}, nil
}
