package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"noisegate/catalog"
	"noisegate/cmd/noisegate/internal/server"
	"noisegate/gateway/pgexec"
	"noisegate/mechanisms"
)

// prepareCommand makes copies of tables, as the policy in force asks for them.
type prepareCommand struct {
	Dataset string `required:"" help:"The dataset."`
	Table   string `help:"The table, as table or schema.table; all that the policy has prepare for when absent."`
	configFlag
}

func (c *prepareCommand) run(ctx context.Context, a *app) error {
	config, err := c.load(a)
	if err != nil {
		return err
	}
	dataset, ok := config.Datasets[c.Dataset]
	switch {
	case !ok:
		return usage(fmt.Errorf("the configuration has no dataset %s", c.Dataset))
	case dataset.PrepareDSN.IsZero():
		return usage(fmt.Errorf("datasets.%s.prepare_dsn is missing: the connection string of the role noisegate_prepare", c.Dataset))
	}
	reader, err := pgx.ParseConfig(dataset.DSN.Reveal())
	if err != nil {
		return usage(errors.New("a connection string cannot be read")) // the cause may quote a password
	}
	control, err := server.OpenPool(ctx, config.Control.DSN)
	if err != nil {
		return err
	}
	defer control.Close()
	revision, err := catalog.NewStore(control).Load(ctx, c.Dataset)
	if err != nil {
		return err
	}
	tables, err := c.wanted(revision.Snapshot)
	if err != nil {
		return err
	}
	sampler := mechanisms.NewSampler()
	var failed error // of one table: the others are prepared all the same
	for _, t := range tables {
		if ctx.Err() != nil {
			return errors.Join(failed, ctx.Err())
		}
		begun := a.now()
		version, err := pgexec.Prepare(ctx, pgexec.PrepareConfig{DSN: dataset.PrepareDSN.Reveal(), Reader: reader.User, Versions: config.Versions,
			Seed: func() int64 { return int64(sampler.Uniform(1 << 63)) }}, revision.Snapshot, t)
		if version != nil {
			fmt.Fprintf(a.Out, "%s: version %d as of %s serves, made in %s\n", version.Table, version.Number,
				version.AsOf.UTC().Format(time.RFC3339), a.now().Sub(begun).Round(time.Second))
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", catalog.TableName{Schema: t.Schema, Name: t.Name}, err))
		}
	}
	return failed
}

// wanted are the tables to be prepared.
func (c *prepareCommand) wanted(on *catalog.Snapshot) ([]*catalog.Table, error) {
	var all []*catalog.Table
	for _, t := range on.Tables {
		name := catalog.TableName{Schema: t.Schema, Name: t.Name}
		if t.Prepare > 0 && (c.Table == "" || c.Table == name.String() || c.Table == name.Schema+"."+name.Name) {
			all = append(all, t)
		}
	}
	if len(all) == 0 && c.Table != "" {
		return nil, usage(fmt.Errorf("the policy in force has no prepare for a table %s", c.Table))
	}
	if len(all) == 0 {
		return nil, usage(errors.New("the policy in force has prepare for no table"))
	}
	return all, nil
}
