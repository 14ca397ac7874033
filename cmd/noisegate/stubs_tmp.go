package main

import "context"

type demoCommand struct{}
type serveCommand struct{ configFlag }
type policyCommands struct{}

func (*demoCommand) run(ctx context.Context, a *app) error  { return nil }
func (*serveCommand) run(ctx context.Context, a *app) error { return nil }
