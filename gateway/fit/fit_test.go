package fit_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"noisegate.example/api"
	"noisegate.example/gateway"
	"noisegate.example/gateway/auth"
	"noisegate.example/gateway/fit"
	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/internal/fault"
	"noisegate.example/internal/pgserver"
	"noisegate.example/sqlrewrite"
)

// durable is the server of all ledgers here.
var durable *pgserver.Server

func TestMain(m *testing.M) { os.Exit(gatewaytest.Main(m, &durable)) }

func incomes() api.FitRequest {
	return api.FitRequest{Dataset: "census", From: "people", Target: "income", Model: "linear", Epsilon: "2", Delta: "1e-8",
		Features: []api.FitFeature{{Column: "age"}}}
}

// failing is data that fails, before or after a row was touched.
type failing struct {
	fit.Data
	err error
}

func (d *failing) Sequence(context.Context, sqlrewrite.Series) error { return d.err }

func (*failing) Dry(context.Context, string, ...sqlrewrite.DryRun) (bool, error) { return false, nil }
func (*failing) Distributed() bool                                               { return false }

// A table that is read in its copy only is read by no fit: they are not asked of copies.
func TestFitsOfPreparedTables(t *testing.T) {
	g := gatewaytest.New(t, durable, gatewaytest.Options{})
	policy := strings.Replace(gatewaytest.Policy, "unit: {row: id}", "unit: {column: id}\n    max_rows: 1\n    max_groups: 1\n"+
		"    prepare: {max_rows: 1}\n    require_prepared: true", 1)
	if _, err := g.SetPolicy(t.Context(), gateway.PolicyChange{Dataset: "census", By: "sam", Replaces: 1, Text: []byte(policy)}); err != nil {
		t.Fatal(err, errors.Unwrap(err))
	}
	ana := auth.Principal{Subject: "ana", Groups: []string{"analysts"}}
	if _, err := g.Fit.Fit(t.Context(), ana, fit.Request[api.FitRequest]{Body: incomes()}); fault.CodeOf(err) != fault.CodePreparedOnly {
		t.Errorf("got %v", err)
	}
	left, err := g.Budget(t.Context(), ana, "census")
	if err != nil {
		t.Fatal(err)
	}
	if spent := left.Budgets[0].Spent.Rho; strings.Trim(string(spent), "0.") != "" {
		t.Errorf("a refusal spent %s", spent)
	}
}

// A fit that fails once rows may have been read keeps its charge; one that fails before does not.
func TestFailedFitKeepsItsCharge(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		kept bool
	}{
		"after rows were read": {fault.DataUnavailable(errors.New("gone")), true},
		"before":               {fault.Untouched(fault.DataUnavailable(errors.New("gone"))), false},
	} {
		g := gatewaytest.New(t, durable, gatewaytest.Options{})
		s := fit.New(g.Service, map[string]fit.Data{"census": &failing{err: c.err}})
		ana := auth.Principal{Subject: "ana", Groups: []string{"analysts"}}
		if _, err := s.Fit(t.Context(), ana, fit.Request[api.FitRequest]{Body: incomes()}); fault.CodeOf(err) != fault.CodeDataUnavailable {
			t.Fatalf("%s: %v", name, err)
		}
		left, err := g.Budget(t.Context(), ana, "census")
		if err != nil {
			t.Fatal(err)
		}
		if spent := left.Budgets[0].Spent.Rho; strings.Trim(string(spent), "0.") != "" != c.kept {
			t.Errorf("%s: spent %s", name, spent)
		}
	}
}

// The time that a fit waits for a place is none of its work's: it is not stopped, once it is charged, as it waited longer than it may take.
func TestWaitsAreNoWork(t *testing.T) {
	const longest = 1600 * time.Millisecond
	g := gatewaytest.New(t, durable, gatewaytest.Options{Quantum: 50 * time.Millisecond, StatementTimeout: longest,
		Fairness: gateway.Fairness{Places: 1, PerAnalyst: 1}})
	ana := auth.Principal{Subject: "ana", Groups: []string{"analysts"}}
	release, err := g.Enter(t.Context(), ana)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(longest+100*time.Millisecond, release)
	if _, err := g.Fit.Fit(t.Context(), ana, fit.Request[api.FitRequest]{Body: incomes()}); err != nil {
		t.Error(err)
	}
}
