// Package gatewaytest assembles a whole gateway for tests: ledger and policies in one PostgreSQL database, protected
// tables in another, everything real but the tokens.
//
// It knows how the parts fit together, as cmd/noisegate does. It does not know what the tests are about, nor HTTP.
package gatewaytest

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"noisegate.example/budget"
	"noisegate.example/budget/journal"
	"noisegate.example/budget/pgledger"
	"noisegate.example/catalog"
	"noisegate.example/gateway"
	"noisegate.example/gateway/collect"
	"noisegate.example/gateway/fit"
	"noisegate.example/gateway/labels"
	"noisegate.example/gateway/pgexec"
	"noisegate.example/internal/pgserver"
	"noisegate.example/internal/pgtest"
	"noisegate.example/internal/randomtest"
	"noisegate.example/mechanisms"
	"noisegate.example/pate"
)

// Dataset is the name of the one dataset.
const Dataset = "census"

// DDL makes the protected tables: 100 people, 60 of them in the north, and visits of 20 of them.
const DDL = `
CREATE TABLE people (id int PRIMARY KEY, region text, age int NOT NULL, income numeric, secret text);
INSERT INTO people SELECT g, CASE WHEN g <= 60 THEN 'north' ELSE 'south' END, 20 + g % 50, g * 100, 'canary-' || g FROM generate_series(1, 100) g;
CREATE TABLE visits (person int REFERENCES people, shop text, amount int);
INSERT INTO visits SELECT g % 20 + 1, 'shop' || g % 3, g % 10 FROM generate_series(1, 100) g;`

// Policy is the policy that the gateway starts with.
const Policy = `version: 1
dataset: census
neighbours: add-remove
tables:
  people:
    unit: {row: id}
    columns:
      age:    {bounds: [0, 100]}
      income: {bounds: [0, 10000], step: 100}
      region: {domain: [north, south, west]}
      secret: {expose: false}
  visits:
    unit: {column: person}
    max_rows: 5
    max_groups: 2
    columns:
      amount: {bounds: [0, 10]}
      shop:   {keys: private}
budgets:
  - {dataset: true, form: approx, epsilon: 100, delta: 1e-6}
  - {group: analysts, per: analyst, form: approx, epsilon: 10, delta: 1e-7, max_epsilon_per_query: 5}
  - {group: ml, per: analyst, form: approx, epsilon: 20, delta: 1e-6}
  - {analyst: bi, replay_only: true}
`

// Gateway is a service and what it stands on.
type Gateway struct {
	*gateway.Service
	Labels    *labels.Service
	Fit       *fit.Service
	Collect   *collect.Service
	Ledger    *pgledger.Ledger
	Policies  *gateway.LivePolicies
	Ensembles *pate.Store
	Control   *pgtest.ControlDatabase   // of New
	Protected *pgtest.ProtectedDatabase // of New

	closers []func()
}

// Options change what a test wants otherwise.
type Options struct {
	Quantum          time.Duration
	StatementTimeout time.Duration // 0: 20 s
	Connections      int           // to the protected database; 0: 8
	Fairness         gateway.Fairness
	Log              *slog.Logger               // nil: discarded
	Stewards         *gateway.Stewards          // keys of stewards; nil: none
	Sampler          func() *mechanisms.Sampler // nil: of the operating system; [New]: the same in each run
	Change           func(*gateway.Config)      // nil, or puts something else in place of a part, such as one that fails
}

