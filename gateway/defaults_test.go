package gateway

import (
	"errors"
	"math/big"
	"strings"
	"testing"

	"noisegate.example/api"
	"noisegate.example/budget"
	"noisegate.example/catalog"
	"noisegate.example/internal/fault"
	"noisegate.example/mechanisms"
)

// priced is a line with a default price.
func priced(b catalog.Budget, epsilon string) catalog.Budget {
	b.DefaultEpsilon, _ = new(big.Rat).SetString(epsilon)
	b.MaxEpsilonPerQuery = big.NewRat(1, 1)
	return b
}

// A request without a price costs the smallest default of the caller's accounts; an estimate says so, and a request that says the
// same price is the same question. Without a default both are refused, and nothing is written.
func TestNoPriceIsTheSmallestDefault(t *testing.T) {
	zcdp := catalog.Budget{Scope: catalog.GroupScope, Name: "interns", Form: catalog.ZCDP, Rho: big.NewRat(1, 1)}
	withRho := func(rho string) catalog.Budget {
		b := zcdp
		b.DefaultRho, _ = new(big.Rat).SetString(rho)
		return b
	}
	for name, c := range map[string]struct {
		lines        []catalog.Budget
		epsilon, rho string // of the price; "": refused, free
	}{
		"none":                {[]catalog.Budget{line("dataset", "", 10), perAnalyst("interns", 5)}, "", ""},
		"a cap is no default": {[]catalog.Budget{line("dataset", "", 10), priced(perAnalyst("interns", 5), "0")}, "", ""},
		"own":                 {[]catalog.Budget{line("dataset", "", 10), priced(perAnalyst("interns", 5), "0.5")}, "0.5", ""},
		"group is smaller": {[]catalog.Budget{line("dataset", "", 10), priced(line("group", "interns", 5), "0.1"),
			priced(perAnalyst("interns", 5), "0.5")}, "0.1", ""},
		"dataset is smaller": {[]catalog.Budget{priced(line("dataset", "", 10), "0.2"), priced(perAnalyst("interns", 5), "0.5")}, "0.2", ""},
		"another's line":     {[]catalog.Budget{line("dataset", "", 10), priced(perAnalyst("ml", 5), "0.1"), perAnalyst("interns", 5)}, "", ""},
		"rho":                {[]catalog.Budget{line("dataset", "", 10), withRho("0.01")}, "", "0.01"},
		"rho of 0.125 is 0.5": {[]catalog.Budget{priced(line("dataset", "", 10), "0.51"), withRho("0.125")},
			"", "0.125"},
		"epsilon of 0.5 is 0.125": {[]catalog.Budget{priced(line("dataset", "", 10), "0.5"), withRho("0.126")}, "0.5", ""},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range c.lines {
				if d := c.lines[i].DefaultEpsilon; d != nil && d.Sign() == 0 {
					c.lines[i].DefaultEpsilon = nil
				}
			}
			r, ana := newRig(t, c.lines...), principal(t, "ana", "interns")
			q, err := r.prepare(t.Context(), ana, count(""))
			if c.epsilon == "" && c.rho == "" {
				if fault.CodeOf(err) != fault.CodeRequestNoPrice {
					t.Fatalf("got %v", err)
				}
				for _, ask := range []func() error{
					func() error { _, err := r.Query(t.Context(), ana, count("")); return err },
					func() error { _, err := r.Estimate(t.Context(), ana, count("").QueryRequest); return err },
				} {
					var refusal *fault.Error
					if err := ask(); !errors.As(err, &refusal) || refusal.Code != fault.CodeRequestNoPrice ||
						!strings.Contains(refusal.Hint, "default_epsilon: 0.1") {
						t.Errorf("got %v", err)
					}
				}
				if entries, err := r.ledger.Entries(t.Context(), budget.Page{Limit: 10}); err != nil || len(entries) > 0 || r.data.runs > 0 {
					t.Errorf("%v, %v, %d statements", entries, err, r.data.runs)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			wantE, _ := mechanisms.ParseEpsilon(c.epsilon)
			wantR, _ := mechanisms.ParseRho(c.rho)
			if e, rho := q.plan.Price(); e != wantE || rho != wantR {
				t.Errorf("the price is %v, %v", e, rho)
			}
			said := count(c.epsilon)
			said.Rho = api.Decimal(c.rho)
			same, err := r.prepare(t.Context(), ana, said)
			if err != nil || same.Charge.Fingerprint != q.Charge.Fingerprint {
				t.Errorf("the same price makes another question: %v", err)
			}
			unsaid, err := r.Estimate(t.Context(), ana, count("").QueryRequest)
			if err != nil {
				t.Fatal(err)
			}
			if estimate, err := r.Estimate(t.Context(), ana, said.QueryRequest); err != nil || estimate.Price != unsaid.Price {
				t.Errorf("the estimate says %+v, and %+v at the same price: %v", unsaid.Price, estimate, err)
			}
		})
	}
}

// The default δ is the smallest of the caller's accounts, for what needs one and names none; to other questions it is
// nothing, so that they are the same with and without it.
func TestDefaultDelta(t *testing.T) {
	lines := func(deltas ...string) []catalog.Budget {
		all := testSnapshot().Budgets
		for i, delta := range deltas {
			all[i].DefaultDelta, _ = new(big.Rat).SetString(delta)
		}
		return all
	}
	groups := count("0.5")
	groups.SQL = "SELECT city, count(*) FROM people GROUP BY city"
	gaussian := count("0.5")
	gaussian.Mechanism = "gaussian"
	bounded := groups
	bounded.Epsilon, bounded.MaxError = "", map[string]api.Decimal{"count": "50"}
	ana := principal(t, "ana", "analysts")
	for name, request := range map[string]Request{"private keys": groups, "gaussian": gaussian, "max error": bounded} {
		t.Run(name, func(t *testing.T) {
			if _, err := newRig(t, lines()...).prepare(t.Context(), ana, request); err == nil {
				t.Error("accepted without a delta")
			}
			q, err := newRig(t, lines("3e-9", "1e-9")...).prepare(t.Context(), ana, request)
			if err != nil {
				t.Fatal(err)
			}
			said := request
			said.Delta = "1e-9"
			same, err := newRig(t, lines()...).prepare(t.Context(), ana, said)
			if err != nil || same.Charge.Loss != q.Charge.Loss || same.Charge.Fingerprint != q.Charge.Fingerprint {
				t.Errorf("%+v by default, %+v when it is said, %v", q.Charge.Loss, same.Charge.Loss, err)
			}
		})
	}
	plain, err := newRig(t, lines()...).prepare(t.Context(), ana, count("0.5"))
	if err != nil {
		t.Fatal(err)
	}
	q, err := newRig(t, lines("3e-9", "1e-9")...).prepare(t.Context(), ana, count("0.5"))
	if err != nil || q.Charge.Fingerprint != plain.Charge.Fingerprint || q.Charge.Loss != plain.Charge.Loss {
		t.Errorf("a default delta changes what needs none: %v", err)
	}
}
