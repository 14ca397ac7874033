package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"

	"noisegate.example/api"
	"noisegate.example/cmd/noisegate/internal/config"
	"noisegate.example/cmd/noisegate/internal/server"
	"noisegate.example/gateway/auth"
)

// The two tables, which differ by one unit in each group.
const (
	withUnit    = "with_unit"
	withoutUnit = "without_unit"
)

// auditMark begins the policy of an audit, so that no other policy is ever replaced by one.
const auditMark = "# noisegate audit dp: scratch tables, replaced by the next audit\n"

// auditSite is the gateway that is audited, as those see it who take part.
type auditSite struct {
	dataset string
	analyst *api.Client
	steward *api.Client
	owner   config.DSN // may create a schema in the protected database
	close   func() error
}

// site finds the gateway that the flags and the environment name, or starts a private one.
func (c *auditDPCommand) site(ctx context.Context, a *app) (*auditSite, error) {
	owner := a.env["NOISEGATE_AUDIT_DSN"]
	if c.Private || owner == "" {
		return privateAuditSite(ctx, a, c.Dataset)
	}
	analyst, err := c.client(a)
	if err != nil {
		return nil, err
	}
	token := a.env["NOISEGATE_STEWARD_TOKEN"]
	if c.StewardTokenFile != "" {
		content, err := os.ReadFile(c.StewardTokenFile)
		if err != nil {
			return nil, usage(fmt.Errorf("cannot read the steward's token: %w", err))
		}
		token = string(content)
	}
	if token = strings.TrimSpace(token); token == "" {
		return nil, usage(errors.New("no steward's token: set NOISEGATE_STEWARD_TOKEN or give --steward-token-file"))
	}
	return &auditSite{dataset: c.Dataset, analyst: analyst, steward: api.NewClient(c.URL, token), owner: config.NewDSN(owner),
		close: func() error { return nil }}, nil
}

// privateAuditSite starts a private PostgreSQL and a gateway in front, as the demo does, without its people.
func privateAuditSite(ctx context.Context, a *app, dataset string) (_ *auditSite, err error) {
	var closers []func() error
	site := &auditSite{dataset: dataset, close: func() error {
		var all error
		for i := len(closers) - 1; i >= 0; i-- {
			all = errors.Join(all, closers[i]())
		}
		return all
	}}
	defer func() {
		if err != nil {
			err = errors.Join(err, site.close())
		}
	}()
	d := &demo{app: a, options: &demoCommand{}, steps: io.Discard, tokens: map[auth.Role]string{}}
	wanted, err := a.wantedServer("")
	if err != nil {
		return nil, err
	}
	if d.database, _, err = startDemoDatabase(ctx, wanted, ""); err != nil {
		return nil, err
	}
	closers = append(closers, func() error { return d.closeDatabase(ctx) })
	if err := d.database.prepare(ctx); err != nil {
		return nil, err
	}
	if _, err := migrate(ctx, d.database.dsn("noisegate_owner", demoControl)); err != nil {
		return nil, err
	}
	stop, err := d.serveAudited(ctx, dataset)
	if err != nil {
		return nil, err
	}
	closers = append(closers, stop)
	site.analyst, site.steward = api.NewClient(d.url, d.tokens[auth.Analyst]), api.NewClient(d.url, d.tokens[auth.Steward])
	site.owner = d.database.dsn(d.database.super, demoProtected)
	return site, nil
}

