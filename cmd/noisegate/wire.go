package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"noisegate/budget/journal"
	"noisegate/budget/pgledger"
	"noisegate/catalog"
	"noisegate/gateway"
	"noisegate/gateway/auth"
	"noisegate/gateway/httpapi"
	"noisegate/gateway/labels"
	"noisegate/gateway/pgexec"
	"noisegate/internal/fault"
	"noisegate/internal/pgrole"
	"noisegate/mechanisms"
	"noisegate/migrations"
	"noisegate/pate"
)

const (
	calculatorConnections = 16
	calculatorTimeout     = 10 * time.Second
	storeConnections      = 4
	// startPatience bounds the checks at the start: a gateway that cannot reach its databases should say so, not wait.
	startPatience = 30 * time.Second
	// An open charge that is older than the longest query can run belongs to a gateway that died.
	abandonedGrace = 2 * time.Minute
	// How often a running gateway looks for policies that others applied, compares them with the live schemas, and looks whether the control
	// database still has the schema that this binary was made for.
	policyInterval = 3 * time.Second
	// How often it looks again whether roles and servers are safe.
	safetyInterval = time.Minute
)

// gatewayProcess is everything that `serve` runs, put together.
type gatewayProcess struct {
	config  *Config
	handler http.Handler
	service *gateway.Service
	control *pgxpool.Pool
	ledger  *pgledger.Ledger
	anchor  *journal.Anchor // nil: none
	// How far the ledger was verified, for the next start (nil: nowhere to keep it), and when the whole was; zero: it is due.
	checkpoints *journal.Checkpoints
	wholeProof  time.Time
	policies    *gateway.LivePolicies
	ensembles   *pate.Store
	tls         *tls.Config // nil: plain HTTP
	log         *slog.Logger
	closers     []func()
}

// startGateway connects to all databases and refuses what is unsafe: an old schema, a ledger that could forget, roles that
// may do more than they should.
func startGateway(ctx context.Context, config *Config, log *slog.Logger) (_ *gatewayProcess, err error) {
	g := &gatewayProcess{config: config, log: log}
	defer func() {
		if err != nil {
			g.close()
		}
	}()
	limited, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	if g.tls, err = tlsConfig(config.HTTP); err != nil {
		return nil, usage(err)
	}
	store, err := g.openControl(limited)
	if err != nil {
		return nil, err
	}
	if err := g.prove(ctx); err != nil {
		return nil, err
	}
	databases, err := g.openDatasets(limited)
	if err != nil {
		return nil, err
	}
	if err := g.checkSafety(limited); err != nil {
		return nil, err
	}
	if err := g.nameServers(limited, databases); err != nil {
		return nil, err
	}
	g.policies = gateway.NewLivePolicies(store, asSchemas(databases), log)
	g.policies.Refresh(limited)
	if err := g.assemble(ctx, databases); err != nil {
		return nil, err
	}
	return g, nil
}

// openControl opens the ledger and the stores of policies and of ensembles.
func (g *gatewayProcess) openControl(ctx context.Context) (*catalog.Store, error) {
	pool, err := openPool(ctx, g.config.Control.DSN)
	if err != nil {
		return nil, err
	}
	g.control = pool
	g.closers = append(g.closers, pool.Close)
	if err := checkSchema(ctx, pool); err != nil {
		return nil, err
	}
	if g.ledger, err = pgledger.Open(ctx, g.config.Control.DSN.Reveal()); err != nil {
		return nil, err
	}
	g.closers = append(g.closers, g.ledger.Close)
	if g.ensembles, err = pate.Open(ctx, g.config.Control.DSN.Reveal()); err != nil {
		return nil, err
	}
	g.closers = append(g.closers, g.ensembles.Close)
	return catalog.NewStore(pool), nil
}

func checkSchema(ctx context.Context, pool *pgxpool.Pool) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("cannot connect to the control database: %w", err)
	}
	defer conn.Release()
	return migrations.Check(ctx, conn.Conn())
}

func (g *gatewayProcess) openDatasets(ctx context.Context) (map[string]*pgexec.Database, error) {
	databases := map[string]*pgexec.Database{}
	for _, name := range sortedKeys(g.config.Datasets) {
		c := g.config.Datasets[name]
		database, err := pgexec.Open(ctx, pgexec.Config{DSN: c.DSN.Reveal(), Connections: c.Connections, StatementTimeout: c.timeout(),
			Versions: g.config.Versions})
		if err != nil {
			return nil, err
		}
		g.closers = append(g.closers, database.Close)
		databases[name] = database
		g.log.InfoContext(ctx, "answers leave at quantum·2ᵏ, and fail after the effective timeout", "dataset", name, "quantum",
			c.Quantum.String(),
			"statement_timeout", c.StatementTimeout.String(), "effective_timeout", c.timeout().String())
	}
	return databases, nil
}

