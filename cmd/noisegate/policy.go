package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"noisegate/catalog"
	"noisegate/gateway"
	"noisegate/internal/fault"
)

type policyCommands struct {
	Init   policyInitCommand   `cmd:"" help:"Draft a policy from the schema of a database: keys, constraints, comments, no rows."`
	Check  policyCheckCommand  `cmd:"" help:"Check a policy file; with a configuration or a gateway, also against the live schema."`
	Diff   policyDiffCommand   `cmd:"" help:"Say what applying a policy file would change, loosen and renew."`
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

type policyCheckCommand struct {
	File string `arg:"" type:"existingfile" help:"The policy file."`
	configFlag
	policyGateway
}

func (c *policyCheckCommand) run(ctx context.Context, a *app) error {
	policy, err := readPolicy(c.File)
	if err != nil {
		return err
	}
	if c.asks(a, c.configFlag) {
		_, err := c.review(ctx, a, c.File, policy)
		return err
	}
	if err := sayDelay(a, policy); err != nil {
		return err
	}
	if c.Config == "" {
		fmt.Fprintf(a.Out, "%s: the file is sound; with --config its columns, bounds and domains are checked against the live schema\n",
			policy.Dataset)
		return nil
	}
	config, err := c.load(a)
	if err != nil {
		return err
	}
	pool, err := datasetPool(ctx, config, policy.Dataset)
	if err != nil {
		return err
	}
	defer pool.Close()
	version, err := acceptedVersion(ctx, config, pool)
	if err != nil {
		return err
	}
	schema, err := catalog.Inspect(ctx, pool, policy)
	if err != nil {
		return err
	}
	snapshot, problems := catalog.Check(policy, schema)
	if len(problems) > 0 {
		return policyError{c.File, problems}
	}
	fmt.Fprintf(a.Out, "%s: the file fits the live schema (%d tables) on PostgreSQL %s\n", policy.Dataset, len(snapshot.Tables), version)
	for _, line := range snapshot.Kinds() {
		fmt.Fprintf(a.Out, "  units of the kind %s\n", line)
	}
	a.showNoise(snapshot)
	a.warnings(c.File, snapshot)
	return nil
}

// showNoise prints what the bounds of each table do to a count: public figures, before anybody asks.
func (a *app) showNoise(s *catalog.Snapshot) {
	for _, t := range s.Tables {
		if text := catalog.NoiseText(t.MaxRows, t.MaxGroups, t.MaxTotal); text != "" && !t.Public {
			fmt.Fprintf(a.Out, "  %s: %s\n", catalog.TableName{Schema: t.Schema, Name: t.Name}, text)
		}
	}
}

// warnings prints what the author of a policy should know, and what is no mistake by itself.
func (a *app) warnings(file string, s *catalog.Snapshot) {
	for _, w := range s.Warnings {
		fmt.Fprintf(a.Out, "%s:%s: warning: %s\n", file, w.Pos, w.Text)
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

type policyApplyCommand struct {
	File string `arg:"" type:"existingfile" help:"The policy file."`
	configFlag
	policyGateway
}

func (c *policyApplyCommand) run(ctx context.Context, a *app) error {
	policy, err := readPolicy(c.File)
	if err != nil {
		return err
	}
	if c.asks(a, c.configFlag) {
		return c.apply(ctx, a, c.File, policy)
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
	if err := checkSchema(ctx, control); err != nil {
		return err
	}
	protected, err := datasetPool(ctx, config, policy.Dataset)
	if err != nil {
		return err
	}
	defer protected.Close()
	if _, err := acceptedVersion(ctx, config, protected); err != nil {
		return err
	}
	schema, err := catalog.Inspect(ctx, protected, policy)
	if err != nil {
		return err
	}
	if review, err := catalog.NewStore(control).Review(ctx, policy, schema); err == nil && review.Version > 0 {
		a.showChanges(gateway.ReviewOf(review))
	}
	revision, changed, err := catalog.NewStore(control).Apply(ctx, catalog.Application{
		Policy: policy, Schema: schema, By: a.operator(), Replaces: catalog.AnyVersion})
	switch {
	case fault.CodeOf(err) == fault.CodePolicyInvalid:
		return policyError{c.File, split(err)}
	case err != nil:
		return err
	case changed:
		fmt.Fprintf(a.Out, "%s: version %d applied\n", policy.Dataset, revision.Snapshot.Version)
		a.warnings(c.File, revision.Snapshot)
	default:
		fmt.Fprintf(a.Out, "%s: version %d is in force already\n", policy.Dataset, revision.Snapshot.Version)
	}
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

func datasetPool(ctx context.Context, config *Config, dataset string) (*pgxpool.Pool, error) {
	d, ok := config.Datasets[dataset]
	if !ok {
		return nil, usage(fmt.Errorf("the policy is for dataset %s, which the configuration does not have", dataset))
	}
	return openPool(ctx, d.DSN)
}

// acceptedVersion is the version of the server that a policy is checked against, unless it is not accepted: what a
// schema proves there is not known.
func acceptedVersion(ctx context.Context, config *Config, pool *pgxpool.Pool) (string, error) {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return "", fault.DataUnavailable(err)
	}
	defer conn.Release()
	version := serverVersion(conn.Conn())
	return version, config.Versions.Refuse(version)
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
	control, err := openPool(ctx, config.Control.DSN)
	if err != nil {
		return err
	}
	defer control.Close()
	revision, err := catalog.NewStore(control).Load(ctx, c.Dataset)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(a.Out, revision.Policy.Document)
	return err
}
