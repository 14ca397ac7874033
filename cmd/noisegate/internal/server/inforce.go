package server

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"noisegate.example/budget"
	"noisegate.example/budget/journal"
	"noisegate.example/gateway"
	"noisegate.example/internal/fault"
)

// readKeys reads the keys of stewards and of receipts.
func (g *Server) readKeys() (err error) {
	g.stewards = map[string]*gateway.Stewards{}
	for dataset := range g.config.Datasets {
		keys, err := g.config.Stewards(dataset)
		if err != nil {
			return err
		}
		g.stewards[dataset] = &gateway.Stewards{}
		g.stewards[dataset].Set(keys)
	}
	g.signer, err = g.config.Control.Signer()
	return err
}

// enterInForce makes sure that the chain of each dataset says what is in force now: versions of its policy that are
// older than entries of policies, and whose signatures count. What cannot be entered is logged; a ledger that takes no
// entry takes no charge.
func (g *Server) enterInForce(ctx context.Context) {
	_ = g.policies.Enter(ctx) // the log says so
	for _, dataset := range slices.Sorted(maps.Keys(g.config.Datasets)) {
		if err := g.ledger.RecordKeys(ctx, g.signingKeys(dataset, g.stewards[dataset].Keys())); err != nil {
			g.log.ErrorContext(ctx, "the keys that count for a dataset cannot be entered in its chain", "dataset", dataset,
				"code", string(fault.CodeOf(err)))
		}
	}
}

// reloadStewards reads the keys of a dataset's stewards again. Other ones count once the chain says so.
func (g *Server) reloadStewards(ctx context.Context, dataset string) error {
	keys, err := g.config.Stewards(dataset)
	if err != nil {
		return err
	}
	if err := g.ledger.RecordKeys(ctx, g.signingKeys(dataset, keys)); err != nil {
		return fmt.Errorf("they cannot be entered in the chain: %s", fault.CodeOf(err))
	}
	g.stewards[dataset].Set(keys)
	return nil
}

// signingKeys are the keys that count for a dataset, with these of its stewards.
func (g *Server) signingKeys(dataset string, stewards journal.StewardKeys) budget.SigningKeys {
	keys := budget.SigningKeys{Dataset: dataset}
	for _, key := range stewards {
		keys.Stewards = append(keys.Stewards, key.String())
	}
	slices.Sort(keys.Stewards)
	if g.signer != nil {
		keys.Receipts = journal.KeyID(g.signer.Public())
	}
	return keys
}