// checkSafety refuses a server that may forget what it committed, servers of versions that were not tested, and roles
// that may do more than their task needs, by name. Its errors are data/unavailable when a database did not answer.
func (g *gatewayProcess) checkSafety(ctx context.Context) error {
	if err := g.ledger.CheckSafety(ctx); err != nil {
		return err
	}
	ledger := pgrole.Expectation{Task: pgrole.Ledger, AppendOnly: []string{"noisegate.entry", "noisegate.policy", "noisegate.pate_answer",
		"noisegate.pate_epsilon"}}
	if err := g.checkServer(ctx, g.config.Control.DSN, ledger); err != nil {
		return fmt.Errorf("control database: %w", err)
	}
	for _, name := range sortedKeys(g.config.Datasets) {
		if err := g.checkServer(ctx, g.config.Datasets[name].DSN, pgrole.Expectation{Task: pgrole.Reader}); err != nil {
			return fmt.Errorf("dataset %s: %w", name, err)
		}
	}
	return nil
}

// checkServer refuses a server of a version that was not tested, and a role that may do more than its task needs.
func (g *gatewayProcess) checkServer(ctx context.Context, dsn DSN, want pgrole.Expectation) error {
	conn, err := pgx.Connect(ctx, dsn.Reveal())
	if err != nil {
		return fault.DataUnavailable(err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := g.config.Versions.Refuse(serverVersion(conn)); err != nil {
		return err
	}
	err = pgrole.Check(ctx, conn, want)
	if conn.IsClosed() {
		return fault.DataUnavailable(err)
	}
	return err
}

// serverVersion is the server's version in its own words, as it told them when the connection began.
func serverVersion(conn *pgx.Conn) string { return conn.PgConn().ParameterStatus("server_version") }

// nameServers logs what each database runs on.
func (g *gatewayProcess) nameServers(ctx context.Context, databases map[string]*pgexec.Database) error {
	conn, err := g.control.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("cannot connect to the control database: %w", err)
	}
	defer conn.Release()
	g.log.InfoContext(ctx, "control database", "postgresql", serverVersion(conn.Conn()))
	for _, name := range sortedKeys(databases) {
		version, err := databases[name].ServerVersion(ctx)
		if err != nil {
			return fmt.Errorf("dataset %s: %w", name, err)
		}
		g.log.InfoContext(ctx, "protected database", "dataset", name, "postgresql", version)
	}
	return nil
}

// assemble puts service and HTTP on top of the databases.
func (g *gatewayProcess) assemble(ctx context.Context, databases map[string]*pgexec.Database) error {
	calculator, err := pgexec.NewCalculator(ctx, pgexec.Config{DSN: g.config.Control.DSN.Reveal(),
		Connections: calculatorConnections, StatementTimeout: calculatorTimeout, Versions: g.config.Versions})
	if err != nil {
		return err
	}
	g.closers = append(g.closers, calculator.Close)
	datasets, votes := map[string]gateway.Dataset{}, map[string]labels.VoteTables{}
	for name, database := range databases {
		stewards, err := g.config.Datasets[name].stewards()
		if err != nil {
			return usage(fmt.Errorf("%s: %w", datasetKey(name, "steward_keys_file"), err))
		}
		datasets[name] = gateway.Dataset{Data: database, Stewards: stewards, Quantum: g.config.Datasets[name].Quantum,
			Timeout: g.config.Datasets[name].timeout()}
		votes[name] = database
	}
	signer, err := g.config.Control.signer()
	if err != nil {
		return usage(err)
	}
	fairness, err := g.config.fairness()
	if err != nil {
		return usage(err)
	}
	g.log.InfoContext(ctx, "requests that cost work share places", "places", fairness.Places, "per_analyst", fairness.PerAnalyst)
	g.service, err = gateway.New(gateway.Config{
		Ledger: g.ledger, Shares: g.ledger, Policies: g.policies, Datasets: datasets, Calculator: calculator, Sampler: mechanisms.NewSampler,
		NewID: gateway.NewULID, Clock: gateway.SystemClock{}, Signer: signer, Abandoned: g.config.abandoned(), Fairness: fairness, Log: g.log,
	})
	if err != nil {
		return err
	}
	seller, err := labels.New(labels.Config{Gateway: g.service, Ledger: g.ledger, Ensembles: g.ensembles, Votes: votes,
		Sampler: mechanisms.NewSampler, NewID: gateway.NewULID, Clock: gateway.SystemClock{}})
	if err != nil {
		return err
	}
	keys := g.config.Auth
	verifier, err := auth.New(ctx, auth.Config{Issuer: keys.Issuer, Audience: keys.Audience, Keys: auth.Keys(keys.Keys),
		Claims: auth.Claims(keys.Claims), Log: g.log})
	if err != nil {
		return usage(err)
	}
	g.handler, err = httpapi.New(httpapi.Config{Service: g.service, Labels: seller, Verifier: verifier, Log: g.log})
	return err
}

func asSchemas(databases map[string]*pgexec.Database) map[string]gateway.Schemas {
	schemas := map[string]gateway.Schemas{}
	for name, database := range databases {
		schemas[name] = database
	}
	return schemas
}

// serve answers on the listener until the context ends. Running requests are finished first.
func (g *gatewayProcess) serve(ctx context.Context, listener net.Listener) error {
	listener = httpapi.Bounded(listener, clientDescriptors())
	if g.tls != nil {
		listener = tls.NewListener(listener, g.tls)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return httpapi.Serve(ctx, listener, g.handler, g.log) })
	group.Go(func() error { g.service.Sweep(ctx); return nil })
	group.Go(func() error { g.keepAnchor(ctx); return nil })
	group.Go(func() error {
		return every(ctx, policyInterval, func() error { g.policies.Refresh(ctx); return g.sameSchema(ctx) })
	})
	group.Go(func() error { return g.keepProving(ctx) })
	group.Go(func() error { return every(ctx, safetyInterval, func() error { return g.stillSafe(ctx) }) })
	return group.Wait()
}