// serveAudited runs the gateway on any free port until the returned function is called. Its only dataset is the audit's.
func (d *demo) serveAudited(ctx context.Context, dataset string) (stop func() error, err error) {
	scratch, err := os.MkdirTemp("", "noisegate-audit-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(scratch) // the key is read once
	if err := d.configure(scratch); err != nil {
		return nil, err
	}
	protected := d.config.Datasets[demoDataset]
	protected.Quantum = 0 // when answers leave is nobody's secret here
	d.config.Datasets = map[string]*config.Dataset{dataset: protected}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	d.url = "http://" + reachable(listener.Addr())
	ctx, cancel := context.WithCancel(ctx)
	g, err := server.Start(ctx, d.config, nil, slog.New(slog.NewTextHandler(d.Err, &slog.HandlerOptions{Level: slog.LevelError})))
	if err != nil {
		cancel()
		return nil, errors.Join(err, listener.Close())
	}
	served := make(chan error, 1)
	go func() { served <- g.Serve(ctx, server.Listeners{HTTP: listener}) }()
	return func() error {
		cancel()
		defer g.Close()
		return <-served
	}, nil
}

// auditScratch is a separate schema in the protected database.
type auditScratch struct {
	owner  config.DSN
	schema string
	units  int // of either table in each group, without the one that makes the difference
}

// newAuditScratch makes two tables and has a steward put a policy for them in force.
func newAuditScratch(ctx context.Context, site *auditSite, units int) (_ *auditScratch, err error) {
	s := &auditScratch{owner: site.owner, schema: "noisegate_audit_" + strings.ToLower(rand.Text()[:10]), units: units}
	before, version, err := site.steward.Policy(ctx, site.dataset)
	var none *api.Problem
	switch {
	case errors.As(err, &none) && none.Status == 404:
		version = 0
	case err != nil:
		return nil, err
	case !bytes.HasPrefix(before, []byte(auditMark)):
		return nil, usage(fmt.Errorf("dataset %s has a policy that no audit made: give --dataset one of its own", site.dataset))
	}
	if err := s.execute(ctx, s.tables()); err != nil {
		return nil, fmt.Errorf("cannot create the scratch tables: %w", err)
	}
	if _, err := site.steward.SetPolicy(ctx, site.dataset, []byte(s.policy(site.dataset)), version); err != nil {
		return nil, errors.Join(err, s.drop(ctx))
	}
	return s, nil
}

// tables is SQL for both tables: groups of the ranks 1, 2, ..., and in one of them also rank 0. Rank 0 has the largest value that
// the policy admits, so that it weighs as much as a unit can.
func (s *auditScratch) tables() string {
	return strings.NewReplacer("$schema", s.schema, "$with", s.schema+"."+withUnit, "$out", s.schema+"."+withoutUnit,
		"$keys", fmt.Sprint(auditKeys), "$last", fmt.Sprint(auditKeys*(s.units+1)-1)).Replace(`
		CREATE SCHEMA $schema;
		CREATE TABLE $out (id int PRIMARY KEY, k int NOT NULL, s int NOT NULL, rank int NOT NULL, v int NOT NULL);
		INSERT INTO $out SELECT n, n % $keys, n % $keys, n / $keys, 100 FROM generate_series($keys, $last) AS n;
		CREATE INDEX ON $out (rank);
		CREATE TABLE $with (LIKE $out INCLUDING ALL);
		INSERT INTO $with SELECT n, n, n, 0, 100 FROM generate_series(0, $keys - 1) AS n UNION ALL SELECT * FROM $out;
		GRANT USAGE ON SCHEMA $schema TO noisegate_reader;
		GRANT SELECT ON $with, $out TO noisegate_reader;
		ANALYZE $with, $out;`)
}

// policy lets analysts ask about both tables without an end in sight: they are about nobody.
func (s *auditScratch) policy(dataset string) string {
	keys := make([]string, auditKeys)
	for i := range keys {
		keys[i] = fmt.Sprint(i)
	}
	table := "{unit: {row: id}, columns: {id: {expose: false}, k: {domain: [" + strings.Join(keys, ",") +
		"]}, s: {keys: private}, v: {bounds: [0, 100]}}}"
	return auditMark + fmt.Sprintf(`version: 1
dataset: %[1]s
tables:
  %[2]s.%[3]s: %[5]s
  %[2]s.%[4]s: %[5]s
budgets:
  - {dataset: true, form: approx, epsilon: 1000000, delta: 1e-3}
  - {group: analysts, per: analyst, form: approx, epsilon: 1000000, delta: 1e-3}
`, dataset, s.schema, withUnit, withoutUnit, table)
}

func (s *auditScratch) drop(ctx context.Context) error {
	return s.execute(context.WithoutCancel(ctx), "DROP SCHEMA "+s.schema+" CASCADE")
}

// execute runs statements in one transaction.
func (s *auditScratch) execute(ctx context.Context, sql string) error {
	conn, err := pgx.Connect(ctx, s.owner.Reveal())
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	_, err = conn.Exec(ctx, sql)
	return err
}
