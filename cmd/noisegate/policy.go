package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/catalog"
	"noisegate.example/cmd/noisegate/internal/server"
	"noisegate.example/gateway"
	"noisegate.example/internal/fault"
)

type policyCommands struct {
	Init   policyInitCommand   `cmd:"" help:"Draft a policy from the schema of a database: keys, constraints, comments, no rows."`
	Import policyImportCommand `cmd:"" help:"Draft a policy from metadata of SmartNoise SQL or Lomas."`
	Check  policyCheckCommand  `cmd:"" help:"Check a policy file; with a configuration or a gateway, also against the live schema."`
	Diff   policyDiffCommand   `cmd:"" help:"Say what applying a policy file would change, loosen and renew."`
	Sign   policySignCommand   `cmd:"" help:"Sign a policy file as the second steward, for another who applies it."`
	Apply  policyApplyCommand  `cmd:"" help:"Check a policy file and put it in force."`
	Export policyExportCommand `cmd:"" help:"Print the policy of a dataset that is in force."`
}

// policyError is everything that is wrong with a policy file.
type policyError struct {
	file     string
	problems []error
}

func (e policyError) Error() string { return errors.Join(e.problems...).Error() }

func (e policyError) Unwrap() []error { return e.problems }

// say prints each problem with file, line and column, as compilers do.
func (e policyError) say(a *app) {
	for _, problem := range e.problems {
		var f *fault.Error
		if !errors.As(problem, &f) {
			fmt.Fprintf(a.Err, "%s: %s\n", e.file, problem)
			continue
		}
		at := e.file
		if !f.Pos.IsZero() {
			at += ":" + f.Pos.String()
		}
		fmt.Fprintf(a.Err, "%s: %s\n", at, f.Msg)
		if f.Hint != "" {
			fmt.Fprintf(a.Err, "  hint: %s\n", f.Hint)
		}
	}
}

func readPolicy(file string) (*catalog.Policy, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, usage(fmt.Errorf("cannot read the policy: %w", err))
	}
	policy, problems := catalog.Parse(string(text))
	if len(problems) > 0 {
		return nil, policyError{file, problems}
	}
	return policy, nil
}

// policyFile is a policy file, and where it is looked at: by a gateway, for stewards without a database login, or by this
// program in the databases of a configuration.
type policyFile struct {
	File string `arg:"" type:"existingfile" help:"The policy file."`
	configFlag
	URL       string `name:"url" help:"The gateway, instead of a configuration: needs the role steward, and no database login. NOISEGATE_URL."`
	TokenFile string `name:"token-file" type:"path" placeholder:"FILE" help:"File with the bearer token (NOISEGATE_TOKEN_FILE); or the token itself in NOISEGATE_TOKEN."`
}

// asksGateway reports whether a gateway was named, and no configuration was, where one of the environment counts less
// than a flag.
func (f policyFile) asksGateway(a *app) bool {
	return f.URL != "" && (f.Config == "" || f.Config == a.env["NOISEGATE_CONFIG"] && f.URL != a.env["NOISEGATE_URL"])
}

// site is where the file is looked at.
func (f policyFile) site(a *app) (policySite, error) {
	if f.asksGateway(a) {
		client, err := gatewayFlags{URL: f.URL, TokenFile: f.TokenFile}.client(a)
		return policyGateway{client}, err
	}
	c, err := f.load(a)
	return &policyDatabases{config: c, by: a.operator()}, err
}

// review checks the file, and prints what the site says of it.
func (f policyFile) review(ctx context.Context, a *app, site policySite, policy *catalog.Policy,
	against comparison) (*api.PolicyReview, error) {
	review, err := site.review(ctx, policy, against)
	switch {
	case fault.CodeOf(err) == fault.CodePolicyInvalid:
		return nil, policyError{f.File, split(err)}
	case err != nil:
		return nil, err
	}
	a.showReview(f.File, review)
	return review.PolicyReview, nil
}

// compared reads the file, and says what it changes of the policy in force.
func (f policyFile) compared(ctx context.Context, a *app) (policy *catalog.Policy, site policySite, review *api.PolicyReview, err error) {
	if policy, err = readPolicy(f.File); err != nil {
		return nil, nil, nil, err
	}
	if site, err = f.site(a); err != nil {
		return nil, nil, nil, err
	}
	review, err = f.review(ctx, a, site, policy, withPolicyInForce)
	return policy, site, review, err
}

type policyCheckCommand struct{ policyFile }

func (c *policyCheckCommand) run(ctx context.Context, a *app) error {
	policy, err := readPolicy(c.File)
	if err != nil {
		return err
	}
	if !c.asksGateway(a) {
		if err := sayDelay(a, policy); err != nil {
			return err
		}
	}
	if c.Config == "" && c.URL == "" {
		fmt.Fprintf(a.Out, "%s: the file is sound; with --config its columns, bounds and domains are checked against the live schema\n",
			policy.Dataset)
		return nil
	}
	site, err := c.site(a)
	if err != nil {
		return err
	}
	_, err = c.review(ctx, a, site, policy, withSchema)
	return err
}

