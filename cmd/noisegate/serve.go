package main

import (
	"context"
	"log/slog"
	"net"

	"noisegate/cmd/noisegate/internal/server"
)

type serveCommand struct {
	configFlag
}

func (c *serveCommand) run(ctx context.Context, a *app) error {
	loaded, err := c.load(a)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewJSONHandler(a.Err, nil))
	if err := server.LeaveRoom(loaded); err != nil {
		return err
	}
	g, err := server.Start(ctx, loaded, log)
	if err != nil {
		return err
	}
	defer g.Close()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", loaded.HTTP.Listen)
	if err != nil {
		return usage(err)
	}
	log.InfoContext(ctx, "listening", "address", listener.Addr().String(), "tls", loaded.HTTP.TLSCertFile != "", "version", versionText())
	return g.Serve(ctx, listener)
}
