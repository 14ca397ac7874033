package main

import (
	"context"
	"log/slog"
	"net"

	"noisegate/internal/fault"
)

type serveCommand struct {
	configFlag
}

func (c *serveCommand) run(ctx context.Context, a *app) error {
	config, err := c.load(a)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewJSONHandler(a.Err, nil))
	g, err := startGateway(ctx, config, log)
	if err != nil {
		return err
	}
	defer g.close()
	for _, name := range sortedKeys(config.Datasets) {
		if _, err := g.policies.Current(name); err != nil {
			log.WarnContext(ctx, "queries will be refused until a policy is applied", "dataset", name, "code", string(fault.CodeOf(err)))
		}
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", config.HTTP.Listen)
	if err != nil {
		return usage(err)
	}
	log.InfoContext(ctx, "listening", "address", listener.Addr().String(), "tls", g.tls != nil, "version", versionText())
	return g.serve(ctx, listener)
}
