package coupling

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/budget/budgettest"
	"noisegate.example/catalog"
	"noisegate.example/gateway"
	"noisegate.example/gateway/auth"
	"noisegate.example/gateway/httpapi"
	"noisegate.example/gateway/labels"
	"noisegate.example/gateway/pgexec"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/pgtest"
	"noisegate.example/mechanisms"
	"noisegate.example/sqlrewrite"
	"noisegate.example/sqlrewrite/internal/steps"
	"noisegate.example/sqlrewrite/proofs/gen"
)

// side is a gateway over a database or over one of its neighbours: handler, service, ledger and the reader of the protected database are
// the real ones, and its clock and identifiers are the other side's.
type side struct {
	number  int
	handler http.Handler
	readers map[string]*pgexec.Database // by whom they do not see
	without string
	tape    *Tape
	played  int // how many tapes
	charges int
	exact   []*big.Int // true values by released row, as only defects may see them
}

const dataset = "test"

// newSide puts a gateway together; hide, unless it is nil, is a defect (see [hiding]).
func newSide(t *testing.T, number int, c *Couplings, hide func(exact *big.Int) bool) *side {
	t.Helper()
	s := &side{number: number, readers: make(map[string]*pgexec.Database)}
	reader, on := c.DSN, c.Snapshot
	if c.Copied != nil {
		reader, on = c.Copied.DSNs[number], c.Copied.Snapshots[number]
	}
	for _, unit := range c.Neighbours() {
		dsn, err := url.Parse(reader)
		if err != nil {
			t.Fatal(err)
		}
		query := dsn.Query()
		query.Set("test.without", unit)
		dsn.RawQuery = query.Encode()
		if s.readers[unit], err = pgexec.Open(t.Context(), pgexec.Config{DSN: dsn.String(), Connections: 1,
			StatementTimeout: time.Minute, TrialTime: time.Minute}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.readers[unit].Close)
	}
	calculator, err := pgexec.NewCalculator(t.Context(), pgexec.Config{DSN: pgtest.Control(t).LedgerDSN, Connections: 1,
		StatementTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(calculator.Close)
	ledger := budgettest.NewMemory(stopped{}.Now)
	service, err := gateway.New(gateway.Config{
		Ledger: ledger, InForce: ledger, Policies: policies{snapshot: priced(on)},
		Datasets:   map[string]gateway.Dataset{dataset: {Data: s, Copies: versions{c.Copied, number}}},
		Calculator: hiding{calculator, s, hide}, Sampler: s.sampler, NewID: s.newID, Clock: stopped{}, Abandoned: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	none, err := labels.New(labels.Config{Gateway: service, Ledger: ledger})
	if err != nil {
		t.Fatal(err)
	}
	if s.handler, err = httpapi.New(httpapi.Config{Service: service, Labels: none, Verifier: names{},
		NewRequestID: func() string { return "request" }}); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *side) sampler() *mechanisms.Sampler {
	s.played++
	return s.tape.Sampler()
}

func (s *side) newID(time.Time) budget.ReservationID {
	s.charges++
	return budget.ReservationID(fmt.Sprintf("01ARZ3NDEKTSV4RRFFQ%07d", s.charges))
}

// Run implements [gateway.Data] by the reader, with each statement's rows in this side's order.
func (s *side) Run(ctx context.Context, statements ...sqlrewrite.Statement) sqlrewrite.Rows {
	parts := make([][]sqlrewrite.ExactRow, len(statements))
	var failure error
	for row, err := range s.readers[s.without].Run(ctx, statements...) {
		if failure = err; err == nil {
			parts[row.Part] = append(parts[row.Part], row)
		}
	}
	return func(yield func(sqlrewrite.ExactRow, error) bool) {
		for _, rows := range parts {
			for _, row := range Arrival(s.number, rows, func(r sqlrewrite.ExactRow) string { return KeyIdentity(r.Keys) }) {
				if !yield(row, nil) {
					return
				}
			}
		}
		if failure != nil {
			yield(sqlrewrite.ExactRow{}, failure)
		}
	}
}

func (s *side) Distributed() bool { return false }

func (s *side) Dry(ctx context.Context, analyst string, runs ...sqlrewrite.DryRun) (bool, error) {
	return s.readers[s.without].Dry(ctx, analyst, runs...)
}

func (s *side) Read(ctx context.Context, post sqlrewrite.Post) ([]sqlrewrite.PostRow, []string, error) {
	return s.readers[s.without].Read(ctx, post)
}

func (s *side) Ping(ctx context.Context) error { return s.readers[s.without].Ping(ctx) }

// ask sends a query through the handler.
func (s *side) ask(t *testing.T, q *Coupled) *httptest.ResponseRecorder {
	t.Helper()
	request := api.QueryRequest{Dataset: dataset, SQL: q.SQL, Epsilon: api.Decimal(q.Epsilon), Rho: api.Decimal(q.Rho),
		Delta: api.Decimal(q.Delta), Report: q.Report}
	if q.MaxRows > 0 {
		request.MaxRows, request.MaxGroups = &q.MaxRows, &q.MaxGroups
	}
	if q.MaxTotal > 0 {
		request.MaxRowsTotal = &q.MaxTotal
	}
	body, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	who := "ana"
	if q.Rho != "" {
		who = "zoe" // whose account adds up ρ
	}
	s.without, s.tape, s.exact = q.Without[s.number], q.Tapes[s.number], q.True[s.number]
	r := httptest.NewRequestWithContext(steps.WithoutClock(t.Context()), http.MethodPost, "/v1/query", bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+who)
	answer := httptest.NewRecorder()
	s.handler.ServeHTTP(answer, r)
	return answer
}

// stopped is a clock that stands still.
type stopped struct{}

func (stopped) Now() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

func (stopped) Sleep(context.Context, time.Duration) {}

func (stopped) AfterFunc(time.Duration, func()) (stop func()) { return func() {} }

// names is a verifier whose tokens are names.
type names struct{}

func (names) Verify(_ context.Context, token string) (auth.Principal, error) {
	p, ok := auth.NewPrincipal(token, []string{"analyst"}, nil)
	if !ok {
		return auth.Principal{}, fault.AuthInvalid(errors.New("no principal"))
	}
	return p, nil
}

// policies has one dataset.
type policies struct {
	gateway.Policies
	snapshot *catalog.Snapshot
}

func (p policies) Current(string) (*catalog.Snapshot, error) { return p.snapshot, nil }

// versions are those of the copies of a side.
type versions struct {
	of   *CopiedSides
	side int
}

func (v versions) Copies() []catalog.Version {
	if v.of == nil {
		return nil
	}
	return v.of.Versions[v.side]
}

func (versions) Look(context.Context, string) error { return nil }

// prepare gives what makes a version of a table of a side. Both sides have one time: what differs is when they were made.
func prepare(t *testing.T, of *CopiedSides) func(side int, name string, seed int64) catalog.Version {
	t.Helper()
	var looks [2]*pgexec.Database
	for side, dsn := range of.DSNs {
		var err error
		if looks[side], err = pgexec.Open(t.Context(), pgexec.Config{DSN: dsn, Connections: 1, StatementTimeout: time.Minute}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(looks[side].Close)
	}
	return func(side int, name string, seed int64) catalog.Version {
		table, _ := of.Snapshots[side].Table("", name)
		config := pgexec.PrepareConfig{DSN: of.PrepareDSNs[side], Reader: "noisegate_reader", Seed: func() int64 { return seed }}
		_, err := config.Prepare(t.Context(), of.Snapshots[side], table, false, nil)
		all, failed := looks[side].Versions(t.Context(), dataset)
		at := slices.IndexFunc(all, func(v catalog.Version) bool { return v.Table.Name == name })
		if err = errors.Join(err, failed); err != nil || at < 0 {
			t.Fatalf("%s: %v (%v)", name, err, all)
		}
		all[at].AsOf = stopped{}.Now().Add(time.Duration(all[at].Number) * time.Minute)
		return all[at]
	}
}

func copiedCouplings(t *testing.T, seed uint64) *Couplings {
	t.Helper()
	c := NewCopiedCouplings(t, seed)
	c.Copied.Prepare = prepare(t, c.Copied)
	return c
}

// priced is a snapshot with budgets that last.
func priced(s *catalog.Snapshot) *catalog.Snapshot {
	rich := *s
	rich.Version = max(1, rich.Version) // else no read of public tables is counted, and no list of keys is asked for
	epsilon, rho, delta := big.NewRat(1_000_000, 1), big.NewRat(1_000_000, 1), big.NewRat(1, 10)
	rich.Budgets = []catalog.Budget{
		{Scope: catalog.DatasetScope, Form: catalog.Approx, Epsilon: epsilon, Delta: delta},
		{Scope: catalog.AnalystScope, Name: "ana", Form: catalog.Approx, Epsilon: epsilon, Delta: delta},
		{Scope: catalog.AnalystScope, Name: "zoe", Form: catalog.ZCDP, Rho: rho, Delta: delta},
	}
	return &rich
}

// differ says how two responses differ; "" if not at all.
func differ(a, b *httptest.ResponseRecorder) string {
	switch {
	case a.Code != b.Code:
		return fmt.Sprintf("status %d and %d", a.Code, b.Code)
	case bytes.Equal(a.Body.Bytes(), b.Body.Bytes()) && !maps.EqualFunc(a.Header(), b.Header(),
		func(x, y []string) bool { return strings.Join(x, "\n") == strings.Join(y, "\n") }):
		return fmt.Sprintf("headers\n%v\n%v", a.Header(), b.Header())
	case !bytes.Equal(a.Body.Bytes(), b.Body.Bytes()):
		return fmt.Sprintf("bodies\n%.2000s\n%.2000s", a.Body, b.Body)
	}
	return ""
}

// coupled counts what a run of coupled queries met.
type coupled struct{ asked, answered, moved, counted, fresh, reported, totals int }

// couple asks queries on both sides until an answer differs.
func couple(t *testing.T, c *Couplings, queries int, hide func(exact *big.Int) bool, spoil func(*Coupled)) (n coupled,
	difference string) {
	t.Helper()
	a, b := newSide(t, 0, c, hide), newSide(t, 1, c, hide)
	for n.asked < queries {
		q := c.Next(t)
		if spoil != nil {
			spoil(q)
		}
		n.asked++
		played := a.played
		x, y := a.ask(t, q), b.ask(t, q)
		if difference := differ(x, y); difference != "" {
			return n, fmt.Sprintf("%s\nwithout unit %s: %s", q.SQL, q.Without[1], difference)
		}
		if (x.Code != http.StatusOK) != q.Refused {
			return n, fmt.Sprintf("%s\nstatus %d: %s", q.SQL, x.Code, x.Body)
		}
		if x.Code == http.StatusOK {
			n.answered++
		}
		if q.Differs {
			n.moved++
			if q.Counted {
				n.counted++
			}
		}
		n.fresh += a.played - played
		if q.Report != "" && a.played > played {
			n.reported++
		}
		if q.Totals && q.Differs && a.played > played {
			n.totals++
		}
	}
	return n, ""
}

// Coupled by their noise, a database and its neighbour get the same HTTP answer, byte for byte: status, headers, rows, order, intervals,
// notes, charge and what remains. Whatever used a true value after the noise, anywhere between the statement and the socket, would differ
// (A10, A11, A21, A41, A80).
//
// covers: A10 A11 A21 A41 A80
func TestCoupling(t *testing.T) {
	t.Parallel()
	workers := 4
	if testing.Short() {
		workers = 2
	}
	var counted atomic.Int64
	t.Run("pairs", func(t *testing.T) {
		for i := range workers {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				n, difference := couple(t, NewCouplings(t, uint64(21+i)), CouplingQueries()/workers, nil, nil)
				if difference != "" {
					t.Fatal(difference)
				}
				if n.reported < n.asked/20 && !testing.Short() {
					t.Errorf("of %d questions only %d had a report", n.asked, n.reported)
				}
				if n.totals < n.asked/100 && !testing.Short() {
					t.Errorf("of %d questions only %d had totals that differ", n.asked, n.totals)
				}
				if n.moved < n.asked/8 || n.fresh < n.asked/2 {
					t.Errorf("of %d neighbours only %d differ at all, and %d answers were drawn: the test has no power", n.asked, n.moved, n.fresh)
				}
				counted.Add(int64(n.counted))
				t.Logf("%+v", n)
			})
		}
	})
	if gen.Proofs() >= 300 && counted.Load() == 0 { // fewer questions may hold none
		t.Error("no neighbours of which counts show the groups differ")
	}
}

// As [TestCoupling] says, of two databases that are prepared each by itself, with numbers of units of their own: of what copies answer too.
//
// covers: A10 A11 A21 A41 A80
func TestCouplingOfCopies(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	t.Parallel()
	c := copiedCouplings(t, 34)
	n, difference := couple(t, c, max(CouplingQueries()/5, 16), nil, nil)
	if difference != "" {
		t.Fatal(difference)
	}
	if c.Copied.Asked < n.asked/10 || n.moved < n.asked/8 || n.fresh < n.asked/2 {
		t.Errorf("of %d neighbours %d differ at all, %d answers were drawn, %d of copies: the test has no power", n.asked, n.moved, n.fresh,
			c.Copied.Asked)
	}
	t.Logf("%+v, of copies %d", n, c.Copied.Asked)
}

// hiding is a post-processing query that leaves out released rows by their true values; none if hide is nil.
type hiding struct {
	gateway.Calculator
	side *side
	hide func(exact *big.Int) bool
}

func (h hiding) Compute(ctx context.Context, post sqlrewrite.Post) ([]sqlrewrite.PostRow, []string, error) {
	rows, types, err := h.Calculator.Compute(ctx, post)
	if h.hide == nil {
		return rows, types, err
	}
	var shown []sqlrewrite.PostRow
	for _, row := range rows {
		if at := row.Ordinal - 1; at < 0 || at >= len(h.side.exact) || !h.hide(h.side.exact[at]) {
			shown = append(shown, row)
		}
	}
	return shown, types, err
}

// What the silence of the coupling is worth: gateways with a defect are told apart.
//
// covers: A10 A11
func TestCouplingTellsDefects(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	for name, defect := range map[string]struct {
		hide   func(exact *big.Int) bool
		spoil  func(*Coupled)
		copied bool
	}{
		"of copies":                 {copied: true, spoil: func(q *Coupled) { q.Tapes[1] = q.Tapes[0] }},
		"HAVING on true values":     {hide: func(n *big.Int) bool { return new(big.Int).Mod(n, big.NewInt(3)).Sign() == 0 }},
		"noise that is not shifted": {spoil: func(q *Coupled) { q.Tapes[1] = q.Tapes[0] }},
	} {
		couplings := NewCouplings
		if defect.copied {
			couplings = copiedCouplings
		}
		n, difference := couple(t, couplings(t, 2), 500, defect.hide, defect.spoil)
		if difference == "" {
			t.Errorf("%s: not seen in %d queries", name, n.asked)
		}
		t.Logf("%s: seen at query %d", name, n.asked)
	}
}