// every does work at each tick until the context ends or the work fails.
func every(ctx context.Context, interval time.Duration, work func() error) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			if err := work(); err != nil {
				return err
			}
		}
	}
}

// sameSchema ends the gateway when somebody migrated the control database under it. A database that does not answer is no reason.
func (g *gatewayProcess) sameSchema(ctx context.Context) error {
	err := checkSchema(ctx, g.control)
	for _, difference := range []error{migrations.ErrNewer, migrations.ErrOlder, migrations.ErrEdited} {
		if errors.Is(err, difference) {
			return err
		}
	}
	return nil
}

// stillSafe ends the gateway when a server or a role became unsafe under it. A database that does not answer is no
// reason: queries are refused by themselves.
func (g *gatewayProcess) stillSafe(ctx context.Context) error {
	err := g.checkSafety(ctx)
	if err == nil || ctx.Err() != nil || fault.CodeOf(err) == fault.CodeDataUnavailable {
		return nil
	}
	return fmt.Errorf("not safe any more: %w", err)
}

// Close ends all connections.
func (g *gatewayProcess) close() {
	for i := len(g.closers) - 1; i >= 0; i-- {
		g.closers[i]()
	}
}

// abandoned is the age from which an open charge cannot belong to a running query.
func (c *Config) abandoned() time.Duration {
	longest := time.Duration(0)
	for _, d := range c.Datasets {
		longest = max(longest, d.StatementTimeout)
	}
	return longest + abandonedGrace
}

// fairness gives out fewer places than the dataset with the fewest connections has: whoever has a place has a
// connection, and does not wait for one that another analyst holds, which becomes free when work ends and not at a
// boundary. One connection is left for checks of the gateway's own.
func (c *Config) fairness() (gateway.Fairness, error) {
	f := gateway.Fairness(c.Limits)
	for _, d := range c.Datasets {
		f.Places = min(f.Places, max(d.Connections-1, 1))
	}
	return f.Complete()
}

// openPool prepares a few connections for policies and checks.
func openPool(ctx context.Context, dsn DSN) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(dsn.Reveal())
	if err != nil {
		return nil, errors.New("a connection string cannot be read") // the cause may quote a password
	}
	config.MaxConns = storeConnections
	return pgxpool.NewWithConfig(ctx, config)
}

func tlsConfig(c HTTPConfig) (*tls.Config, error) {
	if c.TLSCertFile == "" {
		return nil, nil
	}
	certificate, err := tls.LoadX509KeyPair(c.TLSCertFile, c.TLSKeyFile)
	if err != nil {
		return nil, fmt.Errorf("http.tls_cert_file, http.tls_key_file: %w", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}, nil
}
