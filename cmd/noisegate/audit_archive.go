package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"noisegate.example/budget/journal"
	"noisegate.example/budget/pgledger"
)

// archiveAge is the least age of the newest archived entry: running gateways, and anchors, have seen newer ones.
const archiveAge = 24 * time.Hour

type auditArchiveCommand struct {
	Dataset string `required:"" help:"The dataset."`
	Before  string `required:"" placeholder:"MONTH" help:"Archive what is older than this month, such as 2026-10."`
	Out     string `type:"path" placeholder:"FILE" help:"The file, which must not exist; DATASET-before-MONTH.archive when absent."`
	configFlag
}

func (c *auditArchiveCommand) run(ctx context.Context, a *app) error {
	config, err := c.load(a)
	if err != nil {
		return err
	}
	if _, ok := config.Datasets[c.Dataset]; !ok {
		return usage(fmt.Errorf("the configuration has no dataset %s", c.Dataset))
	}
	before, err := time.Parse("2006-01", c.Before)
	switch {
	case err != nil:
		return usage(fmt.Errorf("--before: %q is no month such as 2026-10", c.Before))
	case time.Since(before) < archiveAge:
		return usage(errors.New("--before: what is archived is at least a day old"))
	}
	signer, err := config.Control.Signer()
	if err != nil {
		return err
	}
	if signer == nil {
		return usage(errors.New("control.receipt_key_file is missing: archives are signed with the key of receipts (openssl genpkey " +
			"-algorithm ed25519 -out FILE)"))
	}
	owner := config.Control.OwnerDSN
	if owner.IsZero() {
		owner = config.Control.DSN
	}
	path, err := filepath.Abs(cmp.Or(c.Out, c.Dataset+"-before-"+c.Before+".archive"))
	if err != nil {
		return usage(err)
	}
	made, err := pgledger.Archive(ctx, pgledger.ArchiveOrder{OwnerDSN: owner.Reveal(), Dataset: c.Dataset, Before: before, By: "operator",
		Path: path, Signer: signer})
	var broken *journal.BrokenError
	switch {
	case errors.Is(err, pgledger.ErrNothingToArchive):
		fmt.Fprintf(a.Out, "%s: nothing to archive before %s\n", c.Dataset, c.Before)
		return nil
	case errors.As(err, &broken):
		return fmt.Errorf("nothing was archived: %w", err)
	case err != nil:
		return err
	}
	fmt.Fprintf(a.Out, "%s: %d entries up to %d are in %s, SHA-256 %x\n", c.Dataset, made.Entries, made.Seq, path, made.File)
	return nil
}
