package main

import (
	"context"
	"fmt"

	"noisegate/api"
	"noisegate/catalog"
	"noisegate/gateway"
	"noisegate/internal/fault"
)

// policyGateway is the gateway that stewards without a database login ask.
type policyGateway struct {
	URL       string `name:"url" help:"The gateway, instead of a configuration: needs the role steward, and no database login. NOISEGATE_URL."`
	TokenFile string `name:"token-file" type:"path" placeholder:"FILE" help:"File with the bearer token (NOISEGATE_TOKEN_FILE); or the token itself in NOISEGATE_TOKEN."`
}

// asks reports whether a command talks to the gateway: it was named, and no configuration was, where one of the
// environment counts less than a flag.
func (g policyGateway) asks(a *app, c configFlag) bool {
	if g.URL == "" {
		return false
	}
	return c.Config == "" || c.Config == a.env["NOISEGATE_CONFIG"] && g.URL != a.env["NOISEGATE_URL"]
}

// review asks the gateway, and prints what it says.
func (g policyGateway) review(ctx context.Context, a *app, file string, policy *catalog.Policy) (*api.PolicyReview, error) {
	client, err := gatewayFlags{URL: g.URL, TokenFile: g.TokenFile}.client(a)
	if err != nil {
		return nil, err
	}
	review, err := client.CheckPolicy(ctx, policy.Dataset, []byte(policy.Document))
	if err != nil {
		return nil, err
	}
	if len(review.Problems) > 0 {
		var problems []error
		for _, p := range review.Problems {
			problems = append(problems, fault.PolicyInvalid(fault.Position{Line: p.Line, Column: p.Column}, p.Text, p.Hint))
		}
		return nil, policyError{file, problems}
	}
	fmt.Fprintf(a.Out, "%s: the file fits the live schema\n", review.Dataset)
	a.showChanges(review)
	for _, kind := range review.Kinds {
		fmt.Fprintf(a.Out, "  units of the kind %s\n", kind)
	}
	for _, t := range review.Noise {
		fmt.Fprintf(a.Out, "  %s: %s\n", t.Table, t.Text)
	}
	for _, w := range review.Warnings {
		fmt.Fprintf(a.Out, "%s:%d:%d: warning: %s\n", file, w.Line, w.Column, w.Text)
	}
	return review, nil
}

// apply puts a file in force, if what is in force is still what was shown.
func (g policyGateway) apply(ctx context.Context, a *app, file string, policy *catalog.Policy) error {
	review, err := g.review(ctx, a, file, policy)
	if err != nil {
		return err
	}
	if review.InForce {
		fmt.Fprintf(a.Out, "%s: version %d is in force already\n", review.Dataset, review.Version)
		return nil
	}
	client, err := gatewayFlags{URL: g.URL, TokenFile: g.TokenFile}.client(a)
	if err != nil {
		return err
	}
	applied, err := client.SetPolicy(ctx, policy.Dataset, []byte(policy.Document), review.Version)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.Out, "%s: version %d applied\n", applied.Dataset, applied.Version)
	return nil
}

// showChanges prints what a file changes of the one in force.
func (a *app) showChanges(review *api.PolicyReview) {
	for _, c := range review.Changes {
		fmt.Fprintf(a.Out, "  %-8s %s\n", c.Effect, c.Text)
	}
	switch {
	case review.Version == 0:
		fmt.Fprintf(a.Out, "  there is no policy yet\n")
	case !review.InForce && len(review.Changes) == 0:
		fmt.Fprintf(a.Out, "  the file is the same, and what it was checked against has changed\n")
	}
	fmt.Fprintf(a.Out, "  renewed: %s\n", review.Renews)
}

type policyDiffCommand struct {
	File string `arg:"" type:"existingfile" help:"The policy file."`
	configFlag
	policyGateway
}

func (c *policyDiffCommand) run(ctx context.Context, a *app) error {
	policy, err := readPolicy(c.File)
	if err != nil {
		return err
	}
	if c.asks(a, c.configFlag) {
		_, err := c.review(ctx, a, c.File, policy)
		return err
	}
	config, err := c.load(a)
	if err != nil {
		return err
	}
	control, err := openPool(ctx, config.Control.DSN)
	if err != nil {
		return err
	}
	defer control.Close()
	protected, err := datasetPool(ctx, config, policy.Dataset)
	if err != nil {
		return err
	}
	defer protected.Close()
	schema, err := catalog.Inspect(ctx, protected, policy)
	if err != nil {
		return err
	}
	review, err := catalog.NewStore(control).Review(ctx, policy, schema)
	switch {
	case fault.CodeOf(err) == fault.CodePolicyInvalid:
		return policyError{c.File, split(err)}
	case err != nil:
		return err
	}
	a.showChanges(gateway.ReviewOf(review))
	a.warnings(c.File, review.Snapshot)
	return nil
}
