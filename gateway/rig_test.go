package gateway

import (
	"context"
	"errors"
	"math/big"
	"slices"
	"sync"
	"testing"
	"time"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/budget/budgettest"
	"noisegate.example/catalog"
	"noisegate.example/gateway/auth"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite"
)

func ten() *big.Rat { return big.NewRat(10, 1) }

// fakeData answers every statement with the same count, or does what it is told.
type fakeData struct {
	mu   sync.Mutex
	runs int
	do   func() ([]sqlrewrite.ExactRow, error)
	dry  error
	// dries, if not nil, happens in a dry run.
	dries func()
	// takes is instead of do, for work that ends with its context.
	takes func(context.Context) ([]sqlrewrite.ExactRow, error)
}

func (f *fakeData) Distributed() bool { return false }

func (f *fakeData) Dry(context.Context, string, ...sqlrewrite.DryRun) (asked bool, err error) {
	if f.dries != nil {
		f.dries()
	}
	return f.dries != nil || f.dry != nil, f.dry
}

func (f *fakeData) Run(ctx context.Context, _ ...sqlrewrite.Statement) sqlrewrite.Rows {
	return func(yield func(sqlrewrite.ExactRow, error) bool) {
		f.mu.Lock()
		f.runs++
		f.mu.Unlock()
		rows, err := []sqlrewrite.ExactRow{{Values: []mechanisms.Exact{mechanisms.SealInt64(1000)}}}, error(nil)
		if f.do != nil {
			rows, err = f.do()
		}
		if f.takes != nil {
			rows, err = f.takes(ctx)
		}
		for _, row := range rows {
			if err != nil || !yield(row, nil) {
				break
			}
		}
		if err != nil {
			yield(sqlrewrite.ExactRow{}, err)
		}
	}
}

func (*fakeData) Read(context.Context, sqlrewrite.Post) ([]sqlrewrite.PostRow, []string, error) {
	return nil, nil, fault.DataUnavailable(errors.New("there is no public table here"))
}

func (*fakeData) Ping(context.Context) error { return nil }

// noCalculator is for queries without an outer layer.
type noCalculator struct{}

func (noCalculator) Compute(context.Context, sqlrewrite.Post) ([]sqlrewrite.PostRow, []string, error) {
	return nil, nil, fault.DataUnavailable(errors.New("there is no calculator here"))
}

// fakePolicies has one dataset.
type fakePolicies struct {
	Policies
	snapshot *catalog.Snapshot
	stale    error
}

func (f *fakePolicies) Current(dataset string) (*catalog.Snapshot, error) {
	if dataset != f.snapshot.Dataset {
		return nil, fault.UnknownDataset(dataset)
	}
	return f.snapshot, f.stale
}

// manualClock passes while something sleeps, and calls the functions that fall due meanwhile.
type manualClock struct {
	mu     sync.Mutex
	now    time.Time
	alarms []*alarm
}

type alarm struct {
	at time.Time
	f  func()
}

func (c *manualClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Sleep lets d pass, alarm by alarm, up to the one that ends the context.
func (c *manualClock) Sleep(ctx context.Context, d time.Duration) {
	until := c.Now().Add(d)
	for ctx.Err() == nil {
		next := c.next(until)
		if next == nil {
			return
		}
		next()
	}
}

// next goes to the next alarm, or to the end.
func (c *manualClock) next(until time.Time) func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := -1
	for i, a := range c.alarms {
		if !a.at.After(until) && (first < 0 || a.at.Before(c.alarms[first].at)) {
			first = i
		}
	}
	if first < 0 {
		if until.After(c.now) {
			c.now = until
		}
		return nil
	}
	a := c.alarms[first]
	c.alarms = slices.Delete(c.alarms, first, first+1)
	if a.at.After(c.now) {
		c.now = a.at
	}
	return a.f
}

func (c *manualClock) AfterFunc(d time.Duration, f func()) (stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := &alarm{c.now.Add(d), f}
	c.alarms = append(c.alarms, a)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.alarms = slices.DeleteFunc(c.alarms, func(b *alarm) bool { return a == b })
	}
}

// rig is a service on fakes.
type rig struct {
	*Service
	ledger   *budgettest.Memory
	data     *fakeData
	policies *fakePolicies
	earlier  budget.Lookup // of what was asked, where a test needs it
	clock    *manualClock
}

func testSnapshot(budgets ...catalog.Budget) *catalog.Snapshot {
	if budgets == nil {
		budgets = []catalog.Budget{
			{Scope: catalog.DatasetScope, Form: catalog.Approx, Epsilon: big.NewRat(20, 1), Delta: big.NewRat(1, 1_000_000)},
			{Scope: catalog.AnalystScope, Name: "analysts", PerAnalyst: true, Form: catalog.Approx, Epsilon: big.NewRat(3, 1),
				Delta: big.NewRat(1, 10_000_000), MaxEpsilonPerQuery: big.NewRat(1, 1)},
		}
	}
	return &catalog.Snapshot{Dataset: "d", Version: 1, Budgets: budgets, Tables: []*catalog.Table{{
		Schema: "public", Name: "people", OID: 1, Unit: catalog.Unit{Kind: catalog.RowUnit, Column: "id"}, MaxRows: 1, MaxGroups: 1,
		Columns: []*catalog.Column{
			{Name: "id", AttNum: 1, Type: catalog.Int4, NotNull: true},
			{Name: "age", AttNum: 2, Type: catalog.Int4, NotNull: true, Exposed: true,
				Bounds: &catalog.Bounds{Lo: new(big.Rat), Hi: big.NewRat(100, 1)}},
			{Name: "born", AttNum: 3, Type: catalog.Date, Exposed: true, Bounds: &catalog.Bounds{Lo: new(big.Rat), Hi: big.NewRat(366, 1)}},
			{Name: "sex", AttNum: 4, Type: catalog.Text, Exposed: true, Domain: []catalog.Key{{Text: "f"}, {Text: "m"}, {Null: true}}},
			{Name: "city", AttNum: 5, Type: catalog.Text, Exposed: true, PrivateKeys: true},
		},
	}}}
}

func newRig(t *testing.T, budgets ...catalog.Budget) *rig {
	t.Helper()
	clock := &manualClock{now: testTime()}
	r := &rig{ledger: budgettest.NewMemory(clock.Now), data: &fakeData{}, policies: &fakePolicies{snapshot: testSnapshot(budgets...)},
		clock: clock}
	service, err := New(Config{
		Ledger: r.ledger, Values: r.ledger, InForce: r.ledger,
		Policies: r.policies, Datasets: map[string]Dataset{"d": {Data: r.data}}, Calculator: noCalculator{},
		Sampler: mechanisms.NewSampler, NewID: NewULID, Clock: clock, Abandoned: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	r.Service = service
	return r
}

func principal(t *testing.T, subject string, groups ...string) auth.Principal {
	t.Helper()
	p, ok := auth.NewPrincipal(subject, []string{"analyst"}, groups)
	if !ok {
		t.Fatal("no principal")
	}
	return p
}

func count(epsilon string) Request {
	return Request{QueryRequest: api.QueryRequest{Dataset: "d", SQL: "SELECT count(*) FROM people", Epsilon: api.Decimal(epsilon)}}
}

func line(scope catalog.Scope, name string, epsilon int64) catalog.Budget {
	return catalog.Budget{Scope: scope, Name: name, Form: catalog.Pure, Epsilon: big.NewRat(epsilon, 1)}
}

func perAnalyst(group string, epsilon int64) catalog.Budget {
	b := line(catalog.AnalystScope, group, epsilon)
	b.PerAnalyst = true
	return b
}
