package main

import (
	"context"
	"fmt"
	"time"
)

type auditRefusalsCommand struct {
	Dataset string `arg:"" optional:"" help:"The dataset; may be left out when there is only one."`
	gatewayFlags
}

// run shows who is refused, and for what: who asks for what the policy does not allow, and which policy line is missed most.
func (c *auditRefusalsCommand) run(ctx context.Context, a *app) error {
	client, err := c.clientFor(ctx, a, &c.Dataset)
	if err != nil {
		return err
	}
	list, err := client.Refusals(ctx, c.Dataset)
	if said, err := a.said(c.JSON, list, err); said {
		return err
	}
	t := &table{grouped: a.terminal}
	t.header("analyst", "code", "refused", "estimates")
	for _, r := range list.Refusals {
		if r.Analyst == "" {
			r.Analyst = "(others)"
		}
		t.row(r.Analyst, r.Code, fmt.Sprint(r.Count), fmt.Sprint(r.Estimates))
	}
	t.write(a.Out)
	fmt.Fprintf(a.Out, " of this gateway, since %s\n", list.Since.UTC().Format(time.DateTime))
	return nil
}
