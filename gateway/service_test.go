package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"math/big"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"noisegate/api"
	"noisegate/budget"
	"noisegate/catalog"
	"noisegate/gateway/auth"
	"noisegate/internal/fault"
	"noisegate/mechanisms"
	"noisegate/sqlrewrite"
)

func ten() *big.Rat { return big.NewRat(10, 1) }

// fakeData answers every statement with the same count, or does what it is told.
type fakeData struct {
	mu   sync.Mutex
	runs int
	do   func() ([]sqlrewrite.ExactRow, error)
}

func (f *fakeData) Run(context.Context, sqlrewrite.Statement) sqlrewrite.Rows {
	return func(yield func(sqlrewrite.ExactRow, error) bool) {
		f.mu.Lock()
		f.runs++
		f.mu.Unlock()
		rows, err := []sqlrewrite.ExactRow{{Values: []mechanisms.Exact{mechanisms.SealInt64(1000)}}}, error(nil)
		if f.do != nil {
			rows, err = f.do()
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

// manualClock passes only when told, or while something sleeps.
type manualClock struct {
	mu    sync.Mutex
	now   time.Time
	slept []time.Duration
}

func (c *manualClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *manualClock) Sleep(_ context.Context, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now, c.slept = c.now.Add(d), append(c.slept, d)
}

// rig is a service on fakes.
type rig struct {
	*Service
	ledger   *budget.Memory
	data     *fakeData
	policies *fakePolicies
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
			{Name: "age", AttNum: 2, Type: catalog.Int4, NotNull: true, Exposed: true, Bounds: &catalog.Bounds{Lo: new(big.Rat), Hi: big.NewRat(100, 1)}},
			{Name: "born", AttNum: 3, Type: catalog.Date, Exposed: true, Bounds: &catalog.Bounds{Lo: new(big.Rat), Hi: big.NewRat(366, 1)}},
			{Name: "sex", AttNum: 4, Type: catalog.Text, Exposed: true, Domain: []catalog.Key{{Text: "f"}, {Text: "m"}, {Null: true}}},
			{Name: "city", AttNum: 5, Type: catalog.Text, Exposed: true, PrivateKeys: true},
		},
	}}}
}

