package server

import (
	"context"
	"maps"
	"slices"

	"noisegate.example/budget"
	"noisegate.example/budget/journal"
	"noisegate.example/internal/fault"
)

// enterInForce makes sure that the chain of each dataset says what is in force now: versions of its policy that are
// older than entries of policies, and whose signatures count. What cannot be entered is logged; a ledger that takes no
// entry takes no charge.
func (g *Server) enterInForce(ctx context.Context) {
	_ = g.policies.Enter(ctx) // the log says so
	for _, dataset := range slices.Sorted(maps.Keys(g.config.Datasets)) {
		keys, err := g.signingKeys(dataset)
		if err == nil {
			err = g.ledger.RecordKeys(ctx, keys)
		}
		if err != nil {
			g.log.ErrorContext(ctx, "the keys that count for a dataset cannot be entered in its chain", "dataset", dataset,
				"code", string(fault.CodeOf(err)))
		}
	}
}

// signingKeys are those of the configuration.
func (g *Server) signingKeys(dataset string) (budget.SigningKeys, error) {
	keys := budget.SigningKeys{Dataset: dataset}
	stewards, err := g.config.Stewards(dataset)
	if err != nil {
		return keys, err
	}
	for _, key := range stewards {
		keys.Stewards = append(keys.Stewards, journal.KeyID(key))
	}
	slices.Sort(keys.Stewards)
	signer, err := g.config.Control.Signer()
	if signer != nil {
		keys.Receipts = journal.KeyID(signer.Public())
	}
	return keys, err
}
