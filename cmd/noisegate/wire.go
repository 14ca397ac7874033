package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
)

type gatewayProcess struct{}

func startGateway(ctx context.Context, config *Config, log *slog.Logger) (*gatewayProcess, error) {
	return nil, errors.New("not wired")
}
func (g *gatewayProcess) close()                                          {}
func (g *gatewayProcess) serve(ctx context.Context, l net.Listener) error { return nil }

type serveCommand struct{ configFlag }
type policyCommands struct{}

func (*serveCommand) run(ctx context.Context, a *app) error { return nil }
