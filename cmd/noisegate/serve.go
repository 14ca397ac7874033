package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"

	"noisegate.example/cmd/noisegate/internal/server"
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
	hangup := make(chan os.Signal, 1) // from now on: SIGHUP while it starts is no reason to end
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	if err := server.LeaveRoom(ctx, loaded); err != nil {
		return err
	}
	g, err := server.Start(ctx, loaded, nil, log)
	if err != nil {
		return err
	}
	defer g.Close()
	var on server.Listeners
	if on.HTTP, err = new(net.ListenConfig).Listen(ctx, "tcp", loaded.HTTP.Listen); err != nil {
		return usage(err)
	}
	if loaded.Wire.Listen != "" {
		if on.Wire, err = new(net.ListenConfig).Listen(ctx, "tcp", loaded.Wire.Listen); err != nil {
			return usage(errors.Join(err, on.Close()))
		}
		log.InfoContext(ctx, "listening for PostgreSQL's protocol", "address", on.Wire.Addr().String(), "tls", loaded.Wire.TLSCertFile != "")
	}
	if loaded.Admin.Listen != "" {
		if on.Admin, err = new(net.ListenConfig).Listen(ctx, "tcp", loaded.Admin.Listen); err != nil {
			return usage(errors.Join(err, on.Close()))
		}
		log.InfoContext(ctx, "listening for whoever runs the gateway", "address", on.Admin.Addr().String())
	}
	log.InfoContext(ctx, "listening", "address", on.HTTP.Addr().String(), "tls", loaded.HTTP.TLSCertFile != "", "version", versionText())
	ctx, end := context.WithCancel(ctx)
	defer end()
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-hangup:
				g.Reload(ctx)
			}
		}
	}()
	return g.Serve(ctx, on)
}
