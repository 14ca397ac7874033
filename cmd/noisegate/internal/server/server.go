// Package server is a running gateway: it connects to the databases of a configuration, refuses what is unsafe, puts
// service and HTTP on top, and looks at ledger, policies and roles while it serves.
//
// It knows how the other packages fit together. It does not know SQL, noise or budgets, nor the command line.
package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"noisegate.example/budget/journal"
	"noisegate.example/budget/pgledger"
	"noisegate.example/catalog"
	"noisegate.example/cmd/noisegate/internal/config"
	"noisegate.example/cmd/noisegate/internal/metrics"
	"noisegate.example/gateway"
	"noisegate.example/gateway/auth"
	"noisegate.example/gateway/collect"
	"noisegate.example/gateway/fit"
	"noisegate.example/gateway/httpapi"
	"noisegate.example/gateway/labels"
	"noisegate.example/gateway/pgexec"
	"noisegate.example/gateway/pgwire"
	"noisegate.example/gateway/twin"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/pgrole"
	"noisegate.example/mechanisms"
	"noisegate.example/migrations"
	"noisegate.example/pate"
)

const (
	calculatorConnections = 16
	calculatorTimeout     = 10 * time.Second
	storeConnections      = 4
	// startPatience bounds the checks at the start: a gateway that cannot reach its databases should say so, not wait.
	startPatience = 30 * time.Second
	// How often a running gateway looks for policies that others applied, compares them with the live schemas, and looks whether the control
	// database still has the schema that this binary was made for.
	policyInterval = 3 * time.Second
	// How often it looks again whether roles and servers are safe.
	safetyInterval = time.Minute
)

// Server is everything that `serve` runs, put together.
type Server struct {
	config  *config.Config
	handler http.Handler
	wire    *pgwire.Server
	service *gateway.Service
	control *pgxpool.Pool
	ledger  *pgledger.Ledger
	anchor  *journal.Anchor // nil: none
	// How far the ledger was verified, for the next start (nil: nowhere to keep it), and when the whole was; zero: it is due.
	checkpoints *journal.Checkpoints
	wholeProof  time.Time
	policies    *gateway.LivePolicies
	stewards    map[string]*gateway.Stewards // of each dataset
	unentered   unentered
	signer      *journal.Signer // of receipts; nil: answers carry none
	ensembles   *pate.Store
	metrics     *metrics.Metrics
	proved      time.Time   // at the start
	tls         *tls.Config // nil: plain HTTP
	secured     []*secured
	verifier    *auth.Verifier
	codes       *auth.Codes // nil: nobody logs in with one
	log         *slog.Logger
	closers     []func()

	warned    atomic.Bool // of standbys that follow asynchronously
	reporting sync.Mutex
	reported  map[string]string // datasets that are broken or held, as the log has them
}

// Start connects to all databases and refuses what is unsafe: an old schema, a ledger that could forget, roles that
// may do more than they should. Codes are one-time codes for the console; nil: there are none.
func Start(ctx context.Context, c *config.Config, codes *auth.Codes, log *slog.Logger) (_ *Server, err error) {
	g := &Server{config: c, codes: codes, log: log}
	defer func() {
		if err != nil {
			g.Close()
		}
	}()
	limited, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	if g.tls, err = g.secure("http.tls_cert_file", c.HTTP.TLS); err != nil {
		return nil, err
	}
	if err := g.readKeys(); err != nil {
		return nil, err
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
	_ = g.policies.Refresh(limited) // the log says so, and below which datasets have none
	g.enterInForce(limited)
	if err := g.assemble(ctx, databases); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(c.Datasets)) {
		if _, err := g.policies.Current(name); err != nil {
			log.WarnContext(ctx, "queries will be refused until a policy is applied", "dataset", name, "code", string(fault.CodeOf(err)))
		}
	}
	return g, nil
}

