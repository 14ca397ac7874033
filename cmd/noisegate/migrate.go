package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"noisegate.example/cmd/noisegate/internal/config"
	"noisegate.example/migrations"
)

// configFlag is the configuration file of the commands that need one.
type configFlag struct {
	Config string `short:"c" type:"path" placeholder:"FILE" help:"The configuration file (NOISEGATE_CONFIG); every key can also be a NOISEGATE_ variable."`
}

func (f configFlag) load(a *app) (*config.Config, error) { return config.Load(f.Config, a.env) }

type migrateCommand struct {
	configFlag
}

func (c *migrateCommand) run(ctx context.Context, a *app) error {
	config, err := c.load(a)
	if err != nil {
		return err
	}
	dsn := config.Control.OwnerDSN
	if dsn.IsZero() {
		dsn = config.Control.DSN
	}
	applied, err := migrate(ctx, dsn)
	for _, name := range applied {
		fmt.Fprintf(a.Out, "applied %s\n", name)
	}
	if err == nil && len(applied) == 0 {
		fmt.Fprintln(a.Out, "the schema is up to date")
	}
	return err
}

func migrate(ctx context.Context, dsn config.DSN) ([]string, error) {
	conn, err := pgx.Connect(ctx, dsn.Reveal())
	if err != nil {
		return nil, fmt.Errorf("cannot connect to the control database: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return migrations.Apply(ctx, conn)
}
