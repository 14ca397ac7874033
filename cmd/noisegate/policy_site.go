package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"noisegate.example/api"
	"noisegate.example/budget/journal"
	"noisegate.example/budget/pgledger"
	"noisegate.example/catalog"
	"noisegate.example/cmd/noisegate/internal/config"
	"noisegate.example/cmd/noisegate/internal/server"
	"noisegate.example/gateway"
	"noisegate.example/internal/fault"
)

// comparison is what a policy file is compared with.
type comparison int

const (
	withSchema        comparison = iota // the live schema alone
	withPolicyInForce                   // and the policy in force
)

// policySite is where policies are in force.
type policySite interface {
	// review checks a policy. Its errors are policy/invalid, joined, where the policy does not fit.
	review(context.Context, *catalog.Policy, comparison) (*reviewed, error)
	// apply puts a policy in force that was reviewed when replaces was the version in force; it gives its version.
	apply(ctx context.Context, policy *catalog.Policy, replaces int64, approval *api.Approval) (int64, error)
}

// reviewed is a review, and what it is about.
type reviewed struct {
	*api.PolicyReview
	on       string // what was looked at, where that is known
	compared bool   // with the policy in force
}

// policyGateway is a gateway, which needs the role of a steward and no database login.
type policyGateway struct{ client *api.Client }

func (g policyGateway) review(ctx context.Context, policy *catalog.Policy, _ comparison) (*reviewed, error) {
	review, err := g.client.CheckPolicy(ctx, policy.Dataset, []byte(policy.Document))
	if err != nil {
		return nil, err
	}
	var problems []error
	for _, p := range review.Problems {
		problems = append(problems, fault.PolicyInvalid(fault.Position{Line: p.Line, Column: p.Column}, p.Text, p.Hint))
	}
	return &reviewed{PolicyReview: review, compared: true}, errors.Join(problems...)
}

// apply is refused where what is in force is not what was reviewed any more.
func (g policyGateway) apply(ctx context.Context, policy *catalog.Policy, replaces int64, approval *api.Approval) (int64, error) {
	applied, err := g.client.UpdatePolicy(ctx, policy.Dataset, api.PolicyUpdate{Document: []byte(policy.Document), Replaces: replaces,
		Approval: approval})
	if err != nil {
		return 0, err
	}
	return applied.Version, nil
}

// policyDatabases are the databases of a configuration.
type policyDatabases struct {
	config   *config.Config
	by       string              // who applies
	schema   *catalog.Schema     // that the policy was reviewed against
	stewards journal.StewardKeys // of the policy's dataset
}

func (d *policyDatabases) review(ctx context.Context, policy *catalog.Policy, against comparison) (*reviewed, error) {
	version, err := d.inspect(ctx, policy)
	if err == nil {
		err = gateway.ProveViews(ctx, policy, d.schema)
	}
	if err != nil {
		return nil, err
	}
	var review *catalog.Review
	if against == withPolicyInForce {
		err = d.store(ctx, func(store *catalog.Store) (err error) {
			review, err = store.Review(ctx, policy, d.schema)
			return err
		})
	} else {
		snapshot, problems := catalog.Check(policy, d.schema)
		review, err = &catalog.Review{Snapshot: snapshot}, errors.Join(problems...)
	}
	if err != nil {
		return nil, err
	}
	return &reviewed{PolicyReview: gateway.ReviewOf(review), compared: against == withPolicyInForce,
		on: fmt.Sprintf(" (%d tables) on PostgreSQL %s", len(review.Snapshot.Tables), version)}, nil
}

// apply replaces any version: every login of the database may, except for what takes two stewards.
func (d *policyDatabases) apply(ctx context.Context, policy *catalog.Policy, _ int64, approval *api.Approval) (version int64, err error) {
	application := catalog.Application{Policy: policy, Schema: d.schema, By: d.by, Replaces: catalog.AnyVersion}
	if approval != nil {
		if application.Approval, err = gateway.ApprovalOf(*approval); err != nil {
			return 0, usage(err)
		}
	}
	err = d.store(ctx, func(store *catalog.Store) error {
		revision, _, err := store.Apply(ctx, application)
		if err == nil {
			version = revision.Snapshot.Version
		}
		return err
	})
	return version, err
}

// store opens the policies of the control database.
func (d *policyDatabases) store(ctx context.Context, use func(*catalog.Store) error) error {
	control, err := server.OpenPool(ctx, d.config.Control.DSN)
	if err != nil {
		return err
	}
	defer control.Close()
	if err := server.CheckSchema(ctx, control); err != nil {
		return err
	}
	ledger, err := pgledger.Open(ctx, d.config.Control.DSN.Reveal())
	if err != nil {
		return err
	}
	defer ledger.Close()
	return use(catalog.NewStore(control, gateway.PolicyChain(ledger, func(string) journal.StewardKeys { return d.stewards })))
}

// inspect reads the live schema, of a server whose version is accepted: what a schema proves on another is not known. It
// gives the version.
func (d *policyDatabases) inspect(ctx context.Context, policy *catalog.Policy) (version string, err error) {
	dataset, ok := d.config.Datasets[policy.Dataset]
	if !ok {
		return "", usage(fmt.Errorf("the policy is for dataset %s, which the configuration does not have", policy.Dataset))
	}
	if d.stewards, err = d.config.Stewards(policy.Dataset); err != nil {
		return "", err
	}
	pool, err := server.OpenPool(ctx, dataset.DSN)
	if err != nil {
		return "", err
	}
	defer pool.Close()
	if version, err = d.accepted(ctx, pool); err != nil {
		return "", err
	}
	d.schema, err = catalog.Inspect(ctx, pool, policy)
	return version, err
}

func (d *policyDatabases) accepted(ctx context.Context, pool *pgxpool.Pool) (version string, err error) {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return "", fault.DataUnavailable(err)
	}
	defer conn.Release()
	version = server.Version(conn.Conn())
	return version, d.config.Versions.Refuse(version)
}
