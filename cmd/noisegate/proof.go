package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"noisegate/budget"
	"noisegate/internal/fault"
)

// anchorInterval is how often the newest heads of the ledger are written down outside the control database.
const anchorInterval = time.Second

// prove makes sure, before the first answer, that the ledger was changed by gateways only, and is not older than the anchor remembers.
func (g *gatewayProcess) prove(ctx context.Context) error {
	var anchored []budget.Head
	if path := g.config.Control.Anchor; path != "" {
		g.anchor = budget.NewAnchor(path)
		var err error
		if anchored, err = g.anchor.Read(); err != nil {
			return err
		}
		if len(anchored) == 0 {
			g.log.WarnContext(ctx, "control.anchor remembers nothing yet: an older ledger is not noticed this time. If this is not the first start, find out who removed the file")
		}
	}
	if err := g.ledger.VerifyAll(ctx, anchored); err != nil {
		return err
	}
	if g.anchor == nil {
		g.log.WarnContext(ctx, "control.anchor is not set: an older ledger that is put back while no gateway runs will not be noticed")
		return nil
	}
	if err := g.anchor.Write(g.ledger.Heads()); err != nil { // now, rather than when it is needed
		return fmt.Errorf("control.anchor: %w", err)
	}
	return nil
}

// keepAnchor writes down the newest heads until the context ends.
func (g *gatewayProcess) keepAnchor(ctx context.Context) {
	if g.anchor != nil {
		g.anchor.Keep(ctx, anchorInterval, g.ledger.Heads, func(err error) {
			g.log.ErrorContext(ctx, "the anchor cannot be written", "cause", err.Error())
		})
	}
}

// How often a running gateway looks at what came to the ledger, and at all of it: old entries, charges and balances can be edited as well.
const (
	proofInterval      = time.Minute
	wholeProofInterval = time.Hour
)

// keepProving looks at the ledger until the context ends. A dataset whose ledger is broken is not answered for any more, the others are.
func (g *gatewayProcess) keepProving(ctx context.Context) error {
	whole := time.Now()
	return every(ctx, proofInterval, func() error {
		if time.Since(whole) < wholeProofInterval {
			g.report(ctx, g.ledger.VerifyNew(ctx))
			return nil
		}
		g.report(ctx, g.ledger.VerifyAll(ctx, nil))
		whole = time.Now()
		return nil
	})
}

// report logs what a look at the ledger found.
func (g *gatewayProcess) report(ctx context.Context, err error) {
	var broken *budget.BrokenError
	switch {
	case err == nil, ctx.Err() != nil:
	case errors.As(err, &broken):
		g.log.ErrorContext(ctx, "a ledger is broken", "dataset", broken.Dataset, "entry", broken.Seq, "what", broken.What)
	default:
		g.log.WarnContext(ctx, "the ledger could not be verified", "code", string(fault.CodeOf(err)))
	}
}

// stewards reads the keys of those who may raise caps; nil when none are configured.
func (c *DatasetConfig) stewards() (budget.StewardKeys, error) {
	if c.StewardKeysFile == "" {
		return nil, nil
	}
	text, err := os.ReadFile(c.StewardKeysFile)
	if err != nil {
		return nil, err
	}
	return budget.ParseStewardKeys(text)
}

// signer reads the key of receipts; nil when none is configured.
func (c ControlConfig) signer() (*budget.Signer, error) {
	if c.ReceiptKeyFile == "" {
		return nil, nil
	}
	text, err := os.ReadFile(c.ReceiptKeyFile)
	if err != nil {
		return nil, fmt.Errorf("control.receipt_key_file: %w", err)
	}
	return budget.NewSigner(text)
}
