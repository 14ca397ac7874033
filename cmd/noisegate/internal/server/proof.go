package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"noisegate.example/budget/journal"
	"noisegate.example/internal/fault"
)

// anchorInterval is how often the newest heads of the ledger are written down outside the control database.
const anchorInterval = time.Second

// prove makes sure, before the first answer, that the ledger was changed by gateways only, and is not older than the anchor remembers.
func (g *Server) prove(ctx context.Context) error {
	var anchored journal.Anchored
	if path := g.config.Control.Anchor; path != "" {
		g.anchor = journal.NewAnchor(path)
		var err error
		if anchored, err = g.anchor.Read(); err != nil {
			return err
		}
		if g.config.Control.AnchorIsDefault() && len(anchored.Heads) == 0 {
			if err := g.anchor.Write(anchored); err != nil { // it is where nobody asked for it to be
				g.log.WarnContext(ctx, "the anchor cannot be written where it is unless control.anchor says otherwise, and there is none: name a "+
					"file that the gateway may write, or say off", "path", path, "cause", err.Error())
				g.anchor = nil
			}
		}
		if g.anchor != nil && len(anchored.Heads) == 0 {
			g.log.WarnContext(ctx, "control.anchor remembers nothing yet: an older ledger is not noticed this time. If this is not the first "+
				"start, find out who removed the file")
		}
	}
	checkpoints, err := g.readCheckpoints(ctx)
	if err != nil {
		return err
	}
	var broken *journal.BrokenError
	if err := g.ledger.VerifyAtStart(ctx, anchored, checkpoints); err != nil && !errors.As(err, &broken) {
		return err
	}
	if err := g.ledger.Join(ctx, g.config.GatewayName(), rand.Text()); err != nil {
		return err
	}
	g.reportBroken(ctx)
	g.proved = time.Now()
	if g.wholeProof = g.proved; len(checkpoints) > 0 {
		g.wholeProof = time.Time{} // due at once
	}
	g.writeCheckpoints(ctx)
	if g.anchor == nil {
		g.log.WarnContext(ctx, "there is no anchor (control.anchor): an older ledger that is put back while no gateway runs will not be noticed")
		return nil
	}
	if err := g.anchor.Write(g.ledger.Anchored()); err != nil { // now, rather than when it is needed
		return fmt.Errorf("control.anchor: %w", err)
	}
	return nil
}

// attendance is how often a gateway records its presence for others, and looks whether the ledger has what it knows.
const attendance = time.Second

// keepAttending looks after failovers until the context ends. Requests look by themselves where there was one.
func (g *Server) keepAttending(ctx context.Context) error {
	return every(ctx, attendance, func() error {
		limited, cancel := context.WithTimeout(ctx, startPatience)
		defer cancel()
		if err := g.ledger.Attend(limited); err != nil && ctx.Err() == nil {
			g.log.WarnContext(ctx, "the ledger could not be attended", "cause", err.Error())
		}
		g.reportBroken(ctx)
		return nil
	})
}

// reportBroken logs which datasets are not answered for, and which are again, when that changes.
func (g *Server) reportBroken(ctx context.Context) {
	g.reporting.Lock()
	defer g.reporting.Unlock()
	now := g.ledger.Broken()
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if what := now[name].Error(); g.reported[name] != what {
			message := "a ledger is broken"
			if now[name].Held {
				message = "a ledger is held"
			}
			g.log.ErrorContext(ctx, message, "dataset", name, "entry", now[name].Seq, "what", now[name].What)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(g.reported)) {
		if now[name] == nil {
			g.log.InfoContext(ctx, "a ledger is taken up again", "dataset", name)
		}
	}
	g.reported = map[string]string{}
	for name, broken := range now {
		g.reported[name] = broken.Error()
	}
}

// signOff ends this gateway for others, once it answers nobody any more, and writes down the last that it knows.
func (g *Server) signOff(ctx context.Context) {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), signOffPatience)
	defer cancel()
	if err := g.ledger.SignOff(limited); err != nil {
		g.log.WarnContext(ctx, "this gateway could not sign off: after a failover others wait for it (noisegate audit gateways)",
			"cause", err.Error())
	}
	if g.anchor != nil {
		if err := g.anchor.Write(g.ledger.Anchored()); err != nil {
			g.log.ErrorContext(ctx, "the anchor cannot be written", "cause", err.Error())
		}
	}
}

// signOffPatience is how long a gateway that ends waits for the control database.
const signOffPatience = 3 * time.Second

// checkpointLife is how long ago the whole ledger may have been verified for a start to go on from there. Each start
// from a checkpoint is followed by a look at the whole; a gateway that never lives that long must take its time in the
// end.
const checkpointLife = 24 * time.Hour

// readCheckpoints reads how far the ledger was verified before. There are none without an anchor, whose directory they are in, or without a
// key to sign them.
func (g *Server) readCheckpoints(ctx context.Context) (fresh []journal.Checkpoint, err error) {
	signer, err := g.config.Control.Signer()
	if err != nil {
		return nil, err
	}
	if g.anchor == nil || signer == nil {
		return nil, nil
	}
	g.checkpoints = journal.NewCheckpoints(g.config.Control.Anchor+".verified", signer)
	all, err := g.checkpoints.Read()
	if err != nil {
		g.log.WarnContext(ctx, "the whole ledger is verified before the first answer", "cause", err.Error())
		return nil, nil
	}
	for _, c := range all {
		if age := time.Since(c.Whole); age >= 0 && age < checkpointLife {
			fresh = append(fresh, c)
		}
	}
	return fresh, nil
}

// keepAnchor writes down the newest heads until the context ends.
func (g *Server) keepAnchor(ctx context.Context) {
	if g.anchor != nil {
		g.anchor.Keep(ctx, anchorInterval, g.ledger.Anchored, func(err error) {
			g.metrics.AnchorFailed()
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
func (g *Server) keepProving(ctx context.Context) error {
	if g.wholeProof.IsZero() {
		g.proveFurther(ctx)
	}
	return every(ctx, proofInterval, func() error {
		g.proveFurther(ctx)
		return nil
	})
}

// proveFurther verifies what is new, or everything when that is due, and writes down how far it came.
func (g *Server) proveFurther(ctx context.Context) {
	verify, began := g.ledger.VerifyNew, time.Now()
	whole := began.Sub(g.wholeProof) >= wholeProofInterval
	if whole {
		verify = g.ledger.VerifyAll
	}
	err := verify(ctx)
	var broken *journal.BrokenError
	if whole && (err == nil || errors.As(err, &broken)) { // else again, in a minute
		g.wholeProof = began
	}
	if err == nil {
		g.metrics.Verified(began)
	}
	g.report(ctx, err)
	if ctx.Err() == nil {
		g.writeCheckpoints(ctx)
	}
}

// writeCheckpoints writes down how far the ledger was verified.
func (g *Server) writeCheckpoints(ctx context.Context) {
	if g.checkpoints == nil {
		return
	}
	if err := g.checkpoints.Write(g.ledger.Checkpoints()); err != nil {
		g.log.ErrorContext(ctx, "how far the ledger was verified cannot be written", "cause", err.Error())
	}
}

// report logs what a look at the ledger found.
func (g *Server) report(ctx context.Context, err error) {
	var broken *journal.BrokenError
	switch {
	case err == nil, ctx.Err() != nil:
	case errors.As(err, &broken):
		g.reportBroken(ctx)
	default:
		g.log.WarnContext(ctx, "the ledger could not be verified", "code", string(fault.CodeOf(err)))
	}
}
