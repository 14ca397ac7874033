// Package gatewaytest assembles a whole gateway for tests: ledger and policies in one PostgreSQL database, protected
// tables in another, everything real but the tokens.
//
// It knows how the parts fit together, as cmd/noisegate does. It does not know what the tests are about, nor HTTP.
package gatewaytest

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"noisegate/budget"
	"noisegate/catalog"
	"noisegate/gateway"
	"noisegate/gateway/pgexec"
	"noisegate/internal/pgserver"
	"noisegate/internal/pgtest"
	"noisegate/mechanisms"
	"noisegate/pate"
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
	Ledger    *budget.Postgres
	Policies  *gateway.LivePolicies
	Ensembles *pate.Store
	Control   *pgtest.ControlDatabase
	Protected *pgtest.ProtectedDatabase
}

// Options change what a test wants otherwise.
type Options struct {
	Quantum          time.Duration
	StatementTimeout time.Duration // 0: 20 s
	Connections      int           // to the protected database; 0: 8
	Log              *slog.Logger  // nil: discarded
}

// Server starts a PostgreSQL that keeps what it commits, as the ledger demands; the server that other tests share does not.
// The caller stops it.
func Server(ctx context.Context) (*pgserver.Server, error) {
	programs, err := pgserver.Find()
	if err != nil {
		return nil, err
	}
	return pgserver.Start(ctx, pgserver.Options{Programs: programs, Settings: map[string]string{"fsync": "on", "full_page_writes": "on"}})
}

// New assembles a gateway with [DDL] and [Policy], its control database on a server of [Server]; it is taken down when the
// test ends.
func New(t testing.TB, server *pgserver.Server, o Options) *Gateway {
	t.Helper()
	if o.StatementTimeout == 0 {
		o.StatementTimeout = 20 * time.Second
	}
	if o.Connections == 0 {
		o.Connections = 8
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	g := &Gateway{Control: pgtest.On(t, server), Protected: pgtest.Protected(t, DDL)}
	var err error
	if g.Ledger, err = budget.OpenPostgres(t.Context(), g.Control.LedgerDSN); err != nil {
		t.Fatal(err, errors.Unwrap(err))
	}
	t.Cleanup(g.Ledger.Close)
	data, err := pgexec.Open(t.Context(), pgexec.Config{DSN: g.Protected.ReaderDSN, Connections: o.Connections, StatementTimeout: o.StatementTimeout,
		AcquireTimeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err, errors.Unwrap(err))
	}
	t.Cleanup(data.Close)
	calculator, err := pgexec.NewCalculator(t.Context(), pgexec.Config{DSN: g.Control.LedgerDSN, Connections: 4, StatementTimeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err, errors.Unwrap(err))
	}
	t.Cleanup(calculator.Close)
	pool := pgtest.PoolOf(t, g.Control.LedgerDSN)
	store := catalog.NewStore(pool)
	g.Ensembles = pate.NewStore(pool)
	g.Policies = gateway.NewLivePolicies(store, map[string]gateway.Schemas{Dataset: data}, o.Log)
	g.Service, err = gateway.New(gateway.Config{
		Ledger: g.Ledger, Policies: g.Policies, Datasets: map[string]gateway.Dataset{Dataset: {Data: data, Votes: data, Quantum: o.Quantum}},
		Calculator: calculator, Ensembles: g.Ensembles, Sampler: mechanisms.NewSampler, NewID: gateway.NewULID, Clock: gateway.SystemClock{},
		Abandoned: time.Minute, Log: o.Log,
	})
	if err != nil {
		t.Fatal(err, errors.Unwrap(err))
	}
	if _, err := g.SetPolicy(t.Context(), gateway.PolicyChange{Dataset: Dataset, By: "sam", Text: []byte(Policy)}); err != nil {
		t.Fatal(err, errors.Unwrap(err))
	}
	return g
}

// Entries counts the lines of the ledger's journal.
func (g *Gateway) Entries(t testing.TB) int {
	t.Helper()
	entries, err := g.Ledger.Entries(t.Context(), budget.Page{Limit: 1000})
	if err != nil {
		t.Fatal(err, errors.Unwrap(err))
	}
	return len(entries)
}
