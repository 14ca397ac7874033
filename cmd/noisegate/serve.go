package main

import (
	"context"
	"log/slog"
	"net"
	"os"
	"runtime"

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
	if err := leaveRoom(config); err != nil {
		return err
	}
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

// leaveRoom lets more goroutines run at a time than there are processors: as many more as there are places. Requests
// compute for seconds (a plan of 100 lines, a bound on the error), and where they hold every one of the scheduler's
// processors, it looks every 10 ms whether an answer came from a database, of which an answer needs about a dozen. With
// room left, the operating system shares the time out, and wakes who waits for a database at once. An operator's own
// GOMAXPROCS stays.
func leaveRoom(config *Config) error {
	if os.Getenv("GOMAXPROCS") != "" { //nolint:forbidigo // a variable of the Go runtime, not of Noisegate
		return nil
	}
	fairness, err := config.fairness()
	if err != nil {
		return usage(err)
	}
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + fairness.Places)
	return nil
}