func newRig(t *testing.T, budgets ...catalog.Budget) *rig {
	t.Helper()
	clock := &manualClock{now: testTime()}
	r := &rig{ledger: budget.NewMemory(clock.Now), data: &fakeData{}, policies: &fakePolicies{snapshot: testSnapshot(budgets...)}, clock: clock}
	service, err := New(Config{
		Ledger: r.ledger, Policies: r.policies, Datasets: map[string]Dataset{"d": {Data: r.data}}, Calculator: noCalculator{},
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

func TestQueryIsChargedAndReplayed(t *testing.T) {
	r, ana := newRig(t), principal(t, "ana")
	first, err := r.Query(t.Context(), ana, count("0.5"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(api.Amounts{Epsilon: "0.5", Rho: first.Spent.Rho, Delta: "0"}, first.Spent); diff != "" {
		t.Error(diff)
	}
	if first.Replayed || first.Remaining.Epsilon != "2.5" || len(first.ID) != 26 {
		t.Errorf("%+v", first)
	}
	var result api.Result
	if err := json.Unmarshal(first.Result, &result); err != nil {
		t.Fatal(err)
	}
	if len(result.Rows) != 1 || !result.Rows[0][0].IsNumber() || result.Intervals[0][0] == nil || result.Columns[0].Name != "count" {
		t.Errorf("%s", first.Result)
	}
	// The same question in other words: the same bytes, free.
	again := count("5e-1")
	again.SQL = "select  COUNT(*) -- how many?\n from public.people"
	second, err := r.Query(t.Context(), ana, again)
	if err != nil {
		t.Fatal(err)
	}
	if !second.Replayed || second.ID != first.ID || string(second.Result) != string(first.Result) || second.Spent.Epsilon != "0" ||
		second.Remaining.Epsilon != "2.5" || r.data.runs != 1 {
		t.Errorf("%+v", second)
	}
	// Another analyst pays.
	third, err := r.Query(t.Context(), principal(t, "bob"), count("0.5"))
	if err != nil || third.Replayed || r.data.runs != 2 {
		t.Errorf("%+v, %v", third, err)
	}
}

// TestA71RefusedRequests: what is not a number in range, and what no account allows, names the field and costs nothing.
func TestA71RefusedRequests(t *testing.T) {
	type edit = func(*api.QueryRequest)
	epsilon := func(text api.Decimal) edit { return func(q *api.QueryRequest) { q.Epsilon = text } }
	number := func(f float64) *float64 { return &f }
	whole := func(n int64) *int64 { return &n }
	cases := map[string]struct {
		edit edit
		code fault.Code
	}{
		"no dataset":         {func(q *api.QueryRequest) { q.Dataset = "" }, fault.CodeRequestMissingField},
		"unknown dataset":    {func(q *api.QueryRequest) { q.Dataset = "e" }, fault.CodeUnknownDataset},
		"no SQL":             {func(q *api.QueryRequest) { q.SQL = "" }, fault.CodeRequestMissingField},
		"rho NaN":            {func(q *api.QueryRequest) { q.Epsilon, q.Rho = "", "NaN" }, fault.CodeRequestRho},
		"epsilon and rho":    {func(q *api.QueryRequest) { q.Rho = "1" }, fault.CodeRequestConflictingPrice},
		"epsilon and error":  {func(q *api.QueryRequest) { q.MaxError = map[string]api.Decimal{"count": "9"} }, fault.CodeRequestConflictingPrice},
		"delta one":          {func(q *api.QueryRequest) { q.Delta = "1" }, fault.CodeRequestDelta},
		"delta negative":     {func(q *api.QueryRequest) { q.Delta = "-1e-9" }, fault.CodeRequestDelta},
		"mechanism":          {func(q *api.QueryRequest) { q.Mechanism = "none" }, fault.CodeRequestMechanism},
		"dialect":            {func(q *api.QueryRequest) { q.Dialect = "oracle" }, fault.CodeRequestDialect},
		"confidence 0":       {func(q *api.QueryRequest) { q.Confidence = number(0) }, fault.CodeRequestConfidence},
		"confidence 1":       {func(q *api.QueryRequest) { q.Confidence = number(1) }, fault.CodeRequestConfidence},
		"confidence -1":      {func(q *api.QueryRequest) { q.Confidence = number(-1) }, fault.CodeRequestConfidence},
		"max_groups 0":       {func(q *api.QueryRequest) { q.MaxGroups = whole(0) }, fault.CodeRequestMaxGroups},
		"max_rows negative":  {func(q *api.QueryRequest) { q.MaxRows = whole(-5) }, fault.CodeRequestMaxRows},
		"max_rows too large": {func(q *api.QueryRequest) { q.MaxRows = whole(2) }, fault.CodeLooserBound},
		"gaussian, no delta": {func(q *api.QueryRequest) { q.Mechanism = "gaussian" }, fault.CodeRequestDelta},
		"over the query cap": {epsilon("1.000000000001"), fault.CodeBudgetOverQueryCap},
		"max_error no number": {func(q *api.QueryRequest) { q.Epsilon, q.MaxError = "", map[string]api.Decimal{"count": "-2"} },
			fault.CodeRequestMaxError},
		"max_error no output": {func(q *api.QueryRequest) { q.Epsilon, q.MaxError = "", map[string]api.Decimal{"n": "2"} },
			fault.CodeRequestMaxError},
		"syntax":  {func(q *api.QueryRequest) { q.SQL = "SELEC" }, fault.CodeSyntax},
		"column":  {func(q *api.QueryRequest) { q.SQL = "SELECT sum(nope) FROM people" }, fault.CodeUnknownColumn},
		"two SQL": {func(q *api.QueryRequest) { q.SQL += "; SELECT 1" }, fault.CodeUnsupported},
	}
	for _, text := range []string{"-1", "-0", "0", "0.0", "0e0", "NaN", "nan", "Infinity", "inf", "1e308", "1e-320", "1e-13", "1000001", "abc", " 1", "1 ",
		"+1", "0x1", "1_0", "1,5", "٣", "1e", "e1", ".", "", "1e99999999999", "true", "{}", strings.Repeat("9", 41), "0." + strings.Repeat("1", 50)} {
		if text != "" {
			cases["epsilon "+text] = struct {
				edit edit
				code fault.Code
			}{epsilon(api.Decimal(text)), fault.CodeRequestEpsilon}
		}
	}
	r, ana := newRig(t), principal(t, "ana")
	for name, c := range cases {
		request := count("0.5")
		c.edit(&request.QueryRequest)
		if _, err := r.Query(t.Context(), ana, request); fault.CodeOf(err) != c.code {
			t.Errorf("%s: got %v, want %s", name, err, c.code)
		}
	}
	for _, key := range []string{"a b", "a\n", "é", strings.Repeat("k", 256)} {
		request := count("0.5")
		request.IdempotencyKey = key
		if _, err := r.Query(t.Context(), ana, request); fault.CodeOf(err) != fault.CodeRequestIdempotencyKey {
			t.Errorf("key %q: %v", key, err)
		}
	}
	if entries, err := r.ledger.Entries(t.Context(), budget.Page{Limit: 10}); err != nil || len(entries) != 0 || r.data.runs != 0 {
		t.Errorf("refused requests left %v in the ledger (%v) and ran %d statements", entries, err, r.data.runs)
	}
}

func TestPrices(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*api.QueryRequest)
		want mechanisms.Loss // Rho and Epsilon are compared where they are not zero
	}{
		"epsilon":        {func(q *api.QueryRequest) { q.Epsilon = "0.25" }, mechanisms.Loss{Epsilon: mechanisms.EpsilonUnit / 4}},
		"policy default": {func(q *api.QueryRequest) { q.Epsilon = "" }, mechanisms.Loss{Epsilon: mechanisms.EpsilonUnit}},
		"rho gaussian": {func(q *api.QueryRequest) { q.Epsilon, q.Rho, q.Mechanism = "", "0.01", "gaussian" },
			mechanisms.Loss{Rho: mechanisms.RhoUnit / 100, Unbounded: true}},
		"epsilon gaussian": {func(q *api.QueryRequest) { q.Mechanism, q.Delta = "gaussian", "1e-9" },
			mechanisms.Loss{Rho: budget.RhoFor(mechanisms.EpsilonUnit/2, 1_000_000_000), Unbounded: true}},
	} {
		t.Run(name, func(t *testing.T) {
			request := count("0.5").QueryRequest
			c.edit(&request)
			r := newRig(t)
			q, err := r.prepare(t.Context(), principal(t, "ana"), Request{QueryRequest: request})
			if err != nil {
				t.Fatal(err)
			}
			loss := q.plan.Loss()
			if loss.Unbounded != c.want.Unbounded || c.want.Rho != 0 && loss.Rho != c.want.Rho || c.want.Epsilon != 0 && loss.Epsilon != c.want.Epsilon {
				t.Errorf("got %+v, want %+v", loss, c.want)
			}
		})
	}
}

// TestMaxError: the price that is found keeps the bound, and a price a hundredth below it does not.
func TestMaxError(t *testing.T) {
	r, ana := newRig(t), principal(t, "ana")
	request := count("").QueryRequest
	request.MaxError = map[string]api.Decimal{"count": "25"}
	found, err := r.Estimate(t.Context(), ana, request)
	if err != nil {
		t.Fatal(err)
	}
	if got := found.Outputs[0].HalfWidth.String(); got != "25" {
		t.Errorf("half-width %s at %s", got, found.Price.Epsilon)
	}
	price, err := mechanisms.ParseEpsilon(string(found.Price.Epsilon))
	if err != nil {
		t.Fatal(err)
	}
	request.MaxError, request.Epsilon = nil, api.Decimal((price * 99 / 100).String())
	cheaper, err := r.Estimate(t.Context(), ana, request)
	if err != nil {
		t.Fatal(err)
	}
	if got := cheaper.Outputs[0].HalfWidth.String(); got == "25" {
		t.Errorf("%s would have been enough, and %s was found", request.Epsilon, found.Price.Epsilon)
	}
}

// TestOuterLayerFails: what was paid for is delivered without ORDER BY and arithmetic, and replayed like that.
func TestOuterLayerFails(t *testing.T) {
	r, ana := newRig(t), principal(t, "ana")
	r.data.do = func() ([]sqlrewrite.ExactRow, error) {
		return []sqlrewrite.ExactRow{{Keys: []catalog.Key{{Text: "f"}}, Values: []mechanisms.Exact{mechanisms.SealInt64(1000)}}}, nil
	}
	request := count("1")
	request.SQL = "SELECT sex, count(*) * 2 AS twice FROM people GROUP BY sex ORDER BY 2"
	answer, err := r.Query(t.Context(), ana, request)
	if err != nil {
		t.Fatal(err)
	}
	var result api.Result
	if err := json.Unmarshal(answer.Result, &result); err != nil {
		t.Fatal(err)
	}
	if len(result.Rows) != 3 || len(result.Columns) != 2 || result.Columns[1].Name != "count(*)" || result.Columns[1].HalfWidth.IsNull() ||
		result.Rows[0][0].String() != "f" || result.Notes[len(result.Notes)-1].Code != "outer-layer-failed" {
		t.Errorf("%s", answer.Result)
	}
	again, err := r.Query(t.Context(), ana, request)
	if err != nil || !again.Replayed || string(again.Result) != string(answer.Result) {
		t.Errorf("%+v, %v", again, err)
	}
}

func TestMySQLDialect(t *testing.T) {
	r, ana := newRig(t), principal(t, "ana")
	request := count("1")
	request.SQL, request.Dialect = "SELECT COUNT(*) FROM `people`", "mysql"
	if _, err := r.Query(t.Context(), ana, request); err != nil {
		t.Error(err)
	}
	request.Dialect = ""
	if _, err := r.Query(t.Context(), ana, request); fault.CodeOf(err) != fault.CodeSyntax {
		t.Errorf("%v", err)
	}
}

func TestEstimateCostsNothing(t *testing.T) {
	r, ana := newRig(t), principal(t, "ana")
	e, err := r.Estimate(t.Context(), ana, count("0.5").QueryRequest)
	if err != nil {
		t.Fatal(err)
	}
	if !e.Affordable || e.Price.Epsilon != "0.5" || e.Remaining.Epsilon != "3" || len(e.Outputs) != 1 || e.Plan == "" || e.Confidence != 0.95 {
		t.Errorf("%+v", e)
	}
	if e, err = r.Estimate(t.Context(), ana, count("2").QueryRequest); err != nil || e.Affordable {
		t.Errorf("over the cap of one query: %+v, %v", e, err)
	}
	if entries, err := r.ledger.Entries(t.Context(), budget.Page{Limit: 10}); err != nil || len(entries) != 0 || r.data.runs != 0 {
		t.Errorf("%v, %v, %d runs", entries, err, r.data.runs)
	}
}

func line(scope catalog.Scope, name string, epsilon int64) catalog.Budget {
	return catalog.Budget{Scope: scope, Name: name, Form: catalog.Pure, Epsilon: big.NewRat(epsilon, 1)}
}

func perAnalyst(group string, epsilon int64) catalog.Budget {
	b := line(catalog.AnalystScope, group, epsilon)
	b.PerAnalyst = true
	return b
}

// TestPurse says which accounts a caller's queries are charged to.
func TestPurse(t *testing.T) {
	dataset := line(catalog.DatasetScope, "", 9)
	for name, c := range map[string]struct {
		lines   []catalog.Budget
		groups  []string
		steward map[string]int64 // accounts that a steward set
		want    string           // account=ε ...; "" for none
	}{
		"no line":                   {lines: []catalog.Budget{dataset}},
		"no cap of the dataset":     {lines: []catalog.Budget{perAnalyst("analysts", 1)}},
		"per analyst":               {lines: []catalog.Budget{dataset, perAnalyst("analysts", 1)}, want: "dataset=9 analyst:ana=1"},
		"not a member":              {lines: []catalog.Budget{dataset, perAnalyst("north", 1)}},
		"first of two groups":       {lines: []catalog.Budget{dataset, perAnalyst("north", 2), perAnalyst("analysts", 1)}, groups: []string{"north"}, want: "dataset=9 analyst:ana=2"},
		"the analyst's own line":    {lines: []catalog.Budget{dataset, perAnalyst("analysts", 1), line(catalog.AnalystScope, "ana", 5)}, want: "dataset=9 analyst:ana=5"},
		"another analyst's line":    {lines: []catalog.Budget{dataset, line(catalog.AnalystScope, "bob", 5)}},
		"shared group":              {lines: []catalog.Budget{dataset, line(catalog.GroupScope, "north", 4)}, groups: []string{"north"}, want: "dataset=9 group:north=4"},
		"group, analyst and others": {lines: []catalog.Budget{line(catalog.GroupScope, "north", 4), line(catalog.GroupScope, "south", 4), perAnalyst("analysts", 1), dataset}, groups: []string{"north"}, want: "dataset=9 group:north=4 analyst:ana=1"},
		"a group called like ana":   {lines: []catalog.Budget{dataset, line(catalog.GroupScope, "ana", 4)}},
		"steward's limit":           {lines: []catalog.Budget{dataset, perAnalyst("analysts", 1)}, steward: map[string]int64{"analyst:ana": 7, "dataset": 8}, want: "dataset=8 analyst:ana=7"},
		"steward's account alone":   {lines: []catalog.Budget{dataset}, steward: map[string]int64{"analyst:ana": 7}, want: "dataset=9 analyst:ana=7"},
		"steward's group":           {lines: []catalog.Budget{dataset}, groups: []string{"x"}, steward: map[string]int64{"group:x": 7}, want: "dataset=9 group:x=7"},
		"steward's other analyst":   {lines: []catalog.Budget{dataset}, steward: map[string]int64{"analyst:bob": 7}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, c.lines...)
			for account, epsilon := range c.steward {
				_, err := r.SetAccount(t.Context(), auth.Principal{Subject: "sam"}, "d", account,
					api.BudgetLimit{Form: "pure", Epsilon: api.Decimal((mechanisms.PicoEpsilon(epsilon) * mechanisms.EpsilonUnit).String())})
				if err != nil {
					t.Fatal(err)
				}
			}
			p, err := r.purse(t.Context(), principal(t, "ana", c.groups...), r.policies.snapshot)
			if c.want == "" {
				if fault.CodeOf(err) != fault.CodeBudgetNoAccount {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, a := range p.accounts() {
				got = append(got, accountName(a.ID)+"="+a.Limit.Epsilon.String())
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("got %v, want %s", got, c.want)
			}
		})
	}
}

// TestPolicyChangesAccounts: a policy that lowers a limit, or takes a line away, works from the next query on.
func TestPolicyChangesAccounts(t *testing.T) {
	r, ana := newRig(t, line(catalog.DatasetScope, "", 9), perAnalyst("analysts", 3)), principal(t, "ana")
	if _, err := r.Query(t.Context(), ana, count("2")); err != nil {
		t.Fatal(err)
	}
	r.policies.snapshot = testSnapshot(line(catalog.DatasetScope, "", 9), perAnalyst("analysts", 2))
	if _, err := r.Query(t.Context(), ana, count("0.5")); fault.CodeOf(err) != fault.CodeBudgetExhausted {
		t.Errorf("lowered: %v", err)
	}
	r.policies.snapshot = testSnapshot(line(catalog.DatasetScope, "", 9), perAnalyst("others", 2))
	if _, err := r.Query(t.Context(), ana, count("0.5")); fault.CodeOf(err) != fault.CodeBudgetNoAccount {
		t.Errorf("taken away: %v", err)
	}
	if _, err := r.SetAccount(t.Context(), auth.Principal{Subject: "sam"}, "d", "analyst:ana", api.BudgetLimit{Form: "pure", Epsilon: "5"}); err != nil {
		t.Fatal(err)
	}
	answer, err := r.Query(t.Context(), ana, count("0.5"))
	if err != nil || answer.Remaining.Epsilon != "2.5" {
		t.Errorf("given by the steward: %+v, %v", answer, err)
	}
}

// TestA66Race: 64 queries at a time against a cap that fits ten.
func TestA66Race(t *testing.T) {
	r := newRig(t, line(catalog.DatasetScope, "", 1000), perAnalyst("analysts", 1))
	ana := principal(t, "ana")
	codes := make(chan fault.Code, 64)
	var wait sync.WaitGroup
	for i := range 64 {
		wait.Go(func() {
			request := count("0.1")
			request.SQL += " WHERE age < " + big.NewInt(int64(i)).String()
			_, err := r.Query(t.Context(), ana, request)
			codes <- fault.CodeOf(err)
		})
	}
	wait.Wait()
	close(codes)
	seen := map[fault.Code]int{}
	for code := range codes {
		seen[code]++
	}
	if diff := cmp.Diff(map[fault.Code]int{"": 10, fault.CodeBudgetExhausted: 54}, seen); diff != "" {
		t.Error(diff)
	}
}

// TestA35Ticks: answers, refusals, failures and panics leave at multiples of the quantum, never at the beginning.
func TestA35Ticks(t *testing.T) {
	const quantum = 50 * time.Millisecond
	takes := func(r *rig, d time.Duration, err error) func() ([]sqlrewrite.ExactRow, error) {
		return func() ([]sqlrewrite.ExactRow, error) {
			r.clock.Sleep(context.Background(), d)
			return []sqlrewrite.ExactRow{{Values: make([]mechanisms.Exact, 1)}}, err
		}
	}
	for name, c := range map[string]struct {
		request Request
		work    time.Duration
		fail    error
		panics  bool
		ticks   time.Duration
	}{
		"answer at once":   {request: count("0.5"), ticks: 1},
		"answer":           {request: count("0.5"), work: 20 * time.Millisecond, ticks: 1},
		"slower answer":    {request: count("0.5"), work: 49 * time.Millisecond, ticks: 1},
		"at the tick":      {request: count("0.5"), work: 50 * time.Millisecond, ticks: 2},
		"slow answer":      {request: count("0.5"), work: 120 * time.Millisecond, ticks: 3},
		"failure":          {request: count("0.5"), work: 30 * time.Millisecond, fail: fault.DataUnavailable(nil), ticks: 1},
		"panic":            {request: count("0.5"), work: 30 * time.Millisecond, panics: true, ticks: 1},
		"refused text":     {request: Request{QueryRequest: api.QueryRequest{Dataset: "d", SQL: "SELEC", Epsilon: "1"}}, ticks: 1},
		"exhausted":        {request: count("100"), ticks: 1},
		"refused epsilon":  {request: count("-1"), ticks: 1},
		"no such dataset":  {request: Request{QueryRequest: api.QueryRequest{Dataset: "e"}}, ticks: 0},
		"no data at all":   {request: Request{QueryRequest: api.QueryRequest{Dataset: "d", SQL: "SELECT DISTINCT sex FROM people", Epsilon: "1"}}, ticks: 1},
		"policy too loose": {request: Request{QueryRequest: api.QueryRequest{Dataset: "d", SQL: "SELECT age FROM people", Epsilon: "1"}}, ticks: 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.datasets["d"] = Dataset{Data: r.data, Quantum: quantum}
			r.data.do = takes(r, c.work, c.fail)
			if c.panics {
				inner := r.data.do
				r.data.do = func() ([]sqlrewrite.ExactRow, error) { _, _ = inner(); panic("x") }
			}
			began := r.clock.Now()
			_, _ = r.Query(t.Context(), principal(t, "ana"), c.request)
			if took := r.clock.Now().Sub(began); took != c.ticks*quantum {
				t.Errorf("left after %v", took)
			}
		})
	}
}

// TestA42Exhaustion: a refusal by the dataset's cap shows no figure of what others spent.
func TestA42Exhaustion(t *testing.T) {
	r := newRig(t, line(catalog.DatasetScope, "", 1), perAnalyst("analysts", 5))
	if _, err := r.Query(t.Context(), principal(t, "bob"), count("0.7")); err != nil {
		t.Fatal(err)
	}
	_, err := r.Query(t.Context(), principal(t, "ana"), count("0.7"))
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != fault.CodeBudgetExhausted || len(f.Details) != 0 || strings.ContainsAny(f.Msg+f.Hint, "0123456789") {
		t.Errorf("%+v", f)
	}
	e, err := r.Estimate(t.Context(), principal(t, "ana"), count("0.7").QueryRequest)
	if err != nil || !e.Affordable || e.Remaining.Epsilon != "5" {
		t.Errorf("the estimate tells of the others: %+v, %v", e, err)
	}
}

func TestBudgetAndHistory(t *testing.T) {
	r, ana := newRig(t), principal(t, "ana")
	answer, err := r.Query(t.Context(), ana, count("0.5"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := r.Budget(t.Context(), ana, "")
	if err != nil || len(all.Budgets) != 1 {
		t.Fatalf("%+v, %v", all, err)
	}
	b := all.Budgets[0]
	if b.Account != "analyst:ana" || b.Spent.Epsilon != "0.5" || b.Remaining.Epsilon != "2.5" || b.Limit.Epsilon != "3" || b.Limit.Delta != "1e-7" ||
		b.Limit.MaxEpsilonPerQuery != "1" || !strings.HasPrefix(b.Advice, "about ") {
		t.Errorf("%+v", b)
	}
	list, err := r.Releases(t.Context(), ana, "")
	if err != nil || len(list.Releases) != 1 || list.NextCursor != "" || list.Releases[0].Request.SQL != "SELECT count(*) FROM people" {
		t.Fatalf("%+v, %v", list, err)
	}
	release, err := r.Release(t.Context(), ana, string(answer.ID))
	if err != nil {
		t.Fatal(err)
	}
	stored, err := json.Marshal(release.Result)
	if err != nil || string(stored) != string(answer.Result) {
		t.Errorf("%s, %v", stored, err)
	}
	// A74: what is someone else's does not exist.
	_, foreign := r.Release(t.Context(), principal(t, "bob"), string(answer.ID))
	_, missing := r.Release(t.Context(), principal(t, "bob"), "01AAAAAAAAAAAAAAAAAAAAAAAA")
	if foreign == nil || missing == nil || foreign.Error() != missing.Error() || fault.CodeOf(foreign) != fault.CodeBudgetUnknownRelease {
		t.Errorf("%v, %v", foreign, missing)
	}
	if list, err := r.Releases(t.Context(), principal(t, "bob"), ""); err != nil || len(list.Releases) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
	for _, cursor := range []string{"x", "0", "-1", "99999999999999999999"} {
		if _, err := r.Releases(t.Context(), ana, cursor); fault.CodeOf(err) != fault.CodeRequestCursor {
			t.Errorf("cursor %s: %v", cursor, err)
		}
	}
}

func TestHistoryPages(t *testing.T) {
	r, ana := newRig(t, line(catalog.DatasetScope, "", 1000), perAnalyst("analysts", 1000)), principal(t, "ana")
	for i := range releasesPerPage + 3 {
		request := count("0.1")
		request.SQL += " WHERE age < " + big.NewInt(int64(i)).String()
		if _, err := r.Query(t.Context(), ana, request); err != nil {
			t.Fatal(err)
		}
	}
	first, err := r.Releases(t.Context(), ana, "")
	if err != nil || len(first.Releases) != releasesPerPage || first.NextCursor == "" {
		t.Fatalf("%d, %q, %v", len(first.Releases), first.NextCursor, err)
	}
	second, err := r.Releases(t.Context(), ana, first.NextCursor)
	if err != nil || len(second.Releases) != 3 || second.NextCursor != "" {
		t.Fatalf("%d, %q, %v", len(second.Releases), second.NextCursor, err)
	}
	if last := second.Releases[2].Request.SQL; !strings.HasSuffix(last, "< 0") {
		t.Errorf("the oldest is %s", last)
	}
}

func TestDatasetsShowWhatIsPublic(t *testing.T) {
	r := newRig(t)
	list, err := r.Datasets()
	if err != nil {
		t.Fatal(err)
	}
	text := func(s string) *string { return &s }
	want := []api.Dataset{{Name: "d", Version: 1, Tables: []api.Table{{
		Schema: "public", Name: "people", Unit: &api.Unit{Kind: "row", Column: "id"}, MaxRows: 1, MaxGroups: 1,
		Columns: []api.TableColumn{
			{Name: "age", Type: "integer", Bounds: &api.ColumnBounds{Lo: "0", Hi: "100"}},
			{Name: "born", Type: "date", Bounds: &api.ColumnBounds{Lo: "1970-01-01", Hi: "1971-01-02"}},
			{Name: "sex", Type: "text", Keys: "public", Domain: []*string{text("f"), text("m"), nil}},
			{Name: "city", Type: "text", Keys: "private"},
		},
	}}}}
	if diff := cmp.Diff(want, list.Datasets); diff != "" {
		t.Error(diff)
	}
	r.policies.stale = fault.PolicyStale()
	if list, err := r.Datasets(); err != nil || len(list.Datasets) != 0 {
		t.Errorf("a stale dataset: %+v, %v", list, err)
	}
	if _, err := r.Query(t.Context(), principal(t, "ana"), count("0.5")); fault.CodeOf(err) != fault.CodePolicyStale {
		t.Errorf("a stale dataset answers: %v", err)
	}
	if ready := r.Ready(t.Context()); ready["dataset:d"] == nil || ready["ledger"] != nil {
		t.Errorf("%v", ready)
	}
}

func TestStewardsBudgets(t *testing.T) {
	r := newRig(t)
	sam := auth.Principal{Subject: "sam"}
	if _, err := r.Account(t.Context(), "d", "analyst:bob"); fault.CodeOf(err) != fault.CodeRequestNotFound {
		t.Errorf("%v", err)
	}
	account, err := r.SetAccount(t.Context(), sam, "d", "analyst:bob", api.BudgetLimit{Form: "zcdp", Rho: "0.5", Delta: "1e-8", MaxEpsilonPerQuery: "0.5"})
	if err != nil {
		t.Fatal(err)
	}
	want := api.Account{Dataset: "d", Account: "analyst:bob", Origin: "steward",
		Limit:     api.BudgetLimit{Form: "zcdp", Rho: "0.5", Delta: "1e-8", MaxEpsilonPerQuery: "0.5"},
		Spent:     api.Amounts{Epsilon: "0", Rho: "0", Delta: "0"},
		Reserved:  api.Amounts{Epsilon: "0", Rho: "0", Delta: "0"},
		Remaining: api.Amounts{Rho: "0.5", Delta: "1e-8"}}
	if diff := cmp.Diff(&want, account); diff != "" {
		t.Error(diff)
	}
	list, err := r.Accounts(t.Context(), "d")
	if err != nil || len(list.Accounts) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	for name, c := range map[string]struct {
		account string
		limit   api.BudgetLimit
		code    fault.Code
	}{
		"no scope":       {"bob", api.BudgetLimit{Form: "pure", Epsilon: "1"}, fault.CodeRequestAccount},
		"unknown scope":  {"role:bob", api.BudgetLimit{Form: "pure", Epsilon: "1"}, fault.CodeRequestAccount},
		"no name":        {"group:", api.BudgetLimit{Form: "pure", Epsilon: "1"}, fault.CodeRequestAccount},
		"dataset's name": {"dataset:d", api.BudgetLimit{Form: "pure", Epsilon: "1"}, fault.CodeRequestAccount},
		"unknown form":   {"dataset", api.BudgetLimit{Form: "free", Epsilon: "1"}, fault.CodeRequestBudget},
		"no amount":      {"dataset", api.BudgetLimit{Form: "pure"}, fault.CodeRequestBudget},
		"negative":       {"dataset", api.BudgetLimit{Form: "pure", Epsilon: "-1"}, fault.CodeRequestBudget},
		"A71 infinite":   {"dataset", api.BudgetLimit{Form: "pure", Epsilon: "Infinity"}, fault.CodeRequestBudget},
		"too large":      {"dataset", api.BudgetLimit{Form: "pure", Epsilon: "1000001"}, fault.CodeRequestBudget},
		"delta 1":        {"dataset", api.BudgetLimit{Form: "approx", Epsilon: "1", Delta: "1"}, fault.CodeRequestBudget},
		"wrong currency": {"dataset", api.BudgetLimit{Form: "zcdp", Epsilon: "1"}, fault.CodeRequestBudget},
	} {
		if _, err := r.SetAccount(t.Context(), sam, "d", c.account, c.limit); fault.CodeOf(err) != c.code {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestULID(t *testing.T) {
	at := time.UnixMilli(1469918176385) // the example of github.com/ulid/spec
	seen := map[budget.ReservationID]bool{}
	for range 1000 {
		id := NewULID(at)
		if len(id) != 26 || !strings.HasPrefix(string(id), "01ARYZ6S41") || strings.ContainsAny(string(id), "ILOU") || seen[id] {
			t.Fatalf("%s", id)
		}
		seen[id] = true
	}
	if NewULID(at.Add(time.Millisecond)) < NewULID(at) {
		t.Error("a later identifier sorts first")
	}
}