// openControl opens the ledger and the stores of policies and of ensembles.
func (g *Server) openControl(ctx context.Context) (*catalog.Store, error) {
	pool, err := OpenPool(ctx, g.config.Control.DSN)
	if err != nil {
		return nil, err
	}
	g.control = pool
	g.closers = append(g.closers, pool.Close)
	if err := CheckSchema(ctx, pool); err != nil {
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
	return catalog.NewStore(pool, gateway.PolicyChain(g.ledger, func(dataset string) journal.StewardKeys {
		return g.stewards[dataset].Keys()
	})), nil
}

// CheckSchema refuses a control database whose schema is not the one that this binary was made for.
func CheckSchema(ctx context.Context, pool *pgxpool.Pool) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("cannot connect to the control database: %w", err)
	}
	defer conn.Release()
	return migrations.Check(ctx, conn.Conn())
}

func (g *Server) openDatasets(ctx context.Context) (map[string]*pgexec.Database, error) {
	databases := map[string]*pgexec.Database{}
	for _, name := range slices.Sorted(maps.Keys(g.config.Datasets)) {
		c := g.config.Datasets[name]
		database, err := pgexec.Open(ctx, pgexec.Config{DSN: c.DSN.Reveal(), Connections: c.Connections, StatementTimeout: c.Timeout(),
			TrialTime: c.TrialTime, Versions: g.config.Versions})
		if err != nil {
			return nil, err
		}
		g.closers = append(g.closers, database.Close)
		databases[name] = database
		g.log.InfoContext(ctx, "answers leave at quantum·2ᵏ, and fail after the effective timeout", "dataset", name, "quantum",
			c.Quantum.String(),
			"statement_timeout", c.StatementTimeout.String(), "effective_timeout", c.Timeout().String())
	}
	return databases, nil
}

