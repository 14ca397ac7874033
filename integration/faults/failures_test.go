package faults

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/gateway"
	"noisegate.example/gateway/auth"
	"noisegate.example/gateway/gatewaytest"
	"noisegate.example/gateway/httpapi"
	"noisegate.example/internal/fault"
	"noisegate.example/sqlrewrite"
)

// breakable is a protected database whose statements fail, while it is broken, after they began.
type breakable struct {
	gateway.Data
	broken *atomic.Bool
}

func (b breakable) Run(ctx context.Context, s ...sqlrewrite.Statement) sqlrewrite.Rows {
	if !b.broken.Load() {
		return b.Data.Run(ctx, s...)
	}
	return func(yield func(sqlrewrite.ExactRow, error) bool) {
		yield(sqlrewrite.ExactRow{}, fault.DataUnavailable(errors.New("SQLSTATE 57014")))
	}
}

// covers: W.5 A36 A43
//
// Failures are counted in the ledger: a gateway that is started anew, and another one on the same ledger, know of them. A steward resets
// them, and the journal, which verifies, says who.
//
// needs: postgres
func TestFailuresOverHTTP(t *testing.T) {
	var broken atomic.Bool
	options := gatewaytest.Options{Change: func(c *gateway.Config) {
		d := c.Datasets[gatewaytest.Dataset]
		d.Data = breakable{d.Data, &broken}
		c.Datasets[gatewaytest.Dataset] = d
	}}
	server, err := common()
	if err != nil {
		t.Fatal(err)
	}
	f := gatewaytest.New(t, server, options)
	handler, err := httpapi.New(httpapi.Config{Service: f.Service, Labels: f.Labels, Verifier: names{}})
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(handler)
	t.Cleanup(front.Close)
	ana, bob, sam := api.NewClient(front.URL, "ana"), api.NewClient(front.URL, "bob"), api.NewClient(front.URL, "sam")
	if _, err := ana.Query(t.Context(), numbered(0), ""); err != nil {
		t.Fatal(err)
	}
	broken.Store(true)
	for n := range 5 {
		if _, err := ana.Query(t.Context(), numbered(1+n), ""); codeOf(err) != string(fault.CodeDataUnavailable) {
			t.Fatalf("failure %d: %v", n, err)
		}
	}
	broken.Store(false)
	stopped := func(who string, ask func(api.QueryRequest) error) {
		t.Helper()
		if err := ask(numbered(7)); codeOf(err) != string(fault.CodeBudgetFailures) && fault.CodeOf(err) != fault.CodeBudgetFailures {
			t.Errorf("%s: %v", who, err)
		}
		if err := ask(numbered(0)); err != nil {
			t.Errorf("%s: a stored answer: %v", who, err)
		}
	}
	overHTTP := func(r api.QueryRequest) error {
		_, err := ana.Query(t.Context(), r, "")
		return err
	}
	before := f.Entries(t)
	stopped("the gateway", overHTTP)
	// Another gateway on the same ledger, and one that was started anew.
	other, err := gatewaytest.Assemble(t.Context(), gatewaytest.Databases{Ledger: f.Control.LedgerDSN, Reader: f.Protected.ReaderDSN},
		gatewaytest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.Close)
	who, _ := auth.NewPrincipal("ana", []string{"analyst"}, nil)
	stopped("another gateway", func(r api.QueryRequest) error {
		_, err := other.Query(t.Context(), who, gateway.Request{QueryRequest: r})
		return err
	})
	if n := f.Entries(t); n != before {
		t.Errorf("refusals wrote %d entries", n-before)
	}
	if _, err := bob.Query(t.Context(), numbered(7), ""); err != nil {
		t.Errorf("another analyst: %v", err)
	}
	if reset, err := sam.ResetFailures(t.Context(), gatewaytest.Dataset, "analyst:ana"); err != nil || reset.Reset != 5 ||
		reset.MaxFailures != 5 {
		t.Fatalf("%+v, %v", reset, err)
	}
	if err := overHTTP(numbered(7)); err != nil {
		t.Errorf("after the reset: %v", err)
	}
	if _, err := f.Ledger.Verify(t.Context(), budget.Head{Dataset: gatewaytest.Dataset}); err != nil {
		t.Error(err)
	}
	if err := f.Ledger.VerifyNew(t.Context()); err != nil {
		t.Error(err)
	}
	page, err := sam.Audit(t.Context(), gatewaytest.Dataset, "")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, e := range page.Entries {
		kinds[e.Kind]++
		if e.Kind == "reset" && (e.Subject != "sam" || e.Account != `{"resets_failures_of":"ana"}`) {
			t.Errorf("%+v", e)
		}
	}
	if kinds["fail"] != 5 || kinds["reset"] != 1 || kinds["expire"] != 0 {
		t.Errorf("the journal has %v", kinds)
	}
}

func numbered(n int) api.QueryRequest {
	return api.QueryRequest{Dataset: gatewaytest.Dataset, SQL: fmt.Sprintf("SELECT count(*) FROM people WHERE age > %d", n), Epsilon: "0.01"}
}