func (o Options) complete() Options {
	if o.StatementTimeout == 0 {
		o.StatementTimeout = 20 * time.Second
	}
	if o.Connections == 0 {
		o.Connections = 8
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Sampler == nil {
		o.Sampler = mechanisms.NewSampler
	}
	return o
}

// Server starts a PostgreSQL that keeps what it commits, as the ledger demands; the server that other tests share does not.
// The caller stops it.
func Server(ctx context.Context) (*pgserver.Server, error) {
	programs, err := pgtest.Programs(ctx)
	if err != nil {
		return nil, err
	}
	return pgserver.Start(ctx, pgserver.Options{Programs: programs, Cached: true, Memory: true,
		Settings: map[string]string{"fsync": "on", "full_page_writes": "on"}})
}

// New assembles a gateway with [DDL] and [Policy], its control database on a server of [Server]; it is taken down when the
// test ends.
func New(t testing.TB, server *pgserver.Server, o Options) *Gateway {
	t.Helper()
	if o.Sampler == nil {
		var drawn atomic.Int64
		o.Sampler = func() *mechanisms.Sampler {
			return mechanisms.NewSamplerFrom(randomtest.Source(t.Name(), strconv.FormatInt(drawn.Add(1), 10)))
		}
	}
	control, protected := pgtest.On(t, server), pgtest.Protected(t, DDL)
	g, err := Assemble(t.Context(), Databases{Ledger: control.LedgerDSN, Reader: protected.ReaderDSN,
		Prepare: protected.As("noisegate_prepare")}, o)
	if err != nil {
		t.Fatal(err, errors.Unwrap(err))
	}
	t.Cleanup(g.Close)
	g.Control, g.Protected = control, protected
	if _, err := g.SetPolicy(t.Context(), gateway.PolicyChange{Dataset: Dataset, By: "sam", Text: []byte(Policy)}); err != nil {
		t.Fatal(err, errors.Unwrap(err))
	}
	return g
}

// Databases are what a gateway connects to.
type Databases struct {
	Ledger string // DSN of the control database, for its ledger's role
	Reader string // DSN of the protected database, for the reader's role
	// DSN of the protected database, for the role that prepares; "": the gateway prepares nothing. The reader is noisegate_reader.
	Prepare string
}

// Assemble puts a gateway together over databases that are ready. The caller closes it.
func Assemble(ctx context.Context, d Databases, o Options) (_ *Gateway, err error) {
	o = o.complete()
	g := &Gateway{}
	defer func() {
		if err != nil {
			g.Close()
		}
	}()
	if g.Ledger, err = pgledger.Open(ctx, d.Ledger); err != nil {
		return nil, err
	}
	g.closers = append(g.closers, g.Ledger.Close)
	data, err := pgexec.Open(ctx, pgexec.Config{DSN: d.Reader, Connections: o.Connections, StatementTimeout: o.StatementTimeout,
		AcquireTimeout: 5 * time.Second, TrialTime: time.Minute})
	if err != nil {
		return nil, err
	}
	g.closers = append(g.closers, data.Close)
	calculator, err := pgexec.NewCalculator(ctx, pgexec.Config{DSN: d.Ledger, Connections: 4, StatementTimeout: 5 * time.Second})
	if err != nil {
		return nil, err
	}
	g.closers = append(g.closers, calculator.Close)
	pool, err := pgxpool.New(ctx, d.Ledger)
	if err != nil {
		return nil, err
	}
	g.closers = append(g.closers, pool.Close)
	if g.Ensembles, err = pate.Open(ctx, d.Ledger); err != nil {
		return nil, err
	}
	g.closers = append(g.closers, g.Ensembles.Close)
	store := catalog.NewStore(pool, gateway.PolicyChain(g.Ledger, func(string) journal.StewardKeys { return o.Stewards.Keys() }))
	g.Policies = gateway.NewLivePolicies(store, map[string]gateway.Schemas{Dataset: data}, o.Log)
	_ = g.Policies.Refresh(ctx) // what cannot be read is logged, and questions about it are refused
	parts := gateway.Config{
		Ledger: g.Ledger, Values: g.Ledger, InForce: g.Ledger,
		Policies: g.Policies, Datasets: map[string]gateway.Dataset{Dataset: {Data: data, Copies: data, ListTime: time.Minute,
			Stewards: o.Stewards, Quantum: o.Quantum,
			Timeout: gateway.EffectiveTimeout(o.Quantum, o.StatementTimeout)}},
		Calculator: calculator, Sampler: o.Sampler, NewID: gateway.NewULID, Clock: gateway.SystemClock{},
		Abandoned: time.Minute, Fairness: o.Fairness, Log: o.Log,
	}
	if d.Prepare != "" {
		dataset := parts.Datasets[Dataset]
		dataset.Preparer = pgexec.PrepareConfig{DSN: d.Prepare, Reader: "noisegate_reader", Seed: func() int64 { return 1 }}
		parts.Datasets[Dataset] = dataset
	}
	if o.Change != nil {
		o.Change(&parts)
	}
	if g.Service, err = gateway.New(parts); err != nil {
		return nil, err
	}
	g.Labels, err = labels.New(labels.Config{Gateway: g.Service, Ledger: parts.Ledger, Ensembles: g.Ensembles,
		Votes: map[string]labels.VoteTables{Dataset: data}})
	if err != nil {
		return nil, err
	}
	g.Fit = fit.New(g.Service, map[string]fit.Data{Dataset: data})
	g.Collect, err = collect.New(g.Service, collect.NewStore(pool))
	return g, err
}

// Close ends the gateway's connections.
func (g *Gateway) Close() {
	for _, end := range slices.Backward(g.closers) {
		end()
	}
}

// Entries counts the lines of the ledger's journal that are about accounts and charges: not those of what is in force.
func (g *Gateway) Entries(t testing.TB) int {
	t.Helper()
	return len(slices.DeleteFunc(g.journal(t), func(e budget.Entry) bool {
		return e.Kind == budget.EntryPolicy || e.Kind == budget.EntryFree || e.Kind == budget.EntryKeys
	}))
}

// Charges counts the charges that were reserved, whatever became of them.
func (g *Gateway) Charges(t testing.TB) int {
	t.Helper()
	return len(slices.DeleteFunc(g.journal(t), func(e budget.Entry) bool { return e.Kind != budget.EntryReserve }))
}

func (g *Gateway) journal(t testing.TB) []budget.Entry {
	t.Helper()
	entries, err := g.Ledger.Entries(t.Context(), budget.Page{Limit: 1000})
	if err != nil {
		t.Fatal(err, errors.Unwrap(err))
	}
	return entries
}
