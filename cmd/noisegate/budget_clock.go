package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"noisegate.example/api"
	"noisegate.example/budget"
)

type budgetClockCommand struct {
	Dataset string `arg:"" help:"The dataset."`
	To      string `help:"From when time goes on, if not from now: at most 60 s from the clocks of the ledger's server and of the gateway. Two stewards name one time." placeholder:"TIME"`
	Reason  string `required:"" help:"Why; it stands in the journal." placeholder:"TEXT"`
	Key     string `type:"path" help:"The key to sign with, with --for, which budget key made. What is signed is shown." placeholder:"FILE"`
	secondFlags
	gatewayFlags
}

func (c *budgetClockCommand) ask(ctx context.Context, a *app, client *api.Client) error {
	clock := api.Clock{To: a.now().UTC().Truncate(time.Microsecond), Reason: c.Reason}
	switch {
	case (c.Key == "") != (c.For == ""):
		return usage(errors.New("--key signs with --for, for another steward"))
	case (c.Key != "" || c.Signature != "") && c.To == "":
		return usage(errors.New("two stewards name one time: --to"))
	case c.To != "":
		var err error
		if clock.To, err = time.Parse(time.RFC3339, c.To); err != nil {
			return usage(fmt.Errorf("--to is a time like %s", time.RFC3339))
		}
	}
	if c.Key != "" {
		return c.sign(ctx, a, client, clock)
	}
	if c.Signature != "" {
		clock.Approval = &api.Approval{}
		if err := readSigned(c.Signature, clock.Approval); err != nil {
			return err
		}
	}
	set, err := client.SetBack(ctx, c.Dataset, clock)
	if said, err := a.said(c.JSON, set, err); said {
		return err
	}
	fmt.Fprintf(a.Out, "the time of %s goes on from %s; what was written before counts as no later than that\n", c.Dataset,
		set.To.UTC().Format(time.RFC3339))
	return nil
}

// sign signs for who sets the time back, and shows what it signs.
func (c *budgetClockCommand) sign(ctx context.Context, a *app, client *api.Client, clock api.Clock) error {
	signer, err := readSigner(c.Key)
	if err != nil {
		return err
	}
	ledger, err := ledgerOf(ctx, client, c.Dataset)
	if err != nil {
		return a.refused(c.JSON, "", err)
	}
	signed := signer.SignSetBack(budget.SetBack{Dataset: c.Dataset, To: clock.To, Reason: clock.Reason,
		Mandate: &budget.Mandate{At: a.now(), Pair: c.pair(), Ledger: ledger}})
	if _, err := a.Err.Write(signed.Text()); err != nil {
		return err
	}
	m := signed.Mandate
	return printJSON(a.Out, wireApproval(budget.Approval{Pair: m.Pair, At: m.At, Key: m.Key, Signature: m.Signature, Ledger: m.Ledger}))
}