type policyDiffCommand struct{ policyFile }

func (c *policyDiffCommand) run(ctx context.Context, a *app) error {
	_, _, _, err := c.compared(ctx, a)
	return err
}

type policyApplyCommand struct {
	policyFile
	Approval string `type:"path" help:"A second steward's signature, which policy sign printed." placeholder:"FILE"`
	Key      string `type:"path" help:"Your own key, with --approval: needed with a configuration, where no token says who you are." placeholder:"FILE"`
}

// approval reads the second steward's signature, and adds one of who applies; nil for none.
func (c *policyApplyCommand) approval(policy *catalog.Policy, replaces int64, a *app) (*api.Approval, error) {
	switch {
	case c.Approval == "" && c.Key == "":
		return nil, nil
	case c.Approval == "":
		return nil, usage(errors.New("--key goes with --approval: a second steward signs first"))
	case c.Key == "" && !c.asksGateway(a):
		return nil, usage(errors.New("with a configuration --approval needs --key too: no token says who you are"))
	}
	approval := &api.Approval{}
	if err := readSigned(c.Approval, approval); err != nil || c.Key == "" {
		return approval, err
	}
	signer, err := readSigner(c.Key)
	if err != nil {
		return nil, err
	}
	change := changeOf(policy, replaces)
	if change.Approval, err = gateway.ApprovalOf(*approval); err != nil {
		return nil, usage(err)
	}
	signed := wireApproval(signer.ProposePolicy(change))
	return &signed, nil
}

// changeOf is what stewards sign of a policy.
func changeOf(policy *catalog.Policy, replaces int64) budget.PolicyChange {
	return budget.PolicyChange{Dataset: policy.Dataset, Replaces: replaces, Document: sha256.Sum256([]byte(policy.Document))}
}

func (c *policyApplyCommand) run(ctx context.Context, a *app) error {
	policy, site, review, err := c.compared(ctx, a)
	if err != nil {
		return err
	}
	if review.InForce {
		fmt.Fprintf(a.Out, "%s: version %d is in force already\n", policy.Dataset, review.Version)
		return nil
	}
	approval, err := c.approval(policy, review.Version, a)
	if err != nil {
		return err
	}
	version, err := site.apply(ctx, policy, review.Version, approval)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.Out, "%s: version %d applied\n", policy.Dataset, version)
	return nil
}

// showReview prints what a file changes of the one in force, and public figures of its bounds, before anybody asks.
func (a *app) showReview(file string, r *reviewed) {
	fmt.Fprintf(a.Out, "%s: the file fits the live schema%s\n", r.Dataset, r.on)
	if r.compared {
		a.showChanges(r.PolicyReview)
	}
	for _, kind := range r.Kinds {
		fmt.Fprintf(a.Out, "  units of the kind %s\n", kind)
	}
	for _, t := range r.Noise {
		fmt.Fprintf(a.Out, "  %s: %s\n", t.Table, t.Text)
	}
	for _, w := range r.Warnings {
		fmt.Fprintf(a.Out, "%s:%d:%d: warning: %s\n", file, w.Line, w.Column, w.Text)
	}
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
	if len(review.TwoFor) > 0 {
		fmt.Fprintf(a.Out, "  it takes a second steward's signature (noisegate policy sign), for: %s\n", strings.Join(review.TwoFor, ", "))
	}
}

// sayDelay says what timing does to answers.
func sayDelay(a *app, policy *catalog.Policy) error {
	delay, err := policy.Timing.Delay()
	if err != nil || delay == nil {
		return err
	}
	average := time.Duration(delay.Shift()) * time.Microsecond
	fmt.Fprintf(a.Out, "%s: timing delays each answer by %.3g s on average and %.3g s at most, and costs epsilon %s, delta %s with "+
		"each question\n",
		policy.Dataset, average.Seconds(), 2*average.Seconds(), policy.Timing.Epsilon, policy.Timing.Delta)
	return nil
}

// split takes joined errors apart again.
func split(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}

// operator is who applied a policy from this machine's command line.
func (a *app) operator() string {
	if name := a.env["USER"]; name != "" {
		return "cli:" + name
	}
	return "cli"
}

type policyExportCommand struct {
	Dataset string `arg:"" help:"The dataset."`
	configFlag
}

func (c *policyExportCommand) run(ctx context.Context, a *app) error {
	config, err := c.load(a)
	if err != nil {
		return err
	}
	control, err := server.OpenPool(ctx, config.Control.DSN)
	if err != nil {
		return err
	}
	defer control.Close()
	revision, err := catalog.NewStore(control, nil).Load(ctx, c.Dataset)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(a.Out, revision.Policy.Document)
	return err
}
