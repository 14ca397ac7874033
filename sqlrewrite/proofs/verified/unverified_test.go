package verified

import (
	"context"
	"errors"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"noisegate.example/api"
	"noisegate.example/catalog"
	"noisegate.example/gateway"
	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/gateway/httpapi"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite"
)

// twoKinds shows the rewriter a catalog by which people and visits are of two kinds of units, which it does not look at where it
// joins their columns: it plans a join of one unit's rows, and promises what cannot be derived.
type twoKinds struct{ gateway.Policies }

func (p twoKinds) Current(dataset string) (*catalog.Snapshot, error) {
	s, err := p.Policies.Current(dataset)
	if err != nil {
		return nil, err
	}
	other := *s
	other.Tables = slices.Clone(s.Tables)
	for i, t := range other.Tables {
		if t.Name == "visits" {
			c := *t
			c.Unit.Of = "shop"
			other.Tables[i] = &c
		}
	}
	return &other, nil
}

// tampered changes statements on their way to PostgreSQL.
type tampered struct {
	gateway.Data
	change func(*sqlrewrite.Statement)
}

func (d tampered) Run(ctx context.Context, all ...sqlrewrite.Statement) sqlrewrite.Rows {
	all = slices.Clone(all)
	for i := range all {
		d.change(&all[i])
	}
	return d.Data.Run(ctx, all...)
}

// A plan that promises more than can be derived from its statements, and a statement that is not what was planned, are refused: the analyst
// sees internal/unverified, the log why, and nothing is charged.
func TestWhatIsNotProvenIsNotRun(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this takes long")
	}
	ledgers, err := gatewaytest.Server(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ledgers.Stop() })
	data := func(change func(*sqlrewrite.Statement)) func(*gateway.Config) {
		return func(c *gateway.Config) {
			d := c.Datasets[gatewaytest.Dataset]
			d.Data = tampered{d.Data, change}
			c.Datasets[gatewaytest.Dataset] = d
		}
	}
	less := []*big.Int{big.NewInt(4)}
	const count = "SELECT count(*) FROM visits"
	for name, c := range map[string]struct {
		change  func(*gateway.Config)
		sql     string
		planned bool // refused with its plan, before anything is reserved
	}{
		"the planner takes two units for one": {func(c *gateway.Config) { c.Policies = twoKinds{c.Policies} },
			"SELECT count(*) FROM people p JOIN visits v ON v.person = p.id", true},
		"a claim is too low":     {data(func(s *sqlrewrite.Statement) { s.Claim.PerGroup = less }), count, false},
		"there is no claim":      {data(func(s *sqlrewrite.Statement) { s.On = nil }), count, false},
		"a bound is gone":        {data(func(s *sqlrewrite.Statement) { s.SQL = strings.ReplaceAll(s.SQL, "> $1", "< $1") }), count, false},
		"an argument is another": {data(func(s *sqlrewrite.Statement) { s.Args = []any{"6"} }), count, false},
	} {
		t.Run(name, func(t *testing.T) {
			log := new(gatewaytest.Log)
			logger := slog.New(slog.NewTextHandler(log, nil))
			g := gatewaytest.New(t, ledgers, gatewaytest.Options{Change: c.change, Log: logger})
			handler, err := httpapi.New(httpapi.Config{Service: g.Service, Labels: g.Labels, Verifier: new(gatewaytest.Names), Log: logger})
			if err != nil {
				t.Fatal(err)
			}
			server := httptest.NewServer(handler)
			defer server.Close()
			ana, before := api.NewClient(server.URL, "ana:analyst"), g.Entries(t)
			ask := func(sql string) error {
				_, err := ana.Query(t.Context(), api.QueryRequest{Dataset: gatewaytest.Dataset, SQL: sql, Epsilon: "1"}, "")
				return err
			}
			var problem *api.Problem
			if err := ask(c.sql); !errors.As(err, &problem) || problem.Status != http.StatusInternalServerError ||
				problem.Code != string(fault.CodeUnverified) || strings.Contains(problem.Detail, "SELECT") {
				t.Fatalf("%v", err)
			}
			if after := g.Entries(t); c.planned && after != before {
				t.Errorf("%d entries of the ledger, %d before", after, before)
			}
			budgets, err := ana.Budget(t.Context(), gatewaytest.Dataset)
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range budgets.Budgets {
				if b.Spent.Epsilon != "0" || b.Reserved.Epsilon != "0" {
					t.Errorf("charged: %+v", b)
				}
			}
			if err := ask(count); c.planned && err != nil {
				t.Errorf("what is proven does not run: %v", err)
			}
			server.Close() // a request is logged after it is answered
			if !strings.Contains(log.String(), "verify: ") && !strings.Contains(log.String(), "without a claim") {
				t.Errorf("the log does not say why:\n%s", log.String())
			}
		})
	}
}
