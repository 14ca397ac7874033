package server

import (
	"context"
	"maps"
	"slices"
	"time"

	"noisegate.example/budget"
	"noisegate.example/cmd/noisegate/internal/metrics"
	"noisegate.example/gateway/httpapi"
	"noisegate.example/internal/fault"
)

const (
	accountsInterval = time.Minute      // between two looks at how much of their caps accounts have used
	accountsPatience = 10 * time.Second // for one of them
)

// measure makes the metrics. It is called before there is a door.
func (g *Server) measure() {
	sources := metrics.Sources{Datasets: slices.Sorted(maps.Keys(g.config.Datasets)), Routes: httpapi.Routes(),
		Gates: g.service.Gates, Ready: g.service.Ready, Heads: g.ledger.Heads,
		Unprintable: g.service.Unprintable, Ahead: g.ledger.Ahead,
		Broken: func() []string { return slices.Sorted(maps.Keys(g.ledger.Broken())) }}
	if g.config.Wire.Listen != "" {
		sources.Sessions = func() int { return g.wire.LoggedIn() }
	}
	g.metrics = metrics.New(sources)
	g.metrics.Verified(g.proved)
}

// keepMeasuring reads accounts each minute until the context ends, beginning at once.
func (g *Server) keepMeasuring(ctx context.Context) error {
	g.readAccounts(ctx)
	return every(ctx, accountsInterval, func() error { g.readAccounts(ctx); return nil })
}

// readAccounts shows how much of their caps accounts have used; what was read before stays while the ledger does not answer.
func (g *Server) readAccounts(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, accountsPatience)
	defer cancel()
	now, all := time.Now(), map[string][]budget.Balance{}
	for name := range g.config.Datasets {
		balances, err := g.ledger.DatasetBalances(limited, name)
		if err != nil {
			if ctx.Err() == nil {
				g.log.WarnContext(ctx, "accounts could not be read", "code", string(fault.CodeOf(err)))
			}
			return
		}
		all[name] = balances
	}
	g.metrics.Accounts(all, now)
}