// checkSafety refuses a server that may forget what it committed, servers of versions that were not tested, and roles
// that may do more than their task needs, by name. Its errors are data/unavailable when a database did not answer.
func (g *Server) checkSafety(ctx context.Context) error {
	if err := g.ledger.CheckSafety(ctx); err != nil {
		return err
	}
	if err := g.checkReplication(ctx); err != nil {
		return err
	}
	if err := g.checkServer(ctx, g.config.Control.DSN, LedgerRole()); err != nil {
		return fmt.Errorf("control database: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(g.config.Datasets)) {
		if err := g.checkServer(ctx, g.config.Datasets[name].DSN, pgrole.Expectation{Task: pgrole.Reader}); err != nil {
			return fmt.Errorf("dataset %s: %w", name, err)
		}
	}
	return nil
}

// checkReplication refuses a DSN of several hosts if the control database has no synchronous standby: a failover could lose what was
// committed last. It warns of standbys that follow asynchronously. Where control.replication is async-accepted it does neither.
func (g *Server) checkReplication(ctx context.Context) error {
	if g.config.Control.Replication == config.AsyncAccepted {
		return nil
	}
	several, err := SeveralHosts(g.config.Control.DSN)
	if err != nil {
		return err
	}
	var names string
	var senders int
	if err := g.control.QueryRow(ctx, `SELECT pg_catalog.current_setting('synchronous_standby_names'), pg_catalog.count(*)
		FROM pg_catalog.pg_stat_replication`).Scan(&names, &senders); err != nil {
		return fault.DataUnavailable(err)
	}
	switch {
	case names != "":
	case several:
		return config.Wrong(errors.New("control.dsn names several hosts, and synchronous_standby_names of the control database is empty: what " +
			"was committed last is lost when a standby takes over. Set it, or say control.replication: " + config.AsyncAccepted +
			" (datasets are then held after each failover that loses something)"))
	case senders > 0 && !g.warned.Swap(true):
		g.log.WarnContext(ctx, "standbys of the control database follow asynchronously: if one takes over, datasets are held until "+
			"what it lacks is booked again. Set synchronous_standby_names", "standbys", senders)
	}
	return nil
}

// SeveralHosts reports whether a connection string names more than one server.
func SeveralHosts(dsn config.DSN) (bool, error) {
	parsed, err := pgx.ParseConfig(dsn.Reveal())
	if err != nil {
		return false, errors.New("a connection string cannot be read") // the cause may quote a password
	}
	return slices.ContainsFunc(parsed.Fallbacks, func(f *pgconn.FallbackConfig) bool {
		return f.Host != parsed.Host || f.Port != parsed.Port
	}), nil
}

// ControlConnections is how many connections a gateway opens to the control database at most: of the calculator, of policies and checks, of
// the pools of ledger and ensembles, which have a library's size, and one to look whether the ledger answers.
func ControlConnections() int {
	return calculatorConnections + storeConnections + 2*max(4, runtime.NumCPU()) + 1
}

// LedgerRole is what the role that serves from the control database is for.
func LedgerRole() pgrole.Expectation {
	return pgrole.Expectation{Task: pgrole.Ledger, AppendOnly: []string{"noisegate.entry", "noisegate.policy", "noisegate.pate_answer",
		"noisegate.pate_epsilon", "noisegate.collector", "noisegate.collect_report"}}
}

// checkServer refuses a server of a version that was not tested, and a role that may do more than its task needs.
func (g *Server) checkServer(ctx context.Context, dsn config.DSN, want pgrole.Expectation) error {
	conn, err := pgx.Connect(ctx, dsn.Reveal())
	if err != nil {
		return fault.DataUnavailable(err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := g.config.Versions.Refuse(Version(conn)); err != nil {
		return err
	}
	err = pgrole.Check(ctx, conn, want)
	if conn.IsClosed() {
		return fault.DataUnavailable(err)
	}
	return err
}

// Version is the server's version in its own words, as it told them when the connection began.
func Version(conn *pgx.Conn) string { return conn.PgConn().ParameterStatus("server_version") }

// nameServers logs what each database runs on.
func (g *Server) nameServers(ctx context.Context, databases map[string]*pgexec.Database) error {
	conn, err := g.control.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("cannot connect to the control database: %w", err)
	}
	defer conn.Release()
	g.log.InfoContext(ctx, "control database", "postgresql", Version(conn.Conn()))
	for _, name := range slices.Sorted(maps.Keys(databases)) {
		version, err := databases[name].ServerVersion(ctx)
		if err != nil {
			return fmt.Errorf("dataset %s: %w", name, err)
		}
		g.log.InfoContext(ctx, "protected database", "dataset", name, "postgresql", version)
	}
	return nil
}

// assemble puts service and HTTP on top of the databases.
func (g *Server) assemble(ctx context.Context, databases map[string]*pgexec.Database) error {
	calculator, err := pgexec.NewCalculator(ctx, pgexec.Config{DSN: g.config.Control.DSN.Reveal(),
		Connections: calculatorConnections, StatementTimeout: calculatorTimeout, Versions: g.config.Versions})
	if err != nil {
		return err
	}
	g.closers = append(g.closers, calculator.Close)
	datasets, votes, rows := map[string]gateway.Dataset{}, map[string]labels.VoteTables{}, map[string]fit.Data{}
	for name, database := range databases {
		var preparer gateway.Preparer
		if !g.config.Datasets[name].PrepareDSN.IsZero() {
			if preparer, err = Preparer(g.config, name); err != nil {
				return config.Wrong(err)
			}
		}
		datasets[name] = gateway.Dataset{Data: database, Copies: database, Preparer: preparer, Stewards: g.stewards[name],
			Quantum: g.config.Datasets[name].Quantum, Timeout: g.config.Datasets[name].Timeout(), ListTime: g.config.Datasets[name].TrialTime}
		votes[name], rows[name] = database, database
	}
	fairness, err := g.config.Fairness()
	if err != nil {
		return err
	}
	g.log.InfoContext(ctx, "requests that cost work share places", "places", fairness.Places, "per_analyst", fairness.PerAnalyst)
	g.service, err = gateway.New(gateway.Config{
		Ledger: g.ledger, Values: g.ledger, InForce: g.ledger,
		Policies: g.policies, Datasets: datasets, Calculator: calculator, Sampler: mechanisms.NewSampler,
		NewID: gateway.NewULID, Clock: gateway.SystemClock{}, Signer: g.signer, Abandoned: g.config.Abandoned(), Fairness: fairness, Log: g.log,
		Answers: g.config.Memory.Answers,
	})
	if err != nil {
		return err
	}
	seller, err := labels.New(labels.Config{Gateway: g.service, Ledger: g.ledger, Ensembles: g.ensembles, Votes: votes})
	if err != nil {
		return err
	}
	fitter := fit.New(g.service, rows)
	collector, err := collect.New(g.service, collect.NewStore(g.control))
	if err != nil {
		return err
	}
	keys := g.config.Auth
	if g.verifier, err = auth.New(ctx, auth.Config{Issuer: keys.Issuer, Audience: keys.Audience, Keys: auth.Keys(keys.Keys),
		Claims: auth.Claims(keys.Claims), RevokedFile: keys.RevokedFile, MaxLife: keys.MaxTokenLife, Log: g.log}); err != nil {
		return config.Wrong(err)
	}
	if keys.RevokedFile != "" {
		g.log.InfoContext(ctx, "the list of revoked tokens was read", "auth.revoked_file", modified(keys.RevokedFile),
			"revoked", g.verifier.Revoked())
	}
	var provider *auth.Provider
	if console := keys.Console; console.ClientID != "" {
		if provider, err = auth.NewProvider(g.verifier, console.ClientID, console.Scopes, nil); err != nil {
			return config.Wrong(err)
		}
	}
	g.measure() //nolint:contextcheck // handlers have the context of their request
	//nolint:contextcheck // the same
	if g.handler, err = httpapi.New(httpapi.Config{Service: g.service, Labels: seller, Fit: fitter, Collect: collector, Verifier: g.verifier,
		Codes: g.codes, Provider: provider, Log: g.log, Observe: g.metrics.Request}); err != nil {
		return err
	}
	return g.openWire(ctx, fitter.Questions())
}

// openWire makes the door that speaks PostgreSQL's protocol.
func (g *Server) openWire(ctx context.Context, questions pgwire.Questions) (err error) {
	wire := pgwire.Config{Service: g.service, Questions: questions, Verifier: g.verifier, Sessions: g.config.Wire.Sessions,
		SessionsPerAnalyst: g.config.Wire.SessionsPerAnalyst, Idle: g.config.Wire.Idle,
		Issuer: providerOf(g.config.Auth), Log: g.log, Observe: g.metrics.Question}
	if wire.TLS, err = g.secure("wire.tls_cert_file", g.config.Wire.TLS); err != nil {
		return err
	}
	if wire.Catalog, err = g.openTwins(ctx); err != nil {
		return err
	}
	g.wire, err = pgwire.New(wire)
	return err
}

// providerOf is the identity provider that clients without a token are referred to. It is "" with the operator's secret key, which has
// none.
func providerOf(c config.Auth) string {
	if c.Keys.HS256File != "" {
		return ""
	}
	return c.Issuer
}

// Preparer is how tables of a dataset are prepared that has a prepare_dsn.
func Preparer(c *config.Config, dataset string) (pgexec.PrepareConfig, error) {
	reader, err := pgx.ParseConfig(c.Datasets[dataset].DSN.Reveal())
	if err != nil {
		return pgexec.PrepareConfig{}, errors.New("a connection string cannot be read") // the cause may quote a password
	}
	return pgexec.PrepareConfig{DSN: c.Datasets[dataset].PrepareDSN.Reveal(), Reader: reader.User, Versions: c.Versions,
		Seed: func() int64 { return int64(mechanisms.NewSampler().Uniform(1 << 63)) }}, nil
}

// openTwins opens the catalog twins; nil where no dataset has one.
func (g *Server) openTwins(ctx context.Context) (pgwire.Catalog, error) {
	dsns := map[string]string{}
	for name, dataset := range g.config.Datasets {
		if !dataset.CatalogDSN.IsZero() {
			dsns[name] = dataset.CatalogDSN.Reveal()
		}
	}
	if len(dsns) == 0 {
		return nil, nil
	}
	catalogs, err := twin.Open(ctx, twin.Config{DSNs: dsns, Policies: g.policies, Log: g.log})
	if err != nil {
		return nil, err
	}
	g.closers = append(g.closers, catalogs.Close)
	return catalogs, nil
}

func asSchemas(databases map[string]*pgexec.Database) map[string]gateway.Schemas {
	schemas := map[string]gateway.Schemas{}
	for name, database := range databases {
		schemas[name] = database
	}
	return schemas
}

// Listeners are where a gateway is spoken to.
type Listeners struct {
	HTTP  net.Listener
	Wire  net.Listener // PostgreSQL's protocol; nil: it is not spoken
	Admin net.Listener // for the gateway's operators; nil: nowhere
}

// Close closes the listeners.
func (l Listeners) Close() error {
	var all []error
	for _, listener := range []net.Listener{l.HTTP, l.Wire, l.Admin} {
		if listener != nil {
			all = append(all, listener.Close())
		}
	}
	return errors.Join(all...)
}

// Serve answers on the listeners until the context ends. Running requests are finished first.
func (g *Server) Serve(ctx context.Context, on Listeners) error {
	defer keepSpare()()
	connections := clientDescriptors()
	if on.Wire != nil {
		connections = max(connections/2, connections-g.wire.Connections())
	}
	listener := httpapi.Bounded(on.HTTP, connections)
	if g.tls != nil {
		listener = tls.NewListener(listener, g.tls)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return httpapi.Serve(ctx, listener, g.handler, g.log) })
	if on.Wire != nil {
		group.Go(func() error { return g.wire.Serve(ctx, on.Wire) })
	}
	if on.Admin != nil {
		host, _, _ := net.SplitHostPort(g.config.Admin.Listen) // which the configuration's check has split before
		handler := httpapi.Admin(g.service, g.metrics.Handler(), host)
		group.Go(func() error { return httpapi.ServeAdmin(ctx, on.Admin, handler, g.log) })
		group.Go(func() error { return g.keepMeasuring(ctx) })
	}
	group.Go(func() error { g.service.Sweep(ctx); return nil })
	group.Go(func() error { g.service.KeepReady(ctx); return nil })
	group.Go(func() error { g.service.KeepPreparing(ctx); return nil })
	group.Go(func() error { g.service.KeepJobs(ctx); return nil })
	group.Go(func() error { g.keepAnchor(ctx); return nil })
	group.Go(func() error { return g.keepAttending(ctx) })
	group.Go(func() error {
		return every(ctx, policyInterval, func() error {
			_ = g.policies.Refresh(ctx) // the log says so; the next tick tries again
			g.enterKeysAgain(ctx)
			return g.sameSchema(ctx)
		})
	})
	group.Go(func() error { return g.keepProving(ctx) })
	group.Go(func() error { return every(ctx, safetyInterval, func() error { return g.stillSafe(ctx) }) })
	defer g.signOff(ctx)
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
func (g *Server) sameSchema(ctx context.Context) error {
	err := CheckSchema(ctx, g.control)
	for _, difference := range []error{migrations.ErrNewer, migrations.ErrOlder, migrations.ErrEdited} {
		if errors.Is(err, difference) {
			return err
		}
	}
	return nil
}

// stillSafe ends the gateway when a server or a role became unsafe under it. A database that does not answer is no
// reason: queries are refused by themselves.
func (g *Server) stillSafe(ctx context.Context) error {
	err := g.checkSafety(ctx)
	if err == nil || ctx.Err() != nil || fault.CodeOf(err) == fault.CodeDataUnavailable {
		return nil
	}
	return fmt.Errorf("not safe any more: %w", err)
}

// Close ends all connections.
func (g *Server) Close() {
	for i := len(g.closers) - 1; i >= 0; i-- {
		g.closers[i]()
	}
}

// OpenPool prepares a few connections for policies and checks.
func OpenPool(ctx context.Context, dsn config.DSN) (*pgxpool.Pool, error) {
	parsed, err := pgxpool.ParseConfig(dsn.Reveal())
	if err != nil {
		return nil, errors.New("a connection string cannot be read") // the cause may quote a password
	}
	parsed.MaxConns = storeConnections
	return pgxpool.NewWithConfig(ctx, parsed)
}
